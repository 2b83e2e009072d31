/* Exports the flat functions, with numbers and pointers, that JavaScript loads; deberta.mjs wraps them.
 *
 * SPDX-License-Identifier: MIT */
#include "wasm/module.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"
#include "core/base/status.h"
#include "wasm/platform/memory_files.h"

module_state module;

const char *EXPORT(message)(void);
const char *EXPORT(answer)(void);
const char *EXPORT(tier)(void);
void *EXPORT(take)(size_t bytes);
void EXPORT(give)(void *memory);
int EXPORT(file_add)(const char *name, const unsigned char *bytes, size_t size_bytes);
int EXPORT(tokenizer_open)(void);
int EXPORT(model_open)(int precision);
int EXPORT(model_describe)(void);
int EXPORT(hidden_digest)(void);
const float *EXPORT(hidden)(void);
size_t EXPORT(hidden_stride)(void);

const char *message(void) { return module.error.message; }
const char *answer(void) { return module.json ? module.json : ""; }
const char *tier(void) { return WASM_TIER; }
void *take(size_t bytes) { return malloc(bytes); }
void give(void *memory) { free(memory); }
int file_add(const char *name, const unsigned char *bytes, size_t size_bytes)
{
    return memory_files_add(name, bytes, size_bytes);
}

deberta_status module_answer(json_t *value)
{
    free(module.json);
    module.json = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(value);
    return module.json ? DEBERTA_OK : status_fail(&module.error, DEBERTA_E_MEMORY, "out of memory");
}

/* Opens the tokenizer; a folder without one is still a model for ids. */
int tokenizer_open(void)
{
    deberta_tokenizer_free(&module.tokenizer);
    const deberta_status status = deberta_tokenizer_open(&module.tokenizer, MEMORY_FOLDER, &module.error);
    return status == DEBERTA_E_FILE ? DEBERTA_OK : status;
}

int model_open(int precision)
{
    const deberta_model_options options = {
        .struct_size = sizeof options, .threads = 1, .precision = (deberta_precision)precision};
    module_forget();
    deberta_session_free(&module.session);
    deberta_model_free(&module.model);
    DEBERTA_TRY(deberta_model_open(&module.model, MEMORY_FOLDER, &options, &module.error));
    if (!module.tokenizer) DEBERTA_TRY((deberta_status)tokenizer_open());
    return module_session("");
}

deberta_status module_session(const char *ablations)
{
    if (module.session && strcmp(module.ablations, ablations) == 0) return DEBERTA_OK;
    size_t count = 1;
    for (const char *at = ablations; *at; at++) count += *at == ',';
    deberta_ablation *list = calloc(count, sizeof *list);
    char *kept = strdup(ablations);
    deberta_session *session = NULL;
    deberta_status status = list && kept ? DEBERTA_OK : status_fail(&module.error, DEBERTA_E_MEMORY, "out of memory");
    count = 0;
    if (status == DEBERTA_OK && *ablations) status = deberta_ablations_parse(list, &count, ablations, &module.error);
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .threads = 1,
                                             .max_tokens = MODULE_MAX_TOKENS,
                                             .features = DEBERTA_OBSERVE_ATTENTION | DEBERTA_OBSERVE_HIDDEN |
                                                         DEBERTA_KEEP_DECODER_INPUT,
                                             .ablations = list,
                                             .ablation_count = count};
    if (status == DEBERTA_OK) status = deberta_session_create(&session, module.model, &options, &module.error);
    free(list);
    if (status != DEBERTA_OK) {
        free(kept);
        return status;
    }
    module_forget();
    deberta_session_free(&module.session);
    free(module.ablations);
    module.session = session;
    module.ablations = kept;
    return DEBERTA_OK;
}

void module_forget(void)
{
    if (module.encoded != module.tokens) deberta_tokens_free(&module.encoded);
    module.encoded = NULL;
    module.outputs = (deberta_outputs){0};
}

deberta_status module_check_encoded(void)
{
    if (module.encoded) return DEBERTA_OK;
    DEBERTA_FAIL(&module.error, DEBERTA_E_ARGUMENT, "no text is encoded");
}

int model_describe(void)
{
    const deberta_model_info *info = deberta_model_describe(module.model);
    const char *precision = deberta_precision_name(info->precision);
    return module_answer(json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:s, s:s, s:s}", "version", info->version,
        "layers", (json_int_t)info->layers, "heads", (json_int_t)info->heads, "head_size", (json_int_t)info->head_size,
        "hidden_size", (json_int_t)info->hidden_size, "vocabulary_size", (json_int_t)info->vocabulary_size,
        "parameters", (json_int_t)info->parameters, "memory_bytes", (json_int_t)info->memory_bytes, "max_tokens",
        (json_int_t)MODULE_MAX_TOKENS, "has_c2p", info->has_c2p, "has_p2c", info->has_p2c, "position_biased_input",
        info->position_biased_input, "has_mlm", (int)(info->tasks_present >> DEBERTA_TASK_MLM & 1), "precision",
        precision, "isa", deberta_isa_name(deberta_session_isa(module.session)), "tier", WASM_TIER));
}

const float *hidden(void) { return module.outputs.hidden; }
size_t hidden_stride(void) { return module.outputs.hidden_stride; }

/* Writes the SHA-256 of the hidden states of the text encoded last, row by row, as `encode` stores them. */
int hidden_digest(void)
{
    DEBERTA_TRY(module_check_encoded());
    const size_t columns = deberta_model_describe(module.model)->hidden_size;
    sha256 hash;
    char digest[65];
    sha256_begin(&hash, 0);
    for (size_t t = 0; t < module.encoded->count; t++)
        sha256_add(&hash, module.outputs.hidden + t * module.outputs.hidden_stride, columns * sizeof(float));
    sha256_finish(&hash, digest);
    return module_answer(json_pack("{s:s}", "sha256", digest));
}
