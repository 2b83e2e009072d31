/* Character properties that do not depend on the host's locale: lower case, and word ends without white space.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/deberta.h"

/* Maps a character to its lower case in Unicode 14.0, one for one: the first character where it has two (U+0130). */
uint32_t letter_lower_case(uint32_t character);

/* Whether a word ends between two tokens of a text that no white space separates. Where either side is of a script
 * without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, ...), each token is a word, except tokens that
 * begin inside a character or with a mark that belongs to the character before. Letters and digits of other scripts,
 * and punctuation among them, stay together. Unicode's annex 29 defines it so for such scripts; masks and figures use
 * the same words. Spans are bytes of the text; `span` is the token after `before`. */
bool word_ends_between(const char *text, size_t bytes, deberta_span before, deberta_span span);
