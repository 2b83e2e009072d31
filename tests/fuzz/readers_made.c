/* Readers that damage alone would not reach: the input says what is changed in something that is right, and digests are
 * written anew, so that it gets past the door. What a reader accepts must then hold what it promises.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/io/checkpoint.h"
#include "core/io/text_lines.h"
#include "include/deberta_training.h"
#include "include/deberta_unstable.h"
#include "tests/fuzz/fuzz_folder.h"

static deberta_error error;

/* ------------------------------------------------------------------------------------------------------------- files */

static char *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) abort();
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *content = malloc(*bytes + 1);
    if (!content || fread(content, 1, *bytes, file) != *bytes) abort();
    fclose(file);
    content[*bytes] = '\0';
    return content;
}

static void write_whole(const char *path, const void *content, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(content, 1, bytes, file) != bytes || fclose(file) != 0) abort();
}

static char *joined(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    if (!path) abort();
    return path;
}

static void write_in(const char *folder, const char *name, const void *content, size_t bytes)
{
    char *path = joined(folder, name);
    write_whole(path, content, bytes);
    free(path);
}

static char *read_in(const char *folder, const char *name, size_t *bytes)
{
    char *path = joined(folder, name);
    char *content = read_whole(path, bytes);
    free(path);
    return content;
}

/* Makes a folder for what lies beside the input, once. */
static const char *folder_beside(const char *folder, const char *name, char place[4096])
{
    snprintf(place, 4096, "%.2000s/%.100s", folder, name);
    mkdir(place, 0700);
    return place;
}

/* ------------------------------------------------------------------------------------------------------------- edits */

/* The input is a list of edits of eight bytes: what is changed, where, and a number. */
typedef struct edit {
    unsigned what, at, small;
    uint32_t number;
} edit;

typedef struct edit_list {
    const uint8_t *bytes, *end;
} edit_list;

static bool next_edit(edit_list *list, edit *to)
{
    enum { EDIT_BYTES = 8 };
    const uint8_t *b = list->bytes;
    if (list->end - b < EDIT_BYTES) return false;
    *to = (edit){b[0], b[1] | (unsigned)b[2] << 8, b[3],
                 b[4] | (uint32_t)b[5] << 8 | (uint32_t)b[6] << 16 | (uint32_t)b[7] << 24};
    list->bytes += EDIT_BYTES;
    return true;
}

/* -------------------------------------------------------------------------------------------------- models in general */

/* Reads every value that 24 tokens need, with all heads. */
static void use_model(const deberta_model *model)
{
    enum { TOKENS = 24 };
    deberta_session *session;
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = TOKENS, .threads = 1, .memory_limit_bytes = (size_t)64 << 20};
    int32_t ids[TOKENS];
    const deberta_model_info *info = deberta_model_describe(model);
    for (size_t k = 0; k < TOKENS; k++) ids[k] = (int32_t)(info->vocabulary_size ? k * 37 % info->vocabulary_size : 0);
    if (deberta_session_create(&session, model, &options, &error) != DEBERTA_OK) return;
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = ids, .sequence_starts = (size_t[]){0, TOKENS}, .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    if (deberta_encode(session, &batch, &outputs, &error) == DEBERTA_OK) fuzz_read_heads(session, model);
    deberta_session_free(&session);
}

static const deberta_model_options small_model = {
    .struct_size = sizeof small_model, .threads = 1, .memory_limit_bytes = (size_t)64 << 20};

#define SMALL TESTS_FOLDER "/golden/33-v3-mlm-emd"

/* ------------------------------------------------------------------------------------------------------ packed, alone */

/* Places in such a file, as core/load/packed_file.h has them. */
enum {
    SECTION_BYTES_AT = 24,
    CONFIG_AT = 112,
    TABLE_AT = 240,
    HEADER_AT = 304,
    CONTENTS_AT = 4096,
    SECTIONS = 3,
    DIGEST = 64,
    BLOCK = 256 << 10,
    ALIGNMENT = 64
};

