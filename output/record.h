/* Describes the members of a C struct once; the description gives its JSON, the reader of that JSON, and the cells of
 * CSV files and of text tables.
 *
 *     static const record_field fields[] = {
 *         {"threads", "threads", RECORD_SIZE(bench_result, threads)},
 *         {"median_s", "median ms", RECORD_NUMBER(bench_result, time.median), .scale = 1e3, .digits = 3},
 *         {NULL},
 *     };
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum record_type {
    RECORD_IS_TEXT,   /* a char [bytes] */
    RECORD_IS_SIZE,   /* a size_t */
    RECORD_IS_NUMBER, /* a double; JSON null if it is not finite */
    RECORD_IS_FLAG,   /* a bool */
    RECORD_IS_BITS    /* a uint64_t: 16 hexadecimal digits in a text */
} record_type;

typedef struct record_field {
    const char *name;  /* name in JSON and CSV; NULL ends a list */
    const char *title; /* column title in text tables; NULL: no column */
    record_type type;
    size_t at, bytes;         /* offset and size of the member */
    double scale;             /* factor in text tables; 0: none */
    int digits;               /* digits after the point in text tables; RECORD_DIGITS_OF_ROW: chosen by the caller */
    bool identifies;          /* true: a setting, not a result */
    bool unknown_is_zero;     /* true: 0 gives an empty cell, and for a RECORD_IS_NUMBER JSON null too */
    bool absent_is_zero;      /* true: 0 or an empty text gives an empty cell, and no member in JSON */
    bool fallback;            /* value of a flag that is absent from the JSON */
    const char *const *words; /* words of a flag in text tables: for false, for true; NULL: off, on */
} record_field;

enum { RECORD_DIGITS_OF_ROW = -1, RECORD_CELL_BYTES = 256 };

#define RECORD_MEMBER(S, member, T)                                                                                    \
    .at = offsetof(S, member) + 0 * sizeof(&((S *)0)->member == (T *)0), .bytes = sizeof(((S *)0)->member)
#define RECORD_TEXT(S, member)   RECORD_IS_TEXT, .at = offsetof(S, member), .bytes = sizeof(((S *)0)->member)
#define RECORD_SIZE(S, member)   RECORD_IS_SIZE, RECORD_MEMBER(S, member, size_t)
#define RECORD_NUMBER(S, member) RECORD_IS_NUMBER, RECORD_MEMBER(S, member, double)
#define RECORD_FLAG(S, member)   RECORD_IS_FLAG, RECORD_MEMBER(S, member, bool)
#define RECORD_BITS(S, member)   RECORD_IS_BITS, RECORD_MEMBER(S, member, uint64_t)

/* Adds all fields as members. */
void record_write(json_t *object, const record_field *fields, const void *record);
/* Reads all fields. A member that is absent, or of another type, becomes 0, empty or the fallback. */
void record_read(void *record, const record_field *fields, const json_t *object);
/* Writes one cell, for text tables or for CSV; empty if the value is unknown. digits: for RECORD_DIGITS_OF_ROW. */
void record_cell(char cell[RECORD_CELL_BYTES], const record_field *field, const void *record, bool people, int digits);
