/* UTF-8: where a text is cut, and what is punctuation.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/text.h"

TEST(test_texts_are_cut_between_characters)
{
    char room[4];
    utf8_copy(room, sizeof room, "ab\xC3\xBC");
    assert_string_equal(room, "ab");
    utf8_copy(room, sizeof room, "a\xC3\xBC");
    assert_string_equal(room, "a\xC3\xBC");
    utf8_copy(room, sizeof room, "abcd");
    assert_string_equal(room, "abc");
    utf8_copy(room, 1, "\xC3\xBC");
    assert_string_equal(room, "");
}

TEST(test_punctuation)
{
    static const uint32_t marks[] = {'!',    '/',    ':',    '@',    '[',    '`',    '{',    '~',    0xA1,   0xAB,
                                     0xBB,   0xBF,   0x2010, 0x2014, 0x2019, 0x201C, 0x2026, 0x2030, 0x205E, 0x3001,
                                     0x3003, 0x3008, 0x3011, 0x3014, 0x301F, 0xFF01, 0xFF0C, 0xFF1F, 0xFF5E};
    static const uint32_t others[] = {0,      ' ',    '0',    '9',    'A',    'z',    0x7F,   0xA0,   0xE9,    0x200B,
                                      0x2028, 0x202F, 0x2060, 0x3000, 0x3005, 0x3042, 0x4E00, 0xFF11, 0x10FFFF};
    FOR_ROWS(k, marks) assert_true(utf8_is_punctuation(marks[k]));
    FOR_ROWS(k, others) assert_false(utf8_is_punctuation(others[k]));
    assert_false(utf8_is_punctuation(UTF8_INVALID));
}
