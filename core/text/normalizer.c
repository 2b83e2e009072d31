/* Implements SentencePiece's normaliser: charsmap lookups, white space, and the map back to the source.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/mapped_file.h"

/* The space mark in pieces: U+2581, or the space itself in models that do not escape it. */
static const char escaped_space[] = "\xE2\x96\x81";

struct normalizer {
    const piece_model *model;
    uint32_t *units; /* the trie; NULL without a charsmap */
    size_t unit_count;
    char *pool; /* pool of replacements, each terminated */
    size_t pool_bytes;
    const char *space;
    size_t space_bytes;
    trie user_defined;
};

/* ---------------------------------------------------------------------------------------------------- charsmap
 *
 * A unit of the double array (darts-clone): the label it is reached by in bits 0-7 (bit 31 set: a value, reached by
 * nothing), bit 8 if a key ends here, and the offset to its children, which bit 9 scales. The children of the node at
 * unit u are at (position ^ offset(u)) ^ byte. */

static inline uint32_t unit_label(uint32_t unit) { return unit & 0x800000FFu; }
static inline bool unit_ends_key(uint32_t unit) { return unit >> 8 & 1; }
static inline uint32_t unit_offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }
static inline uint32_t unit_value(uint32_t unit) { return unit & 0x7FFFFFFFu; }

/* Returns whether a lookup at `base` can step on with any byte: all 256 children lie in one aligned block. */
static bool base_is_inside(const normalizer *n, uint32_t base) { return (base | 0xFFu) < n->unit_count; }

static deberta_status check_replacement(const normalizer *n, uint32_t value, const char *where, deberta_error *err)
{
    /* Checks the place of a replacement. The pool is valid UTF-8 and ends in NUL, so it is enough that the place is not
     * inside a character. */
    if (value >= n->pool_bytes || utf8_is_continuation(n->pool[value]))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: precompiled_charsmap: a replacement begins at byte %u of %zu, which is no place for one",
                     where, value, n->pool_bytes);
    return DEBERTA_OK;
}

/* Few of the 256 units of a block are children, so this skips most groups at once, in vector code. */
enum { GROUP = 16 };
static bool has_child(const uint32_t *units, uint32_t group, uint32_t base)
{
    uint32_t found = 0;
    for (uint32_t child = group; child < group + GROUP; child++) found |= unit_label(units[child]) == (child ^ base);
    return found != 0;
}

/* Visits every unit that a lookup can reach, whatever the text, and proves that the next step stays inside. A unit is
 * visited once, so damaged tries with cycles end too. */
static deberta_status check_trie(const normalizer *n, const char *where, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    uint8_t *visited = calloc(n->unit_count, 1);
    uint32_t *open = malloc(n->unit_count * sizeof *open);
    if (!visited || !open) {
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory to check %zu units", where, n->unit_count);
        goto fail;
    }
    size_t count = 1;
    open[0] = 0;
    visited[0] = 1;
    while (count > 0) {
        uint32_t at = open[--count], unit = n->units[at], base = at ^ unit_offset(unit);
        if (!base_is_inside(n, base)) {
            status = status_fail(err, DEBERTA_E_FORMAT,
                                 "%s: precompiled_charsmap: unit %u points to unit %u, but there are only %zu", where,
                                 at, base | 0xFFu, n->unit_count);
            goto fail;
        }
        if (unit_ends_key(unit)) /* The root is checked too, because a damaged trie may lead back to it. */
            DEBERTA_TRY_OR_FAIL(status, check_replacement(n, unit_value(n->units[base]), where, err));
        const uint32_t block = base & ~0xFFu; /* A trie has fewer than 2^30 units, so nothing overflows. */
        for (uint32_t group = block; group < block + 256; group += GROUP) {
            if (!has_child(n->units, group, base)) continue;
            for (uint32_t child = group; child < group + GROUP; child++) {
                if (unit_label(n->units[child]) != (child ^ base) || visited[child]) continue;
                visited[child] = 1;
                open[count++] = child;
            }
        }
    }
fail:
    free(visited);
    free(open);
    return status;
}

