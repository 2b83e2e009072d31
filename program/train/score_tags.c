/* Computes scores of tags: spans as seqeval counts them, where a span is right if its ends and its type are, and
 * tokens. The prefixes of the labels follow core/answer/entities.c; without prefixes only tokens are counted.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/classification.h"
#include "output/scope.h"
#include "program/train/score_kinds.h"

typedef struct tag_scores {
    const example_list *examples;
    const label_list *labels;
    int32_t **found; /* [examples][tokens] */
    bool has_scheme;
} tag_scores;

typedef struct tag_span {
    size_t begin, end; /* half-open range of labelled tokens */
    const char *type;
} tag_span;

typedef struct span_counts {
    size_t wanted, found, right, tokens, right_tokens;
} span_counts;

static void begin_tags(void *context) { (void)context; }

static void tag_row(void *context, size_t example, size_t token, const float *logits, size_t width)
{
    ((tag_scores *)context)->found[example][token] = (int32_t)logits_largest(logits, width);
}

/* ------------------------------------------------------------------------------------------------------------- spans */

typedef struct tag_name {
    char prefix;      /* 'B' for "B-PER"; 'O' for "O" and for a label without a name; 0 for others */
    const char *type; /* name without the prefix */
} tag_name;

static tag_name split_name(const char *name)
{
    if (!name || strcmp(name, "O") == 0) return (tag_name){'O', ""};
    if (name[0] && name[1] == '-' && strchr("BIELSU", name[0])) return (tag_name){name[0], name + 2};
    return (tag_name){0, name};
}

static tag_name name_of(const tag_scores *s, int32_t label)
{
    return split_name((size_t)label < s->labels->count ? s->labels->names[label] : NULL);
}

/* Finds the next span at or after *at, and advances *at; returns false if there is none. tags: of labelled tokens
 * only. */
static bool next_span(const tag_scores *s, const int32_t *tags, size_t count, size_t *at, tag_span *span)
{
    while (*at < count && name_of(s, tags[*at]).prefix == 'O') ++*at;
    if (*at == count) return false;
    tag_name name = name_of(s, tags[*at]);
    *span = (tag_span){.begin = *at, .type = name.type};
    bool open = !name.prefix || !strchr("SUEL", name.prefix);
    for (++*at; open && *at < count; ++*at) {
        name = name_of(s, tags[*at]);
        if ((name.prefix && strchr("OBSU", name.prefix)) || strcmp(name.type, span->type) != 0) break;
        open = !name.prefix || !strchr("EL", name.prefix);
    }
    span->end = *at;
    return true;
}

static bool same_span(const tag_span *a, const tag_span *b)
{
    return a->begin == b->begin && a->end == b->end && strcmp(a->type, b->type) == 0;
}

/* Counts matching spans; both lists are in the order of their beginnings. */
static void count_spans(const tag_scores *s, const int32_t *wanted, const int32_t *found, size_t count,
                        span_counts *counts)
{
    size_t at = 0, other_at = 0;
    tag_span span, other;
    bool has = next_span(s, wanted, count, &at, &span), has_other = next_span(s, found, count, &other_at, &other);
    while (has || has_other) {
        const bool first = has && (!has_other || span.begin <= other.begin),
                   second = has_other && (!has || other.begin <= span.begin);
        counts->right += first && second && same_span(&span, &other);
        counts->wanted += first;
        counts->found += second;
        if (first) has = next_span(s, wanted, count, &at, &span);
        if (second) has_other = next_span(s, found, count, &other_at, &other);
    }
    for (size_t t = 0; t < count; t++) counts->right_tokens += wanted[t] == found[t];
    counts->tokens += count;
}

/* Counts one example; pieces of a word after its first have no label. */
static void count_example(const tag_scores *s, size_t example, span_counts *counts)
{
    const deberta_example *e = &s->examples->items[example];
    int32_t *wanted = memory_take(2 * e->tokens, sizeof *wanted), *found = wanted + e->tokens;
    size_t count = 0;
    for (size_t t = 0; t < e->tokens; t++) {
        if (e->token_labels[t] == NO_LABEL) continue;
        wanted[count] = e->token_labels[t];
        found[count++] = s->found[example][t];
    }
    count_spans(s, wanted, found, count, counts);
    free(wanted);
}

/* F1 is undefined for data without spans, since no found span could raise it. */
static void end_tags(void *context, double measures[DEBERTA_MEASURES])
{
    const tag_scores *s = context;
    span_counts counts = {0};
    for (size_t i = 0; i < s->examples->count; i++) count_example(s, i, &counts);
    const size_t both = counts.wanted + counts.found;
    const double accuracy = counts.tokens ? (double)counts.right_tokens / (double)counts.tokens : NAN,
                 f1 = counts.wanted ? 2 * (double)counts.right / (double)both : NAN;
    measures[0] = s->has_scheme ? f1 : accuracy;
    measures[1] = accuracy;
}

void score_tags_make(deberta_scorer *scorer, const example_list *held_out, const label_list *labels, size_t label_count)
{
    tag_scores *s = options_take(held_out->options, 1, sizeof *s);
    s->examples = held_out;
    s->labels = labels;
    s->found = options_take(held_out->options, held_out->count, sizeof *s->found);
    for (size_t i = 0; i < held_out->count; i++)
        s->found[i] = options_take(held_out->options, held_out->items[i].tokens, sizeof **s->found);
    for (size_t k = 0; k < label_count && k < labels->count; k++) {
        const char prefix = split_name(labels->names[k]).prefix;
        s->has_scheme = s->has_scheme || (prefix != 0 && prefix != 'O');
    }
    *scorer =
        (deberta_scorer){.names = {"accuracy"}, .context = s, .begin = begin_tags, .row = tag_row, .end = end_tags};
    if (s->has_scheme) scorer->names[0] = "f1";
    if (s->has_scheme) scorer->names[1] = "accuracy";
}
