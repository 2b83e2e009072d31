/* Draws the axes at the left of the panels of an attention figure and below them: tokens or positions, and their
 * names.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "viz/attention_plan.h"
#include "viz/ticks.h"

static const draw_colour special_grey = {145, 145, 145, 255};

/* Draws tokens right-aligned against the panel. (x, y): upper left corner of the panel, here and below. */
static void draw_row_tokens(draw_list *list, const attention_plan *p, double x, double y)
{
    for (size_t i = 0; i < p->spec->queries; i++) {
        draw_font font = p->label;
        if (p->spec->query_labels[i].special) font.colour = special_grey;
        draw_place place = {x - 1, y + ((double)i + 0.5) * p->cell_height, DRAW_END, DRAW_CENTRE, 0};
        draw_text_within(list, p->spec->query_labels[i].text, place, &font, attention_longest_label);
    }
}

/* Draws tokens turned to read upwards with their ends at the panel, or level where they fit over their cells. */
static void draw_column_tokens(draw_list *list, const attention_plan *p, double x, double y)
{
    for (size_t j = 0; j < p->spec->keys; j++) {
        draw_font font = p->label;
        if (p->spec->key_labels[j].special) font.colour = special_grey;
        draw_place place = {x + ((double)j + 0.5) * p->cell, y + 1, DRAW_END, DRAW_CENTRE, 90};
        if (p->level) place = (draw_place){place.x, y + 1, DRAW_MIDDLE, DRAW_CAP, 0};
        draw_text_within(list, p->spec->key_labels[j].text, place, &font, attention_longest_label);
    }
}

/* Draws numbers at round steps, with small strokes, down the left side or along the lower one. Items counted one by
 * one get round numbers, others (words, or with some left out) the numbers of cells at regular steps. */
static void draw_positions(draw_list *list, const attention_plan *p, double x, double y, bool down)
{
    const draw_pen pen = {attention_ink, 0.4, DRAW_SOLID};
    const size_t *numbers = down ? p->spec->query_numbers : p->spec->key_numbers;
    const size_t count = down ? p->spec->queries : p->spec->keys, first = numbers ? numbers[0] : 0;
    const bool one_by_one = !numbers || numbers[count - 1] - first == count - 1;
    double cell = down ? p->cell_height : p->cell, begin = one_by_one ? (double)first : 0,
           size = down ? draw_type_height(&p->label) : attention_number_width(list, numbers, count, &p->label);
    size_t most = (size_t)fmax(2, cell * (double)count / (down ? 1.6 * size : size + 1.5));
    tick_set ticks = {.count = 1, .step = 1};
    ticks.at[0] = begin;
    if (count > 1) ticks = ticks_whole(begin, begin + (double)(count - 1), most);
    double before = -INFINITY;
    for (size_t i = 0; i < ticks.count; i++) {
        char text[TICK_TEXT_BYTES];
        const size_t place = (size_t)round(ticks.at[i] - begin);
        double at = ((double)place + 0.5) * cell;
        if (at - before < (down ? 1.1 * size : size + 0.4)) continue; /* the last two would be too close */
        before = at;
        tick_text((double)(numbers ? numbers[place] : place), 1, text);
        if (down) {
            draw_line(list, x - 0.7, y + at, x, y + at, &pen);
            draw_text(list, text, (draw_place){x - 1.2, y + at, DRAW_END, DRAW_CENTRE, 0}, &p->label);
        } else {
            draw_line(list, x + at, y, x + at, y + 0.7, &pen);
            draw_text(list, text, (draw_place){x + at, y + 1.3, DRAW_MIDDLE, DRAW_CAP, 0}, &p->label);
        }
    }
}

/* Returns the caller's name, else "query", or "query position" if the axis shows numbers and the room allows. */
static const char *axis_name(const draw_list *list, const attention_plan *p, const char *given, const char *of_tokens,
                             const char *of_positions, bool tokens, double room)
{
    if (given) return given;
    return !tokens && draw_measure(list, of_positions, &p->font) <= room ? of_positions : of_tokens;
}

/* Draws the axis of a line of panels, which have the same queries. */
void attention_draw_left_axis(draw_list *list, const attention_plan *p, double y)
{
    double middle = y + p->panel_height / 2, labels_left;
    if (p->tokens) {
        draw_row_tokens(list, p, p->left, y);
        labels_left = p->left - 1 - attention_label_width(list, p->spec->query_labels, p->spec->queries, &p->label);
    } else {
        draw_positions(list, p, p->left, y, true);
        labels_left = p->left - 2 - attention_number_width(list, p->spec->query_numbers, p->spec->queries, &p->label);
    }
    draw_place place = {labels_left - attention_plan_name_gap(p), middle, DRAW_MIDDLE, DRAW_BASELINE, 90};
    const char *name = axis_name(list, p, p->spec->query_axis, "query", "query position", p->tokens, p->panel_height);
    draw_text(list, name, place, &p->font);
}

void attention_draw_lower_axis(draw_list *list, const attention_plan *p, double x, double y)
{
    double bottom = y + p->panel_height;
    if (p->key_tokens)
        draw_column_tokens(list, p, x, bottom);
    else
        draw_positions(list, p, x, bottom, false);
    draw_place place = {x + p->panel_width / 2, bottom + p->label_height + 2, DRAW_MIDDLE, DRAW_CAP, 0};
    draw_text_on_page(list, axis_name(list, p, p->spec->key_axis, "key", "key position", p->key_tokens, p->panel_width),
                      place, &p->font, p->across > 1 ? p->panel_width + p->gap_across - 0.5 : INFINITY,
                      p->style.width_mm);
}
