/* Decodes ids to text for all kinds of tokenizers: pieces, bytes, spaces between words and special tokens.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/text/tokenizer_inside.h"

/* A growing text. */
typedef struct decoded_text {
    char *text;
    size_t bytes, capacity;
    bool wants_space; /* whether a space must come before the next piece, unless it begins with one */
} decoded_text;

static deberta_status put(decoded_text *out, const char *text, size_t bytes, deberta_error *err)
{
    char *larger = grown(out->text, &out->capacity, out->bytes + bytes + 1, 1);
    if (!larger) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a text of %zu bytes", out->bytes + bytes);
    out->text = larger;
    if (bytes == 0) return DEBERTA_OK;
    if (out->wants_space && *text != ' ') out->text[out->bytes++] = ' ';
    out->wants_space = false;
    memcpy(out->text + out->bytes, text, bytes);
    out->bytes += bytes;
    return DEBERTA_OK;
}

/* Returns whether to drop the space that begins a text: a tokenizer that adds or trims spaces has added it. */
static bool swallows_space(const piece_model *model, const decoded_text *out, size_t nth)
{
    return out->bytes == 0 && (model->remove_extra_whitespaces || (model->add_dummy_prefix && nth == 0));
}

static deberta_status put_piece(const piece_model *model, int32_t id, size_t nth, decoded_text *out, deberta_error *err)
{
    static const char escaped[] = "\xE2\x96\x81";
    const char *text = piece_text(model, (size_t)id);
    size_t bytes = model->pieces[id].bytes, at = 0;
    if (model->pieces[id].type == PIECE_CONTROL) return DEBERTA_OK;
    if (model->pieces[id].type == PIECE_BYTE) {
        char byte = (char)piece_byte(text, bytes);
        return put(out, &byte, 1, err);
    }
    size_t mark = model->escape_whitespaces ? 3 : 1;
    const char *space = model->escape_whitespaces ? escaped : " ";
    if (swallows_space(model, out, nth) && bytes >= mark && memcmp(text, space, mark) == 0) at = mark;
    while (at < bytes) {
        bool is_space = bytes - at >= mark && memcmp(text + at, space, mark) == 0;
        DEBERTA_TRY(put(out, is_space ? " " : text + at, 1, err));
        at += is_space ? mark : 1;
    }
    return DEBERTA_OK;
}

static deberta_status put_bytes(const char *token, size_t bytes, decoded_text *out, deberta_error *err)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        size_t length = utf8_decode(token + at, bytes - at, &character);
        int byte = byte_bpe_byte(character);
        char c = (char)byte;
        DEBERTA_TRY(put(out, byte < 0 ? token + at : &c, byte < 0 ? length : 1, err));
        at += length;
    }
    return DEBERTA_OK;
}

/* SentencePiece text has its spaces at the beginnings of words, so a special token between words needs its own. */
static deberta_status put_special(const deberta_tokenizer *t, const added_token *token, decoded_text *out,
                                  deberta_error *err)
{
    if (token->id == t->specials[DEBERTA_SPECIAL_CLS] || token->id == t->specials[DEBERTA_SPECIAL_SEP] ||
        token->id == t->specials[DEBERTA_SPECIAL_PAD])
        return DEBERTA_OK;
    bool apart = t->model || token->strip_left;
    out->wants_space = apart && out->bytes > 0 && out->text[out->bytes - 1] != ' ';
    DEBERTA_TRY(put(out, token->text, token->bytes, err));
    out->wants_space = t->model != NULL;
    return DEBERTA_OK;
}

static deberta_status put_ids(const deberta_tokenizer *t, const int32_t *ids, size_t count, decoded_text *out,
                              deberta_error *err)
{
    for (size_t i = 0, nth = 0; i < count; i++) {
        size_t bytes = 0;
        const char *token = deberta_tokenizer_token(t, ids[i], &bytes);
        const added_token *added = added_tokens_with_id(&t->added, ids[i]);
        if (!token)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "id %d at position %zu has no token; the vocabulary has %zu ids",
                         (int)ids[i], i, t->vocabulary_size);
        if (added)
            DEBERTA_TRY(put_special(t, added, out, err));
        else if (t->bpe)
            DEBERTA_TRY(put_bytes(token, bytes, out, err));
        else
            DEBERTA_TRY(put_piece(t->model, ids[i], nth++, out, err));
    }
    return put(out, "", 0, err);
}

deberta_status deberta_detokenize(char **text, size_t *bytes, const deberta_tokenizer *t, const int32_t *ids,
                                  size_t count, deberta_error *err)
{
    if (text) *text = NULL;
    if (!text || !t || (!ids && count))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_detokenize needs a place for the text, a tokenizer and ids");
    decoded_text out = {0};
    traced_text clean = {0};
    size_t replaced, first;
    deberta_status status = put_ids(t, ids, count, &out, err);
    if (status == DEBERTA_OK) status = traced_text_clean(&clean, out.text, out.bytes, &replaced, &first, err);
    if (status == DEBERTA_OK) status = traced_text_reserve(&clean, clean.bytes + 1, err);
    free(out.text);
    if (status == DEBERTA_OK) {
        clean.text[clean.bytes] = '\0';
        if (bytes) *bytes = clean.bytes;
        *text = clean.text;
        clean.text = NULL;
    }
    traced_text_free(&clean);
    return status;
}
