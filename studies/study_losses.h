/* What the studies on trained models share: LOSSES, the table that tools/train_grid.py wrote, in cells with intervals.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_LOSSES_H
#define STUDIES_STUDY_LOSSES_H

#include "analysis/bootstrap.h"
#include "output/result.h"
#include "command/options.h"
#include "analysis/loss_table.h"

typedef struct study_losses {
    const char *path;
    uint64_t seed;
    loss_table table;
    loss_cells cells;
    double *differences; /* [texts] */
} study_losses;

/* Checks the options of a study, then reads argument 0. EXIT_OK or an exit code, after saying why. */
int study_losses_open(study_losses *losses, const common_options *options);
void study_losses_close(study_losses *losses);

/* DEBERTA_E_FORMAT if the table lacks the cell. */
deberta_status study_losses_find(const study_losses *losses, const char *name, const loss_cell **cell,
                                 deberta_error *err);
/* The mean over the texts or, against another cell, of the differences text by text. */
deberta_status study_losses_mean(study_losses *losses, const loss_cell *cell, const loss_cell *against,
                                 bootstrap_interval *mean, deberta_error *err);

/* "1.817 (1.790-1.845)", or with a sign: "+0.021 (+0.015 to +0.027)", "0" against itself. */
void study_losses_add(result_table *table, const bootstrap_interval *mean, bool is_difference);
/* value, low, high, seeds: the last four columns of a row of data */
void study_losses_add_data(result_table *data, const bootstrap_interval *mean, size_t seeds);
void study_losses_note(const study_losses *losses, size_t seeds, char *note, size_t size);

#endif
