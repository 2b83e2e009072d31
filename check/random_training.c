/* SPDX-License-Identifier: MIT */
#include "check/random_training.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"

/* Lengths that are worth a turn: beyond a block of queries, beyond a chunk of keys. */
enum { TWO_BLOCKS = 150, TWO_CHUNKS = 530, SHORT = 40, PLACES = 640 };

typedef struct random_shape {
    size_t vocabulary, types;
} random_shape;

/* Small, and of sizes that fit into nothing. */
static random_shape make_model(random_training *made, bool is_long, uint64_t *state)
{
    static const char *const shapes[] = {"v3-base", "v1-base", "v2-xlarge"};
    static const char *const terms[] = {"both", "both", "c2p", "p2c"};
    const size_t version = random_below(state, 3);
    const size_t heads = is_long ? 1 : 1 + random_below(state, 3), size = 5 + random_below(state, is_long ? 8 : 20);
    const size_t layers = 1 + random_below(state, is_long ? 1 : 3), intermediate = 9 + random_below(state, 60);
    const random_shape shape = {.vocabulary = 20 + random_below(state, 60),
                                .types = version == 1 ? random_below(state, 3) : 0};
    const size_t distance = 8 + random_below(state, 60), buckets = version == 1 ? 0 : 4 + 2 * random_below(state, 8);
    const size_t convolution = version == 2 ? 3 * random_below(state, 2) : 0;
    snprintf(made->path, sizeof made->path,
             "synthetic:%s,layers=%zu,heads=%zu,hidden=%zu,intermediate=%zu,vocab=%zu,positions=%d,distance=%zu,"
             "buckets=%zu,terms=%s,types=%zu,convolution=%zu,biased=%zu,epsilon=%zu,lm=1,rtd=1,seed=%zu",
             shapes[version], layers, heads, heads * size, intermediate, shape.vocabulary, PLACES, distance + buckets,
             buckets, terms[random_below(state, 4)], shape.types, convolution,
             made->texts.task == DEBERTA_TASK_MLM_EMD ? 0 : random_below(state, 2), 3 + 4 * random_below(state, 2),
             random_below(state, 1000));
    return shape;
}

static bool make_lengths(random_training *made, size_t k, uint64_t *state)
{
    const size_t longest = k % 10 == 7 ? TWO_CHUNKS : k % 5 == 4 ? TWO_BLOCKS : 0;
    const size_t count = longest == TWO_CHUNKS ? 1 : 1 + random_below(state, RANDOM_TEXTS);
    for (size_t i = 0; i < count; i++) {
        const size_t n = i == 0 && longest ? longest : 1 + random_below(state, SHORT);
        made->starts[i + 1] = made->starts[i] + n;
        made->origin[i] = i;
    }
    for (size_t shard = 0; shard <= DEFAULT_SHARDS; shard++) made->shard_bounds[shard] = minimum(shard, count);
    made->texts.sequences = count;
    return longest == TWO_CHUNKS;
}

/* Some tokens are holes, some are padding that is none, a third is labelled; the first of a text is kept. */
static void fill_texts(random_training *made, const random_shape *shape, uint64_t *state)
{
    for (size_t i = 0; i < made->texts.sequences; i++)
        for (size_t t = made->starts[i]; t < made->starts[i + 1]; t++) {
            const bool first = t == made->starts[i];
            made->ids[t] = random_below(state, 9) ? (int32_t)random_below(state, shape->vocabulary) : RANDOM_PADDING;
            made->types[t] = shape->types ? (int32_t)random_below(state, shape->types) : 0;
            made->mask[t] = first || random_below(state, 12) != 0;
            made->labels[t] = made->mask[t] && (t == 0 || random_below(state, 3) == 0)
                                  ? (int32_t)random_below(state, shape->vocabulary)
                                  : EXACT_NOT_LABELLED;
        }
}

static void join(random_training *made, const random_shape *shape)
{
    const size_t count = made->texts.sequences;
    const deberta_task task = made->texts.task;
    made->texts = (exact_texts){.task = task,
                                .sequences = count,
                                .starts = made->starts,
                                .ids = made->ids,
                                .types = shape->types ? made->types : NULL,
                                .labels = made->labels,
                                .mask = made->mask};
    made->batch = (step_batch){.sequences = count,
                               .tokens = made->starts[count],
                               .starts = made->starts,
                               .shard_bounds = made->shard_bounds,
                               .origin = made->origin,
                               .ids = made->ids,
                               .token_types = shape->types ? made->types : NULL,
                               .mask = made->mask,
                               .labels = made->labels,
                               .choices = 1,
                               .questions = count};
    made->options = (step_options){.task = task == DEBERTA_TASK_RTD ? STEP_RTD : STEP_MLM,
                                   .decodes = task == DEBERTA_TASK_MLM_EMD,
                                   .rtd_weight = 1};
}

deberta_status random_training_make(random_training *made, size_t k, uint64_t seed, deberta_error *err)
{
    static const deberta_task tasks[] = {DEBERTA_TASK_MLM_EMD, DEBERTA_TASK_MLM, DEBERTA_TASK_RTD};
    uint64_t state = seed * 1000 + k;
    *made = (random_training){.texts.task = tasks[k % 3]};
    const bool is_long = make_lengths(made, k, &state);
    const random_shape shape = make_model(made, is_long, &state);
    const size_t tokens = made->starts[made->texts.sequences];
    made->ids = calloc(tokens, sizeof *made->ids);
    made->types = calloc(tokens, sizeof *made->types);
    made->labels = calloc(tokens, sizeof *made->labels);
    made->mask = calloc(tokens, sizeof *made->mask);
    if (!made->ids || !made->types || !made->labels || !made->mask) {
        random_training_free(made);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a batch of %zu tokens", tokens);
    }
    fill_texts(made, &shape, &state);
    join(made, &shape);
    return DEBERTA_OK;
}

void random_training_free(random_training *made)
{
    free(made->ids);
    free(made->types);
    free(made->labels);
    free(made->mask);
    made->ids = made->types = made->labels = NULL;
    made->mask = NULL;
}
