/* Computes the forward pass in float64, formula by formula: embeddings, attention with c2p and p2c, feed-forward,
 * convolution.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/exact_activation.h"
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ embeddings */

static bool kept(const reference_input *input, size_t token) { return !input->mask || input->mask[token]; }

/* Computes the sum of the tables' rows for one token (SPEC 2, steps 1 to 3). row, part [E] */
static deberta_status add_tables(const reference_model *m, const reference_input *input, size_t t, double *row,
                                 double *part, deberta_error *err)
{
    const model_config *config = &m->config;
    size_t E = config->embedding_size;
    DEBERTA_TRY(reference_fetch_row(m, "embeddings.word_embeddings.weight", input->ids[t], config->vocabulary_size, E,
                                    row, err));
    if (config->position_biased_input) {
        int64_t position = input->position_ids ? input->position_ids[t] : (int64_t)t;
        DEBERTA_TRY(reference_fetch_row(m, "embeddings.position_embeddings.weight", position, config->max_positions, E,
                                        part, err));
        for (size_t c = 0; c < E; c++) row[c] += part[c];
    }
    if (config->token_types > 0) {
        int64_t type = input->token_types ? input->token_types[t] : 0;
        DEBERTA_TRY(
            reference_fetch_row(m, "embeddings.token_type_embeddings.weight", type, config->token_types, E, part, err));
        for (size_t c = 0; c < E; c++) row[c] += part[c];
    }
    return DEBERTA_OK;
}

deberta_status reference_embedded(const reference_model *m, const reference_input *input, double *out,
                                  deberta_error *err)
{
    size_t n = input->tokens, h = m->config.hidden_size, E = m->config.embedding_size;
    shelf scratch = {0};
    double *sum, *part, *projection;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * E, &sum, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, E, &part, err));
    for (size_t t = 0; t < n; t++) DEBERTA_TRY_OR_FAIL(status, add_tables(m, input, t, sum + t * E, part, err));
    if (E != h) {
        DEBERTA_TRY_OR_FAIL(status,
                            reference_fetch(m, &scratch, &projection, h, E, err, "embeddings.embed_proj.weight"));
        reference_linear(out, sum, n, E, projection, NULL, h);
    } else {
        memcpy(out, sum, n * h * sizeof *out);
    }
fail:
    shelf_clear(&scratch);
    return status;
}

/* Computes H[0] into out [n][h] (SPEC 2). */
static deberta_status embed(const reference_model *m, const reference_input *input, double *out, deberta_error *err)
{
    size_t n = input->tokens, h = m->config.hidden_size;
    shelf scratch = {0};
    double *gain, *shift;
    deberta_status status = DEBERTA_OK;
    if (input->embedded)
        memcpy(out, input->embedded, n * h * sizeof *out);
    else
        DEBERTA_TRY_OR_FAIL(status, reference_embedded(m, input, out, err));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &gain, h, 0, err, "embeddings.LayerNorm.weight"));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &shift, h, 0, err, "embeddings.LayerNorm.bias"));
    reference_layer_norm(out, out, n, h, gain, shift, m->eps);
    for (size_t t = 0; t < n; t++) {
        if (!kept(input, t)) memset(out + t * h, 0, h * sizeof *out);
    }
fail:
    shelf_clear(&scratch);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- attention */

/* Data that the rows of one attention need; H = A d throughout, head a at columns a d ... a d + d - 1. */
typedef struct attention {
    const reference_model *model;
    const reference_input *input;
    const layer_weights *weights;
    const reference_observer *observer;
    size_t layer, run;                          /* run: number in a record */
    double *q, *k, *v;                          /* [n][H] */
    double *pk, *pq;                            /* [2K][H], PK and PQ of SPEC; NULL without the term */
    double *component[DEBERTA_COMPONENT_COUNT]; /* [A][n], of the current query */
    double *mixed;                              /* [A][n] */
    double *mean_query, *mean_key;              /* [H], over the kept tokens of the encoder's own states */
    double *zeros;                              /* [d] */
} attention;

