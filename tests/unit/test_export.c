/* Writing of tensors: round trips, exact bytes, and folders that are as before when something fails.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "core/io/atomic_file.h"
#include "core/io/export.h"
#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    while (readdir(listing)) count++;
    closedir(listing);
    return count - 2; /* . and .. */
}

static void check_content(const char *path, const void *bytes, size_t count)
{
    FREED_BY(mapped_file_close) mapped_file file;
    deberta_error error;
    if (mapped_file_open(&file, path, &error) != DEBERTA_OK) fail_msg("%s", error.message);
    assert_int_equal(file.size_bytes, count);
    assert_memory_equal(file.bytes, bytes, count);
}

/* A call that must succeed; its last argument is &error of the test. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != DEBERTA_OK) fail_msg("%s", error.message);                                                       \
    } while (0)

/* Pieces in any order, gaps that become zero, integers, scalars, an empty tensor; read back with the own reader. */
TEST(test_round_trip)
{
    static const export_tensor tensors[] = {
        {"hidden", DTYPE_F32, 3, {2, 3, 5}}, {"scalar", DTYPE_F32, 0, {0}}, {"ids \"\xc3\xa9\"", DTYPE_I64, 1, {3}},
        {"empty", DTYPE_F32, 2, {0, 4}},     {"last", DTYPE_F32, 1, {1}},
    };
    static const export_note notes[] = {{"model", "a \"b\"\n"}, {"isa", "avx2"}};
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/out.safetensors", folder);
    export_file *file;
    deberta_error error;
    float rows[30], one = 3.5f;
    int64_t ids[3] = {7, -1, INT64_MAX};
    for (int i = 0; i < 30; i++) rows[i] = (float)i + 0.25f;
    OK(export_safetensors(&file, path, tensors, 5, notes, 2, &error));
    assert_int_not_equal(access(path, F_OK), 0); /* not there before it is whole */
    assert_int_equal(access(export_temporary(file), F_OK), 0);
    OK(export_write(file, 2, 0, ids, 3, &error));
    OK(export_write(file, 0, 20, rows + 20, 10, &error));
    OK(export_write(file, 0, 5, rows + 5, 5, &error));
    OK(export_write(file, 1, 0, &one, 1, &error));
    OK(export_write(file, 3, 0, NULL, 0, &error));
    OK(export_finish(&file, &error));
    assert_null(file);
    assert_int_equal(count_files(folder), 1);

    FREED_BY(mapped_file_close) mapped_file map;
    FREED_BY(tensor_list_free) tensor_list list;
    OK(mapped_file_open(&map, path, &error));
    OK(safetensors_list(&list, map.bytes, map.size_bytes, "out", &error));
    assert_int_equal(list.count, 5);
    size_t found = 0;
    for (size_t i = 0; i < list.count; i++) {
        const stored_tensor *stored = &list.items[i];
        assert_int_equal(stored->offset_bytes % dtype_bytes(stored->tensor.dtype), 0);
        float values[30];
        int64_t integers[3];
        if (strcmp(stored->tensor.name, "hidden") == 0) {
            tensor_convert_f32(values, stored, map.bytes, 0, 30);
            for (int e = 0; e < 30; e++) assert_true(values[e] == ((e >= 5 && e < 10) || e >= 20 ? rows[e] : 0));
            found++;
        } else if (strcmp(stored->tensor.name, "ids \"\xc3\xa9\"") == 0) {
            tensor_convert_i64(integers, stored, map.bytes, 0, 3);
            assert_memory_equal(integers, ids, sizeof ids);
            found++;
        } else if (strcmp(stored->tensor.name, "scalar") == 0) {
            tensor_convert_f32(values, stored, map.bytes, 0, 1);
            assert_true(stored->tensor.rank == 0 && values[0] == 3.5f);
            found++;
        }
    }
    assert_int_equal(found, 3);
    remove_folder(&folder);
}

