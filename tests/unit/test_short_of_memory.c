/* What training writes as JSON while a request of jansson for memory fails, each in turn: an error, or every byte.
 * SPDX-License-Identifier: MIT */
#include <unistd.h>

#include <jansson.h>

#include "tests/unit/test.h"

#include "core/io/json_file.h"
#include "include/deberta_training.h"
#include "train/data/trainer_data.h"
#include "train/run/save.h"
#include "train/run/trainer_recipe.h"
#include "train/state/new_tensors.h"

enum { MOST_REQUESTS = 100000 };

static size_t requests, failing; /* the number of the one that fails, from 1; 0: none */

static void *request(size_t bytes) { return ++requests == failing ? NULL : malloc(bytes); }

/* The result as a text to be freed, or NULL with an error. */
typedef char *(*maker)(deberta_error *err);

/* The last `most` of them: jansson does not notice when a token that it reads has no room to grow
 * (core/io/json_file.c). */
static void each_fails_in_turn(maker make, size_t most)
{
    deberta_error err = {0};
    json_set_alloc_funcs(request, free);
    failing = requests = 0;
    FREED_BY(free_memory) char *whole = make(&err);
    assert_non_null(whole);
    size_t refused = 0;
    for (failing = requests > most ? requests - most : 1;; failing++) {
        assert_true(failing < MOST_REQUESTS);
        requests = 0;
        char *text = make(&err);
        if (requests < failing) { /* it needed fewer */
            assert_string_equal(text, whole);
            free(text);
            break;
        }
        if (text)
            assert_string_equal(text, whole);
        else
            refused++;
        free(text);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(refused > 5);
}

static char *saved_config(deberta_error *err)
{
    static const char config[] = "{\"hidden_size\": 8, \"dtype\": \"float16\", \"torch_dtype\": \"bfloat16\"}";
    char folder[] = "/tmp/deberta-test-XXXXXX", path[64], text[256] = "";
    assert_non_null(mkdtemp(folder));
    const parameter_set none = {0};
    const deberta_status status = save_model(folder, folder, &none, config, DEBERTA_FLOAT32, err);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        assert_int_equal(fclose(file), 0);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    return status == DEBERTA_OK ? strdup(text) : NULL;
}

TEST(test_config_of_a_saved_model)
{
    deberta_error err;
    char *text = saved_config(&err);
    assert_non_null(strstr(text, "\"dtype\": \"float32\""));
    assert_non_null(strstr(text, "\"torch_dtype\": \"float32\""));
    free(text);
    each_fails_in_turn(saved_config, MOST_REQUESTS);
}

static char *config_of_a_new_head(deberta_error *err)
{
    static const char *const names[] = {"bad", "fair", "good"};
    char folder[1024], *config = NULL;
    parameter_set set = {0};
    snprintf(folder, sizeof folder, "%s/29-v3-seqcls", getenv("DEBERTA_GOLDEN"));
    deberta_status status = parameter_set_read(&set, folder, err);
    const new_head head = {.task = DEBERTA_TRAIN_SEQUENCE, .names = names, .labels = 3};
    if (status == DEBERTA_OK) status = new_head_add(&set, folder, &head, 1, &config, err);
    parameter_set_free(&set);
    if (status == DEBERTA_OK) return config;
    free(config);
    return NULL;
}

TEST(test_config_of_a_new_head)
{
    deberta_error err;
    char *text = config_of_a_new_head(&err);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"2\": \"good\""));
    free(text);
    each_fails_in_turn(config_of_a_new_head, 40);
}

static char *recipe(deberta_error *err)
{
    static const char *const labels[] = {"no", "yes"}, *const frozen[] = {"embeddings"};
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/29-v3-seqcls", getenv("DEBERTA_GOLDEN"));
    deberta_trainer_options options = DEBERTA_TRAINER_DEFAULTS;
    options.model = folder;
    options.labels = labels;
    options.new_labels = 2;
    options.freeze = frozen;
    options.freeze_count = 1;
    size_t begin = 0;
    const trainer_data data = {.corpus = {.starts = &begin}};
    const step_options step = {0};
    json_t *made = NULL;
    const deberta_status status = trainer_recipe_describe(&made, &options, &data, &step, &step, err);
    char *text = status == DEBERTA_OK ? json_print(made, JSON_INDENT(1)) : NULL;
    json_decref(made);
    return text;
}

TEST(test_recipe) { each_fails_in_turn(recipe, 200); }
