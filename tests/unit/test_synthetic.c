/* Made-up models: their names, their weights' reproducibility and scale, and loading them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/unit/test.h"

#include "core/load/model.h"
#include "core/load/synthetic.h"

TEST(names)
{
    static const char *const good[] = {
        "synthetic:v3-base",
        "synthetic:v1-large,layers=2",
        "synthetic:v2-xlarge,hidden=64,heads=4,intermediate=32,vocab=9",
        "synthetic:v3-small,terms=none,biased=1,types=2,positions=64,distance=32,buckets=16,seed=7,lm=1,rtd=1",
        "synthetic:v3-base,outliers=64,outlier_size=1",
        "synthetic:v1-xlarge,embedding=128,sequence=3,qa=1",
        "synthetic:v2-xxlarge,heads=8,token=2,heads=all",
    };
    static const char *const bad[] = {
        "synthetic:",
        "synthetic:v9",
        "synthetic:v3-base,",
        "synthetic:v3-base,layers",
        "synthetic:v3-base,layers=",
        "synthetic:v3-base,layers=x",
        "synthetic:v3-base,layers=1x",
        "synthetic:v3-base,layers=-1",
        "synthetic:v3-base,layers=99999999999999999999",
        "synthetic:v3-base,size=3",
        "synthetic:v3-base,heads=7",
        "synthetic:v3-base,layers=0",
        "synthetic:v3-base,terms=p2p",
        "synthetic:v3-base,buckets=1",
        "synthetic:v3-base,outliers=65",
        "synthetic:v3-base,hidden=48,heads=4,outliers=49",
        "synthetic:v3-base,outliers=6,outlier_size=0",
        "synthetic:v3-base,heads=al",
        "synthetic:v3-base,heads=all2",
        "synthetic:v3-base,sequence=all",
        "synthetic:v3-base,sequence=1,token=1",
        "synthetic:v3-base,token=1048577",
    };
    assert_true(synthetic_names("synthetic:x"));
    assert_false(synthetic_names("models/synthetic:x"));
    FOR_ROWS(i, good) {
        FREED_BY(config_free) model_config config;
        synthetic_weights weights;
        assert_ok(synthetic_parse(&config, &weights, good[i], NULL));
    }
    FOR_ROWS(i, bad) {
        FREED_BY(config_free) model_config config;
        synthetic_weights weights;
        deberta_error error = {0};
        assert_int_not_equal(synthetic_parse(&config, &weights, bad[i], &error), DEBERTA_OK);
        assert_non_null(strstr(error.message, bad[i]));
        /* one that went wrong, such as a number beyond all, has no consequence for the next */
        assert_ok(synthetic_parse(&config, &weights, good[1], NULL));
    }
}

typedef struct made {
    model_config config;
    synthetic_weights weights;
    weight_source source;
} made;

static void make(made *m, const char *path)
{
    assert_ok(synthetic_parse(&m->config, &m->weights, path, NULL));
    m->source = weight_source_of_synthetic(&m->weights, path);
}

static void read_values(const made *m, const char *name, size_t first, size_t count, float *values)
{
    weight_tensor found;
    assert_true(m->source.find(m->source.context, name, &found));
    assert_ok(m->source.read(m->source.context, &found, first, count, values, NULL));
}

/* Any stretch, read alone, is what it is as part of a longer one: also across v1's rows of different scale. */
TEST(any_stretch_is_the_same)
{
    enum { COUNT = 700 };
    static const char *const tensors[] = {"embeddings.word_embeddings.weight",
                                          "encoder.layer.1.attention.self.in_proj.weight"};
    made m;
    float whole[COUNT], piece[COUNT];
    make(&m, "synthetic:v1-base,layers=2,hidden=24,heads=2,intermediate=12,vocab=100");
    for (size_t t = 0; t < 2; t++) {
        read_values(&m, tensors[t], 0, COUNT, whole);
        for (size_t first = 0; first < 100; first += 9) {
            for (size_t count = 0; count < 90; count += 11) {
                read_values(&m, tensors[t], first, count, piece);
                assert_memory_equal(piece, whole + first, count * sizeof *piece);
            }
        }
    }
    config_free(&m.config);
}

TEST(seeds_and_names_differ)
{
    made one, two;
    float a[8], b[8];
    make(&one, "synthetic:v3-small");
    make(&two, "synthetic:v3-small,seed=2");
    read_values(&one, "encoder.layer.0.output.dense.weight", 0, 8, a);
    read_values(&two, "encoder.layer.0.output.dense.weight", 0, 8, b);
    assert_memory_not_equal(a, b, sizeof a);
    read_values(&one, "encoder.layer.1.output.dense.weight", 0, 8, b);
    assert_memory_not_equal(a, b, sizeof a);
    weight_tensor found;
    assert_false(one.source.find(one.source.context, "encoder.layer.6.output.dense.weight", &found));
    assert_false(one.source.find(one.source.context, "encoder.layer.0.attention.self.in_proj.weight", &found));
    assert_false(one.source.find(one.source.context, "lm_predictions.lm_head.dense.weight", &found));
    config_free(&one.config);
    config_free(&two.config);
}

