/* 0.01 mm is finer than any eye and coarser than any difference between compilers.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/draw_trace.h"

#include <string.h>

static bool starts_character(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

static double trace_width(void *self, const char *text, const draw_font *font)
{
    (void)self;
    size_t characters = 0;
    for (; *text; text++) characters += starts_character(*text);
    return 0.5 * font->size * DRAW_MM_PER_PT * (double)characters;
}

/* The same contract as the real ruler: whole characters, room for the ellipsis. The slack hides rounding of the sum. */
static size_t trace_fit(void *self, const char *text, const draw_font *font, double width)
{
    double step = 0.5 * font->size * DRAW_MM_PER_PT, room = width - trace_width(self, DRAW_ELLIPSIS, font);
    size_t kept = 0;
    for (size_t i = 0; text[i]; i++) {
        if (!starts_character(text[i])) continue;
        if (i > 0 && (room -= step) < -1e-9) break;
        kept = i;
    }
    return kept;
}

draw_ruler draw_trace_ruler(void)
{
    static const draw_ruler_methods methods = {trace_width, trace_fit};
    return (draw_ruler){&methods, NULL};
}

static void numbers(byte_buffer *out, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        byte_buffer_text(out, " ");
        byte_buffer_number(out, values[i], 2);
    }
}

static void colour(byte_buffer *out, const char *name, draw_colour value)
{
    if (value.a == 0) return;
    byte_buffer_format(out, " %s #%02x%02x%02x", name, value.r, value.g, value.b);
    if (value.a < 255) byte_buffer_format(out, "%02x", value.a);
}

/* Left out where nothing is drawn, so that a trace shows only what is there. */
static void style(byte_buffer *out, draw_colour fill, const draw_pen *pen)
{
    static const char *const dashes[] = {"", " dashed", " dotted", " dash-dot"};
    colour(out, "fill", fill);
    if (pen->colour.a && pen->width > 0) {
        colour(out, "pen", pen->colour);
        numbers(out, &pen->width, 1);
        byte_buffer_text(out, dashes[pen->dash]);
    }
    byte_buffer_text(out, "\n");
}

static void trace_box(void *self, draw_rect rect, draw_colour fill, const draw_pen *outline)
{
    byte_buffer_text(self, "box");
    numbers(self, (double[]){rect.x, rect.y, rect.width, rect.height}, 4);
    style(self, fill, outline);
}

static void trace_path(void *self, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
                       const draw_pen *pen)
{
    static const char *const shapes[] = {"path", "area", "segments"};
    byte_buffer_text(self, shapes[shape]);
    for (size_t i = 0; i < count; i++) numbers(self, (double[]){points[i].x, points[i].y}, 2);
    style(self, fill, pen);
}

static void trace_disc(void *self, draw_point centre, double radius, draw_colour fill, const draw_pen *outline)
{
    byte_buffer_text(self, "disc");
    numbers(self, (double[]){centre.x, centre.y, radius}, 3);
    style(self, fill, outline);
}

static void trace_image(void *self, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    byte_buffer_text(self, "image");
    numbers(self, (double[]){rect.x, rect.y, rect.width, rect.height}, 4);
    byte_buffer_format(self, " %zux%zu", rows, columns);
    if (rows * columns <= 64) {
        for (size_t i = 0; i < rows * columns; i++, rgb += 3)
            byte_buffer_format(self, "%s%02x%02x%02x", i % columns ? " " : " | ", rgb[0], rgb[1], rgb[2]);
    } else {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (size_t i = 0; i < rows * columns * 3; i++) hash = (hash ^ rgb[i]) * 0x100000001b3u;
        byte_buffer_format(self, " hash %016llx", (unsigned long long)hash);
    }
    byte_buffer_text(self, "\n");
}

static void trace_text(void *self, const char *text, draw_place place, const draw_font *font, double width)
{
    static const char *const along[] = {"start", "middle", "end"}, *const across[] = {"baseline", "centre", "cap"};
    byte_buffer_text(self, "text");
    numbers(self, (double[]){place.x, place.y}, 2);
    byte_buffer_format(self, " %s %s", along[place.along], across[place.across]);
    if (place.degrees != 0) numbers(self, &place.degrees, 1);
    byte_buffer_text(self, " size");
    numbers(self, &font->size, 1);
    byte_buffer_text(self, font->bold ? " bold" : "");
    colour(self, "colour", font->colour);
    byte_buffer_text(self, " width");
    numbers(self, &width, 1);
    byte_buffer_text(self, " \"");
    byte_buffer_text(self, text);
    byte_buffer_text(self, "\"\n");
}

static void trace_clip(void *self, draw_rect rect)
{
    byte_buffer_text(self, "clip");
    numbers(self, (double[]){rect.x, rect.y, rect.width, rect.height}, 4);
    byte_buffer_text(self, "\n");
}

static void trace_unclip(void *self) { byte_buffer_text(self, "unclip\n"); }

static void trace_group(void *self, const char *name)
{
    byte_buffer_text(self, "group \"");
    byte_buffer_text(self, name);
    byte_buffer_text(self, "\"\n");
}

static void trace_ungroup(void *self) { byte_buffer_text(self, "ungroup\n"); }

void draw_trace(const draw_list *list, byte_buffer *out)
{
    static const draw_methods methods = {
        .box = trace_box,
        .path = trace_path,
        .disc = trace_disc,
        .image = trace_image,
        .text = trace_text,
        .clip = trace_clip,
        .unclip = trace_unclip,
        .group = trace_group,
        .ungroup = trace_ungroup,
    };
    byte_buffer_text(out, "page");
    numbers(out, (double[]){draw_page_width(list), draw_page_height(list)}, 2);
    byte_buffer_text(out, "\n");
    draw_replay(list, &methods, out);
}
