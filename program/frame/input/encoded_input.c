/* Lists and computes the tensors of an encoded input (hidden states, attention maps, logits of heads), and walks them
 * row by row.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/encoded_input.h"

#include <string.h>

#include "include/deberta_unstable.h"
#include "program/frame/input/encode_logits.h"

enum { INPUTS = 4, VALUES_AT_ONCE = 256 };
static const char *const input_names[INPUTS] = {"input_ids", "attention_mask", "token_type_ids", "position_ids"};

/* ---------------------------------------------------------------------------------------------------- what there is */

bool encoded_is_input(const char *name)
{
    for (size_t k = 0; k < INPUTS; k++)
        if (strcmp(input_names[k], name) == 0) return true;
    return false;
}

/* Returns the value of one token in tensor `which` of `input_names`. */
static int64_t input_value(const input_batch *input, size_t which, size_t token)
{
    switch (which) {
    case 0: return input->ids[token];
    case 1: return !input->mask || input->mask[token];
    case 2: return input->token_types ? input->token_types[token] : 0;
    default: return input->position_ids ? input->position_ids[token] : 0;
    }
}

/* Returns true if an input tensor is stored: ids and mask always, token types unless all are 0, positions unless they
 * are the columns, since a reader assumes these. */
static bool is_input_shown(const input_batch *input, size_t which)
{
    if (which != 2) return which < 2 || input->position_ids;
    for (size_t t = 0; t < input->tokens; t++)
        if (input_value(input, which, t) != 0) return true;
    return false;
}

static void encoded_input_add(encoded_input *e, encoded_meaning meaning, export_tensor tensor)
{
    e->meanings[e->count] = meaning;
    e->tensors[e->count++] = tensor;
}

static void add_logits(encoded_input *e, deberta_task task)
{
    const size_t B = e->input.rows, N = e->input.columns, width = deberta_task_width(e->model, task);
    const char *name = options_text(e->options, "logits.%s", deberta_task_name(task));
    export_tensor tensor = {name, DTYPE_F32, 3, {B, N, width}};
    if (task == DEBERTA_TASK_SEQUENCE) tensor = (export_tensor){name, DTYPE_F32, 2, {B, width}};
    if (task == DEBERTA_TASK_RTD) tensor.rank = 2;
    encoded_input_add(e, (encoded_meaning){ENCODED_LOGITS, 0, task}, tensor);
}

static void list(encoded_input *e)
{
    const size_t B = e->input.rows, N = e->input.columns, L = e->info.layers;
    const size_t most = (L + 1) * (DEBERTA_COMPONENT_COUNT + 1) + DEBERTA_TASK_COUNT + INPUTS;
    e->tensors = options_take(e->options, most, sizeof *e->tensors);
    e->meanings = options_take(e->options, most, sizeof *e->meanings);
    e->count = 0;
    for (size_t which = 0; which < INPUTS; which++)
        if (is_input_shown(&e->input, which))
            encoded_input_add(e, (encoded_meaning){ENCODED_INPUT, 0, which},
                              (export_tensor){input_names[which], DTYPE_I64, 2, {B, N}});
    for (size_t l = e->capture.hidden ? 0 : L; l <= L; l++)
        encoded_input_add(
            e, (encoded_meaning){ENCODED_HIDDEN, l, 0},
            (export_tensor){
                options_text(e->options, "hidden_states.%zu", l), DTYPE_F32, 3, {B, N, e->info.hidden_size}});
    for (size_t l = 0; l < L; l++)
        for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (e->capture.attention[l * DEBERTA_COMPONENT_COUNT + c])
                encoded_input_add(e, (encoded_meaning){ENCODED_ATTENTION, l, c},
                                  (export_tensor){options_text(e->options, "attn.%zu.%s", l, deberta_component_name(c)),
                                                  DTYPE_F32,
                                                  4,
                                                  {B, e->info.heads, N, N}});
    for (deberta_task task = 0; task < DEBERTA_TASK_COUNT; task++)
        if (e->tasks[task]) add_logits(e, task);
}

/* --------------------------------------------------------------------------------------------------------- encoding */

void encoded_prepare(encoded_input *e)
{
    capture_create(&e->capture, &e->info, e->input.sequence_starts, e->input.sequences);
    for (size_t head = 0; head < e->info.heads; head++) e->capture.heads[head] = true;
}

/* Returns the bytes kept besides the session: captures, and one head's block of logits at a time; SIZE_MAX on
 * overflow. */
static size_t kept_bytes(const encoded_input *e)
{
    size_t largest = 0, sum;
    for (deberta_task task = 0; task < DEBERTA_TASK_COUNT; task++) {
        const size_t bytes =
            e->tasks[task] ? encode_logits_bytes(e->model, task, e->input.tokens, ENCODE_LOGITS_BLOCK_BYTES) : 0;
        if (bytes > largest) largest = bytes;
    }
    return size_add(capture_bytes(&e->capture), largest, &sum) ? sum : SIZE_MAX;
}

