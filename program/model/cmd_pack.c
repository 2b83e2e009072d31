/* `deberta pack` stores what opening a model computes, in files next to the weights. SPDX-License-Identifier: MIT */
#include "output/json_text.h"
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"

typedef struct pack_request {
    common_options common;
    bool check;
} pack_request;

static void print(const common_options *options, const deberta_model_info *info)
{
    char size[32];
    result *r = result_new(NULL);
    format_bytes(size, (double)info->memory_bytes);
    result_set(r, "model", json_clean_text(info->name));
    result_set(r, "file", json_string(deberta_packed_file_name(info->precision)));
    result_set(r, "bytes", json_integer((json_int_t)info->memory_bytes));
    result_say(r, "%s in %s/%s: mapped from now on whenever this model is opened", size, info->name,
               deberta_packed_file_name(info->precision));
    finish_text_or_json(options, r);
    if (options_out(options)) /* which has what would be printed, not the weights */
        say_note(options, "note: the packed weights are %s/%s, beside the model; %s holds only what is said of them",
                 info->name, deberta_packed_file_name(info->precision), options_out(options));
}

/* Opens the packed model as later commands will, so that unusable files are not reported as a success. */
static void confirm(const common_options *options)
{
    deberta_model *model = open_description(options);
    const deberta_model_info info = *deberta_model_describe(model);
    if (info.packed != DEBERTA_PACKED_MAPPED)
        end_with(options, EXIT_SYSTEM, "%s: the files changed while they were packed; try again", info.name);
    print(options, &info);
    deberta_model_free(&model);
}

static void remove_on_signal(void *context, const char *path)
{
    (void)context;
    if (path)
        unfinished_add(path);
    else
        unfinished_done();
}

static void check(const common_options *options)
{
    check_packed(options);
    const char *file = deberta_packed_file_name((deberta_precision)options->precision), *model = options->arguments[0];
    result *r = result_new(NULL);
    result_set(r, "model", json_clean_text(model));
    result_set(r, "file", json_string(file));
    result_set(r, "checked", json_true());
    result_say(r, "%s/%s: every byte is as it was written, and the model's files are those that were packed", model,
               file);
    finish_text_or_json(options, r);
}

static int pack_run(const common_options *options)
{
    deberta_error error = {0};
    check_model_place(options);
    if (((const pack_request *)options)->check) {
        check(options);
        return EXIT_OK;
    }
    const deberta_pack_options packing = {.struct_size = sizeof packing,
                                          .threads = options->threads,
                                          .memory_limit_bytes = options->memory_limit_bytes,
                                          .precision = (deberta_precision)options->precision,
                                          .on_temporary = remove_on_signal};
    must(options, deberta_model_pack(options->arguments[0], &packing, &error), &error);
    confirm(options);
    return EXIT_OK;
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
    .example = "  deberta pack models/demo\n  deberta pack --check models/demo\n"
               "\nThe packed file stands in the model's folder, where opening finds it; -o takes what is said of it.\n",
    .run = pack_run,
    .without = WITHOUT_CHANCE " isa reference",
};
