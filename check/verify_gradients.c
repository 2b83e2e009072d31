/* SPDX-License-Identifier: MIT */
#include "check/verify_gradients.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/random_training.h"
#include "core/base/random.h"
#include "train/learner_open.h"

/* Of a difference: the loss's curvature and rounding in float64 leave some 1e-8 of the slope. */
static const double step_size = 1e-5;
/* A slope is wrong by so much of its tensor's norm, in eps, or of this share of all tensors' norm. */
static const double limit = 300, share_of_all = 0.01;

/* ------------------------------------------------------------------------------------------------------ exact slopes */

/* The learner's weights, one tensor of them moved along its direction. */
typedef struct moved_weights {
    const parameter_set *set;
    const parameter *moved;
    double step;
    uint64_t seed;
    int32_t padding; /* a look-up of this row of the word table sees it unmoved: it learns nothing from look-ups */
} moved_weights;

/* 1 or -1. */
static double direction(uint64_t seed, size_t tensor, size_t element)
{
    uint64_t state = seed + (uint64_t)tensor * 0x10001 + ((uint64_t)element << 32);
    return random_next(&state) >> 63 ? 1 : -1;
}

static bool find_moved(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK])
{
    const moved_weights *w = context;
    const parameter *p = parameter_find(w->set, name);
    if (!p) return false;
    *rank = p->rank;
    memcpy(shape, p->shape, sizeof p->shape);
    return true;
}

static deberta_status read_moved(void *context, const char *name, size_t first, size_t count, double *values,
                                 deberta_error *err)
{
    const moved_weights *w = context;
    const parameter *p = parameter_find(w->set, name);
    const size_t tensor = (size_t)(p - w->set->items), width = p->rank > 1 ? p->shape[1] : 0;
    const bool looks_up =
        strcmp(name, "embeddings.word_embeddings.weight") == 0 && count == width && first == (size_t)w->padding * width;
    (void)err;
    for (size_t e = 0; e < count; e++) {
        values[e] = (double)p->values[first + e];
        if (p == w->moved && !looks_up) values[e] += w->step * direction(w->seed, tensor, first + e);
    }
    return DEBERTA_OK;
}

static deberta_status loss_with(const moved_weights *weights, const learner *l, const random_training *problem,
                                double *loss, deberta_error *err)
{
    const reference_source source = {(void *)weights, find_moved, read_moved};
    reference_model *model = NULL;
    DEBERTA_TRY(reference_create(&model, &l->model->config, source, l->options.reference, err));
    const deberta_status status = exact_loss(loss, model, &problem->texts, err);
    reference_free(&model);
    return status;
}

