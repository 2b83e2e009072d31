/* Declares the state that the files of the module share: the open model, the last text, and the one encoded last.
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
    deberta_tokens *tokens;  /* of the last text */
    deberta_tokens *encoded; /* of the text whose hidden states the session has, often `tokens`; NULL: it has none */
    deberta_outputs outputs; /* of `encoded` */
    char *ablations;         /* ablations of the session, as --ablate writes them */
    char *json;              /* last answer */
    uint8_t *cells;          /* packed heads of the last text */
    size_t cells_bytes;
} module_state;
extern module_state module;

/* Takes the value over and keeps its text as the last answer. */
deberta_status module_answer(json_t *value);
/* Opens a session with these ablations, unless the present one has them; "": none. A new one has encoded no text. */
deberta_status module_session(const char *ablations);
/* Forgets which text the session has encoded, before it encodes another or is freed. */
void module_forget(void);
/* Refuses to say anything of an encoded text if there is none. */
deberta_status module_check_encoded(void);
