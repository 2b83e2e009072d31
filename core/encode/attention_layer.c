/* Projects a layer's queries, keys and values, and splits its attention over a batch into tasks for the threads: one
 * sequence, head and block of queries each, which writes its columns of the context.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include "core/encode/attention.h"
#include "core/model/linear.h"

enum { TASKS_PER_THREAD = 3 }; /* smallest number of attention tasks per thread before query blocks become smaller */

/* ------------------------------------------------------------------------------------------------------ projections */

/* Q and K go head by head, so that a block of a head's rows is contiguous; V goes panel by panel, as P V reads it. */
void attention_project(deberta_session *s, const model_layer *layer, size_t rows, const float *x, projected_parts parts)
{
    const deberta_model *model = s->model;
    size_t part_panels = model->config.heads * model->head_panels, tokens = s->tokens;
    linear_product q = linear_plain(&layer->qkv, rows, x, s->hidden_stride, s->queries, model->padded_head);
    q.panels = part_panels;
    q.scratch = s->integers;
    q.group_panels = model->head_panels;
    q.group_stride = tokens * model->padded_head;
    linear_product k = q, v = q;
    k.first_panel = part_panels;
    k.c = s->keys;
    v.first_panel = 2 * part_panels;
    v.c = s->values;
    v.ldc = PANEL;
    v.panel_stride = tokens * PANEL;
    v.group_panels = 0;
    v.follows = &layer->attention_output;
    const linear_product products[] = {q, k, v};
    const size_t first = parts == PROJECT_KEYS ? 1 : 0, end = parts == PROJECT_QUERIES ? 1 : 3;
    linear_run_parallel(&s->kernels, s->executor, products + first, end - first);
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

/* Plans the query rows of a task: the logits of one chunk take at most half of L2, and every thread has tasks. */
static size_t block_rows(const deberta_session *s, size_t n)
{
    size_t tile = s->row_tile, chunk = minimum(round_up(n, PANEL), KEY_CHUNK);
    size_t fitting = maximum(s->l2_bytes / 2 / (chunk * sizeof(float)) / tile * tile, 2 * tile);
    size_t limit = minimum(fitting, s->query_rows);
    size_t wanted =
        s->threads == 1 ? 1 : ceiling_divide(TASKS_PER_THREAD * s->threads, s->model->config.heads * s->sequences);
    size_t blocks = maximum(ceiling_divide(n, limit), minimum(wanted, ceiling_divide(n, 2 * tile)));
    return minimum(round_up(ceiling_divide(n, blocks), tile), limit);
}

static size_t block_count(const deberta_session *s, size_t sequence)
{
    size_t n = session_sequence_length(s, sequence);
    return ceiling_divide(n, block_rows(s, n));
}

size_t attention_begin_group(deberta_session *s, size_t first)
{
    size_t sequence = first, panels = 0;
    s->task_starts[first] = 0;
    for (; sequence < s->sequences; sequence++) {
        size_t more = session_key_panels(s, session_sequence_length(s, sequence));
        if (panels + more > s->key_panels) break;
        s->panel_starts[sequence] = panels;
        s->task_starts[sequence + 1] = s->task_starts[sequence] + s->model->config.heads * block_count(s, sequence);
        panels += more;
    }
    return sequence;
}

/* ------------------------------------------------------------------------------------------------------------ loops */

/* A loop over (sequence, head, query block) of the sequences [first, end). */
typedef struct attention_loop {
    deberta_session *session;
    size_t layer, first, end;
} attention_loop;

static void pack_task(void *context, size_t task, size_t worker)
{
    const attention_loop *loop = context;
    deberta_session *s = loop->session;
    size_t heads = s->model->config.heads, sequence = loop->first + task / heads;
    if (block_count(s, sequence) == 1) return;
    double time = profile_start(session_profiling(s));
    attention_head head = attention_head_of(s, loop->layer, sequence, task % heads);
    attention_head_pack(s, &head, &s->workers[worker]);
    profile_lap(session_profiling(s), worker, PROFILE_PACK, time);
}

static void block_task(void *context, size_t task, size_t worker)
{
    const attention_loop *loop = context;
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    double time = profile_start(session_profiling(s));
    size_t sequence = session_place_of(s->task_starts, loop->first, loop->end, task);
    size_t rows = block_rows(s, session_sequence_length(s, sequence)), blocks = block_count(s, sequence);
    size_t index = task - s->task_starts[sequence], first = index % blocks * rows;
    attention_head head = attention_head_of(s, loop->layer, sequence, index / blocks);
    if (blocks == 1) {
        /* No other task needs these keys, so this task packs them. */
        attention_head_pack(s, &head, &s->workers[worker]);
        time = profile_lap(session_profiling(s), worker, PROFILE_PACK, time);
    }
    attention_head_patch(s, loop->layer, &head, NULL, 0, &s->workers[worker]);
    attention_queries queries = {
        .rows = head_query(s, head.head, head.first_token + first),
        .ld = model->padded_head,
        .first = first,
        .count = minimum(rows, head.n - first),
    };
    float *to = s->context + (head.first_token + first) * s->context_stride + head.head * model->padded_head;
    attention_block(s, &head, &queries, to, s->context_stride, &s->workers[worker]);
    profile_lap(session_profiling(s), worker, PROFILE_ATTENTION, time);
}

void attention_run(deberta_session *s, size_t layer, const deberta_observer *observer)
{
    attention_loop loop = {.session = s, .layer = layer};
    size_t heads = s->model->config.heads;
    for (; loop.first < s->sequences; loop.first = loop.end) {
        loop.end = attention_begin_group(s, loop.first);
        size_t group = loop.end - loop.first, tasks = s->task_starts[loop.end];
        /* With more than one task per head and sequence, several blocks share some keys. */
        bool talking = s->model->config.talking_heads, shared = tasks > group * heads;
        if (shared) parallel_for(s->executor, group * heads, pack_task, &loop);
        if (!talking) parallel_for(s->executor, tasks, block_task, &loop);
        if (talking) talking_heads_run(s, layer, loop.first, loop.end, observer);
        if (observer && observer->on_attention) components_run(s, layer, loop.first, loop.end, observer);
    }
}
