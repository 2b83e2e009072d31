/* Arranges a line of panels from left to right: row title (rotated), "query" (rotated), token labels, panels. Panels
 * share their axes, so only the leftmost panel, and the lowest one of each column, have tokens. The title is above a
 * grid row that takes several lines, or if the width is scarce.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/attention_plan.h"

#include <math.h>
#include <string.h>

#include "viz/ticks.h"

/* Lengths in mm */
static const double widest_cell = 10, widest_annotated_cell = 15, smallest_panel = 10, pleasant_panel = 24,
                    tallest_page = 2000;
static const double tallest_panels = 209, tallest_without_bars = 218; /* bars and notes need some of a page's 240 */
static const double pleasant_panels = 150;
static const double least_side = 8;          /* shortest long side of a panel whose colours are readable */
static const double roomy_cell = 1.9;        /* labels of small type are readable in such a cell */
static const double default_type = 7;        /* in pt; beside larger type, labels and cells are larger */
static const double tallest_beside_bar = 45; /* height of panels that have a colour bar beside them */

/* Stops at the greatest length that is shown, since measuring thousands of tokens would cost more than the
 * drawing. */
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

/* Least distance of neighbouring labels, as a fraction of the type size; they may touch where one has a p beside the
 * other's l. */
static const double tight_letters = 0.92;

static bool tokens_fit(const attention_plan *p, double cell)
{
    return cell >= p->letters * p->label.size * DRAW_MM_PER_PT;
}

/* Returns whole pixels per cell where that costs less than 15 % of the width: even cells give no interference pattern
 * in a PNG. */
static double even_cell(double room, size_t count, double pixel)
{
    double pixels = floor(room / pixel / (double)count);
    return pixels >= 1 && pixels * (double)count * pixel >= 0.85 * room ? pixels * pixel : room / (double)count;
}

double attention_plan_snap(const attention_plan *p, double mm) { return round(mm / p->pixel) * p->pixel; }

bool attention_plan_has_bar(const attention_plan *p, heatmap_kind kind)
{
    return p->panels_of[kind] && !heatmap_has_own_bars(attention_policy(p->spec, kind));
}

/* Fills in bars_before for `across` panels side by side: a column has bars in all lines or in none. */
static void find_bar_columns(attention_plan *p, size_t across)
{
    const size_t columns = p->spec->grid_columns;
    for (size_t column = 0; column < across; column++) {
        bool any = false;
        for (size_t k = 0; k < attention_panel_count(p->spec) && !any; k++)
            any = k % columns % across == column && attention_has_own_bar(p->spec, k);
        p->bars_before[column + 1] = p->bars_before[column] + any;
    }
}

static size_t count_bars(const attention_plan *p)
{
    size_t bars = 0;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) bars += attention_plan_has_bar(p, kind);
    return bars;
}

double attention_bar_room(const attention_plan *p, size_t column)
{
    return p->bars_before[column + 1] > p->bars_before[column] ? p->right_bar : 0;
}

double attention_plan_x(const attention_plan *p, size_t column)
{
    return p->left + (double)column * (p->panel_width + p->gap_across) + (double)p->bars_before[column] * p->right_bar;
}

/* Return the distance from one line of a grid row to the next, and the height of a grid row without its lines. */
static double line_step(const attention_plan *p) { return p->title_height + p->panel_height + p->gap_down; }
static double row_extra(const attention_plan *p) { return p->header + p->row_gap; }

double attention_plan_y(const attention_plan *p, double top, size_t row, size_t line)
{
    return top + (double)(row * p->lines_per_row + line) * line_step(p) + (double)row * row_extra(p) + p->header +
           p->title_height;
}

double attention_plan_row_room(const attention_plan *p)
{
    return attention_plan_y(p, 0, 0, p->lines_per_row - 1) - attention_plan_y(p, 0, 0, 0) + p->panel_height +
           p->gap_down;
}

double attention_plan_name_gap(const attention_plan *p) { return 0.24 * p->label.size; }

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

/* Returns true if tokens have room beside rows and, unless they are level, beside each other below columns. */
static bool labels_fit(const attention_plan *p)
{
    return (!p->tokens || tokens_fit(p, p->cell_height)) && (!p->key_tokens || p->level || tokens_fit(p, p->cell));
}

/* Computes widths, from the left attention_margin to the right one, for `across` panels side by side with the labels
 * that p->tokens, p->key_tokens and p->label ask for. */
