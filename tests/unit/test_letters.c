/* Lower case of all characters, and where words end without white space.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <locale.h>

#include "core/base/text.h"
#include "core/text/unicode.h"

static uint64_t fnv(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3;
    return hash;
}

/* The hash is what tools/making/make_letter_tables.py prints of Python's str.lower. No locale, and none that a program
 * has chosen, changes it. */
TEST(test_lower_case_of_all_characters)
{
    static const char *const locales[] = {"C", "C.UTF-8", "tr_TR.UTF-8"}; /* as far as the system has them */
    FOR_ROWS(k, locales) {
        setlocale(LC_ALL, locales[k]);
        setenv("LOCPATH", "/nowhere", 1);
        traced_text out = {0};
        uint64_t hash = 0xCBF29CE484222325;
        for (uint32_t c = 0; c < 0x110000; c++) {
            if (c >= 0xD800 && c < 0xE000) continue;
            char text[UTF8_MAX_BYTES];
            const size_t bytes = utf8_encode(text, c);
            assert_ok(lower_case_run(&out, text, bytes, NULL));
            if (out.bytes != bytes || memcmp(out.text, text, bytes) != 0) hash = fnv(hash, out.text, out.bytes);
        }
        traced_text_free(&out);
        assert_int_equal(hash, 0x212D11997BB2F110);
    }
    setlocale(LC_ALL, "C");
}

/* The second token begins a word behind the first, or goes on with it. */
TEST(test_words_without_white_space)
{
    static const struct {
        const char *before, *token;
        bool ends;
    } cases[] = {
        {"\u4eca", "\u5929", true},  /* ideographs */
        {"\u5929", "\u3002", true},  /* and their full stop */
        {"\u732b", "\u304c", true},  /* kana */
        {"\u30ab", "\u30bf", true},  /* kana */
        {"\u304b", "\u3099", false}, /* a mark that belongs to it */
        {"\u0e2a", "\u0e1a", true},  /* Thai */
        {"\u0e2a", "\u0e31", false}, /* a vowel above */
        {"\u0e97\u0e35", "\u0e48", false},
        {"\u0e97\u0e35", "\u0e19", true},
        {"\u0e81", "\u0e82", true},  /* Lao */
        {"\u1780", "\u1781", true},  /* Khmer */
        {"\u1780", "\u17d2", false}, /* its sign below */
        {"\u6771\u4eac", "Tower", true},
        {"2024", "\u5e74", true},
        {"un", "common", false},
        {"caf", "\u00e9", false},
        {"word", ",", false},
        {"\u0e51", "\u0e52", false}, /* digits of Thai */
        {"\ud55c", "\uae00", false}, /* Korean has white space */
        {"\u05e9", "\u05dc", false},
        {" ", "\u5929", false}, /* white space decides for itself */
        {"\u5929", " a", false},
    };
    FOR_ROWS(k, cases) {
        char text[64];
        const size_t at = strlen(cases[k].before), bytes = at + strlen(cases[k].token);
        snprintf(text, sizeof text, "%s%s", cases[k].before, cases[k].token);
        assert_int_equal(word_ends_between(text, bytes, (deberta_span){0, at}, (deberta_span){at, bytes}),
                         cases[k].ends);
    }
    /* Tokens that share a character (bytes of it, an empty one before it) are of one word. */
    static const char text[] = "\u4eca\u5929";
    assert_false(word_ends_between(text, 6, (deberta_span){3, 3}, (deberta_span){3, 3}));
    assert_false(word_ends_between(text, 6, (deberta_span){3, 3}, (deberta_span){3, 6}));
    assert_false(word_ends_between(text, 6, (deberta_span){3, 5}, (deberta_span){5, 6}));
    assert_true(word_ends_between(text, 6, (deberta_span){0, 3}, (deberta_span){3, 3}));
    assert_false(word_ends_between(text, 6, (deberta_span){0, 0}, (deberta_span){0, 3}));
    assert_false(word_ends_between(text, 6, (deberta_span){3, 6}, (deberta_span){6, 6}));
}