/* Computes the means that ablations may need. Queries come from the key states: the Enhanced Mask Decoder has others,
 * and keeps the encoder's means. */
static deberta_status take_means(attention *s, shelf *owner, const double *key_states, deberta_error *err)
{
    const model_config *config = &s->model->config;
    size_t n = s->input->tokens, H = config->heads * config->head_size, count = 0;
    double *q;
    DEBERTA_TRY(shelf_take(owner, n * H, &q, err));
    DEBERTA_TRY(shelf_take(owner, H, &s->mean_query, err));
    DEBERTA_TRY(shelf_take(owner, H, &s->mean_key, err));
    DEBERTA_TRY(shelf_take(owner, config->head_size, &s->zeros, err));
    memset(s->zeros, 0, config->head_size * sizeof *s->zeros);
    memset(s->mean_query, 0, H * sizeof *s->mean_query);
    memset(s->mean_key, 0, H * sizeof *s->mean_key);
    reference_linear(q, key_states, n, config->hidden_size, s->weights->query_weight, s->weights->query_bias, H);
    for (size_t t = 0; t < n; t++) count += kept(s->input, t);
    for (size_t t = 0; t < n; t++) {
        if (!kept(s->input, t)) continue;
        for (size_t c = 0; c < H; c++) s->mean_query[c] += q[t * H + c] / (double)count;
        for (size_t c = 0; c < H; c++) s->mean_key[c] += s->k[t * H + c] / (double)count;
    }
    return DEBERTA_OK;
}

/* Returns whether a patch of this place is for a term, or for a head's output, of the layer. */
static bool is_patched(const attention *s, deberta_patch_place place, deberta_component term, size_t head)
{
    for (size_t k = 0; k < s->input->patch_count; k++) {
        const deberta_patch *given = &s->input->patches[k];
        if (given->place == place && (place != DEBERTA_PATCH_TERM || given->term == term) &&
            (given->layer == DEBERTA_EVERY || given->layer == s->layer) &&
            (given->index == DEBERTA_EVERY || given->index == head))
            return true;
    }
    return false;
}

/* Queries, keys and their means, from which a term of a head is computed. */
typedef struct term_source {
    const double *q, *k, *mean_query, *mean_key;
} term_source;

static term_source source_of(const attention *s, deberta_component term, size_t head)
{
    const model_config *config = &s->model->config;
    const size_t H = config->heads * config->head_size, first = s->run * s->input->tokens * H;
    const reference_record *donor = s->input->donor;
    if (!is_patched(s, DEBERTA_PATCH_TERM, term, head)) return (term_source){s->q, s->k, s->mean_query, s->mean_key};
    return (term_source){donor->queries + first, donor->keys + first, donor->mean_query + s->run * H,
                         donor->mean_key + s->run * H};
}

/* Returns the vector from which a term of a head is computed: the token's own, zeros, or the mean. */
static const double *ablated(const attention *s, deberta_component term, size_t head, const double *own,
                             const double *mean)
{
    const double *vector = own;
    for (size_t k = 0; k < s->input->ablation_count; k++) {
        const deberta_ablation *given = &s->input->ablations[k];
        if (given->term != term || (given->layer != DEBERTA_EVERY && given->layer != s->layer) ||
            (given->head != DEBERTA_EVERY && given->head != head))
            continue;
        vector = given->kind == DEBERTA_ABLATE_MEAN ? mean + head * s->model->config.head_size : s->zeros;
    }
    return vector;
}

static void record_vectors(const attention *s)
{
    const model_config *config = &s->model->config;
    const size_t H = config->heads * config->head_size, rows = s->input->tokens * H;
    const reference_record *record = s->input->record;
    if (!record) return;
    memcpy(record->queries + s->run * rows, s->q, rows * sizeof *s->q);
    memcpy(record->keys + s->run * rows, s->k, rows * sizeof *s->k);
    if (!s->input->ablation_count) return;
    memcpy(record->mean_query + s->run * H, s->mean_query, H * sizeof *s->mean_query);
    memcpy(record->mean_key + s->run * H, s->mean_key, H * sizeof *s->mean_key);
}

