/* `deberta info` describes this machine, its tiers and kernels, and, with a model, its configuration and its lists of
 * tensors.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "analysis/receptive_field.h"
#include "core/base/cpu.h"
#include "core/base/topology.h"
#include "include/deberta_unstable.h"
#include "output/json_text.h"
#include "program/cluster/cluster.h"
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"

static void add_tiers(result *r)
{
    json_t *list = json_array();
    result_say(r, "\ntiers (implementations of the kernels, one an instruction set; all give the same bits)");
    for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        const char *missing = deberta_isa_missing((deberta_isa)isa), *name = deberta_isa_name((deberta_isa)isa);
        json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", name, "available", missing == NULL, "reason",
                                              missing ? missing : ""));
        result_say(r, "  %-8s %s%s", name, missing ? "not here: " : "available", missing ? missing : "");
    }
    result_set(r, "tiers", list);
}

static void add_machine(result *r, const topology_info *t)
{
    char name[128];
    cpu_name(name, sizeof name);
    result_set(r, "version", json_string(deberta_version()));
    result_set(r, "mpi", json_boolean(cluster_has_mpi()));
    result_set(r, "topology",
               json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "logical_processors",
                         (json_int_t)t->logical, "cores", (json_int_t)t->cores, "packages", (json_int_t)t->packages,
                         "numa_nodes", (json_int_t)t->numa_nodes, "allowed_logical_processors",
                         (json_int_t)t->allowed_logical, "usable_cores", (json_int_t)t->usable_cores, "cpu_quota",
                         t->cpu_quota, "l1d_bytes", (json_int_t)t->l1d_bytes, "l2_bytes", (json_int_t)t->l2_bytes,
                         "l3_bytes", (json_int_t)t->l3_bytes, "l3_cores", (json_int_t)t->l3_cores));
    result_say(r, "deberta %s\n\nprocessor  %s", deberta_version(), name);
    if (t->affinity_error) {
        result_say(r,
                   "cores      %zu online; the system does not say which this process may use (sched_getaffinity: %s)",
                   t->cores, strerror(t->affinity_error));
        return;
    }
    result_say(r, "cores      %zu of %zu usable, L1d %zu KiB, L2 %zu KiB, L3 %zu KiB", t->usable_cores, t->cores,
               t->l1d_bytes >> 10, t->l2_bytes >> 10, t->l3_bytes >> 10);
}

/* Returns the tier of a kernel's name: "scalar_fma" is the scalar tier's, compiled for processors with FMA. */
static const char *tier_of(const char *kernel_isa)
{
    const char *scalar = deberta_isa_name(DEBERTA_ISA_SCALAR);
    return strncmp(kernel_isa, scalar, strlen(scalar)) == 0 ? scalar : kernel_isa;
}

static void add_kernels(result *r, deberta_isa isa)
{
    json_t *list = json_array();
    const char *name, *from;
    int width = 0;
    for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)); k++)
        if ((int)strlen(name) > width) width = (int)strlen(name);
    result_say(r, "\nkernels, and the tier that runs each here");
    for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)); k++) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "slot", name, "isa", tier_of(from)));
        result_say(r, "  %-*s %s", width, name, tier_of(from));
    }
    result_set(r, "kernels", list);
    json_t *wrong = json_array();
    for (size_t k = 0; (name = deberta_wrong_part(isa, k)); k++) {
        json_array_append_new(wrong, json_string(name));
        result_say(r, "  %s is not used: its products on this processor differ from the scalar ones", name);
    }
    result_set(r, "wrong_parts", wrong);
}

/* Returns advice on low precision, which is worth its error where a processor adds products of bytes in one
 * instruction; int16 counts as a gain if it saves a tenth of the time. docs/precision.md has the measurements.
 * Results are the same bits everywhere. */
static const char *integer_advice(const char *from, deberta_precision precision)
{
    static const struct {
        const char *from, *int8, *int16;
    } known[] = {
        {"avx2", " through 16 bits: some gain over float32", " through 16 bits: no gain, float32 is faster here"},
        {"avx512vnni", ", which adds products of bytes: a gain over float32",
         ", which adds products of bytes: a gain over float32"},
        {"neon", " through 16 bits: how it compares with float32 was not measured",
         " through 16 bits: how it compares with float32 was not measured"},
    };
    if (strncmp(from, "scalar", 6) == 0) return "; exact but slow: float32 is faster here";
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(from, known[k].from) == 0)
            return precision == DEBERTA_PRECISION_INT16 ? known[k].int16 : known[k].int8;
    return ", which adds products of bytes: how it compares with float32 was not measured";
}

