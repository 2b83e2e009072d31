/* Texts from --text, --pair and --file into the rows of an input. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_FRAME_INPUT_TEXT_SOURCE_H
#define PROGRAM_FRAME_INPUT_TEXT_SOURCE_H

#include "program/frame/input/input_batch.h"
#include "program/frame/input/text_stream.h"

/* Sets rows, texts, text_bytes, pairs and pair_bytes from the whole of a text_stream, in which a line that cannot be
 * used is an error. EXIT_OK or the exit code, after saying why. */
int text_source_read(const reading_options *options, input_batch *input);

#endif
