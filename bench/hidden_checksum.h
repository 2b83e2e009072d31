/* Digests the bits of hidden states to one number, which is equal for runs with equal results.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <string.h>

#include "include/deberta.h"

/* Returns FNV-1a over the words of the last hidden states of tokens [first, first + tokens), `width` of them a
 * row. */
static inline uint64_t hidden_checksum(const deberta_outputs *outputs, size_t first, size_t tokens, size_t width)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t t = first; t < first + tokens; t++) {
        const float *row = outputs->hidden + t * outputs->hidden_stride;
        for (size_t i = 0; i < width; i++) {
            uint32_t bits;
            memcpy(&bits, &row[i], sizeof bits);
            sum = (sum ^ bits) * 0x100000001b3;
        }
    }
    return sum;
}
