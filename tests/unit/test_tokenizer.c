/* Every golden line of every tokenizer, every damaged folder, and what a text can be made of.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_HAVE_A_MAIN
#include "tests/unit/test.h"

#include "tests/unit/tokenizer_golden.h"

#include <pthread.h>

#include "core/base/text.h"

/* ----------------------------------------------------------------------------------------------- golden lines */

typedef struct golden_run {
    const deberta_tokenizer *tokenizer;
    const char *name;
    token_list list;
    size_t wrong, literal;
} golden_run;

static void check_row(json_t *row, size_t line, void *context)
{
    golden_run *run = context;
    encode_row(run->tokenizer, row, NULL, &run->list);
    const char *difference = first_difference(row, &run->list);
    if (difference) {
        print_error("%s: line %zu: %s differ\n", run->name, line, difference);
        run->wrong++;
    }
}

static size_t check_golden(const char *name, const char *folder)
{
    deberta_tokenizer *t = open_folder(folder);
    golden_run run = {.tokenizer = t, .name = name};
    size_t lines = for_each_golden(name, check_row, &run);
    token_list_free(&run.list);
    deberta_tokenizer_free(&t);
    assert_int_equal(run.wrong, 0);
    return lines;
}

TEST(golden)
{
    static const struct {
        const char *name;
        size_t lines;
    } cases[] = {{"spm-unigram", 306}, {"spm-bytefallback", 152}, {"spm-bpe", 152},         {"spm-flags", 112},
                 {"bpe-v1", 306},      {"metaspace", 200},        {"metaspace-flags", 200}, {"spaceless", 192}};
    FOR_ROWS(i, cases) {
        char path[TEST_PATH_BYTES];
        assert_int_equal(check_golden(cases[i].name, golden_path(path, cases[i].name)), cases[i].lines);
    }
}

/* A temporary folder with links to some files of a golden folder; for remove_folder. */
static char *linked_folder(const char *name, const char *const *files)
{
    char *folder = make_folder();
    for (; *files; files++) {
        char file[TEST_PATH_BYTES], from[TEST_PATH_BYTES], to[TEST_PATH_BYTES];
        FREED_BY(free_memory)
        char *absolute = realpath(golden_path(from, format_path(file, "%s/%s", name, *files)), NULL);
        assert_non_null(absolute);
        assert_int_equal(symlink(absolute, format_path(to, "%s/%s", folder, *files)), 0);
    }
    return folder;
}

/* The same lines from other files of the same tokenizer. */
TEST(golden_from_other_files)
{
    static const struct {
        const char *name, *files[5], *file_name;
        size_t lines;
    } cases[] = {
        {"spm-unigram", {"spm.model"}, "spm.model", 306},
        {"spm-unigram", {"spm.model", "added_tokens.json"}, "spm.model", 306},
        {"spm-unigram", {"tokenizer.json"}, "tokenizer.json", 306},
        {"spm-unigram", {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}, "tokenizer.json", 306},
        {"bpe-v1", {"tokenizer.json"}, "tokenizer.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt"}, "vocab.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt", "special_tokens_map.json"}, "vocab.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt", "tokenizer_config.json"}, "vocab.json", 306},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(remove_folder) char *folder = linked_folder(cases[i].name, cases[i].files);
        deberta_tokenizer *t = open_folder(folder);
        assert_string_equal(tokenizer_file_name(t), cases[i].file_name);
        deberta_tokenizer_free(&t);
        assert_int_equal(check_golden(cases[i].name, folder), cases[i].lines);
    }
}

/* "raw_sp_ids": special tokens not found, no frame, one list for each segment. */
static void check_literal_row(json_t *row, size_t line, void *context)
{
    golden_run *run = context;
    const json_t *raw = json_object_get(row, "raw_sp_ids");
    if (!raw) return;
    encode_row(run->tokenizer, row, &(tokenizer_options){.literal_specials = true}, &run->list);
    bool same = true;
    size_t at = 1;
    for (size_t segment = 0; segment < json_array_size(raw); segment++, at++)
        for (size_t i = 0; i < json_array_size(json_array_get(raw, segment)); i++, at++)
            same = same && at < run->list.count &&
                   json_integer_value(json_array_get(json_array_get(raw, segment), i)) == run->list.ids[at];
    if (!same || at != run->list.count) print_error("%s: line %zu: raw ids differ\n", run->name, line);
    run->wrong += !same || at != run->list.count;
    run->literal++;
}

TEST(literal_specials)
{
    static const char *const names[] = {"spm-unigram", "spm-bytefallback", "spm-bpe", "spm-flags"};
    FOR_ROWS(i, names) {
        OWN_TOKENIZER *t = open_golden(names[i]);
        golden_run run = {.tokenizer = t, .name = names[i]};
        for_each_golden(names[i], check_literal_row, &run);
        assert_int_equal(run.wrong, 0);
        assert_true(run.literal >= 10);
        token_list_free(&run.list);
    }
}

/* --------------------------------------------------------------------------------------------- damaged folders */

/* Texts that use whatever a model can do: known and unknown characters, spaces, NUL, composed and broken ones. */
static const struct {
    const char *text;
    size_t bytes;
} awkward_texts[] = {
#define TEXT(literal) .text = literal, .bytes = sizeof literal - 1
    {TEXT("")},
    {TEXT(" ")},
    {TEXT("   \t\n ")},
    {TEXT("a")},
    {TEXT("ab a b")},
    {TEXT("hello world")},
    {TEXT("\0")},
    {TEXT("a\0b\0")},
    {TEXT("h\u00e9 \u2581 \ufffd \U0001f600\u0301\u00a0x")},
    {TEXT("\uff21\u0301 \ufb01 \u1112\u1161\u11ab \u3000 \u2460")},
    {TEXT("[MASK] [MASK[MASK]] [CLS][SEP]")},
    {TEXT("\xff\xfe\x80")},
    {TEXT("caf\xc3")},
    {TEXT("\xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf")},
#undef TEXT
};
enum { AWKWARD_TEXTS = sizeof awkward_texts / sizeof *awkward_texts };

