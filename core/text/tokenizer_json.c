/* Converts tokenizer.json back to the model from which it was made.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/text/bpe_files.h"
#include "core/text/json_value.h"
#include "core/text/post_processor.h"
#include "core/text/tokenizer_keys.h"
#include "core/text/vocabulary_rows.h"

/* Runs of white space, and single line breaks and tabs: the regular expression of transformers 5. */
#define METASPACE_BLANKS "\\s{2,}|[\\n\\r\\t]"

typedef struct json_source {
    const char *where;
    unsigned steps; /* 1 << step of a unigram's normalizer, of those read so far */
    bool split;     /* whether the file has a step Metaspace or ByteLevel */
    tokenizer_config *config;
    piece_model *model;
    byte_bpe *bpe;
    deberta_error *err;
} json_source;

/* Advice for steps of tokenizer.json that only SentencePiece's file defines fully. */
#define INSTEAD "put the spm.model of the base model beside it"

#define REFUSE(source, code, format, ...) DEBERTA_FAIL((source)->err, code, "%s: " format, (source)->where, __VA_ARGS__)

/* -------------------------------------------------------------------------------------------------- the pipeline */

typedef deberta_status step_reader(json_source *source, json_t *step, const char *type);

/* Calls `read` for a step, or for the steps of a "Sequence", which is a list under `list_key`. */
static deberta_status for_each_step(json_source *s, json_t *step, const char *list_key, step_reader *read)
{
    if (!step) return DEBERTA_OK;
    json_t *type, *list, *item;
    DEBERTA_TRY(json_value_required(&type, step, "type", JSON_STRING, s->where, s->err));
    if (strcmp(json_string_value(type), "Sequence") != 0) return read(s, step, json_string_value(type));
    DEBERTA_TRY(json_value_required(&list, step, list_key, JSON_ARRAY, s->where, s->err));
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (!json_is_object(item)) REFUSE(s, DEBERTA_E_FORMAT, "%s[%zu] is no object", list_key, i);
        DEBERTA_TRY(for_each_step(s, item, list_key, read));
    }
    return DEBERTA_OK;
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static deberta_status read_charsmap(json_source *s, json_t *step)
{
    json_t *text;
    DEBERTA_TRY(json_value_required(&text, step, "precompiled_charsmap", JSON_STRING, s->where, s->err));
    const char *from = json_string_value(text);
    size_t length = json_string_length(text), bytes = 0;
    while (length > 0 && from[length - 1] == '=') length--;

    uint8_t *out = malloc(length + 1);
    if (!out) REFUSE(s, DEBERTA_E_MEMORY, "no memory for %zu bytes", length);
    free(s->model->charsmap);
    s->model->charsmap = out;
    uint32_t bits = 0;
    for (size_t i = 0; i < length; i++) {
        int digit = base64_digit(from[i]);
        if (digit < 0) REFUSE(s, DEBERTA_E_FORMAT, "precompiled_charsmap: character %zu is not base64", i);
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) out[bytes++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    s->model->charsmap_bytes = bytes;
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------- the steps of transformers 5 */

static bool is_type(const json_t *step, const char *type)
{
    const char *is = json_string_value(json_object_get(step, "type"));
    return is && strcmp(is, type) == 0;
}

/* Returns whether a step replaces this pattern by this text. kind: "Regex" or "String", the kind of the pattern. */
static bool replaces(const json_t *step, const char *kind, const char *pattern, const char *by)
{
    const char *found = json_string_value(json_object_get(json_object_get(step, "pattern"), kind));
    const char *content = json_string_value(json_object_get(step, "content"));
    return is_type(step, "Replace") && found && content && strcmp(found, pattern) == 0 && strcmp(content, by) == 0;
}

static bool is_replace(const json_t *step, const char *pattern) { return replaces(step, "Regex", pattern, " "); }

/* Returns whether a step is a Strip of these sides. Strip without the two members strips both sides. */
static bool is_strip(const json_t *step, bool left, bool right)
{
    const json_t *strips_left = json_object_get(step, "strip_left"),
                 *strips_right = json_object_get(step, "strip_right");
    return is_type(step, "Strip") && json_is_false(strips_left) == !left && json_is_false(strips_right) == !right;
}

/* Returns whether the normaliser holds a step that only transformers 5 writes. If so, all its steps must be as that
 * writes them. */
static bool has_metaspace_steps(const json_t *steps)
{
    size_t i;
    const json_t *step;
    json_array_foreach(steps, i, step) if (is_type(step, "NFC") || is_replace(step, METASPACE_BLANKS)) return true;
    return false;
}

static deberta_status read_metaspace_normalizer(json_source *s, json_t *normalizer)
{
    const json_t *steps = json_object_get(normalizer, "normalizers");
    size_t first = is_type(json_array_get(steps, 0), "Lowercase");
    if (json_array_size(steps) != first + 3 || !is_replace(json_array_get(steps, first), METASPACE_BLANKS) ||
        !is_type(json_array_get(steps, first + 1), "NFC") || !is_strip(json_array_get(steps, first + 2), false, true))
        REFUSE(s, DEBERTA_E_UNSUPPORTED,
               "the normalizer has other steps than those of transformers 5, %sReplace '%s' by ' ', NFC, Strip of the "
               "right side; " INSTEAD,
               "perhaps Lowercase, then ", METASPACE_BLANKS);
    s->model->of_tokenizers = true;
    s->config->lower_case = first;
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------- SentencePiece's */

/* The steps into which converters translate SentencePiece's handling of white space, in the order in which they write
 * them. Two more may follow: one that removes spaces, then form KC. */
enum { LOWERCASE, STRIP, PRECOMPILED, REPLACE_RUNS, REPLACE_SPACES, FORM_KC, NOT_A_STEP };

static unsigned unigram_step(const json_t *step, const char *type)
{
    static const char *const types[] = {"Lowercase", "Strip", "Precompiled", "Replace", "Replace", "NFKC"};
    unsigned k = LOWERCASE;
    while (k < NOT_A_STEP && strcmp(types[k], type) != 0) k++;
    if (k == STRIP && !is_strip(step, true, true)) return NOT_A_STEP;
    if (k != REPLACE_RUNS || is_replace(step, " {2,}")) return k;
    return replaces(step, "String", " ", "") ? REPLACE_SPACES : NOT_A_STEP;
}

static deberta_status read_unigram_normalizer(json_source *s, json_t *step, const char *type)
{
    const unsigned k = unigram_step(step, type);
    if (k == NOT_A_STEP || s->steps >> k)
        REFUSE(s, DEBERTA_E_UNSUPPORTED,
               "the normalizer '%s' is %s; expected Lowercase, Strip of both sides, Precompiled, Replace of ' {2,}' by "
               "' ' and of ' ' by nothing, NFKC, in this order; " INSTEAD,
               QUOTE(type), k == NOT_A_STEP ? "none of the steps" : "out of order");
    s->steps |= 1u << k;
    return k == PRECOMPILED ? read_charsmap(s, step) : DEBERTA_OK;
}

/* Sets what the steps say. White space at the ends and within are one setting of SentencePiece. */
static deberta_status settle_unigram_steps(json_source *s)
{
    const bool strips = s->steps & 1u << STRIP, replaces_runs = s->steps & 1u << REPLACE_RUNS;
    if (strips != replaces_runs)
        REFUSE(s, DEBERTA_E_UNSUPPORTED,
               "the normalizer has no %s, expected Strip and Replace of ' {2,}' by ' '; " INSTEAD,
               strips ? "Replace" : "Strip");
    s->model->remove_extra_whitespaces = strips;
    s->model->remove_spaces = s->steps & 1u << REPLACE_SPACES;
    s->model->form_kc = s->steps & 1u << FORM_KC;
    s->config->lower_case = s->config->lower_case || s->steps & 1u << LOWERCASE;
    return DEBERTA_OK;
}

static deberta_status read_prefix(json_source *s, json_t *step)
{
    json_t *scheme;
    DEBERTA_TRY(json_value_member(&scheme, step, "prepend_scheme", JSON_STRING, s->where, s->err));
    s->model->add_dummy_prefix = true;
    if (!scheme) return json_value_flag(&s->model->add_dummy_prefix, step, "add_prefix_space", s->where, s->err);
    const char *is = json_string_value(scheme);
    s->model->add_dummy_prefix = strcmp(is, "never") != 0;
    s->model->prefix_once = strcmp(is, "first") == 0;
    if ((s->model->prefix_once && !s->model->of_tokenizers) ||
        (s->model->add_dummy_prefix && !s->model->prefix_once && strcmp(is, "always") != 0))
        REFUSE(s, DEBERTA_E_UNSUPPORTED,
               "Metaspace has the prepend_scheme %s, expected %s'always' or 'never'; " INSTEAD,
               json_describe(scheme).text, s->model->of_tokenizers ? "'first', " : "");
    return DEBERTA_OK;
}

static deberta_status read_metaspace(json_source *s, json_t *step)
{
    json_t *replacement;
    bool split = true;
    DEBERTA_TRY(json_value_required(&replacement, step, "replacement", JSON_STRING, s->where, s->err));
    if (strcmp(json_string_value(replacement), "\xE2\x96\x81") != 0)
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "Metaspace writes spaces as %s, expected U+2581; " INSTEAD,
               json_describe(replacement).text);
    DEBERTA_TRY(json_value_flag(&split, step, "split", s->where, s->err));
    if (!split && s->model->of_tokenizers)
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "split of Metaspace is %s, expected true; " INSTEAD, "false");
    return read_prefix(s, step);
}

static deberta_status read_unigram_splitter(json_source *s, json_t *step, const char *type)
{
    if (s->split) /* Nothing follows Metaspace, and Punctuation comes once. */
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "the pre_tokenizer '%s' follows Metaspace; " INSTEAD, QUOTE(type));
    if (strcmp(type, "Metaspace") == 0) {
        s->split = true;
        return read_metaspace(s, step);
    }
    if (strcmp(type, "Punctuation") != 0)
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "the pre_tokenizer '%s' is not supported; " INSTEAD, QUOTE(type));
    json_t *behavior;
    DEBERTA_TRY(json_value_member(&behavior, step, "behavior", JSON_STRING, s->where, s->err));
    if (behavior && strcmp(json_string_value(behavior), "Isolated") != 0)
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "Punctuation is %s, expected 'Isolated'; " INSTEAD,
               json_describe(behavior).text);
    s->config->split_by_punctuation = true;
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------ byte-level BPE */

