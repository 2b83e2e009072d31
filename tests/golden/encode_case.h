/* A padded batch, as the golden files hold it, through the public API: padding is cut on the way in, and everything
 * that the library hands out is collected on the way out.
 *
 * Leading and trailing padding is dropped; a hole inside stays and is masked, because relative distance counts columns
 * (SPEC 5). Absolute positions count columns too, so a row that was padded on the left starts at its first real column.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"
#include "tests/golden/golden_data.h"

typedef struct ragged_batch {
    size_t sequences, tokens, longest;
    size_t *starts;       /* [sequences + 1] */
    size_t *first_column; /* [sequences]: where the row's first real token stands in the padded batch */
    int32_t *ids, *types, *positions;
    uint8_t *mask;
    bool has_holes;
} ragged_batch;

/* From [rows][columns] of ids, mask, types as doubles. A row without any real token keeps all its columns, masked. */
deberta_status ragged_create(ragged_batch *batch, size_t rows, size_t columns, const double *ids, const double *mask,
                             const double *types, deberta_error *err);
void ragged_free(ragged_batch *batch);
/* What deberta_encode takes; points into `batch`. */
deberta_batch ragged_view(const ragged_batch *batch);

/* Which attention values to collect. NULL function: none. */
typedef struct collect_wish {
    void *context;
    int (*wants)(void *context, size_t layer, size_t head, deberta_component component);
} collect_wish;

/* Everything one deberta_encode gave. */
typedef struct collected {
    deberta_model_info info;
    size_t sequences, tokens;
    size_t *starts;
    float *hidden;                     /* [L + 1][tokens][h]; the last layer as deberta_outputs gave it */
    float *last_observed;              /* [tokens][h]: H[L] as the observer saw it */
    float **attention;                 /* [L][components][sequences], each [A][n][n] or NULL; use collected_attention */
    float *logits[DEBERTA_TASK_COUNT]; /* [tokens or sequences][width], NULL if not asked for */
    size_t width[DEBERTA_TASK_COUNT];
    bool bad_block; /* the observer was handed something that is not a block of this batch */
} collected;

/* [A][n][n] of one sequence, NULL if it was not collected. */
float *collected_attention(const collected *result, size_t layer, deberta_component component, size_t sequence);

/* Puts other kernels into a session's table. */
typedef void (*kernels_change)(kernels *table);

typedef struct encode_request {
    deberta_isa isa;
    size_t threads;
    bool observe_hidden;
    collect_wish attention;
    unsigned heads;         /* bits 1 << deberta_task; those that the model lacks are left out */
    kernels_change replace; /* NULL: the kernels of the tier */
} encode_request;

/* A session for such requests. max_tokens 0: the default. */
deberta_status encode_session(deberta_session **session, const deberta_model *model, size_t max_tokens,
                              const encode_request *request, deberta_error *err);
/* Encodes with a session that was made for such requests and asks the heads. On failure *result is empty. */
deberta_status encode_with(deberta_session *session, collected *result, const deberta_model *model,
                           const deberta_batch *batch, const encode_request *request, deberta_error *err);
/* Both, for one batch. */
deberta_status encode_and_collect(collected *result, const deberta_model *model, const ragged_batch *batch,
                                  const encode_request *request, deberta_error *err);
void collected_free(collected *result);
