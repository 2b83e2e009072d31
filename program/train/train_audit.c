/* Checks the chain of a run, draws segments of it, and executes them again. SPDX-License-Identifier: MIT */
#include "program/train/train_audit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/numbers.h"
#include "core/io/checkpoint.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "output/json_text.h"
#include "program/frame/audit.h"
#include "program/frame/progress.h"
#include "program/frame/unfinished.h"
#include "program/train/train_command.h"
#include "program/train/train_options.h"

static const json_limits command_limits = {.bytes = 64 << 20, .depth = 8, .values = 1 << 20};

/* State of an audit. */
typedef struct train_audit_work {
    const train_audit_request *request;
    const common_options *options;
    deberta_chain *chain;
    const deberta_chain_info *info;
    size_t *starts, start_count; /* first steps of the possible segments, followed by the end of the last one */
    json_t *command;             /* content of RUN/command.json */
    result *r;
} train_audit_work;

static const char *run_path(const train_audit_work *w, const char *name)
{
    return options_text(w->options, "%s/%s", w->request->run, name);
}

/* ----------------------------------------------------------------------------------------------------- the chain alone */

/* Reports what was confirmed, at once and in the result. */
static void say_held(const train_audit_work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say_held(const train_audit_work *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *sentence = options_print(w->options, format, arguments);
    va_end(arguments);
    result_say(w->r, "%s", sentence);
}

/* Reports a difference, the finding of an audit; returns the exit code. */
static int find_wrong(const train_audit_work *w, const char *sentence)
{
    result_say(w->r, "differs: %s", sentence);
    result_set(w->r, "equal", json_false());
    result_set(w->r, "differs", json_clean_text(sentence));
    return EXIT_CHECK_FAILED;
}

static void open_chain(train_audit_work *w)
{
    deberta_error error = {0};
    if (access(run_path(w, "chain.jsonl"), F_OK) != 0)
        end_with(w->options, EXIT_INPUT,
                 "%s has no chain.jsonl: expected the folder of a run that was trained with --chain", w->request->run);
    must(w->options, deberta_chain_open(&w->chain, w->request->run, &error), &error);
    w->info = deberta_chain_describe(w->chain);
    result_set(w->r, "run", json_clean_text(w->request->run));
    result_set(w->r, "head", json_string(w->info->head));
    result_set(w->r, "recipe", json_string(w->info->recipe));
    result_set(w->r, "records", json_integer((json_int_t)w->info->count));
}

/* Checks that every line follows from the one above, steps ascend, and the recipe is that of the first line. */
static const char *judge_links(const train_audit_work *w)
{
    char recipe[65];
    deberta_error error = {0};
    size_t last = 0;
    must(w->options, file_digest(run_path(w, "recipe.json"), recipe, &error), &error);
    if (!w->info->follows) return "line 1 of chain.jsonl has another link than its contents give";
    if (strcmp(recipe, w->info->recipe) != 0)
        return options_text(w->options, "recipe.json has SHA-256 %s, and the chain was begun with %s", recipe,
                            w->info->recipe);
    for (size_t k = 0; k < w->info->count; k++) {
        const deberta_chain_record *record = deberta_chain_record_at(w->chain, k);
        if (!record->follows)
            return options_text(w->options,
                                "line %zu of chain.jsonl, of step %zu, does not follow from the line above it", k + 2,
                                record->step);
        if (record->step < last)
            return options_text(w->options, "line %zu of chain.jsonl is of step %zu, and the line above it of step %zu",
                                k + 2, record->step, last);
        last = record->step;
    }
    return NULL;
}

static const char *model_name(const train_audit_work *w, const char *of)
{
    return *of ? options_text(w->options, "the model in %s", of) : "the model";
}

/* Returns the last record of the model in this folder of the run, or of the state; NULL if there is none. */
static const deberta_chain_record *last_record(const train_audit_work *w, const char *of)
{
    for (size_t k = w->info->count; k-- > 0;) {
        const deberta_chain_record *record = deberta_chain_record_at(w->chain, k);
        if (of ? record->of && strcmp(record->of, of) == 0 : !record->of) return record;
    }
    return NULL;
}

static bool begins_late(const train_audit_work *w)
{
    const deberta_chain_record *first = deberta_chain_record_at(w->chain, 0);
    return first && first->step > 0;
}

/* Checks that models in the run's folder are those of their last records, and that each has one. */
static const char *judge_models(const train_audit_work *w)
{
    static const char *const folders[] = {DEBERTA_CHAIN_MODELS};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char digest[65];
        deberta_error missing;
        const char *name = model_name(w, folders[k]);
        const deberta_chain_record *record = last_record(w, folders[k]);
        const bool is_there = checkpoint_digest_folder(run_path(w, folders[k]), digest, &missing) == DEBERTA_OK;
        if (is_there && !record && !begins_late(w)) return options_text(w->options, "%s has no record", name);
        if (is_there && !record) say_note(w->options, "note: %s has no record: the chain begins later", name);
        if (!is_there && record)
            say_note(w->options, "note: %s is not there, and its record of step %zu is not compared", name,
                     record->step);
        if (!is_there || !record) continue;
        if (strcmp(digest, record->digest) != 0)
            return options_text(w->options, "%s has the digest %s, and its record of step %zu has %s", name, digest,
                                record->step, record->digest);
        say_held(w, "%s is the one recorded after step %zu", name, record->step);
    }
    return NULL;
}