static double deviation(const made *m, const char *name, size_t count, double mean)
{
    FREED_BY(free_memory) float *values = malloc(count * sizeof *values);
    double sum = 0;
    assert_non_null(values);
    read_values(m, name, 0, count, values);
    for (size_t i = 0; i < count; i++) sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)count);
}

TEST(scales)
{
    made m;
    make(&m, "synthetic:v3-base");
    double query = deviation(&m, "encoder.layer.3.attention.self.query_proj.weight", 768 * 768, 0);
    double value = deviation(&m, "encoder.layer.3.attention.self.value_proj.weight", 768 * 768, 0);
    /* sqrt(64) terms of variance (768 query^2)^2 over sqrt(64 * 3) */
    assert_in_range((int)(1000 * 768 * query * query / sqrt(3)), 1190, 1210);
    assert_in_range((int)(1000 * sqrt(768) * value), 995, 1005);
    assert_in_range((int)(1000 * deviation(&m, "encoder.rel_embeddings.weight", 512 * 768, 0)), 995, 1005);
    assert_in_range((int)(1000 * deviation(&m, "encoder.layer.0.output.LayerNorm.weight", 768, 1)), 85, 115);
    config_free(&m.config);
}

TEST(loads)
{
    deberta_model *model = NULL;
    deberta_error error = {0};
    deberta_model_info info;
    memset(&info, 0, sizeof info);
    const char *path = "synthetic:v3-base,layers=12,hidden=48,heads=4,intermediate=20,vocab=128100";
    assert_ok(deberta_model_open(&model, path, NULL, &error));
    info = *deberta_model_describe(model);
    assert_string_equal(info.name, path);
    /* V h + 2h + 512 h + 2h + L (4h^2 + 4h + 2h + 2hf + f + h + 2h), SPEC 1.3 */
    size_t h = 48, f = 20;
    assert_int_equal(info.parameters,
                     128100 * h + 2 * h + 512 * h + 2 * h + 12 * (4 * h * h + 4 * h + 2 * h + 2 * h * f + f + 3 * h));
    /* The word table of 24 MB is not held. */
    assert_true(info.memory_bytes < 8 << 20);
    deberta_model_free(&model);
    assert_null(model);
}

TEST(published_parameter_counts)
{
    static const struct {
        const char *path;
        size_t parameters;
    } published[] = {{"synthetic:v3-xsmall", 70682112},
                     {"synthetic:v1-base,layers=1", 47659008},
                     {"synthetic:v1-xlarge", 757804032},
                     {"synthetic:v2-xlarge,heads=all", 884593152},
                     {"synthetic:v2-xxlarge", 1564549632}};
    /* The large ones would not fit into the memory of every machine. */
    const deberta_model_options options = {.struct_size = sizeof options, .describe_only = true};
    FOR_ROWS(i, published) {
        OWN_MODEL *model = NULL;
        assert_ok(deberta_model_open(&model, published[i].path, i < 2 ? NULL : &options, NULL));
        assert_int_equal(deberta_model_describe(model)->parameters, published[i].parameters);
    }
}

static void check_shape(const made *m, const char *name, size_t rank, size_t rows, size_t columns)
{
    weight_tensor found;
    if (!m->source.find(m->source.context, name, &found)) fail_msg("no tensor %s", name);
    assert_int_equal(found.rank, rank);
    assert_int_equal(found.shape[0], rows);
    if (rank > 1) assert_int_equal(found.shape[1], columns);
}

static void not_empty(void *context, const char *name, const weight_tensor *tensor)
{
    for (size_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0) fail_msg("%s has no values", name);
    ++*(size_t *)context;
}

TEST(heads_of_tasks)
{
    made all, none;
    weight_tensor found;
    make(&all, "synthetic:v3-base,layers=1,hidden=48,heads=4,heads=all,embedding=20,vocab=61,types=2");
    make(&none, "synthetic:v3-base");
    assert_int_equal(all.config.heads, 4);
    assert_int_equal(all.config.labels, 3);
    check_shape(&all, "embeddings.word_embeddings.weight", 2, 61, 20);
    check_shape(&all, "embeddings.token_type_embeddings.weight", 2, 2, 20);
    check_shape(&all, "embeddings.embed_proj.weight", 2, 48, 20);
    check_shape(&all, "lm_predictions.lm_head.dense.weight", 2, 20, 48);
    check_shape(&all, "pooler.dense.weight", 2, 48, 48);
    check_shape(&all, "classifier.weight", 2, 3, 48);
    check_shape(&all, "qa_outputs.bias", 1, 2, 0);
    static const char *const absent[] = {"embeddings.embed_proj.weight", "classifier.weight", "pooler.dense.weight",
                                         "qa_outputs.weight", "mask_predictions.dense.weight"};
    FOR_ROWS(i, absent) assert_false(none.source.find(none.source.context, absent[i], &found));
    size_t count = 0;
    synthetic_visit(&none.weights, not_empty, &count); /* there are no token types, as an example */
    assert_true(count > 100);
    config_free(&all.config);
    config_free(&none.config);
}
