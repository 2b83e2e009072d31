/* Compares the two ways in which a tokenizer.json is read: with its rows taken out, and all of it as a tree.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <string.h>

#include "core/text/json_value.h"
#include "core/text/vocabulary_rows.h"

static inline bool same_row(const json_t *row, const piece_model *rows, size_t id)
{
    const json_t *name = json_array_get(row, 0), *number = json_array_get(row, 1);
    const piece *p = &rows->pieces[id];
    const double score = json_number_value(number);
    return json_array_size(row) == 2 && json_is_string(name) && json_is_number(number) && p->type == PIECE_NORMAL &&
           json_string_length(name) == p->bytes &&
           memcmp(json_string_value(name), piece_text(rows, id), p->bytes) == 0 &&
           memcmp(&score, &p->score, sizeof score) == 0;
}

/* Whether both ways find the same in a file, bit for bit, or the one without a tree leaves it to the other, and keeps
 * nothing. *taken: the rows were taken out. */
static inline bool vocabulary_paths_agree(const char *path, bool *taken)
{
    json_t *rest, *whole;
    piece_model rows;
    deberta_error unsaid;
    piece_model_init(&rows);
    *taken = vocabulary_rows_read(&rest, &rows, path);
    const bool read = json_value_read(&whole, path, &unsaid) == DEBERTA_OK;
    bool same = *taken ? read : !rest && rows.count == 0;
    if (*taken && read) {
        json_t *list = json_object_get(json_object_get(whole, "model"), "vocab");
        same = json_array_size(list) == rows.count;
        for (size_t id = 0; id < rows.count && same; id++) same = same_row(json_array_get(list, id), &rows, id);
        json_array_clear(list);
        same = same && json_equal(rest, whole);
    }
    json_decref(rest);
    json_decref(whole);
    piece_model_free(&rows);
    return same;
}
