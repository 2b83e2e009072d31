/* The parts of an encoder by the names of their tensors (SPEC 9): one walk that checks, measures or reads
 * (weight_loader.h), and that load_tasks ends.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/load_positions.h"

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
