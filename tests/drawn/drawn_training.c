/* Checks features of training: gradients against float64, and other ways to the same bits.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/io/mapped_file.h"
#include "output/scope.h"
#include "tests/drawn/drawn_run.h"
#include "tests/drawn/drawn_slopes.h"

/* A slope is wrong by so much of its tensor's norm, in eps, or of this share of all tensors' norm. Over choices it is a
 * sum that may cancel, and wrong by so much of its terms: a bias that all choices share learns nothing, but p_i - y_i
 * were added up. A thousand choices of few words have equal p_i, whose roundings do not cancel either. */
static const double slope_limit = 300, share_of_all = 0.02, loss_limit = 200;

/* --------------------------------------------------------------------------------------------------------------- ways */

/* An alternative way to run a step; no bit depends on it. */
typedef struct training_way {
    const char *name;
    deberta_isa isa; /* AUTO: the best */
    size_t threads;
    bool micro, recompute, drops;
} training_way;

static const char whole_batch[] = "batch.safetensors";
static const training_way first_way = {"the best tier", DEBERTA_ISA_AUTO, 1, .micro = false};

typedef struct opened_step {
    deberta_trainer *trainer;
    deberta_training_step step;
    const backward_fault *fault; /* planted, or NULL */
    batch_source sound;          /* what a spoiled batch is read from */
} opened_step;

static size_t micro_tokens(const drawn_case *drawn) { return 1 + drawn->number * 7 % (2 * drawn->tokens); }

static deberta_status read_spoiled(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                                   deberta_error *err)
{
    const opened_step *opened = context;
    DEBERTA_TRY(opened->sound.read(opened->sound.context, step, shards, width, batch, err));
    opened->fault->spoil_batch(opened->trainer->pair.discriminator.learner, batch);
    return DEBERTA_OK;
}

static void plant(opened_step *opened, const backward_fault *fault)
{
    training *const both[] = {&opened->trainer->pair.generator, &opened->trainer->pair.discriminator};
    opened->fault = fault;
    opened->sound = both[1]->batches;
    for (size_t i = 0; fault && i < 2; i++) {
        if (fault->spoil && both[i]->learner) fault->spoil(both[i]->learner);
        if (fault->spoil_batch) both[i]->batches = (batch_source){opened, read_spoiled};
    }
}

static deberta_trainer_options options_of(const drawn_run *run, const training_way *way, char paths[3][128])
{
    const drawn_case *drawn = run->drawn;
    deberta_trainer_options o = drawn->options;
    drawn_path(run, "model", paths[0]);
    drawn_path(run, "generator", paths[1]);
    drawn_path(run, whole_batch, paths[2]);
    o.model = paths[0];
    o.generator = drawn->task->pairs_up ? paths[1] : NULL;
    o.batch = paths[2];
    o.isa = way->isa;
    o.threads = way->threads;
    o.micro_tokens = way->micro ? micro_tokens(drawn) : 0;
    o.recompute = way->recompute;
    o.dropout = way->drops ? drawn->dropout : 0;
    return o;
}

/* The caller looks whether it failed: the case is valid, so that is a failure of its own. */
static deberta_status run_step(const drawn_run *run, const training_way *way, const char *batch, opened_step *opened,
                               deberta_error *refusal)
{
    char paths[3][128];
    deberta_trainer_options o = options_of(run, way, paths);
    drawn_path(run, batch, paths[2]);
    DEBERTA_TRY(deberta_trainer_open(&opened->trainer, &o, refusal));
    plant(opened, run->options->fault);
    return deberta_trainer_gradients(opened->trainer, NULL, &opened->step, refusal);
}

/* ------------------------------------------------------------------------------------------------- against float64 */

/* Inside a model terms may cancel as well, and no norm of a gradient tells how large they were. Behind relu a norm may
 * find one live column: its scale changes nothing but for epsilon, so that the column learns epsilon r^2 of what comes
 * back, a thousandth. Float64 shows none of that. The engine does: rounding takes another course when half of the
 * weights have another last bit, so what it finds moves by as much as it errs, and a fault stays where it is. Were the
 * error chance, one run in eight at least would fall nearer to the exact slope than half of it. */
