/* What the user wants encoded, whatever form it came in, as one ragged batch that remembers how it looked.
 *
 * Sources, one of: --ids 1,7,3 (taken as is, nothing added; may be repeated), --input FILE (.safetensors or .json with input_ids
 * [B,N] and optionally attention_mask, token_type_ids, position_ids).
 *
 * Padding exists only here: leading and trailing padding of a row is cut before encoding, a hole inside keeps its columns and
 * carries a mask, and absolute positions go on counting columns: a left-padded row starts at its first real column. A row
 * without any real token has no sequence.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "cli/options.h"

/* One row of the input as the user gave it. */
typedef struct input_row {
    size_t first_column, tokens; /* the columns that are encoded */
    size_t sequence;             /* which sequence of the batch that is; SIZE_MAX for a row that is all padding */
} input_row;

typedef struct input_batch {
    size_t rows, columns; /* B, N: shorter rows are padded to the longest */
    input_row *row;       /* [rows] */
    size_t sequences, tokens;
    int32_t *ids;
    size_t *sequence_starts; /* [sequences + 1] */
    int32_t *token_types, *position_ids; /* NULL: the default */
    uint8_t *mask;                       /* NULL: no holes */
    char **labels;                       /* [tokens] what figures write beside a row: "7", or the token */
} input_batch;

/* The options of the sources, for the table of a command. */
#define INPUT_OPTIONS                                                                                                  \
    {"ids", 0, "LIST", "token ids such as 1,7,3,2, taken as they are; may be repeated"},                               \
    {"input", 'i', "FILE", "input_ids and masks from a .safetensors or .json file"}

/* EXIT_OK or an exit code, after saying why. */
int input_read(const parsed_options *options, input_batch *input);
void input_free(input_batch *input);
/* The batch for deberta_encode; borrows. */
deberta_batch input_as_batch(const input_batch *input);

/* "all", "0,3", "0-5,7": sets selected[k] for k < limit. False after saying what is wrong. */
bool parse_index_list(const parsed_options *options, const char *name, const char *text, bool *selected, size_t limit);

#endif
