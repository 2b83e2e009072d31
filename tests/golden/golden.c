/* The library against the golden results, through its public API, on every tier that this machine has.
 *
 * A quantity passes if its largest difference from float64 is within three times what float32 transformers is off by
 * (bars.tsv; single samples of rounding noise), with a floor of 2e-6. Padding is not compared; components before the
 * softmax are, because small random weights would hide a wrong one in the probabilities.
 *
 *     golden [--folder DIR] [--beside DIR] [--isa a,b] [--threads N] [--only a,b] [--failures-only] [--mutate NAME]
 *
 * --only: cases whose names contain one of the texts. --beside: where the large case is, which the repository does not
 * hold; else the environment variable DEBERTA_GOLDEN_BESIDE says so.
 *
 * --mutate puts a deliberate fault into the model (core/model/mutation.h): then this program must fail. --mutate all
 * tries each fault in turn and fails if one is not noticed; --mutate list names them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/model/mutation.h"
#include "tests/golden/encode_case.h"
#include "tests/golden/pytorch_ratio.h"

static const double bar_factor = 3, bar_floor = 2e-6;
/* What the median of our errors over those of float32 PyTorch must not exceed. It is a guard against a worse
 * arithmetic: one value of one case is a single sample of rounding noise, the median of all is not. */
static const double ratio_limit = 1.1;

typedef struct settings {
    const char *folder, *beside, *only;
    model_mutation mutation;
    bool tiers[DEBERTA_ISA_COUNT];
    size_t threads;
    bool failures_only, silent;
} settings;

typedef struct tally {
    size_t passed, failed, skipped;
    double worst[DEBERTA_ISA_COUNT]; /* ratio to the bar */
    char worst_where[DEBERTA_ISA_COUNT][128];
    pytorch_ratios ratios[DEBERTA_ISA_COUNT];
} tally;

/* One case on one tier with one rule for far distances. */
typedef struct comparison {
    const settings *settings;
    const golden_case *item;
    const char *prefix; /* of the expected tensors: "" or "ms_clamp." */
    deberta_isa isa;
    ragged_batch batch;
    collected result;
    tally *tally;
    bool is_pytorchs; /* the bars are of these very expectations, not of the same weights in another format */
} comparison;

/* ------------------------------------------------------------------------------------------------------- * verdicts */

static void fail_case(tally *sum, const settings *s, const char *name, const char *text)
{
    if (!s->silent) printf("FAIL %-32s %s\n", name, text);
    sum->failed++;
}

/* bar: a member of the case's bars. */
static void judge(comparison *c, const char *quantity, double error, const double *bar_of)
{
    tally *sum = c->tally;
    const double listed = *bar_of;
    double bar = fmax(isnan(listed) ? 0 : bar_factor * listed, bar_floor), ratio = error / bar;
    bool good = ratio <= 1; /* NaN is not */
    if (!c->settings->silent && (!good || !c->settings->failures_only))
        printf("%-4s %-32s %-7s %-9s %-16s error %.2e  bar %.2e  ratio %.2f\n", good ? "ok" : "FAIL", c->item->name,
               deberta_isa_name(c->isa), c->prefix, quantity, error, bar, ratio);
    if (!(ratio <= sum->worst[c->isa])) {
        sum->worst[c->isa] = ratio;
        snprintf(sum->worst_where[c->isa], sizeof *sum->worst_where, "%s %s", c->item->name, quantity);
    }
    good ? sum->passed++ : sum->failed++;
    /* The sum of the components has no bar of its own. */
    if (c->is_pytorchs && strcmp(quantity, "logits") != 0)
        pytorch_ratios_add(&sum->ratios[c->isa], c->item->name, (size_t)(bar_of - &c->item->bars.hidden), listed,
                           error);
}

/* The larger of a and b; NaN if either is. */
static double larger(double a, double b) { return a >= b ? a : a < b ? b : NAN; }

/* ------------------------------------------------------------------------------------------------------ comparisons */

static const file_tensor *expect(const comparison *c, const char *name, size_t layer, const char *rest)
{
    return tensor_file_find(&c->item->expected, "%s%s.%zu%s", c->prefix, name, layer, rest);
}