static void check_spans(const token_list *list, const text_span *spans, const size_t lengths[2])
{
    text_span last = {0, 0};
    for (size_t i = 0; i < list->count; i++) {
        if (list->roles[i] == TOKEN_FRAME) {
            last = (text_span){0, 0};
            continue;
        }
        assert_true(spans[i].begin <= spans[i].end && spans[i].end <= lengths[list->type_ids[i]]);
        assert_true(spans[i].begin >= last.begin && spans[i].end >= last.end);
        last = spans[i];
    }
}

/* What holds for every list, whatever the text. */
static void check_invariants(const deberta_tokenizer *t, const token_list *list, const size_t bytes[2])
{
    assert_true(list->count >= list->segments + 1);
    assert_int_equal(list->roles[0], TOKEN_FRAME);
    assert_int_equal(list->ids[0], deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_CLS));
    assert_int_equal(list->ids[list->count - 1], deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_SEP));
    for (size_t i = 0; i < list->count; i++) {
        size_t text_bytes;
        assert_true(list->ids[i] >= 0 && (size_t)list->ids[i] < deberta_tokenizer_vocabulary_size(t));
        const char *text = token_list_text(list, i, &text_bytes);
        assert_int_equal(text[text_bytes], '\0');
        assert_int_equal(utf8_valid_prefix(text, text_bytes, NULL), text_bytes);
    }
    check_spans(list, list->byte_spans, bytes);
    check_spans(list, list->char_spans, bytes); /* never more characters than bytes */
}

static void encode_awkward(const deberta_tokenizer *t)
{
    FREED_BY(token_list_free) token_list list = {0};
    for (size_t i = 0; i < 2 * AWKWARD_TEXTS; i++) {
        deberta_error error = {0};
        size_t a = i / 2, b = (i * 5 + 1) % AWKWARD_TEXTS;
        const char *pair = i % 2 ? awkward_texts[b].text : NULL;
        const size_t bytes[2] = {awkward_texts[a].bytes, awkward_texts[b].bytes};
        assert_ok(tokenizer_encode(t, awkward_texts[a].text, bytes[0], pair, bytes[1], NULL, &list, &error));
        check_invariants(t, &list, bytes);
    }
}

static void check_ids(const deberta_tokenizer *t, const char *text, const int32_t *ids, size_t count)
{
    FREED_BY(token_list_free) token_list list = {0};
    assert_ok(tokenizer_encode(t, text, strlen(text), NULL, 0, NULL, &list, NULL));
    if (list.count != count || memcmp(list.ids, ids, count * sizeof *ids) != 0) {
        print_error("'%s' gives", text);
        for (size_t i = 0; i < list.count; i++) print_error(" %d", (int)list.ids[i]);
        fail_msg("%s", ", which is not what was expected");
    }
}
#define CHECK_IDS(t, text, ...)                                                                                        \
    check_ids(t, text, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void check_good_base(const deberta_tokenizer *t, const char *name)
{
    if (strcmp(name, "00-spm-base") == 0) {
        CHECK_IDS(t, "a", 1, 5, 2);
        CHECK_IDS(t, "a b", 1, 5, 4, 7, 2);
        CHECK_IDS(t, "ab", 1, 4, 8, 2);
    } else if (strcmp(name, "12-bpe-base") == 0) {
        CHECK_IDS(t, "hello", 1, 263, 2);
        CHECK_IDS(t, "hell", 1, 262, 2);
        CHECK_IDS(t, "h\u00e9", 1, 108, 199, 173, 2);
    } else {
        fail_msg("%s should load, but no ids are known for it", name);
    }
}

/* expect: "load", "error", or "error-or-..." for what may do either. */
static void check_damaged(const char *name, const char *expect)
{
    char file[TEST_PATH_BYTES], path[TEST_PATH_BYTES];
    deberta_error error = {0};
    OWN_TOKENIZER *t = NULL;
    deberta_status status = deberta_tokenizer_open(&t, golden_path(path, format_path(file, "bad/%s", name)), &error);
    assert_true((t != NULL) == (status == DEBERTA_OK));
    if (strcmp(expect, "load") == 0 ? !t : strcmp(expect, "error") == 0 && t)
        fail_msg("%s: expected %s, status %d %s", name, expect, status, error.message);
    if (t) encode_awkward(t);
    if (t && strcmp(expect, "load") == 0) check_good_base(t, name);
    if (!t) {
        const char *named = strstr(name, "spm") ? "spm.model" : strstr(name, "merge") ? "merges.txt" : "vocab.json";
        if (!strstr(error.message, named)) fail_msg("%s: the message does not name %s: %s", name, named, error.message);
        assert_true(status == DEBERTA_E_FORMAT || status == DEBERTA_E_UNSUPPORTED);
    }
}

TEST(damaged_folders)
{
    char path[TEST_PATH_BYTES], line[1024], *rest;
    size_t cases = 0;
    FILE *file = fopen(golden_path(path, "bad/expect.tsv"), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file); cases++) {
        const char *name = strtok_r(line, "\t", &rest), *expect = strtok_r(NULL, "\t", &rest);
        assert_non_null(expect);
        check_damaged(name, expect);
    }
    fclose(file);
    assert_int_equal(cases, 21);
}