typedef struct packed_copy {
    char *bytes, *config;
    size_t count, config_count;
} packed_copy;

static void write_digest(const void *bytes, size_t count, char *to)
{
    sha256 hash;
    char text[DIGEST + 1];
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, bytes, count);
    sha256_finish(&hash, text);
    memcpy(to, text, DIGEST);
}

/* Of the sections as the header has them, where they lie in the file. */
static void write_digests(packed_copy *copy)
{
    uint64_t bytes[SECTIONS], starts[SECTIONS], at = CONTENTS_AT, blocks = 0;
    memcpy(bytes, copy->bytes + SECTION_BYTES_AT, sizeof bytes);
    for (size_t k = 0; k < SECTIONS; k++) {
        if (bytes[k] > copy->count || at > copy->count) break;
        if (bytes[k]) at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        starts[k] = at;
        at += bytes[k];
        blocks += (bytes[k] + BLOCK - 1) / BLOCK;
        if (k + 1 < SECTIONS || at + blocks * DIGEST > copy->count) continue;
        char *table = copy->bytes + at, *to = table;
        for (size_t s = 0; s < SECTIONS; s++)
            for (uint64_t first = 0; first < bytes[s]; first += BLOCK, to += DIGEST)
                write_digest(copy->bytes + starts[s] + first, bytes[s] - first < BLOCK ? bytes[s] - first : BLOCK, to);
        write_digest(table, blocks * DIGEST, copy->bytes + TABLE_AT);
        copy->count = at + blocks * DIGEST; /* a section that became shorter takes the end along */
    }
    write_digest(copy->config, copy->config_count, copy->bytes + CONFIG_AT);
    write_digest(copy->bytes, HEADER_AT, copy->bytes + HEADER_AT);
}

static void apply(packed_copy *copy, const edit *e)
{
    const uint64_t sections_at[] = {SECTION_BYTES_AT, CONTENTS_AT};
    size_t place = 0;
    switch (e->what % 6) {
    case 0: /* a byte anywhere */
        place = (e->at << 8 | (e->number & 0xff)) % copy->count;
        copy->bytes[place] = (char)e->small;
        break;
    case 1: /* the size of a section, a little */
        memcpy(copy->bytes + SECTION_BYTES_AT + 8 * (e->at % SECTIONS),
               &(uint64_t){e->small % 2 ? e->number : e->number % copy->count}, 8);
        break;
    case 2: /* a number of four bytes behind the header */
        place = sections_at[1] + ((size_t)e->at << 4) % (copy->count - CONTENTS_AT - 4);
        memcpy(copy->bytes + place, &e->number, 4);
        break;
    case 3: /* the last bytes, which are names and shapes */
        place = copy->count - 4 - e->at % 4096;
        memcpy(copy->bytes + place, &e->number, 1 + e->small % 4);
        break;
    case 4: copy->config[e->at % copy->config_count] = (char)e->small; break;
    default: /* a digit of the configuration */
        place = e->at % copy->config_count;
        while (place < copy->config_count && (copy->config[place] < '0' || copy->config[place] > '9')) place++;
        if (place < copy->config_count) copy->config[place] = (char)('0' + e->small % 10);
    }
}

/* Both precisions of a small model, packed once. */
static const packed_copy *pack_once(const char *folder, deberta_precision precision)
{
    static packed_copy packed[DEBERTA_PRECISION_COUNT];
    packed_copy *copy = &packed[precision];
    char place[4096];
    if (copy->bytes) return copy;
    folder_beside(folder, "whole", place);
    for (const char *const *name = (const char *const[]){"config.json", "model.safetensors", NULL}; *name; name++) {
        char from[4096], *to = joined(place, *name);
        snprintf(from, sizeof from, "%s/%s", SMALL, *name);
        if (symlink(from, to) != 0 && access(to, F_OK) != 0) abort();
        free(to);
    }
    const deberta_pack_options options = {.struct_size = sizeof options, .precision = precision};
    if (deberta_model_pack(place, &options, &error) != DEBERTA_OK) abort();
    copy->bytes = read_in(place, deberta_packed_file_name(precision), &copy->count);
    copy->config = read_in(place, "config.json", &copy->config_count);
    return copy;
}