/* Applies the patches of heads' outputs, context [n][H]. */
static void patch_heads(const attention *s, double *context)
{
    const size_t A = s->model->config.heads, d = s->model->config.head_size, H = A * d, n = s->input->tokens;
    for (size_t a = 0; a < A; a++) {
        if (!is_patched(s, DEBERTA_PATCH_HEAD, DEBERTA_C2C, a)) continue;
        const double *given = s->input->donor->contexts + s->run * n * H;
        for (size_t i = 0; i < n; i++) memcpy(context + i * H + a * d, given + i * H + a * d, d * sizeof *context);
    }
    if (s->input->record) memcpy(s->input->record->contexts + s->run * n * H, context, n * H * sizeof *context);
}

static deberta_status attention_prepare(attention *s, shelf *owner, const double *query_states,
                                        const double *key_states, deberta_error *err)
{
    const model_config *config = &s->model->config;
    const layer_weights *w = s->weights;
    size_t n = s->input->tokens, h = config->hidden_size, H = config->heads * config->head_size;
    size_t rows = 2 * config->relative_span;
    DEBERTA_TRY(shelf_take(owner, n * H, &s->q, err));
    DEBERTA_TRY(shelf_take(owner, n * H, &s->k, err));
    DEBERTA_TRY(shelf_take(owner, n * H, &s->v, err));
    reference_linear(s->q, query_states, n, h, w->query_weight, w->query_bias, H);
    reference_linear(s->k, key_states, n, h, w->key_weight, w->key_bias, H);
    reference_linear(s->v, key_states, n, h, w->value_weight, w->value_bias, H);
    if (s->model->c2p) {
        DEBERTA_TRY(shelf_take(owner, rows * H, &s->pk, err));
        reference_linear(s->pk, s->model->relative, rows, h, w->position_key_weight, w->position_key_bias, H);
    }
    if (s->model->p2c) {
        DEBERTA_TRY(shelf_take(owner, rows * H, &s->pq, err));
        reference_linear(s->pq, s->model->relative, rows, h, w->position_query_weight, w->position_query_bias, H);
    }
    if (s->input->ablation_count) DEBERTA_TRY(take_means(s, owner, key_states, err));
    record_vectors(s);
    for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        bool absent = (c == DEBERTA_C2P && !s->pk) || (c == DEBERTA_P2C && !s->pq);
        if (!absent) DEBERTA_TRY(shelf_take(owner, config->heads * n, &s->component[c], err));
    }
    return shelf_take(owner, config->heads * n, &s->mixed, err);
}

/* Computes S_ij of SPEC 0 and its three terms, for query i: all keys, all heads. */
static void score_query(attention *s, size_t i)
{
    const model_config *config = &s->model->config;
    size_t n = s->input->tokens, A = config->heads, d = config->head_size, H = A * d;
    double scale = sqrt((double)(d * (1 + config->position_terms)));
    for (size_t j = 0; j < n; j++) {
        size_t row = s->pk || s->pq ? reference_table_row(config, s->model->distances, (long)i - (long)j) : 0;
        for (size_t a = 0; a < A; a++) {
            const size_t query = i * H + a * d, key = j * H + a * d;
            const term_source of_c2c = source_of(s, DEBERTA_C2C, a), of_c2p = source_of(s, DEBERTA_C2P, a),
                              of_p2c = source_of(s, DEBERTA_P2C, a);
            const double *content = ablated(s, DEBERTA_C2C, a, of_c2c.q + query, of_c2c.mean_query);
            const double *asking = ablated(s, DEBERTA_C2P, a, of_c2p.q + query, of_c2p.mean_query);
            const double *asked = ablated(s, DEBERTA_P2C, a, of_p2c.k + key, of_p2c.mean_key);
            double c2c = reference_dot(content, of_c2c.k + key, d) / scale;
            double c2p = s->pk ? reference_dot(asking, s->pk + row * H + a * d, d) / scale : 0.0;
            double p2c = s->pq ? reference_dot(asked, s->pq + row * H + a * d, d) / scale : 0.0;
            s->component[DEBERTA_C2C][a * n + j] = c2c;
            if (s->pk) s->component[DEBERTA_C2P][a * n + j] = c2p;
            if (s->pq) s->component[DEBERTA_P2C][a * n + j] = p2c;
            s->component[DEBERTA_LOGITS][a * n + j] = c2c + c2p + p2c;
        }
    }
}

