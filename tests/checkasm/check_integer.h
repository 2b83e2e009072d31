/* What the checks of integer kernels share. SPDX-License-Identifier: MIT */
#ifndef TESTS_CHECKASM_CHECK_INTEGER_H
#define TESTS_CHECKASM_CHECK_INTEGER_H

#include "core/base/integers.h"
#include "tests/checkasm/checkasm.h"

/* Buffers are counted in floats; bytes of digits lie in them as they are. */
static inline test_buffer *byte_buffer_of(test_run *run, const char *name, size_t bytes, buffer_kind kind)
{
    return run_buffer(run, name, ceiling_divide(bytes, sizeof(float)), kind);
}

/* Of a buffer that only some cases have. */
static inline float *optional(test_buffer *buffer, int copy) { return buffer ? buffer->copy[copy] : NULL; }

#endif
