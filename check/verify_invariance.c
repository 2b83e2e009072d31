/* Checks that one sequence gives the same result by every way of running it: one arithmetic gives one result.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/verify.h"
#include "core/base/status.h"

enum { PADDING = 7, COMPANY = 3 };

static const struct {
    const char *name;
    size_t threads;
    bool company, padding, observed;
} ways[] = {
    {"1 thread", 1, false, false, false},        {"2 threads", 2, false, false, false},
    {"3 threads", 3, false, false, false},       {"in a batch", 2, true, false, false},
    {"padding after it", 2, false, true, false}, {"while observed", 2, false, false, true},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* A batch with the sequence between two others, or with padding after it, which must not be read. */
typedef struct arrangement {
    int32_t *ids;
    uint8_t *mask; /* mask; NULL: no padding */
    size_t starts[COMPANY + 1], sequences;
    size_t first; /* first token of the sequence */
} arrangement;

static void arrangement_free(arrangement *a)
{
    free(a->ids);
    free(a->mask);
}

static void arrange(arrangement *a, size_t way, const int32_t *ids, size_t tokens, size_t padding)
{
    const size_t before = ways[way].company ? tokens / 2 + 1 : 0, after = ways[way].company ? tokens / 3 + 1 : 0;
    const size_t padded = ways[way].padding ? padding : 0, total = before + tokens + after + padded;
    *a = (arrangement){.first = before, .sequences = 1, .starts = {0, total}};
    a->ids = memory_take(total, sizeof *a->ids);
    if (padded) a->mask = memory_take(total, 1);
    for (size_t t = 0; t < total; t++) a->ids[t] = ids[(tokens - 1 + 2 * t) % tokens];
    memcpy(a->ids + before, ids, tokens * sizeof *ids);
    for (size_t t = 0; a->mask && t < total; t++) a->mask[t] = t < tokens;
    if (ways[way].company) {
        a->sequences = COMPANY;
        a->starts[1] = before;
        a->starts[2] = before + tokens;
        a->starts[3] = total;
    }
}

static deberta_status look_at_hidden(void *context, const deberta_hidden_block *block)
{
    (void)context, (void)block;
    return DEBERTA_OK;
}
static deberta_status look_at_attention(void *context, const deberta_attention_block *block)
{
    (void)context, (void)block;
    return DEBERTA_OK;
}

/* Encodes the arrangement in a session of its own, and copies H[L] of the judged sequence to hidden [tokens][h]. */
static deberta_status verify_invariance_encode(float *hidden, const verify_options *options, const deberta_model *model,
                                               size_t h, deberta_isa isa, size_t way, const arrangement *a,
                                               size_t tokens, deberta_error *err)
{
    const deberta_observer observer = {
        .struct_size = sizeof observer, .on_hidden = look_at_hidden, .on_attention = look_at_attention};
    const deberta_session_options session_options = {
        .struct_size = sizeof session_options,
        .isa = isa,
        .max_tokens = a->starts[a->sequences],
        .threads = ways[way].threads,
        .features = ways[way].observed ? DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION : 0,
        .ablations = options->ablations,
        .ablation_count = options->ablation_count};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = a->ids,
                                 .sequence_starts = a->starts,
                                 .sequences = a->sequences,
                                 .mask = a->mask,
                                 .observer = ways[way].observed ? &observer : NULL};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_session *session = NULL;
    DEBERTA_TRY(deberta_session_create(&session, model, &session_options, err));
    const deberta_status status = deberta_encode(session, &batch, &outputs, err);
    for (size_t t = 0; status == DEBERTA_OK && t < tokens; t++)
        memcpy(hidden + t * h, outputs.hidden + (a->first + t) * outputs.hidden_stride, h * sizeof *hidden);
    deberta_session_free(&session);
    return status;
}

static deberta_status compare_way(verify_report *report, const verify_options *options, const char *label,
                                  const deberta_model *model, const deberta_model_info *info, deberta_isa isa,
                                  size_t way, float *base, float *found, const int32_t *ids, size_t tokens,
                                  size_t padding, deberta_error *err)
{
    arrangement a = {0};
    const size_t h = info->hidden_size;
    const bool first = isa == DEBERTA_ISA_SCALAR && way == 0;
    verify_row row = {.tier = isa, .values = tokens * h};
    arrange(&a, way, ids, tokens, padding);
    deberta_status status = DEBERTA_OK;
    if (status == DEBERTA_OK)
        status = verify_invariance_encode(first ? base : found, options, model, h, isa, way, &a, tokens, err);
    arrangement_free(&a);
    DEBERTA_TRY(status);
    if (first) return DEBERTA_OK; /* The result with which all others are compared is not a check itself. */
    for (size_t k = 0; k < tokens * h; k++) row.differing += memcmp(&found[k], &base[k], sizeof *base) != 0;
    snprintf(row.subject, sizeof row.subject, "%s%s%s", label, *label ? " " : "", ways[way].name);
    verify_report_add(report, &row, NULL);
    return DEBERTA_OK;
}

deberta_status verify_invariance(verify_report *report, const verify_options *options, const char *path,
                                 const char *label, const int32_t *ids, size_t tokens, deberta_error *err)
{
    deberta_model *model;
    deberta_model_info info;
    DEBERTA_TRY(verify_open(&model, &info, options, path, err));
    const size_t limit = info.position_biased_input ? info.max_positions : SIZE_MAX,
                 padding = tokens >= limit            ? 0
                           : limit - tokens < PADDING ? limit - tokens
                                                      : PADDING;
    float *base = memory_take(2 * tokens * info.hidden_size, sizeof *base);
    deberta_status status = DEBERTA_OK;
    for (int t = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && t < DEBERTA_ISA_COUNT; t++)
        for (size_t way = 0; status == DEBERTA_OK && way < WAYS; way++) {
            if (t != DEBERTA_ISA_SCALAR && !options->tiers[t]) continue;
            if (ways[way].padding && padding == 0) continue;
            status = compare_way(report, options, label, model, &info, (deberta_isa)t, way, base,
                                 base + tokens * info.hidden_size, ids, tokens, padding, err);
        }
    free(base);
    deberta_model_free(&model);
    return status;
}
