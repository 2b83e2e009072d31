/* Computes the size of the memory of training steps (records, gradients, scratch), and assigns its pieces.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/learner.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/model/linear.h"
#include "train/state/step_state.h"

/* ---------------------------------------------------------------------------------------------------------- carving */

/* Tokens per label for which memory is reserved at first; steps with more labels take more. */
enum { USUAL_TOKENS_PER_LABEL = 4 };

static float *take_floats(arena *memory, size_t rows, size_t columns)
{
    size_t count = 0;
    if (!size_multiply(rows, columns, &count)) memory->overflow = true;
    return arena_take(memory, count, sizeof(float));
}

/* With kept exponentials of the softmax, the backward pass need not recompute the logits, a fifth of its time in
 * attention. The first layers keep them, as many as fit in a KEPT_SHARE-th of all other memory. */
enum { KEPT_SHARE = 8 };

static size_t exponentials_floats(const learner *l)
{
    return l->tokens_capacity * l->model->config.heads * l->exponentials_stride;
}

/* Carves a record, except the input and rows that layers share. layer: for a pass of the decoder, the record whose keys
 * and values it uses; else NULL. */
static void carve_record(const learner *l, arena *memory, layer_record *record, const layer_record *layer, size_t rows)
{
    const deberta_session *s = l->session;
    const size_t tokens = l->tokens_capacity, heads = l->model->config.heads;
    *record = (layer_record){
        .queries = take_floats(memory, tokens, l->heads_width), /* a head's rows follow those of all tokens */
        .keys = layer ? layer->keys : take_floats(memory, tokens, l->heads_width),
        .values = layer ? layer->values : take_floats(memory, tokens, l->heads_width),
        .context = take_floats(memory, rows, s->context_stride),
        .maximum = take_floats(memory, tokens, heads),
        .inverse_total = take_floats(memory, tokens, heads),
        .attention_sum = take_floats(memory, rows, s->normed_stride),
        .normed = l->norms_again && !layer ? NULL : take_floats(memory, rows, s->normed_stride),
        .inner = take_floats(memory, rows, s->inner_stride),
        .output_sum = take_floats(memory, rows, s->hidden_stride),
    };
}

static void carve_keys(const learner *l, arena *memory, layer_record *record)
{
    *record = (layer_record){
        .keys = take_floats(memory, l->tokens_capacity, l->heads_width),
        .values = take_floats(memory, l->tokens_capacity, l->heads_width),
    };
}

static embedding_rows carve_embedding_rows(const learner *l, arena *memory)
{
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t rows = l->tokens_capacity, convolved = config->convolution_width ? rows : 0;
    return (embedding_rows){
        .embedded = take_floats(memory, rows, s->hidden_stride),
        .narrow = take_floats(memory, config->embedding_size == config->hidden_size ? 0 : rows, s->normed_stride),
        .convolution = take_floats(memory, convolved, s->hidden_stride),
        .convolution_sum = take_floats(memory, convolved, s->hidden_stride),
    };
}

static void carve_pairs(learner *l, arena *memory, const embedding_rows *rows)
{
    step_memory *m = &l->memory;
    const size_t layers = l->model->config.layers, stride = l->session->hidden_stride;
    layer_record record;
    pair_memory *pairs = &m->pairs;
    *pairs = (pair_memory){.layers = m->records, .rows = *rows, .joined_rows = carve_embedding_rows(l, memory)};
    for (size_t half = 0; half < PAIR_HALVES; half++) {
        pairs->half_layers[half] = arena_take(memory, layers, sizeof *pairs->half_layers[half]);
        pairs->hidden[half] = take_floats(memory, ceiling_divide(l->tokens_capacity, PAIR_HALVES), stride);
    }
    pairs->joined_layers = arena_take(memory, layers, sizeof *pairs->joined_layers);
    carve_record(l, memory, &record, NULL, l->tokens_capacity);
    record.input = take_floats(memory, l->tokens_capacity, stride);
    for (record.layer = 0; pairs->joined_layers && record.layer < layers; record.layer++)
        pairs->joined_layers[record.layer] = record;
}

