/* Returns a model's answers for the text that a session has encoded last: words for [MASK], classes, labels of
 * tokens, tokens that were replaced. The report and the page's module (wasm/) share it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "include/deberta_unstable.h"

enum { ANSWER_TOP = 5 }; /* number of words and of classes */

typedef struct answered_text {
    deberta_session *session;
    const deberta_model *model;
    const deberta_tokenizer *tokenizer; /* NULL: the id of [MASK] is unknown */
    const int32_t *ids, *token_types;   /* [tokens] */
    size_t tokens;
} answered_text;

/* Returns true if the model has a head whose answer is shown. */
bool explorer_answer_is_there(const answered_text *text);

/* Predicts every [MASK]: [{"place", "tokens": [{"token", "id", "probability"}]}]. task: DEBERTA_TASK_MLM or
 * _MLM_EMD. */
deberta_status explorer_answer_masks(const answered_text *text, deberta_task task, size_t top, json_t **masks,
                                     deberta_error *err);

/* Returns the answers of all heads, an object: "masks" as above, by the Enhanced Mask Decoder where there is one, as
 * in fill-mask, and the "decoder" used, "emd" or "plain"; "classes" [{"label", "probability" or "score"}] and, by
 * token, "tags" [{"label", "probability"}] and "replaced" [probability]. Answers without a head are missing. plain:
 * without that decoder. */
deberta_status explorer_answer(const answered_text *text, bool plain, json_t **answer, deberta_error *err);

/* Returns an array of the heads' plain answers with each of H[0] ... H[L] in the place of H[L]. The heads were
 * trained on H[L] alone, so this is a reading of the layers below, known as logit lens, and no result of the model.
 * It encodes the text L + 1 times. The session needs DEBERTA_OBSERVE_HIDDEN; its last encode is then not that of the
 * model. */
deberta_status explorer_answers_by_layer(const answered_text *text, json_t **answers, deberta_error *err);
