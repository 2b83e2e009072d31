/* Defines sources of weights, and loads from them in a fixed order.
 *
 * A weight_source finds tensors by name and reads any stretch of one as float32; a checkpoint is one, made-up weights
 * (synthetic.h) are another. load_layers.c walks a model with a weight_loader. The same walk runs three times:
 *
 *     LOAD_CHECK    checks that every tensor exists, has the right shape, holds floats; allocates nothing
 *     LOAD_MEASURE  adds up the memory
 *     LOAD_READ     allocates it and reads, scales and packs, in parallel, a few rows at a time; or, instead of that,
 *     LOAD_VIEW     finds the pieces in memory that an earlier LOAD_READ has filled (packed_file.h)
 *
 * so that checking, allocating and reading cannot diverge.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/io/checkpoint.h"
#include "core/load/smoothing.h"
#include "core/model/quantized.h"

typedef struct weight_tensor {
    const char *place; /* name of its file, for messages */
    const char *name;  /* the source's address of the name, which identifies the tensor; NULL: the source lists none */
    size_t rank, shape[TENSOR_MAX_RANK];
    tensor_dtype dtype;
    const tensor *stored; /* tensor of a checkpoint */
    size_t index;         /* index in a set of tensors in memory */
    struct {              /* for made-up weights: value e is mean + deviation u(key, e), see synthetic.c */
        uint64_t key;
        float mean, deviation;
        size_t period; /* of v1's in_proj, whose rows repeat q, k, v of each head; 0 elsewhere */
        float value_deviation;
        unsigned use; /* how the tensor uses the hidden states' channels, where some are outliers; 0: not at all */
    } made;
    unsigned mark; /* private mark of a source that decorates another; else 0 */
} weight_tensor;

typedef struct weight_source {
    const void *context;
    const char *name; /* name in messages: the file, or the folder of several */
    bool (*find)(const void *context, const char *name, weight_tensor *found);
    deberta_status (*read)(const void *context, const weight_tensor *from, size_t first, size_t count, float *values,
                           deberta_error *err);
    /* Returns all values in place, or NULL if they must be read. The pointer itself may be NULL. */
    const float *(*view)(const void *context, const weight_tensor *from);
    /* Called once the packed copy of the tensor is made. */
    void (*forget)(const void *context, const weight_tensor *from);
    /* Iterates over all names: *cursor is 0 at first; NULL after the last. is_outside: the tensor lies beside the base
     * model, whatever its name. NULL itself: the source cannot list its tensors. */
    const char *(*next)(const void *context, size_t *cursor, size_t *name_bytes, bool *is_outside);
} weight_source;

weight_source weight_source_of_checkpoint(const checkpoint *stored);

typedef enum load_pass { LOAD_CHECK, LOAD_MEASURE, LOAD_READ, LOAD_VIEW } load_pass;

/* Receives the plans of packed pieces while they are read (or viewed), for code that changes weights, or restores the
 * original tensors. */
struct matrix_plan;
typedef struct load_listener {
    void *context;
    void (*on_matrix)(void *context, const packed_matrix *matrix, const struct matrix_plan *plan, const char *prefix);
    void (*on_vector)(void *context, const float *vector, size_t count, const char *name);
} load_listener;

/* Lists the tensors that a loader found, for tensor_account_close. */
typedef struct tensor_account {
    const char **names; /* [count] addresses of the names of the found tensors */
    size_t count, capacity;
} tensor_account;

typedef struct weight_loader {
    const weight_source *source;
    load_pass pass;
    arena *arena;
    const kernels *kernels;
    executor *executor;
    const load_listener *listener; /* NULL: no listener */
    char prefix[40];               /* prefix of all names, such as "encoder.layer.3." */
    float most;                    /* largest magnitude of a weight, for weights_check */
    bool counting;                 /* whether checked tensors add to `parameters` */
    bool unsmoothed;               /* whether to leave large channels as they are, for a check */
    size_t parameters;
    tensor_account *account; /* account of the tensors found while checking; NULL: none */
    size_t scratch_floats;   /* floats that a worker needs: the largest matrix seen while measuring */
    float *scratch;          /* [threads][scratch_floats] while reading */

    /* Members for low precision: the digits of a layer's weights, the spreads of the current matrix's inputs and
     * outputs, and that of the hidden states after the last LayerNorm. */
    size_t digits, channels; /* channels: the most that a matrix has on either side */
    channel_spread inputs, outputs, hidden;
    float *amplitudes; /* amplitudes of the inputs, for smoothing_factors */
} weight_loader;

