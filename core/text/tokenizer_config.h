/* Settings from the small JSON files next to a vocabulary: tokenizer_config.json, special_tokens_map.json,
 * added_tokens.json, and the list of added tokens in tokenizer.json. All of them are optional.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/text.h"
#include "core/text/added_tokens.h"

typedef struct special_token {
    char *text;                              /* NULL: not named in any file */
    bool described, strip_left, strip_right; /* described: whether the file gives the other two */
} special_token;

/* The special tokens that tokenizer.json puts around texts. */
typedef struct tokenizer_frame {
    size_t pair_separators; /* number of [SEP] between two segments; 0: no tokenizer.json defines it */
    char *text[2];          /* texts of [CLS] and [SEP] */
    int32_t id[2];
} tokenizer_frame;

typedef struct tokenizer_config {
    special_token specials[DEBERTA_SPECIAL_COUNT];
    added_tokens added;
    bool lower_case, split_by_punctuation, add_prefix_space;
    bool no_prefix_space; /* whether add_prefix_space is there, and false */
    tokenizer_frame frame;
    json_t *more_specials; /* names of further special tokens, an array of texts; NULL: none */
    kept_notes notes;
} tokenizer_config;

/* Reads the files. *config is zero-initialised; its existing values (from tokenizer.json) take precedence. The caller
 * frees it also after a failure. */
deberta_status tokenizer_config_read(tokenizer_config *config, const char *folder, deberta_error *err);
/* Adds "added_tokens" of the root of a tokenizer.json. */
deberta_status tokenizer_config_add_list(tokenizer_config *config, json_t *root, const char *where, deberta_error *err);
/* Returns whether the folder has a config.json of Microsoft's, which has no model_type. Opening the model reports any
 * other fault in it. */
bool tokenizer_config_is_microsoft(const char *folder);
void tokenizer_config_free(tokenizer_config *config);

/* Finds a file of that name. *path is its path (the caller frees it), or NULL. */
deberta_status tokenizer_file_find(char **path, const char *folder, const char *name, deberta_error *err);
