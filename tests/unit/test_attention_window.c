/* A hard window of keys: the whole formula where it is wide, nothing from outside where it is not.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "analysis/attention_window.h"
#include "include/deberta_unstable.h"

enum { N = 70, FIRST = 30 };

static const char v1[] = "synthetic:v1-base,layers=3,hidden=48,heads=4,intermediate=64,vocab=97,distance=16";
static const char v2[] =
    "synthetic:v2-xlarge,layers=3,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40";

static deberta_status poison(void *context, const deberta_hidden_edit *edit)
{
    const size_t token = *(const size_t *)context;
    assert_true(token < edit->tokens);
    for (size_t c = 0; c < edit->columns && edit->layer == 0; c++) edit->values[token * edit->stride + c] = NAN;
    return DEBERTA_OK;
}

/* Two sequences in a batch, the second of 40 tokens; the result must be freed. */
/* window: NULL for ordinary attention; poisoned: a token whose input is NaN, or NULL. */
static float *encode_windowed(const char *path, const key_window *window, size_t *poisoned, size_t *h)
{
    OWN_MODEL *model = open_model(path);
    OWN_SESSION *session = NULL;
    deberta_error error;
    const deberta_session_options options = {.struct_size = sizeof options, .max_tokens = N, .threads = 1};
    session_internal_options internal = {0};
    if (poisoned) internal.interventions.changes = (deberta_interventions){.edit_hidden = poison, .context = poisoned};
    const deberta_status status = window ? windowed_session_create(&session, model, &options, &internal, window, &error)
                                         : session_create_internal(&session, model, &options, &internal, &error);
    assert_ok(status);
    int32_t ids[N];
    for (int32_t t = 0; t < N; t++) ids[t] = (t * 37 + 11) % 97;
    const size_t starts[] = {0, FIRST, N};
    const deberta_batch batch = batch_of(ids, starts, 2);
    const deberta_outputs outputs = encode_batch(session, &batch);
    *h = deberta_model_describe(model)->hidden_size;
    float *copy = malloc(N * *h * sizeof *copy);
    assert_non_null(copy);
    copy_rows(copy, &outputs, 0, N, *h);
    return copy;
}

/* Wide open it is ordinary attention, in another order of summation. */
TEST(test_wide)
{
    const char *const paths[] = {v1, v2};
    const key_window wide = {.left = N, .right = N};
    for (size_t k = 0; k < 2; k++) {
        size_t h;
        FREED_BY(free_memory)
        float *plain = encode_windowed(paths[k], NULL, NULL, &h),
              *windowed = encode_windowed(paths[k], &wide, NULL, &h);
        for (size_t e = 0; e < N * h; e++) assert_true(fabsf(plain[e] - windowed[e]) < 2e-5f);
    }
}

static bool has_nan(const float *row, size_t h)
{
    for (size_t c = 0; c < h; c++)
        if (isnan(row[c])) return true;
    return false;
}

/* Three layers of a window from 2 to the right to 5 to the left: a NaN reaches exactly the sums, and no other sequence.
 */
TEST(test_reach)
{
    size_t at = 50, h;
    const key_window window = {.left = 5, .right = 2};
    FREED_BY(free_memory) float *hidden = encode_windowed(v1, &window, &at, &h);
    for (ptrdiff_t t = 0; t < N; t++) {
        const ptrdiff_t r = t - (ptrdiff_t)at;
        assert_int_equal(has_nan(hidden + (size_t)t * h, h), t >= FIRST && r <= 15 && -r <= 6);
    }
}

/* A set of rows: distances 0 and 3 only. */
TEST(test_rows)
{
    size_t at = 40, h;
    uint8_t rows[32] = {0};
    rows[16] = rows[16 + 3] = 1;
    const key_window window = {.left = N, .right = N, .rows = rows};
    FREED_BY(free_memory) float *hidden = encode_windowed(v1, &window, &at, &h);
    for (size_t t = 0; t < N; t++)
        assert_int_equal(has_nan(hidden + t * h, h), t >= at && t <= at + 9 && (t - at) % 3 == 0);
}

TEST(test_refused)
{
    OWN_MODEL *model = open_model(v1);
    deberta_session *session = NULL;
    const deberta_session_options options = {.struct_size = sizeof options, .features = DEBERTA_OBSERVE_ATTENTION};
    const key_window window = {0};
    assert_int_equal(windowed_session_create(&session, model, &options, NULL, &window, NULL), DEBERTA_E_UNSUPPORTED);
    assert_null(session);
}
