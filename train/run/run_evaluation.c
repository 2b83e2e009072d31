/* Evaluates held-out data, writes a line to the log, and saves the best model. SPDX-License-Identifier: MIT */
#include "train/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/quote.h"

/* ----------------------------------------------------------------------------------------------------------- measures */

typedef struct row_teller {
    const deberta_scorer *scorer;
    const training *model;
} row_teller;

static size_t head_width(const learner *l, deberta_training_task task)
{
    return task == DEBERTA_TRAIN_QA ? 2 : l->model->tasks.labels;
}

static void tell_rows(void *context, const step_state *step, const step_batch *batch, const head_rows *rows,
                      const float *logits, size_t stride)
{
    const row_teller *teller = context;
    const learner *l = step->learner;
    const deberta_scorer *scorer = teller->scorer;
    for (size_t i = 0; i < rows->count; i++) {
        const size_t sequence = session_sequence_of(l->session, rows->tokens[i]);
        scorer->row(scorer->context, batch->members[sequence], rows->tokens[i] - batch->starts[sequence],
                    logits + i * stride, head_width(l, teller->model->options.task));
    }
}

/* Counts the labelled tokens whose likeliest word is the right one; of equal logits the first word counts. */
static void count_right(void *context, const step_state *step, const step_batch *batch, const head_rows *rows,
                        const float *logits, size_t stride)
{
    size_t *right = context;
    const size_t words = step->learner->model->config.vocabulary_size;
    for (size_t i = 0; i < rows->count; i++) {
        const float *row = logits + i * stride;
        size_t best = 0;
        for (size_t word = 1; word < words; word++)
            if (row[word] > row[best]) best = word;
        *right += (size_t)batch->labels[rows->tokens[i]] == best;
    }
}

/* Writes a measure. JSON has no NaN, so an undefined measure is null. */
static void write_measure(FILE *log, const char *name, double value)
{
    if (isfinite(value))
        fprintf(log, ", \"eval_%s\": %.17g", name, value);
    else
        fprintf(log, ", \"eval_%s\": null", name);
}

/* Writes the measures to the log, and returns the value that decides, the higher the better; NaN: undefined. */
static double write_measures(const run_evaluation *e, double loss, FILE *log)
{
    double measures[DEBERTA_MEASURES] = {0};
    if (!e->scorer) return -loss;
    e->scorer->end(e->scorer->context, measures);
    for (size_t k = 0; k < DEBERTA_MEASURES && e->scorer->names[k]; k++)
        write_measure(log, e->scorer->names[k], measures[k]);
    return isfinite(measures[0]) ? measures[0] : NAN;
}

/* ------------------------------------------------------------------------------------------------------------ the best */

/* Returns whether a value is better than the best. A defined value is better than an undefined one; of two undefined
 * ones, the lower loss wins. */
static bool is_better(const run_evaluation *e, double value, double loss)
{
    if (e->best_step == 0) return true;
    if (isnan(value) && isnan(e->best)) return loss < e->best_loss;
    return isnan(e->best) || value > e->best;
}

static void run_evaluation_take(run_evaluation *e, size_t step, double value, double loss)
{
    e->worse_runs++;
    if (!is_better(e, value, loss)) return;
    e->best = value;
    e->best_loss = loss;
    e->best_step = step;
    e->worse_runs = 0;
}

void run_evaluation_recall(run_evaluation *e, FILE *log)
{
    static const char loss_key[] = "\"eval_loss\": ";
    char *line = NULL, key[128];
    size_t capacity = 0, step;
    snprintf(key, sizeof key, "\"eval_%s\": ", e->scorer ? e->scorer->names[0] : "loss");
    const plain_numbers numbers = plain_numbers_begin();
    while (getline(&line, &capacity, log) > 0) {
        const char *found = strstr(line, key), *with_loss = strstr(line, loss_key);
        if (!found || !with_loss || !strchr(line, '\n') || sscanf(line, "{\"step\": %zu,", &step) != 1) continue;
        const double loss = strtod(with_loss + strlen(loss_key), NULL);
        found += strlen(key);
        const double value = strncmp(found, "null", 4) == 0 ? NAN : strtod(found, NULL);
        run_evaluation_take(e, step, e->scorer ? value : -loss, loss);
    }
    plain_numbers_end(numbers);
    free(line);
}

deberta_status run_evaluation_mark_later(const char *folder, deberta_error *err)
{
    char best[RUN_PATH_BYTES], mark[RUN_PATH_BYTES];
    snprintf(best, sizeof best, "%s/best", folder);
    snprintf(mark, sizeof mark, "%s/" DEBERTA_BEST_IS_LATER, folder);
    if (access(best, F_OK) != 0) return DEBERTA_OK;
    const int file = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || close(file) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be made: %s", QUOTE(mark), strerror(errno));
    return DEBERTA_OK;
}

static deberta_status save_best(const run_evaluation *e, const run_parts *parts, deberta_error *err)
{
    char folder[RUN_PATH_BYTES], mark[RUN_PATH_BYTES];
    /* The mark goes before best/ is written: whoever is interrupted between has a log that sets it again. */
    snprintf(mark, sizeof mark, "%s/" DEBERTA_BEST_IS_LATER, e->folder);
    if (unlink(mark) != 0 && errno != ENOENT)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be removed: %s", QUOTE(mark), strerror(errno));
    snprintf(folder, sizeof folder, "%s/best", e->folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot make this folder: %s", QUOTE(folder), strerror(errno));
    return run_parts_save(parts, folder, parts->save_dtype, err);
}

deberta_status run_evaluation_run(run_evaluation *e, const run_parts *parts, FILE *log, deberta_error *err)
{
    run_held_out report;
    training *model = parts->items[0].training;
    const size_t done = run_parts_done(parts);
    row_teller teller = {.scorer = e->scorer, .model = model};
    size_t right = 0;
    const bool counts_words = model->options.task == DEBERTA_TRAIN_MLM && !parts->pair;
    const logit_listener scored = {.context = &teller, .on_logits = tell_rows},
                         counted = {.context = &right, .on_logits = count_right};
    if (e->scorer) e->scorer->begin(e->scorer->context);
    model->options.listener = e->scorer ? &scored : counts_words ? &counted : NULL;
    const deberta_status status = run_parts_evaluate(parts, e->held_out, &report, err);
    model->options.listener = NULL;
    DEBERTA_TRY(status);
    const plain_numbers numbers = plain_numbers_begin();
    fprintf(log, "{\"step\": %zu, \"eval_loss\": %.17g, ", done, report.loss);
    if (parts->pair)
        fprintf(log, "\"eval_loss_generator\": %.17g, \"eval_loss_discriminator\": %.17g, ", report.all.loss,
                report.discriminator.loss);
    fprintf(log, "\"eval_sequences\": %zu, \"eval_tokens\": %zu, \"eval_labelled\": %zu", report.all.sequences,
            report.all.tokens, report.all.labelled);
    if (counts_words) fprintf(log, ", \"eval_right\": %zu", right);
    run_evaluation_take(e, done, write_measures(e, report.loss, log), report.loss);
    fputs("}\n", log);
    plain_numbers_end(numbers);
    /* The log must tell of the best model before best/ has it: a run that goes on learns from it whose model that is.
     */
    if (!stream_flush(log) || (e->best_step == done && !file_sync(fileno(log))))
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s/log.jsonl: %s", QUOTE(e->folder), strerror(errno));
    return e->best_step == done ? save_best(e, parts, err) : DEBERTA_OK;
}
