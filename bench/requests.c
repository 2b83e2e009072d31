/* Draws a stream of requests, then serves it in four ways in real time. SPDX-License-Identifier: MIT */
#include "bench/requests.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "bench/hidden_checksum.h"
#include "bench/timer.h"
#include "core/base/numbers.h"
#include "core/base/status.h"

const char *request_way_name(request_way way)
{
    static const char *const names[REQUEST_WAYS] = {"back to back, alone", "back to back, in batches",
                                                    "arriving, alone", "arriving, in batches"};
    return (unsigned)way < REQUEST_WAYS ? names[way] : "unknown";
}

/* ---------------------------------------------------------------------------------------------------------- drawing */

enum { SHORTEST = 8, LONGEST = 512, TAIL = 256, TAIL_EACH = 64 };

static size_t between(uint64_t *state, size_t low, size_t high) { return low + random_below(state, high - low + 1); }

/* Draws from a power law with exponent 1.2 by the inverse of its tail: P(length > x) = x^-0.2. */
static size_t draw_zipf(uint64_t *state, size_t highest)
{
    const double length = pow(1 - random_fraction(state), -1 / 0.2);
    return length < SHORTEST ? SHORTEST : length > (double)highest ? highest : (size_t)length;
}

static size_t draw_length(request_mix mix, size_t index, uint64_t *state)
{
    switch (mix) {
    case REQUESTS_SHORT_UNIFORM: return between(state, SHORTEST, 64);
    case REQUESTS_SHORT_ZIPF: return draw_zipf(state, 128);
    case REQUESTS_MIXED_TAIL: return index % TAIL_EACH == 0 ? TAIL : between(state, SHORTEST, 48);
    case REQUESTS_FLAT_LONG: return TAIL;
    default: return between(state, SHORTEST, LONGEST);
    }
}

/* The drawn texts, one after the other; starts has count + 1 entries. due: seconds from the beginning at a rate of
 * one request per second. */
typedef struct request_stream {
    const requests_options *options;
    requests_measurement *found;
    deberta_session *session;
    size_t *starts, *batch_starts, hidden; /* [count + 1] each: of the stream, of the current batch */
    int32_t *ids;
    double *due;
    uint64_t *bits; /* [requests] checksum of the hidden states, from REQUESTS_ALONE; other ways must have the same */
} request_stream;

static void draw_stream(request_stream *s, requests_measurement *found, const deberta_model_info *info)
{
    const requests_options *o = s->options;
    uint64_t state = o->seed;
    double at = 0;
    s->starts[0] = 0;
    for (size_t i = 0; i < o->count; i++) {
        found->lengths[i] = draw_length(o->mix, i, &state);
        s->starts[i + 1] = s->starts[i] + found->lengths[i];
        s->due[i] = at;
        at -= log(1 - random_fraction(&state));
    }
    found->tokens = s->starts[o->count];
    s->ids = scope_take(&found->memory, found->tokens, sizeof *s->ids);
    for (size_t t = 0; t < found->tokens; t++) s->ids[t] = (int32_t)random_below(&state, info->vocabulary_size);
    s->hidden = info->hidden_size;
}

/* Returns the tokens of the longest run of `group` requests. */
static size_t most_tokens(const request_stream *s)
{
    const size_t count = s->options->count, group = s->options->group < count ? s->options->group : count;
    size_t most = 0;
    for (size_t i = 0; i + group <= count; i++) {
        const size_t tokens = s->starts[i + group] - s->starts[i];
        if (tokens > most) most = tokens;
    }
    return most;
}

/* ---------------------------------------------------------------------------------------------------------- serving */

static void sleep_until(double moment)
{
    for (double left = moment - timer_now(); left > 0; left = moment - timer_now()) {
        const struct timespec pause = {.tv_sec = (time_t)left, .tv_nsec = (long)(1e9 * (left - floor(left)))};
        nanosleep(&pause, NULL);
    }
}

/* Encodes the requests [first, end) in one batch. Comparing the bits happens outside the measured time. */
static deberta_status requests_encode(const request_stream *s, size_t first, size_t end, double *done,
                                      deberta_outputs *outputs, deberta_error *err)
{
    for (size_t i = first; i <= end; i++) s->batch_starts[i - first] = s->starts[i] - s->starts[first];
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = s->ids + s->starts[first],
                                 .sequence_starts = s->batch_starts,
                                 .sequences = end - first};
    *outputs = (deberta_outputs){.struct_size = sizeof *outputs};
    const deberta_status status = deberta_encode(s->session, &batch, outputs, err);
    *done = timer_now();
    return status;
}

