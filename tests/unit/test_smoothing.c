/* Low precision of a model with outliers, channels of the hidden states that are far larger than the others: as near to
 * float32 as that of other models, and far from it where they are not evened out.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "check/mutation.h"
#include "core/base/numbers.h"
#include "core/dispatch.h"
#include "core/load/model.h"
#include "core/load/smoothing.h"
#include "core/load/synthetic.h"
#include "include/deberta_unstable.h"

#define SHAPE "synthetic:v3-base,layers=4,hidden=256,heads=4,intermediate=1024,vocab=300,buckets=32"
enum { TOKENS = 48, HIDDEN = 256 };

typedef struct states {
    float value[TOKENS][HIDDEN];
} states;

static int32_t id_of(int token) { return 1 + token * 37 % 299; }

static void encode_watched(states *found, const char *path, deberta_precision precision, const mutation *fault,
                           const deberta_interventions *watcher)
{
    OWN_MODEL *model = NULL;
    int32_t ids[TOKENS];
    const size_t starts[] = {0, TOKENS};
    const deberta_model_options options = {.struct_size = sizeof options, .precision = precision};
    const deberta_batch batch = batch_of(ids, starts, 1);
    for (int k = 0; k < TOKENS; k++) ids[k] = id_of(k);
    assert_ok(model_open_mutated(&model, path, &options, fault, NULL));
    OWN_SESSION *session = open_session_with(model, (deberta_session_options){.max_tokens = TOKENS, .threads = 1});
    assert_ok(deberta_session_intervene(session, watcher, NULL));
    const deberta_outputs outputs = encode_batch(session, &batch);
    copy_rows(found->value[0], &outputs, 0, TOKENS, HIDDEN);
}

static void encode_states(states *found, const char *path, deberta_precision precision, const mutation *fault)
{
    encode_watched(found, path, precision, fault, NULL);
}

static int in_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the channels that are no outliers: these would drown the others. The median of tokens: a channel of 60 times is
 * nearly all of a token and has one of two values, and a token between the two may come out on either side. */
static double relative_error(const states *found, const states *exact, size_t outliers)
{
    const synthetic_weights made = {.config.hidden_size = HIDDEN, .outliers = (uint16_t)outliers};
    double errors[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) {
        double difference = 0, size = 0;
        for (size_t j = 0; j < HIDDEN; j++) {
            const double want = (double)exact->value[i][j], d = (double)found->value[i][j] - want;
            if (synthetic_is_outlier(&made, j)) continue;
            difference += d * d;
            size += want * want;
        }
        errors[i] = sqrt(difference / size);
    }
    qsort(errors, TOKENS, sizeof *errors, in_order);
    return errors[TOKENS / 2];
}

/* Bars: about twice what is found. Without smoothing errors are at least `lost` times as large. */
static const struct {
    const char *path;
    size_t outliers;
    double bar[DEBERTA_PRECISION_COUNT], lost;
} models[] = {
    {SHAPE, 0, {0, 4e-4, 4e-2}, 0},
    {SHAPE ",outliers=6", 6, {0, 2e-4, 2e-2}, 4},
    {SHAPE ",outliers=1,outlier_size=60", 1, {0, 1e-4, 6e-3}, 8},
};

TEST(outliers_are_evened_out)
{
    FREED_BY(free_memory) states *exact = malloc(sizeof *exact), *found = malloc(sizeof *found);
    assert_non_null(exact);
    assert_non_null(found);
    FOR_ROWS(k, models) {
        if (getenv("DEBERTA_TEST_QUICK") && !k) continue; /* nothing to even out */
        encode_states(exact, models[k].path, DEBERTA_PRECISION_FLOAT32, NULL);
        for (int p = DEBERTA_PRECISION_INT16; p < DEBERTA_PRECISION_COUNT; p++) {
            encode_states(found, models[k].path, (deberta_precision)p, NULL);
            const double smoothed = relative_error(found, exact, models[k].outliers);
            encode_states(found, models[k].path, (deberta_precision)p, &mutation_unsmoothed);
            const double unsmoothed = relative_error(found, exact, models[k].outliers);
            print_message("%s, %s: relative error %.1e, %.1e without smoothing\n", models[k].path,
                          deberta_precision_name((deberta_precision)p), smoothed, unsmoothed);
            assert_true(smoothed > 0 && smoothed < models[k].bar[p]);
            assert_true(unsmoothed > models[k].lost * smoothed);
        }
    }
}

