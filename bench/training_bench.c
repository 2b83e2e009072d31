/* Generates a batch, measures steps on it by stage, and reports the memory of the plan.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/training_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/machine.h"
#include "bench/statistics.h"
#include "core/base/clock.h"
#include "core/base/numbers.h"
#include "core/encode/session.h"
#include "include/deberta_training.h"
#include "train/state/learner.h"

/* --------------------------------------------------------------------------------------------------- the least work */

const char *training_stage_name(training_stage stage)
{
    static const char *const names[TRAINING_STAGES] = {
        [TRAINING_BATCH] = "batch",
        [TRAINING_CLEAR] = "clear gradients",
        [TRAINING_FORWARD] = "forward",
        [TRAINING_DECODER] = "decoder",
        [TRAINING_HEAD] = "head",
        [TRAINING_HEAD_BACKWARD] = "head backward",
        [TRAINING_ATTENTION_BACKWARD] = "attention backward",
        [TRAINING_INPUT_GRADIENTS] = "input gradients",
        [TRAINING_WEIGHT_GRADIENTS] = "weight gradients",
        [TRAINING_TABLE_GRADIENTS] = "table gradients",
        [TRAINING_EMBEDDING_GRADIENTS] = "embedding gradients",
        [TRAINING_NORM] = "norm",
        [TRAINING_UPDATE] = "update",
        [TRAINING_PACK] = "packing",
    };
    return (unsigned)stage < TRAINING_STAGES ? names[stage] : "unknown";
}

typedef struct training_shape {
    size_t sequences, tokens; /* number of sequences, and tokens of each */
    size_t labelled;          /* labelled tokens of all sequences */
    bool decodes;
} training_shape;

/* FLOPs of the parts of a forward pass: multiply-adds, times two. */
typedef struct forward_work {
    double linear, attention; /* of the encoder's layers */
    double projection, convolution;
    double decoder_linear, decoder_attention;
    double table, head;
} forward_work;

/* Adds the layers, over the rows of the relative table that a sequence reaches. */
static double add_layers(forward_work *work, const deberta_model_info *m, deberta_reference reference,
                         const training_shape *shape)
{
    cost layers = {0};
    size_t *lengths = memory_take(shape->sequences, sizeof *lengths);
    for (size_t i = 0; i < shape->sequences; i++) lengths[i] = shape->tokens;
    const cost_point point = {.lengths = lengths, .sequences = shape->sequences, .layers = m->layers - shape->decodes};
    cost_model_compute(&layers, m, reference, &point);
    free(lengths);
    work->linear = layers.stage[PROFILE_QKV].flops + layers.stage[PROFILE_ATTENTION_OUTPUT].flops +
                   layers.stage[PROFILE_FEED_FORWARD].flops;
    work->attention = layers.stage[PROFILE_ATTENTION].flops;
    work->projection = layers.stage[PROFILE_EMBED].flops;
    work->convolution = layers.stage[PROFILE_CONVOLUTION].flops;
    return layers.table_rows;
}

/* Adds two passes of the labelled rows, with keys and values of all tokens. A pair's position terms are two dot
 * products, or strips if these are cheaper. */
static void add_decoder(forward_work *work, const deberta_model_info *m, const training_shape *shape, double rows)
{
    const double h = (double)m->hidden_size, f = (double)m->intermediate_size, n = (double)shape->tokens;
    const double tokens = n * (double)shape->sequences, labelled = (double)shape->labelled;
    const double reached = rows < n ? rows : n, terms = (double)m->has_c2p + (double)m->has_p2c;
    work->decoder_linear = 2 * tokens * 2 * h * h + 2 * 2 * labelled * (2 * h * h + 2 * h * f);
    work->decoder_attention = 2 * labelled * (4 * n * h + terms * 2 * reached * h);
}

static void compute_cost(training_cost *result, const deberta_model_info *m, deberta_reference reference,
                         const training_shape *shape)
{
    forward_work work = {0};
    const double rows = add_layers(&work, m, reference, shape), h = (double)m->hidden_size,
                 e = (double)m->embedding_size;
    *result = (training_cost){0};
    if (shape->decodes) add_decoder(&work, m, shape, rows);
    work.table = (double)m->layers * ((double)m->has_c2p + (double)m->has_p2c) * 2 * rows * h * h;
    work.head = 2 * (double)shape->labelled * (h * e + e * (double)m->vocabulary_size);
    const double linear = work.linear + work.convolution + work.decoder_linear;
    double *flops = result->flops;
    flops[TRAINING_FORWARD] = work.linear + work.convolution + work.attention + work.projection;
    flops[TRAINING_DECODER] = work.decoder_linear + work.decoder_attention;
    flops[TRAINING_HEAD] = work.head;
    flops[TRAINING_HEAD_BACKWARD] = 2 * work.head;
    flops[TRAINING_ATTENTION_BACKWARD] = 2 * (work.attention + work.decoder_attention);
    flops[TRAINING_INPUT_GRADIENTS] = flops[TRAINING_WEIGHT_GRADIENTS] = linear;
    flops[TRAINING_TABLE_GRADIENTS] = 2 * work.table;
    flops[TRAINING_EMBEDDING_GRADIENTS] = 2 * work.projection;
    flops[TRAINING_PACK] = work.table;
    for (size_t stage = 0; stage < TRAINING_STAGES; stage++) result->total += flops[stage];
}

