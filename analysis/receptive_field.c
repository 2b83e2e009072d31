/* Finds unique distances by bisection of the position rule, composes layers as bit sets (one bit a displacement), and
 * has the formulas that papers give for the receptive field.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/receptive_field.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/synthetic.h"

deberta_status receptive_field_describe(deberta_model_info *info, const char *path, deberta_error *err)
{
    model_config config;
    synthetic_weights ignored;
    DEBERTA_TRY(synthetic_names(path) ? synthetic_parse(&config, &ignored, path, err)
                                      : config_read(&config, path, err));
    *info = (deberta_model_info){.name = path,
                                 .version = config.version,
                                 .layers = config.layers,
                                 .max_positions = config.max_positions,
                                 .max_relative_positions = config.max_relative_positions,
                                 .position_buckets = config.position_buckets,
                                 .relative_rows = config.relative_attention ? 2 * config.relative_span : 0,
                                 .has_c2p = config.c2p,
                                 .has_p2c = config.p2c,
                                 .position_biased_input = config.position_biased_input,
                                 .reference = config.reference};
    config_free(&config);
    return DEBERTA_OK;
}

/* Value for "no limit": beyond the distance at which any rule stops changing, and small enough for sums. */
static const ptrdiff_t unlimited = (ptrdiff_t)1 << 40;

static ptrdiff_t reach_of(const receptive_field *field)
{
    return field->length ? (ptrdiff_t)field->length - 1 : unlimited;
}

/* Returns the slot of a distance. Both parts of a pair grow with the distance, so their sum distinguishes pairs. */
static size_t slot_of(const receptive_field *field, ptrdiff_t distance)
{
    const size_t row = position_row(&field->rule, distance);
    return field->paired ? row + 2 * field->rule.span - 1 - position_row(&field->rule, -distance) : row;
}

