/* Text to ids and back through deberta.h alone: what callers of the library see of a tokenizer.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/tokenizer_golden.h"

static deberta_text plain_text(const char *text)
{
    return (deberta_text){.struct_size = sizeof(deberta_text), .text = text, .text_bytes = strlen(text)};
}

/* ------------------------------------------------------------------------------------- the same as inside, line by line */

typedef struct both_ways {
    const deberta_tokenizer *tokenizer;
    deberta_tokens *tokens;
    token_list list;
    size_t wrong;
} both_ways;

static bool same_as_list(const deberta_tokens *tokens, const token_list *list)
{
    const size_t n = tokens->count;
    for (size_t t = 0; t < n && n == list->count; t++) {
        size_t bytes, own_bytes;
        const char *text = deberta_tokens_text(tokens, t, &bytes), *own = token_list_text(list, t, &own_bytes);
        if (bytes != own_bytes || memcmp(text, own, bytes + 1) != 0) return false;
    }
    return n == list->count && tokens->replaced == list->replaced && tokens->segments == list->segments &&
           memcmp(tokens->roles, list->roles, n) == 0 && memcmp(tokens->ids, list->ids, n * sizeof *list->ids) == 0 &&
           memcmp(tokens->token_types, list->type_ids, n * sizeof *list->type_ids) == 0 &&
           memcmp(tokens->byte_spans, list->byte_spans, n * sizeof *list->byte_spans) == 0 &&
           memcmp(tokens->character_spans, list->char_spans, n * sizeof *list->char_spans) == 0;
}

static void check_line(json_t *row, size_t line, void *context)
{
    both_ways *ways = context;
    const json_t *text = json_object_get(row, "text"), *pair = json_object_get(row, "pair");
    const bool has_pair = json_is_string(pair);
    const deberta_text given = {.struct_size = sizeof given,
                                .text = json_string_value(text),
                                .text_bytes = json_string_length(text),
                                .pair = has_pair ? json_string_value(pair) : NULL,
                                .pair_bytes = has_pair ? json_string_length(pair) : 0};
    encode_row(ways->tokenizer, row, NULL, &ways->list);
    assert_ok(deberta_tokenize(&ways->tokens, ways->tokenizer, &given, NULL));
    const char *difference = first_difference(row, &ways->list);
    if (!difference && same_as_list(ways->tokens, &ways->list)) return;
    print_error("line %zu differs\n", line);
    ways->wrong++;
}

TEST(golden_lines)
{
    static const char *const names[] = {"spm-unigram", "bpe-v1"};
    FOR_ROWS(i, names) {
        deberta_tokenizer *tokenizer = open_golden(names[i]);
        both_ways ways = {.tokenizer = tokenizer};
        assert_int_equal(for_each_golden(names[i], check_line, &ways), 306);
        assert_int_equal(ways.wrong, 0);
        deberta_tokenizer_free(&tokenizer);
        assert_true(ways.tokens->count > 0); /* it does not need the tokenizer any more */
        deberta_tokens_free(&ways.tokens);
        assert_null(ways.tokens);
        token_list_free(&ways.list);
    }
}

/* ------------------------------------------------------------------------------------------------------- a whole use */

TEST(text_to_ids_and_back)
{
    OWN_TOKENIZER *tokenizer = open_golden("spm-unigram");
    FREED_BY(deberta_tokens_free) deberta_tokens *tokens = NULL;
    deberta_text text = plain_text("The cat [MASK] here.");
    text.pair = "And a pair.";
    text.pair_bytes = strlen(text.pair);
    assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));

    const size_t last = tokens->count - 1;
    assert_int_equal(tokens->ids[0], deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_CLS));
    assert_int_equal(tokens->ids[last], deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_SEP));
    assert_int_equal(tokens->token_types[0], 0);
    assert_int_equal(tokens->token_types[last], 1);
    assert_int_equal(tokens->dropped, 0);
    size_t masks = 0;
    for (size_t t = 0; t < tokens->count; t++) {
        if (tokens->ids[t] != deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK)) continue;
        const deberta_span span = tokens->byte_spans[t];
        assert_memory_equal(text.text + span.begin, "[MASK]", span.end - span.begin);
        assert_string_equal(deberta_tokenizer_token(tokenizer, tokens->ids[t], NULL), "[MASK]");
        assert_int_equal(deberta_tokenizer_is_special(tokenizer, tokens->ids[t]), 1);
        masks++;
    }
    assert_int_equal(masks, 1);

    char *back = NULL;
    assert_ok(deberta_detokenize(&back, NULL, tokenizer, tokens->ids, tokens->count, NULL));
    assert_string_equal(back, "The cat [MASK] here. And a pair.");
    deberta_free(back);

    text.literal_specials = 1;
    assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));
    for (size_t t = 0; t < tokens->count; t++)
        assert_int_not_equal(tokens->ids[t], deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK));
}

