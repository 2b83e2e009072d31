/* SPDX-License-Identifier: MIT */
#include "command/run.h"

#include "core/base/clock.h"
#include "core/base/path.h"
#include "core/base/status.h"
#include "core/base/topology.h"
#include "core/io/quote.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool run_is_picture_path(const char *path)
{
    static const char *const others[] = {".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".eps", ".ps"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (path_has_suffix(path, others[k])) return true;
    return run_is_figure_path(path);
}

bool run_check_text_out(const common_options *options)
{
    return options->command->most_outputs > 1 || !option_is_common(options_find(options->command, "out")) ||
           run_check_text_path(options);
}

bool run_check_text_path(const parsed_options *options)
{
    const char *path = options_out(options);
    if (!path || !run_is_picture_path(path)) return true;
    const command *const *sub = options->command->subcommands;
    while (sub && *sub && strcmp(command_word(*sub), "plot") != 0) sub++;
    if (sub && *sub)
        say_usage(options, "--out: '%s' is a picture's name, and what goes there is text; `deberta %s` draws it", path,
                  (*sub)->name);
    else
        say_usage(options, "--out: '%s' is a picture's name, and what goes there is text%s", path,
                  options_knows(options, "plot") ? "; --plot FILE draws the figure" : "");
    return false;
}

void fill_model_options(const common_options *options, deberta_model_options *model_options)
{
    *model_options = (deberta_model_options){.struct_size = sizeof *model_options,
                                             .reference = (deberta_reference)options->reference,
                                             .threads = options->threads,
                                             .memory_limit_bytes = options->memory_limit_bytes};
}

void fill_session_options(const common_options *options, deberta_session_options *session_options)
{
    *session_options = (deberta_session_options){.struct_size = sizeof *session_options,
                                                 .isa = options->isa,
                                                 .threads = options->threads,
                                                 .memory_limit_bytes = options->memory_limit_bytes,
                                                 .ablations = options->ablations,
                                                 .ablation_count = options->ablation_count};
}

/* Whether a path that does not exist reads like ORGANISATION/NAME of a hub: two words, and the first is no folder here.
 */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (!slash || slash == path || *path == '.' || strspn(path, word) != (size_t)(slash - path)) return false;
    if (!slash[1] || slash[1 + strspn(slash + 1, word)] || strlen(path) > 80) return false;
    char folder[81];
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return stat(folder, &about) != 0;
}

static void tell_download(deberta_error *error, const char *path)
{
    snprintf(error->message, sizeof error->message,
             "%s: no such folder; to download the model of that name: hf download %s '*.json' spm.model merges.txt "
             "bpe_encoder.bin 'model*.safetensors' pytorch_model.bin 'pytorch_model-*.bin' --local-dir %s",
             path, path, strchr(path, '/') + 1);
}

/* What people type first is the name of a model on a hub, or a path with a mistake in it. */
static bool is_model_place(const parsed_options *options, const char *path)
{
    static const char expected[] =
        "MODEL is a folder with config.json and weights, or synthetic:<shape> such as synthetic:v3-base";
    struct stat about;
    deberta_error error = {.code = DEBERTA_E_FILE};
    if (strncmp(path, "synthetic:", 10) == 0) return true;
    const int reason = stat(path, &about) == 0 ? 0 : errno;
    if (*path == 0)
        snprintf(error.message, sizeof error.message, "the name of the model is empty; %s", expected);
    else if (reason == ENOENT && is_hub_name(path))
        tell_download(&error, path);
    else if (reason == ENOENT)
        snprintf(error.message, sizeof error.message, "%.300s: no such folder; %s", path, expected);
    else if (reason == 0 && !S_ISDIR(about.st_mode))
        snprintf(error.message, sizeof error.message, "%.300s: is a file; %s", path, expected);
    else
        return true; /* whatever else there is to say, the library says */
    say_error(options, &error);
    return false;
}

bool run_is_model_place(const parsed_options *options) { return is_model_place(options, options_argument(options, 0)); }

/* Every session would say so too, but only then, and not that it is the command line that is wrong. */
static int check_what_is_ablated(const parsed_options *options, const deberta_model *model)
{
    deberta_session_options session_options;
    deberta_error error;
    size_t bytes;
    fill_session_options(options, &session_options);
    session_options.memory_limit_bytes = 0;
    if (deberta_session_predict_bytes(&bytes, model, &session_options, &error) == DEBERTA_OK) return EXIT_OK;
    return say_usage(options, "--ablate: %s", error.message);
}

static void note_stale(const parsed_options *options, const deberta_model *model)
{
    const deberta_model_info info = *deberta_model_describe(model);
    if (info.packed != DEBERTA_PACKED_STALE) return;
    say_note(options,
             "note: %s/%s is not of these weights or not of this version, and is ignored (renew it: deberta "
             "pack %s)",
             info.name, DEBERTA_PACKED_FILE_NAME, info.name);
}