static void read_packed_alone(const char *folder, size_t size)
{
    size_t count;
    char *input = read_in(folder, "edits", &count), place[4096];
    const deberta_precision precision = count && input[0] & 1 ? DEBERTA_PRECISION_INT16 : DEBERTA_PRECISION_INT8;
    const packed_copy *whole = pack_once(folder, precision);
    packed_copy copy = {.count = whole->count, .config_count = whole->config_count};
    deberta_model *model;
    edit e;
    (void)size;
    copy.bytes = malloc(copy.count);
    copy.config = malloc(copy.config_count);
    if (!copy.bytes || !copy.config) abort();
    memcpy(copy.bytes, whole->bytes, copy.count);
    memcpy(copy.config, whole->config, copy.config_count);
    edit_list edits = {(const uint8_t *)input + (count > 0), (const uint8_t *)input + count};
    while (next_edit(&edits, &e)) apply(&copy, &e);
    write_digests(&copy);
    folder_beside(folder, precision == DEBERTA_PRECISION_INT8 ? "int8" : "int16", place);
    write_in(place, deberta_packed_file_name(precision), copy.bytes, copy.count);
    write_in(place, "config.json", copy.config, copy.config_count);
    deberta_model_options options = small_model;
    options.precision = precision;
    if (deberta_model_open(&model, place, &options, &error) == DEBERTA_OK) {
        use_model(model);
        deberta_model_free(&model);
    }
    free(copy.bytes);
    free(copy.config);
    free(input);
}

/* ---------------------------------------------------------------------------------------------------- weights of memory */

enum { MOST_TENSORS = 128, MOST_RANK = 8, MOST_ELEMENTS = 1 << 18 };

typedef struct memory_tensor {
    deberta_tensor given;
    char name[256];
    size_t shape[MOST_RANK], strides[MOST_RANK];
    void *values; /* as many bytes as shape and strides reach */
} memory_tensor;

/* The elements that a tensor reaches; SIZE_MAX: more than this target takes. */
static size_t reach(const memory_tensor *t)
{
    size_t last = 0, contiguous = 1;
    for (size_t d = t->given.rank; d-- > 0;) {
        const size_t stride = t->given.strides ? t->strides[d] : contiguous;
        size_t step;
        if (t->shape[d] == 0) return 0;
        if (__builtin_mul_overflow(t->shape[d] - 1, stride, &step) || __builtin_add_overflow(last, step, &last) ||
            __builtin_mul_overflow(contiguous, t->shape[d], &contiguous) || last >= MOST_ELEMENTS)
            return SIZE_MAX;
    }
    return last + 1;
}

static void change(memory_tensor *t, const edit *e)
{
    static const uint32_t odd[] = {0, 1, 2, 3, 4, 8, 16, 31, 32, 33, 63, 64, 65, 128, 512, UINT32_MAX};
    const uint32_t number = e->small & 0x80 ? e->number : odd[e->number % (sizeof odd / sizeof *odd)];
    const size_t d = e->small % MOST_RANK;
    switch (e->what % 8) {
    case 0: t->shape[d] = number; break;
    case 1: t->given.rank = number % (MOST_RANK + 2); break;
    case 2: t->given.dtype = (deberta_dtype)(number % (DEBERTA_DTYPE_COUNT + 1)); break;
    case 3: t->given.strides = t->strides, t->strides[d] = number; break;
    case 4: /* transposed: the same shape, columns first */
        t->given.strides = t->strides;
        for (size_t k = 0, step = 1; k < t->given.rank && k < MOST_RANK; k++) {
            t->strides[k] = step;
            step *= t->shape[k] ? t->shape[k] : 1;
        }
        break;
    case 5: t->name[e->number % (strlen(t->name) + 1)] = (char)e->small; break;
    case 6: t->given.name = NULL; break;
    default: t->given.strides = NULL;
    }
    t->name[sizeof t->name - 1] = '\0';
}