/* Compares the files in a folder with the digests that the run wrote next to them. */
static const char *judge_digests(const train_audit_work *w, const char *folder, const json_t *digests)
{
    const char *name;
    const json_t *expected;
    if (!json_object_size(digests)) return options_text(w->options, "%straining.json has no SHA-256 of files", folder);
    json_object_foreach((json_t *)digests, name, expected)
    {
        char digest[65];
        deberta_error error = {0};
        const char *path = options_text(w->options, "%s%s", folder, name);
        if (strstr(name, "..")) return options_text(w->options, "%straining.json names files elsewhere", folder);
        must(w->options, file_digest(run_path(w, path), digest, &error), &error);
        if (!json_is_string(expected) || strcmp(digest, json_string_value(expected)) != 0)
            return options_text(w->options, "%s has SHA-256 %s, and its training.json another", path, digest);
    }
    return NULL;
}

/* Checks training.json, which a run writes last into a checkpoint and into its own folder. */
static const char *judge_state_file(const train_audit_work *w, const char *folder, const json_t *recipe)
{
    json_t *state = NULL;
    const char *wrong = NULL;
    deberta_error error = {0};
    const deberta_chain_record *last = last_record(w, NULL);
    const char *path = options_text(w->options, "%straining.json", folder);
    must(w->options, json_file_read(&state, run_path(w, path), &command_limits, &error), &error);
    const json_int_t step = json_integer_value(json_object_get(state, "step"));
    if (!last || step > (json_int_t)last->step)
        wrong = options_text(w->options, "%s is of step %lld, and the last recorded state of step %zu", path,
                             (long long)step, last ? last->step : 0);
    else if (!json_equal(json_object_get(state, "recipe"), recipe))
        wrong = options_text(w->options, "%s has another recipe than recipe.json", path);
    if (!wrong) wrong = judge_digests(w, folder, json_object_get(state, "sha256"));
    json_decref(state);
    return wrong;
}

/* Checks that no record is missing at the end, and that no kept file has changed since the run wrote it. */
static const char *judge_files(const train_audit_work *w)
{
    json_t *recipe = NULL;
    deberta_error error = {0};
    const char *wrong = NULL, *kept = "";
    must(w->options, json_file_read(&recipe, run_path(w, "recipe.json"), &command_limits, &error), &error);
    for (size_t k = 0; !wrong && k < w->info->count; k++) {
        const deberta_chain_record *record = deberta_chain_record_at(w->chain, k);
        const char *folder = options_text(w->options, "checkpoint-%06zu/", record->step);
        if (record->of || access(run_path(w, options_text(w->options, "%straining.json", folder)), R_OK) != 0) continue;
        kept = options_text(w->options, "%s%s%zu", kept, *kept ? ", " : "", record->step);
        wrong = judge_state_file(w, folder, recipe);
    }
    if (!wrong && access(run_path(w, "training.json"), R_OK) == 0) wrong = judge_state_file(w, "", recipe);
    json_decref(recipe);
    if (!wrong) say_held(w, "kept checkpoints: %s", *kept ? kept : "none");
    return wrong;
}

