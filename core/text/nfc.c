/* Normalises a text to NFC: decomposes, orders and composes it, run by run. SPDX-License-Identifier: MIT */
#include "core/text/unicode.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/text.h"

/* First characters with a decomposition in form C and in form KC; all marks have larger codes. */
enum { FIRST_COMPOSED = 0xC0, FIRST_COMPATIBLE = 0xA0 };

static int by_class(const void *a, const void *b)
{
    const nfc_character *p = a, *q = b;
    return p->class != q->class ? (p->class > q->class) - (p->class < q->class)
                                : (p->place > q->place) - (p->place < q->place);
}

/* Sorts neighbouring marks by their class, in a stable way. */
static void order(nfc_run *run)
{
    for (size_t begin = 0, end; begin < run->count; begin = end) {
        bool sorted = true;
        for (end = begin + 1; run->items[begin].class && end < run->count && run->items[end].class; end++)
            sorted = sorted && run->items[end - 1].class <= run->items[end].class;
        if (!sorted) qsort(run->items + begin, end - begin, sizeof *run->items, by_class);
    }
}

/* Composes: a character joins the last one of class 0 unless one of the same class or a higher one lies between. */
static void compose(nfc_run *run)
{
    nfc_character *starter = NULL;
    size_t kept = 0;
    int between = -1; /* class of the last character that stayed after the starter; -1: none did */
    for (size_t i = 0; i < run->count; i++) {
        const nfc_character c = run->items[i];
        uint32_t composed = starter && between < c.class ? unicode_compose(starter->code, c.code) : 0;
        if (composed) {
            starter->code = composed;
            continue;
        }
        run->items[kept] = c;
        between = c.class ? c.class : -1;
        if (!c.class) starter = &run->items[kept];
        kept++;
    }
    run->count = kept;
}

static deberta_status flush(nfc_run *run, traced_text *out, deberta_error *err)
{
    if (run->count > 1) {
        order(run);
        compose(run);
    }
    for (size_t i = run->count; i > 1; i--)
        if (run->items[i - 2].origin > run->items[i - 1].origin) run->items[i - 2].origin = run->items[i - 1].origin;
    DEBERTA_TRY(traced_text_reserve(out, out->bytes + run->count * UTF8_MAX_BYTES, err));
    for (size_t i = 0; i < run->count; i++) {
        char text[UTF8_MAX_BYTES];
        traced_text_put(out, text, utf8_encode(text, run->items[i].code), run->items[i].origin);
    }
    run->count = 0;
    return DEBERTA_OK;
}

static deberta_status push(nfc_run *run, uint32_t code, uint8_t class, size_t origin, deberta_error *err)
{
    nfc_character *items = grown(run->items, &run->capacity, run->count + 1, sizeof *items);
    if (!items) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to normalise a text");
    run->items = items;
    items[run->count] =
        (nfc_character){.code = code, .origin = (uint32_t)origin, .place = (uint32_t)run->count, .class = class};
    run->count++;
    return DEBERTA_OK;
}

deberta_status nfc_put(nfc_run *run, traced_text *out, uint32_t character, size_t origin, deberta_error *err)
{
    if (character < (run->compatible ? FIRST_COMPATIBLE : FIRST_COMPOSED)) {
        if (run->count > 0) DEBERTA_TRY(flush(run, out, err));
        return push(run, character, 0, origin, err);
    }
    uint32_t parts[UNICODE_MAX_COMPATIBLE_PARTS];
    size_t count =
        run->compatible ? unicode_decompose_compatible(parts, character) : unicode_decompose(parts, character);
    for (size_t i = 0; i < count; i++) {
        if (run->count > 0 && !unicode_may_follow(parts[i])) DEBERTA_TRY(flush(run, out, err));
        DEBERTA_TRY(push(run, parts[i], unicode_combining_class(parts[i]), origin, err));
    }
    return DEBERTA_OK;
}

deberta_status nfc_end(nfc_run *run, traced_text *out, deberta_error *err) { return flush(run, out, err); }

void nfc_free(nfc_run *run)
{
    free(run->items);
    *run = (nfc_run){0};
}