static void compare_hidden(comparison *c)
{
    size_t h = c->result.info.hidden_size, N = c->item->columns;
    double worst = 0, observed_twice = 0;
    size_t compared = 0;
    for (size_t l = 0; l <= c->result.info.layers; l++) {
        const file_tensor *expected = expect(c, "hidden_states", l, "");
        for (size_t s = 0; expected && s < c->batch.sequences; s++) {
            for (size_t t = c->batch.starts[s]; t < c->batch.starts[s + 1]; t++) {
                if (!c->batch.mask[t]) continue;
                size_t column = c->batch.first_column[s] + t - c->batch.starts[s];
                const float *found = c->result.hidden + (l * c->result.tokens + t) * h;
                for (size_t e = 0; e < h; e++)
                    worst = larger(worst, fabs(found[e] - expected->values[(s * N + column) * h + e]));
            }
        }
        compared += expected != NULL;
    }
    for (size_t e = 0; e < c->result.tokens * h; e++) {
        const float *last = c->result.hidden + c->result.info.layers * c->result.tokens * h;
        observed_twice = larger(observed_twice, fabs((double)last[e] - (double)c->result.last_observed[e]));
    }
    judge(c, "hidden", compared ? worst : NAN, &c->item->bars.hidden);
    if (c->result.bad_block || observed_twice != 0)
        fail_case(c->tally, c->settings, c->item->name, "the observer was handed blocks that do not fit the batch");
}

static const char *const component_names[] = {".c2c", ".c2p", ".p2c", ".logits", ".probs"};

/* The expected [heads][N] of one query at a stride between heads, NULL if there is none. */
typedef struct expected_row {
    const double *values;
    size_t heads, head_stride;
} expected_row;

static expected_row find_row(const comparison *c, size_t layer, const char *component, size_t sequence, size_t column)
{
    size_t A = c->result.info.heads, N = c->item->columns;
    char rest[32];
    const file_tensor *found = expect(c, "attn", layer, component);
    if (found) return (expected_row){found->values + (sequence * A * N + column) * N, A, N * N};
    snprintf(rest, sizeof rest, "%s.head0", component);
    if ((found = expect(c, "attn", layer, rest)))
        return (expected_row){found->values + (sequence * N + column) * N, 1, N * N};
    snprintf(rest, sizeof rest, "%s.rows", component);
    const file_tensor *rows = tensor_file_find(&c->item->expected, "probs_rows");
    found = expect(c, "attn", layer, rest);
    for (size_t k = 0; found && rows && k < rows->elements; k++) {
        size_t R = rows->elements;
        if ((size_t)rows->values[k] == column)
            return (expected_row){found->values + (sequence * A * R + k) * N, A, R * N};
    }
    return (expected_row){0};
}

/* Rows of the terms that make up a component: itself, or for logits, which have no tensor of their own, all there are.
 */
static size_t find_terms(const comparison *c, size_t layer, deberta_component component, size_t sequence, size_t column,
                         expected_row terms[3])
{
    bool sum = component == DEBERTA_LOGITS;
    size_t first = sum ? DEBERTA_C2C : component, last = sum ? DEBERTA_P2C : component, count = 0;
    for (size_t part = first; part <= last; part++) {
        terms[count] = find_row(c, layer, component_names[part], sequence, column);
        if (terms[count].values) count++;
    }
    return count;
}

/* Largest error in one sequence, one layer; queries and keys that are real, and for probabilities 0 at holes too. */
static double compare_matrix(const comparison *c, size_t layer, deberta_component component, size_t s)
{
    size_t n = c->batch.starts[s + 1] - c->batch.starts[s], first = c->batch.first_column[s];
    const uint8_t *mask = c->batch.mask + c->batch.starts[s];
    const float *found = collected_attention(&c->result, layer, component, s);
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        expected_row terms[3];
        size_t count = mask[i] ? find_terms(c, layer, component, s, first + i, terms) : 0;
        if (count > 0 && !found) return NAN;
        for (size_t a = 0; count > 0 && a < terms[0].heads; a++) {
            for (size_t j = 0; j < n; j++) {
                if (!mask[j] && component != DEBERTA_PROBABILITIES) continue;
                double value = 0;
                for (size_t part = 0; part < count; part++)
                    value += terms[part].values[a * terms[part].head_stride + first + j];
                worst = larger(worst, fabs(found[(a * n + i) * n + j] - value));
            }
        }
    }
    return worst;
}

