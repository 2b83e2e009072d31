/* `deberta pack`: what opening computes, kept beside the weights. SPDX-License-Identifier: MIT */
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/frame/options.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"
#include "output/json_text.h"

typedef struct pack_request {
    common_options common;
    bool check;
} pack_request;

static int print(const common_options *options, const deberta_model_info *info)
{
    char size[32];
    result *r = result_new(NULL);
    format_bytes(size, (double)info->memory_bytes);
    result_set(r, "model", json_clean_text(info->name));
    result_set(r, "file", json_string(deberta_packed_file_name(info->precision)));
    result_set(r, "bytes", json_integer((json_int_t)info->memory_bytes));
    result_say(r, "%s in %s/%s: mapped from now on whenever this model is opened", size, info->name,
               deberta_packed_file_name(info->precision));
    return finish_text_or_json(options, r);
}

/* Looks at the model as every command will from now on: a file that nobody can use must not be called done. */
static int confirm(const common_options *options)
{
    deberta_model *model = NULL;
    deberta_model_info info;
    int status = open_description(options, &model);
    if (status != EXIT_OK) return status;
    info = *deberta_model_describe(model);
    if (info.packed == DEBERTA_PACKED_MAPPED) {
        status = print(options, &info);
    } else {
        deberta_error error = {.code = DEBERTA_E_SYSTEM};
        snprintf(error.message, sizeof error.message, "%s: the files changed while they were packed; try again",
                 info.name);
        status = say_error(options, &error);
    }
    deberta_model_free(&model);
    return status;
}

static void remove_on_signal(void *context, const char *path)
{
    (void)context;
    if (path)
        unfinished_add(path);
    else
        unfinished_done();
}

static int check(const common_options *options)
{
    const int status = check_packed(options);
    if (status != EXIT_OK) return status;
    const char *file = deberta_packed_file_name((deberta_precision)options->precision), *model = options->arguments[0];
    result *r = result_new(NULL);
    result_set(r, "model", json_clean_text(model));
    result_set(r, "file", json_string(file));
    result_set(r, "checked", json_true());
    result_say(r, "%s/%s: every byte is as it was written, and the model's files are those that were packed", model,
               file);
    return finish_text_or_json(options, r);
}

static int run(const common_options *options)
{
    deberta_error error = {0};
    if (!check_model_place(options)) return EXIT_INPUT;
    if (((const pack_request *)options)->check) return check(options);
    const deberta_pack_options packing = {.struct_size = sizeof packing,
                                          .threads = options->threads,
                                          .memory_limit_bytes = options->memory_limit_bytes,
                                          .precision = (deberta_precision)options->precision,
                                          .on_temporary = remove_on_signal};
    if (deberta_model_pack(options->arguments[0], &packing, &error) != DEBERTA_OK) return say_error(options, &error);
    return confirm(options);
}

static const option options[] = {
    {"check", 0, NULL,
     "read the packed file and the weights, and compare digests instead of writing: exit 1 if one differs",
     FLAG_AT(pack_request, check)},
    {.name = NULL},
};

const command command_pack = {
    .name = "pack",
    .summary = "pack the weights once, beside the model: opening then maps them",
    .arguments = "MODEL",
    .options = options,
    .size = sizeof(pack_request),
    .example = "  deberta pack deberta-v3-base\n  deberta pack --check deberta-v3-base\n",
    .run = run,
    .without = WITHOUT_CHANCE " isa reference",
};
