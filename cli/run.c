/* SPDX-License-Identifier: MIT */
#include "cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool run_isa(const parsed_options *options, deberta_isa *isa)
{
    const char *name = options_value(options, "isa", NULL), *source = "--isa";
    if (!name) {
        name = getenv("DEBERTA_ISA");
        source = "DEBERTA_ISA";
    }
    *isa = DEBERTA_ISA_AUTO;
    if (!name || !*name) return true;
    deberta_error error;
    if (deberta_isa_from_name(isa, name, &error) != DEBERTA_OK) {
        report_usage(options, "%s: %s", source, error.message);
        return false;
    }
    const char *missing = *isa == DEBERTA_ISA_AUTO ? NULL : deberta_isa_missing(*isa);
    if (!missing) return true;
    report_usage(options, "%s: %s cannot run here: %s", source, name, missing);
    return false;
}

bool run_model_options(const parsed_options *options, deberta_model_options *model_options)
{
    static const char *const references[] = {"microsoft", "hf", NULL};
    size_t reference;
    *model_options = (deberta_model_options){.struct_size = sizeof *model_options};
    if (!options_choice(options, "reference", references, 0, &reference)) return false;
    model_options->reference = reference ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
    return options_size(options, "threads", 0, 0, 4096, &model_options->threads) &&
           options_bytes(options, "memory-limit", 0, &model_options->memory_limit_bytes);
}

bool run_session_options(const parsed_options *options, deberta_session_options *session_options)
{
    *session_options = (deberta_session_options){.struct_size = sizeof *session_options};
    return run_isa(options, &session_options->isa) &&
           options_size(options, "threads", 0, 0, 4096, &session_options->threads) &&
           options_bytes(options, "memory-limit", 0, &session_options->memory_limit_bytes);
}

int run_open_model(const parsed_options *options, deberta_model **model)
{
    deberta_model_options model_options;
    deberta_error error = {0};
    if (!run_model_options(options, &model_options)) return EXIT_USAGE;
    if (deberta_model_open(model, options_argument(options, 0), &model_options, &error) == DEBERTA_OK) return EXIT_OK;
    return report_error(options, &error);
}

void run_note(const parsed_options *options, const char *format, ...)
{
    if (options_has(options, "quiet")) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* ------------------------------------------------------------------------------------------------------- progress */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

progress_bar progress_begin(const parsed_options *options, const char *what, size_t total)
{
    const char *when = options_value(options, "progress", "auto");
    const bool enabled = strcmp(when, "never") != 0 && !options_has(options, "quiet") && isatty(STDERR_FILENO);
    return (progress_bar){.what = what, .enabled = enabled, .began = now(), .total = total};
}

void progress_step(progress_bar *bar, size_t done, const char *detail)
{
    if (!bar->enabled) return;
    const double t = now(), elapsed = t - bar->began;
    if (elapsed < 1 || t - bar->last < 0.1) return;
    bar->last = t;
    bar->shown = true;
    if (!bar->total) { /* a pipe: nobody knows its end */
        fprintf(stderr, "\r\033[K%s  %s", bar->what, detail ? detail : "");
        fflush(stderr);
        return;
    }
    const double fraction = (double)done / (double)bar->total;
    char cells[25];
    for (int k = 0; k < 24; k++) cells[k] = k < (int)(fraction * 24) ? '#' : '.';
    cells[24] = 0;
    fprintf(stderr, "\r\033[K%s [%s] %3.0f %%  %.0f s left  %s", bar->what, cells, 100 * fraction,
            done ? elapsed / (double)done * (double)(bar->total - done) : 0.0, detail ? detail : "");
    fflush(stderr);
}

void progress_end(progress_bar *bar)
{
    if (bar->shown) fprintf(stderr, "\r\033[K");
    bar->shown = false;
}

/* --------------------------------------------------------------------------------------------------------- output */

/* The one unfinished text file, for the signal handler. */
static char unfinished[4096];
static volatile sig_atomic_t is_unfinished;

static void remove_and_raise(int signal_number)
{
    if (is_unfinished) unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void run_remove_on_signal(const char *path)
{
    is_unfinished = 0;
    if (!path) return;
    snprintf(unfinished, sizeof unfinished, "%s", path);
    is_unfinished = 1;
}

void run_install_signal_handlers(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        struct sigaction action = {.sa_handler = remove_and_raise};
        sigemptyset(&action.sa_mask);
        sigaction(signals[k], &action, NULL);
    }
}

int text_output_open(const parsed_options *options, const char *path, text_output *output)
{
    *output = (text_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return EXIT_OK;
    deberta_error error = {.code = DEBERTA_E_SYSTEM};
    output->file = NULL;
    output->path = strdup(path);
    if (!output->path || asprintf(&output->temporary, "%s.%ld.part", path, (long)getpid()) < 0) {
        output->temporary = NULL;
        snprintf(error.message, sizeof error.message, "out of memory");
    } else if (!(output->file = fopen(output->temporary, "wx"))) {
        snprintf(error.message, sizeof error.message, "%s cannot be written: %s", path, strerror(errno));
    } else {
        run_remove_on_signal(output->temporary);
        return EXIT_OK;
    }
    free(output->path);
    free(output->temporary);
    *output = (text_output){0};
    return report_error(options, &error);
}

void text_output_discard(text_output *output)
{
    if (output->temporary) {
        if (output->file) fclose(output->file);
        unlink(output->temporary);
        run_remove_on_signal(NULL);
    }
    free(output->path);
    free(output->temporary);
    *output = (text_output){0};
}

int text_output_close(const parsed_options *options, text_output *output)
{
    if (!output->temporary) return EXIT_OK; /* main checks stdout */
    deberta_error error = {.code = DEBERTA_E_SYSTEM};
    const bool bad = ferror(output->file) != 0;
    const bool written = fclose(output->file) == 0 && !bad && rename(output->temporary, output->path) == 0;
    output->file = NULL;
    if (!written)
        snprintf(error.message, sizeof error.message, "%s cannot be written: %s", output->path, strerror(errno));
    text_output_discard(output);
    return written ? EXIT_OK : report_error(options, &error);
}

int run_print_json(const parsed_options *options, json_t *object)
{
    text_output output;
    int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status == EXIT_OK) {
        json_dumpf(object, output.file, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        fputc('\n', output.file);
        status = text_output_close(options, &output);
    }
    json_decref(object);
    return status;
}

void run_print_json_line(json_t *object)
{
    json_dumpf(object, stdout, JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

void format_bytes(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, 32, bytes < 10 && unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}