static void carve_records(learner *l, arena *memory)
{
    step_memory *m = &l->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t rows = l->tokens_capacity;
    m->records = arena_take(memory, config->layers, sizeof *m->records);
    layer_record record = {0};
    float *normed = l->norms_again ? take_floats(memory, rows, s->normed_stride) : NULL;
    for (size_t i = 0; i < config->layers; i++) {
        /* The first layer's output goes through the convolution. */
        const bool has_input = !l->norms_again || i == 0 || (i == 1 && config->convolution_width > 0);
        const bool only_keys = l->norms_again && l->options.decodes && i + 1 == config->layers;
        if (only_keys)
            carve_keys(l, memory, &record);
        else if (i == 0 || !l->options.asked.recompute)
            carve_record(l, memory, &record, NULL, rows);
        record.layer = i;
        record.input = has_input && !only_keys ? take_floats(memory, rows, s->hidden_stride) : NULL;
        if (l->norms_again) record.normed = normed;
        record.exponentials = i < l->kept_layers ? take_floats(memory, exponentials_floats(l), 1) : NULL;
        record.exponentials_stride = l->exponentials_stride;
        if (m->records) m->records[i] = record;
    }
    const embedding_rows kept = carve_embedding_rows(l, memory);
    m->forward = (forward_record){
        .layers = m->records,
        .decoder = m->decoder_records,
        .decoder_only = l->options.decodes,
        .embedded = kept.embedded,
        .narrow = kept.narrow,
        .convolution = kept.convolution,
        .convolution_sum = kept.convolution_sum,
    };
    if (l->options.pairs_up) carve_pairs(l, memory, &kept);
}

/* Takes scores in the layout of position_strips_skew. */
static float *take_scores(const learner *l, arena *memory)
{
    float *scores = take_floats(memory, 2 * PANEL + QUERY_BLOCK * l->scores_stride, 1);
    return scores ? scores + PANEL : NULL;
}

static void carve_attention(learner *l, arena *memory, attention_scratch *w)
{
    const deberta_session *s = l->session;
    const deberta_model *model = l->model;
    const size_t n = round_up(l->tokens_capacity, PANEL), d = model->head_size, tile = s->kernels.tile_panels;
    const size_t reached = QUERY_BLOCK + tile * PANEL, rows = model->relative_rows;
    const size_t table = rows * model->padded_head,
                 transposed_rows = s->positions.unit_steps ? minimum(rows, reached) : rows;
    *w = (attention_scratch){
        .forward = {.strip = take_floats(memory, QUERY_BLOCK, s->strip_stride),
                    .transposed = take_floats(memory, tile * transposed_rows, PANEL),
                    .bias = take_floats(memory, tile * QUERY_BLOCK, PANEL),
                    .logits = take_floats(memory, QUERY_BLOCK, l->scores_stride)},
        .gradients = take_scores(l, memory),
        .strip = take_floats(memory, KEY_CHUNK, l->fold_stride),
        .delta = take_floats(memory, QUERY_BLOCK, 1),
        .packed_keys = take_floats(memory, n, d),
        .far_p2c = take_floats(memory, n, FAR_SIDES),
        .packed_values = take_floats(memory, n, d),
        .key_columns = take_floats(memory, n, model->padded_head),
        .table_keys = take_floats(memory, table, 1),
        .table_queries = take_floats(memory, table, 1),
    };
}

static void carve_pass(const learner *l, arena *memory, layer_pass *pass, size_t rows)
{
    const deberta_session *s = l->session;
    *pass = (layer_pass){
        .d_output_sum = take_floats(memory, rows, s->normed_stride),
        .d_attention_sum = take_floats(memory, rows, s->normed_stride),
        .d_normed = take_floats(memory, rows, s->normed_stride),
        .dropped = {take_floats(memory, l->options.drops ? rows : 0, s->normed_stride),
                    take_floats(memory, l->options.drops ? rows : 0, s->normed_stride)},
        .d_inner = take_floats(memory, rows, s->inner_stride),
        .d_context = take_floats(memory, rows, s->context_stride),
    };
}

/* Returns the floats for some words as rows and as panels, or for one panel of many words; and for rows of a chunk of
 * words where no parameters hold them. */
