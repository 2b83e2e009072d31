/* What a term is worth: against values worked out by hand, and the properties that define the measures.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "analysis/attention_terms.h"
#include "core/base/numbers.h"

static attention_term_effects measure(const logit_terms *terms)
{
    attention_term_effects effects;
    attention_term_effects_measure(&effects, terms);
    return effects;
}

/* Two keys. c2c and c2p both say 3 : 1, together 9 : 1; each alone is KL((.9, .1) || (.75, .25)) = 0.104538 bits away.
 */
TEST(test_agreeing_terms)
{
    const float a = logf(3), say[] = {a, 0, 0, a};
    const logit_terms terms = {.term = {say, say, NULL}, .tokens = 2};
    const attention_term_effects effects = measure(&terms);
    for (size_t t = 0; t < 2; t++) {
        assert_close(effects.variance_share[t], 0.5, 1e-5);
        assert_close(effects.kl_without[t], 0.104538, 1e-5);
        assert_close(effects.shapley[t], 0.531004 / 2, 1e-5);
    }
    assert_close(effects.variance_share[2], 0, 1e-5);
    assert_close(effects.kl_without[2], 0, 1e-5);
    assert_close(effects.shapley[2], 0, 1e-5);
    assert_close(effects.kl_uniform, 0.531004, 1e-5); /* 1 - H(0.9) */
}

/* c2c says 9 : 1, p2c 1 : 3, together 3 : 1. w(c2c) = 0.055515, w(p2c) = -0.603760, w(both) = 1 - H(0.75) = 0.188722.
 */
TEST(test_opposing_terms)
{
    const float a = logf(3), strong[] = {2 * a, 0, 0, 2 * a}, against[] = {-a, 0, 0, -a};
    const logit_terms terms = {.term = {strong, NULL, against}, .tokens = 2};
    const attention_term_effects effects = measure(&terms);
    assert_close(effects.variance_share[0], 2, 1e-5);
    assert_close(effects.variance_share[2], -1, 1e-5);
    assert_close(effects.kl_without[0], 0.792481, 1e-5); /* log2(3) / 2 */
    assert_close(effects.kl_without[2], 0.133206, 1e-5);
    assert_close(effects.shapley[0], (0.055515 + 0.188722 + 0.603760) / 2, 1e-5);
    assert_close(effects.shapley[2], (-0.603760 + 0.188722 - 0.055515) / 2, 1e-5);
    assert_close(effects.kl_uniform, 0.188722, 1e-5);
}

enum { N = 5 };

static void make_terms(float term[ATTENTION_TERMS][N * N])
{
    uint64_t seed = 1;
    for (size_t t = 0; t < ATTENTION_TERMS; t++)
        for (size_t k = 0; k < N * N; k++) {
            term[t][k] = (float)(2 * random_fraction(&seed) - 1);
        }
}

TEST(test_sums)
{
    float term[ATTENTION_TERMS][N * N];
    make_terms(term);
    const logit_terms terms = {.term = {term[0], term[1], term[2]}, .tokens = N};
    const attention_term_effects effects = measure(&terms);
    double share = 0, bits = 0;
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        share += effects.variance_share[t];
        bits += effects.shapley[t];
        assert_true(effects.kl_without[t] > 0);
    }
    assert_close(share, 1, 1e-5);
    assert_close(bits, effects.kl_uniform, 1e-5);
}

/* Neither what is constant along a row nor a masked token counts. */
TEST(test_what_does_not_count)
{
    float term[ATTENTION_TERMS][N * N], moved[ATTENTION_TERMS][(N + 1) * (N + 1)];
    unsigned char mask[N + 1];
    make_terms(term);
    for (size_t i = 0; i <= N; i++) mask[i] = i != 2;
    for (size_t t = 0; t < ATTENTION_TERMS; t++)
        for (size_t i = 0; i <= N; i++)
            for (size_t j = 0; j <= N; j++) {
                const float constant = 0.25f * (float)(i + t);
                moved[t][i * (N + 1) + j] =
                    mask[i] && mask[j] ? term[t][(i - (i > 2)) * N + j - (j > 2)] + constant : 50;
            }
    const logit_terms plain = {.term = {term[0], term[1], term[2]}, .tokens = N},
                      masked = {.term = {moved[0], moved[1], moved[2]}, .tokens = N + 1, .mask = mask};
    const attention_term_effects a = measure(&plain), b = measure(&masked);
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        assert_close(b.variance_share[t], a.variance_share[t], 1e-5);
        assert_close(b.kl_without[t], a.kl_without[t], 1e-5);
        assert_close(b.shapley[t], a.shapley[t], 1e-5);
    }
}

TEST(test_change)
{
    const float a = logf(3), strong[] = {2 * a, 0, 0, 0}, against[] = {-a, 0, 0, 0};
    const unsigned char first[] = {1, 0};
    float change[4];
    logit_terms terms = {.term = {strong, NULL, against}, .tokens = 2};
    attention_term_change(change, &terms, 0);
    assert_close(change[0], 0.75 - 0.25, 1e-5); /* 3 : 1 with, 1 : 3 without c2c */
    assert_close(change[1], 0.25 - 0.75, 1e-5);
    assert_close(change[2], 0, 1e-5);
    attention_term_change(change, &terms, 1);
    assert_close(change[0], 0, 1e-5);
    terms.mask = first;
    attention_term_change(change, &terms, 0);
    assert_close(change[0], 0, 1e-5); /* the only key has 1 in any case */
    assert_close(change[1], 0, 1e-5);
}
