/* Draws configurations at random: any that config.json can express and the engine takes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/model/config.h"

/* Heads of a model, in bits. */
typedef enum drawn_head {
    DRAWN_LM = 1,        /* of masked words, with V3's names */
    DRAWN_LEGACY_LM = 2, /* with those of cls.predictions */
    DRAWN_RTD = 4,
    DRAWN_SEQUENCE = 8, /* with its pooler */
    DRAWN_TOKEN = 16,
    DRAWN_ANSWER = 32,
} drawn_head;

typedef struct drawn_wish {
    unsigned heads;           /* drawn_head */
    size_t labels;            /* of a sequence or token head */
    size_t places;            /* rows that the table of positions has at least */
    bool is_small;            /* its texts are long, or its loss is computed often */
    bool is_trained;          /* no talking heads, which training refuses */
    bool decodes;             /* with the Enhanced Mask Decoder */
    const model_config *like; /* of a pair: the same vocabulary, widths and tables; NULL: any */
} drawn_wish;

/* Returns the text of a config.json, which the caller frees; NULL without memory. Every key is present or left out, in
 * every spelling that the reader takes. */
char *drawn_configuration(const drawn_wish *wish, uint64_t *state);
