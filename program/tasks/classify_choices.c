/* Choices of a text are tokenized as pairs, scored together, and ranked by a softmax. SPDX-License-Identifier: MIT */
#include "program/tasks/classify_choices.h"

#include <stdlib.h>
#include <string.h>

#include "output/shown_text.h"
#include "core/base/status.h"

typedef struct choice_job {
    const char *const *choices; /* [count] */
    size_t count, top;
    deberta_tokens **tokens; /* [count] of the text at hand, with each choice */
    text_piece *pieces;      /* [count] */
    float *scores;           /* [count] */
    double *probabilities;   /* [count] */
    task_run *run;
} choice_job;

/* A choice that this model cannot take is a problem of the text. */
static deberta_status tokenize_choice(choice_job *job, text_record *record, size_t choice, deberta_error *err)
{
    text_batches *batches = &job->run->batches;
    text_record one = {.text = record->text,
                       .text_bytes = record->text_bytes,
                       .pair = (char *)job->choices[choice],
                       .pair_bytes = strlen(job->choices[choice]),
                       .source = record->source,
                       .line = record->line};
    deberta_status status = text_batches_tokenize(batches, &one, &job->tokens[choice], err);
    const deberta_tokens *tokens = job->tokens[choice];
    if (status == DEBERTA_OK && !one.problem)
        status = text_batches_check_length(batches, &one, tokens->count, batches->longest, err);
    if (status == DEBERTA_OK && one.problem)
        status = text_record_spoil(record, "with choice %zu: %s", choice, one.problem);
    free(one.problem);
    job->pieces[choice] =
        (text_piece){.ids = tokens->ids, .types = tokens->token_types, .tokens = tokens->count, .index = choice};
    return status;
}

static deberta_status keep_scores(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                  const deberta_outputs *outputs, deberta_error *err)
{
    (void)outputs;
    choice_job *job = context;
    const text_batches *batches = &job->run->batches;
    const task_batch batch = {.session = batches->session, .model = batches->model, .count = count, .starts = starts};
    for (size_t k = 0; k < count; k++)
        DEBERTA_TRY(task_run_logits(&batch, DEBERTA_TASK_SEQUENCE, &k, 1, &job->scores[pieces[k].index], err));
    return DEBERTA_OK;
}

static json_t *describe_choices(const choice_job *job, const size_t *chosen, size_t count)
{
    json_t *choices = json_array();
    for (size_t k = 0; k < count; k++) {
        const size_t choice = chosen[k];
        json_array_append_new(choices,
                              json_pack("{s:o, s:I, s:f, s:f}", "choice", json_clean_text(job->choices[choice]),
                                        "index", (json_int_t)choice, "score", (double)job->scores[choice],
                                        "probability", job->probabilities[choice]));
    }
    return json_pack("{s:o}", "choices", choices);
}

static void show_choices(FILE *out, const choice_job *job, const size_t *chosen, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        print_probability(out, job->probabilities[chosen[k]], job->choices[chosen[k]]);
        fputc('\n', out);
    }
}

static void describe(const choice_job *job, task_text *text, FILE *out)
{
    size_t *chosen;
    deberta_softmax(job->probabilities, job->scores, job->count);
    const size_t count = task_run_choose(job->run, job->top, job->probabilities, job->count, &chosen);
    if (!out) {
        text->answer = describe_choices(job, chosen, count);
        return;
    }
    print_clean(out, text->record.text, text->record.text_bytes);
    fputc('\n', out);
    show_choices(out, job, chosen, count);
}

/* Answers by itself: one text is several sequences. */
static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    choice_job *job = run->context;
    FILE *out;
    for (size_t k = 0; k < job->count && !text->record.problem; k++)
        DEBERTA_TRY(tokenize_choice(job, &text->record, k, err));
    if (text->record.problem) return DEBERTA_OK;
    struct scope_piece *mark = options_mark(run->options);
    deberta_status status = text_batches_run(&run->batches, job->pieces, job->count, keep_scores, job, err);
    if (status == DEBERTA_OK) task_text_out(run, text, &out);
    if (status == DEBERTA_OK) describe(job, text, out);
    options_release(run->options, mark);
    return status;
}

static int begin(task_run *run)
{
    choice_job *job = run->context;
    const deberta_model_info *info = &run->batches.info;
    deberta_error error;
    const int status = task_run_require(run, DEBERTA_TASK_SEQUENCE);
    job->run = run;
    if (status != EXIT_OK || info->sequence_labels == 1) return status;
    status_fail(&error, DEBERTA_E_UNSUPPORTED,
                "%s: its classifier has %zu outputs; --choice needs one with a single output, as models for multiple "
                "choice have",
                info->name, info->sequence_labels);
    return say_error(run->options, &error);
}

int classify_choices_run(const common_options *options, const text_list *choices, size_t top)
{
    static const task_command command = {
        .names = {.text = "text"}, .begin = begin, .look = look, .answers_alone = true};
    const size_t count = choices->count;
    choice_job job = {.choices = choices->items, .count = count, .top = top};
    job.tokens = options_take(options, count, sizeof *job.tokens);
    job.pieces = options_take(options, count, sizeof *job.pieces);
    job.scores = options_take(options, count, sizeof *job.scores);
    job.probabilities = options_take(options, count, sizeof *job.probabilities);
    const int status = task_run_all(options, &command, &job);
    for (size_t k = 0; k < count; k++) deberta_tokens_free(&job.tokens[k]);
    return status;
}
