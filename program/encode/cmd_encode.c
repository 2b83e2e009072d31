/* `deberta encode` writes hidden states, attention maps (terms, logits, probabilities) and head logits into one
 * safetensors file of padded tensors [B,N,...], with padding 0 and with the input, which `verify --expected` reads.
 * Corpora are encoded by encode_corpus.c.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/text.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/commands.h"
#include "program/encode/encode_options.h"
#include "program/frame/ablate.h"
#include "program/frame/corpus/corpus_shard.h"
#include "program/frame/input/encoded_input.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"

/* Returns the flags of a list of layers. */
static const bool *choose_layers(const encoded_input *e, const char *const *member)
{
    bool *chosen = options_take(e->options, e->info.layers + 1, sizeof *chosen);
    if (*member) parse_index_list(e->options, member, chosen, e->info.layers);
    return chosen;
}

static void encode_choose(encoded_input *e, const encode_options *o)
{
    const bool *attention = choose_layers(e, &o->attention_layers),
               *components = choose_layers(e, &o->component_layers);
    for (size_t l = 0; l < e->info.layers; l++) {
        if (attention[l]) capture_want(&e->capture, l, DEBERTA_PROBABILITIES);
        for (deberta_component c = DEBERTA_C2C; components[l] && c <= DEBERTA_LOGITS; c++)
            capture_want(&e->capture, l, c);
    }
    e->capture.hidden = o->hidden == 1;
    for (int task = 0; o->logits && task < DEBERTA_TASK_COUNT; task++)
        e->tasks[task] = e->info.tasks_present & 1u << task;
}

/* Refuses a text of which the mask keeps no token if a head is asked that reads its first one; else notes it. */
static void check_masked(const encoded_input *e, const encode_options *o)
{
    const size_t files = o->reading.tensors.count;
    const char *path = files ? o->reading.tensors.items[files - 1] : "";
    for (size_t r = 0; files && r < e->input.rows; r++) {
        if (e->input.row[r].tokens) continue;
        if (e->tasks[DEBERTA_TASK_SEQUENCE])
            end_with(e->options, EXIT_INPUT,
                     "%s: the mask keeps no token of text %zu, so that a head has nothing to read of it: leave it out, "
                     "or --logits",
                     path, r);
        say_note(e->options, "note: %s: the mask keeps no token of text %zu: all of its results are 0", path, r);
        return;
    }
}

typedef struct tensor_target {
    export_file *file;
    size_t tensor;
} tensor_target;

static deberta_status write_piece(void *context, const encoded_piece *piece, deberta_error *err)
{
    const tensor_target *to = context;
    return export_write(to->file, to->tensor, piece->first, piece->values, piece->count, err);
}

static deberta_status write_file(encoded_input *e, const char *path, deberta_error *err)
{
    const char *ablations = e->options->ablated.text, *model = metadata_name(e->options, e->info.name);
    if (!model) memory_short();
    const export_note notes[] = {{"model", model},
                                 {"reference", reference_name((int)e->info.reference)},
                                 {"precision", deberta_precision_name(e->info.precision)},
                                 {"version", deberta_version()},
                                 {"ablate", ablations}};
    const size_t note_count = sizeof notes / sizeof *notes - (ablations ? 0 : 1);
    tensor_target to = {0};
    unfinished_hold();
    deberta_status status = export_safetensors(&to.file, path, e->tensors, e->count, notes, note_count, err);
    unfinished_add(status == DEBERTA_OK ? export_temporary(to.file) : NULL);
    DEBERTA_TRY(status);
    for (; status == DEBERTA_OK && to.tensor < e->count; to.tensor++)
        status = encoded_walk(e, to.tensor, write_piece, &to, err);
    if (status == DEBERTA_OK)
        status = export_finish(&to.file, err);
    else
        export_discard(&to.file);
    unfinished_done();
    return status;
}

/* Builds the output of --json: the file and its contents. */
static json_t *describe_file(const encoded_input *e, const char *path)
{
    json_t *tensors = json_array();
    for (size_t k = 0; k < e->count; k++) {
        json_t *shape = json_array();
        for (size_t d = 0; d < e->tensors[k].rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)e->tensors[k].shape[d]));
        json_array_append_new(tensors, json_pack("{s:s, s:o}", "name", e->tensors[k].name, "shape", shape));
    }
    return json_pack("{s:o, s:o, s:s, s:I, s:o}", "out", json_clean_text(path), "model", json_clean_text(e->info.name),
                     "isa", deberta_isa_name(deberta_session_isa(e->session)), "tokens", (json_int_t)e->input.tokens,
                     "tensors", tensors);
}

