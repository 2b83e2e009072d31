/* Renders by cairo and pango, which no other file uses. One replay serves pixels and PDF; only the surfaces differ.
 *
 * For the same bytes every time, hinting and subpixel rendering are off whatever the desktop's settings, glyph
 * positions are not rounded (so that text has the same width at every resolution), and a PDF gets no date.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/draw_cairo.h"

#include <cairo-pdf.h>
#include <cairo.h>
#include <hb-ot.h>
#include <math.h>
#include <pango/pangocairo.h>
#include <stdlib.h>
#include <string.h>

#include "output/scope.h"

/* --------------------------------------------------------------------------------------------------------- ruler */

typedef struct cairo_ruler {
    PangoFontMap *map;
    PangoContext *context;
    PangoLayout *layout; /* one layout for all texts, since measuring is frequent */
    GHashTable *widths;  /* widths of measured texts by font: ruler_width */
    char *families;
} cairo_ruler;

static bool is_installed(PangoFontMap *map, const char *name)
{
    PangoFontFamily **families;
    int count;
    bool found = g_ascii_strcasecmp(name, "sans-serif") == 0; /* the only generic name that Pango does not list */
    pango_font_map_list_families(map, &families, &count);
    for (int k = 0; k < count && !found; k++)
        found = g_ascii_strcasecmp(pango_font_family_get_name(families[k]), name) == 0;
    g_free(families);
    return found;
}

bool draw_cairo_has_font(const char *families)
{
    PangoFontMap *map = pango_cairo_font_map_new();
    gchar **names = g_strsplit(families, ",", -1);
    bool found = false;
    for (gchar **name = names; *name && !found; name++) found = is_installed(map, g_strstrip(*name));
    g_strfreev(names);
    g_object_unref(map);
    return found;
}

