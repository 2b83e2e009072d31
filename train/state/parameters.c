/* Reads, finds, freezes and adds tensors of a model's files; the engine uses the set as a source of weights.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/parameters.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/checkpoint.h"

const char *const shared_tables[SHARED_TABLES] = {"embeddings.word_embeddings.weight",
                                                  "embeddings.position_embeddings.weight"};
const char *const shared_differences[SHARED_TABLES] = {"embeddings.word_embeddings._weight",
                                                       "embeddings.position_embeddings._weight"};

static void free_parameter(parameter *p)
{
    free(p->name);
    free(p->stored_name);
    free(p->values);
    free(p->gradient);
}

/* ---------------------------------------------------------------------------------------------------------- reading */

deberta_status parameter_allocate(parameter *p, deberta_error *err)
{
    p->values = large_floats(p->count + 1);
    p->gradient = large_floats(p->count + 1);
    if (!p->name || !p->stored_name || !p->values || !p->gradient) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for tensor '%s' and its gradient", p->name ? p->name : "");
    }
    return DEBERTA_OK;
}

static deberta_status read_parameter(parameter *p, const checkpoint *files, const tensor *stored, deberta_error *err)
{
    p->name = strdup(stored->name);
    p->stored_name = strdup(checkpoint_stored_name(stored));
    p->rank = stored->rank;
    memcpy(p->shape, stored->shape, sizeof p->shape);
    p->count = stored->elements;
    p->trained = strncmp(stored->name, "proj.", 5) != 0; /* Microsoft's NER head, which is read but not trained */
    DEBERTA_TRY(parameter_allocate(p, err));
    return checkpoint_read_f32(files, stored, 0, p->count, p->values, err);
}

static deberta_status parameters_read_all(parameter_set *set, const checkpoint *files, deberta_error *err)
{
    const size_t count = checkpoint_count(files);
    set->capacity = count + 1;
    set->items = calloc(set->capacity, sizeof *set->items);
    if (!set->items) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %zu tensors", count);
    for (size_t i = 0; i < count; i++) {
        const tensor *stored = checkpoint_at(files, i);
        if (!dtype_is_floating(stored->dtype)) continue;
        DEBERTA_TRY(read_parameter(&set->items[set->count++], files, stored, err));
        checkpoint_forget(files, stored);
    }
    return DEBERTA_OK;
}

deberta_status parameter_set_read(parameter_set *set, const char *folder, deberta_error *err)
{
    checkpoint *files = NULL;
    *set = (parameter_set){.name = strdup(folder)};
    deberta_status status = set->name ? checkpoint_open(&files, folder, err)
                                      : status_fail(err, DEBERTA_E_MEMORY, "no memory for a model's name");
    if (status == DEBERTA_OK) status = parameters_read_all(set, files, err);
    if (status == DEBERTA_OK) status = checkpoint_intact(files, err);
    checkpoint_close(&files);
    if (status != DEBERTA_OK) parameter_set_free(set);
    return status;
}

/* Returns its stored name with "_weight" for "weight". */
static char *name_beside(const parameter *beside)
{
    static const char old_end[] = "weight", new_end[] = "_weight";
    const size_t kept = strlen(beside->stored_name) - (sizeof old_end - 1);
    char *stored = malloc(kept + sizeof new_end);
    if (!stored) return NULL;
    memcpy(stored, beside->stored_name, kept);
    memcpy(stored + kept, new_end, sizeof new_end);
    return stored;
}

