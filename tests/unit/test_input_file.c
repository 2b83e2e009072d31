/* Prepared inputs in safetensors and JSON.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/io/input_file.h"

TEST(test_json)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"input_ids\":[[1,2],[3,-4]]}", NULL},
        {"{\"input_ids\":[[1,2],[3,-4]],\"attention_mask\":[[1,0],[1,1]],\"token_type_ids\":[[0,0],[0,9]],"
         "\"position_ids\":null,\"length\":\"x\",\"word_ids\":[1,[2]]}",
         NULL},
        {"{\"attention_mask\":[[1]]}", "input_ids is missing"},
        {"{\"input_ids\":null}", "input_ids is missing"},
        {"{\"input_ids\":[]}", "not a list of lists"},
        {"{\"input_ids\":[1,2]}", "not a list of lists"},
        {"{\"input_ids\":\"1 2\"}", "not a list of lists"},
        {"{\"input_ids\":[[]]}", "input_ids has shape [1, 0]"},
        {"{\"input_ids\":[[1,2],[3]]}", "row 1 of input_ids has 1 values, but row 0 has 2"},
        {"{\"input_ids\":[[1,2],[3,4,5]]}", "row 1 of input_ids has 3 values"},
        {"{\"input_ids\":[[1,2],3]}", "row 1 of input_ids is 3"},
        {"{\"input_ids\":[[1,2],[3,4.5]]}", "row 1, column 1 of input_ids is 4.5"},
        {"{\"input_ids\":[[1,[2]]]}", "row 0, column 1 of input_ids is an array"},
        {"{\"input_ids\":[[1,true]]}", "row 0, column 1 of input_ids is true"},
        {"{\"input_ids\":[[1,99999999999999999999]]}", "line 1"},
        {"{\"input_ids\":[[[1]]]}", "row 0, column 0 of input_ids is an array"},
        {"{\"input_ids\":[[[[[[[[[1]]]]]]]]]}", "nested deeper"},
        {"{\"input_ids\":[[1,2]],\"token_type_ids\":[[0]]}",
         "token_type_ids has shape [1, 1], but input_ids has [1, 2]"},
        {"{\"input_ids\":[[1,2]],\"position_ids\":[[0,1],[0,1]]}", "position_ids has shape [2, 2]"},
        {"{\"input_ids\":[[1,2]],\"attention_mask\":[[1,2]]}", "attention_mask is 2 in row 0, column 1"},
        {"{\"input_ids\":[[1,2]],\"attention_mask\":[[-1,0]]}", "attention_mask is -1 in row 0, column 0"},
        {"[[1,2]]", "holds an array"},
        {"{\"input_ids\":[[1]],\"input_ids\":[[1]]}", "'input_ids' occurs twice"},
    };
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/in.json", folder);
    FOR_ROWS(i, cases) {
        input_file input;
        deberta_error error;
        write_text(folder, "in.json", cases[i].text);
        deberta_status status = input_file_read(&input, path, &error);
        if (cases[i].expected) {
            check_refused(status, &error, DEBERTA_E_FORMAT, cases[i].expected);
            assert_null(input.ids);
            continue;
        }
        if (status != DEBERTA_OK) fail_msg("%s", error.message);
        assert_true(input.rows == 2 && input.columns == 2 && !input.positions);
        assert_memory_equal(input.ids, ((int64_t[]){1, 2, 3, -4}), 32);
        if (i == 1) {
            assert_memory_equal(input.mask, ((int64_t[]){1, 0, 1, 1}), 32);
            assert_memory_equal(input.types, ((int64_t[]){0, 0, 0, 9}), 32);
        } else {
            assert_true(!input.mask && !input.types);
        }
        input_file_free(&input);
    }
    remove_folder(&folder);
}

TEST(test_safetensors)
{
    static const int64_t wide[6] = {1, 2, -3, INT64_MAX, 5, 6};
    static const int32_t narrow[6] = {1, 0, 1, 0, 1, -6};
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *expected;
    } cases[] = {
        {"{\"input_ids\":{\"dtype\":\"I64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
         "\"position_ids\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[48,72]}}",
         72, NULL},
        {"{\"x\":{\"dtype\":\"I64\",\"shape\":[2,3],\"data_offsets\":[0,48]}}", 48, "input_ids is missing"},
        {"{\"input_ids\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, "input_ids has dtype F32"},
        {"{\"input_ids\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[0,6]}}", 6, "input_ids has dtype U8"},
        {"{\"input_ids\":{\"dtype\":\"I64\",\"shape\":[6],\"data_offsets\":[0,48]}}", 48, "input_ids has shape [6]"},
        {"{\"input_ids\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[0,0]}}", 0, "input_ids has shape [0, 3]"},
        {"{\"input_ids\":{\"dtype\":\"I64\",\"shape\":[1,3],\"data_offsets\":[0,24]},"
         "\"token_type_ids\":{\"dtype\":\"I64\",\"shape\":[3,1],\"data_offsets\":[24,48]}}",
         48, "token_type_ids has shape [3, 1]"},
        {"{\"input_ids\":{\"dtype\":\"I64\",\"shape\":[1,3],\"data_offsets\":[0,24]},"
         "\"attention_mask\":{\"dtype\":\"I64\",\"shape\":[1,3],\"data_offsets\":[24,48]}}",
         48, "attention_mask is 9223372036854775807 in row 0, column 0"},
    };
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/in.safetensors", folder);
    uint8_t data[72];
    memcpy(data, wide, 48);
    memcpy(data + 48, narrow, 24);
    FOR_ROWS(i, cases) {
        input_file input;
        deberta_error error;
        buffer file = {0};
        put_safetensors(&file, cases[i].header, data, cases[i].data_bytes);
        write_file(folder, "in.safetensors", file.bytes, file.count);
        buffer_free(&file);
        deberta_status status = input_file_read(&input, path, &error);
        if (cases[i].expected) {
            check_refused(status, &error, DEBERTA_E_FORMAT, cases[i].expected);
            continue;
        }
        if (status != DEBERTA_OK) fail_msg("%s", error.message);
        assert_true(input.rows == 2 && input.columns == 3 && !input.mask && !input.types);
        assert_memory_equal(input.ids, wide, sizeof wide);
        for (int e = 0; e < 6; e++) assert_int_equal(input.positions[e], narrow[e]);
        input_file_free(&input);
        input_file_free(&input);
    }
    remove_folder(&folder);
}

TEST(test_paths)
{
    input_file input;
    deberta_error error;
    check_refused(input_file_read(&input, "ids.txt", &error), &error, DEBERTA_E_ARGUMENT, "unknown suffix");
    check_refused(input_file_read(&input, "json", &error), &error, DEBERTA_E_ARGUMENT, "unknown suffix");
    check_refused(input_file_read(&input, "", &error), &error, DEBERTA_E_ARGUMENT, "unknown suffix");
    check_refused(input_file_read(&input, "/no/such.json", &error), &error, DEBERTA_E_FILE,
                  "/no/such.json: cannot be opened");
}