/* Checks that a published line belongs to this chain, in its state then or now. */
static const char *judge_published(const train_audit_work *w)
{
    char head[65], recipe[65];
    size_t count = 0, step = 0;
    const char *line = w->request->published;
    if (!line) return NULL;
    if (sscanf(line, "deberta-chain 1 %64[0-9a-f] records %zu step %zu recipe %64[0-9a-f]", head, &count, &step,
               recipe) != 4)
        usage_wrong(w->options, "--published takes the line that --commit has printed");
    const deberta_chain_record *record = count ? deberta_chain_record_at(w->chain, count - 1) : NULL;
    if (!record || strcmp(record->link, head) != 0)
        return options_text(w->options, "the published line has link %s after %zu records, and the chain %s", head,
                            count, record ? record->link : "fewer");
    if (strcmp(w->info->recipe, recipe) != 0)
        return options_text(w->options, "the published line has recipe %s, and the chain %s", recipe, w->info->recipe);
    if (record->step != step)
        return options_text(w->options, "the published line has step %zu after %zu records, and the chain %zu", step,
                            count, record->step);
    say_held(w, "the published line is of this chain, up to step %zu", record->step);
    return NULL;
}

/* Reports the first step from which the chain can be executed, and names the steps before it, which it does not prove.
 */
static void say_first_step(const train_audit_work *w, size_t first)
{
    const deberta_chain_record *begun = deberta_chain_record_at(w->chain, 0);
    result_set(w->r, "first_step", json_integer((json_int_t)first));
    if (first == 0) return;
    say_note(w->options, "note: steps 1 to %zu are not covered: the chain begins at step %zu%s", first, begun->step,
             first > begun->step ? options_text(w->options, ", and the first kept checkpoint is of step %zu", first)
                                 : "");
}

/* ------------------------------------------------------------------------------------------------------------ segments */

/* Returns true if a segment can begin at a record: one with a kept checkpoint, or the beginning of the run. */
static bool can_start(const train_audit_work *w, const deberta_chain_record *record)
{
    if (record->of) return false;
    const char *state = options_text(w->options, "checkpoint-%06zu/training.json", record->step);
    return record->step == 0 || access(run_path(w, state), R_OK) == 0;
}

static void find_starts(train_audit_work *w)
{
    size_t last = 0;
    w->starts = options_take(w->options, w->info->count + 1, sizeof *w->starts);
    for (size_t k = 0; k < w->info->count; k++) {
        const deberta_chain_record *record = deberta_chain_record_at(w->chain, k);
        last = record->step;
        if (can_start(w, record)) w->starts[w->start_count++] = record->step;
    }
    if (w->start_count == 0)
        end_with(
            w->options, EXIT_INPUT,
            "%s: no segment can be executed: no checkpoint of a recorded step is kept, and the chain does not begin "
            "with step 0",
            w->request->run);
    if (w->starts[w->start_count - 1] < last) w->starts[w->start_count++] = last;
    if (w->start_count < 2)
        end_with(w->options, EXIT_INPUT, "%s: no segment can be executed: no state is recorded after step %zu",
                 w->request->run, w->starts[0]);
}

/* Draws `count` of all segments without replacement; marks[k]: segment k is drawn. Every set is equally likely. */
static bool *draw_segments(const train_audit_work *w, size_t segments, size_t count, uint64_t seed)
{
    bool *marks = options_take(w->options, segments, sizeof *marks);
    for (size_t k = 0, left = count; k < segments; k++) {
        const uint64_t place = random_next(&seed) % (segments - k);
        marks[k] = place < left;
        left -= marks[k];
    }
    return marks;
}

/* ---------------------------------------------------------------------------------------------------- the command again */

static _Noreturn void refuse_command(const train_audit_work *w, const char *why)
{
    end_with(w->options, EXIT_INPUT, "%s: %.200s; expected the file as the run wrote it", run_path(w, COMMAND_FILE),
             why);
}

