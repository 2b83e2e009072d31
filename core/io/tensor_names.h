/* Canonical names of tensors (SPEC 9): they have no prefix before the encoder's part and call LayerNorm's parameters
 * weight and bias.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern const char tensor_name_of_word_table[];

/* What precedes the encoder's names, and how much of it precedes the names of the heads as well ("module." of a model
 * that was trained on several devices). Points into the name of the word table. */
typedef struct name_prefix {
    const char *text;
    size_t length_bytes, outer_bytes;
} name_prefix;

/* Does the name end as a word table's? Then what precedes that becomes *prefix. */
bool tensor_name_is_word_table(const char *name, name_prefix *prefix);
/* The difference between two word tables, which some files hold beside one. */
bool tensor_name_is_word_delta(const char *name);
/* Is it a name of `half`, "generator" or "discriminator"? Microsoft's files of replaced-token training hold both. */
bool tensor_name_is_of_half(const char *name, const char *half);
/* How surely a word table with this prefix is the model's: exactly "deberta.", "bert." or nothing; one of them further
 * inside, a discriminator's before others and a generator's behind them; anything else. */
int name_prefix_rank(name_prefix prefix);

/* Gives the name's canonical form; a renamed one is written to *room, which moves on by at most room_bytes. */
const char *tensor_name_canonical(const char *name, const name_prefix *prefix, char **room);
size_t tensor_name_room_bytes(const char *name);

/* "embeddings.position_ids": 0, 1, 2 ... as old files hold it. Nobody reads it, so two of it are not ambiguous. */
bool tensor_name_is_counter(const char *canonical);
