/* Writes the packed weights of an opened model beside it, or compares them with an existing packed file.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/load/model.h"
#include "core/load/packed_file.h"
#include "core/load/synthetic.h"

/* Opens the model whose packed weights are written or, with described_only, checked. */
static deberta_status open_for_packing(deberta_model **model, const char *path, const deberta_pack_options *given,
                                       bool described_only, deberta_pack_options *options, deberta_error *err)
{
    DEBERTA_TRY(copy_struct(options, given, sizeof *options, "deberta_pack_options", err));
    if (!path) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "packed weights need the path of a model");
    if ((unsigned)options->precision >= DEBERTA_PRECISION_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "precision %d does not exist", (int)options->precision);
    if (synthetic_names(path))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: a made-up model has no folder to put packed weights into", path);
    if (!described_only && packed_file_is_alone(path, options->precision))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: has no weights to pack, only %s, which was packed already", path,
                     deberta_packed_file_name(options->precision));
    const deberta_model_options opening = {
        .struct_size = sizeof opening,
        .threads = options->threads,
        .memory_limit_bytes = described_only ? 0 : options->memory_limit_bytes,
        .precision = options->precision,
        .describe_only = described_only,
    };
    return model_open_internal(model, path, &opening, &(model_internal_options){.pass_over_packed = true}, err);
}

deberta_status deberta_model_check_packed(const char *path, const deberta_pack_options *given, deberta_error *err)
{
    deberta_model *model = NULL;
    deberta_pack_options options;
    DEBERTA_TRY(open_for_packing(&model, path, given, true, &options, err));
    deberta_status status = model->packed_alone
                                ? packed_file_check_alone(&model->packed_file, err)
                                : packed_file_check(model->checkpoint, options.precision, model_sections(model), err);
    deberta_model_free(&model);
    return status;
}

/* Fills all sections: the arena's is in place already, the others are made in *memory, which the caller frees. */
static deberta_status make_sections(const deberta_model *model, packed_sections *sections, void **memory,
                                    deberta_error *err)
{
    *sections = model_sections(model);
    const size_t words_bytes = sections->of[PACKED_WORDS].size_bytes;
    uint8_t *bytes = malloc(words_bytes + sections->of[PACKED_TENSORS].size_bytes + 1);
    *memory = bytes;
    if (!bytes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the words of packed weights");
    sections->of[PACKED_ARENA].bytes = arena_contents(&model->arena);
    sections->of[PACKED_WORDS].bytes = bytes;
    sections->of[PACKED_TENSORS].bytes = bytes + words_bytes;
    if (!model->digits) return DEBERTA_OK;
    packed_tensors_write(model->checkpoint, bytes + words_bytes);
    return model_store_words(model, bytes, err);
}

deberta_status deberta_model_pack(const char *path, const deberta_pack_options *given, deberta_error *err)
{
    deberta_model *model = NULL;
    deberta_pack_options options;
    DEBERTA_TRY(open_for_packing(&model, path, given, false, &options, err));
    packed_sections sections;
    void *memory = NULL;
    deberta_status status = make_sections(model, &sections, &memory, err);
    if (status == DEBERTA_OK) status = packed_file_write(model->checkpoint, &sections, &options, err);
    free(memory);
    deberta_model_free(&model);
    return status;
}
