/* Fills the tables of results and the sentences around them. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "bench/result_fields.h"

/* Writes "16+40+128" for a ragged batch, else nothing; it is cut at the end of the cell. */
static void write_lengths(char cell[RECORD_CELL_BYTES], const bench_result *r)
{
    size_t used = 0;
    *cell = '\0';
    for (size_t i = 0; r->lengths && i < r->batch && used < RECORD_CELL_BYTES; i++)
        used += (size_t)snprintf(cell + used, RECORD_CELL_BYTES - used, "%s%zu", i ? "+" : "", r->lengths[i]);
}

static bool is_length(const record_field *field) { return strcmp(field->name, "n") == 0; }

/* Writes a cell of the text tables: times have four significant figures, down to ten microseconds, and ragged batches
 * all their lengths. */
static void write_cell(char cell[RECORD_CELL_BYTES], const record_field *field, const bench_result *r, bool people)
{
    const int digits = r->time.median >= 1e-3 ? 3 : r->time.median >= 1e-4 ? 4 : 5;
    if (people && is_length(field) && r->lengths)
        write_lengths(cell, r);
    else
        record_cell(cell, field, r, people, digits);
}

/* Returns true if all rows agree; `cell` then holds their value. */
static bool is_constant(const bench_results *results, const record_field *field, char cell[RECORD_CELL_BYTES])
{
    char other[RECORD_CELL_BYTES];
    write_cell(cell, field, &results->result[0], true);
    for (size_t i = 1; i < results->count; i++) {
        write_cell(other, field, &results->result[i], true);
        if (strcmp(cell, other) != 0) return false;
    }
    return true;
}

/* Returns true if a column is shown: the text form leaves out constant settings, except lengths, which readers look
 * for first. */
static bool is_shown(const bench_results *results, const record_field *field, bool people)
{
    char cell[RECORD_CELL_BYTES];
    if (!people) return true;
    if (!field->title) return false;
    if (is_length(field) || !is_constant(results, field, cell)) return true;
    return !field->identifies && *cell;
}

static void say_caption(result *r, const bench_results *results)
{
    char cell[RECORD_CELL_BYTES];
    const char *separator = "";
    result_say(r, "%s", "");
    for (const record_field *field = bench_result_fields; field->name; field++) {
        if (!field->title || !field->identifies || !is_constant(results, field, cell)) continue;
        result_say_more(r, "%s%s %s", separator, field->title, cell);
        separator = ", ";
    }
}

/* Adds the points, to the text form or to CSV, which has everything in units of the JSON. */
static result_table *add_points(result *r, const bench_results *results, bool people)
{
    char cell[RECORD_CELL_BYTES];
    const record_field *shown[BENCH_MOST_RESULT_FIELDS];
    size_t count = 0;
    result_table *table = result_add_table(r, NULL, NULL, NULL);
    for (const record_field *field = bench_result_fields; field->name; field++)
        if (is_shown(results, field, people)) shown[count++] = field;
    for (size_t k = 0; k < count; k++)
        result_add_column(table, COLUMN_TEXT, NULL, "%s", people ? shown[k]->title : shown[k]->name);
    if (!people) result_add_column(table, COLUMN_TEXT, NULL, "lengths");
    for (size_t i = 0; i < results->count; i++) {
        for (size_t k = 0; k < count; k++) {
            write_cell(cell, shown[k], &results->result[i], people);
            cell_text(table, "%s", cell);
        }
        write_lengths(cell, &results->result[i]);
        if (!people) cell_text(table, "%s", cell);
    }
    return table;
}

/* ------------------------------------------------------------------------------------------------------- breakdowns */

/* Limits to compare a stage with: the best of the machine, and those between the encodes. */
typedef struct stage_peaks {
    double burst, then;
} stage_peaks;

static double percent_of(double rate, double peak) { return rate > 0 && peak > 0 ? 100 * rate / peak : NAN; }

static void add_stage(result_table *table, const char *name, const bench_stage *stage, double wall, stage_peaks peaks)
{
    const double rate = stage->seconds > 0 ? stage->gflop / stage->seconds : 0;
    const bool counted = stage->bytes >= 0;
    cell_text(table, "%s", name);
    cell_real(table, 1e3 * stage->seconds);
    cell_real(table, 100 * stage->seconds / wall);
    cell_positive(table, stage->gflop);
    cell_real(table, stage->gflop > 0 ? rate : NAN);
    cell_real(table, percent_of(rate, peaks.burst));
    cell_real(table, percent_of(rate, peaks.then));
    cell_real(table, counted ? 1e-6 * stage->bytes : NAN);
    cell_real(table, !counted ? NAN : stage->seconds > 0 ? 1e-9 * stage->bytes / stage->seconds : 0);
}

static void add_parts(result_table *table, const bench_result *r, stage_peaks peaks)
{
    for (int p = 0; p < PROFILE_PARTS; p++) {
        char name[32];
        bench_stage part = r->parts[p];
        part.bytes = -1;
        snprintf(name, sizeof name, "- %s", cost_part_name((profile_part)p));
        if (part.seconds > 0) add_stage(table, name, &part, r->breakdown_s, peaks);
    }
}

