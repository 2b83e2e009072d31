/* Reports the progress of a sweep and estimates the time it will take. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "bench/sweep_work.h"
#include "bench/timer.h"

static double estimate_of(const sweep *s, const sweep_point *p)
{
    if (p->estimate > 0) return p->estimate;
    double rate = s->worked_seconds > 0 ? s->worked_flops / s->worked_seconds : 3e10; /* FLOP/s; first a guess */
    return p->cost.total.flops / rate;
}

static double remaining_seconds(const sweep *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        double one = estimate_of(s, p);
        double wanted = fmax((double)s->repetitions, fmin(s->min_seconds / one, SWEEP_MAX_SAMPLES));
        if (p->result.samples) wanted = (double)p->wanted;
        sum += 1.3 * one * (wanted - (double)p->taken); /* 1.3: uncounted encodes included */
        if (p->result.workspace_bytes == 0) sum += 1.5 * one;
        if (s->options->breakdown && p->profiled.seconds == 0) sum += 4 * one;
    }
    return sum;
}

void sweep_tell(sweep *s, const char *what, const sweep_point *point)
{
    if (!s->options->progress) return;
    char where[160], text[200];
    sweep_state state = {.what = what, .elapsed_s = timer_now() - s->began, .remaining_s = -1};
    if (point) {
        sweep_point_describe(point, where, sizeof where);
        snprintf(text, sizeof text, "%s: %s", what, where);
        state.what = text;
        state.remaining_s = remaining_seconds(s);
        s->reported = fmax(s->reported, state.elapsed_s / (state.elapsed_s + state.remaining_s));
    }
    state.done = s->reported;
    if (!s->options->progress(s->options->progress_context, &state)) s->stopped = true;
}
