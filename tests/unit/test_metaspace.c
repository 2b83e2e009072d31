/* What transformers 5 writes: all of Unicode through NFC, spans, added tokens, frames, and damaged files.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/tokenizer_golden.h"

#include "core/base/text.h"
#include "core/text/unicode.h"

/* ------------------------------------------------------------------------------------------------------ Unicode */

static const uint64_t FNV_START = 0xCBF29CE484222325;

static uint64_t fnv(uint64_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3;
    return hash;
}

static uint64_t add_composed(uint64_t hash, nfc_run *run, traced_text *out, const uint32_t *characters, size_t count)
{
    char text[4 * UTF8_MAX_BYTES];
    size_t bytes = 0;
    out->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        assert_ok(nfc_put(run, out, characters[i], bytes, NULL));
        bytes += utf8_encode(text + bytes, characters[i]);
    }
    assert_ok(nfc_end(run, out, NULL));
    traced_text_end(out, bytes);
    for (size_t i = 0; i < out->bytes; i++) assert_true(out->origin[i] <= out->origin[i + 1]);
    if (out->bytes == bytes && memcmp(out->text, text, bytes) == 0) return hash;
    return fnv(hash, out->text, out->bytes);
}

/* The end of the source has a place behind the last byte, whatever room was asked for. */
TEST(test_room_for_the_end)
{
    for (size_t bytes = 0; bytes < 5000; bytes = bytes * 3 / 2 + 1) {
        FREED_BY(traced_text_free) traced_text out = {0};
        for (size_t more = bytes; more < 4 * bytes + 40; more += bytes / 2 + 17) {
            assert_ok(traced_text_reserve(&out, more, NULL));
            assert_true(out.text_capacity >= more && out.origin_capacity > more);
        }
    }
}

/* The hashes are what tools/making/make_unicode_tables.py prints of the library tokenizers. */
TEST(test_all_characters)
{
    nfc_run run = {0}, compatible = {.compatible = true};
    traced_text out = {0};
    uint64_t composed = FNV_START, folded = FNV_START, marks = FNV_START;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xD800 && c < 0xE000) continue;
        const uint32_t before[] = {'a', c, 0x334}, after[] = {'a', 0x345, c};
        composed = add_composed(composed, &run, &out, &c, 1);
        composed = add_composed(composed, &run, &out, before, 3);
        composed = add_composed(composed, &run, &out, after, 3);
        folded = add_composed(folded, &compatible, &out, &c, 1);
        folded = add_composed(folded, &compatible, &out, before, 3);
        folded = add_composed(folded, &compatible, &out, after, 3);
        char text[UTF8_MAX_BYTES];
        if (unicode_is_punctuation(c)) marks = fnv(marks, text, utf8_encode(text, c));
    }
    nfc_free(&run);
    nfc_free(&compatible);
    traced_text_free(&out);
    assert_int_equal(folded, 0xFD1C461339B81EC9);
    assert_int_equal(composed, 0xC7752AC5FB7E22D5);
    assert_int_equal(marks, 0x3BFCDD02D95D4614);
}

/* -------------------------------------------------------------------------------------------------------- spans */

TEST(test_spans)
{
    static const struct {
        const char *text, *token;
        text_span span; /* in bytes */
    } cases[] = {
        {"\u0915", "\u2581", {0, 0}},                 /* what was put first is empty */
        {" [MASK]  \t q", "[MASK]", {1, 7}},          /* added tokens are found in the text as it is, */
        {"x  plain y", "plain", {3, 8}},              /* or in the normalised one, */
        {"x  Foo \t bar  y", "Foo bar", {1, 14}},     /* where a run is one space */
        {"fe\u0301e", "f\u00e9e", {0, 5}},            /* a composed character is all its parts */
        {"q \u1112\u1161\u11ab ", "\ud55c", {2, 11}}, /* and white space at the end nobody's */
        {"\u0915\u0916 \n", "\u0915\u0916", {0, 6}},  /* unknown neighbours are one token */
    };
    OWN_TOKENIZER *t = open_golden("metaspace");
    FREED_BY(token_list_free) token_list list = {0};
    FOR_ROWS(i, cases) {
        size_t at = 1;
        assert_ok(tokenizer_encode(t, cases[i].text, strlen(cases[i].text), NULL, 0, NULL, &list, NULL));
        while (at < list.count && strcmp(token_list_text(&list, at, NULL), cases[i].token) != 0) at++;
        if (at == list.count) fail_msg("'%s' gives no token '%s'", cases[i].text, cases[i].token);
        assert_int_equal(list.byte_spans[at].begin, cases[i].span.begin);
        assert_int_equal(list.byte_spans[at].end, cases[i].span.end);
    }
}

