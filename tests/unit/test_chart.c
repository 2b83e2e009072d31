/* Charts: ticks and numbers, layouts as golden traces, and what happens to points that cannot be drawn.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/golden_trace.h"
#include "viz/chart_columns.h"
#include "viz/chart_inside.h"
#include "viz/ticks.h"

#define MINUS "\xE2\x88\x92"

static void assert_ticks(tick_set ticks, const double *expected, size_t count)
{
    assert_int_equal(ticks.count, count);
    for (size_t i = 0; i < count; i++)
        if (!(fabs(ticks.at[i] - expected[i]) <= 1e-9 * fabs(expected[i]) + 1e-12))
            fail_msg("tick %zu at %g, expected %g", i, ticks.at[i], expected[i]);
}

TEST(round_ticks)
{
    assert_ticks(ticks_linear(0, 1, 6), (double[]){0, 0.2, 0.4, 0.6, 0.8, 1}, 6);
    assert_ticks(ticks_linear(-3.7, 3.7, 5), (double[]){-2, 0, 2}, 3);
    assert_ticks(ticks_linear(0.1, 0.3, 3), (double[]){0.1, 0.2, 0.3}, 3);
    assert_ticks(ticks_whole(0, 3, 10), (double[]){0, 1, 2, 3}, 4);
    assert_ticks(ticks_whole(1, 12, 6), (double[]){2, 4, 6, 8, 10, 12}, 6);
    assert_ticks(ticks_log(16, 4096, 2, 9), (double[]){16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, 9);
    assert_ticks(ticks_log(16, 4096, 2, 5), (double[]){16, 64, 256, 1024, 4096}, 5);
    assert_ticks(ticks_log(0.5, 200, 10, 4), (double[]){1, 10, 100}, 3);
    assert_ticks(ticks_log(1, 100, 10, 15), (double[]){1, 2, 5, 10, 20, 50, 100}, 7);
    assert_ticks(ticks_log(1.6, 57, 10, 6), (double[]){2, 5, 10, 20, 50}, 5);
    assert_ticks(ticks_log(0.2, 80, 10, 6), (double[]){0.3, 1, 3, 10, 30}, 5);
    assert_ticks(ticks_log(30, 60, 10, 4), (double[]){30, 40, 50, 60}, 4); /* no power of ten inside */
    assert_ticks(ticks_linear(-4.5, 4.5, 4), (double[]){-4, 0, 4}, 3);     /* not 0 alone */
    assert_ticks(ticks_linear(5.3, 9.6, 2), (double[]){6, 8}, 2);
    assert_ticks(ticks_whole(11, 19, 2), (double[]){12, 18}, 2);
    assert_ticks(ticks_between(-4.5, 4.5, 4), (double[]){0}, 1); /* the ends have numbers already */
    assert_int_equal(ticks_linear(0, 1e-300, 5).count > 1, 1);
    for (size_t most = 2; most < 200; most++) /* never more than asked for, never more than fit */
        for (double high = 1.1; high < 1e9; high *= 3.7) {
            assert_true(ticks_linear(1, high, most).count <= (most < TICKS_MAX ? most : TICKS_MAX));
            assert_true(ticks_linear(1, high, most).count >= 2);
            assert_true(ticks_log(1, high, 10, most).count <= TICKS_MAX);
        }
}

TEST(numbers_are_short)
{
    static const struct {
        double value, step;
        const char *text;
    } cases[] = {{0, 0, "0"},
                 {-0.0, 0.1, "0"},
                 {-0.04, 0.1, "0.0"},
                 {1, 0.5, "1.0"},
                 {-2, 1, MINUS "2"},
                 {0.25, 0, "0.25"},
                 {-3.7249, 0, MINUS "3.72"},
                 {2.50, 0, "2.5"},
                 {1234.5, 0, "1234"},
                 {100, 0, "100"},
                 {1e6, 0, "1e6"},
                 {2.5e-7, 0, "2.5e" MINUS "7"},
                 {999999, 1, "999999"},
                 {0.001, 0.001, "0.001"}};
    FOR_ROWS(i, cases) {
        char text[TICK_TEXT_BYTES];
        tick_text(cases[i].value, cases[i].step, text);
        assert_string_equal(text, cases[i].text);
    }
}

