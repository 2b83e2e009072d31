/* dropout_f32: the mask against the generator of train/engine/counters.c, which is written by itself, kept values
 * against float64.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

#include "train/engine/counters.h"

enum { MOST_ROWS = 4 };

typedef struct dropout_case {
    size_t rows, n;
    uint32_t threshold, first;
    /* chosen by the body */
    size_t ldx;
    test_buffer *x;
    dropout_row of[MOST_ROWS];
} dropout_case;

static void call_dropout(const kernels *table, const void *task) { table->dropout_f32(task); }

static const void *dropout_task_for(void *context, int copy)
{
    static dropout_task task;
    const dropout_case *c = context;
    task = (dropout_task){.rows = c->rows,
                          .n = c->n,
                          .x = c->x->copy[copy],
                          .ldx = c->ldx,
                          .of = c->of,
                          .first = c->first,
                          .seed = 7,
                          .step = 0x80000001u,
                          .threshold = c->threshold,
                          .scale = 1.25f};
    return &task;
}

static bool compare_value(test_run *run, const dropout_case *c, size_t i, size_t column)
{
    const dropout_row *of = &c->of[i];
    const uint32_t counter[COUNTER_WORDS] = {c->first + (uint32_t)(column / 4), of->place, of->sequence, of->site};
    uint32_t words[COUNTER_WORDS];
    philox4x32(counter, (counter_key){7, 0x80000001u}, words);
    const double x = 1.25 * (double)c->x->copy[COPY_INITIAL][i * c->ldx + column];
    const double want = words[column % 4] < c->threshold ? 0 : x;
    return run_error(run, "x", i * c->ldx + column, (double)c->x->copy[COPY_TESTED][i * c->ldx + column], want,
                     UNIT_EPS_S, EPS * fabs(want), 1);
}

static void dropout_body(test_run *run, const void *parameters)
{
    dropout_case c = *(const dropout_case *)parameters;
    c.ldx = c.n + c.n % 3;
    c.x = run_buffer(run, "x", c.rows * c.ldx, BUFFER_OUTPUT);
    fill_matrix(run, c.x->copy[COPY_INITIAL], c.rows, c.n, c.ldx, DIST_BELL, 1.0f);
    for (size_t i = 0; i < c.rows; i++)
        c.of[i] = (dropout_row){(uint32_t)i + 5, UINT32_MAX - (uint32_t)i, (uint32_t)(i << 26 | 3)};
    if (!run_kernels(run, call_dropout, dropout_task_for, &c)) return;
    for (size_t i = 0; i < c.rows; i++)
        for (size_t column = 0; column < c.n; column++)
            if (!compare_value(run, &c, i, column)) return;
}

void check_dropout(test_run *run)
{
    static const uint32_t thresholds[] = {0x1999999au, 0, UINT32_MAX};
    dropout_case c = {0};
    for (c.n = 0; c.n <= 9 * PANEL + 1; c.n += c.n < 2 * PANEL ? 1 : 7)
        for (c.rows = 0; c.rows < MOST_ROWS; c.rows++) {
            c.threshold = thresholds[c.n % 3];
            c.first = c.n % 2 ? 128 : UINT32_MAX - 3; /* the counter of a column may begin anew */
            run_case(run, 1, dropout_body, &c, "%zu rows of %zu, threshold %x", c.rows, c.n, (unsigned)c.threshold);
        }
}