TEST(test_decoding)
{
    static const char *const texts[] = {"the model", "the [MASK] the", "a fine plain word http"};
    OWN_TOKENIZER *t = open_golden("metaspace");
    FREED_BY(token_list_free) token_list list = {0};
    FOR_ROWS(i, texts) {
        char *text;
        assert_ok(tokenizer_encode(t, texts[i], strlen(texts[i]), NULL, 0, NULL, &list, NULL));
        assert_ok(deberta_detokenize(&text, NULL, t, list.ids, list.count, NULL));
        assert_string_equal(text, texts[i]);
        free(text);
    }
    assert_string_equal(deberta_tokenizer_kind_name(t), "Metaspace unigram");
}

/* Nothing that a text spells out is a special token then. */
TEST(test_literal_specials)
{
    static const char text[] = "[CLS] [MASK] plain";
    OWN_TOKENIZER *t = open_golden("metaspace");
    FREED_BY(token_list_free) token_list list = {0};
    assert_ok(
        tokenizer_encode(t, text, strlen(text), NULL, 0, &(tokenizer_options){.literal_specials = true}, &list, NULL));
    for (size_t i = 1; i + 1 < list.count; i++) {
        assert_int_equal(list.roles[i], TOKEN_TEXT);
        assert_false(list.ids[i] != deberta_tokenizer_special_id(t, DEBERTA_SPECIAL_UNK) &&
                     deberta_tokenizer_is_special(t, list.ids[i]));
    }
}

/* ------------------------------------------------------------------------------------- other and damaged files */

