/* Writes SVG. Numbers have three decimals (a thousandth of a point) in any locale; nothing depends on time or on
 * pointers, so the same drawing gives the same file.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/draw_svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/numbers.h"

enum { MOST_CELLS = 64 }; /* most cells on a side that are drawn one by one; larger matrices are an image */

typedef struct svg_writer {
    byte_buffer *out;
    size_t clips;
} svg_writer;

static void escaped(byte_buffer *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': byte_buffer_text(out, "&amp;"); break;
        case '<': byte_buffer_text(out, "&lt;"); break;
        case '>': byte_buffer_text(out, "&gt;"); break;
        case '"': byte_buffer_text(out, "&quot;"); break;
        default: byte_buffer_append(out, text, 1);
        }
    }
}

static void attribute(byte_buffer *out, const char *name, double value)
{
    byte_buffer_format(out, " %s=\"", name);
    byte_buffer_number(out, value, 3);
    byte_buffer_text(out, "\"");
}

static void length_attribute(byte_buffer *out, const char *name, double mm)
{
    attribute(out, name, mm / DRAW_MM_PER_PT);
}

static void rect_attributes(byte_buffer *out, draw_rect rect)
{
    length_attribute(out, "x", rect.x);
    length_attribute(out, "y", rect.y);
    length_attribute(out, "width", rect.width);
    length_attribute(out, "height", rect.height);
}

/* Writes a colour; "none" instead of a missing attribute, because the default fill of SVG is black. */
static void colour_attribute(byte_buffer *out, const char *name, draw_colour colour)
{
    if (colour.a == 0) {
        byte_buffer_format(out, " %s=\"none\"", name);
        return;
    }
    byte_buffer_format(out, " %s=\"#%02x%02x%02x\"", name, colour.r, colour.g, colour.b);
    if (colour.a < 255) {
        byte_buffer_format(out, " %s-opacity=\"", name);
        byte_buffer_number(out, colour.a / 255.0, 3);
        byte_buffer_text(out, "\"");
    }
}

static void style_attributes(byte_buffer *out, draw_colour fill, const draw_pen *pen)
{
    double lengths[4];
    colour_attribute(out, "fill", fill);
    if (pen->colour.a == 0 || !(pen->width > 0)) return;
    colour_attribute(out, "stroke", pen->colour);
    attribute(out, "stroke-width", pen->width);
    byte_buffer_text(out, " stroke-linejoin=\"round\"");
    const size_t count = draw_dash_lengths(pen->dash, lengths);
    if (!count) return;
    byte_buffer_text(out, pen->dash == DRAW_DASHED ? " stroke-dasharray=\""
                                                   : " stroke-linecap=\"round\" stroke-dasharray=\"");
    for (size_t i = 0; i < count; i++) {
        if (i) byte_buffer_text(out, " ");
        byte_buffer_number(out, lengths[i] * pen->width, 3);
    }
    byte_buffer_text(out, "\"");
}

static void svg_box(void *self, draw_rect rect, draw_colour fill, const draw_pen *outline)
{
    byte_buffer *out = ((svg_writer *)self)->out;
    byte_buffer_text(out, "<rect");
    rect_attributes(out, rect);
    style_attributes(out, fill, outline);
    byte_buffer_text(out, "/>\n");
}

/* With SEGMENTS every second point begins a new segment. */
static void svg_path(void *self, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
                     const draw_pen *pen)
{
    byte_buffer *out = ((svg_writer *)self)->out;
    byte_buffer_text(out, "<path d=\"");
    for (size_t i = 0; i < count; i++) {
        bool begins = i == 0 || (shape == DRAW_SEGMENTS && i % 2 == 0);
        byte_buffer_text(out, begins ? "M" : "L");
        byte_buffer_number(out, points[i].x / DRAW_MM_PER_PT, 3);
        byte_buffer_text(out, " ");
        byte_buffer_number(out, points[i].y / DRAW_MM_PER_PT, 3);
    }
    byte_buffer_text(out, shape == DRAW_CLOSED ? "Z\"" : "\"");
    style_attributes(out, fill, pen);
    byte_buffer_text(out, "/>\n");
}

static void svg_disc(void *self, draw_point centre, double radius, draw_colour fill, const draw_pen *outline)
{
    byte_buffer *out = ((svg_writer *)self)->out;
    byte_buffer_text(out, "<circle");
    length_attribute(out, "cx", centre.x);
    length_attribute(out, "cy", centre.y);
    length_attribute(out, "r", radius);
    style_attributes(out, fill, outline);
    byte_buffer_text(out, "/>\n");
}

/* Writes cells as rectangles of paths, one for neighbours of one colour. Viewers that smooth images, librsvg among
 * them, draw these sharply. */