static int wants_expected(void *context, size_t layer, size_t head, deberta_component component)
{
    const comparison *c = context;
    char rest[32];
    const char *name = component_names[component == DEBERTA_LOGITS ? DEBERTA_C2C : component];
    snprintf(rest, sizeof rest, "%s.head0", name);
    if (expect(c, "attn", layer, rest)) return head == 0;
    snprintf(rest, sizeof rest, "%s.rows", name);
    return expect(c, "attn", layer, name) || expect(c, "attn", layer, rest);
}

static void compare_attention(comparison *c)
{
    for (size_t component = 0; component < DEBERTA_COMPONENT_COUNT; component++) {
        double worst = 0;
        bool compared = false;
        for (size_t l = 0; l < c->result.info.layers; l++) {
            if (!wants_expected(c, l, 0, (deberta_component)component)) continue;
            for (size_t s = 0; s < c->batch.sequences; s++)
                worst = larger(worst, compare_matrix(c, l, (deberta_component)component, s));
            compared = true;
        }
        bool probabilities = component == DEBERTA_PROBABILITIES;
        if (compared)
            judge(c, component_names[component] + 1, worst,
                  probabilities ? &c->item->bars.probabilities : &c->item->bars.components);
    }
}

static const double *head_bar(const golden_bars *bars, deberta_task head)
{
    return head == DEBERTA_TASK_MLM_EMD ? &bars->emd : head == DEBERTA_TASK_RTD ? &bars->rtd : &bars->logits;
}

static void compare_heads(comparison *c)
{
    for (size_t head = 0; head < DEBERTA_TASK_COUNT; head++) {
        char name[32];
        snprintf(name, sizeof name, "logits.%s", deberta_task_name((deberta_task)head));
        const file_tensor *expected = tensor_file_find(&c->item->expected, "%s%s", c->prefix, name);
        if (!expected) continue;
        bool per_sequence = head == DEBERTA_TASK_SEQUENCE;
        size_t width = expected->elements / (c->item->rows * (per_sequence ? 1 : c->item->columns));
        double worst = c->result.logits[head] && c->result.width[head] == width ? 0 : NAN;
        for (size_t s = 0; s < c->batch.sequences && !isnan(worst); s++) {
            size_t begin = per_sequence ? s : c->batch.starts[s], end = per_sequence ? s + 1 : c->batch.starts[s + 1];
            for (size_t t = begin; t < end; t++) {
                if (!per_sequence && !c->batch.mask[t]) continue;
                size_t row = per_sequence ? s : s * c->item->columns + c->batch.first_column[s] + t - begin;
                for (size_t w = 0; w < width; w++)
                    worst =
                        larger(worst, fabs(c->result.logits[head][t * width + w] - expected->values[row * width + w]));
            }
        }
        judge(c, name, worst, head_bar(&c->item->bars, (deberta_task)head));
    }
}