TEST(cutting_says_how_much)
{
    OWN_TOKENIZER *tokenizer = open_golden("spm-unigram");
    FREED_BY(deberta_tokens_free) deberta_tokens *tokens = NULL;
    deberta_text text = plain_text("the the the the the the");
    assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));
    const size_t whole = tokens->count;
    text.max_tokens = 5;
    assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));
    assert_int_equal(tokens->count, 5);
    assert_int_equal(tokens->dropped, whole - 5);
    assert_int_equal(tokens->ids[4], deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_SEP));
}

/* Broken bytes elsewhere in a text change no span: parts of a character that is whole keep their own bytes. */
TEST(spans_beside_broken_bytes)
{
    static const char alone[] = "\U0001f60a", beside[] = "\U0001f60a\xff";
    OWN_TOKENIZER *tokenizer = open_golden("bpe-v1");
    FREED_BY(deberta_tokens_free) deberta_tokens *whole = NULL, *broken = NULL;
    const deberta_text texts[] = {plain_text(alone), plain_text(beside)};
    assert_ok(deberta_tokenize(&whole, tokenizer, &texts[0], NULL));
    assert_ok(deberta_tokenize(&broken, tokenizer, &texts[1], NULL));
    assert_true(whole->count > 3 && broken->count > whole->count); /* several tokens make the character */
    for (size_t t = 0; t + 1 < whole->count; t++) {
        assert_int_equal(broken->ids[t], whole->ids[t]);
        assert_memory_equal(&broken->byte_spans[t], &whole->byte_spans[t], sizeof(deberta_span));
        assert_memory_equal(&broken->character_spans[t], &whole->character_spans[t], sizeof(deberta_span));
    }
    const deberta_span last = broken->byte_spans[broken->count - 2];
    assert_int_equal(last.begin, 4);
    assert_int_equal(last.end, 5);
}

/* ---------------------------------------------------------------------------------------------------------- folders */

/* A temporary folder with a link to one file of a golden folder; for remove_folder. */
static char *folder_with(const char *golden, const char *name)
{
    char from[TEST_PATH_BYTES], file[TEST_PATH_BYTES], to[TEST_PATH_BYTES], *folder = make_folder();
    FREED_BY(free_memory) char *absolute = realpath(golden_path(from, format_path(file, "%s/%s", golden, name)), NULL);
    assert_non_null(absolute);
    assert_int_equal(symlink(absolute, format_path(to, "%s/%s", folder, name)), 0);
    return folder;
}

TEST(the_five_are_special_and_added_words_are_not)
{
    static const char config[] =
        "{\"mask_token\": \"<m>\", \"added_tokens_decoder\": {\"3001\": {\"content\": \"<m>\"},"
        " \"3002\": {\"content\": \"<x>\", \"special\": true}}}";
    static const char added[] = "{\"foo\": 3003}";
    FREED_BY(remove_folder) char *folder = folder_with("spm-unigram", "spm.model");
    write_file(folder, "tokenizer_config.json", config, sizeof config - 1);
    write_file(folder, "added_tokens.json", added, sizeof added - 1);
    OWN_TOKENIZER *tokenizer = open_folder(folder);
    for (int k = 0; k < DEBERTA_SPECIAL_COUNT; k++) {
        const int32_t id = deberta_tokenizer_special_id(tokenizer, (deberta_special)k);
        assert_int_equal(deberta_tokenizer_is_special(tokenizer, id), 1);
    }
    assert_int_equal(deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK), 3001);
    assert_int_equal(deberta_tokenizer_is_special(tokenizer, 3002), 1);
    assert_string_equal(deberta_tokenizer_token(tokenizer, 3003, NULL), "foo");
    assert_int_equal(deberta_tokenizer_is_special(tokenizer, 3003), 0);
}

static void expect_no_tokenizer(const char *folder, const char *said)
{
    deberta_error error = {0};
    deberta_tokenizer *tokenizer = NULL;
    check_refused(deberta_tokenizer_open(&tokenizer, folder, &error), &error, DEBERTA_E_FILE, said);
    assert_null(tokenizer);
}

/* A download cache that was copied without what its links point to: neither a folder without a tokenizer nor one
 * without its configuration, which would give other ids. */