static deberta_status load_charsmap(normalizer *n, const char *where, deberta_error *err)
{
    const uint8_t *blob = n->model->charsmap;
    size_t blob_bytes = n->model->charsmap_bytes;
    if (blob_bytes == 0) return DEBERTA_OK;

    uint32_t trie_bytes = blob_bytes >= 4 ? load_u32(blob) : 0;
    if (blob_bytes < 4 || trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > blob_bytes - 4)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: precompiled_charsmap: a trie of %u bytes in %zu bytes; expected a multiple of 4 that fits",
                     where, trie_bytes, blob_bytes);

    n->unit_count = trie_bytes / 4;
    n->pool_bytes = blob_bytes - 4 - trie_bytes;
    n->units = malloc(trie_bytes);
    n->pool = malloc(n->pool_bytes + 1);
    if (!n->units || !n->pool) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its charsmap", where);
    for (size_t i = 0; i < n->unit_count; i++) n->units[i] = load_u32(blob + 4 + 4 * i);
    memcpy(n->pool, blob + 4 + trie_bytes, n->pool_bytes);

    if (n->pool_bytes == 0 || n->pool[n->pool_bytes - 1] != 0 || !utf8_is_valid(n->pool, n->pool_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: precompiled_charsmap: the %zu bytes of replacements are not UTF-8 texts that end in NUL",
                     where, n->pool_bytes);
    return check_trie(n, where, err);
}

/* Finds the longest key with which `text` begins: returns its length (0: none) and its replacement. A key that ends
 * inside a character, as in a damaged trie, does not count. */
static size_t find_replacement(const normalizer *n, const char *text, size_t bytes, const char **replacement)
{
    size_t length = 0;
    if (!n->units) return 0;
    uint32_t at = unit_offset(n->units[0]);
    for (size_t i = 0; i < bytes; i++) {
        uint32_t byte = (unsigned char)text[i];
        uint32_t unit = n->units[at ^ byte];
        if (unit_label(unit) != byte) break;
        at ^= byte ^ unit_offset(unit);
        if (!unit_ends_key(unit) || (i + 1 < bytes && utf8_is_continuation(text[i + 1]))) continue;
        length = i + 1;
        *replacement = n->pool + unit_value(n->units[at]);
    }
    return length;
}

/* ------------------------------------------------------------------------------------------------- normalising */

deberta_status normalizer_create(normalizer **normalizer_out, const piece_model *model, const char *where,
                                 deberta_error *err)
{
    *normalizer_out = NULL;
    normalizer *n = calloc(1, sizeof *n);
    if (!n) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a normaliser", where);
    n->model = model;
    n->space = model->escape_whitespaces ? escaped_space : " ";
    n->space_bytes = strlen(n->space);

    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, load_charsmap(n, where, err));
    DEBERTA_TRY_OR_FAIL(status, piece_model_trie(model, 1u << PIECE_USER_DEFINED, &n->user_defined, where, err));
    *normalizer_out = n;
    return DEBERTA_OK;
fail:
    normalizer_free(&n);
    return status;
}

void normalizer_free(normalizer **n)
{
    if (!*n) return;
    free((*n)->units);
    free((*n)->pool);
    trie_free(&(*n)->user_defined);
    free(*n);
    *n = NULL;
}

/* One step of normalising: the replacement for the front of a text. */
typedef struct step {
    const char *text;
    size_t bytes;
    size_t consumed;
} step;

static step next_step(const normalizer *n, const char *text, size_t bytes)
{
    size_t length = trie_longest(&n->user_defined, text, bytes);
    if (length > 0) return (step){text, length, length};

    const char *replacement;
    length = find_replacement(n, text, bytes, &replacement);
    if (length > 0) return (step){replacement, strlen(replacement), length};

    uint32_t character;
    length = utf8_decode(text, bytes, &character);
    assert(character != UTF8_INVALID);
    return (step){text, length, length};
}

