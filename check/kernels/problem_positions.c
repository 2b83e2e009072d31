/* Describes kernels that walk tables of positions: position_bias_f32, fold_runs_f32. Problems vary the map from
 * distances to table rows: flat, linear, saturated at either end, with irregular runs of equal rows, v3's, or without
 * any order.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "check/kernels/kernel_problem.h"
#include "core/base/numbers.h"
#include "core/model/positions.h"

enum { MOST_ENTRIES = 1024, MOST_ROWS_OF_ANY = 100 };

static const position_rule rule_of_v3 = {
    .span = MAP_V3_ROWS / 2, .buckets = 256, .max_distance = 512, .clamp_distance = true};

/* ------------------------------------------------------------------------------------------------------------- maps */

static bool steps_up(problem_map map, uint64_t *random, size_t x, size_t begin, size_t end)
{
    switch (map) {
    case MAP_LINEAR: return true;
    case MAP_HALF: return random_below(random, 2);
    case MAP_RARE: return random_below(random, 10) == 0;
    case MAP_DENSE: return random_below(random, 10) != 0;
    case MAP_SATURATED: return x >= begin && x < end;
    default: return false;
    }
}

/* Fills the rows of `count` distances, of which entry `zero` is that of query 0 and key 0. The rows are the same at
 * every call. */
static void draw_map(const kernel_problem *p, size_t count, size_t zero, int32_t *rows)
{
    uint64_t random = p->map_seed;
    const size_t begin = random_below(&random, count), end = begin + random_below(&random, count);
    int32_t row = (int32_t)random_below(&random, 40);
    for (size_t x = 0; x < count; x++) {
        if (p->map == MAP_V3) row = (int32_t)position_row(&rule_of_v3, p->distance + (ptrdiff_t)x - (ptrdiff_t)zero);
        if (p->map == MAP_ANY) row = (int32_t)random_below(&random, MOST_ROWS_OF_ANY);
        rows[x] = row;
        row += steps_up(p->map, &random, x, begin, end);
    }
}

/* Chooses a map and finds the rows that it has. The table of v3 is complete, whichever of its rows are used. */
static void choose_map(kernel_problem *p, size_t count, size_t zero, int32_t rows[MOST_ENTRIES])
{
    p->map_seed = random_next(&p->random);
    p->least_row = 0;
    p->greatest_row = MAP_V3_ROWS - 1;
    if (p->map == MAP_V3 || count == 0) return;
    draw_map(p, count, zero, rows);
    p->least_row = p->greatest_row = rows[0];
    for (size_t x = 0; x < count; x++) {
        if (rows[x] < p->least_row) p->least_row = rows[x];
        if (rows[x] > p->greatest_row) p->greatest_row = rows[x];
    }
}

static bool has_unit_steps(const kernel_problem *p) { return p->map != MAP_ANY && !has_option(p, WITHOUT_PROMISE); }

/* ------------------------------------------------------------------------------------------------ position_bias_f32 */

enum { BIAS_SUM, BIAS_C2P, BIAS_P2C, BIAS_ROW_OF, BIAS_POSITION_OF };

static size_t entries_of_bias(const kernel_problem *p) { return p->rows + PANEL - 1; }

/* Returns the index of the entry that lane l of query i reads; `row` is its table row. */
static size_t c2p_index(const kernel_problem *p, size_t i, int32_t row)
{
    return i * p->arrays[BIAS_C2P].ld + (size_t)(p->last_row - row) - p->first_of_c2p;
}

static size_t p2c_index(const kernel_problem *p, size_t l, int32_t row)
{
    return ((size_t)row - p->first_of_p2c) * PANEL + l;
}

static int32_t row_of_lane(const int32_t *row_of, size_t i, size_t l) { return row_of[i + PANEL - 1 - l]; }

/* Declares the strip of c2p. With unit steps, 15 floats after the last entry of a row may be read, otherwise none. */
static void take_c2p(kernel_problem *p, const int32_t *rows)
{
    const size_t reach = has_unit_steps(p) ? PANEL - 1 : 0;
    const size_t width = (size_t)(p->last_row - p->least_row) - p->first_of_c2p + 1;
    problem_array *c2p = take_matrix(p, BIAS_C2P, "c2p", ARRAY_INPUT, p->rows, width, p->map == MAP_V3 ? 1 : 0);
    if (p->map == MAP_V3 && p->rows) c2p->words += reach;
    for (size_t i = 0, words = 0; p->map != MAP_V3 && i < p->rows; i++)
        for (size_t l = 0; l < PANEL; l++) {
            const size_t end = c2p_index(p, i, row_of_lane(rows, i, l)) + 1 + reach;
            if (end > words) c2p->words = words = end;
        }
}