static const double lengths[] = {16, 32, 64, 128}, fast[] = {1, 2.1, 4.4, 10}, slow[] = {3, 6, 13, 30},
                    slow_low[] = {2.5, 5, 12, 28}, slow_high[] = {4, 7, 15, 33};

TEST(latency_golden)
{
    static const chart_rule rules[] = {{false, 20, "limit"}};
    const chart_series series[] = {
        {.name = "avx2", .x = lengths, .y = fast, .count = 4},
        {.name = "scalar", .x = lengths, .y = slow, .low = slow_low, .high = slow_high, .count = 4}};
    const chart_panel panel = {.x = {.label = "n", .scale = CHART_LOG2},
                               .y = {.label = "latency (ms)", .scale = CHART_LOG10},
                               .series = series,
                               .series_count = 2,
                               .rules = rules,
                               .rule_count = 1};
    const chart_figure spec = {.style = {.width_mm = 85, .title = "Latency"}, .panels = &panel, .panel_count = 1};
    golden_trace_check("latency", chart_layout, &spec);
}

TEST(bars_golden)
{
    static const figure_label keys[] = {{"[CLS]", true}, {"a", false}, {"b", false}};
    const double c2c[] = {1, -0.5, 0.25}, c2p[] = {0.5, -0.25, -1}, sum[] = {1.5, -0.75, -0.75};
    const chart_series series[] = {{.name = "c2c", .kind = CHART_BARS, .y = c2c, .count = 3},
                                   {.name = "c2p", .kind = CHART_BARS, .y = c2p, .count = 3},
                                   {.name = "sum", .kind = CHART_POINTS, .y = sum, .count = 3}};
    chart_panel panels[2] = {{.title = "stacked",
                              .x = {.scale = CHART_CATEGORIES, .categories = keys, .category_count = 3},
                              .series = series,
                              .series_count = 3,
                              .stacked = true}};
    panels[1] = panels[0];
    panels[1].title = "grouped";
    panels[1].stacked = false;
    const chart_figure spec = {.panels = panels, .panel_count = 2, .panel_letters = true};
    golden_trace_check("bars", chart_layout, &spec);
}

TEST(curves_golden)
{
    static const chart_rule rules[] = {{true, 0, "same token"}};
    const double r[] = {-100, -10, 0, 10, 100}, y[] = {0, 1, NAN, 1, 0}, low[] = {-1, 0, 1, 0, -1},
                 high[] = {1, 2, 3, 2, 1}, edges[] = {-50, 50};
    const chart_series series[] = {
        {.name = "c2p", .kind = CHART_CURVE, .x = r, .y = y, .low = low, .high = high, .count = 5},
        {.name = "band", .kind = CHART_BAND, .x = r, .low = low, .high = high, .count = 5},
        {.kind = CHART_POINTS, .x = r, .y = high, .count = 5}};
    const chart_panel panel = {.x = {.label = "distance", .scale = CHART_SIGNED_LOG},
                               .series = series,
                               .series_count = 3,
                               .rules = rules,
                               .rule_count = 1,
                               .edges = edges,
                               .edge_count = 2};
    const chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1, .panel_height = 30};
    golden_trace_check("curves", chart_layout, &spec);
}

/* Lays out a figure whose numbers are all finite in the trace; how long that is: where it is longer, more was drawn. */
static size_t lay_out(const chart_figure *spec, figure_notes *notes)
{
    FREED_BY(free_memory) char *trace = golden_trace_of(chart_layout, spec, notes, DEBERTA_OK);
    assert_null(strstr(trace, "nan"));
    assert_null(strstr(trace, "inf"));
    return strlen(trace);
}

TEST(points_that_cannot_be_drawn_are_counted)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 0, -3, NAN, INFINITY, 1000};
    const chart_series series = {.x = x, .y = y, .count = 6};
    chart_panel panel = {.y = {.scale = CHART_LOG10}, .series = &series, .series_count = 1};
    chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1};
    figure_notes notes;
    lay_out(&spec, &notes);
    assert_int_equal(notes.not_a_number, 4);
    panel.y = (chart_axis){.low = -1, .high = 10};
    lay_out(&spec, &notes);
    assert_int_equal(notes.not_a_number, 2);
    assert_int_equal(notes.clipped, 2); /* -3 and 1000 */
    panel.x = (chart_axis){.low = 1, .high = 4};
    lay_out(&spec, &notes);
    assert_int_equal(notes.clipped, 1); /* what lies beyond a chosen stretch of x is not missed */
}

