/* Declares the loaders of a model's parts, each in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

/* PK and PQ of a layer (SPEC 4.1): the projections are read, and what they make of the relative table is kept. */

/* Separate position projections (v1, or share_att_key false) are needed only to fold: without `keep` they are read into
 * memory that every layer uses again. So is the table that is folded, in low precision, and what it is folded to, where
 * attention multiplies integers. */
typedef struct position_workspace {
    bool keep, unfolded; /* unfolded: PK and PQ are left to the caller */
    arena arena;
    packed_matrix key, query;
    float *rows; /* position_fold's workspace */
    float *relative_table, *relative_reversed, *keys, *queries;
} position_workspace;

void position_workspace_carve(position_workspace *workspace, const deberta_model *model);

/* Loads the projections of the layer that the loader's prefix names. Its qkv is loaded. */
deberta_status load_position_projections(weight_loader *loader, deberta_model *model, model_layer *layer,
                                         position_workspace *workspace, deberta_error *err);

/* The parts of an encoder by the names of their tensors (SPEC 9): one walk that checks, measures or reads
 * (weight_loader.h), and that load_tasks ends. */

/* In the pass that the loader is set to. The model's configuration is settled before. */
deberta_status load_encoder(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                            deberta_error *err);

/* A layer norm, of which there are some in every part. */
static inline deberta_status load_norm(weight_loader *loader, layer_norm *norm, const char *gamma, const char *beta,
                                       size_t count, deberta_error *err)
{
    DEBERTA_TRY(loader_vector(loader, &norm->gamma, gamma, count, err));
    return loader_vector(loader, &norm->beta, beta, count, err);
}

/* The end of the walk that load_parts.h begins. */

/* Which tasks the files have heads for, and their weights. */
deberta_status load_tasks(weight_loader *loader, deberta_model *model, deberta_error *err);
