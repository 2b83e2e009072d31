/* `deberta info`: this machine, its tiers and kernels; and, with a model, what its tables of contents say.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "command/input/context_advice.h"
#include "command/open_model.h"
#include "command/options.h"
#include "command/text_output.h"
#include "core/base/cpu.h"
#include "core/base/topology.h"
#include "output/json_text.h"

static const deberta_isa tiers[] = {DEBERTA_ISA_SCALAR, DEBERTA_ISA_AVX2, DEBERTA_ISA_AVX512, DEBERTA_ISA_NEON};
enum { TIERS = sizeof tiers / sizeof *tiers };

static json_t *describe_tiers(void)
{
    json_t *list = json_array();
    for (size_t k = 0; k < TIERS; k++) {
        const char *missing = deberta_isa_missing(tiers[k]);
        json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", deberta_isa_name(tiers[k]), "available",
                                              missing == NULL, "reason", missing ? missing : ""));
    }
    return list;
}

static json_t *describe_topology(const topology_info *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "logical_processors",
                     (json_int_t)t->logical, "cores", (json_int_t)t->cores, "packages", (json_int_t)t->packages,
                     "numa_nodes", (json_int_t)t->numa_nodes, "allowed_logical_processors",
                     (json_int_t)t->allowed_logical, "usable_cores", (json_int_t)t->usable_cores, "cpu_quota",
                     t->cpu_quota, "l1d_bytes", (json_int_t)t->l1d_bytes, "l2_bytes", (json_int_t)t->l2_bytes,
                     "l3_bytes", (json_int_t)t->l3_bytes, "l3_cores", (json_int_t)t->l3_cores);
}

/* "scalar_fma" is the scalar tier's, compiled for processors with FMA. */
static const char *tier_of(const char *kernel_isa)
{
    const char *scalar = deberta_isa_name(DEBERTA_ISA_SCALAR);
    return strncmp(kernel_isa, scalar, strlen(scalar)) == 0 ? scalar : kernel_isa;
}

static json_t *describe_kernels(deberta_isa isa)
{
    json_t *list = json_array();
    const char *name, *from;
    for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)); k++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "slot", name, "isa", tier_of(from)));
    return list;
}

static const char *const packed_states[] = {
    [DEBERTA_PACKED_NONE] = "none", [DEBERTA_PACKED_MAPPED] = "mapped", [DEBERTA_PACKED_STALE] = "stale"};

static json_t *describe_model(const deberta_model *model)
{
    const deberta_model_info info = *deberta_model_describe(model);
    json_t *heads = json_array();
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++)
        if (info.tasks_present & 1u << head)
            json_array_append_new(heads, json_string(deberta_task_name((deberta_task)head)));
    char terms[16];
    snprintf(terms, sizeof terms, "%s%s%s", info.has_c2p ? "c2p" : "", info.has_c2p && info.has_p2c ? "|" : "",
             info.has_p2c ? "p2c" : "");
    return json_pack("{s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:b, s:I, s:I, s:I, "
                     "s:I, s:s, s:o}",
                     "name", json_clean_text(info.name), "version", info.version, "layers", (json_int_t)info.layers,
                     "hidden_size", (json_int_t)info.hidden_size, "heads", (json_int_t)info.heads, "head_size",
                     (json_int_t)info.head_size, "intermediate_size", (json_int_t)info.intermediate_size,
                     "embedding_size", (json_int_t)info.embedding_size, "vocabulary_size",
                     (json_int_t)info.vocabulary_size, "max_positions", (json_int_t)info.max_positions,
                     "max_relative_positions", (json_int_t)info.max_relative_positions, "position_buckets",
                     (json_int_t)info.position_buckets, "relative_rows", (json_int_t)info.relative_rows,
                     "position_terms", terms, "position_biased_input", info.position_biased_input, "has_position_table",
                     info.has_position_table, "token_types", (json_int_t)info.token_types, "convolution_width",
                     (json_int_t)info.convolution_width, "parameters", (json_int_t)info.parameters, "memory_bytes",
                     (json_int_t)info.memory_bytes, "packed", packed_states[info.packed], "heads_present", heads);
}

static void add_context(json_t *object, const deberta_model *model, deberta_reference reference)
{
    const deberta_model_info info = *deberta_model_describe(model);
    json_object_set_new(object, "context", context_advice(&info, reference));
}