/* One line with markers in a look, as text, to be freed. */
static char *trace_look(size_t look)
{
    const chart_series series = {.x = lengths, .y = fast, .count = 4, .look = look};
    const chart_panel panel = {.series = &series, .series_count = 1};
    const chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1};
    figure_notes notes;
    return golden_trace_of(chart_layout, &spec, &notes, DEBERTA_OK);
}

TEST(forty_series_look_different)
{
    enum { LOOKS = 40 };
    char *traces[LOOKS];
    for (size_t k = 0; k < LOOKS; k++) {
        traces[k] = trace_look(k + 1);
        for (size_t other = 0; other < k; other++)
            if (strcmp(traces[other], traces[k]) == 0) fail_msg("series %zu and %zu look alike", other, k);
    }
    for (size_t k = 0; k < LOOKS; k++) free(traces[k]);
}

/* Room around the data never crosses zero: what cannot be negative has no axis below it. */
TEST(axes_end_at_zero)
{
    static const struct {
        double values[2], low, high;
    } cases[] = {{{0.01, 1}, 0, 1.0396},        {{0, 1}, 0, 1.04},    {{-1, -0.01}, -1.0396, 0}, {{-1, 0}, -1.04, 0},
                 {{-0.01, 1}, -0.0504, 1.0404}, {{0.3, 0.3}, 0, 0.8}, {{0, 0}, 0, 0.5}};
    FREED_BY(draw_list_free) draw_list *list = NULL;
    const draw_font font = {6, {0}, false};
    draw_list_create(&list, draw_trace_ruler());
    FOR_ROWS(i, cases) {
        const chart_series series = {.y = cases[i].values, .count = 2};
        const chart_panel panel = {.series = &series, .series_count = 1};
        const chart_axis_map map = chart_axis_make(list, &panel, true, 40, &font);
        if (fabs(map.low - cases[i].low) > 1e-9 || fabs(map.high - cases[i].high) > 1e-9)
            fail_msg("%g and %g: axis from %g to %g", cases[i].values[0], cases[i].values[1], map.low, map.high);
    }
}

static bool has_tick(const tick_set *ticks, double value)
{
    for (size_t i = 0; i < ticks->count; i++)
        if (ticks->at[i] == value) return true;
    return false;
}

/* Fails unless an axis from `low` to `high` has two numbers that do not touch. */
static void assert_two_numbers(const draw_list *list, chart_scale scale, double low, double high, bool vertical,
                               double length, double size)
{
    const draw_font font = {size, {0}, false};
    const chart_axis axis = {.scale = scale, .low = low, .high = high};
    const chart_panel panel = {.x = axis, .y = axis};
    const chart_axis_map map = chart_axis_make(list, &panel, vertical, length, &font);
    const char *where = vertical ? "y" : "x";
    if (map.ticks.count < 2)
        fail_msg("scale %d, %s axis of %g mm from %g to %g: %zu numbers", scale, where, length, low, high,
                 map.ticks.count);
    for (size_t i = 0; i < map.ticks.count; i++) {
        const double value = map.ticks.at[i], at = chart_axis_fraction(&map, value) * length;
        if (scale == CHART_SIGNED_LOG && low == -high && !has_tick(&map.ticks, -value))
            fail_msg("%s axis of %g mm from %g to %g: %g without its opposite", where, length, low, high, value);
        for (size_t k = 0; k < i; k++) {
            char one[TICK_TEXT_BYTES], two[TICK_TEXT_BYTES];
            chart_axis_tick_text(&map, i, one);
            chart_axis_tick_text(&map, k, two);
            const double room = fabs(at - chart_axis_fraction(&map, map.ticks.at[k]) * length);
            if (room < (vertical ? draw_type_height(&font)
                                 : (draw_measure(list, one, &font) + draw_measure(list, two, &font)) / 2))
                fail_msg("%s axis of %g mm from %g to %g: %s touches %s", where, length, low, high, one, two);
        }
    }
}

