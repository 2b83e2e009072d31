/* Multiplies rows of activations by packed weights, as one product or cut into a grid for all threads.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/linear.h"

linear_product linear_plain(const packed_matrix *matrix, size_t rows, const float *a, size_t lda, float *c, size_t ldc)
{
    return (linear_product){
        .matrix = matrix,
        .panels = matrix->panel_count,
        .rows = rows,
        .a = a,
        .lda = lda,
        .c = c,
        .ldc = ldc,
        .panel_stride = PANEL,
    };
}

/* Multiplies integers; the arguments are those of multiply_block. */
static void multiply_integers(const kernels *table, const linear_product *p, size_t start, size_t first, size_t count,
                              const void *next)
{
    const packed_matrix *m = p->matrix;
    const quantized_rows *rows = &p->quantized;
    size_t panel = p->first_panel + first, block = start / m->block_depth, depth = quantized_block_depth(m, start);
    size_t group_panels = p->group_panels ? p->group_panels : p->panels;
    size_t lane = (block * m->panel_count + panel) * PANEL, row = block * rows->capacity + p->quantized_row;
    bool last = start + m->block_depth >= m->depth;
    integer_gemm_task task = {
        .rows = p->rows,
        .depth = depth,
        .panels = count,
        .a = rows->digits + block * rows->capacity * rows->block_stride + p->quantized_row * depth,
        .a_plane_bytes = rows->plane_bytes,
        .a_scale = rows->scales + row,
        .a_zero = rows->zeros + row,
        .b = quantized_matrix_panel(m, start, panel),
        .b_scale = m->scales + lane,
        .b_sum = m->sums + lane * m->digits,
        .c = p->c + first / group_panels * p->group_stride + first % group_panels * p->panel_stride,
        .ldc = p->ldc,
        .c_panel_stride = p->panel_stride,
        .bias = start == 0 ? m->bias + panel * PANEL : NULL,
        .residual = last && p->residual ? p->residual + first * PANEL : NULL,
        .ld_residual = p->ld_residual,
        .residual_panel_stride = PANEL,
        .accumulate = start > 0,
        .gelu = last && p->gelu,
        .next = next,
    };
    if (m->digits == 1)
        table->gemm_u8(&task);
    else
        table->gemm_u8x2(&task);
}

/* Multiplies one block of inputs for the panels [first, first + count) of the product, all in one group of C; next:
 * weights of the following call. */
static void multiply_block(const kernels *table, const linear_product *p, size_t start, size_t first, size_t count,
                           const void *next)
{
    if (p->matrix->digits) {
        multiply_integers(table, p, start, first, count, next);
        return;
    }
    const packed_matrix *m = p->matrix;
    size_t depth = minimum(m->block_depth, m->depth - start), panel = p->first_panel + first;
    size_t group_panels = p->group_panels ? p->group_panels : p->panels;
    bool last = start + depth == m->depth;
    gemm_task task = {
        .rows = p->rows,
        .depth = depth,
        .panels = count,
        .a = p->a + start,
        .lda = p->lda,
        .b = packed_matrix_panel(m, start, panel),
        .b_panel_stride = depth * PANEL,
        .c = p->c + first / group_panels * p->group_stride + first % group_panels * p->panel_stride,
        .ldc = p->ldc,
        .c_panel_stride = p->panel_stride,
        .bias = last ? m->bias + panel * PANEL : NULL,
        .residual = last && p->residual ? p->residual + first * PANEL : NULL,
        .ld_residual = p->ld_residual,
        .residual_panel_stride = PANEL,
        .accumulate = start > 0,
        .gelu = last && p->gelu,
        .next = p->rows > 1 ? next : NULL,
    };
    table->gemm_f32(&task);
}

/* Multiplies the panels [first, end) of the product: all panels of a block of inputs, then the next block. after: the
 * weights that this thread probably multiplies next. */
static void multiply_panels(const kernels *table, const linear_product *p, size_t first, size_t end, const void *after)
{
    const packed_matrix *m = p->matrix;
    size_t group_panels = p->group_panels ? p->group_panels : p->panels;
    for (size_t start = 0; start < m->depth; start += m->block_depth) {
        for (size_t panel = first, next; panel < end; panel = next) {
            next = minimum(end, (panel / group_panels + 1) * group_panels);
            const void *follows = after;
            if (next < end)
                follows = matrix_weights_at(m, start, p->first_panel + next);
            else if (start + m->block_depth < m->depth)
                follows = matrix_weights_at(m, start + m->block_depth, p->first_panel + first);
            multiply_block(table, p, start, panel, next - panel, follows);
        }
    }
}

