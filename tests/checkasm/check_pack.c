/* pack_panels_f32 only moves data: every word of the panels is known exactly. SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

typedef struct pack_case {
    size_t rows, depth;
    /* chosen by the body */
    size_t ldx, panel_stride;
    test_buffer *x, *panels;
} pack_case;

typedef struct pack_task {
    float *panels;
    size_t panel_stride;
    const float *x;
    size_t ldx, rows, depth;
} pack_task;

static void call_pack(const kernels *table, const void *task)
{
    const pack_task *t = task;
    table->pack_panels_f32(t->panels, t->panel_stride, t->x, t->ldx, t->rows, t->depth);
}

static const void *pack_task_for(void *context, int copy)
{
    static pack_task task;
    const pack_case *c = context;
    task = (pack_task){.panels = c->panels->copy[copy],
                       .panel_stride = c->panel_stride,
                       .x = c->x->copy[copy],
                       .ldx = c->ldx,
                       .rows = c->rows,
                       .depth = c->depth};
    return &task;
}

static void compare_with_definition(test_run *run, const pack_case *c)
{
    const float *panels = c->panels->copy[COPY_TESTED], *x = c->x->copy[COPY_INITIAL];
    for (size_t r = 0; r < (c->rows + PANEL - 1) / PANEL * PANEL; r++) {
        for (size_t k = 0; k < c->depth; k++) {
            const size_t index = r / PANEL * c->panel_stride + k * PANEL + r % PANEL;
            const float want = r < c->rows ? x[r * c->ldx + k] : 0.0f;
            if (float_bits(panels[index]) == float_bits(want)) continue;
            run_fail(run, "panels[%zu] (row %zu, column %zu): got %g, expected %g", index, r, k, panels[index], want);
            return;
        }
    }
}

static void pack_body(test_run *run, const void *parameters)
{
    pack_case c = *(const pack_case *)parameters;
    const size_t panels = (c.rows + PANEL - 1) / PANEL, width = c.depth * PANEL;
    c.ldx = random_ld(run, c.depth);
    c.panel_stride = random_ld(run, width);
    c.x = run_buffer(run, "x", matrix_span(c.rows, c.depth, c.ldx), BUFFER_INPUT);
    c.panels = run_buffer(run, "panels", matrix_span(panels, width, c.panel_stride), BUFFER_OUTPUT);
    fill_matrix(run, c.x->copy[COPY_INITIAL], c.rows, c.depth, c.ldx, DIST_BELL, 1.0f);
    if (run_kernels(run, call_pack, pack_task_for, &c)) compare_with_definition(run, &c);
}

void check_pack_panels(test_run *run)
{
    static const size_t long_depths[] = {64, 70, 127, 768};
    pack_case c = {0};
    for (c.rows = 0; c.rows <= 50; c.rows++)
        for (c.depth = 0; c.depth <= 37; c.depth++)
            run_case(run, 60, pack_body, &c, "rows %zu, depth %zu", c.rows, c.depth);
    for (size_t i = 0; i < sizeof long_depths / sizeof *long_depths; i++)
        for (c.rows = 1; c.rows <= 33; c.rows += 4) {
            c.depth = long_depths[i];
            run_case(run, 40, pack_body, &c, "rows %zu, depth %zu", c.rows, c.depth);
        }
}
