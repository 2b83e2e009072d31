/* Status codes, error texts and overflow-checked sizes: every function of the library reports failures by them.
 *
 * A function that can fail returns a deberta_status and takes a deberta_error * (may be NULL). The function that
 * detects the failure writes the text once; it names the file, tensor or field, the value found and the value expected.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "include/deberta.h"

/* Writes the sentence into err (nothing if err is NULL) and returns code. Long texts are cut, never overflow. */
deberta_status status_fail(deberta_error *err, deberta_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies the caller's version of a public struct that begins with struct_size; the rest becomes 0. `from` may be NULL.
 * DEBERTA_E_ARGUMENT where struct_size was not set (0, or more than any struct has). Also where a larger struct than
 * this library knows has nonzero bytes beyond the known part: they are an option of a later version, which must not be
 * ignored silently. */
deberta_status copy_struct(void *to, const void *from, size_t size_bytes, const char *what, deberta_error *err);

/* Returns an error of the callee to the caller unchanged. */
#define DEBERTA_TRY(call)                                                                                              \
    do {                                                                                                               \
        deberta_status try_status_ = (call);                                                                           \
        if (try_status_ != DEBERTA_OK) return try_status_;                                                             \
    } while (0)

/* DEBERTA_TRY for a function that must release something: jumps to its `fail:` label with `status` set. */
#define DEBERTA_TRY_OR_FAIL(status, call)                                                                              \
    do {                                                                                                               \
        (status) = (call);                                                                                             \
        if ((status) != DEBERTA_OK) goto fail;                                                                         \
    } while (0)

#define DEBERTA_FAIL(err, code, ...) return status_fail((err), (code), __VA_ARGS__)

/* These functions check every product and sum of sizes that come from a file. They return false on overflow. */
static inline bool size_multiply(size_t a, size_t b, size_t *product) { return !__builtin_mul_overflow(a, b, product); }
static inline bool size_add(size_t a, size_t b, size_t *sum) { return !__builtin_add_overflow(a, b, sum); }
/* Replaces a number beyond size_t by the largest size, where sizes have 32 bits: no size of a file is that large. */
static inline size_t size_or_most(uint64_t number) { return number < SIZE_MAX ? (size_t)number : SIZE_MAX; }
