/* PNG files: what was written is read back, twice the same bytes, and damaged files are refused.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/png_reader.h"
#include "viz/png_metadata.h"

enum { ROWS = 5, COLUMNS = 7 };

static void fill(uint8_t rgb[ROWS * COLUMNS * 3])
{
    for (size_t i = 0; i < ROWS * COLUMNS * 3; i++) rgb[i] = (uint8_t)(i * 37 + i / 3);
}

static const provenance_entry entries[] = {
    {"model", "demo"}, {"text", "na\xC3\xAFve \xE6\xBC\xA2"}, {"command", "deberta attention --text 'a b'"}};

TEST(pixels_resolution_and_texts_come_back)
{
    uint8_t rgb[ROWS * COLUMNS * 3];
    FREED_BY(byte_buffer_free) byte_buffer out = {0}, again = {0};
    FREED_BY(png_content_free) png_content content;
    fill(rgb);
    png_encode(rgb, ROWS, COLUMNS, 300, entries, 3, &out);
    png_encode(rgb, ROWS, COLUMNS, 300, entries, 3, &again);
    assert_int_equal(out.size_bytes, again.size_bytes);
    assert_memory_equal(out.data, again.data, out.size_bytes);
    assert_null(memmem(out.data, out.size_bytes, "tIME", 4));
    assert_non_null(memmem(out.data, out.size_bytes, "tEXtmodel", 9));
    assert_non_null(memmem(out.data, out.size_bytes, "iTXttext", 8));
    assert_ok(png_decode(out.data, out.size_bytes, &content, NULL));
    assert_int_equal(content.rows, ROWS);
    assert_int_equal(content.columns, COLUMNS);
    assert_memory_equal(content.rgb, rgb, sizeof rgb);
    assert_true(fabs(content.dpi - 300) < 0.02);
    assert_int_equal(content.entry_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(content.keys[i], entries[i].key);
        assert_string_equal(content.values[i], entries[i].value);
    }
}

/* 256 colours become a palette, 257 do not; both come back as they were. */
TEST(few_colours_become_a_palette)
{
    for (size_t colours = 1; colours <= 257; colours += 64) {
        uint8_t rgb[257 * 3];
        FREED_BY(byte_buffer_free) byte_buffer out = {0};
        FREED_BY(png_content_free) png_content content;
        for (size_t i = 0; i < 257; i++) {
            rgb[3 * i] = (uint8_t)(i % colours);
            rgb[3 * i + 1] = (uint8_t)(i % colours / 256);
            rgb[3 * i + 2] = 7;
        }
        png_encode(rgb, 1, 257, 0, NULL, 0, &out);
        assert_int_equal(memmem(out.data, out.size_bytes, "PLTE", 4) != NULL, colours <= 256);
        assert_ok(png_decode(out.data, out.size_bytes, &content, NULL));
        assert_memory_equal(content.rgb, rgb, sizeof rgb);
    }
}

TEST(resolution_can_be_left_out)
{
    uint8_t rgb[ROWS * COLUMNS * 3];
    FREED_BY(byte_buffer_free) byte_buffer out = {0};
    FREED_BY(png_content_free) png_content content;
    fill(rgb);
    png_encode(rgb, ROWS, COLUMNS, 0, NULL, 0, &out);
    assert_ok(png_decode(out.data, out.size_bytes, &content, NULL));
    assert_true(content.dpi == 0);
    assert_int_equal(content.entry_count, 0);
}

/* Shortened files, and files with one byte changed, are read correctly or refused; nothing leaks. */
TEST(damaged_files_are_refused)
{
    uint8_t rgb[ROWS * COLUMNS * 3];
    FREED_BY(byte_buffer_free) byte_buffer out = {0};
    png_content content;
    deberta_error err;
    fill(rgb);
    png_encode(rgb, ROWS, COLUMNS, 300, entries, 3, &out);
    for (size_t length = 0; length + 13 < out.size_bytes; length += 3) {
        check_refused(png_decode(out.data, length, &content, &err), &err, DEBERTA_E_FORMAT, "PNG");
        png_content_free(&content);
    }
    for (size_t i = 0; i < out.size_bytes; i += 7) {
        out.data[i] ^= 0x55;
        deberta_status status = png_decode(out.data, out.size_bytes, &content, NULL);
        assert_true(status == DEBERTA_OK || status == DEBERTA_E_FORMAT);
        png_content_free(&content);
        out.data[i] ^= 0x55;
    }
}
