/* What a reader must be able to take for granted, for every kind of figure, several widths and real fonts: all text
 * lies on the page, no two texts overlap, and no type is smaller than 5 pt.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_HAVE_A_MAIN
#include "tests/unit/test.h"

#include <math.h>

#include "tests/unit/draw_trace.h"
#include "viz/attention_figure.h"
#include "viz/chart.h"
#include "viz/draw_cairo.h"
#include "viz/head_grid.h"
#include "viz/line_view.h"

enum { TEXTS_MAX = 4000 };

typedef struct text_box {
    double left, top, right, bottom;
    char start[40];
} text_box;

typedef struct collected {
    text_box *boxes;
    size_t count;
    double smallest_type;
} collected;

/* The box from the baseline to the height of capitals, a little narrower than the advance width; of a label that is
 * turned, whose neighbours are close, from the top of an l to the foot of a p, but where type is the smallest. */
static void collect_text(void *self, const char *text, draw_place place, const draw_font *font, double width)
{
    collected *all = self;
    double cap = draw_cap_height(font), from = place.along == DRAW_START    ? 0
                                               : place.along == DRAW_MIDDLE ? -width / 2
                                                                            : -width;
    double base = place.across == DRAW_BASELINE ? 0 : place.across == DRAW_CENTRE ? cap / 2 : cap;
    text_box *box = &all->boxes[all->count < TEXTS_MAX ? all->count++ : 0];
    if (place.degrees == 0)
        *box = (text_box){.left = place.x + from,
                          .right = place.x + from + width,
                          .top = place.y + base - cap,
                          .bottom = place.y + base};
    else /* 90: what was rightwards goes up */
        *box = (text_box){.left = place.x + base - cap,
                          .right = place.x + base,
                          .top = place.y - from - width,
                          .bottom = place.y - from};
    if (place.degrees != 0 && place.across == DRAW_CENTRE && font->size > FIGURE_SMALLEST_TYPE) {
        const double size = draw_type_height(font);
        box->left -= 0.766 * size - cap;
        box->right += 0.24 * size;
    }
    snprintf(box->start, sizeof box->start, "%s", text);
    all->smallest_type = fmin(all->smallest_type, font->size);
}

static void check(const char *name, figure_layout layout, const void *what, draw_ruler ruler)
{
    FREED_BY(draw_list_free) draw_list *list = NULL;
    figure_notes notes = {0};
    deberta_error err = {0};
    collected all = {calloc(TEXTS_MAX, sizeof *all.boxes), 0, 100};
    assert_non_null(all.boxes);
    draw_list_create(&list, ruler);
    if (layout(list, what, &notes, &err) != DEBERTA_OK) fail_msg("%s: %s", name, err.message);
    draw_replay(list, &(draw_methods){.text = collect_text}, &all);
    assert_in_range(all.count, 1, TEXTS_MAX - 1);
    if (all.smallest_type < FIGURE_SMALLEST_TYPE) fail_msg("%s: type of %g pt", name, all.smallest_type);
    for (size_t i = 0; i < all.count; i++) {
        const text_box *a = &all.boxes[i];
        if (a->left < 0 || a->top < 0 || a->right > draw_page_width(list) || a->bottom > draw_page_height(list))
            fail_msg("%s: '%s' (%.1f %.1f %.1f %.1f) leaves the page of %.1f x %.1f mm", name, a->start, a->left,
                     a->top, a->right, a->bottom, draw_page_width(list), draw_page_height(list));
        for (size_t k = 0; k < i; k++) {
            const text_box *b = &all.boxes[k];
            bool apart = a->left >= b->right - 0.02 || b->left >= a->right - 0.02 || a->top >= b->bottom - 0.02 ||
                         b->top >= a->bottom - 0.02;
            if (!apart) fail_msg("%s: '%s' and '%s' overlap", name, a->start, b->start);
        }
    }
    free(all.boxes);
}

static draw_ruler rulers[2];

