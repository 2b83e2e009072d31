/* Encodes an image as PNG into memory: in a palette if 256 colours suffice, with its resolution and metadata. It has a
 * size that cairo accepted, so only a lack of memory can make it fail.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/png_metadata.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "output/scope.h"

static void on_error(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
    memory_short();
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void append_bytes(png_structp png, png_bytep data, png_size_t size_bytes)
{
    byte_buffer *out = png_get_io_ptr(png);
    byte_buffer_append(out, data, size_bytes);
}

static void flush_nothing(png_structp png) { (void)png; }

static bool is_ascii(const char *text)
{
    while (*text)
        if ((unsigned char)*text++ >= 0x80) return false;
    return true;
}

/* libpng copies the texts. */
static void write_entries(png_structp png, png_infop info, const provenance_entry *entries, size_t entry_count)
{
    for (size_t i = 0; i < entry_count; i++) {
        png_text text = {
            .compression = is_ascii(entries[i].value) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE,
            .key = (char *)entries[i].key,
            .text = (char *)entries[i].value,
            .lang = (char *)"",
            .lang_key = (char *)"",
        };
        png_set_text(png, info, &text, 1);
    }
}

/* Colours of an image with at most 256 of them, and the index of each pixel's colour. A heat map has few colours, and
 * indexes take a third of the bytes. */
typedef struct colour_table {
    png_color colours[256];
    int count;
    uint8_t *indexes; /* [pixels], NULL: too many colours */
} colour_table;

static void index_colours(colour_table *table, const uint8_t *rgb, size_t pixels)
{
    enum { SLOTS = 1024 }; /* slots of a hash table with open addressing; at most a quarter full */
    int16_t slots[SLOTS];
    memset(slots, -1, sizeof slots);
    table->indexes = memory_take(pixels, 1);
    for (size_t i = 0; i < pixels; i++, rgb += 3) {
        size_t slot = (rgb[0] * 7u + rgb[1] * 61u + rgb[2] * 577u) % SLOTS;
        for (; slots[slot] >= 0; slot = (slot + 1) % SLOTS) {
            const png_color *known = &table->colours[slots[slot]];
            if (known->red == rgb[0] && known->green == rgb[1] && known->blue == rgb[2]) break;
        }
        if (slots[slot] < 0) {
            if (table->count == 256) {
                free(table->indexes);
                table->indexes = NULL;
                return;
            }
            table->colours[table->count] = (png_color){rgb[0], rgb[1], rgb[2]};
            slots[slot] = (int16_t)table->count++;
        }
        table->indexes[i] = (uint8_t)slots[slot];
    }
}

static void write_image(png_structp png, png_infop info, const uint8_t *rgb, const colour_table *table, size_t rows,
                        size_t columns, double dpi, const provenance_entry *entries, size_t entry_count)
{
    png_set_IHDR(png, info, (png_uint_32)columns, (png_uint_32)rows, 8,
                 table->indexes ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (table->indexes) png_set_PLTE(png, info, table->colours, table->count);
    if (dpi > 0) {
        png_uint_32 per_metre = (png_uint_32)(dpi / 0.0254 + 0.5);
        png_set_pHYs(png, info, per_metre, per_metre, PNG_RESOLUTION_METER);
    }
    /* Images with few colours and repeated rows compress better without filters (a head grid to half the size). */
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    write_entries(png, info, entries, entry_count);
    png_write_info(png, info);
    for (size_t y = 0; y < rows; y++)
        png_write_row(png, table->indexes ? table->indexes + y * columns : rgb + y * columns * 3);
    png_write_end(png, info);
}

void png_encode(const uint8_t *rgb, size_t rows, size_t columns, double dpi, const provenance_entry *entries,
                size_t entry_count, byte_buffer *out)
{
    colour_table table = {.count = 0};
    index_colours(&table, rgb, rows * columns);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) memory_short();
    png_set_write_fn(png, out, append_bytes, flush_nothing);
    write_image(png, info, rgb, &table, rows, columns, dpi, entries, entry_count);
    free(table.indexes);
    png_destroy_write_struct(&png, &info);
}
