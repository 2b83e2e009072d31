/* `deberta detect`: which tokens of a text somebody replaced, by the head that ELECTRA-style training leaves
 * (replaced-token detection). SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "output/shown_text.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

typedef struct detect_options {
    reading_options reading;
    size_t top; /* 0: all tokens, in the order of the text */
    double threshold;
} detect_options;

static json_t *describe_token(const task_text *text, size_t token, double probability, double threshold)
{
    size_t bytes;
    const char *name = deberta_tokens_text(text->tokens, token, &bytes);
    const deberta_place place = deberta_token_place(text->tokens, token, text->record.text);
    return json_pack("{s:I, s:o, s:o, s:o, s:f, s:b}", "index", (json_int_t)token, "token",
                     json_clean_string(name, bytes), "characters", json_span(place.characters), "bytes",
                     json_span(place.bytes), "probability", probability, "replaced", probability > threshold);
}

static deberta_status describe(task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    (void)err;
    const detect_options *o = (const detect_options *)run->options;
    const size_t count = text->tokens->count;
    double *scores = options_take(run->options, count, sizeof *scores);
    size_t *chosen;
    json_t *tokens = json_array();
    /* The frame is nobody's text: it ranks after everything. */
    for (size_t t = 0; t < count; t++)
        scores[t] = text->tokens->roles[t] == DEBERTA_TOKEN_FRAME ? -1 : deberta_sigmoid(logits[t]);
    for (size_t k = 0, shown = task_run_choose(run, o->top, scores, count, &chosen); k < shown; k++)
        if (scores[chosen[k]] >= 0)
            json_array_append_new(tokens, describe_token(text, chosen[k], scores[chosen[k]], o->threshold));
    text->answer = json_pack("{s:o}", "tokens", tokens);
    return DEBERTA_OK;
}

/* The text with its suspects marked, and a line for each; with --top for each of those. */
static void print(FILE *out, const task_run *run, const task_text *text)
{
    const detect_options *o = (const detect_options *)run->options;
    size_t k;
    json_t *token, *shown = json_array();
    json_array_foreach(json_object_get(text->answer, "tokens"), k,
                       token) if (o->top || json_is_true(json_object_get(token, "replaced")))
        json_array_append(shown, token);
    print_all_marked(out, text->record.text, text->record.text_bytes, shown);
    fputc('\n', out);
    json_array_foreach(shown, k, token)
    {
        fprintf(out, "  %.3f  ", json_number_value(json_object_get(token, "probability")));
        print_place(out, text->record.text, token);
    }
    if (json_array_size(shown) == 0) fprintf(out, "  nothing above %g\n", o->threshold);
    json_decref(shown);
}

static int run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "text"}, .task = DEBERTA_TASK_RTD, .describe = describe, .print = print};
    return task_run_all(options, &command, NULL);
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
    .options = options,
    .size = sizeof(detect_options),
    .defaults = &(const detect_options){.threshold = 0.5},
    .example = "  deberta detect deberta-v3-base --top 3 --text 'the chef ate the meal that she had cooked'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"tokens\": [{\"index\", \"token\", \"characters\": [begin, end], \"bytes\", "
               "\"probability\", \"replaced\"}]}\n",
    .run = run,
};
