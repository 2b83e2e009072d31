/* The library against the golden results, through its public API, on every tier that this machine has.
 *
 * A quantity passes if its largest difference from float64 is within three times what float32 transformers is off by
 * (bars.tsv; single samples of rounding noise), with a floor of 2e-6. Padding is not compared; components before the
 * softmax are, because small random weights would hide a wrong one in the probabilities.
 *
 * Its bits are compared with bits.tsv as well, which is the same for every tier, compiler and architecture: a result of
 * this release can be repeated anywhere, and with the next release (golden_bits.h).
 *
 *     golden [--folder DIR] [--beside DIR] [--isa a,b] [--threads N] [--only a,b] [--failures-only] [--stand-ins]
 *            [--update-bits | --damage-bits | --mutate NAME]
 *
 * --only: cases whose names contain one of the texts. --beside: where the large case is, which the repository does not
 * hold; else the environment variable DEBERTA_GOLDEN_BESIDE says so.
 *
 * --stand-ins: low precision alone, multiplied by kernels for AVX-VNNI and AMX with stand-ins for their instructions.
 *
 * --update-bits writes bits.tsv anew, if all tiers here agree and all errors are within their bars. --damage-bits flips
 * one bit of each quantity, and fails if one is not noticed.
 *
 * --mutate puts a deliberate fault into the model (check/mutation.h): then this program must fail. --mutate all
 * tries each fault in turn and fails if one is not noticed; --mutate list names them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/golden/compare_case.h"
#include "tests/stand_ins/stand_ins.h"

/* What the median of our errors over those of float32 PyTorch must not exceed. It is a guard against a worse
 * arithmetic: one value of one case is a single sample of rounding noise, the median of all is not. */
static const double ratio_limit = 1.1;

/* ------------------------------------------------------------------------------------------------------------ cases */

static int wants_all(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context, (void)layer, (void)head, (void)component;
    return 1;
}

/* The one of a tier, or NULL. */
static kernels_change stand_in_of(deberta_isa isa)
{
#if HAVE_AVX2
    if (isa == DEBERTA_ISA_AVX2) return kernels_init_avxvnni_stand_in;
#endif
#if HAVE_AVX512
    if (isa == DEBERTA_ISA_AVX512) return kernels_init_avx512amx_stand_in;
#endif
    (void)isa;
    return NULL;
}

static void run_tier(comparison *c, const deberta_model *model)
{
    deberta_error error = {0};
    encode_request request = {.isa = c->isa,
                              .threads = c->settings->threads,
                              .observe_hidden = true,
                              .attention = {NULL, wants_all},
                              .heads = (1u << DEBERTA_TASK_COUNT) - 1,
                              .replace = c->settings->stand_ins ? stand_in_of(c->isa) : NULL};
    if (encode_and_collect(&c->result, model, &c->batch, &request, &error) != DEBERTA_OK) {
        fail_case(c->tally, c->settings, c->item->name, error.message);
        return;
    }
    compare_case(c);
    collected_free(&c->result);
}

/* Under an emulator plain C leaves out the longest texts, where another tier takes them: it takes twice as long as a
 * vector tier, and what it gives for them is compared natively. */
static bool is_too_long_for(const settings *s, deberta_isa isa, const golden_case *item)
{
    enum { LONG = 512 };
    size_t others = 0;
    for (size_t k = DEBERTA_ISA_SCALAR + 1; k < DEBERTA_ISA_COUNT; k++) others += s->tiers[k];
    return getenv("DEBERTA_TEST_QUICK") && isa == DEBERTA_ISA_SCALAR && item->columns > LONG && others > 0;
}

/* A case with one rule for far distances, in one precision. */
static void run_precision(const settings *s, const golden_case *item, const char *prefix,
                          const deberta_model_options *given, bool is_pytorchs, tally *sum)
{
    deberta_error error = {0};
    deberta_model *model = NULL;
    deberta_model_options options = *given;
    comparison c = {.settings = s,
                    .item = item,
                    .prefix = prefix,
                    .precision = options.precision,
                    .tally = sum,
                    .is_pytorchs = is_pytorchs};
    deberta_status status = model_open_mutated(&model, item->folder, &options, s->mutation, &error);
    if (status == DEBERTA_OK)
        status = ragged_create(&c.batch, item->rows, item->columns, item->ids, item->mask, item->types, &error);
    if (status != DEBERTA_OK) fail_case(sum, s, item->name, error.message);
    for (size_t isa = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && isa < DEBERTA_ISA_COUNT; isa++) {
        c.isa = (deberta_isa)isa;
        if (s->tiers[isa] && !is_too_long_for(s, c.isa, item)) run_tier(&c, model);
    }
    ragged_free(&c.batch);
    deberta_model_free(&model);
}

