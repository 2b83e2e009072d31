/* One case of golden data for training: read, run, and what came out.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "train/data/batch_file.h"
#include "train/step/pair.h"

typedef struct train_case {
    char name[128], folder[1024], batch[1100];
    step_options options;
    bool has_pair; /* folder/generator and folder/discriminator; options are the discriminator's */
    deberta_reference reference;
    void (*spoil)(learner *learner); /* plants a mistake before the step; NULL: none */
    mapped_file map;                 /* of what is expected */
    tensor_list list;
} train_case;

typedef struct train_tensor {
    char name[256]; /* "grad.NAME" */
    float *values;
    size_t count;
} train_tensor;

typedef struct train_outcome {
    double loss;
    train_tensor *tensors;
    size_t tensor_count;
} train_outcome;

/* DEBERTA_E_UNSUPPORTED: this test cannot run such a case. */
deberta_status train_case_open(train_case *c, const char *folder, const char *name, const json_t *entry,
                               deberta_error *err);
void train_case_close(train_case *c);

/* The value behind an option of the case's command line, or NULL. */
const char *train_case_option(const json_t *entry, const char *option);

/* Elements of an expected tensor, 0 if there is none. */
size_t train_case_expected(const train_case *c, const char *name, const double **values);
/* How many gradients are expected. */
size_t train_case_gradients(const train_case *c);

/* What a case trains: `model` alone, or a pair whose discriminator it is. */
typedef struct case_models {
    training_pair pair;
    training *model; /* &pair.discriminator */
    batch_file *file;
} case_models;

/* Learners for the case, and its batches. Close them also after a failure; the struct stays where it is. */
deberta_status train_case_models(const train_case *c, deberta_isa isa, size_t threads, case_models *models,
                                 deberta_error *err);
void train_case_close_models(case_models *models);

deberta_status train_case_run(const train_case *c, deberta_isa isa, size_t threads, train_outcome *outcome,
                              deberta_error *err);
void train_outcome_free(train_outcome *outcome);