/* slopes[i]: how the loss changes along the direction of tensor i. */
static deberta_status exact_slopes(const learner *l, const random_training *problem, uint64_t seed, double *slopes,
                                   deberta_error *err)
{
    for (size_t i = 0; i < l->set.count; i++) {
        double losses[2];
        for (int side = 0; side < 2; side++) {
            const moved_weights weights = {.set = &l->set,
                                           .moved = &l->set.items[i],
                                           .step = side ? -step_size : step_size,
                                           .seed = seed,
                                           .padding = RANDOM_PADDING};
            DEBERTA_TRY(loss_with(&weights, l, problem, &losses[side], err));
        }
        slopes[i] = (losses[0] - losses[1]) / (2 * step_size);
    }
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- comparing */

typedef struct gradient_case {
    verify_report *report;
    const random_training *problem;
    const learner *scalar; /* NULL: no bits are compared */
    const double *slopes;
    uint64_t seed;
    size_t number;
} gradient_case;

/* Tensors of the same kind in all layers are one row. */
static const char *kind_of(const char *name, size_t *layer)
{
    static const char prefix[] = "encoder.layer.";
    char *rest;
    *layer = 0;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return name;
    *layer = (size_t)strtoull(name + sizeof prefix - 1, &rest, 10);
    return rest + 1;
}

static deberta_status compare_tensor(const gradient_case *c, const learner *l, size_t tensor, double all,
                                     deberta_error *err)
{
    const parameter *p = &l->set.items[tensor];
    verify_errors errors = {0};
    verify_row row = {.tier = DEBERTA_ISA_SCALAR, .values = p->count, .limit = limit};
    size_t layer;
    double slope = 0, squares = 0;
    deberta_isa_from_name(&row.tier, l->session->kernels.gemm_f32_isa, err);
    snprintf(row.subject, sizeof row.subject, "gradient of %s", kind_of(p->name, &layer));
    for (size_t e = 0; e < p->count; e++) {
        const double g = (double)p->gradient[e];
        slope += g * direction(c->seed, tensor, e);
        squares += g * g;
        row.differing += c->scalar && p->gradient[e] != c->scalar->set.items[tensor].gradient[e];
    }
    verify_errors_add(&errors, slope, c->slopes[tensor], FLT_EPSILON * (sqrt(squares) + share_of_all * all),
                      "configuration %zu, layer %zu", c->number, layer);
    return verify_report_add(c->report, &row, &errors, err);
}

static deberta_status compare_all(const gradient_case *c, learner *l, deberta_error *err)
{
    const double all = parameter_set_norm(&l->set, l->session->executor);
    for (size_t i = 0; i < l->set.count; i++) DEBERTA_TRY(compare_tensor(c, l, i, all, err));
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- tiers */

static deberta_status open_and_step(learner **l, const verify_options *options, const random_training *problem,
                                    deberta_isa tier, const backward_fault *fault, deberta_error *err)
{
    const learner_options opening = {.threads = options->threads,
                                     .max_tokens = problem->batch.tokens,
                                     .parts = DEFAULT_SHARDS,
                                     .isa = tier,
                                     .reference = options->reference,
                                     .decodes = problem->options.decodes};
    step_result result;
    DEBERTA_TRY(learner_open(l, problem->path, &opening, err));
    if (fault) fault->spoil(*l);
    return step_run(*l, &problem->batch, &problem->options, &result, err);
}

/* The scalar tier first: its bits are those that the others must have. */
static deberta_status run_tiers(gradient_case *c, const verify_options *options, const backward_fault *fault,
                                learner *opened[DEBERTA_ISA_COUNT], double **slopes, deberta_error *err)
{
    const deberta_isa first = fault ? deberta_isa_best() : DEBERTA_ISA_SCALAR;
    for (int tier = (int)first; tier < DEBERTA_ISA_COUNT; tier++) {
        if (tier != (int)first && (fault || !options->tiers[tier])) continue;
        DEBERTA_TRY(open_and_step(&opened[tier], options, c->problem, (deberta_isa)tier, fault, err));
        if (tier == (int)first) {
            *slopes = calloc(opened[tier]->set.count, sizeof **slopes);
            if (!*slopes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu slopes", opened[tier]->set.count);
            DEBERTA_TRY(exact_slopes(opened[tier], c->problem, c->seed, *slopes, err));
            c->slopes = *slopes;
            c->scalar = fault ? NULL : opened[tier];
        }
        DEBERTA_TRY(compare_all(c, opened[tier], err));
    }
    return DEBERTA_OK;
}

static deberta_status run_problem(verify_report *report, const verify_options *options, size_t k,
                                  const backward_fault *fault, deberta_error *err)
{
    random_training problem;
    learner *opened[DEBERTA_ISA_COUNT] = {NULL};
    double *slopes = NULL;
    DEBERTA_TRY(random_training_make(&problem, k, options->seed, err));
    gradient_case c = {.report = report, .problem = &problem, .seed = options->seed + k, .number = k};
    const deberta_status status = run_tiers(&c, options, fault, opened, &slopes, err);
    for (int tier = 0; tier < DEBERTA_ISA_COUNT; tier++) learner_free(&opened[tier]);
    free(slopes);
    random_training_free(&problem);
    return status;
}

deberta_status verify_gradients(verify_report *report, const verify_options *options, size_t configurations,
                                const backward_fault *fault, deberta_error *err)
{
    report->of_slopes = true;
    for (size_t k = 0; k < configurations && !(fault && report->failures); k++)
        DEBERTA_TRY(run_problem(report, options, k, fault, err));
    return DEBERTA_OK;
}
