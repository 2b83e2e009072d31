/* Files of torch.save, both formats: strides, aliases, byte order, what zips can hide, truncations and bit flips.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/io/torch_file.h"
#include "core/io/zip_reader.h"

static const float first_values[6] = {1, 2, 3, 4, 5, 6}, second_values[2] = {-1, 0.5f};

/* {"w": 2 x 3 of storage 0, "t": its transpose, "b": storage 1} */
static void put_state(buffer *code)
{
    static const int64_t shape[2] = {2, 3}, strides[2] = {3, 1}, turned_shape[2] = {3, 2}, turned[2] = {1, 3}, two = 2,
                         one = 1;
    put(code, "\x80\x02}(", 4);
    put_text(code, "w");
    put_tensor(code, "FloatStorage", "0", 6, 0, shape, strides, 2);
    put_text(code, "t");
    put_tensor(code, "FloatStorage", "0", 6, 0, turned_shape, turned, 2);
    put_text(code, "b");
    put_tensor(code, "FloatStorage", "1", 2, 0, &two, &one, 1);
    put_string(code, "u.");
}

/* The members of a zip with this pickle; the caller may change entries before zip_end. */
static void start_zip(zip_writer *zip, const buffer *code, uint32_t flags)
{
    zip_add(zip, "archive/data.pkl", code->bytes, code->count, flags);
    zip_add(zip, "archive/byteorder", "little", 6, flags);
    zip_add(zip, "archive/data/0", first_values, sizeof first_values, flags);
    zip_add(zip, "archive/data/1", second_values, sizeof second_values, flags);
}

static zip_writer started_zip(const buffer *code)
{
    zip_writer zip = {0};
    start_zip(&zip, code, 0);
    return zip;
}

static void make_zip(zip_writer *zip, uint32_t flags, bool zip64)
{
    FREED_BY(buffer_free) buffer code = {0};
    put_state(&code);
    start_zip(zip, &code, flags);
    zip_end(zip, zip64);
}

static void make_legacy(buffer *file)
{
    put_legacy_head(file);
    put_state(file);
    put(file, "\x80\x02](", 4);
    put_text(file, "0");
    put_text(file, "1");
    put_string(file, "e.");
    put_number(file, 6, 8);
    put(file, first_values, sizeof first_values);
    put_number(file, 2, 8);
    put(file, second_values, sizeof second_values);
}

