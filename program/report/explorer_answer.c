/* Asks the heads of a model and ranks their answers. SPDX-License-Identifier: MIT */
#include "program/report/explorer_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"

/* Each call reads the whole word table, and each row is as wide as the vocabulary, so a call has this many rows. */
enum { MASKS_AT_ONCE = 32 };

/* Memory of the logits of one call. */
typedef struct answer_rows {
    size_t width, count;
    float *logits;         /* [count][width] */
    double *probabilities; /* [width] probabilities of one row */
    size_t *ranked;        /* [width] */
} answer_rows;

static void free_rows(answer_rows *rows)
{
    free(rows->logits), free(rows->probabilities), free(rows->ranked);
    *rows = (answer_rows){0};
}

static deberta_status check_numbers(const answer_rows *rows, deberta_task task, deberta_error *err)
{
    for (size_t k = 0; k < rows->count * rows->width; k++)
        if (!isfinite(rows->logits[k]))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "the head '%s' gives %f: weights of the model are damaged or diverged in training",
                         deberta_task_name(task), (double)rows->logits[k]);
    return DEBERTA_OK;
}

/* Computes the logits at some places (tokens, or for a classifier the number of the text). Free them with free_rows,
 * also after a failure. */
static deberta_status ask_head(const answered_text *text, deberta_task task, const size_t *places, size_t count,
                               answer_rows *rows, deberta_error *err)
{
    size_t values;
    *rows = (answer_rows){.width = deberta_task_width(text->model, task), .count = count};
    if (size_multiply(rows->width, count, &values)) rows->logits = calloc(values + 1, sizeof *rows->logits);
    rows->probabilities = calloc(rows->width + 1, sizeof *rows->probabilities);
    rows->ranked = calloc(rows->width + 1, sizeof *rows->ranked);
    if (!rows->logits || !rows->probabilities || !rows->ranked)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for what the head '%s' says", deberta_task_name(task));
    DEBERTA_TRY(deberta_task_logits(text->session, task, places, count, rows->logits, rows->width, err));
    return check_numbers(rows, task, err);
}

static json_t *text_or_mark(const char *text)
{
    json_t *value = json_string(text ? text : "");
    return value ? value : json_string("\uFFFD");
}

static deberta_status keep(json_t *value, json_t **result, deberta_error *err)
{
    *result = value;
    return value ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory for the answers");
}

/* ------------------------------------------------------------------------------------------------------------ [MASK] */

static json_t *describe_words(const answered_text *text, answer_rows *rows, const float *logits, size_t top)
{
    json_t *list = json_array();
    deberta_softmax(rows->probabilities, logits, rows->width);
    const size_t found = deberta_rank(rows->ranked, minimum(top, rows->width), rows->probabilities, rows->width);
    for (size_t k = 0; k < found; k++) {
        const size_t id = rows->ranked[k];
        json_array_append_new(list, json_pack("{s:o, s:I, s:f}", "token",
                                              text_or_mark(deberta_tokenizer_token(text->tokenizer, (int32_t)id, NULL)),
                                              "id", (json_int_t)id, "probability", rows->probabilities[id]));
    }
    return list;
}

