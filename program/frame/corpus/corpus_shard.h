/* Writes one shard of a corpus, from its first item to its manifest. Only one process writes it: the journal is locked.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/corpus/shard_files.h"
#include "program/frame/input/text_stream.h"

typedef struct corpus_shard {
    const reading_options *options;
    item_choice choice;
    const char *out;         /* value of --out: the file of all shards */
    char *folder, *manifest; /* NULL: no shard is asked for */
    json_t *settings;
} corpus_shard;

/* Returns true if the command line asks for shards. The caller then checks --out and its other conditions. */
static inline bool items_are_shared(const reading_options *reading)
{
    return reading->items.shards || reading->items.share > 0;
}
static inline bool corpus_shard_wanted(const text_stream *stream)
{
    return stream->choice.shards || stream->choice.share > 0;
}

/* Opens `output`, whose members the caller has set as for corpus_output_open, at the shard's path. settings: those
 * that decide the rows; owned by the shard from here on. *finished: the shard is complete, and the stream is at its
 * end, because the whole input was compared with that of the shard. */
deberta_status corpus_shard_open(corpus_shard *shard, const reading_options *options, text_stream *stream,
                                 json_t *settings, corpus_output *output, corpus_progress *progress, bool *finished,
                                 deberta_error *err);
/* Checks that the stream's first items are those of the progress, and moves the stream past them. */
deberta_status corpus_shard_skip(text_stream *stream, const corpus_output *output, const corpus_progress *progress,
                                 deberta_error *err);
/* Closes the rows and writes items and manifest. isa: the tier that computed the rows. */
deberta_status corpus_shard_finish(corpus_shard *shard, const text_stream *stream, corpus_output *output,
                                   const corpus_progress *progress, deberta_isa isa, deberta_error *err);
void corpus_shard_close(corpus_shard *shard);

/* How a manifest records an option: not at all, as a word of its command, or as a word that is also a setting,
 * because it decides the rows. */
typedef enum shard_record { SHARD_RECORDS_NOTHING, SHARD_RECORDS_WORD, SHARD_RECORDS_SETTING } shard_record;
shard_record corpus_shard_records(const option *row);

/* Returns the settings of a command that are determined by its command line: model, precision, rule of distances,
 * words. */
json_t *corpus_shard_settings(const common_options *options, const deberta_model *model, deberta_error *err);

#define SHARD_OPTIONS                                                                                                  \
    {"shards",                                                                                                         \
     0,                                                                                                                \
     "N",                                                                                                              \
     "split the input by the hash of each item's id, and take one shard into the folder OUT.shards; array: one for "   \
     "each task of the Slurm job array",                                                                               \
     PARSED_AT(reading_options, items.shards, item_choice_parse_shards),                                               \
     .role = OPTION_SHOWS},                                                                                            \
        {"shard",                                                                                                      \
         0,                                                                                                            \
         "I",                                                                                                          \
         "which, from 0 (default SLURM_ARRAY_TASK_ID)",                                                                \
         SIZE_AT(reading_options, items.shard, 0, MOST_SHARDS),                                                        \
         .needs = "shards",                                                                                            \
         .role = OPTION_SHOWS},                                                                                        \
    {                                                                                                                  \
        "skip-bad", 0, NULL, "items that cannot be used are counted and leave no row, and the exit code is 0",         \
            FLAG_AT(reading_options, items.skip_bad)                                                                   \
    }