static char *read_golden_json(size_t *bytes)
{
    char path[TEST_PATH_BYTES];
    FILE *file = fopen(golden_path(path, "metaspace/tokenizer.json"), "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(*bytes + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *bytes, file), *bytes);
    fclose(file);
    return text;
}

/* The file with one member of the root replaced; `value` has ' for ". NULL takes the member away. */
static deberta_tokenizer *open_changed(const char *folder, const char *key, const char *value, deberta_error *error)
{
    size_t bytes;
    char *text = read_golden_json(&bytes), *json = value ? strdup(value) : NULL;
    for (char *c = json; c && *c; c++)
        if (*c == '\'') *c = '"';
    json_t *root = json_loadb(text, bytes, 0, NULL), *part = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
    assert_non_null(root);
    assert_true(part || !value);
    if (part)
        json_object_set_new(root, key, part);
    else
        json_object_del(root, key);
    char *changed = json_dumps(root, 0);
    write_file(folder, "tokenizer.json", changed, strlen(changed));
    free(changed);
    free(json);
    free(text);
    json_decref(root);
    deberta_tokenizer *t = NULL;
    deberta_status status = deberta_tokenizer_open(&t, folder, error);
    assert_true((t != NULL) == (status == DEBERTA_OK));
    return t;
}

#define BLANKS      "{'type': 'Replace', 'pattern': {'Regex': '\\\\s{2,}|[\\\\n\\\\r\\\\t]'}, 'content': ' '}"
#define STEPS(s)    "{'type': 'Sequence', 'normalizers': [" s "]}"
#define BEFORE(s)   "{'type': 'Sequence', 'pretokenizers': [" s "]}"
#define NFC         "{'type': 'NFC'}"
#define RIGHT       "{'type': 'Strip', 'strip_left': false, 'strip_right': true}"
#define METASPACE   "{'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always'"
#define TOKEN(t, n) "{'SpecialToken': {'id': '" t "', 'type_id': " #n "}}"
#define TEXT(t, n)  "{'Sequence': {'id': '" t "', 'type_id': " #n "}}"
#define IDS         "'special_tokens': {'[CLS]': {'ids': [1]}, '[SEP]': {'ids': [2]}}}"
#define SINGLE                                                                                                         \
    "{'type': 'TemplateProcessing', 'single': [" TOKEN("[CLS]", 0) "," TEXT("A", 0) "," TOKEN("[SEP]", 0) "],"
#define BEGIN "'pair': [" TOKEN("[CLS]", 0) "," TEXT("A", 0) "," TOKEN("[SEP]", 0)

/* clang-format off */
static const struct {
    const char *key, *value, *refusal; /* refusal: a word of the message; NULL: it is read, with ... */
    size_t separators;                 /* ... so many [SEP] between two texts */
} changes[] = {
    {"normalizer", STEPS(BLANKS "," NFC "," RIGHT), NULL, 1},
    {"normalizer", STEPS("{'type': 'Lowercase'}," BLANKS "," NFC "," RIGHT), NULL, 1},
    {"normalizer", STEPS(BLANKS "," RIGHT "," NFC), "put the spm.model of the base model beside it", 0},
    {"normalizer", STEPS(BLANKS "," NFC), "spm.model", 0},
    {"normalizer", STEPS(BLANKS "," NFC ",{'type': 'Strip'}"), "spm.model", 0},
    {"normalizer", STEPS(BLANKS "," NFC "," RIGHT "," NFC), "spm.model", 0},
    {"normalizer", STEPS("{'type': 'NFKC'}," BLANKS "," NFC "," RIGHT), "spm.model", 0},
    {"normalizer", BLANKS, "'Replace' is none of the steps", 0},
    {"normalizer", NFC, "'NFC'", 0},
    {"normalizer", STEPS("{'type': 'NFD'}"), "'NFD'", 0},
    {"pre_tokenizer", METASPACE "}", NULL, 1},
    {"pre_tokenizer", METASPACE ", 'split': false}", "split", 0},
    {"pre_tokenizer", "{'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'twice'}", "'twice'", 0},
    {"pre_tokenizer", BEFORE("{'type': 'Punctuation'}," METASPACE "}"), NULL, 1},
    {"pre_tokenizer", BEFORE("{'type': 'Punctuation', 'behavior': 'Isolated'}," METASPACE "}"), NULL, 1},
    {"pre_tokenizer", BEFORE("{'type': 'Punctuation', 'behavior': 'Removed'}," METASPACE "}"), "expected 'Isolated'", 0},
    {"pre_tokenizer", BEFORE(METASPACE "}," METASPACE "}"), "'Metaspace' follows Metaspace", 0},
    {"pre_tokenizer", BEFORE(METASPACE "},{'type': 'Punctuation'}"), "'Punctuation' follows Metaspace", 0},
    {"pre_tokenizer", BEFORE("{'type': 'Digits'}," METASPACE "}"), "'Digits' is not supported", 0},
    {"pre_tokenizer", "{'type': 'Metaspace', 'replacement': '_', 'prepend_scheme': 'always'}", "expected U+2581", 0},
    {"pre_tokenizer", "null", "expected Metaspace", 0},
    {"pre_tokenizer", NULL, "expected Metaspace", 0},
    {"post_processor", NULL, "no post_processor", 0},
    {"post_processor", "null", "no post_processor", 0},
    {"post_processor", "{'type': 'ByteLevel'}", "no post_processor", 0},
    {"post_processor", "{'type': 'Other'}", "'Other'", 0},
    {"post_processor", "{'type': 'BertProcessing', 'cls': ['[CLS]', 1], 'sep': ['[SEP]', 2]}", NULL, 1},
    {"post_processor", "{'type': 'RobertaProcessing', 'cls': ['[CLS]', 1], 'sep': ['[SEP]', 2]}", NULL, 2},
    {"post_processor", "{'type': 'Sequence', 'processors': [{'type': 'ByteLevel'}, {'type': 'RobertaProcessing', 'cls': ['[CLS]', 1], 'sep': ['[SEP]', 2]}]}", NULL, 2},
    {"post_processor", "{'type': 'BertProcessing', 'cls': ['[CLS]', 1], 'sep': ['[SEP]', 3]}", "id 3", 0},
    {"post_processor", "{'type': 'BertProcessing', 'cls': ['[CLS]', 1]}", "missing", 0},
    {"post_processor", "{'type': 'BertProcessing', 'cls': ['[CLS]', -1], 'sep': ['[SEP]', 2]}", "no id", 0},
    {"post_processor", SINGLE BEGIN "," TEXT("B", 1) "," TOKEN("[SEP]", 1) "]," IDS, NULL, 1},
    {"post_processor", SINGLE BEGIN "," TOKEN("[SEP]", 0) "," TEXT("B", 0) "," TOKEN("[SEP]", 0) "]," IDS, NULL, 2},
    {"post_processor", SINGLE BEGIN "," TEXT("B", 0) "," TOKEN("[SEP]", 0) "]," IDS, "around a pair", 0},
    {"post_processor", SINGLE BEGIN "," TEXT("B", 1) "]," IDS, "around a pair", 0},
    {"post_processor", SINGLE IDS, "around a pair", 0},
    {"post_processor", "{'type': 'TemplateProcessing', 'single': [" TOKEN("[SEP]", 0) "," TEXT("A", 0) "]}", "around a text", 0},
    {"post_processor", SINGLE BEGIN "," TEXT("B", 1) "," TOKEN("[SEP]", 1) "]}", "no id", 0},
};
/* clang-format on */

TEST(test_changed_files)
{
    FREED_BY(remove_folder) char *folder = make_folder();
    FOR_ROWS(i, changes) {
        deberta_error error = {0};
        OWN_TOKENIZER *t = open_changed(folder, changes[i].key, changes[i].value, &error);
        if (changes[i].refusal && (t || !strstr(error.message, changes[i].refusal)))
            fail_msg("change %zu: '%s' is not in: %s", i, changes[i].refusal, error.message);
        if (!changes[i].refusal && !t) fail_msg("change %zu: %s", i, error.message);
        if (!t) continue;
        FREED_BY(token_list_free) token_list list = {0};
        size_t dropped;
        assert_ok(tokenizer_encode(t, "", 0, "", 0, NULL, &list, NULL));
        assert_int_equal(list.count, 2 + changes[i].separators);
        assert_int_equal(token_list_truncate(&list, list.count - 1, false, &dropped, &error), DEBERTA_E_ARGUMENT);
        assert_ok(tokenizer_encode(t, "a b c", 5, "d e f", 5, NULL, &list, NULL));
        assert_ok(token_list_truncate(&list, 4 + changes[i].separators, false, &dropped, &error));
        assert_int_equal(list.count, 4 + changes[i].separators);
    }
}

/* Read or refused, whatever is damaged; what is read tokenizes. */
TEST(test_damaged_files)
{
    static const char text[] = "  a\u0301 [MASK]\tFoo  bar\0 plain\u2581\u2028 \u1112\u1161 x ";
    size_t bytes, opened = 0;
    uint64_t random = 7;
    char *json = read_golden_json(&bytes), *folder = make_folder();
    for (size_t i = 0; i < 400; i++) {
        char *damaged = malloc(bytes);
        size_t kept = i % 8 ? bytes : random_next(&random) % bytes;
        assert_non_null(damaged);
        memcpy(damaged, json, bytes);
        for (size_t k = 0; k < 1 + i % 4 / 3; k++) {
            /* most of the file is pieces; what is before and behind them has the structure */
            size_t at = random_next(&random) % (i % 2 ? bytes : bytes < 5000 ? bytes : 5000);
            damaged[at] = i % 3 ? "0123456789.-abcdeu\"{}[]:,"[random_next(&random) % (i % 3 == 1 ? 18 : 25)]
                                : (char)random_next(&random);
        }
        write_file(folder, "tokenizer.json", damaged, kept);
        free(damaged);
        OWN_TOKENIZER *t = NULL;
        deberta_error error = {0};
        if (deberta_tokenizer_open(&t, folder, &error) == DEBERTA_OK) {
            token_list list = {0};
            opened++;
            assert_ok(tokenizer_encode(t, text, sizeof text - 1, text, 9, NULL, &list, NULL));
            token_list_free(&list);
        } else {
            assert_true(error.message[0]);
        }
    }
    if (opened < 20 || opened > 380) fail_msg("%zu of 400 were read", opened);
    remove_folder(&folder);
    free(json);
}
