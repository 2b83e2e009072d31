/* Makes the report, texts and encodes that the tests of behaviour share. SPDX-License-Identifier: MIT */
#include "analysis/behaviour_work.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "include/deberta_unstable.h"
#include "output/scope.h"

/* ---------------------------------------------------------------------------------------------------------- report */

behaviour_test *behaviour_add_test(behaviour_work *w, const char *format, ...)
{
    behaviour_report *report = w->report;
    report->tests =
        scope_grown(&report->memory, report->tests, &report->capacity, report->count, sizeof *report->tests);
    behaviour_test *test = &report->tests[report->count++];
    *test = (behaviour_test){0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(test->name, sizeof test->name, format, arguments);
    va_end(arguments);
    if (w->options->of.progress) w->options->of.progress(w->options->of.context, w->done, w->total, test->name);
    w->done++;
    return test;
}

void behaviour_add_number(behaviour_test *test, const char *name, double value)
{
    if (test->number_count < BEHAVIOUR_NUMBERS) test->numbers[test->number_count++] = (behaviour_number){name, value};
}

void behaviour_conclude(behaviour_work *w, behaviour_test *test, bool passed)
{
    test->passed = passed;
    w->report->failures += !passed;
}

void behaviour_skip(behaviour_test *test, const char *why)
{
    test->skipped = why;
    test->passed = true;
}

/* ----------------------------------------------------------------------------------------------------------- texts */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int32_t behaviour_token_at(const behaviour_work *w, uint64_t place)
{
    return (int32_t)(mix(w->options->of.seed * 0x9e3779b97f4a7c15u + place) % w->info.vocabulary_size);
}

int32_t behaviour_other_token(const behaviour_work *w, int32_t token, uint64_t trial)
{
    const int32_t other = behaviour_token_at(w, 1000000007u * (trial + 1));
    return other != token ? other : (int32_t)(((size_t)token + 1) % w->info.vocabulary_size);
}

void behaviour_make_text(behaviour_work *w, size_t tokens)
{
    if (tokens > w->capacity) {
        w->ids = memory_resize(w->ids, tokens, sizeof *w->ids);
        w->positions = memory_resize(w->positions, tokens, sizeof *w->positions);
        w->capacity = tokens;
    }
    for (size_t t = 0; t < tokens; t++) w->ids[t] = behaviour_token_at(w, t);
    memset(w->positions, 0, tokens * sizeof *w->positions);
}

/* ----------------------------------------------------------------------------------------------------------- encoding */

bool behaviour_is_inside(const poison *p, ptrdiff_t displacement)
{
    return displacement >= -p->set_reach && displacement <= p->set_reach && p->set[displacement + p->set_reach];
}

static deberta_status apply_poison(void *context, const deberta_hidden_edit *edit)
{
    const poison *p = context;
    for (size_t t = 0; p->active && edit->layer == 0 && t < edit->tokens; t++) {
        const ptrdiff_t displacement = (ptrdiff_t)p->query - (ptrdiff_t)t;
        if (p->set ? behaviour_is_inside(p, displacement) : displacement != p->only) continue;
        for (size_t c = 0; c < edit->columns; c++) edit->values[t * edit->stride + c] = NAN;
    }
    return DEBERTA_OK;
}

deberta_status behaviour_open_session(deberta_session **session, const behaviour_work *w, size_t tokens, size_t layers,
                                      const key_window *window, poison *p, deberta_error *err)
{
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .isa = w->options->of.isa,
                                             .max_tokens = tokens,
                                             .threads = w->options->of.threads,
                                             .memory_limit_bytes = w->options->of.memory_limit_bytes,
                                             .ablations = w->ablations,
                                             .ablation_count = w->ablation_count};
    session_internal_options internal = {.layers = layers};
    if (p) internal.interventions.changes = (deberta_interventions){.edit_hidden = apply_poison, .context = p};
    if (window) return windowed_session_create(session, w->model, &options, &internal, window, err);
    return session_create_within(session, w->model, &options, &internal, 0, err);
}

deberta_status behaviour_output_of(deberta_session *session, const behaviour_work *w, size_t tokens, size_t query,
                                   float *row, deberta_error *err)
{
    const size_t starts[2] = {0, tokens};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = w->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .position_ids = w->positions};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(session, &batch, &outputs, err));
    memcpy(row, outputs.hidden + query * outputs.hidden_stride, w->info.hidden_size * sizeof *row);
    return DEBERTA_OK;
}

double behaviour_change_between(const float *a, const float *b, size_t h)
{
    double change = 0, largest = 1e-30;
    for (size_t c = 0; c < h; c++) {
        change = fmax(change, fabs((double)a[c] - (double)b[c]));
        largest = fmax(largest, fabs((double)a[c]));
    }
    return change / largest / (double)FLT_EPSILON;
}
