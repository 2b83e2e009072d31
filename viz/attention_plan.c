/* Left to right a line of panels is: row title (rotated), "query" (rotated), token labels, panels. Tokens stand beside
 * the leftmost panel and beneath the lowest one of each column only: panels share their axes.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/attention_plan.h"

#include <math.h>

#include "viz/ticks.h"

/* Lengths in mm. */
static const double widest_cell = 10, widest_annotated_cell = 15, tallest_figure = 250, smallest_panel = 12,
                    pleasant_panel = 24, tallest_page = 2000;

/* Stops at the longest that is shown: measuring thousands of tokens would cost more than the drawing. */
double attention_label_width(const draw_list *list, const figure_label *labels, size_t count, const draw_font *font)
{
    double widest = 0;
    for (size_t i = 0; i < count && widest < attention_longest_label; i++)
        widest = fmax(widest, draw_measure(list, labels[i].text, font));
    return fmin(widest, attention_longest_label);
}

double attention_number_width(const draw_list *list, const size_t *numbers, size_t count, const draw_font *font)
{
    char text[TICK_TEXT_BYTES];
    tick_text((double)(numbers ? numbers[count - 1] : count - 1), 1, text);
    return draw_measure(list, text, font);
}

/* Letters without a line of their own may touch: 0.92 of the type size keeps ascenders and descenders apart in
 * practice. */
static bool tokens_fit(double cell, double size) { return cell >= 0.92 * size * DRAW_MM_PER_PT; }

/* Whole pixels per cell where that costs less than 15 % of the width: even cells, no interference pattern in a PNG. */
static double even_cell(double room, size_t count, double pixel)
{
    double pixels = floor(room / pixel / (double)count);
    return pixels >= 1 && pixels * (double)count * pixel >= 0.85 * room ? pixels * pixel : room / (double)count;
}

double attention_plan_snap(const attention_plan *p, double mm) { return round(mm / p->pixel) * p->pixel; }

double attention_plan_axis_height(const attention_plan *p)
{
    return p->label_height + 2 + draw_type_height(&p->font) + 0.5;
}

static bool has_titles(const attention_figure *spec)
{
    bool any = spec->panel_letters;
    for (size_t i = 0; i < attention_panel_count(spec); i++) any |= spec->panels[i].title != NULL;
    return any;
}

bool attention_plan_shows_tokens(const attention_plan *p) { return p->tokens || p->key_tokens; }

/* Tokens need room beside rows and, unless they fit level, beside each other under columns. */
static bool labels_fit(const attention_plan *p)
{
    return (!p->tokens || tokens_fit(p->cell_height, p->label.size)) &&
           (!p->key_tokens || p->level || tokens_fit(p->cell, p->label.size));
}

/* Widths, from the left attention_margin to the right one, for `across` panels side by side with the labels that
 * p->tokens, p->key_tokens and p->label ask for. */
static void measure_width(const draw_list *list, attention_plan *p, size_t across)
{
    const attention_figure *spec = p->spec;
    double titles = spec->row_titles ? draw_type_height(&p->bold) + 1.2 : 0, axis = draw_type_height(&p->font) + 1.2;
    double labels = p->tokens ? attention_label_width(list, spec->query_labels, spec->queries, &p->label)
                              : attention_number_width(list, spec->query_numbers, spec->queries, &p->label) + 1;
    /* The last number under a panel reaches beyond it, towards its neighbour or the edge of the page. */
    double overhang = p->key_tokens ? 0 : attention_number_width(list, spec->key_numbers, spec->keys, &p->label) / 2;
    p->left = attention_plan_snap(p, attention_margin + titles + axis + labels + 1);
    p->right = attention_margin + (p->right_bar > 0 ? 0 : overhang);
    /* The first number reaches out too, unless it is a single 0. */
    p->gap_across = 2.5 + (spec->key_numbers ? 2 : 1) * overhang;
    double gaps = (double)(across - 1) * p->gap_across;
    p->room = (p->style.width_mm - p->right - p->left - gaps) / (double)across - p->right_bar;
    /* One or two tokens get larger cells: a panel is not smaller than its titles where there is room. */
    const bool annotated = spec->annotate || spec->annotate_if_room;
    double widest = fmax(annotated ? widest_annotated_cell : widest_cell, pleasant_panel / (double)spec->keys);
    p->cell = fmin(even_cell(p->room, spec->keys, p->pixel), widest);
    p->cell_height = p->cell * (spec->cell_aspect > 0 ? spec->cell_aspect : 1);
    p->level = p->key_tokens && attention_label_width(list, spec->key_labels, spec->keys, &p->label) + 1 <= p->cell;
    p->panel_width = p->cell * (double)spec->keys;
    if (across > 1) { /* what even cells left over widens the gaps */
        double spare = p->style.width_mm - p->right - p->left - (double)across * (p->panel_width + p->right_bar);
        p->gap_across = fmin(spare / (double)(across - 1), 8);
    }
}