enum { ROUNDING_RUNS = 8 };
static const double rounding_limit = 2;

static deberta_status add_run_of_rounding(drawn_run *run, const opened_step *base, drawn_slopes *slopes, size_t number,
                                          deberta_error *err)
{
    drawn_run nudged = {.options = run->options, .drawn = run->drawn};
    opened_step other = {0};
    deberta_error refusal;
    snprintf(nudged.folder, sizeof nudged.folder, "%.40s/rounding%zu", run->folder, number);
    DEBERTA_TRY(drawn_case_save_nudged(run->drawn, nudged.folder, number, err));
    const deberta_status status = run_step(&nudged, &first_way, whole_batch, &other, &refusal);
    const training_pair *pair = &base->trainer->pair;
    for (size_t i = 0; status == DEBERTA_OK && i < slopes->count; i++) {
        drawn_slope *slope = &slopes->items[i];
        const bool of_generator = pair->generator.learner && slope->set == &pair->generator.learner->set;
        const training_pair *others = &other.trainer->pair;
        const training *side = of_generator ? &others->generator : &others->discriminator;
        double norm;
        const double found =
            drawn_slope_of(run->drawn, parameter_find(&side->learner->set, slope->tensor->name), &norm);
        slope->rounding = fmax(slope->rounding, fabs(found - slope->found));
    }
    if (status != DEBERTA_OK) drawn_note_refusal(run, "nudged weights", "float64", &refusal);
    deberta_trainer_free(&other.trainer);
    return DEBERTA_OK;
}

static double error_of(const drawn_slope *exact) /* of two steps of the difference the better: one may meet a kink */
{
    return fmin(fabs(exact->found - exact->slope), fabs(exact->found - exact->nearer));
}

static void note_slopes(drawn_run *run, const char *name, const drawn_slopes *slopes, const double *units,
                        bool cancelling)
{
    double worst = 0;
    char where[200] = "";
    for (size_t i = 0; i < slopes->count; i++) {
        const drawn_slope *exact = &slopes->items[i];
        const double error = error_of(exact);
        const bool is_beyond = !(error <= units[i]);
        if (is_beyond != cancelling) continue;
        const double share = error / (units[i] + rounding_limit * exact->rounding);
        if (share <= worst) continue;
        worst = isnan(share) ? INFINITY : share;
        snprintf(where, sizeof where, "%s: slope %.9g, expected %.9g", exact->tensor->name, exact->found, exact->slope);
    }
    drawn_note(run, name, "float64", worst, where);
}

/* The gradient of a logit is p - 1 at the label, and a float32 next to 1 is rounded to half an epsilon: with a loss of
 * 3e-6 that is two hundredths of p - 1, on every tier and in every framework. The limit grows with it from losses below
 * `share` on; all others keep theirs. */
static double rounding_near_certainty(double loss)
{
    static const double share = 0.03;
    return fmax(1, share / -expm1(-fmax(loss, DBL_MIN)));
}

static deberta_status compare_slopes(drawn_run *run, const char *name, const opened_step *base, drawn_slopes *slopes,
                                     deberta_error *err)
{
    bool any_beyond = false;
    char cancelling[64];
    double *units = memory_take(slopes->count + 1, sizeof *units);
    const double unit = slope_limit * FLT_EPSILON * rounding_near_certainty(slopes->loss);
    for (size_t i = 0; i < slopes->count; i++) {
        drawn_slope *exact = &slopes->items[i];
        double norm;
        exact->found = drawn_slope_of(run->drawn, exact->tensor, &norm);
        units[i] = unit * (norm + exact->terms + share_of_all * drawn_norm_of_all(exact->set) + DBL_MIN);
        any_beyond = any_beyond || !(error_of(exact) <= units[i]);
    }
    deberta_status status = DEBERTA_OK;
    note_slopes(run, name, slopes, units, false);
    for (size_t k = 0; status == DEBERTA_OK && any_beyond && k < ROUNDING_RUNS; k++)
        status = add_run_of_rounding(run, base, slopes, k, err);
    snprintf(cancelling, sizeof cancelling, "cancelling %.50s", name);
    if (status == DEBERTA_OK && any_beyond) note_slopes(run, cancelling, slopes, units, true);
    free(units);
    return status;
}

