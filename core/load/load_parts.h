/* Declares the loaders of a model's parts, each in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

/* Functions that load PK and PQ of a layer (SPEC 4.1): they read the projections, and keep their products with the
 * relative table. */

/* Separate position projections (v1, or share_att_key false) serve only folding: without `keep` they are read into
 * memory that every layer reuses. In low precision the folded table uses the same memory; where attention multiplies
 * integers, so do the float results of folding. */
typedef struct position_workspace {
    bool keep, unfolded; /* unfolded: whether the caller computes PK and PQ itself */
    arena arena;
    packed_matrix key, query;
    float *rows; /* workspace of position_fold */
    float *relative_table, *relative_reversed, *keys, *queries;
} position_workspace;

void position_workspace_carve(position_workspace *workspace, const deberta_model *model);

/* Loads the projections of the layer that the loader's prefix names, after its qkv. */
deberta_status load_position_projections(weight_loader *loader, deberta_model *model, model_layer *layer,
                                         position_workspace *workspace, deberta_error *err);

/* Loads the parts of an encoder by the names of their tensors (SPEC 9). One walk checks, measures or reads
 * (weight_loader.h); load_tasks ends it. */

/* Runs the loader's current pass. The model's configuration must be final by then. */
deberta_status load_encoder(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                            deberta_error *err);

/* Loads a layer norm. */
static inline deberta_status load_norm(weight_loader *loader, layer_norm *norm, const char *gamma, const char *beta,
                                       size_t count, deberta_error *err)
{
    DEBERTA_TRY(loader_vector(loader, &norm->gamma, gamma, count, err));
    return loader_vector(loader, &norm->beta, beta, count, err);
}

/* The last step of the walk: */

/* Detects the tasks for which the files have heads, and loads their weights. */
deberta_status load_tasks(weight_loader *loader, deberta_model *model, deberta_error *err);
