/* SentencePiece models written by hand, cut off, and damaged; the normaliser; what surrounds the library.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/piece_helpers.h"
#include "tests/unit/tokenizer_golden.h"

#include "core/io/mapped_file.h"
#include "core/text/sentencepiece.h"

/* ------------------------------------------------------------------------------------------------ models by hand */

/* [UNK] 0, then pieces for what the tests below need. */
static piece_model small_model(void)
{
    piece_model model;
    piece_model_init(&model);
    add(&model, "[UNK]", 0, PIECE_UNKNOWN);
    add(&model, "\u2581", -2, PIECE_NORMAL);
    add(&model, "a", -3, PIECE_NORMAL);
    add(&model, "b", -3, PIECE_NORMAL);
    add(&model, "i", -3, PIECE_NORMAL);
    add(&model, "\u0307", -3, PIECE_NORMAL);
    add(&model, " ", -2.5f, PIECE_NORMAL);
    add(&model, "ab", -4, PIECE_UNUSED);
    return model;
}

/* The ids of a text, as a text: "1 2 3". */
static const char *ids_of(piece_model *model, const sentencepiece_options *options, const char *text, token_list *list)
{
    static char out[400];
    static const sentencepiece_options none = {0};
    FREED_BY(sentencepiece_free) sentencepiece *u = NULL;
    FREED_BY(sentencepiece_workspace_free) sentencepiece_workspace workspace = {0};
    deberta_error error = {0};
    token_list_clear(list);
    if (piece_model_check(model, "test", &error) != DEBERTA_OK ||
        sentencepiece_create(&u, model, options ? options : &none, "test", &error) != DEBERTA_OK ||
        sentencepiece_encode(u, &workspace, text, strlen(text), list, &error) != DEBERTA_OK)
        fail_msg("%s", error.message);
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%d", i ? " " : "", (int)list->ids[i]);
    return out;
}

TEST(test_white_space_flags)
{
    /* In the order add_dummy_prefix, remove_extra_whitespaces, treat_whitespace_as_suffix, escape_whitespaces. */
    static const struct {
        bool flags[4];
        const char *text, *ids;
    } cases[] = {
        {{true, true, false, true}, "  a  b ", "1 2 1 3"},  {{true, true, false, true}, "   ", ""},
        {{false, true, false, true}, " a  b ", "2 1 3"},    {{true, false, false, true}, " a  b ", "1 1 2 1 1 3 1"},
        {{true, false, false, true}, " ", "1 1"},           {{true, true, true, true}, " a  b ", "2 1 3 1"},
        {{false, false, false, false}, " a b", "6 2 6 3"},  {{true, true, false, false}, " a  b ", "6 2 6 3"},
        {{true, true, false, true}, "ab", "1 2 3"}, /* an unused piece is not used */
        {{true, true, false, true}, "\u0416\u0416", "1 0"},
    };
    FREED_BY(token_list_free) token_list list = {0};
    FOR_ROWS(i, cases) {
        piece_model model = small_model();
        model.add_dummy_prefix = cases[i].flags[0];
        model.remove_extra_whitespaces = cases[i].flags[1];
        model.treat_whitespace_as_suffix = cases[i].flags[2];
        model.escape_whitespaces = cases[i].flags[3];
        assert_string_equal(ids_of(&model, NULL, cases[i].text, &list), cases[i].ids);
    }
}

/* What a user-defined piece spells is left alone, spaces and all; the longest one counts. (Only the library decides
 * whether it becomes a token: with its space escaped, "x  b" is not found again.) */
TEST(test_user_defined)
{
    static const struct {
        const char *text, *ids;
    } cases[] = {{"x  b", "1 8 1 1 3"}, {"x  a", "1 8 1 2"}, {"x  x  bx", "1 8 1 8 1 1 3 8"}, {" x", "1 8"}};
    FREED_BY(token_list_free) token_list list = {0};
    FOR_ROWS(i, cases) {
        piece_model model = small_model();
        add(&model, "x", -9, PIECE_USER_DEFINED); /* 8 */
        add(&model, "x  b", -9, PIECE_USER_DEFINED);
        assert_string_equal(ids_of(&model, NULL, cases[i].text, &list), cases[i].ids);
    }
}

