/* Byte-level BPE by hand: SPEC's toy, words, merging against the rule written down naively, bpe_encoder.bin.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/base/text.h"
#include "core/text/bpe_files.h"
#include "core/text/byte_bpe.h"

static void add_token(byte_bpe *bpe, const char *text, int64_t id)
{
    assert_ok(byte_bpe_add_token(bpe, text, strlen(text), id, "test", NULL));
}

static void encode_text(const byte_bpe *bpe, const char *text, size_t bytes, token_list *list)
{
    FREED_BY(byte_bpe_workspace_free) byte_bpe_workspace workspace = {0};
    size_t covered = 0;
    token_list_clear(list);
    assert_ok(byte_bpe_encode(bpe, &workspace, text, bytes, list, NULL));
    for (size_t i = 0; i < list->count; i++) {
        assert_int_equal(list->byte_spans[i].begin, covered);
        covered = list->byte_spans[i].end;
    }
    assert_int_equal(covered, bytes);
}

static void check_ids(const byte_bpe *bpe, const char *text, const char *expected)
{
    FREED_BY(token_list_free) token_list list = {0};
    char ids[400] = "";
    size_t at = 0;
    encode_text(bpe, text, strlen(text), &list);
    for (size_t i = 0; i < list.count; i++)
        at += (size_t)snprintf(ids + at, sizeof ids - at, "%s%d", i ? " " : "", (int)list.ids[i]);
    assert_string_equal(ids, expected);
}

TEST(test_toy)
{
    static const char *const tokens[] = {"l",
                                         "o",
                                         "w",
                                         "e",
                                         "r",
                                         "s",
                                         "t",
                                         "i",
                                         "d",
                                         "n",
                                         "\u0120",
                                         "\u0120l",
                                         "\u0120n",
                                         "\u0120lo",
                                         "\u0120low",
                                         "er",
                                         "\u0120lowest",
                                         "\u0120newer",
                                         "\u0120wider",
                                         "[UNK]"};
    static const char merges[] = "#version: 0.2\n\u0120 l\n\u0120l o\n\u0120lo w\ne r\n";
    FREED_BY(byte_bpe_free) byte_bpe *bpe;
    assert_ok(byte_bpe_create(&bpe, NULL));
    for (size_t i = 0; i < 20; i++) add_token(bpe, tokens[i], (int64_t)i);
    assert_ok(bpe_files_add_merges(bpe, merges, strlen(merges), "test", NULL));
    assert_ok(byte_bpe_finish(bpe, 19, "test", NULL));
    check_ids(bpe, "lower newer", "0 1 2 15 10 9 3 2 15");
    check_ids(bpe, " low lower", "14 14 15");
    check_ids(bpe, "", "");
    check_ids(bpe, "lx", "0 19"); /* a byte that is not in the vocabulary */
    check_ids(bpe, "\u00e9", "19 19");
}

TEST(test_byte_alphabet)
{
    static const uint32_t pairs[][2] = {{0x100, 0},    {0x10A, 0x0A}, {0x120, 0x20}, {0x121, 0x7F},
                                        {0x122, 0x80}, {0x142, 0xA0}, {0x143, 0xAD}};
    bool seen[256] = {false};
    size_t mapped = 0;
    for (uint32_t c = 0; c < 0x400; c++) {
        int byte = byte_bpe_byte(c);
        if (c < 0x100)
            assert_int_equal(byte, (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174 ? (int)c : -1);
        if (byte < 0) continue;
        assert_false(seen[byte]);
        seen[byte] = true;
        mapped++;
    }
    assert_int_equal(mapped, 256);
    FOR_ROWS(i, pairs) assert_int_equal(byte_bpe_byte(pairs[i][0]), pairs[i][1]);
}

/* -------------------------------------------------------------------------------------------------------- words
 *
 * A vocabulary made for one text: it has every beginning of every expected word, so that each becomes one token, and
 * merges (after all others) across every boundary between them, which take effect where the splitter missed it. */

static size_t spell(char *out, const char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < bytes; i++)
        for (uint32_t c = 0; c < 0x144; c++)
            if (byte_bpe_byte(c) == (unsigned char)text[i]) at += utf8_encode(out + at, c);
    return at;
}

