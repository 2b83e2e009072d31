/* Fills the options of another command in each step, runs it, and keeps its command line for the page.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_steps.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program/attribute/attribute_options.h"
#include "program/bench/bench_options.h"
#include "program/commands.h"
#include "program/encode/encode_options.h"
#include "program/receptive_field/receptive_field_output.h"
#if HAVE_VIZ
#include "program/attention/attention_options.h"
#endif

enum {
    LAYER_SWEEP_TOKENS = 64,  /* length at which numbers of layers are compared */
    LAYER_SWEEP_POINTS = 12,  /* most numbers of layers, unless the user lists them */
    MOST_VERIFIED_TOKENS = 96 /* the float64 model is slow, so longer texts are replaced by a few generated ids */
};

/* -------------------------------------------------------------------------------------------------- what was made */

void made_files_add(made_files *made, const char *path)
{
    if (made->count < MOST_MADE_FILES) made->paths[made->count++] = path;
}

void made_files_expect(made_files *made, const char *path)
{
    if (access(path, F_OK) != 0) made_files_add(made, path);
}

void made_files_remove(made_files *made)
{
    while (made->count > 0) remove(made->paths[--made->count]);
}

/* ---------------------------------------------------------------------------------------------------------- one step */

/* Begins a command that reads no weights with those of the report's options that change its results or messages. Its
 * outputs are given last, as the page takes them off the end of the command line. */
static common_options *begin_plain_step_on(const explorer_job *job, const command *command, const char *argument)
{
    const common_options *options = job->options;
    common_options *step = options_begin(command, options, argument);
    const void *const members[] = {&options->reference, &options->quiet, &options->progress};
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) option_inherit(step, options, members[k]);
    return step;
}

/* Begins a command that computes. */
static common_options *begin_step_on(const explorer_job *job, const command *command, const char *argument)
{
    const common_options *options = job->options;
    common_options *step = begin_plain_step_on(job, command, argument);
    const void *const members[] = {&options->threads, &options->memory_limit_bytes, &options->precision,
                                   &options->seed};
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) option_inherit(step, options, members[k]);
    return step;
}

/* Begins a command on the model of the report. */
static common_options *explorer_steps_begin(const explorer_job *job, const command *command)
{
    return begin_step_on(job, command, job->contents.model);
}

/* Gives the ablations to steps that look inside the model; receptive field and sweeps describe the unchanged
 * model. */
static void give_ablations(const explorer_job *job, common_options *step)
{
    if (job->options->ablated.text) option_give(step, &step->ablated, job->options->ablated.text);
}

static const char *document_path(const explorer_job *job, explorer_document document, const char *suffix)
{
    return options_text(job->options, "%s/%s.%s", job->contents.folder, explorer_document_name(document), suffix);
}

/* Gives the step the file to write. */
static void give_output(explorer_job *job, common_options *step, const void *member, const char *path)
{
    option_give(step, member, path);
    job->output = path;
    made_files_expect(&job->made, path);
}

/* Gives the step a document of the page to write. */
static void give_document(explorer_job *job, common_options *step, explorer_document document)
{
    give_output(job, step, &step->outs, document_path(job, document, "json"));
    job->contents.has_document[document] = true;
}

/* Returns the command line to show. The folder of a page alone is gone afterwards, so the output, which is last and
 * the only one, is named without it. */
static const char *command_to_show(const explorer_job *job, const common_options *step)
{
    const char *line = options_command_line(step, true), *end = NULL;
    for (const char *at = line; (at = strstr(at, " --out ")); at++) end = at;
    if (!job->contents.is_alone || !end) return options_text(job->options, "%s", line);
    return options_text(job->options, "%.*s --out %s", (int)(end - line), line, strrchr(job->output, '/') + 1);
}

static void run_step(explorer_job *job, const char *title, common_options *step)
{
    const common_options *options = job->options;
    say_note(options, "%s ...", title);
    explorer_step *kept = &job->steps[job->contents.step_count++];
    *kept = (explorer_step){.title = title, .command = command_to_show(job, step)};
    const int status = options_run(step);
    kept->failed = status == EXIT_CHECK_FAILED;
    options_free(&step);
    if (status != EXIT_OK && !kept->failed) end_program(status);
}

/* ------------------------------------------------------------------------------------------------------------- steps */

static const char *list_ids(const explorer_job *job, size_t row)
{
    const size_t first = job->input.sequence_starts[job->input.row[row].sequence], count = job->input.row[row].tokens;
    char *text = options_take(job->options, count + 1, 12), *at = text;
    for (size_t t = 0; t < count; t++) at += sprintf(at, t ? ",%d" : "%d", job->input.ids[first + t]);
    return text;
}

