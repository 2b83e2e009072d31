/* What a row of logits says of its classes or pieces.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The class of the largest of `width` logits, at least one; the first of equals. */
size_t logits_largest(const float *logits, size_t width);