deberta_status parameter_set_add(parameter_set *set, const char *name, const char *beside, deberta_error *err)
{
    const parameter *like = parameter_find(set, beside);
    if (!like || parameter_find(set, name)) return DEBERTA_OK;
    parameter added = {.name = strdup(name), .rank = like->rank, .count = like->count, .made = true, .trained = true};
    added.stored_name = name_beside(like);
    memcpy(added.shape, like->shape, sizeof added.shape);
    deberta_status status = parameter_allocate(&added, err);
    parameter *items = status == DEBERTA_OK ? realloc(set->items, (set->count + 1) * sizeof *items) : NULL;
    if (!items) {
        free_parameter(&added);
        return status == DEBERTA_OK ? status_fail(err, DEBERTA_E_MEMORY, "no memory for tensor '%s'", name) : status;
    }
    size_t at = 0;
    while (at < set->count && strcmp(items[at].name, name) < 0) at++;
    memmove(items + at + 1, items + at, (set->count - at) * sizeof *items);
    items[at] = added;
    set->items = items;
    set->capacity = ++set->count;
    return DEBERTA_OK;
}

void parameter_set_free(parameter_set *set)
{
    for (size_t i = 0; i < set->count; i++) free_parameter(&set->items[i]);
    free(set->items);
    free(set->name);
    *set = (parameter_set){0};
}

/* --------------------------------------------------------------------------------------------------------- changing */

parameter *parameter_set_append(parameter_set *set, const char *name, const char *prefix, size_t rank,
                                const size_t *shape)
{
    parameter *items = grown(set->items, &set->capacity, set->count + 1, sizeof *items);
    if (!items) return NULL;
    set->items = items;
    parameter *p = &items[set->count];
    *p = (parameter){.name = strdup(name), .rank = rank, .count = 1, .trained = true};
    if (asprintf(&p->stored_name, "%s%s", prefix, name) < 0) p->stored_name = NULL;
    for (size_t i = 0; i < rank; i++) p->count *= p->shape[i] = shape[i];
    p->values = large_floats(p->count + 1);
    p->gradient = large_floats(p->count + 1);
    if (p->name && p->stored_name && p->values && p->gradient) {
        set->count++;
        return p;
    }
    free_parameter(p);
    return NULL;
}

static void remove_at(parameter_set *set, size_t i)
{
    free_parameter(&set->items[i]);
    memmove(set->items + i, set->items + i + 1, (--set->count - i) * sizeof *set->items);
}

void parameter_set_remove(parameter_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->items[i].name, name) != 0) continue;
        remove_at(set, i);
        return;
    }
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const parameter *)a)->name, ((const parameter *)b)->name);
}

void parameter_set_sort(parameter_set *set) { qsort(set->items, set->count, sizeof *set->items, compare_items); }

static bool fits(const parameter *p, const char *pattern)
{
    return fnmatch(pattern, p->name, 0) == 0 || fnmatch(pattern, p->stored_name, 0) == 0;
}

size_t parameter_set_freeze(parameter_set *set, const char *pattern)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (!fits(&set->items[i], pattern)) continue;
        set->items[i].trained = false;
        count++;
    }
    return count;
}

bool parameter_set_is_trained(const parameter_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].trained) return true;
    return false;
}

size_t parameter_set_drop(parameter_set *set, const char *pattern)
{
    const size_t before = set->count;
    for (size_t i = set->count; i-- > 0;)
        if (fits(&set->items[i], pattern)) remove_at(set, i);
    return before - set->count;
}

/* ---------------------------------------------------------------------------------------------------------- finding */

static int compare_name(const void *name, const void *item) { return strcmp(name, ((const parameter *)item)->name); }

parameter *parameter_find(const parameter_set *set, const char *name)
{
    /* A learner over an open model has no parameters, but bsearch needs an address even of an empty list. */
    return set->count ? bsearch(name, set->items, set->count, sizeof *set->items, compare_name) : NULL;
}

static bool source_find(const void *context, const char *name, weight_tensor *found)
{
    const parameter_set *set = context;
    parameter *p = parameter_find(set, name);
    if (!p) return false;
    *found =
        (weight_tensor){.place = set->name, .rank = p->rank, .dtype = DTYPE_F32, .index = (size_t)(p - set->items)};
    memcpy(found->shape, p->shape, sizeof p->shape);
    return true;
}

