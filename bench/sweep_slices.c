/* Runs slices of the machine's limits between the encodes of a sweep. SPDX-License-Identifier: MIT */
#include <string.h>

#include "bench/sweep_work.h"
#include "bench/timer.h"
#include "core/encode/session.h"

static void add_rate(scope *memory, slice_rates *to, double rate)
{
    enum { FEWEST = 16 };
    if (!(rate > 0)) return; /* this tier has no such loop */
    if (to->count == to->capacity) {
        to->capacity = to->capacity ? 2 * to->capacity : FEWEST;
        double *more = scope_take(memory, to->capacity, sizeof *more);
        if (to->count) memcpy(more, to->rates, to->count * sizeof *more);
        to->rates = more;
    }
    to->rates[to->count++] = rate;
}

sweep_slicer sweep_slicer_of(const sweep *s, const sweep_point *p, const deberta_session *session, point_slices *to)
{
    sweep_slicer slicer = {.sweep = s, .precision = s->info.precision, .to = to};
    slicer.measures = s->options->roof_share > 0;
    if (!slicer.measures) return slicer;
    const double begun = timer_now();
    machine_slices_prepare(&slicer.loops, p->isa, session->executor, s->model->machine.usable_cores);
    to->seconds += timer_now() - begun;
    return slicer;
}

void sweep_slice_reading(const sweep_slicer *slicer)
{
    const sweep *s = slicer->sweep;
    double seconds = 0; /* a visit has two slices at most, whatever the share */
    if (!slicer->measures || !s->stream) return;
    add_rate(s->list.memory, &slicer->to->read_gbs, machine_slice_reading(s->stream, slicer->loops.by, &seconds));
}

/* Runs products where their share allows it, and at least once for every point. Low precision has stages in float32
 * as well, so the two kinds alternate. */
void sweep_slice_products(const sweep_slicer *slicer, double seconds)
{
    point_slices *to = slicer->to;
    const size_t slices = to->gflops.count + to->gops.count;
    to->encoded += seconds;
    if (!slicer->measures || (slices && to->seconds > slicer->sweep->options->roof_share * to->encoded)) return;
    const bool of_integers =
        slicer->precision != DEBERTA_PRECISION_FLOAT32 && slicer->loops.kernels[1] && slices % 2 == 0;
    const double rate = machine_slice_products(&slicer->loops, of_integers, &to->seconds);
    add_rate(slicer->sweep->list.memory, of_integers ? &to->gops : &to->gflops, rate);
}

static double median_of(const slice_rates *of) { return of->count ? statistics_median(of->rates, of->count) : 0; }

bench_then sweep_slices_median(const point_slices *slices)
{
    return (bench_then){.gflops = median_of(&slices->gflops),
                        .gops = median_of(&slices->gops),
                        .read_gbs = median_of(&slices->read_gbs),
                        .slices = slices->gflops.count + slices->gops.count};
}