TEST(links_that_lead_nowhere)
{
    char path[TEST_PATH_BYTES], *folder = make_folder();
    assert_int_equal(symlink("../blobs/none", format_path(path, "%s/spm.model", folder)), 0);
    expect_no_tokenizer(folder, "symbolic link to a file that does not exist");
    remove_folder(&folder);

    folder = folder_with("spm-unigram", "spm.model");
    assert_int_equal(symlink("../blobs/none", format_path(path, "%s/tokenizer_config.json", folder)), 0);
    expect_no_tokenizer(folder, "tokenizer_config.json");
    remove_folder(&folder);
}

/* Half of a vocabulary does not hide the whole one beside it. */
TEST(vocabulary_without_merges)
{
    FREED_BY(remove_folder) char *folder = folder_with("bpe-v1", "vocab.json");
    expect_no_tokenizer(folder, "merges.txt");
    write_file(folder, "bpe_encoder.bin", "damaged", 7);
    deberta_error error = {0};
    deberta_tokenizer *tokenizer = NULL;
    check_refused(deberta_tokenizer_open(&tokenizer, folder, &error), &error, DEBERTA_E_FORMAT, "bpe_encoder.bin");
}

/* ----------------------------------------------------------------------------------------------------- what is refused */

static void expect_refused(deberta_tokens **tokens, const deberta_tokenizer *tokenizer, const deberta_text *text,
                           deberta_status expected, const char *said)
{
    deberta_error error = {0};
    check_refused(deberta_tokenize(tokens, tokenizer, text, &error), &error, expected, said);
    assert_int_equal(error.code, expected);
}

/* Many lists that are kept, made from one that is used again and again. */
TEST(copies_stay_what_they_are)
{
    deberta_tokenizer *tokenizer = open_golden("spm-unigram");
    deberta_tokens *tokens = NULL, *copies[4] = {NULL}, *again = NULL;
    for (size_t i = 0; i < 4; i++) {
        deberta_text text = plain_text("the [MASK] the \xff the");
        text.text_bytes = 3 + 8 * (i > 0) + 2 * (i > 1); /* "the", "the [MASK] ", "the [MASK] th" */
        text.pair = i == 3 ? "a pair" : NULL;
        text.max_tokens = i == 3 ? 6 : 0;
        assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));
        assert_ok(deberta_tokens_copy(&copies[i], tokens, NULL));
        assert_ptr_not_equal(copies[i]->ids, tokens->ids);
    }
    assert_int_equal(copies[0]->count, 3);
    assert_string_equal(deberta_tokens_text(copies[0], 1, NULL), "\u2581the");
    assert_int_equal(copies[1]->roles[0], DEBERTA_TOKEN_FRAME);
    assert_int_equal(copies[1]->roles[1], DEBERTA_TOKEN_TEXT);
    bool spelled = false;
    for (size_t t = 0; t < copies[1]->count; t++) spelled |= copies[1]->roles[t] == DEBERTA_TOKEN_SPELLED;
    assert_true(spelled);
    assert_int_equal(copies[2]->segments, 1);
    assert_int_equal(copies[3]->segments, 2);
    assert_int_equal(copies[3]->count, 6);
    assert_int_equal(copies[3]->dropped, tokens->dropped);
    assert_true(copies[3]->dropped > 0);
    assert_ok(deberta_tokens_copy(&again, copies[3], NULL));
    assert_memory_equal(again->ids, tokens->ids, 6 * sizeof *again->ids);
    assert_null(deberta_tokens_text(again, 6, NULL));
    assert_null(deberta_tokens_text(NULL, 0, NULL));
    deberta_tokens_free(&again);
    again = tokens; /* must become NULL */
    assert_int_equal(deberta_tokens_copy(&again, NULL, NULL), DEBERTA_E_ARGUMENT);
    assert_null(again);
    assert_int_equal(deberta_tokens_copy(NULL, tokens, NULL), DEBERTA_E_ARGUMENT);
    deberta_tokenizer_free(&tokenizer);
    for (size_t i = 0; i < 4; i++) deberta_tokens_free(&copies[i]);
    deberta_tokens_free(&tokens);
}

TEST(the_first_broken_byte_is_told)
{
    OWN_TOKENIZER *tokenizer = open_golden("spm-unigram");
    FREED_BY(deberta_tokens_free) deberta_tokens *tokens = NULL;
    deberta_text text = plain_text("fine");
    text.pair = "not \xff fine \xff";
    assert_ok(deberta_tokenize(&tokens, tokenizer, &text, NULL));
    assert_int_equal(tokens->replaced, 2);
    assert_int_equal(tokens->first_replaced_segment, 1);
    assert_int_equal(tokens->first_replaced_byte, 4);
}