/* Adds the merge of text[0, at) and text[at, bytes) and its result, unless they are there. */
static void add_merge(byte_bpe *bpe, const char *text, size_t at, size_t bytes)
{
    char left[100], right[100], merged[100];
    size_t left_bytes = spell(left, text, at), right_bytes = spell(right, text + at, bytes - at);
    size_t merged_bytes = spell(merged, text, bytes);
    if (byte_bpe_find(bpe, merged, merged_bytes) >= 0) return;
    assert_ok(byte_bpe_add_token(bpe, merged, merged_bytes, (int64_t)byte_bpe_size(bpe), "test", NULL));
    assert_ok(byte_bpe_add_merge(bpe, left, left_bytes, right, right_bytes, "test", NULL));
}

static byte_bpe *make_for_words(const char *const *words)
{
    byte_bpe *bpe;
    assert_ok(byte_bpe_create(&bpe, NULL));
    for (int byte = 0; byte < 256; byte++) {
        char symbol[UTF8_MAX_BYTES + 1] = "", c = (char)byte;
        spell(symbol, &c, 1);
        add_token(bpe, symbol, byte);
    }
    for (const char *const *word = words; *word; word++)
        for (size_t bytes = 2; bytes <= strlen(*word); bytes++) add_merge(bpe, *word, bytes - 1, bytes);
    for (const char *const *word = words; word[0] && word[1]; word++) {
        const char across[] = {word[0][strlen(word[0]) - 1], word[1][0]};
        add_merge(bpe, across, 1, 2);
    }
    assert_ok(byte_bpe_finish(bpe, 0, "test", NULL));
    return bpe;
}

TEST(test_words)
{
    static const char *const cases[][12] = {
        {"a", " ", " b"},
        {"a", "\n", "\n", "b"},
        {"it", "'s", " IT", "'", "S"},
        {"we", "'ll", " I", "'m", " you", "'re", " I", "'ve", " he", "'d", " can", "'t"},
        {" ", "\u00a0", "b"},
        {"\n\n \n  \n", " Hello"},
        {"e", "\u0301"},
        {"\"'", "s"},
        {"ab", "12", " 34", "cd", " .,", "  "},
        {"x", "\u00b2\u00bd\u0663", "\u4e2d\u6587"},
        {"x", " \u180e", "x"}, /* not white space, though \s of PCRE2 with UCP says so */
        {"x", "\xc2\x85", "x"},
        {"x", "\u2003", "\u3000", "x"},
        {"x", "\x1c\x1f", "x"}, /* white space to Python only */
        {"x", "\u200b", "x"},
        {"x", "\t", " x"},
        {"\u2603\u200d", " \u00a9"},
        {"don", "'", "T", " '", "tis"},
    };
    FOR_ROWS(i, cases) {
        char text[200] = "";
        size_t count = 0, at = 0;
        FREED_BY(token_list_free) token_list list = {0};
        const char *words[13] = {NULL};
        for (; count < 12 && cases[i][count]; count++) strcat(text, words[count] = cases[i][count]);
        FREED_BY(byte_bpe_free) byte_bpe *bpe = make_for_words(words);
        encode_text(bpe, text, strlen(text), &list);
        for (size_t w = 0; w < count && w < list.count; w++) {
            at += strlen(words[w]);
            if (list.byte_spans[w].end != at)
                fail_msg("case %zu: word %zu ends at byte %zu", i, w, list.byte_spans[w].end);
        }
        assert_int_equal(list.count, count);
    }
}

/* ------------------------------------------------------------------------------------------------------ merging */

enum { MAX_MERGES = 60, MAX_WORD = 300 };

