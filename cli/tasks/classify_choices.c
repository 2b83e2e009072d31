/* SPDX-License-Identifier: MIT */
#include "cli/tasks/classify_choices.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tasks/task_output.h"
#include "core/base/status.h"

typedef struct choice_job {
    const char *const *choices; /* [count] */
    size_t count, top;
    deberta_tokens **tokens; /* [count] of the text at hand, with each choice */
    text_piece *pieces;      /* [count] */
    float *scores;           /* [count] */
    double *probabilities;
    size_t *ranked;
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
        status = text_record_spoil(record, err, "with choice %zu: %s", choice, one.problem);
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

static json_t *describe(const choice_job *job)
{
    json_t *array = json_array();
    deberta_softmax(job->probabilities, job->scores, job->count);
    const size_t count = deberta_rank(job->ranked, job->top, job->probabilities, job->count);
    for (size_t k = 0; k < count; k++) {
        const size_t choice = job->ranked[k];
        json_array_append_new(array, json_pack("{s:o, s:I, s:f, s:f}", "choice",
                                               json_clean_string(job->choices[choice], strlen(job->choices[choice])),
                                               "index", (json_int_t)choice, "score", (double)job->scores[choice],
                                               "probability", job->probabilities[choice]));
    }
    return json_pack("{s:o}", "choices", array);
}

/* Answers by itself: one text is several sequences. */
static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    choice_job *job = run->context;
    for (size_t k = 0; k < job->count && !text->record.problem; k++)
        DEBERTA_TRY(tokenize_choice(job, &text->record, k, err));
    if (text->record.problem) return DEBERTA_OK;
    DEBERTA_TRY(text_batches_run(&run->batches, job->pieces, job->count, keep_scores, job, err));
    text->answer = describe(job);
    return DEBERTA_OK;
}

static void print(FILE *out, const task_run *run, const task_text *text)
{
    (void)run;
    print_clean(out, text->record.text, text->record.text_bytes);
    fputc('\n', out);
    print_probabilities(out, json_object_get(text->answer, "choices"), "choice");
}

static int refuse_width(const task_run *run)
{
    deberta_error error = {.code = DEBERTA_E_UNSUPPORTED};
    snprintf(error.message, sizeof error.message,
             "%s: its classifier has %zu outputs; --choice needs one with a single output, as models for multiple "
             "choice have",
             run->batches.info.name, run->batches.info.sequence_labels);
    return say_error(run->options, &error);
}

static bool allocate(choice_job *job)
{
    job->tokens = calloc(job->count, sizeof *job->tokens);
    job->pieces = calloc(job->count, sizeof *job->pieces);
    job->scores = calloc(job->count, sizeof *job->scores);
    job->probabilities = calloc(job->count, sizeof *job->probabilities);
    job->ranked = calloc(job->count, sizeof *job->ranked);
    return job->tokens && job->pieces && job->scores && job->probabilities && job->ranked;
}

static void release(choice_job *job)
{
    for (size_t k = 0; job->tokens && k < job->count; k++) deberta_tokens_free(&job->tokens[k]);
    free(job->tokens);
    free(job->pieces);
    free(job->scores);
    free(job->probabilities);
    free(job->ranked);
}

int classify_choices_run(task_run *run, const text_list *choices, size_t top)
{
    static const task_command command = {.names = {.text = "text"}, .look = look, .print = print};
    choice_job job = {.run = run, .choices = choices->items, .count = choices->count};
    if (run->batches.info.sequence_labels != 1) return refuse_width(run);
    job.top = top < job.count ? top : job.count;
    const int status = allocate(&job) ? task_run_all(run, &command, &job) : say_no_memory(run->options);
    release(&job);
    return status;
}
