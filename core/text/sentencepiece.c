/* Tokenizes with SentencePiece vocabularies (v2, v3, mDeBERTa): maps a text to pieces, and the pieces' offsets back.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/sentencepiece.h"

#include <stdlib.h>

#include "core/text/unicode.h"

struct sentencepiece {
    piece_model model;
    normalizer *normalizer;
    unigram *unigram; /* one of these two is set */
    piece_bpe *bpe;
    int32_t byte_ids[256]; /* ids of the 256 bytes, with byte fallback */
    bool lower_case;
    regex *punctuation; /* NULL if texts are not split there */
};

/* ----------------------------------------------------------------------------------------------------- loading */

static deberta_status load_model(sentencepiece *s, const char *where, deberta_error *err)
{
    trie reserved;
    const piece_model *model = &s->model;
    deberta_status status = piece_model_trie(model, PIECES_RESERVED, &reserved, where, err);
    trie_free(&reserved); /* The trie only shows that no two texts are the same. */
    DEBERTA_TRY(status);
    for (size_t i = 0; i < model->count; i++)
        if (model->pieces[i].type == PIECE_BYTE)
            s->byte_ids[piece_byte(piece_text(model, i), model->pieces[i].bytes)] = (int32_t)i;
    DEBERTA_TRY(normalizer_create(&s->normalizer, model, where, err));
    return model->algorithm == PIECES_BPE ? piece_bpe_create(&s->bpe, model, where, err)
                                          : unigram_create(&s->unigram, model, where, err);
}

static deberta_status load_options(sentencepiece *s, const sentencepiece_options *options, deberta_error *err)
{
    s->lower_case = options->lower_case;
    if (options->split_by_punctuation)
        return regex_compile(&s->punctuation, "[\\x21-\\x2F\\x3A-\\x40\\x5B-\\x60\\x7B-\\x7E\\p{P}]", err);
    return DEBERTA_OK;
}

deberta_status sentencepiece_create(sentencepiece **pieces_out, piece_model *model,
                                    const sentencepiece_options *options, const char *where, deberta_error *err)
{
    sentencepiece *s = *pieces_out = calloc(1, sizeof *s);
    if (!s) {
        piece_model_free(model);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
    }
    s->model = *model;
    *model = (piece_model){0};
    deberta_status status = load_model(s, where, err);
    if (status == DEBERTA_OK) status = load_options(s, options, err);
    if (status != DEBERTA_OK) sentencepiece_free(pieces_out);
    return status;
}

void sentencepiece_free(sentencepiece **s)
{
    if (!*s) return;
    regex_free(&(*s)->punctuation);
    unigram_free(&(*s)->unigram);
    piece_bpe_free(&(*s)->bpe);
    normalizer_free(&(*s)->normalizer);
    piece_model_free(&(*s)->model);
    free(*s);
    *s = NULL;
}

const piece_model *sentencepiece_model(const sentencepiece *s) { return &s->model; }

void sentencepiece_workspace_free(sentencepiece_workspace *workspace)
{
    traced_text_free(&workspace->lower);
    traced_text_free(&workspace->normal);
    normalizer_workspace_free(&workspace->normalizer);
    regex_match_free(&workspace->match);
    unigram_workspace_free(&workspace->unigram);
    piece_bpe_workspace_free(&workspace->bpe);
    free(workspace->cuts.items);
    *workspace = (sentencepiece_workspace){0};
}

/* ---------------------------------------------------------------------------------------------------- encoding */

/* The texts between the caller's and the normalised one, for tracing tokens back. */
typedef struct trace {
    const traced_text *normal, *lower; /* lower: NULL if the text was not lower-cased */
    size_t begin;                      /* begin of the normalised stretch, in the text it was taken from */
} trace;

static size_t source_of(const trace *t, size_t normal_byte)
{
    size_t at = t->begin + t->normal->origin[normal_byte];
    return t->lower ? t->lower->origin[at] : at;
}

/* Appends an unknown character as its bytes. All but the last get an empty span, since they come from the same place.
 */
static deberta_status append_bytes(const sentencepiece *s, const trace *t, size_t at, size_t end, token_list *list,
                                   deberta_error *err)
{
    for (; at < end; at++) {
        int32_t id = s->byte_ids[(unsigned char)t->normal->text[at]];
        text_span span = {source_of(t, at), source_of(t, at + 1)};
        DEBERTA_TRY(token_list_append(list, id, piece_text(&s->model, (size_t)id), s->model.pieces[id].bytes, span,
                                      TOKEN_TEXT, err));
    }
    return DEBERTA_OK;
}

/* Appends the pieces. Without byte fallback, neighbouring unknown characters become one token. */
static deberta_status append_pieces(const sentencepiece *s, const piece_cuts *cuts, const trace *t, token_list *list,
                                    deberta_error *err)
{
    const int32_t unknown = s->model.unknown_id;
    size_t at = 0;
    for (size_t i = 0; i < cuts->count; i++) {
        int32_t id = cuts->items[i].id;
        if (id == unknown && !s->model.byte_fallback)
            while (i + 1 < cuts->count && cuts->items[i + 1].id == unknown) i++;
        size_t end = cuts->items[i].end;
        if (id == unknown && s->model.byte_fallback) {
            DEBERTA_TRY(append_bytes(s, t, at, end, list, err));
        } else {
            text_span span = {source_of(t, at), source_of(t, end)};
            DEBERTA_TRY(token_list_append(list, id, t->normal->text + at, end - at, span, TOKEN_TEXT, err));
        }
        at = end;
    }
    return DEBERTA_OK;
}

/* source: the text, or its lower-cased form. */
static deberta_status encode_stretch(const sentencepiece *s, sentencepiece_workspace *w, const char *source,
                                     text_span stretch, const traced_text *lowered, token_list *list,
                                     deberta_error *err)
{
    const traced_text *normal = &w->normal;
    DEBERTA_TRY(normalizer_run(s->normalizer, &w->normalizer, &w->normal, source + stretch.begin,
                               stretch.end - stretch.begin, err));
    if (normal->bytes == 0) return DEBERTA_OK;
    if (s->bpe)
        DEBERTA_TRY(piece_bpe_cut(s->bpe, &w->bpe, normal->text, normal->bytes, &w->cuts, err));
    else
        DEBERTA_TRY(unigram_cut(s->unigram, &w->unigram, normal->text, normal->bytes, &w->cuts, err));
    trace t = {.normal = normal, .lower = lowered, .begin = stretch.begin};
    return append_pieces(s, &w->cuts, &t, list, err);
}

deberta_status sentencepiece_encode(const sentencepiece *s, sentencepiece_workspace *w, const char *text, size_t bytes,
                                    token_list *list, deberta_error *err)
{
    const traced_text *lowered = NULL;
    if (s->lower_case) {
        DEBERTA_TRY(lower_case_run(&w->lower, text, bytes, err));
        lowered = &w->lower;
        text = lowered->text;
        bytes = lowered->bytes;
    }
    size_t at = 0;
    while (s->punctuation && at < bytes) {
        bool found;
        size_t begin, end;
        DEBERTA_TRY(regex_find(s->punctuation, &w->match, text, bytes, at, &found, &begin, &end, err));
        if (!found) break;
        if (begin > at) DEBERTA_TRY(encode_stretch(s, w, text, (text_span){at, begin}, lowered, list, err));
        DEBERTA_TRY(encode_stretch(s, w, text, (text_span){begin, end}, lowered, list, err));
        at = end;
    }
    return encode_stretch(s, w, text, (text_span){at, bytes}, lowered, list, err);
}
