/* The loss changes as the gradient says: along each tensor's gradient, by central differences. Not as sharp as the
 * golden data, but for any length: several query blocks, chunks of 512 keys, distances far beyond the relative table.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "include/deberta_training.h"
#include "train/state/learner.h"
#include "train/step/step.h"

/* A step is a hundredth of the tensor's largest weight; differences of float32 losses, and the curvature, allow for so
 * much. */
#define STEP      0.01
#define TOLERANCE 0.03
/* Of the norm of all gradients: what is less is lost in the losses' rounding. */
#define LEAST_SHARE 0.02

typedef struct direction_case {
    const char *folder;
    deberta_training_task task;
    size_t lengths[2];
    double dropout; /* the same masks on both sides of a difference */
    bool decodes;
} direction_case;

typedef struct direction_batch {
    step_batch batch;
    size_t starts[3], shard_bounds[DEFAULT_SHARDS + 1], origin[2];
    int32_t *ids, *labels, ends[2], classes[2];
    uint8_t *mask;
} direction_batch;

static void make_batch(direction_batch *b, const direction_case *c, size_t vocabulary)
{
    uint64_t state = 7;
    const size_t tokens = c->lengths[0] + c->lengths[1];
    b->ids = malloc(tokens * sizeof *b->ids);
    b->labels = malloc(tokens * sizeof *b->labels);
    b->mask = malloc(tokens * sizeof *b->mask);
    for (size_t t = 0; t < tokens; t++) {
        b->ids[t] = (int32_t)(1 + random_below(&state, vocabulary - 1));
        b->labels[t] = random_below(&state, 5) == 0 ? (int32_t)random_below(&state, 4) : NOT_LABELLED;
        b->mask[t] = t == 0 || t == c->lengths[0] || random_below(&state, 20) != 0;
        if (!b->mask[t]) b->labels[t] = NOT_LABELLED;
    }
    for (size_t i = 0; i < 2; i++) {
        b->starts[i + 1] = b->starts[i] + c->lengths[i];
        b->origin[i] = i;
        b->classes[i] = (int32_t)i;
        b->ends[i] = (int32_t)(c->lengths[i] - 1 - i);
    }
    for (size_t shard = 0; shard <= DEFAULT_SHARDS; shard++) b->shard_bounds[shard] = shard < 2 ? shard : 2;
    b->batch = (step_batch){.sequences = 2,
                            .tokens = tokens,
                            .starts = b->starts,
                            .shard_bounds = b->shard_bounds,
                            .origin = b->origin,
                            .ids = b->ids,
                            .mask = b->mask,
                            .labels = b->labels,
                            .sequence_labels = b->classes,
                            .starts_of_answer = b->ends,
                            .ends_of_answer = b->ends,
                            .choices = 1,
                            .questions = 2};
}

static double loss_of(learner *l, const direction_batch *b, const step_options *options)
{
    deberta_error error = {0};
    step_result result = {0};
    if (learner_take_parameters(l, &error) != DEBERTA_OK ||
        step_run(l, &b->batch, options, &result, &error) != DEBERTA_OK) {
        printf("FAILED %s\n", error.message);
        return NAN;
    }
    return result.loss;
}

/* (L(w + s g) - L(w - s g)) / 2s against |g|^2, for one tensor. */
static double error_along(learner *l, const direction_batch *b, const step_options *losses_only, parameter *p,
                          const float *gradient, const float *values, double norm)
{
    double largest = 0, steepest = 0, losses[2];
    for (size_t e = 0; e < p->count; e++) {
        largest = fmax(largest, fabs((double)values[e]));
        steepest = fmax(steepest, fabs((double)gradient[e]));
    }
    const double step = STEP * fmax(largest, 0.05) / steepest;
    for (int side = 0; side < 2; side++) {
        for (size_t e = 0; e < p->count; e++)
            p->values[e] = (float)((double)values[e] + (side ? -step : step) * (double)gradient[e]);
        losses[side] = loss_of(l, b, losses_only);
    }
    memcpy(p->values, values, p->count * sizeof *values);
    return fabs((losses[0] - losses[1]) / (2 * step) / (norm * norm) - 1);
}

static double norm_of(const float *x, size_t count)
{
    double sum = 0;
    for (size_t e = 0; e < count; e++) sum += (double)x[e] * (double)x[e];
    return sqrt(sum);
}

