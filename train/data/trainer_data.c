/* Opens the data that the options name: a file of batches, texts, or examples. SPDX-License-Identifier: MIT */
#include "train/data/trainer_data.h"

#include <string.h>

#include "core/base/numbers.h"

enum { DEFAULT_SEQUENCE_TOKENS = 512, DEFAULT_BATCH_SEQUENCES = 16, FULL_TOKENS = 512 };

size_t trainer_batch_sequences(const deberta_trainer_options *o)
{
    return o->batch_sequences || o->batch_tokens ? o->batch_sequences : DEFAULT_BATCH_SEQUENCES;
}

/* ------------------------------------------------------------------------------------------------------------ texts */

static deberta_status check_fit(const deberta_trainer_options *o, const trainer_target *target,
                                const deberta_tokenizer *tokenizer, deberta_error *err)
{
    const size_t pieces = deberta_tokenizer_vocabulary_size(tokenizer);
    if (pieces > target->vocabulary)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the tokenizer of %s has %zu ids, the word table of %s %zu rows",
                     target->folder, pieces, target->vocabulary_folder, target->vocabulary);
    if (deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK) < 0)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: its tokenizer has no [MASK]", target->folder);
    if (target->places && o->sequence_tokens > target->places)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "sequences of %zu tokens: the position table of %s has %zu rows",
                     o->sequence_tokens, target->places_folder, target->places);
    return DEBERTA_OK;
}

/* Checks that an id means the same to both models. */
static deberta_status compare_tokenizers(const deberta_tokenizer *tokenizer, const trainer_target *target,
                                         deberta_error *err)
{
    deberta_tokenizer *other = NULL;
    if (!target->generator_folder) return DEBERTA_OK;
    DEBERTA_TRY(deberta_tokenizer_open(&other, target->generator_folder, err));
    const size_t count = deberta_tokenizer_vocabulary_size(tokenizer),
                 other_count = deberta_tokenizer_vocabulary_size(other);
    size_t same = 0;
    for (; count == other_count && same < count; same++) {
        size_t bytes = 0, other_bytes = 0;
        const char *text = deberta_tokenizer_token(tokenizer, (int32_t)same, &bytes);
        const char *other_text = deberta_tokenizer_token(other, (int32_t)same, &other_bytes);
        if (!text != !other_text || bytes != other_bytes || (text && memcmp(text, other_text, bytes) != 0)) break;
    }
    deberta_tokenizer_free(&other);
    if (count != other_count)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the tokenizer of %s has %zu ids, that of %s %zu", target->folder, count,
                     target->generator_folder, other_count);
    if (same == count) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "id %zu is another token in %s than in %s", same, target->folder,
                 target->generator_folder);
}

static size_t sequence_tokens(const deberta_trainer_options *o, const trainer_target *target)
{
    if (o->sequence_tokens) return o->sequence_tokens;
    return target->places ? minimum(target->places, DEFAULT_SEQUENCE_TOKENS) : DEFAULT_SEQUENCE_TOKENS;
}

static deberta_status draw_batches(trainer_data *data, const deberta_trainer_options *o, size_t sequence,
                                   const deberta_tokenizer *tokenizer, deberta_error *err)
{
    const bool hides_all = o->task == DEBERTA_TRAIN_RTD;
    const drawn_options options = {
        .masking = {.kind = o->masking,
                    .probability = o->mask_probability,
                    .max_ngram = o->max_ngram,
                    .mask_id = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK),
                    .vocabulary = deberta_tokenizer_vocabulary_size(tokenizer),
                    .hides_all = hides_all,
                    .full_tokens = hides_all ? sequence : FULL_TOKENS},
        .order = {.seed = (uint32_t)o->seed,
                  .batch_items = trainer_batch_sequences(o),
                  .batch_tokens = o->batch_tokens},
    };
    DEBERTA_TRY(drawn_batches_open(&data->drawn, &data->corpus, &options, err));
    data->source = drawn_batches_source(data->drawn);
    data->most_tokens = drawn_batches_most_tokens(data->drawn);
    data->longest = sequence;
    if (!o->held_out_count) return DEBERTA_OK;
    drawn_options in_order = options;
    in_order.order.in_order = true;
    DEBERTA_TRY(drawn_batches_open(&data->held_out, &data->held_out_corpus, &in_order, err));
    data->held_out_source = drawn_batches_source(data->held_out);
    data->has_held_out = true;
    data->most_tokens = maximum(data->most_tokens, drawn_batches_most_tokens(data->held_out));
    return DEBERTA_OK;
}

static deberta_status read_texts(corpus *to, const char *const *files, size_t count, const deberta_tokenizer *tokenizer,
                                 corpus_cut cut, note_listener listener, deberta_error *err)
{
    for (size_t i = 0; i < count; i++) DEBERTA_TRY(corpus_add_file(to, files[i], tokenizer, cut, listener, err));
    return DEBERTA_OK;
}

