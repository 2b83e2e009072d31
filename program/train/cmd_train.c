/* `deberta train` and `deberta finetune` compute gradients of a batch, or a run of updates.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/io/checkpoint.h"
#include "core/io/folder_kind.h"
#include "core/io/mapped_file.h"
#include "include/deberta_training.h"
#include "output/json_text.h"
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"
#include "program/train/finetune_data.h"
#include "program/train/train_audit.h"
#include "program/train/train_command.h"
#include "program/train/train_log.h"

/* ------------------------------------------------------------------------------------------------- the end of a run */

static bool has_measure(const train_log *log)
{
    return log->series[LOG_MEASURE].count && log->series[LOG_MEASURE].count == log->series[LOG_EVAL_LOSS].count;
}

static double measure_at(const train_log *log, size_t k)
{
    return has_measure(log) ? log->series[LOG_MEASURE].values[k] : NAN;
}

/* Returns the index of the best measurement, as best/ has it: that of the best measure, or else of the least held-out
 * loss; of equal ones the first. */
static size_t find_best(const train_log *log)
{
    const log_series *loss = &log->series[LOG_EVAL_LOSS];
    size_t best = 0;
    for (size_t k = 1; k < loss->count; k++) {
        const double now = measure_at(log, k), was = measure_at(log, best);
        if (isnan(now) && isnan(was) ? loss->values[k] < loss->values[best] : isnan(was) || now > was) best = k;
    }
    return best;
}

/* Notes measurements that are undefined or share the best value, if the measure alone did not decide. */
static void note_choice(const train_options *o, const train_log *log, size_t best)
{
    size_t undefined = 0, equal = 0;
    const size_t count = log->series[LOG_EVAL_LOSS].count;
    for (size_t k = 0; k < count; k++) {
        undefined += isnan(measure_at(log, k)) != 0;
        equal += measure_at(log, k) == measure_at(log, best);
    }
    if (undefined)
        say_note(&o->common, "note: %s is undefined in %zu of %zu measurements (%s), null in the log%s", log->measure,
                 undefined, count,
                 strcmp(log->measure, "pearson") == 0 ? "all values are equal" : "held-out data has nothing to find",
                 undefined == count ? "; the least held-out loss decides" : "");
    if (equal > 1)
        say_note(&o->common, "note: %zu of %zu measurements have the same best %s; the first of them is kept", equal,
                 count, log->measure);
}

static double last_of(const log_series *s) { return s->values[s->count - 1]; }

/* Notes a rise of the loss that means divergence; a single step's loss varies with its batch. */
static void note_rise(const train_options *o, const log_series *loss)
{
    const double first = loss->values[0], last = last_of(loss);
    if (last > 2 * first && last > first + 1)
        say_note(&o->common, "note: the loss is far above that of step %.0f, %.4f; a lower --learning-rate may help",
                 loss->steps[0], first);
}

/* Says where the best model is. A run that goes on marks best/ where it was of a step that is repeated. */
static const char *tell_place(const train_options *o)
{
    const char *folder = options_out(&o->common);
    if (access(options_text(&o->common, "%s/" DEBERTA_BEST_IS_LATER, folder), F_OK) == 0)
        return "whose model is gone: in best/ is a later one, of a step that is repeated";
    if (o->trainer.generator)
        return options_text(&o->common, "in %s/best/discriminator and %s/best/generator", folder, folder);
    return options_text(&o->common, "in %s/best", folder);
}

static void train_tell(const train_options *o, const train_log *log)
{
    const log_series *measure = &log->series[LOG_MEASURE], *loss = &log->series[LOG_EVAL_LOSS];
    const char *place = tell_place(o);
    say_note(&o->common, "loss of the last step %.4f", last_of(train_log_objective(log)));
    note_rise(o, train_log_objective(log));
    if (!loss->count) return;
    const size_t best = find_best(log);
    if (has_measure(log)) note_choice(o, log, best);
    if (has_measure(log) && !isnan(measure->values[best]))
        say_note(&o->common, "held-out loss %.4f, %s %.4f; the best is step %.0f with %s %.4f, %s", last_of(loss),
                 log->measure, last_of(measure), measure->steps[best], log->measure, measure->values[best], place);
    else
        say_note(&o->common, "held-out loss %.4f; the best is step %.0f with %.4f, %s", last_of(loss),
                 loss->steps[best], loss->values[best], place);
    if (!isnan(log->right)) say_note(&o->common, "%.1f %% of the held-out masked tokens are right", 100 * log->right);
}