static void measure_width(const draw_list *list, attention_plan *p, size_t across)
{
    const attention_figure *spec = p->spec;
    double titles = spec->row_titles && !p->titles_above ? draw_type_height(&p->bold) + 1.2 : 0,
           axis = draw_type_height(&p->font) + attention_plan_name_gap(p);
    double labels = p->tokens ? attention_label_width(list, spec->query_labels, spec->queries, &p->label)
                              : attention_number_width(list, spec->query_numbers, spec->queries, &p->label) + 1;
    /* The last number below a panel extends beyond it, towards its neighbour or the edge of the page. */
    double overhang = p->key_tokens ? 0 : attention_number_width(list, spec->key_numbers, spec->keys, &p->label) / 2;
    p->left = attention_plan_snap(p, attention_margin + titles + axis + labels + 1);
    const double bars = (double)p->bars_before[across] * p->right_bar;
    p->right = attention_margin + (attention_bar_room(p, across - 1) > 0 ? 0 : overhang) + p->side_bar;
    /* The first number extends too, unless it is a single 0. */
    p->gap_across = 2.5 + (spec->key_numbers ? 2 : 1) * overhang;
    double gaps = (double)(across - 1) * p->gap_across;
    p->room = (p->style.width_mm - p->right - p->left - gaps - bars) / (double)across;
    /* One or two tokens get larger cells, so that a panel is not smaller than its titles where there is room. */
    double widest = fmax(spec->annotate ? widest_annotated_cell : widest_cell, pleasant_panel / (double)spec->keys);
    p->cell = fmin(even_cell(p->room, spec->keys, p->pixel), fmin(widest, p->largest_cell));
    p->cell_height = p->cell * (spec->cell_aspect > 0 ? spec->cell_aspect : 1);
    p->level = p->key_tokens && attention_label_width(list, spec->key_labels, spec->keys, &p->label) + 1 <= p->cell;
    p->panel_width = p->cell * (double)spec->keys;
    if (across > 1) { /* the remainder of whole-pixel cells widens the gaps */
        double spare = p->style.width_mm - p->right - p->left - bars - (double)across * p->panel_width;
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
    const bool headed = (spec->row_titles && p->titles_above) || attention_has_row_bars(spec);
    /* a rule separates several */
    p->header = headed ? draw_type_height(&p->bold) + (spec->grid_rows > 1 ? 2.2 : 1) : 0;
    p->row_gap = headed ? 2 : 0;
    const attention_row_bars bars = attention_plan_row_bars(p);
    p->bar_lines = attention_row_bars_lines(list, &bars);
    p->header += (double)p->bar_lines * attention_row_bars_height(&bars);
}

/* Returns true if a row title is longer than its row is high, and has to be above it. */
static bool titles_need_width(const draw_list *list, const attention_plan *p)
{
    bool longer = false;
    for (size_t row = 0; p->spec->row_titles && row < p->spec->grid_rows && !longer; row++)
        longer = p->spec->row_titles[row] &&
                 draw_measure(list, p->spec->row_titles[row], &p->bold) > attention_plan_row_room(p);
    return longer;
}

/* Computes the geometry for `across` panels side by side: tokens in full type if they fit, else in small type. If
 * labels may shrink, the largest type that fits is next, and the least type below the titles of the rows. Positions are
 * last. */
static void attention_plan_measure(const draw_list *list, attention_plan *p, size_t across)
{
    const attention_figure *spec = p->spec;
    const bool labelled = spec->query_labels || spec->key_labels;
    p->across = across;
    p->lines_per_row = (spec->grid_columns + across - 1) / across;
    p->right_bar = attention_own_gap + attention_own_bar + attention_own_stroke + p->bar_numbers + 0.5;
    find_bar_columns(p, across);
    const bool block = (p->lines_per_row > 1 && spec->grid_rows > 1) || attention_has_row_bars(spec);
    enum { FULL_TYPE, SMALL_TYPE, SMALLER_TYPE, TITLES_ABOVE, POSITIONS };
    for (int attempt = labelled ? FULL_TYPE : POSITIONS; attempt <= POSITIONS;) {
        p->titles_above = block || attempt == TITLES_ABOVE;
        p->tokens = attempt < POSITIONS && spec->query_labels;
        p->key_tokens = attempt < POSITIONS && spec->key_labels;
        if (attempt == SMALLER_TYPE)
            p->label.size = fmax(p->label.size - 1, p->least_type);
        else if (attempt != TITLES_ABOVE)
            p->label = attempt == FULL_TYPE ? p->font : p->small;
        measure_width(list, p, across);
        if (attention_plan_shows_tokens(p) && labels_fit(p)) break;
        if (attempt == SMALL_TYPE && !p->shrinks)
            attempt = POSITIONS;
        else if (attempt != SMALLER_TYPE || p->label.size <= p->least_type)
            attempt++;
    }
    measure_height(list, p);
    if (!p->titles_above && titles_need_width(list, p)) {
        p->titles_above = true;
        measure_width(list, p, across);
        measure_height(list, p);
    }
    /* If labels leave no room for cells, all tokens share one, and the check of the plan reports it. */
    p->pool = heatmap_pool(p->cell, p->pixel);
    p->row_pool = heatmap_pool(p->cell_height, p->pixel);
}

/* Returns the height from the first panel title to below the name of the key axis. */
static double panels_height(const attention_plan *p)
{
    return attention_plan_y(p, 0, p->spec->grid_rows - 1, p->lines_per_row - 1) + p->panel_height +
           attention_plan_axis_height(p);
}

static double tallest(const attention_plan *p)
{
    return attention_has_row_bars(p->spec) && count_bars(p) == 0 ? tallest_without_bars : tallest_panels;
}

/* Returns true if the last line has one panel only: five panels as 4 + 1 look worse than as 3 + 2. */
static bool leaves_one_over(size_t panels, size_t across)
{
    return across < panels && panels % across == 1 && across > 2;
}

static bool pleasant(const attention_plan *p)
{
    return !leaves_one_over(p->spec->grid_columns, p->across) && p->room >= smallest_panel &&
           panels_height(p) < tallest(p);
}

/* Returns the narrowest cell in which labels of this size (pt) and numbers fit, and whose panel is not too small to
 * read. */
static double least_cell(const draw_list *list, const attention_plan *p, double size)
{
    const attention_figure *spec = p->spec;
    const double line = p->letters * size * DRAW_MM_PER_PT;
    const double cells = fmax((double)spec->keys, (double)spec->queries * p->cell_height / p->cell);
    double least = fmax(p->key_tokens ? line : p->pixel, least_side / cells);
    if (p->tokens) least = fmax(least, line * p->cell / p->cell_height); /* beside rows the height counts */
    if (spec->annotate || spec->annotate_if_room)
        least = fmax(least, 1.05 * draw_measure(list, DRAW_MINUS "0.00", &p->small));
    return ceil(least / p->pixel) * p->pixel;
}

/* Shrinks cells if the panels would be higher than this, as far as labels of this size allow. */
static void limit_height(const draw_list *list, attention_plan *p, double highest, double size)
{
    const double height = panels_height(p), lines = (double)(p->spec->grid_rows * p->lines_per_row),
                 aspect = p->cell_height / p->cell;
    if (height <= highest) return;
    const double cell_height = p->cell_height - (height - highest) / (lines * (double)p->spec->queries),
                 cell = floor(cell_height / aspect / p->pixel) * p->pixel;
    p->largest_cell = fmin(p->cell, fmax(cell, least_cell(list, p, size)));
    attention_plan_measure(list, p, p->across);
}

/* Returns true if so many panels side by side have a pleasant size and show tokens. */
static bool pleases_with_tokens(const draw_list *list, attention_plan *p, size_t across)
{
    p->largest_cell = INFINITY;
    attention_plan_measure(list, p, across);
    if (p->shrinks && attention_plan_shows_tokens(p)) limit_height(list, p, tallest(p) - 1, p->least_type);
    return attention_plan_shows_tokens(p) && pleasant(p);
}

/* Tries fewer and fewer panels side by side, until the arrangement is pleasant. */
static bool arrange_with_tokens(const draw_list *list, attention_plan *p, size_t least)
{
    for (size_t across = p->spec->grid_columns; across >= least; across--)
        if (pleases_with_tokens(list, p, across)) return true;
    return false;
}

/* Arranges panels with positions, and at least a pixel for each cell: as many panels side by side as leave each of
 * them its pleasant width, or the widest that fit on a page. */
static bool arrange_with_positions(const draw_list *list, attention_plan *p)
{
    double widest = 0;
    size_t best = 0;
    for (size_t across = p->spec->grid_columns; across > 0 && widest < pleasant_panel; across--) {
        p->largest_cell = INFINITY;
        attention_plan_measure(list, p, across);
        limit_height(list, p, tallest(p) - 1, 0);
        if (p->pool > 1 || p->row_pool > 1 || !pleasant(p) || p->panel_width <= widest) continue;
        widest = p->panel_width;
        best = across;
    }
    if (best == 0) return false;
    p->largest_cell = INFINITY;
    attention_plan_measure(list, p, best);
    limit_height(list, p, tallest(p) - 1, 0);
    return true;
}

/* Arranges panels with labels in the largest type that leaves them room, point by point. */
static bool arrange_with_smaller_tokens(const draw_list *list, attention_plan *p)
{
    p->shrinks = true;
    p->least_type = p->small.size;
    bool done = false;
    do {
        p->least_type = fmax(p->least_type - 1, FIGURE_SMALLEST_TYPE);
        done = arrange_with_tokens(list, p, 1);
    } while (!done && p->least_type > FIGURE_SMALLEST_TYPE);
    return done;
}

/* Arranges as many panels side by side as leave room for the tokens. Smaller type is used only if no arrangement fits
 * on a page without it, or if type that is little smaller keeps the panels of each of several heads on one line, or all
 * of them in roomy cells. Positions come next, and the most compact arrangement is the last resort. */
static void arrange(const draw_list *list, attention_plan *p)
{
    const size_t most = p->spec->grid_columns;
    const double larger = fmax(1, p->style.font_size / default_type);
    p->shrinks = true;
    p->least_type = FIGURE_SMALLEST_TYPE;
    p->largest_cell = INFINITY;
    p->letters = DRAW_LETTERS;
    if (p->spec->columns) {
        attention_plan_measure(list, p, p->spec->columns < most ? p->spec->columns : most);
        if (attention_plan_shows_tokens(p)) return;
        p->letters = tight_letters;
        attention_plan_measure(list, p, p->across);
        return;
    }
    p->least_type *= larger;
    if (arrange_with_tokens(list, p, most) && (p->spec->grid_rows > 1 || p->cell >= larger * roomy_cell)) return;
    p->shrinks = false;
    if (arrange_with_tokens(list, p, 1) || arrange_with_smaller_tokens(list, p)) return;
    p->letters = tight_letters; /* labels that may touch are better than none */
    if (arrange_with_tokens(list, p, 1) || arrange_with_positions(list, p)) return;
    p->largest_cell = INFINITY;
    for (size_t across = most; across > 0; across--) {
        attention_plan_measure(list, p, across);
        if (p->room >= smallest_panel) return;
    }
}

static const double side_numbers = 1.5; /* distance in mm between bar and numbers */

heatmap_kind attention_plan_only_kind(const attention_plan *p)
{
    heatmap_kind kind = 0;
    while (!attention_plan_has_bar(p, kind)) kind++;
    return kind;
}

/* Writes the title of the bar in one line or two: "logit," and the part that was subtracted. */
size_t attention_plan_side_title(const attention_plan *p, char lines[2][HEATMAP_UNIT_BYTES])
{
    attention_unit(p->spec, attention_plan_only_kind(p), lines[0]);
    char *comma = strstr(lines[0], ", ");
    if (!comma) return 1;
    strcpy(lines[1], comma + 2);
    comma[1] = 0;
    return 2;
}

double attention_plan_leading(const attention_plan *p) { return 1.25 * draw_type_height(&p->font); }

/* Computes the width that the only colour bar takes beside the panels, and the height that it needs there. */
static void side_bar_size(const draw_list *list, const attention_plan *p, double *width, double *height)
{
    char lines[2][HEATMAP_UNIT_BYTES];
    const size_t count = attention_plan_side_title(p, lines);
    *width = attention_side_gap + attention_side_bar + side_numbers +
             draw_measure(list, DRAW_MINUS "0.000", &p->small) + (double)count * attention_plan_leading(p);
    *height = 20;
    for (size_t k = 0; k < count; k++) *height = fmax(*height, draw_measure(list, lines[k], &p->font));
}

/* Puts the only bar of a single low line of panels beside it, if tokens keep their type and its title has room. */
static void try_side_bar(const draw_list *list, attention_plan *p)
{
    const attention_plan below = *p;
    if (count_bars(p) != 1 || p->spec->grid_rows * p->lines_per_row > 1 || p->bars_before[p->across]) return;
    if (p->panel_height > tallest_beside_bar) return;
    double least;
    side_bar_size(list, p, &p->side_bar, &least);
    attention_plan_measure(list, p, p->across);
    const bool same_labels = p->tokens == below.tokens && p->key_tokens == below.key_tokens &&
                             p->label.size == below.label.size && p->titles_above == below.titles_above &&
                             p->pool == below.pool && p->row_pool == below.row_pool;
    if (!same_labels || p->room < smallest_panel || p->panel_height < least) *p = below;
}

deberta_status attention_plan_arrange(attention_plan *p, const draw_list *list, deberta_error *err)
{
    for (size_t i = 0; i < attention_panel_count(p->spec); i++)
        p->panels_of[p->spec->panels[i].kind] += attention_has_cells(p->spec, i);
    arrange(list, p);
    const bool chosen = p->spec->columns || !attention_plan_shows_tokens(p), /* high on purpose, or small enough */
        high = chosen && p->spec->grid_rows * p->lines_per_row > 2;
    limit_height(list, p, high ? tallest(p) : pleasant_panels, p->label.size);
    try_side_bar(list, p);
    if (p->room < smallest_panel / 3)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu panels side by side leave no room in %g mm: take a wider figure, or fewer columns with "
                     "--layout where there is that option",
                     p->across, p->style.width_mm);
    if (panels_height(p) > tallest_page)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu panels would be %.0f mm high: fewer layers or heads, more columns, or a head grid",
                     attention_panel_count(p->spec), panels_height(p));
    return DEBERTA_OK;
}