static deberta_status open_texts(trainer_data *data, const deberta_trainer_options *o, const trainer_target *target,
                                 deberta_error *err)
{
    deberta_tokenizer *tokenizer = NULL;
    DEBERTA_TRY(deberta_tokenizer_open(&tokenizer, target->folder, err));
    deberta_status status = compare_tokenizers(tokenizer, target, err);
    if (status == DEBERTA_OK) status = check_fit(o, target, tokenizer, err);
    const corpus_cut cut = {.most_tokens = sequence_tokens(o, target), .by_line = o->by_line != 0};
    const note_listener listener = {o->note, o->note_context};
    if (status == DEBERTA_OK)
        status = read_texts(&data->corpus, o->texts, o->text_count, tokenizer, cut, listener, err);
    if (status == DEBERTA_OK)
        status = read_texts(&data->held_out_corpus, o->held_out, o->held_out_count, tokenizer, cut, listener, err);
    if (status == DEBERTA_OK) status = draw_batches(data, o, cut.most_tokens, tokenizer, err);
    deberta_tokenizer_free(&tokenizer);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- examples */

static deberta_status copy_examples(example_set *set, const deberta_trainer_options *o, const deberta_example *examples,
                                    size_t count, const trainer_target *target, deberta_error *err)
{
    set->choices = o->choices;
    set->answers = target->task == DEBERTA_TRAIN_QA;
    set->regression = target->task == DEBERTA_TRAIN_SEQUENCE && target->labels == 1;
    for (size_t i = 0; i < count; i++) {
        const deberta_example *e = &examples[i];
        const example_labels labels = {.label = e->label, .target = e->target, .start = e->start, .end = e->end};
        if (e->tokens == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "example %zu has no tokens", i);
        if (target->places && e->tokens > target->places)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "example %zu has %zu tokens: the position table of %s has %zu rows",
                         i, e->tokens, target->places_folder, target->places);
        examples_add(set, e->ids, e->token_types, e->token_labels, e->tokens, labels);
    }
    if (set->failed) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu examples", count);
    return DEBERTA_OK;
}

static deberta_status open_examples(trainer_data *data, const deberta_trainer_options *o, const trainer_target *target,
                                    deberta_error *err)
{
    batch_order_options order = {
        .seed = (uint32_t)o->seed, .batch_items = trainer_batch_sequences(o), .batch_tokens = o->batch_tokens};
    DEBERTA_TRY(copy_examples(&data->examples, o, o->examples, o->example_count, target, err));
    DEBERTA_TRY(example_batches_open(&data->example_batches, &data->examples, &order, err));
    data->source = example_batches_source(&data->example_batches);
    data->most_tokens = batch_order_most_tokens(&data->example_batches.order);
    data->longest = data->example_batches.order.longest;
    data->has_held_out = o->held_out_example_count > 0;
    if (!data->has_held_out) return DEBERTA_OK;
    order.in_order = true;
    DEBERTA_TRY(
        copy_examples(&data->held_out_examples, o, o->held_out_examples, o->held_out_example_count, target, err));
    DEBERTA_TRY(example_batches_open(&data->held_out_batches, &data->held_out_examples, &order, err));
    data->held_out_source = example_batches_source(&data->held_out_batches);
    data->most_tokens = maximum(data->most_tokens, batch_order_most_tokens(&data->held_out_batches.order));
    data->longest = maximum(data->longest, data->held_out_batches.order.longest);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- files */

static deberta_status open_file(trainer_data *data, const deberta_trainer_options *o, const trainer_target *target,
                                deberta_error *err)
{
    const bool runs = o->batches != NULL;
    DEBERTA_TRY(batch_file_open(&data->file, runs ? o->batches : o->batch, runs, target->task, err));
    data->source = batch_file_source(data->file);
    data->most_tokens = batch_file_most_tokens(data->file);
    data->longest = batch_file_longest(data->file);
    return batch_file_tell_padding(data->file, (note_listener){o->note, o->note_context}, err);
}

deberta_status trainer_data_open(trainer_data *data, const deberta_trainer_options *o, const trainer_target *target,
                                 deberta_error *err)
{
    if (o->example_count) return open_examples(data, o, target, err);
    return o->text_count ? open_texts(data, o, target, err) : open_file(data, o, target, err);
}

void trainer_data_digest(const trainer_data *data, char digest[65])
{
    if (data->file)
        batch_file_digest(data->file, digest);
    else if (data->examples.sequences)
        examples_digest(&data->examples, digest);
    else
        corpus_digest(&data->corpus, digest);
}

void trainer_data_digest_held_out(const trainer_data *data, char digest[65])
{
    *digest = 0;
    if (data->held_out_examples.sequences)
        examples_digest(&data->held_out_examples, digest);
    else if (data->has_held_out)
        corpus_digest(&data->held_out_corpus, digest);
}

void trainer_data_close(trainer_data *data)
{
    batch_file_close(&data->file);
    drawn_batches_close(&data->drawn);
    drawn_batches_close(&data->held_out);
    corpus_free(&data->corpus);
    corpus_free(&data->held_out_corpus);
    example_batches_close(&data->example_batches);
    example_batches_close(&data->held_out_batches);
    examples_free(&data->examples);
    examples_free(&data->held_out_examples);
}
