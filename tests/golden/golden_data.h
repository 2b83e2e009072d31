/* Golden cases on disk: the tensors of their expected.safetensors, their inputs, and the bars that results must keep.
 *
 * A reader of its own, not the library's: what judges the library should not share its mistakes. It trusts the files.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

enum { FILE_TENSOR_MAX_RANK = 8 };

typedef struct file_tensor {
    char *name;
    size_t rank, shape[FILE_TENSOR_MAX_RANK], elements;
    double *values; /* [elements], whatever the stored type: F64, F32, I64 */
} file_tensor;

typedef struct tensor_file {
    file_tensor *tensors;
    size_t count;
} tensor_file;

/* Reads a whole safetensors file. On failure *file is empty. */
deberta_status tensor_file_read(tensor_file *file, const char *path, deberta_error *err);
void tensor_file_free(tensor_file *file);
/* NULL if absent. name: printf format. */
const file_tensor *tensor_file_find(const tensor_file *file, const char *name, ...)
    __attribute__((format(printf, 2, 3)));

/* What float32 transformers is off by, from bars.tsv; NAN where the case has no such quantity. */
typedef struct golden_bars {
    double hidden, probabilities, logits, emd, rtd, components;
} golden_bars;

typedef struct golden_case {
    char name[64], folder[512];
    tensor_file expected;
    size_t rows, columns;             /* B, N of the padded batch */
    const double *ids, *mask, *types; /* [B][N] */
    golden_bars bars;
} golden_case;

/* Reads folder/name, with the bars of the line `bars_of` of bars_path (NULL: none). */
deberta_status golden_case_read(golden_case *item, const char *folder, const char *name, const char *bars_path,
                                const char *bars_of, deberta_error *err);
void golden_case_free(golden_case *item);
/* Are there expected tensors whose names begin so? "ms_clamp.": where the references part; "zero_fill.": with padding.
 */
bool golden_case_has(const golden_case *item, const char *prefix);

/* Too large for the repository; whoever has it names the folder that holds it: --beside, or DEBERTA_GOLDEN_BESIDE. */
#define GOLDEN_LARGE_CASE "38-v3-medium"

/* Sorted names of the cases: the lines of folder/bars.tsv, and the subfolders that begin with a digit, so that neither
 * a folder nor a line can go missing unnoticed. Without the large case. Ends with NULL. */
deberta_status golden_list(char ***names, const char *folder, deberta_error *err);
/* The same for folder/formats: those that golden_format_source knows, and the subfolders that begin with f. */
deberta_status golden_list_formats(char ***names, const char *folder, deberta_error *err);
void golden_list_free(char ***names);

/* The name of the case whose weights and inputs a format folder has: its bars apply. NULL if unknown. */
const char *golden_format_source(const char *format_name);
