/* Gradients of tiny models against float64, every tensor of every case, and bit for bit between tiers and thread
 * counts.
 *
 * A case is a folder with a model, a batch and what is expected; manifest.json says how it is run, the error of float32
 * PyTorch in each gradient, and a floor. The bar: error / max(PyTorch's error, floor) at most 4 in each tensor, at most
 * 1 in the median over all tensors.
 *
 * SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/dispatch.h"
#include "tests/drawn/backward_faults.h"
#include "tests/golden_train/train_case.h"
#include "tests/golden_train/train_trajectory.h"

enum { MOST_TENSORS = 4096 };
#define WORST_RATIO  4.0
#define MEDIAN_RATIO 1.0

typedef struct tally {
    double ratios[MOST_TENSORS];
    size_t ratio_count, passed, failed, skipped;
} tally;

/* ---------------------------------------------------------------------------------------------------------- comparing */

static double number_of(const json_t *entry, const char *table, const char *name)
{
    return json_number_value(json_object_get(json_object_get(entry, table), name));
}

/* Largest error of a gradient in units of the bar; infinite where the tensor is missing. */
static double ratio_of(const train_case *c, const json_t *entry, const char *name, const float *got, size_t count)
{
    const double *want;
    const size_t expected = train_case_expected(c, name, &want);
    const double unit =
        fmax(number_of(entry, "f32", name + strlen("grad.")), number_of(entry, "floor", name + strlen("grad.")));
    double worst = 0;
    if (expected != count || !(unit > 0)) return INFINITY;
    for (size_t e = 0; e < count; e++) worst = fmax(worst, fabs((double)got[e] - want[e]));
    return worst / unit;
}

static void compare_tensors(const train_case *c, const json_t *entry, const train_outcome *outcome, tally *counts)
{
    double worst = 0;
    const char *where = "";
    for (size_t i = 0; i < outcome->tensor_count; i++) {
        const train_tensor *tensor = &outcome->tensors[i];
        const double ratio = ratio_of(c, entry, tensor->name, tensor->values, tensor->count);
        if (counts->ratio_count < MOST_TENSORS) counts->ratios[counts->ratio_count++] = ratio;
        if (!(ratio <= worst)) {
            worst = ratio;
            where = tensor->name;
        }
    }
    const double *loss;
    train_case_expected(c, "loss", &loss);
    const double loss_error = fabs(outcome->loss - loss[0]);
    const double loss_bar =
        WORST_RATIO * fmax(json_number_value(json_object_get(entry, "f32_loss")), 5e-7 * fabs(loss[0]));
    const bool all = outcome->tensor_count == train_case_gradients(c);
    const bool fine = worst <= WORST_RATIO && loss_error <= loss_bar && all;
    printf("%-6s %-28s loss %.7f, error %.1e; %zu of %zu tensors, worst %.2f of the bar's 4 in %s\n",
           fine ? "ok" : "FAILED", c->name, outcome->loss, loss_error, outcome->tensor_count, train_case_gradients(c),
           worst, where);
    *(fine ? &counts->passed : &counts->failed) += 1;
}

static bool same_bits(const train_outcome *a, const train_outcome *b)
{
    bool same = a->tensor_count == b->tensor_count && memcmp(&a->loss, &b->loss, sizeof a->loss) == 0;
    for (size_t i = 0; same && i < a->tensor_count; i++)
        same = memcmp(a->tensors[i].values, b->tensors[i].values, a->tensors[i].count * sizeof(float)) == 0;
    return same;
}

/* ------------------------------------------------------------------------------------------------------------ running */

static bool run_or_say(const train_case *c, deberta_isa isa, size_t threads, train_outcome *outcome)
{
    deberta_error error = {0};
    if (train_case_run(c, isa, threads, outcome, &error) == DEBERTA_OK) return true;
    printf("FAILED %s: %s\n", c->name, error.message);
    return false;
}