static deberta_status refuse_normalizer(json_source *s, json_t *step, const char *type)
{
    (void)step;
    REFUSE(s, DEBERTA_E_UNSUPPORTED, "a BPE model with the normalizer '%s' is not supported", QUOTE(type));
}

static deberta_status read_bpe_splitter(json_source *s, json_t *step, const char *type)
{
    bool use_regex = true;
    if (strcmp(type, "ByteLevel") != 0 || s->split)
        REFUSE(s, DEBERTA_E_UNSUPPORTED, "a BPE model with the pre_tokenizer '%s'%s is not supported", QUOTE(type),
               s->split ? " twice" : "");
    s->split = true;
    DEBERTA_TRY(json_value_flag(&s->config->add_prefix_space, step, "add_prefix_space", s->where, s->err));
    DEBERTA_TRY(json_value_flag(&use_regex, step, "use_regex", s->where, s->err));
    if (!use_regex) REFUSE(s, DEBERTA_E_UNSUPPORTED, "use_regex is %s, expected true", "false");
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------ the vocabulary */

/* Finds the kind of a piece, which the file does not state. Control symbols and user-defined pieces became added
 * tokens, which differ in `special`. */
static piece_type type_of(const json_source *s, const char *text, size_t bytes, size_t id, size_t unknown_id)
{
    const added_token *added = added_tokens_find(&s->config->added, text, bytes);
    if (id == unknown_id) return PIECE_UNKNOWN;
    if (added && added->special) return PIECE_CONTROL;
    if (s->model->of_tokenizers) return PIECE_NORMAL; /* Added tokens are searched before, and may be pieces as well. */
    if (added) return PIECE_USER_DEFINED;
    return s->model->byte_fallback && piece_byte(text, bytes) >= 0 ? PIECE_BYTE : PIECE_NORMAL;
}

/* Gives the pieces, which are all PIECE_NORMAL so far, their types, and rounds scores to the precision with which texts
 * are cut. */
static void settle_pieces(json_source *s, size_t unknown_id)
{
    for (size_t id = 0; id < s->model->count; id++) {
        piece *p = &s->model->pieces[id];
        p->type = type_of(s, piece_text(s->model, id), p->bytes, id, unknown_id);
        if (!s->model->of_tokenizers) p->score = (double)(float)p->score;
    }
}

static deberta_status read_pieces(json_source *s, json_t *model)
{
    json_t *unknown, *vocabulary, *item;
    DEBERTA_TRY(json_value_required(&unknown, model, "unk_id", JSON_INTEGER, s->where, s->err));
    DEBERTA_TRY(json_value_required(&vocabulary, model, "vocab", JSON_ARRAY, s->where, s->err));
    DEBERTA_TRY(json_value_flag(&s->model->byte_fallback, model, "byte_fallback", s->where, s->err));
    size_t id;
    json_array_foreach(vocabulary, id, item) /* The list is empty where vocabulary_rows_read has the pieces. */
    {
        const json_t *name = json_array_get(item, 0), *score = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !json_is_string(name) || !json_is_number(score))
            REFUSE(s, DEBERTA_E_FORMAT, "vocab[%zu] is %s, expected a text and a score", id, json_describe(item).text);
        DEBERTA_TRY(piece_model_add(s->model, json_string_value(name), json_string_length(name),
                                    json_number_value(score), PIECE_NORMAL, s->err));
    }
    settle_pieces(s, size_or_most((uint64_t)json_integer_value(unknown)));
    return DEBERTA_OK;
}

