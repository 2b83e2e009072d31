/* safetensors headers: good ones, one of every kind of bad one, and every truncation and bit flip of a small file.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include <math.h>

#include "core/io/safetensors.h"

static const char good_header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                  "\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[8,14]},"
                                  "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                                  "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[14,14]},"
                                  "\"i\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[14,18]}}   ";
static const uint8_t good_data[18] = {0,    0,    0x80, 0x3f, 0,    0,    0x20, 0xc0, 0x00,
                                      0x3c, 0x01, 0x00, 0x00, 0xfc, 0xfe, 0xff, 0xff, 0xff};

static void good_file(buffer *file) { put_safetensors(file, good_header, good_data, sizeof good_data); }

/* Lists a file that ends exactly where its memory ends. */
static deberta_status list(tensor_list *tensors, const uint8_t *bytes, size_t count, deberta_error *error)
{
    FREED_BY(free_memory) uint8_t *copy = exact_copy(bytes, count);
    deberta_status status = safetensors_list(tensors, copy, count, "file", error);
    float values[16];
    int64_t integers[16];
    for (size_t i = 0; status == DEBERTA_OK && i < tensors->count; i++) {
        const stored_tensor *stored = &tensors->items[i];
        size_t n = stored->tensor.elements < 16 ? stored->tensor.elements : 16;
        if (dtype_is_floating(stored->tensor.dtype))
            tensor_convert_f32(values, stored, copy, 0, n);
        else if (dtype_bytes(stored->tensor.dtype))
            tensor_convert_i64(integers, stored, copy, 0, n);
    }
    return status;
}

TEST(test_good)
{
    FREED_BY(buffer_free) buffer file = {0};
    good_file(&file);
    FREED_BY(tensor_list_free) tensor_list tensors;
    deberta_error error;
    assert_ok(safetensors_list(&tensors, file.bytes, file.count, "file", &error));
    assert_int_equal(tensors.count, 4);
    const char *names[] = {"a", "b", "none", "i"}; /* in the order of their places */
    for (size_t i = 0; i < 4; i++) assert_string_equal(tensors.items[i].tensor.name, names[i]);
    float values[3];
    int64_t integer;
    tensor_convert_f32(values, &tensors.items[0], file.bytes, 0, 2);
    assert_true(values[0] == 1 && values[1] == -2.5f);
    tensor_convert_f32(values, &tensors.items[1], file.bytes, 0, 3);
    assert_true(values[0] == 1 && values[1] == 0x1p-24f && values[2] == -INFINITY);
    tensor_convert_i64(&integer, &tensors.items[3], file.bytes, 0, 1);
    assert_int_equal(integer, -2);
}

/* Tensors "a" (and "b") of the given entries in a file with `data` bytes of data. */
static void check_entry(const char *entries, size_t data, const char *expected)
{
    char header[1024];
    uint8_t zeros[64] = {0};
    snprintf(header, sizeof header, "{%s}", entries);
    FREED_BY(buffer_free) buffer file = {0};
    put_safetensors(&file, header, zeros, data);
    tensor_list tensors;
    deberta_error error;
    deberta_status status = list(&tensors, file.bytes, file.count, &error);
    if (expected)
        check_refused(status, &error, DEBERTA_E_FORMAT, expected);
    else
        assert_ok(status);
    if (status == DEBERTA_OK) tensor_list_free(&tensors);
}

