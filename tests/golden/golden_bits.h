/* The float32 bits of every golden case, frozen: one checksum for each quantity of each case in bits.tsv, the same on
 * every tier, compiler, architecture and number of threads.
 *
 * A checksum is FNV-1a of 64 bits over the 32-bit words of all values of real tokens: hidden states of all layers,
 * one component of all layers and heads, the logits of one task. Rows at holes are unspecified and left out.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/golden/encode_case.h"

/* ------------------------------------------------------------------------------------------------------------- sums */

typedef struct word_sum {
    uint64_t sum;
    size_t words;
    size_t damaged; /* which word, counted from 1, is taken with its last bit flipped; 0: none */
} word_sum;

word_sum word_sum_begin(size_t damaged);
/* Each adds nothing if there is nothing of that kind. */
void word_sum_hidden(word_sum *sum, const collected *result, const ragged_batch *batch);
void word_sum_component(word_sum *sum, const collected *result, const ragged_batch *batch, deberta_component component);
void word_sum_task(word_sum *sum, const collected *result, const ragged_batch *batch, deberta_task task);

/* ------------------------------------------------------------------------------------------------------------ lines */

typedef struct bits_line {
    char name[64], quantity[32];
    uint64_t sum;
    bool seen; /* some tier has given this quantity */
} bits_line;

typedef struct bits_file {
    bits_line *lines;
    size_t count, capacity;
} bits_file;

deberta_status bits_file_read(bits_file *file, const char *path, deberta_error *err);
/* Sorted, and whole or not at all. Lines that were not seen are left out, unless keep_unseen; those of the large case,
 * which not everybody has, stay. */
deberta_status bits_file_write(bits_file *file, const char *path, bool keep_unseen, deberta_error *err);
void bits_file_free(bits_file *file);
/* NULL if there is none. */
bits_line *bits_file_find(const bits_file *file, const char *name, const char *quantity);
/* A new line; NULL without memory. */
bits_line *bits_file_add(bits_file *file, const char *name, const char *quantity);