/* Refuses an output that would replace what the run has read: its model and its data are named in its folder alone. */
static void check_outputs(const train_audit_work *w)
{
    const text_list *outs = &w->options->outs;
    size_t k;
    const json_t *row;
    for (size_t out = 0; out < outs->count; out++) {
        const char *model = json_string_value(json_object_get(w->command, "model"));
        if (model) option_refuse_place(w->options, "the run's model", model, outs->items[out]);
        json_array_foreach(json_object_get(w->command, "options"), k, row)
        {
            const char *value = json_string_value(json_array_get(row, 1));
            if (value) option_refuse_place(w->options, "the run's input", value, outs->items[out]);
        }
    }
}

static void read_command(train_audit_work *w)
{
    deberta_error error = {0};
    must(w->options, json_file_read(&w->command, run_path(w, COMMAND_FILE), &command_limits, &error), &error);
    check_outputs(w);
}

static const command *find_training(const train_audit_work *w)
{
    const char *name = json_string_value(json_object_get(w->command, "command"));
    const command *found = name ? audit_find_command(w->options, name) : NULL;
    if (!found || found->spreads != SPREADS_STEPS) refuse_command(w, "its 'command' is not one that trains");
    return found;
}

/* Adds the recorded options, with the paths of data and models on this machine. A file from elsewhere may contain
 * only options that a run records, so that it cannot make the audit write anywhere. */
static void add_recorded(const train_audit_work *w, const command *command, audit_words *words)
{
    size_t k, file = 0;
    json_t *pair;
    const text_list *files = w->request->files;
    if (!options_find(command, "generator") && w->request->generator)
        say_note(w->options, "note: --generator: this run has none");
    json_array_foreach(json_object_get(w->command, "options"), k, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0)),
                   *value = json_string_value(json_array_get(pair, 1));
        const option *row = name ? options_find(command, name) : NULL;
        if (!row || !train_command_records(row) || !row->value != !value || json_array_size(pair) != (value ? 2u : 1u))
            refuse_command(w, options_text(w->options, "its option %zu is not one that a run records", k + 1));
        if (train_command_reads(row) && files->count) value = file < files->count ? files->items[file] : value;
        file += train_command_reads(row);
        if (strcmp(name, "config") == 0 && w->request->model) value = w->request->model;
        if (strcmp(name, "generator") == 0 && w->request->generator) value = w->request->generator;
        audit_add_word(words, options_text(w->options, "--%s", name));
        if (value) audit_add_word(words, value);
    }
}

static audit_words command_again(const train_audit_work *w, const command *command)
{
    audit_words words = {.options = w->options};
    const char *model = json_string_value(json_object_get(w->command, "model"));
    audit_add_word(&words, command->name);
    add_recorded(w, command, &words);
    audit_add_pair(&words, "--out", w->request->run);
    audit_add_word(&words, "--quiet");
    audit_add_machine(&words);
    if (model) audit_add_pair(&words, "--", w->request->model ? w->request->model : model);
    return words;
}

/* Reports data that cannot be checked, because they are missing or differ from the run's. */
static void check_data(const train_audit_work *w)
{
    size_t k;
    json_t *file;
    const text_list *files = w->request->files;
    const json_t *recorded_files = json_object_get(w->command, "files");
    const size_t count = json_array_size(recorded_files);
    if (files->count && files->count != count)
        usage_wrong(w->options, "--file is given %zu time%s, and the run read %zu file%s", files->count,
                    files->count == 1 ? "" : "s", count, count == 1 ? "" : "s");
    json_array_foreach(recorded_files, k, file)
    {
        char digest[65];
        deberta_error missing;
        const char *recorded = json_string_value(json_object_get(file, "path")),
                   *expected = json_string_value(json_object_get(file, "sha256"));
        if (!recorded || !expected) refuse_command(w, "an item of 'files' has no path or no sha256");
        const char *path = files->count > k ? files->items[k] : recorded;
        if (file_digest(path, digest, &missing) != DEBERTA_OK)
            end_with(
                w->options, EXIT_INPUT,
                "nothing can be executed: %.300s is not there; its SHA-256 is %.64s (seen from this folder; --file "
                "names its place)",
                path, expected);
        if (strcmp(digest, expected) != 0)
            end_with(w->options, EXIT_INPUT,
                     "nothing can be executed: %.300s has SHA-256 %s, and the run read one of %.64s", path, digest,
                     expected);
    }
}