static void requests_judge(const request_stream *s, request_way way, size_t first, size_t end,
                           const deberta_outputs *outputs, requests_served *served)
{
    for (size_t i = first; i < end; i++) {
        const uint64_t bits =
            hidden_checksum(outputs, s->starts[i] - s->starts[first], s->found->lengths[i], s->hidden);
        if (way == REQUESTS_ALONE) s->bits[i] = bits;
        served->differ += bits != s->bits[i];
    }
}

/* Number of requests from `first` on that have arrived by now: at least one, at most the batch limit. */
static size_t requests_there(const request_stream *s, const requests_served *served, size_t first, size_t most,
                             double began)
{
    size_t end = first + 1;
    const double now = timer_now() - began;
    while (end < s->options->count && end - first < most && (served->rate == 0 || s->due[end] / served->rate <= now))
        end++;
    return end;
}

/* Serves the stream in one way. The clock of arriving requests stops while bits are compared, as this would lengthen
 * every queue. */
static deberta_status serve(const request_stream *s, request_way way, requests_served *served, deberta_error *err)
{
    const requests_options *o = s->options;
    const bool groups = way == REQUESTS_GROUPED || way == REQUESTS_ARRIVE_GROUPED;
    double began = timer_now(), done = began;
    for (size_t first = 0, end; first < o->count; first = end) {
        double due = done;
        if (served->rate > 0) sleep_until(began + s->due[first] / served->rate);
        if (served->rate == 0) due = timer_now();
        end = requests_there(s, served, first, groups ? o->group : 1, began);
        deberta_outputs outputs;
        DEBERTA_TRY(requests_encode(s, first, end, &done, &outputs, err));
        for (size_t i = first; i < end; i++)
            served->latencies[i] = done - (served->rate > 0 ? began + s->due[i] / served->rate : due);
        served->seconds = done - began;
        served->batches++;
        requests_judge(s, way, first, end, &outputs, served);
        began += timer_now() - done;
        done = timer_now();
        if (o->progress) o->progress(o->progress_context, (size_t)way * o->count + end, REQUEST_WAYS * o->count);
    }
    return DEBERTA_OK;
}

/* Encodes the longest request once without counting it, for pages, caches and sleeping threads. */
static deberta_status warm_up(const request_stream *s, deberta_error *err)
{
    deberta_outputs outputs;
    double done;
    size_t longest = 0;
    for (size_t i = 1; i < s->options->count; i++)
        if (s->found->lengths[i] > s->found->lengths[longest]) longest = i;
    return requests_encode(s, longest, longest + 1, &done, &outputs, err);
}

static deberta_status serve_all(const request_stream *s, requests_measurement *found, deberta_error *err)
{
    DEBERTA_TRY(warm_up(s, err));
    for (request_way way = 0; way < REQUEST_WAYS; way++) {
        requests_served *served = &found->ways[way];
        served->latencies = scope_take(&found->memory, s->options->count, sizeof *served->latencies);
        if (way >= REQUESTS_ARRIVE_ALONE)
            served->rate = s->options->load * (double)s->options->count / found->ways[REQUESTS_ALONE].seconds;
        DEBERTA_TRY(serve(s, way, served, err));
    }
    return DEBERTA_OK;
}

static deberta_status open_session(request_stream *s, const deberta_model *model, deberta_error *err)
{
    const requests_options *o = s->options;
    const deberta_session_options session = {.struct_size = sizeof session,
                                             .isa = o->isa,
                                             .max_tokens = most_tokens(s),
                                             .threads = o->threads,
                                             .memory_limit_bytes = o->memory_limit_bytes};
    return deberta_session_create(&s->session, model, &session, err);
}

deberta_status requests_run(requests_measurement *found, const requests_options *options, deberta_error *err)
{
    request_stream s = {.options = options, .found = found};
    deberta_model *model = NULL;
    *found = (requests_measurement){.count = options->count};
    scope *memory = &found->memory;
    found->lengths = scope_take(memory, options->count, sizeof *found->lengths);
    s.starts = scope_take(memory, options->count + 1, sizeof *s.starts);
    s.batch_starts = scope_take(memory, options->count + 1, sizeof *s.batch_starts);
    s.due = scope_take(memory, options->count, sizeof *s.due);
    s.bits = scope_take(memory, options->count, sizeof *s.bits);
    deberta_status status = deberta_model_open(&model, options->model, &options->model_options, err);
    if (status == DEBERTA_OK) {
        draw_stream(&s, found, deberta_model_describe(model));
        status = open_session(&s, model, err);
    }
    if (status == DEBERTA_OK) {
        found->threads = deberta_session_threads(s.session);
        snprintf(found->isa, sizeof found->isa, "%s", deberta_isa_name(deberta_session_isa(s.session)));
        status = serve_all(&s, found, err);
    }
    deberta_session_free(&s.session);
    deberta_model_free(&model);
    return status;
}
