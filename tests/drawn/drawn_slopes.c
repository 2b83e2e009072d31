/* Moves a tensor along its direction through a source of weights; central differences of the loss give the slope.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/drawn_slopes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/scope.h"
#include "tests/drawn/exact_loss.h"

/* Steps of a difference: the loss's curvature and rounding in float64 leave some 1e-8 of the slope. */
static const double step_size = 1e-5, nearer_step = 1e-7;

/* The weights of a model of the trainer, a tensor of this model or of the other moved along its direction. */
typedef struct moved_weights {
    const drawn_case *drawn;
    const parameter_set *set;
    const parameter *moved, *follows[SHARED_TABLES]; /* whose direction the shared tables go along with */
    double step;
    int32_t padding; /* a look-up of this row of the word table sees it unmoved: it learns nothing from look-ups */
} moved_weights;

typedef struct exact_side {
    moved_weights weights;
    exact_step *step;
    double weight; /* of its loss */
    const model_config *config;
    bool is_there;
} exact_side;

typedef enum which_model { MODEL, GENERATOR, MODELS } which_model;

typedef struct exact_case {
    exact_side sides[MODELS];
    deberta_reference reference;
} exact_case;

static double direction_of(const drawn_case *drawn, const parameter *tensor, size_t element)
{
    uint64_t state = drawn->seed * 0x9E3779B1u + drawn->number + ((uint64_t)element << 32);
    for (const char *name = tensor->name; *name; name++) state = state * 31 + (unsigned char)*name;
    return random_next(&state) >> 63 ? 1 : -1;
}

/* -------------------------------------------------------------------------------------------------------------- source */

static bool find_moved(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    const moved_weights *w = context;
    const parameter *p = parameter_find(w->set, name);
    if (!p) return false;
    *rank = p->rank;
    memcpy(shape, p->shape, sizeof p->shape);
    return true;
}

static bool is_moved(const moved_weights *w, const parameter *p)
{
    if (!w->moved) return false;
    for (size_t which = 0; which < SHARED_TABLES; which++)
        if (w->follows[which] == w->moved && strcmp(p->name, shared_tables[which]) == 0) return true;
    return p == w->moved;
}

