/* How the library's errors compare with those of float32 PyTorch, over all golden cases.
 *
 * Both are the largest difference from float64 in one quantity of one case. The components have one bar, so the
 * largest of c2c, c2p and p2c is compared with it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PYTORCH_RATIOS_MOST = 512 };

typedef struct pytorch_ratios {
    struct {
        char name[64];
        size_t kind;
        double listed, error;
    } results[PYTORCH_RATIOS_MOST];
    size_t count;
} pytorch_ratios;

/* kind: which quantity; the largest error of one case and kind stays. A bar that is NaN or 0 (a single token's
 * probabilities are exact) is ignored. False if there is no room for another result. */
bool pytorch_ratios_add(pytorch_ratios *ratios, const char *case_name, size_t kind, double listed, double error);
/* The ratio error / listed that a part (0 to 1) of the results does not exceed. NaN if there are none. */
double pytorch_ratios_quantile(const pytorch_ratios *ratios, double part);
