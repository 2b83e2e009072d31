/* Runs a command by shards: rank r of P computes the shards r, r + P, r + 2 P ..., each as if it had been asked for
 * alone. Then rank 0 joins all of them into --out, which has the bytes that one process would have written.
 *
 * SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/deberta_training.h"
#include "output/scope.h"
#include "program/cluster/cluster.h"
#include "program/frame/input/text_stream.h"
#include "program/merge/merge_shards.h"

typedef struct shard_ranks {
    common_options *options;
    item_choice *items; /* the choice of items among the options */
    size_t rank, count;
    const char *folder;
} shard_ranks;

static item_choice *items_of(const common_options *options) { return &((reading_options *)(uintptr_t)options)->items; }

bool shard_ranks_wanted(const common_options *options)
{
    if (options->command->spreads != SPREADS_SHARDS) return false;
    const item_choice *items = items_of(options);
    return options->ranks || (cluster_has_mpi() && items->shards && !option_given(options, &items->shard) &&
                              !getenv("SLURM_ARRAY_TASK_ID"));
}

/* ---------------------------------------------------------------------------------------------------------- checking */

static bool reads_standard_input(const common_options *options)
{
    const text_list *files = &reading_of(options)->files;
    for (size_t k = 0; k < files->count; k++)
        if (strcmp(files->items[k], "-") == 0) return true;
    return false;
}

static void shard_ranks_check(shard_ranks *s)
{
    const common_options *o = s->options;
    item_choice *items = s->items;
    if (option_given(o, &items->shard))
        option_wrong(o, &items->shard, "several ranks compute all shards: leave it out");
    if (items->of_array) option_wrong(o, &items->shards, "several ranks are no job array: give the number of shards");
    if (reads_standard_input(o))
        option_wrong(o, &reading_of(o)->files, "every rank reads all of the input, and - is not theirs");
    if (!options_out(o)) usage_wrong(o, "say where the results of all ranks go: --out FILE");
    if (!items->shards) items->shards = s->count;
    if (items->shards < s->count)
        option_wrong(o, &items->shards, "expected %zu or more, one for each rank at least; found %zu", s->count,
                     items->shards);
    items->of_ranks = true;
}

/* --------------------------------------------------------------------------------------------------------- computing */

static bool is_finished(const shard_ranks *s)
{
    char *path = shard_path(s->folder, s->items->shard, s->items->shards, ".json");
    if (!path) memory_short();
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static int compute_shards(const shard_ranks *s)
{
    int status = EXIT_OK;
    for (size_t shard = s->rank; shard < s->items->shards && status == EXIT_OK; shard += s->count) {
        struct scope_piece *mark = options_mark(s->options);
        s->items->shard = shard;
        const bool was_finished = is_finished(s);
        status = s->options->command->run(s->options);
        options_release(s->options, mark);
        /* Unusable items are no failure of a shard whose manifest is complete. */
        if (status == EXIT_INPUT && !was_finished && is_finished(s)) status = EXIT_OK;
    }
    return status;
}

/* Returns true, on all ranks, if any rank got a request to stop. */
static bool any_stopped(const shard_ranks *s, bool mine)
{
    const deberta_ranks *ranks = s->options->ranks;
    uint8_t stopped = mine;
    if (ranks) ranks->join(ranks->context, &stopped, sizeof stopped);
    return stopped != 0;
}

/* ----------------------------------------------------------------------------------------------------------- joining */

/* Reports the unusable items of other ranks; rank 0 has already reported its own. */
static void report_problems(const shard_ranks *s, const merge_shards *shards)
{
    size_t reported = 0, k, problem;
    json_t *entry;
    for (k = 0; k < shards->count; k++) {
        const shard_manifest *manifest = &shards->list[k].manifest;
        if (manifest->shard % s->count == 0) continue;
        json_array_foreach((json_t *)(uintptr_t)manifest->problems, problem, entry)
        {
            const char *place = json_string_value(json_array_get(entry, 0)),
                       *why = json_string_value(json_array_get(entry, 1));
            if (reported++ < MOST_REPORTED && place && why)
                fprintf(stderr, "deberta %s: %s: %s\n", s->options->command->name, place, why);
        }
    }
    if (reported > MOST_REPORTED)
        fprintf(stderr, "deberta %s: %zu more lines cannot be used\n", s->options->command->name,
                reported - MOST_REPORTED);
}

static void check_all(const shard_ranks *s, merge_shards *shards)
{
    merge_shards_open(shards, s->options, s->folder);
    if (shards->missing_count)
        end_with(s->options, EXIT_SYSTEM, "%s lacks shard %zu, which rank %zu has finished: ranks need one file system",
                 s->folder, shards->missing[0], shards->missing[0] % s->count);
    merge_shards_check(shards);
    merge_shards_cover(shards);
}

static int shard_ranks_join(const shard_ranks *s)
{
    merge_shards shards = {0};
    result *joined = result_new("deberta-merge/1");
    check_all(s, &shards);
    merge_join(&shards, joined);
    report_problems(s, &shards);
    say_note(s->options, "%zu shards of %zu rank%s, %zu items, %zu tokens: joined in %s", shards.shards, s->count,
             s->count == 1 ? "" : "s", shards.total, shards.tokens, options_out(s->options));
    const bool bad = shards.bad && !s->items->skip_bad;
    merge_shards_close(&shards);
    result_free(&joined);
    return bad ? EXIT_INPUT : EXIT_OK;
}

int shard_ranks_run(common_options *options)
{
    const deberta_ranks *ranks = options->ranks;
    shard_ranks s = {.options = options,
                     .items = items_of(options),
                     .rank = ranks ? ranks->rank : 0,
                     .count = ranks ? ranks->count : 1};
    shard_ranks_check(&s);
    s.folder = options_text(options, "%s.shards", options_out(options));
    const int status = compute_shards(&s);
    if (status != EXIT_OK && status != EXIT_AGAIN) return status;
    if (any_stopped(&s, status == EXIT_AGAIN)) return EXIT_AGAIN;
    return s.rank == 0 ? shard_ranks_join(&s) : EXIT_OK;
}
