/* Model folders: the golden formats and malformed folders, names, shards, aliases, threads, digests.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include <math.h>
#include <pthread.h>

#include "core/io/checkpoint.h"
#include "core/io/input_file.h"
#include "core/io/tensor_names.h"
#include "core/load/weight_loader.h"
#include "core/model/config.h"

/* ---------------------------------------------------------------------------------------- what a v2 encoder needs */

typedef struct need {
    const checkpoint *weights;
    const char *prefix;
    deberta_error *error;
} need;

/* As a model's loader looks for it. */
static deberta_status find_weights(const checkpoint *weights, const char *name, const size_t *shape, size_t rank,
                                   deberta_error *error)
{
    const weight_source source = weight_source_of_checkpoint(weights);
    weight_loader loader = {.source = &source};
    weight_tensor found;
    return loader_find(&loader, &found, name, rank, shape, error);
}

/* The tensor has this shape and all of it can be read. columns 0: a vector. */
static deberta_status require(const need *n, const char *name, size_t rows, size_t columns)
{
    char full[128];
    size_t shape[2] = {rows, columns};
    snprintf(full, sizeof full, "%s%s", n->prefix, name);
    DEBERTA_TRY(find_weights(n->weights, full, shape, columns ? 2 : 1, n->error));
    const tensor *t = checkpoint_find(n->weights, full);
    FREED_BY(free_memory) float *values = malloc(t->elements * sizeof *values + 1);
    if (!values) return DEBERTA_E_MEMORY;
    deberta_status status = checkpoint_read_f32(n->weights, t, 0, t->elements, values, n->error);
    checkpoint_forget(n->weights, t);
    return status;
}

/* name.weight [rows, columns] and name.bias [rows] */
static deberta_status require_pair(const need *n, const char *name, size_t rows, size_t columns)
{
    char part[96];
    snprintf(part, sizeof part, "%s.weight", name);
    DEBERTA_TRY(require(n, part, rows, columns));
    snprintf(part, sizeof part, "%s.bias", name);
    return require(n, part, rows, 0);
}

static deberta_status require_layer(const need *outer, const model_config *c, size_t layer)
{
    char prefix[64];
    need n = *outer;
    size_t h = c->hidden_size, f = c->intermediate_size;
    snprintf(prefix, sizeof prefix, "encoder.layer.%zu.", layer);
    n.prefix = prefix;
    bool v1 = c->version == 1 ||
              (c->version == 0 && checkpoint_find(n.weights, "encoder.layer.0.attention.self.in_proj.weight"));
    if (v1) {
        DEBERTA_TRY(require(&n, "attention.self.in_proj.weight", 3 * h, h));
    } else {
        DEBERTA_TRY(require_pair(&n, "attention.self.query_proj", h, h));
        DEBERTA_TRY(require_pair(&n, "attention.self.key_proj", h, h));
        DEBERTA_TRY(require_pair(&n, "attention.self.value_proj", h, h));
    }
    DEBERTA_TRY(require_pair(&n, "attention.output.dense", h, h));
    DEBERTA_TRY(require_pair(&n, "attention.output.LayerNorm", h, 0));
    DEBERTA_TRY(require_pair(&n, "intermediate.dense", f, h));
    DEBERTA_TRY(require_pair(&n, "output.dense", h, f));
    return require_pair(&n, "output.LayerNorm", h, 0);
}

static deberta_status require_all(const checkpoint *weights, const model_config *c, deberta_error *error)
{
    need n = {weights, "", error};
    DEBERTA_TRY(require(&n, "embeddings.word_embeddings.weight", c->vocabulary_size, c->embedding_size));
    DEBERTA_TRY(require_pair(&n, "embeddings.LayerNorm", c->hidden_size, 0));
    if (c->relative_attention)
        DEBERTA_TRY(require(&n, "encoder.rel_embeddings.weight", 2 * c->relative_span, c->hidden_size));
    if (c->norm_relative) DEBERTA_TRY(require_pair(&n, "encoder.LayerNorm", c->hidden_size, 0));
    if (c->convolution_width) DEBERTA_TRY(require_pair(&n, "encoder.conv.LayerNorm", c->hidden_size, 0));
    for (size_t layer = 0; layer < c->layers; layer++) DEBERTA_TRY(require_layer(&n, c, layer));
    return DEBERTA_OK;
}

