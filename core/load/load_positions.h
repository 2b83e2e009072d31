/* PK and PQ of a layer (SPEC 4.1): the projections are read, and what they make of the relative table is kept.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

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
