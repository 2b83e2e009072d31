/* Locates the operands of one head: queries, keys, values, and PK and PQ of the relative table (c2p, p2c). Applies
 * ablations and patches to them, and packs the keys and values.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/attention_head.h"

#include "core/encode/encoder_parts.h"

/* --------------------------------------------------------------------------------------------------------- operands */

static void take_floats(const deberta_session *s, size_t layer, size_t place, attention_head *head)
{
    const deberta_model *model = s->model;
    size_t d = model->head_size, rows = model->relative_rows;
    float *keys = s->internal.recompute_positions ? s->fold_keys : model->layers[layer].position_keys;
    float *queries = s->internal.recompute_positions ? s->fold_queries : model->layers[layer].position_queries;
    const position_change *change = session_position_change(s);
    if (change && change->keys) keys = change->keys + head->sequence * change->keys_stride;
    if (change && change->queries) queries = change->queries + head->sequence * change->queries_stride;
    head->keys = (panel_operand){.floats = s->packed_keys + place * d * PANEL, .stride = d * PANEL};
    head->values.floats = head_value(s, head->head, head->first_token);
    head->values.stride = s->tokens * PANEL;
    if (s->has_c2p) {
        float *own = keys + head->head * ceiling_divide(rows, PANEL) * d * PANEL;
        head->position_keys = (panel_operand){.floats = own, .stride = d * PANEL};
    }
    if (s->has_p2c) {
        float *own = queries + head->head * rows * model->padded_head;
        head->position_queries = (row_operand){.floats = own, .ld = model->padded_head};
    }
}

/* Takes a head's integer operands; panels follow each other in memory. */
static void take_integers(const deberta_session *s, size_t layer, size_t place, attention_head *head)
{
    const deberta_model *model = s->model;
    const model_layer *from = &model->layers[layer];
    size_t d = model->head_size, rows = model->relative_rows, stride = d * PANEL;
    size_t value_tile = place / (DIGIT_TILE_INPUTS / PANEL);
    head->keys = (panel_operand){.stride = stride, .integers = integer_panels_from(&s->key_integers, place, d)};
    head->values.stride = stride;
    head->values.integers = integer_panels_from(&s->value_integers, value_tile * model->head_panels, DIGIT_TILE_INPUTS);
    if (s->has_c2p) {
        size_t panel = head->head * ceiling_divide(rows, PANEL);
        head->position_keys.stride = stride;
        head->position_keys.integers = integer_panels_from(&from->position_key_integers, panel, d);
    }
    if (s->has_p2c) {
        size_t row = head->head * model_position_tile_rows(model);
        head->position_queries.integers = integer_rows_from(&from->position_query_integers, row, d);
    }
}

/* Replaces queries or keys of the head's terms as its ablations say (session.h). */
static void apply_ablation(const deberta_session *s, size_t layer, size_t place, attention_head *head)
{
    const ablation_plan *plan = &s->ablation;
    const size_t padded = s->model->padded_head;
    if (!plan->modes) return;
    const uint8_t *modes = ablation_modes(plan, &s->model->config, layer, head->head);
    const float *mean =
        plan->mean_queries ? plan->mean_queries + (head->head * s->max_tokens + head->sequence) * padded : NULL;
    if (modes[DEBERTA_C2C]) head->c2c_query = modes[DEBERTA_C2C] == ABLATION_MEAN ? mean : plan->zeros;
    if (modes[DEBERTA_C2P]) head->c2p_query = modes[DEBERTA_C2P] == ABLATION_MEAN ? mean : plan->zeros;
    if (!modes[DEBERTA_P2C]) return;
    if (modes[DEBERTA_P2C] == ABLATION_MEAN) head->mean_key = plan->mean_keys + place * s->model->head_size * PANEL;
    head->p2c_keys = (panel_operand){0}; /* One panel serves all keys. */
    if (!s->model->integer_attention)
        head->p2c_keys.floats = head->mean_key ? head->mean_key : plan->zeros;
    else
        head->p2c_keys.integers =
            head->mean_key ? integer_panels_from(&plan->mean_key_integers, place, s->model->head_size) : plan->zero_key;
}

