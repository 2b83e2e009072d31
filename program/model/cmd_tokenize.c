/* `deberta tokenize` prints ids, tokens and offsets of texts. It needs only the tokenizer's files.
 *
 * SPDX-License-Identifier: MIT */
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"

static json_t *spans_of(const deberta_tokens *list, const deberta_span *spans)
{
    json_t *array = json_array();
    for (size_t t = 0; t < list->count; t++)
        json_array_append_new(array, list->roles[t] == DEBERTA_TOKEN_FRAME ? json_null() : json_span(spans[t]));
    return array;
}

static json_t *tokenize_describe(const deberta_tokens *list)
{
    json_t *ids = json_array(), *tokens = json_array(), *types = json_array();
    for (size_t t = 0; t < list->count; t++) {
        size_t bytes;
        const char *text = deberta_tokens_text(list, t, &bytes);
        json_array_append_new(ids, json_integer(list->ids[t]));
        json_array_append_new(tokens, json_stringn(text, bytes));
        json_array_append_new(types, json_integer(list->token_types[t]));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "ids", ids, "tokens", tokens, "offsets",
                     spans_of(list, list->character_spans), "byte_offsets", spans_of(list, list->byte_spans),
                     "type_ids", types);
}

static void print_table(FILE *out, const deberta_tokens *list)
{
    fprintf(out, "%5s %8s %4s %12s  %s\n", "index", "id", "type", "characters", "token");
    for (size_t t = 0; t < list->count; t++) {
        char span[48] = "-";
        if (list->roles[t] != DEBERTA_TOKEN_FRAME)
            snprintf(span, sizeof span, "%zu-%zu", list->character_spans[t].begin, list->character_spans[t].end);
        size_t bytes;
        const char *text = deberta_tokens_text(list, t, &bytes);
        fprintf(out, "%5zu %8d %4d %12s  ", t, list->ids[t], list->token_types[t], span);
        print_clean(out, text, bytes);
        fputc('\n', out);
    }
}

static void print(const common_options *options, const input_batch *input, text_output *output)
{
    for (size_t r = 0; r < input->rows; r++) {
        if (options->json)
            write_json_line(output->file, tokenize_describe(input->token_lists[r]));
        else
            print_table(output->file, input->token_lists[r]);
    }
    text_output_close(options, output);
}

static int tokenize_run(const common_options *options)
{
    input_batch input;
    text_output output;
    check_model_place(options);
    input_read(reading_of(options), options->arguments[0], NULL, &input);
    text_output_open(options, options_out(options), &output);
    print(options, &input, &output);
    input_free(&input);
    return EXIT_OK;
}

static const option options[] = {
    {"text", 0, "TEXT", "what to tokenize; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",
     TEXTS_AT(reading_options, pairs)},
    {"file", 'f', "FILE", "texts, one a line, or objects (.jsonl); - is standard input, answered after its end",
     TEXTS_AT(reading_options, files)},
    {"max-tokens", 0, "N", "cut longer texts to N tokens, frame included; nothing is cut otherwise",
     PARSED_AT(reading_options, max_tokens, token_limit_parse)},
    {"strict", 0, NULL, "refuse broken UTF-8 instead of replacing it by U+FFFD and saying so",
     FLAG_AT(reading_options, strict)},
    {.name = NULL},
};

const command command_tokenize = {
    .name = "tokenize",
    .summary = "ids, tokens and offsets of texts",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(reading_options),
    .example = "  deberta tokenize models/demo --text 'a new store opened beside the new mall'\n"
               "  deberta tokenize models/demo --file - --json < texts.txt > tokens.jsonl\n",
    .run = tokenize_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE,
};
