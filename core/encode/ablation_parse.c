/* Parses the syntax of `--ablate` and `Model.ablate()` into interventions. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "include/deberta_unstable.h"

/* One "term[=kind]@layer[:head]" of a list. */
typedef struct ablation_item {
    const char *text;
    size_t length;
} ablation_item;

static bool word_is(const char *begin, const char *end, const char *word)
{
    return (size_t)(end - begin) == strlen(word) && memcmp(begin, word, strlen(word)) == 0;
}

static bool read_term(const char *begin, const char *end, deberta_component *term)
{
    for (deberta_component k = DEBERTA_C2C; k <= DEBERTA_P2C; k++)
        if (word_is(begin, end, deberta_component_name(k))) {
            *term = k;
            return true;
        }
    return false;
}

static bool read_index(const char *begin, const char *end, size_t *index)
{
    char *after;
    *index = DEBERTA_EVERY;
    if (word_is(begin, end, "all")) return true;
    if (begin == end || *begin < '0' || *begin > '9') return false;
    errno = 0;
    *index = strtoull(begin, &after, 10);
    return after == end && errno == 0 && *index < 1u << 20;
}

static bool read_item(const ablation_item *item, deberta_ablation *ablation)
{
    const char *end = item->text + item->length, *at = memchr(item->text, '@', item->length);
    if (!at) return false;
    const char *equals = memchr(item->text, '=', (size_t)(at - item->text)), *term_end = equals ? equals : at;
    const char *colon = memchr(at, ':', (size_t)(end - at)), *layer_end = colon ? colon : end;
    *ablation = (deberta_ablation){.layer = DEBERTA_EVERY, .head = DEBERTA_EVERY};
    if (equals && word_is(equals + 1, at, "mean"))
        ablation->kind = DEBERTA_ABLATE_MEAN;
    else if (equals && !word_is(equals + 1, at, "zero"))
        return false;
    return read_term(item->text, term_end, &ablation->term) && read_index(at + 1, layer_end, &ablation->layer) &&
           (!colon || read_index(colon + 1, end, &ablation->head));
}

deberta_status deberta_ablations_parse(deberta_ablation *ablations, size_t *count, const char *text, deberta_error *err)
{
    if (!ablations || !count || !text) return status_fail(err, DEBERTA_E_ARGUMENT, "no text");
    *count = 0;
    for (const char *at = text, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        const ablation_item item = {.text = at, .length = comma ? (size_t)(comma - at) : strlen(at)};
        if (!read_item(&item, &ablations[(*count)++]))
            DEBERTA_FAIL(
                err, DEBERTA_E_ARGUMENT,
                "expected term[=zero|=mean]@layer[:head] with term c2c, c2p or p2c, layer and head a number or "
                "all; found '%.*s'",
                item.length > 200 ? 200 : (int)item.length, item.text);
    }
    return DEBERTA_OK;
}
