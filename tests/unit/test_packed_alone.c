/* A packed file of low precision in place of weights: the same bits as the weights, and no bit of it that is believed.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

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
enum { CASES = sizeof cases / sizeof *cases, TOKENS = 7, HEADER_BYTES = 368, BLOCK = 256 << 10, DIGEST = 64 };

static const deberta_precision precisions[] = {DEBERTA_PRECISION_INT16, DEBERTA_PRECISION_INT8};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static void pack(const char *folder, deberta_precision precision)
{
    deberta_error error = {0};
    const deberta_pack_options options = {.struct_size = sizeof options, .threads = 2, .precision = precision};
    if (deberta_model_pack(folder, &options, &error) != DEBERTA_OK) fail_msg("%s", error.message);
}

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

static void add_logits(sha256 *hash, deberta_session *session, const deberta_model *model)
{
    enum { MOST_WIDTH = 4096 };
    static float logits[2 * MOST_WIDTH];
    static const size_t positions[] = {0, 1};
    for (int k = 0; k < DEBERTA_TASK_COUNT; k++) {
        const size_t width = deberta_task_width(model, (deberta_task)k);
        if (width == 0) continue;
        assert_in_range(width, 1, MOST_WIDTH);
        deberta_error error = {0};
        if (deberta_task_logits(session, (deberta_task)k, positions, 2, logits, width, &error) != DEBERTA_OK)
            fail_msg("%s", error.message);
        sha256_add(hash, logits, 2 * width * sizeof *logits);
    }
}

/* SHA-256 of the last hidden states of some tokens and of all heads. */
static void encode(const deberta_model *model, deberta_isa isa, size_t threads, char digest[65])
{
    const int32_t ids[TOKENS] = {1, 3, 5, 7, 9, 11, 2};
    const size_t starts[] = {0, 3, TOKENS};
    const deberta_model_info *info = deberta_model_describe(model);
    const deberta_session_options options = {
        .struct_size = sizeof options,
        .max_tokens = TOKENS,
        .threads = threads,
        .isa = isa,
        .features = info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0};
    const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 2};
    deberta_session *session = NULL;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    assert_int_equal(deberta_session_create(&session, model, &options, NULL), DEBERTA_OK);
    assert_int_equal(deberta_encode(session, &batch, &outputs, NULL), DEBERTA_OK);
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    for (size_t t = 0; t < TOKENS; t++)
        sha256_add(&hash, outputs.hidden + t * outputs.hidden_stride, info->hidden_size * sizeof(float));
    add_logits(&hash, session, model);
    sha256_finish(&hash, digest);
    deberta_session_free(&session);
}

static void encode_folder(const char *folder, deberta_precision precision, deberta_packed expected, deberta_isa isa,
                          size_t threads, char digest[65])
{
    deberta_error error = {0};
    deberta_model *model = NULL;
    if (open_as(folder, precision, &model, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    assert_int_equal(deberta_model_describe(model)->packed, expected);
    encode(model, isa, threads, digest);
    deberta_model_free(&model);
}

TEST(the_file_alone_gives_the_bits_of_the_weights)
{
    static const deberta_isa tiers[] = {DEBERTA_ISA_SCALAR, DEBERTA_ISA_AUTO};
    for (size_t c = 0; c < CASES; c++) {
        for (size_t p = 0; p < PRECISIONS; p++) {
            char *folder = copy_of_model(cases[c]), made[65], digest[65], names[2][65];
            deberta_model *model = NULL;
            encode_folder(folder, precisions[p], DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, made);
            pack(folder, precisions[p]);
            for (int alone = 0; alone < 2; alone++) {
                for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++) {
                    encode_folder(folder, precisions[p], DEBERTA_PACKED_MAPPED, tiers[t], t + 1, digest);
                    assert_string_equal(digest, made);
                }
                assert_int_equal(open_as(folder, precisions[p], &model, NULL), DEBERTA_OK);
                assert_int_equal(deberta_model_digest(model, names[alone], NULL), DEBERTA_OK);
                deberta_model_free(&model);
                if (!alone) remove_weights(folder);
            }
            assert_string_equal(names[1], names[0]);
            remove_folder(folder);
        }
    }
}

/* Adds a decoder of [rows][columns] to a file of safetensors, with values that no other matrix has. */
static void add_decoder(const char *folder, size_t rows, size_t columns)
{
    char path[512], *header;
    uint8_t *content = calloc(1, 1 << 20);
    buffer out = {0};
    uint64_t header_bytes;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "rb");
    assert_true(content && file);
    const size_t count = fread(content, 1, 1 << 20, file);
    fclose(file);
    memcpy(&header_bytes, content, 8);
    const size_t data_bytes = count - 8 - header_bytes, more = rows * columns * sizeof(float);
    assert_true(asprintf(&header,
                         "{\"cls.predictions.decoder.weight\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],"
                         "\"data_offsets\":[%zu,%zu]},%.*s",
                         rows, columns, data_bytes, data_bytes + more, (int)header_bytes - 1, content + 9) > 0);
    uint8_t *data = malloc(data_bytes + more);
    memcpy(data, content + 8 + header_bytes, data_bytes);
    for (size_t i = 0; i < rows * columns; i++)
        memcpy(data + data_bytes + i * sizeof(float), &(float){(float)(i * 37 % 101) / 64 - 0.75f}, sizeof(float));
    put_safetensors(&out, header, data, data_bytes + more);
    write_file(folder, "model.safetensors", out.bytes, out.count);
    buffer_free(&out);
    free(header);
    free(data);
    free(content);
}