static size_t vocabulary_floats(const learner *l)
{
    const size_t width = l->model->config.embedding_size, words = 2 * VOCABULARY_WORDS * round_up(width, PANEL);
    const size_t read = l->own_model ? 0 : VOCABULARY_CHUNK * width;
    return maximum(words, VOCABULARY_PANELS * VOCABULARY_CHUNK * PANEL) + LINEAR_MAX_ROWS * PANEL + read;
}

/* Returns the width of the widest row of a layer, so that rows of any kind can be gathered. */
static size_t widest_row(const learner *l)
{
    const deberta_session *s = l->session;
    const size_t inside = maximum(s->inner_stride, row_stride(l->heads_width));
    return maximum(inside, maximum(s->context_stride, maximum(s->normed_stride, s->hidden_stride)));
}

/* Carves the memory of the decoder's passes for `rows` rows, besides the first pass of ordinary layers. */
static void carve_decoder(const learner *l, step_memory *m, arena *memory, size_t rows)
{
    const deberta_session *s = l->session;
    const size_t last = l->model->config.layers - 1;
    const layer_record none = {0}, *layers = l->options.pairs_up ? m->pairs.layers : m->records;
    const layer_record *layer = layers ? &layers[last] : &none;
    for (size_t pass = 0; pass < DECODER_PASSES; pass++) {
        layer_record *record = &m->decoder_records[pass];
        carve_record(l, memory, record, layer, rows);
        record->layer = last;
        record->pass = pass;
        record->input = take_floats(memory, rows, s->hidden_stride);
    }
    carve_pass(l, memory, &m->passes[1], rows);
    m->passes[1].d_output = take_floats(memory, rows, s->hidden_stride);
    for (size_t i = 0; i < DECODER_PASSES; i++)
        m->passes[i].d_queries = take_floats(memory, rows, row_stride(l->heads_width));
    for (size_t i = 0; i < sizeof m->gathered / sizeof *m->gathered; i++)
        m->gathered[i] = take_floats(memory, DECODER_PASSES * rows, widest_row(l));
}

static void carve_gradients(learner *l, arena *memory)
{
    step_memory *m = &l->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t rows = l->tokens_capacity, table_rows = l->model->relative_rows;
    m->carried.output = take_floats(memory, rows, s->hidden_stride);
    m->carried.input = take_floats(memory, rows, s->hidden_stride);
    m->d_first = take_floats(memory, rows, s->hidden_stride);
    m->d_qkv = take_floats(memory, rows, l->qkv_stride);
    for (size_t i = 0; i < sizeof m->head_rows / sizeof *m->head_rows; i++)
        m->head_rows[i] = take_floats(memory, rows, s->normed_stride);
    carve_pass(l, memory, &m->passes[0], rows);
    m->vocabulary_stride = vocabulary_floats(l);
    m->vocabulary = take_floats(memory, l->options.asked.threads, m->vocabulary_stride);
    m->columns =
        take_floats(memory, config->convolution_width ? rows : 0, config->convolution_width * s->hidden_stride);
    m->table_parts = take_floats(memory, 2 * l->options.asked.shards * table_rows, l->heads_width);
    m->table_columns = take_floats(memory, maximum(l->options.position_tables, 1) * 2 * table_rows, l->heads_width);
    m->d_table = take_floats(memory, table_rows, s->hidden_stride);
    m->table_work = take_floats(memory, table_rows, s->hidden_stride);
    m->table_normal = take_floats(memory, table_rows, s->hidden_stride);
    m->second_weight = take_floats(memory, table_rows ? l->heads_width : 0, s->hidden_stride);
    m->second_vector = take_floats(memory, l->heads_width, 1);
    m->dropout_tokens = arena_take(memory, l->options.drops ? rows : 0, sizeof *m->dropout_tokens);
    m->dropped_table = take_floats(memory, l->options.drops ? table_rows : 0, l->model->hidden_stride);
    m->dropped_reversed = take_floats(memory, l->options.drops ? table_rows : 0, l->model->hidden_stride);
    m->fold_workspace = take_floats(memory, l->options.drops ? table_rows : 0, l->heads_width);
    m->runs = arena_take(memory, rows, sizeof *m->runs);
}

