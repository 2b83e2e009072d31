/* A packed file of low precision in place of weights: the same bits as the weights, and no bit of it that is believed.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"
#include "tests/unit/model_helpers.h"

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/encode/session.h"
#include "core/load/packed_file.h"

/* Both parameterisations, tables of positions and types, talking heads, a convolution, an embedding projection, padded
 * heads, every task, a sharded file, and one of halves. */
static const char *const cases[] = {"01-v1-both-n33",
                                    "05-v1-posbias-types-b3",
                                    "08-v1-talking-head",
                                    "10-v1-mlm-emd",
                                    "14-v2-none-n7",
                                    "11-v2-b4-n33-noshare",
                                    "20-v2-conv-gelu-b3",
                                    "22-v2-embedproj-types",
                                    "23-v2-head80",
                                    "29-v3-seqcls",
                                    "30-v3-token",
                                    "31-v3-qa",
                                    "32-v3-mlm-legacy",
                                    "33-v3-mlm-emd",
                                    "36-v3-rtd",
                                    "formats/f01-zip-f32-v3",
                                    "formats/f05-safetensors-bf16-v2",
                                    "formats/f06-sharded-safetensors"};
enum { CASES = sizeof cases / sizeof *cases, HEADER_BYTES = 368, BLOCK = 256 << 10, DIGEST = 64 };

static const deberta_precision precisions[] = {DEBERTA_PRECISION_INT16, DEBERTA_PRECISION_INT8};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static void remove_weights(const char *folder)
{
    char command[600];
    snprintf(command, sizeof command, "rm '%s'/*model*", folder);
    assert_int_equal(system(command), 0);
}

static deberta_status open_as(const char *folder, deberta_precision precision, deberta_model **model,
                              deberta_error *error)
{
    const deberta_model_options options = {.struct_size = sizeof options, .precision = precision};
    return deberta_model_open(model, folder, &options, error);
}

static void encode_folder(const char *folder, deberta_precision precision, deberta_packed expected, deberta_isa isa,
                          size_t threads, char digest[65])
{
    OWN_MODEL *model = open_model_with(folder, (deberta_model_options){.precision = precision});
    assert_int_equal(deberta_model_describe(model)->packed, expected);
    results_digest(model, isa, threads, digest);
}

TEST(the_file_alone_gives_the_bits_of_the_weights)
{
    static const deberta_isa tiers[] = {DEBERTA_ISA_SCALAR, DEBERTA_ISA_AUTO};
    for (size_t c = 0; c < CASES; c++) {
        for (size_t p = 0; p < PRECISIONS; p++) {
            if (getenv("DEBERTA_TEST_QUICK") && (c + p) % 2) continue;
            FREED_BY(remove_folder) char *folder = copy_of_model(cases[c]);
            char made[65], digest[65], names[2][65];
            encode_folder(folder, precisions[p], DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, made);
            pack_folder(folder, precisions[p], 2);
            for (int alone = 0; alone < 2; alone++) {
                FOR_ROWS(t, tiers) {
                    encode_folder(folder, precisions[p], DEBERTA_PACKED_MAPPED, tiers[t], t + 1, digest);
                    assert_string_equal(digest, made);
                }
                OWN_MODEL *model = open_model_with(folder, (deberta_model_options){.precision = precisions[p]});
                assert_ok(deberta_model_digest(model, names[alone], NULL));
                if (!alone) remove_weights(folder);
            }
            assert_string_equal(names[1], names[0]);
        }
    }
}

/* Adds a decoder of [rows][columns] to a file of safetensors, with values that no other matrix has. */
static void add_decoder(const char *folder, size_t rows, size_t columns)
{
    char path[512], *header;
    FREED_BY(buffer_free) buffer out = {0};
    uint64_t header_bytes;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FREED_BY(buffer_free) buffer content = read_whole(path);
    memcpy(&header_bytes, content.bytes, 8);
    const size_t data_bytes = content.count - 8 - header_bytes, more = rows * columns * sizeof(float);
    assert_true(asprintf(&header,
                         "{\"cls.predictions.decoder.weight\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],"
                         "\"data_offsets\":[%zu,%zu]},%.*s",
                         rows, columns, data_bytes, data_bytes + more, (int)header_bytes - 1, content.bytes + 9) > 0);
    FREED_BY(free_memory) uint8_t *data = malloc(data_bytes + more);
    memcpy(data, content.bytes + 8 + header_bytes, data_bytes);
    for (size_t i = 0; i < rows * columns; i++)
        memcpy(data + data_bytes + i * sizeof(float), &(float){(float)(i * 37 % 101) / 64 - 0.75f}, sizeof(float));
    put_safetensors(&out, header, data, data_bytes + more);
    write_file(folder, "model.safetensors", out.bytes, out.count);
    free(header);
}

