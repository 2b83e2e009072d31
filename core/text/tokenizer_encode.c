/* Turns a text into token ids with their offsets: the special tokens around it, the vocabulary between them, and the
 * span of each token in the caller's text, in bytes and characters.
 *
 * SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_inside.h"
#include "core/text/traced_text.h"

/* Working memory for tokenizing a text. The tokenizer is immutable and shared by threads, so the caller's list owns
 * this. */
struct token_workspace {
    traced_text clean, prefixed;
    sentencepiece_workspace pieces;
    metaspace_workspace words;
    byte_bpe_workspace byte_bpe;
};

static void free_workspace(token_workspace *workspace)
{
    traced_text_free(&workspace->clean);
    traced_text_free(&workspace->prefixed);
    sentencepiece_workspace_free(&workspace->pieces);
    metaspace_workspace_free(&workspace->words);
    byte_bpe_workspace_free(&workspace->byte_bpe);
    free(workspace);
}

static deberta_status append_id(const deberta_tokenizer *t, int32_t id, text_span span, token_role role,
                                token_list *list, deberta_error *err)
{
    size_t bytes = 0;
    const char *text = deberta_tokenizer_token(t, id, &bytes);
    assert(text);
    return token_list_append(list, id, text, bytes, span, role, err);
}

static deberta_status append_frame(const deberta_tokenizer *t, deberta_special which, token_list *list,
                                   deberta_error *err)
{
    return append_id(t, t->specials[which], (text_span){0, 0}, TOKEN_FRAME, list, err);
}

/* Returns whether a range needs a prefix space. The slow DebertaTokenizer adds one only at the very beginning, and only
 * without white space there. A tokenizer.json follows the library tokenizers: before every range that does not begin
 * with a space. */
static bool needs_prefix_space(const deberta_tokenizer *t, const char *text, text_span stretch)
{
    uint32_t character;
    if (!t->add_prefix_space) return false;
    if (t->prefix_every_stretch) return text[stretch.begin] != ' ';
    if (stretch.begin > 0) return false;
    utf8_decode(text, stretch.end, &character);
    return !utf8_is_space(character);
}

static deberta_status encode_with_prefix_space(const deberta_tokenizer *t, token_workspace *w, const char *text,
                                               size_t bytes, token_list *list, deberta_error *err)
{
    size_t first = list->count;
    w->prefixed.bytes = 0;
    DEBERTA_TRY(traced_text_reserve(&w->prefixed, bytes + 1, err));
    traced_text_put(&w->prefixed, " ", 1, 0);
    for (size_t i = 0; i < bytes; i++) traced_text_put(&w->prefixed, text + i, 1, i);
    traced_text_end(&w->prefixed, bytes);
    DEBERTA_TRY(byte_bpe_encode(t->bpe, &w->byte_bpe, w->prefixed.text, w->prefixed.bytes, list, err));
    for (size_t i = first; i < list->count; i++) {
        text_span *span = &list->byte_spans[i];
        *span = (text_span){w->prefixed.origin[span->begin], w->prefixed.origin[span->end]};
    }
    return DEBERTA_OK;
}

static deberta_status encode_metaspace(const deberta_tokenizer *t, token_workspace *w, const char *text,
                                       text_span stretch, bool literal, token_list *list, deberta_error *err)
{
    const metaspace_text stretch_text = {.text = text + stretch.begin,
                                         .bytes = stretch.end - stretch.begin,
                                         .first = stretch.begin == 0,
                                         .tokens = literal ? NULL : &t->added};
    return metaspace_encode(t->words, &w->words, &stretch_text, list, err);
}

/* Encodes a stretch without special tokens. Its tokens get spans in `text`. */
static deberta_status encode_stretch(const deberta_tokenizer *t, const char *text, text_span stretch, bool literal,
                                     token_list *list, deberta_error *err)
{
    token_workspace *w = list->workspace;
    size_t first = list->count, bytes = stretch.end - stretch.begin;
    const char *begin = text + stretch.begin;
    if (bytes == 0) return DEBERTA_OK;
    if (t->words)
        DEBERTA_TRY(encode_metaspace(t, w, text, stretch, literal, list, err));
    else if (t->pieces)
        DEBERTA_TRY(sentencepiece_encode(t->pieces, &w->pieces, begin, bytes, list, err));
    else if (needs_prefix_space(t, text, stretch))
        DEBERTA_TRY(encode_with_prefix_space(t, w, begin, bytes, list, err));
    else
        DEBERTA_TRY(byte_bpe_encode(t->bpe, &w->byte_bpe, begin, bytes, list, err));
    for (size_t i = first; i < list->count; i++) {
        list->byte_spans[i].begin += stretch.begin;
        list->byte_spans[i].end += stretch.begin;
    }
    return DEBERTA_OK;
}