static const stored_tensor *find(const torch_file *file, const char *name)
{
    const tensor_list *list = torch_file_tensors(file);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].tensor.name, name) == 0) return &list->items[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static deberta_status read_values(torch_file *file, const stored_tensor *stored, size_t first, size_t count,
                                  float *values, deberta_error *error)
{
    const uint8_t *storage;
    deberta_status status = torch_file_acquire(file, stored->storage, &storage, error);
    if (status != DEBERTA_OK) return status;
    tensor_convert_f32(values, stored, storage, first, count);
    torch_file_release(file, stored->storage);
    return DEBERTA_OK;
}

static void check_values(torch_file *file, const char *name, const float *expected, size_t count)
{
    float values[64];
    deberta_error error;
    assert_int_equal(find(file, name)->tensor.elements, count);
    assert_ok(read_values(file, find(file, name), 0, count, values, &error));
    assert_memory_equal(values, expected, count * sizeof *values);
}

static void check_state(const buffer *bytes)
{
    FREED_BY(torch_file_close) torch_file *file;
    deberta_error error;
    deberta_status status = torch_file_open(&file, bytes->bytes, bytes->count, "file", &error);
    if (status != DEBERTA_OK) fail_msg("%s", error.message);
    static const float turned[6] = {1, 4, 2, 5, 3, 6};
    assert_int_equal(torch_file_tensors(file)->count, 3);
    check_values(file, "w", first_values, 6);
    check_values(file, "t", turned, 6);
    torch_file_forget(file, find(file, "w")->storage);
    check_values(file, "t", turned, 6); /* loaded again */
    check_values(file, "b", second_values, 2);
}

TEST(test_good)
{
    static const struct {
        uint32_t flags;
        bool zip64;
    } kinds[] = {{0, false}, {8, false}, {0x808, false}, {0, true}, {8, true}};
    FOR_ROWS(i, kinds) {
        FREED_BY(zip_free) zip_writer zip = {0};
        make_zip(&zip, kinds[i].flags, kinds[i].zip64);
        check_state(&zip.out);
    }
    FREED_BY(buffer_free) buffer legacy = {0};
    make_legacy(&legacy);
    check_state(&legacy);
}

/* Opens bytes that end where their memory ends, reads all tensors, and hands back the first failure. */
static deberta_status open_and_read(const uint8_t *bytes, size_t count, deberta_error *error)
{
    torch_file *file;
    FREED_BY(free_memory) uint8_t *copy = exact_copy(bytes, count);
    deberta_status status = torch_file_open(&file, copy, count, "file", error);
    for (size_t i = 0; status == DEBERTA_OK && i < torch_file_tensors(file)->count; i++) {
        const stored_tensor *stored = &torch_file_tensors(file)->items[i];
        const uint8_t *storage;
        size_t n = stored->tensor.elements < 16 ? stored->tensor.elements : 16;
        float values[16];
        int64_t integers[16];
        if ((status = torch_file_acquire(file, stored->storage, &storage, error)) != DEBERTA_OK) break;
        if (dtype_is_floating(stored->tensor.dtype))
            tensor_convert_f32(values, stored, storage, stored->tensor.elements - n, n);
        else
            tensor_convert_i64(integers, stored, storage, stored->tensor.elements - n, n);
        torch_file_release(file, stored->storage);
    }
    torch_file_close(&file);
    return status;
}

static void check_zip(zip_writer *zip, deberta_status expected, const char *text)
{
    deberta_error error = {0};
    check_refused(open_and_read(zip->out.bytes, zip->out.count, &error), &error, expected, text);
    buffer_free(&zip->out);
}

static void end_and_check(zip_writer *zip, const char *text)
{
    zip_end(zip, false);
    check_zip(zip, DEBERTA_E_FORMAT, text);
}

/* One wrong thing in a zip at a time. */
TEST(test_bad_zips)
{
    FREED_BY(buffer_free) buffer code = {0};
    put_state(&code);
    static const struct {
        size_t entry;
        uint32_t method, packed, size, flags, crc;
        deberta_status status;
        const char *expected;
    } cases[] = {
        {2, 8, 24, 24, 0, 0, DEBERTA_E_UNSUPPORTED, "'archive/data/0' is compressed (method 8)"},
        {2, 0, 24, 24, 1, 0, DEBERTA_E_UNSUPPORTED, "'archive/data/0' is encrypted"},
        {2, 0, 0xfffffff0, 0xfffffff0, 0, 0, DEBERTA_E_FORMAT, "claims 4294967280 bytes"},
        {2, 0, 24, 48, 0, 0, DEBERTA_E_FORMAT, "claims 48 bytes stored in 24"},
        {2, 0, 20, 20, 0, 0, DEBERTA_E_FORMAT, "has 20 bytes, but 6 x F32 for tensor 'w' take 24"},
        {2, 0, 24, 24, 0, 0x12345678, DEBERTA_E_FORMAT, "CRC"},
        {0, 0, 0xfffffff0, 0xfffffff0, 0, 0, DEBERTA_E_FORMAT, "'archive/data.pkl' claims 4294967280 bytes"},
        {0, 8, 10, 10, 0, 0, DEBERTA_E_UNSUPPORTED, "'archive/data.pkl' is compressed"},
        {1, 0, 0xfffffff0, 0xfffffff0, 0, 0, DEBERTA_E_FORMAT, "neither 'little' nor 'big'"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(zip_free) zip_writer zip = started_zip(&code);
        zip_entry *entry = &zip.entries[cases[i].entry];
        entry->method = cases[i].method;
        entry->packed = cases[i].packed;
        entry->size = cases[i].size;
        entry->flags = cases[i].flags;
        entry->crc ^= cases[i].crc;
        zip_end(&zip, false);
        check_zip(&zip, cases[i].status, cases[i].expected);
    }
}

TEST(test_bad_members)
{
    FREED_BY(buffer_free) buffer code = {0};
    put_state(&code);
    FREED_BY(zip_free) zip_writer zip = started_zip(&code); /* the same name twice: which one is meant? */
    zip_add(&zip, "archive/data/1", first_values, 8, 0);
    end_and_check(&zip, "'archive/data/1' occurs twice");

    zip = started_zip(&code); /* a name that goes on behind a NUL is another name, here and in libzip */
    memcpy(zip_add(&zip, "archive/data/1-x", first_values, 8, 0)->name, "archive/data/1\0x", 16);
    zip_end(&zip, false);
    check_state(&zip.out);
    zip_free(&zip);

    zip = started_zip(&code);
    memcpy(zip.entries[3].name, "archive/data/1\0", 15);
    zip.entries[3].name_bytes = 15;
    end_and_check(&zip, "'archive/data/1' is missing");

    zip = started_zip(&code);
    zip_add(&zip, "other/data.pkl", code.bytes, code.count, 0);
    end_and_check(&zip, "both 'archive/data.pkl' and 'other/data.pkl'");

    zip = (zip_writer){0};
    zip_add(&zip, "archive/a/data.pkl", code.bytes, code.count, 0);
    zip_add(&zip, "data.pkl", code.bytes, code.count, 0);
    end_and_check(&zip, "without a member <folder>/data.pkl");

    zip = (zip_writer){0};
    zip_add(&zip, "archive/data.pkl", code.bytes, code.count, 0);
    zip_add(&zip, "archive/data/0", first_values, sizeof first_values, 0);
    end_and_check(&zip, "'archive/data/1' is missing, expected 2 x F32 for tensor 'b'");

    zip = started_zip(&code);
    zip.entries[3].offset = zip.entries[2].offset; /* a local header with another name and other sizes */
    end_and_check(&zip, "'archive/data/1' cannot be read");

    zip = started_zip(&code);
    zip.entries[3].offset = 0x7fffffff;
    end_and_check(&zip, "");
}

/* Two members that share their bytes, in a pickle whose storages together are larger than the file. */
TEST(test_overlapping_members)
{
    enum { COUNT = 4096 };
    static float values[COUNT];
    FREED_BY(buffer_free) buffer code = {0};
    int64_t shape = COUNT, stride = 1;
    put(&code, "\x80\x02}(", 4);
    for (int i = 0; i < 4; i++) {
        char key[2] = {(char)('0' + i), 0};
        put_text(&code, key);
        put_tensor(&code, "FloatStorage", key, COUNT, 0, &shape, &stride, 1);
    }
    put_string(&code, "u.");
    FREED_BY(zip_free) zip_writer zip = {0};
    zip_add(&zip, "archive/data.pkl", code.bytes, code.count, 0);
    zip_add(&zip, "archive/data/0", values, sizeof values, 0);
    for (int i = 1; i < 4; i++) {
        char name[] = "archive/data/0";
        name[13] = (char)('0' + i);
        zip_entry *entry = zip_add(&zip, name, NULL, 0, 0);
        uint32_t size = sizeof values;
        *entry = (zip_entry){
            .name_bytes = 14, .crc = zip.entries[1].crc, .packed = size, .size = size, .offset = zip.entries[1].offset};
        memcpy(entry->name, name, 14);
    }
    end_and_check(&zip, "they overlap");
}

/* Directories that keep libzip busy for hours: thousands of end records, and a very long directory. */
TEST(test_busy_zips)
{
    FREED_BY(zip_free) zip_writer zip = {0};
    make_zip(&zip, 0, false);
    buffer end = {0};
    put(&end, zip.out.bytes + zip.out.count - 22, 22);
    for (int i = 0; i < 2000; i++) put_buffer(&zip.out, &end);
    check_zip(&zip, DEBERTA_E_FORMAT, "more than 4 end records");
    buffer_free(&end);

    FREED_BY(buffer_free) buffer code = {0};
    put_state(&code);
    for (int zip64 = 0; zip64 < 2; zip64++) {
        zip = started_zip(&code);
        size_t begin = zip.out.count;
        while (zip.out.count - begin < 2u << 20) zip_header(&zip.out, &zip.entries[0], true);
        zip.count = 0;
        zip_end(&zip, zip64);
        /* the size of the directory, in the zip64 record or in the end record */
        size_t field = zip64 ? zip.out.count - 22 - 20 - 16 : zip.out.count - 10;
        uint64_t size = 2u << 20;
        memcpy(zip.out.bytes + field, &size, zip64 ? 8 : 4);
        check_zip(&zip, DEBERTA_E_FORMAT, "expected at most 1048576");
    }
}

/* zip64 records with numbers up to 2^64. */
TEST(test_bad_zip64)
{
    static const uint64_t numbers[] = {0, 1, 45, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX - 56, UINT64_MAX};
    /* record: entries here, entries, size, offset; locator: offset of the record */
    static const size_t fields[] = {24, 32, 40, 48, 56 + 8};
    FOR_ROWS(f, fields)
        FOR_ROWS(n, numbers) {
            FREED_BY(zip_free) zip_writer zip = {0};
            make_zip(&zip, 0, true);
            memcpy(zip.out.bytes + zip.out.count - 22 - 20 - 56 + fields[f], &numbers[n], 8);
            if (f == 0) memcpy(zip.out.bytes + zip.out.count - 22 - 20 - 56 + fields[1], &numbers[n], 8);
            deberta_error error;
            deberta_status status = open_and_read(zip.out.bytes, zip.out.count, &error);
            if (status != DEBERTA_E_FORMAT) fail_msg("field %zu, number %zu: status %d", f, n, status);
        }
}

TEST(test_bad_legacy)
{
    buffer file = {0};
    deberta_error error;
    make_legacy(&file);
    put_byte(&file, 0);
    check_refused(open_and_read(file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT,
                  "1 bytes after the last storage");
    file.count--;
    /* the number of elements of the last storage */
    static const uint64_t numbers[] = {0, 1, 3, UINT64_MAX, (uint64_t)1 << 62};
    FOR_ROWS(i, numbers) {
        memcpy(file.bytes + file.count - 16, &numbers[i], 8);
        check_refused(open_and_read(file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT,
                      "but tensor 'b' expects 2");
    }
    buffer_free(&file);

    static const struct {
        const char *keys[3];
        const char *expected;
    } cases[] = {
        {{"0", "0", NULL}, "storage 1 of the file is there twice"},
        {{"7", NULL, NULL}, "storage 0 of the file belongs to no tensor"},
        {{"0", NULL, NULL}, "storage '1' of tensor 'b' is not in the file"},
        {{NULL, NULL, NULL},
         "is not in the file"}, /* after which of its two tensors a storage is called does not matter */
    };
    FOR_ROWS(i, cases) {
        put_legacy_head(&file);
        put_state(&file);
        put(&file, "\x80\x02](", 4);
        for (int k = 0; cases[i].keys[k]; k++) put_text(&file, cases[i].keys[k]);
        put_string(&file, "e.");
        put_number(&file, 6, 8);
        put(&file, first_values, sizeof first_values);
        put_number(&file, 6, 8);
        check_refused(open_and_read(file.bytes, file.count, &error), &error, DEBERTA_E_FORMAT, cases[i].expected);
        buffer_free(&file);
    }
}

TEST(test_other_contents)
{
    static const struct {
        const char *bytes, *expected;
        size_t count;
    } cases[] = {
        {"\x80\x02}q.", "looks like a Python pickle", 5},
        {"", "of unknown content", 0},
        {"P", "of unknown content", 1},
        {"PK\x03\x04", "no end record", 4},
        {"<!DOCTYPE", "looks like an HTML page", 9},
        {"\x05\0\0\0\0\0\0\0{}   ", "looks like a safetensors file", 13},
    };
    FOR_ROWS(i, cases) {
        deberta_error error;
        deberta_status status = open_and_read((const uint8_t *)cases[i].bytes, cases[i].count, &error);
        check_refused(status, &error, DEBERTA_E_FORMAT, cases[i].expected);
    }
}

/* What a root may be, and which of its dicts is the state. */
static void put_dict(buffer *code, const char *tensor_name)
{
    int64_t shape = 6, stride = 1;
    put_byte(code, '}');
    if (!tensor_name) return;
    put_text(code, tensor_name);
    put_tensor(code, "FloatStorage", "0", 6, 0, &shape, &stride, 1);
    put_byte(code, 's');
}

TEST(test_roots)
{
    /* key, name of the tensor in its dict; ... */
    static const struct {
        const char *keys[8];
        const char *found, *expected;
    } cases[] = {
        {{"model", "a", NULL}, "a", NULL},
        {{"anything", "a", NULL}, "a", NULL},
        {{"ema", "e", "model", "a", NULL}, "a", NULL},
        {{"model", "a", "ema", "e", NULL}, "a", NULL},
        {{"state_dict", "a", "ema", "e", NULL}, "a", NULL},
        {{"state_dict", "e", "model", "a", "model_state_dict", "f", NULL}, "a", NULL},
        {{"one", "a", "two", "e", NULL}, NULL, "2 dicts of tensors in it (the last is 'two')"},
        {{"one", "a", "two", "e", "three", "f", NULL}, NULL, "3 dicts of tensors in it (the last is 'three')"},
        {{NULL}, NULL, "no tensors in its dict"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(buffer_free) buffer code = {0};
        FREED_BY(zip_free) zip_writer zip = {0};
        put(&code, "\x80\x02}", 3);
        for (int k = 0; cases[i].keys[k]; k += 2) {
            put_text(&code, cases[i].keys[k]);
            put_dict(&code, cases[i].keys[k + 1]);
            put_byte(&code, 's');
        }
        put_byte(&code, '.');
        start_zip(&zip, &code, 0);
        zip_end(&zip, false);
        if (cases[i].expected) {
            check_zip(&zip, DEBERTA_E_FORMAT, cases[i].expected);
        } else {
            FREED_BY(torch_file_close) torch_file *file;
            deberta_error error;
            assert_ok(torch_file_open(&file, zip.out.bytes, zip.out.count, "file", &error));
            assert_string_equal(torch_file_tensors(file)->items[0].tensor.name, cases[i].found);
        }
    }
}

/* A root of many entries that are all the same dict, each with many tensors: looking through it must stay linear. */
TEST(test_shared_dicts)
{
    FREED_BY(buffer_free) buffer code = {0};
    put(&code, "\x80\x02", 2);
    put_dict(&code, NULL);
    put_string(&code, "q\x01");
    int64_t shape = 6, stride = 1;
    put_tensor(&code, "FloatStorage", "0", 6, 0, &shape, &stride, 1);
    put_string(&code, "q\x02"
                      "0(");
    for (int i = 0; i < 60000; i++) {
        put(&code, "\x8c\x04", 2);
        put_number(&code, 0x61616161u + (uint32_t)(i % 26) + (uint32_t)(i / 26 % 26 << 8) + (uint32_t)(i / 676 << 16),
                   4);
        put_string(&code, "h\x02");
    }
    put_string(&code, "u0}(");
    for (int i = 0; i < 60000; i++) put(&code, "K\x01h\x01", 4);
    put_string(&code, "u.");
    FREED_BY(zip_free) zip_writer zip = started_zip(&code);
    end_and_check(&zip, "60000 dicts of tensors");
}

TEST(test_contradicting_storages)
{
    static const int64_t six = 6, one = 1;
    static const struct {
        const char *type, *key;
        int64_t elements;
        const char *expected;
    } cases[] = {
        {"FloatStorage", "0", 7, "is once 7 x F32 and once 6 x F32"},
        {"IntStorage", "0", 6, "6 x I32"},
        {"FloatStorage", "../../0", 6, "'archive/data/../../0' is missing"},
        {"FloatStorage", "", 6, "cannot be the key"},
        {"DoubleStorage", "1", INT64_MAX, "overflows 64 bits"},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(buffer_free) buffer code = {0};
        FREED_BY(zip_free) zip_writer zip = {0};
        put(&code, "\x80\x02}(", 4);
        put_text(&code, "a");
        put_tensor(&code, "FloatStorage", "0", 6, 0, &six, &one, 1);
        put_text(&code, "b");
        put_tensor(&code, cases[i].type, cases[i].key, cases[i].elements, 0, &six, &one, 1);
        put_string(&code, "u.");
        start_zip(&zip, &code, 0);
        end_and_check(&zip, cases[i].expected);
    }
}

TEST(test_big_endian)
{
    FREED_BY(buffer_free) buffer code = {0};
    FREED_BY(zip_free) zip_writer zip = {0};
    uint8_t swapped[8];
    int64_t two = 2, one = 1;
    for (int i = 0; i < 8; i++) swapped[i] = ((const uint8_t *)second_values)[i / 4 * 4 + 3 - i % 4];
    put(&code, "\x80\x02}", 3);
    put_text(&code, "b");
    put_tensor(&code, "FloatStorage", "1", 2, 0, &two, &one, 1);
    put_string(&code, "s.");
    zip_add(&zip, "m/data.pkl", code.bytes, code.count, 0);
    zip_add(&zip, "m/byteorder", "big", 3, 0);
    zip_add(&zip, "m/data/1", swapped, 8, 0);
    zip_end(&zip, false);
    torch_file *file;
    deberta_error error;
    assert_ok(torch_file_open(&file, zip.out.bytes, zip.out.count, "file", &error));
    check_values(file, "b", second_values, 2);
    torch_file_close(&file);
}

/* Every dtype through random views: any window of elements equals the definition of strides. */
TEST(test_strides)
{
    enum { ELEMENTS = 720 };
    static const char *const types[] = {"DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage"};
    static const size_t widths[] = {8, 4, 2, 2};
    uint64_t seed = 7;
    for (int round = 0; round < 400; round++) {
        size_t type = random_below(&seed, 4), rank = 1 + random_below(&seed, 4), order[4] = {0, 1, 2, 3};
        /* 1/8 to 90: exact in all four types (bfloat16: 8 bits) */
        uint8_t stored[8 * ELEMENTS];
        float expected[ELEMENTS];
        for (size_t i = 0; i < ELEMENTS; i++) {
            float value = (float)(1 + i % 250) / 8;
            double wide = value;
            uint32_t bits;
            memcpy(&bits, &value, 4);
            uint16_t upper = (uint16_t)(bits >> 16), half = (uint16_t)((bits >> 13) - (112 << 10));
            const void *pieces[] = {&wide, &value, &half, &upper};
            memcpy(stored + i * widths[type], pieces[type], widths[type]);
            expected[i] = value;
        }
        int64_t shape[4], strides[4], step = 1 + (int64_t)random_below(&seed, 2),
                                      offset = (int64_t)random_below(&seed, 30);
        for (size_t d = rank; d-- > 1;) {
            size_t other = random_below(&seed, d + 1), kept = order[d];
            order[d] = order[other];
            order[other] = kept;
        }
        size_t count = 1;
        for (size_t d = rank; d-- > 0;) {
            shape[order[d]] = 1 + (int64_t)random_below(&seed, rank == 1 ? 300 : 4);
            strides[order[d]] = step;
            step *= shape[order[d]];
            count *= (size_t)shape[order[d]];
        }
        FREED_BY(buffer_free) buffer code = {0};
        FREED_BY(zip_free) zip_writer zip = {0};
        put(&code, "\x80\x02}", 3);
        put_text(&code, "x");
        put_tensor(&code, types[type], "0", ELEMENTS, offset, shape, strides, rank);
        put_string(&code, "s.");
        zip_add(&zip, "m/data.pkl", code.bytes, code.count, 0);
        zip_add(&zip, "m/data/0", stored, ELEMENTS * widths[type], 0);
        zip_end(&zip, false);

        torch_file *file;
        deberta_error error;
        if (torch_file_open(&file, zip.out.bytes, zip.out.count, "file", &error) != DEBERTA_OK)
            fail_msg("%s", error.message);
        for (int window = 0; window < 4; window++) {
            size_t first = window ? random_below(&seed, count + 1) : 0;
            size_t length = window ? random_below(&seed, count - first + 1) : count;
            float values[ELEMENTS];
            assert_ok(read_values(file, find(file, "x"), first, length, values, &error));
            for (size_t i = 0; i < length; i++) {
                size_t place = (size_t)offset, rest = first + i;
                for (size_t d = rank; d-- > 0; rest /= (size_t)shape[d])
                    place += rest % (size_t)shape[d] * (size_t)strides[d];
                /* 250 / 8 needs 8 significant bits: bfloat16 cuts nothing */
                if (values[i] != expected[place])
                    fail_msg("round %d: element %zu is %g, expected %g", round, first + i, values[i], expected[place]);
            }
        }
        torch_file_close(&file);
    }
}

/* No truncation is a file. */
TEST(test_truncations)
{
    FREED_BY(zip_free) zip_writer zip = {0};
    FREED_BY(buffer_free) buffer legacy = {0};
    make_zip(&zip, 8, true);
    make_legacy(&legacy);
    const buffer *files[] = {&zip.out, &legacy};
    for (size_t f = 0; f < 2; f++)
        for (size_t count = 0; count < files[f]->count; count++) {
            deberta_error error;
            deberta_status status = open_and_read(files[f]->bytes, count, &error);
            if (status != DEBERTA_E_FORMAT) fail_msg("file %zu cut at %zu: status %d", f, count, status);
        }
}

/* Whatever bit flips, the reader stays inside the file and gives a status. */
TEST(test_bit_flips)
{
    FREED_BY(zip_free) zip_writer zip = {0};
    FREED_BY(buffer_free) buffer legacy = {0};
    make_zip(&zip, 8, true);
    make_legacy(&legacy);
    buffer *files[] = {&zip.out, &legacy};
    for (size_t f = 0; f < 2; f++)
        for (size_t bit = 0; bit < 8 * files[f]->count; bit++) {
            deberta_error error = {0};
            files[f]->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            deberta_status status = open_and_read(files[f]->bytes, files[f]->count, &error);
            if (status != DEBERTA_OK && status != DEBERTA_E_FORMAT && status != DEBERTA_E_UNSUPPORTED)
                fail_msg("file %zu, bit %zu: status %d '%s'", f, bit, status, error.message);
            files[f]->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
}
