/* `deberta encode`: hidden states, attention, components and head logits into one safetensors file of padded tensors
 * [B,N,...], rows and columns of padding zero, with the input they belong to: what `verify --against` reads. Corpora go
 * another way: encode_corpus.c. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command/ablate.h"
#include "cli/commands.h"
#include "cli/encode/encode_corpus.h"
#include "cli/encode/encode_logits.h"
#include "command/input/input.h"
#include "command/open_model.h"
#include "command/options.h"
#include "command/text_output.h"
#include "command/unfinished.h"
#include "core/base/path.h"
#include "core/io/export.h"
#include "output/json_text.h"
#include "analysis/capture.h"

enum { NAME_BYTES = 48, INPUTS = 4 };
static const char *const input_names[INPUTS] = {"input_ids", "attention_mask", "token_type_ids", "position_ids"};

/* What is written: names and shapes first, then values. */
typedef struct encode_job {
    const encode_options *o;
    const common_options *options; /* their common part */
    deberta_model *model;
    deberta_session *session;
    deberta_model_info info;
    input_batch input;
    capture capture;
    bool heads[DEBERTA_TASK_COUNT];
    const float *last_hidden; /* the session's, [tokens][last_stride] */
    size_t last_stride;
    export_tensor *tensors;
    char (*names)[NAME_BYTES];
    size_t count;
} encode_job;

static bool choose_components(encode_job *job)
{
    bool *chosen = calloc(job->info.layers + 1, sizeof *chosen);
    bool fine = chosen != NULL;
    if (fine && job->o->attention_layers) {
        fine = parse_index_list(job->options, &job->o->attention_layers, chosen, job->info.layers);
        for (size_t l = 0; fine && l < job->info.layers; l++)
            if (chosen[l]) capture_want(&job->capture, l, DEBERTA_PROBABILITIES);
    }
    if (fine && job->o->component_layers) {
        fine = parse_index_list(job->options, &job->o->component_layers, chosen, job->info.layers);
        for (size_t l = 0; fine && l < job->info.layers; l++)
            for (int c = DEBERTA_C2C; chosen[l] && c <= DEBERTA_LOGITS; c++)
                capture_want(&job->capture, l, (deberta_component)c);
    }
    free(chosen);
    for (size_t head = 0; head < job->info.heads; head++) job->capture.heads[head] = true;
    return fine;
}

static void add_tensor(encode_job *job, const char *name, size_t rank, size_t b, size_t c, size_t d, size_t e)
{
    snprintf(job->names[job->count], NAME_BYTES, "%s", name);
    job->tensors[job->count] =
        (export_tensor){.name = job->names[job->count], .dtype = DTYPE_F32, .rank = rank, .shape = {b, c, d, e}};
    job->count++;
}

/* What stands in `input_names` of one token. */
static int64_t input_value(const input_batch *input, size_t which, size_t token)
{
    switch (which) {
    case 0: return input->ids[token];
    case 1: return !input->mask || input->mask[token];
    case 2: return input->token_types ? input->token_types[token] : 0;
    default: return input->position_ids ? input->position_ids[token] : 0;
    }
}

/* Token types and positions only where they are not what a reader would assume: 0, and the column. */
static bool is_input_written(const input_batch *input, size_t which)
{
    if (which != 2) return which < 2 || input->position_ids;
    for (size_t t = 0; t < input->tokens; t++)
        if (input_value(input, which, t) != 0) return true;
    return false;
}

static void declare(encode_job *job)
{
    const size_t B = job->input.rows, N = job->input.columns, h = job->info.hidden_size;
    char name[NAME_BYTES];
    for (size_t which = 0; which < INPUTS; which++) {
        if (!is_input_written(&job->input, which)) continue;
        add_tensor(job, input_names[which], 2, B, N, 0, 0);
        job->tensors[job->count - 1].dtype = DTYPE_I64;
    }
    for (size_t l = job->capture.hidden ? 0 : job->info.layers; l <= job->info.layers; l++) {
        snprintf(name, sizeof name, "hidden_states.%zu", l);
        add_tensor(job, name, 3, B, N, h, 0);
    }
    for (size_t l = 0; l < job->info.layers; l++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
            if (!job->capture.attention[l * DEBERTA_COMPONENT_COUNT + (size_t)c]) continue;
            snprintf(name, sizeof name, "attn.%zu.%s", l, deberta_component_name((deberta_component)c));
            add_tensor(job, name, 4, B, job->info.heads, N, N);
        }
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (!job->heads[head]) continue;
        const size_t width = deberta_task_width(job->model, (deberta_task)head);
        snprintf(name, sizeof name, "logits.%s", deberta_task_name((deberta_task)head));
        if (head == DEBERTA_TASK_SEQUENCE)
            add_tensor(job, name, 2, B, width, 0, 0);
        else if (head == DEBERTA_TASK_RTD)
            add_tensor(job, name, 2, B, N, 0, 0);
        else
            add_tensor(job, name, 3, B, N, width, 0);
    }
}

