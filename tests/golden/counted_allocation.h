/* Replaces malloc and its kin, mmap and pthread_create in the whole process, to count what is asked for and to make one
 * request fail. Linux with glibc; not together with sanitizers, which replace them too.
 *
 * Requests are told apart by who asks: only those of the library itself and of libzip are ever refused. hwloc and the C
 * library are not ours to test; jansson 2.14 (which drops characters, or frees what it never allocated) does not
 * survive a refusal itself.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Learns which code belongs to whom. Call once, before anything else. */
void allocation_setup(void);

/* Requests of all kinds, by anybody, in any thread, so far. */
size_t allocation_requests(void);
/* Bytes that are allocated or mapped now. */
size_t allocation_live_bytes(void);

/* Lets the k-th (1 ...) request from now on of a refusable asker fail, and only that; 0: none. */
void allocation_fail(size_t k);
typedef enum refusal { REFUSED_NONE = 0, REFUSED_LIBRARY, REFUSED_ZIP, REFUSED_MAPPING, REFUSED_THREAD } refusal;
/* What has been refused since allocation_fail. */
refusal allocation_refused(void);