static void svg_cells(byte_buffer *out, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    byte_buffer_text(out, "<g shape-rendering=\"crispEdges\" transform=\"translate(");
    byte_buffer_number(out, rect.x / DRAW_MM_PER_PT, 3);
    byte_buffer_text(out, " ");
    byte_buffer_number(out, rect.y / DRAW_MM_PER_PT, 3);
    byte_buffer_text(out, ") scale(");
    byte_buffer_number(out, rect.width / DRAW_MM_PER_PT / (double)columns, 6);
    byte_buffer_text(out, " ");
    byte_buffer_number(out, rect.height / DRAW_MM_PER_PT / (double)rows, 6);
    byte_buffer_text(out, ")\">\n");
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0, end; j < columns; j = end) {
            const uint8_t *cell = rgb + 3 * (i * columns + j);
            for (end = j + 1; end < columns && memcmp(cell, rgb + 3 * (i * columns + end), 3) == 0;) end++;
            byte_buffer_format(out, "<path d=\"M%zu %zuh%zuv1h-%zuz\" fill=\"#%02x%02x%02x\"/>\n", j, i, end - j,
                               end - j, cell[0], cell[1], cell[2]);
        }
    byte_buffer_text(out, "</g>\n");
}

/* Writes one pixel for each cell; "pixelated" keeps viewers from smoothing it, and older ones understand
 * optimizeSpeed. */
static void svg_image(void *self, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    svg_writer *writer = self;
    byte_buffer png = {0};
    if (rows <= MOST_CELLS && columns <= MOST_CELLS) {
        svg_cells(writer->out, rect, rgb, rows, columns);
        return;
    }
    png_encode(rgb, rows, columns, 0, NULL, 0, &png);
    byte_buffer_text(writer->out, "<image");
    rect_attributes(writer->out, rect);
    byte_buffer_text(writer->out, " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" "
                                  "style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64,");
    byte_buffer_base64(writer->out, png.data, png.size_bytes);
    byte_buffer_text(writer->out, "\"/>\n");
    byte_buffer_free(&png);
}

/* Returns true if the first letter with a direction belongs to a script written from right to left (Hebrew, Arabic
 * and relatives). */
static bool reads_leftwards(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z')) return false;
        if (*at >= 0xD6 && *at <= 0xDF) return true;                   /* U+0590-07FF */
        if (*at == 0xE0 && at[1] >= 0xA0 && at[1] < 0xA4) return true; /* U+0800-08FF */
        if (*at == 0xEF && ((at[1] == 0xAC && at[2] >= 0x9D) || (at[1] >= 0xAD && at[1] <= 0xB7)))
            return true;                                                                   /* FB1D-FDFF */
        if (*at == 0xEF && (at[1] == 0xB9 || at[1] == 0xBA || at[1] == 0xBB)) return true; /* U+FE40-FEFF */
        if (*at >= 0xC3 && *at < 0xE2) return false;
        if (*at >= 0xE3 && *at < 0xEE) return false;
    }
    return false;
}

/* Writes a text with textLength, which makes a replacement font as wide as the measured one, so that labels stay in
 * place. */
static void svg_text(void *self, const char *text, draw_place place, const draw_font *font, double width)
{
    byte_buffer *out = ((svg_writer *)self)->out;
    const double down = draw_baseline(&place, font);
    bool leftwards = reads_leftwards(text);
    draw_anchor along = place.along;
    if (leftwards && along != DRAW_MIDDLE) along = along == DRAW_START ? DRAW_END : DRAW_START;
    byte_buffer_text(out, "<text");
    if (place.degrees != 0) {
        byte_buffer_text(out, " transform=\"translate(");
        byte_buffer_number(out, place.x / DRAW_MM_PER_PT, 3);
        byte_buffer_text(out, " ");
        byte_buffer_number(out, place.y / DRAW_MM_PER_PT, 3);
        byte_buffer_text(out, ") rotate(");
        byte_buffer_number(out, -place.degrees, 3);
        byte_buffer_text(out, ")\"");
        length_attribute(out, "y", down);
    } else {
        length_attribute(out, "x", place.x);
        length_attribute(out, "y", place.y + down);
    }
    attribute(out, "font-size", font->size);
    if (font->bold) byte_buffer_text(out, " font-weight=\"bold\"");
    colour_attribute(out, "fill", font->colour);
    if (along != DRAW_START) byte_buffer_format(out, " text-anchor=\"%s\"", along == DRAW_MIDDLE ? "middle" : "end");
    if (leftwards) byte_buffer_text(out, " direction=\"rtl\" unicode-bidi=\"embed\"");
    if (width > 0) {
        length_attribute(out, "textLength", width);
        byte_buffer_text(out, " lengthAdjust=\"spacingAndGlyphs\"");
    }
    byte_buffer_text(out, ">");
    escaped(out, text);
    byte_buffer_text(out, "</text>\n");
}

