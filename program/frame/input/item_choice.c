/* Parses shards and sampled shares, and chooses items by the hash of their names. SPDX-License-Identifier: MIT */
#include "program/frame/input/item_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/scope.h"

/* ---------------------------------------------------------------------------------------------------------- options */

static bool read_number(const char *text, size_t *number)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    *number = (size_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0;
}

void item_choice_parse_shards(common_options *options, const char *text, void *target)
{
    item_choice *choice = (item_choice *)((char *)target - offsetof(item_choice, shards));
    choice->of_array = strcmp(text, "array") == 0;
    if (choice->of_array) return;
    if (!read_number(text, &choice->shards) || choice->shards < 1 || choice->shards > MOST_SHARDS)
        option_wrong(options, &choice->shards, "expected 1 to %d, or array; found '%s'", MOST_SHARDS, text);
}

/* Reads a variable of a Slurm job array; returns false if it is not set or no number. */
static bool read_array_variable(const char *suffix, size_t *number)
{
    char name[64];
    snprintf(name, sizeof name, "SLURM_ARRAY_TASK_%s", suffix);
    const char *text = getenv(name);
    return text && read_number(text, number);
}

/* Takes shard and shards from a job array. An array without gaps has one shard for each task. One with gaps repeats
 * some tasks of another array, whose size the variables do not hold. */
static void settle_array(const common_options *options, const item_choice *given, item_choice *settled)
{
    size_t id, count, first, last;
    if (option_given(options, &given->shard))
        option_wrong(options, &given->shard, "--shards array takes it from the job array");
    if (!read_array_variable("ID", &id) || !read_array_variable("COUNT", &count) || !read_array_variable("MIN", &first))
        option_wrong(options, &given->shards,
                     "array: SLURM_ARRAY_TASK_ID, _COUNT and _MIN are not set, so this "
                     "is no task of a job array");
    if (!read_array_variable("MAX", &last)) last = first + count - 1;
    if (last - first + 1 != count || id < first || id > last || count == 0 || count > MOST_SHARDS)
        option_wrong(options, &given->shards,
                     "array: the job array has gaps (%zu tasks from %zu to %zu): give the number of shards", count,
                     first, last);
    settled->shards = count;
    settled->shard = id - first;
}

void item_choice_settle(const common_options *options, const item_choice *given, item_choice *settled)
{
    *settled = *given;
    if (given->of_ranks) return;
    if (given->of_array) {
        settle_array(options, given, settled);
        return;
    }
    if (!given->shards || given->share > 0) return;
    if (!option_given(options, &given->shard) && !read_array_variable("ID", &settled->shard))
        option_wrong(options, &given->shards,
                     "say which one: --shard 0 to %zu (in a job array of Slurm its task is taken)", given->shards - 1);
    if (settled->shard >= settled->shards)
        option_wrong(options, &given->shard, "expected 0 to %zu of %zu shards, found %zu%s", given->shards - 1,
                     given->shards, settled->shard,
                     option_given(options, &given->shard) ? "" : " (SLURM_ARRAY_TASK_ID)");
}

/* ------------------------------------------------------------------------------------------------------------ items */

/* Hashes an id: a string by its bytes, any other value by its compact JSON text. */
static uint64_t hash_id(const json_t *id)
{
    if (json_is_string(id)) return hash_bytes(hash_of_nothing, json_string_value(id), json_string_length(id));
    char *text = json_dumps(id, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!text) memory_short();
    const uint64_t hash = hash_bytes(hash_of_nothing, text, strlen(text));
    free(text);
    return hash;
}

/* Hashes the place of an item without its folder, because another machine may have the corpus elsewhere. */
static uint64_t hash_place(const item_name *name)
{
    char line[32];
    const char *source = name->source ? name->source : "", *slash = strrchr(source, '/');
    if (slash) source = slash + 1;
    const int length = snprintf(line, sizeof line, ":%zu", name->line);
    return hash_bytes(hash_bytes(hash_of_nothing, source, strlen(source)), line, (size_t)length);
}

bool item_is_taken(const item_choice *choice, const item_name *name)
{
    if (!choice->shards && choice->share == 0) return true;
    const uint64_t hash = name->id ? hash_id(name->id) : hash_place(name);
    /* The low bits of that hash are not uniform; one step of the generator mixes them. */
    uint64_t state = hash, draw = hash ^ random_next(&(uint64_t){choice->seed});
    return choice->share > 0 ? random_fraction(&draw) < choice->share
                             : random_next(&state) % choice->shards == choice->shard;
}
