/* Heat maps and the figures made of them: centring, pooling and scales as numbers, layouts as golden traces, and cells
 * as the pixels of a PNG that was read back.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "tests/unit/golden_trace.h"
#include "tests/unit/io_helpers.h"
#include "tests/unit/png_reader.h"
#include "viz/attention_figure.h"
#include "viz/draw_cairo.h"
#include "viz/head_grid.h"
#include "viz/line_view.h"

/* -------------------------------------------------------------------------------------------------------- numbers */

static heatmap_cells prepared(const float *values, size_t rows, size_t columns, heatmap_kind kind, bool centre,
                              size_t pool)
{
    heatmap_cells cells;
    heatmap_matrix matrix = {values, rows, columns, columns};
    heatmap_prepare(&cells, &matrix, kind, centre, pool, pool);
    return cells;
}

TEST(rows_are_centred_over_finite_cells)
{
    const float values[] = {1, 2, 3, 6, 5, -INFINITY, NAN, 7};
    FREED_BY(heatmap_cells_free) heatmap_cells cells = prepared(values, 2, 4, HEATMAP_SIGNED, true, 1);
    const double expected[] = {-2, -1, 0, 3, -1, NAN, NAN, 1};
    for (size_t i = 0; i < 8; i++) {
        if (isnan(expected[i]))
            assert_true(isnan(cells.values[i]));
        else
            assert_close(cells.values[i], expected[i], 1e-6);
    }
    assert_int_equal(cells.not_a_number, 1);
    assert_int_equal(cells.infinite, 1);
    heatmap_cells_free(&cells);
    cells = prepared(values, 2, 4, HEATMAP_POSITIVE, true, 1); /* probabilities are never centred */
    assert_close(cells.values[0], 1, 1e-6);
}

/* Rows that are equal but for the last bit of a float: dust, which must not become full colour. */
TEST(equal_rows_are_exactly_zero)
{
    float values[7 * 3];
    for (size_t i = 0; i < 21; i++) values[i] = i % 2 ? 300.0f : nextafterf(300.0f, 301.0f);
    FREED_BY(heatmap_cells_free) heatmap_cells cells = prepared(values, 3, 7, HEATMAP_SIGNED, true, 1);
    for (size_t i = 0; i < 21; i++) assert_true(cells.values[i] == 0);
    const heatmap_cells *panels[] = {&cells};
    heatmap_scale scale;
    heatmap_choose(&scale, HEATMAP_SIGNED, &(heatmap_choice){0}, panels, 1);
    assert_close(scale.low, -1, 1e-6);
    assert_close(scale.high, 1, 1e-6);
}

TEST(pooling_averages_and_keeps_the_rest)
{
    float values[5 * 5];
    for (size_t i = 0; i < 25; i++) values[i] = (float)i;
    FREED_BY(heatmap_cells_free) heatmap_cells cells = prepared(values, 5, 5, HEATMAP_RANGE, false, 2);
    assert_int_equal(cells.rows, 3);
    assert_int_equal(cells.columns, 3);
    assert_close(cells.values[0], (0 + 1 + 5 + 6) / 4.0, 1e-6);
    assert_close(cells.values[2], (4 + 9) / 2.0, 1e-6); /* a block of the last column is narrower */
    assert_close(cells.values[8], 24, 1e-6);
    heatmap_cells_free(&cells);
    values[7] = NAN;
    cells = prepared(values, 5, 5, HEATMAP_RANGE, false, 2);
    assert_true(isnan(cells.values[1])); /* never averaged away */
    assert_false(isnan(cells.values[0]));
}

static heatmap_scale scale_of(const float *values, size_t count, heatmap_kind kind, heatmap_choice choice)
{
    FREED_BY(heatmap_cells_free) heatmap_cells cells = prepared(values, 1, count, kind, false, 1);
    const heatmap_cells *panels[] = {&cells};
    heatmap_scale scale;
    heatmap_choose(&scale, kind, &choice, panels, 1);
    return scale;
}