/* ----------------------------------------------------------------------------------------------------------- a batch */

typedef struct made_batches {
    const training_bench_options *options;
    size_t vocabulary;
} made_batches;

static void allocate_batch(step_batch *batch, size_t shards)
{
    batch->starts = memory_take(batch->sequences + 1, sizeof *batch->starts);
    batch->shard_bounds = memory_take(shards + 1, sizeof *batch->shard_bounds);
    batch->origin = memory_take(batch->sequences, sizeof *batch->origin);
    batch->ids = memory_take(batch->tokens, sizeof *batch->ids);
    batch->mask = memory_take(batch->tokens, sizeof *batch->mask);
    batch->labels = memory_take(batch->tokens, sizeof *batch->labels);
}

/* Assigns sequences to shards in order, as all are equally long. */
static void deal(const training_bench_options *o, size_t shards, step_batch *batch)
{
    size_t place = 0;
    for (size_t shard = 0; shard < shards; shard++) {
        for (size_t i = shard; i < o->sequences; i += shards) {
            batch->origin[place] = i;
            batch->starts[place + 1] = batch->starts[place] + o->tokens;
            place++;
        }
        batch->shard_bounds[shard + 1] = place;
    }
}

/* Draws a sequence; each has the same share of its tokens labelled, at least one. */
static void draw_sequence(const made_batches *made, size_t sequence, uint64_t *state, step_batch *batch)
{
    const training_bench_options *o = made->options;
    size_t wanted = (size_t)lround(o->labelled * (double)o->tokens);
    if (wanted == 0) wanted = 1;
    for (size_t place = 0; place < o->tokens; place++) {
        const size_t t = sequence * o->tokens + place;
        const bool labelled = random_below(state, o->tokens - place) < wanted;
        batch->ids[t] = (int32_t)random_below(state, made->vocabulary);
        batch->labels[t] = labelled ? (int32_t)random_below(state, made->vocabulary) : NOT_LABELLED;
        wanted -= labelled;
    }
}