deberta_status encoded_run(encoded_input *e, deberta_session_options *options, deberta_error *err)
{
    const bool observed = e->capture.matrix_count > 0;
    options->max_tokens = e->input.tokens ? e->input.tokens : 1;
    options->features = (e->capture.hidden ? DEBERTA_OBSERVE_HIDDEN : 0u) |
                        (observed ? DEBERTA_OBSERVE_ATTENTION : 0u) |
                        (e->tasks[DEBERTA_TASK_MLM_EMD] ? DEBERTA_KEEP_DECODER_INPUT : 0u);
    DEBERTA_TRY(deberta_session_check_within(e->model, options, kept_bytes(e), err));
    DEBERTA_TRY(capture_allocate(&e->capture, err));
    DEBERTA_TRY(deberta_session_create(&e->session, e->model, options, err));
    list(e);
    if (!e->input.sequences) return DEBERTA_OK; /* the input is all padding, so every tensor is zero */
    const deberta_observer observer = capture_observer(&e->capture);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_batch batch = input_as_batch(&e->input);
    if (observed || e->capture.hidden) batch.observer = &observer;
    DEBERTA_TRY(deberta_encode(e->session, &batch, &outputs, err));
    e->last_hidden = outputs.hidden;
    e->last_stride = outputs.hidden_stride;
    return DEBERTA_OK;
}

void encoded_release(encoded_input *e)
{
    capture_free(&e->capture);
    deberta_session_free(&e->session);
}

void encoded_free(encoded_input *e)
{
    encoded_release(e);
    input_free(&e->input);
    deberta_model_free(&e->model);
}

/* ---------------------------------------------------------------------------------------------------------- walking */

typedef struct walk {
    encoded_visit visit;
    void *context;
    size_t width; /* length of a row of logits */
} walk;

static bool is_hole(const input_batch *input, size_t token) { return input->mask && !input->mask[token]; }

static deberta_status walk_ids(const encoded_input *e, size_t which, const walk *w, deberta_error *err)
{
    for (size_t r = 0; r < e->input.rows; r++) {
        const input_row row = e->input.row[r];
        int64_t values[VALUES_AT_ONCE];
        for (size_t t = 0, count; t < row.tokens; t += count) {
            const size_t token = e->input.sequence_starts[row.sequence] + t;
            for (count = 0; count < VALUES_AT_ONCE && t + count < row.tokens; count++)
                values[count] = input_value(&e->input, which, token + count);
            const encoded_piece piece = {r * e->input.columns + row.first_column + t, values, count, token, 0};
            DEBERTA_TRY(w->visit(w->context, &piece, err));
        }
    }
    return DEBERTA_OK;
}

static deberta_status walk_hidden(const encoded_input *e, size_t layer, const walk *w, deberta_error *err)
{
    const size_t h = e->info.hidden_size;
    const bool last = layer == e->info.layers;
    const float *rows = last ? e->last_hidden : e->capture.hidden_states[layer];
    const size_t stride = last ? e->last_stride : h;
    for (size_t r = 0; r < e->input.rows; r++) {
        const input_row row = e->input.row[r];
        for (size_t t = 0; t < row.tokens; t++) {
            const size_t token = e->input.sequence_starts[row.sequence] + t;
            const encoded_piece piece = {(r * e->input.columns + row.first_column + t) * h, rows + token * stride, h,
                                         token, 0};
            if (!is_hole(&e->input, token)) DEBERTA_TRY(w->visit(w->context, &piece, err));
        }
    }
    return DEBERTA_OK;
}

/* Visits the keys of one query between holes. place: index of its first key in the tensor. */
static deberta_status walk_keys(const encoded_input *e, const input_row *row, const float *matrix, size_t query,
                                size_t place, const walk *w, deberta_error *err)
{
    const size_t n = row->tokens, start = e->input.sequence_starts[row->sequence];
    for (size_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && !is_hole(&e->input, start + to);) to++;
        const encoded_piece piece = {place + from, matrix + query * n + from, to - from, start + query, from};
        if (piece.count) DEBERTA_TRY(w->visit(w->context, &piece, err));
    }
    return DEBERTA_OK;
}

static deberta_status walk_attention(const encoded_input *e, const encoded_meaning *what, const walk *w,
                                     deberta_error *err)
{
    const size_t N = e->input.columns;
    for (size_t r = 0; r < e->input.rows; r++) {
        const input_row row = e->input.row[r];
        for (size_t head = 0; row.tokens && head < e->info.heads; head++) {
            const float *matrix =
                capture_matrix(&e->capture, what->layer, head, (deberta_component)what->which, row.sequence);
            for (size_t i = 0; i < row.tokens; i++) {
                const size_t query = (r * e->info.heads + head) * N + row.first_column + i;
                if (!is_hole(&e->input, e->input.sequence_starts[row.sequence] + i))
                    DEBERTA_TRY(walk_keys(e, &row, matrix, i, query * N + row.first_column, w, err));
            }
        }
    }
    return DEBERTA_OK;
}

static deberta_status visit_logits(void *context, size_t row, size_t position, const float *logits, deberta_error *err)
{
    const walk *w = context;
    const encoded_piece piece = {row * w->width, logits, w->width, position, 0};
    return w->visit(w->context, &piece, err);
}

deberta_status encoded_walk(encoded_input *e, size_t tensor, encoded_visit visit, void *context, deberta_error *err)
{
    const encoded_meaning *what = &e->meanings[tensor];
    walk w = {.visit = visit, .context = context};
    switch (what->kind) {
    case ENCODED_INPUT: return walk_ids(e, what->which, &w, err);
    case ENCODED_HIDDEN: return walk_hidden(e, what->layer, &w, err);
    case ENCODED_ATTENTION: return walk_attention(e, what, &w, err);
    case ENCODED_LOGITS: break;
    }
    const deberta_task task = (deberta_task)what->which;
    w.width = deberta_task_width(e->model, task);
    return encode_logits(e->session, e->model, task, &e->input, ENCODE_LOGITS_BLOCK_BYTES, visit_logits, &w, err);
}
