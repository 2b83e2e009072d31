/* Implements the SIGBUS handler and its table of mappings. A signal has no caller whose memory could hold the table, so
 * it is the only global state of the library. It stays empty until deberta_guard_files is called.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/mapping_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/status.h"

enum { SLOTS = 1024 };

/* A slot is free while `begin` is 0. `end` is set before `begin`, so that the handler never sees half of a slot. */
static struct {
    _Atomic uintptr_t begin, end;
    atomic_bool taken, broke;
} slots[SLOTS];

static struct sigaction before;
static uintptr_t page_bytes;
static atomic_bool installed;
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;

size_t mapping_guard_add(const void *bytes, size_t size_bytes)
{
    for (size_t k = 0; atomic_load(&installed) && k < SLOTS; k++) {
        if (atomic_exchange(&slots[k].taken, true)) continue;
        atomic_store(&slots[k].broke, false);
        atomic_store(&slots[k].end, (uintptr_t)bytes + size_bytes);
        atomic_store(&slots[k].begin, (uintptr_t)bytes);
        return k + 1;
    }
    return 0;
}

bool mapping_guard_broke(size_t number) { return number && atomic_load(&slots[number - 1].broke); }

void mapping_guard_remove(size_t number)
{
    if (!number) return;
    atomic_store(&slots[number - 1].begin, 0);
    atomic_store(&slots[number - 1].taken, false);
}

/* Maps zeros from the page of the address to the mapping's end, so that one signal is enough. Returns false for a page
 * outside all guarded mappings. */
static bool put_zeros(uintptr_t address)
{
    for (size_t k = 0; k < SLOTS; k++) {
        const uintptr_t begin = atomic_load(&slots[k].begin), end = atomic_load(&slots[k].end);
        if (!begin || address < begin || address - begin >= end - begin) continue;
        if (atomic_load(&slots[k].begin) != begin) continue; /* The slot belongs to another mapping by now. */
        const uintptr_t page = address / page_bytes * page_bytes;
        atomic_store(&slots[k].broke, true);
        return mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    }
    return false;
}

/* Passes a signal for other pages to the handler that was installed before. */
static void pass_on(int number, siginfo_t *about, void *context)
{
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, about, context);
    } else if (before.sa_handler == SIG_IGN && about->si_code <= 0) {
        return;
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        /* The instruction that raised the signal runs again after this, and ends the process. */
        signal(number, SIG_DFL);
        if (about->si_code <= 0) raise(number);
    } else {
        before.sa_handler(number);
    }
}

static void on_bus_error(int number, siginfo_t *about, void *context)
{
    const int errno_before = errno;
    if (about->si_code <= 0 || !put_zeros((uintptr_t)about->si_addr)) pass_on(number, about, context);
    errno = errno_before;
}

deberta_status deberta_guard_files(deberta_error *err)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_NODEFER)};
    deberta_status status = DEBERTA_OK;
    pthread_mutex_lock(&installing);
    if (!atomic_load(&installed)) {
        page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        sigemptyset(&action.sa_mask);
        if (sigaction(SIGBUS, &action, &before) == 0) {
            atomic_store(&installed, true);
        } else {
            status = status_fail(err, DEBERTA_E_SYSTEM, "no handler of SIGBUS: %s", strerror(errno));
        }
    }
    pthread_mutex_unlock(&installing);
    return status;
}
