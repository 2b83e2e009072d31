/* Runs the variants of a trace by activation patching, layer by layer. SPDX-License-Identifier: MIT */
#include "analysis/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/load/model.h"

enum { BATCH_TOKENS = 2048, NOISE_ROWS = 64 };

/* Smallest difference of both runs' measures, as a part of the larger one; a smaller one is little more than rounding.
 */
static const double least_difference = 1e-4;

/* A patched place, and the destination of its measure. */
typedef struct trace_place {
    deberta_patch patch;
    bool every_term; /* one patch per term */
    double *to;
} trace_place;

typedef struct trace_work {
    scope memory;
    const trace_options *options;
    trace_report *report;
    deberta_model_info info;
    deberta_session *session;
    bool decodes;     /* whether the answer comes from the Enhanced Mask Decoder, which runs the last layer again */
    size_t n, width;  /* number of tokens, and columns of the logits */
    size_t most;      /* number of sequences of a batch: the one that gives, and variants */
    float *states[2]; /* [L + 1][n][h]: states of the clean and of the corrupted run */
    int32_t *ids, *types;
    size_t *starts, *positions;
    float *logits; /* [most][width] */
    trace_place *places;
    deberta_patch *patches;
    size_t place_count, first_layer, sequences; /* members of the current batch */
    size_t done;
} trace_work;

/* ---------------------------------------------------------------------------------------------------------- answers */

static double measure_of(const trace_work *w, const float *logits)
{
    const trace_answer *answer = &w->report->answer;
    double largest = -INFINITY, sum = 0;
    if (answer->contrast >= 0) return (double)logits[answer->column] - (double)logits[answer->contrast];
    for (size_t k = 0; k < w->width; k++) largest = fmax(largest, (double)logits[k]);
    for (size_t k = 0; k < w->width; k++) sum += exp((double)logits[k] - largest);
    return exp((double)logits[answer->column] - largest) / sum;
}

/* Computes the logits of every sequence's answer into w->logits. */
static deberta_status ask(trace_work *w, deberta_error *err)
{
    const trace_answer *answer = &w->report->answer;
    for (size_t s = 0; s < w->sequences; s++)
        w->positions[s] = answer->task == DEBERTA_TASK_SEQUENCE ? s : s * w->n + answer->position;
    return deberta_task_logits(w->session, answer->task, w->positions, w->sequences, w->logits, w->width, err);
}

static bool has_term(const trace_work *w, deberta_component term)
{
    return term == DEBERTA_C2C || (term == DEBERTA_C2P ? w->info.has_c2p : w->info.has_p2c);
}

/* ------------------------------------------------------------------------------------------------------------ encodes */

static deberta_status encode(trace_work *w, const deberta_interventions *changes, const int32_t *ids,
                             const int32_t *types, deberta_error *err)
{
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = ids,
                                 .sequence_starts = w->starts,
                                 .sequences = w->sequences,
                                 .token_types = types};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_session_intervene(w->session, changes, err));
    return deberta_encode(w->session, &batch, &outputs, err);
}

/* Copies the states of a plain run. */
typedef struct kept_states {
    float *to;
    size_t n, h;
} kept_states;

static deberta_status keep_states(void *context, const deberta_hidden_edit *edit)
{
    const kept_states *kept = context;
    for (size_t t = 0; t < kept->n; t++)
        memcpy(kept->to + (edit->layer * kept->n + t) * kept->h, edit->values + t * edit->stride,
               kept->h * sizeof *kept->to);
    return DEBERTA_OK;
}