/* A channel of a layer's activation that is large at one token, and 0 at all others, as trained models have it: its
 * weights are that token's hidden state less the mean of all, its bias keeps the others below 0. The cases are drawn;
 * TEST_SEED in the environment draws others, and a failure prints it. */
enum { SPIKED_LAYERS = 4, SPIKED_CHANNELS = 1024, SPIKED_WEIGHT = 1, SPIKED_BIAS = 2 };
static const float spike_gain = 60, spike_threshold = -500;

typedef struct spike {
    size_t layer, channel, token;
    float weights[HIDDEN];
} spike;

static spike drawn_spike; /* a mutation's function is given the model alone */

/* Sees the hidden states that the layer reads, and leaves them as they are. */
static deberta_status take_direction(void *context, const deberta_hidden_edit *edit)
{
    spike *found = context;
    double mean[HIDDEN] = {0}, square = 0;
    if (edit->layer != found->layer) return DEBERTA_OK;
    for (size_t i = 0; i < edit->tokens; i++)
        for (size_t j = 0; j < HIDDEN; j++) mean[j] += (double)edit->values[i * edit->stride + j] / TOKENS;
    for (size_t j = 0; j < HIDDEN; j++) {
        found->weights[j] = edit->values[found->token * edit->stride + j] - (float)mean[j];
        square += (double)found->weights[j] * (double)found->weights[j];
    }
    for (size_t j = 0; j < HIDDEN; j++) found->weights[j] *= spike_gain / (float)sqrt(square);
    return DEBERTA_OK;
}

static bool find_spiked(const void *context, const char *name, weight_tensor *found)
{
    const deberta_model *model = context;
    char wanted[64];
    if (!model->files.find(model->files.context, name, found)) return false;
    snprintf(wanted, sizeof wanted, "encoder.layer.%zu.intermediate.dense.", drawn_spike.layer);
    if (strncmp(name, wanted, strlen(wanted)) == 0)
        found->mark = strcmp(name + strlen(wanted), "bias") == 0 ? SPIKED_BIAS : SPIKED_WEIGHT;
    return true;
}

static deberta_status read_spiked(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const weight_source *files = &((const deberta_model *)context)->files;
    const size_t width = from->mark == SPIKED_WEIGHT ? HIDDEN : 1, at = drawn_spike.channel * width;
    DEBERTA_TRY(files->read(files->context, from, first, count, values, err));
    for (size_t k = 0; from->mark && k < width; k++)
        if (at + k >= first && at + k < first + count)
            values[at + k - first] = from->mark == SPIKED_BIAS ? spike_threshold : drawn_spike.weights[k];
    return DEBERTA_OK;
}

static void put_spike(deberta_model *model)
{
    model->source =
        (weight_source){.context = model, .name = model->files.name, .find = find_spiked, .read = read_spiked};
}

static double error_of_token(const states *found, const states *exact, size_t token)
{
    double difference = 0, size = 0;
    for (size_t j = 0; j < HIDDEN; j++) {
        const double want = (double)exact->value[token][j], d = (double)found->value[token][j] - want;
        difference += d * d;
        size += want * want;
    }
    return sqrt(difference / size);
}

/* What the products before and after a spike may be crossed with: talking heads, a convolution, narrow embeddings,
 * heads narrower than a panel, absolute positions, a model without positions in its scores. */
static const char *const spiked_models[] = {
    "v3-base",
    "v1-base,distance=32",
    "v2-xlarge,convolution=3",
    "v3-base,embedding=64",
    "v3-base,heads=32,biased=1",
    "v2-xlarge,convolution=5,embedding=48,terms=none",
};