attention_head attention_head_of(const deberta_session *s, size_t layer, size_t sequence, size_t head)
{
    const deberta_model *model = s->model;
    size_t n = session_sequence_length(s, sequence), first = s->starts[sequence];
    size_t place = s->panel_starts[sequence] * model->config.heads + head * session_key_panels(s, n);
    attention_head found = {
        .sequence = sequence,
        .head = head,
        .first_token = first,
        .n = n,
        .far_p2c = s->has_p2c ? s->far_p2c + place * FAR_SIDES * PANEL : NULL,
        .key_bias = s->has_holes ? s->key_bias + first : NULL,
        .key_present = s->has_holes ? s->key_present + first : NULL,
    };
    if (model->integer_attention)
        take_integers(s, layer, place, &found);
    else
        take_floats(s, layer, place, &found);
    found.p2c_keys = found.keys;
    const float *row_bias = s->internal.interventions.changes.row_bias;
    if (row_bias) found.row_bias = row_bias + (layer * model->config.heads + head) * model->relative_rows;
    apply_ablation(s, layer, place, &found);
    for (deberta_component term = DEBERTA_C2C; term < (deberta_component)ABLATION_TERMS; term++) {
        found.donor[term] = patches_donor(s, term, layer, head, sequence);
        found.patched |= found.donor[term] != sequence;
    }
    return found;
}

/* ---------------------------------------------------------------------------------------------------------- packing */

panel_operand attention_head_values(const deberta_session *s, const attention_head *head, size_t key)
{
    panel_operand found = head->values;
    if (found.floats) {
        found.floats += key * PANEL;
    } else {
        size_t panel = key / DIGIT_TILE_INPUTS * s->model->head_panels;
        found.integers = integer_panels_from(&head->values.integers, panel, DIGIT_TILE_INPUTS);
    }
    return found;
}

/* Quantizes keys and values: keys a panel at a time, while it is in L1; values without those of holes, which must not
 * affect the scales. Talking heads mix float probabilities with float values. */
static void pack_integers(const deberta_session *s, const attention_head *head, const float *rows, float *panel)
{
    const deberta_model *model = s->model;
    size_t d = model->head_size;
    for (size_t key = 0; key < head->n; key += PANEL) {
        integer_panels to = integer_panels_from(&head->keys.integers, key / PANEL, d);
        s->kernels.pack_panels_f32(panel, d * PANEL, rows + key * model->padded_head, model->padded_head,
                                   minimum(PANEL, head->n - key), d);
        integer_panels_fill(&to, &s->kernels, panel, d * PANEL, NULL, 1, d);
    }
    const float *values = head_value(s, head->head, head->first_token);
    for (size_t key = 0; key < head->n && !model->config.talking_heads; key += KEY_CHUNK) {
        panel_operand to = attention_head_values(s, head, key);
        integer_panels_fill(&to.integers, &s->kernels, values + key * PANEL, s->tokens * PANEL,
                            head->key_present ? head->key_present + key : NULL, model->head_panels,
                            minimum(KEY_CHUNK, head->n - key));
    }
}

/* Writes the mean of the head's keys into its panel, if an ablation makes p2c from it. */
static void pack_mean_key(deberta_session *s, const attention_head *head)
{
    const size_t d = s->model->head_size;
    if (!head->mean_key) return;
    const float *rows = head_key(s, head->head, head->first_token);
    for (size_t e = 0; e < d; e++) {
        const float mean = (float)ablation_mean(s, head->first_token, head->n, rows, e);
        for (size_t l = 0; l < PANEL; l++) head->mean_key[e * PANEL + l] = mean;
    }
    if (s->model->integer_attention)
        integer_panels_fill(&head->p2c_keys.integers, &s->kernels, head->mean_key, 0, NULL, 1, d);
}