static void say_precision(result *r, deberta_isa isa, deberta_precision precision)
{
    const char *wanted = precision == DEBERTA_PRECISION_INT8 ? "gemm_u8" : "gemm_u8x2", *name, *from;
    if (precision == DEBERTA_PRECISION_FLOAT32) return;
    for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)) && strcmp(name, wanted) != 0;) k++;
    result_say(r, "  precision         %s, multiplied by %s%s", deberta_precision_name(precision), from,
               integer_advice(from, precision));
}

static const char *const packed_states[] = {
    [DEBERTA_PACKED_NONE] = "none", [DEBERTA_PACKED_MAPPED] = "mapped", [DEBERTA_PACKED_STALE] = "stale"};

/* Describes the tokenizer; null for a model without one. If its files cannot be read, the reason is a note of the
 * result. */
static json_t *add_tokenizer(result *r, const common_options *options)
{
    deberta_tokenizer *tokenizer = NULL;
    deberta_error error = {0};
    const char *folder = options->arguments[0];
    const deberta_status status =
        strncmp(folder, "synthetic:", 10) == 0 ? DEBERTA_E_FILE : deberta_tokenizer_open(&tokenizer, folder, &error);
    if (status != DEBERTA_OK && status != DEBERTA_E_FILE) say_note(options, "note: the tokenizer: %s", error.message);
    if (status != DEBERTA_OK) {
        result_say(r, "  tokenizer         none");
        return json_null();
    }
    const char *kind = deberta_tokenizer_kind_name(tokenizer);
    const size_t tokens = deberta_tokenizer_vocabulary_size(tokenizer);
    json_t *about = json_pack("{s:s, s:I}", "kind", kind, "vocabulary_size", (json_int_t)tokens);
    result_say(r, "  tokenizer         %s, %zu tokens", kind, tokens);
    note_tokenizer(options, tokenizer);
    deberta_tokenizer_free(&tokenizer);
    return about;
}

static json_t *add_heads(result *r, const deberta_model_info *info)
{
    json_t *heads = json_array();
    result_say(r, "  heads            %s", info->tasks_present ? "" : " none");
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (!(info->tasks_present & 1u << head)) continue;
        json_array_append_new(heads, json_string(deberta_task_name((deberta_task)head)));
        result_say_more(r, " %s", deberta_task_name((deberta_task)head));
    }
    return heads;
}

/* Advises on the lengths of texts. */
static json_t *context_advice(result *r, const deberta_model_info *info, deberta_reference reference)
{
    const size_t limit = info->position_biased_input ? info->max_positions : 0;
    json_t *advice =
        json_pack("{s:I, s:o, s:I}", "trained_length", (json_int_t)info->max_positions, "position_table_limit",
                  limit ? json_integer((json_int_t)limit) : json_null(), "layers", (json_int_t)info->layers);
    result_say(r, "  trained length    %zu tokens, the rows of its position table", info->max_positions);
    if (limit)
        result_say(r,
                   "  longest text      %zu tokens: absolute positions are added to the input, and there are no more",
                   limit);
    else
        result_say(r, "  longest text      any: no absolute positions at the input, beyond the trained length at one's "
                      "own risk");
    receptive_field field;
    if (receptive_field_of_model(&field, info, reference, 0, NULL) != DEBERTA_OK) return advice;
    const size_t longest = receptive_field_longest_of_model(info, reference, NULL),
                 width = field.run_left + field.run_right, composed = 1 + width * info->layers;
    json_object_set_new(advice, "longest_unambiguous_text", json_integer((json_int_t)longest));
    json_object_set_new(advice, "contiguous_unique",
                        json_pack("{s:I, s:I, s:I}", "left", (json_int_t)field.run_left, "right",
                                  (json_int_t)field.run_right, "width", (json_int_t)(width + 1)));
    json_object_set_new(advice, "composed_run", json_integer((json_int_t)composed));
    result_say(r, "  unambiguous       every distance in texts of up to %zu tokens", longest);
    if (!limit || limit > longest)
        result_say(r,
                   "                    in longer ones %zu keys to the left and %zu to the right; a run of %zu over "
                   "%zu layer%s",
                   field.run_left, field.run_right, composed, info->layers, info->layers == 1 ? "" : "s");
    result_say(r, "                    (attention is global all the same; see deberta receptive-field)");
    scope_free(&field.memory);
    return advice;
}