deberta_status explorer_answer_masks(const answered_text *text, deberta_task task, size_t top, json_t **masks,
                                     deberta_error *err)
{
    answer_rows rows = {0};
    size_t *places = calloc(text->tokens + 1, sizeof *places), count = 0;
    json_t *list = json_array();
    deberta_status status = DEBERTA_OK;
    *masks = NULL;
    if (!places || !list) status = status_fail(err, DEBERTA_E_MEMORY, "out of memory for candidates");
    const int32_t mask = text->tokenizer ? deberta_tokenizer_special_id(text->tokenizer, DEBERTA_SPECIAL_MASK) : -1;
    for (size_t t = 0; status == DEBERTA_OK && mask >= 0 && t < text->tokens; t++)
        if (text->ids[t] == mask) places[count++] = t;
    for (size_t first = 0; status == DEBERTA_OK && first < count; first += MASKS_AT_ONCE) {
        const size_t some = minimum(count - first, MASKS_AT_ONCE);
        status = ask_head(text, task, places + first, some, &rows, err);
        for (size_t k = 0; status == DEBERTA_OK && k < some; k++)
            json_array_append_new(list, json_pack("{s:I, s:o}", "place", (json_int_t)places[first + k], "tokens",
                                                  describe_words(text, &rows, rows.logits + k * rows.width, top)));
        free_rows(&rows);
    }
    free(places);
    if (status == DEBERTA_OK) return keep(list, masks, err);
    json_decref(list);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- classes */

/* Returns the label's name, or "LABEL_<k>" if the config has none. */
static json_t *label_name(const answered_text *text, size_t label)
{
    const char *name = deberta_model_label(text->model, label);
    return name ? text_or_mark(name) : json_sprintf("LABEL_%zu", label);
}

/* Turns a row of logits into the output of `classify`: probabilities of one label out of all, or of each by itself,
 * or values. A single output is an amount, not a label. */
static const char *read_classes(const answered_text *text, answer_rows *rows)
{
    const deberta_problem problem = deberta_model_describe(text->model)->problem;
    const bool is_alone = rows->width == 1 && problem != DEBERTA_PROBLEM_MULTI_LABEL;
    deberta_softmax(rows->probabilities, rows->logits, rows->width);
    for (size_t k = 0; k < rows->width; k++) {
        if (problem == DEBERTA_PROBLEM_MULTI_LABEL) rows->probabilities[k] = deberta_sigmoid((double)rows->logits[k]);
        if (problem == DEBERTA_PROBLEM_REGRESSION || is_alone) rows->probabilities[k] = (double)rows->logits[k];
    }
    return problem == DEBERTA_PROBLEM_REGRESSION || is_alone ? "score" : "probability";
}

static deberta_status answer_classes(const answered_text *text, json_t *answer, deberta_error *err)
{
    answer_rows rows;
    const size_t first = 0;
    deberta_status status = ask_head(text, DEBERTA_TASK_SEQUENCE, &first, 1, &rows, err);
    if (status == DEBERTA_OK) {
        json_t *list = json_array();
        const char *value = read_classes(text, &rows);
        const size_t found = deberta_rank(rows.ranked, minimum(ANSWER_TOP, rows.width), rows.probabilities, rows.width);
        for (size_t k = 0; k < found; k++)
            json_array_append_new(list,
                                  json_pack("{s:o, s:I, s:f}", "label", label_name(text, rows.ranked[k]), "id",
                                            (json_int_t)rows.ranked[k], value, rows.probabilities[rows.ranked[k]]));
        json_object_set_new(answer, "classes", list);
    }
    free_rows(&rows);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ tokens */

static deberta_status ask_all_tokens(const answered_text *text, deberta_task task, answer_rows *rows,
                                     deberta_error *err)
{
    size_t *places = calloc(text->tokens + 1, sizeof *places);
    *rows = (answer_rows){0};
    if (!places) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the answers");
    for (size_t t = 0; t < text->tokens; t++) places[t] = t;
    const deberta_status status = ask_head(text, task, places, text->tokens, rows, err);
    free(places);
    return status;
}

static deberta_status answer_tags(const answered_text *text, json_t *answer, deberta_error *err)
{
    answer_rows rows;
    deberta_status status = ask_all_tokens(text, DEBERTA_TASK_TOKEN, &rows, err);
    if (status == DEBERTA_OK) {
        json_t *list = json_array();
        for (size_t t = 0; t < text->tokens; t++) {
            deberta_softmax(rows.probabilities, rows.logits + t * rows.width, rows.width);
            deberta_rank(rows.ranked, 1, rows.probabilities, rows.width);
            json_array_append_new(list, json_pack("{s:o, s:f}", "label", label_name(text, rows.ranked[0]),
                                                  "probability", rows.probabilities[rows.ranked[0]]));
        }
        json_object_set_new(answer, "tags", list);
    }
    free_rows(&rows);
    return status;
}

static deberta_status answer_replaced(const answered_text *text, json_t *answer, deberta_error *err)
{
    answer_rows rows;
    deberta_status status = ask_all_tokens(text, DEBERTA_TASK_RTD, &rows, err);
    if (status == DEBERTA_OK) {
        json_t *list = json_array();
        for (size_t t = 0; t < text->tokens; t++)
            json_array_append_new(list, json_real(deberta_sigmoid((double)rows.logits[t * rows.width])));
        json_object_set_new(answer, "replaced", list);
    }
    free_rows(&rows);
    return status;
}

/* --------------------------------------------------------------------------------------------------------------- all */

static bool has_head(const answered_text *text, deberta_task task) { return deberta_task_width(text->model, task) > 0; }

static bool has_words(const answered_text *text) { return has_head(text, DEBERTA_TASK_MLM) && text->tokenizer; }

bool explorer_answer_is_there(const answered_text *text)
{
    return has_words(text) || has_head(text, DEBERTA_TASK_SEQUENCE) || has_head(text, DEBERTA_TASK_TOKEN) ||
           has_head(text, DEBERTA_TASK_RTD);
}

static deberta_status answer_words(const answered_text *text, bool plain, json_t *answer, deberta_error *err)
{
    const bool has_decoder = has_head(text, DEBERTA_TASK_MLM_EMD) && !plain;
    json_t *masks;
    DEBERTA_TRY(
        explorer_answer_masks(text, has_decoder ? DEBERTA_TASK_MLM_EMD : DEBERTA_TASK_MLM, ANSWER_TOP, &masks, err));
    json_object_set_new(answer, "masks", masks);
    json_object_set_new(answer, "decoder", json_string(has_decoder ? "emd" : "plain"));
    return DEBERTA_OK;
}

deberta_status explorer_answer(const answered_text *text, bool plain, json_t **answer, deberta_error *err)
{
    json_t *object = json_object();
    deberta_status status = DEBERTA_OK;
    *answer = NULL;
    if (has_words(text)) status = answer_words(text, plain, object, err);
    if (status == DEBERTA_OK && has_head(text, DEBERTA_TASK_SEQUENCE)) status = answer_classes(text, object, err);
    if (status == DEBERTA_OK && has_head(text, DEBERTA_TASK_TOKEN)) status = answer_tags(text, object, err);
    if (status == DEBERTA_OK && has_head(text, DEBERTA_TASK_RTD)) status = answer_replaced(text, object, err);
    if (status == DEBERTA_OK) return keep(object, answer, err);
    json_decref(object);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- by layer */

typedef struct lens {
    float *states; /* [L + 1][tokens][columns] */
    size_t tokens, columns, layers;
    size_t shown; /* layer whose states replace H[L] */
} lens;

static float *states_of(const lens *l, size_t layer) { return l->states + layer * l->tokens * l->columns; }

static deberta_status keep_states(void *context, const deberta_hidden_block *block)
{
    const lens *l = context;
    for (size_t t = 0; t < l->tokens; t++)
        memcpy(states_of(l, block->layer) + t * l->columns, block->values + t * block->stride,
               l->columns * sizeof(float));
    return DEBERTA_OK;
}

static deberta_status put_states(void *context, const deberta_hidden_edit *edit)
{
    const lens *l = context;
    if (edit->layer != l->layers) return DEBERTA_OK;
    for (size_t t = 0; t < l->tokens; t++)
        memcpy(edit->values + t * edit->stride, states_of(l, l->shown) + t * l->columns, l->columns * sizeof(float));
    return DEBERTA_OK;
}

static deberta_status encode_once(const answered_text *text, const deberta_observer *observer, deberta_error *err)
{
    const size_t starts[2] = {0, text->tokens};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = text->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .token_types = text->token_types,
                                 .observer = observer};
    return deberta_encode(text->session, &batch, &outputs, err);
}

/* The last layer is read first: its encode is the one whose states are all kept. */
static deberta_status read_layers(const answered_text *text, lens *l, json_t *answers, deberta_error *err)
{
    const deberta_observer observer = {.struct_size = sizeof observer, .context = l, .on_hidden = keep_states};
    const deberta_interventions put = {.context = l, .edit_hidden = put_states};
    for (size_t step = 0; step <= l->layers; step++) {
        json_t *answer;
        l->shown = l->layers - step;
        if (step == 1) DEBERTA_TRY(deberta_session_intervene(text->session, &put, err));
        DEBERTA_TRY(encode_once(text, step ? NULL : &observer, err));
        DEBERTA_TRY(explorer_answer(text, true, &answer, err));
        json_array_insert_new(answers, 0, answer);
    }
    return DEBERTA_OK;
}

deberta_status explorer_answers_by_layer(const answered_text *text, json_t **answers, deberta_error *err)
{
    const deberta_model_info *info = deberta_model_describe(text->model);
    lens l = {.tokens = text->tokens, .columns = info->hidden_size, .layers = info->layers};
    size_t values;
    *answers = NULL;
    if (size_multiply(l.tokens, l.columns, &values) && size_multiply(values, l.layers + 1, &values))
        l.states = calloc(values + 1, sizeof *l.states);
    json_t *list = json_array();
    deberta_status status =
        l.states && list
            ? DEBERTA_OK
            : status_fail(err, DEBERTA_E_MEMORY, "out of memory for the hidden states of %zu layers", l.layers);
    if (status == DEBERTA_OK) status = read_layers(text, &l, list, err);
    free(l.states);
    const deberta_status undone = deberta_session_intervene(text->session, NULL, status == DEBERTA_OK ? err : NULL);
    if (status == DEBERTA_OK) status = undone;
    if (status == DEBERTA_OK) return keep(list, answers, err);
    json_decref(list);
    return status;
}
