/* Replaces `bench train` in a build without training. SPDX-License-Identifier: MIT */
#include "bench/training_bench.h"

#include "core/base/status.h"

const char *training_stage_name(training_stage stage) { return (void)stage, ""; }

size_t training_memory_plan(const training_memory *memory) { return (void)memory, 0; }

deberta_status training_bench_run(training_measurement *found, const training_bench_options *options,
                                  deberta_error *err)
{
    (void)found, (void)options;
    return status_fail(err, DEBERTA_E_UNSUPPORTED,
                       "this build has no training (it was configured with -Dtraining=disabled)");
}