/* ---------------------------------------------------------------------------------------------- missing files */

static void check_open_refused(const char *folder, deberta_status expected, const char *const *words)
{
    deberta_error error = {0};
    deberta_tokenizer *t = (deberta_tokenizer *)-1;
    assert_int_equal(deberta_tokenizer_open(&t, folder, &error), expected);
    assert_null(t);
    for (; *words; words++)
        if (!strstr(error.message, *words)) fail_msg("'%s' is not in: %s", *words, error.message);
}
#define CHECK_OPEN_REFUSED(folder, status, ...)                                                                        \
    check_open_refused(folder, status, (const char *const[]){__VA_ARGS__, NULL})

TEST(missing_files)
{
    static const char *const none[] = {NULL}, *const half[] = {"vocab.json", NULL};
    char path[TEST_PATH_BYTES], *folder = linked_folder("bpe-v1", none);
    CHECK_OPEN_REFUSED(folder, DEBERTA_E_FILE, folder, "spm.model", "tokenizer.json", "vocab.json", "merges.txt",
                       "bpe_encoder.bin");
    remove_folder(&folder);
    CHECK_OPEN_REFUSED("/nowhere", DEBERTA_E_FILE, "/nowhere", "no such folder");
    folder = linked_folder("bpe-v1", half);
    CHECK_OPEN_REFUSED(folder, DEBERTA_E_FILE, folder, "vocab.json", "merges.txt");
    remove_folder(&folder);
    CHECK_OPEN_REFUSED(golden_path(path, "bpe-v1/vocab.json"), DEBERTA_E_FILE, "vocab.json", "is a file");
    CHECK_OPEN_REFUSED(NULL, DEBERTA_E_ARGUMENT, "folder");
}

/* ----------------------------------------------------------------------------------------------- configuration */

/* JSON is written with ' for ". */
typedef struct config_case {
    const char *golden, *files[4]; /* linked */
    const char *name, *content;    /* written */
    const char *text, *tokens[12]; /* what the text must give between the frame, or ... */
    const char *refusal;           /* ... a word of the message */
} config_case;

#define SPM    .golden = "spm-unigram", .files = {"spm.model"}
#define V1     .golden = "bpe-v1", .files = {"vocab.json", "merges.txt"}
#define CONFIG .name = "tokenizer_config.json"
#define ADDED  .name = "added_tokens.json"
#define MAP    .name = "special_tokens_map.json"

/* clang-format off */
static const config_case config_cases[] = {
    /* Special tokens are found, and [MASK] takes white space on its left in v1 only. */
    {V1, .text = "a \u00a0[MASK] b", .tokens = {"a", "[MASK]", "\u0120b"}},
    {SPM, .text = "a [MASK] b", .tokens = {"\u2581a", "[MASK]", "\u2581b"}},
    {V1, MAP, .content = "{'mask_token': {'content': '[MASK]', 'lstrip': false, 'rstrip': true}}",
     .text = "a [MASK] b", .tokens = {"a", "\u0120", "[MASK]", "b"}},
    /* A folder may name them otherwise and add more; the longest wins. */
    {SPM, CONFIG, .content = "{'model_max_length': 1000000000000000019884624838656, 'mask_token': '<m>',"
                             " 'added_tokens_decoder': {'3001': {'content': '<m>'}, '3000': {'content': '<m>x'}}}",
     .text = "a<m>x<m>y", .tokens = {"\u2581a", "<m>x", "<m>", "\u2581", "y"}},
    {SPM, CONFIG, .content = "{'do_lower_case': true}", .text = "\u00c9A", .tokens = {"\u2581", "\u00e9", "a"}},
    {SPM, CONFIG, .content = "{'split_by_punct': true}", .text = "s,s\u2014s",
     .tokens = {"\u2581", "s", "\u2581", ",", "\u2581", "s", "\u2581", "\u2014", "\u2581", "s"}},
    {V1, CONFIG, .content = "{'add_prefix_space': true}", .text = "the the", .tokens = {"\u0120the", "\u0120the"}},
    {V1, CONFIG, .content = "{'add_prefix_space': true}", .text = " the", .tokens = {"\u0120the"}},
    {V1, CONFIG, .content = "{'add_prefix_space': true}", .text = "the[CLS]the", .tokens = {"\u0120the", "[CLS]", "the"}},
    /* What contradicts itself or is not known is refused. */
    {SPM, ADDED, .content = "{'[MASK]': 17}", .refusal = "17"},
    {SPM, ADDED, .content = "{'[CLS]': 3000}", .refusal = "[CLS]"},
    {SPM, ADDED, .content = "{'x': -1}", .refusal = "-1"},
    {SPM, ADDED, .content = "{'x': 1e99}", .refusal = "added_tokens.json"},
    {SPM, ADDED, .content = "{'qqx': 16777216}", .refusal = "16777217"},
    {SPM, ADDED, .content = "[1]", .refusal = "object"},
    {SPM, ADDED, .content = "{'x': 3000, 'y': 3000}", .refusal = "share"},
    {SPM, CONFIG, .content = "{'do_lower_case': 1}", .refusal = "do_lower_case"},
    {SPM, CONFIG, .content = "{", .refusal = "tokenizer_config.json"},
    {SPM, CONFIG, .content = "[]", .refusal = "object"},
    {SPM, CONFIG, .content = "{'cls_token': 5}", .refusal = "cls_token"},
    {SPM, CONFIG, .content = "{'added_tokens_decoder': {'3000x': {'content': '[MASK]'}}}", .refusal = "3000x"},
    {SPM, MAP, .content = "{'mask_token': {'content': '[MASK]', 'single_word': true}}", .refusal = "single_word"},
};
/* clang-format on */

