/* Defines the members of a loaded model: configuration, packed weights, folded positions. It is immutable once opened.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/text.h"
#include "core/io/mapped_file.h"
#include "core/load/packed_file.h"
#include "core/load/synthetic.h"
#include "core/load/weight_loader.h"
#include "core/load/word_table.h"
#include "core/model/attention_operands.h"
#include "core/model/config.h"
#include "core/model/positions.h"

typedef struct layer_norm {
    float *gamma, *beta;
} layer_norm;

/* Panels of `qkv`: all heads of Q, then of K, then of V; each head padded to whole panels. */
typedef struct model_layer {
    packed_matrix qkv, attention_output, intermediate, output;
    layer_norm attention_norm, output_norm;
    packed_matrix position_key, position_query; /* present only if kept and not shared with qkv */
    float *position_keys;                       /* [A][ceil(2K / 16)][d][16], rows reversed; NULL without c2p */
    float *position_queries;                    /* [A][2K][padded_head]; NULL without p2c */
    integer_panels position_key_integers; /* the same as integers, where attention multiplies integers; same layout */
    integer_rows position_query_integers; /* [A][2K rounded up to whole tiles] */
    float *head_logits, *head_weights;    /* v1's talking heads: [A][row_stride(A)], else NULL */
} model_layer;

typedef struct model_tasks {
    unsigned present; /* bit 1 << deberta_task */
    unsigned unfit;   /* bits, in head_loader's order, of heads in the files that do not fit the configuration */
    packed_matrix mlm_dense;
    layer_norm mlm_norm;
    float *mlm_bias;        /* [V], zeros up to whole panels */
    word_table mlm_decoder; /* [V][E]: the word table unless the file has a separate one */
    bool decoder_apart;     /* whether the file has a decoder table of its own */
    packed_matrix rtd_dense, rtd_classifier;
    layer_norm rtd_norm;
    packed_matrix pooler, classifier; /* classifier: of the sequence or of the tokens */
    size_t labels;
    packed_matrix answer; /* head of question answering */
} model_tasks;

struct deberta_model {
    model_config config; /* final configuration: the tensors have decided what the file left open */
    char *name;
    kept_notes notes;       /* notes on settings of the folder that the model does not follow */
    topology_info machine;  /* the machine on which it was opened; its sessions use it */
    checkpoint *checkpoint; /* NULL for a made-up model */
    synthetic_weights synthetic;
    weight_source files;  /* the checkpoint or the made-up weights */
    weight_source source; /* source that is read: `files`, unless decorated */
    size_t stored_layers; /* number of layers in the checkpoint; config.layers may be smaller */
    bool described_only;  /* whether the model has no weights: tables and panels are NULL */
    bool unsmoothed;      /* whether low precision leaves large channels as they are; false, unless decorated */
    arena arena;
    deberta_packed packed;
    mapped_file packed_file;  /* mapped file that holds the arena, if `packed` says so */
    packed_sections sections; /* sections of the mapped file */
    bool packed_alone;        /* whether the packed file replaces a checkpoint; `files` then finds these: */
    packed_tensors names;
    deberta_precision precision;
    size_t digits; /* digits per integer of the layers' weights; 0: float32 */
    bool integer_attention;
    size_t memory_bytes; /* bytes of the arena, real or measured */
    size_t parameters;
    deberta_model_info info;

    size_t head_size, padded_head, head_panels; /* d, d rounded up to panels, panels of a head */
    size_t hidden_stride;                       /* row_stride(h) */
    bool has_c2p, has_p2c, has_position_table;
    double scale; /* 1 / sqrt(d (1 + terms)) */

    word_table words;                   /* [V][E] */
    float *position_table;              /* [max_positions][row_stride(E)] or NULL */
    float *type_table;                  /* [token_types][row_stride(E)] or NULL */
    packed_matrix embedding_projection; /* projection from E to h; present if they differ */
    layer_norm embedding_norm;

