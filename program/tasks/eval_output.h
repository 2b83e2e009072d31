/* Writes the findings of `eval` as tables, as JSON and as a bar chart. SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/classification.h"
#include "output/result.h"

typedef struct eval_findings {
    const char *const *names; /* [confusion.labels] */
    confusion confusion;
    size_t bad; /* number of lines that could not be used */
} eval_findings;

/* Returns {"schema": "deberta-eval/1", "texts", "bad", "accuracy", ..., "classes": [...], "labels": [...],
 * "confusion": [[]]}; CSV and LaTeX hold the table of the classes alone. The caller frees it. */
result *eval_result(const eval_findings *findings);

/* Draws a bar chart of the classes; findings: eval_findings. */
struct figure_style;
deberta_status eval_figure_draw(const void *findings, const struct figure_style *style, const char *const *paths,
                                size_t path_count, deberta_error *err);
