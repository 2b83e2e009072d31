/* Keeps each field of the examples in one growing array, and fills batches of them by number.
 *
 * SPDX-License-Identifier: MIT */
#include "train/data/examples.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/memory.h"
#include "core/base/sha256.h"

/* ---------------------------------------------------------------------------------------------------------- the set */

static bool grow_all(example_set *s, size_t count)
{
    int32_t *ids = grown(s->ids, &s->ids_capacity, s->tokens + count, sizeof *ids);
    if (ids) s->ids = ids;
    int32_t *types = grown(s->types, &s->types_capacity, s->tokens + count, sizeof *types);
    if (types) s->types = types;
    int32_t *token_labels = grown(s->token_labels, &s->labels_capacity, s->tokens + count, sizeof *token_labels);
    if (token_labels) s->token_labels = token_labels;
    size_t *starts = grown(s->starts, &s->starts_capacity, s->sequences + 2, sizeof *starts);
    if (starts) s->starts = starts;
    example_labels *labels = grown(s->labels, &s->sequences_capacity, s->sequences + 1, sizeof *labels);
    if (labels) s->labels = labels;
    return ids && types && token_labels && starts && labels;
}

void examples_add(example_set *s, const int32_t *ids, const int32_t *types, const int32_t *token_labels, size_t count,
                  example_labels labels)
{
    if (s->failed || !grow_all(s, count)) {
        s->failed = true;
        return;
    }
    s->starts[s->sequences] = s->tokens;
    s->labels[s->sequences++] = labels;
    for (size_t t = 0; t < count; t++, s->tokens++) {
        s->ids[s->tokens] = ids[t];
        s->types[s->tokens] = types ? types[t] : 0;
        s->token_labels[s->tokens] = token_labels ? token_labels[t] : NOT_LABELLED;
    }
    s->starts[s->sequences] = s->tokens;
}

void examples_digest(const example_set *s, char digest[65])
{
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    for (size_t i = 0; i < s->sequences; i++) {
        const uint64_t length = s->starts[i + 1] - s->starts[i];
        const example_labels *labels = &s->labels[i];
        sha256_add(&hash, &length, sizeof length);
        sha256_add(&hash, &labels->label, sizeof labels->label);
        sha256_add(&hash, &labels->target, sizeof labels->target);
        sha256_add(&hash, &labels->start, sizeof labels->start);
        sha256_add(&hash, &labels->end, sizeof labels->end);
    }
    sha256_add(&hash, s->ids, s->tokens * sizeof *s->ids);
    sha256_add(&hash, s->types, s->tokens * sizeof *s->types);
    sha256_add(&hash, s->token_labels, s->tokens * sizeof *s->token_labels);
    sha256_finish(&hash, digest);
}

void examples_free(example_set *s)
{
    free(s->ids);
    free(s->types);
    free(s->token_labels);
    free(s->starts);
    free(s->labels);
    *s = (example_set){0};
}

/* ---------------------------------------------------------------------------------------------------------- batches */

deberta_status example_batches_open(example_batches *b, const example_set *set, const batch_order_options *options,
                                    deberta_error *err)
{
    const batch_items items = {.starts = set->starts, .sequences = set->sequences, .group = set->choices};
    b->set = set;
    return batch_order_open(&b->order, &items, options, err);
}

void example_batches_close(example_batches *b) { batch_order_close(&b->order); }

/* A batch while it is filled: numbers of its sequences in the set, their lengths, and their shards. */
typedef struct filling {
    const example_set *set;
    size_t *numbers, *lengths, *shard_of;
    step_batch *batch;
} filling;

