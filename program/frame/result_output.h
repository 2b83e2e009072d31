/* How a command prints its result, and where: --format and --json.
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_FRAME_RESULT_OUTPUT_H
#define PROGRAM_FRAME_RESULT_OUTPUT_H

#include "program/frame/options.h"
#include "program/frame/text_output.h"
#include "output/result.h"

extern const char *const result_format_names[];

/* What the options say; without them, what --out ends in. False after saying that there is no such format, or that two
 * were asked for. */
bool result_format_read(const common_options *options, result_format *format);

/* The result into a file, or for path NULL to stdout, and frees it. The exit code. */
int finish_result(const common_options *options, const char *path, result *r, result_format format);
/* Prints into an output that was opened before the result was computed, so that nobody waits for minutes to hear that a
 * folder does not exist; status: whether it could be. */
int finish_result_in(const common_options *options, text_output *output, result *r, result_format format,
                     deberta_status status, deberta_error *error);
/* finish_result of a command that has text and, with --json, JSON, into --out. */
int finish_text_or_json(const common_options *options, result *r);

#define RESULT_FORMAT_OPTIONS                                                                                          \
    {                                                                                                                  \
        "format", 0, "NAME", "table (default), md, csv, json or latex (booktabs); without it, what --out ends in",     \
            CHOICE_AT(common_options, format, result_format_names), .role = OPTION_SHOWS                               \
    }

#endif
