/* Creates a session: checks its options, carves its memory, starts its threads. SPDX-License-Identifier: MIT */
#include "core/encode/session.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/dispatch.h"
#include "core/encode/encoder_parts.h"
#include "core/model/linear.h"
#include "include/deberta_unstable.h"

enum {
    DEFAULT_MAX_TOKENS = 512,
    /* most tokens: products of sizes stay small, and a loop over all distances takes a second */
    LARGEST_MAX_TOKENS = 1 << 24,
    ASSUMED_L2_BYTES = 512 * 1024,     /* bytes of L2 where hwloc does not know them */
    INTEGER_TILE_PANELS = 4,           /* panels of keys that products of integers in attention take at a time */
    LOGIT_SCRATCH_BYTES = 1792 * 1024, /* bytes of a thread's strips and logits, which hold at least one tile of rows */
};

/* ---------------------------------------------------------------------------------------------------------- carving */

static float *take_floats(arena *memory, size_t rows, size_t columns)
{
    size_t count = 0;
    if (!size_multiply(rows, columns, &count)) memory->overflow = true;
    return arena_take(memory, count, sizeof(float));
}

/* Plans the rows of an attention task and the strides of its scratch, from the longest sequence and the size of the
 * table. */
static void plan_attention(deberta_session *s)
{
    const deberta_model *model = s->model;
    size_t rows = model->relative_rows;
    s->row_tile = model->integer_attention ? DIGIT_TILE_ROWS : s->kernels.tile_rows;
    s->tile_panels = model->integer_attention ? INTEGER_TILE_PANELS : s->kernels.tile_panels;
    s->logits_stride = row_stride(minimum(round_up(s->max_tokens, PANEL), KEY_CHUNK));
    s->observed_stride = row_stride(round_up(s->max_tokens, PANEL));
    /* Unless every step is 0 or 1, consecutive distances may be anywhere in the table. */
    size_t reachable = rows;
    if (s->positions.unit_steps) reachable = minimum(rows, MAX_QUERY_ROWS + round_up(s->max_tokens, PANEL));
    /* The reachable rows can straddle two more panels, and the position_bias kernel may read one past the end. */
    s->strip_stride = s->has_c2p ? row_stride(round_up(reachable, PANEL) + 3 * PANEL) : 0;

    size_t fitting = LOGIT_SCRATCH_BYTES / sizeof(float) / (s->logits_stride + s->strip_stride);
    size_t tile = s->row_tile;
    s->query_rows = maximum(minimum(fitting, MAX_QUERY_ROWS) / tile * tile, tile);
    s->query_rows = minimum(s->query_rows, round_up(s->max_tokens, tile));
    /* Where the table's rows are integers, they begin at a tile. */
    size_t distances = s->query_rows + s->tile_panels * PANEL + (model->integer_attention ? DIGIT_TILE_ROWS : 0);
    s->transposed_rows = !s->has_p2c ? 0 : s->positions.unit_steps ? minimum(rows, distances) : rows;
}

/* Carves the scratch of patches; the longest sequence may take all tokens. */
static void carve_patches(const deberta_session *s, arena *memory, worker_scratch *worker)
{
    const size_t keys = round_up(s->max_tokens, PANEL), d = s->model->head_size;
    if (!(s->features & DEBERTA_PATCH_TERMS)) return;
    for (size_t k = 0; k < sizeof worker->patch_keys / sizeof *worker->patch_keys; k++)
        worker->patch_keys[k] = take_floats(memory, keys, d);
    if (!s->has_p2c) return;
    worker->patch_far = take_floats(memory, keys, FAR_SIDES);
    worker->patch_mean = take_floats(memory, d, PANEL);
}

