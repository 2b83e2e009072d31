/* Reads the small JSON files next to a vocabulary: special tokens, added tokens, lower-casing.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/text/json_value.h"
#include "core/text/tokenizer_keys.h"

/* The keys in the files; the order is that of deberta_special. */
static const char *const special_keys[DEBERTA_SPECIAL_COUNT] = {"cls_token", "sep_token", "unk_token", "pad_token",
                                                                "mask_token"};

deberta_status tokenizer_file_find(char **path, const char *folder, const char *name, deberta_error *err)
{
    *path = path_join(folder, name);
    if (!*path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a path in '%s'", QUOTE(folder));
    /* An existing file that cannot be reached is not absent: opening it will report the error. */
    struct stat facts;
    if (lstat(*path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR)) return DEBERTA_OK;
    free(*path);
    *path = NULL;
    return DEBERTA_OK;
}

bool tokenizer_config_is_microsoft(const char *folder)
{
    static const json_limits limits = {.bytes = 16 << 20, .depth = 32, .values = 1 << 20};
    json_t *root = NULL;
    char *path = path_join(folder, "config.json");
    const bool read = path && json_file_read(&root, path, &limits, NULL) == DEBERTA_OK;
    const json_t *type = json_object_get(root, "model_type");
    const bool found = read && (!type || json_is_null(type));
    json_decref(root);
    free(path);
    return found;
}

/* ------------------------------------------------------------------------------------------------ added tokens */

/* Reads the properties of an AddedToken object; the caller sets the id. */
static deberta_status read_properties(added_token *token, json_t *object, const char *where, deberta_error *err)
{
    json_t *content;
    DEBERTA_TRY(json_value_required(&content, object, "content", JSON_STRING, where, err));
    token->text = json_string_value(content);
    token->bytes = json_string_length(content);
    DEBERTA_TRY(json_value_flag(&token->strip_left, object, "lstrip", where, err));
    DEBERTA_TRY(json_value_flag(&token->strip_right, object, "rstrip", where, err));
    DEBERTA_TRY(json_value_flag(&token->special, object, "special", where, err));
    token->normalized = !token->special; /* AddedToken has the same default. */
    DEBERTA_TRY(json_value_flag(&token->normalized, object, "normalized", where, err));
    bool single_word = false;
    DEBERTA_TRY(json_value_flag(&single_word, object, "single_word", where, err));
    if (single_word)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: added token '%s' is marked single_word, which is not supported",
                     where, QUOTE_N(token->text, token->bytes));
    return DEBERTA_OK;
}

static deberta_status add_with_id(tokenizer_config *config, added_token *token, long long id, const char *where,
                                  deberta_error *err)
{
    if (id < 0 || id > ADDED_TOKEN_MAX_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added token '%s' has the id %lld, expected 0 to %d", where,
                     QUOTE_N(token->text, token->bytes), id, ADDED_TOKEN_MAX_ID);
    token->id = (int32_t)id;
    return added_tokens_add(&config->added, token, where, err);
}

deberta_status tokenizer_config_add_list(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    json_t *list, *item, *id;
    DEBERTA_TRY(json_value_member(&list, root, "added_tokens", JSON_ARRAY, where, err));
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (!json_is_object(item)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added_tokens[%zu] is no object", where, i);
        added_token token = {0};
        DEBERTA_TRY(read_properties(&token, item, where, err));
        DEBERTA_TRY(json_value_required(&id, item, "id", JSON_INTEGER, where, err));
        DEBERTA_TRY(add_with_id(config, &token, json_integer_value(id), where, err));
    }
    return DEBERTA_OK;
}

/* Reads "added_tokens_decoder", which maps ids as texts to objects. */
static deberta_status add_decoder(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    json_t *decoder;
    DEBERTA_TRY(json_value_member(&decoder, root, "added_tokens_decoder", JSON_OBJECT, where, err));
    const char *key;
    json_t *item;
    json_object_foreach(decoder, key, item)
    {
        char *end;
        errno = 0;
        long long id = strtoll(key, &end, 10);
        if (errno || end == key || *end || !json_is_object(item))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: added_tokens_decoder has the member '%s', expected ids and objects", where, QUOTE(key));
        added_token token = {0};
        DEBERTA_TRY(read_properties(&token, item, where, err));
        DEBERTA_TRY(add_with_id(config, &token, id, where, err));
    }
    return DEBERTA_OK;
}

