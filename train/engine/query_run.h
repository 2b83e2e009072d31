/* SPDX-License-Identifier: MIT */
#ifndef TRAIN_QUERY_RUN_H
#define TRAIN_QUERY_RUN_H

#include <stddef.h>

/* Consecutive queries of one sequence: `row` is where they are among the rows of a record, `place` in the sequence. */
typedef struct query_run {
    size_t sequence, place, row, count;
} query_run;

#endif