static void carve_worker(deberta_session *s, arena *memory, worker_scratch *worker)
{
    size_t tile_panels = s->tile_panels, d = s->model->head_size;
    bool talking = s->model->config.talking_heads;
    size_t observed = talking ? 2 * s->model->config.heads : s->features & DEBERTA_OBSERVE_ATTENTION ? 1 : 0;
    *worker = (worker_scratch){
        .strip = take_floats(memory, s->query_rows, s->strip_stride),
        .transposed = take_floats(memory, tile_panels * s->transposed_rows, PANEL),
        .bias = take_floats(memory, tile_panels * s->query_rows, PANEL),
        .logits = take_floats(memory, s->query_rows, s->logits_stride),
        .maximum = take_floats(memory, s->query_rows, 1),
        .total = take_floats(memory, s->query_rows, 1),
        .rescale = take_floats(memory, s->query_rows, 1),
        .observed = take_floats(memory, observed * OBSERVED_ROWS, s->observed_stride),
    };
    carve_patches(s, memory, worker);
    if (!s->model->integer_attention) return;
    worker->query_integers = integer_rows_take(memory, s->query_rows, d, 1);
    worker->probabilities = integer_rows_take(memory, s->query_rows, s->logits_stride, 2);
    worker->packing = take_floats(memory, d, PANEL);
}

/* Carves the integers of values. There is one scale per column and chunk of keys; memory is reserved for one per tile
 * of keys. */
static integer_panels take_value_integers(const deberta_session *s, arena *memory)
{
    size_t heads = s->model->config.heads, tiles = ceiling_divide(s->key_panels * PANEL, DIGIT_TILE_INPUTS) * heads;
    return integer_panels_take(memory, tiles * s->model->head_panels, DIGIT_TILE_INPUTS);
}

static void carve_activations(deberta_session *s, arena *memory)
{
    const deberta_model *model = s->model;
    const model_config *config = &model->config;
    size_t tokens = s->max_tokens, heads_width = config->heads * model->padded_head;
    s->hidden_stride = model->hidden_stride;
    s->context_stride = row_stride(maximum(heads_width, config->hidden_size));
    s->normed_stride = row_stride(maximum(config->embedding_size, config->hidden_size));
    s->hidden = take_floats(memory, tokens, s->hidden_stride);
    if (!s->internal.record) {
        s->context = take_floats(memory, tokens, s->context_stride);
        s->normed = take_floats(memory, tokens, s->normed_stride);
        s->queries = take_floats(memory, tokens, heads_width);
        s->keys = take_floats(memory, tokens, heads_width);
        s->values = take_floats(memory, tokens, heads_width);
    }
    /* Sequences shorter than a panel waste most of it: they are attended to in groups that fit (attention_layer.c). */
    s->key_panels = ceiling_divide(tokens + tokens / 4, PANEL) + 8;
    if (model->integer_attention) {
        s->key_integers = integer_panels_take(memory, s->key_panels * config->heads, model->head_size);
        s->value_integers = take_value_integers(s, memory);
    } else {
        s->packed_keys = take_floats(memory, s->key_panels * PANEL, config->heads * model->head_size);
    }
    s->far_p2c = s->has_p2c ? take_floats(memory, s->key_panels * PANEL, config->heads * FAR_SIDES) : NULL;
    if (config->convolution_width > 0) {
        size_t border = config->convolution_width / 2;
        s->halo = take_floats(memory, tokens + (tokens + 1) * border, s->hidden_stride);
    }
    if (s->features & DEBERTA_KEEP_DECODER_INPUT) {
        s->decoder_input = take_floats(memory, tokens, s->hidden_stride);
    }
    if (s->features & DEBERTA_KEEP_DECODER_INPUT || s->may_leave_rows)
        s->asked_rows = take_floats(memory, tokens, s->hidden_stride);
    if (s->internal.recompute_positions) {
        size_t queries = config->heads * model->relative_rows * model->padded_head;
        s->fold_keys = s->has_c2p ? take_floats(memory, model_position_key_floats(model), 1) : NULL;
        s->fold_queries = s->has_p2c ? take_floats(memory, queries, 1) : NULL;
        s->fold_workspace = take_floats(memory, queries, 1);
    }
}