static deberta_status run_plain(trace_work *w, bool corrupted, double *found, deberta_error *err)
{
    const trace_options *o = w->options;
    kept_states kept = {w->states[corrupted], w->n, w->info.hidden_size};
    const deberta_interventions changes = {
        .context = &kept, .edit_hidden = keep_states, .word_noise = corrupted ? o->noise : NULL};
    w->sequences = 1;
    DEBERTA_TRY(
        encode(w, &changes, corrupted ? o->corrupted : o->clean, corrupted ? o->corrupted_types : o->clean_types, err));
    DEBERTA_TRY(ask(w, err));
    trace_answer *answer = &w->report->answer;
    if (answer->column < 0) {
        answer->column = 0;
        for (size_t k = 1; k < w->width; k++)
            if (w->logits[k] > w->logits[answer->column]) answer->column = (int64_t)k;
    }
    *found = measure_of(w, w->logits);
    return DEBERTA_OK;
}

/* Writes all rows of H[first_layer]: the sequence that gives, and copies of the other one. */
static deberta_status give_states(void *context, const deberta_hidden_edit *edit)
{
    const trace_work *w = context;
    const bool corrupts = w->options->corrupts;
    const size_t h = w->info.hidden_size, first = w->first_layer * w->n * h;
    if (edit->layer != w->first_layer) return DEBERTA_OK;
    for (size_t t = 0; t < edit->tokens; t++) {
        const float *from = w->states[t < w->n ? corrupts : !corrupts] + first + t % w->n * h;
        memcpy(edit->values + t * edit->stride, from, h * sizeof *from);
    }
    return DEBERTA_OK;
}

static void add_patches(trace_work *w, const trace_place *place, size_t sequence, size_t *count)
{
    deberta_patch patch = place->patch;
    patch.sequence = sequence;
    if (!place->every_term) w->patches[(*count)++] = patch;
    for (patch.term = DEBERTA_C2C; place->every_term && patch.term <= DEBERTA_P2C; patch.term++)
        if (has_term(w, patch.term)) w->patches[(*count)++] = patch;
}

