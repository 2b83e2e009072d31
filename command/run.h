/* What most commands do first and last: open the model, make a session, show progress, write results whole or not at
 * all.
 *
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_RUN_H
#define COMMAND_RUN_H

#include <jansson.h>
#include <stdio.h>

#include "command/options.h"
#include "core/io/atomic_file.h"

/* From --reference, --threads, --memory-limit. */
void fill_model_options(const common_options *options, deberta_model_options *model_options);
/* From --isa, --threads, --memory-limit, --ablate. max_tokens and features are the caller's. */
void fill_session_options(const common_options *options, deberta_session_options *session_options);
/* Whether there is something at the first argument that could be a model; false after saying what was expected. */
bool run_is_model_place(const parsed_options *options);
/* Opens options_argument(options, 0). EXIT_OK or the exit code, after saying why. */
int run_open_model(const parsed_options *options, deberta_model **model);
/* The same without its weights, for describing it. */
int run_describe_model(const parsed_options *options, deberta_model **model);
/* The same of a model named elsewhere on the command line. */
int run_open_model_at(const parsed_options *options, const char *path, deberta_model **model);

/* A bar on stderr, shown once the work has taken a second, on a terminal only. */
typedef struct progress_bar {
    const char *what;
    bool shown, enabled;
    double began, last;
    size_t total; /* 0: not known */
} progress_bar;
progress_bar progress_begin(const parsed_options *options, const char *what, size_t total);
void progress_step(progress_bar *bar, size_t done, const char *detail); /* detail may be NULL */
void progress_end(progress_bar *bar);

/* Text output to --out PATH (atomically: temporary name, then rename; a device or a pipe is written to as it is) or to
 * stdout. */
typedef struct text_output {
    FILE *file;
    const char *path;   /* NULL for stdout */
    atomic_file *whole; /* NULL for stdout and for a device */
} text_output;
/* path NULL or "-": stdout; borrowed until the output is closed or discarded. */
int text_output_open(const parsed_options *options, const char *path, text_output *output);
int text_output_close(const parsed_options *options, text_output *output);
void text_output_discard(text_output *output);

/* Does the name end in .png, .svg or .pdf? */
bool run_is_figure_path(const char *path);
/* Or like a picture of a kind that is not drawn here? Text under such a name opens nowhere. */
bool run_is_picture_path(const char *path);
/* Whether --out does not end like a picture, for commands that print there. False after saying so. */
bool run_check_text_path(const parsed_options *options);
/* The same for a command that writes one --out, the common one. */
bool run_check_text_out(const common_options *options);
/* Whether every --out ends like a figure; for before anything is computed. False after saying what was expected. */
bool run_check_figure_paths(const parsed_options *options);

/* Prints and releases. */
int run_print_json(const parsed_options *options, json_t *object);
int run_print_json_to(const parsed_options *options, const char *path, json_t *object); /* path: as above */
/* Into a file that is open, indented or on one line (results that come one a text); releases. False if memory ran out
 * for the object or its text; what cannot be written is found by whoever closes the file. */
bool run_write_json(FILE *out, json_t *object);
bool run_write_json_line(FILE *out, json_t *object);

/* Bytes for people: "344 MB". */
void format_bytes(char text[32], double bytes);

/* A file that SIGINT, SIGTERM, SIGHUP and SIGPIPE must remove; NULL: none any more. text_output_* do this themselves.
 */
void run_remove_on_signal(const char *path);
/* Installs the handlers that do so and raise the signal again. What the parent process ignores stays ignored. SIGXFSZ
 * is ignored, so that a limit on file sizes is an error with a name. Called once by main. */
void run_install_signal_handlers(void);

#endif
