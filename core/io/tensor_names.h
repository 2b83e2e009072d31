/* Canonical names of tensors (SPEC 9): they have no prefix before the encoder's part and call LayerNorm's parameters
 * weight and bias.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern const char tensor_name_of_word_table[];

/* The prefix before the encoder's names, and the part of it that also precedes the names of the heads ("module." of a
 * model that was trained on several devices). It points into the name of the word table. */
typedef struct name_prefix {
    const char *text;
    size_t length_bytes, outer_bytes;
} name_prefix;

/* Returns whether the name ends as a word table's; if so, *prefix becomes the part before. */
bool tensor_name_is_word_table(const char *name, name_prefix *prefix);
/* Returns whether the name is that of the difference between two word tables, which some files hold beside one. */
bool tensor_name_is_word_delta(const char *name);
/* Returns whether the name belongs to `half`, "generator" or "discriminator". Microsoft's files of replaced-token
 * training hold both. */
bool tensor_name_is_of_half(const char *name, const char *half);
/* Ranks how likely a word table with this prefix is the model's: exactly "deberta.", "bert." or nothing; then one of
 * them further inside, a discriminator's before others and a generator's after them; then anything else. */
int name_prefix_rank(name_prefix prefix);

/* Returns the name's canonical form; a renamed one is written to *room, which advances by at most room_bytes. */
const char *tensor_name_canonical(const char *name, const name_prefix *prefix, char **room);
size_t tensor_name_room_bytes(const char *name);

/* Returns whether the name is "embeddings.position_ids", which holds 0, 1, 2 ... in old files. No code reads it, so
 * duplicates are not ambiguous. */
bool tensor_name_is_counter(const char *canonical);