/* Fails where no step has cut the text into words. */
static deberta_status check_split(const json_source *s, const json_t *splitter, const char *expected)
{
    if (s->split) return DEBERTA_OK;
    REFUSE(s, DEBERTA_E_UNSUPPORTED, "the pre_tokenizer is %s, expected %s", json_describe(splitter).text, expected);
}

static deberta_status read_unigram(json_source *s, json_t *root, json_t *model)
{
    json_t *normalizer, *splitter;
    s->model->add_dummy_prefix = s->model->remove_extra_whitespaces = false;
    DEBERTA_TRY(json_value_member(&normalizer, root, "normalizer", JSON_OBJECT, s->where, s->err));
    if (has_metaspace_steps(json_object_get(normalizer, "normalizers")))
        DEBERTA_TRY(read_metaspace_normalizer(s, normalizer));
    else {
        DEBERTA_TRY(for_each_step(s, normalizer, "normalizers", read_unigram_normalizer));
        DEBERTA_TRY(settle_unigram_steps(s));
    }
    DEBERTA_TRY(json_value_member(&splitter, root, "pre_tokenizer", JSON_OBJECT, s->where, s->err));
    DEBERTA_TRY(for_each_step(s, splitter, "pretokenizers", read_unigram_splitter));
    DEBERTA_TRY(check_split(s, splitter, "Metaspace; " INSTEAD));
    DEBERTA_TRY(read_pieces(s, model));
    if (s->model->of_tokenizers) {
        if (s->model->byte_fallback)
            REFUSE(s, DEBERTA_E_UNSUPPORTED, "byte_fallback is %s beside the steps of transformers 5; " INSTEAD,
                   "true");
        DEBERTA_TRY(piece_model_hide_repeated(s->model, s->where, s->err));
    }
    return piece_model_check(s->model, s->where, s->err);
}