/* Computes out[a] = sum_b w[a][b] in[b] (SPEC 3.6), or a copy without talking heads. in, out [A][n] */
static void mix_heads(double *out, const double *in, const double *w, size_t A, size_t n)
{
    for (size_t a = 0; a < A; a++) {
        for (size_t j = 0; j < n; j++) {
            out[a * n + j] = w ? 0 : in[a * n + j];
            for (size_t b = 0; w && b < A; b++) out[a * n + j] += w[a * A + b] * in[b * n + j];
        }
    }
}

/* Computes the softmax of one row over the keys that mask_i mask_j keeps (SPEC 5). */
static void mask_and_normalise(const reference_input *input, size_t i, double *row)
{
    size_t n = input->tokens;
    if (kept(input, i) || input->padding == REFERENCE_PADDING_KEPT) {
        reference_softmax(row, input->mask, n);
    } else {
        for (size_t j = 0; j < n; j++) row[j] = input->padding == REFERENCE_PADDING_UNIFORM ? 1.0 / (double)n : 0.0;
    }
}

/* Computes context [n][H] = the heads' P v, side by side. */
static void attend(attention *s, double *context)
{
    size_t n = s->input->tokens, A = s->model->config.heads, d = s->model->config.head_size, H = A * d;
    double *probabilities = s->component[DEBERTA_PROBABILITIES];
    memset(context, 0, n * H * sizeof *context);
    for (size_t i = 0; i < n; i++) {
        score_query(s, i);
        mix_heads(s->mixed, s->component[DEBERTA_LOGITS], s->weights->head_logits, A, n);
        for (size_t a = 0; a < A; a++) mask_and_normalise(s->input, i, s->mixed + a * n);
        mix_heads(probabilities, s->mixed, s->weights->head_weights, A, n);
        for (size_t a = 0; a < A; a++) {
            for (size_t j = 0; j < n; j++) {
                for (size_t c = 0; c < d; c++)
                    context[i * H + a * d + c] += probabilities[a * n + j] * s->v[j * H + a * d + c];
            }
        }
        if (s->observer) {
            reference_attention_row row = {.layer = s->layer, .query = i};
            memcpy(row.value, s->component, sizeof row.value);
            s->observer->on_row(s->observer->context, &row);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- layer */

/* Computes out = LN(W x + b + residual), the last step of attention and of feed-forward (SPEC 6.1, 6.2). out, residual
 * [n][h]; out is neither input */
static void project_add_norm(const reference_model *m, size_t n, double *out, const double *x, size_t in,
                             const double *w, const double *b, const double *residual, const double *gain,
                             const double *shift)
{
    size_t h = m->config.hidden_size;
    reference_linear(out, x, n, in, w, b, h);
    for (size_t e = 0; e < n * h; e++) out[e] += residual[e];
    reference_layer_norm(out, out, n, h, gain, shift, m->eps);
}

/* Applies one transformer layer, SPEC 3 to 6.2. query_states and key_states are the same but in the Enhanced Mask
 * Decoder. All [n][h]. */
static deberta_status apply_layer(const reference_model *m, const reference_input *input, size_t layer, size_t run,
                                  const double *query_states, const double *key_states, double *out,
                                  const reference_observer *observer, deberta_error *err)
{
    const model_config *config = &m->config;
    size_t n = input->tokens, h = config->hidden_size, H = config->heads * config->head_size;
    size_t f = config->intermediate_size;
    layer_weights w;
    shelf scratch = {0};
    double *context, *attended, *wide;
    deberta_status status;
    attention s = {.model = m, .input = input, .weights = &w, .observer = observer, .layer = layer, .run = run};
    DEBERTA_TRY_OR_FAIL(status, layer_weights_read(m, layer, &w, err));
    DEBERTA_TRY_OR_FAIL(status, attention_prepare(&s, &scratch, query_states, key_states, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * H, &context, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * h, &attended, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * f, &wide, err));
    attend(&s, context);
    patch_heads(&s, context);
    project_add_norm(m, n, attended, context, H, w.attention_weight, w.attention_bias, query_states, w.attention_gain,
                     w.attention_shift);
    reference_linear(wide, attended, n, h, w.intermediate_weight, w.intermediate_bias, f);
    for (size_t e = 0; e < n * f; e++) wide[e] = exact_activation(wide[e], config->hidden_activation);
    project_add_norm(m, n, out, wide, f, w.output_weight, w.output_bias, attended, w.output_gain, w.output_shift);
fail:
    shelf_clear(&w.shelf);
    shelf_clear(&scratch);
    return status;
}

/* Computes C[t][o] of SPEC 6.3: a correlation over the embeddings e [n][h], zeros outside. weight [h][h/G][width] */
static double correlate(const model_config *config, const double *weight, const double *e, size_t n, size_t t, size_t o)
{
    size_t h = config->hidden_size, width = config->convolution_width, group_size = h / config->convolution_groups;
    size_t first_channel = o / group_size * group_size;
    double sum = 0;
    for (size_t u = 0; u < width; u++) {
        long source = (long)t + (long)u - (long)(width - 1) / 2;
        if (source < 0 || source >= (long)n) continue;
        for (size_t c = 0; c < group_size; c++)
            sum += weight[(o * group_size + c) * width + u] * e[(size_t)source * h + first_channel + c];
    }
    return sum;
}

/* Turns y [n][h], the output of layer 0, into H[1] (SPEC 6.3). The mask applies before the activation and again at the
 * end. */
static deberta_status convolve(const reference_model *m, const reference_input *input, const double *e, double *y,
                               deberta_error *err)
{
    const model_config *config = &m->config;
    size_t n = input->tokens, h = config->hidden_size;
    size_t columns = h / config->convolution_groups * config->convolution_width;
    shelf scratch = {0};
    double *weight, *bias, *gain, *shift;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &weight, h, columns, err, "encoder.conv.conv.weight"));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &bias, h, 0, err, "encoder.conv.conv.bias"));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &gain, h, 0, err, "encoder.conv.LayerNorm.weight"));
    DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &scratch, &shift, h, 0, err, "encoder.conv.LayerNorm.bias"));
    for (size_t t = 0; t < n; t++) {
        for (size_t o = 0; o < h; o++) {
            double c = kept(input, t) ? bias[o] + correlate(config, weight, e, n, t, o) : 0.0;
            y[t * h + o] += exact_activation(c, config->convolution_activation);
        }
    }
    reference_layer_norm(y, y, n, h, gain, shift, m->eps);
    for (size_t t = 0; t < n; t++) {
        if (!kept(input, t)) memset(y + t * h, 0, h * sizeof *y);
    }
