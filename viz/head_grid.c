/* Draws thumbnails without tokens or axes, since at this size only the pattern counts. All share one scale, so that
 * patterns can be compared.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/head_grid.h"

#include <math.h>
#include <stdlib.h>

#include "output/scope.h"
#include "viz/colour_bar.h"
#include "viz/ticks.h"

static const double margin = 0.5, gap = 0.7, largest_thumbnail = 30;

typedef struct plan {
    const head_grid *spec;
    figure_style style;
    draw_font font, small;
    const palette *map;
    double left, top, width, height; /* place and size of the first thumbnail */
    size_t pool;
    bool coarse;          /* true: pooled for the pixels of a PNG */
    heatmap_cells *cells; /* [layers][heads] */
    heatmap_scale scale;
} plan;

static deberta_status check_grid(const head_grid *spec, deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(&spec->style, err));
    if (!spec->maps || spec->layers == 0 || spec->heads == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a head grid needs at least one layer and one head");
    if (spec->queries == 0 || spec->keys == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a head grid needs at least one query and one key");
    if (spec->stride < spec->keys)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the maps have rows of %zu values, but there are %zu keys", spec->stride,
                     spec->keys);
    if (heatmap_has_own_bars(spec->scale.policy))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a head grid has one colour scale, not one for each panel or row");
    DEBERTA_TRY(heatmap_check_choice(&spec->scale, spec->kind, err));
    if (spec->palette && !palette_find(spec->palette))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown palette '%s', expected one of %s", spec->palette,
                     palette_names());
    return DEBERTA_OK;
}

/* Writes a layer's or head's number in the model, of which only some may be shown. */
static void number_text(const size_t *numbers, size_t index, char text[TICK_TEXT_BYTES])
{
    tick_text((double)(numbers ? numbers[index] : index), 1, text);
}

/* Makes thumbnails as large as the width allows, in whole pixels, with the matrix pooled to whole pixels inside
 * them. */
static void head_grid_measure(const draw_list *list, plan *p)
{
    const head_grid *spec = p->spec;
    const double pixel = figure_grid_mm;
    double numbers = 0;
    for (size_t i = 0; i < spec->layers; i++) {
        char text[TICK_TEXT_BYTES];
        number_text(spec->layer_numbers, i, text);
        numbers = fmax(numbers, draw_measure(list, text, &p->small));
    }
    p->left = ceil((margin + draw_type_height(&p->font) + 1.2 + numbers + 1) / pixel) * pixel;
    double room = (p->style.width_mm - margin - p->left - gap * (double)(spec->heads - 1)) / (double)spec->heads;
    double pixels = floor(fmin(room, largest_thumbnail) / pixel);
    p->pool = (size_t)fmax(1, ceil((double)spec->keys / fmax(1, pixels)));
    double drawn = ceil((double)spec->keys / (double)p->pool), each = floor(pixels / drawn);
    /* even cells where that costs little width */
    if (each >= 1 && each * drawn >= 0.85 * pixels) pixels = each * drawn;
    p->width = pixels * pixel;
    const size_t coarse = heatmap_pool(p->width / (double)spec->keys, draw_pixel(list));
    p->coarse = coarse > p->pool;
    if (p->coarse) p->pool = coarse;
    p->height = p->width * (double)spec->queries / (double)spec->keys;
    p->style.width_mm = figure_page_width(&p->style, p->left + (double)spec->heads * (p->width + gap) - gap + margin);
}

/* Prepares the cells of all heads, then chooses their common scale. */
static void head_grid_prepare(plan *p, figure_notes *notes)
{
    const head_grid *spec = p->spec;
    size_t count = spec->layers * spec->heads, present = 0;
    const heatmap_cells **together = memory_take(count, sizeof *together);
    for (size_t i = 0; i < count; i++) {
        if (!spec->maps[i]) continue;
        heatmap_matrix matrix = {spec->maps[i], spec->queries, spec->keys, spec->stride};
        heatmap_prepare(&p->cells[i], &matrix, spec->kind, !spec->keep_row_mean, p->pool, p->pool);
        notes->not_a_number += p->cells[i].not_a_number;
        notes->infinite += p->cells[i].infinite;
        notes->not_positive += p->cells[i].not_positive;
        together[present++] = &p->cells[i];
    }
    heatmap_choose(&p->scale, spec->kind, &spec->scale, together, present);
    notes->clipped = p->scale.below + p->scale.above;
    notes->pooled = p->pool;
    notes->coarse = p->coarse;
    free(together);
}