/* Gives a text as the user gave it; ids if there is no text, or one that no command line can hold. */
static void give_input(const explorer_job *job, common_options *step, size_t row)
{
    const input_batch *input = &job->input;
    const reading_options *reading = reading_of(step);
    if (!input->texts || strlen(input->texts[row]) != input->text_bytes[row]) {
        option_give(step, &reading->ids, list_ids(job, row));
        return;
    }
    const token_limit *limit = &job->o->reading.max_tokens;
    option_give(step, &reading->texts, input->texts[row]);
    if (input->pairs && input->pairs[row]) option_give(step, &reading->pairs, input->pairs[row]);
    if (limit->kind == LIMIT_TOKENS)
        option_give(step, &reading->max_tokens, options_text(job->options, "%zu", limit->tokens));
}

/* Chooses the layers and heads of the figures: those asked for, else the head that the page opens on. */
static void choose_printed(explorer_job *job)
{
    explorer_contents *contents = &job->contents;
    contents->printed_layers = job->o->layers ? job->o->layers : "0";
    contents->printed_heads = job->o->heads ? job->o->heads : "0";
    if (job->o->layers || job->o->heads) return;
    size_t layer, head;
    explorer_text_telling_head(job->options, &job->texts[0], &layer, &head);
    contents->printed_layers = options_text(job->options, "%zu", layer);
    contents->printed_heads = options_text(job->options, "%zu", head);
}

static void run_text(explorer_job *job, size_t row)
{
    const explorer_text *text = &job->texts[row];
    common_options *step = explorer_steps_begin(job, &command_encode);
    const encode_options *encode = (const encode_options *)step;
    give_input(job, step, row);
    option_give(step, &encode->component_layers, "all");
    option_give(step, &encode->attention_layers, "all");
    give_ablations(job, step);
    give_output(job, step, &step->outs, text->data);
    run_step(job, "Components and probabilities", step);
    if (row == 0) choose_printed(job);
#if HAVE_VIZ
    if (job->contents.is_alone) return;
    step = explorer_steps_begin(job, &command_attention);
    const attention_options *figure = (const attention_options *)step;
    give_input(job, step, row);
    option_give(step, &figure->layers, job->contents.printed_layers);
    option_give(step, &figure->heads, job->contents.printed_heads);
    give_ablations(job, step);
    give_output(job, step, &step->outs, text->figure);
    give_output(job, step, &step->outs, text->document);
    run_step(job, "Attention, drawn", step);
#endif
}

static void run_attribution(explorer_job *job, size_t row)
{
    const explorer_text *text = &job->texts[row];
    if (!text->attribution_head) return;
    common_options *step = explorer_steps_begin(job, &command_attribute);
    const attribute_options *attribute = (const attribute_options *)step;
    give_input(job, step, row);
    option_give(step, &attribute->head, text->attribution_head);
    option_give(step, &attribute->steps, options_text(job->options, "%d", EXPLORER_ATTRIBUTION_STEPS));
    option_give(step, &step->json, NULL);
    give_output(job, step, &step->outs, text->attribution);
    run_step(job, "Attributions of the answer", step);
}

static void run_verify(explorer_job *job)
{
    common_options *step = explorer_steps_begin(job, &command_verify);
    option_give(step, &step->json, NULL);
    if (job->input.row[0].tokens <= MOST_VERIFIED_TOKENS) option_give(step, &reading_of(step)->ids, list_ids(job, 0));
    give_ablations(job, step);
    give_document(job, step, DOCUMENT_VERIFY);
    run_step(job, "Verification", step);
}

static void run_receptive_field(explorer_job *job)
{
    common_options *step = begin_plain_step_on(job, &command_receptive_field, job->contents.model);
    option_give(step, &step->json, NULL);
#if HAVE_VIZ
    if (!job->contents.is_alone)
        give_output(job, step, &((const field_request *)step)->plots,
                    document_path(job, DOCUMENT_RECEPTIVE_FIELD, "png"));
#endif
    give_document(job, step, DOCUMENT_RECEPTIVE_FIELD);
    run_step(job, "Receptive field", step);
}

/* Runs one sweep, and draws it if its points make a curve. */
static void run_sweep(explorer_job *job, const char *title, explorer_document document, common_options *sweep,
                      bool is_curve)
{
    option_give(sweep, &sweep->json, NULL);
    give_document(job, sweep, document);
    run_step(job, title, sweep);
#if HAVE_VIZ
    if (!is_curve || job->contents.is_alone) return;
    common_options *plot = begin_step_on(job, &command_bench_plot, document_path(job, document, "json"));
    give_output(job, plot, &plot->outs, document_path(job, document, "png"));
    run_step(job, "Latency, drawn", plot);
#else
    (void)is_curve;
#endif
}

static bool is_list(const char *sizes) { return strpbrk(sizes, ",-") != NULL; }

