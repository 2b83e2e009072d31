/* Recognises, by their files, folders that hold no model of DeBERTa, such as adapters (peft) and models of other
 * classes. Each row of the table names a kind, the files that mark it, and the remedy. Walks places to find a file in
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/folder_kind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/io/quote.h"

static const json_limits settings_limits = {
    .bytes = 16 << 20, .depth = 32, .values = 1 << 20, .integers_as_real = true};

/* Returns whether the folder has an entry of that name. A dangling symbolic link counts, because opening it reports the
 * problem. */
static bool holds(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    struct stat ignored;
    const bool there = path && lstat(path, &ignored) == 0;
    free(path);
    return there;
}

/* --------------------------------------------------------------------------------------------------------- no place */

enum { HUB_NAME_BYTES = 81 };

static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

/* Returns whether a path looks like ORGANISATION/NAME: two words, of which the first is neither a folder here nor
 * "models". */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    if (!slash || slash == path || *path == '.' || strspn(path, word) != (size_t)(slash - path)) return false;
    if (!slash[1] || slash[1 + strspn(slash + 1, word)] || strlen(path) >= HUB_NAME_BYTES) return false;
    char folder[HUB_NAME_BYTES];
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return strcmp(folder, "models") != 0 && stat(folder, &about) != 0;
}

/* Extracts ORGANISATION/NAME from an address "https://host/ORGANISATION/NAME", whatever follows it. */
static bool name_of_address(const char *path, char name[HUB_NAME_BYTES])
{
    const char *at = strstr(path, "://");
    if (!at || (strncmp(path, "http", 4) != 0 && strncmp(path, "hf", 2) != 0)) return false;
    at += 3;
    if (*path == 'h' && path[1] == 't') at = strchr(at, '/') ? strchr(at, '/') + 1 : "";
    const size_t organisation = strspn(at, word);
    if (!organisation || at[organisation] != '/') return false;
    const size_t rest = strspn(at + organisation + 1, word);
    if (!rest || organisation + 1 + rest >= HUB_NAME_BYTES) return false;
    snprintf(name, HUB_NAME_BYTES, "%.*s", (int)(organisation + 1 + rest), at);
    return true;
}

/* Adds the organisation to Microsoft's model names, which people remember without it. */
static bool name_of_microsoft(const char *path, char name[HUB_NAME_BYTES])
{
    static const char *const names[] = {
        "deberta-base",           "deberta-large",           "deberta-xlarge",    "deberta-base-mnli",
        "deberta-large-mnli",     "deberta-xlarge-mnli",     "deberta-v2-xlarge", "deberta-v2-xxlarge",
        "deberta-v2-xlarge-mnli", "deberta-v2-xxlarge-mnli", "deberta-v3-xsmall", "deberta-v3-small",
        "deberta-v3-base",        "deberta-v3-large",        "mdeberta-v3-base"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0) {
            snprintf(name, HUB_NAME_BYTES, "microsoft/%s", path);
            return true;
        }
    return false;
}

/* Fails with DEBERTA_E_FILE for a path that does not exist, and names the folder in which a relative path was searched.
 * Common first mistakes are a path in the wrong folder, and the name of a model on a hub. For a path like
 * ORGANISATION/NAME, like the URL of such a page, or like one of Microsoft's names, the message includes the download
 * command. */
static deberta_status hub_name_refuse(const char *path, deberta_error *err)
{
    char here[PATH_MAX], name[HUB_NAME_BYTES];
    if (*path == '/') DEBERTA_FAIL(err, DEBERTA_E_FILE, "%.200s: no such folder; " EXPECTED_PLACE, QUOTE(path));
    if (!getcwd(here, sizeof here)) snprintf(here, sizeof here, "the current folder");
    if (is_hub_name(path))
        snprintf(name, sizeof name, "%.80s", path);
    else if (!name_of_address(path, name) && !name_of_microsoft(path, name))
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%.200s: no such folder in %.200s; " EXPECTED_PLACE, QUOTE(path), here);
    DEBERTA_FAIL(err, DEBERTA_E_FILE,
                 "%.100s: no such folder in %.120s; if a model on the hub has that name: hf download %s '*.json' "
                 "spm.model merges.txt bpe_encoder.bin 'model*.safetensors' pytorch_model.bin 'pytorch_model-*.bin' "
                 "--local-dir %s",
                 QUOTE(path), here, name, strchr(name, '/') + 1);
}

/* ------------------------------------------------------------------------------------- kinds known by one file */

/* marker: a file that only folders of this kind have. key: the member of the marker that names the model inside, or
 * NULL. is, helps: the two halves of the sentence. */
typedef struct folder_kind {
    const char *marker, *key, *is, *helps;
} folder_kind;

