/* Values of a batch are compared with the tables of a model, and a batch is given to the library.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/input_batch.h"

#include <stdlib.h>

#include "core/base/status.h"
#include "core/io/quote.h"

void input_free(input_batch *input)
{
    for (size_t r = 0; r < input->rows; r++) {
        if (input->token_lists) deberta_tokens_free(&input->token_lists[r]);
        if (input->texts) free(input->texts[r]);
        if (input->pairs) free(input->pairs[r]);
    }
    deberta_tokenizer_free(&input->tokenizer);
    scope_free(&input->memory);
    *input = (input_batch){0};
}

deberta_batch input_as_batch(const input_batch *input)
{
    return (deberta_batch){.struct_size = sizeof(deberta_batch),
                           .ids = input->ids,
                           .sequence_starts = input->sequence_starts,
                           .sequences = input->sequences,
                           .token_types = input->token_types,
                           .position_ids = input->position_ids,
                           .mask = input->mask};
}

typedef struct table {
    const char *name, *what; /* of its rows in the input */
    size_t rows;
} table;

static deberta_status check_value(const input_batch *input, const char *source, const table *table, int32_t value,
                                  size_t row, size_t column, deberta_error *err)
{
    if (value >= 0 && (size_t)value < table->rows) return DEBERTA_OK;
    if (input->token_lists)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "text %zu: '%s' has the %s %d, but the model's %s has %zu rows (0 ... %zu)",
                     row + 1, QUOTE(deberta_tokens_text(input->token_lists[row], column, NULL)), table->what,
                     (int)value, table->name, table->rows, table->rows - 1);
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: %s %d in row %zu, column %zu: the %s has %zu rows (0 ... %zu)",
                 QUOTE(source), table->what, (int)value, row, column, table->name, table->rows, table->rows - 1);
}

deberta_status input_check(const input_batch *input, const deberta_model_info *info, const char *source,
                           deberta_error *err)
{
    const table words = {"vocabulary", "id", info->vocabulary_size};
    const table types = {"token type table", "token type", info->token_types};
    for (size_t r = 0; r < input->rows; r++) {
        const input_row row = input->row[r];
        for (size_t t = 0; t < row.tokens; t++) {
            const size_t token = input->sequence_starts[row.sequence] + t, column = row.first_column + t;
            DEBERTA_TRY(check_value(input, source, &words, input->ids[token], r, column, err));
            /* without a table token types are ignored, whatever they are */
            if (input->token_types && info->token_types > 0)
                DEBERTA_TRY(check_value(input, source, &types, input->token_types[token], r, column, err));
        }
    }
    return DEBERTA_OK;
}
