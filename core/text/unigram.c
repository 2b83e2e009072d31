/* SentencePiece vocabularies: the way of a text from characters to pieces and of the pieces' spans back.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/unigram.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "core/base/grow.h"
#include "core/base/utf8.h"
#include "core/io/quote.h"

enum {
    CHARACTERS = 0x110000,
    /* libsentencepiece joins neighbouring unknown characters by copying what it has joined so far: quadratic in the
     * length of the run. Up to this many bytes that is a matter of microseconds; longer runs reach it as one character.
     */
    LONG_RUN_BYTES = 4096,
    /* The library's result takes about 200 bytes a piece, and keeps its memory. Above this it is given back. */
    MANY_PIECES = 1 << 18,
};

struct unigram {
    piece_model model;
    normalizer *normalizer;
    sentencepiece_engine *engine;
    uint64_t *known;    /* bit c: character c occurs in some piece that text is matched with */
    locale_t locale;    /* for lower case; 0 if that is off */
    regex *punctuation; /* NULL if texts are not split there */
};

/* ----------------------------------------------------------------------------------------------------- loading */

static void mark_known(uint64_t *known, const piece_model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        piece_type type = model->pieces[i].type;
        if (type == PIECE_UNKNOWN || type == PIECE_CONTROL || type == PIECE_BYTE) continue;
        const char *text = piece_text(model, i);
        for (size_t at = 0; at < model->pieces[i].bytes;) {
            uint32_t character;
            at += utf8_decode(text + at, model->pieces[i].bytes - at, &character);
            known[character / 64] |= (uint64_t)1 << (character % 64);
        }
    }
}

static deberta_status load_engine(unigram *u, const char *where, deberta_error *err)
{
    char *bytes, message[200] = "";
    size_t size_bytes;
    DEBERTA_TRY(piece_model_write(&u->model, &bytes, &size_bytes, err));
    sentencepiece_outcome outcome = SENTENCEPIECE_NO_MEMORY;
    if (size_bytes < INT32_MAX) outcome = sentencepiece_load(&u->engine, bytes, size_bytes, message, sizeof message);
    free(bytes);
    if (outcome == SENTENCEPIECE_NO_MEMORY)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu pieces", where, u->model.count);
    if (outcome != SENTENCEPIECE_OK)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: libsentencepiece refuses the model: %s", where, QUOTE(message));
    return DEBERTA_OK;
}

static deberta_status load_options(unigram *u, const unigram_options *options, const char *where, deberta_error *err)
{
    if (options->lower_case) {
        u->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
        if (!u->locale)
            DEBERTA_FAIL(err, DEBERTA_E_SYSTEM,
                         "%s: do_lower_case needs the locale C.UTF-8, which this system does not have", where);
    }
    if (options->split_by_punctuation)
        return regex_compile(&u->punctuation, "[\\x21-\\x2F\\x3A-\\x40\\x5B-\\x60\\x7B-\\x7E\\p{P}]", err);
    return DEBERTA_OK;
}

deberta_status unigram_create(unigram **unigram_out, piece_model *model, const unigram_options *options,
                              const char *where, deberta_error *err)
{
    *unigram_out = NULL;
    deberta_status status;
    unigram *u = calloc(1, sizeof *u);
    if (!u) {
        piece_model_free(model);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
    }
    u->model = *model;
    *model = (piece_model){0};
    u->known = calloc(CHARACTERS / 64, sizeof *u->known);
    if (!u->known) {
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for a tokenizer", where);
        goto fail;
    }
    mark_known(u->known, &u->model);
    DEBERTA_TRY_OR_FAIL(status, normalizer_create(&u->normalizer, &u->model, where, err));
    DEBERTA_TRY_OR_FAIL(status, load_engine(u, where, err));
    DEBERTA_TRY_OR_FAIL(status, load_options(u, options, where, err));
    *unigram_out = u;
    return DEBERTA_OK;
fail:
    unigram_free(&u);
    return status;
}

