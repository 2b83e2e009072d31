/* A model is opened with the common options, and wrong places get a sentence that helps.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/open_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/io/hub_name.h"

/* From --reference, --precision, --threads, --memory-limit. */
static void fill_model_options(const common_options *options, deberta_model_options *model_options)
{
    *model_options = (deberta_model_options){.struct_size = sizeof *model_options,
                                             .reference = (deberta_reference)options->reference,
                                             .precision = (deberta_precision)options->precision,
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

const char *low_precision_name(const common_options *options)
{
    const deberta_precision precision = (deberta_precision)options->precision;
    return precision == DEBERTA_PRECISION_FLOAT32 ? NULL : deberta_precision_name(precision);
}

int check_float32(const common_options *options, const char *what)
{
    const char *precision = low_precision_name(options);
    if (!precision) return EXIT_OK;
    return option_wrong(options, &options->precision, "%s is in float32 only; found %s", what, precision);
}

/* What `train rtd --generator` leaves: no model itself, one in each of two folders. */
static bool is_pair(const char *path)
{
    char file[512];
    struct stat about;
    snprintf(file, sizeof file, "%.400s/config.json", path);
    if (stat(file, &about) == 0) return false;
    snprintf(file, sizeof file, "%.400s/discriminator/config.json", path);
    return stat(file, &about) == 0;
}

/* What people type first is the name of a model on a hub, or a path with a mistake in it. */
static bool is_model_place(const common_options *options, const char *path)
{
    static const char expected[] =
        "MODEL is a folder with config.json and weights, or synthetic:<shape> such as synthetic:v3-base";
    struct stat about;
    deberta_error error = {.code = DEBERTA_E_FILE};
    if (strncmp(path, "synthetic:", 10) == 0) return true;
    const int reason = stat(path, &about) == 0 ? 0 : errno;
    if (*path == 0)
        snprintf(error.message, sizeof error.message, "the name of the model is empty; %s", expected);
    else if (reason == ENOENT) {
        const bool absolute = hub_name_check(path, &error) == DEBERTA_OK;
        const size_t used = strlen(error.message);
        if (absolute)
            snprintf(error.message, sizeof error.message, "%.300s: no such folder; %s", path, expected);
        else if (!strstr(error.message, "hf download"))
            snprintf(error.message + used, sizeof error.message - used, "; %s", expected);
    } else if (reason == 0 && !S_ISDIR(about.st_mode))
        snprintf(error.message, sizeof error.message, "%.300s: is a file; %s", path, expected);
    else if (reason == 0 && is_pair(path))
        snprintf(error.message, sizeof error.message,
                 "%.150s: holds two models; give %.150s/discriminator or %.150s/generator", path, path, path);
    else
        return true; /* whatever else there is to say, the library says */
    say_error(options, &error);
    return false;
}

bool check_model_place(const common_options *options) { return is_model_place(options, options->arguments[0]); }

/* Every session would say so too, but only then, and not that it is the command line that is wrong. */
static int check_what_is_ablated(const common_options *options, const deberta_model *model)
{
    deberta_session_options session_options;
    deberta_error error;
    size_t bytes;
    fill_session_options(options, &session_options);
    session_options.memory_limit_bytes = 0;
    if (deberta_session_predict_bytes(&bytes, model, &session_options, &error) == DEBERTA_OK) return EXIT_OK;
    return say_usage(options, "--ablate: %s", error.message);
}

static void note_stale(const common_options *options, const deberta_model *model)
{
    const deberta_model_info info = *deberta_model_describe(model);
    if (info.packed != DEBERTA_PACKED_STALE) return;
    say_note(options,
             "note: %s/%s is not of these weights or not of this version, or damaged, and is ignored (renew "
             "it: deberta pack %s)",
             info.name, deberta_packed_file_name(info.precision), info.name);
}

int check_packed(const common_options *options)
{
    deberta_error error = {0};
    const deberta_pack_options packing = {.struct_size = sizeof packing,
                                          .precision = (deberta_precision)options->precision};
    const deberta_status status = deberta_model_check_packed(options->arguments[0], &packing, &error);
    if (status == DEBERTA_OK) return EXIT_OK;
    const int said = say_error(options, &error);
    return status == DEBERTA_E_FORMAT ? EXIT_CHECK_FAILED : said;
}

static int open_place(const common_options *options, const char *path, bool describe_only, deberta_model **model)
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

int open_model(const common_options *options, deberta_model **model)
{
    return open_place(options, options->arguments[0], false, model);
}

int open_model_at(const common_options *options, const char *path, deberta_model **model)
{
    return open_place(options, path, false, model);
}

int open_description(const common_options *options, deberta_model **model)
{
    return open_place(options, options->arguments[0], true, model);
}
