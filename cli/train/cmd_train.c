/* `deberta train` and `deberta finetune`: gradients of a batch, or a run of updates. SPDX-License-Identifier: MIT */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/train/train_recipe.h"
#include "command/open_model.h"
#include "command/options.h"
#include "command/progress.h"
#include "command/text_output.h"
#include "train/run_folder.h"
#include "train/save.h"

enum { EXIT_INTERRUPTED = 130 }; /* 128 + SIGINT, as shells say it */

/* With a generator, a pair; without, the discriminator's place is that of the model that is trained, whatever it is. */
typedef struct train_job {
    const train_options *options;
    training_pair pair;
    training *model; /* &pair.discriminator */
    train_data data;
    json_t *recipe;
    run_checkpoint checkpoint; /* where the run goes on; step 0: from the beginning */
    progress_bar progress;
} train_job;

static const char *model_folder(const train_job *job) { return job->options->common.arguments[0]; }

/* ---------------------------------------------------------------------------------------------------------- opening */

/* What the data must fit, and mlm_emd where the model has it, if nothing was asked for. */
static deberta_status describe_model(const train_job *job, training *run, train_target *target, deberta_error *err)
{
    const deberta_model_options options = {.struct_size = sizeof options, .describe_only = 1};
    deberta_model *model = NULL;
    DEBERTA_TRY(deberta_model_open(&model, target->folder, &options, err));
    run->options.decodes = job->options->head == TRAIN_HEAD_MLM_EMD;
    if (run->options.task == STEP_MLM && job->options->head == TRAIN_HEAD_AUTO)
        run->options.decodes = deberta_task_width(model, DEBERTA_TASK_MLM_EMD) > 0;
    const bool reads_positions = model->config.position_biased_input || run->options.decodes;
    target->vocabulary = model->config.vocabulary_size;
    target->places = reads_positions ? model->config.max_positions : 0;
    deberta_model_free(&model);
    return DEBERTA_OK;
}

static deberta_status open_training(const train_job *job, training *run, const char *folder, const char *part,
                                    deberta_error *err)
{
    const train_options *o = job->options;
    const size_t passes = o->sift > 0 ? 2 : 1;
    const optimizer_options recipe = train_recipe(o);
    run->batches = job->data.source;
    const learner_options options = {
        .threads = o->common.threads,
        .max_tokens = passes * job->data.most_tokens,
        .parts = o->shards,
        .isa = o->common.isa,
        .reference = (deberta_reference)o->common.reference,
        .decodes = run->options.decodes,
    };
    char resumed[RUN_PATH_BYTES];
    run_checkpoint_part(&job->checkpoint, part, resumed);
    DEBERTA_TRY(learner_open(&run->learner, job->checkpoint.step ? resumed : folder, &options, err));
    if (!train_runs(o)) return DEBERTA_OK;
    return optimizer_open(&run->optimizer, &run->learner->set, run->learner->model->config.layers, &recipe, err);
}

/* The recipe of a run, and the checkpoint that it goes on from. */
static deberta_status open_run(train_job *job, deberta_error *err)
{
    const train_options *o = job->options;
    if (!train_runs(o)) return DEBERTA_OK;
    DEBERTA_TRY(train_recipe_describe(&job->recipe, o, &job->data, &job->model->options, err));
    return o->resume ? run_checkpoint_find(&job->checkpoint, options_out(&o->common), job->recipe, err) : DEBERTA_OK;
}

static deberta_status open_pair(train_job *job, const train_target *target, deberta_error *err)
{
    train_target generator = {.folder = job->options->generator};
    job->pair.generator.options.task = STEP_MLM;
    DEBERTA_TRY(describe_model(job, &job->pair.generator, &generator, err));
    DEBERTA_TRY(open_training(job, job->model, target->folder, "discriminator", err));
    DEBERTA_TRY(open_training(job, &job->pair.generator, generator.folder, "generator", err));
    return pair_open(&job->pair, err);
}

static run_parts parts_of(train_job *job)
{
    const char *generator = job->options->generator;
    if (!generator) return (run_parts){.items = {{"", model_folder(job), job->model}}, .count = 1};
    return (run_parts){.items = {{"generator", generator, &job->pair.generator},
                                 {"discriminator", model_folder(job), &job->pair.discriminator}},
                       .count = 2,
                       .pair = &job->pair};
}

