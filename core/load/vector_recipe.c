/* Reads how sentence-transformers makes one vector of a text from the files beside a model: a list of modules, each
 * with a folder of settings. Supported settings are followed; the first unsupported one is named.
 *
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/io/json_file.h"
#include "include/deberta_unstable.h"

static const json_limits settings_limits = {
    .bytes = 16 << 20, .depth = 32, .values = 1 << 20, .integers_as_real = true};

/* Reads a JSON file; *root is NULL where there is none. */
static deberta_status read_settings(json_t **root, const char *folder, const char *inside, const char *name,
                                    deberta_error *err)
{
    char *place = path_join(folder, inside), *path = place ? path_join(place, name) : NULL;
    deberta_status status = DEBERTA_OK;
    *root = NULL;
    if (!path)
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    else if (access(path, F_OK) == 0)
        status = json_file_read(root, path, &settings_limits, err);
    free(place);
    free(path);
    return status;
}

static deberta_status read_modules(json_t **modules, const char *folder, deberta_error *err)
{
    enum { MOST_MODULES = 64 };
    char *path = path_join(folder, "modules.json");
    deberta_status status = DEBERTA_OK;
    *modules = NULL;
    if (!path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    if (access(path, F_OK) == 0) status = json_file_read_array(modules, path, &settings_limits, err);
    if (json_array_size(*modules) > MOST_MODULES) {
        status = status_fail(err, DEBERTA_E_FORMAT, "%s: %zu modules, expected at most %d", QUOTE(path),
                             json_array_size(*modules), MOST_MODULES);
        json_decref(*modules);
        *modules = NULL;
    }
    free(path);
    return status;
}

/* Checks the path of a module, which is a folder inside the model's: "1_Pooling", or "" for the model's itself. */
static bool is_inside(const char *path)
{
    if (*path == '/') return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return false;
    }
    return true;
}

