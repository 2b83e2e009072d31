/* Opens a model: finds its files, resolves settings that they leave open, loads the weights.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dispatch.h"
#include "core/io/folder_kind.h"
#include "core/io/quote.h"
#include "core/load/load_parts.h"
#include "core/load/model.h"
#include "core/load/synthetic.h"

/* v1 is known by its fused projection; a config that says otherwise describes another file (SPEC 9). */
static deberta_status settle_version(deberta_model *model, deberta_error *err)
{
    static const char fused[] = "encoder.layer.0.attention.self.in_proj.weight";
    weight_tensor ignored;
    model_config *config = &model->config;
    int found = model->source.find(model->source.context, fused, &ignored) ? 1 : 2;
    if (config->version != 0 && config->version != found) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: config.json says model_type \"%s\", but the tensors are of the other kind ('%s' is %s)",
                     model->name, config->version == 1 ? "deberta" : "deberta-v2", fused,
                     found == 1 ? "there" : "missing");
    }
    config->version = found;
    if (found == 1) config->share_att_key = false;
    if (found == 2) config->talking_heads = false;
    return DEBERTA_OK;
}

static deberta_status settle(deberta_model *model, const deberta_model_options *options,
                             const model_internal_options *internal, deberta_error *err)
{
    model_config *config = &model->config;
    DEBERTA_TRY(settle_version(model, err));
    if (options->layers > config->layers) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s has %zu layers; %zu were asked for", model->name, config->layers,
                     options->layers);
    }
    static const size_t digits_of[DEBERTA_PRECISION_COUNT] = {
        [DEBERTA_PRECISION_INT16] = 2,
        [DEBERTA_PRECISION_INT8] = 1,
    };
    model->precision = options->precision;
    model->digits = digits_of[options->precision];
    if (model->digits && internal->keep_position_projections)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "%s: position projections can be kept, and a model trained, in float32 only; found %s",
                     model->name, deberta_precision_name(model->precision));
    model->stored_layers = config->layers;
    if (options->layers > 0) config->layers = options->layers;
    if (options->reference != DEBERTA_REFERENCE_AUTO) config->reference = options->reference;
    model->rule = position_rule_make(config, config->reference);
    if (internal->decorate) internal->decorate(model);
    model->head_size = config->head_size;
    model->padded_head = round_up(config->head_size, PANEL);
    model->integer_attention = model->digits == 1 && config->head_size <= MAX_INTEGER_DEPTH;
    model->head_panels = model->padded_head / PANEL;
    model->hidden_stride = row_stride(config->hidden_size);
    model->scale = 1 / sqrt((double)config->head_size * (1 + (double)config->position_terms));
    model->has_c2p = model->rule.span > 0 && config->c2p;
    model->has_p2c = model->rule.span > 0 && config->p2c;
    if (!model->has_c2p && !model->has_p2c) model->rule.span = 0;
    model->relative_rows = 2 * model->rule.span;
    return DEBERTA_OK;
}

/* Requires that the configuration says which of the two models is meant: sizes alone may fit both. */
static deberta_status check_half(const deberta_model *model, deberta_error *err)
{
    if (!checkpoint_is_half(model->checkpoint) || model->config.of_pair) return DEBERTA_OK;
    DEBERTA_FAIL(
        err, DEBERTA_E_FORMAT,
        "%s holds a generator and a discriminator, but config.json describes one model; with {\"generator\": "
        "{...}, \"discriminator\": {...}} the discriminator is opened; to open another, keep its tensors alone",
        checkpoint_place(model->checkpoint));
}

static deberta_status open_memory(deberta_model *model, const char *name, const model_internal_options *internal,
                                  deberta_error *err)
{
    DEBERTA_TRY(config_parse(&model->config, internal->config_json, strlen(internal->config_json), QUOTE(name), err));
    DEBERTA_TRY(checkpoint_open_memory(&model->checkpoint, name, internal->tensors, internal->tensor_count, err));
    model->files = weight_source_of_checkpoint(model->checkpoint);
    return check_half(model, err);
}

