/* Declares how the reference model fetches its tensors. Private to reference.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/reference.h"

/* Arrays of doubles that are freed together; zeroed means empty. */
enum { SHELF_CAPACITY = 64 };
typedef struct shelf {
    double *items[SHELF_CAPACITY];
    size_t count;
} shelf;

/* Allocates `count` zeros that live as long as the shelf. */
deberta_status shelf_take(shelf *owner, size_t count, double **values, deberta_error *err);
void shelf_clear(shelf *owner);

/* Reads a whole tensor, which must have the shape [rows][columns], or [rows] if columns is 0. Its name is formatted as
 * by printf. */
deberta_status reference_fetch(const reference_model *model, shelf *owner, double **values, size_t rows, size_t columns,
                               deberta_error *err, const char *name, ...) __attribute__((format(printf, 7, 8)));
/* Fetches one row of a table [rows][width]. */
deberta_status reference_fetch_row(const reference_model *model, const char *name, int64_t row, size_t rows,
                                   size_t width, double *values, deberta_error *err);
bool reference_has(const reference_model *model, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* Weights of a layer in the form of v2, to which those of v1 are converted (SPEC 3.1). Pointers of terms that a model
 * lacks are NULL. */
typedef struct layer_weights {
    shelf shelf;
    double *query_weight, *query_bias, *key_weight, *key_bias, *value_weight, *value_bias;
    double *position_key_weight, *position_key_bias;     /* c2p */
    double *position_query_weight, *position_query_bias; /* p2c */
    double *head_logits, *head_weights;                  /* [A][A], talking heads */
    double *attention_weight, *attention_bias, *attention_gain, *attention_shift;
    double *intermediate_weight, *intermediate_bias;
    double *output_weight, *output_bias, *output_gain, *output_shift;
} layer_weights;

/* Reads the weights of a layer. Even after a failure, the caller must call shelf_clear(&weights->shelf). */
deberta_status layer_weights_read(const reference_model *model, size_t layer, layer_weights *weights,
                                  deberta_error *err);

/* A made-up model ("synthetic:..."): its configuration, and its weights as a source. Close it after the model. */
struct made_up;
deberta_status made_up_open(struct made_up **made_up, model_config *config, reference_source *source, const char *path,
                            deberta_error *err);
void made_up_close(struct made_up **made_up);
