/* Checks that all ranks of a run (processes by MPI) have the same named values; the ranks exchange their digests.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "core/base/status.h"
#include "include/deberta_training.h"

/* Checks that all ranks have this object; the error names the first rank that differs from rank 0, and the value. All
 * ranks get the same result. name_of: the user's name of a key; NULL: the key itself. Without ranks nothing differs. */
deberta_status rank_values_check(const deberta_ranks *ranks, const json_t *values,
                                 const char *(*name_of)(const char *key), deberta_error *err);