static bool examples_allocate(filling *f, size_t shards)
{
    step_batch *b = f->batch;
    const size_t sequences = b->sequences;
    f->numbers = calloc(sequences, sizeof *f->numbers);
    f->lengths = calloc(sequences, sizeof *f->lengths);
    f->shard_of = calloc(sequences, sizeof *f->shard_of);
    b->starts = calloc(sequences + 1, sizeof *b->starts);
    b->shard_bounds = calloc(shards + 1, sizeof *b->shard_bounds);
    b->origin = calloc(sequences, sizeof *b->origin);
    b->members = calloc(sequences, sizeof *b->members);
    b->ids = calloc(b->tokens, sizeof *b->ids);
    b->token_types = calloc(b->tokens, sizeof *b->token_types);
    b->mask = malloc(b->tokens);
    b->labels = calloc(b->tokens, sizeof *b->labels);
    b->sequence_labels = calloc(sequences, sizeof *b->sequence_labels);
    b->question_labels = calloc(b->questions, sizeof *b->question_labels);
    if (f->set->regression) b->targets = calloc(sequences, sizeof *b->targets);
    if (f->set->answers) b->starts_of_answer = calloc(sequences, sizeof *b->starts_of_answer);
    if (f->set->answers) b->ends_of_answer = calloc(sequences, sizeof *b->ends_of_answer);
    return f->numbers && f->lengths && f->shard_of && b->starts && b->shard_bounds && b->origin && b->members &&
           b->ids && b->token_types && b->mask && b->labels && b->sequence_labels && b->question_labels &&
           (b->targets || !f->set->regression) && ((b->starts_of_answer && b->ends_of_answer) || !f->set->answers);
}

static void fill_sequence(const filling *f, size_t origin, size_t place)
{
    const example_set *s = f->set;
    step_batch *b = f->batch;
    const size_t number = f->numbers[origin], from = s->starts[number], first = b->starts[place],
                 count = f->lengths[origin];
    b->origin[place] = origin;
    b->members[place] = number;
    b->starts[place + 1] = first + count;
    memcpy(b->ids + first, s->ids + from, count * sizeof *b->ids);
    memcpy(b->token_types + first, s->types + from, count * sizeof *b->token_types);
    memcpy(b->labels + first, s->token_labels + from, count * sizeof *b->labels);
    memset(b->mask + first, 1, count);
    b->sequence_labels[place] = s->labels[number].label;
    if (b->targets) b->targets[place] = s->labels[number].target;
    if (b->starts_of_answer) b->starts_of_answer[place] = s->labels[number].start;
    if (b->ends_of_answer) b->ends_of_answer[place] = s->labels[number].end;
}

static deberta_status examples_fill(const filling *f, const batch_order *order, size_t shards, deberta_error *err)
{
    const size_t group = f->set->choices;
    step_batch *b = f->batch;
    size_t place = 0;
    for (size_t i = 0; i < b->sequences; i++) {
        f->numbers[i] = order->members[i / group] * group + i % group;
        f->lengths[i] = f->set->starts[f->numbers[i] + 1] - f->set->starts[f->numbers[i]];
    }
    for (size_t q = 0; q < b->questions; q++) b->question_labels[q] = f->set->labels[f->numbers[q * group]].label;
    DEBERTA_TRY(step_batch_deal(f->lengths, b->sequences, shards, f->shard_of, err));
    for (size_t shard = 0; shard < shards; shard++) {
        for (size_t i = 0; i < b->sequences; i++)
            if (f->shard_of[i] == shard) fill_sequence(f, i, place++);
        b->shard_bounds[shard + 1] = place;
    }
    return DEBERTA_OK;
}

static deberta_status examples_read_step(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                                         deberta_error *err)
{
    example_batches *b = context;
    batch_order *order = &b->order;
    (void)width;
    *batch = (step_batch){0};
    if (!batch_order_go_to(order, step)) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a batch");
    *batch = (step_batch){.sequences = order->count * b->set->choices,
                          .tokens = order->tokens,
                          .choices = b->set->choices,
                          .questions = order->count,
                          .epoch = batch_order_epoch(order)};
    filling f = {.set = b->set, .batch = batch};
    const deberta_status status = examples_allocate(&f, shards)
                                      ? examples_fill(&f, order, shards, err)
                                      : status_fail(err, DEBERTA_E_MEMORY, "no memory for a batch");
    free(f.numbers);
    free(f.lengths);
    free(f.shard_of);
    if (status != DEBERTA_OK) step_batch_free(batch);
    return status;
}

batch_source example_batches_source(example_batches *b)
{
    return (batch_source){.context = b, .read = examples_read_step};
}