static void position_bias_f32_lay_out(kernel_problem *p)
{
    int32_t rows[MOST_ENTRIES];
    const size_t count = entries_of_bias(p);
    if (has_option(p, WITHOUT_C2P)) p->options &= ~(unsigned)WITHOUT_P2C;
    p->columns = PANEL;
    choose_map(p, count, PANEL - 1, rows);
    p->last_row = p->greatest_row;
    p->first_of_c2p = p->first_of_p2c = 0;
    if (p->map != MAP_V3) {
        p->last_row += (int32_t)draw_below(p, 3);
        p->first_of_c2p = draw_below(p, (size_t)(p->last_row - p->greatest_row) + 1);
        p->first_of_p2c = draw_below(p, (size_t)p->least_row + 1);
    }
    const size_t p2c_words = ((size_t)p->greatest_row - p->first_of_p2c + 1) * PANEL;
    take_vector(p, BIAS_SUM, "bias", ARRAY_OUTPUT, p->rows * PANEL, 0);
    if (!has_option(p, WITHOUT_C2P)) take_c2p(p, rows);
    if (!has_option(p, WITHOUT_P2C)) take_vector(p, BIAS_P2C, "p2c", ARRAY_INPUT, p2c_words, p->map == MAP_V3 ? 1 : 0);
    take_bytes(p, BIAS_ROW_OF, "row_of", ARRAY_INPUT, count * sizeof(int32_t));
    take_bytes(p, BIAS_POSITION_OF, "position_of", ARRAY_INPUT, count * sizeof(int32_t));
}

/* Strip entries that no lane may use keep their value, so that reading one shows. */
static void position_bias_f32_fill(kernel_problem *p)
{
    const size_t count = entries_of_bias(p);
    int32_t *row_of = raw_given(p, BIAS_ROW_OF), *position_of = raw_given(p, BIAS_POSITION_OF);
    draw_map(p, count, PANEL - 1, row_of);
    for (size_t x = 0; x < count; x++) position_of[x] = p->last_row - row_of[count - 1 - x];
    for (size_t i = 0; p->map != MAP_V3 && i < p->rows; i++)
        for (size_t l = 0; l < PANEL; l++) {
            const int32_t row = row_of_lane(row_of, i, l);
            if (given_in(p, BIAS_C2P)) given_in(p, BIAS_C2P)[c2p_index(p, i, row)] = draw_number(p);
            if (given_in(p, BIAS_P2C)) given_in(p, BIAS_P2C)[p2c_index(p, l, row)] = draw_number(p);
        }
}

static void position_bias_f32_call(const kernels *table, const kernel_problem *p)
{
    const position_bias_task task = {.rows = p->rows,
                                     .bias = now_in(p, BIAS_SUM),
                                     .c2p = now_in(p, BIAS_C2P),
                                     .ld_c2p = p->arrays[BIAS_C2P].ld,
                                     .c2p_first = p->first_of_c2p,
                                     .p2c = now_in(p, BIAS_P2C),
                                     .p2c_first = p->first_of_p2c,
                                     .row_of = (const int32_t *)raw_in(p, BIAS_ROW_OF) + PANEL - 1,
                                     .position_of =
                                         (const int32_t *)raw_in(p, BIAS_POSITION_OF) + (ptrdiff_t)p->rows - 1,
                                     .last_row = p->last_row,
                                     .unit_steps = has_unit_steps(p)};
    table->position_bias_f32(&task);
}

