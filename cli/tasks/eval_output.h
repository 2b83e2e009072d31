/* What eval found, as tables, as JSON and as a bar chart. SPDX-License-Identifier: MIT */
#ifndef CLI_TASKS_EVAL_OUTPUT_H
#define CLI_TASKS_EVAL_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "command/result_output.h"
#include "analysis/classification.h"

typedef struct eval_findings {
    const char *const *names; /* [confusion.labels] */
    confusion confusion;
    size_t bad; /* lines that could not be used */
} eval_findings;

/* {"schema": "deberta-eval/1", "texts", "bad", "accuracy", ..., "classes": [...], "labels": [...], "confusion": [[]]}
 */
json_t *eval_json(const eval_findings *findings);
/* In every format but JSON; CSV and LaTeX are the table of the classes alone. False if memory ran out. */
bool eval_print(const eval_findings *findings, FILE *out, result_format format);

#if HAVE_VIZ
#include "viz/figure.h"

deberta_status eval_figure_draw(const eval_findings *findings, const figure_style *style, const char *const *paths,
                                size_t path_count, deberta_error *err);
#endif

#endif
