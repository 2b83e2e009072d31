/* `deberta detect` finds the replaced tokens of a text, by the head that ELECTRA-style training leaves
 * (replaced-token detection).
 *
 * SPDX-License-Identifier: MIT */
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/tasks/task_run.h"

typedef struct detect_options {
    reading_options reading;
    size_t top; /* number of tokens listed; 0: all, in the order of the text */
    double threshold;
} detect_options;

typedef struct suspect {
    size_t token;
    deberta_place place;
    double probability;
    bool replaced;
} suspect;

/* Prints the text with its suspects marked, and a line for each; with --top a line for each of the top tokens. */
static void detect_show(FILE *out, const task_run *run, const text_record *record, const suspect *suspects,
                        size_t count)
{
    const detect_options *o = (const detect_options *)run->options;
    deberta_span *spans = options_take(run->options, count, sizeof *spans);
    size_t shown = 0;
    for (size_t k = 0; k < count; k++)
        if (o->top || suspects[k].replaced) spans[shown++] = suspects[k].place.bytes;
    print_all_marked(out, record->text, record->text_bytes, spans, shown);
    fputc('\n', out);
    for (size_t k = 0; k < count; k++) {
        if (!o->top && !suspects[k].replaced) continue;
        fprintf(out, "  %.3f  ", suspects[k].probability);
        print_place(out, record->text, &suspects[k].place);
    }
    if (shown == 0) fprintf(out, "  nothing above %g\n", o->threshold);
}

static json_t *describe_token(const task_text *text, const suspect *s)
{
    size_t bytes;
    const char *name = deberta_tokens_text(text->tokens, s->token, &bytes);
    return json_pack("{s:I, s:o, s:o, s:o, s:f, s:b}", "index", (json_int_t)s->token, "token",
                     json_clean_string(name, bytes), "characters", json_span(s->place.characters), "bytes",
                     json_span(s->place.bytes), "probability", s->probability, "replaced", s->replaced);
}

static deberta_status detect_describe(task_run *run, task_text *text, const float *logits, FILE *out,
                                      deberta_error *err)
{
    (void)err;
    const detect_options *o = (const detect_options *)run->options;
    const size_t count = text->tokens->count;
    double *scores = options_take(run->options, count, sizeof *scores);
    suspect *suspects = options_take(run->options, count, sizeof *suspects);
    size_t *chosen, found = 0;
    /* [CLS] and [SEP] are not part of the text and cannot be replaced, so they rank last. */
    for (size_t t = 0; t < count; t++)
        scores[t] = text->tokens->roles[t] == DEBERTA_TOKEN_FRAME ? -1 : deberta_sigmoid(logits[t]);
    for (size_t k = 0, shown = task_run_choose(run, o->top, scores, count, &chosen); k < shown; k++) {
        const size_t t = chosen[k];
        if (scores[t] >= 0)
            suspects[found++] = (suspect){t, deberta_token_place(text->tokens, t, text->record.text), scores[t],
                                          scores[t] > o->threshold};
    }
    if (out) {
        detect_show(out, run, &text->record, suspects, found);
        return DEBERTA_OK;
    }
    text->answer = json_pack("{s:[]}", "tokens");
    for (size_t k = 0; k < found; k++)
        json_array_append_new(json_object_get(text->answer, "tokens"), describe_token(text, &suspects[k]));
    return DEBERTA_OK;
}

static int detect_run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "text"}, .task = DEBERTA_TASK_RTD, .describe = detect_describe};
    return task_run_all(options, &command, NULL);
}

static const option options[] = {
    {"text", 0, "TEXT", "where to look; may be repeated", TEXTS_AT(reading_options, texts)},
    TEXT_STREAM_FILE_OPTIONS,
    {"threshold", 0, "P", "probability above which a token counts as replaced (default 0.5)",
     NUMBER_AT(detect_options, threshold, 0, 1)},
    TASK_TOP_ROW(detect_options, SIZE_MAX, "the N most suspicious tokens; without it all, in the order of the text"),
    TEXT_BATCHES_OPTIONS,
    SHARD_OPTIONS,
    {.name = NULL},
};

const command command_detect = {
    .name = "detect",
    .summary = "tokens of a text that look replaced",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(detect_options),
    .defaults = &(const detect_options){.threshold = 0.5},
    .example = "  deberta detect models/discriminator --top 3 --text 'He took the letter and read green aloud.'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"tokens\": [{\"index\", \"token\", \"characters\": [begin, end], \"bytes\", "
               "\"probability\", \"replaced\"}]}\n",
    .run = detect_run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