/* A decoder that is not the words' table has a table of its own in the packed file. */
TEST(a_decoder_of_its_own_is_packed)
{
    enum { VOCABULARY = 61, WIDTH = 20 };
    FREED_BY(remove_folder) char *folder = copy_of_model("32-v3-mlm-legacy");
    char tied[65], made[65], packed[65];
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, tied);
    add_decoder(folder, VOCABULARY, WIDTH);
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, made);
    assert_string_not_equal(made, tied);
    pack_folder(folder, DEBERTA_PRECISION_INT8, 2);
    remove_weights(folder);
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_MAPPED, DEBERTA_ISA_AUTO, 2, packed);
    assert_string_equal(packed, made);
}

/* ------------------------------------------------------------------------------------------------------------ damage */

static void write_packed(const char *folder, const buffer *content, size_t count)
{
    write_file(folder, "deberta.int8.packed", content->bytes, count);
}

/* Of a packed file of so many bytes. */
static void refuses(const char *folder, const buffer *content, size_t count, const char *says)
{
    deberta_model *model = NULL;
    deberta_error error = {0};
    write_packed(folder, content, count);
    check_refused(open_as(folder, DEBERTA_PRECISION_INT8, &model, &error), &error, DEBERTA_E_FORMAT, says);
    assert_null(model);
}

static uint64_t number_at(const buffer *content, size_t at)
{
    uint64_t number;
    memcpy(&number, content->bytes + at, sizeof number);
    return number;
}

/* Where the names begin: the third section. */
static size_t names_offset(const buffer *content)
{
    return round_up(round_up(4096 + number_at(content, 24), 64) + number_at(content, 32), 64);
}

static void digest_into(uint8_t *to, const void *bytes, size_t count)
{
    char digest[65];
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, bytes, count);
    sha256_finish(&hash, digest);
    memcpy(to, digest, DIGEST);
}

/* Digests of everything, as one would compute who wants the file to be believed. */
static void sign(buffer *content)
{
    size_t at = 4096, digests = names_offset(content) + number_at(content, 40), first = digests;
    for (int section = 0; section < 3; section++) {
        const size_t bytes = number_at(content, 24 + 8 * (size_t)section);
        at = round_up(at, 64);
        for (size_t done = 0; done < bytes; done += BLOCK, digests += DIGEST)
            digest_into(content->bytes + digests, content->bytes + at + done, minimum(BLOCK, bytes - done));
        at += bytes;
    }
    digest_into(content->bytes + 240, content->bytes + first, digests - first);
    digest_into(content->bytes + HEADER_BYTES - DIGEST, content->bytes, HEADER_BYTES - DIGEST);
}

static char *alone(buffer *content)
{
    char *folder = copy_of_model("33-v3-mlm-emd"), path[512];
    pack_folder(folder, DEBERTA_PRECISION_INT8, 2);
    remove_weights(folder);
    snprintf(path, sizeof path, "%s/deberta.int8.packed", folder);
    *content = read_whole(path);
    return folder;
}

TEST(damage_is_refused)
{
    FREED_BY(buffer_free) buffer content;
    FREED_BY(remove_folder) char *folder = alone(&content);
    for (size_t at = 0; at < HEADER_BYTES; at++) {
        content.bytes[at] ^= 1;
        refuses(folder, &content, content.count, "deberta.int8.packed");
        content.bytes[at] ^= 1;
    }
    const size_t lengths[] = {1, HEADER_BYTES - 1, HEADER_BYTES, 4096, content.count / 2, content.count - 1};
    FOR_ROWS(k, lengths) {
        refuses(folder, &content, lengths[k], "deberta.int8.packed");
    }
    const size_t names = names_offset(&content);
    for (size_t at = names; at < content.count; at += 7) {
        content.bytes[at] ^= 4;
        refuses(folder, &content, content.count, "is damaged: ");
        content.bytes[at] ^= 4;
    }
    put_byte(&content, 0);
    refuses(folder, &content, content.count, "another size");
}