fail:
    shelf_clear(&scratch);
    return status;
}

deberta_status reference_record_make(reference_record *record, const reference_model *m, size_t tokens,
                                     deberta_error *err)
{
    const model_config *config = &m->config;
    const size_t H = config->heads * config->head_size, runs = config->layers + 2, rows = runs * tokens * H,
                 states = (config->layers + 1) * tokens * config->hidden_size;
    double *all = calloc(states + 3 * rows + 2 * runs * H, sizeof *all);
    *record = (reference_record){0};
    if (!all) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the record of %zu tokens", tokens);
    *record = (reference_record){.hidden = all,
                                 .queries = all + states,
                                 .keys = all + states + rows,
                                 .contexts = all + states + 2 * rows,
                                 .mean_query = all + states + 3 * rows,
                                 .mean_key = all + states + 3 * rows + runs * H};
    return DEBERTA_OK;
}

/* Applies edits and patches to H[layer] [n][h], which all later steps then read, and records it. */
static void edit_states(const reference_model *m, const reference_input *input, size_t layer, double *hidden)
{
    const size_t n = input->tokens, h = m->config.hidden_size;
    if (input->edit_hidden) input->edit_hidden(input->edit_context, layer, hidden);
    for (size_t k = 0; k < input->patch_count; k++) {
        const deberta_patch *patch = &input->patches[k];
        if (patch->place != DEBERTA_PATCH_STATE || (patch->layer != DEBERTA_EVERY && patch->layer != layer)) continue;
        for (size_t t = 0; t < n; t++)
            if (patch->index == DEBERTA_EVERY || patch->index == t)
                memcpy(hidden + t * h, input->donor->hidden + (layer * n + t) * h, h * sizeof *hidden);
    }
    if (input->record) memcpy(input->record->hidden + layer * n * h, hidden, n * h * sizeof *hidden);
}

