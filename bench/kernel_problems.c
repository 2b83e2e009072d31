/* Lines of problem files are read, and kernels' names in them are checked. SPDX-License-Identifier: MIT */
#include "bench/kernel_problems.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/byte_order_mark.h"
#include "core/base/stream.h"
#include "core/kernels.h"

static const char *const operation_names[KERNEL_OPERATIONS] = {
    [KERNEL_GEMM] = "gemm",
    [KERNEL_PACK] = "pack",
    [KERNEL_POSITION_BIAS] = "position_bias",
    [KERNEL_SOFTMAX] = "softmax",
    [KERNEL_LAYERNORM] = "layernorm",
    [KERNEL_ACTIVATE] = "activate",
    [KERNEL_GEMM_TN] = "gemm_tn",
    [KERNEL_SUM_ROWS] = "sum_rows",
    [KERNEL_DOT_ROWS] = "dot_rows",
    [KERNEL_LAYERNORM_BACKWARD] = "layernorm_backward",
    [KERNEL_ACTIVATE_BACKWARD] = "activate_backward",
    [KERNEL_SOFTMAX_BACKWARD] = "softmax_backward",
    [KERNEL_FOLD_RUNS] = "fold_runs",
    [KERNEL_ADAM] = "adam",
    [KERNEL_DROPOUT] = "dropout",
    [KERNEL_QUANTIZE_U8] = "quantize_u8",
    [KERNEL_QUANTIZE_U8X2] = "quantize_u8x2",
    [KERNEL_QUANTIZE_U15] = "quantize_u15",
    [KERNEL_QUANTIZE_PANELS] = "quantize_panels",
    [KERNEL_GEMM_U8] = "gemm_u8",
    [KERNEL_GEMM_U8X2] = "gemm_u8x2",
    [KERNEL_GEMM_U15] = "gemm_u15",
};

static const char *const function_names[] = {
    [KERNEL_GELU] = "gelu",
    [KERNEL_GELU_TANH] = "gelu_tanh",
    [KERNEL_GELU_QUICK] = "gelu_quick",
    [KERNEL_RELU] = "relu",
    [KERNEL_SILU] = "silu",
    [KERNEL_TANH] = "tanh",
    [KERNEL_SIGMOID] = "sigmoid",
    [KERNEL_EXP] = "exp",
};

/* Larger ones would only measure memory for minutes. */
enum { MOST_EXTENT = 1 << 20, MOST_FLOATS = 1 << 28, MOST_LINE_BYTES = 1 << 20 };

static deberta_status find_name(int *index, const char *const *names, size_t count, const char *word, const char *kind,
                                const char *where, deberta_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, names[i]) == 0) {
            *index = (int)i;
            return DEBERTA_OK;
        }
    }
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: unknown %s '%.40s'", where, kind, word);
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

/* "name=value" or a word that stands alone. */
static deberta_status parse_setting(kernel_problem *p, char *word, const char *where, deberta_error *err)
{
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    bool *flag = strcmp(word, "bias") == 0       ? &p->bias
                 : strcmp(word, "gelu") == 0     ? &p->gelu
                 : strcmp(word, "residual") == 0 ? &p->residual
                                                 : NULL;
    if (flag && !value) {
        if (p->operation != KERNEL_GEMM) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: '%s' belongs to gemm", where, word);
        *flag = true;
        return DEBERTA_OK;
    }
    if (value && strcmp(word, "rows") == 0) return parse_extent(&p->rows, word, value, where, err);
    if (value && strcmp(word, "depth") == 0) return parse_extent(&p->depth, word, value, where, err);
    if (value && strcmp(word, "columns") == 0) return parse_extent(&p->columns, word, value, where, err);
    if (value && strcmp(word, "distance") == 0) return parse_distance(&p->distance, value, where, err);
    if (value && strcmp(word, "function") == 0)
        return find_name(&p->function, function_names, sizeof function_names / sizeof *function_names, value,
                         "function", where, err);
    DEBERTA_FAIL(
        err, DEBERTA_E_FORMAT,
        "%s: '%.40s' is not understood; known are rows=, depth=, columns=, distance=, function=, bias, gelu, residual",
        where, word);
}

