/* Steps in float64, with and without SiFT (docs/training.md): the clean pass, the ascent by central differences, the
 * moved pass. SPDX-License-Identifier: MIT */
#include "tests/drawn/exact_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reference/reference_math.h"
#include "output/scope.h"

static const double norm_epsilon = 1e-7, smallest = 1e-6, difference = 1e-4;

/* Rows that are compared: of sequences, of tokens that are no holes, or of questions with their choices. */
typedef struct pair_rows {
    size_t count, width;
    double *values; /* [count][width] */
} pair_rows;

struct exact_step {
    scope memory;
    exact_batch cut;          /* the caller's, without padding before its sequences */
    const exact_batch *batch; /* cut */
    double value;
    double **moved_embedded; /* [sequences] of [n][h]: normalised at the first weights, and moved. NULL: no SiFT */
    pair_rows clean, moved;  /* probabilities at the first weights; of one output logits */
};

/* --------------------------------------------------------------------------------------------------------- padding */

/* Holes before the first token that is none. */
static size_t holes_before(const exact_batch *batch, size_t sequence)
{
    size_t first = 0;
    while (first < batch->columns && !batch->mask[sequence * batch->columns + first]) first++;
    return first;
}

/* A copy of rows of `columns` items, each moved to the left by the holes before its sequence. */
static void *moved_left(scope *memory, const exact_batch *batch, const void *rows, size_t item_bytes)
{
    const size_t row_bytes = batch->columns * item_bytes;
    char *copy = scope_take(memory, batch->sequences, row_bytes);
    for (size_t i = 0; i < batch->sequences; i++) {
        const size_t cut_bytes = holes_before(batch, i) * item_bytes;
        memcpy(copy + i * row_bytes, (const char *)rows + i * row_bytes + cut_bytes, row_bytes - cut_bytes);
    }
    return copy;
}

static int64_t *places_moved_left(scope *memory, const exact_batch *batch, const int64_t *places)
{
    int64_t *copy = scope_take(memory, batch->sequences, sizeof *copy);
    for (size_t i = 0; i < batch->sequences; i++)
        copy[i] = places[i] < 0 ? places[i] : places[i] - (int64_t)holes_before(batch, i);
    return copy;
}

static int64_t *columns_of(scope *memory, const exact_batch *batch)
{
    int64_t *columns = scope_take(memory, batch->sequences * batch->columns, sizeof *columns);
    for (size_t at = 0; at < batch->sequences * batch->columns; at++) columns[at] = (int64_t)(at % batch->columns);
    return columns;
}

/* Holes before a sequence are padding (docs/training.md): its first token is the first that is none, and absolute
 * positions go on counting columns. */
static exact_batch without_holes_before(scope *memory, const exact_batch *batch, size_t width)
{
    exact_batch cut = *batch;
    size_t holes = 0;
    for (size_t i = 0; i < batch->sequences; i++) holes += holes_before(batch, i);
    if (!holes) return cut;
    const int64_t *positions = batch->positions ? batch->positions : columns_of(memory, batch);
    cut.positions = moved_left(memory, batch, positions, sizeof *positions);
    cut.ids = moved_left(memory, batch, batch->ids, sizeof *batch->ids);
    if (batch->types) cut.types = moved_left(memory, batch, batch->types, sizeof *batch->types);
    if (exact_labels_tokens(batch->task)) cut.labels = moved_left(memory, batch, batch->labels, sizeof *batch->labels);
    cut.starts = places_moved_left(memory, batch, batch->starts);
    cut.ends = places_moved_left(memory, batch, batch->ends);
    cut.delta = moved_left(memory, batch, batch->delta, width * sizeof *batch->delta);
    cut.mask = moved_left(memory, batch, batch->mask, 1);
    return cut;
}

/* ---------------------------------------------------------------------------------------------------- all sequences */

/* Logits of all sequences. embedded: what enters the first norm, NULL: the tables' rows as they are. */
static deberta_status all_logits(scope *memory, const exact_batch *batch, const reference_model *model,
                                 double *const *embedded, double ***logits, deberta_error *err)
{
    const size_t width = exact_width(batch, model);
    double **list = *logits = scope_take(memory, batch->sequences, sizeof *list);
    for (size_t i = 0; i < batch->sequences; i++) {
        reference_input input = exact_input(batch, i);
        if (embedded) input.embedded = embedded[i];
        list[i] = scope_take(memory, input.tokens * width, sizeof **list);
        DEBERTA_TRY(exact_logits(batch, model, &input, list[i], err));
    }
    return DEBERTA_OK;
}