static int open_model(const parsed_options *options, const char *path, bool describe_only, deberta_model **model)
{
    deberta_model_options model_options;
    deberta_error error = {0};
    fill_model_options(options, &model_options);
    model_options.describe_only = describe_only;
    if (!is_model_place(options, path)) return EXIT_INPUT;
    if (deberta_model_open(model, path, &model_options, &error) != DEBERTA_OK) return say_error(options, &error);
    note_stale(options, *model);
    const int status = check_what_is_ablated(options, *model);
    if (status != EXIT_OK) deberta_model_free(model);
    return status;
}

int run_open_model(const parsed_options *options, deberta_model **model)
{
    return open_model(options, options_argument(options, 0), false, model);
}

int run_open_model_at(const parsed_options *options, const char *path, deberta_model **model)
{
    return open_model(options, path, false, model);
}

int run_describe_model(const parsed_options *options, deberta_model **model)
{
    return open_model(options, options_argument(options, 0), true, model);
}

/* ------------------------------------------------------------------------------------------------------- progress */

progress_bar progress_begin(const parsed_options *options, const char *what, size_t total)
{
    const bool enabled = options->progress != PROGRESS_NEVER && !options->quiet && isatty(STDERR_FILENO);
    return (progress_bar){.what = what, .enabled = enabled, .began = clock_seconds(), .total = total};
}

void progress_step(progress_bar *bar, size_t done, const char *detail)
{
    if (!bar->enabled) return;
    const double t = clock_seconds(), elapsed = t - bar->began;
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

/* The one unfinished file, for the signal handler. */
static char unfinished[4096];
static volatile sig_atomic_t is_unfinished;

void run_remove_on_signal(const char *path)
{
    is_unfinished = 0;
    if (!path || strlen(path) >= sizeof unfinished) return;
    strcpy(unfinished, path);
    is_unfinished = 1;
}

static void remove_and_raise(int signal_number)
{
    if (is_unfinished) unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void run_install_signal_handlers(void)
{
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a write that fails, and is reported as one */
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        struct sigaction action = {.sa_handler = remove_and_raise}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[k], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[k], &action, NULL);
    }
}

static deberta_status open_output(text_output *output, deberta_error *err)
{
    struct stat about;
    /* A device or a pipe keeps its place: a rename would put a file there. */
    if (stat(output->path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        output->file = fopen(output->path, "w");
        if (output->file) return DEBERTA_OK;
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(output->path), strerror(errno));
    }
    DEBERTA_TRY(atomic_file_open(&output->whole, output->path, err));
    run_remove_on_signal(atomic_file_temporary(output->whole));
    return atomic_file_stream(&output->file, output->whole, err);
}

int text_output_open(const parsed_options *options, const char *path, text_output *output)
{
    deberta_error error = {0};
    *output = (text_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return EXIT_OK;
    *output = (text_output){.path = path};
    if (open_output(output, &error) == DEBERTA_OK) return EXIT_OK;
    text_output_discard(output);
    return say_error(options, &error);
}

void text_output_discard(text_output *output)
{
    if (output->whole) {
        atomic_file_discard(&output->whole);
        run_remove_on_signal(NULL);
    } else if (output->path && output->file) {
        fclose(output->file);
    }
    *output = (text_output){0};
}

static deberta_status close_device(const text_output *output, deberta_error *err)
{
    const bool written = ferror(output->file) == 0;
    if (fclose(output->file) == 0 && written) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(output->path), strerror(errno));
}

int text_output_close(const parsed_options *options, text_output *output)
{
    if (!output->path) return EXIT_OK; /* main checks stdout */
    deberta_error error = {0};
    const deberta_status status =
        output->whole ? atomic_file_commit(&output->whole, &error) : close_device(output, &error);
    run_remove_on_signal(NULL);
    *output = (text_output){0};
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}

bool run_is_figure_path(const char *path)
{
    return path_has_suffix(path, ".png") || path_has_suffix(path, ".svg") || path_has_suffix(path, ".pdf");
}

bool run_check_figure_paths(const common_options *options)
{
    for (size_t k = 0; k < options->outs.count; k++) {
        if (run_is_figure_path(options->outs.items[k])) continue;
        say_usage(options, "--out: unknown suffix in '%s', expected .png, .svg or .pdf", options->outs.items[k]);
        return false;
    }
    return true;
}

int run_print_json(const parsed_options *options, json_t *object)
{
    return run_print_json_to(options, options_out(options), object);
}

int run_print_json_to(const parsed_options *options, const char *path, json_t *object)
{
    text_output output;
    int status = text_output_open(options, path, &output);
    if (status == EXIT_OK) {
        if (run_write_json(output.file, object)) return text_output_close(options, &output);
        text_output_discard(&output);
        return say_no_memory(options);
    }
    json_decref(object);
    return status;
}

static bool write_json(FILE *out, json_t *object, size_t flags)
{
    const bool whole = json_dumpf(object, out, flags | JSON_REAL_PRECISION(9)) == 0;
    json_decref(object);
    return (whole && fputc('\n', out) != EOF) || ferror(out);
}

bool run_write_json(FILE *out, json_t *object) { return write_json(out, object, JSON_INDENT(2)); }
bool run_write_json_line(FILE *out, json_t *object) { return write_json(out, object, 0); }

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
