/* Declares the state that the files of the module share: the open model and the last text.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "include/deberta.h"
#include "include/deberta_unstable.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { MODULE_MAX_TOKENS = 512 };

/* One a module: JavaScript makes as many modules as it wants models. */
typedef struct module_state {
    deberta_error error;
    deberta_model *model;
    deberta_tokenizer *tokenizer;
    deberta_session *session;
    deberta_tokens *tokens;
    deberta_outputs outputs;
    char *ablations; /* those of the session, as --ablate writes them */
    char *json;      /* the last answer */
    uint8_t *cells;  /* packed heads of the last text */
    size_t cells_bytes;
} module_state;
extern module_state module;

/* Takes the value and keeps its text as the last answer. */
deberta_status module_answer(json_t *value);
/* A session with these ablations, unless the one there has them; "": none. */
deberta_status module_session(const char *ablations);
