/* Finds the WebAssembly modules and the files of the model, checks them, and puts them into the page of a report.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/io/mapped_file.h"
#include "output/byte_buffer.h"
#include "output/json_text.h"
#include "output/scope.h"

/* A browser reads about 80 MB of a page per second, hence the limit of bytes. PIECE_BYTES is a multiple of 3, so that
 * base64 pads only the last piece of a file. */
enum { MOST_MODEL_BYTES = 300000000, MOST_FILES = 28, MOST_NAME_BYTES = 90, PIECE_BYTES = 49152 };

static const char *const tiers[] = {"relaxed", "exact", "scalar"};
enum { TIERS = sizeof tiers / sizeof *tiers };

/* -------------------------------------------------------------------------------------------------------- modules */

static const char *module_path(const common_options *options, const char *folder, const char *tier)
{
    return options_text(options, "%s/deberta-%s.wasm", folder, tier);
}

static bool has_modules(const common_options *options, const char *folder)
{
    for (int k = 0; k < TIERS; k++)
        if (access(module_path(options, folder, tiers[k]), R_OK) == 0) return true;
    return false;
}

/* Finds the modules: next to the program, where `./build.sh wasm` puts them, or where an installation has them. NULL:
 * nowhere. */
static const char *find_modules(const common_options *options)
{
    static const char *const places[] = {".", "../build-wasm", "../share/deberta"};
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return NULL;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        const char *folder = options_text(options, "%s/%s", program, places[k]);
        if (has_modules(options, folder)) return folder;
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- model files */

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Returns true if core/io or core/text reads the file; packed weights suit only the processor that packed them. */
static bool is_model_file(const char *name)
{
    /* optimizer moments of a run, and adapters for another folder's weights */
    if (strcmp(name, "training.safetensors") == 0 || strncmp(name, "adapter_", 8) == 0) return false;
    return ends_with(name, ".json") || ends_with(name, ".safetensors") || ends_with(name, ".model") ||
           strcmp(name, "merges.txt") == 0 || strcmp(name, "bpe_encoder.bin") == 0;
}

typedef struct model_files {
    const char *names[MOST_FILES];
    size_t count, bytes;
    bool has_weights, too_many;
} model_files;

/* Sorts weights last, since the tokenizer is opened while the page is still being read. */
static int order(const void *a, const void *b)
{
    const char *first = *(const char *const *)a, *second = *(const char *const *)b;
    const int weights = ends_with(first, ".safetensors") - ends_with(second, ".safetensors");
    return weights ? weights : strcmp(first, second);
}

/* Lists files in the order of their names, weights after the others, without empty files. */
static void list_files(const common_options *options, const char *folder, model_files *files)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        struct stat about;
        if (!is_model_file(entry->d_name) || stat(options_text(options, "%s/%s", folder, entry->d_name), &about) != 0 ||
            !S_ISREG(about.st_mode) || about.st_size == 0)
            continue;
        files->has_weights |= ends_with(entry->d_name, ".safetensors");
        files->too_many |= files->count == MOST_FILES || strlen(entry->d_name) > MOST_NAME_BYTES;
        if (files->too_many) break;
        files->names[files->count++] = options_text(options, "%s", entry->d_name);
        files->bytes += (size_t)about.st_size;
    }
    if (listing) closedir(listing);
    qsort(files->names, files->count, sizeof *files->names, order);
}

static void check_model(const common_options *options, const live_parts *live)
{
    const char *model = options->arguments[0];
    deberta_tokenizer *tokenizer = NULL;
    deberta_error error;
    if (strncmp(model, "synthetic:", 10) == 0)
        usage_wrong(options, "--live: made-up weights are in no file that a page could hold");
    must(options, deberta_tokenizer_open(&tokenizer, model, &error), &error);
    deberta_tokenizer_free(&tokenizer);
    model_files files = {0};
    list_files(options, model, &files);
    if (!files.has_weights)
        end_with(options, EXIT_INPUT, "%s: a page reads weights from .safetensors, and there is no such file", model);
    if (files.too_many)
        end_with(options, EXIT_INPUT, "%s: a page reads at most %d files with names of at most %d bytes", model,
                 MOST_FILES, MOST_NAME_BYTES);
    if (!live->without_model && files.bytes > MOST_MODEL_BYTES)
        end_with(options, EXIT_INPUT,
                 "%s has %zu MB, a page holds at most %d MB; with --no-model the reader opens the folder", model,
                 files.bytes / 1000000, MOST_MODEL_BYTES / 1000000);
}