static deberta_status open_job(train_job *job, deberta_error *err)
{
    const train_options *o = job->options;
    train_target target = {.folder = model_folder(job), .task = job->model->options.task};
    DEBERTA_TRY(describe_model(job, job->model, &target, err));
    DEBERTA_TRY(train_data_open(&job->data, o, &target, err));
    DEBERTA_TRY(open_run(job, err));
    DEBERTA_TRY(o->generator ? open_pair(job, &target, err) : open_training(job, job->model, target.folder, "", err));
    const run_parts parts = parts_of(job);
    return job->checkpoint.step ? run_checkpoint_read(&job->checkpoint, &parts, err) : DEBERTA_OK;
}

static void close_job(train_job *job)
{
    training *const both[] = {&job->pair.generator, &job->pair.discriminator};
    for (size_t i = 0; i < 2; i++) {
        optimizer_free(&both[i]->optimizer);
        learner_free(&both[i]->learner);
    }
    train_data_close(&job->data);
    json_decref(job->recipe);
}

/* ---------------------------------------------------------------------------------------------------------- one step */

static int print_step(const train_job *job, const step_report *report, double loss)
{
    const common_options *options = &job->options->common;
    const step_result *result = &report->result;
    if (options->json)
        return print_json(options,
                          json_pack("{s:f, s:I, s:I, s:f}", "loss", loss, "tokens", (json_int_t)result->tokens,
                                    "labelled", (json_int_t)result->labelled, "gradient_norm", report->gradient_norm));
    text_output output;
    const int status = text_output_open(options, options_out(options), &output);
    if (status != EXIT_OK) return status;
    fprintf(output.file, "loss %.6f of %zu labels in %zu tokens, norm of the gradients %.4g\n", loss, result->labelled,
            result->tokens, report->gradient_norm);
    return text_output_close(options, &output);
}

static int run_one_step(train_job *job)
{
    deberta_error error = {0};
    step_report report;
    const train_options *o = job->options;
    deberta_status status = training_gradients(job->model, 0, &report, &error);
    const named_loss losses[] = {{"loss", report.result.loss}, {"loss.clean", report.result.head_loss}};
    const named_set set = {"grad.", &job->model->learner->set};
    if (status == DEBERTA_OK && o->gradients)
        status = save_gradients(o->gradients, losses, o->sift > 0 ? 2 : 1, &set, 1, &error);
    return status == DEBERTA_OK ? print_step(job, &report, report.result.loss) : say_error(&o->common, &error);
}

/* Both losses at the weights as they are; one norm. */
static int run_one_pair(train_job *job)
{
    deberta_error error = {0};
    pair_report report;
    const train_options *o = job->options;
    deberta_status status = pair_gradients(&job->pair, 0, &report, &error);
    if (status != DEBERTA_OK) return say_error(&o->common, &error);
    const named_loss losses[] = {{"loss", report.loss},
                                 {"loss.generator", report.generator.result.head_loss},
                                 {"loss.discriminator", report.discriminator.result.head_loss}};
    const named_set sets[] = {{"grad.generator.", &job->pair.generator.learner->set},
                              {"grad.discriminator.", &job->pair.discriminator.learner->set}};
    if (o->gradients) status = save_gradients(o->gradients, losses, 3, sets, 2, &error);
    if (status != DEBERTA_OK) return say_error(&o->common, &error);
    report.generator.gradient_norm = hypot(report.generator.gradient_norm, report.discriminator.gradient_norm);
    return print_step(job, &report.generator, report.loss);
}

/* ------------------------------------------------------------------------------------------------------------- a run */