static deberta_status source_read(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const parameter_set *set = context;
    (void)err;
    memcpy(values, set->items[from->index].values + first, count * sizeof *values);
    return DEBERTA_OK;
}

static const float *source_view(const void *context, const weight_tensor *from)
{
    return ((const parameter_set *)context)->items[from->index].values;
}

weight_source parameter_set_source(parameter_set *set)
{
    return (weight_source){
        .context = set, .name = set->name, .find = source_find, .read = source_read, .view = source_view};
}

/* -------------------------------------------------------------------------------------------------------- gradients */

/* Floats and rows of a task; number of rows whose sums wait for being added. */
enum { TASK_FLOATS = 1 << 18, NORM_TASK_ROWS = 64, NORM_ROWS_AT_ONCE = 4096 };

static void clear_task(void *context, size_t task, size_t worker)
{
    const parameter *p = context;
    const size_t first = task * TASK_FLOATS, left = p->count - first;
    (void)worker;
    memset(p->gradient + first, 0, (left < TASK_FLOATS ? left : TASK_FLOATS) * sizeof(float));
}

void parameter_set_clear_gradients(const parameter_set *set, executor *by)
{
    executor_begin(by);
    for (size_t i = 0; i < set->count; i++)
        parallel_for(by, (set->items[i].count + TASK_FLOATS - 1) / TASK_FLOATS, clear_task, &set->items[i]);
    executor_end(by);
}

/* Products of floats are exact in double. */
static double sum_of_squares(const float *x, size_t count)
{
    double partials[PANEL] = {0};
    size_t e = 0;
    for (; e + PANEL <= count; e += PANEL)
        for (size_t l = 0; l < PANEL; l++) partials[l] += (double)x[e + l] * (double)x[e + l];
    for (size_t l = 0; e < count; e++, l++) partials[l] += (double)x[e] * (double)x[e];
    for (size_t half = PANEL / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) partials[l] += partials[l + half];
    return partials[0];
}

typedef struct norm_job {
    const parameter *parameter;
    double sums[NORM_ROWS_AT_ONCE];
    size_t first, rows, columns;
} norm_job;

static void parameters_norm_task(void *context, size_t task, size_t worker)
{
    norm_job *job = context;
    const size_t first = task * NORM_TASK_ROWS, left = job->rows - first;
    (void)worker;
    for (size_t row = first; row < first + (left < NORM_TASK_ROWS ? left : NORM_TASK_ROWS); row++)
        job->sums[row] = sum_of_squares(job->parameter->gradient + (job->first + row) * job->columns, job->columns);
}

/* Computes the rows on all threads, then adds them in order. */
static double squares_of(const parameter *p, executor *by)
{
    const size_t rows = p->rank > 1 ? p->shape[0] : 1;
    norm_job job = {.parameter = p, .columns = rows ? p->count / rows : 0};
    double sum = 0;
    for (; job.first < rows; job.first += NORM_ROWS_AT_ONCE) {
        job.rows = rows - job.first < NORM_ROWS_AT_ONCE ? rows - job.first : NORM_ROWS_AT_ONCE;
        parallel_for(by, (job.rows + NORM_TASK_ROWS - 1) / NORM_TASK_ROWS, parameters_norm_task, &job);
        for (size_t row = 0; row < job.rows; row++) sum += job.sums[row];
    }
    return sum;
}

double parameter_set_norm(const parameter_set *set, executor *by)
{
    double sum = 0;
    executor_begin(by);
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].trained) sum += squares_of(&set->items[i], by);
    executor_end(by);
    return sqrt(sum);
}

const parameter *parameter_set_not_finite(const parameter_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const parameter *p = &set->items[i];
        for (size_t e = 0; p->trained && e < p->count; e++)
            if (!isfinite(p->gradient[e])) return p;
    }
    return NULL;
}