static void advance_rows(linear_product *product, size_t rows)
{
    product->a += rows * product->lda;
    product->c += rows * product->ldc;
    product->quantized_row += rows;
    if (product->residual) product->residual += rows * product->ld_residual;
}

void linear_run(const kernels *table, const linear_product *product)
{
    size_t parts = ceiling_divide(product->rows, LINEAR_MAX_ROWS);
    for (size_t part = 0; part < parts; part++) {
        linear_product block = *product;
        size_t start = part_start(product->rows, parts, part);
        advance_rows(&block, start);
        block.rows = part_start(product->rows, parts, part + 1) - start;
        if (block.matrix->digits) {
            block.quantized = quantized_rows_in(block.scratch, block.matrix, block.rows);
            block.quantized_row = 0;
            quantized_rows_fill(&block.quantized, table, block.matrix, block.a, block.lda, 0, block.rows);
        }
        bool again = part + 1 < parts; /* whether the same weights come again, for the next rows */
        multiply_panels(table, &block, 0, block.panels,
                        again ? matrix_weights_at(block.matrix, 0, block.first_panel)
                              : matrix_weights_end(block.matrix));
    }
}

/* A grid of tasks over rows and panels. */
typedef struct linear_grid {
    const kernels *kernels;
    const linear_product *products;
    size_t count, panels, threads, row_parts, panel_parts;
    const packed_matrix *next;           /* matrix that is multiplied next, or NULL */
    const struct linear_grid *next_grid; /* grid of that matrix */
} linear_grid;

/* Returns the first panel of a part, over all products one after another. */
static size_t first_panel_of(const linear_grid *grid, size_t panel_part)
{
    size_t tile = grid->kernels->tile_panels, tiles = ceiling_divide(grid->panels, tile);
    return minimum(tile * part_start(tiles, grid->panel_parts, panel_part), grid->panels);
}

/* Returns the first row of a part. Rows of integers are cut at tiles. */
static size_t first_row_of(const linear_grid *grid, size_t rows, size_t row_part)
{
    size_t unit = grid->products[0].matrix->digits ? DIGIT_TILE_ROWS : 1;
    return minimum(unit * part_start(ceiling_divide(rows, unit), grid->row_parts, row_part), rows);
}

/* Returns the weights of that panel; past the last one, the address after them, where the next matrix is stored. */
static const void *weights_at(const linear_grid *grid, size_t panel)
{
    const linear_product *product = grid->products;
    for (; panel >= product->panels && product + 1 < grid->products + grid->count; product++) panel -= product->panels;
    return panel < product->panels ? matrix_weights_at(product->matrix, 0, product->first_panel + panel)
                                   : matrix_weights_end(product->matrix);
}

/* Predicts what the worker of a cell multiplies next. If every other thread is busy as long, it gets the cell that many
 * further on; after the last cells every worker begins the matrix that follows with a separate cell. */
static const void *weights_after(const linear_grid *grid, size_t task, size_t worker)
{
    size_t later = (task + grid->threads) / grid->row_parts;
    if (later < grid->panel_parts || !grid->next) {
        return weights_at(grid, first_panel_of(grid, minimum(later, grid->panel_parts)));
    }
    size_t part = minimum(worker / grid->next_grid->row_parts, grid->next_grid->panel_parts - 1);
    return matrix_weights_at(grid->next, 0, first_panel_of(grid->next_grid, part));
}

static void run_cell(void *context, size_t task, size_t worker)
{
    const linear_grid *grid = context;
    /* Rows vary fastest, so that threads read the same weights at the same time. */
    size_t row_part = task % grid->row_parts, panel_part = task / grid->row_parts, rows = grid->products[0].rows;
    size_t row = first_row_of(grid, rows, row_part), row_end = first_row_of(grid, rows, row_part + 1);
    size_t panel = first_panel_of(grid, panel_part), panel_end = first_panel_of(grid, panel_part + 1);
    const void *after = weights_after(grid, task, worker);

    for (size_t i = 0, offset = 0; i < grid->count; offset += grid->products[i++].panels) {
        linear_product part = grid->products[i];
        size_t first = maximum(panel, offset), end = minimum(panel_end, offset + part.panels);
        if (first >= end) continue;
        advance_rows(&part, row);
        part.rows = row_end - row;
        bool last = offset + part.panels >= panel_end;
        multiply_panels(grid->kernels, &part, first - offset, end - offset,
                        last ? after : weights_at(grid, offset + part.panels));
    }
}

