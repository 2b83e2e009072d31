/* Reads JSON by jansson within limits of size and depth.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/json_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/mapped_file.h"

/* jansson collects a token in a buffer and does not notice when that cannot grow. Memory for a token of this length is
 * always available; the longest token that a model needs is a name. */
enum { MAX_TOKEN_BYTES = 1 << 20 };

/* Refuses a text whose tree would be too deep or too large. The text need not be JSON; jansson checks that afterwards.
 */
static deberta_status scan(const char *text, size_t size_bytes, const json_limits *limits, const char *where,
                           deberta_error *err)
{
    size_t line = 1, depth = 0, values = 0, token_bytes = 0;
    bool in_string = false;
    for (size_t i = 0; i < size_bytes; i++) {
        char c = text[i];
        bool separates = !in_string && strchr("[]{},: \t\r\n", c);
        token_bytes = separates ? 0 : token_bytes + 1;
        if (token_bytes > MAX_TOKEN_BYTES && !limits->long_texts)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: a text or number of more than %d bytes", where, line,
                         MAX_TOKEN_BYTES);
        if (c == '\n') line++;
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth > 0) depth--;
        if (c == '[' || c == '{' || c == ',' || c == ':') values++;
        if (depth > limits->depth)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: arrays and objects are nested deeper than %zu", where,
                         line, limits->depth);
        if (values > limits->values)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: more than %zu values", where, line, limits->values);
    }
    return DEBERTA_OK;
}

/* Prints a number in a usual notation, and never like an integer: "2.0" is not 2. */
static void print_real(char *text, size_t room, double value)
{
    const plain_numbers numbers = plain_numbers_begin();
    snprintf(text, room, "%.15g", value);
    plain_numbers_end(numbers);
    if (!strpbrk(text, ".en")) strncat(text, ".0", room - strlen(text) - 1);
}

quoted json_describe(const json_t *value)
{
    char text[QUOTE_BYTES + 16];
    if (!value) return quote_bytes("missing", 7);
    switch (json_typeof(value)) {
    case JSON_OBJECT: return quote_bytes("an object", 9);
    case JSON_ARRAY: return quote_bytes("an array", 8);
    case JSON_STRING:
        snprintf(text, sizeof text, "the text '%s'", QUOTE_N(json_string_value(value), json_string_length(value)));
        break;
    case JSON_INTEGER: snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
    case JSON_REAL: print_real(text, sizeof text, json_real_value(value)); break;
    case JSON_TRUE: return quote_bytes("true", 4);
    case JSON_FALSE: return quote_bytes("false", 5);
    default: return quote_bytes("null", 4);
    }
    return quote_bytes(text, strlen(text));
}

/* Returns the key before `position`, where jansson noticed that it occurs twice. */
static quoted key_before(const char *text, size_t position)
{
    size_t end = position > 0 ? position - 1 : 0, begin = end;
    while (begin > 0 && (text[begin - 1] != '"' || (begin > 1 && text[begin - 2] == '\\'))) begin--;
    return quote_bytes(text + begin, end - begin);
}

/* Reports jansson's own sentence, except in two cases for which there is a better one. */
static deberta_status json_file_refuse(const json_error_t *error, const char *text, const char *where,
                                       deberta_error *err)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its JSON", where);
    if (code == json_error_duplicate_key)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %d, column %d: the key '%s' occurs twice", where, error->line,
                     error->column, key_before(text, (size_t)error->position).text);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %d, column %d: %s", where, error->line, error->column,
                 QUOTE(error->text));
}

static deberta_status parse(json_t **root, const char *text, size_t size_bytes, const json_limits *limits,
                            json_type wanted, const char *where, deberta_error *err)
{
    *root = NULL;
    const size_t mark = byte_order_mark(text, size_bytes);
    text += mark;
    size_bytes -= mark;
    if (size_bytes > limits->bytes)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %zu bytes of JSON, expected at most %zu", where, size_bytes,
                     limits->bytes);
    DEBERTA_TRY(scan(text, size_bytes, limits, where, err));
    json_error_t error;
    const size_t flags = JSON_REJECT_DUPLICATES | (limits->integers_as_real ? JSON_DECODE_INT_AS_REAL : 0) |
                         (limits->long_texts ? JSON_ALLOW_NUL : 0);
    json_t *value = json_loadb(text, size_bytes, flags, &error);
    if (!value) return json_file_refuse(&error, text, where, err);
    if (json_typeof(value) != wanted) {
        quoted found = json_describe(value);
        json_decref(value);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: holds %s, expected a JSON %s", where, found.text,
                     wanted == JSON_OBJECT ? "object" : "array");
    }
    *root = value;
    return DEBERTA_OK;
}

deberta_status json_file_parse(json_t **root, const char *text, size_t size_bytes, const json_limits *limits,
                               const char *where, deberta_error *err)
{
    return parse(root, text, size_bytes, limits, JSON_OBJECT, where, err);
}

static deberta_status read_file(json_t **root, const char *path, const json_limits *limits, json_type wanted,
                                deberta_error *err)
{
    *root = NULL;
    mapped_file file;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    deberta_status status = parse(root, (const char *)file.bytes, file.size_bytes, limits, wanted, file.name.text, err);
    status = mapped_file_end(&file, status, err);
    if (status != DEBERTA_OK) {
        json_decref(*root);
        *root = NULL;
    }
    return status;
}

deberta_status json_file_read(json_t **root, const char *path, const json_limits *limits, deberta_error *err)
{
    return read_file(root, path, limits, JSON_OBJECT, err);
}

deberta_status json_file_read_array(json_t **root, const char *path, const json_limits *limits, deberta_error *err)
{
    return read_file(root, path, limits, JSON_ARRAY, err);
}

void json_add_member(json_t *object, const char *key, json_t *value, bool *lost)
{
    if (json_object_set_new(object, key, value) != 0) *lost = true;
}

void json_add_item(json_t *array, json_t *value, bool *lost)
{
    if (json_array_append_new(array, value) != 0) *lost = true;
}

typedef struct text_buffer {
    char *text;
    size_t bytes, capacity;
    bool lost;
} text_buffer;

static int json_file_add_text(const char *text, size_t bytes, void *context)
{
    text_buffer *buffer = context;
    if (buffer->lost) return -1;
    if (buffer->capacity - buffer->bytes <= bytes) { /* space for a terminator as well */
        const size_t capacity = 2 * (buffer->bytes + bytes) + 256;
        char *more = realloc(buffer->text, capacity);
        buffer->lost = !more;
        if (!more) return -1;
        buffer->text = more;
        buffer->capacity = capacity;
    }
    memcpy(buffer->text + buffer->bytes, text, bytes);
    buffer->bytes += bytes;
    buffer->text[buffer->bytes] = '\0';
    return 0;
}

char *json_print(const json_t *value, size_t flags)
{
    text_buffer buffer = {0};
    if (json_dump_callback(value, json_file_add_text, &buffer, flags) == 0 && !buffer.lost) return buffer.text;
    free(buffer.text);
    return NULL;
}