#define MERGE_FIRST    "merge it into that model (merge_and_unload, then save_pretrained) and give the merged folder"
#define CONFIG_OF_BASE "put the config.json of that model into the folder, with vocab_size as the word table has rows"

/* Kinds of folders without config.json, in the order in which they are tried. */
static const folder_kind kinds[] = {
    {"adapter_config.json", "base_model_name_or_path", "an adapter alone, as peft saves it", MERGE_FIRST},
    {"adapter_model.safetensors", NULL, "an adapter alone", MERGE_FIRST},
    {"adapter_model.bin", NULL, "an adapter alone", MERGE_FIRST},
    {"pytorch_adapter.bin", NULL, "an adapter alone, as the library adapters saves it", MERGE_FIRST},
    {"gliner_config.json", "model_name", "belongs to GLiNER, a class around another model", CONFIG_OF_BASE},
    {"model_config.json", NULL, "the config of Microsoft's own files", "give it the name config.json"},
};

/* Files of unsupported tokenizers, looked for in a folder without a supported one. */
static const folder_kind tokenizer_kinds[] = {
    {"vocab.txt", NULL, "the vocabulary of BERT's WordPiece, which is not read",
     "give token ids (--ids, --input; in Python numbers in place of texts), or use deberta_c.accelerate with the class "
     "of transformers"},
    {"tokenizer.model", NULL, "not a name that is looked for",
     "if it is the SentencePiece model of a DeBERTa, give it the name spm.model"},
    {"spiece.model", NULL, "the SentencePiece model of another class",
     "if the ids are those of its pieces, give it the name spm.model"},
    {"sentencepiece.bpe.model", NULL, "the SentencePiece model of XLM-R, whose ids are not those of its pieces",
     "save the tokenizer as tokenizer.json"},
    {"dict.txt", NULL, "the dictionary of fairseq, which is not read", "give the folder that transformers saved"},
};

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

/* Describes the value of a key in the settings, in words: "missing" for an absent key or an unreadable file. */
static quoted named_inside(const char *path, const char *key)
{
    json_t *settings = NULL;
    deberta_error ignored;
    json_file_read(&settings, path, &settings_limits, &ignored);
    const json_t *inner = json_object_get(settings, key);
    const quoted words = inner ? json_describe(inner) : quote_bytes("missing", 7);
    json_decref(settings);
    return words;
}

static deberta_status refuse_kind(const char *folder, const folder_kind *kind, deberta_error *err)
{
    char *path = path_join(folder, kind->marker);
    if (!path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    const quoted where = quote_bytes(path, strlen(path));
    const quoted inside = kind->key ? named_inside(path, kind->key) : where;
    free(path);
    if (!kind->key) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: %s: %s", where.text, kind->is, kind->helps);
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: %s (%s is %s): %s", where.text, kind->is, kind->key, inside.text,
                 kind->helps);
}

static deberta_status refuse_known(const char *folder, const folder_kind *table, size_t count, deberta_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (holds(folder, table[i].marker)) return refuse_kind(folder, &table[i], err);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------ models further inside */

enum {
    DEEPEST = 3,         /* levels of hub/models--org--name/snapshots/revision */
    MOST_ENTRIES = 4096, /* limit of all entries that are visited, because a home directory must not take minutes */
};

typedef struct inner_models {
    char **paths; /* paths relative to the folder */
    size_t count, capacity, entries;
    bool lost; /* whether memory was short */
} inner_models;

static const char *const weights_of_models[] = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",  "pytorch_model.bin.index.json",
    "deberta.packed",    "deberta.int16.packed",         "deberta.int8.packed"};

static bool is_model(const char *folder)
{
    for (size_t i = 0; i < COUNT_OF(weights_of_models); i++)
        if (holds(folder, weights_of_models[i])) return holds(folder, "config.json");
    return false;
}

static void keep_model(inner_models *found, const char *inside)
{
    char **larger = grown(found->paths, &found->capacity, found->count + 1, sizeof *larger);
    if (larger) {
        found->paths = larger;
        larger[found->count] = strdup(inside);
    }
    if (!larger || !larger[found->count])
        found->lost = true;
    else
        found->count++;
}

/* Collects models in subfolders recursively; `inside` is the path to this one, "" for the first. */
static void look_below(inner_models *found, const char *folder, const char *inside, size_t depth)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries && !found->lost && found->entries < MOST_ENTRIES && (entry = readdir(entries))) {
        found->entries++;
        if (entry->d_name[0] == '.') continue;
        char *path = path_join(folder, entry->d_name), *way = path_join(inside, entry->d_name);
        struct stat about;
        if (!path || !way)
            found->lost = true;
        else if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
            if (is_model(path))
                keep_model(found, way);
            else if (depth + 1 < DEEPEST)
                look_below(found, path, way, depth + 1);
        }
        free(path);
        free(way);
    }
    if (entries) closedir(entries);
}

