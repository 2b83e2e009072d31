/* Joins all shards into one file with the bytes that one process would have written: it uses the same writer, with
 * the rows in the order of the input.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/status.h"
#include "output/json_text.h"
#include "program/merge/merge_shards.h"

static deberta_status merge_join_add_row(void *context, const merge_shard *shard, const corpus_row *row,
                                         const uint8_t *bytes, size_t count_bytes, deberta_error *err)
{
    (void)shard;
    corpus_output *output = context;
    if (output->format == CORPUS_JSONL) {
        fwrite(bytes, 1, count_bytes, output->file); /* write errors are found when the file is closed */
    } else {
        DEBERTA_TRY(corpus_output_values(output, (const float *)(const void *)bytes,
                                         count_bytes / sizeof(float) / output->width, err));
    }
    if (output->per_token || output->windows) {
        corpus_output_row(output, *row);
        return DEBERTA_OK;
    }
    output->vectors += !row->skipped;
    return DEBERTA_OK;
}

static deberta_status merge_join_all(merge_shards *shards, corpus_output *output, const char *path, char digest[65],
                                     deberta_error *err)
{
    corpus_progress progress;
    size_t size_bytes;
    DEBERTA_TRY(corpus_output_open(output, path, NULL, &progress, err));
    DEBERTA_TRY(merge_shards_walk(shards, merge_join_add_row, output, err));
    DEBERTA_TRY(corpus_output_finish(output, err));
    return shard_digest(path, digest, &size_bytes, err);
}

/* Refuses an output that would replace the model or the corpus of the shards, which their manifests name. */
static void merge_join_check(const merge_shards *shards, const char *path)
{
    for (size_t k = 0; k < shards->count; k++) {
        const json_t *words = shards->list[k].manifest.command, *word;
        size_t i;
        json_array_foreach(words, i, word) if (i && json_is_string(word))
            option_refuse_place(shards->options, "the shards' input", json_string_value(word), path);
    }
}

void merge_join(merge_shards *shards, result *r)
{
    char digest[65];
    deberta_error error = {0};
    const char *path = options_out(shards->options);
    corpus_format format;
    corpus_output output = {.format = shards->layout.format,
                            .width = shards->layout.width,
                            .per_token = shards->layout.per_token,
                            .windows = shards->layout.windows,
                            .notes = shards->layout.notes};
    if (!corpus_format_of(path, &format) || format != output.format)
        usage_wrong(shards->options, "--out: expected a name that ends as the shards' files do, %s; found '%s'",
                    shards->list[0].manifest.file, path);
    merge_join_check(shards, path);
    const deberta_status status = merge_join_all(shards, &output, path, digest, &error);
    corpus_output_close(&output);
    must(shards->options, status, &error);
    result_say(r, "%s  %s", digest, path);
    result_set(r, "out", json_clean_text(path));
    result_set(r, "sha256", json_string(digest));
}