/* ----------------------------------------------------------------------------------------------------------- executing */

/* Saves the model of this step again and compares its digest. */
static int compare_model(train_segment *s, deberta_trainer *trainer, const deberta_chain_record *record)
{
    char digest[65];
    deberta_error error = {0};
    const char *slash = strrchr(record->of, '/');
    const char *part = slash ? slash + 1 : strcmp(record->of, "best") == 0 ? "" : record->of;
    must(s->common, deberta_trainer_save(trainer, s->folder, &error), &error);
    must(s->common, checkpoint_digest_folder(options_text(s->common, "%s/%s", s->folder, part), digest, &error),
         &error);
    s->records++;
    if (strcmp(digest, record->digest) == 0) return 0;
    s->wrong = options_text(s->common, "the model in '%s' after step %zu: its digest is %s, recorded is %s",
                            *record->of ? record->of : s->run, record->step, digest, record->digest);
    return 1;
}

typedef struct segment_listener {
    train_segment *segment;
    deberta_trainer *trainer;
    progress_bar bar;
} segment_listener;

static int take_record(void *context, const deberta_chain_record *record)
{
    segment_listener *listener = context;
    train_segment *s = listener->segment;
    progress_step(&listener->bar, record->step - s->from, options_text(s->common, "step %zu is equal", record->step));
    if (record->of) return compare_model(s, listener->trainer, record);
    s->records++;
    return 0;
}

deberta_status train_segment_execute(train_segment *s, deberta_trainer *trainer, deberta_error *err)
{
    char found[65];
    const deberta_chain_record *differs = NULL;
    segment_listener listener = {
        .segment = s, .trainer = trainer, .bar = progress_begin_long(s->common, "steps", s->until - s->from)};
    const deberta_status status =
        deberta_trainer_audit(trainer, s->chain, s->until, take_record, &listener, &differs, found, err);
    progress_end(&listener.bar);
    if (differs && differs->step == s->from)
        s->wrong =
            options_text(s->common, "%s is not the state recorded after step %zu: its digest is %s, recorded is %s",
                         s->from ? options_text(s->common, "checkpoint-%06zu", s->from) : "the beginning",
                         differs->step, found, differs->digest);
    else if (differs)
        s->wrong = options_text(s->common, "the state after step %zu: computed is %s, recorded is %s", differs->step,
                                found, differs->digest);
    return status;
}

static int execute(const train_audit_work *w, train_segment *segment)
{
    const command *training = find_training(w);
    const audit_words words = command_again(w, training);
    end_hook hook;
    audit_blame_words(&hook);
    common_options *options = options_parse(training, w->options->commands, (int)words.count, words.words);
    ((train_options *)options)->segment = segment;
    options->teller = w->options->command;
    const int status = training->run(options);
    options_free(&options);
    end_hook_drop(&hook);
    return status;
}

static const result_column segment_columns[] = {{"from", "from step", COLUMN_INTEGER, NULL, 0},
                                                {"to", "to step", COLUMN_INTEGER, NULL, 0},
                                                {"records", "records compared", COLUMN_INTEGER, NULL, 0},
                                                {"equal", "equal", COLUMN_FLAG, NULL, 0},
                                                {NULL, NULL, COLUMN_TEXT, NULL, 0}};

/* Executes the marked segments in the order of the run, up to the first that differs. */
static int execute_all(const train_audit_work *w, const bool *marks)
{
    int status = EXIT_OK;
    const char *folder = audit_make_folder(w->options);
    result_table *table = result_add_table(w->r, "segments", NULL, segment_columns);
    for (size_t k = 0; status == EXIT_OK && k + 1 < w->start_count; k++) {
        if (!marks[k]) continue;
        train_segment segment = {.chain = w->chain,
                                 .from = w->starts[k],
                                 .until = w->starts[k + 1],
                                 .folder = folder,
                                 .common = w->options,
                                 .run = w->request->run};
        status = execute(w, &segment);
        if (status != EXIT_OK) break;
        cell_integer(table, (int64_t)segment.from);
        cell_integer(table, (int64_t)segment.until);
        cell_integer(table, (int64_t)segment.records);
        cell_flag(table, !segment.wrong);
        if (segment.wrong) status = find_wrong(w, segment.wrong);
    }
    unfinished_release_folder();
    return status;
}

