/* Opens a model with the common options, and answers wrong paths with a sentence that helps.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/open_model.h"

#include <stdio.h>
#include <string.h>

#include "core/io/folder_kind.h"

/* Fills options from --reference, --precision, --threads, --memory-limit. */
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
                                                 .ablations = options->ablated.items,
                                                 .ablation_count = options->ablated.count};
}

const char *low_precision_name(const common_options *options)
{
    const deberta_precision precision = (deberta_precision)options->precision;
    return precision == DEBERTA_PRECISION_FLOAT32 ? NULL : deberta_precision_name(precision);
}

void check_float32(const common_options *options, const char *what)
{
    const char *precision = low_precision_name(options);
    if (precision) option_wrong(options, &options->precision, "%s is in float32 only; found %s", what, precision);
}

static void check_place(const common_options *options, const char *path)
{
    deberta_error error;
    if (strncmp(path, "synthetic:", 10) == 0) return;
    if (*path == 0) end_with(options, EXIT_INPUT, "the name of the model is empty; %s", EXPECTED_PLACE);
    const deberta_status status = folder_check_model(path, &error);
    if (status == DEBERTA_E_FILE && strncmp(path, "models/", 7) == 0) /* the examples of --help have such paths */
        end_with(options, EXIT_INPUT, "%s; `deberta examples DIR` makes a folder from which models/demo can be opened",
                 error.message);
    must(options, status, &error);
}

void check_model_place(const common_options *options) { check_place(options, options->arguments[0]); }

/* Checks the ablations when the model is opened. A session would refuse them too, but only later, and without naming
 * the command line. */
static void check_what_is_ablated(const common_options *options, const deberta_model *model)
{
    deberta_session_options session_options;
    deberta_error error;
    size_t bytes;
    fill_session_options(options, &session_options);
    session_options.memory_limit_bytes = 0;
    if (deberta_session_predict_bytes(&bytes, model, &session_options, &error) != DEBERTA_OK)
        usage_wrong(options, "--ablate: %s", error.message);
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

void check_packed(const common_options *options)
{
    deberta_error error = {0};
    const deberta_pack_options packing = {.struct_size = sizeof packing,
                                          .precision = (deberta_precision)options->precision};
    const deberta_status status = deberta_model_check_packed(options->arguments[0], &packing, &error);
    if (status == DEBERTA_OK) return;
    const int said = say_error(options, &error);
    end_program(status == DEBERTA_E_FORMAT ? EXIT_CHECK_FAILED : said);
}

/* Prints a note once, however often a command opens the same folder. */
static void note_once(const common_options *options, const char *sentence)
{
    static char *said[256];
    size_t count = 0;
    while (count < sizeof said / sizeof *said && said[count] && strcmp(said[count], sentence) != 0) count++;
    if (count == sizeof said / sizeof *said || said[count]) return;
    said[count] = strdup(sentence);
    say_note(options, "note: %s", sentence);
}

static void note_model(const common_options *options, const deberta_model *model)
{
    const char *sentence;
    for (size_t i = 0; (sentence = deberta_model_note(model, i)); i++) note_once(options, sentence);
}

void note_tokenizer(const common_options *options, const deberta_tokenizer *tokenizer)
{
    const char *sentence;
    for (size_t i = 0; (sentence = deberta_tokenizer_note(tokenizer, i)); i++) note_once(options, sentence);
}

static deberta_model *open_place(const common_options *options, const char *path, bool describe_only)
{
    deberta_model_options model_options;
    deberta_model *model = NULL;
    deberta_error error = {0};
    fill_model_options(options, &model_options);
    model_options.describe_only = describe_only;
    check_place(options, path);
    must(options, deberta_model_open(&model, path, &model_options, &error), &error);
    note_stale(options, model);
    note_model(options, model);
    check_what_is_ablated(options, model);
    return model;
}

deberta_model *open_model(const common_options *options) { return open_place(options, options->arguments[0], false); }

deberta_model *open_model_at(const common_options *options, const char *path)
{
    return open_place(options, path, false);
}

deberta_model *open_description(const common_options *options)
{
    return open_place(options, options->arguments[0], true);
}

void note_trained_length(const common_options *options, size_t longest, const deberta_model_info *info)
{
    if (info->max_positions && longest > info->max_positions)
        say_note(options, "note: the longest text has %zu tokens; the model was trained on up to %zu", longest,
                 info->max_positions);
}