static unsigned expected_heads(const golden_case *item)
{
    unsigned heads = 0;
    for (size_t head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (tensor_file_find(&item->expected, "logits.%s", deberta_task_name((deberta_task)head))) heads |= 1u << head;
    }
    return heads;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

static void run_tier(comparison *c, const deberta_model *model)
{
    deberta_error error = {0};
    encode_request request = {.isa = c->isa,
                              .threads = c->settings->threads,
                              .observe_hidden = true,
                              .attention = {c, wants_expected},
                              .heads = expected_heads(c->item)};
    c->result.info = *deberta_model_describe(model); /* wants_expected is asked before there is a result */
    if (encode_and_collect(&c->result, model, &c->batch, &request, &error) != DEBERTA_OK) {
        fail_case(c->tally, c->settings, c->item->name, error.message);
        return;
    }
    compare_hidden(c);
    compare_attention(c);
    if (!*c->prefix) compare_heads(c);
    collected_free(&c->result);
}

static void run_variant(const settings *s, const golden_case *item, const char *prefix, deberta_reference reference,
                        bool is_pytorchs, tally *sum)
{
    deberta_error error = {0};
    deberta_model *model = NULL;
    deberta_model_options options = {.struct_size = sizeof options, .reference = reference};
    comparison c = {.settings = s, .item = item, .prefix = prefix, .tally = sum, .is_pytorchs = is_pytorchs};
    deberta_status status = model_open_mutated(&model, item->folder, &options, s->mutation, &error);
    if (status == DEBERTA_OK)
        status = ragged_create(&c.batch, item->rows, item->columns, item->ids, item->mask, item->types, &error);
    if (status != DEBERTA_OK) fail_case(sum, s, item->name, error.message);
    for (size_t isa = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && isa < DEBERTA_ISA_COUNT; isa++) {
        c.isa = (deberta_isa)isa;
        if (s->tiers[isa]) run_tier(&c, model);
    }
    ragged_free(&c.batch);
    deberta_model_free(&model);
}

/* bars_of: the case whose bars apply; NULL: its own. */
static void run_case(const settings *s, const char *folder, const char *name, const char *bars_of, tally *sum)
{
    golden_case item;
    deberta_error error = {0};
    char bars_path[600];
    snprintf(bars_path, sizeof bars_path, "%s/bars.tsv", s->folder);
    if (golden_case_read(&item, folder, name, bars_path, bars_of ? bars_of : name, &error) != DEBERTA_OK) {
        fail_case(sum, s, name, error.message);
        return;
    }
    /* Where distances reach M the references part; everywhere else both must give the same. */
    bool parted = golden_case_has(&item, "ms_clamp.");
    run_variant(s, &item, "", parted ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT, !bars_of, sum);
    if (parted) run_variant(s, &item, "ms_clamp.", DEBERTA_REFERENCE_MICROSOFT, false, sum);
    golden_case_free(&item);
}

/* Does the name contain one of the texts of --only? */
static bool is_wanted(const settings *s, const char *name)
{
    for (const char *text = s->only; text;) {
        size_t length = strcspn(text, ",");
        if (memmem(name, strlen(name), text, length)) return true;
        text = text[length] ? text + length + 1 : NULL;
    }
    return !s->only;
}

static void run_folder(const settings *s, bool formats, tally *sum)
{
    char **names, folder[600];
    deberta_error error = {0};
    snprintf(folder, sizeof folder, "%s%s", s->folder, formats ? "/formats" : "");
    if ((formats ? golden_list_formats : golden_list)(&names, s->folder, &error) != DEBERTA_OK) {
        fail_case(sum, s, folder, error.message);
        return;
    }
    for (size_t i = 0; names[i]; i++) {
        const char *bars_of = formats ? golden_format_source(names[i]) : NULL;
        if (is_wanted(s, names[i])) run_case(s, folder, names[i], bars_of, sum);
    }
    golden_list_free(&names);
}

static void run_large_case(const settings *s, tally *sum)
{
    const char *name = GOLDEN_LARGE_CASE;
    char path[600];
    snprintf(path, sizeof path, "%s/%s/expected.safetensors", s->beside ? s->beside : "", name);
    if (!is_wanted(s, name)) return;
    if (s->beside && access(path, R_OK) == 0) {
        run_case(s, s->beside, name, NULL, sum);
    } else {
        if (!s->silent) printf("skip %s: %s\n", name, s->beside ? "not in the folder of --beside" : "needs --beside");
        sum->skipped++;
    }
}

/* Over all cases, or the median says little. */
static void judge_ratios(const settings *s, tally *sum)
{
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        const pytorch_ratios *ratios = &sum->ratios[isa];
        const double median = pytorch_ratios_quantile(ratios, 0.5);
        if (!s->tiers[isa] || s->silent || s->only) continue;
        printf("%s: error over that of float32 PyTorch in %zu results: median %.2f (limit %.2f), 90 %% below %.2f, "
               "largest %.2f\n",
               deberta_isa_name((deberta_isa)isa), ratios->count, median, ratio_limit,
               pytorch_ratios_quantile(ratios, 0.9), pytorch_ratios_quantile(ratios, 1));
        if (median <= ratio_limit)
            sum->passed++;
        else
            fail_case(sum, s, "median", "errors are larger than PyTorch's");
    }
}