/* Allocates the scratch of the reading pass; release with free(loader->scratch). */
deberta_status loader_begin_reading(weight_loader *loader, deberta_error *err);

/* Refuses a checkpoint's weights that are no numbers or of a larger magnitude than `most`. Damage is noticed here, since
 * later an activation may hide it: GELU(-inf) is 0. With 2^10 for the encoder and 2^30 for the heads, which come after
 * it, no sum of a model with f^2 h^3 < 2^65 can overflow: a norm's sum of squares, the largest, is below
 * 2^62 f^2 h^3. */
#define LARGEST_WEIGHT 0x1p10f
#define LARGEST_WEIGHT_OF_HEADS 0x1p30f
deberta_status weights_check(const weight_tensor *from, size_t first, const float *values, size_t count, float most,
                             deberta_error *err);
/* Reads and checks weights. */
deberta_status loader_read(const weight_loader *loader, const weight_tensor *from, size_t first, size_t count,
                           float *values, deberta_error *err);
static inline void loader_forget(const weight_loader *loader, const weight_tensor *from)
{
    if (loader->source->forget) loader->source->forget(loader->source->context, from);
}

enum { ANY_SIZE = 0 };

/* Returns whether there is a tensor of that name (after the prefix). */
bool loader_has(const weight_loader *loader, const char *name);
/* Finds a tensor that must exist with this shape, in which ANY_SIZE matches any size. */
deberta_status loader_find(weight_loader *loader, weight_tensor *found, const char *name, size_t rank,
                           const size_t *shape, deberta_error *err);
/* Loads a vector, followed by zeros up to whole panels. */
deberta_status loader_vector(weight_loader *loader, float **vector, const char *name, size_t count, deberta_error *err);
/* Load a table unpacked: [rows][row_stride(columns)], zeros between columns and stride; the first reads into memory
 * outside the arena, as loader_matrix_into does. */
deberta_status loader_table_into(weight_loader *loader, float *table, const char *name, size_t rows, size_t columns,
                                 deberta_error *err);
deberta_status loader_table(weight_loader *loader, float **table, const char *name, size_t rows, size_t columns,
                            deberta_error *err);

/* Outputs of a packed matrix from one tensor: group g consists of its rows from first_row + g row_step on. */
typedef struct matrix_part {
    const char *weight;
    const char *bias; /* [groups group_rows]; NULL: zeros */
    size_t first_row, row_step;
    size_t tensor_rows;
    double scale; /* factor of weight and bias; 1: as stored */
} matrix_part;

enum { MAX_PARTS = 3 };

/* The plan of a packed matrix. Outputs are parts x groups x padded_group, of which the first group_rows of a group are
 * stored rows and the rest zeros: heads are padded to whole panels. Inputs: see input_layout. */
typedef struct matrix_plan {
    matrix_part parts[MAX_PARTS];
    size_t part_count;
    size_t groups, group_rows, padded_group;
    size_t columns; /* columns of a stored row */
    size_t depth;   /* columns of a packed row */
    enum {
        INPUT_AS_STORED,
        INPUT_HEADS,       /* every input_group columns are followed by zeros up to input_stride */
        INPUT_CONVOLUTION, /* stored [channels of a group][width], wanted [width][input_stride], the group at its place
                            */
    } input_layout;
    size_t input_group, input_stride, width;
} matrix_plan;

/* Returns the place of element `column` of a stored row in a packed one. */
size_t matrix_plan_packed_column(const matrix_plan *plan, size_t stored_row, size_t column);
/* Returns the plan of an ordinary linear layer. */
matrix_plan matrix_plan_plain(const char *name, const char *bias, size_t outputs, size_t inputs);
/* Returns the plan of a matrix whose outputs are heads of head_size rows, each padded; the caller sets the parts. */
matrix_plan matrix_plan_heads(size_t part_count, size_t heads, size_t head_size, size_t padded_head, size_t inputs);
deberta_status loader_matrix(weight_loader *loader, packed_matrix *matrix, const matrix_plan *plan, deberta_error *err);
/* Loads into memory outside the arena: `matrix` is already carved. It only checks while not reading. */
deberta_status loader_matrix_into(weight_loader *loader, const packed_matrix *matrix, const matrix_plan *plan,
                                  deberta_error *err);

/* Loads a matrix of a layer: as loader_matrix or, in low precision, as integers. Then loader->inputs has the spreads of
 * its inputs, and loader->outputs receives those of its outputs. */
deberta_status loader_product(weight_loader *loader, packed_matrix *matrix, const matrix_plan *plan,
                              deberta_error *err);
