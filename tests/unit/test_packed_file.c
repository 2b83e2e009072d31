/* Packed weights beside a model: the same results from a mapping, and a file that does not fit is never used.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"
#include "tests/unit/model_helpers.h"

#include <fcntl.h>

#include "check/mutation.h"
#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/encode/session.h"
#include "core/load/packed_file.h"

/* Every kind of piece that an arena holds: both parameterisations, shared and separate position projections, tables of
 * absolute positions and types, talking heads, a convolution, an embedding projection, padded heads, all heads. */
static const char *const cases[] = {"01-v1-both-n33", "05-v1-posbias-types-b3", "08-v1-talking-head", "10-v1-mlm-emd",
                                    "11-v2-b4-n33-noshare", "20-v2-conv-gelu-b3", "22-v2-embedproj-types",
                                    "23-v2-head80", "29-v3-seqcls", "31-v3-qa", "33-v3-mlm-emd", "36-v3-rtd",
                                    /* and every kind of file */
                                    "formats/f01-zip-f32-v3", "formats/f03-legacy-f32-v2",
                                    "formats/f05-safetensors-bf16-v2", "formats/f06-sharded-safetensors"};
enum { CASES = sizeof cases / sizeof *cases, LAYOUT_CASES = 12 };

static char *packed_path(const char *folder)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, DEBERTA_PACKED_FILE_NAME);
    return path;
}

static deberta_model *open_with(const char *folder, deberta_packed expected)
{
    deberta_model *model = open_model(folder);
    const deberta_packed found = deberta_model_describe(model)->packed;
    if (found != expected) fail_msg("%s: packed weights %d, expected %d", folder, found, expected);
    return model;
}

static void encode_folder(const char *folder, deberta_packed expected, char digest[65])
{
    OWN_MODEL *model = open_with(folder, expected);
    results_digest(model, DEBERTA_ISA_AUTO, 2, digest);
}

TEST(a_mapping_holds_what_packing_makes)
{
    for (size_t c = 0; c < CASES; c++) {
        FREED_BY(remove_folder) char *folder = copy_of_model(cases[c]);
        char made_digest[65], mapped_digest[65];
        OWN_MODEL *made = open_with(folder, DEBERTA_PACKED_NONE);
        pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 2);
        OWN_MODEL *mapped = open_with(folder, DEBERTA_PACKED_MAPPED);
        results_digest(made, DEBERTA_ISA_AUTO, 2, made_digest);
        results_digest(mapped, DEBERTA_ISA_AUTO, 2, mapped_digest);
        assert_string_equal(mapped_digest, made_digest);
        assert_int_equal(mapped->memory_bytes, made->memory_bytes);
        assert_int_equal(mapped->arena.used_bytes, made->arena.used_bytes);
        assert_memory_equal(arena_contents(&mapped->arena), arena_contents(&made->arena), made->memory_bytes);
    }
}

TEST(a_file_is_the_same_whoever_writes_it)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("33-v3-mlm-emd");
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    FREED_BY(buffer_free) buffer first = read_whole(packed_path(folder));
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 3); /* over the one that is there, and not from it */
    FREED_BY(buffer_free) buffer second = read_whole(packed_path(folder));
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.bytes, second.bytes, first.count);
}

TEST(what_does_not_fit_is_passed_over)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("26-v2-silu-b7"); /* the smallest */
    char expected[65], digest[65];
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    encode_folder(folder, DEBERTA_PACKED_MAPPED, expected);
    FREED_BY(buffer_free) buffer content = read_whole(packed_path(folder));
    const size_t header_bytes = 368;
    for (size_t at = 0; at < header_bytes; at++) {
        content.bytes[at] ^= 1;
        write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count);
        OWN_MODEL *model = open_with(folder, DEBERTA_PACKED_STALE);
        if (at % 8 == 0) {
            results_digest(model, DEBERTA_ISA_AUTO, 2, digest);
            assert_string_equal(digest, expected);
        }
        content.bytes[at] ^= 1;
    }
    const size_t lengths[] = {0, 1, header_bytes, 4096, content.count - 1};
    FOR_ROWS(k, lengths) {
        write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, lengths[k]);
        encode_folder(folder, DEBERTA_PACKED_STALE, digest);
        assert_string_equal(digest, expected);
    }
    put_byte(&content, 0);
    write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count);
    encode_folder(folder, DEBERTA_PACKED_STALE, digest);
    write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count - 1);
    encode_folder(folder, DEBERTA_PACKED_MAPPED, digest);
}