/* Values of the tensor's type that are small numbers, in as many bytes as it reaches. */
static bool make_values(memory_tensor *t)
{
    static const size_t element_bytes[] = {4, 2, 2, 8, 8};
    const size_t elements = t->given.rank <= MOST_RANK ? reach(t) : 1;
    if (elements == SIZE_MAX) return false;
    const size_t bytes = elements * element_bytes[t->given.dtype];
    uint8_t *values = malloc(bytes ? bytes : 1);
    if (!values) return false;
    for (size_t k = 0; k < bytes; k++)
        values[k] = (uint8_t)(k % element_bytes[t->given.dtype] == element_bytes[t->given.dtype] - 1 ? 0x3c : k);
    t->given.values = t->values = values;
    return true;
}

static size_t list_tensors(memory_tensor *list)
{
    static checkpoint *files;
    if (!files && checkpoint_open(&files, SMALL, &error) != DEBERTA_OK) abort();
    const size_t count = checkpoint_count(files) < MOST_TENSORS ? checkpoint_count(files) : MOST_TENSORS;
    for (size_t k = 0; k < count; k++) {
        const tensor *from = checkpoint_at(files, k);
        memory_tensor *t = &list[k];
        *t = (memory_tensor){.given = {.rank = from->rank, .dtype = DEBERTA_FLOAT32}};
        snprintf(t->name, sizeof t->name, "%s", from->name);
        memcpy(t->shape, from->shape, from->rank * sizeof *t->shape);
        t->given.name = t->name;
        t->given.shape = t->shape;
    }
    return count;
}

/* May go once the model is open? Two tables are read as long as it lives. */
static bool stays(const memory_tensor *t)
{
    const char *word = strstr(t->name, "word_embeddings.weight"), *decoder = strstr(t->name, "decoder.weight");
    return word || decoder;
}

static void read_open_memory(const char *text, size_t bytes)
{
    static memory_tensor list[MOST_TENSORS];
    static char *config;
    static size_t config_bytes;
    deberta_tensor given[MOST_TENSORS];
    deberta_model *model = NULL;
    edit e;
    if (!config) config = read_in(SMALL, "config.json", &config_bytes);
    char *own = strdup(config);
    size_t count = list_tensors(list);
    edit_list edits = {(const uint8_t *)text, (const uint8_t *)text + bytes};
    while (own && next_edit(&edits, &e)) {
        if (e.what >= 0xf0)
            own[e.at % config_bytes] = e.small ? (char)e.small : ' ';
        else if (e.what >= 0xe8)
            count = e.at % (count + 1);
        else if (count)
            change(&list[e.at % count], &e);
    }
    bool fine = own != NULL;
    for (size_t k = 0; k < count; k++) list[k].values = NULL;
    for (size_t k = 0; fine && k < count; k++) {
        fine = make_values(&list[k]);
        given[k] = list[k].given;
    }
    if (fine) deberta_model_open_memory(&model, "memory", own, given, count, &small_model, &error);
    for (size_t k = 0; k < count; k++)
        if (!stays(&list[k])) free(list[k].values);
    if (model) use_model(model);
    deberta_model_free(&model);
    for (size_t k = 0; k < count; k++)
        if (stays(&list[k])) free(list[k].values);
    free(own);
}

/* ------------------------------------------------------------------------------------------------- trained tokenizers */

