/* Models, sessions and encodes that must succeed, and what a model makes of a few tokens.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/unit/test_rows.h"

#include "core/base/cpu.h"
#include "core/base/sha256.h"

/* struct_size is set here. */
static inline deberta_model *open_model_with(const char *path, deberta_model_options options)
{
    deberta_error error = {0};
    deberta_model *model = NULL;
    options.struct_size = sizeof options;
    if (deberta_model_open(&model, path, &options, &error) != DEBERTA_OK) fail_msg("%s: %s", path, error.message);
    return model;
}

static inline deberta_model *open_model(const char *path) { return open_model_with(path, (deberta_model_options){0}); }

/* struct_size is set here. */
static inline deberta_session *open_session_with(const deberta_model *model, deberta_session_options options)
{
    deberta_error error = {0};
    deberta_session *session = NULL;
    options.struct_size = sizeof options;
    if (deberta_session_create(&session, model, &options, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    return session;
}

static inline deberta_batch batch_of(const int32_t *ids, const size_t *starts, size_t sequences)
{
    return (deberta_batch){
        .struct_size = sizeof(deberta_batch), .ids = ids, .sequence_starts = starts, .sequences = sequences};
}

static inline deberta_outputs encode_batch(deberta_session *session, const deberta_batch *batch)
{
    deberta_error error = {0};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    if (deberta_encode(session, batch, &outputs, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    return outputs;
}

static inline void pack_folder(const char *folder, deberta_precision precision, size_t threads)
{
    deberta_error error = {0};
    const deberta_pack_options options = {.struct_size = sizeof options, .threads = threads, .precision = precision};
    if (deberta_model_pack(folder, &options, &error) != DEBERTA_OK) fail_msg("%s", error.message);
}

/* The rows of the last hidden states, without the gaps between them. */
static inline void copy_rows(float *to, const deberta_outputs *outputs, size_t first, size_t rows, size_t width)
{
    for (size_t t = 0; t < rows; t++)
        memcpy(to + t * width, outputs->hidden + (first + t) * outputs->hidden_stride, width * sizeof *to);
}

/* SHA-256 of what two texts give: their last hidden states, and the logits of every head at two tokens. */
static inline void results_digest(const deberta_model *model, deberta_isa isa, size_t threads, char digest[65])
{
    enum { SEVEN = 7 };
    static const int32_t ids[SEVEN] = {1, 3, 5, 7, 9, 11, 2};
    static const size_t starts[] = {0, 3, SEVEN}, positions[] = {0, 1};
    const deberta_model_info *info = deberta_model_describe(model);
    const bool decodes = info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD;
    OWN_SESSION *session = open_session_with(
        model,
        (deberta_session_options){
            .max_tokens = SEVEN, .threads = threads, .isa = isa, .features = decodes ? DEBERTA_KEEP_DECODER_INPUT : 0});
    const deberta_batch batch = batch_of(ids, starts, 2);
    const deberta_outputs outputs = encode_batch(session, &batch);
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    for (size_t t = 0; t < SEVEN; t++)
        sha256_add(&hash, outputs.hidden + t * outputs.hidden_stride, info->hidden_size * sizeof(float));
    for (int task = 0; task < DEBERTA_TASK_COUNT; task++) {
        const size_t width = deberta_task_width(model, (deberta_task)task);
        FREED_BY(free_memory) float *logits = calloc(2 * width + 1, sizeof *logits);
        assert_non_null(logits);
        if (width > 0) assert_ok(deberta_task_logits(session, (deberta_task)task, positions, 2, logits, width, NULL));
        sha256_add(&hash, logits, 2 * width * sizeof(float));
    }
    sha256_finish(&hash, digest);
}