/* One number alone, or none, shows no scale: however short an axis is, it has two. */
TEST(axes_have_two_numbers)
{
    static const chart_scale scales[] = {CHART_LINEAR, CHART_WHOLE, CHART_LOG10, CHART_LOG2, CHART_SIGNED_LOG};
    FREED_BY(draw_list_free) draw_list *list = NULL;
    draw_list_create(&list, draw_trace_ruler());
    FOR_ROWS(s, scales)
        for (double reach = 3.1; reach < 3000; reach *= 1.19)
            for (double length = 20; length < 90; length += 7)
                for (double size = 5; size < 10; size += 2) {
                    const bool log = chart_axis_is_log(&(chart_axis){.scale = scales[s]});
                    for (int vertical = 0; vertical <= 1; vertical++) {
                        assert_two_numbers(list, scales[s], log ? 1 / reach : -reach, reach, vertical, length, size);
                        assert_two_numbers(list, scales[s], log ? 0.7 : -reach / 3, reach, vertical, length, size);
                    }
                }
}

/* Where the titles of four panels begin: (x, y) each, and the page. */
static size_t title_places(const chart_figure *spec, double places[][2])
{
    figure_notes notes;
    size_t found = 0;
    FREED_BY(free_memory) char *trace = golden_trace_of(chart_layout, spec, &notes, DEBERTA_OK);
    for (const char *line = trace; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const size_t length = strcspn(line, "\n");
        if (length < 8 || strncmp(line + length - 7, "\"title\"", 7) != 0 || strncmp(line, "text ", 5) != 0) continue;
        assert_int_equal(sscanf(line, "text %lf %lf", &places[found][0], &places[found][1]), 2);
        found++;
    }
    return found;
}

/* No panel alone in the last of two lines, two beside each other in a column of a paper, and no title far above its
 * axes because the panel beside it has a legend. */
TEST(panels_stand_in_even_lines)
{
    static const char long_name[] = "a name that takes a line of its own";
    const double y[] = {1, 2, 3};
    const chart_series named[] = {{.name = long_name, .y = y, .count = 3}, {.name = long_name + 2, .y = y, .count = 3}},
                       lone = {.name = "one", .y = y, .count = 3};
    chart_panel panels[4];
    double at[8][2];
    for (size_t k = 0; k < 4; k++)
        panels[k] = (chart_panel){.title = "title", .series = k ? &lone : named, .series_count = k ? 1 : 2};
    const double widths[] = {174, 85};
    for (size_t w = 0; w < 2; w++) {
        const chart_figure spec = {.style = {.width_mm = widths[w]}, .panels = panels, .panel_count = 4};
        assert_int_equal(title_places(&spec, at), 4);
        assert_true(at[0][0] == at[2][0] && at[1][0] == at[3][0] && at[0][0] < at[1][0]);
        assert_true(at[0][1] < at[1][1] && at[2][1] == at[3][1] && at[1][1] < at[2][1]);
    }
}

/* Where the name of a horizontal rule at 1 is written above a line from (0, first) to (1, 1) and on to (2, last). */
static void name_place(double first, double last, double at[2])
{
    const double y[] = {first, 1, last};
    const chart_rule rule = {.at = 1, .name = "limit"};
    const chart_series series = {.kind = CHART_CURVE, .y = y, .count = 3};
    const chart_panel panel = {
        .y = {.low = 0, .high = 2}, .series = &series, .series_count = 1, .rules = &rule, .rule_count = 1};
    const chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1};
    figure_notes notes;
    FREED_BY(free_memory) char *trace = golden_trace_of(chart_layout, &spec, &notes, DEBERTA_OK);
    char *name = strstr(trace, "\"limit\"");
    assert_non_null(name);
    while (name > trace && name[-1] != '\n') name--;
    assert_int_equal(sscanf(name, "text %lf %lf", &at[0], &at[1]), 2);
}

TEST(lines_do_not_strike_through_the_names_of_rules)
{
    double free_place[2], right[2], below[2];
    name_place(0.2, 0.2, free_place);
    name_place(1.1, 0.2, right);
    name_place(1.1, 1.1, below);
    assert_true(right[0] > free_place[0] + 20 && right[1] == free_place[1]);
    assert_true(below[0] == free_place[0] && below[1] > free_place[1]);
}

/* Nothing to be joined to: as a line it would not be seen. */
TEST(a_lone_point_of_a_curve_is_drawn)
{
    const double line[] = {0, 1, 2}, lone[] = {NAN, 1, NAN}, none[] = {NAN, NAN, NAN};
    chart_series series[] = {{.kind = CHART_CURVE, .y = line, .count = 3},
                             {.kind = CHART_CURVE, .y = none, .count = 3}};
    const chart_panel panel = {.series = series, .series_count = 2};
    const chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1};
    figure_notes notes;
    const size_t without = lay_out(&spec, &notes);
    series[1].y = lone;
    assert_true(lay_out(&spec, &notes) > without);
}