/* A tokenizer that was trained must open, and cut what it was trained on. */
static void read_training(const char *folder, size_t size)
{
    char place[4096], *path = joined(folder, "x.txt"), *back = NULL;
    size_t bytes, back_bytes;
    char *text = read_whole(path, &bytes);
    deberta_tokenizer *tokenizer = NULL;
    deberta_tokens *tokens = NULL;
    const deberta_tokenizer_training training = {.struct_size = sizeof training,
                                                 .texts = (const char *const[]){path},
                                                 .text_count = 1,
                                                 .pieces = 8 + size % 120,
                                                 .folder = folder_beside(folder, "trained", place)};
    if (deberta_tokenizer_train(&training, NULL, &error) == DEBERTA_OK) {
        if (deberta_tokenizer_open(&tokenizer, place, &error) != DEBERTA_OK) {
            fprintf(stderr, "what was trained does not open: %s\n", error.message);
            abort();
        }
        const deberta_text given = {
            .struct_size = sizeof given, .text = text, .text_bytes = bytes < 512 ? bytes : 512, .max_tokens = 512};
        if (deberta_tokenize(&tokens, tokenizer, &given, &error) == DEBERTA_OK &&
            deberta_detokenize(&back, &back_bytes, tokenizer, tokens->ids, tokens->count, &error) == DEBERTA_OK)
            deberta_free(back);
        deberta_tokens_free(&tokens);
        deberta_tokenizer_free(&tokenizer);
    }
    free(text);
    free(path);
}

/* --------------------------------------------------------------------------------------------------- texts of any name */

/* Lines as those who learn read them, under each name that says what a file holds. */
static void read_lines(const char *folder, size_t size)
{
    static const char *const names[] = {"x.txt", "x.jsonl", "x.json", "x.csv", "x.tsv", "x"};
    size_t bytes;
    char *content = read_in(folder, "x.txt", &bytes);
    const size_t first = strcspn(content, "\n");
    (void)size;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *path = joined(folder, names[k]);
        text_lines lines;
        text_form form;
        const char *line;
        size_t count;
        if (k && symlink("x.txt", path) != 0 && access(path, F_OK) != 0) abort();
        for (int columns = 0; columns < 2; columns++) {
            text_form_find(&form, names[k], content, first, columns);
            if (strlen(form.note) >= TEXT_FORM_SENTENCE_BYTES || strlen(form.refusal) >= TEXT_FORM_SENTENCE_BYTES)
                abort();
        }
        if (text_lines_open(&lines, path, &error) == DEBERTA_OK) {
            deberta_status status;
            do {
                status = text_lines_next(&lines, &line, &count, &error);
                if (status == DEBERTA_OK && line && (memchr(line, '\n', count) || memchr(line, 0, count))) abort();
            } while (status == DEBERTA_OK && line);
            text_lines_end(&lines, status, (note_listener){0}, &error);
        }
        free(path);
    }
    free(content);
}

/* --------------------------------------------------------------------------------------------------- folders of others */

/* The files of a folder of sentence-transformers, one after the other with a form feed between; an empty one is not
 * there. */
static void read_vector_recipe(const char *folder, size_t size)
{
    static const char *const names[] = {
        "modules.json",          "1_Pooling/config.json", "sentence_bert_config.json",
        "tokenizer_config.json", "config.json",           "config_sentence_transformers.json"};
    char place[4096], pooling[4096];
    size_t bytes;
    char *content = read_in(folder, "files", &bytes), *at = content, *end = content + bytes;
    deberta_vector_recipe recipe;
    (void)size;
    folder_beside(folder, "model", place);
    folder_beside(place, "1_Pooling", pooling);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *stop = at < end ? memchr(at, '\f', (size_t)(end - at)) : NULL;
        if (!stop) stop = end;
        char *path = joined(place, names[k]);
        unlink(path);
        if (stop > at) write_whole(path, at, (size_t)(stop - at));
        free(path);
        at = stop < end ? stop + 1 : end;
    }
    if (deberta_vector_recipe_read(&recipe, place, &error) == DEBERTA_OK &&
        strlen(recipe.obstacle) >= sizeof recipe.obstacle)
        abort();
    deberta_vector_recipe_read(&recipe, pooling, &error); /* long ago the model lay inside */
    free(content);
}

const fuzz_target fuzz_made_targets[] = {
    {"packed_alone", "", "edits", read_packed_alone},   {"open_memory", "", NULL, read_open_memory},
    {"tokenizer_training", "", "x.txt", read_training}, {"text_lines", "", "x.txt", read_lines},
    {"vector_recipe", "", "files", read_vector_recipe}, {NULL, NULL, NULL, NULL},
};
