/* Recognises configs of known classes around a DeBERTa, and names their base model in the refusal.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/config_keys.h"

#include <string.h>

#include "core/io/json_file.h"
#include "core/io/quote.h"

/* type: the model_type of the class's config.json; NULL: the config has no model_type and no sizes, but the key. key,
 * inner: the key that names the model inside; where inner is not NULL, it is a member of the object `key`. */
static const struct wrapper {
    const char *type, *class_name, *key, *inner;
} wrappers[] = {
    {"GLiClass", "GLiClass", "encoder_model_name", NULL},
    {"extractor", "GLiNER2", "model_name", NULL},
    {"span-marker", "SpanMarker", "encoder", "_name_or_path"},
    {NULL, "a class", "base_model", NULL},
};

static deberta_status wrapper_refuse(const json_t *config, const struct wrapper *around, const char *where,
                                     deberta_error *err)
{
    const json_t *named = json_object_get(config, around->key);
    if (around->inner) named = json_object_get(named, around->inner);
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                 "%s: belongs to %s%s around another model (%s is %s): put the config.json of that model into the "
                 "folder, with vocab_size as the word table has rows%s",
                 where, around->class_name, around->type ? ", a class" : "", around->key, json_describe(named).text,
                 around->type ? ", for what its encoder computes; deberta_c.accelerate takes the class as it is" : "");
}

deberta_status wrapper_check_config(const json_t *config, const char *where, deberta_error *err)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        const struct wrapper *around = &wrappers[i];
        if (around->type
                ? type && strcmp(type, around->type) == 0
                : json_is_string(json_object_get(config, around->key)) && !json_object_get(config, "hidden_size"))
            return wrapper_refuse(config, around, where, err);
    }
    return DEBERTA_OK;
}