static void add_held_out(json_t *object, const train_log *log)
{
    const log_series *measure = &log->series[LOG_MEASURE], *loss = &log->series[LOG_EVAL_LOSS];
    if (!loss->count) return;
    json_put(object, "eval_loss", json_real(last_of(loss)));
    if (measure->count) json_put(object, "measure", json_string(log->measure));
    if (measure->count) {
        const double last = last_of(measure);
        json_put(object, "eval_measure", isnan(last) ? json_null() : json_real(last));
    }
    if (!isnan(log->right)) json_put(object, "masked_right", json_real(log->right));
    json_put(object, "best_step", json_integer((json_int_t)loss->steps[find_best(log)]));
}

/* --------------------------------------------------------------------------------------------------------- digests */

/* Returns the SHA-256 of the weights that a finished run has left, by their paths in its folder; NULL: memory ran
 * out. */
static json_t *digest_weights(const train_options *o)
{
    const bool is_pair = o->trainer.generator != NULL;
    const char *const single[] = {"model.safetensors", "best/model.safetensors", NULL},
                      *const pair[] = {"generator/model.safetensors", "discriminator/model.safetensors",
                                       "best/generator/model.safetensors", "best/discriminator/model.safetensors",
                                       NULL};
    json_t *digests = json_object();
    for (const char *const *name = is_pair ? pair : single; digests && *name; name++) {
        char digest[65];
        deberta_error missing; /* no data were held out */
        const char *path = options_text(&o->common, "%s/%s", options_out(&o->common), *name);
        if (file_digest(path, digest, &missing) == DEBERTA_OK) json_object_set_new(digests, *name, json_string(digest));
    }
    return digests;
}

/* Prints digests in the form of sha256sum, so that two machines can be compared by eye. */
static void tell_digests(const train_options *o)
{
    const char *name;
    json_t *digest, *digests = digest_weights(o);
    json_object_foreach(digests, name, digest)
        say_note(&o->common, "sha256 %s  %s/%s", json_string_value(digest), options_out(&o->common), name);
    json_decref(digests);
}

static void print_end(const train_options *o, const train_log *log, size_t done, bool finished)
{
    json_t *object =
        json_pack("{s:I, s:I, s:b, s:s, s:f}", "steps", (json_int_t)done, "of", (json_int_t)o->trainer.steps,
                  "finished", finished, "folder", options_out(&o->common), "loss", last_of(train_log_objective(log)));
    if (finished) json_put(object, "sha256", digest_weights(o));
    add_held_out(object, log);
    print_json_to(&o->common, NULL, object); /* --out is the folder here, so the JSON goes to stdout */
}

/* Reports from the log in the folder of the run: the losses and the best step on stderr, or with --json as an object
 * on standard output. done: completed steps. */
static void train_end(const train_options *o, size_t done, bool finished)
{
    train_log log;
    deberta_error error = {0};
    const bool known = train_log_read(&log, options_out(&o->common), &error) == DEBERTA_OK;
    if (!known && o->common.json) work_failed(&o->common, &error); /* every step was skipped */
    if (known && o->common.json)
        print_end(o, &log, done, finished);
    else if (known)
        train_tell(o, &log);
    if (finished && !o->common.json) tell_digests(o);
    scope_free(&log.memory);
}

/* ------------------------------------------------------------------------------------------------------ the command */

enum { EXIT_INTERRUPTED = 130 }; /* 128 + SIGINT, the convention of shells */

/* ---------------------------------------------------------------------------------------------------------- one step */

/* Returns true for the rank that writes files: the first. */
static bool leads(const train_options *o) { return !o->common.ranks || o->common.ranks->rank == 0; }