/* The step at hand is finished, and a checkpoint written. A second signal ends the program at once. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void watch_signals(void)
{
    const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

static int show_step(void *context, const step_report *report)
{
    train_job *job = context;
    char detail[96];
    snprintf(detail, sizeof detail, "loss %.4f  rate %.2e  norm %.3g", report->result.loss, report->learning_rate,
             report->gradient_norm);
    progress_step(&job->progress, report->step, detail);
    return interrupted;
}

static int run_all_steps(train_job *job)
{
    deberta_error error = {0};
    bool finished = false;
    const train_options *o = job->options;
    const training_run run = {
        .parts = parts_of(job),
        .folder = options_out(&o->common),
        .recipe = job->recipe,
        .checkpoint_every = o->checkpoint_every,
        .keep = o->keep,
        .stop_at = o->stop_at,
        .held_out = job->data.held_out ? &job->data.held_out_source : NULL,
        .eval_every = o->eval_every,
        .on_step = show_step,
        .context = job,
    };
    if (!o->resume && run_folder_prepare(run.folder, &error) != DEBERTA_OK) return say_error(&o->common, &error);
    watch_signals();
    job->progress = progress_begin(&o->common, "steps", o->steps);
    const deberta_status status = run_folder_train(&run, &finished, &error);
    progress_end(&job->progress);
    if (status != DEBERTA_OK) return say_error(&o->common, &error);
    const size_t done = run.parts.items[0].training->optimizer.done;
    if (finished)
        say_note(&o->common, "%zu steps; what was trained is in %s", o->steps, run.folder);
    else
        say_note(&o->common, "stopped behind step %zu of %zu; --resume goes on", done, o->steps);
    return finished || !interrupted ? EXIT_OK : EXIT_INTERRUPTED;
}

static int run_task(const common_options *common, step_task task)
{
    deberta_error error = {0};
    const train_options *o = (const train_options *)common;
    train_job job = {.options = o, .model = &job.pair.discriminator};
    job.model->options =
        (step_options){.task = task, .rtd_weight = (float)o->rtd_weight, .sift_weight = (float)o->sift};
    int status = train_options_check(o);
    if (status != EXIT_OK) return status;
    if (!check_model_place(common)) return EXIT_INPUT;
    if (open_job(&job, &error) != DEBERTA_OK)
        status = say_error(common, &error);
    else if (train_runs(o))
        status = run_all_steps(&job);
    else
        status = o->generator ? run_one_pair(&job) : run_one_step(&job);
    close_job(&job);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- commands */

static int run_mlm(const common_options *options) { return run_task(options, STEP_MLM); }
static int run_rtd(const common_options *options) { return run_task(options, STEP_RTD); }
static int run_sequence(const common_options *options) { return run_task(options, STEP_SEQUENCE); }
static int run_choice(const common_options *options) { return run_task(options, STEP_CHOICE); }
static int run_token(const common_options *options) { return run_task(options, STEP_TOKEN); }
static int run_qa(const common_options *options) { return run_task(options, STEP_ANSWER); }

#define TASK(word_, summary_, table_, run_, example_)                                                                  \
    {                                                                                                                  \
        .name = word_, .summary = summary_, .arguments = "MODEL", .min_arguments = 1, .max_arguments = 1,              \
        .options = table_, .size = sizeof(train_options), .defaults = &train_defaults, .example = example_,            \
        .run = run_                                                                                                    \
    }
#define BATCH_EXAMPLE(word_) "  deberta " word_ " deberta-v3-small --dropout 0 --batch batch.safetensors --json\n"
static const command train_mlm =
    TASK("train mlm", "the masked language model", train_mlm_options_table, run_mlm,
         "  deberta train mlm deberta-v3-small --dropout 0 --text corpus.txt --steps 1000 --out trained\n");
static const command train_rtd = TASK("train rtd", "a discriminator of replaced tokens", train_rtd_options_table,
                                      run_rtd, BATCH_EXAMPLE("train rtd"));
static const command finetune_sequence =
    TASK("finetune sequence", "classes, or one value, of texts", train_sift_options_table, run_sequence,
         BATCH_EXAMPLE("finetune sequence"));
static const command finetune_choice = TASK("finetune choice", "the right one of several texts", train_options_table,
                                            run_choice, BATCH_EXAMPLE("finetune choice"));
static const command finetune_token =
    TASK("finetune token", "classes of tokens", train_sift_options_table, run_token, BATCH_EXAMPLE("finetune token"));
static const command finetune_qa =
    TASK("finetune qa", "the answer's place in a text", train_options_table, run_qa, BATCH_EXAMPLE("finetune qa"));

static const command *const train_commands[] = {&train_mlm, &train_rtd, NULL};
static const command *const finetune_commands[] = {&finetune_sequence, &finetune_choice, &finetune_token, &finetune_qa,
                                                   NULL};

static int run_without_task(const common_options *options)
{
    const bool fine_tunes = strcmp(options->command->name, "finetune") == 0;
    return say_usage(options, "expected what is trained: %s",
                     fine_tunes ? "sequence, choice, token or qa" : "mlm or rtd");
}

const command command_train = {
    .name = "train",
    .summary = "pre-train: gradients of a batch, or a run of updates",
    .arguments = "mlm|rtd MODEL",
    .max_arguments = 64,
    .example = "  deberta train mlm --help\n",
    .run = run_without_task,
    .subcommands = train_commands,
};

const command command_finetune = {
    .name = "finetune",
    .summary = "fine-tune a head with its encoder",
    .arguments = "sequence|choice|token|qa MODEL",
    .max_arguments = 64,
    .example = "  deberta finetune sequence --help\n",
    .run = run_without_task,
    .subcommands = finetune_commands,
};
