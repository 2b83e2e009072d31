/* Tokenizes as transformers 5 does: applies its steps, cuts words by the unigram model, and maps the tokens' offsets
 * back through the steps.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/metaspace.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/quote.h"
#include "core/text/unicode.h"

static const char space_mark[] = "\xE2\x96\x81";
enum { MARK_BYTES = sizeof space_mark - 1 };

struct metaspace {
    piece_model model;
    unigram *unigram;
    added_tokens normalized; /* tokens searched in normalised texts, by their normalised spelling */
    bool lower_case, split_by_punctuation;
};

/* ----------------------------------------------------------------------------------------------------- loading */

deberta_status metaspace_create(metaspace **words_out, piece_model *model, const metaspace_options *options,
                                const char *where, deberta_error *err)
{
    metaspace *m = *words_out = calloc(1, sizeof *m);
    if (!m) {
        piece_model_free(model);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
    }
    m->model = *model;
    *model = (piece_model){0};
    m->lower_case = options->lower_case;
    m->split_by_punctuation = options->split_by_punctuation;
    deberta_status status = unigram_create(&m->unigram, &m->model, where, err);
    if (status != DEBERTA_OK) metaspace_free(words_out);
    return status;
}

void metaspace_free(metaspace **m)
{
    if (!*m) return;
    added_tokens_free(&(*m)->normalized);
    unigram_free(&(*m)->unigram);
    piece_model_free(&(*m)->model);
    free(*m);
    *m = NULL;
}

const piece_model *metaspace_model(const metaspace *m) { return &m->model; }

void metaspace_workspace_free(metaspace_workspace *workspace)
{
    traced_text_free(&workspace->lower);
    traced_text_free(&workspace->normal);
    traced_text_free(&workspace->word);
    nfc_free(&workspace->run);
    unigram_workspace_free(&workspace->unigram);
    free(workspace->cuts.items);
    *workspace = (metaspace_workspace){0};
}

/* ------------------------------------------------------------------------------------------------- normalising */

/* Returns whether a white space character becomes the space mark; a single one stays unchanged, unless it ends a line
 * or is a tab. */
static bool becomes_space(uint32_t character, bool alone)
{
    return !alone || character == '\n' || character == '\r' || character == '\t';
}

/* Applies Replace and NFC. */
static deberta_status put_normalized(metaspace_workspace *w, const char *text, size_t bytes, deberta_error *err)
{
    w->normal.bytes = w->run.count = 0;
    DEBERTA_TRY(traced_text_reserve(&w->normal, bytes, err));
    for (size_t at = 0; at < bytes;) {
        uint32_t character, next;
        size_t begin = at;
        at += utf8_decode(text + at, bytes - at, &character);
        if (utf8_is_space(character)) {
            bool alone = true;
            while (at < bytes) {
                size_t length = utf8_decode(text + at, bytes - at, &next);
                if (!utf8_is_space(next)) break;
                at += length;
                alone = false;
            }
            if (becomes_space(character, alone)) character = ' ';
        }
        DEBERTA_TRY(nfc_put(&w->run, &w->normal, character, begin, err));
    }
    DEBERTA_TRY(nfc_end(&w->run, &w->normal, err));
    traced_text_end(&w->normal, bytes);
    return DEBERTA_OK;
}

/* Removes white space at the end. As in SentencePiece, the text then ends at the source of the first removed character.
 */
static void strip_right(traced_text *normal)
{
    size_t end = normal->bytes;
    while (end > 0) {
        size_t before = end - 1;
        while (utf8_is_continuation(normal->text[before])) before--;
        uint32_t character;
        utf8_decode(normal->text + before, end - before, &character);
        if (!utf8_is_space(character)) break;
        end = before;
    }
    normal->bytes = end; /* origin[end] is the source of the first removed character. */
}

/* Fills w->normal, whose origins are places in `text`. */
static deberta_status normalize(const metaspace *m, metaspace_workspace *w, const char *text, size_t bytes,
                                deberta_error *err)
{
    if (m->lower_case) {
        DEBERTA_TRY(lower_case_run(&w->lower, text, bytes, err));
        text = w->lower.text;
        bytes = w->lower.bytes;
    }
    DEBERTA_TRY(put_normalized(w, text, bytes, err));
    strip_right(&w->normal);
    for (size_t i = 0; m->lower_case && i <= w->normal.bytes; i++)
        w->normal.origin[i] = w->lower.origin[w->normal.origin[i]];
    return DEBERTA_OK;
}

static deberta_status add_normalized(metaspace *m, metaspace_workspace *w, const added_token *token, const char *where,
                                     deberta_error *err)
{
    DEBERTA_TRY(normalize(m, w, token->text, token->bytes, err));
    if (w->normal.bytes == 0)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "%s: added token '%s' is marked normalized, and nothing is left of it then", where,
                     QUOTE_N(token->text, token->bytes));
    if (added_tokens_find(&m->normalized, w->normal.text, w->normal.bytes))
        return DEBERTA_OK; /* Where two have the same spelling, the first one counts. */
    added_token spelled = *token;
    spelled.text = w->normal.text;
    spelled.bytes = w->normal.bytes;
    spelled.normalized = false;
    return added_tokens_add(&m->normalized, &spelled, where, err);
}