TEST(scales)
{
    static const float values[] = {-3, 1, 2, NAN};
    static const struct {
        const float *values;
        size_t count;
        heatmap_kind kind;
        heatmap_choice choice;
        double low, high;
        size_t below, above;
    } cases[] = {{values, 4, HEATMAP_SIGNED, {0}, -3, 3, 0, 0},
                 {values, 4, HEATMAP_RANGE, {0}, -3, 2, 0, 0},
                 {values + 1, 2, HEATMAP_POSITIVE, {0}, 0, 2, 0, 0},
                 {values, 4, HEATMAP_SIGNED, {.policy = HEATMAP_FIXED, .low = -1, .high = 1.5}, -1, 1.5, 1, 1},
                 {values, 4, HEATMAP_LOG, {0}, 1, 2, 0, 0}}; /* -3 cannot be shown */
    heatmap_scale scale;
    FOR_ROWS(i, cases) {
        scale = scale_of(cases[i].values, cases[i].count, cases[i].kind, cases[i].choice);
        assert_close(scale.low, cases[i].low, 1e-6);
        assert_close(scale.high, cases[i].high, 1e-6);
        if (cases[i].choice.policy != HEATMAP_FIXED) continue;
        assert_int_equal(scale.below, cases[i].below);
        assert_int_equal(scale.above, cases[i].above);
    }
    scale = scale_of(values + 3, 1, HEATMAP_POSITIVE, (heatmap_choice){0}); /* nothing finite */
    assert_true(scale.low < scale.high);
    const float same[] = {5, 5, 5};
    scale = scale_of(same, 3, HEATMAP_RANGE, (heatmap_choice){0});
    assert_true(scale.low < 5 && scale.high > 5);
    const float nothing[] = {0, 0}; /* an entropy, say: no colour is spent on less than nothing */
    scale = scale_of(nothing, 2, HEATMAP_RANGE, (heatmap_choice){0});
    assert_true(scale.low == 0 && scale.high > 0);
    scale = scale_of(same, 3, HEATMAP_LOG, (heatmap_choice){0});
    assert_true(scale.low < 5 && scale.high > 5 && scale.low > 0);

    float many[1000];
    for (size_t i = 0; i < 1000; i++) many[i] = (float)i / 1000 * (i % 2 ? 1 : -1);
    many[7] = 50;
    many[8] = -60;
    scale = scale_of(many, 1000, HEATMAP_SIGNED, (heatmap_choice){.policy = HEATMAP_ROBUST, .percentile = 99});
    assert_true(fabs(scale.high - 0.992) < 0.002 && scale.low == -scale.high);
    assert_int_equal(scale.below + scale.above, 9); /* the two far ones and 7 of the largest */
    float sparse[1000] = {[3] = 0.7f};              /* the percentile is 0: the extremes stay */
    scale = scale_of(sparse, 1000, HEATMAP_POSITIVE, (heatmap_choice){.policy = HEATMAP_ROBUST, .percentile = 99});
    assert_close(scale.high, 0.7f, 1e-6);
}

TEST(positions)
{
    heatmap_scale lopsided = {.low = -1, .high = 4};
    assert_close(heatmap_position(&lopsided, true, 0), 0.5, 1e-6); /* zero stays in the middle of a diverging map */
    assert_close(heatmap_position(&lopsided, true, 4), 1, 1e-6);
    assert_close(heatmap_position(&lopsided, true, -7), 0.375, 1e-6);
    assert_close(heatmap_position(&lopsided, false, 1.5), 0.5, 1e-6);
    heatmap_scale decades = {.low = 1, .high = 100, .logarithmic = true};
    assert_close(heatmap_position(&decades, false, 10), 0.5, 1e-6);
}

/* --------------------------------------------------------------------------------------------------------- golden */

static const figure_label words[] = {
    {"[CLS]", true}, {"one", false}, {"\xE6\xBC\xA2\xE5\xAD\x97", false}, {"[SEP]", true}};
