/* Compares keys with the lists, first exactly, then without case, "_", "-" and blanks. SPDX-License-Identifier: MIT */
#include "core/io/record_keys.h"

#include <stdio.h>
#include <string.h>

#include "core/io/quote.h"

typedef struct other_name {
    const char *name, *meant;
} other_name;

#define KEY_OF(key, what)   {key, key},
#define BATCH_KEY_OF(key)   {key, key},
#define OTHER(name_, meant) {name_, meant},
#define NAME_OF(name)       name,

static const other_name keys[] = {RECORD_KEYS(KEY_OF)}, others[] = {RECORD_OTHER_NAMES(OTHER)},
                        batch_keys[] = {BATCH_KEYS(BATCH_KEY_OF)}, batch_others[] = {BATCH_OTHER_NAMES(OTHER)};
static const char *const beside[] = {BATCH_BESIDE(NAME_OF)}, *const results[] = {BATCH_RESULTS(NAME_OF)};

#define COUNT(list) (sizeof(list) / sizeof *(list))

enum { FOLDED_BYTES = 32 };

/* Folds a name to lower case without "_", "-" and blanks. A mark before it stays, because "_id" is the key of a data
 * base and not "id". A name that is too long matches no key. */
static void fold(char folded[FOLDED_BYTES], const char *name, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes && count < FOLDED_BYTES; i++) {
        const char c = name[i];
        if (i > 0 && (c == '_' || c == '-' || c == ' ')) continue;
        folded[count++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    folded[count < FOLDED_BYTES ? count : 0] = 0;
}

static bool is_exactly(const other_name *list, size_t count, const char *name)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(list[k].name, name) == 0) return true;
    return false;
}

static const char *meant_by(const other_name *list, size_t count, const char *folded)
{
    char of_list[FOLDED_BYTES];
    for (size_t k = 0; *folded && k < count; k++) {
        fold(of_list, list[k].name, strlen(list[k].name));
        if (strcmp(of_list, folded) == 0) return list[k].meant;
    }
    return NULL;
}

const char *record_key_meant(const char *name, size_t bytes)
{
    char folded[FOLDED_BYTES];
    fold(folded, name, bytes);
    const char *meant = meant_by(keys, COUNT(keys), folded);
    if (!meant) meant = meant_by(others, COUNT(others), folded);
    return meant && strcmp(meant, "text_pair") == 0 ? "pair" : meant;
}

bool record_key_is_known(const char *name, size_t bytes) { return record_key_meant(name, bytes) != NULL; }

/* Returns the key of a batch that a name without a match resembles. */
static const char *batch_key_meant(const char *name)
{
    char folded[FOLDED_BYTES];
    if (is_exactly(batch_keys, COUNT(batch_keys), name)) return NULL;
    fold(folded, name, strlen(name));
    const char *meant = meant_by(batch_keys, COUNT(batch_keys), folded);
    return meant ? meant : meant_by(batch_others, COUNT(batch_others), folded);
}

/* ---------------------------------------------------------------------------------------------------------- objects */

static bool is_among(const char *const *used, const char *name)
{
    for (; *used; used++)
        if (strcmp(*used, name) == 0) return true;
    return false;
}

static void add_unused(unused_keys *unused, const char *name)
{
    const quoted shown = quote_bytes(name, strlen(name));
    for (size_t k = 0; k < unused->count; k++)
        if (strncmp(unused->names[k], shown.text, UNUSED_KEY_BYTES - 1) == 0) return;
    unused->more = unused->more || unused->count == MOST_UNUSED_KEYS;
    if (unused->count < MOST_UNUSED_KEYS)
        snprintf(unused->names[unused->count++], UNUSED_KEY_BYTES, "%.*s", UNUSED_KEY_BYTES - 1, shown.text);
}

/* Returns the key of this reader that the name means, or NULL if it means none. */
static const char *meant_here(const char *name, const char *const *used)
{
    const char *of_batch = is_exactly(keys, COUNT(keys), name) ? NULL : batch_key_meant(name);
    if (of_batch && !is_among(used, of_batch)) return of_batch;
    if (is_exactly(keys, COUNT(keys), name)) return NULL;
    const char *meant = record_key_meant(name, strlen(name));
    return meant && is_among(used, meant) ? meant : NULL;
}

bool record_keys_check(const json_t *object, const char *const *used, unused_keys *unused,
                       char problem[KEY_SENTENCE_BYTES])
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (is_among(used, name)) continue;
        const char *meant = json_is_null(value) ? NULL : meant_here(name, used);
        if (meant) {
            snprintf(problem, KEY_SENTENCE_BYTES,
                     "the key \"%s\" is not read and looks like \"%s\": give it that name, or leave it out",
                     QUOTE(name), meant);
            return false;
        }
        add_unused(unused, name);
    }
    return true;
}

void unused_keys_describe(const unused_keys *unused, char sentence[KEY_SENTENCE_BYTES])
{
    size_t used = 0;
    *sentence = 0;
    for (size_t k = 0; k < unused->count; k++)
        used += (size_t)snprintf(sentence + used, KEY_SENTENCE_BYTES - used, "%s%s",
                                 k ? ", " : "keys not used: ", unused->names[k]);
    if (unused->more) snprintf(sentence + used, KEY_SENTENCE_BYTES - used, " and more");
}

void record_keys_describe(const json_t *object, char sentence[KEY_SENTENCE_BYTES])
{
    enum { SHOWN = 6 };
    const char *name;
    json_t *value;
    size_t count = 0, used = 0;
    *sentence = 0;
    json_object_foreach((json_t *)object, name, value)
    {
        if (count == SHOWN) {
            snprintf(sentence + used, KEY_SENTENCE_BYTES - used, " ...");
            return;
        }
        used += (size_t)snprintf(sentence + used, KEY_SENTENCE_BYTES - used, "%s\"%.*s\"",
                                 count++ ? ", " : "; its keys: ", UNUSED_KEY_BYTES, QUOTE(name));
    }
}

/* ---------------------------------------------------------------------------------------------------------- batches */

bool batch_key_is_wrong(const char *name, char problem[KEY_SENTENCE_BYTES])
{
    if (is_exactly(batch_keys, COUNT(batch_keys), name)) return false;
    for (size_t k = 0; k < COUNT(beside); k++)
        if (strcmp(beside[k], name) == 0) return false;
    for (size_t k = 0; k < COUNT(results); k++)
        if (strncmp(results[k], name, strlen(results[k])) == 0) return false;
    const char *meant = batch_key_meant(name);
    snprintf(problem, KEY_SENTENCE_BYTES, "'%s' is no part of a batch that is read%s%s%s; leave it out", QUOTE(name),
             meant ? ": '" : ", which are input_ids, attention_mask, token_type_ids and position_ids",
             meant ? meant : "", meant ? "' is" : "");
    return true;
}
