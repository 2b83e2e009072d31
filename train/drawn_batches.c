/* SPDX-License-Identifier: MIT */
#include "train/drawn_batches.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "core/base/integers.h"

/* Where a step begins: so many steps, epochs, and sequences of this epoch are behind. */
typedef struct draw_place {
    size_t step, epoch, at;
} draw_place;

struct drawn_batches {
    const corpus *corpus;
    drawn_options options;
    draw_place place;
    size_t *order;                        /* [sequences]: of the epoch of the place */
    size_t *members, *lengths, *shard_of; /* [members_count]: sequences of the step */
    size_t count, members_capacity, lengths_capacity, shards_capacity;
};

static deberta_status no_memory(deberta_error *err)
{
    return status_fail(err, DEBERTA_E_MEMORY, "no memory for a batch");
}

static void order_epoch(drawn_batches *d)
{
    const counter_key key = {d->options.seed, (uint32_t)d->place.epoch};
    for (size_t i = 0; d->options.in_order && i < d->corpus->sequences; i++) d->order[i] = i;
    if (!d->options.in_order) counter_shuffle(d->order, d->corpus->sequences, key);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

deberta_status drawn_batches_open(drawn_batches **result, const corpus *corpus, const drawn_options *options,
                                  deberta_error *err)
{
    *result = NULL;
    if (options->batch_tokens && corpus->longest > options->batch_tokens)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a sequence has %zu tokens, but a step at most %zu", corpus->longest,
                     options->batch_tokens);
    drawn_batches *d = calloc(1, sizeof *d);
    if (!d) return no_memory(err);
    d->corpus = corpus;
    d->options = *options;
    d->order = malloc(corpus->sequences * sizeof *d->order);
    if (!d->order) {
        drawn_batches_close(&d);
        return no_memory(err);
    }
    order_epoch(d);
    *result = d;
    return DEBERTA_OK;
}

void drawn_batches_close(drawn_batches **place)
{
    drawn_batches *d = *place;
    if (!d) return;
    free(d->order);
    free(d->members);
    free(d->lengths);
    free(d->shard_of);
    free(d);
    *place = NULL;
}

size_t drawn_batches_most_tokens(const drawn_batches *d)
{
    const size_t by_count = d->options.batch_sequences * d->corpus->longest;
    if (!d->options.batch_sequences) return d->options.batch_tokens;
    return d->options.batch_tokens ? minimum(by_count, d->options.batch_tokens) : by_count;
}

/* --------------------------------------------------------------------------------------------------------- choosing */

static size_t length_of(const corpus *c, size_t sequence) { return c->starts[sequence + 1] - c->starts[sequence]; }

static bool add_member(drawn_batches *d, size_t sequence)
{
    size_t *members = grown(d->members, &d->members_capacity, d->count + 1, sizeof *members);
    if (members) d->members = members;
    size_t *lengths = grown(d->lengths, &d->lengths_capacity, d->count + 1, sizeof *lengths);
    if (lengths) d->lengths = lengths;
    size_t *shard_of = grown(d->shard_of, &d->shards_capacity, d->count + 1, sizeof *shard_of);
    if (shard_of) d->shard_of = shard_of;
    if (!members || !lengths || !shard_of) return false;
    members[d->count] = sequence;
    lengths[d->count++] = length_of(d->corpus, sequence);
    return true;
}

static bool is_full(const drawn_batches *d, size_t tokens)
{
    const size_t next = length_of(d->corpus, d->order[d->place.at]);
    if (d->options.in_order && d->place.at == 0 && d->count > 0) return true;
    return (d->options.batch_sequences && d->count == d->options.batch_sequences) ||
           (d->options.batch_tokens && tokens + next > d->options.batch_tokens);
}

/* Sequences of the step at the place, which then moves on. */
static bool choose_members(drawn_batches *d)
{
    size_t tokens = 0;
    d->count = 0;
    while (!is_full(d, tokens)) {
        tokens += length_of(d->corpus, d->order[d->place.at]);
        if (!add_member(d, d->order[d->place.at])) return false;
        if (++d->place.at < d->corpus->sequences) continue;
        d->place.at = 0;
        d->place.epoch++;
        order_epoch(d);
    }
    d->place.step++;
    return true;
}

/* A step is usually the one behind the last; another one is found from the beginning. */
static bool go_to(drawn_batches *d, size_t step)
{
    bool fine = true;
    if (step + 1 == d->place.step) return true; /* once more */
    if (step < d->place.step) {
        d->place = (draw_place){0};
        order_epoch(d);
    }
    while (fine && d->place.step <= step) fine = choose_members(d);
    return fine;
}

/* ---------------------------------------------------------------------------------------------------------- filling */

static bool allocate_batch(step_batch *batch, size_t shards)
{
    batch->starts = calloc(batch->sequences + 1, sizeof *batch->starts);
    batch->shard_bounds = calloc(shards + 1, sizeof *batch->shard_bounds);
    batch->origin = calloc(batch->sequences, sizeof *batch->origin);
    batch->ids = calloc(batch->tokens, sizeof *batch->ids);
    batch->mask = malloc(batch->tokens * sizeof *batch->mask);
    batch->labels = calloc(batch->tokens, sizeof *batch->labels);
    return batch->starts && batch->shard_bounds && batch->origin && batch->ids && batch->mask && batch->labels;
}

static deberta_status fill_sequence(const drawn_batches *d, size_t step, size_t member, size_t place, step_batch *batch,
                                    deberta_error *err)
{
    const corpus *c = d->corpus;
    const size_t from = c->starts[d->members[member]], first = batch->starts[place], n = d->lengths[member];
    counter_draws draws = {.key = {d->options.seed, (uint32_t)step}, .place = (uint32_t)member, .site = SITE_MASKING};
    batch->origin[place] = member;
    batch->starts[place + 1] = first + n;
    memcpy(batch->ids + first, c->ids + from, n * sizeof *batch->ids);
    memset(batch->mask + first, 1, n);
    return mask_sequence(&d->options.masking, &draws, n, batch->ids + first, c->begins + from, batch->labels + first,
                         err);
}

static deberta_status fill(const drawn_batches *d, size_t step, size_t shards, step_batch *batch, deberta_error *err)
{
    size_t place = 0;
    step_batch_deal(d->lengths, d->count, shards, d->shard_of);
    for (size_t shard = 0; shard < shards; shard++) {
        for (size_t member = 0; member < d->count; member++)
            if (d->shard_of[member] == shard) DEBERTA_TRY(fill_sequence(d, step, member, place++, batch, err));
        batch->shard_bounds[shard + 1] = place;
    }
    return DEBERTA_OK;
}

static deberta_status read_step(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                                deberta_error *err)
{
    drawn_batches *d = context;
    (void)width;
    *batch = (step_batch){0};
    if (!go_to(d, step)) return no_memory(err);
    *batch = (step_batch){.sequences = d->count, .choices = 1, .questions = d->count};
    batch->epoch = (double)d->place.epoch + (double)d->place.at / (double)d->corpus->sequences;
    for (size_t i = 0; i < d->count; i++) batch->tokens += d->lengths[i];
    const deberta_status status = allocate_batch(batch, shards) ? fill(d, step, shards, batch, err) : no_memory(err);
    if (status != DEBERTA_OK) step_batch_free(batch);
    return status;
}

batch_source drawn_batches_source(drawn_batches *d) { return (batch_source){.context = d, .read = read_step}; }