/* Under an emulator plain C, for which it takes longest, with one thread, and another tier with one and five. */
static void compare_bits(const train_case *c, const train_outcome *first, tally *counts)
{
    static const size_t thread_counts[] = {1, 2, 5};
    const bool sampled = getenv("DEBERTA_TEST_QUICK") != NULL;
    for (int isa = DEBERTA_ISA_AUTO + 1; isa < DEBERTA_ISA_COUNT; isa++) {
        if (deberta_isa_missing((deberta_isa)isa)) continue;
        for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i += sampled ? 2 : 1) {
            if (sampled && isa == DEBERTA_ISA_SCALAR && i > 0) break;
            train_outcome other = {0};
            const bool same = run_or_say(c, (deberta_isa)isa, thread_counts[i], &other) && same_bits(first, &other);
            if (!same)
                printf("FAILED %s: %s with %zu threads gives other bits\n", c->name, deberta_isa_name((deberta_isa)isa),
                       thread_counts[i]);
            *(same ? &counts->passed : &counts->failed) += 1;
            train_outcome_free(&other);
        }
    }
}

/* Opens a case, or says why not. */
static bool open_or_say(train_case *c, const char *folder, const char *name, const json_t *entry, tally *counts)
{
    deberta_error error = {0};
    const deberta_status status = train_case_open(c, folder, name, entry, &error);
    if (status == DEBERTA_OK) return true;
    const bool skipped = status == DEBERTA_E_UNSUPPORTED;
    printf("%s %s: %s\n", skipped ? "skipped" : "FAILED", name, error.message);
    *(skipped ? &counts->skipped : &counts->failed) += 1;
    return false;
}

static void run_case(const char *folder, const char *name, const json_t *entry, tally *counts)
{
    train_case c;
    train_outcome outcome = {0};
    if (open_or_say(&c, folder, name, entry, counts)) {
        const bool ran = run_or_say(&c, DEBERTA_ISA_AUTO, 2, &outcome);
        if (ran) compare_tensors(&c, entry, &outcome, counts);
        if (ran) compare_bits(&c, &outcome, counts);
        counts->failed += !ran;
    }
    train_outcome_free(&outcome);
    train_case_close(&c);
}

/* A training run. Its learning rates are exact but for rounding. */
static void run_trajectory(const char *folder, const char *name, const json_t *entry, tally *counts)
{
    train_case c;
    deberta_error error = {0};
    trajectory_outcome outcome = {0};
    if (open_or_say(&c, folder, name, entry, counts)) {
        const bool ran = trajectory_run(&c, entry, 2, &outcome, &error) == DEBERTA_OK;
        const bool fine = ran && outcome.worst_loss <= WORST_RATIO && outcome.worst_final <= WORST_RATIO &&
                          outcome.worst_rate < 1e-12;
        printf("%-6s %-28s %zu steps, loss %.2f of the bar's 4; %zu tensors, worst weight %.2f in %s%s\n",
               fine ? "ok" : "FAILED", name, outcome.steps, outcome.worst_loss, outcome.tensors, outcome.worst_final,
               outcome.where, ran ? "" : error.message);
        *(fine ? &counts->passed : &counts->failed) += 1;
    }
    train_case_close(&c);
}

/* --------------------------------------------------------------------------------------------------- deliberate mistakes */

/* Whether a case notices the mistake: a gradient beyond the bar. */
static bool notices(const char *folder, const char *name, const json_t *entry, const backward_fault *fault,
                    double *worst)
{
    train_case c;
    train_outcome outcome = {0};
    tally ignored = {0};
    *worst = 0;
    if (open_or_say(&c, folder, name, entry, &ignored)) {
        c.spoil = fault->spoil;
        if (run_or_say(&c, DEBERTA_ISA_AUTO, 1, &outcome))
            for (size_t i = 0; i < outcome.tensor_count; i++) {
                const train_tensor *tensor = &outcome.tensors[i];
                const double ratio = ratio_of(&c, entry, tensor->name, tensor->values, tensor->count);
                if (!(ratio <= *worst)) *worst = ratio;
            }
    }
    train_outcome_free(&outcome);
    train_case_close(&c);
    return !(*worst <= WORST_RATIO);
}

