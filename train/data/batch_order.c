/* Shuffles items by epoch and counts them into steps; finds the items of any step by its number.
 *
 * SPDX-License-Identifier: MIT */
#include "train/data/batch_order.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "train/state/counters.h"

static size_t length_of(const batch_order *o, size_t item)
{
    const size_t *first = o->items.starts + item * o->items.group;
    return first[o->items.group] - first[0];
}

static void order_epoch(batch_order *o)
{
    const counter_key key = {o->options.seed, (uint32_t)o->place.epoch};
    for (size_t i = 0; o->options.in_order && i < o->item_count; i++) o->order[i] = i;
    if (!o->options.in_order) counter_shuffle(o->order, o->item_count, key);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

deberta_status batch_order_open(batch_order *o, const batch_items *items, const batch_order_options *options,
                                deberta_error *err)
{
    *o = (batch_order){.items = *items, .options = *options, .item_count = items->sequences / items->group};
    for (size_t i = 0; i < o->item_count; i++) o->longest = maximum(o->longest, length_of(o, i));
    if (options->batch_tokens && o->longest > options->batch_tokens)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a sequence has %zu tokens, but a step at most %zu", o->longest,
                     options->batch_tokens);
    o->order = malloc(o->item_count * sizeof *o->order);
    if (!o->order) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the order of %zu sequences", o->item_count);
    order_epoch(o);
    return DEBERTA_OK;
}

void batch_order_close(batch_order *o)
{
    free(o->order);
    free(o->members);
    *o = (batch_order){0};
}

size_t batch_order_most_tokens(const batch_order *o)
{
    const size_t by_count = o->options.batch_items * o->longest;
    if (!o->options.batch_items) return o->options.batch_tokens;
    return o->options.batch_tokens ? minimum(by_count, o->options.batch_tokens) : by_count;
}

/* --------------------------------------------------------------------------------------------------------- choosing */

static bool is_full(const batch_order *o)
{
    const size_t next = length_of(o, o->order[o->place.at]);
    if (o->options.in_order && o->place.at == 0 && o->count > 0) return true;
    return (o->options.batch_items && o->count == o->options.batch_items) ||
           (o->options.batch_tokens && o->tokens + next > o->options.batch_tokens);
}

static bool add_member(batch_order *o, size_t item)
{
    size_t *members = grown(o->members, &o->members_capacity, o->count + 1, sizeof *members);
    if (!members) return false;
    o->members = members;
    o->members[o->count++] = item;
    o->tokens += length_of(o, item);
    return true;
}

/* Counts the items of the step at the place, and moves the place past them. */
static bool choose_members(batch_order *o)
{
    o->count = o->tokens = 0;
    while (!is_full(o)) {
        if (!add_member(o, o->order[o->place.at])) return false;
        if (++o->place.at < o->item_count) continue;
        o->place.at = 0;
        o->place.epoch++;
        order_epoch(o);
    }
    o->place.step++;
    return true;
}

bool batch_order_go_to(batch_order *o, size_t step)
{
    bool fine = true;
    if (step + 1 == o->place.step) return true; /* once more */
    if (step < o->place.step) {
        o->place = (batch_place){0};
        order_epoch(o);
    }
    while (fine && o->place.step <= step) fine = choose_members(o);
    return fine;
}

double batch_order_epoch(const batch_order *o)
{
    return (double)o->place.epoch + (double)o->place.at / (double)o->item_count;
}