TEST(test_lower_case)
{
    FREED_BY(token_list_free) token_list list = {0};
    const sentencepiece_options lower = {.lower_case = true};
    piece_model model = small_model();
    assert_string_equal(ids_of(&model, &lower, "A\u0130B", &list), "1 2 4 5 3");
    /* i and the dot come from one character: as in any replacement, all but the last token of it are empty. */
    assert_int_equal(list.byte_spans[2].begin, 1);
    assert_int_equal(list.byte_spans[2].end, 1);
    assert_int_equal(list.byte_spans[3].begin, 1);
    assert_int_equal(list.byte_spans[3].end, 3);
    assert_int_equal(list.byte_spans[4].end, 4);

    static const struct {
        const char *upper, *lower;
    } pairs[] = {{"\u03a3", "\u03c3"}, {"\u1e9e", "\u00df"}, {"\u01c5", "\u01c6"},
                 {"\u212a", "k"},      {"\u2c2f", "\u2c5f"}, {"\U00010400", "\U00010428"},
                 {"\u1c90", "\u10d0"}, {"\u00df", "\u00df"}, {"\u2160", "\u2170"}};
    FOR_ROWS(i, pairs) {
        model = small_model();
        add(&model, pairs[i].lower, -5, PIECE_NORMAL);
        assert_string_equal(ids_of(&model, &lower, pairs[i].upper, &list), "1 8");
    }
}

