/* Determines exactly which relative positions a model can tell apart.
 *
 * Attention is global at every layer; the bounded quantity is the range in which a relative position is *unambiguous*:
 * the distances r = i - j (query minus key, so r > 0 is a key to the left) whose row of the position table no other
 * distance shares. All numbers here count that, not reach.
 *
 * Rows never decrease with the distance, so the distances of a row are an interval, found by bisection: nothing depends
 * on how large distances may get. Without a limit on the length, infinitely many distances share the rows at both ends.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/model/positions.h"
#include "output/scope.h"

/* Distances that share a row: lowest ... highest, count of them; SIZE_MAX where there is no limit on that side. */
typedef struct field_row {
    size_t row;
    ptrdiff_t lowest, highest;
    size_t count;
} field_row;

typedef struct receptive_field {
    scope memory; /* memory of the arrays; to be freed */
    position_rule rule;
    bool paired;         /* whether slots are pairs of rows */
    size_t length;       /* N: distances |r| < N; 0: unlimited */
    size_t slots_used;   /* number of rows that some distance uses */
    field_row *rows;     /* [slots_used], by row */
    size_t unique_count; /* number of distances that share their row with no other */
    ptrdiff_t *unique;   /* [unique_count], ascending */
    ptrdiff_t unique_min, unique_max;
    /* number of keys to the left and right of 0 that are unique without a gap; 0 itself is between them */
    size_t run_left, run_right;
} receptive_field;

/* Reads what a model's configuration says of positions, for a made-up model or a folder that need not hold weights:
 * name (the path), version, layers, relative and absolute positions; the rest is 0. */
deberta_status receptive_field_describe(deberta_model_info *info, const char *path, deberta_error *err);

/* Computes the field. DEBERTA_E_UNSUPPORTED for a model without relative positions or whose rows do not grow with the
 * distance. paired: the field as the paper prints it. p2c reads the row of (j, i), so that a distance is known by the
 * pair (row(r), row(-r)) and is ambiguous only where both are shared. The published implementations do not compute
 * this; `row` of a field_row then only numbers the pairs. */
deberta_status receptive_field_make(receptive_field *field, const position_rule *rule, size_t length, bool paired,
                                    deberta_error *err);

/* The field over n layers: displacements that are sums of one unambiguous distance per layer, under four definitions.
 * A text of N tokens has none beyond N - 1, so that a field of that length counts none. */
typedef struct composed_field {
    size_t run;        /* sums of distances from the run around 0: 1 + (left + right) n without a limit */
    size_t unique_set; /* sums of any unique distances */
    size_t contiguous; /* the part of those around 0 without a gap */
    size_t hull;       /* from the smallest to the largest of those */
} composed_field;

typedef enum field_definition {
    FIELD_RUN,
    FIELD_UNIQUE_SET,
    FIELD_CONTIGUOUS,
    FIELD_HULL,
    FIELD_DEFINITIONS
} field_definition;

const char *field_definition_name(field_definition definition); /* Returns the name of the member. */
size_t composed_field_value(const composed_field *composed, field_definition definition);

/* Returns the displacement, at most the largest distance in a text of the field's length. */
size_t receptive_field_within(const receptive_field *field, size_t displacement);

/* Composes the field; composed [layers]: entry k is k + 1 layers. */
deberta_status receptive_field_compose(const receptive_field *field, size_t layers, composed_field *composed,
                                       deberta_error *err);

/* The formulas that papers and essays give for span k and n layers. */
typedef enum field_formula {
    FIELD_2K1N,   /* (2k-1)n */
    FIELD_2K2N,   /* 2(k-1)n */
    FIELD_1_2K2N, /* 1+2(k-1)n */
    FIELD_1_2K1N, /* 1+(2k-1)n */
    FIELD_1_2K3N, /* 1+(2k-3)n */
    FIELD_FORMULAS
} field_formula;

const char *field_formula_name(field_formula formula);
size_t field_formula_value(field_formula formula, size_t span, size_t layers);

/* Returns the length of the longest text in which no two distances share a row; 0 with an error if there is none. */
size_t receptive_field_longest_unambiguous(const position_rule *rule, deberta_error *err);

/* Compute the two results above from a model's description. */
deberta_status receptive_field_of_model(receptive_field *field, const deberta_model_info *info,
                                        deberta_reference reference, size_t length, deberta_error *err);
size_t receptive_field_longest_of_model(const deberta_model_info *info, deberta_reference reference,
                                        deberta_error *err);

/* Counts, for a query at `position` in a text of `length` tokens, the keys whose distance from it is unambiguous among
 * all distances of that text, and among the distances of this query alone. */
void receptive_field_of_token(const receptive_field *field, size_t position, size_t *unambiguous, size_t *among_own);
/* Counts the tokens of such a text whose keys all have different rows, and finds the first of these tokens; they are
 * neighbours. */
size_t receptive_field_seeing_tokens(const receptive_field *field, size_t *first);
