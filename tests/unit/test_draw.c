/* The recorded list and its replays: cleaned and cut texts, paragraphs, hatching, SVG and PDF as files others read.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/golden_trace.h"
#include "tests/unit/pdf_reader.h"
#include "viz/draw_cairo.h"
#include "viz/draw_svg.h"

static const draw_font seven = {7, {0, 0, 0, 255}, false};
static const draw_pen thin = {{10, 20, 30, 255}, 0.5, DRAW_DASHED};

static draw_list *new_list(draw_ruler ruler)
{
    draw_list *list = NULL;
    draw_list_create(&list, ruler);
    draw_set_page(list, 80, 60);
    return list;
}

static char *trace_of(const draw_list *list)
{
    byte_buffer trace = {0};
    draw_trace(list, &trace);
    byte_buffer_append(&trace, "", 1);
    return (char *)trace.data;
}

/* Everything a list can hold, once. */
static deberta_status all_primitives(draw_list *list, const void *what, figure_notes *notes, deberta_error *err)
{
    (void)what, (void)notes, (void)err;
    static const uint8_t rgb[2 * 3 * 3] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    draw_set_page(list, 80, 60);
    draw_group(list, "group <one>");
    draw_box(list, (draw_rect){1, 2, 3, 4}, (draw_colour){255, 0, 0, 128}, &thin);
    draw_set_origin(list, 10, 20);
    draw_line(list, 0, 0, 5, 5, &thin);
    draw_path(list, (draw_point[]){{0, 0}, {4, 0}, {2, 3}}, 3, DRAW_CLOSED, (draw_colour){0, 0, 255, 255}, NULL);
    draw_disc(list, 1, 1, 0.5, (draw_colour){9, 9, 9, 255}, &thin);
    draw_set_origin(list, 0, 0);
    draw_clip(list, (draw_rect){0, 0, 40, 40});
    draw_image(list, (draw_rect){5, 5, 30, 20}, rgb, 2, 3);
    draw_unclip(list);
    draw_hatch(list, (draw_rect){50, 10, 3, 2}, 1, &thin);
    draw_text(list, "a<b>&\"c\"", (draw_place){40, 30, DRAW_MIDDLE, DRAW_CENTRE, 90}, &seven);
    draw_text_within(list, "a long word", (draw_place){40, 40, DRAW_END, DRAW_CAP, 0}, &seven, 8);
    draw_paragraph(list, "three short lines here", (draw_place){1, 50, DRAW_START, DRAW_BASELINE, 0}, &seven, 15, 3);
    draw_ungroup(list);
    return DEBERTA_OK;
}

TEST(primitives_as_text) { golden_trace_check("draw_primitives", all_primitives, NULL); }