TEST(test_bad_entries)
{
    static const struct {
        const char *entries;
        size_t data;
        const char *expected;
    } cases[] = {
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, NULL},
        {"", 0, NULL},
        {"", 1, "1 bytes after the last tensor"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 9, "1 bytes after the last tensor"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 7, "is cut: 1 byte is missing at its end"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}", 8, "data_offsets are [8, 16]"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}", 8, "data_offsets are [8, 0]"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,-8]}", 8, "two integers from 0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.0]}", 8, "two integers from 0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}", 8, "two integers from 0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,18446744073709551616]}", 8, "line 1"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2]}", 8, "two integers from 0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}", 8,
         "span 8 bytes, but shape [3] in F32 takes 12"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}", 8, "dimension 0 of the shape is -2"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}", 8, "dimension 0 of the shape is 2.0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}", 8, "the text '2'"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}", 8, "shape is missing"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}", 8, "9 dimensions"},
        /* 2^62 elements: their bytes wrap around to 0 */
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}", 0, "overflows"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}", 0, "overflows"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}", 0, "overflows"},
        {"\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "dtype is the text 'F33'"},
        {"\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}", 8, "dtype is missing"},
        {"\"a\":[1]", 0, "is an array, expected an object"},
        {"\"a\":null", 0, "is null, expected an object"},
        {"\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "is empty"},
        {"\"a\\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "'a\\x0a' has control characters"},
        {"\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "line 1"},
        {"\"a\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "line 1"},
        {"\"__metadata__\":{\"a\":1}", 0, "__metadata__ is not a map"},
        {"\"__metadata__\":[]", 0, "__metadata__ is not a map"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
         "offsets\":[4,8]}",
         8, "'a' occurs twice"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
         "offsets\":[0,4]}",
         8, "tensor 'b': it begins at byte 0"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
         "offsets\":[8,12]}",
         12, "tensor 'b': it begins at byte 8"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
         "offsets\":[2,6]}",
         6, "tensor 'b': it begins at byte 2"},
        /* what can be listed, but not read as weights */
        {"\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[0,8]}", 8, NULL},
        {"\"a\":{\"dtype\":\"F4\",\"shape\":[16],\"data_offsets\":[0,8]}", 8, NULL},
        {"\"a\":{\"dtype\":\"U64\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "takes 16"},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":{\"x\":[[[1]]]}}", 8, NULL},
        {"\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":[[[[[[[[1]]]]]]]]}", 8,
         "nested deeper"},
    };
    FOR_ROWS(i, cases) check_entry(cases[i].entries, cases[i].data, cases[i].expected);
}

TEST(test_bad_lengths)
{
    static const uint64_t lengths[] = {
        0, 1, 7, 1000, 100000001, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
    FREED_BY(buffer_free) buffer file = {0};
    good_file(&file);
    FOR_ROWS(i, lengths) {
        tensor_list tensors;
        deberta_error error;
        for (int b = 0; b < 8; b++) file.bytes[b] = (uint8_t)(lengths[i] >> 8 * b);
        check_refused(list(&tensors, file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT, "file: ");
    }
}

TEST(test_other_contents)
{
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"PK\x03\x04 and more of it", "looks like a zip archive"},
        {"<!DOCTYPE html><html>", "looks like an HTML page"},
        {"\x89HDF\r\n\x1a\n and more", "looks like an HDF5 file"},
        {"\x80\x02}q.", "looks like a Python pickle"},
        {"abc", "3 bytes are too few"},
        {"abcdefgh", "does not fit"},
    };
    FOR_ROWS(i, cases) {
        tensor_list tensors;
        deberta_error error;
        deberta_status status = list(&tensors, (const uint8_t *)cases[i].bytes, strlen(cases[i].bytes), &error);
        check_refused(status, &error, DEBERTA_E_FORMAT, cases[i].expected);
    }
}

/* No truncation of a file is a file: the tensors must cover all of it. */
TEST(test_truncations)
{
    FREED_BY(buffer_free) buffer file = {0};
    good_file(&file);
    for (size_t count = 0; count < file.count; count++) {
        tensor_list tensors;
        deberta_error error;
        check_refused(list(&tensors, file.bytes, count, &error), &error, DEBERTA_E_FORMAT, "file: ");
        char expected[48];
        const size_t header_end = file.count - sizeof good_data,
                     missing = (count > 8 && count < header_end ? header_end : file.count) - count;
        snprintf(expected, sizeof expected, "%zu byte%s missing at its end", missing, missing == 1 ? " is" : "s are");
        if (count > 8) check_refused(DEBERTA_E_FORMAT, &error, DEBERTA_E_FORMAT, expected);
    }
}

/* A flipped bit may go unnoticed, but never makes the reader leave the file. */
TEST(test_bit_flips)
{
    FREED_BY(buffer_free) buffer file = {0};
    good_file(&file);
    size_t accepted = 0;
    for (size_t bit = 0; bit < 8 * (file.count - sizeof good_data); bit++) {
        tensor_list tensors;
        deberta_error error;
        file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        deberta_status status = list(&tensors, file.bytes, file.count, &error);
        if (status == DEBERTA_OK) {
            accepted++;
            tensor_list_free(&tensors);
        } else {
            assert_int_equal(status, DEBERTA_E_FORMAT);
        }
        file.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(accepted < file.count); /* names and blanks only */
}

/* One token of megabytes: jansson's buffer for it must not be put to the test. */
TEST(test_long_tokens)
{
    static const char *const begins[] = {"{\"a\":\"", "{\"a\":[1", "{\"", "{\"a\":\"\\\""};
    FOR_ROWS(b, begins) {
        FREED_BY(buffer_free) buffer file = {0};
        put_number(&file, strlen(begins[b]) + (2u << 20), 8);
        put_string(&file, begins[b]);
        for (size_t i = 0; i < 2u << 20; i++) put_byte(&file, '1');
        tensor_list tensors;
        deberta_error error;
        deberta_status status = safetensors_list(&tensors, file.bytes, file.count, "file", &error);
        check_refused(status, &error, DEBERTA_E_FORMAT, "a text or number of more than 1048576 bytes");
    }
}

/* Headers whose JSON tree would take a hundred times their own size. */
TEST(test_swollen_headers)
{
    static const char *const units[] = {"{},", "[],", "0,", "\"\",", "[", "{\"\":"};
    FOR_ROWS(u, units) {
        FREED_BY(buffer_free) buffer header = {0}, file = {0};
        put_string(&header, "{\"a\":[");
        for (size_t i = 0; i < 8u << 20; i += strlen(units[u])) put_string(&header, units[u]);
        put_string(&header, "0]}");
        put_number(&file, header.count, 8);
        put_buffer(&file, &header);
        tensor_list tensors;
        deberta_error error;
        deberta_status status = safetensors_list(&tensors, file.bytes, file.count, "file", &error);
        check_refused(status, &error, DEBERTA_E_FORMAT, u < 4 ? "more than" : "nested deeper");
    }
}