static void compare_loss(drawn_run *run, const char *name, double found, double expected)
{
    char where[200];
    snprintf(where, sizeof where, "loss %.9g, expected %.9g", found, expected);
    drawn_note(run, name, "float64", fabs(found - expected) / (loss_limit * FLT_EPSILON * (1 + fabs(expected))), where);
}

static const char *named(const drawn_case *drawn, const char *what, char text[64])
{
    snprintf(text, 64, "%s of %s%s", what, drawn->task->name,
             drawn->batch.sift_weight > 0 ? drawn->batch.moves_raw ? ", SiFT raw" : ", SiFT" : "");
    return text;
}

/* ------------------------------------------------------------------------------------------------------ the same bits */

static const parameter *differing(const parameter_set *a, const parameter_set *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].trained &&
            memcmp(a->items[i].gradient, b->items[i].gradient, a->items[i].count * sizeof(float)) != 0)
            return &a->items[i];
    return NULL;
}

static void compare_bits(drawn_run *run, const char *name, const opened_step *base, const opened_step *other)
{
    char where[200] = "";
    const training_pair *a = &base->trainer->pair, *b = &other->trainer->pair;
    const parameter *tensor = differing(&a->discriminator.learner->set, &b->discriminator.learner->set);
    if (!tensor && a->generator.learner) tensor = differing(&a->generator.learner->set, &b->generator.learner->set);
    const bool same_loss = base->step.loss == other->step.loss && base->step.gradient_norm == other->step.gradient_norm;
    if (tensor)
        snprintf(where, sizeof where, "%s", tensor->name);
    else if (!same_loss)
        snprintf(where, sizeof where, "loss %.17g and %.17g", other->step.loss, base->step.loss);
    drawn_note(run, name, "bits", tensor || !same_loss ? INFINITY : 0, where);
}

static const training_way ways[] = {
    {"training: scalar", DEBERTA_ISA_SCALAR, 1, .micro = false},
    {"training: avx2", DEBERTA_ISA_AVX2, 1, .micro = false},
    {"training: avx512", DEBERTA_ISA_AVX512, 1, .micro = false},
    {"training: neon", DEBERTA_ISA_NEON, 1, .micro = false},
    {"training: 2 threads", DEBERTA_ISA_AUTO, 2, .micro = false},
    {"training: micro-tokens", DEBERTA_ISA_AUTO, 1, .micro = true},
    {"training: recompute", DEBERTA_ISA_AUTO, 1, .recompute = true},
    {"training: micro-tokens, recompute, 2 threads", DEBERTA_ISA_AUTO, 2, .micro = true, .recompute = true},
};

/* With dropout, bits are the second opinion. */
static const training_way drop_base = {"dropout", DEBERTA_ISA_AUTO, 1, .drops = true};
static const training_way drop_ways[] = {
    {"dropout: scalar, 2 threads", DEBERTA_ISA_SCALAR, 2, .drops = true},
    {"dropout: micro-tokens", DEBERTA_ISA_AUTO, 1, .micro = true, .drops = true},
    {"dropout: recompute", DEBERTA_ISA_AUTO, 1, .recompute = true, .drops = true},
};

