/* Memory that nobody may touch for a while: under AddressSanitizer a read or a write is reported as use-after-poison,
 * in other builds it goes unnoticed. What such memory holds stays.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FORBIDDEN_IS_NOTICED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORBIDDEN_IS_NOTICED 1
#endif
#endif
#ifndef FORBIDDEN_IS_NOTICED
#define FORBIDDEN_IS_NOTICED 0
#endif

#if FORBIDDEN_IS_NOTICED
#include <sanitizer/asan_interface.h>
static inline void memory_forbid(const void *start, size_t bytes) { __asan_poison_memory_region(start, bytes); }
static inline void memory_permit(const void *start, size_t bytes) { __asan_unpoison_memory_region(start, bytes); }
#else
static inline void memory_forbid(const void *start, size_t bytes) { (void)start, (void)bytes; }
static inline void memory_permit(const void *start, size_t bytes) { (void)start, (void)bytes; }
#endif