TEST(odd_data_still_make_a_chart)
{
    static const double one[] = {5}, none[] = {NAN}, zero[] = {0, 0, 0}, huge[] = {1e300, -1e300, 1e-300};
    static const struct {
        const double *y;
        size_t count;
    } cases[] = {{one, 1}, {none, 1}, {zero, 3}, {huge, 3}, {one, 0}};
    FOR_ROWS(i, cases) {
        for (chart_scale scale = CHART_LINEAR; scale <= CHART_SIGNED_LOG; scale++) {
            const chart_series series = {
                .name = "s", .kind = (chart_kind)(i % 3), .y = cases[i].y, .count = cases[i].count};
            const chart_panel panel = {
                .x = {.scale = scale}, .y = {.scale = scale}, .series = &series, .series_count = 1};
            const chart_figure spec = {.style = {.width_mm = 85}, .panels = &panel, .panel_count = 1};
            figure_notes notes;
            lay_out(&spec, &notes);
        }
    }
}

TEST(wrong_charts_are_refused)
{
    const chart_series empty = {.name = "s", .x = lengths, .count = 4}; /* no values */
    const chart_series good = {.x = lengths, .y = fast, .count = 4};
    const struct {
        chart_panel panel;
        size_t count;
        deberta_status status;
    } cases[] = {
        {{.series = &good, .series_count = 1}, 1, DEBERTA_OK},
        {{.series = &good, .series_count = 1}, 0, DEBERTA_E_ARGUMENT},
        {{.series = &empty, .series_count = 1}, 1, DEBERTA_E_ARGUMENT},
        {{.series = &good, .series_count = 1, .stacked = true}, 1, DEBERTA_E_ARGUMENT},
        {{.series = &good, .series_count = 1, .y = {.scale = CHART_LOG10, .high = 10}}, 1, DEBERTA_E_ARGUMENT},
        {{.series = &good, .series_count = 1, .y = {.high = INFINITY}}, 1, DEBERTA_E_ARGUMENT},
    };
    FOR_ROWS(i, cases) {
        const chart_figure spec = {.panels = &cases[i].panel, .panel_count = cases[i].count};
        figure_notes notes;
        free(golden_trace_of(chart_layout, &spec, &notes, cases[i].status));
    }
}

/* Arrays grow while points are added; what came to nothing is left out. */
TEST(columns_become_panels)
{
    FREED_BY(chart_columns_free) chart_columns c = {0};
    chart_add_panel(&c, (chart_panel){.title = "empty"});
    chart_add_series(&c, (chart_series){.name = "no points"});
    chart_add_panel(&c, (chart_panel){.title = chart_text(&c, "panel %d", 2), .x = {.scale = CHART_CATEGORIES}});
    chart_add_series(&c, (chart_series){.name = "points", .kind = CHART_LINE});
    for (int k = 0; k < 1000; k++) chart_add_point(&c, k, 2 * k);
    chart_add_series(&c, (chart_series){.name = "dropped"});
    chart_add_point(&c, 1, 1);
    chart_drop_series(&c);
    chart_add_series(&c, (chart_series){.name = "spread", .kind = CHART_BAND});
    chart_add_spread(&c, 7, 0, -1, 1);
    chart_add_category(&c, "a");
    chart_add_rule(&c, (chart_rule){.at = 3});
    chart_nth_series(&c, 0)->name = "renamed";
    size_t count;
    const chart_panel *panels = chart_columns_panels(&c, &count);
    assert_int_equal(count, 1);
    assert_string_equal(panels->title, "panel 2");
    assert_int_equal(panels->series_count, 2);
    assert_string_equal(panels->series[0].name, "renamed");
    assert_int_equal(panels->series[0].count, 1000);
    assert_true(panels->series[0].x[999] == 999 && panels->series[0].y[999] == 1998 && !panels->series[0].low);
    assert_true(panels->series[1].count == 1 && panels->series[1].low[0] == -1 && panels->series[1].high[0] == 1);
    assert_true(panels->x.category_count == 1 && strcmp(panels->x.categories[0].text, "a") == 0);
    assert_true(panels->rule_count == 1 && panels->rules[0].at == 3);
}