static deberta_status read_moved(void *context, const char *name, size_t first, size_t count, double *values,
                                 deberta_error *err)
{
    const moved_weights *w = context;
    const parameter *p = parameter_find(w->set, name);
    const size_t width = p->rank > 1 ? p->shape[1] : 0;
    const bool is_looked_up =
        strcmp(name, shared_tables[0]) == 0 && count == width && first == (size_t)w->padding * width;
    (void)err;
    for (size_t e = 0; e < count; e++) values[e] = (double)p->values[first + e];
    if (!is_moved(w, p) || is_looked_up) return DEBERTA_OK;
    for (size_t e = 0; e < count; e++) values[e] += w->step * direction_of(w->drawn, w->moved, first + e);
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------------- sides */

static deberta_status model_of(exact_side *side, deberta_reference reference, reference_model **model,
                               deberta_error *err)
{
    const reference_source source = {&side->weights, find_moved, read_moved};
    return reference_create(model, side->config, source, reference, err);
}

static deberta_status begin_side(exact_side *side, const exact_batch *batch, deberta_reference reference,
                                 deberta_error *err)
{
    reference_model *model = NULL;
    DEBERTA_TRY(model_of(side, reference, &model, err));
    const deberta_status status = exact_step_begin(&side->step, batch, model, err);
    reference_free(&model);
    return status;
}

/* The sum of the losses with one tensor moved. */
static deberta_status loss_with(exact_case *exact, const parameter *moved, double step, double *loss,
                                deberta_error *err)
{
    *loss = 0;
    for (size_t i = 0; i < MODELS; i++) {
        exact_side *side = &exact->sides[i];
        reference_model *model = NULL;
        double own;
        if (!side->is_there) continue;
        side->weights.moved = moved;
        side->weights.step = step;
        DEBERTA_TRY(model_of(side, exact->reference, &model, err));
        const deberta_status status = exact_step_loss(side->step, model, &own, err);
        reference_free(&model);
        DEBERTA_TRY(status);
        *loss += side->weight * own;
    }
    return DEBERTA_OK;
}

static deberta_status slope_over(exact_case *exact, const parameter *moved, double step, double *slope,
                                 deberta_error *err)
{
    double losses[2];
    for (int side = 0; side < 2; side++) DEBERTA_TRY(loss_with(exact, moved, side ? -step : step, &losses[side], err));
    *slope = (losses[0] - losses[1]) / (2 * step);
    return DEBERTA_OK;
}

static deberta_status terms_over(exact_case *exact, const parameter *moved, double step, double *terms,
                                 deberta_error *err)
{
    exact_side *side = &exact->sides[MODEL];
    reference_model *models[2] = {0};
    deberta_status status = DEBERTA_OK;
    side->weights.moved = moved;
    moved_weights both[2] = {side->weights, side->weights};
    for (int k = 0; status == DEBERTA_OK && k < 2; k++) {
        both[k].step = k ? -step : step;
        const reference_source source = {&both[k], find_moved, read_moved};
        status = reference_create(&models[k], side->config, source, exact->reference, err);
    }
    if (status == DEBERTA_OK) status = exact_step_terms(side->step, (const reference_model *const *)models, terms, err);
    *terms /= 2 * step;
    for (int k = 0; k < 2; k++) reference_free(&models[k]);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------- case */

static void settle_sides(exact_case *exact, const drawn_case *drawn, const deberta_trainer *t)
{
    const training_pair *pair = &t->pair;
    exact_side *model = &exact->sides[MODEL], *generator = &exact->sides[GENERATOR];
    exact->reference = drawn->options.reference;
    *model = (exact_side){.weights = {.drawn = drawn,
                                      .set = &pair->discriminator.learner->set,
                                      .padding = drawn->model.config.pad_token_id},
                          .config = &drawn->model.config,
                          .weight = drawn->task->task == DEBERTA_TRAIN_RTD ? drawn->options.rtd_weight : 1,
                          .is_there = true};
    if (!drawn->task->pairs_up) return;
    *generator = (exact_side){.weights = {.drawn = drawn,
                                          .set = &pair->generator.learner->set,
                                          .padding = drawn->generator.config.pad_token_id},
                              .config = &drawn->generator.config,
                              .weight = 1,
                              .is_there = true};
    for (size_t which = 0; which < SHARED_TABLES; which++) {
        if (drawn->options.sharing == DEBERTA_SHARING_GDES)
            model->weights.follows[which] = parameter_find(model->weights.set, shared_differences[which]);
        if (drawn->options.sharing == DEBERTA_SHARING_ES)
            model->weights.follows[which] = parameter_find(generator->weights.set, shared_tables[which]);
    }
}

/* Products of a loss, counting for something the reading of weights and each sequence. */
static double work_of(const drawn_case *drawn, const model_config *c, size_t floats)
{
    const double h = (double)c->hidden_size, f = (double)c->intermediate_size, n = (double)drawn->tokens;
    const double words = drawn->task->exact <= EXACT_WORDS_DECODED || drawn->task->pairs_up
                             ? (double)(c->vocabulary_size * c->embedding_size)
                             : 0;
    const double squares = n * (double)drawn->longest * 4 * h;
    const double convolution = (double)(c->convolution_width * c->hidden_size * c->hidden_size);
    return (double)c->layers * (n * (4 * h * h + 2 * h * f) + squares) + n * (words + convolution) +
           (double)drawn->batch.sequences * (2 * (double)floats + 20000);
}

/* So that a case takes a tenth of a second or so. */
static size_t stride_of(const drawn_case *drawn, size_t tensors)
{
    enum { SIDES_OF_A_DIFFERENCE = 2 };
    static const double most_work = 1.2e8;
    size_t floats = 0;
    for (size_t i = 0; i < drawn->model.count; i++) floats += drawn->model.tensors[i].count;
    double work = work_of(drawn, &drawn->model.config, floats);
    if (drawn->batch.sift_weight > 0) work *= 2;
    if (drawn->task->pairs_up) work *= 2;
    return 1 + (size_t)((double)tensors * SIDES_OF_A_DIFFERENCE * work / most_work);
}

static deberta_status find_slopes(drawn_slopes *slopes, exact_case *exact, const drawn_case *drawn, deberta_error *err)
{
    size_t all = 0, passed = 0;
    for (size_t i = 0; i < MODELS; i++) all += exact->sides[i].is_there ? exact->sides[i].weights.set->count : 0;
    slopes->items = memory_take(all, sizeof *slopes->items);
    const size_t stride = stride_of(drawn, all);
    for (size_t i = 0; i < MODELS; i++) {
        const parameter_set *set = exact->sides[i].weights.set;
        for (size_t k = 0; exact->sides[i].is_there && k < set->count; k++) {
            const parameter *tensor = &set->items[k];
            if (!tensor->trained || (passed++ + drawn->number) % stride) continue;
            drawn_slope slope = {.tensor = tensor, .set = set};
            DEBERTA_TRY(slope_over(exact, tensor, step_size, &slope.slope, err));
            DEBERTA_TRY(slope_over(exact, tensor, nearer_step, &slope.nearer, err));
            if (drawn->batch.choices > 1) DEBERTA_TRY(terms_over(exact, tensor, step_size, &slope.terms, err));
            slopes->items[slopes->count++] = slope;
        }
    }
    return DEBERTA_OK;
}

deberta_status drawn_slopes_find(drawn_slopes *slopes, const drawn_case *drawn, const deberta_trainer *trainer,
                                 deberta_error *err)
{
    exact_case exact = {0};
    deberta_status status = DEBERTA_OK;
    *slopes = (drawn_slopes){0};
    settle_sides(&exact, drawn, trainer);
    for (size_t i = 0; status == DEBERTA_OK && i < MODELS; i++) {
        exact_side *side = &exact.sides[i];
        if (!side->is_there) continue;
        status = begin_side(side, i == GENERATOR ? &drawn->generator_batch : &drawn->batch, exact.reference, err);
        if (status == DEBERTA_OK) slopes->loss += side->weight * exact_step_value(side->step);
    }
    if (status == DEBERTA_OK) status = find_slopes(slopes, &exact, drawn, err);
    for (size_t i = 0; i < MODELS; i++) exact_step_free(&exact.sides[i].step);
    if (status != DEBERTA_OK) drawn_slopes_free(slopes);
    return status;
}

double drawn_norm_of_all(const parameter_set *set)
{
    double squares = 0;
    for (size_t i = 0; i < set->count; i++)
        for (size_t e = 0; set->items[i].trained && e < set->items[i].count; e++)
            squares += (double)set->items[i].gradient[e] * (double)set->items[i].gradient[e];
    return sqrt(squares);
}

double drawn_slope_of(const drawn_case *drawn, const parameter *tensor, double *norm)
{
    double slope = 0, squares = 0;
    for (size_t e = 0; e < tensor->count; e++) {
        const double g = (double)tensor->gradient[e];
        slope += g * direction_of(drawn, tensor, e);
        squares += g * g;
    }
    *norm = sqrt(squares);
    return slope;
}

void drawn_slopes_free(drawn_slopes *slopes)
{
    free(slopes->items);
    *slopes = (drawn_slopes){0};
}
