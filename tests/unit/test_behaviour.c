/* Behavioural tests of the receptive field: right models pass, wrong ones do not. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "analysis/behaviour.h"
#include "check/mutation.h"

static const char v1[] =
    "synthetic:v1-base,layers=4,hidden=48,heads=4,intermediate=64,vocab=97,distance=12,biased=1,positions=40,types=2";
static const char v2[] =
    "synthetic:v2-xlarge,layers=4,hidden=64,heads=2,intermediate=64,vocab=97,buckets=32,distance=80";
static const char c2p[] =
    "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=32,distance=80,terms=c2p";

static behaviour_options options_for(const char *model)
{
    return (behaviour_options){.of = {.model = model, .threads = 1, .seed = 1}, .most_layers = 2, .most_tokens = 600};
}

static size_t failures_of(const behaviour_options *options, size_t *tests, size_t *skipped)
{
    behaviour_report report = {0};
    deberta_error error = {0};
    const deberta_status status = behaviour_run(&report, options, &error);
    if (status != DEBERTA_OK) fprintf(stderr, "%s\n", error.message);
    assert_ok(status);
    size_t failures = 0;
    *skipped = 0;
    for (size_t k = 0; k < report.count; k++) {
        failures += !report.tests[k].passed;
        *skipped += report.tests[k].skipped != NULL;
    }
    assert_int_equal(failures, report.failures);
    *tests = report.count;
    scope_free(&report.memory);
    return failures;
}

TEST(test_right_models)
{
    const char *const models[] = {v1, v2, c2p};
    for (size_t k = 0; k < 3; k++)
        for (int reference = 0; reference < 2; reference++) {
            behaviour_options options = options_for(models[k]);
            size_t tests, skipped;
            options.of.reference = reference ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
            assert_int_equal(failures_of(&options, &tests, &skipped), 0);
            assert_true(tests > 15);
            assert_int_equal(skipped, 0);
        }
}

TEST(test_four_layers)
{
    behaviour_options options = options_for(v2);
    size_t tests, skipped;
    options.most_layers = 4;
    assert_int_equal(failures_of(&options, &tests, &skipped), 0);
    assert_int_equal(skipped, 0);
}

/* Each makes rows differ from what the algebra counts with. */
TEST(test_wrong_models)
{
    const char *const wrong[] = {"sign", "no_clamp", "bucket_shift"};
    FOR_ROWS(k, wrong) {
        behaviour_options options = options_for(v1);
        size_t tests, skipped;
        options.decorate = mutation_find(wrong[k])->apply;
        assert_true(failures_of(&options, &tests, &skipped) > 0);
    }
}

TEST(test_no_room)
{
    behaviour_options options = options_for(v2);
    size_t tests, skipped;
    options.most_tokens = 60;
    assert_int_equal(failures_of(&options, &tests, &skipped), 0);
    assert_true(skipped > 0 && skipped < tests);
}

/* Two keys on one side need a text up to the farther one, and no more. */
TEST(test_room_on_one_side)
{
    behaviour_options options = options_for(v2);
    const char name[] = "distinct_left_inside_run";
    for (int pass = 0; pass < 3; pass++) {
        behaviour_report report = {0};
        size_t k = 0;
        assert_ok(behaviour_run(&report, &options, NULL));
        while (k < report.count && strcmp(report.tests[k].name, name) != 0) k++;
        assert_true(k < report.count);
        assert_int_equal(report.tests[k].skipped != NULL, pass == 2);
        assert_string_equal(report.tests[k].numbers[1].name, "second_distance");
        options.most_tokens = (size_t)report.tests[k].numbers[1].value + (pass == 0);
        scope_free(&report.memory);
    }
}

/* Stored weights of the golden cases: a convolution, separate position projections, talking heads, which windows leave
 * out. */
TEST(test_stored_models)
{
    const struct {
        const char *folder;
        bool windows;
    } cases[] = {{"01-v1-both-n33", true},
                 {"20-v2-conv-gelu-b3", true},
                 {"11-v2-b4-n33-noshare", true},
                 {"08-v1-talking-head", false}};
    const char *golden = getenv("DEBERTA_GOLDEN");
    FOR_ROWS(k, cases) {
        char path[512];
        size_t tests, skipped;
        snprintf(path, sizeof path, "%s/%s", golden ? golden : "tests/golden", cases[k].folder);
        const behaviour_options options = options_for(path);
        assert_int_equal(failures_of(&options, &tests, &skipped), 0);
        assert_int_equal(skipped > 0, !cases[k].windows);
        assert_true(tests > skipped + 5);
    }
}

TEST(test_names_are_unique)
{
    const behaviour_options options = options_for(v2);
    behaviour_report report = {0};
    assert_ok(behaviour_run(&report, &options, NULL));
    for (size_t a = 0; a < report.count; a++)
        for (size_t b = 0; b < a; b++) assert_string_not_equal(report.tests[a].name, report.tests[b].name);
    scope_free(&report.memory);
}
