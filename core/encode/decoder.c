/* Runs the Enhanced Mask Decoder: queries with absolute positions attend to the keys that the last layer kept, twice
 * (SPEC 8.3).
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

/* Returns the factor of a token's row of the position table: 1, unless an attribution follows a path there. */
static float position_factor(const deberta_session *s, size_t token)
{
    const position_change *change = session_position_change(s);
    return change && change->absolute ? change->absolute[session_sequence_of(s, token)] : 1;
}

void decoder_run(deberta_session *s, const size_t *positions, size_t count)
{
    enum { PASSES = 2 };
    const deberta_model *model = s->model;
    size_t hidden = model->config.hidden_size, table_stride = row_stride(model->config.embedding_size);
    for (size_t i = 0; i < count; i++) {
        const float *position = model->position_table + (size_t)s->position_ids[positions[i]] * table_stride;
        const float *input = s->decoder_input + positions[i] * s->hidden_stride;
        float *row = s->asked_rows + i * s->hidden_stride;
        const float factor = position_factor(s, positions[i]);
        for (size_t e = 0; e < hidden; e++) row[e] = input[e] + factor * position[e];
    }
    for (size_t pass = 0; pass < PASSES; pass++) {
        if (s->internal.record) session_record(s, &s->internal.record->decoder[pass], s->asked_rows, count);
        last_layer_run(s, positions, count);
        if (s->internal.record) session_detach(s);
    }
}

deberta_status decoder_check(const deberta_session *s, const size_t *positions, size_t count, deberta_error *err)
{
    const model_config *config = &s->model->config;
    if (config->position_biased_input) return DEBERTA_OK;
    if (!s->decoder_input) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "the Enhanced Mask Decoder needs a session with DEBERTA_KEEP_DECODER_INPUT");
    }
    if (s->first_layer >= config->layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "the Enhanced Mask Decoder needs the last layer, which an encode from H[%zu] does not run",
                     s->first_layer);
    for (size_t i = 0; i < count; i++) {
        int32_t position = s->position_ids[positions[i]];
        if (position >= 0 && (size_t)position < config->max_positions) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "token %zu has position %d, but the position table of this model has %zu rows", positions[i],
                     (int)position, config->max_positions);
    }
    return patches_check_decoder(s, positions, count, err);
}
