/* What drawn cases have shown, as a table by feature and as JSON. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_VERIFY_DRAWN_OUTPUT_H
#define PROGRAM_VERIFY_DRAWN_OUTPUT_H

#include "check/verify_drawn.h"
#include "output/result.h"

/* {"schema": "deberta-verify-drawn/1", "seed", "first", "cases", "failures", "failed_cases", "features": [...]}. */
result *drawn_result(const drawn_report *report, const drawing_options *options);

#endif