static void print_step(const train_options *o, const deberta_training_step *step)
{
    const common_options *options = &o->common;
    if (options->json) {
        print_json(options, json_pack("{s:f, s:I, s:I, s:f}", "loss", step->loss, "tokens", (json_int_t)step->tokens,
                                      "labelled", (json_int_t)step->labelled, "gradient_norm", step->gradient_norm));
        return;
    }
    text_output output;
    text_output_open(options, options_out(options), &output);
    fprintf(output.file, "loss %.6f of %zu labels in %zu tokens, norm of the gradients %.4g\n", step->loss,
            step->labelled, step->tokens, step->gradient_norm);
    text_output_close(options, &output);
}

static void run_one_step(const train_options *o, deberta_trainer *trainer)
{
    deberta_error error = {0};
    deberta_training_step step;
    must(&o->common, deberta_trainer_gradients(trainer, leads(o) ? o->gradients : NULL, &step, &error), &error);
    if (leads(o)) print_step(o, &step);
}

/* ------------------------------------------------------------------------------------------------------------- a run */

/* Set by a signal, after which the current step is finished and a checkpoint written. The signals are an interrupt, a
 * closed terminal, a lost connection; a scheduler's request (stop_request_watch) gets another exit code. A second
 * signal ends the program at once. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

typedef struct run_display {
    progress_bar bar;
    const train_options *options;
    size_t first, tokens; /* steps done before this run; tokens since */
    double widest_share;  /* largest fraction of labelled tokens in a step */
    size_t widest_step;
} run_display;

static int show_step(void *context, const deberta_training_step *step)
{
    run_display *display = context;
    char detail[160];
    const double share = (double)step->labelled / (double)step->tokens;
    if (display->tokens == 0 && leads(display->options)) train_command_write(&display->options->common);
    display->tokens += step->tokens;
    if (share > display->widest_share) {
        display->widest_share = share;
        display->widest_step = step->step;
    }
    snprintf(detail, sizeof detail, "step %zu/%zu  loss %.4f  rate %.2e  norm %.3g  %.0f tokens/s  epoch %.2f",
             step->step, step->steps, step->loss, step->learning_rate, step->gradient_norm,
             (double)display->tokens / (clock_seconds() - display->bar.began), step->epoch);
    progress_step(&display->bar, step->step - display->first, detail);
    return interrupted || stop_request_came();
}

/* Notes a share of labelled tokens above the requested one: each text has at least one label, which is much if texts
 * have only a few tokens. */
static void note_share(const train_options *o, const run_display *display)
{
    const double asked = o->trainer.mask_probability;
    if (!o->texts.count || o->trainer.generator || display->widest_share <= 2 * asked) return;
    say_note(
        &o->common,
        "note: step %zu masked %.0f %% of its tokens, --mask-probability asks for %.0f %%: a text has one masked "
        "token at least, and these are short; joined ones (no empty line between them, no --sequences lines) do not",
        display->widest_step, 100 * display->widest_share, 100 * asked);
}

static void note_outcome(const train_options *o, size_t done, bool finished)
{
    const char *folder = options_out(&o->common);
    if (!finished)
        say_note(&o->common, "stopped after step %zu of %zu; --resume goes on", done, o->trainer.steps);
    else if (o->trainer.generator)
        say_note(&o->common, "%zu step%s; what was trained is in %s/discriminator and %s/generator", done,
                 done == 1 ? "" : "s", folder, folder);
    else
        say_note(&o->common, "%zu step%s; what was trained is in %s", done, done == 1 ? "" : "s", folder);
}

static int say_failure(const train_options *o, size_t done, const deberta_error *error)
{
    const char *kept = options_text(&o->common, "%s/checkpoint-%06zu", options_out(&o->common), done);
    const int status = say_error(&o->common, error);
    if (error->code == DEBERTA_E_NOT_FINITE && done < o->trainer.steps && access(kept, F_OK) == 0)
        say_note(&o->common, "%s has the steps before it: --resume --bad-steps %zu passes over it", kept,
                 o->trainer.skip_bad + 1);
    return status;
}