static void cmd_encode_all(encoded_input *e, const encode_options *o)
{
    deberta_session_options session_options;
    deberta_error error = {0};
    const char *path = options_out(e->options);
    if (!path)
        usage_wrong(e->options,
                    "say where the results go: --out FILE.safetensors, or .npy or .jsonl for one vector a text%s",
                    e->options->json ? "; --json prints no values, only names and shapes of that file" : "");
    if (!path_has_suffix(path, ".safetensors"))
        usage_wrong(e->options, "--out: expected a name that ends in .safetensors, .npy or .jsonl, found '%s'", path);
    fill_session_options(e->options, &session_options);
    e->model = open_model(e->options);
    e->info = *deberta_model_describe(e->model);
    input_read(&o->reading, e->options->arguments[0], &e->info, &e->input);
    encoded_prepare(e);
    encode_choose(e, o);
    check_masked(e, o);
    must(e->options, encoded_run(e, &session_options, &error), &error);
    if (e->input.sequences) must(e->options, deberta_session_check_finite(e->session, &error), &error);
    must(e->options, write_file(e, path, &error), &error);
    if (e->options->json) write_json_line(stdout, describe_file(e, path));
}

static int encode_run(const common_options *options)
{
    const encode_options *o = (const encode_options *)options;
    if (encode_corpus_wanted(o)) return encode_corpus(o);
    if (o->reading.items.of_ranks)
        usage_wrong(options, "several ranks compute rows of a corpus, and no padded tensors: give --pool or --window");
    encoded_input e = {.options = options};
    cmd_encode_all(&e, o);
    encoded_free(&e);
    return EXIT_OK;
}

static const char *const hidden_names[] = {"last", "all", NULL};

static const option tensors[] = {
    INPUT_OPTIONS,
    {"hidden", 0, "WHICH", "hidden states: last (default) or all", CHOICE_AT(encode_options, hidden, hidden_names)},
    {"attention-layers", 0, "LAYERS", "attention probabilities of these layers: all, or a list such as 0,3-5",
     TEXT_AT(encode_options, attention_layers)},
    {"component-layers", 0, "LAYERS", "c2c, c2p, p2c and their sum, before the softmax, of these layers",
     TEXT_AT(encode_options, component_layers)},
    {"logits", 0, NULL, "of every head that the checkpoint holds", FLAG_AT(encode_options, logits)},
    ABLATE_OPTION,
    {.name = NULL},
};

static const option results[] = {
    {"json", 0, NULL, "names and shapes of what the file of --out holds, without values, on standard output",
     FLAG_AT(common_options, json), .role = OPTION_SHOWS},
    {"out", 'o', "PATH", "the file: .safetensors, or .npy or .jsonl for one vector a text",
     TEXTS_AT(common_options, outs), .role = OPTION_OUTPUT},
    {.name = NULL},
};

static const option corpora[] = {
    {"pool", 0, "HOW",
     "one vector a text, its mean over all tokens, frame included, or cls; or none: all tokens (default as "
     "modules.json "
     "of the folder says, else mean)",
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
    SHARD_OPTIONS,
    {.name = NULL},
};

static const option_group groups[] = {
    {tensors, 0, NULL}, {corpora, 0, "corpora"}, {results, 0, "results"}, {NULL, 0, NULL}};

const command command_encode = {
    .name = "encode",
    .summary = "hidden states, attention, components and head logits into a file; vectors of whole corpora",
    .arguments = "MODEL",
    .writes = WRITES_OWN,
    .groups = groups,
    .size = sizeof(encode_options),
    .example =
        "  deberta encode models/demo --text 'a new store' -o states.safetensors\n"
        "  deberta encode models/demo --input batch.json --attention-layers all --logits -o results.safetensors\n"
        "  deberta encode synthetic:v3-xsmall --ids 1,7,3,11,2 --component-layers all --hidden all -o "
        "states.safetensors\n"
        "  deberta encode models/demo --file corpus.txt --pool mean --resume -o corpus.npy\n"
        "  deberta encode models/demo --file books.jsonl --window 512 --stride 256 -o books.safetensors\n"
        "\nA corpus (any of --pool, --window, --stride, --batch-tokens, --resume, --jsonl, --skip-bad and --shards,\n"
        "a --file that ends in .jsonl, .ndjson or .jl, or an --out that ends in .npy or .jsonl) gives one row a text,\n"
        "or a window, in the order of the input: \"pooled\" [rows, h],\n"
        "or with --pool none \"hidden\" [tokens, h] and \"starts\" [rows + 1]; with windows also \"text\" [rows] and "
        "\"characters\"\n"
        "[rows, 2]. A .jsonl file has a line for each: {\"line\", \"tokens\", \"pooled\" or \"hidden\"}. There is no "
        "--json of a corpus.\n"
        "A text that cannot be encoded is reported with its place; its row holds no numbers (NaN, no tokens, or "
        "\"error\").\nOne of more than 32768 tokens is refused unless --max-tokens or --window is given.\n",
    .run = encode_run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
