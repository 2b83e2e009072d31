/* `deberta detect`: which tokens of a text somebody replaced, by the head that ELECTRA-style training leaves
 * (replaced-token detection). SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/task_output.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

typedef struct detect_job {
    double threshold;
    size_t top; /* 0: all tokens, in the order of the text */
} detect_job;

static json_t *describe_token(const task_text *text, size_t token, double probability, double threshold)
{
    size_t bytes;
    const char *name = deberta_tokens_text(text->tokens, token, &bytes);
    const deberta_place place = deberta_token_place(text->tokens, token, text->record.text);
    return json_pack("{s:I, s:o, s:o, s:o, s:f, s:b}", "index", (json_int_t)token, "token",
                     json_clean_string(name, bytes), "characters", json_span(place.characters), "bytes",
                     json_span(place.bytes), "probability", probability, "replaced", probability > threshold);
}

static deberta_status describe(const task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    const detect_job *job = run->context;
    const size_t count = text->tokens->count;
    double *scores = malloc(count * sizeof *scores);
    size_t *order = malloc(count * sizeof *order), shown = 0;
    deberta_status status = scores && order ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) {
        json_t *tokens = json_array();
        /* The frame is nobody's text: it ranks behind everything. */
        for (size_t t = 0; t < count; t++)
            scores[t] = text->tokens->roles[t] == DEBERTA_TOKEN_FRAME ? -1 : deberta_sigmoid(logits[t]);
        if (job->top)
            shown = deberta_rank(order, job->top < count ? job->top : count, scores, count);
        else
            for (; shown < count; shown++) order[shown] = shown;
        for (size_t k = 0; k < shown; k++)
            if (scores[order[k]] >= 0)
                json_array_append_new(tokens, describe_token(text, order[k], scores[order[k]], job->threshold));
        text->answer = json_pack("{s:o}", "tokens", tokens);
    }
    free(scores);
    free(order);
    return status;
}

static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    float *logits;
    DEBERTA_TRY(task_run_token_logits(batch, DEBERTA_TASK_RTD, &logits, err));
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++)
        status = describe(run, batch->texts[k], logits + batch->starts[k], err);
    free(logits);
    return status;
}

/* The text with its suspects marked, and a line for each; with --top for each of those. */
static void print(FILE *out, const task_run *run, const task_text *text)
{
    const detect_job *job = run->context;
    size_t k;
    json_t *token, *shown = json_array();
    json_array_foreach(json_object_get(text->answer, "tokens"), k,
                       token) if (job->top || json_is_true(json_object_get(token, "replaced")))
        json_array_append(shown, token);
    print_all_marked(out, text->record.text, text->record.text_bytes, shown);
    fputc('\n', out);
    json_array_foreach(shown, k, token)
    {
        fprintf(out, "  %.3f  ", json_number_value(json_object_get(token, "probability")));
        print_place(out, text->record.text, token);
    }
    if (json_array_size(shown) == 0) fprintf(out, "  nothing above %g\n", job->threshold);
    json_decref(shown);
}

typedef struct detect_options {
    reading_options reading;
    size_t top; /* 0: all, in the order of the text */
    double threshold;
} detect_options;

static int run(const common_options *options)
{
    const detect_options *o = (const detect_options *)options;
    static const task_command command = {.names = {.text = "text"}, .answer = answer, .print = print};
    detect_job job = {.top = o->top, .threshold = o->threshold};
    task_run run;
    int status = task_run_open(&run, &o->reading, 0);
    if (status == EXIT_OK) status = task_run_require(&run, DEBERTA_TASK_RTD);
    if (status == EXIT_OK) status = task_run_all(&run, &command, &job);
    task_run_close(&run);
    return status;
}

static const option options[] = {
    {"text", 0, "TEXT", "where to look; may be repeated", TEXTS_AT(reading_options, texts)},
    TEXT_STREAM_FILE_OPTIONS,
    {"threshold", 0, "P", "probability above which a token counts as replaced (default 0.5)",
     NUMBER_AT(detect_options, threshold, 0, 0)},
    TASK_TOP_ROW(detect_options, SIZE_MAX, "the N most suspicious tokens; without it all, in the order of the text"),
    TEXT_BATCHES_OPTIONS,
    {.name = NULL},
};

const command command_detect = {
    .name = "detect",
    .summary = "tokens of a text that look replaced",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(detect_options),
    .defaults = &(const detect_options){.threshold = 0.5},
    .example = "  deberta detect deberta-v3-base --top 3 --text 'the chef ate the meal that she had cooked'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"tokens\": [{\"index\", \"token\", \"characters\": [begin, end], \"bytes\", "
               "\"probability\", \"replaced\"}]}\n",
    .run = run,
};