/* Whoever sets no length means the whole text, and an empty text stays empty. */
TEST(lengths_are_found)
{
    OWN_TOKENIZER *tokenizer = open_golden("spm-unigram");
    FREED_BY(deberta_tokens_free) deberta_tokens *counted = NULL, *found = NULL;
    deberta_text text = plain_text("The cat sat.");
    text.pair = "And a pair.";
    text.pair_bytes = strlen(text.pair);
    assert_ok(deberta_tokenize(&counted, tokenizer, &text, NULL));
    text.text_bytes = text.pair_bytes = 0;
    assert_ok(deberta_tokenize(&found, tokenizer, &text, NULL));
    assert_int_equal(found->count, counted->count);
    assert_memory_equal(found->ids, counted->ids, counted->count * sizeof *counted->ids);
    text.text = text.pair = "";
    assert_ok(deberta_tokenize(&found, tokenizer, &text, NULL));
    assert_int_equal(found->count, 3);
    text.text = text.pair = NULL;
    assert_ok(deberta_tokenize(&found, tokenizer, &text, NULL));
    assert_int_equal(found->count, 2);
    text.text = "\0cat"; /* a NUL inside needs the length */
    text.text_bytes = 4;
    assert_ok(deberta_tokenize(&found, tokenizer, &text, NULL));
    assert_true(found->count > 2);
}

TEST(refusals_leave_an_empty_list)
{
    deberta_tokenizer *tokenizer = open_golden("spm-unigram");
    deberta_tokens *tokens = NULL;
    const deberta_text good = plain_text("good");
    deberta_text broken = plain_text("bad \xFF"), short_frame = plain_text("a"), no_size = plain_text("a");
    assert_ok(deberta_tokenize(&tokens, tokenizer, &broken, NULL));
    assert_int_equal(tokens->replaced, 1);
    deberta_tokens_free(&tokens);

    broken.strict = 1;
    expect_refused(&tokens, tokenizer, &broken, DEBERTA_E_FORMAT, "0xFF");
    assert_null(tokens);
    assert_ok(deberta_tokenize(&tokens, tokenizer, &good, NULL));
    expect_refused(&tokens, tokenizer, &broken, DEBERTA_E_FORMAT, "0xFF");
    assert_int_equal(tokens->count, 0);
    short_frame.max_tokens = 1;
    expect_refused(&tokens, tokenizer, &short_frame, DEBERTA_E_ARGUMENT, "1");
    assert_int_equal(tokens->count, 0);
    no_size.struct_size = 0;
    expect_refused(&tokens, tokenizer, &no_size, DEBERTA_E_ARGUMENT, "struct_size");
    expect_refused(&tokens, tokenizer, NULL, DEBERTA_E_ARGUMENT, "text is NULL");
    assert_ok(deberta_tokenize(&tokens, tokenizer, &good, NULL));
    expect_refused(&tokens, NULL, &good, DEBERTA_E_ARGUMENT, "tokenizer is NULL");
    assert_int_equal(tokens->count, 0);
    expect_refused(&tokens, tokenizer, &(deberta_text){.struct_size = sizeof(deberta_text), .text_bytes = 5},
                   DEBERTA_E_ARGUMENT, "the text is NULL, but has 5 bytes");
    expect_refused(&tokens, tokenizer,
                   &(deberta_text){.struct_size = sizeof(deberta_text), .text = "a", .text_bytes = 1, .pair_bytes = 5},
                   DEBERTA_E_ARGUMENT, "the second text is NULL, but has 5 bytes");
    expect_refused(NULL, tokenizer, &good, DEBERTA_E_ARGUMENT, "place");
    assert_ok(deberta_tokenize(&tokens, tokenizer, &good, NULL));
    assert_true(tokens->count > 2);
    char *back = NULL;
    assert_int_equal(deberta_detokenize(NULL, NULL, tokenizer, tokens->ids, 1, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_detokenize(&back, NULL, NULL, tokens->ids, 1, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_detokenize(&back, NULL, tokenizer, NULL, 1, NULL), DEBERTA_E_ARGUMENT);
    assert_null(back);
    assert_int_equal(deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_COUNT), -1);
    deberta_tokens_free(&tokens);
    deberta_tokens_free(&tokens);
    deberta_tokens_free(NULL);
    deberta_tokenizer_free(&tokenizer);
    deberta_tokenizer_free(&tokenizer);
    deberta_tokenizer_free(NULL);
    assert_int_equal(deberta_tokenizer_open(NULL, "x", NULL), DEBERTA_E_ARGUMENT);
}
