/* Character properties that do not depend on the host's locale: lower case, and word ends without white space.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/deberta.h"

/* Lower case as Unicode 14.0 has it, one character for one: the first where it is two (U+0130). */
uint32_t letter_lower_case(uint32_t character);

/* Whether a word ends between two tokens of a text that no white space separates: where either side is of a script
 * that has none between words (Chinese, Japanese, Thai, Lao, Khmer, ...), each token is a word, but for tokens that
 * begin inside a character or with a mark that belongs to the character before. Letters and digits of other scripts,
 * and punctuation among them, stay together. It is what Unicode's annex 29 says of such scripts, so that masks and
 * figures know words alike. Spans: bytes of the text, `span` of the token behind `before`. */
bool word_ends_between(const char *text, size_t bytes, deberta_span before, deberta_span span);
