/* Named values that all ranks of a run must agree on; the ranks exchange their digests. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"
#include "include/deberta_training.h"

/* Whether all ranks have this object; says which rank differs from rank 0, and in which value. All ranks find the same.
 * name_of: what the user calls a key; NULL: as it is. No ranks at all: nothing differs. */
deberta_status rank_values_check(const deberta_ranks *ranks, const json_t *values,
                                 const char *(*name_of)(const char *key), deberta_error *err);