static void write_json(const char *folder, const char *name, const char *content)
{
    FREED_BY(free_memory) char *json = strdup(content);
    assert_non_null(json);
    for (char *c = json; *c; c++)
        if (*c == '\'') *c = '"';
    write_file(folder, name, json, strlen(json));
}

/* Bad or unsupported: the word that is looked for says which. */
static void check_message(const char *folder, const char *word)
{
    deberta_error error = {0};
    deberta_tokenizer *t = NULL;
    deberta_status status = deberta_tokenizer_open(&t, folder, &error);
    assert_null(t);
    if ((status != DEBERTA_E_FORMAT && status != DEBERTA_E_UNSUPPORTED) || !strstr(error.message, word))
        fail_msg("status %d, '%s' is not in: %s", status, word, error.message);
}

static void check_config(const config_case *c)
{
    FREED_BY(remove_folder) char *folder = linked_folder(c->golden, c->files);
    if (c->name) write_json(folder, c->name, c->content);
    if (c->refusal) {
        check_message(folder, c->refusal);
        remove_folder(&folder);
        return;
    }
    OWN_TOKENIZER *t = open_folder(folder);
    FREED_BY(token_list_free) token_list list = {0};
    assert_ok(tokenizer_encode(t, c->text, strlen(c->text), NULL, 0, NULL, &list, NULL));
    size_t count = 0;
    while (c->tokens[count]) count++;
    bool same = list.count == count + 2;
    for (size_t i = 0; same && i < count; i++) same = strcmp(token_list_text(&list, i + 1, NULL), c->tokens[i]) == 0;
    if (!same) {
        for (size_t i = 0; i < list.count; i++) print_error("'%s' ", token_list_text(&list, i, NULL));
        fail_msg("is what '%s' gives with %s", c->text, c->content ? c->content : "no configuration");
    }
    const size_t bytes[2] = {strlen(c->text), 0};
    check_invariants(t, &list, bytes);
}

TEST(configuration)
{
    FOR_ROWS(i, config_cases) check_config(&config_cases[i]);
}

TEST(specials)
{
    OWN_TOKENIZER *t = open_golden("spm-unigram");
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_PAD), 0);
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_CLS), 1);
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_SEP), 2);
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_UNK), 3);
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_MASK), 3000);
    assert_int_equal(deberta_tokenizer_vocabulary_size(t), 3001);
    assert_string_equal(deberta_tokenizer_kind_name(t), "SentencePiece unigram");
    assert_string_equal(deberta_tokenizer_token(t, 3000, NULL), "[MASK]");
    assert_string_equal(deberta_tokenizer_token(t, 1, NULL), "[CLS]");
    assert_null(deberta_tokenizer_token(t, 3001, NULL));
    assert_null(deberta_tokenizer_token(t, -1, NULL));
    assert_true(deberta_tokenizer_is_special(t, 3000) && deberta_tokenizer_is_special(t, 0) &&
                !deberta_tokenizer_is_special(t, 5));
}

/* Special tokens that a vocabulary lacks come behind it, in transformers' order. */
TEST(appended_specials)
{
    static const char merges[] = "#version: 0.2\na b\n";
    FREED_BY(remove_folder) char *folder = make_folder();
    write_json(folder, "vocab.json", "{'a': 0, 'b': 1, 'ab': 2, '[PAD]': 3}");
    write_file(folder, "merges.txt", merges, strlen(merges));
    OWN_TOKENIZER *t = open_folder(folder);
    CHECK_IDS(t, "abax", 4, 2, 0, 6, 5);
    CHECK_IDS(t, "b[MASK]", 4, 1, 7, 5);
    assert_int_equal(deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_PAD), 3);
    assert_int_equal(deberta_tokenizer_vocabulary_size(t), 8);
    assert_string_equal(deberta_tokenizer_token(t, 6, NULL), "[UNK]");
    assert_string_equal(deberta_tokenizer_kind_name(t), "byte-level BPE");
    encode_awkward(t);
}

/* -------------------------------------------------------------------------------------------------- broken text */

TEST(broken_utf8)
{
    static const char text[] = "a\xff b\xe2\x82"
                               "c\xf0\x9f\x98",
                      clean[] = "a\ufffd b\ufffdc\ufffd";
    static const struct {
        const char *name;
        size_t last_end; /* SentencePiece takes U+FFFD for a space, and spaces at the end of a text for nothing */
    } cases[] = {{"spm-unigram", 7}, {"bpe-v1", sizeof text - 1}};
    for (size_t n = 0; n < 2; n++) {
        OWN_TOKENIZER *t = open_golden(cases[n].name);
        FREED_BY(token_list_free) token_list broken = {0}, fixed = {0};
        deberta_error error = {0};
        assert_ok(tokenizer_encode(t, text, sizeof text - 1, NULL, 0, NULL, &broken, &error));
        assert_ok(tokenizer_encode(t, clean, sizeof clean - 1, NULL, 0, NULL, &fixed, &error));
        assert_int_equal(broken.replaced, 3);
        assert_int_equal(broken.first_replaced_segment, 0);
        assert_int_equal(broken.first_replaced_byte, 1);
        assert_int_equal(fixed.replaced, 0);
        assert_int_equal(broken.count, fixed.count);
        assert_memory_equal(broken.ids, fixed.ids, fixed.count * sizeof *fixed.ids);
        /* A broken unit is one character, as U+FFFD is. */
        assert_memory_equal(broken.char_spans, fixed.char_spans, fixed.count * sizeof *fixed.char_spans);
        assert_int_equal(broken.byte_spans[broken.count - 2].end, cases[n].last_end);

        assert_ok(tokenizer_encode(t, "x", 1, text, sizeof text - 1, NULL, &broken, &error));
        assert_int_equal(broken.first_replaced_segment, 1);
        tokenizer_options strict = {.strict = true};
        assert_ok(tokenizer_encode(t, clean, sizeof clean - 1, NULL, 0, &strict, &broken, &error));
        check_refused(tokenizer_encode(t, text, sizeof text - 1, NULL, 0, &strict, &broken, &error), &error,
                      DEBERTA_E_FORMAT, "byte 1 is 0xFF");
        assert_int_equal(broken.count, 0);
    }
}