static void learner_carve(learner *l, arena *memory)
{
    step_memory *m = &l->memory;
    l->largest = learner_transposed_carve(l, memory);
    m->weight = take_floats(memory, l->largest.weight_floats, 1);
    m->vector = take_floats(memory, l->largest.vector_floats, 1);
    carve_records(l, memory);
    carve_gradients(l, memory);
    m->group_starts = arena_take(memory, l->tokens_capacity + 1, sizeof *m->group_starts);
    m->positions = arena_take(memory, l->tokens_capacity, sizeof *m->positions);
    m->wanted = arena_take(memory, l->tokens_capacity, sizeof *m->wanted);
    m->losses = arena_take(memory, l->tokens_capacity, sizeof *m->losses);
    m->order = arena_take(memory, l->tokens_capacity, sizeof *m->order);
    m->row_ids = arena_take(memory, l->tokens_capacity, sizeof *m->row_ids);
    m->workers = arena_take(memory, l->options.asked.threads, sizeof *m->workers);
    for (size_t i = 0; i < l->options.asked.threads; i++) {
        attention_scratch measured;
        carve_attention(l, memory, m->workers ? &m->workers[i] : &measured);
    }
}

/* ------------------------------------------------------------------------------------------- sums of groups of shards */

static size_t table_floats(const learner *l)
{
    return l->model->config.layers * POSITION_TABLES * l->model->relative_rows * l->heads_width;
}

/* The word table gets gradients from the decoder and from look-ups, each in a separate tree. */
static size_t looked_up_floats(const learner *l)
{
    const parameter *words = parameter_find(&l->set, shared_tables[0]);
    const bool is_tied =
        l->options.predicts_words && words && l->set.items + l->model->tasks.mlm_decoder.stored.index == words;
    return is_tied && l->plan.least < l->plan.shards ? words->count : 0;
}

static size_t weight_floats(const learner *l)
{
    size_t floats = 0;
    for (size_t i = 0; i < l->set.count; i++) floats += l->set.items[i].count;
    return floats;
}

static deberta_status open_sums(learner *l, deberta_error *err)
{
    step_memory *m = &l->memory;
    const size_t tables = table_floats(l), words = looked_up_floats(l);
    size_t count = 0;
    gradient_place *places = calloc(l->set.count + 2, sizeof *places);
    m->tree.places = places;
    m->table_sums = large_floats(tables);
    m->looked_up = words ? large_floats(words) : NULL;
    if (!places || !m->table_sums || (words && !m->looked_up))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the gradients of a step");
    for (size_t i = 0; i < l->set.count; i++)
        places[count++] = (gradient_place){&l->set.items[i].gradient, l->set.items[i].count};
    if (tables) places[count++] = (gradient_place){&m->table_sums, tables};
    if (words) places[count++] = (gradient_place){&m->looked_up, words};
    return gradient_tree_open(&m->tree, places, count, l->plan.own.count, l->plan.least, err);
}

size_t learner_sum_bytes(const learner *l)
{
    const size_t others = table_floats(l) + looked_up_floats(l);
    return others * sizeof(float) + gradient_tree_bytes(l->plan.own.count, l->plan.least, weight_floats(l) + others);
}