static void run_faults(const char *folder, const json_t *manifest, tally *counts)
{
    static const struct {
        const char *fault, *by;
    } cases[] = {
        {"softmax_without_sum", "03-v3-mlm-emd"},
        {"softmax_without_mask", "08-v2-conv-token"},
        {"softmax_undivided", "03-v3-mlm-emd"},
        {"norm_of_constants", "15-v2-plain-absolute"},
        {"gelu_of_tanh", "07-v1-sequence-types"},
        {"no_folding", "10-v3-qa"},
        {"fold_one_late", "03-v3-mlm-emd"},
        {"shard_missed", "18-v3-choice"},
        {"sums_without_products", "11-v3-rtd"},
        {"product_begins_anew", "03-v3-mlm-emd"},
        {"padding_learns", "03-v3-mlm-emd"},
        {"query_not_scaled", "13-v3-sift-sequence"},
        {"other_layers_weights", "15-v2-plain-absolute"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double worst = 0;
        const backward_fault *fault = backward_fault_find(cases[i].fault);
        const json_t *entry = json_object_get(manifest, cases[i].by);
        const bool caught = entry && notices(folder, cases[i].by, entry, fault, &worst);
        printf("%-6s %-24s by %s: %.3g of the bar's 4; %s\n", caught ? "caught" : "MISSED", fault->name, cases[i].by,
               worst, fault->description);
        *(caught ? &counts->passed : &counts->failed) += 1;
    }
}

static void check_median(tally *counts)
{
    if (counts->ratio_count == 0) return;
    sort_doubles(counts->ratios, counts->ratio_count);
    const double median = counts->ratios[counts->ratio_count / 2];
    const bool fine = median <= MEDIAN_RATIO;
    printf("%-6s median of %zu tensors: %.2f of float32 PyTorch's error or the floor (limit %.0f)\n",
           fine ? "ok" : "FAILED", counts->ratio_count, median, MEDIAN_RATIO);
    *(fine ? &counts->passed : &counts->failed) += 1;
}

typedef struct train_options {
    const char *folder, *only;
    bool mutate;
} train_options;

/* All cases of a folder; without: those of that manifest are left out. */
static json_t *run_folder(const char *folder, const char *only, const json_t *without, tally *counts)
{
    char path[1024];
    const char *name;
    json_t *entry;
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    json_t *manifest = json_load_file(path, 0, NULL);
    if (!manifest) {
        printf("FAILED %s cannot be read\n", path);
        counts->failed++;
    }
    json_object_foreach(manifest, name, entry)
    {
        const char *kind = json_string_value(json_object_get(entry, "kind"));
        if (!kind || (only && !strstr(name, only)) || json_object_get(without, name)) continue;
        if (strcmp(kind, "gradients") == 0) run_case(folder, name, entry, counts);
        if (strcmp(kind, "trajectory") == 0) run_trajectory(folder, name, entry, counts);
    }
    return manifest;
}

static void run_all(const train_options *options, tally *counts)
{
    const char *beside = getenv("DEBERTA_GOLDEN_TRAIN_BESIDE");
    json_t *manifest = run_folder(options->folder, options->only, NULL, counts);
    if (beside) {
        json_decref(run_folder(beside, options->only, manifest, counts));
    } else {
        printf("skipped the other cases: DEBERTA_GOLDEN_TRAIN_BESIDE does not name their folder\n");
        counts->skipped++;
    }
    if (!options->only) check_median(counts);
    json_decref(manifest);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"folder", 1, NULL, 'f'}, {"only", 1, NULL, 'o'}, {"mutate", 0, NULL, 'm'}, {0}};
    static tally counts;
    train_options options = {.folder = "tests/golden_train"};
    char path[1024];
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'f') options.folder = optarg;
        if (option == 'o') options.only = optarg;
        if (option == 'm') options.mutate = true;
        if (option == '?') return 2;
    }
    if (options.mutate) {
        snprintf(path, sizeof path, "%s/manifest.json", options.folder);
        json_t *manifest = json_load_file(path, 0, NULL);
        run_faults(options.folder, manifest, &counts);
        json_decref(manifest);
    } else {
        run_all(&options, &counts);
    }
    printf("%zu passed, %zu failed, %zu skipped\n", counts.passed, counts.failed, counts.skipped);
    return counts.failed || counts.passed == 0 ? 1 : 0;
}