/* Bytes of all kinds, mostly such that characters come about. */
static size_t random_text(uint64_t *random, char *text, size_t room)
{
    size_t bytes = random_next(random) % room;
    unsigned kind = (unsigned)(random_next(random) % 4);
    for (size_t i = 0; i < bytes; i++) {
        uint64_t r = random_next(random);
        if (kind == 0)
            text[i] = (char)r;
        else if (kind == 1)
            text[i] = " the[MASK]."[r % 11];
        else
            text[i] = i % 2 ? (char)(0x80 | (r & 0x3F)) : (char)(r & 0x100 ? 0xC0 | (r & 0x1F) : r & 0x7F);
    }
    return bytes;
}

TEST(random_bytes)
{
    static const char *const names[] = {"spm-unigram", "spm-bytefallback", "spm-bpe",
                                        "spm-flags",   "bpe-v1",           "spaceless"};
    const char *seed = getenv("DEBERTA_TEST_SEED");
    uint64_t random = seed ? strtoull(seed, NULL, 0) : 1;
    FOR_ROWS(n, names) {
        OWN_TOKENIZER *t = open_golden(names[n]);
        FREED_BY(token_list_free) token_list list = {0};
        for (size_t i = 0; i < 600; i++) {
            char text[2][300];
            size_t bytes[2] = {random_text(&random, text[0], sizeof *text),
                               random_text(&random, text[1], sizeof *text)};
            bool valid = utf8_valid_prefix(text[0], bytes[0], NULL) == bytes[0] &&
                         utf8_valid_prefix(text[1], bytes[1], NULL) == bytes[1];
            assert_ok(tokenizer_encode(t, text[0], bytes[0], text[1], bytes[1], NULL, &list, NULL));
            assert_int_equal(list.replaced > 0, !valid);
            check_invariants(t, &list, bytes);
            tokenizer_options options = {.strict = true, .literal_specials = i % 2};
            assert_int_equal(tokenizer_encode(t, text[0], bytes[0], text[1], bytes[1], &options, &list, NULL),
                             valid ? DEBERTA_OK : DEBERTA_E_FORMAT);
        }
        encode_awkward(t);
    }
}