/* Returns the smallest distance in [low, high] whose slot is at least `slot`; high + 1 if there is none. */
static ptrdiff_t first_with_slot(const receptive_field *field, size_t slot, ptrdiff_t low, ptrdiff_t high)
{
    ptrdiff_t end = high + 1;
    while (low < end) {
        const ptrdiff_t middle = low + (end - low) / 2;
        if (slot_of(field, middle) >= slot)
            end = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Checks that rows do not fall with the distance: at every distance near zero, and sparsely beyond. */
static bool is_monotone(const position_rule *rule, ptrdiff_t reach)
{
    const ptrdiff_t near = reach < 4096 ? reach : 4096;
    size_t last = position_row(rule, -reach);
    for (ptrdiff_t r = -near; r <= near; r++) {
        const size_t row = position_row(rule, r);
        if (row < last) return false;
        last = row;
    }
    for (ptrdiff_t r = near; r < reach; r += r / 64 + 1) {
        const size_t row = position_row(rule, r);
        if (row < last) return false;
        last = row;
    }
    return position_row(rule, reach) >= last;
}

static void find_run(receptive_field *field)
{
    field->run_left = field->run_right = 0;
    const ptrdiff_t *zero = NULL;
    for (size_t k = 0; k < field->unique_count; k++)
        if (field->unique[k] == 0) zero = &field->unique[k];
    if (!zero) return;
    const ptrdiff_t *end = field->unique + field->unique_count;
    while (zero + field->run_left + 1 < end && zero[field->run_left + 1] == (ptrdiff_t)field->run_left + 1)
        field->run_left++;
    while (zero - field->run_right > field->unique &&
           zero[-(ptrdiff_t)field->run_right - 1] == -(ptrdiff_t)field->run_right - 1)
        field->run_right++;
}

deberta_status receptive_field_make(receptive_field *field, const position_rule *rule, size_t length, bool paired,
                                    deberta_error *err)
{
    memset(field, 0, sizeof *field);
    field->rule = *rule;
    field->paired = paired;
    field->length = length;
    if (rule->span == 0) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "the model has no relative positions");
    const ptrdiff_t reach = reach_of(field);
    if (!is_monotone(rule, reach))
        DEBERTA_FAIL(
            err, DEBERTA_E_UNSUPPORTED,
            "the rows of the position table fall somewhere as the distance grows (%zu buckets, distances below %zu)",
            rule->buckets, rule->max_distance);
    const size_t slots = (paired ? 4 : 2) * rule->span;
    field->rows = scope_take(&field->memory, slots, sizeof *field->rows);
    field->unique = scope_take(&field->memory, slots, sizeof *field->unique);
    ptrdiff_t low = -reach;
    for (size_t row = 0; row < slots && low <= reach; row++) {
        const ptrdiff_t next = first_with_slot(field, row + 1, low, reach);
        if (next == low) continue;
        const bool endless = !length && (low == -reach || next == reach + 1);
        field_row *found = &field->rows[field->slots_used++];
        *found = (field_row){
            .row = row, .lowest = low, .highest = next - 1, .count = endless ? SIZE_MAX : (size_t)(next - low)};
        if (found->count == 1) field->unique[field->unique_count++] = low;
        low = next;
    }
    if (field->unique_count) {
        field->unique_min = field->unique[0];
        field->unique_max = field->unique[field->unique_count - 1];
    }
    find_run(field);
    return DEBERTA_OK;
}

/* Computes to |= from << shift, with one bit per displacement. */
static void or_shifted(uint64_t *to, const uint64_t *from, size_t words, size_t shift)
{
    const size_t skip = shift / 64, bits = shift % 64;
    for (size_t k = words; k-- > skip;) {
        uint64_t word = from[k - skip] << bits;
        if (bits && k > skip) word |= from[k - skip - 1] >> (64 - bits);
        to[k] |= word;
    }
}

size_t receptive_field_within(const receptive_field *field, size_t displacement)
{
    const size_t reach = (size_t)reach_of(field);
    return displacement < reach ? displacement : reach;
}

deberta_status receptive_field_compose(const receptive_field *field, size_t layers, composed_field *composed,
                                       deberta_error *err)
{
    if (field->unique_count == 0 || layers == 0) {
        memset(composed, 0, layers * sizeof *composed);
        return DEBERTA_OK;
    }
    const size_t width = (size_t)(field->unique_max - field->unique_min);
    size_t bits;
    if (!size_multiply(width, layers, &bits) || bits > (size_t)1 << 32)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu layers of %zu distances are too many to compose", layers, width);
    const size_t words = bits / 64 + 1;
    uint64_t *sums = memory_take(words, sizeof *sums), *next = memory_take(words, sizeof *next);
    sums[0] = 1; /* displacement 0 of no layer; bit b of k layers is displacement b + k unique_min */
    for (size_t k = 1; k <= layers; k++) {
        memset(next, 0, words * sizeof *next);
        for (size_t u = 0; u < field->unique_count; u++)
            or_shifted(next, sums, words, (size_t)(field->unique[u] - field->unique_min));
        uint64_t *swap = sums;
        sums = next;
        next = swap;
        composed_field *c = &composed[k - 1];
        *c = (composed_field){.run = 1 + receptive_field_within(field, field->run_left * k) +
                                     receptive_field_within(field, field->run_right * k)};
        const ptrdiff_t zero = -(ptrdiff_t)k * field->unique_min, reach = reach_of(field), end = (ptrdiff_t)(width * k),
                        low = zero > reach ? zero - reach : 0, high = zero + reach < end ? zero + reach : end;
#define HAS(b) ((b) >= low && (b) <= high && (sums[(b) / 64] >> ((b) % 64) & 1))
        for (ptrdiff_t b = low, first = -1; b <= high; b++) {
            if (!HAS(b)) continue;
            if (first < 0) first = b;
            c->unique_set++;
            c->hull = (size_t)(b - first) + 1;
        }
        if (HAS(zero)) {
            c->contiguous = 1;
            for (ptrdiff_t b = zero + 1; HAS(b); b++) c->contiguous++;
            for (ptrdiff_t b = zero - 1; HAS(b); b--) c->contiguous++;
        }
#undef HAS
    }
    free(sums);
    free(next);
    return DEBERTA_OK;
}

const char *field_definition_name(field_definition definition)
{
    static const char *const names[FIELD_DEFINITIONS] = {"run", "unique_set", "contiguous", "hull"};
    return names[definition];
}

size_t composed_field_value(const composed_field *composed, field_definition definition)
{
    switch (definition) {
    case FIELD_RUN: return composed->run;
    case FIELD_UNIQUE_SET: return composed->unique_set;
    case FIELD_CONTIGUOUS: return composed->contiguous;
    default: return composed->hull;
    }
}

const char *field_formula_name(field_formula formula)
{
    static const char *const names[FIELD_FORMULAS] = {"(2k-1)n", "2(k-1)n", "1+2(k-1)n", "1+(2k-1)n", "1+(2k-3)n"};
    return names[formula];
}

size_t field_formula_value(field_formula formula, size_t k, size_t n)
{
    switch (formula) {
    case FIELD_2K1N: return (2 * k - 1) * n;
    case FIELD_2K2N: return 2 * (k - 1) * n;
    case FIELD_1_2K2N: return 1 + 2 * (k - 1) * n;
    case FIELD_1_2K1N: return 1 + (2 * k - 1) * n;
    default: return k < 2 ? 1 : 1 + (2 * k - 3) * n;
    }
}

size_t receptive_field_longest_unambiguous(const position_rule *rule, deberta_error *err)
{
    if (rule->span == 0) {
        status_fail(err, DEBERTA_E_UNSUPPORTED, "the model has no relative positions");
        return 0;
    }
    size_t low = 1,
           high = 2 * rule->span + 1; /* A text of `low` tokens fits; one of `high` has more distances than rows. */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        receptive_field field;
        if (receptive_field_make(&field, rule, middle, false, err) != DEBERTA_OK) return 0;
        *(field.unique_count == 2 * middle - 1 ? &low : &high) = middle;
        scope_free(&field.memory);
    }
    return low;
}

deberta_status receptive_field_of_model(receptive_field *field, const deberta_model_info *info,
                                        deberta_reference reference, size_t length, deberta_error *err)
{
    const position_rule rule = position_rule_of(info, reference);
    return receptive_field_make(field, &rule, length, false, err);
}

size_t receptive_field_longest_of_model(const deberta_model_info *info, deberta_reference reference, deberta_error *err)
{
    const position_rule rule = position_rule_of(info, reference);
    return receptive_field_longest_unambiguous(&rule, err);
}

void receptive_field_of_token(const receptive_field *field, size_t position, size_t *unambiguous, size_t *among_own)
{
    *unambiguous = *among_own = 0;
    const ptrdiff_t lowest = (ptrdiff_t)position - (ptrdiff_t)field->length + 1, highest = (ptrdiff_t)position;
    for (size_t k = 0; k < field->slots_used; k++) {
        const field_row *row = &field->rows[k];
        const ptrdiff_t low = row->lowest > lowest ? row->lowest : lowest,
                        high = row->highest < highest ? row->highest : highest;
        if (low > high) continue;
        *among_own += low == high;
        *unambiguous += row->count == 1;
    }
}

size_t receptive_field_seeing_tokens(const receptive_field *field, size_t *first)
{
    size_t count = 0;
    for (size_t i = 0; i < field->length; i++) {
        size_t unambiguous, own;
        receptive_field_of_token(field, i, &unambiguous, &own);
        if (own == field->length && !count++) *first = i;
    }
    return count;
}
