/* Parses lists of sizes; an error names what was expected at the faulty place. SPDX-License-Identifier: MIT */
#include "bench/range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The text being parsed, and what messages need. */
typedef struct reader {
    scope *memory;
    const char *text, *at, *what;
    size_t lowest, highest;
    bool repeated; /* true: repeated values are kept */
    size_t room;
    deberta_error *err;
} reader;

static deberta_status read_number(reader *r, size_t *value)
{
    if (*r->at < '0' || *r->at > '9') {
        size_t length = strcspn(r->at, ",");
        if (length == 0) DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': a number is missing", r->what, r->text);
        DEBERTA_FAIL(
            r->err, DEBERTA_E_ARGUMENT,
            "%s '%s': '%.*s' is not a number; expected a list like 16,40,128 or a range like 1-12, 16-128+16, 16-512*2",
            r->what, r->text, length > 40 ? 40 : (int)length, r->at);
    }
    char *end;
    errno = 0;
    unsigned long long number = strtoull(r->at, &end, 10);
    if (errno == ERANGE || number > r->highest) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': %.*s is too large, the largest is %zu", r->what, r->text,
                     end - r->at > 40 ? 40 : (int)(end - r->at), r->at, r->highest);
    }
    *value = (size_t)number;
    r->at = end;
    return DEBERTA_OK;
}

static deberta_status range_append(reader *r, size_list *list, size_t value)
{
    if (value < r->lowest) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': %zu is too small, the smallest is %zu", r->what, r->text,
                     value, r->lowest);
    }
    for (size_t i = 0; i < list->count && !r->repeated; i++) {
        if (list->values[i] == value) return DEBERTA_OK;
    }
    if (list->count == RANGE_MAX_VALUES) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': more than %d values", r->what, r->text, RANGE_MAX_VALUES);
    }
    list->values = scope_grown(r->memory, list->values, &r->room, list->count, sizeof *list->values);
    list->values[list->count++] = value;
    return DEBERTA_OK;
}

/* Reads "+16" or "*2" after a range; without one the step is 1. */
static deberta_status range_read_step(reader *r, bool *multiply, size_t *step)
{
    *multiply = false;
    *step = 1;
    if (*r->at != '+' && *r->at != '*' && *r->at != 'x') return DEBERTA_OK;
    *multiply = *r->at++ != '+';
    DEBERTA_TRY(read_number(r, step));
    if (*step < (*multiply ? 2u : 1u)) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': a step of %s%zu leads nowhere", r->what, r->text,
                     *multiply ? "*" : "+", *step);
    }
    return DEBERTA_OK;
}

static deberta_status read_item(reader *r, size_list *list)
{
    size_t first, last, step;
    bool multiply;
    DEBERTA_TRY(read_number(r, &first));
    if (*r->at != '-') return range_append(r, list, first);
    r->at++;
    DEBERTA_TRY(read_number(r, &last));
    DEBERTA_TRY(range_read_step(r, &multiply, &step));
    if (last < first) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': the range ends at %zu, before it begins at %zu", r->what,
                     r->text, last, first);
    }
    if (multiply && first == 0) {
        DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT, "%s '%s': 0 multiplied stays 0", r->what, r->text);
    }
    for (size_t value = first; value <= last;) {
        DEBERTA_TRY(range_append(r, list, value));
        if (multiply ? !size_multiply(value, step, &value) : !size_add(value, step, &value)) break;
    }
    return DEBERTA_OK;
}

static deberta_status read_list(reader *r, size_list *list)
{
    for (;;) {
        DEBERTA_TRY(read_item(r, list));
        if (*r->at == '\0') return DEBERTA_OK;
        if (*r->at != ',') {
            DEBERTA_FAIL(r->err, DEBERTA_E_ARGUMENT,
                         "%s '%s': '%c' is not expected there; lists are separated by commas", r->what, r->text,
                         *r->at);
        }
        r->at++;
    }
}

deberta_status range_parse(scope *memory, size_list *list, const char *text, const char *what, size_t lowest,
                           size_t highest, bool repeated, deberta_error *err)
{
    reader r = {.memory = memory,
                .text = text,
                .at = text,
                .what = what,
                .lowest = lowest,
                .highest = highest,
                .repeated = repeated,
                .err = err};
    *list = (size_list){0};
    const deberta_status status = read_list(&r, list);
    if (status != DEBERTA_OK) *list = (size_list){0};
    return status;
}
