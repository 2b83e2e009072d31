/* Reads the one source that the command line names into a padded matrix, leaves its padding out, and packs the rest
 * into a ragged batch.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/input.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/receptive_field.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/input_file.h"
#include "core/io/quote.h"
#include "program/frame/open_model.h"

/* A padded matrix [rows][columns] of one kind that is being read. */
typedef struct padded {
    const char *source; /* name of the source in messages: an option or a file */
    size_t rows, columns;
    int64_t *ids, *mask, *types, *positions;
} padded;

static void padded_free(padded *p)
{
    free(p->ids);
    free(p->mask);
    free(p->types);
    free(p->positions);
    memset(p, 0, sizeof *p);
}

/* Narrows an id to 32 bits, or refuses it; input_check compares ids with a vocabulary. */
static deberta_status narrow(int32_t *out, int64_t value, const padded *p, const char *what, size_t row, size_t column,
                             deberta_error *err)
{
    if (value < INT32_MIN || value > INT32_MAX)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: %s %lld in row %zu, column %zu does not fit in 32 bits",
                     QUOTE(p->source), what, (long long)value, row, column);
    *out = (int32_t)value;
    return DEBERTA_OK;
}

/* Returns the first real column and the number of columns to the last real one; 0 for a row of padding. */
static input_row trim(const padded *p, size_t row)
{
    const int64_t *mask = p->mask ? p->mask + row * p->columns : NULL;
    size_t first = 0, end = p->columns;
    if (mask) {
        while (first < end && mask[first] == 0) first++;
        while (end > first && mask[end - 1] == 0) end--;
    }
    return (input_row){.first_column = end > first ? first : 0, .tokens = end - first, .sequence = SIZE_MAX};
}

/* Labels a token with its own text if it has one, else with its id. */
static void label_token(input_batch *input, size_t row, size_t column, size_t token, int64_t id)
{
    const bool of_text = input->token_lists != NULL;
    input->labels[token] =
        of_text ? token_label(input, row, column) : scope_text(&input->memory, "%lld", (long long)id);
    if (of_text) input->special[token] = input->token_lists[row]->roles[column] != DEBERTA_TOKEN_TEXT;
}

static deberta_status input_fill(input_batch *input, const padded *p, deberta_error *err)
{
    bool holes = false, shifted = false;
    for (size_t r = 0, t = 0; r < p->rows; r++) {
        const input_row row = input->row[r];
        const size_t from = r * p->columns + row.first_column;
        for (size_t c = 0; c < row.tokens; c++, t++) {
            DEBERTA_TRY(narrow(&input->ids[t], p->ids[from + c], p, "id", r, row.first_column + c, err));
            if (p->types)
                DEBERTA_TRY(
                    narrow(&input->token_types[t], p->types[from + c], p, "token type", r, row.first_column + c, err));
            const int64_t position = p->positions ? p->positions[from + c] : (int64_t)(row.first_column + c);
            DEBERTA_TRY(narrow(&input->position_ids[t], position, p, "position", r, row.first_column + c, err));
            input->mask[t] = !p->mask || p->mask[from + c] != 0;
            holes = holes || !input->mask[t];
            shifted = shifted || position != (int64_t)c;
            label_token(input, r, row.first_column + c, t, p->ids[from + c]);
        }
    }
    if (!holes) input->mask = NULL;
    if (!shifted) input->position_ids = NULL;
    return DEBERTA_OK;
}

static deberta_status pack(input_batch *input, const padded *p, deberta_error *err)
{
    input->rows = p->rows;
    input->columns = p->columns;
    input->row = scope_take(&input->memory, p->rows, sizeof *input->row);
    input->sequence_starts = scope_take(&input->memory, p->rows + 1, sizeof *input->sequence_starts);
    for (size_t r = 0; r < p->rows; r++) {
        input->row[r] = trim(p, r);
        if (input->row[r].tokens == 0) continue;
        input->row[r].sequence = input->sequences++;
        input->tokens += input->row[r].tokens;
        input->sequence_starts[input->sequences] = input->tokens;
    }
    const size_t tokens = input->tokens;
    input->ids = scope_take(&input->memory, tokens, sizeof *input->ids);
    input->position_ids = scope_take(&input->memory, tokens, sizeof *input->position_ids);
    input->mask = scope_take(&input->memory, tokens, 1);
    input->labels = scope_take(&input->memory, tokens, sizeof *input->labels);
    input->special = scope_take(&input->memory, tokens, sizeof *input->special);
    if (p->types) input->token_types = scope_take(&input->memory, tokens, sizeof *input->token_types);
    return input_fill(input, p, err);
}

