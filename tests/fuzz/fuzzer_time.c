/* Between libFuzzer and a target (the linker's --wrap): 10 s of processor time for an input, FUZZ_SECONDS of it for
 * all. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/processor_time.h"

/* The names are the linker's. */
int LLVMFuzzerInitialize(int *count, char ***arguments);
int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    const char *seconds = getenv("FUZZ_SECONDS");
    (void)count, (void)arguments;
    processor_time_watch(1000000, 10, seconds ? atoi(seconds) : 0);
    return 0;
}

int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    processor_time_next();
    const int result = __real_LLVMFuzzerTestOneInput(data, size);
    processor_time_next();
    return result;
}
