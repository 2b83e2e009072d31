/* Makes a file of a figure in three steps: layout, bytes in memory, disk. Only the last one touches existing files,
 * by renaming.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/figure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "output/scope.h"
#include "viz/draw_cairo.h"
#include "viz/draw_svg.h"

/* --------------------------------------------------------------------------------------------------------- style */

/* Families for "serif": Times and fonts of its shapes, then any other. */
static const char *const serif_families = "TeX Gyre Termes, Nimbus Roman, Liberation Serif, Times New Roman, "
                                          "STIX Two Text, Noto Serif, DejaVu Serif, serif";

figure_style figure_defaults(const figure_style *style)
{
    figure_style filled = *style;
    if (filled.width_mm == 0) filled.width_mm = 174;
    if (filled.dpi == 0) filled.dpi = 300;
    if (filled.font_size == 0) filled.font_size = 7;
    if (!filled.font || !*filled.font) filled.font = "Noto Sans, DejaVu Sans, sans-serif";
    if (strcmp(filled.font, "serif") == 0) filled.font = serif_families;
    return filled;
}

deberta_status figure_check_style(const figure_style *style, deberta_error *err)
{
    figure_style s = figure_defaults(style);
    if (!(s.width_mm >= 30 && s.width_mm <= 1000))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure width %g mm, expected 30 to 1000", s.width_mm);
    if (!(s.dpi >= 36 && s.dpi <= 2400))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure resolution %g dpi, expected 36 to 2400", s.dpi);
    if (!(s.font_size >= FIGURE_SMALLEST_TYPE && s.font_size <= 24))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure type %g pt, expected 5 to 24", s.font_size);
    return DEBERTA_OK;
}

static const draw_colour text_colour = {20, 20, 20, 255}, note_colour = {90, 90, 90, 255};

draw_font figure_font(const figure_style *style) { return (draw_font){style->font_size, text_colour, false}; }

draw_font figure_small_font(const figure_style *style)
{
    const double size = style->font_size >= 6 ? fmax(style->font_size - 1, 6) : FIGURE_SMALLEST_TYPE;
    return (draw_font){size, text_colour, false};
}

draw_font figure_bold_font(const figure_style *style) { return (draw_font){style->font_size, text_colour, true}; }

double figure_page_width(const figure_style *style, double content)
{
    const double narrowest = fmin(60, style->width_mm); /* least width for titles and notes */
    return content < 0.97 * style->width_mm ? fmax(content, narrowest) : style->width_mm;
}

double figure_title(draw_list *list, const figure_style *style)
{
    if (!style->title || !*style->title) return 0;
    draw_font font = {style->font_size + 1.5, text_colour, true};
    double leading = 1.3 * font.size * DRAW_MM_PER_PT;
    draw_group(list, "title");
    draw_place place = {0.5, 0.5, DRAW_START, DRAW_CAP, 0};
    size_t lines = draw_paragraph(list, style->title, place, &font, style->width_mm - 1, leading);
    draw_ungroup(list);
    return 0.5 + (double)lines * leading + 0.5;
}

static double footnote(draw_list *list, const figure_style *style, double y, const char *text)
{
    draw_font font = figure_small_font(style);
    font.colour = note_colour;
    double leading = 1.25 * font.size * DRAW_MM_PER_PT;
    draw_place place = {0.5, y, DRAW_START, DRAW_CAP, 0};
    return y + (double)draw_paragraph(list, text, place, &font, style->width_mm - 1, leading) * leading;
}

double figure_write_notes(draw_list *list, const figure_style *style, double y, byte_buffer *text)
{
    if (style->note) byte_buffer_text(text, style->note);
    byte_buffer_append(text, "", 1);
    if (text->size_bytes > 1 && !style->no_notes) y = footnote(list, style, y, (const char *)text->data);
    byte_buffer_free(text);
    return y;
}

void figure_panel_title(draw_list *list, const figure_style *style, const char *letter, const char *title, double x,
                        double y, double room)
{
    draw_font plain = figure_font(style), bold = figure_bold_font(style);
    if (letter) {
        draw_text(list, letter, (draw_place){x, y, DRAW_START, DRAW_BASELINE, 0}, &bold);
        double step = draw_measure(list, letter, &bold) + 1.2;
        x += step;
        room -= step;
    }
    draw_font font = letter ? plain : bold;
    while (title && font.size > FIGURE_SMALLEST_TYPE && draw_measure(list, title, &font) > room) font.size -= 0.5;
    if (title) draw_text_within(list, title, (draw_place){x, y, DRAW_START, DRAW_BASELINE, 0}, &font, room);
}

