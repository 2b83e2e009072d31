/* SPDX-License-Identifier: MIT */
#include "command/ablate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One "term[=kind]@layer[:head]" of a list. */
typedef struct ablate_item {
    const char *text;
    size_t length;
} ablate_item;

static bool word_is(const char *begin, const char *end, const char *word)
{
    return (size_t)(end - begin) == strlen(word) && memcmp(begin, word, strlen(word)) == 0;
}

static bool read_term(const char *begin, const char *end, deberta_component *term)
{
    static const char *const names[] = {"c2c", "c2p", "p2c"};
    for (int k = 0; k < 3; k++)
        if (word_is(begin, end, names[k])) {
            *term = (deberta_component)k;
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

static bool read_item(const ablate_item *item, deberta_ablation *ablation)
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

/* member: what the option fills, for messages. */
static int append_list(const common_options *options, const void *member, const char *list, ablation_list *ablated)
{
    size_t count = ablated->count + 1;
    for (const char *c = list; *c; c++) count += *c == ',';
    deberta_ablation *items = options_take(options, count, sizeof *items);
    if (ablated->count) memcpy(items, ablated->items, ablated->count * sizeof *items);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const ablate_item item = {.text = at, .length = strcspn(at, ",")};
        if (!read_item(&item, &items[ablated->count++]))
            return option_wrong(options, member,
                                "expected term[=zero|=mean]@layer[:head] with term c2c, c2p or p2c, layer and head "
                                "a number or all; found '%.*s'",
                                (int)item.length, item.text);
    }
    ablated->items = items;
    ablated->text = ablated->text ? options_text(options, "%s,%s", ablated->text, list) : list;
    return EXIT_OK;
}

int ablation_list_parse(common_options *options, const char *list, void *target)
{
    return append_list(options, target, list, target);
}

int ablate_parse(common_options *options, const char *list, void *target)
{
    ablation_list ablated = {options->ablations, options->ablation_count, options->ablate_text};
    const int status = append_list(options, target, list, &ablated); /* target is the first of three members */
    options->ablations = ablated.items;
    options->ablation_count = ablated.count;
    options->ablate_text = ablated.text;
    return status;
}
