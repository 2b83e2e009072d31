/* Prints texts of users without control characters, and marks places in them. SPDX-License-Identifier: MIT */
#include "output/shown_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

enum { MARKED_CONTEXT_BYTES = 60, PLACE_COLUMN = 20 };

/* ----------------------------------------------------------------------------------------------------------- places */

json_t *json_span(deberta_span span) { return json_pack("[I, I]", (json_int_t)span.begin, (json_int_t)span.end); }

/* --------------------------------------------------------------------------------------------------------- printing */

void print_clean(FILE *out, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        const size_t length = utf8_decode(text + at, bytes - at, &character);
        if (character == UTF8_INVALID)
            fputs(UTF8_REPLACEMENT, out);
        else if (utf8_is_control(character))
            fputs("\u00b7", out);
        else
            fwrite(text + at, 1, length, out);
        at += length;
    }
}

size_t clean_width(const char *text, size_t bytes)
{
    size_t width = 0;
    for (size_t at = 0; at < bytes; width++) {
        uint32_t character;
        at += utf8_decode(text + at, bytes - at, &character);
    }
    return width;
}

void print_probability(FILE *out, double probability, const char *name)
{
    fprintf(out, "  %.3f  ", probability);
    print_clean(out, name, strlen(name));
}

void print_marked(FILE *out, const char *text, size_t bytes, deberta_span place)
{
    size_t begin = place.begin > MARKED_CONTEXT_BYTES ? place.begin - MARKED_CONTEXT_BYTES : 0;
    size_t end = bytes - place.end > MARKED_CONTEXT_BYTES ? place.end + MARKED_CONTEXT_BYTES : bytes;
    while (begin > 0 && begin < place.begin && utf8_is_continuation(text[begin])) begin++;
    while (end < bytes && end > place.end && utf8_is_continuation(text[end])) end--;
    fputs(begin ? "…" : "", out);
    print_clean(out, text + begin, place.begin - begin);
    fputs("»", out);
    print_clean(out, text + place.begin, place.end - place.begin);
    fputs("«", out);
    print_clean(out, text + place.end, end - place.end);
    fputs(end < bytes ? "…" : "", out);
}

static int by_begin(const void *a, const void *b)
{
    const deberta_span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

void print_place(FILE *out, const char *text, const deberta_place *place)
{
    const deberta_span span = place->bytes;
    const size_t width = clean_width(text + span.begin, span.end - span.begin);
    print_clean(out, text + span.begin, span.end - span.begin);
    fprintf(out, "%*s  %zu-%zu\n", width < PLACE_COLUMN ? (int)(PLACE_COLUMN - width) : 0, "", place->characters.begin,
            place->characters.end);
}

void print_all_marked(FILE *out, const char *text, size_t bytes, deberta_span *spans, size_t count)
{
    size_t at = 0;
    if (count) qsort(spans, count, sizeof *spans, by_begin);
    for (size_t k = 0; k < count; k++) {
        if (spans[k].begin < at || spans[k].begin == spans[k].end) continue;
        print_clean(out, text + at, spans[k].begin - at);
        fputs("»", out);
        print_clean(out, text + spans[k].begin, spans[k].end - spans[k].begin);
        fputs("«", out);
        at = spans[k].end;
    }
    print_clean(out, text + at, bytes - at);
}