/* Parses "1,7,3" into a row of its own; shorter rows are later padded on the right. */
static deberta_status parse_ids(const char *text, int64_t **ids, size_t *count, deberta_error *err)
{
    size_t capacity = 1;
    for (const char *c = text; *c; c++) capacity += *c == ',';
    *count = 0;
    *ids = memory_take(capacity, sizeof **ids);
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        (*ids)[(*count)++] = strtoll(at, &end, 10);
        if (end == at || errno || (*end && *end != ','))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--ids: expected whole numbers with commas between them, found '%s'",
                         text);
        if (!*end) return DEBERTA_OK;
        at = end;
    }
}

static deberta_status read_ids(const text_list *given, padded *p, deberta_error *err)
{
    size_t counts[1024], rows = 0;
    int64_t *lists[1024] = {0};
    deberta_status status = DEBERTA_OK;
    for (; status == DEBERTA_OK && rows < given->count; rows++) {
        if (rows == 1024) {
            status =
                status_fail(err, DEBERTA_E_ARGUMENT, "--ids may be given at most 1024 times; use --input for more");
            break;
        }
        status = parse_ids(given->items[rows], &lists[rows], &counts[rows], err);
        if (status == DEBERTA_OK && counts[rows] > p->columns) p->columns = counts[rows];
    }
    p->rows = rows;
    if (status == DEBERTA_OK) {
        p->ids = memory_take(rows * p->columns, sizeof *p->ids);
        p->mask = memory_take(rows * p->columns, sizeof *p->mask);
    }
    for (size_t r = 0; status == DEBERTA_OK && r < rows; r++)
        for (size_t c = 0; c < counts[r]; c++) {
            p->ids[r * p->columns + c] = lists[r][c];
            p->mask[r * p->columns + c] = 1;
        }
    for (size_t r = 0; r < rows + (rows < 1024); r++) free(lists[r]);
    return status;
}

/* Reads a file's tensors. others: the file may hold tensors that are not part of the input. */
static deberta_status read_file(const char *path, padded *p, bool others, deberta_error *err)
{
    input_file file;
    const bool standard = strcmp(path, "-") == 0;
    const char *source = standard ? "standard input" : path;
    DEBERTA_TRY(standard ? input_file_read_stream(&file, stdin, source, err)
                : others ? input_file_read_among_others(&file, path, err)
                         : input_file_read(&file, path, err));
    *p = (padded){.source = source,
                  .rows = file.rows,
                  .columns = file.columns,
                  .ids = file.ids,
                  .mask = file.mask,
                  .types = file.types,
                  .positions = file.positions};
    return DEBERTA_OK;
}

deberta_status input_read_tensors(input_batch *input, const char *path, deberta_error *err)
{
    padded p = {0};
    memset(input, 0, sizeof *input);
    deberta_status status = read_file(path, &p, true, err);
    if (status == DEBERTA_OK) status = pack(input, &p, err);
    padded_free(&p);
    if (status != DEBERTA_OK) input_free(input);
    return status;
}

void token_limit_parse(common_options *options, const char *text, void *target)
{
    token_limit *limit = target;
    char *end;
    if (strcmp(text, "trained") == 0 || strcmp(text, "receptive") == 0) {
        limit->kind = *text == 't' ? LIMIT_TRAINED : LIMIT_RECEPTIVE;
        return;
    }
    errno = 0;
    const unsigned long long tokens = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        usage_wrong(options, "--max-tokens: expected a whole number, found '%s'", text);
    if (tokens < 3) usage_wrong(options, "--max-tokens: expected a number of at least 3, found %s", text);
    *limit = (token_limit){LIMIT_TOKENS, (size_t)tokens};
}

