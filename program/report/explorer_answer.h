/* Says what a model answers to the text that a session has encoded last: words for [MASK], classes, labels of tokens,
 * tokens that were replaced. For the page of a report; the program and the page's module (wasm/) share it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "include/deberta_unstable.h"

enum { ANSWER_TOP = 5 }; /* words and classes */

typedef struct answered_text {
    deberta_session *session;
    const deberta_model *model;
    const deberta_tokenizer *tokenizer; /* NULL: no token is known to be [MASK] */
    const int32_t *ids, *token_types;   /* [tokens] */
    size_t tokens;
} answered_text;

/* Whether the model has a head whose answer is shown. */
bool explorer_answer_is_there(const answered_text *text);

/* Predicts every [MASK]: [{"place", "tokens": [{"token", "id", "probability"}]}]. task: DEBERTA_TASK_MLM or _MLM_EMD.
 */
deberta_status explorer_answer_masks(const answered_text *text, deberta_task task, size_t top, json_t **masks,
                                     deberta_error *err);

/* All that the heads say, an object: "masks" as above by the Enhanced Mask Decoder where there is one, as fill-mask has
 * them, and which "decoder" that was, "emd" or "plain"; "classes" [{"label", "probability" or "score"}] and, by token,
 * "tags" [{"label", "probability"}] and "replaced" [probability]. What the model has no head for is missing. plain:
 * without that decoder. */
deberta_status explorer_answer(const answered_text *text, bool plain, json_t **answer, deberta_error *err);

/* The plain answer of the heads to H[0] ... H[L] in the place of H[L], an array. The heads were trained on H[L] alone:
 * this is a reading of the layers below, known as logit lens, and no result of the model. It encodes the text L + 1
 * times. The session needs DEBERTA_OBSERVE_HIDDEN; its
 * last encode is then not that of the model.  */
deberta_status explorer_answers_by_layer(const answered_text *text, json_t **answers, deberta_error *err);
