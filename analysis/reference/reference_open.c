/* Opens the float64 reference model: its configuration, its source of weights and the relative table. Layers are read
 * when they are needed.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_math.h"
#include "analysis/reference/reference_weights.h"
#include "core/load/synthetic.h"
#include "output/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------- open and close */

static bool checkpoint_source_find(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    const tensor *found = checkpoint_find(context, name);
    if (!found) return false;
    *rank = found->rank;
    memcpy(shape, found->shape, sizeof found->shape);
    return true;
}

static deberta_status checkpoint_source_read(void *context, const char *name, size_t first, size_t count,
                                             double *values, deberta_error *err)
{
    const tensor *found = checkpoint_find(context, name);
    float block[1024];
    for (size_t done = 0; done < count;) {
        size_t step = count - done < 1024 ? count - done : 1024;
        DEBERTA_TRY(checkpoint_read_f32(context, found, first + done, step, block, err));
        for (size_t i = 0; i < step; i++) values[done + i] = block[i];
        done += step;
    }
    /* This check comes after the last read, because reading a file that was cut gives zeros. */
    return checkpoint_intact(context, err);
}

/* Makes a source; the checkpoint must outlive it. */
static reference_source checkpoint_source(checkpoint *opened)
{
    return (reference_source){opened, checkpoint_source_find, checkpoint_source_read};
}

/* Returns the decimal of config.json, with which the references computed; the configuration keeps eps as a float. */
static double decimal_of(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtod(text, NULL);
}

/* Computes R: the relative table, layer-normalised if norm_rel_ebd says so (SPEC 4.1). */
static deberta_status read_relative_table(reference_model *m, deberta_error *err)
{
    const model_config *config = &m->config;
    size_t rows = 2 * config->relative_span, h = config->hidden_size;
    shelf table = {0}, norm = {0};
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status,
                        reference_fetch(m, &table, &m->relative, rows, h, err, "encoder.rel_embeddings.weight"));
    if (config->norm_relative) {
        double *gain, *shift;
        DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &norm, &gain, h, 0, err, "encoder.LayerNorm.weight"));
        DEBERTA_TRY_OR_FAIL(status, reference_fetch(m, &norm, &shift, h, 0, err, "encoder.LayerNorm.bias"));
        reference_layer_norm(m->relative, m->relative, rows, h, gain, shift, m->eps);
    }
    shelf_clear(&norm);
    return DEBERTA_OK; /* The model owns the table now. */
fail:
    shelf_clear(&norm);
    shelf_clear(&table);
    m->relative = NULL;
    return status;
}

deberta_status reference_create(reference_model **model, const model_config *config, reference_source source,
                                deberta_reference distances, deberta_error *err)
{
    reference_model *m = *model = memory_take(1, sizeof *m);
    m->config = *config;
    m->config.label_names = NULL;
    m->config.architecture = NULL;
    m->config.notes = (kept_notes){0};
    m->classifies_tokens = config->architecture && strstr(config->architecture, "TokenClassification");
    m->source = source;
    m->distances = distances != DEBERTA_REFERENCE_AUTO ? distances : config->reference;
    m->eps = decimal_of(config->layer_norm_eps);
    if (m->config.version == 0) /* Microsoft's configs do not state the version; the tensors show it (SPEC 9). */
        m->config.version = reference_has(m, "encoder.layer.0.attention.self.in_proj.weight") ? 1 : 2;
    if (m->config.version == 2) m->config.talking_heads = false; /* Only v1's attention has them (SPEC 3.6). */
    m->c2p = config->relative_attention && config->c2p;
    m->p2c = config->relative_attention && config->p2c;
    deberta_status status = m->c2p || m->p2c ? read_relative_table(m, err) : DEBERTA_OK;
    if (status != DEBERTA_OK) reference_free(model);
    return status;
}

static deberta_status open_folder(reference_model **model, const char *folder, deberta_reference distances,
                                  deberta_error *err)
{
    model_config config = {0};
    checkpoint *opened = NULL;
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, config_read(&config, folder, err));
    DEBERTA_TRY_OR_FAIL(status, checkpoint_open(&opened, folder, err));
    DEBERTA_TRY_OR_FAIL(status, reference_create(model, &config, checkpoint_source(opened), distances, err));
    (*model)->checkpoint = opened;
    config_free(&config);
    return DEBERTA_OK;
fail:
    checkpoint_close(&opened);
    config_free(&config);
    return status;
}

static deberta_status open_made_up(reference_model **model, const char *path, deberta_reference distances,
                                   deberta_error *err)
{
    model_config config;
    reference_source source;
    struct made_up *made;
    DEBERTA_TRY(made_up_open(&made, &config, &source, path, err));
    deberta_status status = reference_create(model, &config, source, distances, err);
    if (status == DEBERTA_OK)
        (*model)->made_up = made;
    else
        made_up_close(&made);
    return status;
}

deberta_status reference_open(reference_model **model, const char *path, deberta_reference distances,
                              deberta_error *err)
{
    *model = NULL;
    return synthetic_names(path) ? open_made_up(model, path, distances, err) : open_folder(model, path, distances, err);
}

void reference_free(reference_model **model)
{
    if (!*model) return;
    free((*model)->relative);
    checkpoint_close(&(*model)->checkpoint);
    made_up_close(&(*model)->made_up);
    free(*model);
    *model = NULL;
}
