/* Digests the weights and moments of a run by SHA-256: blocks of tensors on all threads, then the list of their
 * digests.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/state_digest.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "train/state/learner.h"

enum { BLOCK_FLOATS = 1 << 18, DIGEST_CHARACTERS = 64, KINDS = 3 /* values and both moments */ };

typedef struct state_block {
    const float *floats;
    size_t count;
    char digest[DIGEST_CHARACTERS + 1];
} state_block;

typedef struct state_tensor {
    const parameter *parameter;
    const optimizer_moment *moment;
} state_tensor;

/* The tensors and blocks of one part. */
typedef struct state_part {
    state_tensor *tensors; /* [set->count], in ascending order of stored names */
    state_block *blocks;
    unsigned features;
} state_part;

static size_t blocks_of(size_t floats) { return (floats + BLOCK_FLOATS - 1) / BLOCK_FLOATS; }

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const state_tensor *)a)->parameter->stored_name, ((const state_tensor *)b)->parameter->stored_name);
}

static void state_digest_task(void *context, size_t task, size_t worker)
{
    (void)worker;
    const state_part *part = context;
    state_block *block = &part->blocks[task];
    sha256 hash;
    sha256_begin(&hash, part->features);
    sha256_add(&hash, block->floats, block->count * sizeof *block->floats);
    sha256_finish(&hash, block->digest);
}

/* Lists the blocks of a tensor's values and moments; returns their number. */
static size_t list_blocks(const state_tensor *of, state_block *blocks)
{
    const size_t count = of->parameter->count;
    const float *const kinds[KINDS] = {of->parameter->values, of->moment->m, of->moment->v};
    size_t listed = 0;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t at = 0; at < count; at += BLOCK_FLOATS)
            blocks[listed++] =
                (state_block){.floats = kinds[kind] + at, .count = minimum(count - at, (size_t)BLOCK_FLOATS)};
    return listed;
}

static void add_text(sha256 *hash, const char *text) { sha256_add(hash, text, strlen(text)); }

static void add_number(sha256 *hash, const char *before, size_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%s%zu", before, number);
    add_text(hash, text);
}

static void add_part(sha256 *hash, const state_part *part, size_t tensors)
{
    const state_block *block = part->blocks;
    for (size_t i = 0; i < tensors; i++) {
        const parameter *p = part->tensors[i].parameter;
        add_text(hash, p->stored_name);
        for (size_t d = 0; d < p->rank; d++) add_number(hash, " ", p->shape[d]);
        add_text(hash, "\n");
        for (size_t left = KINDS * blocks_of(p->count); left > 0; left--, block++) {
            sha256_add(hash, block->digest, DIGEST_CHARACTERS);
            add_text(hash, "\n");
        }
    }
}

static deberta_status digest_part(sha256 *hash, const training *t, deberta_error *err)
{
    const learner *l = t->learner;
    const parameter_set *set = &l->set;
    size_t count = 0, listed = 0;
    for (size_t i = 0; i < set->count; i++) count += KINDS * blocks_of(set->items[i].count);
    state_part part = {.tensors = calloc(set->count + 1, sizeof *part.tensors),
                       .blocks = calloc(count + 1, sizeof *part.blocks),
                       .features = cpu_features()};
    const bool fits = part.tensors && part.blocks;
    if (fits) {
        for (size_t i = 0; i < set->count; i++)
            part.tensors[i] = (state_tensor){&set->items[i], &t->optimizer.moments[i]};
        qsort(part.tensors, set->count, sizeof *part.tensors, compare_names);
        for (size_t i = 0; i < set->count; i++) listed += list_blocks(&part.tensors[i], part.blocks + listed);
        executor_begin(l->session->executor);
        parallel_for(l->session->executor, listed, state_digest_task, &part);
        executor_end(l->session->executor);
        add_part(hash, &part, set->count);
    }
    free(part.tensors);
    free(part.blocks);
    return fits ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "no memory for the digest of a run's state");
}

deberta_status state_digest(const run_parts *parts, char digest[65], deberta_error *err)
{
    sha256 hash;
    if (parts->pair) pair_share_tables(parts->pair); /* The members are in the order of the files. */
    sha256_begin(&hash, cpu_features());
    add_text(&hash, "deberta-state 1\n");
    add_number(&hash, "step ", run_parts_done(parts));
    add_text(&hash, "\n");
    for (size_t i = 0; i < parts->count; i++) {
        const char *name = parts->items[i].name;
        add_text(&hash, "part");
        add_text(&hash, *name ? " " : "");
        add_text(&hash, name);
        add_text(&hash, "\n");
        DEBERTA_TRY(digest_part(&hash, parts->items[i].training, err));
    }
    sha256_finish(&hash, digest);
    return DEBERTA_OK;
}
