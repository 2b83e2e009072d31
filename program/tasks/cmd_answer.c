/* `deberta answer` finds the span of a context that answers a question, by the QA head.
 *
 * Begin and end are softmaxes over the tokens of the context and [CLS], which means "no answer"; a span's probability
 * is the product of its two ends. Spans of one place are one answer, with the sum of their probabilities. The answer is
 * the original text of the context, never put together from tokens.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/status.h"
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/tasks/task_run.h"

enum { MOST_ANSWERS = 1000, LONGEST_ANSWER = 30 };

typedef struct answer_options {
    reading_options reading;
    size_t top, max_answer; /* max_answer: longest span in tokens */
} answer_options;

static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    (void)err;
    (void)run;
    const deberta_tokens *tokens = text->tokens;
    const size_t context = deberta_context_tokens(tokens);
    size_t own = 0;
    for (size_t t = 0; t < tokens->count; t++) own += tokens->roles[t] != DEBERTA_TOKEN_FRAME;
    if (own > context && context > 0) return DEBERTA_OK;
    return text_record_spoil(&text->record, "the %s holds no tokens", context ? "question" : "context");
}

static json_t *describe_span(const task_text *text, const deberta_answer *span)
{
    const deberta_span bytes = span->place.bytes;
    return json_pack("{s:o, s:o, s:o, s:f}", "text",
                     json_clean_string(text->record.pair + bytes.begin, bytes.end - bytes.begin), "characters",
                     json_span(span->place.characters), "bytes", json_span(bytes), "probability", span->probability);
}

/* Prints the answers in the order of probabilities, with "no answer" among them. */
static void answer_show(FILE *out, const text_record *record, const deberta_answer *spans, size_t count,
                        double no_answer)
{
    print_clean(out, record->text, record->text_bytes);
    fputc('\n', out);
    if (count == 0) fprintf(out, "  %.3f  (no answer)\n", no_answer);
    for (size_t k = 0; k < count; k++) {
        if (no_answer > spans[k].probability) fprintf(out, "  %.3f  (no answer)\n", no_answer);
        if (no_answer > spans[k].probability) no_answer = -1;
        fprintf(out, "  %.3f  ", spans[k].probability);
        print_marked(out, record->pair, record->pair_bytes, spans[k].place.bytes);
        fputc('\n', out);
    }
}

static deberta_status answer_describe(task_run *run, task_text *text, const float *logits, FILE *out,
                                      deberta_error *err)
{
    const answer_options *o = (const answer_options *)run->options;
    size_t count = o->top;
    double no_answer = 0;
    deberta_answer *spans = options_take(run->options, o->top, sizeof *spans);
    DEBERTA_TRY(
        deberta_answers(spans, &count, &no_answer, text->tokens, text->record.pair, logits, o->max_answer, err));
    if (out) {
        answer_show(out, &text->record, spans, count, no_answer);
        return DEBERTA_OK;
    }
    json_t *answers = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(answers, describe_span(text, &spans[k]));
    text->answer = json_pack("{s:o, s:f}", "answers", answers, "no_answer", no_answer);
    return DEBERTA_OK;
}

static int answer_run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "question", .pair = "context", .pair_required = true, .share_pair = true},
        .task = DEBERTA_TASK_QA,
        .look = look,
        .describe = answer_describe,
    };
    return task_run_all(options, &command, NULL);
}

static const option options[] = {
    {"question", 0, "TEXT", "what to ask; may be repeated", TEXTS_AT(reading_options, texts)},
    {"context", 0, "TEXT", "where the answer is: one for all questions, or one for each",
     TEXTS_AT(reading_options, pairs)},
    {"file", 'f', "FILE",
     "objects with \"question\" and \"context\", one a line; - is standard input, answered as its lines come; may be "
     "repeated",
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
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(answer_options),
    .defaults = &(const answer_options){.top = 3, .max_answer = LONGEST_ANSWER},
    .example = "  deberta answer models/answers --question 'Who opened the door?' --context 'The captain waited. "
               "Tom opened the door.'\n"
               "\nSpans of tokens with the same place are one answer, with the sum of their probabilities.\n"
               "\nwith --json, one line a question; places are places in the context:\n"
               "  {\"line\", \"answers\": [{\"text\", \"characters\": [begin, end], \"bytes\", \"probability\"}], "
               "\"no_answer\"}\n",
    .run = answer_run,
    .without = "seed",
};