void attention_head_pack(deberta_session *s, const attention_head *head, const worker_scratch *scratch)
{
    const deberta_model *model = s->model;
    size_t d = model->head_size, panels = ceiling_divide(head->n, PANEL);
    const float *rows = head_key(s, head->head, head->first_token);
    if (model->integer_attention)
        pack_integers(s, head, rows, scratch->packing);
    else
        s->kernels.pack_panels_f32(head->keys.floats, d * PANEL, rows, model->padded_head, head->n, d);
    pack_mean_key(s, head);
    if (!head->far_p2c || !position_map_has_far(&s->positions, head->n)) return;
    /* These are the rows of the two ends of the table; saturated tiles read their p2c from the results. */
    size_t ends[FAR_SIDES] = {(size_t)s->positions.row_of[s->positions.reach],
                              (size_t)s->positions.row_of[-s->positions.reach]};
    for (size_t side = 0; side < FAR_SIDES; side++) {
        gemm_task task = {
            .rows = 1,
            .panels = panels,
            .c = head->far_p2c + side * panels * PANEL,
            .ldc = panels * PANEL,
            .c_panel_stride = PANEL,
        };
        operands_multiply(&s->kernels, d, &head->position_queries, ends[side], &head->p2c_keys, 0, &task);
    }
}

/* --------------------------------------------------------------------------------------------------------- patching */

/* Returns the head of the sequence that gives a term, with its keys packed into `keys`. */
static attention_head donor_head(deberta_session *s, size_t layer, const attention_head *head, deberta_component term,
                                 float *keys, const worker_scratch *scratch)
{
    attention_head donor = attention_head_of(s, layer, head->donor[term], head->head);
    const bool shares_keys = donor.p2c_keys.floats == donor.keys.floats;
    donor.keys.floats = keys;
    donor.far_p2c = term == DEBERTA_P2C ? scratch->patch_far : NULL;
    if (donor.mean_key) donor.mean_key = term == DEBERTA_P2C ? scratch->patch_mean : NULL;
    if (shares_keys)
        donor.p2c_keys.floats = keys;
    else if (donor.mean_key)
        donor.p2c_keys.floats = donor.mean_key;
    attention_head_pack(s, &donor, scratch);
    return donor;
}

/* Returns the first row of a sequence's queries. */
static size_t first_row(const deberta_session *s, size_t sequence, const size_t *positions, size_t count)
{
    return positions ? session_positions_before(positions, count, s->starts[sequence]) : s->starts[sequence];
}

void attention_head_patch(deberta_session *s, size_t layer, attention_head *head, const size_t *positions, size_t count,
                          const worker_scratch *scratch)
{
    if (!head->patched) return;
    const size_t own = first_row(s, head->sequence, positions, count);
    for (deberta_component term = DEBERTA_C2C; term <= DEBERTA_C2P; term++)
        head->rows_behind[term] = (ptrdiff_t)first_row(s, head->donor[term], positions, count) - (ptrdiff_t)own;
    if (head->donor[DEBERTA_C2P] != head->sequence)
        head->c2p_query = attention_head_of(s, layer, head->donor[DEBERTA_C2P], head->head).c2p_query;
    if (head->donor[DEBERTA_P2C] != head->sequence) {
        const attention_head donor = donor_head(s, layer, head, DEBERTA_P2C, scratch->patch_keys[1], scratch);
        head->p2c_keys = donor.p2c_keys;
        head->far_p2c = donor.far_p2c;
    }
    if (head->donor[DEBERTA_C2C] != head->sequence) {
        const attention_head donor = donor_head(s, layer, head, DEBERTA_C2C, scratch->patch_keys[0], scratch);
        head->keys = donor.keys;
        head->c2c_query = donor.c2c_query;
    }
}