static int make_rulers(void **state)
{
    (void)state;
    rulers[0] = draw_trace_ruler();
    draw_cairo_ruler_create(&rulers[1], "Noto Sans, DejaVu Sans, sans-serif");
    return 0;
}

static int free_rulers(void **state)
{
    (void)state;
    draw_cairo_ruler_free(&rulers[1]);
    return 0;
}

static const double widths[] = {60, 85, 120, 174, 260};

static const figure_label words[] = {{"[CLS]", true},
                                     {"extraordinarily-long-token-that-has-sixty-characters-in-all-ok", false},
                                     {"\xE6\xBC\xA2\xE5\xAD\x97", false},
                                     {"\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7", false},
                                     {"a", false},
                                     {"", false},
                                     {"word", false},
                                     {"[SEP]", true},
                                     {"b", false},
                                     {"[SEP]", true}};

static float numbers[5 * 64 * 64];

TEST(attention_figures)
{
    static const char *const rows[] = {"layer 10, head 11", "layer 11, head 11", "layer 11, head 12"};
    static const char *const titles[] = {"content to content (c2c)", "content to position (c2p)",
                                         "position to content (p2c)", "sum", "probabilities"};
    static const size_t sizes[] = {1, 3, 10, 64};
    FOR_ROWS(i, numbers) numbers[i] = (float)sin((double)i * 1.7) * 123;
    attention_panel panels[15];
    for (size_t i = 0; i < 15; i++)
        panels[i] = (attention_panel){numbers + 64 * 64 * (i % 5), 64, titles[i % 5],
                                      i % 5 < 4 ? HEATMAP_SIGNED : HEATMAP_POSITIVE};
    for (size_t r = 0; r < 2; r++)
        for (size_t w = 0; w < 5; w++)
            for (size_t s = 0; s < 4; s++)
                for (size_t columns = 1; columns <= 5; columns++)
                    for (heatmap_policy policy = HEATMAP_SHARED; policy <= HEATMAP_ROBUST; policy++) {
                        attention_figure spec = {
                            .style = {.width_mm = widths[w],
                                      .title = "A title that is long enough to need two lines in a narrow figure",
                                      .note = "And a note."},
                            .panels = panels,
                            .grid_rows = columns == 5 ? 3 : 1,
                            .grid_columns = columns,
                            .row_titles = columns > 3 ? rows : NULL,
                            .panel_letters = columns % 2,
                            .queries = sizes[s],
                            .keys = sizes[s],
                            .query_labels = sizes[s] <= 10 ? words : NULL,
                            .key_labels = sizes[s] <= 10 ? words : NULL,
                            .scales = {{.policy = policy, .low = -5, .high = 5, .percentile = 90},
                                       {.policy = policy, .low = 0, .high = 1, .percentile = 90},
                                       {0},
                                       {0}},
                            .units = {"logit / sqrt(3d)", "probability"}};
                        char name[100];
                        snprintf(name, sizeof name, "ruler %zu, %g mm, n %zu, %zu columns, policy %d", r, widths[w],
                                 sizes[s], columns, (int)policy);
                        check(name, attention_layout, &spec, rulers[r]);
                    }
}

/* Numbers of a part of a long text, of every width and next to each other. */
TEST(numbered_figures)
{
    attention_panel panels[4];
    size_t stretch[64], gaps[64];
    for (size_t k = 0; k < 64; k++) {
        stretch[k] = 4071 + k;
        gaps[k] = 11 * k + 3961;
    }
    for (size_t i = 0; i < 4; i++) panels[i] = (attention_panel){numbers + 64 * 64 * i, 64, "panel", HEATMAP_SIGNED};
    for (size_t r = 0; r < 2; r++)
        for (size_t w = 0; w < 5; w++)
            for (size_t n = 1; n <= 64; n++)
                for (size_t columns = 1; columns <= 4; columns += 3) {
                    const size_t *counted = n % 2 ? stretch : gaps;
                    const attention_figure spec = {.style = {.width_mm = widths[w]},
                                                   .panels = panels,
                                                   .grid_rows = 1,
                                                   .grid_columns = columns,
                                                   .queries = n,
                                                   .keys = n,
                                                   .query_numbers = counted,
                                                   .key_numbers = counted};
                    char name[100];
                    snprintf(name, sizeof name, "numbers: ruler %zu, %g mm, n %zu, %zu panels", r, widths[w], n,
                             columns);
                    check(name, attention_layout, &spec, rulers[r]);
                }
}