/* Orders paths so that checkpoint-900 comes before checkpoint-1000. */
static int compare_ways(const void *a, const void *b) { return strverscmp(*(char *const *)a, *(char *const *)b); }

/* Returns the last of a run's checkpoints, the revision that a download cache calls main, or the first of others. */
static const char *best_inside(const char *folder, const inner_models *found)
{
    char revision[64] = "", *path = path_join(folder, "refs/main");
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0 && read(file, revision, sizeof revision - 1) > 0) revision[strcspn(revision, " \r\n")] = 0;
    if (file >= 0) close(file);
    free(path);
    for (size_t i = 0; *revision && i < found->count; i++)
        if (strstr(found->paths[i], revision)) return found->paths[i];
    const char *last = found->paths[found->count - 1], *name = strrchr(last, '/');
    return strncmp(name ? name + 1 : last, "checkpoint-", 11) == 0 ? last : found->paths[0];
}

static deberta_status refuse_outer(const char *folder, const inner_models *found, deberta_error *err)
{
    const quoted outer = quote_bytes(folder, strlen(folder));
    if (found->count == 0) return DEBERTA_OK;
    if (found->count == 1)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: holds no config.json, but a model in a folder inside; give %s/%s",
                     outer.text, outer.text, QUOTE(found->paths[0]));
    if (found->count == 2 && !strchr(found->paths[0], '/') && strncmp(found->paths[0], "checkpoint-", 11) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: holds two models; give %s/%s or %s/%s", outer.text, outer.text,
                     QUOTE(found->paths[0]), outer.text, QUOTE(found->paths[1]));
    DEBERTA_FAIL(err, DEBERTA_E_FILE,
                 "%s: holds no config.json, but %zu models in folders inside; give one of them, "
                 "such as %s/%s",
                 outer.text, found->count, outer.text, QUOTE(best_inside(folder, found)));
}

static deberta_status check_inside(const char *folder, deberta_error *err)
{
    inner_models found = {0};
    look_below(&found, folder, "", 0);
    if (found.count) qsort(found.paths, found.count, sizeof *found.paths, compare_ways);
    deberta_status status = found.lost ? status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder))
                                       : refuse_outer(folder, &found, err);
    for (size_t i = 0; i < found.count; i++) free(found.paths[i]);
    free(found.paths);
    return status;
}

/* ------------------------------------------------------------------------------------------------- whole places */

/* Sets *is_folder to whether the path is a folder; refuses a missing path and a file. */
static deberta_status check_place(const char *path, bool *is_folder, deberta_error *err)
{
    struct stat about;
    *is_folder = false;
    if (*path == 0) return DEBERTA_OK;
    if (stat(path, &about) != 0) return errno == ENOENT ? hub_name_refuse(path, err) : DEBERTA_OK;
    if (!S_ISDIR(about.st_mode)) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: is a file; " EXPECTED_PLACE, QUOTE(path));
    *is_folder = true;
    return DEBERTA_OK;
}

/* Old versions of sentence-transformers saved the model in 0_Transformer, and its pooling beside it. */
deberta_status folder_check_model(const char *path, deberta_error *err)
{
    bool is_folder;
    DEBERTA_TRY(check_place(path, &is_folder, err));
    if (!is_folder || holds(path, "config.json")) return DEBERTA_OK;
    DEBERTA_TRY(refuse_known(path, kinds, COUNT_OF(kinds), err));
    return check_inside(path, err);
}

deberta_status folder_check_tokenizer(const char *path, deberta_error *err)
{
    bool is_folder;
    DEBERTA_TRY(check_place(path, &is_folder, err));
    if (!is_folder) return DEBERTA_OK;
    DEBERTA_TRY(refuse_known(path, tokenizer_kinds, COUNT_OF(tokenizer_kinds), err));
    return folder_check_model(path, err);
}

/* ------------------------------------------------------------------------------------------- beside a whole model */

deberta_status folder_note_rest(const char *path, kept_notes *list, deberta_error *err)
{
    static const struct {
        const char *name, *says;
    } rest[] = {
        {"adapter_config.json",
         "an adapter lies beside the weights and is not added: where other libraries add it, answers "
         "differ; merge it first"},
        {"pytorch_adapter.bin", "an adapter lies beside the weights and is not added: merge it first"},
        {"pytorch_model_head.bin", "a head in a file of its own is not read"},
        {"model_head.pkl",
         "the head of SetFit, an object of scikit-learn, is not read: vectors can be had (encode), its "
         "classes cannot"},
    };
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        if (holds(path, rest[i].name)) {
            DEBERTA_TRY(notes_add(list, err, "%s/%s: %s", QUOTE(path), rest[i].name, rest[i].says));
        }
    return DEBERTA_OK;
}