size_t input_token_limit(const reading_options *options, const deberta_model_info *info)
{
    const token_limit given = options->max_tokens;
    if (given.kind == LIMIT_NONE || given.kind == LIMIT_TOKENS) return given.tokens;
    if (!info)
        usage_wrong(&options->common,
                    "--max-tokens %s: this command does not read the model's configuration; give a number",
                    given.kind == LIMIT_TRAINED ? "trained" : "receptive");
    if (given.kind == LIMIT_TRAINED) return info->max_positions;
    /* length of the longest text in which every distance has a table row to itself */
    deberta_error error = {0};
    const size_t limit = receptive_field_longest_of_model(info, DEBERTA_REFERENCE_AUTO, &error);
    if (!limit) usage_wrong(&options->common, "--max-tokens receptive: %s", error.message);
    return limit;
}

deberta_text input_text(const reading_options *options, const input_batch *input, size_t r, size_t limit)
{
    return (deberta_text){.struct_size = sizeof(deberta_text),
                          .text = input->texts[r],
                          .text_bytes = input->text_bytes[r],
                          .pair = input->pairs ? input->pairs[r] : NULL,
                          .pair_bytes = input->pair_bytes ? input->pair_bytes[r] : 0,
                          .max_tokens = limit,
                          .strict = options->strict};
}

bool input_segment_is_empty(const deberta_tokens *tokens, int segment)
{
    for (size_t t = 0; t < tokens->count; t++)
        if (tokens->roles[t] != DEBERTA_TOKEN_FRAME && (tokens->token_types[t] == 1) == (segment == 1)) return false;
    return true;
}

const char *input_empty_text(const deberta_tokens *tokens, bool pair)
{
    if (input_segment_is_empty(tokens, 0)) return "the text is empty";
    return pair && input_segment_is_empty(tokens, 1) ? "the second text is empty" : NULL;
}

/* Tokenizes row r of the texts, and notes what was changed; *list is reused for the next row. */
static deberta_status tokenize_row(const reading_options *options, const input_batch *input, size_t r, size_t limit,
                                   deberta_tokens **list, deberta_error *err)
{
    const deberta_text text = input_text(options, input, r, limit);
    deberta_error problem = {0};
    const deberta_status status = deberta_tokenize(list, input->tokenizer, &text, &problem);
    if (status != DEBERTA_OK) return status_fail(err, status, "text %zu: %.400s", r + 1, problem.message);
    const deberta_tokens *tokens = *list;
    if (tokens->replaced)
        say_note(&options->common, "text %zu: broken UTF-8 replaced by U+FFFD in %zu place%s, the first at byte %zu",
                 r + 1, tokens->replaced, tokens->replaced == 1 ? "" : "s", tokens->first_replaced_byte);
    const char *empty = input_empty_text(tokens, text.pair != NULL);
    if (empty) say_note(&options->common, "text %zu: %s: special tokens alone stand for it", r + 1, empty);
    if (tokens->dropped)
        say_note(&options->common, "text %zu: cut to %zu tokens, %zu dropped", r + 1, limit, tokens->dropped);
    return DEBERTA_OK;
}