static void run_case(const char *root, const direction_case *c, size_t *passed, size_t *failed)
{
    char folder[1024];
    deberta_error error = {0};
    learner *l = NULL;
    direction_batch b = {0};
    const learner_options opening = {.asked = {.threads = 2, .shards = DEFAULT_SHARDS},
                                     .max_tokens = c->lengths[0] + c->lengths[1],
                                     .longest = c->lengths[0] > c->lengths[1] ? c->lengths[0] : c->lengths[1],
                                     .decodes = c->decodes,
                                     .drops = c->dropout > 0};
    const step_options options = {.task = c->task,
                                  .rtd_weight = 1,
                                  .decodes = c->decodes,
                                  .seed = 3,
                                  .number = 5,
                                  .dropout = {c->dropout, c->dropout, c->dropout, c->dropout}};
    snprintf(folder, sizeof folder, "%s/%s", root, c->folder);
    if (learner_open(&l, folder, &opening, &error) != DEBERTA_OK) {
        printf("FAILED %s: %s\n", c->folder, error.message);
        *failed += 1;
        return;
    }
    make_batch(&b, c, l->model->config.vocabulary_size);
    const double loss = loss_of(l, &b, &options);
    const double whole = parameter_set_norm(&l->set, l->session->executor);
    /* Copies: losses with dropout bring gradients of other weights, since a pass for the loss alone has no dropout. */
    float **gradients = malloc(l->set.count * sizeof *gradients);
    for (size_t i = 0; i < l->set.count; i++) {
        const size_t bytes = l->set.items[i].count * sizeof(float);
        gradients[i] = memcpy(malloc(bytes), l->set.items[i].gradient, bytes);
    }
    step_options losses_only = options;
    losses_only.loss_only = c->dropout == 0;
    const bool same_loss = loss_of(l, &b, &losses_only) == loss;
    double worst = 0;
    const char *where = "";
    size_t looked = 0;
    for (size_t i = 0; i < l->set.count; i++) {
        parameter *p = &l->set.items[i];
        const double norm = norm_of(gradients[i], p->count);
        if (norm < LEAST_SHARE * whole) continue;
        float *values = malloc(p->count * sizeof *values);
        memcpy(values, p->values, p->count * sizeof *values);
        const double off = error_along(l, &b, &losses_only, p, gradients[i], values, norm);
        looked++;
        if (!(off <= worst)) {
            worst = off;
            where = p->name;
        }
        free(values);
    }
    for (size_t i = 0; i < l->set.count; i++) free(gradients[i]);
    free(gradients);
    const bool fine = worst <= TOLERANCE && looked >= 10 && same_loss;
    printf("%-6s %s of %zu and %zu tokens, dropout %g: %zu tensors, at most %.2f %% off, in %s%s\n",
           fine ? "ok" : "FAILED", c->folder, c->lengths[0], c->lengths[1], c->dropout, looked, 100 * worst, where,
           same_loss ? "" : "; the loss is another where no gradient is asked for");
    *(fine ? passed : failed) += 1;
    free(b.ids);
    free(b.labels);
    free(b.mask);
    learner_free(&l);
}

int main(int argc, char **argv)
{
    static const direction_case cases[] = {
        {"10-v3-qa", DEBERTA_TRAIN_QA, {130, 40}, .dropout = 0},
        {"10-v3-qa", DEBERTA_TRAIN_QA, {700, 300}, .dropout = 0},
        {"10-v3-qa", DEBERTA_TRAIN_QA, {513, 512}, .dropout = 0},
        {"11-v3-rtd", DEBERTA_TRAIN_RTD, {1100, 20}, .dropout = 0},
        {"08-v2-conv-token", DEBERTA_TRAIN_TOKEN, {600, 129}, .dropout = 0},
        {"10-v3-qa", DEBERTA_TRAIN_QA, {700, 40}, .dropout = 0.1},
        {"11-v3-rtd", DEBERTA_TRAIN_RTD, {100, 20}, .dropout = 0.1},
        {"08-v2-conv-token", DEBERTA_TRAIN_TOKEN, {100, 29}, .dropout = 0.2},
        {"07-v1-sequence-types", DEBERTA_TRAIN_SEQUENCE, {30, 20}, .dropout = 0.2},
        {"03-v3-mlm-emd", DEBERTA_TRAIN_MLM, {40, 20}, .dropout = 0.2, .decodes = true},
    };
    size_t passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(argc > 1 ? argv[1] : "tests/golden_train", &cases[i], &passed, &failed);
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
