/* Removes unfinished files on a signal, so that results appear whole or not at all. It keeps global state, because a
 * signal handler can reach nothing else.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Signals wait from here until unfinished_add: none comes between the making of a file and the list of those to be
 * removed. */
void unfinished_hold(void);

/* Makes SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the file from now on. Of more than 24 at a time the later ones stay.
 * Ends a hold; NULL does nothing else: the file could not be made. */
void unfinished_add(const char *path);
/* A folder of the program's own, with all that is in it; one at a time. It goes with a signal, or when it is released.
 */
void unfinished_add_folder(const char *path);
void unfinished_release_folder(void);
/* All files are complete, or gone. */
void unfinished_done(void);
/* Removes them now: the program is about to end. */
void unfinished_remove(void);
/* Installs the handlers that do so and raise the signal again. What the parent process ignores stays ignored. SIGXFSZ
 * is ignored, so that a limit on file sizes is an error with a name. Called by main, and after a command that watched
 * for some of them itself. */
void unfinished_install_handlers(void);

/* The handler for these signals, up to a 0; but what the parent process ignores stays ignored. flags: of sigaction. */
void signals_watch(const int *signals, void (*handler)(int), int flags);

/* A polite way to be stopped: SIGTERM, SIGUSR1, SIGUSR2 or SIGXCPU, which a cluster's scheduler sends before it ends a
 * job, only leave a mark. The program finishes what it has begun, keeps its state and ends with EXIT_AGAIN. A second
 * signal ends it at once, but for SIGXCPU. Called before a model is opened, which takes seconds. From now on: */
void stop_request_watch(void);
/* Has one come? */
bool stop_request_came(void);
