/* SentencePiece's merging: the order of scores, ties, kinds of pieces. The expected cuts are sentencepiece's.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/piece_helpers.h"

#include "core/text/piece_bpe.h"

#define LETTERS USED("a", -9), USED("b", -9), USED("c", -9), USED("d", -9)

typedef struct bpe_case {
    piece_case pieces[CASE_PIECES]; /* their ids count from 2: those of a, b, c, d are 2 to 5 */
    const char *text, *cuts;
} bpe_case;

/* clang-format off */
static const bpe_case cases[] = {
    {{LETTERS, USED("ab", -1), USED("bc", 0)}, "abc", "2:1 7:3"},
    {{LETTERS, USED("ab", 1), USED("bc", 2)}, "abc", "2:1 7:3"},
    {{LETTERS, USED("ab", -2), USED("bc", -1), USED("abc", -3)}, "abcab", "8:3 6:5"},
    {{LETTERS, USED("ab", -1), USED("abcd", -2), USED("cd", -3)}, "abcd", "7:4"},
    /* Of equal scores the leftmost; 0 and -0 are equal. */
    {{LETTERS, USED("aa", -1)}, "aaaaa", "6:2 6:4 2:5"},
    {{LETTERS, USED("bc", 0.0f), USED("ab", -0.0f)}, "abc", "7:2 4:3"},
    {{LETTERS, USED("bc", -0.0f), USED("ab", 0.0f)}, "abc", "7:2 4:3"},
    {{LETTERS, USED("ab", -1e-45f), USED("bc", 1e-45f)}, "abc", "2:1 7:3"},
    /* A piece that no two neighbours make up stays away. What is no piece by itself may be merged into one. */
    {{LETTERS, USED("abc", 0)}, "abc", "2:1 3:2 4:3"},
    {{LETTERS, USED("a\u00e9", 0)}, "\u00e9" "a\u00e9" "\u00e9", "0:2 6:5 0:7"},
    {{LETTERS, USED("\u00e9" "b", 0)}, "a\u00e9" "b", "2:1 6:4"},
    /* User-defined pieces are found first, the longest one, and are not merged. */
    {{LETTERS, USED("ab", 0), USER("bc", -5), USED("abc", 9)}, "abc", "2:1 7:3"},
    {{LETTERS, USER("bc", -5), USER("bcd", -6), USED("bcda", 1)}, "abcda", "2:1 7:4 2:5"},
    /* Unused pieces are merged on the way, and taken apart in the end. */
    {{LETTERS, UNUSED("ab", -1)}, "abab", "2:1 3:2 2:3 3:4"},
    {{LETTERS, UNUSED("ab", -1), USED("abc", -2)}, "abcab", "7:3 2:4 3:5"},
    {{LETTERS, USED("ab", -1), USED("cd", -1), UNUSED("abcd", -2)}, "abcd", "6:2 7:4"},
    {{LETTERS, UNUSED("ab", -1), USED("cd", -1), UNUSED("abcd", -2)}, "abcdab", "2:1 3:2 7:4 2:5 3:6"},
    {{LETTERS, UNUSED("\u00e9" "a", -1)}, "\u00e9" "ab", "0:2 2:3 3:4"},
    {{LETTERS, UNUSED("e", -1)}, "ae", "2:1 6:2"},
    {{LETTERS, USED("[", 0), USED("C", 0), USED("[C", 0)}, "[CLS]", "8:2 0:3 0:4 0:5"},
};
/* clang-format on */

TEST(test_cases)
{
    FREED_BY(piece_bpe_workspace_free)
    piece_bpe_workspace workspace = {0}; /* of all of them: nothing may be left in it */
    piece_cuts cuts = {0};
    FOR_ROWS(i, cases) {
        const bpe_case *c = &cases[i];
        FREED_BY(piece_model_free) piece_model model = model_of(c->pieces, PIECES_BPE);
        FREED_BY(piece_bpe_free) piece_bpe *bpe;
        char out[200];
        assert_ok(piece_bpe_create(&bpe, &model, "test", NULL));
        assert_ok(piece_bpe_cut(bpe, &workspace, c->text, strlen(c->text), &cuts, NULL));
        if (strcmp(cuts_text(&cuts, out, sizeof out), c->cuts) != 0)
            fail_msg("case %zu, '%s': %s, expected %s", i, c->text, out, c->cuts);
    }
    free(cuts.items);
}
