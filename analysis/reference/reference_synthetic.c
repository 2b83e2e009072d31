/* Gives the reference the weights of made-up models: the encoder's own, a function of name and index.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_weights.h"
#include "core/load/synthetic.h"
#include "output/scope.h"

#include <stdlib.h>
#include <string.h>

struct made_up {
    synthetic_weights weights;
    weight_source source;
    model_config config; /* configuration, which owns what `weights` points to */
};

static bool made_up_find(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    const struct made_up *made = context;
    weight_tensor found;
    if (!made->source.find(made->source.context, name, &found)) return false;
    *rank = found.rank;
    memcpy(shape, found.shape, sizeof found.shape);
    return true;
}

static deberta_status made_up_read(void *context, const char *name, size_t first, size_t count, double *values,
                                   deberta_error *err)
{
    const struct made_up *made = context;
    weight_tensor found;
    float block[1024];
    made->source.find(made->source.context, name, &found);
    for (size_t done = 0; done < count;) {
        size_t step = count - done < 1024 ? count - done : 1024;
        DEBERTA_TRY(made->source.read(made->source.context, &found, first + done, step, block, err));
        for (size_t i = 0; i < step; i++) values[done + i] = (double)block[i];
        done += step;
    }
    return DEBERTA_OK;
}

deberta_status made_up_open(struct made_up **made_up, model_config *config, reference_source *source, const char *path,
                            deberta_error *err)
{
    struct made_up *made = memory_take(1, sizeof *made);
    deberta_status status = synthetic_parse(&made->config, &made->weights, path, err);
    if (status != DEBERTA_OK) {
        free(made);
        return status;
    }
    made->source = weight_source_of_synthetic(&made->weights, path);
    *config = made->config;
    *source = (reference_source){made, made_up_find, made_up_read};
    *made_up = made;
    return DEBERTA_OK;
}

void made_up_close(struct made_up **made_up)
{
    if (*made_up) config_free(&(*made_up)->config);
    free(*made_up);
    *made_up = NULL;
}