/* Encodes the special tokens of a text, and everything between them. */
static deberta_status encode_clean(const deberta_tokenizer *t, const char *text, size_t bytes, bool literal,
                                   token_list *list, deberta_error *err)
{
    size_t at = 0;
    while (!literal) {
        text_span span;
        const added_token *token = added_tokens_search(&t->added, text, bytes, at, &span);
        if (!token) break;
        DEBERTA_TRY(encode_stretch(t, text, (text_span){at, span.begin}, literal, list, err));
        DEBERTA_TRY(token_list_append(list, token->id, token->text, token->bytes, span, TOKEN_SPELLED, err));
        at = span.end;
    }
    return encode_stretch(t, text, (text_span){at, bytes}, literal, list, err);
}

/* Maps spans in the cleaned text to spans in the caller's. A token that ends inside a U+FFFD, whose bytes all come from
 * one place, gets the whole broken unit. */
static void trace_spans(token_list *list, size_t first, const traced_text *clean)
{
    for (size_t i = first; i < list->count; i++) {
        text_span *span = &list->byte_spans[i];
        while (span->end < clean->bytes && span->end > 0 && clean->origin[span->end] == clean->origin[span->end - 1])
            span->end++;
        *span = (text_span){clean->origin[span->begin], clean->origin[span->end]};
    }
}

/* Converts byte spans to characters. Begins and ends ascend separately. */
static void count_characters(token_list *list, size_t first, const char *text, size_t bytes)
{
    utf8_cursor begin = {.text = text, .bytes = bytes}, end = begin;
    for (size_t i = first; i < list->count; i++) {
        text_span span = list->byte_spans[i];
        utf8_cursor_seek(&begin, span.begin);
        utf8_cursor_seek(&end, span.end);
        list->char_spans[i] = (text_span){begin.character, end.character + (end.byte < span.end)};
    }
}

static deberta_status encode_segment(const deberta_tokenizer *t, const char *text, size_t bytes,
                                     const tokenizer_options *options, token_list *list, deberta_error *err)
{
    bool ascii;
    size_t first = list->count, valid = utf8_valid_prefix(text, bytes, &ascii), segment = list->segments++;
    if (valid == bytes) {
        DEBERTA_TRY(encode_clean(t, text, bytes, options->literal_specials, list, err));
    } else {
        size_t replaced, first_replaced;
        traced_text *clean = &list->workspace->clean;
        if (options->strict)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the %stext is not UTF-8: byte %zu is 0x%02X", segment ? "second " : "",
                         valid, (unsigned)(unsigned char)text[valid]);
        DEBERTA_TRY(traced_text_clean(clean, text, bytes, &replaced, &first_replaced, err));
        if (list->replaced == 0) {
            list->first_replaced_segment = segment;
            list->first_replaced_byte = first_replaced;
        }
        list->replaced += replaced;
        DEBERTA_TRY(encode_clean(t, clean->text, clean->bytes, options->literal_specials, list, err));
        trace_spans(list, first, clean);
    }
    if (valid == bytes && ascii)
        memcpy(list->char_spans + first, list->byte_spans + first, (list->count - first) * sizeof *list->char_spans);
    else
        count_characters(list, first, text, bytes);
    return append_frame(t, DEBERTA_SPECIAL_SEP, list, err);
}

static deberta_status tokenizer_encode_all(const deberta_tokenizer *t, const char *text, size_t bytes, const char *pair,
                                           size_t pair_bytes, const tokenizer_options *options, token_list *list,
                                           deberta_error *err)
{
    static const tokenizer_options defaults = {0};
    if (!options) options = &defaults;
    if (!text && bytes > 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the text is NULL, but has %zu bytes", bytes);
    if (bytes >= INT32_MAX || pair_bytes >= INT32_MAX)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a text of %zu and a pair of %zu bytes; expected less than 2 GiB", bytes,
                     pair_bytes);
    if (!list->workspace) list->workspace = calloc(1, sizeof *list->workspace);
    if (!list->workspace) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to tokenize");
    list->free_workspace = free_workspace;
    DEBERTA_TRY(append_frame(t, DEBERTA_SPECIAL_CLS, list, err));
    DEBERTA_TRY(encode_segment(t, text ? text : "", bytes, options, list, err));
    if (!pair) return DEBERTA_OK;
    for (size_t i = 1; i < t->pair_separators; i++) DEBERTA_TRY(append_frame(t, DEBERTA_SPECIAL_SEP, list, err));
    return encode_segment(t, pair, pair_bytes, options, list, err);
}

deberta_status tokenizer_encode(const deberta_tokenizer *t, const char *text, size_t bytes, const char *pair,
                                size_t pair_bytes, const tokenizer_options *options, token_list *list,
                                deberta_error *err)
{
    token_list_clear(list);
    deberta_status status = tokenizer_encode_all(t, text, bytes, pair, pair_bytes, options, list, err);
    if (status != DEBERTA_OK) token_list_clear(list);
    return status;
}
