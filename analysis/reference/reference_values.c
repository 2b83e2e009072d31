/* Computes the norm of the output that a head would write for each key if it attended to that key alone, from the
 * values and the output projection.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"

#include <math.h>

/* Returns ||W_o v|| of one head: its d columns of W_o [h][H] start at `column`. */
static double written_norm(const double *output_weight, const double *value, size_t h, size_t H, size_t column,
                           size_t d)
{
    double squares = 0;
    for (size_t c = 0; c < h; c++) {
        const double y = reference_dot(output_weight + c * H + column, value, d);
        squares += y * y;
    }
    return sqrt(squares);
}

deberta_status reference_value_norms(const reference_model *m, size_t layer, const double *hidden, size_t tokens,
                                     double *norms, deberta_error *err)
{
    const model_config *config = &m->config;
    const size_t h = config->hidden_size, A = config->heads, d = config->head_size, H = A * d;
    layer_weights w;
    shelf scratch = {0};
    double *v;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, layer_weights_read(m, layer, &w, err));
    DEBERTA_TRY_OR_FAIL(status, shelf_take(&scratch, tokens * H, &v, err));
    reference_linear(v, hidden, tokens, h, w.value_weight, w.value_bias, H);
    for (size_t a = 0; a < A; a++)
        for (size_t t = 0; t < tokens; t++)
            norms[a * tokens + t] = written_norm(w.attention_weight, v + t * H + a * d, h, H, a * d, d);
fail:
    shelf_clear(&w.shelf);
    shelf_clear(&scratch);
    return status;
}