void figure_cell_notes(const figure_notes *notes, byte_buffer *text)
{
    size_t bad = notes->not_a_number + notes->infinite;
    const size_t rows = notes->pooled_rows ? notes->pooled_rows : notes->pooled;
    if (notes->pooled > 1 || rows > 1)
        byte_buffer_format(text, "Each drawn cell is the mean of %zu \xC3\x97 %zu cells. ", rows, notes->pooled);
    if (notes->clipped)
        byte_buffer_format(text, "%zu %s beyond the colour scale, drawn in its end colours. ", notes->clipped,
                           notes->clipped == 1 ? "cell lies" : "cells lie");
    if (bad)
        byte_buffer_format(text, "Hatched: %zu %s (%zu NaN, %zu infinite). ", bad,
                           bad == 1 ? "cell is not finite" : "cells are not finite", notes->not_a_number,
                           notes->infinite);
    if (notes->not_positive)
        byte_buffer_format(text, "Hatched: %zu %s not positive, which a logarithmic scale cannot show. ",
                           notes->not_positive, notes->not_positive == 1 ? "cell is" : "cells are");
}

/* Counts like the columns of a spreadsheet: after z comes aa. */
void figure_letter(size_t index, char text[8])
{
    size_t letters = 1, block = 26;
    while (index >= block && letters < 6) {
        index -= block;
        block *= 26;
        letters++;
    }
    for (size_t i = letters; i > 0; i--, index /= 26) text[i - 1] = (char)('a' + index % 26);
    text[letters] = '\0';
}

/* -------------------------------------------------------------------------------------------------------- saving */

typedef enum figure_format { FORMAT_PNG, FORMAT_SVG, FORMAT_PDF } figure_format;

/* Finds the format by the suffix, in upper or lower case. */
static deberta_status format_of(const char *path, figure_format *format, deberta_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    static const char *const suffixes[] = {".png", ".svg", ".pdf"};
    for (size_t i = 0; dot && i < 3; i++) {
        if (path_has_suffix(name, suffixes[i])) {
            *format = (figure_format)i;
            return DEBERTA_OK;
        }
    }
    if (!dot) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure '%s' has no suffix, expected .png, .svg or .pdf", path);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure '%s' has the unknown suffix '%s', expected .png, .svg or .pdf", path,
                 dot);
}

/* Cleans title and provenance for all formats: valid UTF-8 without control characters. Release with
 * free_clean_style. */
static void clean_style(figure_style *style)
{
    const figure_style given = *style;
    provenance_entry *entries = memory_take(given.provenance_count, sizeof *entries);
    style->title = draw_clean_text(given.title ? given.title : "");
    style->provenance = entries;
    for (size_t i = 0; i < given.provenance_count; i++) {
        entries[i].key = draw_clean_text(given.provenance[i].key);
        entries[i].value = draw_clean_text(given.provenance[i].value);
    }
}

static void free_clean_style(figure_style *style)
{
    for (size_t i = 0; i < style->provenance_count; i++) {
        free((char *)style->provenance[i].key);
        free((char *)style->provenance[i].value);
    }
    free((provenance_entry *)style->provenance);
    free((char *)style->title);
}

/* Returns the provenance as "key: value" lines joined by "; ", because PDF has one field for it. */
static char *provenance_line(const figure_style *style)
{
    byte_buffer line = {0};
    for (size_t i = 0; i < style->provenance_count; i++) {
        if (i) byte_buffer_text(&line, "; ");
        byte_buffer_text(&line, style->provenance[i].key);
        byte_buffer_text(&line, ": ");
        byte_buffer_text(&line, style->provenance[i].value);
    }
    byte_buffer_append(&line, "", 1);
    return (char *)line.data;
}

/* Appends the file in this format to out. */
static deberta_status figure_encode(const draw_list *list, const draw_ruler *ruler, const figure_style *style,
                                    figure_format format, byte_buffer *out, deberta_error *err)
{
    if (format == FORMAT_SVG) {
        draw_svg(list, style->font, style->title, style->provenance, style->provenance_count, out);
        return DEBERTA_OK;
    }
    if (format == FORMAT_PDF) {
        char *subject = provenance_line(style);
        deberta_status status = draw_cairo_pdf(list, ruler, style->title, subject, out, err);
        free(subject);
        return status;
    }
    uint8_t *rgb = NULL;
    size_t rows, columns;
    DEBERTA_TRY(draw_cairo_pixels(list, ruler, style->dpi, &rgb, &rows, &columns, err));
    png_encode(rgb, rows, columns, style->dpi, style->provenance, style->provenance_count, out);
    free(rgb);
    return DEBERTA_OK;
}

/* An unfinished output: its bytes, and the file that holds them until it is renamed. */
typedef struct output {
    const char *path;
    figure_format format;
    byte_buffer bytes;
    atomic_file *file; /* NULL: the target is a device or a pipe, and is written to directly */
} output;

static deberta_status write_device(const output *out, deberta_error *err)
{
    FILE *device = fopen(out->path, "w");
    if (device) fwrite(out->bytes.data, 1, out->bytes.size_bytes, device);
    if (device && stream_close(device)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "cannot write figure '%s': %s", out->path, strerror(errno));
}

