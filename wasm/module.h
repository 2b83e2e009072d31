/* Declares the state that the files of the module share: the open model and the last text.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "include/deberta.h"
#include "include/deberta_unstable.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { MODULE_MAX_TOKENS = 512 };

/* The state of a module. JavaScript instantiates one module for each model. */
typedef struct module_state {
    deberta_error error;
    deberta_model *model;
    deberta_tokenizer *tokenizer;
    deberta_session *session;
    deberta_tokens *tokens;
    deberta_outputs outputs;
    char *ablations; /* ablations of the session, as --ablate writes them */
    char *json;      /* last answer */
    uint8_t *cells;  /* packed heads of the last text */
    size_t cells_bytes;
} module_state;
extern module_state module;

/* Takes the value over and keeps its text as the last answer. */
deberta_status module_answer(json_t *value);
/* Opens a session with these ablations, unless the present one has them; "": none. */
deberta_status module_session(const char *ablations);
