/* Every number of a trace against float64: the reference makes each patch by itself, one text at a time.
 *
 * The cases are drawn; TEST_SEED in the environment draws others, and a failure prints it.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "analysis/reference/reference.h"
#include "analysis/trace.h"
#include "core/base/numbers.h"

enum { MOST_TOKENS = 9, MOST_LAYERS = 3, MOST_HEADS = 4, VOCABULARY = 97, WIDEST = 64 };

/* The decoder, a convolution, no position terms, absolute positions at the input, classes. */
static const struct {
    const char *path;
    deberta_task task;
} cases[] = {
    {"synthetic:v3-base,layers=3,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
     DEBERTA_TASK_MLM_EMD},
    {"synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
     DEBERTA_TASK_MLM},
    {"synthetic:v2-xlarge,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1",
     DEBERTA_TASK_MLM},
    {"synthetic:v3-base,layers=2,hidden=56,heads=2,intermediate=64,vocab=97,terms=none,lm=1", DEBERTA_TASK_MLM},
    {"synthetic:v1-base,layers=2,hidden=48,heads=4,intermediate=64,vocab=97,distance=16,sequence=3",
     DEBERTA_TASK_SEQUENCE},
};

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 1;
}

typedef struct exact_work {
    reference_model *reference;
    const trace_options *options;
    const trace_report *report;
    reference_record record;
    const double *noise; /* [n][h] or NULL */
    double *hidden, *logits, *embedded;
    size_t width;
} exact_work;

/* The measure of one run, plain or with patches from the record. */
static double run_exact(exact_work *w, bool corrupted, reference_record *record, const deberta_patch *patches,
                        size_t count)
{
    const trace_options *o = w->options;
    const trace_answer *answer = &w->report->answer;
    int64_t ids[MOST_TOKENS];
    for (size_t t = 0; t < o->tokens; t++) ids[t] = (corrupted ? o->corrupted : o->clean)[t];
    reference_input input = {.tokens = o->tokens,
                             .ids = ids,
                             .record = record,
                             .patches = patches,
                             .patch_count = count,
                             .donor = &w->record};
    if (corrupted && w->noise) {
        assert_ok(reference_embedded(w->reference, &input, w->embedded, NULL));
        for (size_t k = 0; k < o->tokens * w->reference->config.hidden_size; k++) w->embedded[k] += w->noise[k];
        input.embedded = w->embedded;
    }
    assert_ok(reference_encode(w->reference, &input, w->hidden, NULL, NULL));
    assert_ok(reference_head_logits(w->reference, answer->task, &input, w->hidden, w->logits, NULL));
    const double *row = w->logits + (answer->task == DEBERTA_TASK_SEQUENCE ? 0 : answer->position) * w->width;
    if (answer->contrast >= 0) return row[answer->column] - row[answer->contrast];
    double sum = 0;
    for (size_t k = 0; k < w->width; k++) sum += exp(row[k] - row[answer->column]);
    return 1 / sum;
}

static void check(exact_work *w, const char *what, double found, const deberta_patch *patches, size_t count)
{
    const double expected = run_exact(w, !w->options->corrupts, NULL, patches, count);
    if (!(fabs(found - expected) < 2e-5 * fmax(1, fabs(expected))))
        fail_msg("%s of layer %zu, place %zu: %.9g, expected %.9g (seed %llu)", what, patches->layer, patches->index,
                 found, expected, (unsigned long long)first_seed());
}

static void compare(exact_work *w, const deberta_model_info *info)
{
    const trace_report *report = w->report;
    const bool decodes = w->options->answer.task == DEBERTA_TASK_MLM_EMD;
    const deberta_patch every[] = {
        {.place = DEBERTA_PATCH_TERM, .layer = DEBERTA_EVERY, .index = DEBERTA_EVERY, .term = DEBERTA_C2C},
        {.place = DEBERTA_PATCH_TERM, .layer = DEBERTA_EVERY, .index = DEBERTA_EVERY, .term = DEBERTA_C2P},
        {.place = DEBERTA_PATCH_TERM, .layer = DEBERTA_EVERY, .index = DEBERTA_EVERY, .term = DEBERTA_P2C},
        {.place = DEBERTA_PATCH_HEAD, .layer = DEBERTA_EVERY, .index = DEBERTA_EVERY}};
    const size_t layers = info->layers, heads = info->heads, n = w->options->tokens;
    assert_int_equal(report->states_end, layers + !decodes);
    for (size_t layer = 0; layer < report->states_end; layer++)
        for (size_t t = 0; t < n; t++)
            check(w, "states", report->states[layer * n + t],
                  &(deberta_patch){.place = DEBERTA_PATCH_STATE, .layer = layer, .index = t}, 1);
    for (size_t k = 0; k < layers * heads; k++) {
        deberta_patch patch = {.place = DEBERTA_PATCH_HEAD, .layer = k / heads, .index = k % heads};
        check(w, "heads", report->heads[k], &patch, 1);
        patch.place = DEBERTA_PATCH_TERM;
        for (; patch.term <= DEBERTA_P2C; patch.term++) {
            const double found = report->terms[(size_t)patch.term * layers * heads + k];
            const bool has = patch.term == DEBERTA_C2C || (patch.term == DEBERTA_C2P ? info->has_c2p : info->has_p2c);
            assert_true(has == !isnan(found));
            if (has) check(w, deberta_component_name(patch.term), found, &patch, 1);
        }
    }
    check(w, "all c2c", report->together[DEBERTA_C2C], &every[0], 1);
    check(w, "all terms", report->together[TOGETHER_TERMS], every, info->has_c2p ? 3 : 1);
    check(w, "all heads", report->together[TOGETHER_HEADS], &every[3], 1);
}