TEST(test_exact_bytes)
{
    static const export_tensor tensors[] = {{"a", DTYPE_F32, 1, {1}}, {"b", DTYPE_I64, 1, {1}}};
    static const export_note notes[] = {{"k", "v"}};
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
                                 "\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}   ";
    static const uint8_t data[12] = {9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f};
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/out", folder);
    export_file *file;
    deberta_error error;
    float one = 1;
    int64_t nine = 9;
    FREED_BY(buffer_free) buffer expected = {0};
    assert_int_equal((sizeof header - 1) % 8, 0);
    put_safetensors(&expected, header, data, sizeof data);
    for (int round = 0; round < 2; round++) { /* the second replaces the first */
        OK(export_safetensors(&file, path, tensors, 2, notes, 1, &error));
        OK(export_write(file, 0, 0, &one, 1, &error));
        OK(export_write(file, 1, 0, &nine, 1, &error));
        OK(export_finish(&file, &error));
        check_content(path, expected.bytes, expected.count);
    }
    remove_folder(&folder);
}

/* numpy's format: header and newline end at 128, whatever the numbers. */
TEST(test_npy_header)
{
    static const struct {
        size_t rows, columns;
        const char *text;
    } cases[] = {
        {1, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"},
        {SIZE_MAX, SIZE_MAX,
         "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 18446744073709551615), }"},
    };
    for (size_t i = 0; i < 2; i++) {
        char npy[128], header[TENSOR_HEADER_NPY_BYTES];
        memset(npy, ' ', 128);
        memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
        memcpy(npy + 10, cases[i].text, strlen(cases[i].text));
        npy[127] = '\n';
        tensor_header_npy(header, cases[i].rows, cases[i].columns);
        assert_memory_equal(header, npy, 128);
    }
}

TEST(test_wrong_calls)
{
    static const struct {
        export_tensor tensors[2];
        export_note notes[2];
        size_t tensor_count, note_count;
    } cases[] = {
        {{{"a", DTYPE_BF16, 1, {1}}}, {{0}}, 1, 0},
        {{{"a", DTYPE_F32, 9, {1}}}, {{0}}, 1, 0},
        {{{"a", DTYPE_F32, 2, {SIZE_MAX, 2}}}, {{0}}, 1, 0},
        {{{"a", DTYPE_F32, 1, {SIZE_MAX / 4}}}, {{0}}, 1, 0},
        {{{"a", DTYPE_F32, 1, {1}}, {"a", DTYPE_F32, 1, {1}}}, {{0}}, 2, 0},
        {{{"__metadata__", DTYPE_F32, 1, {1}}}, {{0}}, 1, 0},
        {{{"a\xff", DTYPE_F32, 1, {1}}}, {{0}}, 1, 0},
        {{{"a", DTYPE_F32, 1, {1}}}, {{"k", "v"}, {"k", "w"}}, 1, 2},
        {{{"a", DTYPE_F32, 1, {1}}}, {{"k", "\xff"}}, 1, 1},
    };
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/out", folder);
    export_file *file;
    deberta_error error;
    FOR_ROWS(i, cases) {
        deberta_status status = export_safetensors(&file, path, cases[i].tensors, cases[i].tensor_count, cases[i].notes,
                                                   cases[i].note_count, &error);
        if (status != DEBERTA_E_ARGUMENT || file) fail_msg("case %zu: %d '%s'", i, status, error.message);
    }
    static const export_tensor two = {"a", DTYPE_F32, 1, {2}};
    float values[3] = {0};
    OK(export_safetensors(&file, path, &two, 1, NULL, 0, &error));
    assert_int_equal(export_write(file, 0, 0, values, 3, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(export_write(file, 0, 2, values, 1, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(export_write(file, 0, SIZE_MAX, values, 2, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(export_write(file, 1, 0, values, 0, &error), DEBERTA_E_ARGUMENT);
    export_discard(&file);
    export_discard(&file);
    assert_int_equal(count_files(folder), 0);
    remove_folder(&folder);
}

TEST(test_targets)
{
    static const export_tensor one = {"a", DTYPE_F32, 1, {1}};
    char *folder = make_folder(), path[256], link[256];
    export_file *file;
    deberta_error error;
    snprintf(path, sizeof path, "%s/no/such/folder", folder);
    check_refused(export_safetensors(&file, path, &one, 1, NULL, 0, &error), &error, DEBERTA_E_SYSTEM,
                  "cannot be written");
    check_refused(export_safetensors(&file, folder, &one, 1, NULL, 0, &error), &error, DEBERTA_E_SYSTEM,
                  "not a regular file");
    check_refused(export_safetensors(&file, "/dev/null", &one, 1, NULL, 0, &error), &error, DEBERTA_E_SYSTEM,
                  "not a regular file");
    assert_int_equal(access("/dev/null", W_OK), 0);

    /* what was there stays until the end, also when nothing comes of it */
    snprintf(path, sizeof path, "%s/out", folder);
    write_file(folder, "out", "old", 3);
    OK(export_safetensors(&file, path, &one, 1, NULL, 0, &error));
    check_content(path, "old", 3);
    export_discard(&file);
    check_content(path, "old", 3);
    assert_int_equal(count_files(folder), 1);

    /* a symbolic link stays one */
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("out", link), 0);
    OK(export_safetensors(&file, link, &one, 1, NULL, 0, &error));
    OK(export_finish(&file, &error));
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 3);
    assert_int_equal(count_files(folder), 2);

    /* one that leads nowhere is neither followed nor replaced */
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("elsewhere/out", link), 0);
    check_refused(export_safetensors(&file, link, &one, 1, NULL, 0, &error), &error, DEBERTA_E_SYSTEM,
                  "does not exist");
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));

    /* two writers of one file at a time do not meet */
    export_file *other;
    OK(export_safetensors(&file, path, &one, 1, NULL, 0, &error));
    OK(export_safetensors(&other, path, &one, 1, NULL, 0, &error));
    assert_string_not_equal(export_temporary(file), export_temporary(other));
    OK(export_finish(&file, &error));
    OK(export_finish(&other, &error));

    /* a name without a folder is in the current one */
    assert_int_equal(chdir(folder), 0);
    OK(export_safetensors(&file, "here", &one, 1, NULL, 0, &error));
    OK(export_finish(&file, &error));
    assert_int_equal(count_files(folder), 3);
    assert_int_equal(chdir("/"), 0);
    remove_folder(&folder);
}

/* What killed processes left is removed by the next writer in the folder, were it a thousand files of this number of a
 * process; what somebody is writing stays, and so does what only looks alike. */
TEST(test_leftovers)
{
    char *folder = make_folder(), path[256], name[160], host[80];
    deberta_error error;
    atomic_file *first, *second;
    snprintf(path, sizeof path, "%s/out", folder);
    OK(atomic_file_open(&first, path, &error));
    const char *begin = strstr(atomic_file_temporary(first), ".deberta-") + 9;
    snprintf(host, sizeof host, "%.*s", (int)strcspn(begin, "-"), begin);
    for (int k = 0; k < 1000; k++) {
        snprintf(name, sizeof name, ".deberta-%s-%ld-%d.tmp", host, (long)getpid(), k);
        if (!strstr(atomic_file_temporary(first), name)) write_file(folder, name, "left", 4);
    }
    write_file(folder, ".deberta-1-x.tmp", "mine", 4);
    write_file(folder, ".deberta-1-2.tmp2", "mine", 4);
    /* of other machines, whose locks are not seen, and of earlier versions: those of today stay */
    write_file(folder, ".deberta-another.machine-1-2.tmp", "now", 3);
    write_file(folder, ".deberta-1-2.tmp", "now", 3);
    write_file(folder, ".deberta-another.machine-1-3.tmp", "left", 4);
    write_file(folder, ".deberta-1-3.tmp", "left", 4);
    const struct timespec long_ago[2] = {{.tv_sec = time(NULL) - 100000}, {.tv_sec = time(NULL) - 100000}};
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "%s/.deberta-%s1-3.tmp", folder, k ? "another.machine-" : "");
        assert_int_equal(utimensat(AT_FDCWD, name, long_ago, 0), 0);
    }
    assert_int_equal(count_files(folder), 1006);
    OK(atomic_file_open(&second, path, &error));
    assert_int_equal(count_files(folder), 6); /* two that are written, two that look alike, two of others */
    OK(atomic_file_write(first, 0, "first", 5, &error));
    OK(atomic_file_commit(&first, &error));
    check_content(path, "first", 5);
    atomic_file_discard(&second);
    assert_int_equal(count_files(folder), 5);
    remove_folder(&folder);
}