typedef struct naive_bpe {
    int32_t merges[MAX_MERGES][3]; /* left, right, result, in order of rank */
    size_t count;
} naive_bpe;

/* The rule: take the pair of lowest rank that occurs, merge all its occurrences from left to right, again. */
static size_t merge_naively(const naive_bpe *naive, int32_t *ids, size_t count)
{
    for (;;) {
        size_t best = naive->count;
        for (size_t i = 0; i + 1 < count; i++)
            for (size_t rank = 0; rank < best; rank++)
                if (naive->merges[rank][0] == ids[i] && naive->merges[rank][1] == ids[i + 1]) best = rank;
        if (best == naive->count) return count;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            bool merge = i + 1 < count && ids[i] == naive->merges[best][0] && ids[i + 1] == naive->merges[best][1];
            ids[kept++] = merge ? naive->merges[best][2] : ids[i];
            i += merge;
        }
        count = kept;
    }
}

/* Random tokens over three letters; the merges are shuffled, so that their order is none that training could give. */
static byte_bpe *make_random(uint64_t *random, naive_bpe *naive)
{
    char texts[MAX_MERGES + 3][40] = {"a", "b", "c"};
    size_t tokens = 3;
    byte_bpe *bpe;
    assert_ok(byte_bpe_create(&bpe, NULL));
    for (int32_t i = 0; i < 3; i++) add_token(bpe, texts[i], i);
    for (naive->count = 0; naive->count < MAX_MERGES;) {
        size_t left = random_below(random, tokens), right = random_below(random, tokens), result = 0;
        char merged[80];
        snprintf(merged, sizeof merged, "%s%s", texts[left], texts[right]);
        bool known = false;
        for (size_t i = 0; i < naive->count; i++)
            known = known || (naive->merges[i][0] == (int32_t)left && naive->merges[i][1] == (int32_t)right);
        if (known || strlen(merged) > 12) continue;
        while (result < tokens && strcmp(texts[result], merged) != 0) result++;
        if (result == tokens) {
            add_token(bpe, strcpy(texts[tokens], merged), (int64_t)tokens);
            tokens++;
        }
        int32_t *merge = naive->merges[naive->count++];
        merge[0] = (int32_t)left, merge[1] = (int32_t)right, merge[2] = (int32_t)result;
    }
    for (size_t i = naive->count; i > 1; i--) {
        size_t other = random_below(random, i);
        int32_t swap[3];
        memcpy(swap, naive->merges[i - 1], sizeof swap);
        memcpy(naive->merges[i - 1], naive->merges[other], sizeof swap);
        memcpy(naive->merges[other], swap, sizeof swap);
    }
    for (size_t i = 0; i < naive->count; i++) {
        const char *left = texts[naive->merges[i][0]], *right = texts[naive->merges[i][1]];
        assert_ok(byte_bpe_add_merge(bpe, left, strlen(left), right, strlen(right), "test", NULL));
    }
    assert_ok(byte_bpe_finish(bpe, 0, "test", NULL));
    return bpe;
}

TEST(test_merging)
{
    uint64_t random = 3;
    for (size_t round = 0; round < 200; round++) {
        naive_bpe naive;
        FREED_BY(byte_bpe_free) byte_bpe *bpe = make_random(&random, &naive);
        for (size_t word = 0; word < 20; word++) {
            char text[MAX_WORD];
            int32_t ids[MAX_WORD];
            size_t count = 1 + random_below(&random, word < 15 ? 12 : MAX_WORD - 1),
                   letters = 1 + random_below(&random, 3);
            for (size_t i = 0; i < count; i++) {
                ids[i] = (int32_t)random_below(&random, letters);
                text[i] = (char)('a' + ids[i]);
            }
            FREED_BY(token_list_free) token_list list = {0};
            encode_text(bpe, text, count, &list);
            size_t expected = merge_naively(&naive, ids, count);
            assert_int_equal(list.count, expected);
            assert_memory_equal(list.ids, ids, expected * sizeof *ids);
        }
    }
}

