/* `deberta train tokenizer` makes a folder with a tokenizer, trained on texts, and a model configuration, from which
 * `train mlm --config` begins.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/deberta_training.h"
#include "output/scope.h"
#include "program/commands.h"
#include "program/frame/same_files.h"
#include "program/frame/text_output.h"

typedef struct tokenizer_options {
    common_options common;
    text_list texts;
    size_t pieces, layers, hidden, heads;
} tokenizer_options;

static void check_shape(const tokenizer_options *o)
{
    if (!o->texts.count) usage_wrong(&o->common, "expected --file FILE");
    if (!options_out(&o->common)) usage_wrong(&o->common, "expected --out FOLDER");
    if (o->hidden % o->heads)
        option_wrong(&o->common, &o->hidden, "%zu is no multiple of %zu heads", o->hidden, o->heads);
}

/* Makes the folder, or takes one that is there. A tokenizer in it would be replaced, or read beside the new one. */
static deberta_status train_tokenizer_make_folder(const char *folder, bool *is_new, deberta_error *err)
{
    static const char *const kept[] = {"config.json",           "spm.model",         "spiece.model",
                                       "tokenizer.json",        "vocab.txt",         "bpe_encoder.bin",
                                       "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"};
    *is_new = mkdir(folder, 0777) == 0;
    if (!*is_new && errno != EEXIST)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot make this folder: %s", folder, strerror(errno));
    for (size_t k = 0; !*is_new && k < sizeof kept / sizeof *kept; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, kept[k]);
        if (access(path, F_OK) == 0)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s holds a %s already: %s; expected a new folder, or one without it",
                         folder, k == 0 ? "model" : "tokenizer", kept[k]);
    }
    return DEBERTA_OK;
}

/* Writes the published configuration of DeBERTa v3 with another size: positions are in the Enhanced Mask Decoder
 * only. */
static deberta_status write_config(const tokenizer_options *o, const char *folder, deberta_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_pack(
        "{s:s, s:[s], s:b, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f}", "model_type", "deberta-v2",
        "architectures", "DebertaV2ForMaskedLM", "legacy", 0, "vocab_size", (json_int_t)o->pieces + 1, "hidden_size",
        (json_int_t)o->hidden, "num_hidden_layers", (json_int_t)o->layers, "num_attention_heads", (json_int_t)o->heads,
        "intermediate_size", (json_int_t)(4 * o->hidden), "hidden_act", "gelu", "layer_norm_eps", 1e-7,
        "initializer_range", 0.02, "hidden_dropout_prob", 0.1, "attention_probs_dropout_prob", 0.1);
    json_t *rest = json_pack("{s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:s, s:b, s:s, s:I, s:i, s:s, s:b, s:s}",
                             "max_position_embeddings", 512, "type_vocab_size", 0, "pad_token_id", 0,
                             "position_biased_input", 0, "relative_attention", 1, "max_relative_positions", -1,
                             "position_buckets", 256, "norm_rel_ebd", "layer_norm", "share_att_key", 1, "pos_att_type",
                             "p2c|c2p", "pooler_hidden_size", (json_int_t)o->hidden, "pooler_dropout", 0,
                             "pooler_hidden_act", "gelu", "tie_word_embeddings", 1, "dtype", "float32");
    const bool fits = config && rest && json_object_update(config, rest) == 0;
    char *text = fits ? json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) : NULL;
    json_decref(config);
    json_decref(rest);
    if (!text) memory_short();
    const deberta_status status = atomic_file_replace(path, text, strlen(text), err);
    free(text);
    return status;
}

static void tell_note(void *context, const char *sentence) { say_note(context, "note: %s", sentence); }

static int train_tokenizer_run(const common_options *options)
{
    const tokenizer_options *o = (const tokenizer_options *)options;
    deberta_error error = {0};
    double bits = 0;
    bool is_new = false;
    if (!deberta_training_is_built())
        usage_wrong(options, "this build has no training (it was configured with -Dtraining=disabled)");
    check_shape(o);
    const char *folder = options_out(options);
    const deberta_tokenizer_training training = {.struct_size = sizeof training,
                                                 .texts = o->texts.items,
                                                 .text_count = o->texts.count,
                                                 .pieces = o->pieces,
                                                 .folder = folder,
                                                 .note = tell_note,
                                                 .note_context = (void *)options};
    option_refuse_input(options, options_text(options, "%s/spm.model", folder));
    same_files_note(options, o->texts.items, o->texts.count, "each word counts twice");
    deberta_status status = train_tokenizer_make_folder(folder, &is_new, &error);
    if (status == DEBERTA_OK) status = deberta_tokenizer_train(&training, &bits, &error);
    if (status == DEBERTA_OK) {
        status = write_config(o, folder, &error);
        if (status != DEBERTA_OK)
            unlink(options_text(options, "%s/spm.model", folder)); /* the next try may replace it */
    }
    if (status != DEBERTA_OK && is_new) rmdir(folder); /* fails if something has been written */
    must(options, status, &error);
    say_note(options,
             "%zu pieces, %.3f bits a character, and a configuration in %s; next: deberta train mlm --config %s",
             o->pieces, bits, folder, folder);
    if (!options->json) return EXIT_OK;
    print_json_to(
        options, NULL,
        json_pack("{s:I, s:f, s:s}", "pieces", (json_int_t)o->pieces, "bits_per_character", bits, "folder", folder));
    return EXIT_OK;
}

static const option table[] = {
    {"file", 'f', "FILE", "texts to learn pieces from, one a line, or objects (.jsonl); may be repeated",
     TEXTS_AT(tokenizer_options, texts)},
    {"vocabulary", 0, "N", "size of the vocabulary with [PAD], [CLS], [SEP], [UNK]; [MASK] comes on top (default 8000)",
     SIZE_AT(tokenizer_options, pieces, 6, 1000000)},
    {"depth", 0, "N", "of the configuration (default 6)", SIZE_AT(tokenizer_options, layers, 1, 256)},
    {"width", 0, "N", "its width (default 256)", SIZE_AT(tokenizer_options, hidden, 1, 16384)},
    {"head-count", 0, "N", "of a layer (default 4)", SIZE_AT(tokenizer_options, heads, 1, 256)},
    {.name = NULL},
};

const command train_tokenizer = {
    .name = "train tokenizer",
    .summary = "a tokenizer and a configuration from texts",
    .arguments = "",
    .writes = WRITES_FOLDER,
    .options = table,
    .size = sizeof(tokenizer_options),
    .defaults = &(const tokenizer_options){.pieces = 8000, .layers = 6, .hidden = 256, .heads = 4},
    .example = "  cut -f2 docs/studies/data/books.tsv | sed 1d > books.txt\n"
               "  deberta train tokenizer --file books.txt --vocabulary 1000 --depth 3 --out pieces\n",
    .run = train_tokenizer_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE,
};
