/* Reads members of JSON objects and checks their types.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/json_value.h"

#include "core/base/numbers.h"
#include "core/io/json_file.h"

/* mDeBERTa's tokenizer.json has a million values. */
static const json_limits vocabulary_limits = {
    .bytes = VOCABULARY_FILE_MOST_BYTES, .depth = 32, .values = (size_t)8 << 20};

deberta_status json_value_read(json_t **root, const char *path, deberta_error *err)
{
    return json_file_read(root, path, &vocabulary_limits, err);
}

deberta_status json_value_parse_without(json_t **root, const char *text, size_t bytes, size_t row_count,
                                        deberta_error *err)
{
    json_limits limits = vocabulary_limits;
    limits.values -= minimum(limits.values, 3 * row_count); /* values of a row: a bracket and two commas */
    return json_file_parse(root, text, bytes, &limits, "tokenizer.json", err);
}

deberta_status json_value_read_settings(json_t **root, const char *path, deberta_error *err)
{
    static const json_limits limits = {.bytes = 4 << 20, .depth = 32, .values = 1 << 20, .integers_as_real = true};
    return json_file_read(root, path, &limits, err);
}

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a text";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    default: return "true or false";
    }
}

static bool has_type(const json_t *value, json_type type)
{
    if (type == JSON_TRUE) return json_is_boolean(value);
    if (type == JSON_REAL) return json_is_number(value);
    return json_typeof(value) == type;
}

deberta_status json_value_member(json_t **value, const json_t *object, const char *key, json_type type,
                                 const char *where, deberta_error *err)
{
    *value = json_object_get(object, key);
    if (!*value || json_is_null(*value)) {
        *value = NULL;
        return DEBERTA_OK;
    }
    if (!has_type(*value, type))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s is %s, expected %s", where, key, json_describe(*value).text,
                     type_name(type));
    return DEBERTA_OK;
}

deberta_status json_value_required(json_t **value, const json_t *object, const char *key, json_type type,
                                   const char *where, deberta_error *err)
{
    DEBERTA_TRY(json_value_member(value, object, key, type, where, err));
    if (!*value) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s is missing, expected %s", where, key, type_name(type));
    return DEBERTA_OK;
}

deberta_status json_value_flag(bool *flag, const json_t *object, const char *key, const char *where, deberta_error *err)
{
    json_t *value;
    DEBERTA_TRY(json_value_member(&value, object, key, JSON_TRUE, where, err));
    if (value) *flag = json_is_true(value);
    return DEBERTA_OK;
}
