/* How a table or a result is written. SPDX-License-Identifier: MIT */
#pragma once

typedef enum result_format { RESULT_TEXT, RESULT_MARKDOWN, RESULT_CSV, RESULT_JSON, RESULT_LATEX } result_format;