static void carve_batch(deberta_session *s, arena *memory)
{
    size_t tokens = s->max_tokens;
    s->starts = arena_take(memory, tokens + 1, sizeof *s->starts);
    s->position_ids = arena_take(memory, tokens, sizeof *s->position_ids);
    s->mask = arena_take(memory, tokens, sizeof *s->mask);
    s->asked_tokens = arena_take(memory, tokens, sizeof *s->asked_tokens);
    s->key_bias = arena_take(memory, tokens, sizeof *s->key_bias);
    s->key_present = arena_take(memory, tokens, sizeof *s->key_present);
    s->panel_starts = arena_take(memory, tokens, sizeof *s->panel_starts);
    s->task_starts = arena_take(memory, tokens + 1, sizeof *s->task_starts);
}

/* Returns the bytes of the quantized rows of a product. Beyond LINEAR_ROW_SPLIT rows a thread, a feed-forward works
 * block by block. */
static size_t shared_integer_bytes(const deberta_session *s)
{
    const model_layer *layer = s->model->layers;
    size_t few = minimum(s->max_tokens, LINEAR_ROW_SPLIT * s->threads),
           bytes = quantized_rows_bytes(&layer->output, few);
    bytes = maximum(bytes, quantized_rows_bytes(&layer->intermediate, few));
    bytes = maximum(bytes, quantized_rows_bytes(&layer->attention_output, few));
    return maximum(bytes, quantized_rows_bytes(&layer->qkv, s->max_tokens));
}

static size_t worker_integer_bytes(const deberta_session *s)
{
    const model_layer *layer = s->model->layers;
    size_t rows = minimum(LINEAR_MAX_ROWS, s->max_tokens), bytes = quantized_rows_bytes(&layer->output, rows);
    bytes = maximum(bytes, quantized_rows_bytes(&layer->intermediate, rows));
    return round_up(maximum(bytes, quantized_rows_bytes(&layer->attention_output, rows)), ARENA_ALIGNMENT_BYTES);
}

/* Carves everything that a session holds; it runs twice (memory.h). The position map comes first, because other sizes
 * depend on whether its steps are small. */
static void session_carve(deberta_session *s, arena *memory)
{
    const model_config *config = &s->model->config;
    position_map_carve(&s->positions, memory, &s->model->rule, s->max_tokens);
    plan_attention(s);
    s->inner_stride = row_stride(config->intermediate_size);
    s->inner_rows = minimum(LINEAR_MAX_ROWS, s->max_tokens);
    size_t decoder_floats = 2 * DECODER_PANELS * PANEL * row_stride(config->embedding_size) + LINEAR_MAX_ROWS * PANEL;
    s->inner_rows = maximum(s->inner_rows, ceiling_divide(decoder_floats, s->inner_stride));

    carve_batch(s, memory);
    carve_activations(s, memory);
    ablation_plan_carve(&s->ablation, s->model, s->max_tokens, s->key_panels, memory);
    if (s->internal.profile) {
        s->profile.lanes = arena_take(memory, s->threads, sizeof *s->profile.lanes);
        s->profile.threads = s->threads;
    }
    s->inner = take_floats(memory, s->threads * s->inner_rows, s->inner_stride);
    size_t integer_bytes = worker_integer_bytes(s);
    s->integers = arena_take(memory, shared_integer_bytes(s), 1);
    unsigned char *integers = arena_take(memory, s->threads, integer_bytes);
    s->workers = arena_take(memory, s->threads, sizeof *s->workers);
    for (size_t i = 0; i < s->threads; i++) {
        worker_scratch measured, *worker = s->workers ? &s->workers[i] : &measured;
        carve_worker(s, memory, worker);
        if (integers) worker->integers = integers + i * integer_bytes;
        if (s->inner) worker->inner = s->inner + i * s->inner_rows * s->inner_stride;
    }
}

/* --------------------------------------------------------------------------------------------------------- creating */

