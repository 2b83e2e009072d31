/* Audits shards: computes randomly drawn items again with the command in the manifests, and compares their bytes,
 * which must be the same on any machine.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/status.h"
#include "output/json_text.h"
#include "program/frame/audit.h"
#include "program/frame/corpus/corpus_shard.h"
#include "program/frame/unfinished.h"
#include "program/merge/merge_shards.h"

enum { MOST_NAMED = 10 /* differing items that are named, at most */ };

/* ---------------------------------------------------------------------------------------------------- the command again */

/* The command of a manifest. A manifest may come from elsewhere, so its command is not run, but rebuilt from what it
 * may contain: the command of the settings, one argument, and options that shards record, each with its value.
 * Options that decide rows must be those of the settings, which all shards have in common. */
typedef struct recorded_command {
    const command *command;
    const char *model;
    audit_words options; /* recorded options without --file */
    text_list files;
} recorded_command;

static _Noreturn void refuse_command(const merge_options *o, const char *word)
{
    end_with(&o->common, EXIT_INPUT,
             "the manifests' command does not make shards, and is not run: '%.100s' is not allowed in it", word);
}

/* Returns the option at word k of the command, or NULL. */
static const option *recorded_option(const recorded_command *recorded, const json_t *words, size_t k)
{
    const char *word = json_string_value(json_array_get(words, k));
    const option *row = word && strncmp(word, "--", 2) == 0 ? options_find(recorded->command, word + 2) : NULL;
    if (!row || corpus_shard_records(row) == SHARD_RECORDS_NOTHING) return NULL;
    return !row->value || k + 1 < json_array_size(words) ? row : NULL;
}

static void read_options(const merge_options *o, const json_t *words, const json_t *settings, recorded_command *to)
{
    json_t *made = json_array();
    const char **files = options_take(&o->common, json_array_size(words), sizeof *files);
    for (size_t k = 2; k < json_array_size(words); k++) {
        const char *word = json_string_value(json_array_get(words, k)), *value = NULL;
        const option *row = recorded_option(to, words, k);
        if (!row) refuse_command(o, word);
        const bool setting = corpus_shard_records(row) == SHARD_RECORDS_SETTING;
        if (row->value) value = json_string_value(json_array_get(words, ++k));
        if (setting) json_array_append_new(made, json_string(word));
        if (setting && value) json_array_append_new(made, json_string(value));
        if (strcmp(row->name, "file") == 0) {
            files[to->files.count++] = value;
            continue;
        }
        audit_add_word(&to->options, word);
        if (value) audit_add_word(&to->options, value);
    }
    to->files.items = files;
    const bool same = json_equal(made, json_object_get(settings, "options"));
    json_decref(made);
    if (!same)
        end_with(&o->common, EXIT_INPUT,
                 "the manifests' command has other options than the settings that made the rows");
}

static recorded_command read_command(const merge_options *o, const shard_manifest *manifest)
{
    const json_t *words = manifest->command;
    const char *name = json_string_value(json_array_get(words, 0)),
               *of_settings = json_string_value(json_object_get(manifest->settings, "command"));
    recorded_command recorded = {.command = name ? audit_find_command(&o->common, name) : NULL,
                                 .model = json_string_value(json_array_get(words, 1)),
                                 .options.options = &o->common};
    if (!recorded.command || recorded.command->spreads != SPREADS_SHARDS || !of_settings ||
        strcmp(of_settings, name) != 0)
        refuse_command(o, name ? name : "");
    if (!recorded.model) refuse_command(o, "");
    read_options(o, words, manifest->settings, &recorded);
    return recorded;
}

/* Rebuilds the command with the paths of model and input on this machine. The model is an argument of any name. */
static audit_words command_again(const merge_options *o, const recorded_command *recorded, const char *out)
{
    audit_words list = {.options = &o->common};
    const text_list *files = o->files.count ? &o->files : &recorded->files;
    audit_add_word(&list, recorded->command->name);
    for (size_t k = 0; k < recorded->options.count; k++) audit_add_word(&list, recorded->options.words[k]);
    for (size_t k = 0; k < files->count; k++) {
        if (files == &recorded->files && strcmp(files->items[k], "-") == 0)
            end_with(&o->common, EXIT_INPUT,
                     "the shards were made of standard input: give --file - with the same input again");
        audit_add_pair(&list, "--file", files->items[k]);
    }
    audit_add_pair(&list, "--shards", "1");
    audit_add_pair(&list, "--out", out);
    audit_add_word(&list, "--quiet");
    audit_add_machine(&list);
    audit_add_pair(&list, "--", o->model ? o->model : recorded->model);
    return list;
}