/* A device or a pipe is written to directly: a rename would replace it by a file. */
static deberta_status write_output(output *out, deberta_error *err)
{
    struct stat info;
    if (stat(out->path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return write_device(out, err);
    DEBERTA_TRY(atomic_file_open(&out->file, out->path, err));
    return atomic_file_write(out->file, 0, out->bytes.data, out->bytes.size_bytes, err);
}

/* Writes all outputs, then renames them all: an error leaves the old files as they were. */
static deberta_status write_outputs(output *outputs, size_t count, deberta_error *err)
{
    for (size_t i = 0; i < count; i++) DEBERTA_TRY(write_output(&outputs[i], err));
    for (size_t i = 0; i < count; i++)
        if (outputs[i].file) DEBERTA_TRY(atomic_file_commit(&outputs[i].file, err));
    return DEBERTA_OK;
}

static void free_outputs(output *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        atomic_file_discard(&outputs[i].file);
        byte_buffer_free(&outputs[i].bytes);
    }
    free(outputs);
}

/* Lays out a figure for pixels of this size, 0: fine ones. Release ruler and list also after a failure. */
static deberta_status lay_out(figure_layout layout, const void *what, const figure_style *filled, double pixel,
                              draw_ruler *ruler, draw_list **list, figure_notes *notes, deberta_error *err)
{
    *notes = (figure_notes){0};
    if (!ruler->methods) draw_cairo_ruler_create(ruler, filled->font);
    draw_list_free(list);
    draw_list_create(list, *ruler);
    draw_set_pixel(*list, pixel);
    DEBERTA_TRY(layout(*list, what, notes, err));
    if (filled->exact_width && draw_page_width(*list) < filled->width_mm) draw_widen_page(*list, filled->width_mm);
    notes->page_width = draw_page_width(*list);
    notes->page_height = draw_page_height(*list);
    return DEBERTA_OK;
}

deberta_status figure_check(figure_layout layout, const void *what, const figure_style *style, figure_notes *notes,
                            deberta_error *err)
{
    DEBERTA_TRY(figure_check_style(style, err));
    const figure_style filled = figure_defaults(style);
    figure_notes own_notes = {0};
    draw_ruler ruler = {0};
    draw_list *list = NULL;
    const deberta_status status = lay_out(layout, what, &filled, 0, &ruler, &list, notes ? notes : &own_notes, err);
    draw_list_free(&list);
    draw_cairo_ruler_free(&ruler);
    return status;
}

/* Returns the size of a pixel in mm if the layout's own grid is finer, and 0 otherwise. */
static double coarse_pixel(const figure_style *style, figure_format format)
{
    const double pixel = 25.4 / style->dpi;
    return format == FORMAT_PNG && pixel > figure_grid_mm * (1 + 1e-9) ? pixel : 0;
}

/* Lays out and encodes the outputs of coarse pixels, or the others, if there are any. */
static deberta_status encode_some(figure_layout layout, const void *what, const figure_style *style, bool coarse,
                                  output *outputs, size_t count, draw_list **list, draw_ruler *ruler,
                                  figure_notes *notes, deberta_error *err)
{
    bool laid_out = false;
    for (size_t i = 0; i < count; i++) {
        const double pixel = coarse_pixel(style, outputs[i].format);
        if ((pixel > 0) != coarse) continue;
        if (!laid_out) DEBERTA_TRY(lay_out(layout, what, style, pixel, ruler, list, notes, err));
        laid_out = true;
        notes->missing_glyphs = draw_cairo_missing_glyphs(*list, ruler);
        DEBERTA_TRY(figure_encode(*list, ruler, style, outputs[i].format, &outputs[i].bytes, err));
    }
    return DEBERTA_OK;
}

/* Checks that no path occurs twice: one file cannot hold two figures. */
static deberta_status check_paths(const char *const *paths, size_t count, deberta_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(paths[i], paths[k]) == 0)
                DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "figure '%s' is named twice", paths[i]);
    return DEBERTA_OK;
}

deberta_status figure_save(figure_layout layout, const void *what, const figure_style *style, const char *const *paths,
                           size_t path_count, figure_notes *notes, deberta_error *err)
{
    figure_notes own_notes;
    figure_notes *told = notes ? notes : &own_notes;
    *told = (figure_notes){0};
    if (path_count == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a figure needs at least one file to be written to");
    DEBERTA_TRY(figure_check_style(style, err));
    DEBERTA_TRY(check_paths(paths, path_count, err));
    figure_style filled = figure_defaults(style);
    draw_ruler ruler = {0};
    draw_list *list = NULL;
    output *outputs = memory_take(path_count, sizeof *outputs);
    deberta_status status = DEBERTA_OK;
    clean_style(&filled);
    for (size_t i = 0; i < path_count; i++) {
        outputs[i].path = paths[i];
        DEBERTA_TRY_OR_FAIL(status, format_of(paths[i], &outputs[i].format, err));
    }
    for (int coarse = 0; coarse < 2; coarse++)
        DEBERTA_TRY_OR_FAIL(status,
                            encode_some(layout, what, &filled, coarse, outputs, path_count, &list, &ruler, told, err));
    DEBERTA_TRY_OR_FAIL(status, write_outputs(outputs, path_count, err));
    if (style->missing_glyphs && told->missing_glyphs > *style->missing_glyphs)
        *style->missing_glyphs = told->missing_glyphs;
fail:
    free_clean_style(&filled);
    free_outputs(outputs, path_count);
    draw_list_free(&list);
    draw_cairo_ruler_free(&ruler);
    return status;
}
