/* The reference model implements DeBERTa v1, v2 and v3 in float64, written from the formulas of SPEC 2 to 8 with plain
 * loops, sharing no code with the encoder but the reading of config.json and of weight files. Tests and `verify`
 * measure the encoder against it.
 *
 * It runs one sequence at a time, with padding if it has any: unlike the encoder it takes a mask as the papers' code
 * does, and masked rows follow the requested rule. Layer weights are read when they are needed and dropped after, so
 * that a large model costs memory of one layer. An encode takes seconds, not milliseconds: it reaches about 2 GFLOP/s.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/checkpoint.h"
#include "core/model/config.h"
#include "include/deberta_unstable.h"

/* Source of weights. Names are canonical (SPEC 9, without prefix). Both functions are called with `context`. */
typedef struct reference_source {
    void *context;
    /* Returns rank and shape of a tensor, or false if there is none of that name. */
    bool (*find)(void *context, const char *name, size_t *rank, size_t shape[TENSOR_MAX_RANK]);
    /* Reads elements [first, first + count), row-major. The range lies inside the shape from `find`. */
    deberta_status (*read)(void *context, const char *name, size_t first, size_t count, double *values,
                           deberta_error *err);
} reference_source;

typedef struct reference_model {
    model_config config; /* configuration whose version is final: 1 or 2 */
    reference_source source;
    deberta_reference distances; /* position rule (SPEC 4.3) */
    double eps;
    bool c2p, p2c;
    bool classifies_tokens;  /* by its architecture, whatever else the files hold */
    double *relative;        /* R [2K][h], layer norm applied; NULL without relative attention */
    checkpoint *checkpoint;  /* owned, or NULL */
    struct made_up *made_up; /* owned, or NULL */
} reference_model;

/* Opens a folder or "synthetic:...", like deberta_model_open. */
deberta_status reference_open(reference_model **model, const char *path, deberta_reference distances,
                              deberta_error *err);
/* Creates a model from a configuration, of which the sizes and flags are copied (labels and architecture are not kept),
 * and a source of weights. */
deberta_status reference_create(reference_model **model, const model_config *config, reference_source source,
                                deberta_reference distances, deberta_error *err);
void reference_free(reference_model **model);

/* Rule for rows that the mask removes (SPEC 5.3). Rows that it keeps do not depend on it. */
typedef enum reference_padding {
    REFERENCE_PADDING_UNIFORM = 0, /* attention 1/n over all columns: current transformers */
    REFERENCE_PADDING_ZERO,        /* no attention: Microsoft, earlier transformers */
    REFERENCE_PADDING_KEPT,        /* attention over the kept columns, as in any row: this program */
} reference_padding;

/* Record of an encode that other encodes may use. A run is a layer, or one of the decoder's two passes after the last
 * layer. */
typedef struct reference_record {
    double *hidden;                /* [L + 1][n][h] */
    double *queries, *keys;        /* [L + 2][n][H] */
    double *contexts;              /* [L + 2][n][H] */
    double *mean_query, *mean_key; /* [L + 2][H]; filled where there are ablations */
} reference_record;
/* Allocates zeros, in one allocation that begins at hidden; the members are NULL without memory. */
deberta_status reference_record_make(reference_record *record, const reference_model *model, size_t tokens,
                                     deberta_error *err);

typedef struct reference_input {
    size_t tokens;               /* n */
    const int64_t *ids;          /* [n] */
    const int64_t *token_types;  /* [n] or NULL: 0 */
    const int64_t *position_ids; /* [n] or NULL: 0, 1, 2 ... */
    const unsigned char *mask;   /* [n] or NULL: all kept */
    reference_padding padding;
    const double *first_hidden; /* [n][h] that replaces H[0], or NULL */
    /* NULL, or a callback that may change H[layer], [n][h], before anything reads it, first_hidden included. */
    void (*edit_hidden)(void *context, size_t layer, double *hidden);
    void *edit_context;
    const double *embedded; /* [n][h] that replaces the result of reference_embedded, or NULL */
    /* Interventions, as include/deberta.h defines them; those of parts that the model lacks are ignored. */
    const deberta_ablation *ablations; /* [ablation_count] */
    size_t ablation_count;
    reference_record *record; /* record that this encode fills, or NULL */
    /* [patch_count]: places that take their value in `donor`, an encode of as many tokens, after edit_hidden. sequence
     * and from are not read. */
    const deberta_patch *patches;
    size_t patch_count;
    const reference_record *donor;
} reference_input;

/* One query's attention in one layer, all heads. value[c] is [A][n]; NULL where the model has no such term. Components
 * are divided by the common scale; LOGITS is their sum, before talking heads and the mask; PROBABILITIES come after
 * talking heads. */
typedef struct reference_attention_row {
    size_t layer, query;
    const double *value[DEBERTA_COMPONENT_COUNT];
} reference_attention_row;

typedef struct reference_observer {
    void *context;
    void (*on_row)(void *context, const reference_attention_row *row);
} reference_observer;

/* Computes out [n][h]: the sums of the tables' rows, projected to the hidden size: what embeddings.LayerNorm reads. */
deberta_status reference_embedded(const reference_model *model, const reference_input *input, double *out,
                                  deberta_error *err);

/* Encodes. hidden [L + 1][n][h] receives H[0] ... H[L]. observer may be NULL. */
deberta_status reference_encode(const reference_model *model, const reference_input *input, double *hidden,
                                const reference_observer *observer, deberta_error *err);

/* Runs the Enhanced Mask Decoder (SPEC 8.3): passes [2][n][h] receives the query states after each pass. With
 * position_biased_input there is nothing to do and both are H[L]. `hidden` is what reference_encode wrote. */
deberta_status reference_decode(const reference_model *model, const reference_input *input, const double *hidden,
                                double *passes, deberta_error *err);

/* Computes norms [A][n]: the length of the vector that head a writes into the residual stream for key j with attention
 * 1, ||W_o^a v_j^a||, where v = W_v x + b_v and W_o^a are the head's columns of the output projection (Kobayashi et al.
 * 2020, "Attention is not only a weight"; the output bias belongs to no key). hidden [n][h] is what enters the layer:
 * H[layer]. */
deberta_status reference_value_norms(const reference_model *model, size_t layer, const double *hidden, size_t tokens,
                                     double *norms, deberta_error *err);

/* Computes products [2K] = PQ[row] . PK[row] of one head, divided by the common scale: the term that the paper leaves
 * out. The model must have c2p and p2c. */
deberta_status reference_position_products(const reference_model *model, size_t layer, size_t head, double *products,
                                           deberta_error *err);

/* Computes words, positions [n][E]: the rows of both tables, before anything is added to them. */
deberta_status reference_embedding_rows(const reference_model *model, const reference_input *input, double *words,
                                        double *positions, deberta_error *err);

/* Returns the number of columns of a head, 0 if its tensors are absent. */
size_t reference_head_width(const reference_model *model, deberta_task head);
/* Computes logits [n][width], for DEBERTA_TASK_SEQUENCE [1][width]. */
deberta_status reference_head_logits(const reference_model *model, deberta_task head, const reference_input *input,
                                     const double *hidden, double *logits, deberta_error *err);
