/* The entry point of a fuzz target, as libFuzzer calls it. Each fuzz_<name>.c defines one; replay.c calls it for the
 * corpus.
 *
 * Without a fuzzer:  ninja fuzz_pickle && tests/fuzz/fuzz_pickle ../tests/fuzz/corpus/pickle
 * With libFuzzer:    clang -fsanitize=fuzzer,address,undefined on fuzz_<name>.c and the sources of core/io and
 * core/base.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Always 0. A finding is a crash, a report of a sanitizer, a leak, or a call that takes long or much memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