TEST(texts_are_cleaned)
{
    static const struct {
        const char *given, *drawn;
    } cases[] = {
        {"a\tb\n", "a\xE2\x90\x89"
                   "b\xE2\x90\x8A"},                              /* U+2409, U+240A */
        {"\x7F", "\xE2\x90\xA1"},                                 /* delete */
        {"x\xFFy", "x\xEF\xBF\xBDy"},                             /* no UTF-8 */
        {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* overlong */
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* surrogate */
        {"\xE6\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* cut off */
        {"\xC2\x85", "\xEF\xBF\xBD"},                             /* C1 control */
        {"\xEF\xBF\xBF", "\xEF\xBF\xBD"},                         /* U+FFFF, forbidden in XML */
        {"\xE6\xBC\xA2 \xF0\x9F\x98\x80", "\xE6\xBC\xA2 \xF0\x9F\x98\x80"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(free_memory) char *clean = draw_clean_text(cases[i].given);
        assert_string_equal(clean, cases[i].drawn);
    }
}

/* The sign of a lone blank hangs below the line, so it is written higher, also where it is turned. */
TEST(a_lone_blank_is_lifted)
{
    const draw_font font = {.size = 10};
    FREED_BY(draw_list_free) draw_list *list = NULL;
    FREED_BY(byte_buffer_free) byte_buffer trace = {0};
    draw_list_create(&list, draw_trace_ruler());
    draw_text(list, "\xE2\x90\xA3", (draw_place){10, 10, DRAW_START, DRAW_BASELINE, 0}, &font);
    draw_text(list, "\xE2\x90\xA3", (draw_place){10, 10, DRAW_START, DRAW_BASELINE, 90}, &font);
    draw_trace(list, &trace);
    byte_buffer_append(&trace, "", 1);
    assert_non_null(strstr((char *)trace.data, "text 10 8.94 "));
    assert_non_null(strstr((char *)trace.data, "text 8.94 10 "));
}

TEST(texts_are_cut_between_characters)
{
    FREED_BY(draw_cairo_ruler_free) draw_ruler ruler = {0};
    draw_cairo_ruler_create(&ruler, "sans-serif");
    /* e + acute accent, a family in one emoji, ka + a vowel sign with a width of its own: a cut inside would show
     * something else. */
    static const char *const texts[] = {
        "e\xCC\x81"
        "e\xCC\x81"
        "e\xCC\x81"
        "e\xCC\x81"
        "e\xCC\x81"
        "e\xCC\x81",
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7",
        "\xE0\xA4\x95\xE0\xA4\xBE\xE0\xA4\x95\xE0\xA4\xBE\xE0\xA4\x95\xE0\xA4\xBE"};
    for (size_t i = 0; i < 3; i++) {
        double full = ruler.methods->width(ruler.self, texts[i], &seven);
        for (double width = 1; width < full; width += 0.3) {
            size_t kept = ruler.methods->fit(ruler.self, texts[i], &seven, width);
            assert_true(kept < strlen(texts[i]));
            unsigned char next = (unsigned char)texts[i][kept];
            assert_true((next & 0xC0) != 0x80);        /* not inside a code point */
            if (i == 0) assert_int_equal(kept % 3, 0); /* accent stays with its letter */
            if (i == 2) assert_int_equal(kept % 6, 0);
            if (i == 1 && kept > 0) assert_true(next == ' ' || kept == strlen(texts[i]) / 2 + 1 || kept == 12);
        }
    }
}

TEST(cut_text_fits)
{
    FREED_BY(draw_cairo_ruler_free) draw_ruler ruler = {0};
    draw_cairo_ruler_create(&ruler, "sans-serif");
    FREED_BY(draw_list_free) draw_list *list = new_list(ruler);
    const char *token = "extraordinarily-long-token-that-has-sixty-characters-in-all-ok";
    for (double width = 5; width < 60; width += 1.7)
        assert_true(draw_text_within(list, token, (draw_place){0}, &seven, width) <= width);
}

TEST(hatching_stays_inside)
{
    FREED_BY(draw_list_free) draw_list *list = new_list(draw_trace_ruler());
    draw_hatch(list, (draw_rect){3.3, 4.4, 0.2, 5}, 1, &thin);
    draw_hatch(list, (draw_rect){3, 4, 0.1, 0.1}, 1, &thin); /* may hold no line at all */
    char *trace = trace_of(list), *at = strstr(trace, "segments");
    assert_non_null(at);
    at += strlen("segments");
    for (int i = 0; i < 8; i += 2) {
        double x = strtod(at, &at), y = strtod(at, &at);
        assert_true(x >= 3.29 && x <= 3.51 && y >= 4.39 && y <= 9.41);
    }
    free(trace);
}

TEST(svg_is_escaped_and_turns_around_for_arabic)
{
    FREED_BY(draw_list_free) draw_list *list = new_list(draw_trace_ruler());
    const provenance_entry entries[] = {{"text", "1 < 2 & \"x\""}};
    FREED_BY(byte_buffer_free) byte_buffer out = {0};
    all_primitives(list, NULL, NULL, NULL);
    draw_text(list, "\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7", (draw_place){5, 5, DRAW_END, DRAW_CENTRE, 0}, &seven);
    draw_svg(list, "Some \"Font\"", "T & t", entries, 1, &out);
    byte_buffer_append(&out, "", 1);
    const char *svg = (const char *)out.data;
    assert_non_null(strstr(svg, ">a&lt;b&gt;&amp;&quot;c&quot;</text>"));
    assert_non_null(strstr(svg, "<title>T &amp; t</title>"));
    assert_non_null(strstr(svg, "<entry key=\"text\">1 &lt; 2 &amp; &quot;x&quot;</entry>"));
    assert_non_null(strstr(svg, "font-family=\"Some &quot;Font&quot;\""));
    assert_non_null(strstr(svg, "width=\"80mm\" height=\"60mm\""));
    assert_non_null(strstr(svg, "crispEdges"));
    /* The right end of a leftward text is its start. */
    const char *arabic = strstr(svg, "direction=\"rtl\"");
    assert_non_null(arabic);
    const char *begin = arabic;
    while (*begin != '<') begin--;
    const char *anchor = strstr(begin, "text-anchor");
    assert_true(anchor == NULL || anchor > arabic);
}

static byte_buffer svg_of_image(size_t rows, size_t columns)
{
    static uint8_t rgb[3 * 65] = {255, 0, 0, 255, 0, 0, 0, 0, 255};
    FREED_BY(draw_list_free) draw_list *list = new_list(draw_trace_ruler());
    byte_buffer out = {0};
    draw_image(list, (draw_rect){0, 0, 30, 20}, rgb, rows, columns);
    draw_svg(list, "f", "t", NULL, 0, &out);
    byte_buffer_append(&out, "", 1);
    return out;
}

/* Viewers that smooth images would blur them. */
TEST(svg_draws_few_cells_as_rectangles)
{
    FREED_BY(byte_buffer_free) byte_buffer few = svg_of_image(1, 3), many = svg_of_image(1, 65);
    assert_non_null(strstr((const char *)few.data, "<path d=\"M0 0h2v1h-2z\" fill=\"#ff0000\"/>"));
    assert_non_null(strstr((const char *)few.data, "<path d=\"M2 0h1v1h-1z\" fill=\"#0000ff\"/>"));
    assert_null(strstr((const char *)few.data, "<image"));
    assert_non_null(strstr((const char *)many.data, "image-rendering"));
}

/* Columns of `pdfimages -list`: page, num, type, width, ... */
static long widest_image(const char *images)
{
    long widest = 0, width;
    for (const char *line = images; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%*d %*d %*s %ld", &width) == 1 && width > widest) widest = width;
    }
    return widest;
}

/* Every font is embedded, none is Type 3, and there is no date. */
TEST(pdf_has_embedded_fonts_and_no_date)
{
    FREED_BY(draw_cairo_ruler_free) draw_ruler ruler = {0};
    FREED_BY(byte_buffer_free) byte_buffer one = {0}, two = {0};
    draw_cairo_ruler_create(&ruler, "sans-serif");
    FREED_BY(draw_list_free) draw_list *list = new_list(ruler);
    all_primitives(list, NULL, NULL, NULL);
    draw_text(list, "\xE6\xBC\xA2\xE5\xAD\x97 \xF0\x9F\x98\x80 \xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7",
              (draw_place){5, 5, DRAW_START, DRAW_CENTRE, 0}, &seven);
    assert_ok(draw_cairo_pdf(list, &ruler, "Title", "model: x", &one, NULL));
    assert_ok(draw_cairo_pdf(list, &ruler, "Title", "model: x", &two, NULL));
    assert_int_equal(one.size_bytes, two.size_bytes);
    assert_memory_equal(one.data, two.data, one.size_bytes);
    FREED_BY(free_memory)
    char *about = pdf_report("pdfinfo", one.data, one.size_bytes),
         *fonts = pdf_report("pdffonts", one.data, one.size_bytes),
         *images = pdf_report("pdfimages -list", one.data, one.size_bytes);
    if (!about || !fonts || !images) fail_msg("pdfinfo, pdffonts and pdfimages are needed (Debian: poppler-utils)");
    assert_non_null(strstr(fonts, " yes ")); /* there is a font, and it is embedded */
    assert_null(strstr(fonts, " no "));      /* "emb sub uni": each is yes */
    assert_null(strstr(fonts, "Type 3"));
    assert_true(widest_image(images) >= 50); /* an emoji of 7 pt at 600 dpi; cairo alone would make it 8 pixels wide */
    assert_null(strstr(about, "CreationDate:"));
    assert_non_null(strstr(about, "Title:           Title\n"));
    assert_non_null(strstr(about, "Subject:         model: x\n"));
}

TEST(missing_glyphs_are_counted)
{
    FREED_BY(draw_cairo_ruler_free) draw_ruler ruler = {0};
    draw_cairo_ruler_create(&ruler, "sans-serif");
    FREED_BY(draw_list_free) draw_list *list = new_list(ruler);
    draw_text(list, "all there", (draw_place){0}, &seven);
    assert_int_equal(draw_cairo_missing_glyphs(list, &ruler), 0);
    draw_text(list, "\xF3\xB0\x80\x80", (draw_place){0}, &seven); /* U+F0000, private use */
    assert_int_equal(draw_cairo_missing_glyphs(list, &ruler), 1);
}

TEST(numbers_do_not_follow_the_locale)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } cases[] = {{0, 3, "0"},    {-0.0004, 3, "0"}, {1.5, 3, "1.5"},       {-2.25, 1, "-2.3"},
                 {1e12, 3, "0"}, {NAN, 3, "0"},     {12.3456, 2, "12.35"}, {100, 2, "100"}};
    FOR_ROWS(i, cases) {
        FREED_BY(byte_buffer_free) byte_buffer out = {0};
        byte_buffer_number(&out, cases[i].value, cases[i].decimals);
        byte_buffer_append(&out, "", 1);
        assert_string_equal((char *)out.data, cases[i].text);
    }
}

/* Also what is longer than the room that is taken at first: a path may have thousands of bytes. */
TEST(texts_of_any_length_are_formatted)
{
    static const size_t lengths[] = {0, 1021, 1022, 1023, 1024, 5000};
    FOR_ROWS(i, lengths) {
        char text[5001];
        FREED_BY(byte_buffer_free) byte_buffer out = {0};
        memset(text, 'a', lengths[i]);
        text[lengths[i]] = '\0';
        byte_buffer_format(&out, "%s}", text);
        assert_int_equal(out.size_bytes, lengths[i] + 1);
        assert_memory_equal(out.data, text, lengths[i]);
        assert_int_equal(out.data[lengths[i]], '}');
    }
}
