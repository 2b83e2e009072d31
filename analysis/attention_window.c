/* Runs a session whose layers attend under a hard window, row by row. SPDX-License-Identifier: MIT */
#include "analysis/attention_window.h"

#include <math.h>
#include <string.h>

#include "core/base/status.h"
#include "core/encode/session.h"

typedef struct window_loop {
    deberta_session *session;
    size_t layer, sequence;
} window_loop;

/* One query of one head. Tables are laid out as in model_layer. */
typedef struct window_query {
    const deberta_session *session;
    size_t head, first, n, place; /* place in the sequence */
    const float *q, *position_keys, *position_queries;
} window_query;

/* Computes a dot product by 16 partial sums, as everywhere, so that compilers can vectorize it. */
static float attention_window_dot(const float *a, const float *b, size_t d)
{
    float sums[16] = {0}, sum = 0;
    size_t k = 0;
    for (; k + 16 <= d; k += 16)
        for (size_t l = 0; l < 16; l++) sums[l] += a[k + l] * b[k + l];
    for (; k < d; k++) sums[k % 16] += a[k] * b[k];
    for (size_t l = 0; l < 16; l++) sum += sums[l];
    return sum;
}

/* Returns the product of the query and a row of c2p's table, which lies in panels of 16 reversed rows. */
static float dot_position_key(const window_query *w, size_t row)
{
    const size_t d = w->session->model->head_size, reversed = (size_t)w->session->positions.last_row - row;
    const float *panel = w->position_keys + reversed / PANEL * d * PANEL + reversed % PANEL;
    float sum = 0;
    for (size_t k = 0; k < d; k++) sum += w->q[k] * panel[k * PANEL];
    return sum;
}

static const float *key_of(const window_query *w, size_t j)
{
    const deberta_session *s = w->session;
    return head_key(s, w->head, w->first + j);
}

static bool is_admitted(const window_query *w, size_t j)
{
    const deberta_session *s = w->session;
    const key_window *window = s->internal.interventions.attend_context;
    const ptrdiff_t r = (ptrdiff_t)w->place - (ptrdiff_t)j;
    return r <= window->left && -r <= window->right && s->mask[w->first + j] &&
           (!window->rows || window->rows[s->positions.row_of[r]]);
}

static float logit(const window_query *w, size_t j)
{
    const deberta_session *s = w->session;
    const size_t d = s->model->head_size;
    const float *key = key_of(w, j);
    float score = attention_window_dot(w->q, key, d), bias = 0;
    if (!w->position_keys && !w->position_queries) return score;
    const size_t row = (size_t)s->positions.row_of[(ptrdiff_t)w->place - (ptrdiff_t)j];
    if (w->position_keys) bias += dot_position_key(w, row);
    if (w->position_queries) bias += attention_window_dot(key, w->position_queries + row * s->model->padded_head, d);
    return score + bias;
}

/* Adds weight * value of key j to the context. */
static void add_value(const window_query *w, size_t j, float weight, float *context)
{
    const deberta_session *s = w->session;
    for (size_t panel = 0; panel < s->model->head_panels; panel++) {
        const float *value = head_value(s, w->head, w->first + j) + panel * s->tokens * PANEL;
        for (size_t l = 0; l < PANEL; l++) context[panel * PANEL + l] += weight * value[l];
    }
}

/* Computes the context in one pass, without memory that grows with n: where the maximum grows, the sums so far are
 * rescaled. A NaN stays one. */
static void attend(const window_query *w, float *context)
{
    const size_t columns = w->session->model->padded_head;
    float maximum = -INFINITY, total = 0;
    memset(context, 0, columns * sizeof *context);
    for (size_t j = 0; j < w->n; j++) {
        if (!is_admitted(w, j)) continue;
        const float score = logit(w, j);
        if (score > maximum) {
            const float rescale = expf(maximum - score);
            total *= rescale;
            for (size_t c = 0; c < columns; c++) context[c] *= rescale;
            maximum = score;
        }
        const float weight = expf(score - maximum);
        total += weight;
        add_value(w, j, weight, context);
    }
    for (size_t c = 0; c < columns && total != 0; c++) context[c] /= total;
}

static void query_task(void *context, size_t task, size_t worker)
{
    (void)worker;
    const window_loop *loop = context;
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    const model_layer *layer = &model->layers[loop->layer];
    const size_t first = s->starts[loop->sequence], n = s->starts[loop->sequence + 1] - first, head = task / n,
                 place = task % n;
    const size_t table_panels = ceiling_divide(model->relative_rows, PANEL);
    const window_query query = {
        .session = s,
        .head = head,
        .first = first,
        .n = n,
        .place = place,
        .q = head_query(s, head, first + place),
        .position_keys = s->has_c2p ? layer->position_keys + head * table_panels * model->head_size * PANEL : NULL,
        .position_queries =
            s->has_p2c ? layer->position_queries + head * model->relative_rows * model->padded_head : NULL,
    };
    attend(&query, s->context + (first + place) * s->context_stride + head * model->padded_head);
}

static void attend_in_window(deberta_session *s, size_t layer, const deberta_observer *observer)
{
    (void)observer;
    window_loop loop = {.session = s, .layer = layer};
    for (; loop.sequence < s->sequences; loop.sequence++) {
        const size_t n = session_sequence_length(s, loop.sequence);
        parallel_for(s->executor, s->model->config.heads * n, query_task, &loop);
    }
}

static deberta_status attention_window_check(const deberta_model *model, unsigned features, bool changes_terms,
                                             deberta_error *err)
{
    if (model->integer_attention)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: a window of keys needs attention in float32; found %s",
                     model->name, deberta_precision_name(model->precision));
    if (changes_terms) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "a window of keys does not cover ablations");
    if (model->config.talking_heads) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has talking heads, which a window of keys does not cover",
                     model->name);
    }
    if (features & (DEBERTA_OBSERVE_ATTENTION | DEBERTA_KEEP_DECODER_INPUT | DEBERTA_PATCH_TERMS)) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "a window of keys covers neither observed attention nor the Enhanced Mask Decoder nor patched "
                     "terms");
    }
    return DEBERTA_OK;
}

deberta_status windowed_session_create(deberta_session **session, const deberta_model *model,
                                       const deberta_session_options *options, const session_internal_options *internal,
                                       const key_window *window, deberta_error *err)
{
    session_internal_options windowed = internal ? *internal : (session_internal_options){0};
    const bool changes_terms = options->ablation_count > 0 || windowed.interventions.changes.row_bias;
    *session = NULL;
    DEBERTA_TRY(attention_window_check(model, options->features, changes_terms, err));
    windowed.interventions.attend = attend_in_window;
    windowed.interventions.attend_context = window;
    return session_create_within(session, model, options, &windowed, 0, err);
}
