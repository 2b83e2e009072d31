/* Sums of attention by sentence, by hand. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"

#include "analysis/attention_spread.h"

enum { TOKENS = 4 };
static const unsigned char own[TOKENS] = {0, 1, 1, 0};

/* Everything is as even as can be, but token 1 looks at token 2 only. */
static const float probabilities[TOKENS * TOKENS] = {.25F, .25F, .25F, .25F, 0,    0,    1,    0,
                                                     .25F, .25F, .25F, .25F, .25F, .25F, .25F, .25F};
static const float c2c[TOKENS * TOKENS] = {9, 9, 9, 9, 9, 1, 3, 9, 9, 8, 2, 9, 9, 9, 9, 9};

static void fill(capture *captured, const deberta_model_info *model, const size_t *starts)
{
    assert_int_equal(capture_create(captured, model, starts, 1, NULL), DEBERTA_OK);
    captured->heads[0] = true;
    capture_want_everywhere(captured, DEBERTA_PROBABILITIES);
    capture_want_everywhere(captured, DEBERTA_C2C);
    assert_int_equal(capture_allocate(captured, NULL), DEBERTA_OK);
    for (size_t layer = 0; layer < 2; layer++) {
        memcpy(capture_matrix(captured, layer, 0, DEBERTA_PROBABILITIES, 0), probabilities, sizeof probabilities);
        memcpy(capture_matrix(captured, layer, 0, DEBERTA_C2C, 0), c2c, sizeof c2c);
    }
}

static void near(double found, double expected)
{
    if (fabs(found - expected) > 1e-6) fail_msg("found %g, expected %g", found, expected);
}

TEST(test_a_sentence)
{
    const deberta_model_info model = {.layers = 2, .heads = 1};
    const size_t starts[2] = {0, TOKENS};
    attention_spread spread;
    capture captured;
    fill(&captured, &model, starts);
    assert_int_equal(attention_spread_create(&spread, &model, 2, TOKENS - 1, NULL), DEBERTA_OK);
    assert_int_equal(attention_spread_add(&spread, 1, &captured, own, NULL), DEBERTA_OK);

    near(attention_spread_number(&spread, 1, 1, 0, SPREAD_ENTROPY), 2 + 0 + 2 + 2);
    near(attention_spread_number(&spread, 1, 1, 0, SPREAD_DISTANCE), 1.5 + 1 + 1 + 1.5);
    near(attention_spread_number(&spread, 1, 1, 0, SPREAD_OFFSET), -1.5 - 1 + 0.5 + 1.5);
    near(attention_spread_number(&spread, 0, 1, 0, SPREAD_ENTROPY), 0); /* the other sentence has nothing yet */

    /* Tokens 1 and 2 ask: 1 looks to the right, 2 at everything alike. */
    const double *places = attention_spread_places(&spread, 1, 0);
    near(places[share_distance_bin(-1)], 1);
    near(places[share_distance_bin(0)], 0.25);
    near(places[share_distance_bin(1)], 0.25);
    near(places[SPREAD_FRAME], 0.5);

    /* Own pairs only, and the row means over them (2 and 5) taken away. */
    const distance_sample *profile = attention_spread_profile(&spread, 1, DEBERTA_C2C);
    near(distance_sample_mean(profile, 0), (1 - 2 + 2 - 5) / 2.0);
    near(distance_sample_mean(profile, -1), 3 - 2);
    near(distance_sample_mean(profile, 1), 8 - 5);
    assert_true(isnan(distance_sample_mean(profile, 2)));
    near(distance_sample_mean(attention_spread_profile(&spread, 1, DEBERTA_PROBABILITIES), 0), 0.125);
    assert_true(isnan(distance_sample_mean(attention_spread_profile(&spread, 1, DEBERTA_P2C), 0)));

    attention_spread_free(&spread);
    capture_free(&captured);
}

TEST(test_names)
{
    char name[SHARE_NAME_BYTES];
    attention_spread_place_name(SPREAD_FRAME, name);
    assert_string_equal(name, "[CLS], [SEP]");
    attention_spread_place_name(share_distance_bin(1), name);
    assert_string_equal(name, "left 1");
}
