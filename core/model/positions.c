/* Maps a relative position (query minus key) to a row of the relative table: logarithmic buckets, clamped distances,
 * and the map of a session.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/positions.h"
#include "include/deberta_unstable.h"

#include <math.h>

position_rule position_rule_make(const model_config *config, deberta_reference reference)
{
    if (reference == DEBERTA_REFERENCE_AUTO) reference = config->reference;
    return (position_rule){
        .span = config->relative_attention ? config->relative_span : 0,
        .buckets = config->position_buckets,
        .max_distance = config->max_relative_positions,
        .clamp_distance = reference == DEBERTA_REFERENCE_MICROSOFT,
    };
}

position_rule position_rule_of(const deberta_model_info *info, deberta_reference reference)
{
    if (reference == DEBERTA_REFERENCE_AUTO) reference = info->reference;
    return (position_rule){.span = info->relative_rows / 2,
                           .buckets = info->position_buckets,
                           .max_distance = info->max_relative_positions,
                           .clamp_distance = reference == DEBERTA_REFERENCE_MICROSOFT};
}

/* Computes ceil(log(d / mid) / log((M - 1) / mid) (mid - 1)) + mid for d > mid. Both logarithms are the same
 * expression, so that the quotient at d = M - 1 is exactly 1 and the ceiling does not step over it. */
static ptrdiff_t logarithmic_bucket(const position_rule *rule, size_t distance)
{
    double middle = (double)(rule->buckets / 2);
    double ratio = log((double)distance / middle) / log((double)(rule->max_distance - 1) / middle);
    double steps = ceil(ratio * (middle - 1));
    /* With M - 1 < mid the bucket falls with the distance, as in transformers; with M - 1 = mid it is infinite. Neither
     * may overflow. */
    double bucket = isfinite(steps) ? steps + middle : (double)rule->buckets, most = 2.0 * (double)rule->buckets;
    return (ptrdiff_t)fmax(-most, fmin(bucket, most));
}

size_t deberta_position_row(const deberta_model_info *info, deberta_reference reference, ptrdiff_t distance)
{
    const position_rule rule = position_rule_of(info, reference);
    return rule.span > 0 ? position_row(&rule, distance) : 0;
}

ptrdiff_t position_bucket(const position_rule *rule, ptrdiff_t distance)
{
    if (rule->buckets == 0) return distance;
    size_t magnitude = distance < 0 ? (size_t)-distance : (size_t)distance;
    if (rule->clamp_distance && magnitude >= rule->max_distance) magnitude = rule->max_distance - 1;
    ptrdiff_t bucket = magnitude <= rule->buckets / 2 ? (ptrdiff_t)magnitude : logarithmic_bucket(rule, magnitude);
    return distance < 0 ? -bucket : bucket;
}

size_t position_row(const position_rule *rule, ptrdiff_t distance)
{
    if (rule->row) return rule->row(rule, distance);
    ptrdiff_t rows = 2 * (ptrdiff_t)rule->span;
    ptrdiff_t row = position_bucket(rule, distance) + (ptrdiff_t)rule->span;
    return (size_t)(row < 0 ? 0 : row >= rows ? rows - 1 : row);
}

/* Derives the facts from the rule, not the tables, because sizes of other pieces depend on them even while only
 * measuring. */
static void find_facts(position_map *map, const position_rule *rule)
{
    ptrdiff_t reach = map->reach;
    int32_t leftmost = (int32_t)position_row(rule, reach), previous = (int32_t)position_row(rule, -reach);
    bool saturated = true;
    map->monotone = map->unit_steps = true;
    map->lowest = map->highest = previous;
    map->far_left = map->far_right = -reach;
    for (ptrdiff_t r = -reach + 1; r <= reach; r++) {
        int32_t row = (int32_t)position_row(rule, r), step = row - previous;
        if (step < 0) map->monotone = false;
        if (step < 0 || step > 1) map->unit_steps = false;
        if (row < map->lowest) map->lowest = row;
        if (row > map->highest) map->highest = row;
        saturated = saturated && step == 0;
        if (saturated) map->far_right = r;
        if (row == leftmost && previous != leftmost) map->far_left = r;
        previous = row;
    }
}

void position_map_carve(position_map *map, arena *memory, const position_rule *rule, size_t tokens)
{
    *map = (position_map){0};
    if (rule->span == 0) return;
    map->reach = (ptrdiff_t)(tokens + POSITION_SLACK);
    map->last_row = (int32_t)(2 * rule->span - 1);
    find_facts(map, rule);
    size_t entries = 2 * (size_t)map->reach + 1;
    int32_t *row_of = arena_take(memory, entries, sizeof *row_of);
    int32_t *position_of = arena_take(memory, entries, sizeof *position_of);
    if (!row_of || !position_of) return;
    row_of += map->reach;
    position_of += map->reach;
    for (ptrdiff_t r = -map->reach; r <= map->reach; r++) {
        row_of[r] = (int32_t)position_row(rule, r);
        position_of[-r] = map->last_row - row_of[r];
    }
    map->row_of = row_of;
    map->position_of = position_of;
}