static int run_all_steps(const train_options *o, deberta_trainer *trainer)
{
    deberta_error error = {0};
    int finished = 0;
    const size_t steps = o->trainer.steps;
    const size_t first = deberta_trainer_steps_done(trainer);
    const size_t end = o->trainer.stop_at ? minimum(o->trainer.stop_at, steps) : steps;
    if (first > 0 && o->chain) train_command_begin_late(&o->common, first, steps);
    say_note(&o->common, "weights, moments and steps take %s",
             bytes_describe(deberta_trainer_memory_bytes(trainer)).text);
    if (leads(o) && mkdir(options_out(&o->common), 0777) != 0 && errno != EEXIST)
        end_with(&o->common, EXIT_SYSTEM, "%s: cannot make this folder: %s", options_out(&o->common), strerror(errno));
    say_note(&o->common, "log: %s/log.jsonl", options_out(&o->common));
    if (first == steps && leads(o)) say_note(&o->common, "note: this run is finished: nothing is trained or measured");
    if (o->trainer.resume && first == 0)
        say_note(&o->common, "%s has no checkpoint yet: the run begins again with step 1", options_out(&o->common));
    run_display display = {
        .bar = progress_begin_long(&o->common, "steps", maximum(end, first) - first), .options = o, .first = first};
    const deberta_status status = deberta_trainer_run(trainer, show_step, &display, &finished, &error);
    progress_end(&display.bar);
    if (status != DEBERTA_OK) return say_failure(o, deberta_trainer_steps_done(trainer), &error);
    const size_t done = deberta_trainer_steps_done(trainer);
    note_share(o, &display);
    note_outcome(o, done, finished);
    if (leads(o)) train_end(o, done, finished);
    if (finished || !leads(o)) return EXIT_OK; /* other ranks wait until the first has written its files */
    if (interrupted) return EXIT_INTERRUPTED;
    return stop_request_came() || (o->common.ranks && done < end) ? EXIT_AGAIN : EXIT_OK;
}

static void tell_note(void *context, const char *sentence) { say_note(context, "note: %s", sentence); }

/* Refuses a folder without weights, and names the option that begins a new model from its configuration. */
static void check_weights(const train_options *o)
{
    const char *folder = o->common.arguments[0];
    char advice[256];
    if (strncmp(folder, "synthetic:", 10) == 0 || !option_exists(&o->common, &o->config)) return;
    if (checkpoint_has_weights(folder) || *folder_other_weights(folder, advice, sizeof advice)) return;
    end_with(&o->common, EXIT_INPUT,
             "%s: no weights; expected model.safetensors or pytorch_model.bin, or for a new model --config %s in place "
             "of MODEL",
             folder, folder);
}

