/* Writes the results of minimal pairs, by paradigm and by term. SPDX-License-Identifier: MIT */
#pragma once

#include "output/result.h"
#include "output/scope.h"

typedef enum pair_score { PAIR_SCORE_PLL, PAIR_SCORE_RTD } pair_score;
extern const char *const pair_score_names[];

typedef struct pair_group {
    const char *name;
    size_t pairs, right;
} pair_group;

/* Groups in the order in which their names first occur; {0} is empty. */
typedef struct pair_groups {
    pair_group *groups; /* [count] */
    size_t count, capacity;
} pair_groups;

typedef struct pair_findings {
    scope memory;
    pair_score score;
    const char *head, *precision, *ablated; /* precision: NULL for float32; ablated: what --ablate names, or NULL */
    size_t pairs, right, ties, bad;
    size_t unknown; /* number of pairs with text that the vocabulary does not know */
    size_t equal;   /* number of pairs whose sentences are the same; BLiMP has seven */
    pair_groups paradigms, terms;
} pair_findings;

/* Counts a pair of this paradigm; term may be NULL. */
void pair_findings_add(pair_findings *findings, const char *paradigm, const char *term, double good, double bad);
void pair_findings_free(pair_findings *findings);

/* Returns {"schema": "deberta-minimal-pairs/1", "score", "head", "pairs", "right", "accuracy", "interval": [low,
 * high], "ties", "bad", "paradigms": [{"name", "pairs", "right", "accuracy", "low", "high"}], "terms": the same}; CSV
 * is the table of the paradigms. The caller frees it. */
result *pair_result(const pair_findings *findings);