static deberta_status write_input(encode_job *job, export_file *file, size_t tensor, size_t which, deberta_error *err)
{
    for (size_t r = 0; r < job->input.rows; r++) {
        const input_row row = job->input.row[r];
        int64_t values[256];
        for (size_t t = 0, count; t < row.tokens; t += count) {
            const size_t first = job->input.sequence_starts[row.sequence] + t, left = row.tokens - t;
            count = left < sizeof values / sizeof *values ? left : sizeof values / sizeof *values;
            for (size_t k = 0; k < count; k++) values[k] = input_value(&job->input, which, first + k);
            const size_t place = r * job->input.columns + row.first_column + t;
            DEBERTA_TRY(export_write(file, tensor, place, values, count, err));
        }
    }
    return DEBERTA_OK;
}

static deberta_status write_hidden(encode_job *job, export_file *file, size_t tensor, const float *rows, size_t stride,
                                   deberta_error *err)
{
    const size_t h = job->info.hidden_size;
    for (size_t r = 0; r < job->input.rows; r++) {
        const input_row row = job->input.row[r];
        if (row.tokens == 0) continue;
        const size_t first = job->input.sequence_starts[row.sequence];
        for (size_t t = 0; t < row.tokens; t++) {
            if (job->input.mask && !job->input.mask[first + t]) continue; /* a hole is padding: zero */
            DEBERTA_TRY(export_write(file, tensor, (r * job->input.columns + row.first_column + t) * h,
                                     rows + (first + t) * stride, h, err));
        }
    }
    return DEBERTA_OK;
}

/* Queries and keys that are padding stay zero; a hole is both. */
static deberta_status write_attention(encode_job *job, export_file *file, size_t tensor, size_t layer,
                                      deberta_component component, deberta_error *err)
{
    const size_t N = job->input.columns;
    for (size_t r = 0; r < job->input.rows; r++) {
        const input_row row = job->input.row[r];
        const size_t n = row.tokens;
        if (n == 0) continue;
        const uint8_t *mask = job->input.mask ? job->input.mask + job->input.sequence_starts[row.sequence] : NULL;
        for (size_t head = 0; head < job->info.heads; head++) {
            float *matrix = capture_matrix(&job->capture, layer, head, component, row.sequence);
            for (size_t i = 0; i < n; i++) {
                if (mask && !mask[i]) continue;
                for (size_t j = 0; mask && j < n; j++)
                    if (!mask[j]) matrix[i * n + j] = 0;
                const size_t query = row.first_column + i;
                DEBERTA_TRY(export_write(file, tensor,
                                         ((r * job->info.heads + head) * N + query) * N + row.first_column,
                                         matrix + i * n, n, err));
            }
        }
    }
    return DEBERTA_OK;
}

static deberta_status write_values(encode_job *job, export_file *file, deberta_error *err)
{
    for (size_t k = 0; k < job->count; k++) {
        const char *name = job->tensors[k].name;
        size_t layer;
        char what[16];
        if (sscanf(name, "hidden_states.%zu", &layer) == 1) {
            const bool last = layer == job->info.layers;
            DEBERTA_TRY(write_hidden(job, file, k, last ? job->last_hidden : job->capture.hidden_states[layer],
                                     last ? job->last_stride : job->info.hidden_size, err));
        } else if (sscanf(name, "attn.%zu.%15s", &layer, what) == 2) {
            for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
                if (strcmp(what, deberta_component_name((deberta_component)c)) == 0)
                    DEBERTA_TRY(write_attention(job, file, k, layer, (deberta_component)c, err));
        } else if (job->tensors[k].dtype == DTYPE_I64) {
            for (size_t which = 0; which < INPUTS; which++)
                if (strcmp(name, input_names[which]) == 0) DEBERTA_TRY(write_input(job, file, k, which, err));
        } else {
            for (int head = 0; head < DEBERTA_TASK_COUNT; head++)
                if (job->heads[head] && strcmp(name + strlen("logits."), deberta_task_name((deberta_task)head)) == 0)
                    DEBERTA_TRY(encode_logits(job->session, job->model, (deberta_task)head, &job->input,
                                              ENCODE_LOGITS_BLOCK_BYTES, file, k, err));
        }
    }
    return DEBERTA_OK;
}