TEST(test_refused_models)
{
    static const struct {
        const char *text;
        float score;
        piece_type type;
        const char *word;
    } cases[] = {
        {"", 0, PIECE_NORMAL, "empty"},
        {"\xff", 0, PIECE_NORMAL, "UTF-8"},
        {"x", __builtin_nanf(""), PIECE_NORMAL, "nan"},
        {"x", -__builtin_inff(), PIECE_NORMAL, "inf"},
        {"x", 0, PIECE_UNKNOWN, "UNKNOWN"},
        {"<0x00>", 0, PIECE_BYTE, "byte_fallback"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(piece_model_free) piece_model model = small_model();
        deberta_error error = {0};
        add(&model, cases[i].text, cases[i].score, cases[i].type);
        check_refused(piece_model_check(&model, "test", &error), &error, DEBERTA_E_FORMAT, cases[i].word);
    }
    FREED_BY(piece_model_free) piece_model model = small_model();
    assert_ok(piece_model_add(&model, "x\0y", 3, 0, PIECE_NORMAL, NULL));
    assert_int_equal(piece_model_check(&model, "test", NULL), DEBERTA_E_FORMAT);
}

/* --------------------------------------------------------------------------------------------- unknown characters */

/* A run of unknown characters is one token, whether the library saw all of it or not; what is around it does not
 * change. */
TEST(test_long_unknown_runs)
{
    static const size_t lengths[] = {1, 2, 1364, 1365, 1366, 1367, 5000};
    FOR_ROWS(i, lengths) {
        char *text = calloc(lengths[i] * 3 * 2 + 20, 1), *at = text;
        assert_non_null(text);
        at = stpcpy(at, "a");
        for (size_t k = 0; k < lengths[i]; k++) at = stpcpy(at, "\ue000");
        at = stpcpy(at, "b ");
        for (size_t k = 0; k < lengths[i]; k++) at = stpcpy(at, "\ue001");
        piece_model model = small_model();
        FREED_BY(token_list_free) token_list list = {0};
        assert_string_equal(ids_of(&model, NULL, text, &list), "1 2 0 3 1 0");
        size_t run = 3 * lengths[i];
        const text_span spans[] = {
            {0, 0}, {0, 1}, {1, 1 + run}, {1 + run, 2 + run}, {2 + run, 3 + run}, {3 + run, 3 + 2 * run}};
        assert_memory_equal(list.byte_spans, spans, sizeof spans);
        size_t bytes;
        assert_memory_equal(token_list_text(&list, 2, &bytes), text + 1, run);
        assert_int_equal(bytes, run);
        free(text);
    }
}

/* ------------------------------------------------------------------------------------------------------- damage */

static const char mixed_text[] =
    "The quick\u00a0brown \uff26\uff4f\uff58 \ufb01 A\u0300 \u1112\u1161\u11ab \u2460 \u3042\u3099 \x01\u200b\ufeff x";

/* A model that loads must also work. */
static bool try_model(const uint8_t *bytes, size_t size_bytes)
{
    piece_model model;
    FREED_BY(sentencepiece_free) sentencepiece *u = NULL;
    deberta_error error = {0};
    deberta_status status = piece_model_read(&model, bytes, size_bytes, "test", &error);
    if (status == DEBERTA_OK) status = sentencepiece_create(&u, &model, &(sentencepiece_options){0}, "test", &error);
    assert_true(status == DEBERTA_OK || strlen(error.message) > 10);
    if (u) {
        FREED_BY(sentencepiece_workspace_free) sentencepiece_workspace workspace = {0};
        FREED_BY(token_list_free) token_list list = {0};
        assert_ok(sentencepiece_encode(u, &workspace, mixed_text, sizeof mixed_text - 1, &list, &error));
    }
    return status == DEBERTA_OK;
}

static void read_golden_model(const char *name, uint8_t **bytes, size_t *size_bytes)
{
    char path[TEST_PATH_BYTES];
    FREED_BY(mapped_file_close) mapped_file file;
    assert_ok(mapped_file_open(&file, golden_path(path, name), NULL));
    *bytes = exact_copy(file.bytes, file.size_bytes);
    *size_bytes = file.size_bytes;
}

static bool try_exact(const uint8_t *bytes, size_t size_bytes)
{
    FREED_BY(free_memory) uint8_t *copy = exact_copy(bytes, size_bytes);
    bool loads = try_model(copy, size_bytes);
    return loads;
}

/* Each switch of the trainer (part 2) and of the normaliser (part 3), written as bytes in place of a number. */
TEST(test_switches_that_are_no_numbers)
{
    static const struct {
        uint8_t part;
        unsigned field;
        const char *name;
    } switches[] = {{2, 24, "treat_whitespace_as_suffix"},
                    {2, 35, "byte_fallback"},
                    {3, 3, "add_dummy_prefix"},
                    {3, 4, "remove_extra_whitespaces"},
                    {3, 5, "escape_whitespaces"}};
    FOR_ROWS(i, switches) {
        const unsigned tag = switches[i].field << 3 | 2; /* a block, here of one byte */
        const uint8_t part[] = {(uint8_t)(tag | 0x80), (uint8_t)(tag >> 7), 1, 1};
        uint8_t bytes[2 + sizeof part] = {(uint8_t)(switches[i].part << 3 | 2), sizeof part};
        char expected[100];
        piece_model model;
        deberta_error error = {0};
        memcpy(bytes + 2, part, sizeof part);
        snprintf(expected, sizeof expected, "%s has wire type 2, expected 0", switches[i].name);
        check_refused(piece_model_read(&model, bytes, sizeof bytes, "test", &error), &error, DEBERTA_E_FORMAT,
                      expected);
    }
}

TEST(test_cut_off_models)
{
    static const char *const names[] = {"spm-flags/spm.model", "spm-unigram/spm.model"};
    for (size_t n = 0; n < 2; n++) {
        uint8_t *bytes;
        size_t size_bytes, loaded = 0, tried = 0;
        read_golden_model(names[n], &bytes, &size_bytes);
        assert_true(try_exact(bytes, size_bytes));
        for (size_t length = 0; length < size_bytes; length += length < 300 ? 1 : 97 + length / 8, tried++)
            loaded += try_exact(bytes, length);
        for (size_t length = size_bytes; length > size_bytes - 200; tried++) loaded += try_exact(bytes, --length);
        /* Only at the end of a field can a shorter file look complete. */
        assert_true(tried > 200 && loaded < tried / 4);
        free(bytes);
    }
}

TEST(test_damaged_models)
{
    uint8_t *bytes;
    size_t size_bytes, refused = 0;
    uint64_t random = 7;
    read_golden_model("spm-flags/spm.model", &bytes, &size_bytes);
    for (size_t i = 0; i < 300; i++) {
        size_t at = random_next(&random) % size_bytes;
        uint8_t old = bytes[at];
        bytes[at] = (uint8_t)random_next(&random);
        refused += !try_exact(bytes, size_bytes);
        bytes[at] = old;
    }
    assert_true(refused > 20);
    free(bytes);
}

/* Units of the trie set to anything: either the walk at load sees it, or no text can reach it. */
TEST(test_damaged_charsmaps)
{
    uint8_t *bytes;
    size_t size_bytes, refused = 0;
    uint64_t random = 11;
    FREED_BY(piece_model_free) piece_model golden;
    read_golden_model("spm-unigram/spm.model", &bytes, &size_bytes);
    assert_ok(piece_model_read(&golden, bytes, size_bytes, "test", NULL));
    size_t trie_bytes = load_u32(golden.charsmap);
    assert_true(trie_bytes > 100000 && golden.charsmap_bytes > trie_bytes + 1000);
    const size_t count = getenv("DEBERTA_TEST_QUICK") ? 100 : 400;
    for (size_t i = 0; i < count; i++) {
        FREED_BY(piece_model_free) piece_model model = small_model();
        FREED_BY(normalizer_free) normalizer *n = NULL;
        FREED_BY(normalizer_workspace_free) normalizer_workspace workspace = {0};
        FREED_BY(traced_text_free) traced_text out = {0};
        model.form_kc = i % 3 == 0;
        model.charsmap = exact_copy(golden.charsmap, golden.charsmap_bytes);
        model.charsmap_bytes = golden.charsmap_bytes;
        for (size_t damage = 0; damage <= i % 8; damage++) {
            size_t unit = random_next(&random) % (i % 2 ? 256 : trie_bytes / 4);
            uint32_t value = (uint32_t)random_next(&random) >> random_next(&random) % 32;
            memcpy(model.charsmap + 4 + 4 * unit, &value, sizeof value);
        }
        if (normalizer_create(&n, &model, "test", NULL) == DEBERTA_OK)
            assert_ok(normalizer_run(n, &workspace, &out, mixed_text, sizeof mixed_text - 1, NULL));
        else
            refused++;
    }
    assert_in_range(refused, count / 20, count - count / 20);
    free(bytes);
}

/* A trie of 512 units, of which those given are not empty, and the pool after it. */
typedef struct small_trie {
    uint32_t units[512];
    char pool[8];
} small_trie;

static void empty_trie(small_trie *trie)
{
    *trie = (small_trie){.pool = "-"};
    for (size_t i = 0; i < 512; i++) trie->units[i] = 0x80000000u;
}

static deberta_status normalize_by(const small_trie *trie, const char *text, char *out, size_t capacity)
{
    FREED_BY(piece_model_free) piece_model model = small_model();
    FREED_BY(normalizer_free) normalizer *n = NULL;
    normalizer_workspace workspace = {0}; /* used by form KC alone */
    FREED_BY(traced_text_free) traced_text normal = {0};
    const uint32_t trie_bytes = sizeof trie->units;
    model.charsmap_bytes = 4 + sizeof *trie;
    model.charsmap = malloc(model.charsmap_bytes);
    assert_non_null(model.charsmap);
    memcpy(model.charsmap, &trie_bytes, 4);
    memcpy(model.charsmap + 4, trie->units, trie_bytes);
    memcpy(model.charsmap + 4 + trie_bytes, trie->pool, sizeof trie->pool);
    deberta_status status = normalizer_create(&n, &model, "test", NULL);
    if (status == DEBERTA_OK) status = normalizer_run(n, &workspace, &normal, text, strlen(text), NULL);
    if (status == DEBERTA_OK) {
        assert_true(normal.bytes < capacity);
        memcpy(out, normal.text, normal.bytes);
        out[normal.bytes] = '\0';
    }
    return status;
}

TEST(test_crafted_charsmaps)
{
    char out[64];
    small_trie trie;

    /* "a" leads back to the root, whose value lies far behind the pool. */
    empty_trie(&trie);
    trie.units[0] = 0x61u << 10 | 1u << 8 | 0x61u;
    trie.units[0x61] = 0x7FFFFFFFu;
    assert_int_equal(normalize_by(&trie, "a", out, sizeof out), DEBERTA_E_FORMAT);

    /* A key that is the first byte of a character: as if it were not there. The children of the root lie at 0x100; 0xC3
     * ends a key, and its own children, with its value, lie at 0x40. */
    empty_trie(&trie);
    trie.units[0] = 0x100u << 10;
    trie.units[0x100 ^ 0xC3] = (0x1C3u ^ 0x40u) << 10 | 1u << 8 | 0xC3u;
    trie.units[0x40] = 0x80000000u; /* byte 0 of the pool */
    assert_ok(normalize_by(&trie, "x\u00e9x", out, sizeof out));
    assert_non_null(strstr(out, "x\u00e9x"));
}