/* The token with the spike keeps its digits: its error is that of all tokens, give or take. */
TEST(spikes_keep_their_digits)
{
    static const mutation spiked = {"spiked", "an activation that is large at one token", put_spike};
    const char *given = getenv("TEST_SEED");
    const unsigned long long seed = given ? strtoull(given, NULL, 10) : 1;
    uint64_t random = seed;
    FREED_BY(free_memory)
    states *exact = malloc(sizeof *exact), *found = malloc(sizeof *found), *plain = malloc(sizeof *plain);
    assert_non_null(exact);
    assert_non_null(found);
    assert_non_null(plain);
    FOR_ROWS(m, spiked_models) {
        if (getenv("DEBERTA_TEST_QUICK") && m % 2) continue;
        const deberta_interventions look = {.context = &drawn_spike, .edit_hidden = take_direction};
        char path[160];
        snprintf(path, sizeof path, "synthetic:%s,layers=%d,hidden=%d%s,intermediate=%d,vocab=300,seed=%zu",
                 spiked_models[m], SPIKED_LAYERS, HIDDEN, strstr(spiked_models[m], "heads=") ? "" : ",heads=4",
                 SPIKED_CHANNELS, random_below(&random, 1000));
        drawn_spike = (spike){.layer = random_below(&random, SPIKED_LAYERS),
                              .channel = random_below(&random, SPIKED_CHANNELS),
                              .token = random_below(&random, TOKENS)};
        encode_watched(plain, path, DEBERTA_PRECISION_FLOAT32, NULL, &look);
        encode_states(exact, path, DEBERTA_PRECISION_FLOAT32, &spiked);
        if (!(error_of_token(exact, plain, drawn_spike.token) > 0.5))
            fail_msg("%s: no spike at token %zu, layer %zu (TEST_SEED=%llu)", path, drawn_spike.token,
                     drawn_spike.layer, seed);
        for (int p = DEBERTA_PRECISION_INT16; p < DEBERTA_PRECISION_COUNT; p++) {
            encode_states(found, path, (deberta_precision)p, &spiked);
            const double at = error_of_token(found, exact, drawn_spike.token), others = relative_error(found, exact, 0);
            print_message("%s, %s, layer %zu: relative error %.1e at the spike, %.1e elsewhere\n", path,
                          deberta_precision_name((deberta_precision)p), drawn_spike.layer, at, others);
            if (!(at < 4 * others))
                fail_msg("%s, layer %zu, token %zu: digits lost (TEST_SEED=%llu)", path, drawn_spike.layer,
                         drawn_spike.token, seed);
        }
    }
}

/* Channels are as large as they are said to be: of each kind, the root mean square in the last hidden states. */
TEST(outliers_are_large)
{
    const synthetic_weights made = {.config.hidden_size = HIDDEN, .outliers = 6};
    FREED_BY(free_memory) states *found = malloc(sizeof *found);
    double squares[2] = {0, 0};
    assert_non_null(found);
    encode_states(found, SHAPE ",outliers=6", DEBERTA_PRECISION_FLOAT32, NULL);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t j = 0; j < HIDDEN; j++)
            squares[synthetic_is_outlier(&made, j)] += (double)found->value[i][j] * (double)found->value[i][j];
    assert_true(sqrt(squares[1] / 6) > 20 * sqrt(squares[0] / (HIDDEN - 6)));
}

/* ------------------------------------------------------------------------------------------------------------ spreads */

enum { CHANNELS = 4 };

static void check_spread(const channel_spread *found, const double mean[CHANNELS], const double deviation[CHANNELS])
{
    for (size_t j = 0; j < CHANNELS; j++) {
        assert_float_equal(found->mean[j], mean[j], 1e-5);
        assert_float_equal(found->deviation[j], deviation[j], 1e-5);
    }
}

/* A row of the sum has the mean 2.5 over its channels; its square about that is that of the means, 5 / 4, and of the
 * deviations, 25 each. gamma is also negative: a deviation is not. */
