/* Tokenizes and checks texts; sorts pieces by length and encodes them in batches. SPDX-License-Identifier: MIT */
#include "program/frame/input/text_batches.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/numbers.h"
#include "core/base/status.h"
#include "include/deberta_unstable.h"
#include "output/scope.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"

enum { DEFAULT_BATCH_TOKENS = 2048 };

static void open_tokenizer(text_batches *batches)
{
    deberta_error error;
    const common_options *options = &batches->options->common;
    const char *folder = options->arguments[0];
    if (strncmp(folder, "synthetic:", 10) == 0)
        usage_wrong(options, "a made-up model has no tokenizer, so it cannot read texts");
    check_model_place(options);
    must(options, deberta_tokenizer_open(&batches->tokenizer, folder, &error), &error);
    note_tokenizer(options, batches->tokenizer);
}

void text_batches_open(text_batches *batches, const reading_options *options, unsigned features)
{
    *batches = (text_batches){.options = options,
                              .strict = options->strict,
                              .batch_tokens = options->batch_tokens ? options->batch_tokens : DEFAULT_BATCH_TOKENS};
    fill_session_options(&options->common, &batches->session_options);
    batches->session_options.features = features;
    /* The tokenizer is opened first: it is quick, and its absence should not show after a large model was packed. */
    open_tokenizer(batches);
    batches->model = open_model(&options->common);
    batches->info = *deberta_model_describe(batches->model);
    batches->cut = input_token_limit(options, &batches->info);
    batches->longest = batches->cut ? batches->cut : INPUT_LONGEST_UNASKED;
    if (batches->info.position_biased_input && batches->info.max_positions < batches->longest)
        batches->longest = batches->info.max_positions;
}

static void free_session(text_batches *batches)
{
    deberta_session_free(&batches->session);
    free(batches->ids);
    free(batches->types);
    free(batches->starts);
    batches->ids = batches->types = NULL;
    batches->starts = NULL;
}

static void note_rest(const text_batches *batches, size_t texts, const char *what)
{
    const size_t rest = texts > MOST_REPORTED ? texts - MOST_REPORTED : 0;
    if (rest) say_note(&batches->options->common, "%zu more text%s %s", rest, rest == 1 ? "" : "s", what);
}

void text_batches_close(text_batches *batches)
{
    note_rest(batches, batches->replaced_texts, "with broken UTF-8 replaced by U+FFFD");
    note_rest(batches, batches->cut_texts, "cut");
    note_rest(batches, batches->empty_texts, "without a token of their own");
    if (batches->model) note_trained_length(&batches->options->common, batches->most_tokens, &batches->info);
    free_session(batches);
    deberta_tokenizer_free(&batches->tokenizer);
    deberta_model_free(&batches->model);
}

/* ----------------------------------------------------------------------------------------------------- tokenizing */

/* Checks the memory of a text longer than a batch, which gets a separate session: --memory-limit then stops the text,
 * not the corpus. */
static deberta_status check_memory(const text_batches *batches, text_record *record, size_t tokens, deberta_error *err)
{
    deberta_session_options options = batches->session_options;
    deberta_error problem = {0};
    if (tokens <= batches->batch_tokens) return DEBERTA_OK;
    options.max_tokens = tokens;
    const deberta_status status = deberta_session_check_within(batches->model, &options, 0, &problem);
    if (status == DEBERTA_OK) return DEBERTA_OK;
    if (status != DEBERTA_E_MEMORY) return status_fail(err, status, "%s", problem.message);
    return text_record_spoil(record, "%zu tokens are above --memory-limit: %s", tokens, problem.message);
}

deberta_status text_batches_check_length(const text_batches *batches, text_record *record, size_t tokens,
                                         size_t longest, deberta_error *err)
{
    if (tokens <= longest) return check_memory(batches, record, tokens, err);
    if (longest == batches->info.max_positions)
        return text_record_spoil(
            record, "%zu tokens, but the position table of this model ends at %zu; --max-tokens %zu would cut it",
            tokens, longest, longest);
    return text_record_spoil(
        record,
        "%zu tokens, but without --max-tokens the limit is %zu; --max-tokens %zu takes it whole, a "
        "smaller number cuts it",
        tokens, longest, tokens);
}

static deberta_status check_ids(const text_batches *batches, text_record *record, const deberta_tokens *list)
{
    for (size_t t = 0; t < list->count; t++)
        if (list->ids[t] < 0 || (size_t)list->ids[t] >= batches->info.vocabulary_size)
            return text_record_spoil(record, "the tokenizer gives '%s' the id %d, but the model knows only %zu",
                                     deberta_tokens_text(list, t, NULL), (int)list->ids[t],
                                     batches->info.vocabulary_size);
    return DEBERTA_OK;
}