static void add_breakdown(result *to, const bench_results *results, const bench_result *r)
{
    static const result_column columns[] = {{"stage", NULL, COLUMN_TEXT, NULL, 0},
                                            {"ms", NULL, COLUMN_REAL, "%.3f", 0},
                                            {"% of time", NULL, COLUMN_REAL, "%.1f", 0},
                                            {"GFLOP", NULL, COLUMN_REAL, "%.4f", 0},
                                            {"GFLOP/s", NULL, COLUMN_REAL, "%.1f", 0},
                                            {"% of peak", NULL, COLUMN_REAL, "%.1f", 0},
                                            {"% of peak then", NULL, COLUMN_REAL, "%.1f", 0},
                                            {"MB", NULL, COLUMN_REAL, "%.2f", 0},
                                            {"GB/s", NULL, COLUMN_REAL, "%.2f", 0},
                                            {.name = NULL}};
    deberta_isa isa = DEBERTA_ISA_AUTO;
    deberta_isa_from_name(&isa, r->isa, NULL);
    const machine_roofs *roofs = &results->sheet.roofs;
    const bench_then *then = &r->breakdown_peak_then;
    const stage_peaks of_floats = {machine_peak_gflops(roofs, isa, r->threads), then->gflops},
                      of_precision = {machine_peak_of(roofs, isa, r->threads, bench_precision(r)),
                                      machine_rate_of(then->gflops, then->gops, bench_precision(r))};
    char n[RECORD_CELL_BYTES];
    snprintf(n, sizeof n, "%zu", r->n);
    if (r->lengths) write_lengths(n, r);
    result_say(to, "n = %s, batch %zu, %zu layers, %s, %zu thread%s, attention %s, position cache %s", n, r->batch,
               r->layers, r->isa, r->threads, r->threads == 1 ? "" : "s", r->attention,
               r->position_cache ? "on" : "off");
    result_table *table = result_add_table(to, NULL, NULL, columns);
    bench_stage total = {.seconds = r->breakdown_s};
    for (int s = 0; s < PROFILE_STAGES; s++) {
        const bench_stage *stage = &r->breakdown[s];
        if (stage->seconds == 0 && (s == PROFILE_TASKS || stage->bytes == 0)) continue;
        const stage_peaks own =
            cost_stage_is_of_integers((profile_stage)s, bench_precision(r)) ? of_precision : of_floats;
        add_stage(table, cost_stage_name((profile_stage)s), stage, r->breakdown_s, own);
        if (s == PROFILE_ATTENTION) add_parts(table, r, own);
        total.gflop += stage->gflop;
        total.bytes += stage->bytes;
    }
    add_stage(table, "waiting", &(bench_stage){.seconds = r->waiting_s}, r->breakdown_s, of_precision);
    add_stage(table, "all", &total, r->breakdown_s, of_precision);
}

/* ------------------------------------------------------------------------------------------------------ the machine */

/* Describes the environment in a few lines, with reasons why its numbers may be off. */
static void say_environment(result *r, const bench_results *results)
{
    const machine_sheet *s = &results->sheet;
    const topology_info *t = &s->topology;
    result_say(r, "deberta %s, commit %s%s, %s %s", s->version, *s->commit ? s->commit : "unknown",
               s->dirty ? " with changes" : "", s->compiler, s->flags);
    result_say(r, "%s, %zu of %zu cores usable, L1d %zu KiB, L2 %zu KiB, L3 %zu KiB, %.1f GiB%s, %s", s->cpu,
               t->usable_cores, t->cores, t->l1d_bytes >> 10, t->l2_bytes >> 10, t->l3_bytes >> 10,
               (double)s->memory_bytes / (1 << 30), s->virtual_machine ? ", virtual machine" : "", s->system);
    result_say(r,
               "tiers %s; governor %s; load %.2f; clock %.2f GHz before, %.2f after, behind wide products %.2f and "
               "%.2f; other processes %.2f cores",
               s->tiers, s->governor, s->load, s->clock_ghz, s->clock_ghz_after, s->clock_wide_ghz,
               s->clock_wide_ghz_after, s->activity.others);
    if (results->load_s > 0)
        result_say(r, "opening the model took %.2g s, and the process %.1f MiB at most until then", results->load_s,
                   (double)results->load_peak_rss_bytes / (1 << 20));
    for (size_t i = 0; i < s->note_count; i++) result_say(r, "%s%s", i ? "         " : "not quiet: ", s->notes[i]);
}

static bool is_measured(const machine_roofs *roofs, const record_field *field)
{
    bool found = !field->absent_is_zero;
    for (size_t i = 0; i < roofs->count && !found; i++)
        found = *(const double *)((const char *)&roofs->roof[i] + field->at) > 0;
    return found;
}

/* Adds the roofs by number of threads. */
static void add_roofs(result *r, const machine_roofs *roofs)
{
    char cell[RECORD_CELL_BYTES];
    result_table *table = roofs->count ? result_add_table(r, NULL, NULL, NULL) : NULL;
    for (const record_field *field = bench_roof_fields; field->name; field++)
        if (field->title && is_measured(roofs, field)) result_add_column(table, COLUMN_TEXT, NULL, "%s", field->title);
    for (size_t k = 0; k < roofs->count; k++)
        for (const record_field *field = bench_roof_fields; field->name; field++) {
            if (!field->title || !is_measured(roofs, field)) continue;
            record_cell(cell, field, &roofs->roof[k], true, 0);
            cell_text(table, "%s", cell);
        }
}

/* ------------------------------------------------------------------------------------------------------- the whole */

void bench_results_describe(result *r, const bench_results *results)
{
    trend_list trends;
    trends_find(&trends, results);
    say_environment(r, results);
    if (results->count) {
        say_caption(r, results);
        add_points(r, results, true);
        result_set_data(r, add_points(r, results, false), true);
    } else {
        add_roofs(r, &results->sheet.roofs);
    }
    for (size_t i = 0; i < results->count; i++)
        if (results->result[i].has_breakdown) add_breakdown(r, results, &results->result[i]);
    for (size_t i = 0; i < trends.count; i++) trend_say(r, results, &trends.trends[i]);
    bench_results_add_json(r, results, &trends);
    scope_free(&trends.memory);
}
