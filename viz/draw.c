/* Records the list of primitives in the order of their calls, each with its own copy of points, text or pixels.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "output/scope.h"

typedef enum item_kind {
    ITEM_BOX,
    ITEM_PATH,
    ITEM_DISC,
    ITEM_IMAGE,
    ITEM_TEXT,
    ITEM_CLIP,
    ITEM_UNCLIP,
    ITEM_GROUP,
    ITEM_UNGROUP
} item_kind;

/* A primitive. One wide record serves all kinds, as lists are short. */
typedef struct item {
    item_kind kind;
    draw_rect rect;
    draw_colour fill;
    draw_pen pen;
    draw_shape shape;
    draw_place place;
    draw_font font;
    double radius, width;
    size_t count, rows, columns;
    void *data; /* points, pixels or text, owned */
} item;

struct draw_list {
    draw_ruler ruler;
    item *items;
    size_t count, capacity;
    double width, height, origin_x, origin_y, pixel;
};

/* ------------------------------------------------------------------------------------------------------- the list */

void draw_list_create(draw_list **list, draw_ruler ruler)
{
    *list = memory_take(1, sizeof **list);
    (*list)->ruler = ruler;
}

void draw_list_free(draw_list **list)
{
    if (!*list) return;
    for (size_t i = 0; i < (*list)->count; i++) free((*list)->items[i].data);
    free((*list)->items);
    free(*list);
    *list = NULL;
}

void draw_set_page(draw_list *list, double width, double height)
{
    list->width = width;
    list->height = height;
}

double draw_page_width(const draw_list *list) { return list->width; }
double draw_page_height(const draw_list *list) { return list->height; }
void draw_set_pixel(draw_list *list, double mm) { list->pixel = mm; }
double draw_pixel(const draw_list *list) { return list->pixel; }

/* Moves a primitive. Points belong to paths; other kinds use rect or place, and moving both is harmless. */
static void move_right(item *it, double by)
{
    draw_point *points = it->kind == ITEM_PATH ? it->data : NULL;
    for (size_t k = 0; points && k < it->count; k++) points[k].x += by;
    it->rect.x += by;
    it->place.x += by;
}

void draw_widen_page(draw_list *list, double width)
{
    for (size_t i = 0; i < list->count; i++) move_right(&list->items[i], (width - list->width) / 2);
    list->width = width;
}

void draw_set_origin(draw_list *list, double x, double y)
{
    list->origin_x = x;
    list->origin_y = y;
}

