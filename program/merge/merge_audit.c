/* An audit: drawn items are computed again, by the command that the manifests hold, and must have the same bytes,
 * whatever this machine is. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/status.h"
#include "output/json_text.h"
#include "program/frame/input/text_stream.h"
#include "program/frame/unfinished.h"
#include "program/merge/merge_shards.h"

enum { MOST_NAMED = 10 /* items that differ */ };

/* ---------------------------------------------------------------------------------------------------- the command again */

typedef struct word_list {
    const common_options *options;
    char **words;
    size_t count, capacity;
} word_list;

static void add(word_list *list, const char *word)
{
    list->words = options_grown(list->options, list->words, &list->capacity, list->count, sizeof *list->words);
    list->words[list->count++] = (char *)(uintptr_t)options_text(list->options, "%s", word);
}

static void add_pair(word_list *list, const char *name, const char *value)
{
    add(list, name);
    add(list, value);
}

/* The words of the manifest, with the places of model and input on this machine. */
static word_list command_again(const merge_options *o, const json_t *command, const char *out)
{
    word_list list = {.options = &o->common};
    size_t k;
    json_t *word;
    json_array_foreach(command, k, word)
    {
        const char *text = json_string_value(word);
        if (k == 1 && o->model) text = o->model;
        if (o->files.count && text && strcmp(text, "--file") == 0)
            k++;
        else
            add(&list, text ? text : "");
    }
    for (size_t f = 0; f < o->files.count; f++) add_pair(&list, "--file", o->files.items[f]);
    add_pair(&list, "--shards", "1");
    add_pair(&list, "--out", out);
    add(&list, "--quiet");
    if (o->common.isa != DEBERTA_ISA_AUTO) add_pair(&list, "--isa", deberta_isa_name(o->common.isa));
    if (o->common.threads) add_pair(&list, "--threads", options_text(&o->common, "%zu", o->common.threads));
    return list;
}

static const command *find_command(const common_options *options, const char *name)
{
    const command *const *of = options->commands;
    while (of && *of && strcmp((*of)->name, name) != 0) of++;
    return of ? *of : NULL;
}

static int compute(const merge_options *o, const shard_manifest *manifest, const char *out)
{
    const word_list list = command_again(o, manifest->command, out);
    const command *command = list.count ? find_command(&o->common, list.words[0]) : NULL;
    if (!command) usage_wrong(&o->common, "the manifests name no command of this program");
    common_options *options = options_parse(command, o->common.commands, (int)list.count, list.words);
    item_choice *items = &((reading_options *)options)->items;
    options->teller = o->common.teller;
    items->share = o->audit;
    items->seed = o->common.seed;
    const int code = command->run(options);
    options_free(&options);
    /* Items that cannot be used are compared as well: then the manifest is there. */
    return code == EXIT_INPUT && access(options_text(&o->common, "%s.shards/0-of-1.json", out), F_OK) == 0 ? EXIT_OK
                                                                                                           : code;
}

/* --------------------------------------------------------------------------------------------------------- comparing */

typedef struct comparison {
    merge_shard *again;
    const corpus_output *layout;
    size_t items, differing, last;
    result *r;
} comparison;

static bool same_row(const corpus_row *a, const corpus_row *b)
{
    return a->text == b->text && a->tokens == b->tokens && a->characters.begin == b->characters.begin &&
           a->characters.end == b->characters.end && a->skipped == b->skipped;
}

static deberta_status compare_row(void *context, const merge_shard *shard, const corpus_row *row, const uint8_t *bytes,
                                  size_t count_bytes, deberta_error *err)
{
    comparison *c = context;
    const uint8_t *again;
    size_t again_bytes;
    if (!c->again->has_row || c->again->row.text != row->text) return DEBERTA_OK;
    const corpus_row row_again = c->again->row;
    DEBERTA_TRY(merge_next_row(c->again, c->layout, &again, &again_bytes, err));
    const bool same = same_row(row, &row_again) && again_bytes == count_bytes && memcmp(again, bytes, count_bytes) == 0;
    c->items += c->last != row->text;
    if (!same && c->differing++ < MOST_NAMED)
        result_say(c->r, "item %zu of the input, in shard %zu, has other bytes when it is computed here", row->text,
                   shard->manifest.shard);
    c->last = row->text;
    return DEBERTA_OK;
}

static const char *isa_of(const shard_manifest *manifest)
{
    const char *isa = json_string_value(json_object_get(manifest->made, "isa"));
    return isa ? isa : "an unknown instruction set";
}

static int compare(merge_shards *shards, merge_shards *again, result *r)
{
    deberta_error error = {0};
    comparison c = {.again = &again->list[0], .layout = &shards->layout, .last = SIZE_MAX, .r = r};
    must(shards->options, merge_shards_walk(shards, compare_row, &c, &error), &error);
    c.differing += c.again->has_row; /* a row that the shards lack */
    result_say(r, "audit: %zu of %zu items computed again with %s: %s", c.items, shards->total,
               isa_of(&c.again->manifest), c.differing ? "their bytes differ" : "the same bytes");
    result_set(r, "audited", json_integer((json_int_t)c.items));
    result_set(r, "differing", json_integer((json_int_t)c.differing));
    return c.differing ? EXIT_CHECK_FAILED : EXIT_OK;
}

static int judge(merge_shards *shards, const char *folder, result *r)
{
    char why[512];
    merge_shards again;
    merge_shards_open(&again, shards->options, folder);
    merge_shards_check(&again);
    if (merge_differ(&shards->list[0].manifest, &again.list[0].manifest, why))
        end_with(shards->options, EXIT_INPUT, "what is on this machine is not what the shards were made of: %.400s",
                 why);
    if (again.list[0].manifest.items == 0)
        end_with(shards->options, EXIT_INPUT, "no item of %zu was drawn: give --audit a larger share", shards->total);
    const int status = compare(shards, &again, r);
    merge_shards_close(&again);
    return status;
}

/* ------------------------------------------------------------------------------------------------ files of their own */

/* The folder goes with a signal as well; none comes between its making and that. */
static const char *make_folder(const common_options *options)
{
    const char *place = getenv("TMPDIR");
    char *folder =
        (char *)(uintptr_t)options_text(options, "%s/deberta-audit-XXXXXX", place && *place ? place : "/tmp");
    unfinished_hold();
    const bool made = mkdtemp(folder);
    const int reason = errno;
    if (made) unfinished_add_folder(folder);
    unfinished_add(NULL);
    if (made) return folder;
    end_with(options, EXIT_SYSTEM, "%s cannot be made: %s", folder, strerror(reason));
}

int merge_audit(const merge_options *o, merge_shards *shards, result *r)
{
    const common_options *options = &o->common;
    const shard_manifest *manifest = &shards->list[0].manifest;
    const char *suffix = strrchr(manifest->file, '.');
    const char *folder = make_folder(options), *out = options_text(options, "%s/audit%s", folder, suffix ? suffix : "");
    int status = compute(o, manifest, out);
    /* The command that computes watches for SIGTERM and SIGUSR1 itself, and lets its batches finish. */
    unfinished_install_handlers();
    if (status == EXIT_OK && stop_request_came()) status = EXIT_AGAIN;
    if (status == EXIT_OK) status = judge(shards, options_text(options, "%s.shards", out), r);
    unfinished_release_folder();
    return status;
}