static tally run_all(const settings *s)
{
    tally sum = {0};
    run_folder(s, false, &sum);
    run_folder(s, true, &sum);
    run_large_case(s, &sum);
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT && !s->silent; isa++) {
        if (s->tiers[isa])
            printf("%s: worst ratio to the bar %.2f (%s)\n", deberta_isa_name((deberta_isa)isa), sum.worst[isa],
                   sum.worst_where[isa]);
    }
    judge_ratios(s, &sum);
    return sum;
}

/* ------------------------------------------------------------------------------------------------------ * mutations */

/* Every fault must be noticed by some case; all cases run, so that one sees by how much. On one tier: the fault is not
 * in kernels. */
static tally run_mutations(settings s)
{
    tally sum = {0};
    deberta_isa isa = deberta_isa_best();
    s.silent = true;
    s.beside = NULL;
    memset(s.tiers, 0, sizeof s.tiers);
    s.tiers[isa] = true;
    for (size_t i = MUTATION_NONE; i < MUTATION_COUNT; i++) {
        s.mutation = (model_mutation)i;
        tally one = run_all(&s);
        bool good = i == MUTATION_NONE ? one.failed == 0 : one.failed > 0;
        printf("%-4s %-24s %3zu of %zu results off, worst %.1e of the bar (%s): %s\n", good ? "ok" : "FAIL",
               mutation_name(s.mutation), one.failed, one.passed + one.failed, one.worst[isa], one.worst_where[isa],
               mutation_description(s.mutation));
        good ? sum.passed++ : sum.failed++;
    }
    return sum;
}

static void list_mutations(void)
{
    for (size_t i = MUTATION_NONE + 1; i < MUTATION_COUNT; i++)
        printf("%s %s\n", mutation_name((model_mutation)i), mutation_description((model_mutation)i));
}

/* ------------------------------------------------------------------------------------------------------------- main */

/* NULL list: every tier; one that is missing here is reported and counted as skipped. */
static bool choose_tiers(settings *s, const char *list, tally *sum)
{
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        const char *name = deberta_isa_name((deberta_isa)isa), *missing = deberta_isa_missing((deberta_isa)isa);
        const char *found = list ? strstr(list, name) : NULL;
        size_t length = strlen(name);
        if (list && (!found || (found[length] && found[length] != ','))) continue;
        if (missing) {
            printf("skip tier %s: %s\n", name, missing);
            sum->skipped++;
        }
        s->tiers[isa] = !missing;
    }
    bool any = false;
    for (size_t isa = 0; isa < DEBERTA_ISA_COUNT; isa++) any = any || s->tiers[isa];
    return any;
}

int main(int argc, char **argv)
{
    settings s = {.folder = "tests/golden", .beside = getenv("DEBERTA_GOLDEN_BESIDE"), .threads = 2};
    const char *tiers = NULL, *fault = "none";
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--failures-only") == 0) {
            s.failures_only = true;
            continue;
        }
        if (strcmp(argv[i], "--folder") == 0)
            s.folder = value;
        else if (strcmp(argv[i], "--beside") == 0)
            s.beside = value;
        else if (strcmp(argv[i], "--only") == 0)
            s.only = value;
        else if (strcmp(argv[i], "--isa") == 0)
            tiers = value;
        else if (strcmp(argv[i], "--threads") == 0)
            s.threads = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--mutate") == 0)
            fault = value;
        else
            return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
        i++;
    }
    bool all = strcmp(fault, "all") == 0;
    if (strcmp(fault, "list") == 0) return list_mutations(), 0;
    s.mutation = all ? MUTATION_NONE : mutation_from_name(fault);
    if (s.mutation == MUTATION_COUNT) return fprintf(stderr, "unknown mutation %s\n", fault), 2;
    tally tiers_skipped = {0};
    if (!choose_tiers(&s, tiers, &tiers_skipped)) return fprintf(stderr, "no tier to test\n"), 2;
    tally sum = all ? run_mutations(s) : run_all(&s);
    printf("%zu passed, %zu failed, %zu skipped\n", sum.passed, sum.failed, sum.skipped + tiers_skipped.skipped);
    return sum.failed > 0 || sum.passed == 0; /* having compared nothing is no success */
}