/* Appends a primitive, which takes data over. */
static item *draw_append(draw_list *list, item_kind kind, void *data)
{
    list->items = memory_grown(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    item *new_item = &list->items[list->count++];
    *new_item = (item){.kind = kind, .data = data};
    return new_item;
}

static draw_rect moved(const draw_list *list, draw_rect rect)
{
    rect.x += list->origin_x;
    rect.y += list->origin_y;
    return rect;
}

/* ----------------------------------------------------------------------------------------------------- primitives */

void draw_box(draw_list *list, draw_rect rect, draw_colour fill, const draw_pen *outline)
{
    item *box = draw_append(list, ITEM_BOX, NULL);
    box->rect = moved(list, rect);
    box->fill = fill;
    if (outline) box->pen = *outline;
}

void draw_path(draw_list *list, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
               const draw_pen *pen)
{
    if (count == 0) return;
    draw_point *copy = memory_take(count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = (draw_point){points[i].x + list->origin_x, points[i].y + list->origin_y};
    item *path = draw_append(list, ITEM_PATH, copy);
    path->count = count;
    path->shape = shape;
    path->fill = fill;
    if (pen) path->pen = *pen;
}

void draw_line(draw_list *list, double x0, double y0, double x1, double y1, const draw_pen *pen)
{
    draw_path(list, (draw_point[]){{x0, y0}, {x1, y1}}, 2, DRAW_OPEN, (draw_colour){0}, pen);
}

void draw_disc(draw_list *list, double x, double y, double radius, draw_colour fill, const draw_pen *outline)
{
    item *disc = draw_append(list, ITEM_DISC, NULL);
    disc->rect = moved(list, (draw_rect){.x = x, .y = y});
    disc->radius = radius;
    disc->fill = fill;
    if (outline) disc->pen = *outline;
}

void draw_image(draw_list *list, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    size_t cells, bytes;
    if (rows == 0 || columns == 0) return;
    if (!size_multiply(rows, columns, &cells) || !size_multiply(cells, 3, &bytes)) memory_short();
    void *copy = memory_take(bytes, 1);
    memcpy(copy, rgb, bytes);
    item *image = draw_append(list, ITEM_IMAGE, copy);
    image->rect = moved(list, rect);
    image->rows = rows;
    image->columns = columns;
}

/* ----------------------------------------------------------------------------------------------------------- texts */

char *draw_clean_text(const char *text)
{
    size_t left = strlen(text);
    char *copy = memory_take(3 * left + 1, 1), *out = copy;
    while (left > 0) {
        uint32_t code;
        size_t bytes = utf8_decode(text, left, &code);
        if (code < 0x20 || code == 0x7F) { /* U+2400 + code, U+2421 for delete: pictures of controls */
            out += utf8_encode(out, 0x2400 + (code == 0x7F ? 0x21 : code));
        } else if (code == UTF8_INVALID || (code >= 0x80 && code < 0xA0) || (code & 0xFFFE) == 0xFFFE) {
            out += utf8_encode(out, 0xFFFD);
        } else {
            memcpy(out, text, bytes);
            out += bytes;
        }
        if (code == UTF8_INVALID) bytes = 1;
        text += bytes;
        left -= bytes;
    }
    *out = '\0';
    return copy;
}

/* Returns a cleaned copy; NULL for an empty text. */
static char *clean_copy(const char *text) { return text && *text ? draw_clean_text(text) : NULL; }

/* How far the sign of a lone blank is lifted, as a fraction of the type size. */
static const double lone_blank_lift = 0.3;

/* Appends the cleaned text and takes it over. */
static double append_text(draw_list *list, char *clean, draw_place place, const draw_font *font)
{
    double width = list->ruler.methods->width(list->ruler.self, clean, font);
    item *text = draw_append(list, ITEM_TEXT, clean);
    text->place = place;
    text->place.x += list->origin_x;
    text->place.y += list->origin_y;
    if (strcmp(clean, "\u2423") == 0) { /* the sign of a lone blank hangs below the line, into what stands there */
        const double lift = lone_blank_lift * font->size * DRAW_MM_PER_PT, turn = place.degrees * acos(-1) / 180;
        text->place.x -= lift * sin(turn);
        text->place.y -= lift * cos(turn);
    }
    text->font = *font;
    text->width = width;
    return width;
}

void draw_text(draw_list *list, const char *text, draw_place place, const draw_font *font)
{
    char *clean = clean_copy(text);
    if (clean) append_text(list, clean, place, font);
}

double draw_text_within(draw_list *list, const char *text, draw_place place, const draw_font *font, double width)
{
    char *clean = clean_copy(text);
    if (!clean) return 0;
    if (list->ruler.methods->width(list->ruler.self, clean, font) > width) {
        size_t kept = list->ruler.methods->fit(list->ruler.self, clean, font, width);
        clean = memory_resize(clean, kept + sizeof DRAW_ELLIPSIS, 1);
        memcpy(clean + kept, DRAW_ELLIPSIS, sizeof DRAW_ELLIPSIS);
    }
    return append_text(list, clean, place, font);
}

/* Returns the font with type so small that a text has room, but not below the smallest that can be read. */
static draw_font shrunk(const draw_list *list, const char *text, const draw_font *font, double width)
{
    draw_font small = *font;
    while (small.size - 0.5 >= DRAW_SMALLEST_TYPE && draw_measure(list, text, &small) > width) small.size -= 0.5;
    return small;
}

double draw_text_fitted(draw_list *list, const char *text, draw_place place, const draw_font *font, double width)
{
    const draw_font fitted = shrunk(list, text, font, width);
    return draw_text_within(list, text, place, &fitted, width);
}

void draw_text_on_page(draw_list *list, const char *text, draw_place place, const draw_font *font, double width,
                       double page_width)
{
    const double edge = 0.5, room = fmin(width, page_width - 2 * edge);
    const draw_font fitted = shrunk(list, text, font, room);
    const double half = fmin(draw_measure(list, text, &fitted), room) / 2;
    place.x = fmax(edge + half, fmin(place.x, page_width - edge - half));
    draw_text_within(list, text, place, &fitted, room);
}

/* Measures the cleaned text, which is what will be drawn; a ruler is never given broken UTF-8. */
double draw_measure(const draw_list *list, const char *text, const draw_font *font)
{
    char *clean = clean_copy(text);
    double width = clean ? list->ruler.methods->width(list->ruler.self, clean, font) : 0;
    free(clean);
    return width;
}

/* Returns the bytes of text that fit on the next line. A word wider than a whole line is broken where it fits. */
static size_t line_length(const draw_list *list, char *text, const draw_font *font, double width)
{
    size_t kept = 0, length = strlen(text);
    while (kept < length) {
        size_t next = kept + strspn(text + kept, " ");
        next += strcspn(text + next, " ");
        char after = text[next];
        text[next] = '\0';
        double wide = list->ruler.methods->width(list->ruler.self, text, font);
        text[next] = after;
        if (wide > width) break;
        kept = next;
    }
    if (kept == 0) kept = list->ruler.methods->fit(list->ruler.self, text, font, width);
    return kept ? kept : length;
}

/* Draws every line as a separate text, so that backends need not know about paragraphs. */
size_t draw_paragraph(draw_list *list, const char *text, draw_place place, const draw_font *font, double width,
                      double leading)
{
    char *clean = clean_copy(text);
    size_t lines = 0;
    for (char *rest = clean; rest && *rest; lines++) {
        size_t length = line_length(list, rest, font, width);
        char *line = memory_take(length + 1, 1);
        size_t shown = length;
        while (shown > 0 && rest[shown - 1] == ' ') shown--;
        memcpy(line, rest, shown);
        line[shown] = '\0';
        append_text(list, line, place, font);
        place.y += leading;
        rest += length;
        rest += strspn(rest, " ");
    }
    free(clean);
    return lines;
}

size_t draw_count_lines(const draw_list *list, const char *text, const draw_font *font, double width)
{
    char *clean = draw_clean_text(text);
    size_t lines = 0;
    for (char *rest = clean; rest && *rest; lines++) {
        rest += line_length(list, rest, font, width);
        rest += strspn(rest, " ");
    }
    free(clean);
    return lines;
}

void draw_hatch(draw_list *list, draw_rect rect, double spacing, const draw_pen *pen)
{
    /* Lines x + y = k * spacing of the page, so that hatches of neighbouring rectangles join. */
    double first = ceil((rect.x + rect.y) / spacing),
           last = floor((rect.x + rect.width + rect.y + rect.height) / spacing);
    if (last < first) return;
    size_t lines = (size_t)(last - first) + 1;
    draw_point *points = memory_take(2 * lines, sizeof *points);
    for (size_t i = 0; i < lines; i++) {
        double sum = (first + (double)i) * spacing;
        double left = fmax(rect.x, sum - rect.y - rect.height), right = fmin(rect.x + rect.width, sum - rect.y);
        points[2 * i] = (draw_point){left, sum - left};
        points[2 * i + 1] = (draw_point){right, sum - right};
    }
    draw_path(list, points, 2 * lines, DRAW_SEGMENTS, (draw_colour){0}, pen);
    free(points);
}

void draw_clip(draw_list *list, draw_rect rect) { draw_append(list, ITEM_CLIP, NULL)->rect = moved(list, rect); }

void draw_unclip(draw_list *list) { draw_append(list, ITEM_UNCLIP, NULL); }

void draw_group(draw_list *list, const char *name)
{
    char *clean = clean_copy(name);
    if (clean) draw_append(list, ITEM_GROUP, clean);
}

void draw_ungroup(draw_list *list) { draw_append(list, ITEM_UNGROUP, NULL); }

double draw_type_height(const draw_font *font) { return font->size * DRAW_MM_PER_PT; }
double draw_cap_height(const draw_font *font) { return 0.714 * font->size * DRAW_MM_PER_PT; }

double draw_baseline(const draw_place *place, const draw_font *font)
{
    const double cap = draw_cap_height(font);
    return place->across == DRAW_BASELINE ? 0 : place->across == DRAW_CENTRE ? cap / 2 : cap;
}

size_t draw_dash_lengths(draw_dash dash, double lengths[4])
{
    static const double dashes[][4] = {
        [DRAW_SOLID] = {0}, [DRAW_DASHED] = {4, 2.5}, [DRAW_DOTTED] = {0.5, 2}, [DRAW_DASH_DOT] = {5, 2, 0.5, 2}};
    size_t count = 0;
    for (; count < 4 && dashes[dash][count] > 0; count++) lengths[count] = dashes[dash][count];
    return count;
}

/* ------------------------------------------------------------------------------------------------------- replaying */

void draw_replay(const draw_list *list, const draw_methods *methods, void *self)
{
    for (size_t i = 0; i < list->count; i++) {
        const item *it = &list->items[i];
        switch (it->kind) {
        case ITEM_BOX:
            if (methods->box) methods->box(self, it->rect, it->fill, &it->pen);
            break;
        case ITEM_PATH:
            if (methods->path) methods->path(self, it->data, it->count, it->shape, it->fill, &it->pen);
            break;
        case ITEM_DISC:
            if (methods->disc)
                methods->disc(self, (draw_point){it->rect.x, it->rect.y}, it->radius, it->fill, &it->pen);
            break;
        case ITEM_IMAGE:
            if (methods->image) methods->image(self, it->rect, it->data, it->rows, it->columns);
            break;
        case ITEM_TEXT:
            if (methods->text) methods->text(self, it->data, it->place, &it->font, it->width);
            break;
        case ITEM_CLIP:
            if (methods->clip) methods->clip(self, it->rect);
            break;
        case ITEM_UNCLIP:
            if (methods->unclip) methods->unclip(self);
            break;
        case ITEM_GROUP:
            if (methods->group) methods->group(self, it->data);
            break;
        case ITEM_UNGROUP:
            if (methods->ungroup) methods->ungroup(self);
            break;
        }
    }
}
