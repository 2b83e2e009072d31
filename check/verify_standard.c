/* Verifies small made-up models that between them use every part of the engine. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "check/verify.h"
#include "core/base/numbers.h"
#include "core/base/status.h"

/* v1 with clamped distances, types and absolute positions; v2 with convolution; v3 with log buckets beyond their range
 * and both language-model heads. Then a model with texts that end at a tile or chunk, or one beside; and one text of a
 * single repeated token, in which all content terms tie. */
enum { MOST_LENGTHS = 40, EVERYWHERE_SAME = 1, VOCABULARY = 97 };
static const struct {
    const char *label, *path;
    unsigned flags;
    size_t lengths[MOST_LENGTHS]; /* lengths, which end with 0 */
} standard_models[] = {
    {"v1",
     "synthetic:v1-base,layers=2,hidden=96,heads=4,intermediate=200,vocab=97,distance=16,positions=64,types=2,biased=1",
     0,
     {41}},
    {"v2",
     "synthetic:v2-xlarge,layers=2,hidden=128,heads=2,intermediate=256,vocab=97,buckets=16,distance=40,epsilon=3",
     0,
     {70}},
    {"v3",
     "synthetic:v3-base,layers=3,hidden=192,heads=3,intermediate=384,vocab=97,buckets=32,distance=100,lm=1,rtd=1",
     0,
     {140}},
    {"edges",
     "synthetic:v3-base,layers=1,hidden=40,heads=2,intermediate=60,vocab=97,buckets=16,distance=64,rtd=1",
     0,
     {1,  2,  15, 16, 17, 23, 24,  25,  31,  32,  33,  47,  48,  49,
      63, 64, 65, 95, 96, 97, 125, 126, 127, 128, 129, 511, 512, 513}},
    {"ties",
     "synthetic:v1-base,layers=2,hidden=64,heads=2,intermediate=100,vocab=97,distance=16,positions=64",
     EVERYWHERE_SAME,
     {1, 17, 60}},
};
enum { STANDARD_MODELS = sizeof standard_models / sizeof *standard_models, ONE_TEXT_MODELS = 3 };

void verify_make_ids(int32_t *ids, size_t tokens, size_t vocabulary, uint64_t seed)
{
    for (size_t t = 0; t < tokens; t++) ids[t] = (int32_t)random_below(&seed, vocabulary);
}

deberta_status verify_sequences(verify_report *report, const verify_options *options, const char *path,
                                const char *label, const int32_t *ids, const size_t *starts, size_t sequences,
                                deberta_error *err)
{
    DEBERTA_TRY(verify_model(report, options, path, label, ids, starts, sequences, err));
    for (size_t s = 0; s < sequences && !options->mutation; s++)
        DEBERTA_TRY(verify_invariance(report, options, path, label, ids + starts[s], starts[s + 1] - starts[s], err));
    return DEBERTA_OK;
}

static deberta_status verify_one(verify_report *report, const verify_options *options, size_t k, deberta_error *err)
{
    size_t starts[MOST_LENGTHS + 1] = {0}, count = 0;
    for (; count < MOST_LENGTHS && standard_models[k].lengths[count]; count++)
        starts[count + 1] = starts[count] + standard_models[k].lengths[count];
    int32_t *ids = memory_take(starts[count], sizeof *ids);
    verify_make_ids(ids, starts[count], VOCABULARY, options->seed + k);
    for (size_t t = 1; standard_models[k].flags & EVERYWHERE_SAME && t < starts[count]; t++) ids[t] = ids[0];
    const deberta_status status =
        verify_sequences(report, options, standard_models[k].path, standard_models[k].label, ids, starts, count, err);
    free(ids);
    return status;
}

deberta_status verify_standard(verify_report *report, const verify_options *options, deberta_error *err)
{
    /* A fault shows in the first three models, or in none. */
    const size_t count = !options->mutation ? STANDARD_MODELS : ONE_TEXT_MODELS;
    for (size_t k = 0; k < count; k++) DEBERTA_TRY(verify_one(report, options, k, err));
    return DEBERTA_OK;
}