static deberta_status check_options(const deberta_session_options *options, const deberta_model *model,
                                    deberta_error *err)
{
    const unsigned known = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION | DEBERTA_KEEP_DECODER_INPUT |
                           DEBERTA_ONLY_HEADS | DEBERTA_PATCH_TERMS;
    if (!model) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a session needs a model");
    if ((unsigned)options->isa >= DEBERTA_ISA_COUNT) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "instruction set %d does not exist", (int)options->isa);
    }
    if (options->features & ~known)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown features 0x%x", options->features & ~known);
    if (options->features & DEBERTA_ONLY_HEADS && options->features & DEBERTA_OBSERVE_ATTENTION)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "DEBERTA_ONLY_HEADS leaves no attention to DEBERTA_OBSERVE_ATTENTION");
    if (options->max_tokens > LARGEST_MAX_TOKENS) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "max_tokens %zu is above the largest possible, %d", options->max_tokens,
                     LARGEST_MAX_TOKENS);
    }
    if (options->threads > TOPOLOGY_MAX_WORKERS) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu threads are more than %d", options->threads, TOPOLOGY_MAX_WORKERS);
    }
    if (options->shared_threads && (options->threads || options->pin_threads))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "a session with shared_threads has no threads of its own: threads and pin_threads must be 0");
    return DEBERTA_OK;
}

/* Returns true unless a row of the last layer needs others of it: means of all queries, heads that talk, the
 * convolution, a study's own attention, or a record of what ran. */
static bool last_layer_splits(const deberta_session *s, const deberta_session_options *options)
{
    const model_config *config = &s->model->config;
    const bool convolved = config->convolution_width > 0 && config->layers == 1;
    const bool whole = s->internal.layers == 0 || s->internal.layers == config->layers;
    return options->ablation_count == 0 && !config->talking_heads && !convolved && whole && !s->internal.record &&
           s->attend == attention_run;
}

/* Sets the members that decide the sizes; allocates nothing. */
static deberta_status settle(deberta_session *s, const deberta_model *model, const deberta_session_options *options,
                             const session_internal_options *internal, deberta_error *err)
{
    DEBERTA_TRY(check_options(options, model, err));
    DEBERTA_TRY(kernels_select(&s->kernels, options->isa, err));
    if (model->precision != DEBERTA_PRECISION_FLOAT32) kernels_use_tiles(&s->kernels, options->isa);
    if (internal) s->internal = *internal;
    if (options->shared_threads) s->internal.executor = options->shared_threads->executor;
    if (s->internal.layers > model->config.layers) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu layers; %s has %zu", s->internal.layers, model->name,
                     model->config.layers);
    }
    DEBERTA_TRY(ablation_check(model, options->ablations, options->ablation_count, err));
    s->ablation.given = options->ablations;
    s->ablation.given_count = options->ablation_count;
    DEBERTA_TRY(interventions_check(model, options->features, &s->internal.interventions.changes, err));
    s->internal.interventions.next = s->internal.interventions.changes;
    s->attend = s->internal.interventions.attend ? s->internal.interventions.attend : attention_run;
    s->model = model;
    s->isa = options->isa == DEBERTA_ISA_AUTO ? deberta_isa_best() : options->isa;
    const topology_info *machine = &model->machine;
    s->threads = options->threads ? options->threads : executor_default_threads(machine);
    if (s->internal.executor) s->threads = s->internal.executor->threads;
    s->max_tokens = options->max_tokens ? options->max_tokens : DEFAULT_MAX_TOKENS;
    s->features = options->features;
    s->may_leave_rows = s->features & DEBERTA_ONLY_HEADS && last_layer_splits(s, options);
    s->l2_bytes = machine->l2_bytes ? machine->l2_bytes / maximum(machine->l2_cores, 1) : ASSUMED_L2_BYTES;
    s->has_c2p = model->has_c2p && term_is_selected(s->internal.terms, DEBERTA_C2P);
    s->has_p2c = model->has_p2c && term_is_selected(s->internal.terms, DEBERTA_P2C);
    bool separate = !model->config.share_att_key && (model->has_c2p || model->has_p2c);
    if (s->internal.recompute_positions && separate && !model->layers[0].position_key.panels &&
        !model->layers[0].position_query.panels) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "%s was opened without keeping its position projections: they cannot be recomputed", model->name);
    }
    return DEBERTA_OK;
}