/* Checks that a packed file without weights has the requested precision. */
static deberta_status check_other_precisions(const char *path, deberta_precision precision, deberta_error *err)
{
    for (deberta_precision other = 0; other < DEBERTA_PRECISION_COUNT; other++)
        if (other != precision && packed_file_is_alone(path, other))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: has no weights but packed ones of %s: expected that precision, "
                         "found %s",
                         QUOTE(path), deberta_precision_name(other), deberta_precision_name(precision));
    return DEBERTA_OK;
}

static deberta_status open_alone(deberta_model *model, const char *path, deberta_precision precision,
                                 deberta_error *err)
{
    DEBERTA_TRY(packed_file_open_alone(path, precision, &model->packed_file, &model->sections, err));
    model->packed_alone = true;
    model->names = (packed_tensors){.bytes = model->sections.of[PACKED_TENSORS].bytes,
                                    .size_bytes = model->sections.of[PACKED_TENSORS].size_bytes,
                                    .place = model->packed_file.name.text};
    model->files = weight_source_of_packed(&model->names);
    return DEBERTA_OK;
}

static deberta_status open_source(deberta_model *model, const char *path, deberta_precision precision,
                                  const model_internal_options *internal, deberta_error *err)
{
    model->name = strdup(path);
    if (!model->name) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    if (internal->config_json) return open_memory(model, path, internal, err);
    if (synthetic_names(path)) {
        DEBERTA_TRY(synthetic_parse(&model->config, &model->synthetic, path, err));
        model->files =
            internal->weights ? *internal->weights : weight_source_of_synthetic(&model->synthetic, model->name);
        return DEBERTA_OK;
    }
    const char *text = internal->config;
    DEBERTA_TRY(text ? config_parse(&model->config, text, strlen(text), path, err)
                     : config_read(&model->config, path, err));
    if (internal->weights) {
        model->files = *internal->weights;
        return DEBERTA_OK;
    }
    DEBERTA_TRY(folder_note_rest(path, &model->notes, err));
    if (packed_file_is_alone(path, precision)) return open_alone(model, path, precision, err);
    DEBERTA_TRY(check_other_precisions(path, precision, err));
    DEBERTA_TRY(checkpoint_open(&model->checkpoint, path, err));
    model->files = weight_source_of_checkpoint(model->checkpoint);
    return check_half(model, err);
}

static deberta_status load_parts(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                                 deberta_error *err)
{
    DEBERTA_TRY(load_encoder(loader, model, workspace, err));
    return load_tasks(loader, model, err);
}

/* Checks, without reading weights, that each tensor exists and fits, and computes their memory. */
static deberta_status model_open_measure(deberta_model *model, weight_loader *loader, position_workspace *workspace,
                                         size_t limit_bytes, deberta_error *err)
{
    tensor_account account = {0};
    loader->pass = LOAD_CHECK;
    loader->account = model->files.next ? &account : NULL;
    deberta_status status = load_parts(loader, model, workspace, err);
    if (loader->account) status = tensor_account_close(&account, model, status, err);
    loader->account = NULL;
    DEBERTA_TRY(status);
    model->parameters = loader->parameters;
    loader->pass = LOAD_MEASURE;
    DEBERTA_TRY(load_parts(loader, model, workspace, err));
    return arena_predict(&model->arena, "model", limit_bytes, &model->memory_bytes, err);
}

/* Reads one row of the word table, which stays in its file. This shows whether it can be read, and unpacks a table in a
 * zip archive before the first encode. */
static deberta_status try_word_table(const deberta_model *model, deberta_error *err)
{
    float *row = malloc(model->config.embedding_size * sizeof *row);
    if (!row) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a row of %zu weights", model->config.embedding_size);
    deberta_status status = word_table_read(&model->words, &model->source, 0, 1, row, err);
    free(row);
    return status;
}