deberta_text text_batches_text(const text_batches *batches, const text_record *record)
{
    return (deberta_text){.struct_size = sizeof(deberta_text),
                          .text = record->text,
                          .text_bytes = record->text_bytes,
                          .pair = record->pair,
                          .pair_bytes = record->pair_bytes,
                          .max_tokens = batches->cut,
                          .strict = batches->strict};
}

deberta_status text_batches_tokenize(text_batches *batches, text_record *record, deberta_tokens **list,
                                     deberta_error *err)
{
    const deberta_text text = text_batches_text(batches, record);
    deberta_error local = {0};
    char place[256];
    if (record->problem) return DEBERTA_OK;
    const deberta_status status = deberta_tokenize(list, batches->tokenizer, &text, &local);
    if (status == DEBERTA_E_MEMORY || status == DEBERTA_E_SYSTEM) {
        if (err) *err = local;
        return status;
    }
    if (status != DEBERTA_OK) return text_record_spoil(record, "%s", local.message);
    const deberta_tokens *tokens = *list;
    text_record_place(record, place);
    if (tokens->replaced && ++batches->replaced_texts <= MOST_REPORTED)
        say_note(&batches->options->common, "%s: broken UTF-8 replaced by U+FFFD in %zu place%s, the first at byte %zu",
                 place, tokens->replaced, tokens->replaced == 1 ? "" : "s", tokens->first_replaced_byte);
    if (tokens->dropped && ++batches->cut_texts <= MOST_REPORTED)
        say_note(&batches->options->common, "%s: cut to %zu tokens, %zu dropped", place, batches->cut, tokens->dropped);
    return check_ids(batches, record, tokens);
}

void text_batches_note_empty(text_batches *batches, const text_record *record, const char *empty)
{
    char place[256];
    if (!empty || ++batches->empty_texts > MOST_REPORTED) return;
    text_record_place(record, place);
    say_note(&batches->options->common, "%s: %s: special tokens alone stand for it", place, empty);
}

/* ------------------------------------------------------------------------------------------------------- batching */

static int by_length(const void *a, const void *b)
{
    const text_piece *x = a, *y = b;
    if (x->tokens != y->tokens) return x->tokens < y->tokens ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Opens a session for batches of at least this many tokens. */
static deberta_status make_room(text_batches *batches, size_t tokens, deberta_error *err)
{
    if (batches->session && tokens <= batches->session_options.max_tokens) return DEBERTA_OK;
    free_session(batches);
    const size_t room = tokens > batches->batch_tokens ? tokens : batches->batch_tokens;
    batches->session_options.max_tokens = room;
    batches->ids = memory_take(room, sizeof *batches->ids);
    batches->types = memory_take(room, sizeof *batches->types);
    batches->starts = memory_take((room + 1), sizeof *batches->starts);
    return deberta_session_create_within(&batches->session, batches->model, &batches->session_options, 0, err);
}

/* Copies pieces[0 .. count) side by side and encodes them. */
static deberta_status encode_batch(text_batches *batches, const text_piece *pieces, size_t count,
                                   deberta_outputs *outputs, deberta_error *err)
{
    size_t tokens = 0;
    batches->starts[0] = 0;
    for (size_t k = 0; k < count; k++) {
        memcpy(batches->ids + tokens, pieces[k].ids, pieces[k].tokens * sizeof *batches->ids);
        memcpy(batches->types + tokens, pieces[k].types, pieces[k].tokens * sizeof *batches->types);
        tokens += pieces[k].tokens;
        batches->most_tokens = maximum(batches->most_tokens, pieces[k].tokens);
        batches->starts[k + 1] = tokens;
    }
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = batches->ids,
                                 .sequence_starts = batches->starts,
                                 .sequences = count,
                                 .token_types = batches->types};
    const double began = clock_seconds();
    DEBERTA_TRY(deberta_encode(batches->session, &batch, outputs, err));
    DEBERTA_TRY(deberta_session_check_finite(batches->session, err));
    batches->encoder_seconds += clock_seconds() - began;
    batches->tokens += tokens;
    batches->batches++;
    return DEBERTA_OK;
}

deberta_status text_batches_run(text_batches *batches, text_piece *pieces, size_t count, text_batch_callback on_batch,
                                void *context, deberta_error *err)
{
    if (count == 0) return DEBERTA_OK;
    qsort(pieces, count, sizeof *pieces, by_length);
    for (size_t first = 0, end; first < count; first = end) {
        size_t tokens = pieces[first].tokens;
        for (end = first + 1; end < count && tokens + pieces[end].tokens <= batches->batch_tokens; end++)
            tokens += pieces[end].tokens;
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        DEBERTA_TRY(make_room(batches, tokens, err));
        DEBERTA_TRY(encode_batch(batches, pieces + first, end - first, &outputs, err));
        DEBERTA_TRY(on_batch(context, pieces + first, end - first, batches->starts, &outputs, err));
    }
    return DEBERTA_OK;
}
