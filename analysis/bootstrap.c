/* Units are drawn again with replacement, and the interval is read from the sorted ratios.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/bootstrap.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/random.h"
#include "core/base/sort.h"

static double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

deberta_status bootstrap_ratio(bootstrap_interval *interval, const double *parts, const double *wholes, size_t count,
                               uint64_t seed, deberta_error *err)
{
    assert(count >= 1);
    double *results = malloc(BOOTSTRAP_RESAMPLES * sizeof *results), part = 0, whole = 0;
    if (!results) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; k < count; k++) {
        part += parts[k];
        whole += wholes ? wholes[k] : 1;
    }
    uint64_t state = seed;
    for (size_t r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        double drawn_part = 0, drawn_whole = 0;
        for (size_t k = 0; k < count; k++) {
            const size_t unit = random_below(&state, count);
            drawn_part += parts[unit];
            drawn_whole += wholes ? wholes[unit] : 1;
        }
        results[r] = ratio(drawn_part, drawn_whole);
    }
    sort_doubles(results, BOOTSTRAP_RESAMPLES);
    *interval = (bootstrap_interval){.value = ratio(part, whole),
                                     .low = count > 1 ? results[BOOTSTRAP_RESAMPLES * 25 / 1000] : NAN,
                                     .high = count > 1 ? results[BOOTSTRAP_RESAMPLES * 975 / 1000 - 1] : NAN};
    free(results);
    return DEBERTA_OK;
}