static int run_task(const common_options *common, deberta_training_task task)
{
    deberta_error error = {0};
    deberta_trainer *trainer = NULL;
    const train_options *o = (const train_options *)common;
    int status = EXIT_OK;
    if (!deberta_training_is_built())
        usage_wrong(common, "this build has no training (it was configured with -Dtraining=disabled)");
    train_options_check(o);
    if (train_runs(o) && !o->segment) { /* checked before data and model are opened, which takes seconds */
        signals_watch((const int[]){SIGINT, SIGHUP, 0}, interrupt, (int)SA_RESETHAND | SA_RESTART);
        stop_request_watch();
    }
    if (!o->config) {
        check_model_place(common);
        check_weights(o);
    }
    finetune_data data;
    deberta_trainer_options options = train_trainer_options(o, task);
    options.note = tell_note;
    options.note_context = (void *)common;
    if (o->segment) {
        options.audit = 1;
        options.audit_from = o->segment->from;
    }
    finetune_data_open(&data, o, &options);
    must(common, deberta_trainer_open(&trainer, &options, &error), &error);
    if (o->segment)
        must(common, train_segment_execute(o->segment, trainer, &error), &error);
    else if (train_runs(o))
        status = run_all_steps(o, trainer);
    else
        run_one_step(o, trainer);
    deberta_trainer_free(&trainer);
    finetune_data_close(&data);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- commands */

static int run_mlm(const common_options *options) { return run_task(options, DEBERTA_TRAIN_MLM); }
static int run_rtd(const common_options *options) { return run_task(options, DEBERTA_TRAIN_RTD); }
static int run_sequence(const common_options *options) { return run_task(options, DEBERTA_TRAIN_SEQUENCE); }
static int run_choice(const common_options *options) { return run_task(options, DEBERTA_TRAIN_CHOICE); }
static int run_token(const common_options *options) { return run_task(options, DEBERTA_TRAIN_TOKEN); }
static int run_qa(const common_options *options) { return run_task(options, DEBERTA_TRAIN_QA); }

#define TASK(word_, summary_, groups_, run_, example_)                                                                 \
    {                                                                                                                  \
        .name = word_, .summary = summary_, .arguments = "MODEL", .max_arguments = 1, .groups = groups_,               \
        .size = sizeof(train_options), .defaults = &train_defaults, .example = example_, .run = run_,                  \
        .writes = WRITES_FOLDER, .without = "precision", .spreads = SPREADS_STEPS                                      \
    }
static const command train_mlm =
    TASK("train mlm", "the masked language model", train_mlm_groups, run_mlm,
         "  deberta train mlm models/demo --file corpus.txt --sequence-tokens 32 --steps 20 --out trained\n"
         "  cut -f2 docs/studies/data/books.tsv | sed 1d > books.txt\n"
         "  deberta train tokenizer --file books.txt --vocabulary 2000 --width 128 --head-count 2 --out new\n"
         "  deberta train mlm --config new --file books.txt --sequence-tokens 64 --steps 20 --out base\n");
static const command train_rtd =
    TASK("train rtd", "a discriminator of replaced tokens", train_rtd_groups, run_rtd,
         "  deberta train rtd models/demo --new-head --generator models/demo --file corpus.txt "
         "--sequence-tokens 32 --steps 20 -o pair\n");
static const command finetune_sequence =
    TASK("finetune sequence", "classes, or one value, of texts", finetune_sequence_groups, run_sequence,
         "  deberta finetune sequence models/demo --examples train.tsv --new-head --eval held-out.tsv --steps 20 "
         "-o classes\n");
static const command finetune_choice =
    TASK("finetune choice", "the right one of several texts", finetune_choice_groups, run_choice,
         "  deberta finetune choice models/demo --examples choices.tsv --new-head --steps 40 -o choices\n");
static const command finetune_token =
    TASK("finetune token", "classes of tokens", finetune_token_groups, run_token,
         "  deberta finetune token models/demo --examples tags.tsv --new-head --steps 20 -o tags\n");
static const command finetune_qa =
    TASK("finetune qa", "the answer's place in a text", finetune_qa_groups, run_qa,
         "  deberta finetune qa models/answers --examples questions.jsonl --steps 20 -o answers\n");

#if HAVE_VIZ
#define TRAIN_PLOT "|plot"
#else
#define TRAIN_PLOT ""
#endif

static const command *const train_commands[] = {&train_mlm, &train_rtd, &train_tokenizer,
#if HAVE_VIZ
                                                &train_plot,
#endif
                                                NULL};
static const command *const finetune_commands[] = {&finetune_sequence, &finetune_choice, &finetune_token, &finetune_qa,
                                                   NULL};

static int run_without_task(const common_options *options)
{
    usage_wrong(options, "expected %s", options->command->arguments);
}

const command command_train = {
    .name = "train",
    .summary = "pre-train: gradients of a batch, or a run of updates",
    .arguments = "mlm|rtd|tokenizer" TRAIN_PLOT " MODEL --file FILE --steps N --out FOLDER",
    .max_arguments = 64,
    .example = "  deberta train mlm --help\n",
    .run = run_without_task,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json out quiet",
    .subcommands = train_commands,
};

const command command_finetune = {
    .name = "finetune",
    .summary = "fine-tune a head with its encoder",
    .arguments = "sequence|choice|token|qa MODEL --examples FILE --steps N --out FOLDER",
    .max_arguments = 64,
    .example = "  deberta finetune sequence --help\n",
    .run = run_without_task,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json out quiet",
    .subcommands = finetune_commands,
};