deberta_status reference_encode(const reference_model *m, const reference_input *input, double *hidden,
                                const reference_observer *observer, deberta_error *err)
{
    size_t step = input->tokens * m->config.hidden_size;
    if (input->first_hidden) {
        memcpy(hidden, input->first_hidden, step * sizeof *hidden);
    } else {
        DEBERTA_TRY(embed(m, input, hidden, err));
    }
    edit_states(m, input, 0, hidden);
    for (size_t l = 0; l < m->config.layers; l++) {
        double *in = hidden + l * step, *out = in + step;
        DEBERTA_TRY(apply_layer(m, input, l, l, in, in, out, observer, err));
        if (l == 0 && m->config.convolution_width > 0) DEBERTA_TRY(convolve(m, input, hidden, out, err));
        edit_states(m, input, l + 1, out);
    }
    return DEBERTA_OK;
}

/* Runs the decoder (SPEC 8.3): keys and values come from H[L-1]; queries start from it plus absolute positions and pass
 * the last layer twice. */
deberta_status reference_decode(const reference_model *m, const reference_input *input, const double *hidden,
                                double *passes, deberta_error *err)
{
    size_t n = input->tokens, h = m->config.hidden_size, last = m->config.layers - 1;
    const double *states = hidden + last * n * h, *final = states + n * h;
    shelf scratch = {0};
    double *queries, *position_row;
    deberta_status status;
    if (m->config.position_biased_input) {
        memcpy(passes, final, n * h * sizeof *passes);
        memcpy(passes + n * h, final, n * h * sizeof *passes);
        return DEBERTA_OK;
    }
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, n * h, &queries, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, h, &position_row, err));
    for (size_t t = 0; t < n; t++) {
        int64_t position = input->position_ids ? input->position_ids[t] : (int64_t)t;
        DEBERTA_TRY_OR_FAIL(status, reference_fetch_row(m, "embeddings.position_embeddings.weight", position,
                                                        m->config.max_positions, h, position_row, err));
        for (size_t c = 0; c < h; c++) queries[t * h + c] = states[t * h + c] + position_row[c];
    }
    DEBERTA_TRY_OR_FAIL(status, apply_layer(m, input, last, last + 1, queries, states, passes, NULL, err));
    DEBERTA_TRY_OR_FAIL(status, apply_layer(m, input, last, last + 2, passes, states, passes + n * h, NULL, err));
fail:
    shelf_clear(&scratch);
    return status;
}
