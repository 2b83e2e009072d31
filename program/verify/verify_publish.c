/* Encodes ten fixed texts in each precision, trains four steps, and digests the bits of the results.
 *
 * SPDX-License-Identifier: MIT */
#include "program/verify/verify_output.h"

#include <string.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "include/deberta_training.h"
#include "include/deberta_unstable.h"
#include "output/scope.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"

enum { TEXTS = 10, MOST_TOKENS = 89, ALL_TOKENS = 231, STEPS = 4, DIGEST_BYTES = 65, SEED = 1 };

static const size_t lengths[TEXTS] = {1, 2, 3, 5, 8, 13, 21, 34, 55, MOST_TOKENS};

/* Digests of the published results. */
typedef struct digests {
    char model[DIGEST_BYTES], outputs[DEBERTA_PRECISION_COUNT][DIGEST_BYTES], training[DIGEST_BYTES];
} digests;

/* Returns true if the model is synthetic; it has no files to which a new head could be added. */
static bool is_made_up(const char *path) { return strncmp(path, "synthetic:", 10) == 0; }

static void make_texts(int32_t ids[ALL_TOKENS], size_t vocabulary)
{
    for (size_t k = 0, at = 0; k < TEXTS; at += lengths[k], k++)
        verify_make_ids(ids + at, lengths[k], vocabulary, SEED + k);
}

/* ------------------------------------------------------------------------------------------------------------ outputs */

static deberta_status verify_publish_add_text(sha256 *hash, deberta_session *session, const int32_t *ids, size_t tokens,
                                              size_t width, deberta_error *err)
{
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = ids, .sequence_starts = (size_t[]){0, tokens}, .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(session, &batch, &outputs, err));
    for (size_t t = 0; t < tokens; t++)
        sha256_add(hash, outputs.hidden + t * outputs.hidden_stride, width * sizeof(float));
    return DEBERTA_OK;
}

static deberta_status digest_outputs(const common_options *options, const char *path, deberta_precision precision,
                                     digests *found, deberta_error *err)
{
    const deberta_model_options model_options = {.struct_size = sizeof model_options,
                                                 .threads = options->threads,
                                                 .precision = precision,
                                                 .memory_limit_bytes = options->memory_limit_bytes};
    const deberta_session_options session_options = {.struct_size = sizeof session_options,
                                                     .isa = options->isa,
                                                     .threads = options->threads,
                                                     .max_tokens = MOST_TOKENS};
    deberta_model *model;
    deberta_session *session = NULL;
    int32_t ids[ALL_TOKENS];
    sha256 hash;
    DEBERTA_TRY(deberta_model_open(&model, path, &model_options, err));
    const deberta_model_info *info = deberta_model_describe(model);
    deberta_status status = deberta_session_create(&session, model, &session_options, err);
    make_texts(ids, info->vocabulary_size);
    sha256_begin(&hash, cpu_features());
    for (size_t k = 0, at = 0; status == DEBERTA_OK && k < TEXTS; at += lengths[k], k++)
        status = verify_publish_add_text(&hash, session, ids + at, lengths[k], info->hidden_size, err);
    sha256_finish(&hash, found->outputs[precision]);
    deberta_session_free(&session);
    deberta_model_free(&model);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- training */

/* Digests the losses and gradient norms of four steps of training. Each depends on every weight that the steps before
 * have changed. */
static deberta_status digest_training(const common_options *options, const char *path, size_t vocabulary,
                                      digests *found, deberta_error *err)
{
    int32_t ids[ALL_TOKENS];
    deberta_example examples[TEXTS];
    deberta_trainer *trainer;
    deberta_trainer_options o = DEBERTA_TRAINER_DEFAULTS;
    sha256 hash;
    make_texts(ids, vocabulary);
    for (size_t k = 0, at = 0; k < TEXTS; at += lengths[k], k++)
        examples[k] = (deberta_example){.tokens = lengths[k], .ids = ids + at, .label = (int32_t)(k % 2)};
    o.task = DEBERTA_TRAIN_SEQUENCE, o.model = path, o.new_labels = 2;
    o.examples = examples, o.example_count = TEXTS, o.batch_sequences = 5;
    o.steps = STEPS, o.seed = SEED, o.dropout = 0.1, o.learning_rate = 1e-3;
    o.isa = options->isa, o.threads = options->threads, o.memory_limit_bytes = options->memory_limit_bytes;
    DEBERTA_TRY(deberta_trainer_open(&trainer, &o, err));
    deberta_status status = DEBERTA_OK;
    sha256_begin(&hash, cpu_features());
    for (size_t k = 0; status == DEBERTA_OK && k < STEPS; k++) {
        deberta_training_step step = {0};
        status = deberta_trainer_step(trainer, &step, err);
        sha256_add(&hash, &step.loss, sizeof step.loss);
        sha256_add(&hash, &step.gradient_norm, sizeof step.gradient_norm);
    }
    sha256_finish(&hash, found->training);
    deberta_trainer_free(&trainer);
    return status;
}

/* --------------------------------------------------------------------------------------------------------------- all */

static deberta_status digest_all(const common_options *options, const char *path, digests *found, deberta_error *err)
{
    deberta_model *model;
    const deberta_model_options description = {.struct_size = sizeof description, .describe_only = 1};
    DEBERTA_TRY(deberta_model_open(&model, path, &description, err));
    const deberta_model_info info = *deberta_model_describe(model);
    const deberta_status digested = is_made_up(path) ? DEBERTA_OK : deberta_model_digest(model, found->model, err);
    deberta_model_free(&model);
    DEBERTA_TRY(digested);
    if ((info.position_biased_input || info.has_position_table) && info.max_positions < MOST_TOKENS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--publish encodes %d tokens, and the position table of %s ends at %zu",
                     MOST_TOKENS, path, info.max_positions);
    for (int precision = DEBERTA_PRECISION_FLOAT32; precision < DEBERTA_PRECISION_COUNT; precision++)
        DEBERTA_TRY(digest_outputs(options, path, (deberta_precision)precision, found, err));
    return is_made_up(path) ? DEBERTA_OK : digest_training(options, path, info.vocabulary_size, found, err);
}

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' ')) return true;
    return false;
}

/* Writes the tiers that the kernels come from, such as "avx512 avx512vnni", each once, in the order of the
 * kernels. */
static void name_parts(deberta_isa isa, char *text, size_t room)
{
    const char *from, *name;
    size_t used = (size_t)snprintf(text, room, "%s", deberta_isa_name(isa));
    for (size_t k = 0; deberta_kernel_name(isa, k, &from) && used < room; k++)
        if (!has_word(text, from)) used += (size_t)snprintf(text + used, room - used, " %s", from);
    for (size_t k = 0; (name = deberta_wrong_part(isa, k)) && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, " not %s", name);
}

void verify_publish(const common_options *options, const char *out)
{
    const char *path = options->arguments[0];
    digests found = {.model = "-", .training = "-"};
    deberta_error error = {0};
    char processor[128], parts[256];
    text_output output;
    must(options, digest_all(options, path, &found, &error), &error);
    cpu_name(processor, sizeof processor);
    name_parts(options->isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : options->isa, parts, sizeof parts);
    text_output_open(options, out, &output);
    fprintf(output.file, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", deberta_version(), processor, parts, path, found.model,
            found.outputs[DEBERTA_PRECISION_FLOAT32], found.outputs[DEBERTA_PRECISION_INT16],
            found.outputs[DEBERTA_PRECISION_INT8], found.training);
    text_output_close(options, &output);
}