static void run_way(drawn_run *run, const opened_step *base, const training_way *way)
{
    opened_step other = {0};
    deberta_error refusal;
    if (way->isa != DEBERTA_ISA_AUTO && (deberta_isa_missing(way->isa) || !run->options->verify.tiers[way->isa]))
        return;
    if (run_step(run, way, whole_batch, &other, &refusal) == DEBERTA_OK)
        compare_bits(run, way->name, base, &other);
    else
        drawn_note_refusal(run, way->name, "bits", &refusal);
    deberta_trainer_free(&other.trainer);
}

static void run_ways(drawn_run *run, const opened_step *base, const training_way *list, size_t count)
{
    for (size_t i = 0; i < count; i++) run_way(run, base, &list[i]);
}

/* ------------------------------------------------------------------------------------------------------------ features */

static bool is_trained(const drawn_run *run) { return !run->drawn->model.config.talking_heads; }
static bool drops(const drawn_run *run) { return is_trained(run) && !run->options->fault && run->drawn->dropout > 0; }

static deberta_status against_float64(drawn_run *run, const opened_step *base, deberta_error *err)
{
    drawn_slopes slopes;
    char text[64];
    DEBERTA_TRY(drawn_slopes_find(&slopes, run->drawn, base->trainer, err));
    compare_loss(run, named(run->drawn, "loss", text), base->step.loss, slopes.loss);
    const deberta_status status = compare_slopes(run, named(run->drawn, "gradients", text), base, &slopes, err);
    drawn_slopes_free(&slopes);
    return status;
}

static deberta_status run_gradients(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    opened_step base = {0};
    deberta_error refusal;
    char text[64];
    deberta_status status = DEBERTA_OK;
    (void)feature;
    if (run_step(run, &first_way, whole_batch, &base, &refusal) == DEBERTA_OK) {
        status = against_float64(run, &base, err);
        if (status == DEBERTA_OK && !run->options->fault) run_ways(run, &base, ways, sizeof ways / sizeof *ways);
    } else {
        drawn_note_refusal(run, named(run->drawn, "gradients", text), "float64", &refusal);
    }
    deberta_trainer_free(&base.trainer);
    return status;
}