/* Under an emulator, which takes minutes for what takes a second, low precision is a sample of the cases. */
static bool has_low_precision(const settings *s, const char *name)
{
    enum { EVERY = 4 };
    if (s->bits == BITS_IGNORED) return false; /* mutations are found in float32 */
    return !getenv("DEBERTA_TEST_QUICK") || strtoul(name, NULL, 10) % EVERY == 1;
}

static void run_variant(const settings *s, const golden_case *item, const char *prefix, deberta_reference reference,
                        bool is_pytorchs, tally *sum)
{
    const int last = has_low_precision(s, item->name) ? DEBERTA_PRECISION_COUNT - 1 : DEBERTA_PRECISION_FLOAT32;
    for (int precision = s->stand_ins ? DEBERTA_PRECISION_INT16 : 0; precision <= last; precision++) {
        const deberta_model_options options = {
            .struct_size = sizeof options, .reference = reference, .precision = (deberta_precision)precision};
        run_precision(s, item, prefix, &options, is_pytorchs, sum);
    }
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
    if (getenv("DEBERTA_TEST_QUICK") &&
        !s->only) { /* minutes under an emulator; the nightly stage neon-whole asks for it */
        if (!s->silent) printf("skip %s: left out of a sample\n", name);
        sum->skipped++;
    } else if (s->beside && access(path, R_OK) == 0) {
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
        if (!s->tiers[isa] || s->silent || s->only || s->stand_ins) continue;
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

/* A line that no case gives belongs to a case or a quantity that is gone. */
static void judge_unseen_bits(const settings *s, tally *sum)
{
    for (size_t i = 0; s->bits == BITS_COMPARED && !s->only && i < s->frozen->count; i++) {
        const bits_line *line = &s->frozen->lines[i];
        if (line->seen || strcmp(line->name, GOLDEN_LARGE_CASE) == 0) continue;
        const bool low = strncmp(line->quantity, "int", 3) == 0;
        if (low ? !has_low_precision(s, line->name) : s->stand_ins) continue;
        char text[96];
        snprintf(text, sizeof text, "nothing gives the %s of its line in bits.tsv", line->quantity);
        fail_case(sum, s, line->name, text);
    }
}

static tally run_all(const settings *s)
{
    tally sum = {0};
    run_folder(s, false, &sum);
    run_folder(s, true, &sum);
    run_large_case(s, &sum);
    judge_unseen_bits(s, &sum);
    if (s->bits == BITS_DAMAGED) return sum;
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT && !s->silent; isa++) {
        if (s->tiers[isa])
            printf("%s: worst ratio to the bar %.2f (%s)\n", deberta_isa_name((deberta_isa)isa), sum.worst[isa],
                   sum.worst_where[isa]);
    }
    judge_ratios(s, &sum);
    return sum;
}

/* Cases that did not run keep their lines. */
static void update_bits(const settings *s, const char *path, tally *sum)
{
    deberta_error error = {0};
    if (sum->failed > 0) {
        printf("%s: not written, something failed\n", path);
    } else if (bits_file_write(s->frozen, path, s->only != NULL, &error) != DEBERTA_OK) {
        fail_case(sum, s, "bits.tsv", error.message);
    } else {
        printf("%s: written\n", path);
    }
}

static tally run_with_bits(settings s)
{
    bits_file frozen = {0};
    deberta_error error = {0};
    char path[600];
    tally sum = {0};
    snprintf(path, sizeof path, "%s/bits.tsv", s.folder);
    s.frozen = &frozen;
    const bool missing = s.bits == BITS_TAKEN && access(path, F_OK) != 0;
    if (!missing && bits_file_read(&frozen, path, &error) != DEBERTA_OK) {
        fail_case(&sum, &s, "bits.tsv", error.message);
    } else {
        sum = run_all(&s);
        if (s.bits == BITS_TAKEN) update_bits(&s, path, &sum);
    }
    bits_file_free(&frozen);
    return sum;
}

/* ------------------------------------------------------------------------------------------------------ * mutations */

/* fault: NULL for the engine as it is, which must pass. */
static void run_mutation(settings s, const mutation *fault, deberta_isa isa, tally *sum)
{
    s.mutation = fault;
    tally one = run_all(&s);
    bool good = fault ? one.failed > 0 : one.failed == 0;
    printf("%-4s %-24s %3zu of %zu results off, worst %.1e of the bar (%s): %s\n", good ? "ok" : "FAIL",
           fault ? fault->name : "none", one.failed, one.passed + one.failed, one.worst[isa], one.worst_where[isa],
           fault ? fault->description : "the engine as it is");
    good ? sum->passed++ : sum->failed++;
}

static deberta_isa choose_best_tier(settings *s)
{
    const deberta_isa isa = deberta_isa_best();
    memset(s->tiers, 0, sizeof s->tiers);
    s->tiers[isa] = true;
    return isa;
}

/* Every fault must be noticed by some case; all cases run, so that one sees by how much. On one tier: the fault is not
 * in kernels. */
static tally run_mutations(settings s)
{
    tally sum = {0};
    const deberta_isa isa = choose_best_tier(&s);
    s.silent = true;
    s.beside = NULL;
    run_mutation(s, NULL, isa, &sum);
    for (const mutation *m = mutation_list(); m->name; m++) run_mutation(s, m, isa, &sum);
    return sum;
}

static void list_mutations(void)
{
    for (const mutation *m = mutation_list(); m->name; m++) printf("%s %s\n", m->name, m->description);
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
    for (size_t isa = 0; isa < DEBERTA_ISA_COUNT; isa++) {
        if (s->stand_ins && !stand_in_of((deberta_isa)isa)) s->tiers[isa] = false;
        any = any || s->tiers[isa];
    }
    return any;
}

typedef struct arguments {
    const char *tiers, *fault;
} arguments;

/* False after saying which option is unknown. */
static bool parse(settings *s, arguments *more, int argc, char **argv)
{
    const struct {
        const char *name, **value;
    } texts[] = {{"--folder", &s->folder},
                 {"--beside", &s->beside},
                 {"--only", &s->only},
                 {"--isa", &more->tiers},
                 {"--mutate", &more->fault}};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        size_t k = 0;
        while (k < sizeof texts / sizeof *texts && strcmp(argv[i], texts[k].name) != 0) k++;
        if (k < sizeof texts / sizeof *texts)
            *texts[k].value = value, i++;
        else if (strcmp(argv[i], "--threads") == 0)
            s->threads = strtoul(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--stand-ins") == 0)
            s->stand_ins = true;
        else if (strcmp(argv[i], "--failures-only") == 0)
            s->failures_only = true;
        else if (strcmp(argv[i], "--update-bits") == 0)
            s->bits = BITS_TAKEN;
        else if (strcmp(argv[i], "--damage-bits") == 0)
            s->bits = BITS_DAMAGED;
        else
            return fprintf(stderr, "unknown option %s\n", argv[i]), false;
    }
    return true;
}

int main(int argc, char **argv)
{
    settings s = {
        .folder = "tests/golden", .beside = getenv("DEBERTA_GOLDEN_BESIDE"), .threads = 2, .bits = BITS_COMPARED};
    arguments more = {.fault = "none"};
    if (!parse(&s, &more, argc, argv)) return 2;
    bool all = strcmp(more.fault, "all") == 0;
    if (strcmp(more.fault, "list") == 0) return list_mutations(), 0;
    s.mutation = mutation_find(more.fault);
    if (!s.mutation && !all && strcmp(more.fault, "none") != 0)
        return fprintf(stderr, "unknown mutation %s\n", more.fault), 2;
    if (all || s.mutation) s.bits = BITS_IGNORED; /* every bit differs, the question is by how much */
    tally tiers_skipped = {0};
    if (!choose_tiers(&s, more.tiers, &tiers_skipped)) {
        fprintf(stderr, "no tier to test\n");
        return s.stand_ins ? 77 /* meson: skipped */ : 2;
    }
    if (s.bits == BITS_DAMAGED) choose_best_tier(&s); /* a line is compared with in one way, whatever the tier */
    tally sum = all ? run_mutations(s) : s.bits == BITS_IGNORED ? run_all(&s) : run_with_bits(s);
    printf("%zu passed, %zu failed, %zu skipped\n", sum.passed, sum.failed, sum.skipped + tiers_skipped.skipped);
    return sum.failed > 0 || sum.passed == 0; /* having compared nothing is no success */
}
