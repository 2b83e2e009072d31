/* The best way through a text: sums, ties, unknown characters, kinds of pieces. The expected cuts are sentencepiece's.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/piece_helpers.h"

#include "core/text/unigram.h"

typedef struct unigram_case {
    piece_case pieces[CASE_PIECES]; /* their ids count from 2 */
    const char *text, *cuts;
} unigram_case;

/* clang-format off */
static const unigram_case cases[] = {
    {{USED("a", -1), USED("b", -1), USED("ab", -3)}, "ab", "2:1 3:2"},
    {{USED("a", -1), USED("b", -1), USED("ab", -1.5f)}, "abab", "4:2 4:4"},
    /* Of equal sums the one that begins first stays. */
    {{USED("a", -1), USED("b", -1), USED("ab", -2)}, "ab", "4:2"},
    {{USED("a", -2), USED("b", -2), USED("c", -2), USED("ab", -3), USED("bc", -3)}, "abc", "2:1 6:3"},
    {{USED("a", -2), USED("b", -2), USED("c", -2), USED("ab", -3), USED("bc", -3), USED("abc", -5)}, "abc", "7:3"},
    /* The sum of a and b is -16777217.5, which a float rounds to the score of ab. It is compared before it is rounded ... */
    {{USED("a", -16777216), USED("b", -1.5f), USED("ab", -16777218)}, "ab", "2:1 3:2"},
    /* ... but goes on rounded: then -16777218 - 0.5 is no better than abc. */
    {{USED("a", -16777216), USED("b", -1.5f), USED("c", -0.5f), USED("abc", -16777218.0f)}, "abc", "5:3"},
    /* The sum for an unknown character is rounded before: 10.5 - 16777226 is then no better than the piece of both. */
    {{USED("a", 10.5f), USED("z", -16777216), USED("a\u00e9", -16777216)}, "a\u00e9", "4:3"},
    /* An unknown character costs ten more than the worst piece, each of them; a longer piece may cover it. */
    {{USED("a", -1), USED("b", -4)}, "a\u00e9\u00e9" "b", "2:1 0:3 0:5 3:6"},
    {{USED("a", -1), USED("b", 15), USED("\u00e9" "b", -18.5f)}, "\u00e9" "b", "0:2 3:3"},
    {{USED("a", -1), USED("b", -4), USED("\u00e9" "b", -3.5f)}, "\u00e9" "b", "4:3"},
    {{USED("ab", -1)}, "a", "0:1"},
    {{USED("a", -1)}, "\U0001f600", "0:4"},
    /* User-defined pieces win whatever their score, the longest first; unused ones are not there, control ones never. */
    {{USED("a", -1), USED("b", -1), USER("ab", -99)}, "aab", "2:1 4:3"},
    {{USED("a", 2), USED("b", 2), USED("ab", 3.8f), USER("aab", -9)}, "aab", "5:3"},
    /* What is taken off their score is a double's 0.1: 1 - 0.1 is more than the float 0.9. */
    {{USED("a", 0), USED("c", 1), USED("ab", 0.9f), USER("b", 0)}, "ab", "2:1 5:2"},
    {{USED("a", -1), UNUSED("ab", 9), USED("b", -1)}, "ab", "2:1 4:2"},
    {{USED("a", -1), UNUSED("b", 0)}, "ab", "2:1 0:2"},
    {{USED("C", -1), USED("L", -1), USED("S", -1), USED("[", -1), USED("]", -1)}, "[CLS]", "5:1 2:2 3:3 4:4 6:5"},
    /* Only user-defined ones: unknown characters then cost next to everything, and cannot be avoided. */
    {{USER("a", 0)}, "axxa", "2:1 0:2 0:3 2:4"},
};
/* clang-format on */

TEST(test_cases)
{
    FOR_ROWS(i, cases) {
        const unigram_case *c = &cases[i];
        piece_model model = model_of(c->pieces, PIECES_UNIGRAM);
        FREED_BY(unigram_free) unigram *u;
        FREED_BY(unigram_workspace_free) unigram_workspace workspace = {0};
        piece_cuts cuts = {0};
        char out[200];
        assert_ok(unigram_create(&u, &model, "test", NULL));
        piece_model_free(&model); /* it is not needed any more */
        assert_ok(unigram_cut(u, &workspace, c->text, strlen(c->text), &cuts, NULL));
        if (strcmp(cuts_text(&cuts, out, sizeof out), c->cuts) != 0)
            fail_msg("case %zu, '%s': %s, expected %s", i, c->text, out, c->cuts);
        free(cuts.items);
    }
}

TEST(test_refused)
{
    static const piece_case none[CASE_PIECES] = {{.text = NULL}}, twice[CASE_PIECES] = {USED("a", -1), UNUSED("a", -2)};
    unigram *u;
    deberta_error error = {0};
    FREED_BY(piece_model_free) piece_model model = model_of(none, PIECES_UNIGRAM);
    assert_int_equal(unigram_create(&u, &model, "test", &error), DEBERTA_E_FORMAT);
    assert_null(u);
    assert_string_equal(error.message, "test: none of its pieces is for text");
    piece_model_free(&model);

    model = model_of(twice, PIECES_UNIGRAM);
    check_refused(unigram_create(&u, &model, "test", &error), &error, DEBERTA_E_FORMAT, "'a' is already defined");
}