deberta_status metaspace_add_tokens(metaspace *m, const added_tokens *tokens, const char *where, deberta_error *err)
{
    metaspace_workspace workspace = {0};
    deberta_status status = DEBERTA_OK;
    for (int others = 0; others < 2; others++) /* special ones come first */
        for (size_t i = 0; status == DEBERTA_OK && i < tokens->count; i++)
            if (tokens->items[i].normalized && tokens->items[i].special == !others)
                status = add_normalized(m, &workspace, &tokens->items[i], where, err);
    metaspace_workspace_free(&workspace);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- encoding */

/* Encodes one word of w->word, from `begin`. Neighbouring unknown characters become one token. */
static deberta_status encode_word(const metaspace *m, metaspace_workspace *w, size_t begin, size_t bytes,
                                  token_list *list, deberta_error *err)
{
    const char *text = w->word.text + begin;
    const uint32_t *origin = w->word.origin + begin;
    DEBERTA_TRY(unigram_cut(m->unigram, &w->unigram, text, bytes, &w->cuts, err));
    size_t at = 0;
    for (size_t i = 0; i < w->cuts.count; i++) {
        int32_t id = w->cuts.items[i].id;
        while (id == m->model.unknown_id && i + 1 < w->cuts.count && w->cuts.items[i + 1].id == id) i++;
        size_t end = w->cuts.items[i].end;
        text_span span = {origin[at], origin[end]};
        DEBERTA_TRY(token_list_append(list, id, text + at, end - at, span, TOKEN_TEXT, err));
        at = end;
    }
    return DEBERTA_OK;
}

static bool is_mark(const char *text, size_t bytes)
{
    return bytes >= MARK_BYTES && memcmp(text, space_mark, MARK_BYTES) == 0;
}

/* Applies Metaspace: spaces become U+2581, one is inserted at the front, and each begins a word. */
static deberta_status encode_words(const metaspace *m, metaspace_workspace *w, text_span stretch, bool first,
                                   token_list *list, deberta_error *err)
{
    const traced_text *normal = &w->normal;
    traced_text *word = &w->word;
    const size_t bytes = stretch.end - stretch.begin;
    if (bytes == 0) return DEBERTA_OK;
    word->bytes = 0;
    DEBERTA_TRY(traced_text_reserve(word, MARK_BYTES * (bytes + 1), err));
    const char *text = normal->text + stretch.begin;
    const bool wanted = m->model.add_dummy_prefix && (!m->model.prefix_once || first);
    if (wanted && *text != ' ' && !is_mark(text, bytes))
        traced_text_put(word, space_mark, MARK_BYTES, normal->origin[stretch.begin]);
    for (size_t i = 0; i < bytes; i++) {
        bool space = text[i] == ' ';
        traced_text_put(word, space ? space_mark : &text[i], space ? MARK_BYTES : 1, normal->origin[stretch.begin + i]);
    }
    traced_text_end(word, normal->origin[stretch.end]);

    size_t begin = 0;
    for (size_t at = 1; at <= word->bytes; at++) {
        if (at < word->bytes && !is_mark(word->text + at, word->bytes - at)) continue;
        DEBERTA_TRY(encode_word(m, w, begin, at - begin, list, err));
        begin = at;
    }
    return DEBERTA_OK;
}

/* Encodes a range between added tokens; punctuation is separated if the options say so. first: the range begins at the
 * caller's beginning. */
static deberta_status encode_stretch(const metaspace *m, metaspace_workspace *w, text_span stretch, bool first,
                                     token_list *list, deberta_error *err)
{
    const traced_text *normal = &w->normal;
    size_t from = stretch.begin;
    for (size_t at = from; m->split_by_punctuation && at < stretch.end;) {
        uint32_t character;
        size_t end = at + utf8_decode(normal->text + at, stretch.end - at, &character);
        if (unicode_is_punctuation(character)) {
            DEBERTA_TRY(encode_words(m, w, (text_span){from, at}, first && normal->origin[from] == 0, list, err));
            DEBERTA_TRY(encode_words(m, w, (text_span){at, end}, first && normal->origin[at] == 0, list, err));
            from = end;
        }
        at = end;
    }
    return encode_words(m, w, (text_span){from, stretch.end}, first && normal->origin[from] == 0, list, err);
}

deberta_status metaspace_encode(const metaspace *m, metaspace_workspace *w, const metaspace_text *t, token_list *list,
                                deberta_error *err)
{
    DEBERTA_TRY(normalize(m, w, t->text, t->bytes, err));
    const traced_text *normal = &w->normal;
    size_t at = 0;
    while (t->tokens) {
        text_span span;
        const added_token *token = added_tokens_search(&m->normalized, normal->text, normal->bytes, at, &span);
        if (!token) break;
        DEBERTA_TRY(encode_stretch(m, w, (text_span){at, span.begin}, t->first, list, err));
        const added_token *name = added_tokens_with_id(t->tokens, token->id);
        text_span source = {normal->origin[span.begin], normal->origin[span.end]};
        DEBERTA_TRY(token_list_append(list, token->id, name->text, name->bytes, source, TOKEN_SPELLED, err));
        at = span.end;
    }
    return encode_stretch(m, w, (text_span){at, normal->bytes}, t->first, list, err);
}