/* A decoder that is not the words' table has a table of its own in the packed file. */
TEST(a_decoder_of_its_own_is_packed)
{
    enum { VOCABULARY = 61, WIDTH = 20 };
    char *folder = copy_of_model("32-v3-mlm-legacy"), tied[65], made[65], packed[65];
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, tied);
    add_decoder(folder, VOCABULARY, WIDTH);
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_NONE, DEBERTA_ISA_AUTO, 1, made);
    assert_string_not_equal(made, tied);
    pack(folder, DEBERTA_PRECISION_INT8);
    remove_weights(folder);
    encode_folder(folder, DEBERTA_PRECISION_INT8, DEBERTA_PACKED_MAPPED, DEBERTA_ISA_AUTO, 2, packed);
    assert_string_equal(packed, made);
    remove_folder(folder);
}

/* ------------------------------------------------------------------------------------------------------------ damage */

static buffer read_packed(const char *folder)
{
    char path[512];
    uint8_t block[4096];
    size_t count;
    buffer content = {0};
    snprintf(path, sizeof path, "%s/deberta.int8.packed", folder);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((count = fread(block, 1, sizeof block, file)) > 0) put(&content, block, count);
    fclose(file);
    return content;
}

static void write_packed(const char *folder, const buffer *content, size_t count)
{
    write_file(folder, "deberta.int8.packed", content->bytes, count);
}

static void refuses(const char *folder, const char *says)
{
    deberta_model *model = NULL;
    deberta_error error = {0};
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
    char *folder = copy_of_model("33-v3-mlm-emd");
    pack(folder, DEBERTA_PRECISION_INT8);
    remove_weights(folder);
    *content = read_packed(folder);
    return folder;
}

TEST(damage_is_refused)
{
    buffer content;
    char *folder = alone(&content);
    for (size_t at = 0; at < HEADER_BYTES; at++) {
        content.bytes[at] ^= 1;
        write_packed(folder, &content, content.count);
        refuses(folder, "deberta.int8.packed");
        content.bytes[at] ^= 1;
    }
    const size_t lengths[] = {1, HEADER_BYTES - 1, HEADER_BYTES, 4096, content.count / 2, content.count - 1};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        write_packed(folder, &content, lengths[k]);
        refuses(folder, "deberta.int8.packed");
    }
    const size_t names = names_offset(&content);
    for (size_t at = names; at < content.count; at += 7) {
        content.bytes[at] ^= 4;
        write_packed(folder, &content, content.count);
        refuses(folder, "is damaged: ");
        content.bytes[at] ^= 4;
    }
    put_byte(&content, 0);
    write_packed(folder, &content, content.count);
    refuses(folder, "another size");
    buffer_free(&content);
    remove_folder(folder);
}

/* Names, shapes and sizes of a file that is signed anew: whatever is opened or refused, nothing outside is touched. */
TEST(what_is_signed_is_not_believed)
{
    enum { ROUNDS = 400 };
    buffer content;
    char *folder = alone(&content);
    const size_t names = names_offset(&content), bytes = number_at(&content, 40);
    size_t refused = 0;
    uint64_t draw = 20261124;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t at = round % 4 ? names + random_below(&draw, bytes) : 24 + random_below(&draw, 24);
        const uint8_t before = content.bytes[at];
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
        content.bytes[at] = before;
        sign(&content);
    }
    assert_in_range(refused, ROUNDS / 2, ROUNDS - 1);
    buffer_free(&content);
    remove_folder(folder);
}

TEST(every_block_is_checked)
{
    buffer content;
    char *folder = alone(&content);
    deberta_error error = {0};
    const deberta_pack_options options = {.struct_size = sizeof options, .precision = DEBERTA_PRECISION_INT8};
    assert_int_equal(deberta_model_check_packed(folder, &options, &error), DEBERTA_OK);
    const size_t word = round_up(4096 + number_at(&content, 24), 64) + number_at(&content, 32) / 2;
    content.bytes[word] ^= 1;
    write_packed(folder, &content, content.count);
    check_refused(deberta_model_check_packed(folder, &options, &error), &error, DEBERTA_E_FORMAT, "is damaged: 1 of ");
    check_refused(deberta_model_pack(folder, &options, &error), &error, DEBERTA_E_UNSUPPORTED, "no weights to pack");
    buffer_free(&content);
    remove_folder(folder);
}

/* ------------------------------------------------------------------------------------------------------------- others */

TEST(it_is_of_one_config_and_one_precision)
{
    buffer content;
    char *folder = alone(&content), path[512];
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
    refuses(folder, "another config.json");
    buffer_free(&content);
    remove_folder(folder);
}