/* The kernel moves data and adds once, so the result is known exactly. */
static void position_bias_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    const int32_t *row_of = raw_given(p, BIAS_ROW_OF);
    for (size_t i = 0; i < p->rows; i++)
        for (size_t l = 0; l < PANEL; l++) {
            const int32_t row = row_of_lane(row_of, i, l);
            const float c2p = given_in(p, BIAS_C2P) ? given_in(p, BIAS_C2P)[c2p_index(p, i, row)] : 0.0f;
            const float p2c = given_in(p, BIAS_P2C) ? given_in(p, BIAS_P2C)[p2c_index(p, l, row)] : 0.0f;
            const double want = (double)(c2p + p2c);
            if (!expect_result(p, judge, BIAS_SUM, i * PANEL + l, (exact_value){want, 1, 0, UNIT_EPS_S})) return;
        }
}

DESCRIBE_KERNEL(position_bias_f32, "position_bias", .fill = position_bias_f32_fill, .drawn = {60, 0, 0},
                .measured = {96, 0, 0}, .optional = WITHOUT_C2P | WITHOUT_P2C | WITHOUT_PROMISE, .has_map = true,
                .moved = {3, 0, 0})

/* ---------------------------------------------------------------------------------------------------- fold_runs_f32 */

enum { FOLD_S, FOLD_STRIP, FOLD_PLACE_OF };

static size_t entries_of_fold(const kernel_problem *p) { return p->rows + p->columns ? p->rows + p->columns - 1 : 0; }

static size_t first_place(const kernel_problem *p) { return p->rows ? p->rows - 1 : 0; }

static void fold_runs_f32_lay_out(kernel_problem *p)
{
    int32_t rows[MOST_ENTRIES];
    choose_map(p, entries_of_fold(p), first_place(p), rows);
    p->is_turned = !p->plain && draw_flag(p);
    take_matrix(p, FOLD_S, "s", ARRAY_INPUT, p->is_turned ? p->columns : p->rows, p->is_turned ? p->rows : p->columns,
                1);
    take_matrix(p, FOLD_STRIP, "strip", ARRAY_OUTPUT, p->rows, (size_t)(p->greatest_row - p->least_row) + 1, 1);
    take_bytes(p, FOLD_PLACE_OF, "place_of", ARRAY_INPUT, entries_of_fold(p) * sizeof(int32_t));
}

static void fold_runs_f32_fill(kernel_problem *p)
{
    if (entries_of_fold(p)) draw_map(p, entries_of_fold(p), first_place(p), raw_given(p, FOLD_PLACE_OF));
}

/* While it is measured, the strip keeps growing, but too slowly to overflow. */
static void fold_runs_f32_call(const kernels *table, const kernel_problem *p)
{
    const fold_runs_task task = {.rows = p->rows,
                                 .columns = p->columns,
                                 .s = now_in(p, FOLD_S),
                                 .row_step = p->is_turned ? 1 : p->arrays[FOLD_S].ld,
                                 .column_step = p->is_turned ? p->arrays[FOLD_S].ld : 1,
                                 .place_of = (const int32_t *)raw_in(p, FOLD_PLACE_OF) + first_place(p),
                                 .first = p->least_row,
                                 .unit_steps = has_unit_steps(p),
                                 .strip = now_in(p, FOLD_STRIP),
                                 .ld_strip = p->arrays[FOLD_STRIP].ld};
    table->fold_runs_f32(&task);
}

static void fold_runs_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    const int32_t *place_of = (const int32_t *)raw_given(p, FOLD_PLACE_OF) + first_place(p);
    const size_t places = p->arrays[FOLD_STRIP].width;
    for (size_t i = 0; i < p->rows; i++) {
        exact_sum want[MOST_ENTRIES] = {{0}};
        for (size_t x = 0; x < places; x++) add_term(&want[x], given(p, FOLD_STRIP, i, x));
        for (size_t j = 0; j < p->columns; j++)
            add_term(&want[place_of[(ptrdiff_t)j - (ptrdiff_t)i] - p->least_row],
                     p->is_turned ? given(p, FOLD_S, j, i) : given(p, FOLD_S, i, j));
        for (size_t x = 0; x < places; x++)
            if (!expect_sum(p, judge, FOLD_STRIP, i * p->arrays[FOLD_STRIP].ld + x, want[x], (double)p->columns + 1))
                return;
    }
}

DESCRIBE_KERNEL(fold_runs_f32, "fold_runs", .fill = fold_runs_f32_fill, .drawn = {40, 0, 8 * PANEL},
                .measured = {96, 0, 512}, .optional = WITHOUT_PROMISE, .has_map = true, .moved = {1, 0, 0})