TEST(spread_of_a_normed_sum)
{
    float mean[CHANNELS] = {0, 1, 2, 3}, deviation[CHANNELS] = {3, 3, 3, 3};
    float more_mean[CHANNELS] = {1, 1, 1, 1}, more_deviation[CHANNELS] = {4, 4, 4, 4};
    const float gamma[CHANNELS] = {1, -2, 3, 0.5f}, beta[CHANNELS] = {10, 20, 30, 40};
    const channel_spread hidden = {mean, deviation}, added = {more_mean, more_deviation};
    const double scale = 1 / sqrt(5.0 / 4 + 25 + 2.25);
    spread_of_sum_norm(&hidden, &added, gamma, beta, 2.25, CHANNELS);
    check_spread(&hidden,
                 (const double[]){10 - 1.5 * scale, 20 + 2 * 0.5 * scale, 30 + 3 * 0.5 * scale, 40 + 0.5 * 1.5 * scale},
                 (const double[]){5 * scale, 10 * scale, 15 * scale, 2.5 * scale});
    spread_of_norm(&hidden, gamma, beta, CHANNELS);
    check_spread(&hidden, (const double[]){10, 20, 30, 40}, (const double[]){1, 2, 3, 0.5});
    spread_of_unknown(&hidden, CHANNELS);
    check_spread(&hidden, (const double[]){0, 0, 0, 0}, (const double[]){1, 1, 1, 1});
}

/* More outputs than are summed at once, of rows with a gap. */
TEST(spread_of_a_product)
{
    enum { OUTPUTS = 6, GAP = 2, FIRST = 1 };
    float mean[CHANNELS] = {1, 2, 3, 4}, deviation[CHANNELS] = {1, 2, 0, 2};
    float out_mean[FIRST + OUTPUTS + 1] = {0}, out_deviation[FIRST + OUTPUTS + 1] = {0};
    float w[OUTPUTS][CHANNELS + GAP], bias[OUTPUTS];
    const channel_spread inputs = {mean, deviation}, output = {out_mean, out_deviation};
    for (size_t i = 0; i < OUTPUTS; i++) {
        const float factor = (float)(i + 1), row[CHANNELS] = {2, -1, 5, 2};
        for (size_t j = 0; j < CHANNELS + GAP; j++) w[i][j] = j < CHANNELS ? factor * row[j] : NAN;
        bias[i] = 0.5f * factor;
    }
    spread_of_outputs(&output, FIRST, OUTPUTS, w[0], CHANNELS + GAP, bias, &inputs, CHANNELS);
    for (size_t i = 0; i < OUTPUTS; i++) {
        const double factor = (double)(i + 1);
        assert_float_equal(out_mean[FIRST + i], factor * (0.5 + 2 - 2 + 15 + 8), 1e-6);
        assert_float_equal(out_deviation[FIRST + i], factor * sqrt(4 + 4 + 16), 1e-5);
    }
    assert_float_equal(out_mean[0], 0, 0);
    assert_float_equal(out_mean[FIRST + OUTPUTS], 0, 0);
}

/* The definition, a term at a time: the sums have its bits, whatever is left over of outputs and inputs. */
TEST(spreads_of_products_are_summed_in_order)
{
    enum { MOST_OUTPUTS = 9, MOST_INPUTS = 11 };
    uint64_t state = 20261;
    for (size_t outputs = 1; outputs <= MOST_OUTPUTS; outputs++)
        for (size_t inputs = 0; inputs <= MOST_INPUTS; inputs++) {
            float w[MOST_OUTPUTS * MOST_INPUTS], bias[MOST_OUTPUTS], mean[MOST_INPUTS], deviation[MOST_INPUTS];
            float out_mean[MOST_OUTPUTS], out_deviation[MOST_OUTPUTS];
            for (size_t k = 0; k < outputs * inputs; k++)
                w[k] = ldexpf((float)(random_fraction(&state) - 0.5), (int)random_below(&state, 60) - 30);
            for (size_t i = 0; i < outputs; i++) bias[i] = (float)(random_fraction(&state) - 0.5);
            for (size_t j = 0; j < inputs; j++) {
                mean[j] = (float)(random_fraction(&state) - 0.5);
                deviation[j] = (float)random_fraction(&state);
            }
            spread_of_outputs(&(channel_spread){out_mean, out_deviation}, 0, outputs, w, inputs, bias,
                              &(channel_spread){mean, deviation}, inputs);
            for (size_t i = 0; i < outputs; i++) {
                double sum = (double)bias[i], squares = 0;
                for (size_t j = 0; j < inputs; j++) {
                    const double weight = (double)w[i * inputs + j], d = weight * (double)deviation[j];
                    sum += weight * (double)mean[j];
                    squares += d * d;
                }
                assert_true(out_mean[i] == (float)sum && out_deviation[i] == (float)sqrt(squares));
            }
        }
}

