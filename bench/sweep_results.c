/* Turns the measurements of a sweep's points into results. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "bench/sweep_work.h"
#include "core/base/text.h"

static void fill_breakdown(bench_result *r, const sweep_point *p)
{
    r->has_breakdown = true;
    r->breakdown_s = r->waiting_s = p->profiled.seconds;
    for (int stage = 0; stage < PROFILE_STAGES; stage++) {
        r->breakdown[stage].seconds = p->profiled.stage[stage];
        r->waiting_s -= p->profiled.stage[stage];
        if (stage == PROFILE_TASKS) continue;
        r->breakdown[stage].gflop = 1e-9 * p->cost.stage[stage].reachable_flops;
        r->breakdown[stage].bytes = p->cost.stage[stage].bytes;
    }
    for (int part = 0; part < PROFILE_PARTS; part++)
        r->parts[part] = (bench_stage){.seconds = p->profiled.part[part], .gflop = 1e-9 * p->cost.part_flops[part]};
    r->waiting_s = fmax(0, r->waiting_s);
    r->breakdown_peak_then = sweep_slices_median(&p->profiled_slices);
}

/* Completes the result of a point from its measurements. */
static void fill_result(bench_result *r, const sweep *s, const sweep_point *p, const machine_roofs *roofs)
{
    *r = p->result;
    r->cold = s->options->cold;
    r->other_cores = p->counted > 0 ? p->others / p->counted : 0;
    r->gflop = 1e-9 * p->cost.total.flops;
    r->gflop_reachable = 1e-9 * p->cost.total.reachable_flops;
    r->table_rows = p->cost.table_rows;
    r->reachable_rows = p->cost.reachable_rows;
    snprintf(r->engine, sizeof r->engine, "deberta");
    utf8_copy(r->model, sizeof r->model, s->info.name);
    memcpy(r->model_sha256, s->digest, sizeof r->model_sha256);
    snprintf(r->isa, sizeof r->isa, "%s", deberta_isa_name(p->isa));
    snprintf(r->precision, sizeof r->precision, "%s", deberta_precision_name(s->info.precision));
    snprintf(r->attention, sizeof r->attention, "%s", term_selection_name(p->terms));
    statistics_summarize(&r->time, r->samples, p->taken);
    r->gflops = r->gflop / r->time.median;
    r->tokens_per_s = (double)r->tokens / r->time.median;
    const double peak = machine_peak_of(roofs, p->isa, r->threads, s->info.precision);
    r->peak_fraction = peak > 0 ? r->gflops / peak : 0;
    r->peak_then = sweep_slices_median(&p->slices);
    const double then = machine_rate_of(r->peak_then.gflops, r->peak_then.gops, s->info.precision);
    r->peak_then_fraction = then > 0 ? r->gflops / then : 0;
    if (p->profiled.seconds > 0) fill_breakdown(r, p);
}

static bool same_batch(const sweep_point *a, const sweep_point *b)
{
    return a->result.batch == b->result.batch &&
           memcmp(a->lengths, b->lengths, a->result.batch * sizeof *a->lengths) == 0;
}

/* Checks that tier, threads and the position cache do not change a bit. */
static void check_agreement(const sweep *s, bench_results *results)
{
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        char where[160];
        sweep_point_describe(p, where, sizeof where);
        if (p->varies) {
            machine_note(&results->sheet, "repetitions gave different outputs: %.120s", where);
            results->disagreements++;
        }
        for (size_t j = 0; j < i; j++) {
            const sweep_point *q = &s->list.points[j];
            if (p->result.layers != q->result.layers || p->terms != q->terms || !same_batch(p, q)) continue;
            if (p->result.checksum != q->result.checksum && p->result.workspace_bytes && q->result.workspace_bytes) {
                machine_note(&results->sheet, "output differs from another tier's or number of threads': %.100s",
                             where);
                results->disagreements++;
            }
            break;
        }
    }
}

#define SCATTER          0.03
#define BREAKDOWN_IS_FAR 0.05

/* Notes breakdowns from disturbed encodes: clocks cost little, so an encode with them should not take longer. */
static void note_far_breakdowns(bench_results *results)
{
    size_t far = 0;
    for (size_t i = 0; i < results->count; i++) {
        const bench_result *r = &results->result[i];
        far += r->has_breakdown && fabs(r->breakdown_s / r->time.median - 1) > BREAKDOWN_IS_FAR;
    }
    if (far)
        machine_note(&results->sheet, "breakdowns of %zu of %zu points are of encodes more than %.0f %% off the median",
                     far, results->count, 100 * BREAKDOWN_IS_FAR);
}

static void note_scatter(bench_results *results)
{
    size_t scattered = 0;
    for (size_t i = 0; i < results->count; i++)
        scattered += results->result[i].time.mad > SCATTER * results->result[i].time.median;
    if (scattered) {
        machine_note(&results->sheet,
                     "times of %zu of %zu points scatter by more than %.0f %% (median absolute deviation)", scattered,
                     results->count, 100 * SCATTER);
    }
}

void sweep_collect(const sweep *s, bench_results *results)
{
    check_agreement(s, results);
    results->result = scope_take(&results->memory, s->list.count, sizeof *results->result);
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->list.points[i].taken == 0) continue; /* the sweep was stopped before its turn */
        bench_result *r = &results->result[results->count++];
        fill_result(r, s, &s->list.points[i], &results->sheet.roofs);
    }
    note_scatter(results);
    note_far_breakdowns(results);
}
