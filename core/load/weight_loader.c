/* Finds, reads, scales and packs single tensors, in any pass of the loader. SPDX-License-Identifier: MIT */
#include "core/load/weight_loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { NAME_CAPACITY = 128 };

/* ------------------------------------------------------------------------------------------------ checkpoint source */

/* Records that the tensor is used. */
static deberta_status tensor_account_use(tensor_account *account, const weight_tensor *found, deberta_error *err)
{
    if (!found->name) return DEBERTA_OK;
    const char **larger = grown(account->names, &account->capacity, account->count + 1, sizeof *larger);
    if (!larger) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for an account of tensors");
    account->names = larger;
    larger[account->count++] = found->name;
    return DEBERTA_OK;
}

static bool find_in_checkpoint(const void *context, const char *name, weight_tensor *found)
{
    const tensor *stored = checkpoint_find(context, name);
    if (!stored) return false;
    *found = (weight_tensor){.place = checkpoint_place_of(stored),
                             .name = stored->name,
                             .rank = stored->rank,
                             .dtype = stored->dtype,
                             .stored = stored};
    memcpy(found->shape, stored->shape, sizeof found->shape);
    return true;
}

static deberta_status read_from_checkpoint(const void *context, const weight_tensor *from, size_t first, size_t count,
                                           float *values, deberta_error *err)
{
    return checkpoint_read_f32(context, from->stored, first, count, values, err);
}

static const float *view_in_checkpoint(const void *context, const weight_tensor *from)
{
    return checkpoint_view_f32(context, from->stored);
}

static void forget_in_checkpoint(const void *context, const weight_tensor *from)
{
    checkpoint_forget(context, from->stored);
}

static const char *next_in_checkpoint(const void *context, size_t *cursor, size_t *name_bytes, bool *is_outside)
{
    if (*cursor >= checkpoint_count(context)) return NULL;
    const tensor *stored = checkpoint_at(context, (*cursor)++);
    *name_bytes = strlen(stored->name);
    *is_outside = checkpoint_is_outside(context, stored);
    return stored->name;
}

weight_source weight_source_of_checkpoint(const checkpoint *stored)
{
    return (weight_source){
        .context = stored,
        .name = checkpoint_place(stored),
        .find = find_in_checkpoint,
        .read = read_from_checkpoint,
        .view = view_in_checkpoint,
        .forget = forget_in_checkpoint,
        .next = next_in_checkpoint,
    };
}

/* ---------------------------------------------------------------------------------------------------------- reading */

deberta_status weights_check(const weight_tensor *from, size_t first, const float *values, size_t count, float most,
                             deberta_error *err)
{
    /* What a training or a made-up model computes is no file's damage. */
    if (!from->stored || magnitudes_within(values, count, most)) return DEBERTA_OK;
    while (fabsf(*values) <= most) {
        values++;
        first++;
    }
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "%s: value %zu of tensor '%s' is %g, expected -%g to %g: weights of the model are damaged or diverged "
                 "in training",
                 from->place, first, from->name, (double)*values, (double)most, (double)most);
}

deberta_status loader_read(const weight_loader *loader, const weight_tensor *from, size_t first, size_t count,
                           float *values, deberta_error *err)
{
    DEBERTA_TRY(loader->source->read(loader->source->context, from, first, count, values, err));
    return weights_check(from, first, values, count, loader->most, err);
}

/* ---------------------------------------------------------------------------------------------------------- finding */

deberta_status loader_begin_reading(weight_loader *loader, deberta_error *err)
{
    enum { ARRAYS = 7 }; /* Carves the arrays of a spread of `channels` floats each. */
    size_t floats = 0, bytes = 0;
    if (!size_multiply(loader->scratch_floats, loader->executor->threads, &floats) ||
        !size_multiply(floats + ARRAYS * loader->channels, sizeof(float), &bytes) ||
        !(loader->scratch = malloc(bytes + 1))) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for reading weights: %zu floats a thread",
                     loader->scratch_floats);
    }
    float *spreads = loader->scratch + floats;
    loader->inputs = (channel_spread){spreads, spreads + loader->channels};
    loader->outputs = (channel_spread){spreads + 2 * loader->channels, spreads + 3 * loader->channels};
    loader->hidden = (channel_spread){spreads + 4 * loader->channels, spreads + 5 * loader->channels};
    loader->amplitudes = spreads + 6 * loader->channels;
    loader->pass = LOAD_READ;
    return DEBERTA_OK;
}

