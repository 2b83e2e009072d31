/* A case's batch and options are read, a step is run, and its gradients are kept. SPDX-License-Identifier: MIT */
#include "tests/golden_train/train_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/deberta_training.h"
#include "train/state/learner.h"
#include "train/step/training.h"

/* The value behind an option of the case's command line, or NULL. */
const char *train_case_option(const json_t *entry, const char *option)
{
    const json_t *command = json_object_get(entry, "command");
    for (size_t i = 0; i + 1 < json_array_size(command); i++)
        if (strcmp(json_string_value(json_array_get(command, i)), option) == 0)
            return json_string_value(json_array_get(command, i + 1));
    return NULL;
}

static void read_command(train_case *c, const json_t *entry)
{
    static const struct {
        const char *word;
        deberta_training_task task;
    } tasks[] = {{"mlm", DEBERTA_TRAIN_MLM},       {"rtd", DEBERTA_TRAIN_RTD},     {"sequence", DEBERTA_TRAIN_SEQUENCE},
                 {"choice", DEBERTA_TRAIN_CHOICE}, {"token", DEBERTA_TRAIN_TOKEN}, {"qa", DEBERTA_TRAIN_QA}};
    const json_t *command = json_object_get(entry, "command");
    const char *word = json_string_value(json_array_get(command, 1)), *head = train_case_option(entry, "--head");
    const char *weight = train_case_option(entry, "--rtd-weight"), *reference = train_case_option(entry, "--reference");
    c->has_pair = train_case_option(entry, "--generator") != NULL;
    const char *sift = train_case_option(entry, "--sift");
    for (size_t i = 0; word && i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(tasks[i].word, word) == 0) c->options.task = tasks[i].task;
    c->options.decodes = head && strcmp(head, "mlm_emd") == 0;
    c->options.sift_weight = sift ? strtof(sift, NULL) : 0;
    c->options.sift_step = 1e-4f;
    c->options.sift_start = 0.01;
    c->options.rtd_weight = weight ? strtof(weight, NULL) : 0;
    c->reference = reference && strcmp(reference, "hf") == 0 ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
}

deberta_status train_case_open(train_case *c, const char *folder, const char *name, const json_t *entry,
                               deberta_error *err)
{
    char expected[1100];
    *c = (train_case){.options.task = DEBERTA_TRAIN_MLM};
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->folder, sizeof c->folder, "%s/%s", folder, name);
    const bool runs = train_case_option(entry, "--batches") != NULL;
    snprintf(c->batch, sizeof c->batch, "%s/%s.safetensors", c->folder, runs ? "batches" : "batch");
    snprintf(expected, sizeof expected, "%s/expected.safetensors", c->folder);
    read_command(c, entry);
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

static deberta_status keep_gradients(const learner *l, const char *prefix, train_outcome *outcome, deberta_error *err)
{
    const size_t most = outcome->tensor_count + l->set.count;
    train_tensor *tensors = realloc(outcome->tensors, most * sizeof *tensors);
    if (!tensors) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for gradients");
    outcome->tensors = tensors;
    for (size_t i = 0; i < l->set.count; i++) {
        const parameter *p = &l->set.items[i];
        if (!p->trained) continue;
        train_tensor *to = &outcome->tensors[outcome->tensor_count++];
        snprintf(to->name, sizeof to->name, "grad.%s%s", prefix, p->stored_name);
        to->count = p->count;
        to->values = malloc(p->count * sizeof *to->values);
        if (!to->values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for gradients");
        memcpy(to->values, p->gradient, p->count * sizeof *to->values);
    }
    return DEBERTA_OK;
}

static deberta_status run_step(const train_case *c, case_models *models, train_outcome *outcome, deberta_error *err)
{
    step_report report;
    pair_report both;
    if (!c->has_pair) {
        DEBERTA_TRY(training_gradients(models->model, 0, &report, err));
        outcome->loss = report.result.loss;
        return keep_gradients(models->model->learner, "", outcome, err);
    }
    DEBERTA_TRY(pair_gradients(&models->pair, 0, &both, err));
    outcome->loss = both.loss;
    DEBERTA_TRY(keep_gradients(models->pair.generator.learner, "generator.", outcome, err));
    return keep_gradients(models->pair.discriminator.learner, "discriminator.", outcome, err);
}

static deberta_status open_learner(const train_case *c, const batch_file *file, const char *part, bool decodes,
                                   deberta_isa isa, size_t threads, learner **l, deberta_error *err)
{
    char folder[1200];
    const learner_options options = {
        .asked = {.threads = threads, .shards = DEFAULT_SHARDS, .isa = isa, .reference = c->reference},
        .max_tokens = (c->options.sift_weight > 0 ? 2 : 1) * batch_file_most_tokens(file),
        .longest = batch_file_longest(file),
        .decodes = decodes,
    };
    snprintf(folder, sizeof folder, "%s%s", c->folder, part);
    return learner_open(l, folder, &options, err);
}

deberta_status train_case_models(const train_case *c, deberta_isa isa, size_t threads, case_models *m,
                                 deberta_error *err)
{
    const bool runs = strstr(c->batch, "batches") != NULL;
    *m = (case_models){.model = &m->pair.discriminator};
    DEBERTA_TRY(batch_file_open(&m->file, c->batch, runs, c->options.task, err));
    m->pair.generator.batches = m->pair.discriminator.batches = batch_file_source(m->file);
    m->model->options = c->options;
    DEBERTA_TRY(open_learner(c, m->file, c->has_pair ? "/discriminator" : "", c->options.decodes, isa, threads,
                             &m->model->learner, err));
    if (!c->has_pair) return DEBERTA_OK;
    m->pair.generator.options = (step_options){.task = DEBERTA_TRAIN_MLM, .decodes = true};
    DEBERTA_TRY(open_learner(c, m->file, "/generator", true, isa, threads, &m->pair.generator.learner, err));
    return pair_open(&m->pair, err);
}

void train_case_close_models(case_models *m)
{
    training *both[] = {&m->pair.generator, &m->pair.discriminator};
    for (size_t i = 0; i < 2; i++) {
        optimizer_free(&both[i]->optimizer);
        learner_free(&both[i]->learner);
    }
    batch_file_close(&m->file);
}

deberta_status train_case_run(const train_case *c, deberta_isa isa, size_t threads, train_outcome *outcome,
                              deberta_error *err)
{
    case_models models;
    deberta_status status = train_case_models(c, isa, threads, &models, err);
    if (status == DEBERTA_OK && c->spoil) c->spoil(models.model->learner);
    if (status == DEBERTA_OK) status = run_step(c, &models, outcome, err);
    train_case_close_models(&models);
    return status;
}

void train_outcome_free(train_outcome *outcome)
{
    for (size_t i = 0; i < outcome->tensor_count; i++) free(outcome->tensors[i].values);
    free(outcome->tensors);
    *outcome = (train_outcome){0};
}
