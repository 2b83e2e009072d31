/* libpng leaves a function by longjmp when something fails: what must be released hangs on the caller's structures.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/png_reader.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

typedef struct png_trouble {
    char text[160];
} png_trouble;

static void on_error(png_structp png, png_const_charp message)
{
    png_trouble *trouble = png_get_error_ptr(png);
    strncpy(trouble->text, message, sizeof trouble->text - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

typedef struct png_source {
    const uint8_t *data;
    size_t left;
} png_source;

static void take_bytes(png_structp png, png_bytep data, png_size_t size_bytes)
{
    png_source *source = png_get_io_ptr(png);
    if (size_bytes > source->left) png_error(png, "the file ends too early");
    memcpy(data, source->data, size_bytes);
    source->data += size_bytes;
    source->left -= size_bytes;
}

static void *need(png_structp png, void *block)
{
    if (!block) png_error(png, "no memory");
    return block;
}

/* Whatever the file holds becomes 8-bit RGB. */
static void read_image(png_structp png, png_infop info, png_content *content)
{
    png_read_info(png, info);
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    png_read_update_info(png, info);
    content->rows = png_get_image_height(png, info);
    content->columns = png_get_image_width(png, info);
    content->rgb = need(png, calloc(content->rows, content->columns * 3));
    for (size_t y = 0; y < content->rows; y++) png_read_row(png, content->rgb + y * content->columns * 3, NULL);
    png_read_end(png, info);
}

/* entry_count grows with every complete entry, so that a failure in between frees what is there. */
static void read_entries(png_structp png, png_infop info, png_content *content)
{
    png_textp texts = NULL;
    int count = 0;
    png_get_text(png, info, &texts, &count);
    content->keys = need(png, calloc((size_t)count + 1, sizeof *content->keys));
    content->values = need(png, calloc((size_t)count + 1, sizeof *content->values));
    for (; content->entry_count < (size_t)count; content->entry_count++) {
        content->keys[content->entry_count] = need(png, strdup(texts[content->entry_count].key));
        content->values[content->entry_count] = need(png, strdup(texts[content->entry_count].text));
    }
    png_uint_32 x = png_get_x_pixels_per_meter(png, info);
    content->dpi = x * 0.0254;
}

deberta_status png_decode(const uint8_t *data, size_t size_bytes, png_content *content, deberta_error *err)
{
    *content = (png_content){0};
    png_trouble trouble = {{0}};
    png_source source = {data, size_bytes};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &trouble, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for reading a PNG");
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_read_struct(&png, &info, NULL);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "reading a PNG failed: %s", trouble.text);
    }
    png_set_read_fn(png, &source, take_bytes);
    read_image(png, info, content);
    read_entries(png, info, content);
    png_destroy_read_struct(&png, &info, NULL);
    return DEBERTA_OK;
}

void png_content_free(png_content *content)
{
    for (size_t i = 0; content->keys && i <= content->entry_count; i++) free(content->keys[i]);
    for (size_t i = 0; content->values && i <= content->entry_count; i++) free(content->values[i]);
    free(content->keys);
    free(content->values);
    free(content->rgb);
    *content = (png_content){0};
}
