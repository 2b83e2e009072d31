/* Multiplies the relative table by a layer's projections: position keys PK (for c2p) and position queries PQ (for p2c),
 * head by head.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/positions.h"

#include "core/model/linear.h"

static void project_head(const position_fold *fold, const packed_matrix *matrix, size_t first_panel, const float *table,
                         float *projected)
{
    linear_product product = linear_plain(matrix, fold->rows, table, fold->ld, projected, fold->padded_head);
    product.first_panel = first_panel;
    product.panels = fold->padded_head / PANEL;
    linear_run(fold->kernels, &product);
}

static void fold_head(void *context, size_t head, size_t worker)
{
    (void)worker;
    const position_fold *fold = context;
    size_t head_panels = fold->padded_head / PANEL, head_floats = fold->rows * fold->padded_head;
    if (fold->keys) {
        float *rows = fold->workspace + head * head_floats;
        size_t panel_floats = fold->head_size * PANEL;
        project_head(fold, &fold->key_matrix, fold->first_key_panel + head * head_panels, fold->reversed, rows);
        fold->kernels->pack_panels_f32(fold->keys + head * ceiling_divide(fold->rows, PANEL) * panel_floats,
                                       panel_floats, rows, fold->padded_head, fold->rows, fold->head_size);
    }
    if (fold->queries) {
        project_head(fold, &fold->query_matrix, fold->first_query_panel + head * head_panels, fold->table,
                     fold->queries + head * head_floats);
    }
}

void position_fold_run(const position_fold *fold, executor *by)
{
    parallel_for(by, fold->heads, fold_head, (void *)fold);
}
