/* Keeps the table of files that the signal handler removes; handlers use only system calls and flags.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/unfinished.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FILES = 24, PATH_BYTES = 4096, ENTRIES_BYTES = 4096, DEEPEST = 3 };

/* A slot is in use while its flag is set; the flag is set last and cleared first. */
static struct {
    char path[PATH_BYTES];
    volatile sig_atomic_t used;
} slots[MOST_FILES];

static volatile sig_atomic_t held, waiting; /* waiting: signal that arrived meanwhile, or 0 */

static char folder[PATH_BYTES]; /* empty: no folder */

/* Directory entry as the system call fills it; readdir may allocate, which a handler must not. */
typedef struct entry {
    uint64_t number;
    int64_t next;
    unsigned short bytes;
    unsigned char kind;
    char name[];
} entry;

/* Removes entries recursively. Only unlinkat tells on every file system whether an entry is a folder. */
static void remove_entries(int parent, const char *name, int depth)
{
    _Alignas(entry) char entries[ENTRIES_BYTES];
    long got;
    const int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (directory >= 0 && (got = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0)
        for (long at = 0; at < got; at += ((entry *)(entries + at))->bytes) {
            const char *inside = ((entry *)(entries + at))->name;
            if (strcmp(inside, ".") == 0 || strcmp(inside, "..") == 0) continue;
            if (unlinkat(directory, inside, 0) != 0 && depth < DEEPEST) remove_entries(directory, inside, depth + 1);
        }
    if (directory >= 0) close(directory);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void unfinished_release_folder(void)
{
    if (*folder) remove_entries(AT_FDCWD, folder, 1);
    *folder = 0;
}

void unfinished_add_folder(const char *path)
{
    if (strlen(path) < sizeof folder) strcpy(folder, path);
}

void unfinished_remove(void)
{
    for (size_t k = 0; k < MOST_FILES; k++)
        if (slots[k].used) unlink(slots[k].path);
    unfinished_release_folder();
}

static void remove_and_raise(int signal_number)
{
    if (held) {
        waiting = signal_number;
        return;
    }
    unfinished_remove();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void unfinished_hold(void) { held = 1; }

void unfinished_add(const char *path)
{
    for (size_t k = 0; path && k < MOST_FILES && strlen(path) < PATH_BYTES; k++) {
        if (slots[k].used) continue;
        strcpy(slots[k].path, path);
        slots[k].used = 1;
        break;
    }
    held = 0;
    if (waiting) remove_and_raise(waiting);
}

void unfinished_done(void)
{
    for (size_t k = 0; k < MOST_FILES; k++) slots[k].used = 0;
}

void signals_watch(const int *signals, void (*handler)(int), int flags)
{
    for (; *signals; signals++) {
        struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(*signals, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(*signals, &action, NULL);
    }
}

void unfinished_install_handlers(void)
{
    signal(SIGXFSZ, SIG_IGN); /* with the signal ignored, the write fails and is reported as an error */
    signals_watch((const int[]){SIGINT, SIGTERM, SIGHUP, SIGPIPE, 0}, remove_and_raise, 0);
}

/* ------------------------------------------------------------------------------------------------------ being stopped */

static volatile sig_atomic_t stop_came;

static void note_stop(int signal_number)
{
    (void)signal_number;
    stop_came = 1;
}

void stop_request_watch(void)
{
    signals_watch((const int[]){SIGTERM, SIGUSR1, SIGUSR2, 0}, note_stop, (int)SA_RESETHAND | SA_RESTART);
    signals_watch((const int[]){SIGXCPU, 0}, note_stop, SA_RESTART); /* SIGXCPU arrives again every second */
}

bool stop_request_came(void) { return stop_came != 0; }