static deberta_status check(const kernel_problem *p, const char *where, deberta_error *err)
{
    const bool has_panels =
        p->operation == KERNEL_GEMM || p->operation == KERNEL_GEMM_TN || p->operation >= KERNEL_QUANTIZE_PANELS;
    const bool of_15_bits = p->operation == KERNEL_QUANTIZE_U15 || p->operation == KERNEL_GEMM_U15;
    const size_t most_depth = of_15_bits ? MAX_U15_DEPTH : MAX_INTEGER_DEPTH;
    if (has_panels && p->columns % PANEL != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: columns=%zu of %s is not a multiple of %d", where, p->columns,
                     operation_names[p->operation], PANEL);
    if (p->operation >= KERNEL_QUANTIZE_U8 && (p->depth % DIGIT_TILE_INPUTS != 0 || p->depth > most_depth))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: depth=%zu of %s is not a multiple of %d, at most %zu", where, p->depth,
                     operation_names[p->operation], DIGIT_TILE_INPUTS, most_depth);
    if (p->operation == KERNEL_SOFTMAX && p->columns > KEY_CHUNK)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: softmax takes at most %d columns at once", where, KEY_CHUNK);
    size_t wide = p->columns > p->depth ? p->columns : p->depth;
    size_t high = p->rows > p->depth ? p->rows : p->depth;
    if (wide > MOST_FLOATS / high) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a matrix of more than 1 GiB", where);
    return DEBERTA_OK;
}

deberta_status kernel_problem_parse(kernel_problem *problem, const char *line, const char *where, deberta_error *err)
{
    char text[sizeof problem->text], *rest = NULL;
    size_t length = strcspn(line, "#\r\n");
    while (length > 0 && isspace((unsigned char)line[length - 1])) length--;
    while (length > 0 && isspace((unsigned char)*line)) line++, length--;
    if (length >= sizeof text)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: longer than %zu characters", where, sizeof text - 1);
    memcpy(text, line, length);
    text[length] = '\0';
    *problem = (kernel_problem){.rows = 1, .columns = 1, .depth = 64};
    memcpy(problem->text, text, length + 1);

    int operation = 0;
    char *word = strtok_r(text, " \t", &rest);
    DEBERTA_TRY(find_name(&operation, operation_names, KERNEL_OPERATIONS, word ? word : "", "kernel", where, err));
    problem->operation = (kernel_operation)operation;
    while ((word = strtok_r(NULL, " \t", &rest))) DEBERTA_TRY(parse_setting(problem, word, where, err));
    return check(problem, where, err);
}

static bool is_empty(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

static deberta_status append(kernel_problems *list, const kernel_problem *problem, deberta_error *err)
{
    kernel_problem *longer = realloc(list->problems, (list->count + 1) * sizeof *longer);
    if (!longer) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu problems", list->count + 1);
    list->problems = longer;
    list->problems[list->count++] = *problem;
    return DEBERTA_OK;
}

deberta_status kernel_problems_read(kernel_problems *list, FILE *file, const char *name, deberta_error *err)
{
    char *line = NULL, where[300];
    size_t capacity = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t number = 1; status == DEBERTA_OK; number++) {
        kernel_problem problem;
        size_t length;
        status = stream_read_line(file, &line, &capacity, MOST_LINE_BYTES, &length, (stream_place){name, number}, err);
        if (status != DEBERTA_OK || !length) break;
        const char *text = line + (number == 1 ? byte_order_mark(line, strlen(line)) : 0);
        if (is_empty(text)) continue;
        snprintf(where, sizeof where, "%.250s:%zu", name, number);
        status = kernel_problem_parse(&problem, text, where, err);
        if (status == DEBERTA_OK) status = append(list, &problem, err);
    }
    free(line);
    return status;
}

void kernel_problems_free(kernel_problems *list)
{
    free(list->problems);
    *list = (kernel_problems){0};
}