/* Everything that loading a model reads from its folder. */
static deberta_status open_model(checkpoint **weights, const char *folder, deberta_error *error)
{
    FREED_BY(config_free) model_config config;
    *weights = NULL;
    DEBERTA_TRY(config_read(&config, folder, error));
    deberta_status status = checkpoint_open(weights, folder, error);
    if (status == DEBERTA_OK) status = require_all(*weights, &config, error);
    if (status != DEBERTA_OK) checkpoint_close(weights);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- comparisons */

static float *read_all(const checkpoint *weights, const tensor *t)
{
    float *values = malloc(t->elements * sizeof *values + 1);
    deberta_error error;
    assert_non_null(values);
    if (checkpoint_read_f32(weights, t, 0, t->elements, values, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    checkpoint_forget(weights, t);
    return values;
}

/* All tensors of `expected` are in `weights`, equal up to a relative error (and, for tiny halves, an absolute one). */
static void check_equal(const checkpoint *weights, const checkpoint *expected, float relative, float absolute)
{
    for (size_t i = 0; i < checkpoint_count(expected); i++) {
        const tensor *there = checkpoint_at(expected, i), *here = checkpoint_find(weights, there->name);
        if (!here) fail_msg("'%s' is missing", there->name);
        assert_int_equal(here->rank, there->rank);
        assert_memory_equal(here->shape, there->shape, there->rank * sizeof *there->shape);
        FREED_BY(free_memory) float *a = read_all(weights, here), *b = read_all(expected, there);
        for (size_t e = 0; e < there->elements; e++)
            if (!(fabsf(a[e] - b[e]) <= relative * fabsf(b[e]) + absolute))
                fail_msg("'%s', element %zu: %.9g, expected %.9g", there->name, e, a[e], b[e]);
    }
}

/* Every file format holds the same numbers as the safetensors file it was made from, rounded once where it is narrower.
 */
TEST(test_formats)
{
    static const struct {
        const char *format, *source;
        float relative, absolute;
        size_t extra; /* leftovers: aliases, deltas, position_ids, heads */
    } cases[] = {
        {"f01-zip-f32-v3", "33-v3-mlm-emd", 0, 0, 0},
        {"f02-zip-f32-v1", "02-v1-c2p-n7", 0, 0, 0},
        {"f03-legacy-f32-v2", "20-v2-conv-gelu-b3", 0, 0, 0},
        {"f04-zip-f16-v3", "36-v3-rtd", 0x1p-11f, 0x1p-25f, 0},
        {"f05-safetensors-bf16-v2", "22-v2-embedproj-types", 0x1p-8f, 0, 0},
        {"f06-sharded-safetensors", "33-v3-mlm-emd", 0, 0, 0},
        {"f07-ms-v3-f16-bin", "33-v3-mlm-emd", 0x1p-11f, 0x1p-25f, 9},
        {"f08-ms-v1-bert-prefix-legacy", "10-v1-mlm-emd", 0, 0, 0},
        {"f09-zip-strided", "32-v3-mlm-legacy", 0, 0, 2},
        {"f10-zip-nested", "01-v1-both-n33", 0, 0, 0},
        {"f11-safetensors-odd-header", "21-v2-conv-tanh-g2", 0, 0, 0},
    };
    char golden[512], path[640];
    golden_folder(golden);
    FOR_ROWS(i, cases) {
        FREED_BY(checkpoint_close) checkpoint *weights, *expected;
        deberta_error error;
        snprintf(path, sizeof path, "%s/formats/%s", golden, cases[i].format);
        if (open_model(&weights, path, &error) != DEBERTA_OK) fail_msg("%s", error.message);
        snprintf(path, sizeof path, "%s/%s", golden, cases[i].source);
        if (open_model(&expected, path, &error) != DEBERTA_OK) fail_msg("%s", error.message);
        check_equal(weights, expected, cases[i].relative, cases[i].absolute);
        assert_int_equal(checkpoint_count(weights), checkpoint_count(expected) + cases[i].extra);
    }
}

static void check_bad(const char *golden, const char *name, const char *expect, const char *where)
{
    char folder[700], base[700], inputs[800];
    checkpoint *weights, *good;
    deberta_error error = {0};
    snprintf(folder, sizeof folder, "%s/bad/%s", golden, name);
    snprintf(base, sizeof base, "%s/bad/00-base", golden);
    deberta_status status = open_model(&weights, folder, &error);
    bool refused = strcmp(expect, "error") == 0 && strcmp(where, "inputs") != 0;
    if (refused || (strcmp(expect, "either") == 0 && status != DEBERTA_OK)) {
        /* the file, or the folder when a tensor is in none, and a reason; nothing ran out of memory */
        if (status == DEBERTA_OK || status == DEBERTA_E_MEMORY || !strstr(error.message, name))
            fail_msg("%s: status %d '%s'", name, status, error.message);
        return;
    }
    if (status != DEBERTA_OK) fail_msg("%s: %s", name, error.message);
    if (strcmp(expect, "same") == 0) {
        assert_ok(open_model(&good, base, &error));
        check_equal(weights, good, 0, 0);
        checkpoint_close(&good);
    }
    checkpoint_close(&weights);
    snprintf(inputs, sizeof inputs, "%s/inputs.json", folder);
    input_file input;
    if (strcmp(where, "inputs") == 0) { /* what is wrong with them is the model's to say */
        if (input_file_read(&input, inputs, &error) != DEBERTA_OK) fail_msg("%s", error.message);
        assert_true(input.rows == 1 && input.columns == 7 && input.mask && input.types && !input.positions);
        input_file_free(&input);
    }
}

TEST(test_malformed)
{
    char golden[512], path[640], line[1024];
    snprintf(path, sizeof path, "%s/bad/expect.tsv", golden_folder(golden));
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    size_t cases = 0;
    assert_non_null(fgets(line, sizeof line, table)); /* names of the columns */
    while (fgets(line, sizeof line, table)) {
        char name[128], expect[32], where[32];
        assert_int_equal(sscanf(line, "%127[^\t]\t%31[^\t]\t%31[^\t]", name, expect, where), 3);
        check_bad(golden, name, expect, where);
        cases++;
    }
    fclose(table);
    assert_true(cases >= 60);
    assert_int_not_equal(access("pickle-was-executed", F_OK), 0);
}

/* ------------------------------------------------------------------------------------------------- folders by hand */

/* A safetensors file of one-element tensors with these names; the value of the i-th is first + i. */
static void write_tensors(const char *folder, const char *file, const char *const *names, float first)
{
    FREED_BY(buffer_free) buffer header = {0}, data = {0}, whole = {0};
    for (size_t i = 0; names[i]; i++) {
        char entry[256];
        float value = first + (float)i;
        snprintf(entry, sizeof entry, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                 i ? ',' : '{', names[i], 4 * i, 4 * i + 4);
        put_string(&header, entry);
        put(&data, &value, 4);
    }
    put_string(&header, "}");
    put_byte(&header, 0);
    put_safetensors(&whole, (const char *)header.bytes, data.bytes, data.count);
    write_file(folder, file, whole.bytes, whole.count);
}

static void refuses(const char *folder, deberta_status expected, const char *words)
{
    checkpoint *weights;
    deberta_error error = {0};
    check_refused(checkpoint_open(&weights, folder, &error), &error, expected, words);
    assert_null(weights);
}

static checkpoint *open_weights(const char *folder)
{
    checkpoint *weights;
    deberta_error error = {0};
    if (checkpoint_open(&weights, folder, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    return weights;
}

static float first_value(const checkpoint *weights, const char *name)
{
    float value = NAN;
    const tensor *found = checkpoint_find(weights, name);
    if (!found) fail_msg("no tensor '%s'", name);
    assert_ok(checkpoint_read_f32(weights, found, 0, 1, &value, NULL));
    return value;
}

TEST(test_names)
{
    static const struct {
        const char *stored[5], *canonical[5]; /* canonical: of the same tensors */
        const char *refused;
    } cases[] = {
        {{"embeddings.word_embeddings.weight", "encoder.x"}, {"embeddings.word_embeddings.weight", "encoder.x"}, NULL},
        {{"deberta.embeddings.word_embeddings.weight", "deberta.encoder.x", "lm_predictions.y"},
         {"embeddings.word_embeddings.weight", "encoder.x", "lm_predictions.y"},
         NULL},
        {{"bert.embeddings.word_embeddings.weight", "bert.encoder.x", "classifier.weight"},
         {"embeddings.word_embeddings.weight", "encoder.x", "classifier.weight"},
         NULL},
        {{"module.deberta.embeddings.word_embeddings.weight", "module.deberta.encoder.x", "module.pooler.y"},
         {"embeddings.word_embeddings.weight", "encoder.x", "pooler.y"},
         NULL},
        {{"foo.embeddings.word_embeddings.weight", "foo.encoder.x"},
         {"embeddings.word_embeddings.weight", "encoder.x"},
         NULL},
        {{"albert.embeddings.word_embeddings.weight", "bert.encoder.x"},
         {"embeddings.word_embeddings.weight", "bert.encoder.x"},
         NULL},
        {{"deberta.embeddings.word_embeddings.weight", "generator.deberta.embeddings.word_embeddings.weight"},
         {"embeddings.word_embeddings.weight", "generator.deberta.embeddings.word_embeddings.weight"},
         NULL},
        {{"a.embeddings.word_embeddings.weight", "deberta.embeddings.word_embeddings.weight"},
         {"a.embeddings.word_embeddings.weight", "embeddings.word_embeddings.weight"},
         NULL},
        {{"deberta.encoder.x", "cls.y"}, {"deberta.encoder.x", "cls.y"}, NULL},
        {{"embeddings.word_embeddings.weight", "xembeddings.word_embeddings.weight"},
         {"embeddings.word_embeddings.weight", "xembeddings.word_embeddings.weight"},
         NULL},
        {{"deberta.embeddings.word_embeddings.weight", "deberta.embeddings.position_ids", "embeddings.position_ids"},
         {"embeddings.word_embeddings.weight", "embeddings.position_ids"},
         NULL},
        {{"embeddings.word_embeddings.weight", "a.LayerNorm.gamma", "a.LayerNorm.beta", "a.gamma"},
         {"embeddings.word_embeddings.weight", "a.LayerNorm.weight", "a.LayerNorm.bias", "a.gamma"},
         NULL},
        {{"embeddings.word_embeddings.weight", "embeddings.word_embeddings._weight"},
         {"embeddings.word_embeddings.weight", "embeddings.word_embeddings._weight"},
         NULL},
        {{"deberta.embeddings.word_embeddings._weight"}, {NULL}, "only the difference"},
        {{"embeddings.word_embeddings.weight", "a.LayerNorm.gamma", "a.LayerNorm.weight"}, {NULL}, "is there twice"},
        {{"deberta.embeddings.word_embeddings.weight", "bert.embeddings.word_embeddings.weight"},
         {NULL},
         "not the only word table"},
        {{"deberta.embeddings.word_embeddings.weight", "deberta.encoder.x", "encoder.x"},
         {NULL},
         "'encoder.x' is there twice"},
    };
    FREED_BY(remove_folder) char *folder = make_folder();
    FOR_ROWS(i, cases) {
        write_tensors(folder, "model.safetensors", cases[i].stored, 0);
        if (cases[i].refused) {
            refuses(folder, DEBERTA_E_FORMAT, cases[i].refused);
            continue;
        }
        FREED_BY(checkpoint_close) checkpoint *weights = open_weights(folder);
        for (size_t t = 0; cases[i].canonical[t]; t++) {
            assert_true(first_value(weights, cases[i].canonical[t]) == (float)t);
            assert_string_equal(checkpoint_find(weights, cases[i].canonical[t])->file, "model.safetensors");
        }
        assert_null(checkpoint_find(weights, "x"));
        assert_null(checkpoint_find(weights, ""));
        for (size_t t = 1; t < checkpoint_count(weights); t++)
            assert_true(strcmp(checkpoint_at(weights, t - 1)->name, checkpoint_at(weights, t)->name) < 0);
    }
}

TEST(test_names_of_a_pair)
{
    static const struct {
        const char *name;
        bool is_of_half;
    } cases[] = {{"generator.dense.weight", true},
                 {"module.generator.dense.weight", true},
                 {"generators.dense.weight", false},
                 {"recovered.dense.weight", false}};
    FOR_ROWS(i, cases) assert_int_equal(tensor_name_is_of_half(cases[i].name, "generator"), cases[i].is_of_half);
}

TEST(test_shards)
{
    static const struct {
        const char *index, *expected;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}", NULL},
        {"{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"2.safetensors\"}}",
         NULL}, /* a is in both and taken from one; b is not listed, and counts as in transformers */
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\"}}",
         "'b' into '1.safetensors', which does not hold it"},
        {"{\"weight_map\":{\"a\":\"3.safetensors\"}}", "3.safetensors: cannot be opened"},
        {"{\"weight_map\":{\"a\":\"../1.safetensors\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"x/1.safetensors\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"x\\\\1.safetensors\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"\"}}", "a file in the same folder"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\\u0000\"}}", "line 1"},
        {"{\"weight_map\":{\"a\":7}}", "into 7"},
        {"{\"weight_map\":{\"a\":null}}", "into null"},
        {"{\"weight_map\":{}}", "weight_map is not an object"},
        {"{\"weight_map\":[]}", "weight_map is not an object"},
        {"{}", "weight_map is not an object"},
        {"[]", "holds an array"},
        {"{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}", "does not fit the file"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"2.safetensors\"}}", "'a' occurs twice"},
    };
    static const char *const one[] = {"a", NULL}, *const two[] = {"b", "a", NULL};
    FREED_BY(remove_folder) char *folder = make_folder();
    write_tensors(folder, "1.safetensors", one, 1);
    write_tensors(folder, "2.safetensors", two, 2);
    FOR_ROWS(i, cases) {
        write_text(folder, "model.safetensors.index.json", cases[i].index);
        if (cases[i].expected) {
            checkpoint *none;
            deberta_error error = {0};
            if (checkpoint_open(&none, folder, &error) == DEBERTA_OK || !strstr(error.message, cases[i].expected))
                fail_msg("'%s' is not in: %s", cases[i].expected, error.message);
            continue;
        }
        FREED_BY(checkpoint_close) checkpoint *weights = open_weights(folder);
        assert_int_equal(checkpoint_count(weights), 2);
        assert_true(first_value(weights, "a") == (i == 0 ? 1 : 3));
    }
}

/* A zip of torch.save with one-element tensors of these names; the value of the i-th is first + i. */
static void write_torch(const char *folder, const char *file, const char *const *names, float first)
{
    static const int64_t one = 1;
    FREED_BY(buffer_free) buffer code = {0};
    zip_writer zip = {0};
    put(&code, "\x80\x02}(", 4);
    for (int i = 0; names[i]; i++) {
        char key[2] = {(char)('0' + i), 0};
        put_text(&code, names[i]);
        put_tensor(&code, "FloatStorage", key, 1, 0, &one, &one, 1);
    }
    put_string(&code, "u.");
    zip_add(&zip, "m/data.pkl", code.bytes, code.count, 0);
    for (int i = 0; names[i]; i++) {
        char member[] = "m/data/0";
        float value = first + (float)i;
        member[7] = (char)('0' + i);
        zip_add(&zip, member, &value, 4, 0);
    }
    zip_end(&zip, false);
    write_file(folder, file, zip.out.bytes, zip.out.count);
    buffer_free(&zip.out);
}

/* Sharded .bin files; and which file wins where there are several. */
TEST(test_torch_shards)
{
    static const char *const one[] = {"deberta.embeddings.word_embeddings.weight", "deberta.b", NULL};
    static const char *const two[] = {"deberta.c", NULL}, *const twice[] = {"a", "a", NULL},
                             *const bare[] = {"a", NULL};
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"deberta.c\":\"2.bin\",\"deberta.b\":\"1.bin\","
                                "\"deberta.embeddings.word_embeddings.weight\":\"1.bin\"}}";
    FREED_BY(remove_folder) char *folder = make_folder();
    write_torch(folder, "1.bin", one, 1);
    write_torch(folder, "2.bin", two, 5);
    write_text(folder, "pytorch_model.bin.index.json", index);
    FREED_BY(checkpoint_close) checkpoint *weights = open_weights(folder);
    assert_int_equal(checkpoint_count(weights), 3);
    assert_true(first_value(weights, "b") == 2 && first_value(weights, "c") == 5);
    assert_true(first_value(weights, "embeddings.word_embeddings.weight") == 1);
    assert_string_equal(checkpoint_find(weights, "c")->file, "2.bin");
    checkpoint_close(&weights);

    write_text(folder, "pytorch_model.bin.index.json", "{\"weight_map\":{\"a\":\"3.bin\"}}");
    write_torch(folder, "3.bin", twice, 1);
    refuses(folder, DEBERTA_E_FORMAT, "'a' is there twice");

    write_torch(folder, "pytorch_model.bin", twice, 7);
    refuses(folder, DEBERTA_E_FORMAT, "'a' is there twice");
    write_torch(folder, "pytorch_model.bin", bare, 7);
    weights = open_weights(folder);
    assert_true(first_value(weights, "a") == 7);
    checkpoint_close(&weights);
    write_tensors(folder, "model.safetensors", bare, 8);
    weights = open_weights(folder);
    assert_true(first_value(weights, "a") == 8);
}

TEST(test_folders)
{
    FREED_BY(checkpoint_close) checkpoint *weights;
    deberta_error error;
    char *folder = make_folder(), path[256], command[600];
    refuses(folder, DEBERTA_E_FILE, "no weights");
    write_text(folder, "adapter_model.safetensors", "x");
    refuses(folder, DEBERTA_E_FILE, "merge it into its model first");
    snprintf(path, sizeof path, "%s/nothing", folder);
    refuses(path, DEBERTA_E_FILE, "No such file");
    write_text(folder, "nothing", "x");
    refuses(path, DEBERTA_E_FILE, "Not a directory");

    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    refuses(folder, DEBERTA_E_FILE, "symbolic link to a file that does not exist");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not wait for a writer */
    refuses(folder, DEBERTA_E_FORMAT, "not a regular file");
    unlink(path);
    assert_int_equal(symlink(folder, path), 0);
    refuses(folder, DEBERTA_E_FORMAT, "is a folder");
    unlink(path);

    /* a symbolic link to a good file is fine, as download caches make them */
    static const char *const names[] = {"a", NULL};
    write_tensors(folder, "blob", names, 5);
    assert_int_equal(symlink("blob", path), 0);
    assert_ok(checkpoint_open(&weights, folder, &error));

    /* the digest is that of the files one after the other */
    char digest[65], expected[65];
    check_refused(checkpoint_digest(weights, digest, &error), &error, DEBERTA_E_FILE, "config.json: cannot be opened");
    write_text(folder, "config.json", "{}");
    assert_ok(checkpoint_digest(weights, digest, &error));
    snprintf(command, sizeof command, "cat %s/config.json %s/model.safetensors | sha256sum", folder, folder);
    FILE *tool = popen(command, "r");
    assert_non_null(tool);
    assert_int_equal(fread(expected, 1, 64, tool), 64);
    pclose(tool);
    expected[64] = 0;
    assert_string_equal(digest, expected);

    /* reading beyond the end */
    float value;
    const tensor *a = checkpoint_find(weights, "a");
    assert_int_equal(checkpoint_read_f32(weights, a, 0, 2, &value, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(checkpoint_read_f32(weights, a, SIZE_MAX, 2, &value, &error), DEBERTA_E_ARGUMENT);
    assert_ok(checkpoint_read_f32(weights, a, 1, 0, &value, &error));
    assert_int_equal(checkpoint_read_f32(weights, a, 0, 2, &value, NULL), DEBERTA_E_ARGUMENT); /* no error struct */
    remove_folder(&folder);
}

TEST(test_integers_are_no_weights)
{
    char golden[512], path[640];
    FREED_BY(checkpoint_close) checkpoint *weights;
    deberta_error error;
    snprintf(path, sizeof path, "%s/formats/f07-ms-v3-f16-bin", golden_folder(golden));
    assert_ok(checkpoint_open(&weights, path, &error));
    const tensor *ids = checkpoint_find(weights, "embeddings.position_ids");
    float value;
    assert_int_equal(ids->elements, 64);
    check_refused(checkpoint_read_f32(weights, ids, 0, 1, &value, &error), &error, DEBERTA_E_FORMAT, "has dtype I64");
    size_t shape[2] = {1, 64};
    check_refused(find_weights(weights, "embeddings.position_ids", shape, 2, &error), &error, DEBERTA_E_FORMAT,
                  "has type I64");
    check_refused(find_weights(weights, "embeddings.nothing", shape, 2, &error), &error, DEBERTA_E_FORMAT,
                  "'embeddings.nothing' is missing");
    check_refused(find_weights(weights, "embeddings.LayerNorm.bias", shape, 2, &error), &error, DEBERTA_E_FORMAT,
                  "has shape [32], expected [1, 64]");
}

/* Several threads read and forget the same zip members; aliases share theirs. */
static void *reader(void *argument)
{
    const checkpoint *weights = argument;
    for (int round = 0; round < 40; round++)
        for (size_t i = 0; i < checkpoint_count(weights); i++) {
            const tensor *t = checkpoint_at(weights, i);
            float values[8], again[8];
            size_t count = t->elements < 8 ? t->elements : 8;
            if (checkpoint_read_f32(weights, t, 0, count, values, NULL) != DEBERTA_OK) return "reading failed";
            if (round % 2) checkpoint_forget(weights, t);
            if (checkpoint_read_f32(weights, t, 0, count, again, NULL) != DEBERTA_OK) return "reading again failed";
            if (memcmp(values, again, count * sizeof *values) != 0) return "two readings differ";
        }
    return NULL;
}

TEST(test_threads)
{
    enum { THREADS = 4 };
    char golden[512], path[640];
    FREED_BY(checkpoint_close) checkpoint *weights;
    deberta_error error;
    pthread_t threads[THREADS];
    snprintf(path, sizeof path, "%s/formats/f09-zip-strided", golden_folder(golden));
    assert_ok(checkpoint_open(&weights, path, &error));
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, reader, weights), 0);
    for (int i = 0; i < THREADS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        if (complaint) fail_msg("%s", (const char *)complaint);
    }
}

/* Values of every 16-bit pattern. bfloat16 is the upper half of a float32; halves are checked against their definition.
 */
TEST(test_halves)
{
    for (uint32_t pattern = 0; pattern < 65536; pattern++) {
        uint16_t bits = (uint16_t)pattern;
        float value, expected;
        uint32_t upper = pattern << 16, read;
        stored_tensor stored = {.tensor = {.dtype = DTYPE_BF16, .elements = 1}};
        tensor_convert_f32(&value, &stored, (const uint8_t *)&bits, 0, 1);
        memcpy(&read, &value, 4);
        assert_int_equal(read, upper);

        stored.tensor.dtype = DTYPE_F16;
        tensor_convert_f32(&value, &stored, (const uint8_t *)&bits, 0, 1);
        int exponent = pattern >> 10 & 31, fraction = pattern & 1023;
        if (exponent == 31)
            expected = fraction ? NAN : INFINITY;
        else
            expected = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
        if (isnan(expected)) {
            assert_true(isnan(value));
        } else {
            assert_true(value == (pattern & 0x8000 ? -expected : expected));
            assert_int_equal(signbit(value) != 0, pattern >> 15);
        }
    }
}