/* Allocates and reads what the measuring pass has found. */
static deberta_status load(deberta_model *model, weight_loader *loader, position_workspace *workspace,
                           size_t limit_bytes, deberta_error *err)
{
    position_workspace_carve(workspace, model);
    DEBERTA_TRY(arena_allocate(&model->arena, "model", limit_bytes, err));
    DEBERTA_TRY(arena_allocate(&workspace->arena, "position projections", 0, err));
    position_workspace_carve(workspace, model);
    DEBERTA_TRY(loader_begin_reading(loader, err));
    DEBERTA_TRY(load_parts(loader, model, workspace, err));
    return try_word_table(model, err);
}

deberta_status model_read_again(deberta_model *model, bool folds, const kernels *table, executor *threads,
                                deberta_error *err)
{
    position_workspace workspace = {.keep = true, .unfolded = !folds};
    weight_loader loader = {.source = &model->source, .arena = &model->arena, .kernels = table, .executor = threads};
    arena_rewind(&model->arena);
    loader.pass = LOAD_MEASURE; /* This pass finds the pieces in the mapped file, and measures the scratch that reading
                                   would need. */
    DEBERTA_TRY(load_parts(&loader, model, &workspace, err));
    arena_rewind(&model->arena);
    position_workspace_carve(&workspace, model);
    DEBERTA_TRY(arena_allocate(&workspace.arena, "position projections", 0, err));
    position_workspace_carve(&workspace, model);
    deberta_status status = loader_begin_reading(&loader, err);
    if (status == DEBERTA_OK) status = load_parts(&loader, model, &workspace, err);
    free(loader.scratch);
    arena_release(&workspace.arena);
    return status;
}

static deberta_status load_in_parallel(deberta_model *model, weight_loader *loader, position_workspace *workspace,
                                       const deberta_model_options *options, deberta_error *err)
{
    kernels table;
    DEBERTA_TRY(kernels_select(&table, DEBERTA_ISA_AUTO, err));
    if (options->threads > TOPOLOGY_MAX_WORKERS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu threads are more than %d", options->threads, TOPOLOGY_MAX_WORKERS);
    DEBERTA_TRY(executor_create(&loader->executor, options->threads, false, &model->machine, err));
    loader->kernels = &table;
    deberta_status status = load(model, loader, workspace, options->memory_limit_bytes, err);
    free(loader->scratch);
    arena_release(&workspace->arena);
    /* They lie in the workspace, which is freed now. */
    if (model->digits) model->relative_table = model->relative_reversed = NULL;
    executor_free(&loader->executor);
    loader->kernels = NULL;
    return status;
}

/* Checks that a packed file without a checkpoint fits this model; otherwise opening fails. */
static deberta_status fit_alone(const deberta_model *model, deberta_error *err)
{
    const packed_sections needed = model_sections(model);
    for (size_t k = 0; k < PACKED_SECTIONS; k++)
        if (model->sections.of[k].size_bytes != needed.of[k].size_bytes)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: is of another size than what this model needs",
                         model->packed_file.name.text);
    return DEBERTA_OK;
}

/* Packed weights beside a checkpoint belong to the whole model without planted mistakes; other models do not use them.
 */
static deberta_status find_packed(deberta_model *model, const model_internal_options *internal, deberta_error *err)
{
    bool others =
        model->config.layers < model->stored_layers || internal->decorate || internal->keep_position_projections;
    if (model->packed_alone && !others) {
        model->packed = DEBERTA_PACKED_MAPPED;
        return fit_alone(model, err);
    }
    if (!model->checkpoint || checkpoint_is_memory(model->checkpoint)) return DEBERTA_OK;
    if (others || internal->pass_over_packed) return DEBERTA_OK;
    model->sections = model_sections(model);
    return packed_file_map(model->checkpoint, model->precision, &model->sections, &model->packed_file, &model->packed,
                           err);
}

