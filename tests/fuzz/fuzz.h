/* The entry point of a fuzz target, as libFuzzer calls it (tools/gates/fuzz.sh); replay.c calls it for the corpus.
 * Readers of bytes have a fuzz_<name>.c each, readers of files and texts a row of a table (fuzz_folder.h).
 *
 * By hand: build/tests/fuzz/fuzz_pickle --mutations 100000 tests/fuzz/corpus/pickle
 *          FUZZ_TARGET=words build/tests/fuzz/fuzz_folder --mutations 100000 tests/fuzz/corpus/words
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Always 0. A finding is a crash, a report of a sanitizer, a leak, or a call that takes long or much memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
