/* How a table or a result is written. SPDX-License-Identifier: MIT */
#ifndef OUTPUT_RESULT_FORMAT_H
#define OUTPUT_RESULT_FORMAT_H

typedef enum result_format { RESULT_TEXT, RESULT_MARKDOWN, RESULT_CSV, RESULT_JSON, RESULT_LATEX } result_format;

#endif