static void draw_thumbnails(draw_list *list, const plan *p)
{
    const draw_pen frame = {{120, 120, 120, 255}, 0.3, DRAW_SOLID};
    for (size_t layer = 0; layer < p->spec->layers; layer++) {
        double y = p->top + (double)layer * (p->height + gap);
        char text[TICK_TEXT_BYTES];
        number_text(p->spec->layer_numbers, layer, text);
        draw_text(list, text, (draw_place){p->left - 1, y + p->height / 2, DRAW_END, DRAW_CENTRE, 0}, &p->small);
        for (size_t head = 0; head < p->spec->heads; head++) {
            const heatmap_cells *cells = &p->cells[layer * p->spec->heads + head];
            draw_rect rect = {p->left + (double)head * (p->width + gap), y, p->width, p->height};
            if (!cells->values) continue;
            heatmap_draw(list, rect, cells, p->spec->queries, p->spec->keys, &p->scale, p->map);
            draw_box(list, rect, (draw_colour){0}, &frame);
        }
    }
    for (size_t head = 0; head < p->spec->heads; head++) {
        char text[TICK_TEXT_BYTES];
        number_text(p->spec->head_numbers, head, text);
        double x = p->left + (double)head * (p->width + gap) + p->width / 2;
        draw_text(list, text, (draw_place){x, p->top - 0.9, DRAW_MIDDLE, DRAW_BASELINE, 0}, &p->small);
    }
}

/* Draws axis names around the grid, legend and notes below. Returns the y below everything. */
static double draw_frame(draw_list *list, const plan *p, const figure_notes *notes)
{
    double wide = (double)p->spec->heads * (p->width + gap) - gap,
           high = (double)p->spec->layers * (p->height + gap) - gap;
    draw_text_on_page(
        list, "head",
        (draw_place){p->left + wide / 2, p->top - draw_type_height(&p->small) - 1.3, DRAW_MIDDLE, DRAW_BASELINE, 0},
        &p->font, INFINITY, p->style.width_mm);
    draw_text(
        list, "layer",
        (draw_place){margin + 0.8 * draw_type_height(&p->font), p->top + high / 2, DRAW_MIDDLE, DRAW_BASELINE, 90},
        &p->font);
    char title[HEATMAP_UNIT_BYTES];
    heatmap_unit_text(p->spec->unit, p->spec->kind, p->spec->keep_row_mean, title);
    double y = p->top + high + 2.5, room = p->style.width_mm - margin - p->left;
    colour_legend legend = {.title = title,
                            .scale = &p->scale,
                            .map = p->map,
                            .font = p->font,
                            .small = p->small,
                            .width = fmin(80, room),
                            .room = room};
    colour_legend_draw(list, &legend, p->left, y);
    byte_buffer text = {0};
    byte_buffer_text(&text, "Rows of a thumbnail are queries, columns keys. ");
    figure_cell_notes(notes, &text);
    return figure_write_notes(list, &p->style, y + colour_legend_height(list, &legend), &text);
}

deberta_status head_grid_layout(draw_list *list, const void *grid, figure_notes *notes, deberta_error *err)
{
    const head_grid *spec = grid;
    DEBERTA_TRY(check_grid(spec, err));
    plan p = {.spec = spec, .style = figure_defaults(&spec->style)};
    p.font = figure_font(&p.style);
    p.small = figure_small_font(&p.style);
    p.map = palette_find(spec->palette ? spec->palette : spec->kind == HEATMAP_SIGNED ? "polar" : "blues");
    head_grid_measure(list, &p);
    if (p.width < 1.5)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%zu heads side by side leave no room in %g mm: fewer heads or a wider figure", spec->heads,
                     p.style.width_mm);
    p.cells = memory_take(spec->layers * spec->heads, sizeof *p.cells);
    head_grid_prepare(&p, notes);
    p.top = figure_title(list, &p.style) + draw_type_height(&p.font) + draw_type_height(&p.small) + 1;
    draw_thumbnails(list, &p);
    draw_set_page(list, p.style.width_mm, draw_frame(list, &p, notes) + margin);
    for (size_t i = 0; i < spec->layers * spec->heads; i++) heatmap_cells_free(&p.cells[i]);
    free(p.cells);
    return DEBERTA_OK;
}