/* Chooses the grid whose slowest thread has the fewest register tiles. Among equal ones it takes the finer grid, in
 * which a delayed thread delays the others less. Cutting rows more than the cache requires costs a little, because
 * weights are read again. */
static void choose_cells(linear_grid *grid, size_t rows)
{
    size_t threads = grid->threads;
    enum { MAX_TASKS_PER_THREAD = 4, MAX_ROW_CUTS = 4, COST_OF_A_CUT = 32 /* a cut costs 1 / 32 of the work */ };
    size_t tiles = ceiling_divide(grid->panels, grid->kernels->tile_panels), best = SIZE_MAX;
    size_t least_parts = ceiling_divide(rows, LINEAR_MAX_ROWS);
    size_t most_panel_parts = minimum(tiles, ceiling_divide(MAX_TASKS_PER_THREAD * threads, least_parts));
    for (size_t cut = 0; cut < MAX_ROW_CUTS; cut++) {
        for (size_t panel_parts = 1; panel_parts <= most_panel_parts; panel_parts++) {
            size_t row_parts = least_parts * (cut + 1);
            size_t cell = ceiling_divide(rows, row_parts) * ceiling_divide(tiles, panel_parts);
            size_t cost = cell * ceiling_divide(row_parts * panel_parts, threads) * (COST_OF_A_CUT + cut);
            if (row_parts > rows || cost > best) continue;
            best = cost;
            grid->row_parts = row_parts;
            grid->panel_parts = panel_parts;
        }
    }
}

static void choose_grid(linear_grid *grid, size_t rows)
{
    size_t threads = grid->threads;
    grid->row_parts = ceiling_divide(rows, LINEAR_MAX_ROWS);
    grid->panel_parts = 1;
    if (threads == 1) return;
    if (rows >= LINEAR_ROW_SPLIT * threads) {
        grid->row_parts = round_up(grid->row_parts, threads);
    } else {
        choose_cells(grid, rows);
    }
}

typedef struct quantize_loop {
    const kernels *kernels;
    const linear_product *product;
    const quantized_rows *to;
} quantize_loop;

static void quantize_tile(void *context, size_t tile, size_t worker)
{
    (void)worker;
    const quantize_loop *loop = context;
    const linear_product *p = loop->product;
    size_t first = tile * DIGIT_TILE_ROWS, rows = minimum(DIGIT_TILE_ROWS, p->rows - first);
    quantized_rows_fill(loop->to, loop->kernels, p->matrix, p->a + first * p->lda, p->lda, first, rows);
}

/* Quantizes the rows of A on all threads; products of one matrix have one A. */
static quantized_rows quantize_parallel(const kernels *table, executor *by, const linear_product *product)
{
    quantized_rows to = quantized_rows_in(product->scratch, product->matrix, product->rows);
    quantize_loop loop = {table, product, &to};
    parallel_for(by, ceiling_divide(product->rows, DIGIT_TILE_ROWS), quantize_tile, &loop);
    return to;
}

void linear_run_parallel(const kernels *table, executor *by, const linear_product *given, size_t count)
{
    enum { MAX_PRODUCTS = 3 };
    linear_product products[MAX_PRODUCTS];
    linear_grid grid = {.kernels = table, .products = products, .count = count, .threads = by->threads};
    assert(count <= MAX_PRODUCTS);
    for (size_t i = 0; i < count; i++) {
        products[i] = given[i];
        grid.panels += products[i].panels;
    }
    if (grid.panels == 0 || products[0].rows == 0) return;
    if (products[0].matrix->digits) products[0].quantized = quantize_parallel(table, by, products);
    for (size_t i = 1; i < count; i++) products[i].quantized = products[0].quantized;
    choose_grid(&grid, products[0].rows);
    linear_grid next = {.kernels = table, .threads = grid.threads};
    if (products[count - 1].follows) {
        next.panels = products[count - 1].follows->panel_count;
        choose_grid(&next, products[0].rows);
        grid.next = products[count - 1].follows;
        grid.next_grid = &next;
    }
    parallel_for(by, grid.row_parts * grid.panel_parts, run_cell, &grid);
}
