/* Reads the lines of problem files and checks the names of kernels in them. SPDX-License-Identifier: MIT */
#include "bench/kernel_problems.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "check/kernels/activations.h"
#include "core/base/text.h"

/* Larger problems would measure memory, for minutes. */
enum { MOST_EXTENT = 1 << 20, MOST_FLOATS = 1 << 28, MOST_LINE_BYTES = 1 << 20 };

static deberta_status find_slot(kernel_slot *slot, const char *word, const char *where, deberta_error *err)
{
    for (int i = 0; i < KERNEL_SLOTS; i++) {
        *slot = (kernel_slot)i;
        if (strcmp(word, problem_description(*slot)->word) == 0) return DEBERTA_OK;
    }
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: unknown kernel '%.40s'", where, word);
}

static deberta_status find_function(activation *function, const char *word, const char *where, deberta_error *err)
{
    for (int i = ACTIVATION_GELU; i <= ACTIVATION_EXP; i++) {
        *function = (activation)i;
        if (strcmp(word, activation_name(*function)) == 0) return DEBERTA_OK;
    }
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: unknown function '%.40s'", where, word);
}

static deberta_status parse_extent(size_t *value, const char *name, const char *text, const char *where,
                                   deberta_error *err)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || number < 1 || number > MOST_EXTENT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s='%.40s' is not a number from 1 to %d", where, name, text,
                     MOST_EXTENT);
    *value = number;
    return DEBERTA_OK;
}

static deberta_status parse_distance(ptrdiff_t *value, const char *text, const char *where, deberta_error *err)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < -MOST_EXTENT || number > MOST_EXTENT)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: distance='%.40s' is not a number", where, text);
    *value = number;
    return DEBERTA_OK;
}

/* Parses "name=value" or a single word. */
static deberta_status parse_setting(kernel_problem *p, char *word, const char *where, deberta_error *err)
{
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    const unsigned flag = strcmp(word, "bias") == 0       ? WITH_BIAS
                          : strcmp(word, "gelu") == 0     ? WITH_GELU
                          : strcmp(word, "residual") == 0 ? RESIDUAL_IN_C
                                                          : 0;
    if (flag && !value) {
        if (!(problem_description(p->slot)->optional & flag))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' belongs to gemm", where, word);
        p->options |= flag;
        return DEBERTA_OK;
    }
    if (value && strcmp(word, "rows") == 0) return parse_extent(&p->rows, word, value, where, err);
    if (value && strcmp(word, "depth") == 0) return parse_extent(&p->depth, word, value, where, err);
    if (value && strcmp(word, "columns") == 0) return parse_extent(&p->columns, word, value, where, err);
    if (value && strcmp(word, "distance") == 0) return parse_distance(&p->distance, value, where, err);
    if (value && strcmp(word, "function") == 0) return find_function(&p->function, value, where, err);
    DEBERTA_FAIL(
        err, DEBERTA_E_FORMAT,
        "%s: '%.40s' is not understood; known are rows=, depth=, columns=, distance=, function=, bias, gelu, residual",
        where, word);
}

static deberta_status kernel_problems_check(const kernel_problem *p, const char *where, deberta_error *err)
{
    const kernel_description *d = problem_description(p->slot);
    if (d->column_unit && p->columns % d->column_unit != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: columns=%zu of %s is not a multiple of %zu", where, p->columns,
                     d->word, d->column_unit);
    if ((d->depth_unit && p->depth % d->depth_unit != 0) || (d->most_depth && p->depth > d->most_depth))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: depth=%zu of %s is not a multiple of %zu, at most %zu", where,
                     p->depth, d->word, d->depth_unit ? d->depth_unit : 1, d->most_depth);
    if (d->most_columns && p->columns > d->most_columns)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s takes at most %zu columns at once", where, d->word,
                     d->most_columns);
    size_t wide = p->columns > p->depth ? p->columns : p->depth;
    size_t high = p->rows > p->depth ? p->rows : p->depth;
    if (wide > MOST_FLOATS / high) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a matrix of more than 1 GiB", where);
    return DEBERTA_OK;
}

deberta_status problem_line_parse(problem_line *parsed, const char *line, const char *where, deberta_error *err)
{
    char text[sizeof parsed->text], *rest = NULL;
    size_t length = strcspn(line, "#\r\n");
    while (length > 0 && isspace((unsigned char)line[length - 1])) length--;
    while (length > 0 && isspace((unsigned char)*line)) line++, length--;
    if (length >= sizeof text)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: longer than %zu characters", where, sizeof text - 1);
    memcpy(text, line, length);
    text[length] = '\0';
    memcpy(parsed->text, text, length + 1);
    kernel_problem *p = &parsed->problem;
    *p = (kernel_problem){.rows = 1,
                          .columns = 1,
                          .depth = 64,
                          .plain = true,
                          .values = VALUES_UNIFORM,
                          .random = 12345,
                          .function = ACTIVATION_GELU};

    char *word = strtok_r(text, " \t", &rest);
    DEBERTA_TRY(find_slot(&p->slot, word ? word : "", where, err));
    if (problem_description(p->slot)->has_parts) p->parts = 1;
    p->options = problem_description(p->slot)->optional & FETCH_NEXT;
    while ((word = strtok_r(NULL, " \t", &rest))) DEBERTA_TRY(parse_setting(p, word, where, err));
    return kernel_problems_check(p, where, err);
}

static bool is_empty(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

static void kernel_problems_append(problem_lines *list, const problem_line *line)
{
    list->lines = scope_grown(&list->memory, list->lines, &list->room, list->count, sizeof *list->lines);
    list->lines[list->count++] = *line;
}

deberta_status problem_lines_read(problem_lines *list, FILE *file, const char *name, deberta_error *err)
{
    char *line = NULL, where[300];
    size_t capacity = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t number = 1; status == DEBERTA_OK; number++) {
        problem_line parsed;
        size_t length;
        status = stream_read_line(file, &line, &capacity, MOST_LINE_BYTES, &length, (stream_place){name, number}, err);
        if (status != DEBERTA_OK || !length) break;
        const char *text = line + (number == 1 ? byte_order_mark(line, strlen(line)) : 0);
        if (is_empty(text)) continue;
        snprintf(where, sizeof where, "%.250s:%zu", name, number);
        status = problem_line_parse(&parsed, text, where, err);
        if (status == DEBERTA_OK) kernel_problems_append(list, &parsed);
    }
    free(line);
    return status;
}