static deberta_status read_merge(json_source *s, json_t *merge, size_t index)
{
    char where[QUOTE_BYTES + 32];
    snprintf(where, sizeof where, "%s: merges[%zu]", s->where, index);
    if (json_is_string(merge))
        return byte_bpe_add_merge_line(s->bpe, json_string_value(merge), json_string_length(merge), where, s->err);
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (json_array_size(merge) != 2 || !json_is_string(left) || !json_is_string(right))
        DEBERTA_FAIL(s->err, DEBERTA_E_FORMAT, "%s: %s, expected two symbols", where, json_describe(merge).text);
    return byte_bpe_add_merge(s->bpe, json_string_value(left), json_string_length(left), json_string_value(right),
                              json_string_length(right), where, s->err);
}

/* These variants of BPE occur in no DeBERTa; "" and false mean that they are off. */
static deberta_status refuse_variants(json_source *s, json_t *model)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(model, keys[i]);
        bool off = !value || json_is_null(value) || json_is_false(value) ||
                   (json_is_string(value) && json_string_length(value) == 0) ||
                   (json_is_number(value) && json_number_value(value) == 0);
        if (!off)
            REFUSE(s, DEBERTA_E_UNSUPPORTED, "%s is %s, which is not supported", keys[i], json_describe(value).text);
    }
    return DEBERTA_OK;
}

