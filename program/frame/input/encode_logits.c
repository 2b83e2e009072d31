/* Computes logits in blocks of positions, and passes each to the caller with its row.
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/encode_logits.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/status.h"
#include "output/scope.h"

/* The positions asked for, and the tensor row of each one's logits. */
typedef struct logits_places {
    size_t count;
    size_t *positions, *rows;
} logits_places;

static size_t block_positions(size_t width, size_t tokens, size_t block_bytes)
{
    const size_t fitting = block_bytes / (width * sizeof(float));
    if (fitting == 0) return 1;
    return fitting < tokens ? fitting : tokens;
}

size_t encode_logits_bytes(const deberta_model *model, deberta_task task, size_t tokens, size_t block_bytes)
{
    const size_t width = deberta_task_width(model, task);
    if (width == 0 || tokens == 0) return 0;
    return tokens * 2 * sizeof(size_t) + block_positions(width, tokens, block_bytes) * width * sizeof(float);
}

static void add_place(logits_places *places, size_t position, size_t row)
{
    places->positions[places->count] = position;
    places->rows[places->count] = row;
    places->count++;
}

static void list_places(logits_places *places, const input_batch *input, deberta_task task)
{
    for (size_t r = 0; r < input->rows; r++) {
        const input_row row = input->row[r];
        if (row.tokens == 0) continue;
        if (task == DEBERTA_TASK_SEQUENCE) {
            add_place(places, row.sequence, r);
            continue;
        }
        const size_t first = input->sequence_starts[row.sequence];
        for (size_t t = 0; t < row.tokens; t++) {
            if (input->mask && !input->mask[first + t]) continue; /* a hole counts as padding: zero */
            add_place(places, first + t, r * input->columns + row.first_column + t);
        }
    }
}

/* Checks that the logits are finite: weights of a head may be damaged where the encoder's are not. */
static deberta_status check_finite(const deberta_model *model, deberta_task task, const float *logits, size_t count,
                                   deberta_error *err)
{
    for (size_t k = 0; k < count; k++)
        if (!isfinite(logits[k]))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: the head '%s' gives %f: weights of the model are damaged or diverged in training",
                         deberta_model_describe(model)->name, deberta_task_name(task), (double)logits[k]);
    return DEBERTA_OK;
}

deberta_status encode_logits(deberta_session *session, const deberta_model *model, deberta_task task,
                             const input_batch *input, size_t block_bytes, logits_visit visit, void *context,
                             deberta_error *err)
{
    if (input->tokens == 0) return DEBERTA_OK;
    const size_t width = deberta_task_width(model, task), block = block_positions(width, input->tokens, block_bytes);
    float *logits = memory_take(block * width, sizeof *logits);
    logits_places places = {.positions = memory_take(input->tokens, sizeof *places.positions),
                            .rows = memory_take(input->tokens, sizeof *places.rows)};
    deberta_status status = DEBERTA_OK;
    list_places(&places, input, task);
    for (size_t done = 0, count; status == DEBERTA_OK && done < places.count; done += count) {
        count = places.count - done < block ? places.count - done : block;
        status = deberta_task_logits(session, task, places.positions + done, count, logits, width, err);
        if (status == DEBERTA_OK) status = check_finite(model, task, logits, count * width, err);
        for (size_t i = 0; status == DEBERTA_OK && i < count; i++)
            status = visit(context, places.rows[done + i], places.positions[done + i], logits + i * width, err);
    }
    free(logits);
    free(places.positions);
    free(places.rows);
    return status;
}
