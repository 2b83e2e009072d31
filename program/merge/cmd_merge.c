/* `deberta merge` joins shards of a corpus into one file, after it has checked that they are complete, consistent,
 * and cover the input.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/json_text.h"
#include "program/commands.h"
#include "program/frame/text_output.h"
#include "program/merge/merge_shards.h"

/* Returns the missing shards as sbatch takes them after --array=: "3,7-9". */
static const char *list_missing(const merge_shards *shards)
{
    const char *list = "";
    for (size_t k = 0, end; k < shards->missing_count; k = end) {
        const size_t first = shards->missing[k];
        for (end = k + 1; end < shards->missing_count && shards->missing[end] == first + (end - k);) end++;
        list = end - k == 1
                   ? options_text(shards->options, "%s%s%zu", list, *list ? "," : "", first)
                   : options_text(shards->options, "%s%s%zu-%zu", list, *list ? "," : "", first, first + (end - k) - 1);
    }
    return list;
}

static int refuse_missing(const merge_shards *shards, result *r)
{
    const char *list = list_missing(shards);
    say_note(shards->options,
             "deberta merge: %zu of %zu shards are not finished; the array to run again:", shards->missing_count,
             shards->shards);
    result_say(r, "--array=%s", list);
    result_set(r, "missing", json_string(list));
    return EXIT_CHECK_FAILED;
}

static void merge_describe(const merge_shards *shards, result *r)
{
    result_say(r, "%zu shards, %zu items, %zu rows, %zu tokens, %zu bad: whole and of one making", shards->shards,
               shards->total, shards->rows, shards->tokens, shards->bad);
    result_set(r, "shards", json_integer((json_int_t)shards->shards));
    result_set(r, "items", json_integer((json_int_t)shards->total));
    result_set(r, "rows", json_integer((json_int_t)shards->rows));
    result_set(r, "tokens", json_integer((json_int_t)shards->tokens));
    result_set(r, "bad", json_integer((json_int_t)shards->bad));
    json_t *problems = json_array();
    for (size_t k = 0; k < shards->count; k++)
        json_array_extend(problems, (json_t *)(uintptr_t)shards->list[k].manifest.problems);
    result_set(r, "problems", problems);
}

/* Returns the exit code of one process over the whole input: a failure if items could not be used, unless the shards
 * were made with --skip-bad. */
static int tell_bad(const merge_shards *shards)
{
    const json_t *problems = NULL, *words = json_object_get(shards->list[0].manifest.settings, "options"), *word;
    size_t k;
    if (!shards->bad) return EXIT_OK;
    json_array_foreach(words, k, word) if (strcmp(json_string_value(word), "--skip-bad") == 0) return EXIT_OK;
    for (k = 0; k < shards->count && !json_array_size(problems); k++) problems = shards->list[k].manifest.problems;
    const json_t *first = json_array_get(problems, 0);
    const char *place = json_string_value(json_array_get(first, 0)),
               *reason = json_string_value(json_array_get(first, 1));
    say_note(shards->options, "deberta merge: %zu of %zu items could not be used%s%s%s%s", shards->bad, shards->total,
             place ? ", such as " : "", place ? place : "", reason ? ": " : "", reason ? reason : "");
    return EXIT_INPUT;
}

static int work(const merge_options *o, merge_shards *shards, result *r)
{
    merge_shards_open(shards, &o->common, o->common.arguments[0]);
    if (shards->count) merge_shards_check(shards);
    if (shards->missing_count) return refuse_missing(shards, r);
    merge_shards_cover(shards);
    merge_describe(shards, r);
    const int status = o->audit > 0 ? merge_audit(o, shards, r) : EXIT_OK;
    if (status == EXIT_OK && options_out(&o->common)) merge_join(shards, r);
    return status;
}

static int merge_run(const common_options *options)
{
    const merge_options *o = (const merge_options *)options;
    merge_shards shards = {0};
    if (!options_out(options) && !o->verify && o->audit == 0)
        usage_wrong(options, "say what to do: --out FILE joins, --verify only checks, --audit computes a share again");
    const void *const of_audit[] = {&options->isa, &options->threads, &options->seed};
    for (size_t k = 0; k < sizeof of_audit / sizeof *of_audit && o->audit == 0; k++)
        option_note_unused(options, of_audit[k], "nothing is computed without --audit");
    result *r = result_new("deberta-merge/1");
    const int status = work(o, &shards, r);
    const int end = status == EXIT_OK && options_out(options) ? tell_bad(&shards) : status;
    merge_shards_close(&shards);
    if (status == EXIT_OK || status == EXIT_CHECK_FAILED)
        finish_result(options, NULL, r, options->json ? RESULT_JSON : RESULT_TEXT);
    else
        result_free(&r);
    return end;
}

/* Parses "1%" or "0.01". */
static void parse_share(common_options *options, const char *text, void *target)
{
    char *end;
    errno = 0;
    double *share = target;
    *share = strtod(text, &end);
    if (*end == '%' && end[1] == 0) *share /= 100, end++;
    if (end != text && *end == 0 && errno == 0 && *share > 0 && *share <= 1) return;
    option_wrong(options, target, "expected a share such as 1%% or 0.01, found '%s'", text);
}

static const option options[] = {
    {"verify", 0, NULL, "only check that the shards are whole, of one making, and cover the input",
     FLAG_AT(merge_options, verify), .not_with = "out"},
    {"audit", 0, "SHARE",
     "compute drawn items again on this machine (1%) and compare their bytes; others each time without --seed",
     PARSED_AT(merge_options, audit, parse_share)},
    {"model", 0, "MODEL", "where the model is on this machine; default: where the shards' command has it",
     TEXT_AT(merge_options, model), .needs = "audit"},
    {"file", 'f', "FILE", "where the input is on this machine; may be repeated", TEXTS_AT(merge_options, files),
     .needs = "audit"},
    {.name = NULL},
};

const command command_merge = {
    .name = "merge",
    .summary = "join the shards of a corpus, after proof that they are whole",
    .arguments = "DIR",
    .writes = WRITES_OWN,
    .options = options,
    .size = sizeof(merge_options),
    .example =
        "  for i in 0 1; do deberta encode models/demo --file corpus.txt -o vectors.npy --shards 2 --shard $i; done\n"
        "  deberta merge vectors.npy.shards --verify              # prints --array=3,7-9 where shards are missing\n"
        "  deberta merge vectors.npy.shards --out vectors.npy     # the bytes that one process would have written\n"
        "  deberta merge vectors.npy.shards --audit 50% --isa scalar\n"
        "\nwith --json: {\"shards\", \"items\", \"rows\", \"tokens\", \"bad\", \"problems\", and \"missing\", \"out\" "
        "and "
        "\"sha256\",\n\"audited\", \"differing\" and \"seed\"}\n",
    .run = merge_run,
    .without = "reference precision memory-limit progress",
};