/* Runs the places [first, end) of the current layer as variants of one batch. */
static deberta_status run_variants(trace_work *w, size_t first, size_t end, deberta_error *err)
{
    deberta_interventions changes = {
        .context = w, .edit_hidden = give_states, .patches = w->patches, .first_layer = w->first_layer};
    w->sequences = 1 + end - first;
    for (size_t k = first; k < end; k++) add_patches(w, &w->places[k], 1 + k - first, &changes.patch_count);
    DEBERTA_TRY(encode(w, &changes, w->ids, w->types, err));
    DEBERTA_TRY(ask(w, err));
    for (size_t k = first; k < end; k++) *w->places[k].to = measure_of(w, w->logits + (1 + k - first) * w->width);
    w->done += end - first;
    if (w->options->progress) w->options->progress(w->options->context, w->done, w->report->variants);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- places */

static void add_place(trace_work *w, deberta_patch patch, double *to)
{
    if (w->places) w->places[w->place_count] = (trace_place){.patch = patch, .to = to};
    w->place_count++;
}

static bool has_all(const bool *chosen, size_t count)
{
    bool all = true;
    for (size_t k = 0; k < count; k++) all &= chosen[k];
    return all;
}

/* Patches all heads of all layers at once. */
static void list_together(trace_work *w)
{
    const trace_options *o = w->options;
    deberta_patch patch = {.place = DEBERTA_PATCH_TERM, .layer = DEBERTA_EVERY, .index = DEBERTA_EVERY};
    if (!has_all(o->layers, w->info.layers) || !has_all(o->heads, w->info.heads)) return;
    for (; patch.term <= DEBERTA_P2C && o->parts & TRACE_OF_TERMS; patch.term++)
        if (has_term(w, patch.term)) add_place(w, patch, &w->report->together[patch.term]);
    if (o->parts & TRACE_OF_TERMS) {
        add_place(w, patch, &w->report->together[TOGETHER_TERMS]);
        if (w->places) w->places[w->place_count - 1].every_term = true;
    }
    patch.place = DEBERTA_PATCH_HEAD;
    if (o->parts & TRACE_HEADS) add_place(w, patch, &w->report->together[TOGETHER_HEADS]);
}

/* Lists the places that first act on H[layer], or in the layer above it. Without memory for the list it only counts
 * them. */
static void list_places(trace_work *w, size_t layer)
{
    const trace_options *o = w->options;
    const size_t heads = w->info.heads, layers = w->info.layers;
    const bool states =
        o->parts & TRACE_STATES && layer < w->report->states_end && o->layers[layer < layers ? layer : layers - 1];
    w->place_count = 0;
    if (layer == 0) list_together(w);
    for (size_t t = 0; states && t < w->n; t++)
        add_place(w, (deberta_patch){.place = DEBERTA_PATCH_STATE, .layer = layer, .index = t},
                  w->report->states + layer * w->n + t);
    for (size_t a = 0; layer < layers && o->layers[layer] && a < heads; a++) {
        if (!o->heads[a]) continue;
        if (o->parts & TRACE_HEADS)
            add_place(w, (deberta_patch){.place = DEBERTA_PATCH_HEAD, .layer = layer, .index = a},
                      w->report->heads + layer * heads + a);
        for (deberta_component term = DEBERTA_C2C; term <= DEBERTA_P2C && o->parts & TRACE_OF_TERMS; term++)
            if (has_term(w, term))
                add_place(w, (deberta_patch){.place = DEBERTA_PATCH_TERM, .term = term, .layer = layer, .index = a},
                          w->report->terms + ((size_t)term * layers + layer) * heads + a);
    }
}

/* ------------------------------------------------------------------------------------------------------------ tracing */

static double *take_numbers(scope *memory, size_t count)
{
    double *numbers = scope_take(memory, count, sizeof *numbers);
    for (size_t k = 0; k < count; k++) numbers[k] = NAN;
    return numbers;
}

static deberta_status begin(trace_work *w, deberta_error *err)
{
    const trace_options *o = w->options;
    trace_report *report = w->report;
    const size_t layers = w->info.layers, heads = w->info.heads, states = (layers + 1) * w->n * w->info.hidden_size;
    report->answer = o->answer;
    w->width = deberta_task_width(o->model, o->answer.task);
    w->decodes = o->answer.task == DEBERTA_TASK_MLM_EMD && !w->info.position_biased_input;
    report->states_end = layers + !w->decodes;
    report->states = take_numbers(&report->memory, (layers + 1) * w->n);
    report->heads = take_numbers(&report->memory, layers * heads);
    report->terms = take_numbers(&report->memory, TRACE_TERMS * layers * heads);
    for (size_t k = 0; k < TOGETHER_COUNT; k++) report->together[k] = NAN;
    size_t widest = 0;
    for (size_t layer = 0; layer <= layers; layer++) {
        list_places(w, layer);
        report->variants += w->place_count;
        widest = maximum(widest, w->place_count);
    }
    w->most = 1 + minimum(maximum(BATCH_TOKENS / w->n, 1), maximum(widest, 1));
    deberta_session_options session = o->session;
    session.struct_size = sizeof session;
    session.max_tokens = w->most * w->n;
    session.features |= (o->parts & TRACE_OF_TERMS ? DEBERTA_PATCH_TERMS : 0) |
                        (o->answer.task == DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0);
    DEBERTA_TRY(deberta_session_create_within(&w->session, o->model, &session,
                                              (2 * states + w->most * w->width) * sizeof(float), err));
    for (size_t k = 0; k < 2; k++) w->states[k] = scope_take(&w->memory, states, sizeof(float));
    w->ids = scope_take(&w->memory, w->most * w->n, sizeof *w->ids);
    w->types = o->clean_types ? scope_take(&w->memory, w->most * w->n, sizeof *w->types) : NULL;
    w->starts = scope_take(&w->memory, w->most + 1, sizeof *w->starts);
    w->positions = scope_take(&w->memory, w->most, sizeof *w->positions);
    w->logits = scope_take(&w->memory, w->most * w->width, sizeof *w->logits);
    w->places = scope_take(&w->memory, widest, sizeof *w->places);
    w->patches = scope_take(&w->memory, w->most * TRACE_TERMS, sizeof *w->patches);
    for (size_t s = 0; s <= w->most; s++) w->starts[s] = s * w->n;
    for (size_t t = 0; t < w->most * w->n; t++) {
        const bool clean = t < w->n ? !o->corrupts : o->corrupts;
        w->ids[t] = (clean ? o->clean : o->corrupted)[t % w->n];
        if (w->types) w->types[t] = (clean ? o->clean_types : o->corrupted_types)[t % w->n];
    }
    return DEBERTA_OK;
}

static deberta_status run_all(trace_work *w, deberta_error *err)
{
    trace_report *report = w->report;
    DEBERTA_TRY(begin(w, err));
    DEBERTA_TRY(run_plain(w, false, &report->clean, err));
    DEBERTA_TRY(run_plain(w, true, &report->corrupted, err));
    const double difference = report->clean - report->corrupted;
    if (!(fabs(difference) > least_difference * fmax(fabs(report->clean), fabs(report->corrupted))))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "both texts give nearly the same answer (clean %.6g, corrupted %.6g): there is nothing to trace; "
                     "corrupt something that the answer depends on, or ask for another answer",
                     report->clean, report->corrupted);
    for (w->first_layer = 0; w->first_layer <= w->info.layers; w->first_layer++) {
        list_places(w, w->first_layer);
        for (size_t first = 0; first < w->place_count; first += w->most - 1)
            DEBERTA_TRY(run_variants(w, first, minimum(first + w->most - 1, w->place_count), err));
    }
    return DEBERTA_OK;
}