static int compute(const merge_options *o, const shard_manifest *manifest, uint64_t seed, const char *out)
{
    const recorded_command recorded = read_command(o, manifest);
    const audit_words list = command_again(o, &recorded, out);
    end_hook hook;
    audit_blame_words(&hook);
    common_options *options = options_parse(recorded.command, o->common.commands, (int)list.count, list.words);
    item_choice *items = &((reading_options *)options)->items;
    options->teller = o->common.teller;
    items->share = o->audit;
    items->seed = seed;
    const int code = recorded.command->run(options);
    options_free(&options);
    end_hook_drop(&hook);
    /* Unusable items are compared as well, if the manifest was written. */
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

/* Finds the folder in a line's member "file", which is another where --file says that the input is elsewhere. Returns
 * its length; 0 if the row is no such line. */
static size_t find_folder(const uint8_t *row, size_t bytes, size_t *begin)
{
    /* Rows of `encode` have no blanks between members, lines of the other commands have. */
    static const char *const members[] = {",\"file\":\"", ", \"file\": \""};
    const uint8_t *comma = bytes && *row == '{' ? memchr(row, ',', bytes) : NULL;
    size_t length = 0;
    *begin = 0;
    for (size_t k = 0; comma && !length && k < sizeof members / sizeof *members; k++) {
        const size_t of_member = strlen(members[k]);
        if ((size_t)(row + bytes - comma) >= of_member && memcmp(comma, members[k], of_member) == 0) length = of_member;
    }
    if (!length) return 0;
    size_t end = *begin = (size_t)(comma - row) + length;
    for (size_t k = end; k < bytes && row[k] != '"'; k++) {
        if (row[k] == '/') end = k + 1;
        k += row[k] == '\\';
    }
    return end - *begin;
}

static bool same_bytes(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    size_t a_begin, b_begin;
    const size_t a_folder = find_folder(a, a_bytes, &a_begin), b_folder = find_folder(b, b_bytes, &b_begin);
    const size_t a_end = a_begin + a_folder, b_end = b_begin + b_folder;
    return a_begin == b_begin && a_bytes - a_folder == b_bytes - b_folder && memcmp(a, b, a_begin) == 0 &&
           memcmp(a + a_end, b + b_end, a_bytes - a_end) == 0;
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
    const bool same = same_row(row, &row_again) && same_bytes(again, again_bytes, bytes, count_bytes);
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

static int merge_audit_compare(merge_shards *shards, merge_shards *again, uint64_t seed, result *r)
{
    deberta_error error = {0};
    comparison c = {.again = &again->list[0], .layout = &shards->layout, .last = SIZE_MAX, .r = r};
    must(shards->options, merge_shards_walk(shards, compare_row, &c, &error), &error);
    c.differing += c.again->has_row; /* the shards lack a row that was computed again */
    result_say(r, "audit: %zu of %zu items, drawn with --seed %llu, computed again with %s: %s", c.items, shards->total,
               (unsigned long long)seed, isa_of(&c.again->manifest),
               c.differing ? "their bytes differ" : "the same bytes");
    result_set(r, "seed", json_integer((json_int_t)seed));
    result_set(r, "audited", json_integer((json_int_t)c.items));
    result_set(r, "differing", json_integer((json_int_t)c.differing));
    return c.differing ? EXIT_CHECK_FAILED : EXIT_OK;
}

static int merge_audit_judge(merge_shards *shards, const char *folder, uint64_t seed, result *r)
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
    const int status = merge_audit_compare(shards, &again, seed, r);
    merge_shards_close(&again);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- the audit */

int merge_audit(const merge_options *o, merge_shards *shards, result *r)
{
    const common_options *options = &o->common;
    const shard_manifest *manifest = &shards->list[0].manifest;
    const char *suffix = strrchr(manifest->file, '.');
    const char *folder = audit_make_folder(options),
               *out = options_text(options, "%s/audit%s", folder, suffix ? suffix : "");
    const uint64_t seed = audit_seed(options);
    int status = compute(o, manifest, seed, out);
    /* The command that computes has handled SIGTERM and SIGUSR1 itself, to let its batches finish. */
    unfinished_install_handlers();
    if (status == EXIT_OK && stop_request_came()) status = EXIT_AGAIN;
    if (status == EXIT_OK) status = merge_audit_judge(shards, options_text(options, "%s.shards", out), seed, r);
    unfinished_release_folder();
    return status;
}
