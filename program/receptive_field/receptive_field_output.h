/* Writes the findings of `receptive-field` as text and as JSON.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/behaviour.h"
#include "analysis/influence.h"
#include "analysis/receptive_field.h"
#include "output/result.h"
#include "program/frame/input/text_stream.h"
#include "viz/figure.h"

typedef struct field_findings {
    deberta_model_info info; /* configuration, from receptive_field_describe */
    deberta_reference reference;
    size_t layers, length; /* length: tokens of the text; 0: distances are not limited */
    receptive_field field, paired;
    composed_field *composed; /* [layers] */
    size_t longest;           /* tokens of the longest text in which every distance has an unshared row */
    bool all_rows;            /* true: list the whole table */
    bool has_behaviour;
    behaviour_report behaviour;
    bool has_influence;
    influence_report influence;
} field_findings;

void field_findings_free(field_findings *findings);

/* Draws the band over the layers with the quoted formulas, and the bucket function. findings: field_findings. */
deberta_status receptive_field_draw(const void *findings, const figure_style *style, const char *const *paths,
                                    size_t path_count, deberta_error *err);

/* Returns the findings as a result, which the caller frees. */
result *field_findings_result(const field_findings *findings);

/* Options of `deberta receptive-field`. */
typedef struct field_request {
    reading_options reading; /* texts or ids on which influence is measured */
    size_t tokens;           /* tokens of a text; 0: distances of texts of any length */
    size_t layers;           /* number of layers; 0: the model's */
    text_list plots;         /* paths of --plot: pictures, as for --out */
    figure_style style;
    bool behaviour, influence, rows;
    size_t behaviour_layers, behaviour_tokens, influence_tokens, influence_sources;
} field_request;