/* Tokenizes texts into one padded matrix, and keeps the token lists for callers that need offsets. */
static deberta_status tokenize(const reading_options *options, const char *folder, size_t limit, input_batch *input,
                               padded *p, deberta_error *err)
{
    deberta_tokens *list = NULL;
    DEBERTA_TRY(deberta_tokenizer_open(&input->tokenizer, folder, err));
    note_tokenizer(&options->common, input->tokenizer);
    input->token_lists = scope_take(&input->memory, input->rows, sizeof *input->token_lists);
    p->rows = input->rows;
    deberta_status status = DEBERTA_OK;
    for (size_t r = 0; status == DEBERTA_OK && r < input->rows; r++) {
        status = tokenize_row(options, input, r, limit, &list, err);
        if (status == DEBERTA_OK) status = deberta_tokens_copy(&input->token_lists[r], list, err);
        if (status == DEBERTA_OK && list->count > p->columns) p->columns = list->count;
    }
    deberta_tokens_free(&list);
    DEBERTA_TRY(status);
    const size_t cells = p->rows * p->columns;
    p->ids = memory_take(cells, sizeof *p->ids);
    p->mask = memory_take(cells, sizeof *p->mask);
    p->types = memory_take(cells, sizeof *p->types);
    for (size_t r = 0; r < p->rows; r++)
        for (size_t c = 0; c < input->token_lists[r]->count; c++) {
            p->ids[r * p->columns + c] = input->token_lists[r]->ids[c];
            p->types[r * p->columns + c] = input->token_lists[r]->token_types[c];
            p->mask[r * p->columns + c] = 1;
        }
    return DEBERTA_OK;
}

void input_refuse_text_options(const reading_options *options, const char *because)
{
    const void *const for_texts[] = {&options->pairs, &options->max_tokens, &options->strict};
    for (size_t k = 0; k < sizeof for_texts / sizeof *for_texts; k++)
        if (option_given(&options->common, for_texts[k]))
            option_wrong(&options->common, for_texts[k], "goes with --text or --file%s", because);
}

/* Checks that exactly one source is given, among those that the command has. */
static void check_sources(const reading_options *options)
{
    const common_options *common = &options->common;
    const bool texts = options->texts.count || options->files.count;
    const bool takes_ids = option_exists(common, &options->ids),
               takes_tensors = option_exists(common, &options->tensors);
    const int sources = (options->ids.count > 0) + (options->tensors.count > 0) + texts;
    if (sources > 1)
        usage_wrong(common, "give one of --text%s%s%s", option_exists(common, &options->files) ? " or --file" : "",
                    takes_ids ? ", --ids" : "", takes_tensors ? ", --input" : "");
    if (sources == 0)
        usage_wrong(common, takes_ids ? "no input: give --text, --file (- is standard input), --ids or --input"
                                      : "no text: give --text or --file (- is standard input)");
    if (options->tensors.count > 1)
        option_wrong(common, &options->tensors, "expected one file, found %zu: join the batches, or run each",
                     options->tensors.count);
    if (!texts) input_refuse_text_options(options, "; --ids and --input are taken as they are");
}

/* Fills p from the source that is given. */
static deberta_status read_source(const reading_options *options, const char *model_folder, size_t limit,
                                  input_batch *input, padded *p, deberta_error *err)
{
    const common_options *common = &options->common;
    if (options->ids.count) return read_ids(&options->ids, p, err);
    if (options->tensors.count) return read_file(options->tensors.items[0], p, false, err);
    if (strncmp(model_folder, "synthetic:", 10) == 0)
        usage_wrong(common, "a made-up model has no tokenizer%s",
                    option_exists(common, &options->ids) ? "; give --ids" : "");
    text_source_read(options, input);
    return tokenize(options, model_folder, limit, input, p, err);
}

/* Checks the lengths. Ids have no --max-tokens, so only --memory-limit restricts them. */
static deberta_status check_lengths(const input_batch *input, const reading_options *options, const char *source,
                                    deberta_error *err)
{
    const bool texts = input->texts != NULL;
    if (options->common.memory_limit_bytes || (texts && options->max_tokens.kind)) return DEBERTA_OK;
    for (size_t r = 0; r < input->rows; r++)
        if (input->row[r].tokens > INPUT_LONGEST_UNASKED)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: row %zu has %zu tokens, expected at most %d, or more with %s",
                         texts ? "texts" : source, r, input->row[r].tokens, INPUT_LONGEST_UNASKED,
                         texts ? "--max-tokens or --memory-limit" : "--memory-limit");
    return DEBERTA_OK;
}