size_t learner_bytes(const learner *l)
{
    const size_t arrays = l->options.asked.steps > 0 ? 4 : 2; /* values and gradients; two moments */
    return arrays * weight_floats(l) * sizeof(float) + learner_sum_bytes(l) +
           deberta_model_describe(l->model)->memory_bytes + deberta_session_memory_bytes(l->session) +
           l->memory.arena.capacity_bytes + l->memory.decoder_arena.capacity_bytes;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static void settle_shapes(learner *l)
{
    const deberta_model *model = l->model;
    /* Queries of the decoder may come from anywhere in a sequence. */
    const size_t rows = model->relative_rows;
    const size_t reach = KEY_CHUNK + (l->options.decodes ? l->session->max_tokens : QUERY_BLOCK);
    l->options.asked.threads = deberta_session_threads(l->session);
    l->tokens_capacity = l->session->max_tokens;
    l->norms_again = !l->options.asked.recompute && !l->options.pairs_up;
    l->exponentials_stride = row_stride(round_up(minimum(l->options.longest, KEY_CHUNK), PANEL));
    l->scores_stride = row_stride(minimum(round_up(l->session->max_tokens, PANEL), KEY_CHUNK) + PANEL);
    l->heads_width = model->config.heads * model->padded_head;
    l->qkv_stride = row_stride(3 * l->heads_width);
    l->fold_stride = row_stride(l->session->positions.unit_steps ? minimum(rows, reach) : rows);
}

/* Counts the layers that keep exponentials: none where layers are recomputed, or half of a step waits for the other. */
static size_t layers_that_keep(const learner *l, size_t bytes)
{
    const size_t limit = l->options.memory_limit_bytes, longest = l->options.longest;
    const size_t each = exponentials_floats(l) * sizeof(float) + ARENA_ALIGNMENT_BYTES;
    const size_t room = limit ? minimum(bytes / KEPT_SHARE, limit - bytes) : bytes / KEPT_SHARE;
    const bool keeps = longest > 0 && longest <= KEY_CHUNK && !l->options.asked.recompute && !l->options.pairs_up;
    return keeps ? minimum(room / each, l->model->config.layers - (l->options.decodes ? 1 : 0)) : 0;
}

/* Refuses a step of so many tokens of a kind if `bytes`, all that training then needs, exceed the limit. */
static deberta_status check_limit(const learner *l, size_t bytes, size_t tokens, const char *kind, deberta_error *err)
{
    const size_t limit = l->options.memory_limit_bytes;
    if (limit == 0 || bytes <= limit) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "training %s with steps of %zu %stokens needs %s, but the limit is %s",
                 l->set.name, tokens, kind, bytes_describe(bytes).text, bytes_describe(limit).text);
}

/* Refuses a limit that is too low before the largest part is allocated, and plans which exponentials are kept to save
 * time. */
static deberta_status plan_memory(learner *l, deberta_error *err)
{
    size_t bytes = 0, decoder_bytes = 0;
    DEBERTA_TRY(arena_predict(&l->memory.arena, "training", 0, &bytes, err));
    DEBERTA_TRY(arena_predict(&l->memory.decoder_arena, "the decoder", 0, &decoder_bytes, err));
    bytes += decoder_bytes + learner_bytes(l);
    DEBERTA_TRY(check_limit(l, bytes, l->options.max_tokens, "", err));
    l->kept_layers = layers_that_keep(l, bytes);
    return DEBERTA_OK;
}

deberta_status learner_decoder_reserve(const learner *l, step_memory *m, size_t rows, deberta_error *err)
{
    size_t bytes = 0;
    if (rows <= m->decoder_rows) return DEBERTA_OK;
    arena_release(&m->decoder_arena);
    m->decoder_rows = 0;
    carve_decoder(l, m, &m->decoder_arena, rows);
    DEBERTA_TRY(arena_predict(&m->decoder_arena, "the decoder", 0, &bytes, err));
    DEBERTA_TRY(check_limit(l, bytes + learner_bytes(l), rows, "labelled ", err));
    DEBERTA_TRY(arena_allocate(&m->decoder_arena, "the decoder", 0, err));
    carve_decoder(l, m, &m->decoder_arena, rows);
    m->decoder_rows = rows;
    return DEBERTA_OK;
}

deberta_status learner_memory_open(learner *l, deberta_error *err)
{
    step_memory *m = &l->memory;
    const size_t rows = ceiling_divide(l->session->max_tokens, USUAL_TOKENS_PER_LABEL);
    settle_shapes(l);
    learner_carve(l, &m->arena);
    if (l->options.decodes) carve_decoder(l, m, &m->decoder_arena, rows);
    DEBERTA_TRY(plan_memory(l, err));
    arena_release(&m->arena);
    learner_carve(l, &m->arena);
    DEBERTA_TRY(arena_allocate(&m->arena, "training", 0, err));
    learner_carve(l, &m->arena);
    if (l->options.decodes) DEBERTA_TRY(learner_decoder_reserve(l, m, rows, err));
    return open_sums(l, err);
}

void learner_memory_free(learner *l)
{
    step_memory *m = &l->memory;
    arena_release(&m->arena);
    arena_release(&m->decoder_arena);
    free(m->logits);
    gradient_tree_free(&m->tree);
    free(m->table_sums);
    free(m->looked_up);
}