static void run_lengths(explorer_job *job, const char *reps)
{
    const bool one_tier = option_given(job->options, &job->options->isa);
    common_options *step = explorer_steps_begin(job, &command_bench);
    const bench_options *sweep = (const bench_options *)step;
    option_give(step, &sweep->sweep.lengths, job->o->lengths);
    option_give(step, &sweep->isas, one_tier ? deberta_isa_name(job->options->isa) : "all");
    option_give(step, &sweep->sweep.repetitions, reps);
    run_sweep(job, "Latency against length", DOCUMENT_LENGTHS, step, is_list(job->o->lengths));
}

static void run_layers(explorer_job *job, const char *reps)
{
    const size_t layers = job->layers;
    const char *chosen = job->o->sweep_layers;
    common_options *step = explorer_steps_begin(job, &command_bench);
    const bench_options *sweep = (const bench_options *)step;
    option_give(step, &sweep->sweep.lengths, options_text(job->options, "%d", LAYER_SWEEP_TOKENS));
    option_give(step, &sweep->sweep.layers,
                chosen ? chosen
                       : options_text(job->options, "1-%zu+%zu", layers,
                                      (layers + LAYER_SWEEP_POINTS - 1) / LAYER_SWEEP_POINTS));
    option_give(step, &sweep->sweep.repetitions, reps);
    option_give(step, &sweep->sweep.skip_roofs, NULL);
    option_inherit(step, job->options, &job->options->isa);
    run_sweep(job, "Latency against layers", DOCUMENT_LAYERS, step, !chosen || is_list(chosen));
}

static void run_latency(explorer_job *job)
{
    const char *reps = options_text(job->options, "%zu", job->o->reps);
    run_lengths(job, reps);
    if (job->layers >= 2 || job->o->sweep_layers) run_layers(job, reps);
}

/* Adds the training of the model, if it is known. */
static void run_training(explorer_job *job)
{
#if HAVE_VIZ
    const char *found = options_text(job->options, "%s/log.jsonl", job->contents.model), *log = job->o->training_log;
    if (!log && access(found, R_OK) != 0) return;
    common_options *plot = begin_step_on(job, &train_plot, log ? log : found);
    give_output(job, plot, &plot->outs, document_path(job, DOCUMENT_TRAINING, "png"));
    job->contents.has_document[DOCUMENT_TRAINING] = true;
    run_step(job, "Training, drawn", plot);
#else
    (void)job;
#endif
}

/* Returns true if latency was asked for, by --with or by options of the sweeps. */
static bool wants_latency(const explorer_job *job)
{
    const report_options *o = job->o;
    const void *const members[] = {&o->lengths, &o->sweep_layers, &o->reps};
    bool is_asked_for = o->parts[PART_LATENCY] == PART_ASKED_FOR;
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        is_asked_for = is_asked_for || option_given(job->options, members[k]);
    return is_asked_for && o->parts[PART_LATENCY] != PART_LEFT_OUT;
}

/* Runs the longest steps last, so that most errors show at once. A page alone has no figures, because it has no
 * folder. */
void explorer_steps_run(explorer_job *job)
{
    const part_choice *parts = job->o->parts;
    const bool is_verified = parts[PART_VERIFY] == PART_ASKED_FOR;
    if (!is_verified && !wants_latency(job))
        option_note_unused(job->options, &job->options->seed,
                           "nothing is drawn at random without --with latency,verify");
    if (parts[PART_LATENCY] == PART_LEFT_OUT) {
        const void *const members[] = {&job->o->lengths, &job->o->sweep_layers, &job->o->reps};
        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            option_note_unused(job->options, members[k], "--skip latency leaves the sweeps out");
    }
    if (job->contents.is_alone || !HAVE_VIZ) {
        const char *why = HAVE_VIZ ? "a page alone has no drawn figures: a folder has" : "this build draws no figures";
        option_note_unused(job->options, &job->o->training_log, why);
        option_note_unused(job->options, &job->o->layers, why);
        option_note_unused(job->options, &job->o->heads, why);
    }
    common_options *info = explorer_steps_begin(job, &command_info);
    option_give(info, &info->json, NULL);
    give_document(job, info, DOCUMENT_INFO);
    run_step(job, "The machine and the model", info);
    if (!job->contents.is_alone) run_training(job);
    for (size_t k = 0; k < job->contents.text_count; k++) run_text(job, k);
    job->contents.no_labels = explorer_answers_compute(job->options, job->texts, job->contents.text_count);
    explorer_attributions_choose(job->options, job->texts, job->contents.text_count);
    for (size_t k = 0; k < job->contents.text_count; k++) run_attribution(job, k);
    if (job->has_relative_positions && parts[PART_RECEPTIVE_FIELD] != PART_LEFT_OUT) run_receptive_field(job);
    if (is_verified) run_verify(job);
    if (wants_latency(job)) run_latency(job);
}
