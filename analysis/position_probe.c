/* Rows of hidden states are added to sums of three parts of the text, from which the straight line is fitted and
 * tested.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/position_probe.h"

#include <stdlib.h>

static const double penalties[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};

/* What on_hidden does with a row: adds it to the sums of a part, or predicts it. */
typedef struct probe_work {
    const position_probe_input *input;
    position_probe *probe;
    ridge_sums *fitted, *chosen_on; /* [layers] */
    ridge_fit *fits;                /* [layers] */
    size_t sequence, first_chosen, first_tested;
} probe_work;

static void test_row(probe_work *work, size_t layer, const float *row, double position)
{
    const ridge_sums *sums = &work->fitted[layer];
    const double error = position - ridge_predict(&work->fits[layer], row);
    const double deviation = position - sums->target_sum / (double)sums->count;
    const size_t at = layer * work->probe->tested + work->sequence - work->first_tested;
    work->probe->errors[at] += error * error;
    work->probe->deviations[at] += deviation * deviation;
}

static deberta_status on_hidden(void *context, const deberta_hidden_block *block)
{
    probe_work *work = context;
    for (size_t i = 1; i + 1 < block->tokens; i++) {
        if (work->sequence >= work->first_tested)
            test_row(work, block->layer, block->values + i * block->stride, (double)i);
        else
            ridge_sums_add(work->sequence < work->first_chosen ? &work->fitted[block->layer]
                                                               : &work->chosen_on[block->layer],
                           block->values + i * block->stride, (double)i);
    }
    return DEBERTA_OK;
}

static deberta_status encode(probe_work *work, size_t first, size_t end, deberta_error *err)
{
    const position_probe_input *input = work->input;
    const deberta_observer observer = {.struct_size = sizeof observer, .context = work, .on_hidden = on_hidden};
    for (work->sequence = first; work->sequence < end; work->sequence++) {
        const deberta_batch batch = {.struct_size = sizeof batch,
                                     .ids = input->ids + work->sequence * input->tokens,
                                     .sequence_starts = (const size_t[]){0, input->tokens},
                                     .sequences = 1,
                                     .observer = &observer};
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        DEBERTA_TRY(deberta_encode(input->session, &batch, &outputs, err));
        if (input->progress) input->progress(input->context, work->sequence + 1);
    }
    return DEBERTA_OK;
}

/* The penalty that predicts the second part best from the first, then one fit on both. */
static deberta_status fit_layer(probe_work *work, size_t layer, deberta_error *err)
{
    ridge_fit *fit = &work->fits[layer];
    double best = 0;
    for (size_t k = 0; k < sizeof penalties / sizeof *penalties; k++) {
        DEBERTA_TRY(ridge_solve(fit, &work->fitted[layer], penalties[k], err));
        const double r2 = ridge_r2(fit, &work->chosen_on[layer]);
        ridge_fit_free(fit);
        if (k > 0 && !(r2 > best)) continue;
        best = r2;
        work->probe->penalties[layer] = penalties[k];
    }
    ridge_sums_merge(&work->fitted[layer], &work->chosen_on[layer]);
    return ridge_solve(fit, &work->fitted[layer], work->probe->penalties[layer], err);
}

static deberta_status create(probe_work *work, deberta_error *err)
{
    position_probe *probe = work->probe;
    const size_t sequences = work->input->sequences;
    work->first_chosen = sequences * 3 / 5;
    work->first_tested = sequences * 4 / 5;
    *probe = (position_probe){.layers = work->input->model->layers + 1, .tested = sequences - work->first_tested};
    probe->errors = calloc(probe->layers * probe->tested, sizeof *probe->errors);
    probe->deviations = calloc(probe->layers * probe->tested, sizeof *probe->deviations);
    probe->penalties = calloc(probe->layers, sizeof *probe->penalties);
    work->fitted = calloc(probe->layers, sizeof *work->fitted);
    work->chosen_on = calloc(probe->layers, sizeof *work->chosen_on);
    work->fits = calloc(probe->layers, sizeof *work->fits);
    if (!probe->errors || !probe->deviations || !probe->penalties || !work->fitted || !work->chosen_on || !work->fits)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the probes of %zu layers", probe->layers);
    for (size_t layer = 0; layer < probe->layers; layer++) {
        DEBERTA_TRY(ridge_sums_create(&work->fitted[layer], work->input->model->hidden_size, err));
        DEBERTA_TRY(ridge_sums_create(&work->chosen_on[layer], work->input->model->hidden_size, err));
    }
    return DEBERTA_OK;
}

static void free_work(probe_work *work)
{
    for (size_t layer = 0; layer < work->probe->layers; layer++) {
        if (work->fitted) ridge_sums_free(&work->fitted[layer]);
        if (work->chosen_on) ridge_sums_free(&work->chosen_on[layer]);
        if (work->fits) ridge_fit_free(&work->fits[layer]);
    }
    free(work->fitted);
    free(work->chosen_on);
    free(work->fits);
}

deberta_status position_probe_measure(position_probe *probe, const position_probe_input *input, deberta_error *err)
{
    probe_work work = {.input = input, .probe = probe};
    deberta_status status = create(&work, err);
    if (status == DEBERTA_OK) status = encode(&work, 0, work.first_tested, err);
    for (size_t layer = 0; status == DEBERTA_OK && layer < probe->layers; layer++)
        status = fit_layer(&work, layer, err);
    if (status == DEBERTA_OK) status = encode(&work, work.first_tested, input->sequences, err);
    free_work(&work);
    if (status != DEBERTA_OK) position_probe_free(probe);
    return status;
}

void position_probe_free(position_probe *probe)
{
    free(probe->errors);
    free(probe->deviations);
    free(probe->penalties);
    *probe = (position_probe){0};
}