static void measure_height(const draw_list *list, attention_plan *p)
{
    const attention_figure *spec = p->spec;
    bool turned = p->key_tokens && !p->level;
    p->panel_height = p->cell_height * (double)spec->queries;
    p->label_height =
        turned ? attention_label_width(list, spec->key_labels, spec->keys, &p->label) : draw_type_height(&p->label) + 1;
    p->title_height = has_titles(spec) ? draw_type_height(&p->bold) + 1.3 : 1;
    p->gap_down = 2.2;
    /* A line that is not full lets the tokens of the panel above hang into it; they end before the next row begins. */
    bool ragged = p->lines_per_row > 1 && spec->grid_columns % p->across;
    p->row_gap = ragged ? fmax(0, attention_plan_axis_height(p) - p->title_height - p->panel_height) : 0;
}

/* Labels that leave no room for cells: everything in one, and whoever checks the plan says so. */
static size_t pool_of(const attention_plan *p, double cell)
{
    double pooled = cell > 0 ? ceil(p->pixel / cell - 1e-9) : INFINITY;
    return cell >= p->pixel ? 1 : pooled < 1e9 ? (size_t)pooled : (size_t)1000000000;
}

/* The geometry for `across` panels side by side: tokens in full type if they fit, in small type, in the smallest one
 * where labels may shrink, or positions. */
static void measure(const draw_list *list, attention_plan *p, size_t across)
{
    const attention_figure *spec = p->spec;
    bool labelled = spec->query_labels || spec->key_labels, own_bars = false;
    for (size_t kind = 0; kind < HEATMAP_KINDS; kind++) own_bars |= spec->scales[kind].policy == HEATMAP_PANEL;
    p->across = across;
    p->lines_per_row = (spec->grid_columns + across - 1) / across;
    p->right_bar = own_bars ? 5 + draw_measure(list, DRAW_MINUS "0.00", &p->small) : 0;
    enum { FULL_TYPE, SMALL_TYPE, SMALLEST_TYPE, POSITIONS };
    for (int attempt = labelled ? FULL_TYPE : POSITIONS; attempt <= POSITIONS; attempt++) {
        if (attempt == SMALLEST_TYPE && !p->shrinks) continue;
        p->tokens = attempt < POSITIONS && spec->query_labels;
        p->key_tokens = attempt < POSITIONS && spec->key_labels;
        p->label = attempt == FULL_TYPE ? p->font : p->small;
        if (attempt == SMALLEST_TYPE) p->label.size = FIGURE_SMALLEST_TYPE;
        measure_width(list, p, across);
        if (attention_plan_shows_tokens(p) && labels_fit(p)) break;
    }
    measure_height(list, p);
    p->pool = pool_of(p, p->cell);
    p->row_pool = pool_of(p, p->cell_height);
}

/* From the first panel title to below the name of the key axis. */
static double panels_height(const attention_plan *p)
{
    double lines = (double)(p->spec->grid_rows * p->lines_per_row);
    return lines * (p->title_height + p->panel_height) + (lines - 1) * p->gap_down +
           (double)(p->spec->grid_rows - 1) * p->row_gap + attention_plan_axis_height(p);
}

/* Five panels as 4 + 1 look worse than as 3 + 2. */
static bool leaves_one_over(size_t panels, size_t across)
{
    return across < panels && panels % across == 1 && across > 2;
}

/* As many panels side by side as leave room for the tokens, smaller type only where no arrangement fits on a page
 * without or the columns were chosen; then positions, and as many as leave a pixel for every cell; if even that is too
 * much, the most compact arrangement. */
static void arrange(const draw_list *list, attention_plan *p)
{
    size_t most = p->spec->grid_columns;
    p->shrinks = p->spec->columns > 0;
    if (p->spec->columns) {
        measure(list, p, p->spec->columns < most ? p->spec->columns : most);
        return;
    }
    for (int pass = 0; pass < 2; pass++, p->shrinks = true)
        for (size_t across = most; across > 0; across--) {
            measure(list, p, across);
            if (attention_plan_shows_tokens(p) && !leaves_one_over(most, across) && p->room >= smallest_panel &&
                panels_height(p) < tallest_figure)
                return;
        }
    for (size_t across = most; across > 0; across--) {
        measure(list, p, across);
        if (p->pool == 1 && p->row_pool == 1 && !leaves_one_over(most, across) && p->room >= smallest_panel &&
            panels_height(p) < tallest_figure)
            return;
    }
    for (size_t across = most; across > 0; across--) {
        measure(list, p, across);
        if (p->room >= smallest_panel) return;
    }
}

deberta_status attention_plan_arrange(attention_plan *p, const draw_list *list, deberta_error *err)
{
    arrange(list, p);
    if (p->room < smallest_panel / 3)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu panels side by side leave no room in %g mm: fewer columns or a wider figure", p->across,
                     p->style.width_mm);
    if (panels_height(p) > tallest_page)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu panels would be %.0f mm high: fewer layers or heads, more columns, or a head grid",
                     attention_panel_count(p->spec), panels_height(p));
    return DEBERTA_OK;
}
