/* Trains heads with a few classes: of a sequence or a choice through the pooler, of tokens, and of the two ends of an
 * answer.
 *
 * SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "core/model/activation.h"
#include "core/model/linear.h"
#include "train/backward/backward_layer.h"
#include "train/backward/heads.h"
#include "train/state/step_dropout.h"

static bool reads_sequences(deberta_training_task task)
{
    return task == DEBERTA_TRAIN_SEQUENCE || task == DEBERTA_TRAIN_CHOICE;
}

/* -------------------------------------------------------------------------------------------------------------- rows */

/* Selects the rows that the head reads: all rows of sequences whose answer counts, the first tokens of sequences with a
 * label, or labelled tokens. */
static head_rows head_classes_rows_of(const step_state *step, const step_batch *batch)
{
    step_memory *m = step->memory;
    const deberta_training_task task = step->options->task;
    const bool all = step->options->pairs != NO_PAIRS;
    if (task == DEBERTA_TRAIN_QA || (task == DEBERTA_TRAIN_TOKEN && all)) return head_rows_of(step, NULL);
    if (task == DEBERTA_TRAIN_TOKEN) {
        for (size_t t = 0; t < batch->tokens; t++) m->wanted[t] = batch->labels[t] != NOT_LABELLED;
        return head_rows_of(step, m->wanted);
    }
    for (size_t i = 0; i < batch->sequences; i++)
        m->wanted[i] =
            all || task == DEBERTA_TRAIN_CHOICE || batch->targets || batch->sequence_labels[i] != NOT_LABELLED;
    return head_rows_of_sequences(step, m->wanted);
}

/* ------------------------------------------------------------------------------------------------------------ losses */

static void losses_by_row(const class_job *job)
{
    step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t classes = l->model->tasks.labels;
    const float scale = 1 / (float)job->step->head.counts.labelled[0];
    for (size_t i = 0; i < job->rows.count; i++) {
        float *logits = m->logits + i * job->stride;
        const row_value *value = step->options->value;
        if (value) {
            m->losses[i] = value->run(value->context, step, job->rows.tokens[i], logits, classes);
        } else if (job->batch->targets) {
            const size_t sequence = session_sequence_of(l->session, job->rows.tokens[i]);
            m->losses[i] = squared_error(logits, job->batch->targets[sequence], scale);
        } else {
            m->losses[i] = cross_entropy(learner_kernels(l), logits, classes, 1, (size_t)class_label_of(job, i), scale);
        }
        memset(logits + classes, 0, (job->stride - classes) * sizeof *logits);
    }
    head_add_losses(step, 0, job->rows.bounds);
}

/* Computes the losses of choices. Each has one score; the softmax is over the choices of a question, which may lie in
 * different shards. */
static void losses_by_question(const class_job *job)
{
    const step_batch *batch = job->batch;
    const float scale = 1 / (float)batch->questions;
    double *sum = &job->step->head.losses[0][0];
    for (size_t question = 0; question < batch->questions; question++)
        *sum +=
            cross_entropy(learner_kernels(job->step->learner), job->step->head.scores[0] + question * batch->choices,
                          batch->choices, 1, (size_t)batch->question_labels[question], scale);
}

static bool is_inside(const class_job *job, int32_t place, size_t sequence)
{
    return place >= 0 && (size_t)place < session_sequence_length(job->step->learner->session, sequence);
}

/* Computes the losses of one end of the answers: a softmax over the tokens of each sequence that are not holes. */
static void losses_of_end(const class_job *job, const int32_t *places, size_t column)
{
    step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const float scale = 1 / (2 * (float)job->step->head.counts.labelled[column]);
    size_t row = 0;
    for (size_t i = 0; i < s->sequences; i++) {
        const size_t first = row;
        size_t label = first;
        float *logits = m->logits + first * job->stride + column;
        for (; row < job->rows.count && job->rows.tokens[row] < s->starts[i + 1]; row++)
            if (job->rows.tokens[row] == s->starts[i] + (size_t)places[i]) label = row;
        m->losses[i] = 0;
        if (is_inside(job, places[i], i)) {
            /* step_check makes sure that this is not a hole. */
            assert(job->rows.tokens[label] == s->starts[i] + (size_t)places[i]);
            m->losses[i] = cross_entropy(learner_kernels(l), logits, row - first, job->stride, label - first, scale);
        } else {
            for (size_t k = first; k < row; k++) m->logits[k * job->stride + column] = 0;
        }
    }
    head_add_losses(step, column, step->sequence_bounds);
}

static void losses_of_answers(const class_job *job)
{
    step_memory *m = job->step->memory;
    losses_of_end(job, job->batch->starts_of_answer, 0);
    losses_of_end(job, job->batch->ends_of_answer, 1);
    for (size_t i = 0; i < job->rows.count; i++)
        memset(m->logits + i * job->stride + 2, 0, (job->stride - 2) * sizeof *m->logits);
}

/* ----------------------------------------------------------------------------------------------------------- choices */

/* Copies the scores of the group's sequences into those of the step, or their gradients back. */
static void exchange_scores(const class_job *job, bool back)
{
    const step_batch *batch = job->batch;
    const step_state *step = job->step;
    float *const *scores = job->step->head.scores;
    for (size_t i = 0; i < batch->sequences; i++) {
        float *logits = step->memory->logits + i * job->stride;
        const bool moved = batch->passes && batch->passes[i] != 0;
        float *score = &scores[moved][batch->origin[i]];
        if (back) memset(logits, 0, job->stride * sizeof *logits);
        *(back ? logits : score) = *(back ? score : logits);
    }
    for (size_t i = 0; step->options->clean && !back && i < batch->sequences; i++)
        scores[0][batch->origin[i]] = step->options->clean[step->group.first_token + batch->starts[i]];
}