static void add_model(result *r, const common_options *options, const deberta_model_info *info)
{
    char terms[16], memory[32];
    snprintf(terms, sizeof terms, "%s%s%s", info->has_c2p ? "c2p" : "", info->has_c2p && info->has_p2c ? "|" : "",
             info->has_p2c ? "p2c" : "");
    format_bytes(memory, (double)info->memory_bytes);
    json_t *model = json_pack(
        "{s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:s, "
        "s:s}",
        "name", json_clean_text(info->name), "version", info->version, "layers", (json_int_t)info->layers,
        "hidden_size", (json_int_t)info->hidden_size, "heads", (json_int_t)info->heads, "head_size",
        (json_int_t)info->head_size, "intermediate_size", (json_int_t)info->intermediate_size, "embedding_size",
        (json_int_t)info->embedding_size, "vocabulary_size", (json_int_t)info->vocabulary_size, "max_positions",
        (json_int_t)info->max_positions, "max_relative_positions", (json_int_t)info->max_relative_positions,
        "position_buckets", (json_int_t)info->position_buckets, "relative_rows", (json_int_t)info->relative_rows,
        "position_terms", terms, "position_biased_input", info->position_biased_input, "has_position_table",
        info->has_position_table, "token_types", (json_int_t)info->token_types, "convolution_width",
        (json_int_t)info->convolution_width, "parameters", (json_int_t)info->parameters, "memory_bytes",
        (json_int_t)info->memory_bytes, "packed", packed_states[info->packed], "precision",
        deberta_precision_name(info->precision));
    result_say(r, "\nmodel %s", info->name);
    result_say(r, "  parameterisation  %s", info->version == 1 ? "v1" : "v2, which v3 shares");
    result_say(r, "  shape             %zu layer%s, hidden %zu, %zu head%s of %zu, intermediate %zu", info->layers,
               info->layers == 1 ? "" : "s", info->hidden_size, info->heads, info->heads == 1 ? "" : "s",
               info->head_size, info->intermediate_size);
    result_say(r, "  vocabulary        %zu", info->vocabulary_size);
    json_object_set_new(model, "tokenizer", add_tokenizer(r, options));
    result_say(r, "  relative          ");
    if (info->relative_rows)
        result_say_more(r, "%s, %zu rows, distances below %zu%s", terms, info->relative_rows,
                        info->max_relative_positions, info->position_buckets ? ", logarithmic buckets" : "");
    else
        result_say_more(r, "none");
    result_say(r, "  absolute          %s",
               info->position_biased_input ? "added to the input"
               : info->has_position_table  ? "for the Enhanced Mask Decoder"
                                           : "none");
    json_object_set_new(model, "context", context_advice(r, info, (deberta_reference)options->reference));
    result_say(r, "  parameters        %.1f M without heads, %s in memory", (double)info->parameters / 1e6, memory);
    say_precision(r, options->isa, info->precision);
    if (info->packed == DEBERTA_PACKED_MAPPED)
        result_say(r, "  packed weights    mapped from %s", deberta_packed_file_name(info->precision));
    json_object_set_new(model, "heads_present", add_heads(r, info));
    result_set(r, "model", model);
}

static int info_run(const common_options *options)
{
    deberta_error error = {0};
    topology_info topology;
    must(options, topology_read(&topology, &error), &error);
    deberta_model *model = options->argument_count ? open_description(options) : NULL;
    result *r = result_new(NULL);
    add_machine(r, &topology);
    add_tiers(r);
    add_kernels(r, options->isa);
    if (model) add_model(r, options, deberta_model_describe(model));
    deberta_model_free(&model);
    finish_text_or_json(options, r);
    return EXIT_OK;
}

const command command_info = {
    .name = "info",
    .summary = "the processor, its tiers and kernels; for a model: its shape, tokenizer, memory and heads",
    .arguments = "[MODEL]",
    .example = "  deberta info\n  deberta info synthetic:v3-small\n  deberta info models/demo --json -o model.json\n",
    .run = info_run,
    .without = WITHOUT_CHANCE " threads",
};
