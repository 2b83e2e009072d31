/* SPDX-License-Identifier: MIT */
#include "tests/golden_train/train_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/training.h"

/* The value behind an option of the case's command line, or NULL. */
const char *train_case_option(const json_t *entry, const char *option)
{
    const json_t *command = json_object_get(entry, "command");
    for (size_t i = 0; i + 1 < json_array_size(command); i++)
        if (strcmp(json_string_value(json_array_get(command, i)), option) == 0)
            return json_string_value(json_array_get(command, i + 1));
    return NULL;
}

static deberta_status read_command(train_case *c, const json_t *entry, deberta_error *err)
{
    static const struct {
        const char *word;
        step_task task;
    } tasks[] = {{"mlm", STEP_MLM},       {"rtd", STEP_RTD},     {"sequence", STEP_SEQUENCE},
                 {"choice", STEP_CHOICE}, {"token", STEP_TOKEN}, {"qa", STEP_ANSWER}};
    const json_t *command = json_object_get(entry, "command");
    const char *word = json_string_value(json_array_get(command, 1)), *head = train_case_option(entry, "--head");
    const char *weight = train_case_option(entry, "--rtd-weight"), *reference = train_case_option(entry, "--reference");
    if (train_case_option(entry, "--generator"))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "a generator is not trained yet");
    const char *sift = train_case_option(entry, "--sift");
    for (size_t i = 0; word && i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(tasks[i].word, word) == 0) c->options.task = tasks[i].task;
    c->options.decodes = head && strcmp(head, "mlm_emd") == 0;
    c->options.sift_weight = sift ? strtof(sift, NULL) : 0;
    c->options.rtd_weight = weight ? strtof(weight, NULL) : 0;
    c->reference = reference && strcmp(reference, "hf") == 0 ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
    return DEBERTA_OK;
}

deberta_status train_case_open(train_case *c, const char *folder, const char *name, const json_t *entry,
                               deberta_error *err)
{
    char expected[1100];
    *c = (train_case){.options.task = STEP_MLM};
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->folder, sizeof c->folder, "%s/%s", folder, name);
    const bool runs = train_case_option(entry, "--batches") != NULL;
    snprintf(c->batch, sizeof c->batch, "%s/%s.safetensors", c->folder, runs ? "batches" : "batch");
    snprintf(expected, sizeof expected, "%s/expected.safetensors", c->folder);
    DEBERTA_TRY(read_command(c, entry, err));
    DEBERTA_TRY(mapped_file_open(&c->map, expected, err));
    return safetensors_list(&c->list, c->map.bytes, c->map.size_bytes, c->map.name.text, err);
}

void train_case_close(train_case *c)
{
    tensor_list_free(&c->list);
    mapped_file_close(&c->map);
}

size_t train_case_expected(const train_case *c, const char *name, const double **values)
{
    for (size_t i = 0; i < c->list.count; i++) {
        const stored_tensor *stored = &c->list.items[i];
        if (strcmp(stored->tensor.name, name) != 0 || stored->tensor.dtype != DTYPE_F64) continue;
        *values = (const double *)(const void *)(c->map.bytes + stored->offset_bytes);
        return stored->tensor.elements;
    }
    return 0;
}

size_t train_case_gradients(const train_case *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->list.count; i++) count += strncmp(c->list.items[i].tensor.name, "grad.", 5) == 0;
    return count;
}

/* ------------------------------------------------------------------------------------------------------------ running */

static deberta_status keep_gradients(const learner *l, train_outcome *outcome, deberta_error *err)
{
    outcome->tensors = calloc(l->set.count, sizeof *outcome->tensors);
    if (!outcome->tensors) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for gradients");
    for (size_t i = 0; i < l->set.count; i++) {
        const parameter *p = &l->set.items[i];
        if (!p->trained) continue;
        train_tensor *to = &outcome->tensors[outcome->tensor_count++];
        snprintf(to->name, sizeof to->name, "grad.%s", p->stored_name);
        to->count = p->count;
        to->values = malloc(p->count * sizeof *to->values);
        if (!to->values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for gradients");
        memcpy(to->values, p->gradient, p->count * sizeof *to->values);
    }
    return DEBERTA_OK;
}

static deberta_status run_step(const train_case *c, learner *l, batch_file *file, train_outcome *outcome,
                               deberta_error *err)
{
    const training run = {.learner = l, .batches = batch_file_source(file), .options = c->options};
    step_report report;
    DEBERTA_TRY(training_gradients(&run, 0, &report, err));
    outcome->loss = report.result.loss;
    return keep_gradients(l, outcome, err);
}

deberta_status train_case_learner(const train_case *c, const batch_file *file, deberta_isa isa, size_t threads,
                                  learner **l, deberta_error *err)
{
    const learner_options options = {
        .threads = threads,
        .max_tokens = (c->options.sift_weight > 0 ? 2 : 1) * batch_file_most_tokens(file),
        .parts = DEFAULT_SHARDS,
        .isa = isa,
        .reference = c->reference,
        .decodes = c->options.decodes,
    };
    return learner_open(l, c->folder, &options, err);
}

deberta_status train_case_run(const train_case *c, deberta_isa isa, size_t threads, train_outcome *outcome,
                              deberta_error *err)
{
    learner *l = NULL;
    batch_file *file = NULL;
    deberta_status status = batch_file_open(&file, c->batch, false, c->options.task, err);
    if (status == DEBERTA_OK) status = train_case_learner(c, file, isa, threads, &l, err);
    if (status == DEBERTA_OK && c->spoil) c->spoil(l);
    if (status == DEBERTA_OK) status = run_step(c, l, file, outcome, err);
    learner_free(&l);
    batch_file_close(&file);
    return status;
}

void train_outcome_free(train_outcome *outcome)
{
    for (size_t i = 0; i < outcome->tensor_count; i++) free(outcome->tensors[i].values);
    free(outcome->tensors);
    *outcome = (train_outcome){0};
}
