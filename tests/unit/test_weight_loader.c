/* Weights packed where the mapped file has them are those that were read, converted and packed, on any number of
 * threads; a tensor that is packed leaves the process's memory.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/dispatch.h"
#include "core/load/weight_loader.h"

enum { ROWS = 120, COLUMNS = 900, PARTS = 3, HEADS = 2, LARGE = 4 << 20 /* floats */ };

/* "w" [120][900] and "large" [4 Mi], F32, behind a header that ends at a multiple of 4, plus `shift`. */
static void write_weights(const char *folder, size_t shift)
{
    static const char format[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
                                 "\"large\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}";
    char header[512];
    size_t count = (size_t)ROWS * COLUMNS, bytes = 4 * count, all = bytes + 4 * (size_t)LARGE;
    int length = snprintf(header, sizeof header, format, ROWS, COLUMNS, bytes, LARGE, bytes, all);
    size_t wanted = ((size_t)length + 3) / 4 * 4 + shift;
    memset(header + length, ' ', wanted - (size_t)length);
    header[wanted] = '\0';
    FREED_BY(free_memory) float *values = malloc(all);
    assert_non_null(values);
    for (size_t i = 0; i < all / 4; i++) values[i] = (float)((i * 2654435761u >> 7) % 2001) / 1000 - 1;
    FREED_BY(buffer_free) buffer file = {0};
    put_safetensors(&file, header, values, all);
    write_file(folder, "model.safetensors", file.bytes, file.count);
}

/* Three parts of two heads: 40 rows, which end inside a panel; 48, on its border. One part is scaled. */
static matrix_plan plan_of(size_t group_rows, bool spread)
{
    matrix_plan plan = {
        .part_count = PARTS,
        .groups = HEADS,
        .group_rows = group_rows,
        .padded_group = round_up(group_rows, PANEL),
        .columns = COLUMNS,
        .depth = spread ? COLUMNS / 45 * 48 : COLUMNS,
        .input_layout = INPUT_HEADS,
        .input_group = spread ? 45 : 60,
        .input_stride = spread ? 48 : 60,
    };
    for (size_t part = 0; part < PARTS; part++) {
        plan.parts[part] = (matrix_part){.weight = "w",
                                         .first_row = 4 * part,
                                         .row_step = group_rows,
                                         .tensor_rows = ROWS,
                                         .scale = part == 1 ? 0.3 : 1};
    }
    return plan;
}

/* Packs it into new memory. */
static packed_matrix pack(arena *memory, const weight_source *source, const matrix_plan *plan, size_t threads)
{
    kernels table;
    packed_matrix matrix;
    weight_loader loader = {.source = source, .arena = memory, .kernels = &table, .pass = LOAD_CHECK, .most = INFINITY};
    assert_ok(kernels_select(&table, DEBERTA_ISA_AUTO, NULL));
    assert_ok(executor_create(&loader.executor, threads, false, NULL, NULL));
    assert_ok(loader_matrix(&loader, &matrix, plan, NULL));
    loader.pass = LOAD_MEASURE;
    assert_ok(loader_matrix(&loader, &matrix, plan, NULL));
    assert_ok(arena_allocate(memory, "test", 0, NULL));
    assert_ok(loader_begin_reading(&loader, NULL));
    assert_ok(loader_matrix(&loader, &matrix, plan, NULL));
    free(loader.scratch);
    executor_free(&loader.executor);
    return matrix;
}

static size_t views_taken;
static const float *(*real_view)(const void *context, const weight_tensor *from);
static const float *count_view(const void *context, const weight_tensor *from)
{
    const float *values = real_view(context, from);
    views_taken += values != NULL;
    return values;
}

TEST(viewed_and_read_weights_are_packed_alike)
{
    FREED_BY(remove_folder) char *folder = make_folder();
    for (size_t shift = 0; shift < 2; shift++) {
        FREED_BY(checkpoint_close) checkpoint *stored = NULL;
        write_weights(folder, shift);
        assert_ok(checkpoint_open(&stored, folder, NULL));
        weight_source viewing = weight_source_of_checkpoint(stored), reading = viewing;
        real_view = viewing.view;
        viewing.view = count_view;
        reading.view = NULL;
        for (size_t group_rows = 40; group_rows <= 48; group_rows += 8) {
            for (int spread = 0; spread < 2; spread++) {
                matrix_plan plan = plan_of(group_rows, spread);
                arena expected_memory = {0};
                packed_matrix expected = pack(&expected_memory, &reading, &plan, 1);
                for (size_t threads = 1; threads <= 3; threads++) {
                    arena memory = {0};
                    views_taken = 0;
                    packed_matrix matrix = pack(&memory, &viewing, &plan, threads);
                    size_t floats = matrix.panel_count * matrix.depth * PANEL;
                    assert_memory_equal(matrix.panels, expected.panels, floats * sizeof(float));
                    assert_int_equal(views_taken, shift == 0 && !spread ? PARTS - 1 : 0);
                    arena_release(&memory);
                }
                arena_release(&expected_memory);
            }
        }
    }
}

/* Kibibytes of files in this process's memory (a temporary folder may be shared memory); 0 if the system does not say.
 */
static size_t file_kibibytes(void)
{
    char line[256];
    size_t sum = 0, one;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "RssFile: %zu", &one) == 1 || sscanf(line, "RssShmem: %zu", &one) == 1) sum += one;
    }
    if (status) fclose(status);
    return sum;
}

TEST(forgotten_tensors_leave_memory)
{
    enum { SIZE_KIB = LARGE / 256 };
    FREED_BY(remove_folder) char *folder = make_folder();
    FREED_BY(checkpoint_close) checkpoint *stored = NULL;
    FREED_BY(free_memory) float *first = malloc(4 * (size_t)LARGE), *again = malloc(4 * (size_t)LARGE);
    assert_true(first && again);
    write_weights(folder, 0);
    assert_ok(checkpoint_open(&stored, folder, NULL));
    const tensor *large = checkpoint_find(stored, "large");
    assert_non_null(large);
    assert_ok(checkpoint_read_f32(stored, large, 0, LARGE, first, NULL));
    size_t before = file_kibibytes();
    checkpoint_forget(stored, large);
    if (before > 0) assert_true(file_kibibytes() + SIZE_KIB / 2 < before);
    assert_ok(checkpoint_read_f32(stored, large, 0, LARGE, again, NULL));
    assert_memory_equal(first, again, 4 * (size_t)LARGE);
}
