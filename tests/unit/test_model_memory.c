/* A model of weights in memory is the model of the file that they came from; only its word table is needed afterwards.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"
#include "tests/unit/model_helpers.h"

#include <math.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/io/checkpoint.h"
#include "include/deberta_unstable.h"

enum { MOST_TENSORS = 400 };

static const char *const cases[] = {"01-v1-both-n33",        "08-v1-talking-head", "11-v2-b4-n33-noshare",
                                    "22-v2-embedproj-types", "29-v3-seqcls",       "32-v3-mlm-legacy",
                                    "33-v3-mlm-emd",         "36-v3-rtd"};

/* A model's weights as a program has them. */
typedef struct memory_model {
    deberta_tensor tensors[MOST_TENSORS];
    size_t shapes[MOST_TENSORS][8], strides[MOST_TENSORS][8];
    float *values[MOST_TENSORS];
    char *names[MOST_TENSORS];
    size_t count;
    char *config;
} memory_model;

static char *read_text(const char *folder, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static const char *folder_of(const char *name)
{
    static char folder[600];
    char golden[512];
    snprintf(folder, sizeof folder, "%s/%s", golden_folder(golden), name);
    return folder;
}

/* All weights as float32 under the names that the file has, matrices transposed in memory: their strides say so. */
static void take_weights(memory_model *m, const char *folder)
{
    FREED_BY(checkpoint_close) checkpoint *files = NULL;
    deberta_error error;
    if (checkpoint_open(&files, folder, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    m->config = read_text(folder, "config.json");
    for (size_t i = 0; i < checkpoint_count(files); i++) {
        const tensor *stored = checkpoint_at(files, i);
        if (!dtype_is_floating(stored->dtype)) continue;
        const size_t k = m->count++, rows = stored->rank == 2 ? stored->shape[0] : 1, columns = stored->elements / rows;
        float *values = malloc((stored->elements + 1) * sizeof *values);
        m->values[k] = malloc((stored->elements + 1) * sizeof *values);
        m->names[k] = strdup(checkpoint_stored_name(stored));
        assert_ok(checkpoint_read_f32(files, stored, 0, stored->elements, values, NULL));
        for (size_t e = 0; e < stored->elements; e++) m->values[k][e % columns * rows + e / columns] = values[e];
        free(values);
        memcpy(m->shapes[k], stored->shape, stored->rank * sizeof(size_t));
        m->strides[k][0] = 1;
        m->strides[k][1] = rows;
        m->tensors[k] = (deberta_tensor){.name = m->names[k],
                                         .values = m->values[k],
                                         .rank = stored->rank,
                                         .shape = m->shapes[k],
                                         .strides = stored->rank == 2 ? m->strides[k] : NULL};
    }
}

static void free_weights(memory_model *m)
{
    for (size_t k = 0; k < m->count; k++) {
        free(m->values[k]);
        free(m->names[k]);
    }
    free(m->config);
    free(m);
}

/* What stays must be the only thing that is read later. */
static void spoil_all_but_tables(const memory_model *m)
{
    for (size_t k = 0; k < m->count; k++) {
        if (strstr(m->names[k], "word_embeddings") || strstr(m->names[k], "decoder.weight")) continue;
        size_t elements = 1;
        for (size_t d = 0; d < m->tensors[k].rank; d++) elements *= m->shapes[k][d];
        memset(m->values[k], 0xff, elements * sizeof(float));
    }
}

TEST(same_as_the_file)
{
    FOR_ROWS(i, cases) {
        deberta_error error;
        deberta_model *held = NULL;
        char expected[65], found[65];
        memory_model *m = calloc(1, sizeof *m);
        const char *folder = folder_of(cases[i]);
        take_weights(m, folder);
        OWN_MODEL *stored = open_model(folder);
        if (deberta_model_open_memory(&held, "held", m->config, m->tensors, m->count, NULL, &error) != DEBERTA_OK)
            fail_msg("%s: %s", cases[i], error.message);
        spoil_all_but_tables(m);
        results_digest(stored, DEBERTA_ISA_AUTO, 2, expected);
        results_digest(held, DEBERTA_ISA_AUTO, 2, found);
        if (strcmp(found, expected) != 0) fail_msg("%s: other results from memory than from the file", cases[i]);
        assert_string_equal(deberta_model_describe(held)->name, "held");
        assert_ok(deberta_model_digest(held, found, NULL));
        assert_string_equal(found, "");
        deberta_model_free(&held);
        free_weights(m);
    }
}

/* Every tensor of a layer comes back, but for those that are documented as folded; queries within the last place. */
TEST(weights_come_back)
{
    FOR_ROWS(i, cases) {
        size_t back = 0;
        deberta_error error;
        FREED_BY(checkpoint_close) checkpoint *files = NULL;
        const char *folder = folder_of(cases[i]);
        OWN_MODEL *model = open_model(folder);
        assert_ok(checkpoint_open(&files, folder, NULL));
        for (size_t k = 0; k < checkpoint_count(files); k++) {
            const tensor *stored = checkpoint_at(files, k);
            const bool in_layer = strstr(stored->name, "encoder.layer.") != NULL;
            if (!in_layer || !dtype_is_floating(stored->dtype)) continue;
            FREED_BY(free_memory)
            float *expected = malloc(stored->elements * sizeof(float)),
                  *found = calloc(stored->elements, sizeof(float));
            assert_ok(checkpoint_read_f32(files, stored, 0, stored->elements, expected, NULL));
            const deberta_status status =
                deberta_model_read_weight(model, stored->name, found, stored->elements, &error);
            const bool folded = strstr(stored->name, "self.pos_") || strstr(stored->name, "head_logits_proj") ||
                                strstr(stored->name, "head_weights_proj");
            assert_int_equal(status, folded ? DEBERTA_E_UNSUPPORTED : DEBERTA_OK);
            for (size_t e = 0; !folded && e < stored->elements; e++)
                if (fabsf(found[e] - expected[e]) > 1.2e-7f * fabsf(expected[e]))
                    fail_msg("%s: %s: value %zu is %g, expected %g", cases[i], stored->name, e, found[e], expected[e]);
            if (!folded) back++;
            if (!folded && !strstr(stored->name, "self."))
                assert_memory_equal(found, expected, stored->elements * sizeof(float));
        }
        assert_true(back > 10);
        float one;
        assert_int_equal(deberta_model_read_weight(model, "encoder.layer.0.output.dense.bias", &one, 1, &error),
                         DEBERTA_E_ARGUMENT);
        assert_int_equal(deberta_model_read_weight(model, "nothing", &one, 1, &error), DEBERTA_E_UNSUPPORTED);
    }
}

TEST(what_is_refused)
{
    static const size_t huge[2] = {SIZE_MAX / 2, 5}, other[2] = {3, 5};
    memory_model *m = calloc(1, sizeof *m);
    take_weights(m, folder_of("16-v3-b256-n33"));
    const deberta_tensor saved = m->tensors[0];
    deberta_tensor nameless = saved, broken_name = saved, same_name = saved, strange = saved, deep = saved,
                   empty = saved, large = saved, misshapen = saved;
    nameless.name = NULL;
    broken_name.name = "a\nb";
    same_name.name = m->names[1];
    strange.dtype = (deberta_dtype)9;
    deep.rank = 9;
    empty.values = NULL;
    large.shape = huge, large.rank = 2;
    misshapen.shape = other, misshapen.rank = 2;
    const struct {
        const char *name, *config;
        size_t count;
        deberta_tensor first;
        deberta_status status;
        const char *words;
    } cases[] = {{NULL, m->config, m->count, saved, DEBERTA_E_ARGUMENT, ""},
                 {"held", "{", m->count, saved, DEBERTA_E_FORMAT, "held"},
                 {"held", m->config, 0, saved, DEBERTA_E_FORMAT, "is missing"},
                 {"held", m->config, m->count, nameless, DEBERTA_E_ARGUMENT, "tensor 0 has no name"},
                 {"held", m->config, m->count, broken_name, DEBERTA_E_ARGUMENT, "control characters"},
                 {"held", m->config, m->count, same_name, DEBERTA_E_FORMAT, "is there twice"},
                 {"held", m->config, m->count, strange, DEBERTA_E_ARGUMENT, "has dtype 9"},
                 {"held", m->config, m->count, deep, DEBERTA_E_ARGUMENT, "has rank 9"},
                 {"held", m->config, m->count, empty, DEBERTA_E_ARGUMENT, "has no values"},
                 {"held", m->config, m->count, large, DEBERTA_E_ARGUMENT, "more than any memory"},
                 {"held", m->config, m->count, misshapen, DEBERTA_E_FORMAT, "held: tensor '"}};
    FOR_ROWS(i, cases) {
        deberta_error error = {0};
        deberta_model *model = (deberta_model *)m;
        m->tensors[0] = cases[i].first;
        check_refused(
            deberta_model_open_memory(&model, cases[i].name, cases[i].config, m->tensors, cases[i].count, NULL, &error),
            &error, cases[i].status, cases[i].words);
        assert_null(model);
    }
    m->tensors[0] = saved;
    free_weights(m);
}