void note_padding(const common_options *options, const input_batch *input, const char *source)
{
    for (size_t r = 0; r < input->rows; r++) {
        const size_t zeros = input->row[r].first_column;
        if (zeros == 0) continue;
        say_note(
            options,
            "note: %s: the attention_mask of row %zu begins with %zu zero%s: what stands there is padding and is left "
            "out, so its first token is the first one that the mask keeps",
            source, r, zeros, zeros == 1 ? "" : "s");
        return;
    }
}

/* Notes once if a row of a file begins or ends in padding that no mask hides. */
static void note_unmasked(const common_options *options, const padded *p, int64_t padding)
{
    if (p->mask || p->columns < 2) return;
    for (size_t r = 0; r < p->rows; r++) {
        const int64_t *ids = p->ids + r * p->columns;
        if (ids[0] != padding && ids[p->columns - 1] != padding) continue;
        say_note(
            options,
            "note: %s: row %zu begins or ends with id %lld, which is padding, and there is no mask: padding is read "
            "as text; give attention_mask",
            p->source, r, (long long)padding);
        return;
    }
}

void input_read(const reading_options *options, const char *model_folder, const deberta_model_info *info,
                input_batch *input)
{
    const common_options *common = &options->common;
    memset(input, 0, sizeof *input);
    deberta_error error = {0};
    padded p = {.source = "--ids"}; /* a file takes its place; texts have no numbers to be wrong */
    check_sources(options);
    const char *path = options->tensors.count ? options->tensors.items[0] : NULL;
    if (path && strcmp(path, "-") != 0 && !path_has_suffix(path, ".safetensors") && !path_has_suffix(path, ".json"))
        option_wrong(common, &options->tensors, "unknown suffix in '%s', expected .safetensors or .json", path);
    const size_t limit = input_token_limit(options, info);
    deberta_status status = read_source(options, model_folder, limit, input, &p, &error);
    if (status == DEBERTA_OK) status = pack(input, &p, &error);
    if (status == DEBERTA_OK && info) status = check_lengths(input, options, p.source, &error);
    if (status == DEBERTA_OK && info) status = input_check(input, info, p.source, &error);
    const char *source = p.source;
    if (status == DEBERTA_OK && path && info) note_unmasked(common, &p, info->padding_id);
    if (status == DEBERTA_OK && p.positions && input->position_ids && info && !info->position_biased_input &&
        !info->has_position_table)
        say_note(common, "note: %s: this model has no table of positions: position_ids change nothing", source);
    padded_free(&p);
    /* An error in --ids is one of the command line; other sources are files. */
    if (options->ids.count && status == DEBERTA_E_ARGUMENT) usage_wrong(common, "%s", error.message);
    must(common, status, &error);
    note_padding(common, input, source);
    size_t longest = 0;
    for (size_t s = 0; s < input->sequences; s++)
        longest = maximum(longest, input->sequence_starts[s + 1] - input->sequence_starts[s]);
    if (info && (options->texts.count || options->files.count)) note_trained_length(common, longest, info);
}

void parse_index_list(const common_options *options, const char *const *member, bool *selected, size_t limit)
{
    const char *text = *member;
    memset(selected, 0, limit * sizeof *selected);
    if (strcmp(text, "all") == 0) {
        for (size_t k = 0; k < limit; k++) selected[k] = true;
        return;
    }
    for (const char *at = text;; at++) {
        char *end;
        unsigned long long first = 0, last = 0;
        bool fine = *at >= '0' && *at <= '9';
        if (fine) {
            errno = 0;
            first = last = strtoull(at, &end, 10);
            if (*end == '-') {
                fine = end[1] >= '0' && end[1] <= '9';
                if (fine) last = strtoull(end + 1, &end, 10);
            }
            fine = fine && (*end == 0 || *end == ',') && first <= last && errno == 0;
        }
        if (!fine) option_wrong(options, member, "expected 'all' or numbers such as 0,3 or 0-5, found '%s'", text);
        if (last >= limit)
            option_wrong(options, member, "%llu is out of range, this model has %s%zu", last,
                         limit > 1 ? "0 to " : "only ", limit - 1);
        for (unsigned long long k = first; k <= last; k++) selected[k] = true;
        if (*end == 0) return;
        at = end;
    }
}
