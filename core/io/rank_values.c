/* Compares digests of all values, so that the message can name the value that differs. SPDX-License-Identifier: MIT */
#include "core/io/rank_values.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"
#include "core/io/json_file.h"

enum { MOST_VALUES = 128, DIGEST_BYTES = 65 };

/* Digests of each value with its key; zeros after the last. */
typedef struct digests {
    char values[MOST_VALUES][DIGEST_BYTES];
} digests;

static bool digest_value(char digest[DIGEST_BYTES], const char *key, const json_t *value)
{
    sha256 hash;
    char *text = json_print(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (!text) return false;
    sha256_begin(&hash, 0);
    sha256_add(&hash, key, strlen(key) + 1);
    sha256_add(&hash, text, strlen(text));
    sha256_finish(&hash, digest);
    free(text);
    return true;
}

static bool digest_all(digests *to, json_t *values)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(values, key,
                        value) if (count == MOST_VALUES || !digest_value(to->values[count++], key, value)) return false;
    return true;
}

static const char *key_at(json_t *values, size_t number)
{
    void *at = json_object_iter(values);
    while (at && number-- > 0) at = json_object_iter_next(values, at);
    return at ? json_object_iter_key(at) : "recipe";
}

/* Returns the key of the first value in which a rank differs from rank 0, or NULL. */
static const char *find_difference(const deberta_ranks *ranks, const digests *all, json_t *values, size_t *rank)
{
    for (*rank = 1; *rank < ranks->count; ++*rank)
        for (size_t i = 0; i < MOST_VALUES; i++)
            if (memcmp(all[*rank].values[i], all[0].values[i], DIGEST_BYTES) != 0) return key_at(values, i);
    return NULL;
}

deberta_status rank_values_check(const deberta_ranks *ranks, const json_t *values,
                                 const char *(*name_of)(const char *key), deberta_error *err)
{
    if (!ranks) return DEBERTA_OK;
    size_t rank;
    const char *key = NULL;
    json_t *mine = (json_t *)(uintptr_t)values;
    digests *all = calloc(ranks->count, sizeof *all);
    const bool fine = all && digest_all(&all[ranks->rank], mine);
    if (fine) {
        ranks->join(ranks->context, all, ranks->count * sizeof *all);
        key = find_difference(ranks, all, mine, &rank);
    }
    free(all);
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to compare the options of %zu ranks", ranks->count);
    if (!key) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "rank %zu has another '%s' than rank 0: ranks need equal options and files",
                 rank, name_of ? name_of(key) : key);
}