TEST(test_refused_merges)
{
    static const struct {
        const char *lines, *word;
    } cases[] = {
        {"a b\na b\n", "line 2"}, {"a b c\n", "3 symbols"}, {"a b\n\na b\n", "line 2"}, {"x a\n", "'x'"},
        {"a x\n", "'x'"},         {"b a\n", "'ba'"},        {"a\n", "1 symbols"},       {"#version\nq\n", "line 2"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(byte_bpe_free) byte_bpe *bpe;
        deberta_error error = {0};
        assert_ok(byte_bpe_create(&bpe, NULL));
        add_token(bpe, "a", 0);
        add_token(bpe, "b", 1);
        add_token(bpe, "ab", 7);
        assert_int_equal(byte_bpe_size(bpe), 8);
        assert_null(byte_bpe_token(bpe, 3, NULL));
        check_refused(bpe_files_add_merges(bpe, cases[i].lines, strlen(cases[i].lines), "test", &error), &error,
                      DEBERTA_E_FORMAT, cases[i].word);
    }
}

TEST(test_good_merge_lines)
{
    static const char *const lines[] = {"a b", "a b\n", "#version: 0.2\na b\n", "#version: 0.2\r\na b\r\n"};
    FOR_ROWS(i, lines) {
        FREED_BY(byte_bpe_free) byte_bpe *bpe;
        assert_ok(byte_bpe_create(&bpe, NULL));
        add_token(bpe, "a", 0);
        add_token(bpe, "b", 1);
        add_token(bpe, "ab", 2);
        assert_ok(bpe_files_add_merges(bpe, lines[i], strlen(lines[i]), "test", NULL));
        assert_ok(byte_bpe_finish(bpe, 0, "test", NULL));
        check_ids(bpe, "abba", "2 1 0");
    }
}

/* ---------------------------------------------------------------------------------------------- bpe_encoder.bin
 *
 * GPT-2's ids are 5, 0, 3 for a, b, ab; in dict_map 0 comes first, then a filler, then 3, then 5. */

static void put_pair(buffer *out, const char *left, const char *right, bool count)
{
    put_text(out, left);
    if (count)
        put_integer(out, 9);
    else
        put_text(out, right);
    put_byte(out, 0x86);
}

static void put_encoder_dict(buffer *out, bool as_text, const char *last_gpt2_id)
{
    put(out, "\x80\x02}(", 4);
    put_text(out, "dict_map");
    put_string(out, "](");
    put_pair(out, "0", NULL, true);
    put_pair(out, "madeupword0000", NULL, true);
    put_pair(out, "3", NULL, true);
    put_pair(out, last_gpt2_id, NULL, true);
    put_byte(out, 'e');
    put_text(out, "vocab");
    if (as_text)
        put_text(out, "#version: 0.2\na b\n");
    else {
        put_string(out, "](");
        put_pair(out, "a", "b", false);
        put_byte(out, 'e');
    }
    put_text(out, "encoder");
    if (as_text)
        put_text(out, "{\"a\": 5, \"b\": 0, \"ab\": 3}");
    else {
        put_string(out, "}(");
        put_text(out, "a"), put_integer(out, 5), put_text(out, "b"), put_integer(out, 0);
        put_text(out, "ab"), put_integer(out, 3);
        put_byte(out, 'u');
    }
    put_string(out, "u.");
}

static deberta_status load_encoder(byte_bpe **bpe, const void *bytes, size_t count, deberta_error *error)
{
    char path[600];
    FREED_BY(remove_folder) char *folder = make_folder();
    write_file(folder, "bpe_encoder.bin", bytes, count);
    snprintf(path, sizeof path, "%s/bpe_encoder.bin", folder);
    deberta_status status = bpe_encoder_load(bpe, path, error);
    assert_true((*bpe != NULL) == (status == DEBERTA_OK));
    return status;
}

static void check_encoder(const buffer *file)
{
    FREED_BY(byte_bpe_free) byte_bpe *bpe;
    deberta_error error = {0};
    if (load_encoder(&bpe, file->bytes, file->count, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    assert_ok(byte_bpe_finish(bpe, 3, "test", NULL));
    assert_int_equal(byte_bpe_size(bpe), 8);
    assert_int_equal(byte_bpe_find(bpe, "[CLS]", 5), 1);
    assert_string_equal(byte_bpe_token(bpe, 5, NULL), "madeupword0000");
    check_ids(bpe, "abbac", "6 4 7 3");
}

TEST(test_bpe_encoder)
{
    for (int as_text = 0; as_text < 2; as_text++) {
        buffer code = {0}, legacy = {0};
        put_encoder_dict(&code, as_text, "5");
        put_legacy_head(&legacy);
        put_buffer(&legacy, &code);
        check_encoder(&legacy);

        zip_writer zip = {0};
        zip_add(&zip, "archive/data.pkl", code.bytes, code.count, 0);
        zip_add(&zip, "archive/version", "3\n", 2, 0);
        zip_end(&zip, false);
        check_encoder(&zip.out);

        for (size_t cut = 0; cut + 1 < legacy.count; cut++) {
            byte_bpe *bpe;
            deberta_error error = {0};
            assert_int_not_equal(load_encoder(&bpe, legacy.bytes, cut, &error), DEBERTA_OK);
            assert_non_null(strstr(error.message, "bpe_encoder.bin"));
        }
        buffer_free(&code);
        buffer_free(&legacy);
        buffer_free(&zip.out);
    }
}

TEST(test_bad_bpe_encoders)
{
    static const struct {
        const char *last_gpt2_id, *word;
    } cases[] = {{"6", "'a'"}, {"3", "twice"}, {"99999999999999999999", "'a'"}, {"", "empty"}};
    byte_bpe *bpe;
    deberta_error error = {0};
    FOR_ROWS(i, cases) {
        FREED_BY(buffer_free) buffer file = {0};
        put_legacy_head(&file);
        put_encoder_dict(&file, i % 2, cases[i].last_gpt2_id);
        check_refused(load_encoder(&bpe, file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT, cases[i].word);
    }
    buffer file = {0};
    put_legacy_head(&file);
    put(&file, "\x80\x02}.", 4);
    check_refused(load_encoder(&bpe, file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT, "dict_map");
    buffer_free(&file);
    check_refused(load_encoder(&bpe, "hello", 5, &error), &error, DEBERTA_E_FORMAT, "bpe_encoder.bin");
}

/* Where a pair belongs, anything else: nothing that is no container may be walked into. */
TEST(test_no_pairs)
{
    static const char *const items[] = {"X\x03\0\0\0abc", "J\xff\xff\xff\x7f", "N", "\x88", "]", "}", ")"};
    static const size_t item_bytes[] = {8, 5, 1, 1, 1, 1, 1};
    byte_bpe *bpe;
    FOR_ROWS(i, items) {
        for (int in_vocab = 0; in_vocab < 2; in_vocab++) {
            deberta_error error = {0};
            FREED_BY(buffer_free) buffer file = {0};
            put_legacy_head(&file);
            put(&file, "\x80\x02}(", 4);
            put_text(&file, "dict_map");
            put_string(&file, "](");
            if (in_vocab)
                put_pair(&file, "0", NULL, true);
            else
                put(&file, items[i], item_bytes[i]);
            put_byte(&file, 'e');
            put_text(&file, "vocab");
            put_string(&file, "](");
            put(&file, items[i], item_bytes[i]);
            put_byte(&file, 'e');
            put_text(&file, "encoder");
            put_string(&file, "}u.");
            const deberta_status status = load_encoder(&bpe, file.bytes, file.count, &error);
            /* A text is a line of merges; this one has no space. */
            check_refused(status, &error, DEBERTA_E_FORMAT, in_vocab ? "vocab[0]" : "dict_map[0]");
        }
    }
}