static deberta_status put_step(const normalizer *n, traced_text *out, step s, size_t origin, deberta_error *err)
{
    DEBERTA_TRY(traced_text_reserve(out, out->bytes + s.bytes * n->space_bytes, err));
    for (size_t i = 0; i < s.bytes; i++) {
        bool space = s.text[i] == ' ';
        if (space && n->model->remove_spaces) continue;
        traced_text_put(out, space ? n->space : &s.text[i], space ? n->space_bytes : 1, origin);
    }
    return DEBERTA_OK;
}

static bool ends_in_space(const normalizer *n, const traced_text *out)
{
    return out->bytes >= n->space_bytes &&
           memcmp(out->text + out->bytes - n->space_bytes, n->space, n->space_bytes) == 0;
}

/* Converts w->before to form KC. Some characters become spaces, which are escaped as others are. */
static deberta_status bring_to_form_kc(const normalizer *n, normalizer_workspace *w, traced_text *out,
                                       deberta_error *err)
{
    const traced_text *from = &w->before;
    nfc_run *run = &w->run;
    run->count = out->bytes = 0;
    run->compatible = true;
    for (size_t at = 0; at < from->bytes;) {
        uint32_t character;
        const size_t begin = at;
        at += utf8_decode(from->text + at, from->bytes - at, &character);
        DEBERTA_TRY(nfc_put(run, out, character, from->origin[begin], err));
    }
    DEBERTA_TRY(nfc_end(run, out, err));
    traced_text_end(out, from->origin[from->bytes]);
    if (!memchr(out->text, ' ', out->bytes)) return DEBERTA_OK;

    traced_text spaced = *out;
    *out = w->before;
    w->before = spaced;
    out->bytes = 0;
    DEBERTA_TRY(traced_text_reserve(out, spaced.bytes * n->space_bytes, err));
    for (size_t i = 0; i < spaced.bytes; i++) {
        bool space = spaced.text[i] == ' ';
        traced_text_put(out, space ? n->space : &spaced.text[i], space ? n->space_bytes : 1, spaced.origin[i]);
    }
    traced_text_end(out, spaced.origin[spaced.bytes]);
    return DEBERTA_OK;
}

void normalizer_workspace_free(normalizer_workspace *workspace)
{
    nfc_free(&workspace->run);
    traced_text_free(&workspace->before);
    *workspace = (normalizer_workspace){0};
}

static deberta_status run_charsmap(const normalizer *n, traced_text *out, const char *text, size_t bytes,
                                   deberta_error *err)
{
    const bool trim = n->model->remove_extra_whitespaces, suffix = n->model->treat_whitespace_as_suffix;
    const bool dummy = n->model->add_dummy_prefix;
    size_t at = 0;
    out->bytes = 0;
    DEBERTA_TRY(traced_text_reserve(out, 2 * sizeof escaped_space, err));

    while (trim && at < bytes) {
        step s = next_step(n, text + at, bytes - at);
        if (s.bytes != 1 || *s.text != ' ') break;
        at += s.consumed;
    }
    bool empty = at == bytes;
    if (!empty && dummy && !suffix) traced_text_put(out, n->space, n->space_bytes, at);

    bool after_space = trim;
    while (at < bytes) {
        step s = next_step(n, text + at, bytes - at);
        for (; after_space && s.bytes > 0 && *s.text == ' '; s.text++) s.bytes--;
        if (s.bytes > 0) {
            DEBERTA_TRY(put_step(n, out, s, at, err));
            after_space = trim && s.text[s.bytes - 1] == ' ';
        }
        at += s.consumed;
    }
    while (trim && ends_in_space(n, out)) {
        out->bytes -= n->space_bytes;
        at = out->origin[out->bytes];
    }
    DEBERTA_TRY(traced_text_reserve(out, out->bytes + n->space_bytes, err));
    if (!empty && dummy && suffix) traced_text_put(out, n->space, n->space_bytes, at);
    traced_text_end(out, at);
    return DEBERTA_OK;
}

deberta_status normalizer_run(const normalizer *n, normalizer_workspace *w, traced_text *out, const char *text,
                              size_t bytes, deberta_error *err)
{
    if (!n->model->form_kc) return run_charsmap(n, out, text, bytes, err);
    DEBERTA_TRY(run_charsmap(n, &w->before, text, bytes, err));
    return bring_to_form_kc(n, w, out, err);
}