/* null for a model without one; what keeps one that is there from being read is said beside the results. */
static json_t *describe_tokenizer(const common_options *options, const char *folder)
{
    deberta_tokenizer *tokenizer = NULL;
    deberta_error error = {0};
    if (strncmp(folder, "synthetic:", 10) == 0) return json_null();
    const deberta_status status = deberta_tokenizer_open(&tokenizer, folder, &error);
    if (status != DEBERTA_OK && status != DEBERTA_E_FILE) say_note(options, "note: the tokenizer: %s", error.message);
    if (status != DEBERTA_OK) return json_null();
    json_t *about = json_pack("{s:s, s:I}", "kind", deberta_tokenizer_kind_name(tokenizer), "vocabulary_size",
                              (json_int_t)deberta_tokenizer_vocabulary_size(tokenizer));
    deberta_tokenizer_free(&tokenizer);
    return about;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
static long long number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void print_model(FILE *out, const json_t *model)
{
    char memory[32], parameters[32];
    format_bytes(memory, (double)number_of(model, "memory_bytes"));
    snprintf(parameters, sizeof parameters, "%.1f M", (double)number_of(model, "parameters") / 1e6);
    fprintf(out, "\nmodel %s\n", text_of(model, "name"));
    fprintf(out, "  parameterisation  %s\n", number_of(model, "version") == 1 ? "v1" : "v2, which v3 shares");
    fprintf(out, "  shape             %lld layers, hidden %lld, %lld heads of %lld, intermediate %lld\n",
            number_of(model, "layers"), number_of(model, "hidden_size"), number_of(model, "heads"),
            number_of(model, "head_size"), number_of(model, "intermediate_size"));
    const json_t *tokenizer = json_object_get(model, "tokenizer");
    fprintf(out, "  vocabulary        %lld\n", number_of(model, "vocabulary_size"));
    if (json_is_null(tokenizer))
        fprintf(out, "  tokenizer         none\n");
    else
        fprintf(out, "  tokenizer         %s, %lld tokens\n", text_of(tokenizer, "kind"),
                number_of(tokenizer, "vocabulary_size"));
    if (number_of(model, "relative_rows"))
        fprintf(out, "  relative          %s, %lld rows, distances below %lld%s\n", text_of(model, "position_terms"),
                number_of(model, "relative_rows"), number_of(model, "max_relative_positions"),
                number_of(model, "position_buckets") ? ", logarithmic buckets" : "");
    else
        fprintf(out, "  relative          none\n");
    fprintf(out, "  absolute          %s\n",
            json_is_true(json_object_get(model, "position_biased_input")) ? "added to the input"
            : json_is_true(json_object_get(model, "has_position_table"))  ? "for the Enhanced Mask Decoder"
                                                                          : "none");
    context_advice_print(out, json_object_get(model, "context"));
    fprintf(out, "  parameters        %s without heads, %s in memory\n", parameters, memory);
    if (strcmp(text_of(model, "packed"), "mapped") == 0)
        fprintf(out, "  packed weights    mapped from %s\n", DEBERTA_PACKED_FILE_NAME);
    fprintf(out, "  heads            ");
    size_t k;
    json_t *head;
    if (json_array_size(json_object_get(model, "heads_present")) == 0) fprintf(out, " none");
    json_array_foreach(json_object_get(model, "heads_present"), k, head) fprintf(out, " %s", json_string_value(head));
    fprintf(out, "\n");
}

static void print_machine(FILE *out, deberta_isa isa, const topology_info *topology)
{
    const char *kernel, *from;
    char name[128];
    cpu_name(name, sizeof name);
    fprintf(out, "deberta %s\n\nprocessor  %s\n", deberta_version(), name);
    fprintf(out, "cores      %zu of %zu usable, L1d %zu KiB, L2 %zu KiB, L3 %zu KiB\n\n", topology->usable_cores,
            topology->cores, topology->l1d_bytes >> 10, topology->l2_bytes >> 10, topology->l3_bytes >> 10);
    fprintf(out, "tiers (implementations of the kernels, one an instruction set; all give the same bits)\n");
    for (size_t k = 0; k < TIERS; k++) {
        const char *missing = deberta_isa_missing(tiers[k]);
        fprintf(out, "  %-8s %s%s\n", deberta_isa_name(tiers[k]), missing ? "not here: " : "available",
                missing ? missing : "");
    }
    fprintf(out, "\nkernels, and the tier that runs each here\n");
    for (size_t k = 0; (kernel = deberta_kernel_name(isa, k, &from)); k++)
        fprintf(out, "  %-20s %s\n", kernel, tier_of(from));
}

static int run(const common_options *options)
{
    deberta_error error = {0};
    topology_info topology;
    deberta_model *model = NULL;
    deberta_model_options model_options;
    fill_model_options(options, &model_options);
    if (topology_read(&topology, &error) != DEBERTA_OK) return say_error(options, &error);
    if (options->argument_count) {
        const int status = open_description(options, &model);
        if (status != EXIT_OK) return status;
    }
    json_t *about_model = model ? describe_model(model) : NULL;
    if (model) json_object_set_new(about_model, "tokenizer", describe_tokenizer(options, options->arguments[0]));
    if (model) add_context(about_model, model, model_options.reference);
    int status = EXIT_OK;
    if (options->json) {
        json_t *object = json_pack("{s:s, s:o, s:o, s:o}", "version", deberta_version(), "tiers", describe_tiers(),
                                   "topology", describe_topology(&topology), "kernels", describe_kernels(options->isa));
        if (about_model) json_object_set(object, "model", about_model);
        status = print_json(options, object);
    } else {
        text_output output;
        status = text_output_open(options, options_out(options), &output);
        if (status == EXIT_OK) {
            print_machine(output.file, options->isa, &topology);
            if (about_model) print_model(output.file, about_model);
            status = text_output_close(options, &output);
        }
    }
    json_decref(about_model);
    deberta_model_free(&model);
    return status;
}

const command command_info = {
    .name = "info",
    .summary = "the processor, its tiers and kernels; for a model: its shape, tokenizer, memory and heads",
    .arguments = "[MODEL]",
    .example =
        "  deberta info\n  deberta info synthetic:v3-small\n  deberta info deberta-v3-base --json -o model.json\n",
    .run = run,
};
