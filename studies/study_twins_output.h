/* The study of two models' attention in two parts: study_twins.c measures, study_twins_output.c makes tables and the
 * figure.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_TWINS_OUTPUT_H
#define STUDIES_STUDY_TWINS_OUTPUT_H

#include "command/options.h"
#include "studies/study.h"
#include "studies/study_texts.h"
#include "analysis/attention_spread.h"

enum {
    TWINS = 2,
    TWINS_MOST_LAYERS = 64,
    TWINS_REACH = 64, /* of the curves */
};

typedef struct twin {
    const char *name;
    deberta_model *model;
    deberta_model_info info;
    attention_spread spread;
} twin;

typedef struct twins_study {
    const common_options *options;
    uint64_t seed;
    study_texts texts;
    twin models[TWINS];
    size_t layers, reach;          /* of the deeper one; of the curves */
    bool drawn[TWINS_MOST_LAYERS]; /* layers whose curves are drawn */
    unsigned char *own;            /* [tokens] of all sentences; 0: the frame */
    double *parts, *wholes;        /* [sentences] of one bootstrap */
    study_findings findings;
} twins_study;

/* Fills study->findings with tables and data, draws, writes and prints. EXIT_OK or an exit code, after saying why. */
int twins_finish(twins_study *study);

#endif