/* Names, shapes and sizes of a file that is signed anew: whatever is opened or refused, nothing outside is touched. */
TEST(what_is_signed_is_not_believed)
{
    const bool sampled = getenv("DEBERTA_TEST_QUICK") != NULL;
    const int rounds = sampled ? 100 : 400;
    FREED_BY(buffer_free) buffer content;
    FREED_BY(remove_folder) char *folder = alone(&content);
    FREED_BY(free_memory) uint8_t *sound = exact_copy(content.bytes, content.count);
    const size_t names = names_offset(&content), bytes = number_at(&content, 40);
    size_t refused = 0;
    uint64_t draw = 20261124;
    for (int round = 0; round < rounds; round++) {
        const size_t at = round % 4 ? names + random_below(&draw, bytes) : 24 + random_below(&draw, 24);
        deberta_model *model = NULL;
        deberta_error error = {0};
        content.bytes[at] = (uint8_t)random_below(&draw, 256);
        if (round % 4)
            sign(&content);
        else
            digest_into(content.bytes + HEADER_BYTES - DIGEST, content.bytes, HEADER_BYTES - DIGEST);
        write_packed(folder, &content, content.count);
        const deberta_status status = open_as(folder, DEBERTA_PRECISION_INT8, &model, &error);
        /* A name that became another one is a tensor that DeBERTa has not. */
        if (status != DEBERTA_OK && status != DEBERTA_E_FORMAT && status != DEBERTA_E_UNSUPPORTED)
            fail_msg("seed 20261124, round %d: status %d: %s", round, status, error.message);
        refused += status != DEBERTA_OK;
        deberta_model_free(&model);
        memcpy(content.bytes, sound, content.count);
    }
    assert_in_range(refused, rounds / 2, sampled ? rounds : rounds - 1);
}

TEST(every_block_is_checked)
{
    FREED_BY(buffer_free) buffer content;
    FREED_BY(remove_folder) char *folder = alone(&content);
    deberta_error error = {0};
    const deberta_pack_options options = {.struct_size = sizeof options, .precision = DEBERTA_PRECISION_INT8};
    assert_ok(deberta_model_check_packed(folder, &options, &error));
    const size_t word = round_up(4096 + number_at(&content, 24), 64) + number_at(&content, 32) / 2;
    content.bytes[word] ^= 1;
    write_packed(folder, &content, content.count);
    check_refused(deberta_model_check_packed(folder, &options, &error), &error, DEBERTA_E_FORMAT, "is damaged: 1 of ");
    check_refused(deberta_model_pack(folder, &options, &error), &error, DEBERTA_E_UNSUPPORTED, "no weights to pack");
}

/* ------------------------------------------------------------------------------------------------------------- others */

TEST(it_is_of_one_config_and_one_precision)
{
    FREED_BY(buffer_free) buffer content;
    FREED_BY(remove_folder) char *folder = alone(&content);
    char path[512];
    deberta_model *model = NULL;
    deberta_error error = {0};
    check_refused(open_as(folder, DEBERTA_PRECISION_FLOAT32, &model, &error), &error, DEBERTA_E_FORMAT,
                  "no weights but packed ones of int8");
    check_refused(open_as(folder, DEBERTA_PRECISION_INT16, &model, &error), &error, DEBERTA_E_FORMAT,
                  "no weights but packed ones of int8");
    const deberta_model_options fewer = {.struct_size = sizeof fewer, .precision = DEBERTA_PRECISION_INT8, .layers = 1};
    check_refused(deberta_model_open(&model, folder, &fewer, &error), &error, DEBERTA_E_UNSUPPORTED,
                  "packed weights alone");
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *config = fopen(path, "a");
    assert_non_null(config);
    fputs("\n", config);
    fclose(config);
    refuses(folder, &content, content.count, "another config.json");
}
