/* Joins the version and the commit in one text. SPDX-License-Identifier: MIT */
#include "bench/build_name.h"

#include "bench/commit.h"

const char *build_name(void) { return DEBERTA_VERSION_TEXT " (" BENCH_COMMIT ")"; }
