/* Removes unfinished files on a signal, so that results appear whole or not at all. It keeps global state, because a
 * signal handler can reach nothing else.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Delays signals until unfinished_add, so that none arrives between the creation of a file and its entry in the list
 * of files to remove. */
void unfinished_hold(void);

/* Makes SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the file from now on, and ends a hold. At most 24 files are
 * registered; later ones stay. NULL only ends the hold, for a file that could not be made. */
void unfinished_add(const char *path);
/* Registers the one temporary folder of the program, which is removed with its content by a signal, or when it is
 * released. */
void unfinished_add_folder(const char *path);
void unfinished_release_folder(void);
/* Clears the list, when all files are complete or removed. */
void unfinished_done(void);
/* Removes the files now, before the program ends. */
void unfinished_remove(void);
/* Installs the handlers that remove the files and raise the signal again. Signals that the parent process ignores
 * stay ignored. SIGXFSZ is ignored, so that exceeding a limit on file sizes is a reported error. Called by main, and
 * after a command that handled some of these signals itself. */
void unfinished_install_handlers(void);

/* Installs a handler for these signals, a list that ends with 0; those that the parent process ignores stay ignored.
 * flags: as for sigaction. */
void signals_watch(const int *signals, void (*handler)(int), int flags);

/* Makes SIGTERM, SIGUSR1, SIGUSR2 or SIGXCPU, which a cluster's scheduler sends before it ends a job, only set a
 * flag. The program then finishes its current step, keeps its state and ends with EXIT_AGAIN. A second signal ends it
 * at once, except SIGXCPU. Called before a model is opened, which takes seconds. */
void stop_request_watch(void);
/* Returns true if such a signal has arrived. */
bool stop_request_came(void);