static const float small[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.4f, 0.3f, 0.2f, 0.1f, 0.7f, 0.1f, 0.1f, 0.1f};

TEST(attention_golden)
{
    static const char *const rows[] = {"layer 0, head 1", "layer 2, head 3"};
    static const size_t boundary[] = {2};
    static const attention_mark marks[] = {{2, 1}};
    const attention_panel panels[] = {{small, 4, "c2c", HEATMAP_SIGNED},
                                      {small, 4, "probabilities", HEATMAP_POSITIVE},
                                      {small, 4, "c2p", HEATMAP_SIGNED},
                                      {NULL, 0, NULL, HEATMAP_POSITIVE}};
    attention_figure spec = {.style = {.width_mm = 85, .title = "A title"},
                             .panels = panels,
                             .grid_rows = 2,
                             .grid_columns = 2,
                             .row_titles = rows,
                             .panel_letters = true,
                             .queries = 3,
                             .keys = 4,
                             .query_labels = words,
                             .key_labels = words,
                             .boundaries = boundary,
                             .boundary_count = 1,
                             .marks = marks,
                             .mark_count = 1,
                             .units = {"logit / sqrt(3d)", "probability", NULL}};
    golden_trace_check("attention", attention_layout, &spec);
    spec.scales[HEATMAP_SIGNED].policy = HEATMAP_PANEL;
    spec.scales[HEATMAP_POSITIVE] = (heatmap_choice){.policy = HEATMAP_FIXED, .low = 0, .high = 0.5};
    spec.annotate = true;
    spec.keep_row_mean = true;
    golden_trace_check("attention_own_scales", attention_layout, &spec);
}

/* A word in place of the cells: the other panel's scale is its own, and the place has a pale frame. */
TEST(words_golden)
{
    float values[] = {1, 2, 3, -4}, large[] = {1000, 0, 0, 0};
    const attention_panel panels[] = {{values, 2, "c2c", HEATMAP_SIGNED}, {large, 2, "c2p", HEATMAP_SIGNED}};
    const char *const words[] = {NULL, "identical"};
    const attention_figure spec = {.style = {.width_mm = 120},
                                   .panels = panels,
                                   .grid_rows = 1,
                                   .grid_columns = 2,
                                   .words = words,
                                   .queries = 2,
                                   .keys = 2,
                                   .keep_row_mean = true};
    golden_trace_check("attention_words", attention_layout, &spec);
}

TEST(unusual_cells_golden)
{
    float values[] = {1, NAN, NAN, 2, INFINITY, INFINITY, 3, 4, INFINITY, INFINITY, 0, -1};
    const attention_panel panel = {values, 4, NULL, HEATMAP_LOG};
    attention_figure spec = {.style = {.width_mm = 60},
                             .panels = &panel,
                             .grid_rows = 1,
                             .grid_columns = 1,
                             .queries = 3,
                             .keys = 4,
                             .query_axis = "layers",
                             .key_axis = "n",
                             .cell_aspect = 0.5};
    golden_trace_check("unusual_cells", attention_layout, &spec);
}

TEST(head_grid_golden)
{
    const float *maps[] = {small, small, NULL, small, small, small};
    const size_t layers[] = {3, 11};
    head_grid spec = {.style = {.width_mm = 85, .dpi = 150},
                      .maps = maps,
                      .layers = 2,
                      .heads = 3,
                      .queries = 3,
                      .keys = 4,
                      .stride = 4,
                      .layer_numbers = layers,
                      .kind = HEATMAP_POSITIVE};
    golden_trace_check("head_grid", head_grid_layout, &spec);
}

TEST(line_view_golden)
{
    const float values[] = {0.1f, -0.2f, 0.9f, 0.01f, -0.5f, NAN};
    const line_view_panel panel = {values, 2, "c2p"};
    line_view spec = {.style = {.width_mm = 85},
                      .panels = &panel,
                      .panel_count = 1,
                      .queries = 3,
                      .keys = 2,
                      .kind = HEATMAP_SIGNED,
                      .keep_row_mean = true,
                      .query_labels = words,
                      .key_labels = words};
    golden_trace_check("line_view", line_view_layout, &spec);
}