TEST(arguments)
{
    OWN_TOKENIZER *t = open_golden("spm-unigram");
    FREED_BY(token_list_free) token_list list = {0};
    assert_ok(tokenizer_encode(t, NULL, 0, NULL, 0, NULL, &list, NULL));
    assert_int_equal(list.count, 2);
    assert_ok(tokenizer_encode(t, NULL, 0, "", 0, NULL, &list, NULL));
    assert_int_equal(list.count, 3);
    assert_int_equal(list.type_ids[2], 1);
    assert_int_equal(tokenizer_encode(t, NULL, 1, NULL, 0, NULL, &list, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(tokenizer_encode(t, "", (size_t)INT32_MAX, NULL, 0, NULL, &list, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(list.count, 0);
}

/* ------------------------------------------------------------------------------------------------- tokenizer.json */

/* Parts that are NULL are as in the first case. */
typedef struct json_case {
    const char *normalizer, *splitter, *added, *model;
    const char *text, *tokens[12], *refusal; /* as in config_case */
} json_case;

#define PIECES                                                                                                         \
    "['[UNK]', 0], ['[CLS]', 0], ['[SEP]', 0], ['[PAD]', 0], ['\u2581', -2], ['a', -3], ['b', -3], ['ab', -9]"
#define UNIGRAM(more)     "{'type': 'Unigram', 'unk_id': 0, 'vocab': [" PIECES more "]}"
#define VOCABULARY        "{'[UNK]': 0, '[CLS]': 1, '[SEP]': 2, '[PAD]': 3, 'a': 4, 'b': 5, 'ab': 6, '\u0120': 7}"
#define BPE(more)         .normalizer = "null", .model = "{'type': 'BPE', 'vocab': " VOCABULARY ", " more "}"
#define BYTE_LEVEL        .splitter = "{'type': 'ByteLevel', 'add_prefix_space': false, 'use_regex': true}"
#define SPECIAL(id, text) "{'id': " #id ", 'content': '" text "', 'special': true}"
#define SPECIALS          SPECIAL(0, "[UNK]") "," SPECIAL(1, "[CLS]") "," SPECIAL(2, "[SEP]") "," SPECIAL(3, "[PAD]")
#define TRIM_STEPS        "{'type': 'Strip'}, {'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}"
#define NO_SPACES         "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': ''}"
#define METASPACE         "{'type': 'Metaspace', 'replacement': '\u2581'"

/* clang-format off */
static const json_case json_cases[] = {
    {"{'type': 'Sequence', 'normalizers': [" TRIM_STEPS "]}", METASPACE ", 'prepend_scheme': 'always'}", SPECIALS,
     UNIGRAM(""), " a  b[MASK]c", {"\u2581", "a", "\u2581", "b", "[MASK]", "\u2581", "c"}, NULL},
    /* Without Strip spaces stay; without prepending none is added. */
    {.normalizer = "null", .text = " a ", .tokens = {"\u2581", "\u2581", "a", "\u2581"}},
    {.splitter = METASPACE ", 'prepend_scheme': 'never'}", .text = "a", .tokens = {"a"}},
    {.splitter = METASPACE ", 'add_prefix_space': false}", .text = "a", .tokens = {"a"}},
    {.splitter = "null", .refusal = "the pre_tokenizer is missing, expected Metaspace; put the spm.model"},
    {.splitter = "{'type': 'Punctuation'}", .refusal = "expected Metaspace"},
    {.splitter = "{'type': 'Sequence', 'pretokenizers': [{'type': 'Punctuation', 'behavior': 'Isolated'}, " METASPACE "}]}",
     .text = "a.b", .tokens = {"\u2581", "a", "\u2581", ".", "\u2581", "b"}},
    {.normalizer = "{'type': 'Lowercase'}", .text = "A", .tokens = {"\u2581", "a"}},
    /* An added token of the vocabulary that is not special was a user-defined piece: nothing begins anew behind it. */
    {.added = SPECIALS ", {'id': 7, 'content': 'ab', 'special': false}",
     .text = "aabb", .tokens = {"\u2581", "a", "ab", "b"}},
    {.added = SPECIALS ", {'id': 7, 'content': 'ab', 'special': true}",
     .text = "aabb", .tokens = {"\u2581", "a", "ab", "\u2581", "b"}},
    /* Spaces taken out, then form KC, whose own spaces are spaces: of the acute accent. */
    {.normalizer = "{'type': 'Sequence', 'normalizers': [" TRIM_STEPS ", " NO_SPACES ", {'type': 'NFKC'}]}",
     .text = " a  b\u00b4\uff41[MASK] ", .tokens = {"\u2581", "a", "b", "\u2581", "\u0301", "a", "[MASK]"}},
    {.normalizer = NO_SPACES, .text = " a b ", .tokens = {"\u2581", "a", "b"}},
    {.normalizer = "{'type': 'NFKC'}", .text = "\uff41 b", .tokens = {"\u2581", "a", "\u2581", "b"}},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [{'type': 'NFKC'}, {'type': 'Strip'}]}", .refusal = "'Strip' is out of order"},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [{'type': 'NFKC'}, {'type': 'NFKC'}]}", .refusal = "'NFKC' is out of order"},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [" NO_SPACES ", {'type': 'Lowercase'}]}", .refusal = "'Lowercase' is out of order"},
    /* Both settings of white space are one of SentencePiece. */
    {.normalizer = "{'type': 'Strip'}", .refusal = "the normalizer has no Replace"},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [{'type': 'Strip', 'strip_left': false, 'strip_right': true}]}", .refusal = "'Strip' is none of the steps"},
    {.normalizer = "{'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}", .refusal = "the normalizer has no Strip"},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [{'type': 'Replace', 'pattern': {'Regex': ' {2,}'}, 'content': ' '}, {'type': 'Strip'}]}", .refusal = "'Strip' is out of order"},
    {.normalizer = "{'type': 'Replace', 'pattern': {'String': ' '}, 'content': 'b'}", .refusal = "'Replace' is none of the steps"},
    {.normalizer = "{'type': 'NFC'}", .refusal = "'NFC' is none of the steps; expected Lowercase, Strip of both sides"},
    {.splitter = METASPACE ", 'prepend_scheme': 'first'}", .refusal = "'first'"},
    {.normalizer = "{'type': 'Precompiled', 'precompiled_charsmap': 'AA*A'}", .refusal = "base64"},
    {.normalizer = "{'type': 'Precompiled', 'precompiled_charsmap': 'AAAA'}", .refusal = "precompiled_charsmap"},
    {.normalizer = "{'type': 'Replace', 'pattern': {'String': 'a'}, 'content': 'b'}", .refusal = "none of the steps"},
    {.normalizer = "{'type': 'Sequence', 'normalizers': [1]}", .refusal = "normalizers[0]"},
    {.normalizer = "7", .refusal = "normalizer is 7"},
    {.splitter = "{'type': 'Metaspace', 'replacement': '_'}", .refusal = "'_'"},
    {.splitter = "{'type': 'Whitespace'}", .refusal = "'Whitespace'"},
    {.added = "{'id': 9}", .refusal = "content"},
    {.added = "{'content': 'x'}", .refusal = "id is missing"},
    {.added = SPECIAL(5, "x"), .refusal = "'a'"},
    {.model = "{'type': 'WordPiece'}", .refusal = "WordPiece"},
    {.model = "{'type': 'Unigram', 'unk_id': null, 'vocab': [" PIECES "]}", .refusal = "unk_id"},
    {.model = UNIGRAM(", ['c']"), .refusal = "vocab[8]"},
    {.model = UNIGRAM(", ['c', 'd']"), .refusal = "vocab[8]"},
    {.model = UNIGRAM(", ['a', -1]"), .refusal = "already defined"},
    {BPE("'merges': ['a b']"), BYTE_LEVEL, .text = "ab ab", .tokens = {"ab", "\u0120", "ab"}},
    /* A space before every stretch that has none, as tokenizers does it. */
    {BPE("'merges': []"), .splitter = "{'type': 'ByteLevel', 'add_prefix_space': true}", .text = "\ta[MASK]b[SEP] a",
     .tokens = {"\u0120", "[UNK]", "a", "[MASK]", "\u0120", "b", "[SEP]", "\u0120", "a"}},
    {BPE("'merges': [['a', 'b']]"), BYTE_LEVEL, .text = "abb", .tokens = {"ab", "b"}},
    {BPE("'merges': [['a', 'b', 'c']]"), BYTE_LEVEL, .refusal = "merges[0]"},
    {BPE("'merges': ['ab']"), BYTE_LEVEL, .refusal = "merges[0]"},
    {BPE("'merges': [], 'ignore_merges': true"), BYTE_LEVEL, .refusal = "ignore_merges"},
    {BPE("'merges': [], 'end_of_word_suffix': 'x'"), BYTE_LEVEL, .refusal = "suffix"},
    {BPE("'merges': []"), .refusal = "'Metaspace'"},
    {BPE("'merges': []"), .splitter = "{'type': 'Sequence', 'pretokenizers': []}", .refusal = "expected ByteLevel"},
    {BPE("'merges': []"), .splitter = "{'type': 'Sequence', 'pretokenizers': [{'type': 'ByteLevel'}, {'type': 'ByteLevel'}]}", .refusal = "'ByteLevel' twice"},
    {BPE("'merges': []"), .splitter = "{'type': 'ByteLevel', 'use_regex': false}", .refusal = "use_regex"},
};
/* clang-format on */