/* Sets text and font; sizes come out in points. */
static PangoLayoutLine *lay_out(cairo_ruler *ruler, const char *text, size_t length, const draw_font *font)
{
    PangoFontDescription *description = pango_font_description_new();
    pango_font_description_set_family_static(description, ruler->families);
    pango_font_description_set_weight(description, font->bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
    pango_font_description_set_absolute_size(description, font->size * PANGO_SCALE);
    pango_layout_set_font_description(ruler->layout, description);
    pango_font_description_free(description);
    pango_layout_set_text(ruler->layout, text, (int)length);
    return pango_layout_get_line_readonly(ruler->layout, 0);
}

/* Returns the width; Pango counts in 1/1024 of a point. */
static double line_width(PangoLayoutLine *line)
{
    PangoRectangle logical;
    pango_layout_line_get_extents(line, NULL, &logical);
    return (double)logical.width / PANGO_SCALE * DRAW_MM_PER_PT;
}

/* Returns the width of a text. A plan asks for the width of every label in each arrangement that it tries, so widths
 * are cached. */
static double ruler_width(void *self, const char *text, const draw_font *font)
{
    cairo_ruler *ruler = self;
    char *key = g_strdup_printf("%a %d %s", font->size, font->bold, text);
    const double *known = g_hash_table_lookup(ruler->widths, key);
    if (known) {
        g_free(key);
        return *known;
    }
    double *width = g_new(double, 1);
    *width = line_width(lay_out(ruler, text, strlen(text), font));
    g_hash_table_insert(ruler->widths, key, width);
    return *width;
}

/* Cuts only at cursor positions, so that no accent, conjunct or emoji sequence is split. */
static size_t ruler_fit(void *self, const char *text, const draw_font *font, double width)
{
    cairo_ruler *ruler = self;
    double room = width - ruler_width(self, DRAW_ELLIPSIS, font);
    lay_out(ruler, text, strlen(text), font);
    int stops = 0, kept = 0;
    PangoLogAttr *attributes = NULL;
    pango_layout_get_log_attrs(ruler->layout, &attributes, &stops);
    const char *at = text;
    for (int i = 0; i < stops && *at; i++, at = g_utf8_next_char(at)) {
        if (!attributes[i].is_cursor_position) continue;
        if (line_width(lay_out(ruler, text, (size_t)(at - text), font)) > room) break;
        kept = (int)(at - text);
    }
    g_free(attributes);
    return (size_t)kept;
}

void draw_cairo_ruler_create(draw_ruler *out, const char *families)
{
    static const draw_ruler_methods methods = {ruler_width, ruler_fit};
    cairo_ruler *ruler = memory_take(1, sizeof *ruler);
    ruler->families = memory_copy_text(families);
    /* A separate font map with 72 dots per inch, where one unit is one point, independent of the screen. */
    ruler->map = pango_cairo_font_map_new();
    pango_cairo_font_map_set_resolution(PANGO_CAIRO_FONT_MAP(ruler->map), 72);
    ruler->context = pango_font_map_create_context(ruler->map);
    pango_context_set_round_glyph_positions(ruler->context, FALSE);
    pango_context_set_language(ruler->context, pango_language_from_string("en"));
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    pango_cairo_context_set_font_options(ruler->context, options);
    cairo_font_options_destroy(options);
    ruler->layout = pango_layout_new(ruler->context);
    pango_layout_set_single_paragraph_mode(ruler->layout, TRUE);
    ruler->widths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    *out = (draw_ruler){&methods, ruler};
}

void draw_cairo_ruler_free(draw_ruler *out)
{
    cairo_ruler *ruler = out->self;
    if (!ruler) return;
    g_hash_table_unref(ruler->widths);
    g_object_unref(ruler->layout);
    g_object_unref(ruler->context);
    g_object_unref(ruler->map);
    free(ruler->families);
    free(ruler);
    *out = (draw_ruler){0};
}

/* -------------------------------------------------------------------------------------------------------- replay */

typedef struct canvas {
    cairo_t *cairo;
    cairo_ruler *ruler;
    bool vector;
    size_t missing;
} canvas;

static void set_colour(cairo_t *cairo, draw_colour colour)
{
    cairo_set_source_rgba(cairo, colour.r / 255.0, colour.g / 255.0, colour.b / 255.0, colour.a / 255.0);
}

/* Draws the fill, then the stroke over it, both from the same path. */
static void fill_and_stroke(cairo_t *cairo, draw_colour fill, const draw_pen *pen)
{
    if (fill.a) {
        set_colour(cairo, fill);
        cairo_fill_preserve(cairo);
    }
    if (pen->colour.a && pen->width > 0) {
        double unit = pen->width * DRAW_MM_PER_PT, lengths[4];
        const size_t count = draw_dash_lengths(pen->dash, lengths);
        for (size_t i = 0; i < count; i++) lengths[i] *= unit;
        set_colour(cairo, pen->colour);
        cairo_set_line_width(cairo, unit);
        cairo_set_dash(cairo, lengths, (int)count, 0);
        cairo_set_line_cap(cairo, pen->dash == DRAW_DOTTED || pen->dash == DRAW_DASH_DOT ? CAIRO_LINE_CAP_ROUND
                                                                                         : CAIRO_LINE_CAP_BUTT);
        cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
        cairo_stroke_preserve(cairo);
    }
    cairo_new_path(cairo);
}

static void canvas_box(void *self, draw_rect rect, draw_colour fill, const draw_pen *outline)
{
    canvas *on = self;
    cairo_rectangle(on->cairo, rect.x, rect.y, rect.width, rect.height);
    fill_and_stroke(on->cairo, fill, outline);
}

static void canvas_path(void *self, const draw_point *points, size_t count, draw_shape shape, draw_colour fill,
                        const draw_pen *pen)
{
    canvas *on = self;
    for (size_t i = 0; i < count; i++) {
        bool begins = i == 0 || (shape == DRAW_SEGMENTS && i % 2 == 0);
        (begins ? cairo_move_to : cairo_line_to)(on->cairo, points[i].x, points[i].y);
    }
    if (shape == DRAW_CLOSED) cairo_close_path(on->cairo);
    fill_and_stroke(on->cairo, fill, pen);
}

static void canvas_disc(void *self, draw_point centre, double radius, draw_colour fill, const draw_pen *outline)
{
    canvas *on = self;
    cairo_arc(on->cairo, centre.x, centre.y, radius, 0, 2 * 3.14159265358979323846);
    fill_and_stroke(on->cairo, fill, outline);
}

/* Draws one pixel for each cell by nearest neighbour, since a viewer must not blend cells. Layouts draw no cell that is
 * smaller than a pixel. */
static void canvas_image(void *self, draw_rect rect, const uint8_t *rgb, size_t rows, size_t columns)
{
    canvas *on = self;
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)columns, (int)rows);
    unsigned char *pixels = cairo_image_surface_get_data(image);
    if (pixels) { /* if it is NULL, the surface carries the error into the context */
        size_t stride_bytes = (size_t)cairo_image_surface_get_stride(image);
        for (size_t y = 0; y < rows; y++) {
            for (size_t x = 0; x < columns; x++, rgb += 3) {
                uint32_t pixel = (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
                memcpy(pixels + y * stride_bytes + 4 * x, &pixel, 4);
            }
        }
        cairo_surface_mark_dirty(image);
    }
    cairo_save(on->cairo);
    cairo_translate(on->cairo, rect.x, rect.y);
    cairo_scale(on->cairo, rect.width / (double)columns, rect.height / (double)rows);
    cairo_set_source_surface(on->cairo, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(on->cairo), CAIRO_FILTER_NEAREST);
    cairo_paint(on->cairo);
    cairo_restore(on->cairo);
    cairo_surface_destroy(image);
}

