/* What the studies on trained models share: LOSSES, the table that tools/train_grid.py wrote, in cells with intervals.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_LOSSES_H
#define STUDIES_STUDY_LOSSES_H

#include "analysis/loss_table.h"
#include "studies/study.h"

typedef struct loss_study {
    study study;
    loss_table table;
    loss_cells cells;
    double *differences; /* [texts] */
} loss_study;

/* Reads argument 0. */
deberta_status loss_study_read(loss_study *s, deberta_error *err);
void loss_study_close(study *s);

/* DEBERTA_E_FORMAT if the table lacks the cell. */
deberta_status loss_study_find(const loss_study *s, const char *name, const loss_cell **cell, deberta_error *err);
/* The mean over the texts or, against another cell, of the differences text by text. */
bootstrap_interval loss_study_mean(loss_study *s, const loss_cell *cell, const loss_cell *against);

/* "1.817 (1.790-1.845)", or with a sign: "+0.021 (+0.015 to +0.027)", "0" against itself. */
void loss_study_cell(result_table *table, const bootstrap_interval *mean, bool is_difference);
void loss_study_note(loss_study *s, size_t seeds);

#endif