static void run_case(size_t number, uint64_t *random)
{
    const size_t n = 1 + random_below(random, MOST_TOKENS);
    int32_t clean[MOST_TOKENS], corrupted[MOST_TOKENS];
    bool all[MOST_LAYERS + MOST_HEADS], marked[MOST_TOKENS];
    float noise[MOST_TOKENS * WIDEST];
    double exact_noise[MOST_TOKENS * WIDEST];
    OWN_MODEL *model = open_model(cases[number].path);
    const deberta_model_info *info = deberta_model_describe(model);
    const bool noisy = random_below(random, 3) == 0;
    memset(all, 1, sizeof all);
    for (size_t t = 0; t < n; t++) {
        clean[t] = (int32_t)random_below(random, VOCABULARY);
        marked[t] = t == 0 || random_below(random, 2);
        corrupted[t] = marked[t] && !noisy ? (clean[t] + 1 + (int32_t)random_below(random, 90)) % VOCABULARY : clean[t];
    }
    if (noisy) assert_ok(trace_noise(noise, model, marked, n, 3, *random, NULL));
    for (size_t k = 0; k < n * info->hidden_size && noisy; k++) exact_noise[k] = (double)noise[k];
    trace_options options = {
        .model = model,
        .session = {.threads = 1 + random_below(random, 2),
                    .isa = random_below(random, 2) ? DEBERTA_ISA_AUTO : DEBERTA_ISA_SCALAR},
        .tokens = n,
        .clean = clean,
        .corrupted = corrupted,
        .noise = noisy ? noise : NULL,
        .answer = {cases[number].task, random_below(random, n), (int64_t)random_below(random, 3) - 1, 2},
        .parts = TRACE_STATES | TRACE_HEADS | TRACE_OF_TERMS,
        .layers = all,
        .heads = all,
        .corrupts = random_below(random, 2)};
    if (random_below(random, 2)) options.answer.contrast = TRACE_NO_CONTRAST;
    trace_report report;
    deberta_error error = {0};
    if (trace_measure(&report, &options, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    exact_work w = {.options = &options,
                    .report = &report,
                    .noise = noisy ? exact_noise : NULL,
                    .hidden = calloc((info->layers + 1) * n * info->hidden_size, sizeof(double)),
                    .embedded = calloc(n * info->hidden_size, sizeof(double)),
                    .width = deberta_task_width(model, cases[number].task)};
    w.logits = calloc(n * w.width, sizeof(double));
    assert_ok(reference_open(&w.reference, cases[number].path, info->reference, NULL));
    assert_ok(reference_record_make(&w.record, w.reference, n, NULL));
    const double giving = run_exact(&w, options.corrupts, &w.record, NULL, 0);
    assert_true(fabs(giving - (options.corrupts ? report.corrupted : report.clean)) < 2e-5 * fmax(1, fabs(giving)));
    compare(&w, info);
    reference_free(&w.reference);
    free(w.record.hidden);
    free(w.hidden);
    free(w.logits);
    free(w.embedded);
    scope_free(&report.memory);
}

TEST(test_traces_equal_float64)
{
    uint64_t random = first_seed();
    for (size_t k = 0; k < 2 * COUNT_OF(cases); k++) run_case(k % COUNT_OF(cases), &random);
}

/* Equal texts have nothing to bring back, whatever is asked. */
TEST(test_equal_texts_are_refused)
{
    static const int32_t ids[] = {5, 6, 7};
    static const bool all[] = {true, true, true, true};
    OWN_MODEL *model = open_model(cases[0].path);
    deberta_error error = {0};
    trace_report report;
    const trace_options options = {.model = model,
                                   .tokens = 3,
                                   .clean = ids,
                                   .corrupted = ids,
                                   .answer = {DEBERTA_TASK_MLM, 1, -1, TRACE_NO_CONTRAST},
                                   .parts = TRACE_STATES,
                                   .layers = all,
                                   .heads = all};
    check_refused(trace_measure(&report, &options, &error), &error, DEBERTA_E_FORMAT, "nearly the same answer");
    assert_true(report.clean == report.corrupted && report.clean > 0);
    scope_free(&report.memory);
}