static deberta_status run_dropout(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    (void)err;
    opened_step base = {0};
    deberta_error refusal;
    if (run_step(run, &drop_base, whole_batch, &base, &refusal) == DEBERTA_OK)
        run_ways(run, &base, drop_ways, sizeof drop_ways / sizeof *drop_ways);
    else
        drawn_note_refusal(run, feature->name, "bits", &refusal);
    deberta_trainer_free(&base.trainer);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------------- runs */

enum { STEPS = 4, STOP = 2, ONE_CASE_IN = 6 };

/* Files that are synced cost time. */
static bool is_run(const drawn_run *run)
{
    return is_trained(run) && !run->options->fault && run->drawn->number / drawn_task_count % ONE_CASE_IN == 0;
}

static deberta_status train_run(const drawn_run *run, const training_way *way, const char *folder, size_t stop_at,
                                bool resume, deberta_error *refusal)
{
    char paths[3][128], out[128];
    int finished;
    deberta_trainer *trainer = NULL;
    deberta_trainer_options o = options_of(run, way, paths);
    drawn_path(run, folder, out);
    drawn_path(run, "batches.safetensors", paths[2]);
    o.batch = NULL;
    o.batches = paths[2];
    o.steps = STEPS;
    o.folder = out;
    o.stop_at = stop_at;
    o.resume = resume;
    o.learning_rate = 1e-3;
    deberta_status status = deberta_trainer_open(&trainer, &o, refusal);
    if (status == DEBERTA_OK) status = deberta_trainer_run(trainer, NULL, NULL, &finished, refusal);
    deberta_trainer_free(&trainer);
    return status;
}

static deberta_status compare_files(const drawn_run *run, const char *name, bool *same, deberta_error *refusal)
{
    char paths[2][128], whole[64], resumed[64];
    mapped_file files[2];
    snprintf(whole, sizeof whole, "whole/%s", name);
    snprintf(resumed, sizeof resumed, "resumed/%s", name);
    drawn_path(run, whole, paths[0]);
    drawn_path(run, resumed, paths[1]);
    DEBERTA_TRY(mapped_file_open(&files[0], paths[0], refusal));
    const deberta_status status = mapped_file_open(&files[1], paths[1], refusal);
    if (status == DEBERTA_OK) {
        *same = *same && files[0].size_bytes == files[1].size_bytes &&
                memcmp(files[0].bytes, files[1].bytes, files[0].size_bytes) == 0;
        mapped_file_close(&files[1]);
    }
    mapped_file_close(&files[0]);
    return status;
}

static deberta_status run_and_resume(const drawn_run *run, bool *same, deberta_error *refusal)
{
    const bool drops_too = run->drawn->dropout > 0;
    const training_way whole = {"", DEBERTA_ISA_AUTO, 1, .drops = drops_too},
                       other = {"", DEBERTA_ISA_SCALAR, 2, .micro = true, .drops = drops_too};
    DEBERTA_TRY(train_run(run, &whole, "whole", 0, false, refusal));
    DEBERTA_TRY(train_run(run, &whole, "resumed", STOP, false, refusal));
    DEBERTA_TRY(train_run(run, &other, "resumed", 0, true, refusal));
    if (!run->drawn->task->pairs_up) return compare_files(run, "model.safetensors", same, refusal);
    DEBERTA_TRY(compare_files(run, "generator/model.safetensors", same, refusal));
    return compare_files(run, "discriminator/model.safetensors", same, refusal);
}

static deberta_status run_resumed(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    (void)err;
    bool same = true;
    deberta_error refusal;
    if (run_and_resume(run, &same, &refusal) == DEBERTA_OK)
        drawn_note(run, feature->name, "bits", same ? 0 : INFINITY, "the trained model");
    else
        drawn_note_refusal(run, feature->name, "bits", &refusal);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------ refusals */

/* A hole that could be given a label, or be an end of an answer; the batch's end if there is none. */
static size_t hole_of(const drawn_case *drawn)
{
    const exact_batch *b = &drawn->batch;
    size_t at = 0;
    while (at < b->sequences * b->columns && (drawn->mask[at] || at % b->columns >= exact_length(b, at / b->columns)))
        at++;
    return at;
}

static bool has_hole(const drawn_run *run)
{
    const exact_batch *b = &run->drawn->batch;
    return is_trained(run) && (exact_labels_tokens(b->task) || b->task == EXACT_ANSWERS) &&
           hole_of(run->drawn) < b->sequences * b->columns;
}

static void expect_refusal(drawn_run *run, const char *name)
{
    opened_step base = {0};
    deberta_error refusal = {0};
    const deberta_status status = run_step(run, &first_way, "hole.safetensors", &base, &refusal);
    deberta_trainer_free(&base.trainer);
    const bool refused = status == DEBERTA_E_FORMAT && strstr(refusal.message, "hole");
    drawn_note(run, name, "its refusal", refused ? 0 : INFINITY,
               status == DEBERTA_OK ? "it was computed" : refusal.message);
}

static deberta_status run_labelled_hole(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    const drawn_case *drawn = run->drawn;
    const bool answer = drawn->batch.task == EXACT_ANSWERS;
    const size_t at = hole_of(drawn);
    int64_t *place = answer ? &drawn->starts[at / drawn->batch.columns] : &drawn->labels[at];
    const int64_t kept = *place;
    *place = answer ? (int64_t)(at % drawn->batch.columns) : 0;
    const deberta_status saved = drawn_batch_save(drawn, run->folder, "hole.safetensors", false, err);
    *place = kept;
    DEBERTA_TRY(saved);
    expect_refusal(run, feature->name);
    return DEBERTA_OK;
}

const drawn_feature drawn_training_features[] = {
    {"gradients", is_trained, .run = run_gradients},
    {"a label at a hole", has_hole, .run = run_labelled_hole},
    {"dropout", drops, .run = run_dropout},
    {"resumed training", is_run, .run = run_resumed},
    {0},
};
