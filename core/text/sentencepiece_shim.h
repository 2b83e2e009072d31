/* libsentencepiece, seen from C: load a model, cut a text into pieces.
 *
 * No exception crosses this boundary. The caller guarantees what the library does not check: a model written by
 * piece_model_write, and valid UTF-8 of less than 2 GiB.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_TEXT_SENTENCEPIECE_SHIM_H
#define CORE_TEXT_SENTENCEPIECE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sentencepiece_engine sentencepiece_engine; /* immutable, shared by threads */
typedef struct sentencepiece_pieces sentencepiece_pieces; /* the result of one caller; reusable */

typedef enum sentencepiece_outcome {
    SENTENCEPIECE_OK = 0,
    SENTENCEPIECE_NO_MEMORY,
    SENTENCEPIECE_REFUSED, /* the library's own words are in `message` */
} sentencepiece_outcome;

sentencepiece_outcome sentencepiece_load(sentencepiece_engine **engine, const char *model, size_t bytes, char *message,
                                         size_t message_bytes);
void sentencepiece_free(sentencepiece_engine *engine);

/* *pieces may be NULL: then it is made. *count pieces, in the order of the text. */
sentencepiece_outcome sentencepiece_encode(const sentencepiece_engine *engine, sentencepiece_pieces **pieces,
                                           const char *text, size_t bytes, size_t *count, char *message,
                                           size_t message_bytes);
/* The id of piece `index`, and how many bytes its text has. */
int32_t sentencepiece_piece(const sentencepiece_pieces *pieces, size_t index, size_t *bytes);
void sentencepiece_pieces_free(sentencepiece_pieces *pieces);

#ifdef __cplusplus
}
#endif
#endif
