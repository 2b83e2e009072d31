/* What `deberta encode` was asked for. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_ENCODE_ENCODE_OPTIONS_H
#define PROGRAM_ENCODE_ENCODE_OPTIONS_H

#include "program/frame/input/text_stream.h"

enum { FRAME_TOKENS = 2 }; /* [CLS] and [SEP] of a window */

typedef enum pooling { POOL_MEAN, POOL_CLS, POOL_NONE } pooling;
extern const char *const pooling_names[]; /* NULL-terminated */

typedef struct encode_options {
    reading_options reading;
    /* padded tensors with everything inside */
    int hidden;                   /* 0: the last layer's, 1: all */
    const char *attention_layers; /* lists of layers; NULL: none */
    const char *component_layers;
    bool logits;
    /* corpora */
    int pool; /* enum pooling */
    size_t window, stride;
    bool resume;
} encode_options;

#endif