/* Makes the model use its packed file; pages of word rows are read when texts need them. */
static deberta_status view_packed(deberta_model *model, weight_loader *loader, position_workspace *workspace,
                                  deberta_error *err)
{
    const uint8_t *contents = model->sections.of[PACKED_ARENA].bytes;
    mapped_file_populate(&model->packed_file, (size_t)(contents - model->packed_file.bytes) + model->memory_bytes);
    arena_borrow(&model->arena, contents);
    loader->pass = LOAD_VIEW;
    DEBERTA_TRY(load_parts(loader, model, workspace, err));
    model_view_words(model, model->sections.of[PACKED_WORDS].bytes);
    return try_word_table(model, err);
}

static deberta_status load_or_view(deberta_model *model, const deberta_model_options *options,
                                   const model_internal_options *internal, deberta_error *err)
{
    position_workspace workspace = {.keep = internal->keep_position_projections};
    weight_loader loader = {.source = &model->source,
                            .arena = &model->arena,
                            .listener = internal->listener,
                            .digits = model->digits,
                            .unsmoothed = model->unsmoothed};
    DEBERTA_TRY(model_open_measure(model, &loader, &workspace, options->memory_limit_bytes, err));
    DEBERTA_TRY(find_packed(model, internal, err));
    model->described_only = options->describe_only != 0;
    if (model->described_only) return DEBERTA_OK;
    if (model->packed == DEBERTA_PACKED_MAPPED) return view_packed(model, &loader, &workspace, err);
    return load_in_parallel(model, &loader, &workspace, options, err);
}

deberta_status model_open_internal(deberta_model **result, const char *path, const deberta_model_options *given,
                                   const model_internal_options *internal, deberta_error *err)
{
    if (result) *result = NULL;
    if (!result || !path)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_model_open needs a place for the model and a path");
    if (!*path) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the path of the model is empty");
    deberta_model_options options;
    DEBERTA_TRY(copy_struct(&options, given, sizeof options, "deberta_model_options", err));
    if ((unsigned)options.reference >= DEBERTA_REFERENCE_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "reference %d is neither Microsoft's nor HF's", (int)options.reference);
    if ((unsigned)options.precision >= DEBERTA_PRECISION_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "precision %d does not exist", (int)options.precision);
    deberta_model *model = calloc(1, sizeof *model);
    if (!model) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a model");
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, open_source(model, path, options.precision, internal, err));
    for (size_t i = 0; notes_at(&model->config.notes, i); i++)
        DEBERTA_TRY_OR_FAIL(status, notes_add(&model->notes, err, "%s", notes_at(&model->config.notes, i)));
    DEBERTA_TRY_OR_FAIL(status, topology_read(&model->machine, err));
    DEBERTA_TRY_OR_FAIL(status, topology_note(&model->machine, &model->notes, err));
    model->source = model->files;
    DEBERTA_TRY_OR_FAIL(status, settle(model, &options, internal, err));
    status = load_or_view(model, &options, internal, err);
    /* A file that has changed is the reason of any other error. */
    if (model_intact(model, err) != DEBERTA_OK) status = DEBERTA_E_FILE;
    DEBERTA_TRY_OR_FAIL(status, status);
    model_fill_info(model);
    *result = model;
    return DEBERTA_OK;
fail:
    deberta_model_free(&model);
    return status;
}

deberta_status deberta_model_open(deberta_model **model, const char *path, const deberta_model_options *options,
                                  deberta_error *err)
{
    return model_open_internal(model, path, options, &(model_internal_options){0}, err);
}

deberta_status deberta_model_open_memory(deberta_model **model, const char *name, const char *config_json,
                                         const deberta_tensor *tensors, size_t count,
                                         const deberta_model_options *options, deberta_error *err)
{
    if (model) *model = NULL;
    if (!model || !name || !config_json || !tensors)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "deberta_model_open_memory needs a place for the model, a name, a config and tensors");
    const model_internal_options internal = {.config_json = config_json, .tensors = tensors, .tensor_count = count};
    return model_open_internal(model, name, options, &internal, err);
}