TEST(tokenizer_json)
{
    FOR_ROWS(i, json_cases) {
        const json_case *c = &json_cases[i], *first = json_cases;
        char content[TEST_PATH_BYTES];
        format_path(content,
                    "{'normalizer': %s, 'pre_tokenizer': %s, 'added_tokens': [%s], 'model': %s, 'post_processor': "
                    "{'type': 'BertProcessing', 'cls': ['[CLS]', 1], 'sep': ['[SEP]', 2]}}",
                    c->normalizer ? c->normalizer : first->normalizer, c->splitter ? c->splitter : first->splitter,
                    c->added ? c->added : first->added, c->model ? c->model : first->model);
        config_case check = {.name = "tokenizer.json", .content = content, .text = c->text, .refusal = c->refusal};
        memcpy(check.tokens, c->tokens, sizeof check.tokens);
        check_config(&check);
    }
}

/* ---------------------------------------------------------------------------------------------------- long lines */

/* Whatever is quadratic takes minutes here: words without end, unknown characters without end, nothing but spaces. */
TEST(long_lines)
{
    static const char *const names[] = {"spm-unigram", "spm-flags", "spm-bpe", "bpe-v1"};
    static const char *const patterns[] = {"hello world ", "a",    " ",      "\U000f0000", "e\u0301",
                                           "[[",           "\xff", "[MASK]", "a \u3042"};
    const size_t most = getenv("DEBERTA_TEST_QUICK") ? 1 << 16 : 1 << 20;
    FREED_BY(free_memory) char *text = malloc(most);
    assert_non_null(text);
    FOR_ROWS(n, names) {
        OWN_TOKENIZER *t = open_golden(names[n]);
        FOR_ROWS(p, patterns) {
            size_t step = strlen(patterns[p]), length = most / step * step;
            for (size_t i = 0; i < length; i++) text[i] = patterns[p][i % step];
            FREED_BY(token_list_free) token_list list = {0};
            deberta_error error = {0};
            if (tokenizer_encode(t, text, length, NULL, 0, NULL, &list, &error) != DEBERTA_OK)
                fail_msg("%s", error.message);
            const size_t bytes[2] = {length, 0};
            check_invariants(t, &list, bytes);
            if (*patterns[p] == '[' && patterns[p][1] == 'M') assert_int_equal(list.count, length / step + 2);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- truncation */

static void check_truncation(const deberta_tokenizer *t, const char *text, const char *pair, size_t max_tokens,
                             size_t kept_a, size_t kept_b)
{
    FREED_BY(token_list_free) token_list full = {0}, list = {0};
    size_t dropped, frame = pair ? 3 : 2, at = 0, seen[2] = {0, 0}, kept[2] = {kept_a, kept_b};
    size_t pair_bytes = pair ? strlen(pair) : 0;
    assert_ok(tokenizer_encode(t, text, strlen(text), pair, pair_bytes, NULL, &full, NULL));
    assert_ok(tokenizer_encode(t, text, strlen(text), pair, pair_bytes, NULL, &list, NULL));
    assert_ok(token_list_truncate(&list, max_tokens, true, &dropped, NULL));
    assert_int_equal(list.count, kept_a + kept_b + frame);
    assert_int_equal(dropped, full.count - list.count);
    for (size_t i = 0; i < full.count; i++) {
        if (full.roles[i] != TOKEN_FRAME && seen[full.type_ids[i]]++ >= kept[full.type_ids[i]]) continue;
        assert_int_equal(list.ids[at], full.ids[i]);
        assert_int_equal(list.type_ids[at], full.type_ids[i]);
        assert_int_equal(list.roles[at], full.roles[i]);
        assert_memory_equal(&list.byte_spans[at], &full.byte_spans[i], sizeof(text_span));
        assert_memory_equal(&list.char_spans[at], &full.char_spans[i], sizeof(text_span));
        assert_string_equal(token_list_text(&list, at, NULL), token_list_text(&full, i, NULL));
        at++;
    }
}

TEST(truncation)
{
    static const char five[] = "the the the the the", three[] = "of of of";
    OWN_TOKENIZER *t = open_golden("spm-unigram");
    check_truncation(t, five, NULL, 100, 5, 0);
    check_truncation(t, five, NULL, 7, 5, 0);
    check_truncation(t, five, NULL, 6, 4, 0);
    check_truncation(t, five, NULL, 2, 0, 0);
    check_truncation(t, five, three, 11, 5, 3);
    check_truncation(t, five, three, 10, 4, 3);
    check_truncation(t, five, three, 9, 3, 3);
    check_truncation(t, five, three, 8, 2, 3); /* of two equal ones the one that was cut before */
    check_truncation(t, five, three, 7, 2, 2);
    check_truncation(t, three, five, 8, 3, 2);
    check_truncation(t, three, three, 8, 2, 3);
    check_truncation(t, five, three, 3, 0, 0);
    check_truncation(t, five, "", 5, 2, 0);

    FREED_BY(token_list_free) token_list list = {0};
    size_t dropped;
    deberta_error error = {0};
    assert_ok(tokenizer_encode(t, five, strlen(five), three, strlen(three), NULL, &list, NULL));
    assert_int_equal(token_list_truncate(&list, 2, true, &dropped, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(list.count, 11);
}

/* ------------------------------------------------------------------------------------------------------ decoding */

static void check_decoded(const deberta_tokenizer *t, const char *text, const char *expected)
{
    FREED_BY(token_list_free) token_list list = {0};
    char *decoded = NULL;
    size_t bytes = 0;
    assert_ok(tokenizer_encode(t, text, strlen(text), NULL, 0, NULL, &list, NULL));
    assert_ok(deberta_detokenize(&decoded, &bytes, t, list.ids, list.count, NULL));
    assert_string_equal(decoded, expected);
    assert_int_equal(bytes, strlen(expected));
    deberta_free(decoded);
}

/* v1 loses nothing but the white space before [MASK]. */
static void check_round_trip(json_t *row, size_t line, void *context)
{
    golden_run *run = context;
    const json_t *text = json_object_get(row, "text");
    char *decoded = NULL;
    size_t bytes = 0;
    if (strchr(json_string_value(text), '[')) return;
    assert_ok(tokenizer_encode(run->tokenizer, json_string_value(text), json_string_length(text), NULL, 0, NULL,
                               &run->list, NULL));
    assert_ok(deberta_detokenize(&decoded, &bytes, run->tokenizer, run->list.ids, run->list.count, NULL));
    if (bytes != json_string_length(text) || memcmp(decoded, json_string_value(text), bytes) != 0) {
        print_error("%s: line %zu: decoded as '%s'\n", run->name, line, decoded);
        run->wrong++;
    }
    deberta_free(decoded);
}

TEST(decoding)
{
    OWN_TOKENIZER *t = open_golden("spm-unigram");
    check_decoded(t, "", "");
    check_decoded(t, "  Hello   world ", "Hello world");
    check_decoded(t, "the cat is [MASK] here", "the cat is [MASK] here");
    check_decoded(t, "a[MASK]b[MASK][MASK]", "a [MASK] b [MASK] [MASK]");
    check_decoded(t, "\U000f0000 a", "[UNK] a");
    deberta_error error = {0};
    char *decoded = NULL;
    check_refused(deberta_detokenize(&decoded, NULL, t, (const int32_t[]){1, 3001}, 2, &error), &error,
                  DEBERTA_E_ARGUMENT, "3001");
    assert_null(decoded);
    deberta_tokenizer_free(&t);

    t = open_golden("spm-bytefallback");
    check_decoded(t, "\u304c \U000f0000", "\u304c \U000f0000");
    assert_ok(deberta_detokenize(&decoded, NULL, t,
                                 (const int32_t[]){deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_CLS)}, 1, NULL));
    assert_string_equal(decoded, "");
    deberta_free(decoded);
    deberta_tokenizer_free(&t);

    t = open_golden("spm-flags");
    check_decoded(t, "  two  spaces ", "  two  spaces ");
    deberta_tokenizer_free(&t);

    t = open_golden("bpe-v1");
    check_decoded(t, "a [MASK] b", "a [MASK] b");
    /* The first byte of a character alone. */
    token_list list = {0};
    assert_ok(tokenizer_encode(t, "\U000f0000", 4, NULL, 0, NULL, &list, NULL));
    assert_ok(deberta_detokenize(&decoded, NULL, t, list.ids, 2, NULL));
    assert_string_equal(decoded, "\ufffd");
    deberta_free(decoded);
    golden_run run = {.tokenizer = t, .name = "bpe-v1", .list = list};
    for_each_golden("bpe-v1", check_round_trip, &run);
    assert_int_equal(run.wrong, 0);
    token_list_free(&run.list);
}

/* ------------------------------------------------------------------------------------------------------- threads */

static void *run_golden(void *context)
{
    golden_run *run = context;
    for_each_golden(run->name, check_row, run);
    token_list_free(&run->list);
    return NULL;
}

TEST(threads)
{
    static const char *const names[] = {"spm-unigram", "bpe-v1"};
    enum { THREADS = 4 };
    for (size_t n = 0; n < 2; n++) {
        OWN_TOKENIZER *t = open_golden(names[n]);
        golden_run runs[THREADS];
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            runs[i] = (golden_run){.tokenizer = t, .name = names[n]};
            assert_int_equal(pthread_create(&threads[i], NULL, run_golden, &runs[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(runs[i].wrong, 0);
        }
    }
}

int main(void)
{
#ifdef WITH_TSAN
    cmocka_set_test_filter("threads"); /* nothing else has a second thread, and it takes minutes */
#endif
    return run_registered_tests(NULL, NULL);
}
