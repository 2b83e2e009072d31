/* Declares the options of `deberta encode`. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/input/text_stream.h"

enum { FRAME_TOKENS = 2 }; /* [CLS] and [SEP] of a window */

typedef enum pooling { POOL_MEAN, POOL_CLS, POOL_NONE } pooling;
extern const char *const pooling_names[]; /* NULL-terminated */

typedef struct encode_options {
    reading_options reading;
    /* Options of padded tensors */
    int hidden;                   /* 0: the last layer's, 1: all */
    const char *attention_layers; /* lists of layers; NULL: none */
    const char *component_layers;
    bool logits;
    /* Options of corpora */
    int pool; /* an enum pooling */
    size_t window, stride;
    bool resume;
} encode_options;

/* `deberta encode` for corpora: any number of texts, streamed, encoded in ragged batches of like length, one vector a
 * text (or one a token), resumable. */

/* Returns true if these options ask for a corpus, rather than for padded tensors with everything inside. */
bool encode_corpus_wanted(const encode_options *o);
/* Encodes a corpus, and returns the exit code. */
int encode_corpus(const encode_options *o);