/* ----------------------------------------------------------------------------------------------------------- axes */

/* How many texts of the figure are that one, which stands in quotes in a trace. */
static size_t count_texts(const attention_figure *spec, const char *text)
{
    figure_notes notes;
    size_t count = 0;
    FREED_BY(free_memory) char *trace = golden_trace_of(attention_layout, spec, &notes, DEBERTA_OK);
    for (const char *at = trace; (at = strstr(at, text)); at++) count++;
    return count;
}

/* Both axes count as the caller does: a stretch at round numbers, what has gaps by the numbers of its cells. */
TEST(axes_count_as_the_caller_does)
{
    enum { N = 40 };
    static float values[N * N];
    size_t stretch[N], gaps[N];
    for (size_t k = 0; k < N; k++) {
        stretch[k] = 1203 + k;
        gaps[k] = 7 + 3 * k;
    }
    const attention_panel panels[] = {{values, N, "a", HEATMAP_POSITIVE}, {values, N, "b", HEATMAP_POSITIVE}};
    attention_figure spec = {.panels = panels,
                             .grid_rows = 1,
                             .grid_columns = 2,
                             .queries = N,
                             .keys = N,
                             .query_numbers = stretch,
                             .key_numbers = stretch};
    assert_int_equal(count_texts(&spec, "\"1220\""), 3); /* one for the queries, one under each panel */
    assert_int_equal(count_texts(&spec, "\"20\""), 0);
    spec.query_numbers = spec.key_numbers = gaps;
    assert_int_equal(count_texts(&spec, "\"67\""), 3); /* of cell 20 */
    assert_int_equal(count_texts(&spec, "\"20\""), 0);
    spec.queries = spec.keys = 1;
    assert_int_equal(count_texts(&spec, "\"7\""), 3);
    spec.query_numbers = spec.key_numbers = NULL;
    assert_int_equal(count_texts(&spec, "\"7\""), 0);
}

/* All numbers of a figure or, where one has no room, none of them. */
TEST(numbers_stand_where_all_fit)
{
    static const float wide[] = {0.1f, 0.2f, 0.3f, 12345, 0.4f, 0.3f, 0.2f, 0.1f, 0.7f, 0.1f, 0.1f, 0.1f};
    attention_panel panels[] = {{small, 4, "p", HEATMAP_POSITIVE}, {small, 4, "p", HEATMAP_POSITIVE}};
    attention_figure spec = {.style = {.width_mm = 85},
                             .panels = panels,
                             .grid_rows = 1,
                             .grid_columns = 2,
                             .columns = 2,
                             .queries = 3,
                             .keys = 4,
                             .annotate_if_room = true};
    assert_int_equal(count_texts(&spec, "\".70\""), 2);
    spec.style.width_mm = 30;
    assert_int_equal(count_texts(&spec, "\".70\""), 0);
    spec.style.width_mm = 50;
    panels[1] = (attention_panel){wide, 4, "p", HEATMAP_RANGE};
    assert_int_equal(count_texts(&spec, "\".70\""), 0);
}

/* --------------------------------------------------------------------------------------------------------- pixels */

typedef struct found_image {
    draw_rect rect;
    size_t rows, columns, wanted_rows, wanted_columns;
} found_image;

static void find_image(void *self, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    (void)rgb;
    found_image *found = self;
    if (rows != found->wanted_rows || columns != found->wanted_columns) return;
    found->rect = rect;
    found->rows = rows;
    found->columns = columns;
}

/* Level of the map that has this colour, or the number of levels. */
static size_t level_of(const uint8_t *rgb, const draw_colour *table, size_t levels)
{
    size_t i = 0;
    while (i < levels && !(table[i].r == rgb[0] && table[i].g == rgb[1] && table[i].b == rgb[2])) i++;
    return i;
}

