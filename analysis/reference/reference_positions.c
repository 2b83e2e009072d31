/* Computes the product of both position tables (position to position), which the model leaves out, and the parts of
 * embeddings.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"

#include <math.h>

/* Computes the rows of one head: x [rows][h] times the d rows of W that belong to it. */
static deberta_status project_head(const reference_model *m, shelf *owner, const double *x, size_t rows, size_t head,
                                   const double *weight, const double *bias, double **out, deberta_error *err)
{
    const size_t h = m->config.hidden_size, d = m->config.head_size;
    DEBERTA_TRY(shelf_take(owner, rows * d, out, err));
    reference_linear(*out, x, rows, h, weight + head * d * h, bias ? bias + head * d : NULL, d);
    return DEBERTA_OK;
}

deberta_status reference_position_products(const reference_model *m, size_t layer, size_t head, double *products,
                                           deberta_error *err)
{
    const size_t d = m->config.head_size, rows = 2 * m->config.relative_span;
    const double scale = sqrt((double)(d * (1 + m->config.position_terms)));
    layer_weights w;
    shelf scratch = {0};
    double *pk = NULL, *pq = NULL;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, layer_weights_read(m, layer, &w, err));
    DEBERTA_TRY_OR_FAIL(status, project_head(m, &scratch, m->relative, rows, head, w.position_key_weight,
                                             w.position_key_bias, &pk, err));
    DEBERTA_TRY_OR_FAIL(status, project_head(m, &scratch, m->relative, rows, head, w.position_query_weight,
                                             w.position_query_bias, &pq, err));
    for (size_t r = 0; r < rows; r++) products[r] = reference_dot(pq + r * d, pk + r * d, d) / scale;
fail:
    shelf_clear(&w.shelf);
    shelf_clear(&scratch);
    return status;
}

deberta_status reference_embedding_rows(const reference_model *m, const reference_input *input, double *words,
                                        double *positions, deberta_error *err)
{
    const model_config *config = &m->config;
    const size_t E = config->embedding_size;
    for (size_t t = 0; t < input->tokens; t++) {
        const int64_t position = input->position_ids ? input->position_ids[t] : (int64_t)t;
        DEBERTA_TRY(reference_fetch_row(m, "embeddings.word_embeddings.weight", input->ids[t], config->vocabulary_size,
                                        E, words + t * E, err));
        DEBERTA_TRY(reference_fetch_row(m, "embeddings.position_embeddings.weight", position, config->max_positions, E,
                                        positions + t * E, err));
    }
    return DEBERTA_OK;
}
