/* SentencePiece models written by hand, and the ids that a text is cut into.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/unit/io_helpers.h"

#include "core/text/model_proto.h"
#include "core/text/piece_cuts.h"

static inline void add(piece_model *model, const char *text, float score, piece_type type)
{
    assert_int_equal(piece_model_add(model, text, strlen(text), score, type, NULL), DEBERTA_OK);
}

typedef struct piece_case {
    const char *text;
    float score;
    piece_type type;
} piece_case;

/* clang-format off */
#define USED(text, score)   {(text), (score), PIECE_NORMAL}
#define UNUSED(text, score) {(text), (score), PIECE_UNUSED}
#define USER(text, score)   {(text), (score), PIECE_USER_DEFINED}
/* clang-format on */

enum { CASE_PIECES = 12 };

/* [UNK] 0, [CLS] 1, then what the table holds, up to a text that is NULL. */
static inline piece_model model_of(const piece_case pieces[CASE_PIECES], piece_algorithm algorithm)
{
    piece_model model;
    deberta_error error = {0};
    piece_model_init(&model);
    model.algorithm = algorithm;
    add(&model, "[UNK]", 0, PIECE_UNKNOWN);
    add(&model, "[CLS]", 0, PIECE_CONTROL);
    for (size_t i = 0; i < CASE_PIECES && pieces[i].text; i++)
        add(&model, pieces[i].text, pieces[i].score, pieces[i].type);
    if (piece_model_check(&model, "test", &error) != DEBERTA_OK) fail_msg("%s", error.message);
    return model;
}

/* "2:1 0:4": id and end of each. */
static inline const char *cuts_text(const piece_cuts *cuts, char *out, size_t capacity)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < cuts->count && at < capacity; i++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%d:%u", i ? " " : "", (int)cuts->items[i].id,
                               (unsigned)cuts->items[i].end);
    assert_true(at < capacity);
    return out;
}