/* Computes the losses of choices once all scores of the step are known. Returns false until then; the caller runs the
 * group again for its gradients. */
static bool losses_of_choices(const class_job *job)
{
    const step_batch *batch = job->batch;
    const size_t sides = job->step->options->pairs == PAIRS_FINAL ? 2 : 1,
                 all = sides * batch->questions * batch->choices;
    head_result *result = &job->step->head;
    const bool known = result->scored == all; /* The other ranks have sent their scores. */
    if (!result->compared) {
        if (!known) {
            exchange_scores(job, false);
            result->scored += batch->sequences;
        }
        if (result->scored < all) return false;
        if (job->step->options->pairs == NO_PAIRS)
            losses_by_question(job);
        else
            class_losses_of_questions(job);
        result->compared = true;
        if (!known && batch->sequences < all) return false;
    }
    exchange_scores(job, true);
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- the head */

/* Applies dropout to rows of the head, or to their gradients. */
static void drop_rows(const class_job *job, dropout_site site, float *rows)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    const dropout_place place = {.site = site, .tokens = job->rows.tokens};
    step_dropout_rows(step, &place, rows, l->session->normed_stride, l->model->config.hidden_size, job->rows.count);
}

/* Computes logits from rows of H[L]. x: the rows; u: inputs of the pooler's activation; g: inputs of the classifier,
 * which are x without a pooler. */
static const float *logits_of(const class_job *job, float *x, float *u, float *g)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t ns = s->normed_stride, count = job->rows.count;
    const float *read = x;
    head_gather(l, &job->rows, x);
    if (reads_sequences(job->step->options->task)) {
        drop_rows(job, DROPOUT_POOLER, x);
        const linear_product pooler = linear_plain(&l->model->tasks.pooler, count, x, ns, u, ns);
        linear_run_parallel(&s->kernels, s->executor, &pooler, 1);
        memcpy(g, u, count * ns * sizeof *g);
        activate_rows(&s->kernels, config->pooler_activation, g, ns, count, config->hidden_size);
        drop_rows(job, DROPOUT_CLASSIFIER, g);
        read = g;
    } else if (job->step->options->task == DEBERTA_TRAIN_TOKEN) {
        drop_rows(job, DROPOUT_CLASSIFIER, x);
    }
    const linear_product classifier = linear_plain(job->classifier, count, read, ns, step->memory->logits, job->stride);
    linear_run_parallel(&s->kernels, s->executor, &classifier, 1);
    return read;
}

static void classes_backward(const class_job *job, const float *x, const float *u, const float *read)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t ns = s->normed_stride, count = job->rows.count;
    const row_parts parts = {job->rows.bounds, step->group.count};
    float *d_read = m->passes[0].d_normed, *dx = m->passes[0].d_attention_sum;
    matrix_gradient(step, job->classifier, m->logits, job->stride, read, ns, parts);
    input_gradient(l, job->transposed, count, m->logits, job->stride, d_read, ns);
    if (job->step->options->task != DEBERTA_TRAIN_QA) drop_rows(job, DROPOUT_CLASSIFIER, d_read);
    if (!reads_sequences(job->step->options->task)) {
        head_scatter(step, &job->rows, d_read, ns);
        return;
    }
    activate_rows_backward(&s->kernels, config->pooler_activation, d_read, NULL, u, ns, count, config->hidden_size);
    matrix_gradient(step, &l->model->tasks.pooler, d_read, ns, x, ns, parts);
    input_gradient(l, &l->transposed.pooler, count, d_read, ns, dx, ns);
    drop_rows(job, DROPOUT_POOLER, dx);
    head_scatter(step, &job->rows, dx, ns);
}

deberta_status head_classes(step_state *step, const step_batch *group, deberta_error *err)
{
    const learner *l = step->learner;
    const step_options *options = step->options;
    step_memory *m = step->memory;
    const model_tasks *heads = &l->model->tasks;
    const bool answer = options->task == DEBERTA_TRAIN_QA;
    class_job job = {
        .step = step,
        .batch = group,
        .classifier = answer ? &heads->answer : &heads->classifier,
        .transposed = answer ? &l->transposed.answer : &l->transposed.classifier,
        .rows = head_classes_rows_of(step, group),
    };
    job.stride = job.classifier->panel_count * PANEL;
    if (job.rows.count == 0) return DEBERTA_OK;
    DEBERTA_TRY(head_reserve(m, job.rows.count, job.stride, err));
    float *x = m->head_rows[0], *u = m->head_rows[1];
    const float *read = logits_of(&job, x, u, m->head_rows[2]);
    if (options->listener)
        options->listener->on_logits(options->listener->context, step, group, &job.rows, m->logits, job.stride);
    if (options->pairs == PAIRS_CLEAN) return DEBERTA_OK;
    if (options->task == DEBERTA_TRAIN_CHOICE) {
        if (!losses_of_choices(&job)) return DEBERTA_OK;
    } else if (options->pairs != NO_PAIRS)
        class_losses_of_rows(&job);
    else if (answer)
        losses_of_answers(&job);
    else
        losses_by_row(&job);
    classes_backward(&job, x, u, read);
    return DEBERTA_OK;
}