const char *folder_other_weights(const char *path, char *room, size_t room_bytes)
{
    static const struct {
        const char *pattern, *is;
    } known[] = {
        {"adapter_model.safetensors", "is an adapter alone: merge it into its model first"},
        {"adapter_model.bin", "is an adapter alone: merge it into its model first"},
        {"*-of-*.safetensors", "is a part, and the model.safetensors.index.json that names all is missing: fetch it"},
        {"*-of-*.bin", "is a part, and the pytorch_model.bin.index.json that names all is missing: fetch it"},
        {"*.fp16.safetensors", "is a variant: give it the name model.safetensors"},
        {"*.fp16.bin", "is a variant: give it the name pytorch_model.bin"},
        {"*.safetensors",
         "is not a name that is looked for: if it is the whole model, give it the name model.safetensors"},
        {"*.bin", "is not a name that is looked for: if torch.save wrote it, give it the name pytorch_model.bin"},
        {"*.pt", "is not a name that is looked for: if torch.save wrote it, give it the name pytorch_model.bin"},
        {"*.pth", "is not a name that is looked for: if torch.save wrote it, give it the name pytorch_model.bin"},
        {"*.ckpt", "is a checkpoint of a trainer: save its state_dict as pytorch_model.bin"},
        {"*.onnx", "is ONNX, which is not read: save the model with PyTorch"},
        {"openvino_model.xml", "is OpenVINO's, which is not read: save the model with PyTorch"},
        {"*.h5", "is TensorFlow's: save the model with PyTorch"},
        {"*.msgpack", "is Flax's: save the model with PyTorch"},
        {"*.ot", "is Rust's: save the model with PyTorch"},
        {"*.gguf", "is not read: save the model with PyTorch"},
        {"*.tflite", "is TensorFlow Lite's: save the model with PyTorch"},
        {"*.index", "is TensorFlow's: save the model with PyTorch"},
    };
    /* Files that a trainer leaves beside weights, or that hold a vocabulary, do not count as weights. */
    static const char *const none[] = {"training_args.bin", "optimizer.bin", "optimizer.pt",
                                       "scheduler.bin",     "scheduler.pt",  "scaler.pt",
                                       "bpe_encoder.bin",   "rng_state.pth", NULL};
    DIR *entries = opendir(path);
    const struct dirent *entry;
    size_t best = COUNT_OF(known);
    *room = 0;
    while (entries && (entry = readdir(entries))) {
        size_t is = 0;
        while (none[is] && strcmp(none[is], entry->d_name) != 0) is++;
        if (none[is] || strncmp(entry->d_name, "rng_state", 9) == 0) continue;
        for (size_t k = 0; k < best; k++)
            if (fnmatch(known[k].pattern, entry->d_name, 0) == 0) {
                best = k;
                snprintf(room, room_bytes, "; %s %s", QUOTE(entry->d_name), known[k].is);
            }
    }
    if (entries) closedir(entries);
    static const char *const folders[] = {"onnx", "openvino", "coreml"};
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        if (!*room && holds(path, folders[i]))
            snprintf(room, room_bytes, "; what lies in %s/ is not read: save the model with PyTorch", folders[i]);
    return room;
}

/* -------------------------------------------------------------------------------------------------- files in places */

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool find_regular(const char *path, struct stat *about)
{
    return stat(path, about) == 0 && S_ISREG(about->st_mode);
}

static bool place_holds_file(const char *place, const struct stat *file, int folders)
{
    struct stat about;
    if (stat(place, &about) != 0) return false;
    if (S_ISREG(about.st_mode)) return is_same(&about, file);
    DIR *entries = folders > 0 && S_ISDIR(about.st_mode) ? opendir(place) : NULL;
    const struct dirent *entry;
    bool found = false;
    while (entries && !found && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || (entry->d_name[1] == '.' && !entry->d_name[2]))) continue;
        char *path = path_join(place, entry->d_name);
        found = path && place_holds_file(path, file, folders - 1);
        free(path);
    }
    if (entries) closedir(entries);
    return found;
}

bool place_holds(const char *place, const char *path)
{
    struct stat file;
    return find_regular(path, &file) && place_holds_file(place, &file, 2);
}

bool descriptor_is_file(int descriptor, const char *path)
{
    struct stat file, about;
    return find_regular(path, &file) && fstat(descriptor, &about) == 0 && is_same(&about, &file);
}
