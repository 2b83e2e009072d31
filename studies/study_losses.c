/* SPDX-License-Identifier: MIT */
#include "studies/study_losses.h"

#include <stdio.h>
#include <stdlib.h>

#include "studies/study.h"
#include "core/io/quote.h"

static deberta_status read_all(study_losses *losses, deberta_error *err)
{
    DEBERTA_TRY(loss_table_read(&losses->table, losses->path, err));
    DEBERTA_TRY(loss_cells_make(&losses->cells, &losses->table, err));
    losses->differences = malloc(losses->table.texts * sizeof *losses->differences);
    if (!losses->differences) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    return DEBERTA_OK;
}

int study_losses_open(study_losses *losses, const common_options *options)
{
    deberta_error error;
    *losses = (study_losses){.path = options->arguments[0], .seed = options->seed};
    if (!study_check_options(options)) return EXIT_USAGE;
    const deberta_status status = read_all(losses, &error);
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}

void study_losses_close(study_losses *losses)
{
    free(losses->differences);
    loss_cells_free(&losses->cells);
    loss_table_free(&losses->table);
    *losses = (study_losses){0};
}

deberta_status study_losses_find(const study_losses *losses, const char *name, const loss_cell **cell,
                                 deberta_error *err)
{
    *cell = loss_cells_find(&losses->cells, name);
    if (!*cell) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there is no column '%s#1'", QUOTE(losses->path), name);
    return DEBERTA_OK;
}

deberta_status study_losses_mean(study_losses *losses, const loss_cell *cell, const loss_cell *against,
                                 bootstrap_interval *mean, deberta_error *err)
{
    for (size_t k = 0; k < losses->table.texts; k++)
        losses->differences[k] = cell->losses[k] - (against ? against->losses[k] : 0);
    return bootstrap_ratio(mean, losses->differences, NULL, losses->table.texts, losses->seed, err);
}

void study_losses_add(result_table *table, const bootstrap_interval *mean, bool is_difference)
{
    if (!is_difference)
        cell_text(table, "%.3f (%.3f-%.3f)", mean->value, mean->low, mean->high);
    else if (mean->value == 0 && mean->low == 0 && mean->high == 0) /* a cell against itself */
        cell_integer(table, 0);
    else
        cell_text(table, "%+.3f (%+.3f to %+.3f)", mean->value, mean->low, mean->high);
}

void study_losses_add_data(result_table *data, const bootstrap_interval *mean, size_t seeds)
{
    study_cell_interval(data, mean);
    cell_integer(data, (int64_t)seeds);
}

void study_losses_note(const study_losses *losses, size_t seeds, char *note, size_t size)
{
    snprintf(note, size,
             "%zu held-out texts, mean of %zu seed%s; 95 %% intervals over "
             "texts, paired for differences (%d resamples, seed %llu). They say nothing about other seeds.",
             losses->table.texts, seeds, seeds == 1 ? "" : "s", BOOTSTRAP_RESAMPLES, (unsigned long long)losses->seed);
}