void live_parts_find(const common_options *options, live_parts *live)
{
    if (!live->wanted) return;
    if (live->modules && !has_modules(options, live->modules))
        end_with(options, EXIT_INPUT, "--modules: %s has no deberta-relaxed.wasm, -exact or -scalar", live->modules);
    if (!live->modules) live->modules = find_modules(options);
    if (!live->modules)
        say_note(options, "note: --live: there are no modules, so the page shows its texts and computes none; "
                          "./build.sh wasm makes them, --modules DIR names their folder");
    if (live->modules) check_model(options, live);
}

/* ------------------------------------------------------------------------------------------------- into the page */

static void put_piece(FILE *out, const char *name, const unsigned char *bytes, size_t count)
{
    byte_buffer text = {0};
    byte_buffer_base64(&text, bytes, count);
    fprintf(out, "<script type=\"text/plain\" class=\"%s\">", name);
    fwrite(text.data, 1, text.size_bytes, out);
    fputs("</script>\n", out);
    byte_buffer_free(&text);
}

/* Writes a file in pieces: the worker receives each while the browser reads the rest. */
static void put_file(const common_options *options, FILE *out, const char *name, const char *path)
{
    mapped_file file;
    deberta_error error;
    must(options, mapped_file_open(&file, path, &error), &error);
    uLongf size = compressBound(file.size_bytes);
    unsigned char *small = memory_take(size, 1);
    if (compress2(small, &size, file.bytes, file.size_bytes, Z_BEST_COMPRESSION) != Z_OK) memory_short();
    must(options, mapped_file_end(&file, DEBERTA_OK, &error), &error);
    for (size_t at = 0; at < size; at += PIECE_BYTES)
        put_piece(out, name, small + at, size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
    free(small);
}

static size_t size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (size_t)about.st_size : 0;
}

/* Describes an element for the page: its id, the name of its content, and the unpacked length. */
static void describe_element(json_t *list, const char *id, const char *name, const char *path)
{
    json_add(list,
             json_pack("{s:s, s:o, s:I}", "id", id, "name", json_clean_text(name), "bytes", (json_int_t)size_of(path)));
}

static const char *file_path(const common_options *options, const char *name)
{
    return options_text(options, "%s/%s", options->arguments[0], name);
}

json_t *live_parts_describe(const common_options *options, const live_parts *live)
{
    json_t *modules = json_array(), *list = json_array();
    model_files files = {0};
    for (int k = 0; k < TIERS; k++) {
        const char *path = module_path(options, live->modules, tiers[k]);
        if (size_of(path)) describe_element(modules, options_text(options, "module-%s", tiers[k]), tiers[k], path);
    }
    if (!live->without_model) list_files(options, options->arguments[0], &files);
    for (size_t k = 0; k < files.count; k++)
        describe_element(list, options_text(options, "file-%zu", k), files.names[k],
                         file_path(options, files.names[k]));
    return json_pack("{s:o, s:o, s:i}", "modules", modules, "files", list, "precision", options->precision);
}

void live_parts_put_modules(const common_options *options, const live_parts *live, FILE *out)
{
    for (int k = 0; k < TIERS; k++) {
        const char *path = module_path(options, live->modules, tiers[k]);
        if (size_of(path)) put_file(options, out, options_text(options, "module-%s", tiers[k]), path);
    }
}

void live_parts_put_model(const common_options *options, const live_parts *live, FILE *out)
{
    model_files files = {0};
    if (!live->without_model) list_files(options, options->arguments[0], &files);
    for (size_t k = 0; k < files.count; k++)
        put_file(options, out, options_text(options, "file-%zu", k), file_path(options, files.names[k]));
}