static void check_says(const char *folder, const char *expected)
{
    deberta_error error = {0};
    const deberta_status status = deberta_model_check_packed(folder, NULL, &error);
    if (!expected) {
        if (status != DEBERTA_OK) fail_msg("%s", error.message);
        return;
    }
    check_refused(status, &error, DEBERTA_E_FORMAT, expected);
}

/* Blocks of 256 KiB: opening compares the last, checking all of them and their digests. */
TEST(every_byte_is_checked)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("23-v2-head80"); /* the largest */
    char digest[65];
    deberta_error error = {0};
    check_refused(deberta_model_check_packed(folder, NULL, &error), &error, DEBERTA_E_FILE, "deberta.packed");
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 2);
    check_says(folder, NULL);
    FREED_BY(buffer_free) buffer content = read_whole(packed_path(folder));
    const size_t block = 256 << 10, blocks = (content.count - 4096) / (block + 64);
    assert_in_range(blocks, 4, 4000);
    for (size_t k = 0; k <= blocks; k++) {
        const size_t ends = 4096 + (content.count - 4096) / (block + 64) * block;
        const size_t at = k < blocks ? 4096 + k * block + 77 : ends + 1;
        const bool noticed = k == blocks;
        content.bytes[at] ^= 1;
        write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count);
        deberta_model *model = open_with(folder, noticed ? DEBERTA_PACKED_STALE : DEBERTA_PACKED_MAPPED);
        deberta_model_free(&model);
        check_says(folder, "is damaged: 1 of");
        content.bytes[at] ^= 1;
    }
    content.bytes[content.count - 1] ^= 1;
    write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count);
    encode_folder(folder, DEBERTA_PACKED_STALE, digest);
    check_says(folder, "its table of digests");
    write_file(folder, DEBERTA_PACKED_FILE_NAME, content.bytes, content.count - 1);
    check_says(folder, "shorter");
}

static void set_time(const char *folder, const char *name, long nanoseconds)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000, .tv_nsec = nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

TEST(times_count)
{
    static const char *const names[] = {"config.json", "model.safetensors.index.json",
                                        "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"};
    enum { NAMES = sizeof names / sizeof *names };
    FREED_BY(remove_folder) char *folder = copy_of_model("formats/f06-sharded-safetensors");
    char digest[65];
    for (size_t k = 0; k < NAMES; k++) set_time(folder, names[k], 0);
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    for (size_t k = 0; k < NAMES; k++) {
        encode_folder(folder, DEBERTA_PACKED_MAPPED, digest);
        set_time(folder, names[k], 1);
        encode_folder(folder, DEBERTA_PACKED_STALE, digest);
        set_time(folder, names[k], 0);
    }
}

/* One bit of each weight file's last value. */
TEST(new_weights_are_seen)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("01-v1-both-n33");
    char path[512], before[65], after[65], anew[65];
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    encode_folder(folder, DEBERTA_PACKED_MAPPED, before);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FREED_BY(buffer_free) buffer weights = read_whole(path);
    uint64_t header_bytes = 0;
    memcpy(&header_bytes, weights.bytes, sizeof header_bytes);
    for (size_t at = 8 + header_bytes + 3; at < weights.count; at += 4) weights.bytes[at] ^= 0x80; /* all signs */
    write_file(folder, "model.safetensors", weights.bytes, weights.count);
    encode_folder(folder, DEBERTA_PACKED_STALE, after);
    assert_string_not_equal(after, before);
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    encode_folder(folder, DEBERTA_PACKED_MAPPED, anew);
    assert_string_equal(anew, after);
}

/* Weights that were trained on, under the old size and time; then one value, which only reading all of them shows. */
TEST(new_weights_under_the_old_time_are_seen)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("01-v1-both-n33");
    char path[512], digest[65];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FREED_BY(buffer_free) buffer weights = read_whole(path);
    uint64_t header_bytes = 0;
    memcpy(&header_bytes, weights.bytes, sizeof header_bytes);
    set_time(folder, "model.safetensors", 0);
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    check_says(folder, NULL);
    weights.bytes[(8 + header_bytes + weights.count) / 2] ^= 0x01;
    write_file(folder, "model.safetensors", weights.bytes, weights.count);
    set_time(folder, "model.safetensors", 0);
    encode_folder(folder, DEBERTA_PACKED_MAPPED, digest);
    check_says(folder, "was made of other weights");
    for (size_t at = 8 + header_bytes; at < weights.count; at += 4) weights.bytes[at] ^= 0x01;
    write_file(folder, "model.safetensors", weights.bytes, weights.count);
    set_time(folder, "model.safetensors", 0);
    encode_folder(folder, DEBERTA_PACKED_STALE, digest);
    check_says(folder, "was made of other files");
}

