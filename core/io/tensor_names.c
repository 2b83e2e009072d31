/* Strips prefixes and old suffixes from stored names, so that the engine knows each tensor by one name.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/tensor_names.h"

#include <stdint.h>
#include <string.h>

const char tensor_name_of_word_table[] = "embeddings.word_embeddings.weight";
static const char word_delta[] = "embeddings.word_embeddings._weight";

static const char *const old_endings[] = {"LayerNorm.gamma", "LayerNorm.beta"};
static const char *const new_endings[] = {"weight", "bias"};

static bool ends_with(const char *text, const char *end)
{
    size_t text_bytes = strlen(text), end_bytes = strlen(end);
    return text_bytes >= end_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

static bool starts_with(const char *text, const char *begin, size_t begin_bytes)
{
    return strncmp(text, begin, begin_bytes) == 0;
}

/* Returns the length of the part before `end` in a name; SIZE_MAX if the name does not end so. "xembeddings..." does
 * not match "embeddings...". */
static size_t bytes_before(const char *name, const char *end)
{
    if (!ends_with(name, end)) return SIZE_MAX;
    size_t before = strlen(name) - strlen(end);
    return before == 0 || name[before - 1] == '.' ? before : SIZE_MAX;
}

/* Splits the prefix of the word table into the encoder's part ("deberta.") and the part before the whole model. */
static name_prefix make_prefix(const char *name, size_t length_bytes)
{
    static const char *const encoders[] = {"deberta.", "bert."};
    name_prefix prefix = {name, length_bytes, length_bytes};
    for (size_t i = 0; i < 2 && prefix.outer_bytes == length_bytes; i++) {
        size_t bytes = strlen(encoders[i]);
        if (length_bytes < bytes || !starts_with(name + length_bytes - bytes, encoders[i], bytes)) continue;
        /* "albert." is another model. */
        if (length_bytes == bytes || name[length_bytes - bytes - 1] == '.') prefix.outer_bytes = length_bytes - bytes;
    }
    return prefix;
}

bool tensor_name_is_word_table(const char *name, name_prefix *prefix)
{
    size_t length_bytes = bytes_before(name, tensor_name_of_word_table);
    if (length_bytes == SIZE_MAX) return false;
    *prefix = make_prefix(name, length_bytes);
    return true;
}

bool tensor_name_is_word_delta(const char *name) { return bytes_before(name, word_delta) != SIZE_MAX; }

bool tensor_name_is_of_half(const char *name, const char *half)
{
    static const char wrapper[] = "module.";
    const size_t length_bytes = strlen(half);
    if (starts_with(name, wrapper, sizeof wrapper - 1)) name += sizeof wrapper - 1;
    return starts_with(name, half, length_bytes) && name[length_bytes] == '.';
}

int name_prefix_rank(name_prefix prefix)
{
    if (prefix.length_bytes == 0) return 5;
    if (prefix.outer_bytes == prefix.length_bytes) return 1;
    if (prefix.outer_bytes == 0) return 5;
    return tensor_name_is_of_half(prefix.text, "discriminator") ? 4
           : tensor_name_is_of_half(prefix.text, "generator")   ? 2
                                                                : 3;
}

const char *tensor_name_canonical(const char *name, const name_prefix *prefix, char **room)
{
    if (starts_with(name, prefix->text, prefix->length_bytes))
        name += prefix->length_bytes;
    else if (starts_with(name, prefix->text, prefix->outer_bytes))
        name += prefix->outer_bytes;
    for (int i = 0; i < 2; i++) {
        if (!ends_with(name, old_endings[i])) continue;
        size_t kept = strlen(name) - strlen(old_endings[i]) + strlen("LayerNorm.");
        char *renamed = *room;
        memcpy(renamed, name, kept);
        strcpy(renamed + kept, new_endings[i]);
        *room += kept + strlen(new_endings[i]) + 1;
        return renamed;
    }
    return name;
}

size_t tensor_name_room_bytes(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (ends_with(name, old_endings[i])) return strlen(name) + sizeof "weight";
    return 0;
}

bool tensor_name_is_counter(const char *canonical) { return strcmp(canonical, "embeddings.position_ids") == 0; }