static deberta_status write_file(encode_job *job, const char *path, deberta_error *err)
{
    const size_t most = (job->info.layers + 1) * (DEBERTA_COMPONENT_COUNT + 1) + DEBERTA_TASK_COUNT + INPUTS;
    job->tensors = calloc(most, sizeof *job->tensors);
    job->names = calloc(most, sizeof *job->names);
    if (!job->tensors || !job->names) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    declare(job);
    const char *reference = reference_name(job->options->reference);
    const char *ablations = job->options->ablate_text;
    const export_note notes[] = {{"isa", deberta_isa_name(deberta_session_isa(job->session))},
                                 {"model", job->info.name},
                                 {"reference", reference},
                                 {"version", deberta_version()},
                                 {"ablate", ablations}};
    const size_t note_count = sizeof notes / sizeof *notes - (ablations ? 0 : 1);
    export_file *file;
    unfinished_hold();
    const deberta_status made = export_safetensors(&file, path, job->tensors, job->count, notes, note_count, err);
    unfinished_add(made == DEBERTA_OK ? export_temporary(file) : NULL);
    DEBERTA_TRY(made);
    deberta_status status = write_values(job, file, err);
    if (status == DEBERTA_OK)
        status = export_finish(&file, err);
    else
        export_discard(&file);
    unfinished_done();
    return status;
}

/* Beside the session: what is captured, and one head's block of logits at a time. SIZE_MAX for more than can be
 * counted. */
static size_t kept_bytes(const encode_job *job)
{
    size_t largest = 0, sum;
    for (int head = 0; head < DEBERTA_TASK_COUNT; head++) {
        if (!job->heads[head]) continue;
        const size_t bytes =
            encode_logits_bytes(job->model, (deberta_task)head, job->input.tokens, ENCODE_LOGITS_BLOCK_BYTES);
        if (bytes > largest) largest = bytes;
    }
    return size_add(capture_bytes(&job->capture), largest, &sum) ? sum : SIZE_MAX;
}

static deberta_status encode(encode_job *job, deberta_session_options *session_options, const char *path,
                             deberta_error *err)
{
    const bool observed = job->capture.matrix_count > 0;
    session_options->max_tokens = job->input.tokens ? job->input.tokens : 1;
    session_options->features = (job->capture.hidden ? DEBERTA_OBSERVE_HIDDEN : 0u) |
                                (observed ? DEBERTA_OBSERVE_ATTENTION : 0u) |
                                (job->heads[DEBERTA_TASK_MLM_EMD] ? DEBERTA_KEEP_DECODER_INPUT : 0u);
    DEBERTA_TRY(deberta_session_check_within(job->model, session_options, kept_bytes(job), err));
    DEBERTA_TRY(capture_allocate(&job->capture, err));
    DEBERTA_TRY(deberta_session_create(&job->session, job->model, session_options, err));
    if (job->input.sequences) { /* an input that is all padding has nothing to encode: every tensor is zero */
        const deberta_observer observer = capture_observer(&job->capture);
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        deberta_batch batch = input_as_batch(&job->input);
        if (observed || job->capture.hidden) batch.observer = &observer;
        DEBERTA_TRY(deberta_encode(job->session, &batch, &outputs, err));
        DEBERTA_TRY(deberta_session_check_finite(job->session, err));
        job->last_hidden = outputs.hidden;
        job->last_stride = outputs.hidden_stride;
    }
    return write_file(job, path, err);
}

/* What --json prints: the file and what is in it. */
static json_t *describe_file(const encode_job *job, const char *path)
{
    json_t *tensors = json_array();
    for (size_t k = 0; k < job->count; k++) {
        json_t *shape = json_array();
        for (size_t d = 0; d < job->tensors[k].rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)job->tensors[k].shape[d]));
        json_array_append_new(tensors, json_pack("{s:s, s:o}", "name", job->tensors[k].name, "shape", shape));
    }
    return json_pack("{s:o, s:o, s:s, s:I, s:o}", "out", json_clean_text(path), "model",
                     json_clean_text(job->info.name), "isa", deberta_isa_name(deberta_session_isa(job->session)),
                     "tokens", (json_int_t)job->input.tokens, "tensors", tensors);
}

static int run_job(encode_job *job)
{
    deberta_session_options session_options;
    deberta_error error = {0};
    const char *path = options_out(job->options);
    if (!path)
        return say_usage(job->options, "say where the results go: --out FILE.safetensors, or .npy or .jsonl for "
                                       "one vector a text");
    if (!path_has_suffix(path, ".safetensors"))
        return say_usage(job->options, "--out: expected a name that ends in .safetensors, .npy or .jsonl, found '%s'",
                         path);
    fill_session_options(job->options, &session_options);
    int status = open_model(job->options, &job->model);
    if (status != EXIT_OK) return status;
    job->info = *deberta_model_describe(job->model);
    if ((status = input_read(&job->o->reading, job->options->arguments[0], &job->info, &job->input)) != EXIT_OK)
        return status;
    if (capture_create(&job->capture, &job->info, job->input.sequence_starts, job->input.sequences, &error) !=
        DEBERTA_OK)
        return say_error(job->options, &error);
    job->capture.hidden = job->o->hidden == 1;
    if (!choose_components(job)) return EXIT_USAGE;
    if (job->o->logits)
        for (int head = 0; head < DEBERTA_TASK_COUNT; head++) job->heads[head] = job->info.tasks_present & 1u << head;
    if (encode(job, &session_options, path, &error) != DEBERTA_OK) return say_error(job->options, &error);
    if (job->options->json && !write_json_line(stdout, describe_file(job, path))) return say_no_memory(job->options);
    return EXIT_OK;
}