/* They are those of a whole model without faults; as many layers as it has are all of it. */
TEST(other_models_of_the_folder_are_made)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("01-v1-both-n33");
    pack_folder(folder, DEBERTA_PRECISION_FLOAT32, 1);
    OWN_MODEL *whole = open_with(folder, DEBERTA_PACKED_MAPPED), *mutated = NULL, *limited = NULL;
    const struct {
        deberta_model_options options;
        deberta_packed packed;
    } cases[] = {{{.layers = 1}, DEBERTA_PACKED_NONE},
                 {{.layers = deberta_model_describe(whole)->layers}, DEBERTA_PACKED_MAPPED},
                 {{.describe_only = 1}, DEBERTA_PACKED_MAPPED}};
    FOR_ROWS(i, cases) {
        OWN_MODEL *model = open_model_with(folder, cases[i].options);
        assert_int_equal(deberta_model_describe(model)->packed, cases[i].packed);
    }
    assert_ok(model_open_mutated(&mutated, folder, NULL, mutation_find("inproj_blocks"), NULL));
    assert_int_equal(deberta_model_describe(mutated)->packed, DEBERTA_PACKED_NONE);

    const deberta_model_options options = {.struct_size = sizeof options,
                                           .memory_limit_bytes = deberta_model_describe(whole)->memory_bytes - 1};
    assert_int_equal(deberta_model_open(&limited, folder, &options, NULL), DEBERTA_E_MEMORY);
}

typedef struct told {
    char first[512];
    size_t calls, ends;
    bool existed;
} told;

static void remember(void *context, const char *path)
{
    told *t = context;
    t->calls++;
    t->ends += !path;
    if (!path) return;
    snprintf(t->first, sizeof t->first, "%s", path);
    t->existed = access(path, F_OK) == 0;
}

/* A program that is interrupted can remove what is half written. */
TEST(temporary_files_are_told)
{
    FREED_BY(remove_folder) char *folder = copy_of_model("33-v3-mlm-emd");
    told t = {.calls = 0};
    const deberta_pack_options options = {.struct_size = sizeof options, .on_temporary = remember, .context = &t};
    assert_ok(deberta_model_pack(folder, &options, NULL));
    assert_int_equal(t.calls, 2);
    assert_int_equal(t.ends, 1);
    assert_true(t.existed);
    assert_int_not_equal(access(t.first, F_OK), 0);
    assert_int_equal(access(packed_path(folder), F_OK), 0);

    const deberta_pack_options limited = {.struct_size = sizeof limited, .memory_limit_bytes = 1000};
    deberta_error error;
    check_refused(deberta_model_pack(folder, &limited, &error), &error, DEBERTA_E_MEMORY, "limit");
}

TEST(refusals)
{
    deberta_error error;
    check_refused(deberta_model_pack("synthetic:v3-small", NULL, &error), &error, DEBERTA_E_ARGUMENT, "made-up model");
    check_refused(deberta_model_pack(NULL, NULL, &error), &error, DEBERTA_E_ARGUMENT, "path");
    check_refused(deberta_model_pack("/nonexistent", NULL, &error), &error, DEBERTA_E_FILE, "/nonexistent");
    FREED_BY(remove_folder) char *folder = copy_of_model("33-v3-mlm-emd");
    char digest[65];
    assert_int_equal(mkdir(packed_path(folder), 0700), 0);
    check_refused(deberta_model_pack(folder, NULL, &error), &error, DEBERTA_E_SYSTEM, "not a regular file");
    encode_folder(folder, DEBERTA_PACKED_STALE, digest);
}

/* Files of an older layout must be passed over. If this fails, opening makes something else than it did, or puts it
 * elsewhere: count PACKED_FILE_LAYOUT up, and write the new digest here. */
TEST(layout_is_the_one_with_this_number)
{
    assert_int_equal(PACKED_FILE_LAYOUT, 6);
#ifdef WITH_ASAN
    skip(); /* pieces are farther apart */
#endif
    sha256 hash;
    char digest[65];
    sha256_begin(&hash, cpu_features());
    for (size_t c = 0; c < LAYOUT_CASES; c++) {
        FREED_BY(remove_folder) char *folder = copy_of_model(cases[c]);
        OWN_MODEL *model = open_with(folder, DEBERTA_PACKED_NONE);
        sha256_add(&hash, arena_contents(&model->arena), model->memory_bytes);
    }
    sha256_finish(&hash, digest);
    assert_string_equal(digest, "e87fcdb41df7176f9eb7b846f4a9f5f869e940c2055d7aa36a8da95e39b4d697");
}
