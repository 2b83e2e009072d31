/* `encode --logits`: the word table is walked once a block of positions, not once a token, and the values are those of
 * asking for one position at a time.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_HAVE_A_MAIN
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"
#include "tests/unit/model_helpers.h"

#include <stdatomic.h>

#include "core/encode/session.h"
#include "core/io/export.h"
#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "program/frame/input/encode_logits.h"

enum { VOCABULARY = 661, ROWS = 2, COLUMNS = 30, TOKENS = 53, HOLE = 4 };

/* Reads of the decoder's table, a block of words each. Loops of a session may read at the same time. */
static weight_source counted_source;
static const weight_tensor *counted_tensor;
static atomic_size_t reads;

static deberta_status counting_read(const void *context, const weight_tensor *from, size_t first, size_t count,
                                    float *values, deberta_error *err)
{
    if (from == counted_tensor) atomic_fetch_add(&reads, 1);
    return counted_source.read(context, from, first, count, values, err);
}

typedef struct fixture {
    deberta_model *model;
    deberta_session *session;
    input_batch input;
    input_row rows[ROWS];
    int32_t ids[TOKENS];
    size_t starts[ROWS + 1];
    uint8_t mask[TOKENS];
    char *folder, path[256];
} fixture;

static void encode_hidden(fixture *f)
{
    deberta_batch batch = batch_of(f->ids, f->starts, ROWS);
    batch.mask = f->mask;
    encode_batch(f->session, &batch);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->model = open_model("synthetic:v3-base,layers=2,hidden=64,heads=4,intermediate=96,vocab=661,"
                          "buckets=16,distance=64,lm=1");
    f->session =
        open_session_with(f->model, (deberta_session_options){.threads = 2, .features = DEBERTA_KEEP_DECODER_INPUT});
    f->starts[1] = 23;
    f->starts[2] = TOKENS;
    f->rows[0] = (input_row){.first_column = 3, .tokens = 23, .sequence = 0};
    f->rows[1] = (input_row){.tokens = COLUMNS, .sequence = 1};
    for (size_t t = 0; t < TOKENS; t++) {
        f->ids[t] = (int32_t)(t * 37 % VOCABULARY);
        f->mask[t] = t != HOLE;
    }
    f->input = (input_batch){.rows = ROWS,
                             .columns = COLUMNS,
                             .row = f->rows,
                             .sequences = ROWS,
                             .tokens = TOKENS,
                             .ids = f->ids,
                             .sequence_starts = f->starts,
                             .mask = f->mask};
    f->folder = make_folder();
    snprintf(f->path, sizeof f->path, "%s/logits.safetensors", f->folder);
    encode_hidden(f);
    counted_source = f->model->source;
    counted_tensor = &f->model->tasks.mlm_decoder.stored;
    f->model->source.read = counting_read;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    FREED_BY(free_memory) fixture *f = *state;
    remove_folder(&f->folder);
    deberta_session_free(&f->session);
    deberta_model_free(&f->model);
    return 0;
}

static deberta_status write_logits(void *file, size_t row, size_t position, const float *logits, deberta_error *error)
{
    (void)position;
    return export_write(file, 0, row * VOCABULARY, logits, VOCABULARY, error);
}

static void write_logits_file(fixture *f, deberta_task task, size_t block_bytes)
{
    const export_tensor tensor = {"logits", DTYPE_F32, 3, {ROWS, COLUMNS, VOCABULARY}};
    export_file *file;
    deberta_error error;
    assert_ok(export_safetensors(&file, f->path, &tensor, 1, NULL, 0, &error));
    atomic_store(&reads, 0);
    if (encode_logits(f->session, f->model, task, &f->input, block_bytes, write_logits, file, &error) != DEBERTA_OK)
        fail_msg("%s", error.message);
    assert_ok(export_finish(&file, &error));
}

/* The file against one call a token, and zeros where there is padding or a hole. */
static void check_file(const fixture *f, deberta_task task)
{
    FREED_BY(mapped_file_close) mapped_file map;
    FREED_BY(tensor_list_free) tensor_list list;
    assert_ok(mapped_file_open(&map, f->path, NULL));
    assert_ok(safetensors_list(&list, map.bytes, map.size_bytes, "out", NULL));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            float expected[VOCABULARY] = {0}, found[VOCABULARY];
            const input_row row = f->rows[r];
            const size_t position = f->starts[r] + column - row.first_column;
            if (column >= row.first_column && column - row.first_column < row.tokens && f->mask[position])
                assert_ok(deberta_task_logits(f->session, task, &position, 1, expected, VOCABULARY, NULL));
            tensor_convert_f32(found, &list.items[0], map.bytes, (r * COLUMNS + column) * VOCABULARY, VOCABULARY);
            assert_memory_equal(found, expected, sizeof found);
        }
    }
}

TEST(the_table_is_walked_once_a_block)
{
    fixture *f = *test_state;
    const size_t row_bytes = VOCABULARY * sizeof(float);
    const struct {
        size_t block_bytes, blocks;
    } cases[] = {
        {ENCODE_LOGITS_BLOCK_BYTES, 1}, {52 * row_bytes, 1}, {51 * row_bytes, 2}, {7 * row_bytes + 1, 8}, {0, 52},
    };
    const deberta_task tasks[] = {DEBERTA_TASK_MLM, DEBERTA_TASK_MLM_EMD};
    const size_t walk = (VOCABULARY + DECODER_PANELS * PANEL - 1) / (DECODER_PANELS * PANEL);
    for (size_t t = 0; t < 2; t++) {
        FOR_ROWS(c, cases) {
            write_logits_file(f, tasks[t], cases[c].block_bytes);
            assert_int_equal(atomic_load(&reads), cases[c].blocks * walk);
            check_file(f, tasks[t]);
        }
    }
}

/* What the memory limit counts grows with the text up to a block, then only by the list of positions. */
TEST(a_block_bounds_the_memory)
{
    const fixture *f = *test_state;
    const size_t row_bytes = VOCABULARY * sizeof(float), place_bytes = 2 * sizeof(size_t);
    const deberta_task task = DEBERTA_TASK_MLM;
    assert_int_equal(encode_logits_bytes(f->model, task, 0, 10 * row_bytes), 0);
    assert_int_equal(encode_logits_bytes(f->model, task, 7, 10 * row_bytes), 7 * (row_bytes + place_bytes));
    assert_int_equal(encode_logits_bytes(f->model, task, 700, 10 * row_bytes), 10 * row_bytes + 700 * place_bytes);
    assert_int_equal(encode_logits_bytes(f->model, task, 5, 1), row_bytes + 5 * place_bytes);
    assert_int_equal(encode_logits_bytes(f->model, DEBERTA_TASK_QA, 5, 1), 0);
}

int main(void) { return run_registered_tests(set_up, tear_down); }