    position_rule rule;
    size_t relative_rows;                      /* 2K, 0 without relative attention */
    float *relative_table, *relative_reversed; /* R, normalised: for PQ in natural order, for PK last row first; kept
                                                  in float32 */

    model_layer *layers;
    packed_matrix convolution; /* depth: width x hidden_stride */
    layer_norm convolution_norm;
    void (*convolve)(deberta_session *session); /* replacement in a test; NULL: convolution_run */
    model_tasks tasks;
};

/* Options of the bench and the tests beyond deberta_model_options. */
typedef struct model_internal_options {
    /* Changes configuration, position rule, source and convolution before anything is derived from them, for checks
     * that need a wrong model. Packed weights are not used then. NULL: nothing to change */
    void (*decorate)(deberta_model *model);
    bool keep_position_projections; /* keep them so that a session can recompute PK and PQ at every call */
    bool pass_over_packed;          /* compute the packed weights although a file may hold them */
    const weight_source *weights;   /* replace the files' tensors; the folder still gives the configuration */
    const char *config;             /* replaces the folder's config.json by this text; only with weights */
    const load_listener *listener;
    /* Replace a folder: a config.json and the tensors, in the caller's memory; the path is a name */
    const char *config_json;
    const deberta_tensor *tensors;
    size_t tensor_count;
} model_internal_options;

deberta_status model_open_internal(deberta_model **model, const char *path, const deberta_model_options *options,
                                   const model_internal_options *internal, deberta_error *err);

/* Packs and folds everything again from the model's source, after its numbers have changed but not its shapes. Only for
 * models opened with keep_position_projections and with `weights`. folds: PK and PQ too; else the caller computes them
 * (model_layer_fold). */
deberta_status model_read_again(deberta_model *model, bool folds, const kernels *table, executor *threads,
                                deberta_error *err);

/* Describes the computation of a layer's PK and PQ, from qkv where the projections are shared, else from `key` and
 * `query` (NULL if shared or absent). The caller sets keys, queries and workspace (as large as queries). */
position_fold model_layer_fold(const deberta_model *model, const packed_matrix *qkv, const packed_matrix *key,
                               const packed_matrix *query, const kernels *table);
/* Counts the floats of one layer's position_keys. */
size_t model_position_key_floats(const deberta_model *model);
/* Counts the rows of one head among position_query_integers: whole tiles. */
static inline size_t model_position_tile_rows(const deberta_model *model)
{
    return round_up(model->relative_rows, DIGIT_TILE_ROWS);
}

/* Fills the result of deberta_model_describe, once everything else of the model is final. */
void model_fill_info(deberta_model *model);
/* Fails with DEBERTA_E_FILE if a file that the model reads became shorter or unreadable. */
deberta_status model_intact(const deberta_model *model, deberta_error *err);

/* Keeps account of the used and unused tensors of a checkpoint, so that no tensor inside the base model is ignored
 * silently. */

/* Checks the names of model->files after the model has looked up its tensors, and frees the account. opened: the status
 * of opening. After success, unused tensors below "encoder." or "embeddings." are refused (DEBERTA_E_UNSUPPORTED) or
 * become a note. After a missing tensor, adapters found in its place become the reason of the error. */
deberta_status tensor_account_close(tensor_account *account, deberta_model *model, deberta_status opened,
                                    deberta_error *err);

/* Functions for the sections of a model's packed file (packed_file.h): their sizes, from the model's shapes, and the
 * word tables. */

/* Computes the sizes of the sections of a measured model; bytes are NULL. */
packed_sections model_sections(const deberta_model *model);
/* Writes the word tables as integers into memory as large as their section. */
deberta_status model_store_words(const deberta_model *model, void *memory, deberta_error *err);
/* Makes the model read its word tables from `memory` from now on. */
void model_view_words(deberta_model *model, const void *memory);
