/* SPDX-License-Identifier: MIT */
#include "studies/study_losses.h"

#include "core/io/quote.h"

deberta_status loss_study_read(loss_study *s, deberta_error *err)
{
    const common_options *options = s->study.options;
    DEBERTA_TRY(loss_table_read(&s->table, options->arguments[0], err));
    DEBERTA_TRY(loss_cells_make(&s->cells, &s->table, err));
    s->differences = options_take(options, s->table.texts, sizeof *s->differences);
    return DEBERTA_OK;
}

void loss_study_close(study *s)
{
    loss_study *losses = (loss_study *)s;
    loss_cells_free(&losses->cells);
    loss_table_free(&losses->table);
}

deberta_status loss_study_find(const loss_study *s, const char *name, const loss_cell **cell, deberta_error *err)
{
    *cell = loss_cells_find(&s->cells, name);
    if (!*cell)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there is no column '%s#1'", QUOTE(s->study.options->arguments[0]),
                     name);
    return DEBERTA_OK;
}

bootstrap_interval loss_study_mean(loss_study *s, const loss_cell *cell, const loss_cell *against)
{
    for (size_t k = 0; k < s->table.texts; k++)
        s->differences[k] = cell->losses[k] - (against ? against->losses[k] : 0);
    return study_ratio(&s->study, s->differences, NULL, s->table.texts);
}

void loss_study_cell(result_table *table, const bootstrap_interval *mean, bool is_difference)
{
    if (!is_difference)
        study_cell_estimate(table, "%.3f (%.3f-%.3f)", mean);
    else if (mean->value == 0 && !(mean->low < 0) && !(mean->high > 0)) /* a cell against itself */
        cell_integer(table, 0);
    else
        study_cell_estimate(table, "%+.3f (%+.3f to %+.3f)", mean);
}

void loss_study_note(loss_study *s, size_t seeds)
{
    s->study.note = options_text(s->study.options,
                                 "%zu held-out texts, mean of %zu seed%s; 95 %% intervals over texts, paired for "
                                 "differences (%s). They say nothing about other seeds.",
                                 s->table.texts, seeds, seeds == 1 ? "" : "s", study_resamples(&s->study));
}