static deberta_status read_bpe(json_source *s, json_t *root, json_t *model)
{
    json_t *step, *vocabulary, *merges, *item;
    DEBERTA_TRY(json_value_member(&step, root, "normalizer", JSON_OBJECT, s->where, s->err));
    DEBERTA_TRY(for_each_step(s, step, "normalizers", refuse_normalizer));
    DEBERTA_TRY(json_value_required(&step, root, "pre_tokenizer", JSON_OBJECT, s->where, s->err));
    DEBERTA_TRY(for_each_step(s, step, "pretokenizers", read_bpe_splitter));
    DEBERTA_TRY(check_split(s, step, "ByteLevel"));
    DEBERTA_TRY(refuse_variants(s, model));
    DEBERTA_TRY(json_value_required(&vocabulary, model, "vocab", JSON_OBJECT, s->where, s->err));
    DEBERTA_TRY(bpe_files_add_vocabulary(s->bpe, vocabulary, s->where, s->err));
    DEBERTA_TRY(json_value_required(&merges, model, "merges", JSON_ARRAY, s->where, s->err));
    size_t i;
    json_array_foreach(merges, i, item) DEBERTA_TRY(read_merge(s, item, i));
    return DEBERTA_OK;
}

static deberta_status read_frame(json_source *s, json_t *root)
{
    text_frame frame;
    DEBERTA_TRY(post_processor_read(&frame, root, s->where, s->err));
    const frame_token *tokens[2] = {&frame.cls, &frame.sep};
    for (size_t i = 0; i < 2; i++) {
        s->config->frame.id[i] = tokens[i]->id;
        s->config->frame.text[i] = strdup(tokens[i]->text);
        if (!s->config->frame.text[i]) REFUSE(s, DEBERTA_E_MEMORY, "no memory for %s", "a token");
    }
    s->config->frame.pair_separators = frame.pair_separators;
    return DEBERTA_OK;
}

static deberta_status note_model_keys(const json_source *s, const json_t *model)
{
    char where[QUOTE_BYTES + 8];
    snprintf(where, sizeof where, "%s: model", s->where);
    return tokenizer_keys_note(&s->config->notes, model, TOKENIZER_MODEL, where, s->err);
}

static deberta_status read_root(json_source *s, json_t *root, bool *is_bpe)
{
    json_t *model, *type;
    DEBERTA_TRY(tokenizer_config_add_list(s->config, root, s->where, s->err));
    DEBERTA_TRY(tokenizer_keys_note(&s->config->notes, root, TOKENIZER_PIPELINE, s->where, s->err));
    DEBERTA_TRY(json_value_required(&model, root, "model", JSON_OBJECT, s->where, s->err));
    DEBERTA_TRY(json_value_required(&type, model, "type", JSON_STRING, s->where, s->err));
    DEBERTA_TRY(note_model_keys(s, model));
    *is_bpe = strcmp(json_string_value(type), "BPE") == 0;
    const bool is_unigram = strcmp(json_string_value(type), "Unigram") == 0;
    if (*is_bpe) DEBERTA_TRY(read_bpe(s, root, model));
    if (is_unigram) DEBERTA_TRY(read_unigram(s, root, model));
    if (*is_bpe || is_unigram) return read_frame(s, root);
    const bool is_words = strcmp(json_string_value(type), "WordPiece") == 0;
    REFUSE(s, DEBERTA_E_UNSUPPORTED, "the model is %s, expected 'Unigram' or 'BPE'%s", json_describe(type).text,
           is_words ? "; give token ids (--ids, --input), or use deberta_c.accelerate with the class of transformers"
                    : "");
}

deberta_status tokenizer_json_load(const char *path, tokenizer_config *config, piece_model *model, byte_bpe **bpe,
                                   deberta_error *err)
{
    json_t *root;
    bool is_bpe = false;
    *bpe = NULL;
    if (!vocabulary_rows_read(&root, model, path)) DEBERTA_TRY(json_value_read(&root, path, err));
    quoted name = quote_bytes(path, strlen(path));
    deberta_status status = byte_bpe_create(bpe, err);
    if (status == DEBERTA_OK) {
        json_source source = {.where = name.text, .config = config, .model = model, .bpe = *bpe, .err = err};
        status = read_root(&source, root, &is_bpe);
    }
    if (status != DEBERTA_OK || !is_bpe) byte_bpe_free(bpe);
    json_decref(root);
    return status;
}