/* Two figures may be on one page, so ids begin with the hash of their figure. It is known at the end; until then
 * there are as many zeros. Texts cannot contain this sequence, because their quotes are escaped. */
#define UNKNOWN_HASH "0000000000000000"
#define CLIP_ID      "<clipPath id=\"clip-"
#define CLIP_USE     "<g clip-path=\"url(#clip-"

static void write_hash(byte_buffer *out, size_t first, const char *before, const char *hash)
{
    const size_t skip = strlen(before), digits = sizeof UNKNOWN_HASH - 1;
    unsigned char *at = out->data + first, *end = out->data + out->size_bytes;
    while ((at = memmem(at, (size_t)(end - at), before, skip))) {
        memcpy(at + skip, hash, digits);
        at += skip + digits;
    }
}

static void name_clips(byte_buffer *out, size_t first)
{
    char hash[sizeof UNKNOWN_HASH];
    snprintf(hash, sizeof hash, "%016" PRIx64,
             hash_bytes(hash_of_nothing, (const char *)out->data + first, out->size_bytes - first));
    write_hash(out, first, CLIP_ID, hash);
    write_hash(out, first, CLIP_USE, hash);
}

/* Opens a group for every clip; unclip closes it. */
static void svg_clip(void *self, draw_rect rect)
{
    svg_writer *writer = self;
    byte_buffer_format(writer->out, CLIP_ID UNKNOWN_HASH "-%zu\"><rect", writer->clips);
    rect_attributes(writer->out, rect);
    byte_buffer_format(writer->out, "/></clipPath>" CLIP_USE UNKNOWN_HASH "-%zu)\">\n", writer->clips++);
}

static void svg_end_group(void *self) { byte_buffer_text(((svg_writer *)self)->out, "</g>\n"); }

static void svg_group(void *self, const char *name)
{
    byte_buffer *out = ((svg_writer *)self)->out;
    byte_buffer_text(out, "<g aria-label=\"");
    escaped(out, name);
    byte_buffer_text(out, "\">\n");
}

/* Writes the head: the size in mm for print, coordinates in points for editing. */
static void svg_head(byte_buffer *out, const draw_list *list, const char *families, const char *title,
                     const provenance_entry *entries, size_t entry_count)
{
    double width = draw_page_width(list), height = draw_page_height(list);
    byte_buffer_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                          "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" width=\"");
    byte_buffer_number(out, width, 3);
    byte_buffer_text(out, "mm\" height=\"");
    byte_buffer_number(out, height, 3);
    byte_buffer_text(out, "mm\" viewBox=\"0 0 ");
    byte_buffer_number(out, width / DRAW_MM_PER_PT, 3);
    byte_buffer_text(out, " ");
    byte_buffer_number(out, height / DRAW_MM_PER_PT, 3);
    byte_buffer_text(out, "\" xml:space=\"preserve\" font-family=\"");
    escaped(out, families);
    byte_buffer_text(out, "\">\n");
    if (title && *title) {
        byte_buffer_text(out, "<title>");
        escaped(out, title);
        byte_buffer_text(out, "</title>\n");
    }
    if (entry_count == 0) return;
    byte_buffer_text(out, "<metadata>\n<provenance xmlns=\"urn:deberta.c:provenance\">\n");
    for (size_t i = 0; i < entry_count; i++) {
        byte_buffer_text(out, "<entry key=\"");
        escaped(out, entries[i].key);
        byte_buffer_text(out, "\">");
        escaped(out, entries[i].value);
        byte_buffer_text(out, "</entry>\n");
    }
    byte_buffer_text(out, "</provenance>\n</metadata>\n");
}

void draw_svg(const draw_list *list, const char *families, const char *title, const provenance_entry *entries,
              size_t entry_count, byte_buffer *out)
{
    static const draw_methods methods = {
        .box = svg_box,
        .path = svg_path,
        .disc = svg_disc,
        .image = svg_image,
        .text = svg_text,
        .clip = svg_clip,
        .unclip = svg_end_group,
        .group = svg_group,
        .ungroup = svg_end_group,
    };
    svg_writer writer = {.out = out};
    const size_t first = out->size_bytes;
    svg_head(out, list, families, title, entries, entry_count);
    byte_buffer_text(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"); /* white paper, as in a PNG */
    draw_replay(list, &methods, &writer);
    byte_buffer_text(out, "</svg>\n");
    if (writer.clips) name_clips(out, first);
}