deberta_status trace_measure(trace_report *report, const trace_options *options, deberta_error *err)
{
    trace_work w = {
        .options = options, .report = report, .info = *deberta_model_describe(options->model), .n = options->tokens};
    *report = (trace_report){0};
    const deberta_status status = run_all(&w, err);
    deberta_session_free(&w.session);
    scope_free(&w.memory);
    return status;
}

double trace_share(const trace_report *report, bool corrupts, double measured)
{
    return (corrupts ? report->clean - measured : measured - report->corrupted) / (report->clean - report->corrupted);
}

/* -------------------------------------------------------------------------------------------------------------- noise */

static deberta_status table_deviation(double *deviation, const deberta_model *model, deberta_error *err)
{
    const size_t words = model->config.vocabulary_size, width = model->config.embedding_size;
    float *rows = memory_take(NOISE_ROWS * width, sizeof *rows);
    double sum = 0, squares = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t first = 0; first < words && status == DEBERTA_OK; first += NOISE_ROWS) {
        const size_t count = minimum(NOISE_ROWS, words - first);
        status = word_table_read(&model->words, &model->source, first, count, rows, err);
        for (size_t k = 0; k < count * width && status == DEBERTA_OK; k++) {
            sum += (double)rows[k];
            squares += (double)rows[k] * (double)rows[k];
        }
    }
    free(rows);
    const double values = (double)words * (double)width, mean = sum / values;
    *deviation = sqrt(fmax(0, squares / values - mean * mean));
    return status;
}

deberta_status trace_noise(float *noise, const deberta_model *model, const bool *marked, size_t tokens, double scale,
                           uint64_t seed, deberta_error *err)
{
    const double whole_turn = 6.283185307179586;
    const size_t width = model->config.embedding_size;
    uint64_t state = seed;
    double deviation;
    DEBERTA_TRY(table_deviation(&deviation, model, err));
    memset(noise, 0, tokens * width * sizeof *noise);
    for (size_t t = 0; t < tokens; t++)
        for (size_t e = 0; marked[t] && e < width; e++) { /* The method is that of Box and Muller. */
            const double radius = sqrt(-2 * log(1 - random_fraction(&state)));
            noise[t * width + e] = (float)(scale * deviation * radius * cos(whole_turn * random_fraction(&state)));
        }
    return DEBERTA_OK;
}