static deberta_status make_batch(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                                 deberta_error *err)
{
    const made_batches *made = context;
    const training_bench_options *o = made->options;
    uint64_t state = o->seed + step;
    (void)width, (void)err;
    *batch = (step_batch){
        .sequences = o->sequences, .tokens = o->sequences * o->tokens, .choices = 1, .questions = o->sequences};
    allocate_batch(batch, shards);
    deal(o, shards, batch);
    memset(batch->mask, 1, batch->tokens);
    for (size_t i = 0; i < batch->sequences; i++) draw_sequence(made, i, &state, batch);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- measuring */

/* Slices of the machine's limit between steps, on the threads of the steps. */
typedef struct step_slices {
    machine_slices loops;
    double *rates; /* [one more than steps] */
    size_t count;
    /* fraction of the steps' time that slices may take; seconds of slices and of steps */
    double share, seconds, stepped;
} step_slices;

static step_slices step_slices_of(training_measurement *found, const training *t, const training_bench_options *o)
{
    const deberta_session *session = t->learner->session;
    step_slices slices = {.share = o->roof_share};
    if (!(o->roof_share > 0)) return slices;
    slices.rates = scope_take(&found->arrays, o->repetitions + 1, sizeof *slices.rates);
    machine_slices_prepare(&slices.loops, session->isa, session->executor, session->model->machine.usable_cores);
    return slices;
}

/* Runs one slice in any case, further ones within their share. */
static void slice_products(step_slices *slices)
{
    if (!slices->rates || (slices->count && slices->seconds > slices->share * slices->stepped)) return;
    const double rate = machine_slice_products(&slices->loops, false, &slices->seconds);
    if (rate > 0) slices->rates[slices->count++] = rate;
}

static deberta_status take_samples(training_measurement *found, training *t, const training_bench_options *o,
                                   deberta_error *err)
{
    const size_t repetitions = o->repetitions;
    stage_clock clock = {0};
    step_report report;
    DEBERTA_TRY(training_step(t, &report, err)); /* the first step touches all memory */
    step_slices slices = step_slices_of(found, t, o);
    t->learner->clock = &clock;
    slice_products(&slices);
    for (size_t i = 0; i < repetitions; i++) {
        const double began = clock_seconds(), began_processor = clock_processor_seconds();
        DEBERTA_TRY(training_step(t, &report, err));
        found->seconds[i] = clock_seconds() - began;
        found->processor[i] = clock_processor_seconds() - began_processor;
        slices.stepped += found->seconds[i];
        slice_products(&slices);
    }
    t->learner->clock = NULL;
    found->slices = slices.count;
    if (slices.count) found->peak_then = statistics_median(slices.rates, slices.count);
    found->tokens = report.result.tokens;
    found->labelled = report.result.labelled;
    for (size_t stage = 0; stage < TRAINING_STAGES; stage++) {
        found->stage_seconds[stage] = clock.seconds[stage] / (double)repetitions;
        found->stage_processor[stage] = clock.processor[stage] / (double)repetitions;
    }
    return DEBERTA_OK;
}

static void note_memory(training_memory *memory, const learner *l)
{
    struct rusage usage;
    size_t weights = 0;
    for (size_t i = 0; i < l->set.count; i++) weights += l->set.items[i].count;
    getrusage(RUSAGE_SELF, &usage);
    *memory = (training_memory){
        .weights_bytes = 2 * weights * sizeof(float),
        .moments_bytes = 2 * weights * sizeof(float),
        .sums_bytes = learner_sum_bytes(l),
        .model_bytes = l->model->memory_bytes,
        .session_bytes = deberta_session_memory_bytes(l->session),
        .learner_bytes = l->memory.arena.capacity_bytes + l->memory.decoder_arena.capacity_bytes,
        .logits_bytes = l->memory.logits_capacity * sizeof(float),
        .peak_rss_bytes = (size_t)usage.ru_maxrss * 1024,
    };
}

size_t training_memory_plan(const training_memory *m)
{
    return m->weights_bytes + m->moments_bytes + m->sums_bytes + m->model_bytes + m->session_bytes + m->learner_bytes +
           m->logits_bytes;
}

/* -------------------------------------------------------------------------------------------------------------- all */

static deberta_status open_training(training *t, const training_bench_options *o, deberta_error *err)
{
    const learner_options options = {.asked = {.threads = o->threads,
                                               .shards = o->shards,
                                               .isa = o->isa,
                                               .reference = o->reference,
                                               .micro_tokens = o->micro_tokens,
                                               .recompute = o->recomputes},
                                     .max_tokens = o->sequences * o->tokens,
                                     .decodes = o->decodes,
                                     .memory_limit_bytes = o->memory_limit_bytes,
                                     .longest = o->tokens,
                                     .predicts_words = true};
    /* a rate near zero: the work is the same, and no step diverges */
    const deberta_trainer_options recipe = {.schedule = DEBERTA_SCHEDULE_CONSTANT,
                                            .learning_rate = 1e-8,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .epsilon = 1e-6,
                                            .weight_decay = 0.01,
                                            .clip = 1,
                                            .layer_decay = 1,
                                            .steps = o->repetitions + 1};
    DEBERTA_TRY(learner_open(&t->learner, o->model, &options, err));
    t->options = (step_options){.task = DEBERTA_TRAIN_MLM, .decodes = t->learner->options.decodes};
    return optimizer_open(&t->optimizer, &t->learner->set, t->learner->model->config.layers, &recipe, err);
}

static deberta_status training_bench_measure(training_measurement *found, training *t, const training_bench_options *o,
                                             deberta_error *err)
{
    const learner *l = t->learner;
    *found = (training_measurement){
        .threads = l->options.asked.threads, .count = o->repetitions, .decodes = t->options.decodes};
    snprintf(found->isa, sizeof found->isa, "%s", l->session->kernels.gemm_f32_isa);
    found->seconds = scope_take(&found->arrays, o->repetitions, sizeof *found->seconds);
    found->processor = scope_take(&found->arrays, o->repetitions, sizeof *found->processor);
    made_batches made = {.options = o, .vocabulary = l->model->config.vocabulary_size};
    t->batches = (batch_source){.context = &made, .read = make_batch};
    DEBERTA_TRY(take_samples(found, t, o, err));
    note_memory(&found->memory, l);
    const training_shape shape = {
        .sequences = o->sequences, .tokens = o->tokens, .labelled = found->labelled, .decodes = t->options.decodes};
    compute_cost(&found->cost, deberta_model_describe(l->model), o->reference, &shape);
    return DEBERTA_OK;
}

deberta_status training_bench_run(training_measurement *found, const training_bench_options *o, deberta_error *err)
{
    training t = {0};
    *found = (training_measurement){0};
    deberta_status status = open_training(&t, o, err);
    if (status == DEBERTA_OK) status = training_bench_measure(found, &t, o, err);
    optimizer_free(&t.optimizer);
    learner_free(&t.learner);
    return status;
}