static void __attribute__((format(printf, 2, 3))) obstruct(deberta_vector_recipe *recipe, const char *format, ...)
{
    va_list arguments;
    if (*recipe->obstacle) return;
    va_start(arguments, format);
    vsnprintf(recipe->obstacle, sizeof recipe->obstacle, format, arguments);
    va_end(arguments);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static deberta_status read_pooling(deberta_vector_recipe *recipe, const char *folder, const char *inside,
                                   deberta_error *err)
{
    static const struct {
        const char *key, *mode;
    } old[] = {{"pooling_mode_cls_token", "cls"},
               {"pooling_mode_max_tokens", "max"},
               {"pooling_mode_mean_tokens", "mean"},
               {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
               {"pooling_mode_weightedmean_tokens", "weightedmean"},
               {"pooling_mode_lasttoken", "lasttoken"}};
    json_t *settings, *value;
    const char *key;
    size_t modes = 0;
    if (!is_inside(inside))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s/modules.json: expected the path of a folder inside, found '%s'",
                     QUOTE(folder), QUOTE(inside));
    DEBERTA_TRY(read_settings(&settings, folder, inside, "config.json", err));
    if (!settings) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s/%s/config.json: is missing", QUOTE(folder), QUOTE(inside));
    const json_t *said = json_object_get(settings, "pooling_mode");
    if (json_is_array(said) && json_array_size(said) == 1) said = json_array_get(said, 0);
    const char *mode = json_string_value(said);
    for (size_t i = 0; !said && i < sizeof old / sizeof *old; i++)
        if (json_is_true(json_object_get(settings, old[i].key))) mode = old[i].mode, modes++;
    json_object_foreach(settings, key, value)
    {
        size_t i = 0;
        while (i < sizeof old / sizeof *old && strcmp(key, old[i].key) != 0) i++;
        if (!said && strncmp(key, "pooling_mode_", 13) == 0 && i == sizeof old / sizeof *old && json_is_true(value))
            mode = key, modes++;
    }
    if (!said && modes == 0) mode = "mean";
    if (!mode || modes > 1)
        obstruct(recipe, "several poolings side by side (%.40s)", QUOTE(inside));
    else if (strcmp(mode, "cls") == 0 || strcmp(mode, "mean") == 0)
        recipe->cls = *mode == 'c';
    else
        obstruct(recipe, "the pooling '%.40s' (%.40s)", QUOTE(mode), QUOTE(inside));
    json_decref(settings);
    return DEBERTA_OK;
}

static void read_module(deberta_vector_recipe *recipe, const json_t *module, size_t number, size_t *pooled,
                        const char **pooling)
{
    const char *type = text_of(module, "type"), *dot = strrchr(type, '.'), *name = dot ? dot + 1 : type;
    const char *path = text_of(module, "path");
    if (strncmp(type, "sentence_transformers.", 22) != 0) name = ""; /* Code of other packages is not known. */
    if (strcmp(name, "Transformer") == 0 && number == 0) return;
    if (strcmp(name, "Dropout") == 0) return;
    if (strcmp(name, "Pooling") == 0 && ++*pooled == 1) {
        *pooling = path;
        return;
    }
    if (strcmp(name, "Normalize") == 0 && *pooled == 1) {
        recipe->normalized = 1;
        return;
    }
    obstruct(recipe, "the module %.40s (%.40s)", QUOTE(*name ? name : type), QUOTE(path));
}

/* Finds the length limit in tokens: that of the module's settings, or else the smaller of the tokenizer's and the
 * model's. */
static deberta_status read_length(deberta_vector_recipe *recipe, const char *folder, deberta_error *err)
{
    static const char *const names[] = {"sentence_bert_config.json",       "sentence_roberta_config.json",
                                        "sentence_distilbert_config.json", "sentence_camembert_config.json",
                                        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
                                        "sentence_xlnet_config.json"};
    json_t *settings = NULL, *tokenizer = NULL, *config = NULL, *value;
    const char *key;
    for (size_t i = 0; !settings && i < sizeof names / sizeof *names; i++)
        DEBERTA_TRY(read_settings(&settings, folder, "", names[i], err));
    if (json_is_true(json_object_get(settings, "do_lower_case"))) obstruct(recipe, "do_lower_case of its own settings");
    const json_t *said = json_object_get(settings, "max_seq_length");
    if (said && !json_is_number(said) && !json_is_null(said)) obstruct(recipe, "max_seq_length of its own settings");
    double length = json_number_value(said);
    json_object_foreach(settings, key, value)
    {
        /* tokenizer_args, config_kwargs and the like; those of the model say how it runs */
        if (json_object_size(value) && strcmp(key, "modality_config") != 0 && strncmp(key, "model_", 6) != 0)
            obstruct(recipe, "%.40s of its own settings", QUOTE(key));
    }
    json_decref(settings);
    if (length < 1) {
        DEBERTA_TRY(read_settings(&tokenizer, folder, "", "tokenizer_config.json", err));
        deberta_status status = read_settings(&config, folder, "", "config.json", err);
        const double of_tokenizer = json_number_value(json_object_get(tokenizer, "model_max_length"));
        const double of_model = json_number_value(json_object_get(config, "max_position_embeddings"));
        length = of_tokenizer >= 1 && (of_model < 1 || of_tokenizer < of_model) ? of_tokenizer : of_model;
        if (of_model < 1 && !json_object_get(config, "max_position_embeddings"))
            length = length >= 1 && length < 512 ? length : 512;
        json_decref(tokenizer);
        json_decref(config);
        DEBERTA_TRY(status);
    }
    recipe->max_tokens = length >= 1 && length < 1e9 ? (size_t)length : 0;
    return DEBERTA_OK;
}

static deberta_status read_prompts(deberta_vector_recipe *recipe, const char *root, deberta_error *err)
{
    json_t *settings;
    DEBERTA_TRY(read_settings(&settings, root, "", "config_sentence_transformers.json", err));
    const char *prompt = text_of(settings, "default_prompt_name");
    if (*text_of(json_object_get(settings, "prompts"), prompt))
        obstruct(recipe, "the prompt '%.40s' before every text", QUOTE(prompt));
    if (json_number_value(json_object_get(settings, "truncate_dim")) > 0)
        obstruct(recipe, "a part of each vector (truncate_dim)");
    json_decref(settings);
    return DEBERTA_OK;
}

static deberta_status read_recipe(deberta_vector_recipe *recipe, const json_t *modules, const char *root,
                                  const char *folder, deberta_error *err)
{
    size_t pooled = 0;
    const char *pooling = NULL;
    recipe->given = 1;
    for (size_t i = 0; i < json_array_size(modules); i++)
        read_module(recipe, json_array_get(modules, i), i, &pooled, &pooling);
    if (!pooling) obstruct(recipe, "no pooling");
    if (pooling) DEBERTA_TRY(read_pooling(recipe, root, pooling, err));
    DEBERTA_TRY(read_length(recipe, folder, err));
    return read_prompts(recipe, root, err);
}

/* Returns whether the modules are those of the folder above: old versions saved the model in a folder 0_Transformer,
 * and modules.json beside it. */
static bool lies_above(const json_t *modules, const char *folder)
{
    const char *name = strrchr(folder, '/'), *path = text_of(json_array_get(modules, 0), "path");
    return name && *path && strcmp(name + 1, path) == 0;
}

deberta_status deberta_vector_recipe_read(deberta_vector_recipe *recipe, const char *folder, deberta_error *err)
{
    json_t *modules = NULL;
    if (!recipe || !folder) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "no folder to read a recipe of");
    *recipe = (deberta_vector_recipe){0};
    DEBERTA_TRY(read_modules(&modules, folder, err));
    deberta_status status = DEBERTA_OK;
    if (modules) {
        status = read_recipe(recipe, modules, folder, folder, err);
    } else {
        char *real = realpath(folder, NULL), *above = real ? path_join(real, "..") : NULL;
        if (above) status = read_modules(&modules, above, err);
        if (status == DEBERTA_OK && modules && lies_above(modules, real))
            status = read_recipe(recipe, modules, above, folder, err);
        free(real);
        free(above);
    }
    json_decref(modules);
    return status;
}
