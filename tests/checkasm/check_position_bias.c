/* position_bias_f32 moves data and adds once: the result is known exactly. What varies is the map from distances to
 * table rows: flat, linear, saturated at either end, with irregular runs of equal rows, or without any order. Strip
 * entries that no lane may use hold POISON, so that a wrong entry shows.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <string.h>

typedef enum map_shape { MAP_FLAT, MAP_LINEAR, MAP_HALF, MAP_RARE, MAP_DENSE, MAP_SATURATED, MAP_SHAPES } map_shape;

typedef struct bias_case {
    size_t rows;
    bool use_c2p, use_p2c, unit_steps;
    map_shape shape;

    /* chosen by the body */
    int32_t last_row, least_row, greatest_row;
    size_t ld_c2p, c2p_first, p2c_first;
    test_buffer *bias, *c2p, *p2c, *row_of, *position_of;
} bias_case;

static void call_position_bias(const kernels *table, const void *task) { table->position_bias_f32(task); }

static const void *bias_task_for(void *context, int copy)
{
    static position_bias_task task;
    const bias_case *b = context;
    task = (position_bias_task){
        .rows = b->rows,
        .bias = b->bias->copy[copy],
        .c2p = b->c2p ? b->c2p->copy[copy] : NULL,
        .ld_c2p = b->ld_c2p,
        .c2p_first = b->c2p_first,
        .p2c = b->p2c ? b->p2c->copy[copy] : NULL,
        .p2c_first = b->p2c_first,
        .row_of = (const int32_t *)(const void *)b->row_of->copy[copy] + PANEL - 1,
        .position_of = (const int32_t *)(const void *)b->position_of->copy[copy] + (ptrdiff_t)b->rows - 1,
        .last_row = b->last_row,
        .unit_steps = b->unit_steps,
    };
    return &task;
}

/* ------------------------------------------------------------------------------------------------------------- maps */

static int32_t word_at(const test_buffer *b, size_t index)
{
    int32_t word;
    memcpy(&word, &b->copy[COPY_INITIAL][index], sizeof word);
    return word;
}

static void set_word(test_buffer *b, size_t index, int32_t word)
{
    memcpy(&b->copy[COPY_INITIAL][index], &word, sizeof word);
}

/* Table row of query i and lane l. */
static int32_t row_at(const bias_case *b, size_t i, size_t l) { return word_at(b->row_of, i + PANEL - 1 - l); }

static bool steps_up(test_run *run, map_shape shape, size_t x, size_t begin, size_t end)
{
    switch (shape) {
    case MAP_LINEAR: return true;
    case MAP_HALF: return random_flag(run);
    case MAP_RARE: return random_index(run, 10) == 0;
    case MAP_DENSE: return random_index(run, 10) != 0;
    case MAP_SATURATED: return x >= begin && x < end;
    case MAP_FLAT:
    case MAP_SHAPES: break;
    }
    return false;
}

static void take_map(test_run *run, bias_case *b)
{
    const size_t count = b->rows + PANEL - 1;
    b->row_of = run_buffer(run, "row_of", count, BUFFER_INPUT);
    b->position_of = run_buffer(run, "position_of", count, BUFFER_INPUT);

    const size_t begin = random_index(run, count), end = begin + random_index(run, count);
    int32_t row = (int32_t)random_index(run, 40);
    b->least_row = INT32_MAX;
    b->greatest_row = 0;
    for (size_t x = 0; x < count; x++) {
        if (!b->unit_steps && b->shape == MAP_SHAPES) row = (int32_t)random_index(run, 200);
        set_word(b->row_of, x, row);
        if (row < b->least_row) b->least_row = row;
        if (row > b->greatest_row) b->greatest_row = row;
        row += steps_up(run, b->shape, x, begin, end);
    }
    b->last_row = b->greatest_row + (int32_t)random_index(run, 3);
    for (size_t x = 0; x < count; x++) set_word(b->position_of, x, b->last_row - word_at(b->row_of, count - 1 - x));
}

/* ----------------------------------------------------------------------------------------------------------- strips */

/* Where lane l of query i finds its entry in c2p. */
static size_t c2p_index(const bias_case *b, size_t i, size_t l)
{
    return i * b->ld_c2p + (size_t)(b->last_row - row_at(b, i, l)) - b->c2p_first;
}

static size_t p2c_index(const bias_case *b, size_t i, size_t l)
{
    return ((size_t)row_at(b, i, l) - b->p2c_first) * PANEL + l;
}

