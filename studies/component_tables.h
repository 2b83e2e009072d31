/* Tables and figure of `deberta study components`. SPDX-License-Identifier: MIT */
#ifndef STUDIES_COMPONENT_TABLES_H
#define STUDIES_COMPONENT_TABLES_H

#include "studies/study.h"
#include "studies/study_texts.h"
#include "analysis/component_share.h"

enum { COMPONENT_P2P = 2, COMPONENT_LOSSES = 1 + COMPONENT_P2P };

typedef struct components_study {
    const common_options *options;
    uint64_t seed;
    study_texts texts;
    uint8_t *classes; /* [tokens] token_class */
    component_share share;
    bool has_p2p, has_losses;
    position_term p2p[COMPONENT_P2P]; /* by position_term_index */
    double *losses[COMPONENT_LOSSES]; /* [sentences] sums: the model, then with each p2p. NULL without has_losses */
    double *masks;                    /* [sentences] */
    double *parts, *wholes;           /* [sentences] of one bootstrap */
    study_findings findings;
} components_study;

deberta_status component_tables_make(components_study *study, deberta_error *err);
/* Draws, writes, prints. */
int component_tables_finish(components_study *study);

#endif
