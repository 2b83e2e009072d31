/* Tables of results, and what is said around them. SPDX-License-Identifier: MIT */
#include <string.h>

#include "bench/result_fields.h"

/* "16+40+128" for a ragged batch, else nothing. Cut at the end of the cell. */
static void write_lengths(char cell[RECORD_CELL_BYTES], const bench_result *r)
{
    size_t used = 0;
    *cell = '\0';
    for (size_t i = 0; r->lengths && i < r->batch && used < RECORD_CELL_BYTES; i++)
        used += (size_t)snprintf(cell + used, RECORD_CELL_BYTES - used, "%s%zu", i ? "+" : "", r->lengths[i]);
}

static bool is_length(const record_field *field) { return strcmp(field->name, "n") == 0; }

/* People read times with four figures that mean something, down to ten microseconds, and of a ragged batch all lengths.
 */
static void write_cell(char cell[RECORD_CELL_BYTES], const record_field *field, const bench_result *r, bool people)
{
    const int digits = r->time.median >= 1e-3 ? 3 : r->time.median >= 1e-4 ? 4 : 5;
    if (people && is_length(field) && r->lengths)
        write_lengths(cell, r);
    else
        record_cell(cell, field, r, people, digits);
}

/* True if all rows agree; then `cell` holds what they say. */
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

/* People see what differs and what was found. Lengths are what one looks for first, so they stay even if there is only
 * one. */
static bool is_shown(const bench_results *results, const record_field *field, bool people)
{
    char cell[RECORD_CELL_BYTES];
    if (!people) return true;
    if (!field->title) return false;
    if (is_length(field) || !is_constant(results, field, cell)) return true;
    return !field->identifies && *cell;
}

static void print_caption(const bench_results *results, FILE *out)
{
    char cell[RECORD_CELL_BYTES];
    const char *separator = "";
    for (const record_field *field = bench_result_fields; field->name; field++) {
        if (!field->identifies || !is_constant(results, field, cell)) continue;
        fprintf(out, "%s%s %s", separator, field->title, cell);
        separator = ", ";
    }
    fputs("\n\n", out);
}

deberta_status bench_results_print(const bench_results *results, FILE *out, result_format format, deberta_error *err)
{
    const bool people = format != RESULT_CSV;
    const record_field *shown[64];
    size_t count = 0;
    if (results->count == 0) return DEBERTA_OK;
    for (const record_field *field = bench_result_fields; field->name; field++)
        if (is_shown(results, field, people)) shown[count++] = field;
    text_table table = text_table_make(count + !people);
    for (size_t c = 0; c < count; c++) text_table_add(&table, "%s", people ? shown[c]->title : shown[c]->name);
    if (!people) text_table_add(&table, "lengths");
    for (size_t i = 0; i < results->count; i++) {
        char cell[RECORD_CELL_BYTES];
        for (size_t c = 0; c < count; c++) {
            write_cell(cell, shown[c], &results->result[i], people);
            text_table_add(&table, "%s", cell);
        }
        write_lengths(cell, &results->result[i]);
        if (!people) text_table_add(&table, "%s", cell);
    }
    if (people) print_caption(results, out);
    return text_table_finish(&table, out, format, err);
}

/* ------------------------------------------------------------------------------------------------------- breakdowns */

static void add_stage(text_table *table, const char *name, const bench_stage *stage, double wall, double peak)
{
    double rate = stage->seconds > 0 ? stage->gflop / stage->seconds : 0;
    text_table_add(table, "%s", name);
    text_table_add(table, "%.3f", 1e3 * stage->seconds);
    text_table_add(table, "%.1f", 100 * stage->seconds / wall);
    const bool counted = stage->bytes >= 0;
    text_table_add_known(table, 4, stage->gflop, stage->gflop > 0);
    text_table_add_known(table, 1, rate, stage->gflop > 0);
    text_table_add_known(table, 1, 100 * rate / peak, stage->gflop > 0 && peak > 0);
    text_table_add_known(table, 2, 1e-6 * stage->bytes, counted);
    text_table_add_known(table, 2, stage->seconds > 0 ? 1e-9 * stage->bytes / stage->seconds : 0, counted);
}

static void add_parts(text_table *table, const bench_result *r, double peak)
{
    for (int p = 0; p < PROFILE_PARTS; p++) {
        char name[32];
        bench_stage part = r->parts[p];
        part.bytes = -1;
        snprintf(name, sizeof name, "- %s", cost_part_name((profile_part)p));
        if (part.seconds > 0) add_stage(table, name, &part, r->breakdown_s, peak);
    }
}