enum { QUERIES = 5, KEYS = 7 };

/* Draws an asymmetric matrix into a PNG and compares every pixel inside every cell with the value: rows are queries
 * from the top, columns keys from the left. */
static void check_pixels(heatmap_kind kind, double width_mm)
{
    float values[QUERIES * KEYS];
    for (size_t i = 0; i < QUERIES; i++)
        for (size_t j = 0; j < KEYS; j++)
            values[i * KEYS + j] =
                (float)(0.013 * (double)(i * i * 7 + j * 3 + i * j * j) + (kind == HEATMAP_SIGNED ? -0.9 : 0));
    const attention_panel panel = {values, KEYS, "panel", kind};
    attention_figure spec = {.style = {.width_mm = width_mm},
                             .panels = &panel,
                             .grid_rows = 1,
                             .grid_columns = 1,
                             .queries = QUERIES,
                             .keys = KEYS};
    char path[64];
    snprintf(path, sizeof path, "/tmp/deberta-test-heatmap-%ld.png", (long)getpid());
    const char *paths[] = {path};
    assert_ok(figure_attention(&spec, paths, 1, NULL, NULL));

    FREED_BY(draw_cairo_ruler_free) draw_ruler ruler = {0};
    FREED_BY(draw_list_free) draw_list *list = NULL;
    figure_notes notes = {0};
    found_image found = {.wanted_rows = QUERIES, .wanted_columns = KEYS};
    draw_cairo_ruler_create(&ruler, figure_defaults(&spec.style).font);
    draw_list_create(&list, ruler);
    assert_ok(attention_layout(list, &spec, &notes, NULL));
    draw_replay(list, &(draw_methods){.image = find_image}, &found);
    assert_int_equal(found.rows, QUERIES);

    FREED_BY(buffer_free) buffer file = read_whole(path);
    FREED_BY(png_content_free) png_content png;
    assert_ok(png_decode(file.bytes, file.count, &png, NULL));
    draw_colour table[PALETTE_LEVELS_MAX];
    size_t levels = palette_table(palette_find(kind == HEATMAP_SIGNED ? "polar" : "blues"), table);
    double scale = 0, means[QUERIES] = {0}, per_mm = png.dpi / 25.4;
    for (size_t k = 0; k < QUERIES * KEYS; k++) means[k / KEYS] += kind == HEATMAP_SIGNED ? values[k] / KEYS : 0;
    for (size_t k = 0; k < QUERIES * KEYS; k++) scale = fmax(scale, fabs(values[k] - means[k / KEYS]));
    for (size_t i = 0; i < QUERIES; i++) {
        for (size_t j = 0; j < KEYS; j++) {
            double value = values[i * KEYS + j] - means[i];
            double expected =
                (kind == HEATMAP_SIGNED ? 0.5 + 0.5 * value / scale : value / scale) * (double)(levels - 1);
            double left = (found.rect.x + found.rect.width * (double)j / KEYS) * per_mm,
                   right = left + found.rect.width / KEYS * per_mm;
            double top = (found.rect.y + found.rect.height * (double)i / QUERIES) * per_mm,
                   bottom = top + found.rect.height / QUERIES * per_mm;
            for (size_t y = (size_t)top + 3; (double)y < bottom - 3; y++)
                for (size_t x = (size_t)left + 3; (double)x < right - 3; x++) {
                    size_t level = level_of(png.rgb + 3 * (y * png.columns + x), table, levels);
                    if (!(fabs((double)level - expected) <= 1))
                        fail_msg("query %zu key %zu: level %zu, expected %.2f", i, j, level, expected);
                }
        }
    }
    remove(path);
}

TEST(every_cell_has_the_colour_of_its_value)
{
    check_pixels(HEATMAP_POSITIVE, 85);
    check_pixels(HEATMAP_SIGNED, 85);
    check_pixels(HEATMAP_SIGNED, 61.3);
}

