/* Lower case, character by character as Python's str.lower() does it, which is what transformers calls: U+0130 becomes
 * two characters; a final sigma is not special. The tables are our own (core/base/letters.h), so that the host's locale
 * does not matter.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/traced_text.h"

/* text: valid UTF-8, below 2^31 bytes. */
deberta_status lower_case_run(traced_text *out, const char *text, size_t bytes, deberta_error *err);