static deberta_status print_breakdown(const bench_results *results, const bench_result *r, FILE *out,
                                      result_format format, deberta_error *err)
{
    static const char *const titles[] = {"stage", "ms", "% of time", "GFLOP", "GFLOP/s", "% of peak", "MB", "GB/s"};
    deberta_isa isa = DEBERTA_ISA_AUTO;
    deberta_isa_from_name(&isa, r->isa, NULL);
    double peak = machine_peak_gflops(&results->sheet.roofs, isa, r->threads);
    char n[RECORD_CELL_BYTES];
    snprintf(n, sizeof n, "%zu", r->n);
    if (r->lengths) write_lengths(n, r);
    text_table table = text_table_make(sizeof titles / sizeof *titles);
    text_table_add_titles(&table, titles);
    bench_stage total = {0};
    for (int s = 0; s < PROFILE_STAGES; s++) {
        const bench_stage *stage = &r->breakdown[s];
        if (stage->seconds == 0 && s == PROFILE_TASKS) continue;
        if (stage->seconds == 0 && stage->bytes == 0) continue;
        add_stage(&table, cost_stage_name((profile_stage)s), stage, r->breakdown_s, peak);
        if (s == PROFILE_ATTENTION) add_parts(&table, r, peak);
        total.gflop += stage->gflop;
        total.bytes += stage->bytes;
    }
    add_stage(&table, "waiting", &(bench_stage){.seconds = r->waiting_s}, r->breakdown_s, peak);
    total.seconds = r->breakdown_s;
    add_stage(&table, "all", &total, r->breakdown_s, peak);
    if (format != RESULT_CSV) {
        fprintf(out, "n = %s, batch %zu, %zu layers, %s, %zu thread%s, attention %s, position cache %s\n\n", n,
                r->batch, r->layers, r->isa, r->threads, r->threads == 1 ? "" : "s", r->attention,
                r->position_cache ? "on" : "off");
    }
    DEBERTA_TRY(text_table_finish(&table, out, format, err));
    fputc('\n', out);
    return DEBERTA_OK;
}

deberta_status bench_results_print_breakdowns(const bench_results *results, FILE *out, result_format format,
                                              deberta_error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->result[i].has_breakdown)
            DEBERTA_TRY(print_breakdown(results, &results->result[i], out, format, err));
    }
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ the machine */

void bench_results_print_environment(const bench_results *results, FILE *out)
{
    const machine_sheet *s = &results->sheet;
    const topology_info *t = &s->topology;
    fprintf(out, "deberta %s, commit %s%s, %s %s\n", s->version, *s->commit ? s->commit : "unknown",
            s->dirty ? " with changes" : "", s->compiler, s->flags);
    fprintf(out, "%s, %zu of %zu cores usable, L1d %zu KiB, L2 %zu KiB, L3 %zu KiB, %.1f GiB%s, %s\n", s->cpu,
            t->usable_cores, t->cores, t->l1d_bytes >> 10, t->l2_bytes >> 10, t->l3_bytes >> 10,
            (double)s->memory_bytes / (1 << 30), s->virtual_machine ? ", virtual machine" : "", s->system);
    fprintf(out, "tiers %s; governor %s; load %.2f; clock %.2f GHz before, %.2f after; other processes %.2f cores\n",
            s->tiers, s->governor, s->load, s->clock_ghz, s->clock_ghz_after, s->activity.others);
    if (results->load_s > 0) {
        fprintf(out, "opening the model took %.2g s, and the process %.0f MB at most until then\n", results->load_s,
                1e-6 * (double)results->load_peak_rss_bytes);
    }
    for (size_t i = 0; i < s->note_count; i++) fprintf(out, "%s%s\n", i ? "         " : "not quiet: ", s->notes[i]);
}

static bool is_measured(const machine_roofs *roofs, const record_field *field)
{
    bool found = !field->absent_is_zero;
    for (size_t i = 0; i < roofs->count && !found; i++)
        found = *(const double *)((const char *)&roofs->roof[i] + field->at) > 0;
    return found;
}

deberta_status bench_results_print_roofs(const machine_roofs *roofs, FILE *out, result_format format,
                                         deberta_error *err)
{
    const record_field *shown[16];
    size_t count = 0;
    if (roofs->count == 0) return DEBERTA_OK;
    for (const record_field *field = bench_roof_fields; field->name; field++)
        if (field->title && is_measured(roofs, field)) shown[count++] = field;
    text_table table = text_table_make(count);
    for (size_t c = 0; c < count; c++) text_table_add(&table, "%s", shown[c]->title);
    for (size_t k = 0; k < roofs->count * count; k++) {
        char cell[RECORD_CELL_BYTES];
        record_cell(cell, shown[k % count], &roofs->roof[k / count], true, 0);
        text_table_add(&table, "%s", cell);
    }
    return text_table_finish(&table, out, format, err);
}
