/* Members of JSON objects with the type they must have.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/json_value.h"

#include "core/base/byte_order_mark.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"

deberta_status json_value_read(json_t **root, const char *path, deberta_error *err)
{
    /* mDeBERTa's tokenizer.json, the largest known, has 16 MB and a million values. */
    static const json_limits limits = {.bytes = (size_t)256 << 20, .depth = 32, .values = (size_t)8 << 20};
    return json_file_read(root, path, &limits, err);
}

deberta_status json_value_read_settings(json_t **root, const char *path, deberta_error *err)
{
    enum { MAX_BYTES = 4 << 20 };
    mapped_file file;
    json_error_t error;
    *root = NULL;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    deberta_status status = DEBERTA_OK;
    if (file.size_bytes > MAX_BYTES) {
        status = status_fail(err, DEBERTA_E_FORMAT, "%s: %zu bytes of JSON, expected at most %d", file.name.text,
                             file.size_bytes, MAX_BYTES);
    } else {
        const char *text = (const char *)file.bytes;
        const size_t mark = byte_order_mark(text, file.size_bytes);
        *root =
            json_loadb(text + mark, file.size_bytes - mark, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
        if (!*root)
            status = status_fail(err, DEBERTA_E_FORMAT, "%s: line %d, column %d: %s", file.name.text, error.line,
                                 error.column, QUOTE(error.text));
        else if (!json_is_object(*root))
            status = status_fail(err, DEBERTA_E_FORMAT, "%s: holds %s, expected a JSON object", file.name.text,
                                 json_describe(*root).text);
    }
    if (status != DEBERTA_OK) {
        json_decref(*root);
        *root = NULL;
    }
    mapped_file_close(&file);
    return status;
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