/* A file that has its name closes nothing more: other files may have its numbers, and 0 is somebody's input. */
TEST(test_closes_only_what_it_opened)
{
    char *folder = make_folder(), path[256];
    deberta_error error;
    const int nothing = open("/dev/null", O_RDONLY);
    assert_true(nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO);
    snprintf(path, sizeof path, "%s/out", folder);
    OK(atomic_file_replace(path, "text", 4, &error));
    check_content(path, "text", 4);
    assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    if (nothing != STDIN_FILENO) close(nothing);
    remove_folder(&folder);
}

/* Text through a stream: whole or not at all, too. */
TEST(test_stream)
{
    char *folder = make_folder(), path[256], link[256];
    atomic_file *file;
    FILE *stream;
    deberta_error error;
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    write_file(folder, "out", "old", 3);
    assert_int_equal(symlink("out", link), 0);
    OK(atomic_file_open(&file, link, &error));
    OK(atomic_file_stream(&stream, file, &error));
    fputs("new text", stream);
    check_content(path, "old", 3);
    OK(atomic_file_commit(&file, &error));
    check_content(path, "new text", 8);
    OK(atomic_file_open(&file, link, &error));
    OK(atomic_file_stream(&stream, file, &error));
    fputs("never seen", stream);
    atomic_file_discard(&file);
    check_content(path, "new text", 8);
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));

    /* what the stream could not write, commit reports */
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    OK(atomic_file_open(&file, path, &error));
    OK(atomic_file_stream(&stream, file, &error));
    fputs("too long", stream);
    fflush(stream);
    check_refused(atomic_file_commit(&file, &error), &error, DEBERTA_E_SYSTEM, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    check_content(path, "new text", 8);
    assert_int_equal(count_files(folder), 2);
    remove_folder(&folder);
}

/* A disk that is full, played by a limit on the size of files. */
TEST(test_full_disk)
{
    static const export_tensor large = {"a", DTYPE_F32, 1, {1 << 20}}, small = {"a", DTYPE_F32, 1, {4}};
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/out", folder);
    export_file *file;
    deberta_error error;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1 << 16;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    check_refused(export_safetensors(&file, path, &large, 1, NULL, 0, &error), &error, DEBERTA_E_SYSTEM,
                  "File too large");
    assert_int_equal(count_files(folder), 0);
    /* it fills up while values are written */
    float values[4] = {0};
    limit.rlim_cur = 80;
    OK(export_safetensors(&file, path, &small, 1, NULL, 0, &error));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    check_refused(export_write(file, 0, 0, values, 4, &error), &error, DEBERTA_E_SYSTEM, "writing failed");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    export_discard(&file);
    assert_int_equal(count_files(folder), 0);
    /* the folder disappears before the end */
    OK(export_safetensors(&file, path, &small, 1, NULL, 0, &error));
    remove_folder(&folder);
    check_refused(export_finish(&file, &error), &error, DEBERTA_E_SYSTEM, "writing failed");
    assert_null(file);
}
