/* Shows an observer the attention maps of a layer: the terms c2c, c2p and p2c, their sum (the logits), and the
 * probabilities.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include "core/encode/attention.h"

const char *deberta_component_name(deberta_component component)
{
    static const char *const names[DEBERTA_COMPONENT_COUNT] = {"c2c", "c2p", "p2c", "logits", "probs"};
    return (unsigned)component < DEBERTA_COMPONENT_COUNT ? names[component] : "unknown";
}

static void component_task(void *context, size_t task, size_t worker)
{
    const row_loop *loop = context;
    deberta_session *s = loop->session;
    worker_scratch *scratch = &s->workers[worker];
    size_t heads = s->model->config.heads;
    attention_head head = attention_head_of(s, loop->layer, loop->sequence, task % heads);
    attention_head_patch(s, loop->layer, &head, NULL, 0, scratch);
    attention_queries queries = row_loop_queries(loop, &head, task / heads);
    unsigned terms = attention_terms_of(s);
    bool has_strip = false;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        deberta_component component = (deberta_component)c;
        bool is_sum = component == DEBERTA_LOGITS || component == DEBERTA_PROBABILITIES;
        if (!is_sum && !(terms & 1u << component)) continue;
        if (component == DEBERTA_PROBABILITIES && s->model->config.talking_heads) continue;
        if (!row_loop_wants(loop, head.head, component)) continue;
        if (s->has_c2p && !has_strip) attention_strip(s, &head, &queries, scratch);
        has_strip = true;
        attention_logits(s, &head, &queries, 0, head.n, is_sum ? terms : 1u << component, scratch->observed,
                         s->observed_stride, scratch);
        if (component == DEBERTA_PROBABILITIES)
            row_loop_normalise(loop, &head, queries.count, scratch->observed, scratch);
        row_loop_show(loop, &head, &queries, component, scratch->observed);
    }
}

void components_run(deberta_session *s, size_t layer, size_t first, size_t end, const deberta_observer *observer)
{
    row_loop loop = {.session = s, .layer = layer, .observer = observer};
    for (loop.sequence = first; loop.sequence < end; loop.sequence++) {
        parallel_for(s->executor, row_loop_blocks(&loop) * s->model->config.heads, component_task, &loop);
    }
}
