/* Writes a drawn case as files. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/io/export.h"
#include "tests/drawn/drawn_case.h"

/* Tensors of a batch, each of int64 but for two. */
enum { MOST_TENSORS = 9 };

typedef struct batch_tensors {
    export_tensor declared[MOST_TENSORS];
    const void *values[MOST_TENSORS];
    size_t counts[MOST_TENSORS], count;
} batch_tensors;

static void drawn_files_add(batch_tensors *to, const char *name, tensor_dtype dtype, size_t rank, const size_t *shape,
                            const void *values)
{
    export_tensor *declared = &to->declared[to->count];
    *declared = (export_tensor){.name = name, .dtype = dtype, .rank = rank};
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) count *= declared->shape[i] = shape[i];
    to->values[to->count] = values;
    to->counts[to->count++] = count;
}

/* Rows of tokens: [steps?][questions][choices?][columns]. */
static void list_tensors(const drawn_case *c, bool has_steps, const int64_t *mask, batch_tensors *to)
{
    const exact_batch *b = &c->batch;
    const bool choice = b->task == EXACT_CHOICES;
    const bool by_token = exact_labels_tokens(b->task);
    size_t shape[5] = {1}, rank = has_steps;
    shape[rank++] = b->sequences / b->choices;
    const size_t questions = rank;
    if (choice) shape[rank++] = b->choices;
    const size_t sequences = rank;
    shape[rank++] = b->columns;
    drawn_files_add(to, "input_ids", DTYPE_I64, rank, shape, c->ids);
    drawn_files_add(to, "attention_mask", DTYPE_I64, rank, shape, mask);
    if (b->types) drawn_files_add(to, "token_type_ids", DTYPE_I64, rank, shape, b->types);
    if (b->positions) drawn_files_add(to, "position_ids", DTYPE_I64, rank, shape, b->positions);
    if (c->task->pairs_up) drawn_files_add(to, "sampled_ids", DTYPE_I64, rank, shape, c->sampled);
    if (b->task == EXACT_ANSWERS) {
        drawn_files_add(to, "start_positions", DTYPE_I64, sequences, shape, b->starts);
        drawn_files_add(to, "end_positions", DTYPE_I64, sequences, shape, b->ends);
    } else if (b->task == EXACT_VALUES) {
        drawn_files_add(to, "labels", DTYPE_F32, questions, shape, b->targets);
    } else {
        drawn_files_add(to, "labels", DTYPE_I64, by_token ? rank : questions, shape, b->labels);
    }
    if (b->sift_weight > 0) {
        shape[rank] = c->model.config.hidden_size;
        drawn_files_add(to, "delta", DTYPE_F32, rank + 1, shape, b->delta);
    }
}

deberta_status drawn_batch_save(const drawn_case *c, const char *folder, const char *name, bool has_steps,
                                deberta_error *err)
{
    const size_t cells = c->batch.sequences * c->batch.columns;
    batch_tensors tensors = {0};
    export_file *file = NULL;
    char *path = path_join(folder, name);
    int64_t *mask = memory_take(cells, sizeof *mask);
    if (!path) memory_short();
    for (size_t k = 0; k < cells; k++) mask[k] = c->mask[k];
    list_tensors(c, has_steps, mask, &tensors);
    deberta_status status = export_safetensors(&file, path, tensors.declared, tensors.count, NULL, 0, err);
    for (size_t i = 0; status == DEBERTA_OK && i < tensors.count; i++)
        status = export_write(file, i, 0, tensors.values[i], tensors.counts[i], err);
    if (status == DEBERTA_OK)
        status = export_finish(&file, err);
    else
        export_discard(&file);
    free(mask);
    free(path);
    return status;
}

static deberta_status save_model(const drawn_model *model, const char *folder, const char *name, deberta_error *err)
{
    char *path = path_join(folder, name);
    deberta_status status = DEBERTA_OK;
    if (!path || mkdir(path, 0700) != 0)
        status = status_fail(err, DEBERTA_E_FILE, "%s/%s cannot be made", folder, name);
    if (status == DEBERTA_OK) status = drawn_model_save(model, path, err);
    free(path);
    return status;
}

/* Half of the weights get another last bit; once more, and they are as they were. */
static void flip_last_bits(const drawn_model *model, uint64_t state)
{
    for (size_t i = 0; i < model->count; i++)
        for (size_t e = 0; e < model->tensors[i].count; e++) {
            uint32_t bits;
            memcpy(&bits, &model->tensors[i].values[e], sizeof bits);
            bits ^= (uint32_t)(random_next(&state) >> 63);
            memcpy(&model->tensors[i].values[e], &bits, sizeof bits);
        }
}

deberta_status drawn_case_save_nudged(const drawn_case *c, const char *folder, uint64_t seed, deberta_error *err)
{
    if (mkdir(folder, 0700) != 0) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s cannot be made", folder);
    flip_last_bits(&c->model, seed);
    flip_last_bits(&c->generator, seed);
    const deberta_status status = drawn_case_save(c, folder, err);
    flip_last_bits(&c->model, seed);
    flip_last_bits(&c->generator, seed);
    return status;
}

deberta_status drawn_case_save(const drawn_case *c, const char *folder, deberta_error *err)
{
    DEBERTA_TRY(save_model(&c->model, folder, "model", err));
    if (c->task->pairs_up) DEBERTA_TRY(save_model(&c->generator, folder, "generator", err));
    DEBERTA_TRY(drawn_batch_save(c, folder, "batch.safetensors", false, err));
    return drawn_batch_save(c, folder, "batches.safetensors", true, err);
}