void unigram_free(unigram **u)
{
    if (!*u) return;
    if ((*u)->locale) freelocale((*u)->locale);
    regex_free(&(*u)->punctuation);
    sentencepiece_free((*u)->engine);
    normalizer_free(&(*u)->normalizer);
    piece_model_free(&(*u)->model);
    free((*u)->known);
    free(*u);
    *u = NULL;
}

const piece_model *unigram_model(const unigram *u) { return &u->model; }

void unigram_workspace_free(unigram_workspace *workspace)
{
    traced_text_free(&workspace->lower);
    traced_text_free(&workspace->normal);
    regex_match_free(&workspace->match);
    sentencepiece_pieces_free(workspace->pieces);
    free(workspace->short_text);
    free(workspace->runs);
    *workspace = (unigram_workspace){0};
}

/* -------------------------------------------------------------------------------------------------- lower case */

static deberta_status lower(const unigram *u, traced_text *out, const char *text, size_t bytes, deberta_error *err)
{
    out->bytes = 0;
    DEBERTA_TRY(traced_text_reserve(out, bytes, err));
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        size_t length = utf8_decode(text + at, bytes - at, &character);
        char lowered[2 * UTF8_MAX_BYTES];
        size_t put = utf8_encode(lowered, (uint32_t)towlower_l((wint_t)character, u->locale));
        /* The lower case of this one is two characters: i, which is there already, and a dot above. */
        if (character == 0x130) put += utf8_encode(lowered + put, 0x307);
        DEBERTA_TRY(traced_text_reserve(out, out->bytes + put, err));
        traced_text_put(out, lowered, put, at);
        at += length;
    }
    traced_text_end(out, bytes);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------- encoding */

static bool is_known(const unigram *u, uint32_t character) { return u->known[character / 64] >> (character % 64) & 1; }

/* Copies the normalised text to workspace->short_text, of every long run of characters that no piece contains only the
 * first. Nothing else can change by that, pieces end where such a character begins and begin where it ends, and the
 * library makes one token of the whole run; but for a near tie behind a run of thousands, whose penalties would have
 * cost the library's float32 sums their last digits. */
static deberta_status shorten(const unigram *u, unigram_workspace *w, size_t *short_bytes, deberta_error *err)
{
    const traced_text *normal = &w->normal;
    char *out = grown(w->short_text, &w->short_capacity, normal->bytes, 1);
    if (!out) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a text of %zu bytes", normal->bytes);
    w->short_text = out;

    size_t to = 0, run_end = 0; /* a run's first character ends in `out` at run_end; 0: not in a run */
    for (size_t at = 0; at <= normal->bytes;) {
        uint32_t character = 0;
        size_t length = 1;
        if (at < normal->bytes) length = utf8_decode(normal->text + at, normal->bytes - at, &character);
        bool in_run = at < normal->bytes && !is_known(u, character);
        if (!in_run && run_end > 0) {
            if (to - run_end > LONG_RUN_BYTES) {
                shortened_run *runs = grown(w->runs, &w->run_capacity, w->run_count + 1, sizeof *runs);
                if (!runs) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a text of %zu bytes", normal->bytes);
                w->runs = runs;
                runs[w->run_count++] = (shortened_run){.at = run_end, .removed = to - run_end};
                to = run_end;
            }
            run_end = 0;
        }
        if (at == normal->bytes) break;
        memcpy(out + to, normal->text + at, length);
        to += length;
        at += length;
        if (in_run && run_end == 0) run_end = to;
    }
    *short_bytes = to;
    return DEBERTA_OK;
}

/* Cuts the normalised text; *count pieces in workspace->pieces. */
static deberta_status cut(const unigram *u, unigram_workspace *w, size_t *count, deberta_error *err)
{
    const char *text = w->normal.text;
    size_t bytes = w->normal.bytes;
    w->run_count = 0;
    /* With byte fallback every unknown character becomes tokens of its own, and nothing is joined. */
    if (bytes > LONG_RUN_BYTES && !u->model.byte_fallback) {
        DEBERTA_TRY(shorten(u, w, &bytes, err));
        text = w->short_text;
    }
    char message[200] = "";
    switch (sentencepiece_encode(u->engine, &w->pieces, text, bytes, count, message, sizeof message)) {
    case SENTENCEPIECE_OK: return DEBERTA_OK;
    case SENTENCEPIECE_NO_MEMORY: DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to cut a text of %zu bytes", bytes);
    default: DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "libsentencepiece fails: %s", QUOTE(message));
    }
}

