/* Tokenizes lines of text files, joins them by document, and cuts them into sequences. SPDX-License-Identifier: MIT */
#include "train/data/corpus.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/base/text.h"

/* A file while it is read. */
typedef struct corpus_reader {
    corpus *corpus;
    const deberta_tokenizer *tokenizer;
    text_lines lines;
    token_list line;
    corpus_cut cut;
    bool is_open; /* whether a sequence has begun */
} corpus_reader;

static bool corpus_append(corpus *c, int32_t id, bool begins)
{
    int32_t *ids = grown(c->ids, &c->ids_capacity, c->tokens + 1, sizeof *ids);
    if (!ids) return false;
    c->ids = ids;
    uint8_t *marks = grown(c->begins, &c->begins_capacity, c->tokens + 1, sizeof *marks);
    if (!marks) return false;
    c->begins = marks;
    c->ids[c->tokens] = id;
    c->begins[c->tokens++] = begins;
    return true;
}

static bool begin_sequence(corpus_reader *r)
{
    corpus *c = r->corpus;
    size_t *starts = grown(c->starts, &c->starts_capacity, c->sequences + 2, sizeof *starts);
    if (!starts) return false;
    c->starts = starts;
    c->starts[c->sequences] = c->tokens;
    r->is_open = true;
    return corpus_append(c, c->begin_id, true);
}

static bool end_sequence(corpus_reader *r)
{
    corpus *c = r->corpus;
    if (!r->is_open) return true;
    r->is_open = false;
    if (!corpus_append(c, c->end_id, true)) return false;
    const size_t length = c->tokens - c->starts[c->sequences];
    c->longest = maximum(c->longest, length);
    c->starts[++c->sequences] = c->tokens;
    return true;
}

/* Returns whether a word begins with a piece. Pieces write the space before a word as U+2581 (SentencePiece) or U+0120
 * (bytes); some scripts have none. */
static bool piece_begins_word(const token_list *list, size_t t, const char *line, size_t bytes)
{
    const char *text = token_list_text(list, t, NULL);
    return list->roles[t - 1] == TOKEN_FRAME || strncmp(text, "\u2581", 3) == 0 || strncmp(text, "\u0120", 2) == 0 ||
           word_ends_between(line, bytes, list->byte_spans[t - 1], list->byte_spans[t]);
}

static bool append_line(corpus_reader *r, const char *line, size_t bytes)
{
    const token_list *list = &r->line;
    for (size_t t = 0; t < list->count; t++) {
        if (list->roles[t] == TOKEN_FRAME) continue;
        if (!r->is_open && !begin_sequence(r)) return false;
        if (!corpus_append(r->corpus, list->ids[t], piece_begins_word(list, t, line, bytes))) return false;
        const size_t length = r->corpus->tokens - r->corpus->starts[r->corpus->sequences];
        if (length + 1 < r->cut.most_tokens) continue;
        if (!end_sequence(r)) return false;
        if (r->cut.by_line) return true;
    }
    return !r->cut.by_line || end_sequence(r);
}

static deberta_status no_memory(const corpus_reader *r, deberta_error *err)
{
    return status_fail(err, DEBERTA_E_MEMORY, "%s, line %zu: no memory for the ids of the texts",
                       r->lines.file.name.text, r->lines.number);
}

static deberta_status read_line(corpus_reader *r, const char *text, size_t bytes, deberta_error *err)
{
    const tokenizer_options options = {.strict = true, .literal_specials = true};
    deberta_error reason = {0};
    if (bytes == 0) return end_sequence(r) ? DEBERTA_OK : no_memory(r, err);
    const deberta_status status = tokenizer_encode(r->tokenizer, text, bytes, NULL, 0, &options, &r->line, &reason);
    if (status != DEBERTA_OK)
        DEBERTA_FAIL(err, status, "%s, line %zu: %s", r->lines.file.name.text, r->lines.number, reason.message);
    return append_line(r, text, bytes) ? DEBERTA_OK : no_memory(r, err);
}

static deberta_status read_lines(corpus_reader *r, deberta_error *err)
{
    const char *line;
    size_t bytes;
    for (;;) {
        DEBERTA_TRY(text_lines_next(&r->lines, &line, &bytes, err));
        if (!line) break;
        DEBERTA_TRY(read_line(r, line, bytes, err));
    }
    return end_sequence(r) ? DEBERTA_OK : no_memory(r, err);
}

deberta_status corpus_add_file(corpus *c, const char *path, const deberta_tokenizer *tokenizer, corpus_cut cut,
                               note_listener listener, deberta_error *err)
{
    corpus_reader r = {.corpus = c, .tokenizer = tokenizer, .cut = cut};
    const size_t before = c->sequences;
    c->begin_id = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_CLS);
    c->end_id = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_SEP);
    DEBERTA_TRY(text_lines_open(&r.lines, path, err));
    deberta_status status = read_lines(&r, err);
    if (status == DEBERTA_OK && c->sequences == before)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s holds no text", r.lines.file.name.text);
    token_list_free(&r.line);
    return text_lines_end(&r.lines, status, listener, err);
}

void corpus_digest(const corpus *c, char digest[65])
{
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    for (size_t i = 0; i <= c->sequences; i++) {
        const uint64_t start = c->starts[i];
        sha256_add(&hash, &start, sizeof start);
    }
    sha256_add(&hash, c->ids, c->tokens * sizeof *c->ids);
    sha256_add(&hash, c->begins, c->tokens * sizeof *c->begins);
    sha256_finish(&hash, digest);
}

void corpus_free(corpus *c)
{
    free(c->ids);
    free(c->begins);
    free(c->starts);
    *c = (corpus){0};
}