/* Of max(x, 0) where x is normal: five points of a function with a corner, so within a few hundredths; exactly where
 * the corner is far. */
TEST(spread_of_an_activation)
{
    kernels table;
    float mean[CHANNELS] = {0, 100, -100, 0}, deviation[CHANNELS] = {1, 2, 3, 10};
    const channel_spread spread = {mean, deviation};
    assert_ok(kernels_select(&table, DEBERTA_ISA_SCALAR, NULL));
    spread_activate(&spread, &table, ACTIVATION_RELU, CHANNELS);
    assert_float_equal(mean[0], 1 / sqrt(2 * acos(-1)), 0.07);
    assert_float_equal(deviation[0], sqrt(0.5 - 1 / (2 * acos(-1))), 0.07);
    assert_float_equal(mean[1], 100, 1e-4);
    assert_float_equal(deviation[1], 2, 1e-3);
    assert_float_equal(mean[2], 0, 0);
    assert_float_equal(deviation[2], 0, 0);
    assert_float_equal(mean[3], 10 * (double)mean[0], 1e-5);
    assert_float_equal(deviation[3], 10 * (double)deviation[0], 1e-5);
}

TEST(factors_of_channels)
{
    float mean[CHANNELS] = {-1, 0, 10, 0}, deviation[CHANNELS] = {1, 2, 30, 0}, weights[CHANNELS] = {4, 6, 0, 1},
          factors[CHANNELS], amplitudes[CHANNELS];
    const channel_spread inputs = {mean, deviation};
    usual_amplitudes(amplitudes, &inputs, CHANNELS);
    smoothing_factors(factors, weights, amplitudes, CHANNELS);
    assert_float_equal(factors[0], 1, 1e-6);                        /* 4 over 1 + 3 * 1 */
    assert_float_equal(factors[1], 1, 1e-6);                        /* 6 over 3 * 2 */
    assert_float_equal(factors[2], sqrt(6.0 / 4096 / 100), 1e-7);   /* a weight counts as a 4096th of the largest */
    assert_float_equal(factors[3], sqrt(1 / (100.0 / 4096)), 1e-5); /* and so does an amplitude */
    const float nothing[CHANNELS] = {0};
    smoothing_factors(factors, weights, nothing, CHANNELS);
    for (size_t j = 0; j < CHANNELS; j++) assert_float_equal(factors[j], 1, 0);
}

/* Of sums of 16 inputs: 4 deviations to either side, through the activation. */
TEST(largest_values_of_channels)
{
    float mean[CHANNELS] = {-1, 0, 10, -9}, deviation[CHANNELS] = {1, 2, 30, 1}, amplitudes[CHANNELS];
    kernels table;
    assert_ok(kernels_select(&table, DEBERTA_ISA_SCALAR, NULL));
    largest_amplitudes(amplitudes, &(channel_spread){mean, deviation}, &table, ACTIVATION_RELU, CHANNELS, 16);
    assert_float_equal(amplitudes[0], 3, 1e-6);
    assert_float_equal(amplitudes[1], 8, 1e-6);
    assert_float_equal(amplitudes[2], 130, 1e-4);
    assert_float_equal(amplitudes[3], 0, 0);
    largest_amplitudes(amplitudes, &(channel_spread){mean, deviation}, &table, ACTIVATION_TANH, CHANNELS, 16);
    assert_float_equal(amplitudes[3], 1, 1e-6); /* what is far below 0 counts as well */
}