/* z of every sequence: what enters the first norm in SiFT. */
static deberta_status all_embedded(scope *memory, const exact_batch *batch, const reference_model *model,
                                   double ***embedded, deberta_error *err)
{
    const size_t h = model->config.hidden_size;
    double *plain = scope_take(memory, 2 * h, sizeof *plain),
           **list = *embedded = scope_take(memory, batch->sequences, sizeof *list);
    for (size_t e = 0; e < h; e++) plain[e] = 1;
    for (size_t i = 0; i < batch->sequences; i++) {
        const reference_input input = exact_input(batch, i);
        list[i] = scope_take(memory, input.tokens * h, sizeof **list);
        DEBERTA_TRY(reference_embedded(model, &input, list[i], err));
        if (!batch->moves_raw) reference_layer_norm(list[i], list[i], input.tokens, h, plain, plain + h, norm_epsilon);
    }
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------------- pairs */

/* Calls for every logit of a sequence that belongs to a row: which row and column it is. row: the sequence's first. */
typedef void on_logit(void *context, size_t row, size_t column, size_t logit);

static size_t each_logit(const exact_batch *batch, size_t sequence, size_t row, size_t width, on_logit *visit,
                         void *context)
{
    const uint8_t *mask = batch->mask + sequence * batch->columns;
    if (batch->task == EXACT_CHOICES) {
        visit(context, sequence / batch->choices, sequence % batch->choices, 0);
        return row;
    }
    const size_t tokens = batch->task == EXACT_TOKENS ? exact_length(batch, sequence) : 1;
    for (size_t t = 0; t < tokens; t++) {
        if (batch->task == EXACT_TOKENS && !mask[t]) continue;
        for (size_t k = 0; k < width; k++) visit(context, row, k, t * width + k);
        row++;
    }
    return row;
}

typedef struct gathering {
    pair_rows *rows;
    const double *logits;
} gathering;

static void gather_one(void *context, size_t row, size_t column, size_t logit)
{
    const gathering *g = context;
    g->rows->values[row * g->rows->width + column] = g->logits[logit];
}

static void gather(scope *memory, const exact_batch *batch, size_t width, double *const *logits, pair_rows *rows)
{
    const bool choices = batch->task == EXACT_CHOICES;
    size_t most = choices ? batch->sequences / batch->choices : batch->sequences * batch->columns, row = 0;
    *rows = (pair_rows){.width = choices ? batch->choices : width};
    rows->values = scope_take(memory, most * rows->width, sizeof *rows->values);
    for (size_t i = 0; i < batch->sequences; i++) {
        gathering g = {rows, logits[i]};
        row = each_logit(batch, i, row, width, gather_one, &g);
    }
    rows->count = choices ? most : row;
}

static void to_probabilities(const exact_batch *batch, pair_rows *rows)
{
    for (size_t i = 0; batch->task != EXACT_VALUES && i < rows->count; i++)
        reference_softmax(rows->values + i * rows->width, NULL, rows->width);
}

/* -sum p log q of a row. */
static double entropy_across(const double *p, const double *q_logits, size_t width)
{
    const double total = exact_log_sum(q_logits, width, 1);
    double sum = 0;
    for (size_t k = 0; k < width; k++) sum += p[k] * (total - q_logits[k]);
    return sum;
}

/* The mean over rows of how far clean and moved logits are apart, probabilities being those of the first weights. */
static double mean_distance(const exact_step *step, const pair_rows *clean, const pair_rows *moved)
{
    const size_t width = clean->width;
    double sum = 0;
    for (size_t i = 0; i < clean->count; i++) {
        const double *t = clean->values + i * width, *s = moved->values + i * width;
        if (step->batch->task == EXACT_VALUES)
            sum += (*s - *t) * (*s - *t);
        else
            sum += entropy_across(step->clean.values + i * width, s, width) +
                   entropy_across(step->moved.values + i * width, t, width);
    }
    return sum / (double)clean->count;
}

/* ------------------------------------------------------------------------------------------------------------- ascent */

/* Weights of the moved logits of a sequence: the gradient of the weighted sum is that of the ascent. */
typedef struct weighing {
    const exact_step *step;
    const pair_rows *moved; /* at delta_0: probabilities, or one output */
    const double *logits;
    double sum;
} weighing;

static void weigh_one(void *context, size_t row, size_t column, size_t logit)
{
    weighing *w = context;
    const size_t at = row * w->moved->width + column;
    const double scale = w->step->batch->task == EXACT_VALUES ? 2 : 1;
    w->sum += scale * (w->moved->values[at] - w->step->clean.values[at]) * w->logits[logit];
}

typedef struct ascending {
    const exact_step *step;
    const reference_model *model;
    const pair_rows *moved;
    size_t sequence, row; /* of the sequence's first */
    double *logits;
} ascending;

static deberta_status weighed_logits(const ascending *a, const double *embedded, double *sum, deberta_error *err)
{
    const exact_batch *batch = a->step->batch;
    reference_input input = exact_input(batch, a->sequence);
    weighing w = {.step = a->step, .moved = a->moved, .logits = a->logits};
    input.embedded = embedded;
    DEBERTA_TRY(exact_logits(batch, a->model, &input, a->logits, err));
    each_logit(batch, a->sequence, a->row, exact_width(batch, a->model), weigh_one, &w);
    *sum = w.sum;
    return DEBERTA_OK;
}

/* g [h] of one token by central differences of the embedded rows. */
static deberta_status ascent_gradient(const ascending *a, double *embedded, double *row, double *g, deberta_error *err)
{
    for (size_t e = 0; e < a->model->config.hidden_size; e++) {
        const double kept = row[e];
        double sums[2];
        for (int side = 0; side < 2; side++) {
            row[e] = kept + (side ? -difference : difference);
            DEBERTA_TRY(weighed_logits(a, embedded, &sums[side], err));
        }
        row[e] = kept;
        g[e] = (sums[0] - sums[1]) / (2 * difference);
    }
    return DEBERTA_OK;
}

/* delta = delta_0 + step g / (1e-6 + max |g|), token by token; embedded has delta_0 and gets the rest. */
static deberta_status ascend_sequence(const ascending *a, double *embedded, double *moves, deberta_error *err)
{
    const size_t n = exact_length(a->step->batch, a->sequence), h = a->model->config.hidden_size;
    const uint8_t *mask = a->step->batch->mask + a->sequence * a->step->batch->columns;
    for (size_t t = 0; t < n; t++) {
        double *g = moves + t * h, largest = 0;
        memset(g, 0, h * sizeof *g);
        if (!mask[t]) continue; /* nothing reads a hole */
        DEBERTA_TRY(ascent_gradient(a, embedded, embedded + t * h, g, err));
        for (size_t e = 0; e < h; e++) largest = fmax(largest, fabs(g[e]));
        for (size_t e = 0; e < h; e++) g[e] *= a->step->batch->sift_step / (smallest + largest);
    }
    for (size_t e = 0; e < n * h; e++) embedded[e] += moves[e];
    return DEBERTA_OK;
}

static size_t skip_rows(const exact_batch *batch, size_t sequence, size_t row)
{
    if (batch->task == EXACT_CHOICES) return row;
    if (batch->task != EXACT_TOKENS) return row + 1;
    for (size_t t = 0; t < exact_length(batch, sequence); t++) row += batch->mask[sequence * batch->columns + t];
    return row;
}

static deberta_status ascend(scope *memory, const exact_step *step, const reference_model *model,
                             const pair_rows *moved, deberta_error *err)
{
    const exact_batch *batch = step->batch;
    ascending a = {.step = step, .model = model, .moved = moved};
    double *moves = scope_take(memory, batch->columns * model->config.hidden_size, sizeof *moves);
    a.logits = scope_take(memory, batch->columns * exact_width(batch, model), sizeof *a.logits);
    for (; a.sequence < batch->sequences; a.sequence++) {
        DEBERTA_TRY(ascend_sequence(&a, step->moved_embedded[a.sequence], moves, err));
        a.row = skip_rows(batch, a.sequence, a.row);
    }
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------------- step */

static deberta_status pair_at(scope *memory, const exact_step *step, const reference_model *model,
                              double *const *embedded, pair_rows *rows, double *own, deberta_error *err)
{
    const size_t width = exact_width(step->batch, model);
    double **logits;
    DEBERTA_TRY(all_logits(memory, step->batch, model, embedded, &logits, err));
    if (own) exact_own_loss(step->batch, width, logits, own);
    gather(memory, step->batch, width, logits, rows);
    return DEBERTA_OK;
}

/* Computes logits of the clean rows and their loss, at any weights. */
static deberta_status clean_pair(scope *memory, const exact_step *step, const reference_model *model, pair_rows *rows,
                                 double *own, deberta_error *err)
{
    double **embedded;
    DEBERTA_TRY(all_embedded(memory, step->batch, model, &embedded, err));
    return pair_at(memory, step, model, embedded, rows, own, err);
}

static deberta_status begin_moved(exact_step *step, const reference_model *model, deberta_error *err)
{
    const exact_batch *batch = step->batch;
    const size_t h = model->config.hidden_size;
    pair_rows moved = {0};
    DEBERTA_TRY(all_embedded(&step->memory, batch, model, &step->moved_embedded, err));
    for (size_t i = 0; i < batch->sequences; i++)
        for (size_t e = 0; e < exact_length(batch, i) * h; e++)
            step->moved_embedded[i][e] += (double)batch->delta[i * batch->columns * h + e];
    DEBERTA_TRY(pair_at(&step->memory, step, model, step->moved_embedded, &moved, NULL, err));
    to_probabilities(batch, &moved);
    return ascend(&step->memory, step, model, &moved, err);
}

static deberta_status begin_sift(exact_step *step, const reference_model *model, deberta_error *err)
{
    double own = 0;
    DEBERTA_TRY(clean_pair(&step->memory, step, model, &step->clean, &own, err));
    to_probabilities(step->batch, &step->clean);
    DEBERTA_TRY(begin_moved(step, model, err));
    DEBERTA_TRY(pair_at(&step->memory, step, model, step->moved_embedded, &step->moved, NULL, err));
    to_probabilities(step->batch, &step->moved);
    return DEBERTA_OK;
}

deberta_status exact_step_begin(exact_step **result, const exact_batch *batch, const reference_model *model,
                                deberta_error *err)
{
    exact_step *step = *result = memory_take(1, sizeof *step);
    step->cut = without_holes_before(&step->memory, batch, model->config.hidden_size);
    step->batch = &step->cut;
    deberta_status status = batch->sift_weight > 0 ? begin_sift(step, model, err) : DEBERTA_OK;
    if (status == DEBERTA_OK) status = exact_step_loss(step, model, &step->value, err);
    if (status != DEBERTA_OK) exact_step_free(result);
    return status;
}

double exact_step_value(const exact_step *step) { return step->value; }

static deberta_status loss_in(scope *memory, const exact_step *step, const reference_model *model, double *loss,
                              deberta_error *err)
{
    pair_rows clean = {0}, moved = {0};
    double **logits;
    if (!step->moved_embedded) {
        DEBERTA_TRY(all_logits(memory, step->batch, model, NULL, &logits, err));
        exact_own_loss(step->batch, exact_width(step->batch, model), logits, loss);
        return DEBERTA_OK;
    }
    DEBERTA_TRY(clean_pair(memory, step, model, &clean, loss, err));
    DEBERTA_TRY(pair_at(memory, step, model, step->moved_embedded, &moved, NULL, err));
    *loss += step->batch->sift_weight * mean_distance(step, &clean, &moved);
    return DEBERTA_OK;
}

deberta_status exact_step_loss(const exact_step *step, const reference_model *model, double *loss, deberta_error *err)
{
    scope memory = {0};
    const deberta_status status = loss_in(&memory, step, model, loss, err);
    scope_free(&memory);
    return status;
}

/* One sequence after the other has its logits from the other model. */
static void terms_between(const exact_batch *batch, size_t width, double **logits, double *const *others, double *terms)
{
    double base, mixed;
    exact_own_loss(batch, width, logits, &base);
    for (size_t i = 0; i < batch->sequences; i++) {
        double *const kept = logits[i];
        logits[i] = others[i];
        exact_own_loss(batch, width, logits, &mixed);
        logits[i] = kept;
        *terms += fabs(mixed - base);
    }
}

static deberta_status terms_in(scope *memory, const exact_step *step, const reference_model *const models[2],
                               double *terms, deberta_error *err)
{
    double **logits[2], **embedded = NULL;
    for (int k = 0; k < 2; k++) {
        if (step->moved_embedded) DEBERTA_TRY(all_embedded(memory, step->batch, models[k], &embedded, err));
        DEBERTA_TRY(all_logits(memory, step->batch, models[k], embedded, &logits[k], err));
    }
    terms_between(step->batch, exact_width(step->batch, models[0]), logits[0], logits[1], terms);
    return DEBERTA_OK;
}

deberta_status exact_step_terms(const exact_step *step, const reference_model *const models[2], double *terms,
                                deberta_error *err)
{
    scope memory = {0};
    *terms = 0;
    const deberta_status status = terms_in(&memory, step, models, terms, err);
    scope_free(&memory);
    return status;
}

void exact_step_free(exact_step **place)
{
    if (!*place) return;
    scope_free(&(*place)->memory);
    free(*place);
    *place = NULL;
}