/* Returns true for emoji fonts, which have bitmaps, layers or drawings instead of outlines. */
static bool has_colour_glyphs(PangoFont *font)
{
    hb_face_t *face = hb_font_get_face(pango_font_get_hb_font(font));
    return hb_ot_color_has_png(face) || hb_ot_color_has_layers(face) || hb_ot_color_has_svg(face);
}

/* Draws colour glyphs at the current point with 600 dots per inch; cairo 1.16 would put them into a PDF with 72. */
static void show_colour_run(cairo_t *cairo, PangoLayoutRun *run)
{
    const double scale = 600.0 / 72;
    PangoRectangle ink, logical;
    pango_glyph_string_extents(run->glyphs, run->item->analysis.font, &ink, &logical);
    double left = (double)logical.x / PANGO_SCALE, top = (double)logical.y / PANGO_SCALE;
    double width = (double)logical.width / PANGO_SCALE, height = (double)logical.height / PANGO_SCALE;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)ceil(width * scale), (int)ceil(height * scale));
    cairo_t *inside = cairo_create(image);
    cairo_scale(inside, scale, scale);
    cairo_move_to(inside, -left, -top);
    pango_cairo_show_glyph_string(inside, run->item->analysis.font, run->glyphs);
    cairo_destroy(inside);

    double x, y;
    cairo_get_current_point(cairo, &x, &y);
    cairo_save(cairo);
    cairo_translate(cairo, x + left, y + top);
    cairo_scale(cairo, 1 / scale, 1 / scale);
    cairo_set_source_surface(cairo, image, 0, 0);
    cairo_paint(cairo);
    cairo_restore(cairo);
    cairo_surface_destroy(image);
}

/* Draws a line run by run from the left: a line mixes fonts, and runs of colour glyphs need their own way into a
 * PDF. */
static void show_line(canvas *on, PangoLayoutLine *line, const char *text, draw_colour colour)
{
    double x = 0;
    for (GSList *runs = line->runs; runs; runs = runs->next) {
        PangoLayoutRun *run = runs->data;
        set_colour(on->cairo, colour);
        cairo_move_to(on->cairo, x, 0);
        if (on->vector && has_colour_glyphs(run->item->analysis.font))
            show_colour_run(on->cairo, run);
        else
            pango_cairo_show_glyph_item(on->cairo, text, run);
        x += (double)pango_glyph_string_get_width(run->glyphs) / PANGO_SCALE;
    }
}

static void canvas_text(void *self, const char *text, draw_place place, const draw_font *font, double width)
{
    canvas *on = self;
    PangoLayoutLine *line = lay_out(on->ruler, text, strlen(text), font);
    on->missing += (size_t)pango_layout_get_unknown_glyphs_count(on->ruler->layout);
    if (!on->cairo) return; /* this pass only counts */
    double along = place.along == DRAW_START ? 0 : place.along == DRAW_MIDDLE ? -width / 2 : -width;
    const double down = draw_baseline(&place, font);
    cairo_save(on->cairo);
    cairo_translate(on->cairo, place.x, place.y);
    cairo_rotate(on->cairo, -place.degrees * (3.14159265358979323846 / 180));
    cairo_translate(on->cairo, along, down);
    cairo_scale(on->cairo, DRAW_MM_PER_PT, DRAW_MM_PER_PT);
    show_line(on, line, text, font->colour);
    cairo_restore(on->cairo);
    cairo_new_path(on->cairo);
}

static void canvas_clip(void *self, draw_rect rect)
{
    canvas *on = self;
    cairo_save(on->cairo);
    cairo_rectangle(on->cairo, rect.x, rect.y, rect.width, rect.height);
    cairo_clip(on->cairo);
}