deberta_status session_create_internal(deberta_session **result, const deberta_model *model,
                                       const deberta_session_options *given, const session_internal_options *internal,
                                       deberta_error *err)
{
    if (!result) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_session_create needs a place for the session");
    *result = NULL;
    deberta_session_options options;
    DEBERTA_TRY(copy_struct(&options, given, sizeof options, "deberta_session_options", err));
    if (model && model->described_only) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s was opened with describe_only: its weights were not read",
                     model->name);
    }
    deberta_session *s = calloc(1, sizeof *s);
    if (!s) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a session");
    deberta_status status;
    DEBERTA_TRY_OR_FAIL(status, settle(s, model, &options, internal, err));
    session_carve(s, &s->arena);
    DEBERTA_TRY_OR_FAIL(status, arena_allocate(&s->arena, "session", options.memory_limit_bytes, err));
    session_carve(s, &s->arena);
    s->ablation.given = NULL;
    s->has_lock = pthread_mutex_init(&s->lock, NULL) == 0;
    if (!s->has_lock) {
        status = status_fail(err, DEBERTA_E_SYSTEM, "the system refuses a mutex");
        goto fail;
    }
    s->executor = s->internal.executor;
    s->owns_executor = !s->executor;
    if (s->owns_executor)
        DEBERTA_TRY_OR_FAIL(status,
                            executor_create(&s->executor, s->threads, options.pin_threads != 0, &model->machine, err));
    *result = s;
    return DEBERTA_OK;
fail:
    deberta_session_free(&s);
    return status;
}

deberta_status deberta_session_create(deberta_session **session, const deberta_model *model,
                                      const deberta_session_options *options, deberta_error *err)
{
    return session_create_internal(session, model, options, NULL, err);
}

static deberta_status predict(size_t *bytes, const deberta_model *model, const deberta_session_options *given,
                              const session_internal_options *internal, deberta_error *err)
{
    deberta_session_options options;
    deberta_session imagined = {0};
    DEBERTA_TRY(copy_struct(&options, given, sizeof options, "deberta_session_options", err));
    DEBERTA_TRY(settle(&imagined, model, &options, internal, err));
    session_carve(&imagined, &imagined.arena);
    return arena_predict(&imagined.arena, "session", 0, bytes, err);
}

deberta_status deberta_session_predict_bytes(size_t *bytes, const deberta_model *model,
                                             const deberta_session_options *options, deberta_error *err)
{
    if (!bytes) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_session_predict_bytes needs a place for the number");
    return predict(bytes, model, options, NULL, err);
}

static deberta_status check_memory(const deberta_model *model, const deberta_session_options *options,
                                   const session_internal_options *internal, size_t kept_bytes, deberta_error *err)
{
    memory_need need = {.model_bytes = model->memory_bytes, .kept_bytes = kept_bytes};
    if (options->memory_limit_bytes == 0) return DEBERTA_OK;
    DEBERTA_TRY(predict(&need.session_bytes, model, options, internal, err));
    return memory_need_check(&need, options->memory_limit_bytes, err);
}

deberta_status session_create_within(deberta_session **session, const deberta_model *model,
                                     const deberta_session_options *options, const session_internal_options *internal,
                                     size_t kept_bytes, deberta_error *err)
{
    *session = NULL;
    DEBERTA_TRY(check_memory(model, options, internal, kept_bytes, err));
    return session_create_internal(session, model, options, internal, err);
}

deberta_status deberta_session_check_within(const deberta_model *model, const deberta_session_options *given,
                                            size_t kept_bytes, deberta_error *err)
{
    deberta_session_options options;
    if (!model) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_session_check_within needs a model");
    DEBERTA_TRY(copy_struct(&options, given, sizeof options, "deberta_session_options", err));
    options.struct_size = sizeof options;
    return check_memory(model, &options, NULL, kept_bytes, err);
}

deberta_status deberta_session_create_within(deberta_session **session, const deberta_model *model,
                                             const deberta_session_options *options, size_t kept_bytes,
                                             deberta_error *err)
{
    if (session) *session = NULL;
    DEBERTA_TRY(deberta_session_check_within(model, options, kept_bytes, err));
    return deberta_session_create(session, model, options, err);
}
