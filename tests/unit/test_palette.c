/* Palettes: known colours, luminance that only grows, and signs that stay apart in greyscale.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "viz/palette.h"

static void assert_colour(draw_colour colour, int r, int g, int b)
{
    assert_int_equal(colour.r, r);
    assert_int_equal(colour.g, g);
    assert_int_equal(colour.b, b);
    assert_int_equal(colour.a, 255);
}

/* First, middle and last entries as matplotlib prints them. */
TEST(known_colours)
{
    draw_colour table[PALETTE_LEVELS_MAX];
    assert_int_equal(palette_table(palette_find("viridis"), table), 256);
    assert_colour(table[0], 0x44, 0x01, 0x54);
    assert_colour(table[128], 0x21, 0x91, 0x8c);
    assert_colour(table[255], 0xfd, 0xe7, 0x25);
    assert_int_equal(palette_table(palette_find("cividis"), table), 256);
    assert_colour(table[0], 0x00, 0x22, 0x4e);
    assert_colour(table[255], 0xfe, 0xe8, 0x38);
    assert_int_equal(palette_table(palette_find("magma"), table), 256);
    assert_colour(table[0], 0x00, 0x00, 0x04);
    assert_colour(table[255], 0xfc, 0xfd, 0xbf);
    assert_null(palette_find("jet"));
    for (size_t k = 0; palette_list[k]; k++) assert_non_null(palette_find(palette_list[k]));
}

TEST(sequential_maps_go_one_way)
{
    static const char *const names[] = {"viridis", "cividis", "magma", "blues", "greys"};
    FOR_ROWS(k, names) {
        draw_colour table[PALETTE_LEVELS_MAX];
        const palette *map = palette_find(names[k]);
        size_t levels = palette_table(map, table);
        assert_false(palette_is_diverging(map));
        const double way = palette_grey(table[levels - 1]) - palette_grey(table[0]), sign = way > 0 ? 1 : -1;
        for (size_t i = 1; i < levels; i++) /* 8 bits round: a step back of less than one grey level is none */
            if (sign * (palette_grey(table[i]) - palette_grey(table[i - 1])) < -0.5 / 255)
                fail_msg("%s turns back at %zu", names[k], i);
        assert_true(sign * way > 0.6);
        if (way < 0) assert_colour(table[0], 255, 255, 255); /* paper */
    }
}

TEST(diverging_map_has_white_in_the_middle_and_tells_signs_apart)
{
    draw_colour table[PALETTE_LEVELS_MAX];
    const palette *map = palette_find("polar");
    assert_true(palette_is_diverging(map));
    assert_int_equal(palette_table(map, table), 257);
    assert_colour(table[128], 255, 255, 255);
    for (size_t i = 1; i <= 128; i++) {
        assert_true(palette_grey(table[128 - i]) < palette_grey(table[129 - i]));
        assert_true(palette_grey(table[128 + i]) < palette_grey(table[127 + i]));
        /* At the same magnitude a negative value is darker, by more the larger it is. */
        if (i >= 16) assert_true(palette_grey(table[128 - i]) < palette_grey(table[128 + i]) - 0.0009 * (double)i);
        assert_true(i < 16 || table[128 - i].b > table[128 - i].r);
        assert_true(i < 16 || table[128 + i].r > table[128 + i].b);
    }
}

TEST(positions_become_levels)
{
    assert_int_equal(palette_level(256, 0), 0);
    assert_int_equal(palette_level(256, 1), 255);
    assert_int_equal(palette_level(257, 0.5), 128);
    assert_int_equal(palette_level(256, -3), 0);
    assert_int_equal(palette_level(256, 7), 255);
    assert_int_equal(palette_level(256, INFINITY), 255);
    assert_int_equal(palette_level(256, NAN), 0);
    assert_int_equal(palette_level(256, 0.3), 77); /* 76.5 rounds up */
}

TEST(series_neighbours_differ_in_greyscale)
{
    for (size_t i = 0; i + 1 < PALETTE_SERIES_COUNT; i++)
        if (fabs(palette_grey(palette_series(i)) - palette_grey(palette_series(i + 1))) < 0.2)
            fail_msg("series colours %zu and %zu print alike", i, i + 1);
    draw_colour first = palette_series(0), again = palette_series(PALETTE_SERIES_COUNT);
    assert_memory_equal(&first, &again, sizeof first);
}

TEST(ink_can_be_read_on_every_level)
{
    static const char *const names[] = {"viridis", "cividis", "magma", "polar"};
    for (size_t k = 0; k < 4; k++) {
        draw_colour table[PALETTE_LEVELS_MAX];
        size_t levels = palette_table(palette_find(names[k]), table);
        for (size_t i = 0; i < levels; i++)
            assert_true(fabs(palette_grey(palette_ink_on(table[i])) - palette_grey(table[i])) >= 0.49);
    }
}