/* Reads added_tokens.json, which maps texts to ids. Other files say which of them are special. */
static deberta_status add_map(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(root, key, id)
    {
        if (!json_is_integer(id))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' is %s, expected an id", where, QUOTE(key),
                         json_describe(id).text);
        added_token token = {.text = key, .bytes = strlen(key)};
        DEBERTA_TRY(add_with_id(config, &token, json_integer_value(id), where, err));
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------- special tokens */

/* Keeps a name, given as a text or as an AddedToken object. The vocabulary decides later whether there is such a token.
 */
static deberta_status keep_special(tokenizer_config *config, const json_t *value, const char *where, deberta_error *err)
{
    const json_t *name = json_is_object(value) ? json_object_get(value, "content") : value;
    if (!json_is_string(name) || json_string_length(name) == 0) return DEBERTA_OK;
    if (!config->more_specials) config->more_specials = json_array();
    if (!config->more_specials || json_array_append(config->more_specials, (json_t *)name) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a token", where);
    return DEBERTA_OK;
}

/* Reads further special tokens: each value is a text, a list of texts, or an object of names and texts. */
static deberta_status read_more_specials(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    static const char *const keys[] = {"bos_token", "eos_token", "additional_special_tokens", "extra_special_tokens"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(root, keys[i]), *item;
        const char *name;
        size_t k;
        if (!value || json_is_null(value)) continue;
        const bool one = json_is_string(value) || (json_is_object(value) && json_object_get(value, "content"));
        if (one) {
            DEBERTA_TRY(keep_special(config, value, where, err));
        } else if (json_is_object(value)) {
            json_object_foreach(value, name, item) DEBERTA_TRY(keep_special(config, item, where, err));
        } else {
            json_array_foreach(value, k, item) DEBERTA_TRY(keep_special(config, item, where, err));
        }
    }
    return DEBERTA_OK;
}

/* Reads "cls_token" and so on: a text, or an AddedToken object. Values from an earlier file stay. */
static deberta_status read_specials(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    for (size_t i = 0; i < DEBERTA_SPECIAL_COUNT; i++) {
        special_token *special = &config->specials[i];
        json_t *value = json_object_get(root, special_keys[i]);
        added_token token = {0};
        if (!value || json_is_null(value)) continue;
        if (json_is_object(value)) {
            DEBERTA_TRY(read_properties(&token, value, where, err));
        } else {
            DEBERTA_TRY(json_value_member(&value, root, special_keys[i], JSON_STRING, where, err));
            token.text = json_string_value(value);
        }
        if (!special->text && !(special->text = strdup(token.text)))
            DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a token", where);
        if (json_is_object(value) && !special->described && strcmp(special->text, token.text) == 0) {
            special->described = true;
            special->strip_left = token.strip_left;
            special->strip_right = token.strip_right;
        }
    }
    return DEBERTA_OK;
}

static deberta_status read_specials_map(tokenizer_config *config, json_t *root, const char *where, deberta_error *err)
{
    DEBERTA_TRY(tokenizer_keys_note(&config->notes, root, TOKENIZER_SETTINGS, where, err));
    DEBERTA_TRY(read_more_specials(config, root, where, err));
    return read_specials(config, root, where, err);
}

static deberta_status read_tokenizer_config(tokenizer_config *config, json_t *root, const char *where,
                                            deberta_error *err)
{
    DEBERTA_TRY(read_specials_map(config, root, where, err));
    DEBERTA_TRY(add_decoder(config, root, where, err));
    DEBERTA_TRY(json_value_flag(&config->lower_case, root, "do_lower_case", where, err));
    DEBERTA_TRY(json_value_flag(&config->split_by_punctuation, root, "split_by_punct", where, err));
    config->no_prefix_space = json_is_false(json_object_get(root, "add_prefix_space"));
    return json_value_flag(&config->add_prefix_space, root, "add_prefix_space", where, err);
}

deberta_status tokenizer_config_read(tokenizer_config *config, const char *folder, deberta_error *err)
{
    static const struct {
        const char *name;
        deberta_status (*open)(json_t **, const char *, deberta_error *);
        deberta_status (*read)(tokenizer_config *, json_t *, const char *, deberta_error *);
    } files[] = {
        {"tokenizer_config.json", json_value_read_settings, read_tokenizer_config},
        {"special_tokens_map.json", json_value_read_settings, read_specials_map},
        {"added_tokens.json", json_value_read, add_map},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path;
        json_t *root = NULL;
        DEBERTA_TRY(tokenizer_file_find(&path, folder, files[i].name, err));
        if (!path) continue;
        deberta_status status = files[i].open(&root, path, err);
        if (status == DEBERTA_OK) status = files[i].read(config, root, QUOTE(path), err);
        json_decref(root);
        free(path);
        if (status != DEBERTA_OK) return status;
    }
    return DEBERTA_OK;
}

void tokenizer_config_free(tokenizer_config *config)
{
    for (size_t i = 0; i < DEBERTA_SPECIAL_COUNT; i++) free(config->specials[i].text);
    for (size_t i = 0; i < 2; i++) free(config->frame.text[i]);
    added_tokens_free(&config->added);
    notes_free(&config->notes);
    json_decref(config->more_specials);
    *config = (tokenizer_config){0};
}