static void full_name(const weight_loader *loader, const char *name, char full[NAME_CAPACITY])
{
    snprintf(full, NAME_CAPACITY, "%s%s", loader->prefix, name);
}

bool loader_has(const weight_loader *loader, const char *name)
{
    char full[NAME_CAPACITY];
    weight_tensor ignored;
    full_name(loader, name, full);
    return loader->source->find(loader->source->context, full, &ignored);
}

static bool shape_matches(const weight_tensor *found, size_t rank, const size_t *shape)
{
    if (found->rank != rank) return false;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] != ANY_SIZE && found->shape[i] != shape[i]) return false;
    }
    return true;
}

deberta_status loader_find(weight_loader *loader, weight_tensor *found, const char *name, size_t rank,
                           const size_t *shape, deberta_error *err)
{
    char full[NAME_CAPACITY];
    full_name(loader, name, full);
    if (!loader->source->find(loader->source->context, full, found)) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' is missing", loader->source->name, full);
    }
    if (!dtype_is_floating(found->dtype)) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' has type %s, expected floating-point weights",
                     found->place, full, dtype_name(found->dtype));
    }
    if (!shape_matches(found, rank, shape)) {
        size_t wanted[TENSOR_MAX_RANK] = {0};
        for (size_t i = 0; i < rank; i++) wanted[i] = shape[i] == ANY_SIZE ? found->shape[i] : shape[i];
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' has shape %s, expected %s", found->place, full,
                     shape_describe(found->shape, found->rank).text, shape_describe(wanted, rank).text);
    }
    if (loader->pass == LOAD_CHECK && loader->account) DEBERTA_TRY(tensor_account_use(loader->account, found, err));
    if (loader->pass == LOAD_CHECK && loader->counting) {
        size_t elements = 1;
        for (size_t i = 0; i < rank; i++) elements *= found->shape[i];
        loader->parameters += elements;
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------- vectors and tables */

static void tell_vector(const weight_loader *loader, const float *vector, size_t count, const char *name)
{
    char full[NAME_CAPACITY];
    full_name(loader, name, full);
    loader->listener->on_vector(loader->listener->context, vector, count, full);
}

deberta_status loader_vector(weight_loader *loader, float **vector, const char *name, size_t count, deberta_error *err)
{
    weight_tensor found;
    DEBERTA_TRY(loader_find(loader, &found, name, 1, &count, err));
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;
    *vector = arena_take(loader->arena, round_up(count, PANEL), sizeof **vector);
    if (loader->pass == LOAD_MEASURE) return DEBERTA_OK;
    if (loader->listener) tell_vector(loader, *vector, count, name);
    if (loader->pass == LOAD_VIEW) return DEBERTA_OK;
    DEBERTA_TRY(loader_read(loader, &found, 0, count, *vector, err));
    loader_forget(loader, &found);
    return DEBERTA_OK;
}

deberta_status loader_table_into(weight_loader *loader, float *table, const char *name, size_t rows, size_t columns,
                                 deberta_error *err)
{
    weight_tensor found;
    DEBERTA_TRY(loader_find(loader, &found, name, 2, (size_t[]){rows, columns}, err));
    if (loader->pass != LOAD_READ) return DEBERTA_OK;
    for (size_t row = 0; row < rows; row++) {
        DEBERTA_TRY(loader_read(loader, &found, row * columns, columns, table + row * row_stride(columns), err));
    }
    loader_forget(loader, &found);
    return DEBERTA_OK;
}

deberta_status loader_table(weight_loader *loader, float **table, const char *name, size_t rows, size_t columns,
                            deberta_error *err)
{
    size_t floats = 0;
    if (loader->pass != LOAD_CHECK) {
        if (!size_multiply(rows, row_stride(columns), &floats)) loader->arena->overflow = true;
        *table = arena_take(loader->arena, floats, sizeof **table);
    }
    return loader_table_into(loader, *table, name, rows, columns, err);
}
