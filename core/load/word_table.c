/* Reads word rows where they lie, and rounds them in low precision. SPDX-License-Identifier: MIT */
#include "core/load/word_table.h"

#include <stdlib.h>
#include <string.h>

static size_t word_table_rows_of(const word_table *table) { return table->stored.shape[0]; }
static size_t word_table_width_of(const word_table *table) { return table->stored.shape[1]; }

static size_t scales_bytes(const word_table *table)
{
    return round_up(word_table_rows_of(table) * sizeof(float), ARENA_ALIGNMENT_BYTES);
}

size_t word_table_bytes(const word_table *table)
{
    if (!table->digits) return 0;
    return scales_bytes(table) +
           round_up(word_table_rows_of(table) * word_table_width_of(table) * table->digits, ARENA_ALIGNMENT_BYTES);
}

void word_table_view(word_table *table, const void *memory)
{
    table->scales = memory;
    table->integers = (const uint8_t *)memory + scales_bytes(table);
}

/* Returns the largest |w|. */
static float largest_of(const float *row, size_t width)
{
    int32_t most = 0;
    for (size_t e = 0; e < width; e++) {
        const int32_t bits = magnitude_bits(row[e]);
        most = bits > most ? bits : most;
    }
    return magnitude_of_bits(most);
}

/* Returns a row's scale, and in *inverse the factor that makes its weights integers; 0: all of them become 0. */
static float scale_of(const word_table *table, const float *row, float *inverse)
{
    const float most = table->digits == 1 ? INT8_MAX : INT16_MAX;
    const float largest = largest_of(row, word_table_width_of(table));
    *inverse = largest >= 0x1p-100f ? most / largest : 0;
    return *inverse > 0 ? largest / most : 0;
}

static void round_row(const word_table *table, float *row)
{
    float inverse;
    const float scale = scale_of(table, row, &inverse);
    const size_t width = word_table_width_of(table);
    if (inverse > 0)
        for (size_t e = 0; e < width; e++) row[e] = whole_number(row[e] * inverse) * scale;
    else
        for (size_t e = 0; e < width; e++) row[e] = 0 * scale;
}

static void store_row(const word_table *table, size_t row, const float *from, float *scales, void *integers)
{
    float inverse;
    const size_t width = word_table_width_of(table), at = row * width;
    int8_t *bytes = integers;
    int16_t *pairs = integers;
    scales[row] = scale_of(table, from, &inverse);
    for (size_t e = 0; e < width; e++) {
        const float value = inverse > 0 ? whole_number(from[e] * inverse) : 0;
        if (table->digits == 1)
            bytes[at + e] = (int8_t)value;
        else
            pairs[at + e] = (int16_t)value;
    }
}

static deberta_status read_stored(const word_table *table, const weight_source *source, size_t first, size_t rows,
                                  float *values, deberta_error *err)
{
    const size_t width = word_table_width_of(table);
    DEBERTA_TRY(source->read(source->context, &table->stored, first * width, rows * width, values, err));
    return weights_check(&table->stored, first * width, values, rows * width, LARGEST_WEIGHT, err);
}

deberta_status word_table_store(const word_table *table, const weight_source *source, void *memory, deberta_error *err)
{
    enum { ROWS = 64 };
    const size_t rows = word_table_rows_of(table), width = word_table_width_of(table);
    float *values = malloc(ROWS * width * sizeof *values), *scales = memory;
    deberta_status status = DEBERTA_OK;
    if (!values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %d rows of %zu weights", ROWS, width);
    memset(memory, 0, word_table_bytes(table));
    for (size_t first = 0; first < rows && status == DEBERTA_OK; first += ROWS) {
        const size_t count = minimum(ROWS, rows - first);
        status = read_stored(table, source, first, count, values, err);
        for (size_t k = 0; k < count && status == DEBERTA_OK; k++)
            store_row(table, first + k, values + k * width, scales, (uint8_t *)memory + scales_bytes(table));
    }
    if (source->forget) source->forget(source->context, &table->stored);
    free(values);
    return status;
}

/* Reads one row of the stored integers. */
static void word_table_read_row(const word_table *table, size_t row, float *values)
{
    const size_t width = word_table_width_of(table);
    const float scale = table->scales[row];
    const int8_t *bytes = (const int8_t *)table->integers + row * width;
    const int16_t *pairs = (const int16_t *)table->integers + row * width;
    if (table->digits == 1)
        for (size_t e = 0; e < width; e++) values[e] = (float)bytes[e] * scale;
    else
        for (size_t e = 0; e < width; e++) values[e] = (float)pairs[e] * scale;
}

deberta_status word_table_read(const word_table *table, const weight_source *source, size_t first, size_t rows,
                               float *values, deberta_error *err)
{
    const size_t width = word_table_width_of(table);
    if (!table->integers) DEBERTA_TRY(read_stored(table, source, first, rows, values, err));
    for (size_t k = 0; k < rows; k++) {
        if (table->integers)
            word_table_read_row(table, first + k, values + k * width);
        else if (table->digits)
            round_row(table, values + k * width);
    }
    return DEBERTA_OK;
}