/* -------------------------------------------------------------------------------------------------- special inputs */

static figure_notes layout_notes(const attention_figure *spec, deberta_status expected)
{
    figure_notes notes;
    free(golden_trace_of(attention_layout, spec, &notes, expected));
    return notes;
}

TEST(any_length_is_drawn)
{
    static const size_t lengths[] = {1, 2, 3, 17, 150, 512, 4096};
    for (size_t k = 0; k < 7; k++) {
        size_t n = lengths[k];
        FREED_BY(free_memory) float *values = calloc(n, n * sizeof *values);
        assert_non_null(values);
        values[n * n - 1] = 1;
        const attention_panel panel = {values, n, "p", HEATMAP_POSITIVE};
        attention_figure spec = {
            .style = {.width_mm = 85}, .panels = &panel, .grid_rows = 1, .grid_columns = 1, .queries = n, .keys = n};
        figure_notes notes = layout_notes(&spec, DEBERTA_OK);
        assert_true(n < 4096 ? notes.pooled == 1 : notes.pooled == 5 || notes.pooled == 6);
        assert_true(notes.positions);
    }
}

/* A matrix that is far wider than high: its rows keep their tokens, and only columns are pooled. */
TEST(wide_matrices_pool_columns_only)
{
    enum { ROWS = 3, COLUMNS = 8000 };
    FREED_BY(free_memory) float *values = calloc(ROWS * COLUMNS, sizeof *values);
    assert_non_null(values);
    const attention_panel panel = {values, COLUMNS, "strip", HEATMAP_SIGNED};
    const figure_label tokens[ROWS] = {{"a", false}, {"b", false}, {"c", false}};
    attention_figure spec = {.panels = &panel,
                             .grid_rows = 1,
                             .grid_columns = 1,
                             .queries = ROWS,
                             .keys = COLUMNS,
                             .query_labels = tokens,
                             .cell_aspect = 100};
    figure_notes notes = layout_notes(&spec, DEBERTA_OK);
    assert_false(notes.positions);
    assert_true(notes.pooled > 3 && notes.pooled_rows == 1);
    FREED_BY(byte_buffer_free) byte_buffer text = {0};
    figure_cell_notes(&notes, &text);
    assert_non_null(memmem(text.data, text.size_bytes, "mean of 1 ", 10));
}

TEST(wrong_wishes_are_refused)
{
    static const attention_mark outside[] = {{3, 0}};
    const attention_panel panels[] = {{small, 4, "p", HEATMAP_POSITIVE}, {small, 4, "p", HEATMAP_POSITIVE}};
    const attention_figure good = {.panels = panels, .grid_rows = 1, .grid_columns = 1, .queries = 3, .keys = 4};
    layout_notes(&good, DEBERTA_OK);
    attention_figure bad = good;
    bad.panels = NULL;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.queries = 0;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.palettes[HEATMAP_POSITIVE] = "jet";
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.marks = outside, bad.mark_count = 1;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.scales[HEATMAP_POSITIVE] = (heatmap_choice){.policy = HEATMAP_FIXED, .low = 1, .high = 1};
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.scales[HEATMAP_POSITIVE] = (heatmap_choice){.policy = HEATMAP_ROBUST, .percentile = 101};
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.style.width_mm = 5;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.style.font_size = 4.9;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.style.dpi = NAN;
    layout_notes(&bad, DEBERTA_E_ARGUMENT);
    bad = good, bad.style.width_mm = 30, bad.annotate = true, bad.grid_columns = 2, bad.columns = 2;
    layout_notes(&bad, DEBERTA_E_ARGUMENT); /* numbers do not fit */
    bad = good, bad.keys = 5;
    layout_notes(&bad, DEBERTA_E_ARGUMENT); /* rows of 4 values */
    static attention_panel many[2000];
    bad = good, bad.panels = many, bad.grid_rows = 2000;
    layout_notes(&bad, DEBERTA_E_ARGUMENT); /* metres of paper */
}