/* With unit steps 15 floats behind the last entry of a row may be read, otherwise none. */
static void take_c2p(test_run *run, bias_case *b)
{
    const size_t reach = b->unit_steps ? PANEL - 1 : 0;
    b->c2p_first = random_index(run, (size_t)(b->last_row - b->greatest_row) + 1);
    b->ld_c2p = random_ld(run, (size_t)(b->last_row - b->least_row) - b->c2p_first + 1);
    size_t size = 0;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t l = 0; l < PANEL; l++) {
            const size_t end = c2p_index(b, i, l) + 1 + reach;
            if (end > size) size = end;
        }
    b->c2p = run_buffer(run, "c2p", size, BUFFER_INPUT);
    for (size_t i = 0; i < b->rows; i++)
        for (size_t l = 0; l < PANEL; l++) b->c2p->copy[COPY_INITIAL][c2p_index(b, i, l)] = random_bell(run);
}

static void take_p2c(test_run *run, bias_case *b)
{
    b->p2c_first = random_index(run, (size_t)b->least_row + 1);
    b->p2c = run_buffer(run, "p2c", ((size_t)b->greatest_row - b->p2c_first + 1) * PANEL, BUFFER_INPUT);
    for (size_t i = 0; i < b->rows; i++)
        for (size_t l = 0; l < PANEL; l++) b->p2c->copy[COPY_INITIAL][p2c_index(b, i, l)] = random_bell(run);
}

static void compare_with_definition(test_run *run, const bias_case *b)
{
    for (size_t i = 0; i < b->rows; i++) {
        for (size_t l = 0; l < PANEL; l++) {
            const float c2p = b->use_c2p ? b->c2p->copy[COPY_INITIAL][c2p_index(b, i, l)] : 0.0f;
            const float p2c = b->use_p2c ? b->p2c->copy[COPY_INITIAL][p2c_index(b, i, l)] : 0.0f;
            const float want = b->use_c2p && b->use_p2c ? c2p + p2c : b->use_c2p ? c2p : p2c;
            const float got = b->bias->copy[COPY_TESTED][i * PANEL + l];
            if (float_bits(got) == float_bits(want)) continue;
            run_fail(run, "query %zu, key lane %zu, table row %d: got %.9g, expected %.9g", i, l, row_at(b, i, l), got,
                     want);
            return;
        }
    }
}

static void bias_body(test_run *run, const void *parameters)
{
    bias_case b = *(const bias_case *)parameters;
    take_map(run, &b);
    b.bias = run_buffer(run, "bias", b.rows * PANEL, BUFFER_OUTPUT);
    if (b.use_c2p) take_c2p(run, &b);
    if (b.use_p2c) take_p2c(run, &b);
    if (run_kernels(run, call_position_bias, bias_task_for, &b)) compare_with_definition(run, &b);
}

static void run_bias_case(test_run *run, size_t weight, bias_case b)
{
    static const char *const shapes[] = {
        "flat", "linear", "steps at random", "few steps", "many steps", "linear between saturated ends", "no order"};
    for (unsigned terms = 1; terms <= 3; terms++) {
        b.use_c2p = terms & 1;
        b.use_p2c = terms & 2;
        run_case(run, weight, bias_body, &b, "rows %zu, map %s%s, %s", b.rows, shapes[b.shape],
                 b.unit_steps ? "" : " (unit_steps false)",
                 terms == 1   ? "c2p"
                 : terms == 2 ? "p2c"
                              : "c2p + p2c");
    }
}

void check_position_bias_unit_steps(test_run *run)
{
    static const size_t many_rows[] = {63, 64, 65, 96, 126, 127, 128, 200};
    bias_case b = {.unit_steps = true};
    for (int shape = 0; shape < MAP_SHAPES; shape++) {
        b.shape = (map_shape)shape;
        for (b.rows = 0; b.rows <= 56; b.rows++) run_bias_case(run, 20, b);
        for (size_t i = 0; i < sizeof many_rows / sizeof *many_rows; i++) {
            b.rows = many_rows[i];
            for (int repetition = 0; repetition < 3; repetition++) run_bias_case(run, 40, b);
        }
    }
}

/* Any map at all, and well-behaved maps without the promise. */
void check_position_bias_irregular(test_run *run)
{
    static const map_shape shapes[] = {MAP_SHAPES, MAP_SATURATED, MAP_HALF};
    bias_case b = {.unit_steps = false};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        b.shape = shapes[s];
        for (b.rows = 0; b.rows <= 130; b.rows += b.rows < 40 ? 1 : 13) run_bias_case(run, 20, b);
    }
}
