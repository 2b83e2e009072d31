/* The loss and the logits are measured once as they are and once for each intervention, batch by batch.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/ablation_effect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/ablation.h"

typedef struct sweep_work {
    const ablation_sweep *sweep;
    ablation_effects *effects;
    masked_reader reader, watched; /* the second has an observer, for the shares of the baseline */
    deberta_ablation *list;        /* the baseline's, and a place for one more */
    size_t listed;
    float *plain, *changed; /* [masks of a batch][width] */
    double *loss;           /* [sentences] with an intervention */
} sweep_work;

/* ----------------------------------------------------------------------------------------------------------- memory */

static deberta_status allocate_effects(ablation_effects *effects, const ablation_sweep *sweep, deberta_error *err)
{
    size_t cells, sentences = sweep->texts->count;
    *effects = (ablation_effects){.sentences = sentences};
    if (size_multiply(sweep->count, sentences, &cells)) {
        effects->loss = calloc(sentences, sizeof *effects->loss);
        effects->loss_change = calloc(cells, sizeof *effects->loss_change);
        effects->logit_change = calloc(cells, sizeof *effects->logit_change);
    }
    if (effects->loss && effects->loss_change && effects->logit_change) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu interventions on %zu sentences", sweep->count, sentences);
}

void ablation_effects_free(ablation_effects *effects)
{
    free(effects->loss);
    free(effects->loss_change);
    free(effects->logit_change);
    *effects = (ablation_effects){0};
}

/* The session must have memory for every intervention that will follow: it is made with all of them. */
static deberta_status open_session(sweep_work *work, deberta_session **session, size_t tokens, unsigned features,
                                   deberta_error *err)
{
    const ablation_sweep *sweep = work->sweep;
    deberta_session_options options = *sweep->session_options;
    deberta_ablation *all = malloc((work->listed + sweep->count + 1) * sizeof *all);
    if (!all) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    memcpy(all, work->list, work->listed * sizeof *all);
    memcpy(all + work->listed, sweep->interventions, sweep->count * sizeof *all);
    options.ablations = all;
    options.ablation_count = work->listed + sweep->count;
    options.max_tokens = tokens;
    options.features = features | (work->reader.head == DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0u);
    const deberta_status status = deberta_session_create_within(session, sweep->model, &options, 0, err);
    free(all);
    return status;
}

static deberta_status open_work(sweep_work *work, deberta_error *err)
{
    const ablation_sweep *sweep = work->sweep;
    size_t tokens, masks, floats;
    masked_texts_largest_batch(sweep->texts, sweep->batch_tokens, &tokens, &masks);
    work->reader.head = sweep->head;
    work->reader.width = deberta_task_width(sweep->model, work->reader.head);
    work->listed = sweep->session_options->ablation_count;
    work->list = malloc((work->listed + 1) * sizeof *work->list);
    work->loss = calloc(sweep->texts->count, sizeof *work->loss);
    if (size_multiply(masks, work->reader.width, &floats)) {
        work->plain = malloc((floats + 1) * sizeof *work->plain);
        work->changed = malloc((floats + 1) * sizeof *work->changed);
    }
    if (!work->list || !work->loss || !work->plain || !work->changed)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the logits of %zu masked tokens", masks);
    if (work->listed) memcpy(work->list, sweep->session_options->ablations, work->listed * sizeof *work->list);
    DEBERTA_TRY(open_session(work, &work->reader.session, tokens, 0, err));
    work->watched = work->reader;
    work->watched.session = NULL;
    if (!sweep->share) return DEBERTA_OK;
    return open_session(work, &work->watched.session, tokens, DEBERTA_OBSERVE_ATTENTION, err);
}

static void close_work(sweep_work *work)
{
    deberta_session_free(&work->reader.session);
    deberta_session_free(&work->watched.session);
    free(work->list);
    free(work->plain);
    free(work->changed);
    free(work->loss);
}

/* -------------------------------------------------------------------------------------------------------- measuring */

/* Mean over the vocabulary of |d - mean of d|, d = changed - plain. */
static double centred_change(const float *plain, const float *changed, size_t width)
{
    double mean = 0, sum = 0;
    for (size_t v = 0; v < width; v++) mean += (double)changed[v] - (double)plain[v];
    mean /= (double)width;
    for (size_t v = 0; v < width; v++) sum += fabs((double)changed[v] - (double)plain[v] - mean);
    return sum / (double)width;
}

static deberta_status read_baseline(sweep_work *work, size_t first, size_t end, deberta_error *err)
{
    const ablation_sweep *sweep = work->sweep;
    masked_reader *reader = sweep->share ? &work->watched : &work->reader;
    const deberta_observer observer = sweep->share ? component_share_observer(sweep->share) : (deberta_observer){0};
    if (sweep->share) {
        sweep->share->first_sentence = first;
        reader->observer = &observer;
    }
    DEBERTA_TRY(ablation_change(reader->session, work->list, work->listed, err));
    const deberta_status status = masked_texts_read(sweep->texts, reader, first, end, work->plain, err);
    reader->observer = NULL;
    if (status == DEBERTA_OK)
        masked_texts_loss(sweep->texts, work->plain, reader->width, first, end, work->effects->loss);
    return status;
}

static deberta_status read_intervention(sweep_work *work, size_t index, size_t first, size_t end, deberta_error *err)
{
    const masked_texts *texts = work->sweep->texts;
    const size_t width = work->reader.width, row = index * texts->count;
    work->list[work->listed] = work->sweep->interventions[index];
    DEBERTA_TRY(ablation_change(work->reader.session, work->list, work->listed + 1, err));
    DEBERTA_TRY(masked_texts_read(texts, &work->reader, first, end, work->changed, err));
    masked_texts_loss(texts, work->changed, width, first, end, work->loss);
    for (size_t k = first; k < end; k++) {
        work->effects->loss_change[row + k] = work->loss[k] - work->effects->loss[k];
        for (size_t mask = texts->mask_starts[k]; mask < texts->mask_starts[k + 1]; mask++) {
            const size_t at = (mask - texts->mask_starts[first]) * width;
            work->effects->logit_change[row + k] += centred_change(work->plain + at, work->changed + at, width);
        }
    }
    return DEBERTA_OK;
}

deberta_status ablation_effects_measure(ablation_effects *effects, const ablation_sweep *sweep, deberta_error *err)
{
    sweep_work work = {.sweep = sweep, .effects = effects};
    deberta_status status = allocate_effects(effects, sweep, err);
    if (status == DEBERTA_OK) status = open_work(&work, err);
    for (size_t first = 0, end; status == DEBERTA_OK && first < sweep->texts->count; first = end) {
        end = masked_texts_batch_end(sweep->texts, first, sweep->batch_tokens);
        status = read_baseline(&work, first, end, err);
        for (size_t k = 0; status == DEBERTA_OK && k < sweep->count; k++)
            status = read_intervention(&work, k, first, end, err);
        if (sweep->progress) sweep->progress(sweep->context, end);
    }
    close_work(&work);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ correlation */

static double mean_rank(const double *values, size_t count, double value)
{
    size_t below = 0, equal = 0;
    for (size_t k = 0; k < count; k++) {
        below += values[k] < value;
        equal += values[k] == value;
    }
    return (double)below + 0.5 * (double)(equal - 1);
}

double rank_correlation(const double *x, const double *y, size_t count)
{
    const double middle = ((double)count - 1) / 2;
    double xx = 0, yy = 0, xy = 0;
    for (size_t k = 0; k < count; k++) {
        const double a = mean_rank(x, count, x[k]) - middle, b = mean_rank(y, count, y[k]) - middle;
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}
