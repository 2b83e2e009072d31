/* Lower case, character by character as Python's str.lower() does it, which is what transformers calls: U+0130 becomes
 * two characters; a final sigma is not special.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <locale.h>

#include "core/text/traced_text.h"

/* To be freed by freelocale. DEBERTA_E_SYSTEM if the system has no C.UTF-8; `where` begins the message. */
deberta_status lower_case_open(locale_t *locale, const char *where, deberta_error *err);
/* text: valid UTF-8, below 2^31 bytes. */
deberta_status lower_case_run(locale_t locale, traced_text *out, const char *text, size_t bytes, deberta_error *err);
