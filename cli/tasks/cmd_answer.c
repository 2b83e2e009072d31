/* `deberta answer`: the span of a context that answers a question, by the QA head.
 *
 * Begin and end are softmaxes over the tokens of the context and [CLS], which stands for "no answer"; a span's
 * probability is the product of its two ends. Spans are given in the context as it came, never put together from
 * tokens.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/task_output.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

enum { MOST_ANSWERS = 1000, LONGEST_ANSWER = 30 };

typedef struct answer_job {
    size_t top, longest; /* tokens of an answer */
} answer_job;

typedef struct answer_span {
    size_t begin, end; /* tokens, both inside */
    double score;
} answer_span;

/* The softmaxes of one text: index 0 is [CLS], index k is the token first + k - 1. */
typedef struct span_scores {
    size_t first, count; /* tokens of the context */
    double *begin, *end; /* [count + 1] */
} span_scores;

static void find_context(const deberta_tokens *list, span_scores *scores)
{
    scores->first = scores->count = 0;
    for (size_t t = 0; t < list->count; t++) {
        if (list->token_types[t] != 1 || list->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        if (scores->count++ == 0) scores->first = t;
    }
}

static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    (void)run;
    span_scores scores;
    find_context(text->tokens, &scores);
    return scores.count ? DEBERTA_OK : text_record_spoil(&text->record, err, "the context holds no tokens");
}

static deberta_status score(span_scores *scores, const task_text *text, const float *logits, deberta_error *err)
{
    find_context(text->tokens, scores);
    const size_t room = scores->count + 1;
    float *column = malloc(room * sizeof *column);
    scores->begin = malloc(room * sizeof *scores->begin);
    scores->end = malloc(room * sizeof *scores->end);
    const bool fine = column && scores->begin && scores->end;
    for (size_t side = 0; fine && side < 2; side++) {
        column[0] = logits[side];
        for (size_t k = 0; k < scores->count; k++) column[k + 1] = logits[2 * (scores->first + k) + side];
        softmax_of(side ? scores->end : scores->begin, column, room);
    }
    free(column);
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    return DEBERTA_OK;
}

/* The best spans in descending order; of equal ones the first. */
static size_t best_spans(const answer_job *job, const span_scores *scores, answer_span *spans)
{
    size_t held = 0;
    for (size_t b = 1; b <= scores->count; b++)
        for (size_t e = b; e <= scores->count && e < b + job->longest; e++) {
            const answer_span span = {scores->first + b - 1, scores->first + e - 1, scores->begin[b] * scores->end[e]};
            if (held == job->top && !(span.score > spans[held - 1].score)) continue;
            size_t place = held < job->top ? held++ : held - 1;
            for (; place > 0 && span.score > spans[place - 1].score; place--) spans[place] = spans[place - 1];
            spans[place] = span;
        }
    return held;
}

static json_t *describe_span(const task_text *text, const answer_span *span)
{
    const char *context = text->record.pair;
    const token_place first = token_place_of(text->tokens, span->begin, context);
    const token_place last = token_place_of(text->tokens, span->end, context);
    const deberta_span bytes = {first.bytes.begin,
                                last.bytes.end > first.bytes.begin ? last.bytes.end : first.bytes.begin};
    const deberta_span characters = {first.characters.begin, last.characters.end > first.characters.begin
                                                                 ? last.characters.end
                                                                 : first.characters.begin};
    return json_pack("{s:o, s:o, s:o, s:f}", "text", json_clean_string(context + bytes.begin, bytes.end - bytes.begin),
                     "characters", json_span(characters), "bytes", json_span(bytes), "probability", span->score);
}

static deberta_status describe(const answer_job *job, task_text *text, const float *logits, deberta_error *err)
{
    span_scores scores = {0};
    answer_span *spans = malloc((job->top + 1) * sizeof *spans);
    deberta_status status = spans ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) status = score(&scores, text, logits, err);
    if (status == DEBERTA_OK) {
        json_t *answers = json_array();
        const size_t count = best_spans(job, &scores, spans);
        for (size_t k = 0; k < count; k++) json_array_append_new(answers, describe_span(text, &spans[k]));
        text->answer = json_pack("{s:o, s:f}", "answers", answers, "no_answer", scores.begin[0] * scores.end[0]);
    }
    free(scores.begin);
    free(scores.end);
    free(spans);
    return status;
}

static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    float *logits;
    DEBERTA_TRY(task_run_token_logits(batch, DEBERTA_TASK_QA, &logits, err));
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++)
        status = describe(run->context, batch->texts[k], logits + 2 * batch->starts[k], err);
    free(logits);
    return status;
}

/* "No answer" takes its place in the order of probabilities. */
static void print(FILE *out, const task_run *run, const task_text *text)
{
    (void)run;
    double none = json_number_value(json_object_get(text->answer, "no_answer"));
    size_t k;
    json_t *span;
    print_clean(out, text->record.text, text->record.text_bytes);
    fputc('\n', out);
    json_array_foreach(json_object_get(text->answer, "answers"), k, span)
    {
        const double probability = json_number_value(json_object_get(span, "probability"));
        if (none > probability) fprintf(out, "  %.3f  (no answer)\n", none);
        if (none > probability) none = -1;
        fprintf(out, "  %.3f  ", probability);
        print_marked(out, text->record.pair, text->record.pair_bytes, span_of(span));
        fputc('\n', out);
    }
}

typedef struct answer_options {
    reading_options reading;
    size_t top, max_answer;
} answer_options;

static int run(const common_options *options)
{
    const answer_options *o = (const answer_options *)options;
    static const task_command command = {
        .names = {.text = "question", .pair = "context", .pair_required = true, .share_pair = true},
        .look = look,
        .answer = answer,
        .print = print,
    };
    answer_job job;
    task_run run;
    job.top = o->top;
    job.longest = o->max_answer;
    int status = task_run_open(&run, &o->reading, 0);
    if (status == EXIT_OK) status = task_run_require(&run, DEBERTA_TASK_QA);
    if (status == EXIT_OK) status = task_run_all(&run, &command, &job);
    task_run_close(&run);
    return status;
}

static const option options[] = {
    {"question", 0, "TEXT", "what to ask; may be repeated", TEXTS_AT(reading_options, texts)},
    {"context", 0, "TEXT", "where the answer is: one for all questions, or one for each",
     TEXTS_AT(reading_options, pairs)},
    {"file", 'f', "FILE", "objects with \"question\" and \"context\", one a line; - is standard input; may be repeated",
     TEXTS_AT(reading_options, files)},
    {"jsonl", 0, NULL, "files hold one JSON object a line, whatever their names", FLAG_AT(reading_options, jsonl)},
    {"max-answer", 0, "N", "tokens of the longest answer (default 30)",
     SIZE_AT(answer_options, max_answer, 1, 1 << 20)},
    TASK_TOP_ROW(answer_options, MOST_ANSWERS, "answers to each question (default 3)"),
    TEXT_BATCHES_OPTIONS,
    {.name = NULL},
};

const command command_answer = {
    .name = "answer",
    .summary = "the span of a context that answers a question",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(answer_options),
    .defaults = &(const answer_options){.top = 3, .max_answer = LONGEST_ANSWER},
    .example = "  deberta answer deberta-v3-squad2 --question 'Where was she born?' --context 'Ada Lovelace was born "
               "in London.'\n"
               "\nwith --json, one line a question; places are places in the context:\n"
               "  {\"line\", \"answers\": [{\"text\", \"characters\": [begin, end], \"bytes\", \"probability\"}], "
               "\"no_answer\"}\n",
    .run = run,
};