/* Where tokens come from: the texts between the caller's and the normalised one. */
typedef struct trace {
    const traced_text *normal, *lower; /* lower: NULL if the text was not lower-cased */
    size_t begin;                      /* of the stretch that was normalised, in the text it was taken from */
} trace;

static size_t source_of(const trace *t, size_t normal_byte)
{
    size_t at = t->begin + t->normal->origin[normal_byte];
    return t->lower ? t->lower->origin[at] : at;
}

static deberta_status append_pieces(const unigram *u, const unigram_workspace *w, const trace *t, size_t count,
                                    token_list *list, deberta_error *err)
{
    size_t at = 0, short_at = 0, run = 0; /* positions in the normalised text, and in what the library saw */
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        int32_t id = sentencepiece_piece(w->pieces, i, &bytes);
        bool is_byte = id >= 0 && (size_t)id < u->model.count && u->model.pieces[id].type == PIECE_BYTE;
        if (is_byte) bytes = 1;

        short_at += bytes;
        for (; run < w->run_count && w->runs[run].at <= short_at; run++) bytes += w->runs[run].removed;
        if (id < 0 || (size_t)id >= u->model.count || bytes > w->normal.bytes - at)
            DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "libsentencepiece returns a piece that is not in the text");

        /* Of the bytes of one character all but the last get an empty span, since they come from the same place. */
        text_span span = {source_of(t, at), source_of(t, at + bytes)};
        const char *text = is_byte ? piece_text(&u->model, (size_t)id) : w->normal.text + at;
        size_t text_bytes = is_byte ? u->model.pieces[id].bytes : bytes;
        DEBERTA_TRY(token_list_append(list, id, text, text_bytes, span, TOKEN_TEXT, err));
        at += bytes;
    }
    return DEBERTA_OK;
}

/* source: the text, or its lower-cased form. */
static deberta_status encode_stretch(const unigram *u, unigram_workspace *w, const char *source, text_span stretch,
                                     const traced_text *lowered, token_list *list, deberta_error *err)
{
    size_t count;
    DEBERTA_TRY(normalizer_run(u->normalizer, &w->normal, source + stretch.begin, stretch.end - stretch.begin, err));
    if (w->normal.bytes == 0) return DEBERTA_OK;
    DEBERTA_TRY(cut(u, w, &count, err));
    trace t = {.normal = &w->normal, .lower = lowered, .begin = stretch.begin};
    deberta_status status = append_pieces(u, w, &t, count, list, err);
    if (count > MANY_PIECES) {
        sentencepiece_pieces_free(w->pieces);
        w->pieces = NULL;
    }
    return status;
}

deberta_status unigram_encode(const unigram *u, unigram_workspace *w, const char *text, size_t bytes, token_list *list,
                              deberta_error *err)
{
    const traced_text *lowered = NULL;
    if (u->locale) {
        DEBERTA_TRY(lower(u, &w->lower, text, bytes, err));
        lowered = &w->lower;
        text = lowered->text;
        bytes = lowered->bytes;
    }
    size_t at = 0;
    while (u->punctuation && at < bytes) {
        bool found;
        size_t begin, end;
        DEBERTA_TRY(regex_find(u->punctuation, &w->match, text, bytes, at, &found, &begin, &end, err));
        if (!found) break;
        if (begin > at) DEBERTA_TRY(encode_stretch(u, w, text, (text_span){at, begin}, lowered, list, err));
        DEBERTA_TRY(encode_stretch(u, w, text, (text_span){begin, end}, lowered, list, err));
        at = end;
    }
    return encode_stretch(u, w, text, (text_span){at, bytes}, lowered, list, err);
}
