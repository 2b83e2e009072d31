/* Digests of all values of the recipes are compared, so that what differs has a name. SPDX-License-Identifier: MIT */
#include "train/run/rank_recipes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"
#include "train/run/trainer_options.h"

enum { MOST_VALUES = 128, DIGEST_BYTES = 65 };

/* Digests of each value with its key; zeros where there are no more. */
typedef struct digests {
    char values[MOST_VALUES][DIGEST_BYTES];
} digests;

static bool digest_value(char digest[DIGEST_BYTES], const char *key, const json_t *value)
{
    sha256 hash;
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (!text) return false;
    sha256_begin(&hash, 0);
    sha256_add(&hash, key, strlen(key) + 1);
    sha256_add(&hash, text, strlen(text));
    sha256_finish(&hash, digest);
    free(text);
    return true;
}

static bool digest_recipe(digests *to, json_t *recipe)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(recipe, key,
                        value) if (count == MOST_VALUES || !digest_value(to->values[count++], key, value)) return false;
    return true;
}

static const char *key_at(json_t *recipe, size_t number)
{
    void *at = json_object_iter(recipe);
    while (at && number-- > 0) at = json_object_iter_next(recipe, at);
    return at ? json_object_iter_key(at) : "recipe";
}

static deberta_status compare(const deberta_ranks *ranks, const digests *all, json_t *recipe, deberta_error *err)
{
    for (size_t rank = 1; rank < ranks->count; rank++)
        for (size_t i = 0; i < MOST_VALUES; i++)
            if (memcmp(all[rank].values[i], all[0].values[i], DIGEST_BYTES) != 0)
                DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                             "rank %zu has another '%s' than rank 0: ranks need equal options and files", rank,
                             trainer_option_of_key(key_at(recipe, i)));
    return DEBERTA_OK;
}

deberta_status rank_recipes_check(const deberta_ranks *ranks, const json_t *recipe, size_t step, deberta_error *err)
{
    if (!ranks) return DEBERTA_OK;
    json_t *mine = json_copy((json_t *)recipe);
    digests *all = calloc(ranks->count, sizeof *all);
    const bool fine = mine && all && json_object_set_new(mine, "checkpoint", json_integer((json_int_t)step)) == 0 &&
                      digest_recipe(&all[ranks->rank], mine);
    deberta_status status = DEBERTA_OK;
    if (fine) {
        ranks_join(ranks, all, ranks->count * sizeof *all);
        status = compare(ranks, all, mine, err);
    }
    json_decref(mine);
    free(all);
    if (fine) return status;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to compare the recipes of %zu ranks", ranks->count);
}
