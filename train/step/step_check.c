/* Checks every id, label and place of a batch, and names the first wrong one.
 *
 * SPDX-License-Identifier: MIT */
#include "train/step/step.h"

typedef struct batch_check {
    const deberta_model *model;
    const step_batch *batch;
    const step_options *options;
} batch_check;

static deberta_task head_of(const step_options *options)
{
    switch (options->task) {
    case DEBERTA_TRAIN_MLM: return options->decodes ? DEBERTA_TASK_MLM_EMD : DEBERTA_TASK_MLM;
    case DEBERTA_TRAIN_RTD: return DEBERTA_TASK_RTD;
    case DEBERTA_TRAIN_SEQUENCE:
    case DEBERTA_TRAIN_CHOICE: return DEBERTA_TASK_SEQUENCE;
    case DEBERTA_TRAIN_TOKEN: return DEBERTA_TASK_TOKEN;
    case DEBERTA_TRAIN_QA: break;
    }
    return DEBERTA_TASK_QA;
}

deberta_status step_check_head(const deberta_model *model, const step_options *options, const char *advice,
                               deberta_error *err)
{
    const deberta_task head = head_of(options);
    const size_t width = deberta_task_width(model, head);
    if (width == 0)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no head '%s'%s", model->name, deberta_task_name(head), advice);
    if (options->task == DEBERTA_TRAIN_CHOICE && width != 1)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: its sequence head has %zu labels, a choice needs one score%s",
                     model->name, width, advice);
    return DEBERTA_OK;
}

static deberta_status check_head(const batch_check *c, deberta_error *err)
{
    DEBERTA_TRY(step_check_head(c->model, c->options, "", err));
    const size_t width = deberta_task_width(c->model, head_of(c->options));
    if (c->options->task == DEBERTA_TRAIN_SEQUENCE && (width == 1) != (c->batch->targets != NULL))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "labels are %s, but the sequence head of %s has %zu %s",
                     c->batch->targets ? "float32 values" : "classes", c->model->name, width,
                     width == 1 ? "output, a regression" : "classes");
    const deberta_problem problem = c->model->config.problem;
    if (c->options->task == DEBERTA_TRAIN_SEQUENCE &&
        (problem == DEBERTA_PROBLEM_MULTI_LABEL || (problem == DEBERTA_PROBLEM_REGRESSION && width != 1)))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "%s: its problem_type is %s of %zu outputs, expected one label a text or a single value",
                     c->model->name,
                     problem == DEBERTA_PROBLEM_REGRESSION ? "regression" : "multi_label_classification", width);
    return DEBERTA_OK;
}

/* Returns the column of a token in the file, which counts the padding that is cut before a sequence. */
static size_t column_of(const step_batch *b, size_t sequence, size_t t)
{
    return (b->columns ? b->columns[sequence] : 0) + t - b->starts[sequence];
}

/* Checks one value of a token. */
static deberta_status check_range(const batch_check *c, size_t sequence, size_t t, const char *what, int32_t value,
                                  size_t limit, deberta_error *err)
{
    if (value >= 0 && (size_t)value < limit) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "sequence %zu, token %zu: %s %d, expected 0 to %zu", c->batch->origin[sequence],
                 column_of(c->batch, sequence, t), what, (int)value, limit - 1);
}

static size_t label_limit(const batch_check *c)
{
    return c->options->task == DEBERTA_TRAIN_TOKEN ? c->model->tasks.labels : c->model->config.vocabulary_size;
}

static deberta_status check_token(const batch_check *c, size_t sequence, size_t t, deberta_error *err)
{
    const step_batch *b = c->batch;
    const size_t vocabulary = c->model->config.vocabulary_size;
    DEBERTA_TRY(check_range(c, sequence, t, "id", b->ids[t], vocabulary, err));
    if (b->sampled_ids) DEBERTA_TRY(check_range(c, sequence, t, "sampled id", b->sampled_ids[t], vocabulary, err));
    if (b->labels[t] == NOT_LABELLED) return DEBERTA_OK;
    if (!b->mask[t])
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "sequence %zu, token %zu: label %d at a hole of the attention_mask",
                     b->origin[sequence], column_of(b, sequence, t), (int)b->labels[t]);
    return check_range(c, sequence, t, "label", b->labels[t], label_limit(c), err);
}

/* may_lack: NOT_LABELLED is a label too. */
static deberta_status check_numbered(const char *what, size_t number, int32_t label, size_t limit, bool may_lack,
                                     deberta_error *err)
{
    if ((may_lack && label == NOT_LABELLED) || (label >= 0 && (size_t)label < limit)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s %zu: label %d, expected 0 to %zu", what, number, (int)label, limit - 1);
}

/* Checks an end of an answer. One outside its sequence counts as no answer; one inside must not be a hole. */
static deberta_status check_end(const step_batch *b, size_t sequence, const char *what, int32_t place,
                                deberta_error *err)
{
    const size_t n = b->starts[sequence + 1] - b->starts[sequence];
    if (place < 0 || (size_t)place >= n || b->mask[b->starts[sequence] + (size_t)place]) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "sequence %zu, token %zu: the %s of the answer is at a hole of the attention_mask",
                 b->origin[sequence], column_of(b, sequence, b->starts[sequence] + (size_t)place), what);
}

static deberta_status check_answer(const step_batch *b, size_t sequence, deberta_error *err)
{
    DEBERTA_TRY(check_end(b, sequence, "start", b->starts_of_answer[sequence], err));
    return check_end(b, sequence, "end", b->ends_of_answer[sequence], err);
}

deberta_status step_check(const learner *l, const step_batch *batch, const step_options *options, deberta_error *err)
{
    const batch_check c = {.model = l->model, .batch = batch, .options = options};
    DEBERTA_TRY(check_head(&c, err));
    if (options->reads_sampled && !batch->sampled_ids)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "the tensor 'sampled_ids' is missing: what the generator has put into the text");
    for (size_t i = 0; i < batch->sequences; i++) {
        for (size_t t = batch->starts[i]; t < batch->starts[i + 1]; t++) DEBERTA_TRY(check_token(&c, i, t, err));
        if (options->task == DEBERTA_TRAIN_QA) DEBERTA_TRY(check_answer(batch, i, err));
        if (options->task == DEBERTA_TRAIN_SEQUENCE && !batch->targets)
            DEBERTA_TRY(check_numbered("sequence", batch->origin[i], batch->sequence_labels[i], l->model->tasks.labels,
                                       true, err));
    }
    for (size_t q = 0; options->task == DEBERTA_TRAIN_CHOICE && q < batch->questions; q++)
        DEBERTA_TRY(check_numbered("question", q, batch->question_labels[q], batch->choices, false, err));
    const head_counts counts = step_counts(batch, options->task, NO_PAIRS);
    if (counts.labelled[0] + counts.labelled[1] == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the batch has no label: there is nothing to learn");
    return DEBERTA_OK;
}