TEST(other_matrices)
{
    const float *maps[24 * 16];
    for (size_t i = 0; i < 24 * 16; i++) maps[i] = numbers + i;
    const line_view_panel panels[] = {{numbers, 10, "c2c"}, {numbers, 10, "c2p"}};
    for (size_t r = 0; r < 2; r++)
        for (size_t w = 1; w < 5; w++) {
            head_grid grid = {.style = {.width_mm = widths[w], .title = "Heads"},
                              .maps = maps,
                              .layers = 24,
                              .heads = 16,
                              .queries = 20,
                              .keys = 20,
                              .stride = 20,
                              .scale = {.policy = HEATMAP_ROBUST, .percentile = 90}};
            check("head grid", head_grid_layout, &grid, rulers[r]);
            line_view view = {.style = {.width_mm = widths[w], .title = "Lines"},
                              .panels = panels,
                              .panel_count = widths[w] > 120 ? 2 : 1,
                              .queries = 10,
                              .keys = 10,
                              .kind = w % 2 ? HEATMAP_SIGNED : HEATMAP_POSITIVE,
                              .query_labels = words,
                              .key_labels = words};
            check("line view", line_view_layout, &view, rulers[r]);
        }
}

TEST(charts)
{
    static const chart_scale scales[] = {CHART_LINEAR, CHART_WHOLE,      CHART_LOG10,
                                         CHART_LOG2,   CHART_SIGNED_LOG, CHART_CATEGORIES};
    static const double x[] = {1, 2, 5, 40, 333, 4096}, reach[] = {0.001, 1, 12345, 3e8};
    for (size_t r = 0; r < 2; r++)
        for (size_t w = 0; w < 5; w++)
            for (size_t s = 0; s < 6; s++)
                for (size_t k = 0; k < 4; k++)
                    for (size_t panels = 1; panels <= 3; panels += 2) {
                        double y[6];
                        for (size_t i = 0; i < 6; i++) y[i] = reach[k] * x[i] / 100;
                        const chart_series series[] = {
                            {.name = "deberta.c with AVX-512 and eight threads",
                             .x = s == 5 ? NULL : x,
                             .y = y,
                             .count = 6},
                            {.name = "ONNX Runtime", .x = s == 5 ? NULL : x, .y = x, .count = 6},
                            {.name = "measured", .kind = CHART_POINTS, .x = s == 5 ? NULL : x, .y = y, .count = 6}};
                        const chart_panel panel = {.title = "Latency against length of the input",
                                                   .series = series,
                                                   .series_count = 3,
                                                   .x = {.label = "sequence length n (tokens)",
                                                         .scale = scales[s],
                                                         .categories = words,
                                                         .category_count = 10},
                                                   .y = {.label = "latency (ms)", .scale = scales[s == 5 ? 0 : s]}};
                        const chart_panel all[3] = {
                            panel,
                            panel,
                            {.x = panel.x, .y = panel.y, .series = series + 1, .series_count = 1, .title = "Other"}};
                        const chart_figure spec = {.style = {.width_mm = widths[w], .title = "Title"},
                                                   .panels = all,
                                                   .panel_count = panels,
                                                   .panel_letters = panels > 1};
                        char name[100];
                        snprintf(name, sizeof name, "chart: ruler %zu, %g mm, scale %d, reach %g, %zu panels", r,
                                 widths[w], (int)scales[s], reach[k], panels);
                        check(name, chart_layout, &spec, rulers[r]);
                    }
}

int main(void) { return run_registered_tests(make_rulers, free_rulers); }
