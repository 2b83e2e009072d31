/* Chooses the sequences of a step, deals them to shards, and copies and masks them in buffers that it allocates.
 *
 * SPDX-License-Identifier: MIT */
#include "train/data/drawn_batches.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

struct drawn_batches {
    const corpus *corpus;
    drawn_options options;
    batch_order order;
    size_t *lengths, *shard_of; /* [order.count]: tokens and shard of each sequence of the step */
    size_t lengths_capacity, shards_capacity;
};

static deberta_status no_memory(deberta_error *err)
{
    return status_fail(err, DEBERTA_E_MEMORY, "no memory for a batch");
}

/* ---------------------------------------------------------------------------------------------------------- opening */

deberta_status drawn_batches_open(drawn_batches **result, const corpus *texts, const drawn_options *options,
                                  deberta_error *err)
{
    const batch_items items = {.starts = texts->starts, .sequences = texts->sequences, .group = 1};
    *result = NULL;
    drawn_batches *d = calloc(1, sizeof *d);
    if (!d) return no_memory(err);
    d->corpus = texts;
    d->options = *options;
    const deberta_status status = batch_order_open(&d->order, &items, &options->order, err);
    if (status == DEBERTA_OK)
        *result = d;
    else
        drawn_batches_close(&d);
    return status;
}

void drawn_batches_close(drawn_batches **place)
{
    drawn_batches *d = *place;
    if (!d) return;
    batch_order_close(&d->order);
    free(d->lengths);
    free(d->shard_of);
    free(d);
    *place = NULL;
}

size_t drawn_batches_most_tokens(const drawn_batches *d) { return batch_order_most_tokens(&d->order); }

/* Chooses the members of a step, and sets their lengths; allocates the list of their shards. */
static bool choose_members(drawn_batches *d, size_t step)
{
    const corpus *c = d->corpus;
    if (!batch_order_go_to(&d->order, step)) return false;
    size_t *lengths = grown(d->lengths, &d->lengths_capacity, d->order.count, sizeof *lengths);
    if (lengths) d->lengths = lengths;
    size_t *shard_of = grown(d->shard_of, &d->shards_capacity, d->order.count, sizeof *shard_of);
    if (shard_of) d->shard_of = shard_of;
    if (!lengths || !shard_of) return false;
    for (size_t i = 0; i < d->order.count; i++)
        lengths[i] = c->starts[d->order.members[i] + 1] - c->starts[d->order.members[i]];
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- filling */

static bool allocate_batch(step_batch *batch, size_t shards)
{
    batch->starts = calloc(batch->sequences + 1, sizeof *batch->starts);
    batch->shard_bounds = calloc(shards + 1, sizeof *batch->shard_bounds);
    batch->origin = calloc(batch->sequences, sizeof *batch->origin);
    batch->members = calloc(batch->sequences, sizeof *batch->members);
    batch->ids = calloc(batch->tokens, sizeof *batch->ids);
    batch->mask = malloc(batch->tokens * sizeof *batch->mask);
    batch->labels = calloc(batch->tokens, sizeof *batch->labels);
    return batch->starts && batch->shard_bounds && batch->origin && batch->members && batch->ids && batch->mask &&
           batch->labels;
}

static deberta_status fill_sequence(const drawn_batches *d, size_t step, size_t member, size_t place, step_batch *batch,
                                    deberta_error *err)
{
    const corpus *c = d->corpus;
    const size_t from = c->starts[d->order.members[member]], first = batch->starts[place], n = d->lengths[member];
    counter_draws draws = {
        .key = {d->options.order.seed, (uint32_t)step}, .place = (uint32_t)member, .site = SITE_MASKING};
    batch->origin[place] = member;
    batch->members[place] = d->order.members[member];
    batch->starts[place + 1] = first + n;
    memcpy(batch->ids + first, c->ids + from, n * sizeof *batch->ids);
    memset(batch->mask + first, 1, n);
    return mask_sequence(&d->options.masking, &draws, n, batch->ids + first, c->begins + from, batch->labels + first,
                         err);
}

static deberta_status drawn_batches_fill(const drawn_batches *d, size_t step, size_t shards, step_batch *batch,
                                         deberta_error *err)
{
    size_t place = 0;
    DEBERTA_TRY(step_batch_deal(d->lengths, d->order.count, shards, d->shard_of, err));
    for (size_t shard = 0; shard < shards; shard++) {
        for (size_t member = 0; member < d->order.count; member++)
            if (d->shard_of[member] == shard) DEBERTA_TRY(fill_sequence(d, step, member, place++, batch, err));
        batch->shard_bounds[shard + 1] = place;
    }
    return DEBERTA_OK;
}

static deberta_status drawn_batches_read_step(void *context, size_t step, size_t shards, size_t width,
                                              step_batch *batch, deberta_error *err)
{
    drawn_batches *d = context;
    (void)width;
    *batch = (step_batch){0};
    if (!choose_members(d, step)) return no_memory(err);
    *batch = (step_batch){.sequences = d->order.count, .tokens = d->order.tokens, .choices = 1};
    batch->questions = batch->sequences;
    batch->epoch = batch_order_epoch(&d->order);
    const deberta_status status =
        allocate_batch(batch, shards) ? drawn_batches_fill(d, step, shards, batch, err) : no_memory(err);
    if (status != DEBERTA_OK) step_batch_free(batch);
    return status;
}

batch_source drawn_batches_source(drawn_batches *d)
{
    return (batch_source){.context = d, .read = drawn_batches_read_step};
}
