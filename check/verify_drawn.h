/* Drawn cases through every feature that has a second way to its result: float64, or another way to the same bits.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_DRAWN_H
#define CHECK_VERIFY_DRAWN_H

#include "check/drawn_run.h"

deberta_status verify_drawn(drawn_report *report, const drawing_options *options, deberta_error *err);

#endif