static void canvas_unclip(void *self) { cairo_restore(((canvas *)self)->cairo); }

static const draw_methods canvas_methods = {
    .box = canvas_box,
    .path = canvas_path,
    .disc = canvas_disc,
    .image = canvas_image,
    .text = canvas_text,
    .clip = canvas_clip,
    .unclip = canvas_unclip,
};

/* Replays the list onto a surface with the given units per mm and finishes it. The caller keeps the surface. */
static deberta_status render(const draw_list *list, const draw_ruler *ruler, cairo_surface_t *surface,
                             double units_per_mm, bool vector, deberta_error *err)
{
    canvas on = {.cairo = cairo_create(surface), .ruler = ruler->self, .vector = vector};
    cairo_scale(on.cairo, units_per_mm, units_per_mm);
    if (!vector) { /* white paper */
        cairo_set_source_rgb(on.cairo, 1, 1, 1);
        cairo_paint(on.cairo);
    }
    draw_replay(list, &canvas_methods, &on);
    cairo_status_t status = cairo_status(on.cairo);
    cairo_destroy(on.cairo);
    if (vector)
        cairo_surface_finish(surface);
    else
        cairo_surface_flush(surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface);
    if (status == CAIRO_STATUS_NO_MEMORY) memory_short();
    if (status != CAIRO_STATUS_SUCCESS)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "drawing a figure failed: %s", cairo_status_to_string(status));
    return DEBERTA_OK;
}

size_t draw_cairo_missing_glyphs(const draw_list *list, const draw_ruler *ruler)
{
    static const draw_methods count_only = {.text = canvas_text};
    canvas on = {.ruler = ruler->self};
    draw_replay(list, &count_only, &on);
    return on.missing;
}

/* ------------------------------------------------------------------------------------------------------ surfaces */

deberta_status draw_cairo_pixels(const draw_list *list, const draw_ruler *ruler, double dpi, uint8_t **rgb,
                                 size_t *rows, size_t *columns, deberta_error *err)
{
    double wide = ceil(draw_page_width(list) / 25.4 * dpi - 1e-6),
           high = ceil(draw_page_height(list) / 25.4 * dpi - 1e-6);
    if (!(wide >= 1 && high >= 1 && wide <= 32767 && high <= 32767)) /* cairo's limit */
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "a PNG of %.0f x %.0f pixels is beyond 32767: lower the resolution (%.0f dpi)", wide, high, dpi);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)wide, (int)high);
    deberta_status status = render(list, ruler, surface, dpi / 25.4, false, err);
    if (status == DEBERTA_OK) {
        uint8_t *out = memory_take((size_t)wide * (size_t)high, 3);
        const unsigned char *pixels = cairo_image_surface_get_data(surface);
        size_t stride_bytes = (size_t)cairo_image_surface_get_stride(surface);
        *rows = (size_t)high;
        *columns = (size_t)wide;
        *rgb = out;
        for (size_t y = 0; y < *rows; y++) {
            for (size_t x = 0; x < *columns; x++) {
                uint32_t pixel;
                memcpy(&pixel, pixels + y * stride_bytes + 4 * x, 4);
                *out++ = (uint8_t)(pixel >> 16);
                *out++ = (uint8_t)(pixel >> 8);
                *out++ = (uint8_t)pixel;
            }
        }
    }
    cairo_surface_destroy(surface);
    return status;
}

/* Appends a piece of a PDF, as cairo delivers it. */
static cairo_status_t write_to_buffer(void *closure, const unsigned char *data, unsigned int length)
{
    byte_buffer *out = closure;
    byte_buffer_append(out, data, length);
    return CAIRO_STATUS_SUCCESS;
}

deberta_status draw_cairo_pdf(const draw_list *list, const draw_ruler *ruler, const char *title, const char *subject,
                              byte_buffer *out, deberta_error *err)
{
    const double points_per_mm = 1 / DRAW_MM_PER_PT;
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(
        write_to_buffer, out, draw_page_width(list) * points_per_mm, draw_page_height(list) * points_per_mm);
    if (title && *title) cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
    if (subject && *subject) cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_SUBJECT, subject);
    /* without it cairo writes the current time */
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
    deberta_status status = render(list, ruler, surface, points_per_mm, true, err);
    cairo_surface_destroy(surface);
    return status;
}