static int run(const common_options *options)
{
    const encode_options *o = (const encode_options *)options;
    if (encode_corpus_wanted(o)) return encode_corpus(o);
    encode_job job = {.o = o, .options = options};
    const int status = run_job(&job);
    free(job.tensors);
    free(job.names);
    capture_free(&job.capture);
    deberta_session_free(&job.session);
    input_free(&job.input);
    deberta_model_free(&job.model);
    return status;
}

static const char *const hidden_names[] = {"last", "all", NULL};

static const option tensors[] = {
    INPUT_OPTIONS,
    {"hidden", 0, "WHICH", "hidden states: last (default) or all", CHOICE_AT(encode_options, hidden, hidden_names)},
    {"attention-layers", 0, "LAYERS", "attention probabilities of these layers: all, or a list such as 0,3-5",
     TEXT_AT(encode_options, attention_layers), .alias = "attention"},
    {"component-layers", 0, "LAYERS", "c2c, c2p, p2c and their sum, before the softmax, of these layers",
     TEXT_AT(encode_options, component_layers), .alias = "components"},
    {"logits", 0, NULL, "of every head that the checkpoint holds", FLAG_AT(encode_options, logits)},
    ABLATE_OPTION,
    {.name = NULL},
};

static const option corpora[] = {
    {"pool", 0, "HOW",
     "one vector a text, its mean over all tokens, frame included (default), or cls; or none: all tokens",
     CHOICE_AT(encode_options, pool, pooling_names)},
    {"window", 0, "W", "long texts as windows of W tokens, frame included",
     SIZE_AT(encode_options, window, FRAME_TOKENS + 1, 1 << 20), .not_with = "pair max-tokens"},
    {"stride", 0, "S", "tokens from one window to the next (default half of what a window holds)",
     SIZE_AT(encode_options, stride, 1, 1 << 20), .needs = "window"},
    {"batch-tokens", 0, "N", "tokens encoded together (default 2048); changes speed and memory, no result",
     SIZE_AT(reading_options, batch_tokens, 1, 1 << 24)},
    {"resume", 0, NULL, "keep what is done in OUT.part, and go on from there", FLAG_AT(encode_options, resume)},
    {"jsonl", 0, NULL, "files hold one JSON object a line (\"text\", perhaps \"pair\", \"id\"), whatever their names",
     FLAG_AT(reading_options, jsonl)},
    {.name = NULL},
};

static const option_group groups[] = {{tensors, 0, NULL}, {corpora, 0, "corpora"}, {NULL, 0, NULL}};

const command command_encode = {
    .name = "encode",
    .summary = "hidden states, attention, components and head logits into a file; vectors of whole corpora",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .groups = groups,
    .size = sizeof(encode_options),
    .example =
        "  deberta encode models/demo --text 'a new store' -o states.safetensors\n"
        "  deberta encode deberta-v3-base --input batch.safetensors --attention-layers all --logits -o "
        "results.safetensors\n"
        "  deberta encode synthetic:v3-xsmall --ids 1,7,3,11,2 --component-layers all --hidden all -o "
        "states.safetensors\n"
        "  deberta encode models/demo --file corpus.txt --pool mean --resume -o corpus.npy\n"
        "  deberta encode models/demo --file books.jsonl --window 512 --stride 256 -o books.safetensors\n"
        "\nA corpus (any of --pool, --window, --stride, --batch-tokens, --resume and --jsonl, a --file that ends in "
        ".jsonl or .ndjson,\n"
        "or an --out that ends in .npy or .jsonl) gives one row a text, or a window, in the order of the input: "
        "\"pooled\" [rows, h],\n"
        "or with --pool none \"hidden\" [tokens, h] and \"starts\" [rows + 1]; with windows also \"text\" [rows] and "
        "\"characters\"\n"
        "[rows, 2]. A .jsonl file has a line for each: {\"line\", \"tokens\", \"pooled\" or \"hidden\"}. There is no "
        "--json of a corpus.\n"
        "A text that cannot be encoded is reported with its place; its row holds no numbers (NaN, no tokens, or "
        "\"error\").\nOne of more than 32768 tokens is refused unless --max-tokens or --window is given.\n",
    .run = run,
};