/* Reports which segments will be executed, as that may take hours. */
static void say_draw(const train_audit_work *w, const bool *marks, size_t count, uint64_t seed)
{
    const size_t segments = w->start_count - 1;
    size_t steps = 0;
    for (size_t k = 0; k < segments; k++) steps += marks[k] ? w->starts[k + 1] - w->starts[k] : 0;
    say_note(w->options, "%zu of %zu segments, drawn with --seed %llu: %zu steps", count, segments,
             (unsigned long long)seed, steps);
    result_set(w->r, "seed", json_integer((json_int_t)seed));
    result_set(w->r, "drawn", json_integer((json_int_t)count));
    result_set(w->r, "of", json_integer((json_int_t)segments));
    result_set(w->r, "steps", json_integer((json_int_t)steps));
}

static int audit_segments(train_audit_work *w)
{
    find_starts(w);
    if (!w->command) read_command(w); /* which says that there is none */
    find_training(w);
    check_data(w);
    const size_t segments = w->start_count - 1, count = minimum(w->request->segments, segments);
    const uint64_t seed = audit_seed(w->options);
    const bool *marks = draw_segments(w, segments, count, seed);
    say_first_step(w, w->starts[0]);
    say_draw(w, marks, count, seed);
    const int status = execute_all(w, marks);
    if (status != EXIT_OK) return status;
    const char *from = w->starts[0] ? options_text(w->options, " from step %zu on", w->starts[0]) : "";
    result_say(w->r, "%zu of %zu segments executed again, drawn with --seed %llu: every record%s is equal", count,
               segments, (unsigned long long)seed, from);
    if (count < segments)
        result_say(w->r, "a change in one segment is found so with %.0f %%; --segments %zu executes all",
                   100 * (double)count / (double)segments, segments);
    result_say(w->r, "head %s", w->info->head);
    result_set(w->r, "equal", json_true());
    return EXIT_OK;
}

int train_audit_commit(const train_audit_request *request, result *r)
{
    train_audit_work w = {.request = request, .options = request->common, .r = r};
    open_chain(&w);
    if (access(run_path(&w, COMMAND_FILE), F_OK) == 0) read_command(&w);
    const char *wrong = judge_links(&w);
    int status = EXIT_OK;
    if (wrong) {
        status = find_wrong(&w, wrong);
    } else {
        const deberta_chain_record *last = w.info->count ? deberta_chain_record_at(w.chain, w.info->count - 1) : NULL;
        result_say(r, "deberta-chain 1 %s records %zu step %zu recipe %s", w.info->head, w.info->count,
                   last ? last->step : 0, w.info->recipe);
        result_set(r, "step", json_integer((json_int_t)(last ? last->step : 0)));
        if (last) say_first_step(&w, deberta_chain_record_at(w.chain, 0)->step);
    }
    json_decref(w.command);
    deberta_chain_free(&w.chain);
    return status;
}

int train_audit(const train_audit_request *request, result *r)
{
    train_audit_work w = {.request = request, .options = request->common, .r = r};
    open_chain(&w);
    if (access(run_path(&w, COMMAND_FILE), F_OK) == 0) read_command(&w);
    const char *wrong = judge_links(&w);
    if (!wrong) say_held(&w, "%zu records follow from each other and from recipe.json", w.info->count);
    if (!wrong) wrong = judge_published(&w);
    if (!wrong) wrong = judge_models(&w);
    if (!wrong) wrong = judge_files(&w);
    const int status = wrong ? find_wrong(&w, wrong) : audit_segments(&w);
    json_decref(w.command);
    deberta_chain_free(&w.chain);
    return status;
}
