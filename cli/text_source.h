/* Texts from --text, --pair and --file into the rows of an input. SPDX-License-Identifier: MIT */
#ifndef CLI_TEXT_SOURCE_H
#define CLI_TEXT_SOURCE_H

#include "cli/input.h"

/* Sets rows, texts, text_bytes and, if a pair was given, pairs and pair_bytes. Lines may hold NUL; a last line without
 * a line break counts; "\r\n" ends a line too. */
deberta_status text_source_read(const parsed_options *options, input_batch *input, deberta_error *err);

#endif
