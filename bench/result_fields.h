/* Describes the members of bench results once, for the writer and the reader of the JSON, for CSV and for tables.
 * Private to results*.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/trends.h"
#include "output/record.h"

/* The fields of a bench_result, without its samples, lengths and breakdown. */
enum { BENCH_MOST_RESULT_FIELDS = 64 };
extern const record_field bench_result_fields[];
/* The fields of bench_results: the environment, without tiers, roofs and notes; and its object "caches". */
extern const record_field bench_environment_fields[], bench_cache_fields[];
/* The fields of a machine_roof. */
extern const record_field bench_roof_fields[];
/* The fields of a bench_stage; a part of a stage has only the first two. */
extern const record_field bench_stage_fields[], bench_part_fields[];
/* The fields of a bench_then. */
extern const record_field bench_then_fields[];

/* Adds environment, results and trends as members of the result's JSON. */
void bench_results_add_json(result *r, const bench_results *results, const trend_list *trends);
