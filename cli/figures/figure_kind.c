/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kind.h"

int figure_draw(const common_options *options, const figure_kind *kind)
{
    const attention_options *asked = (const attention_options *)options;
    figure_source source = {0};
    figure_sheet sheet;
    int status = attention_options_check(asked);
    if (status != EXIT_OK) return status;
    status = source_open(&source, asked, kind->all_rows);
    source.hidden = kind->hidden;
    if (status == EXIT_OK) status = sheet_open(&sheet, &source);
    if (status == EXIT_OK) status = kind->draw(&source, &sheet);
    source_close(&source);
    return status;
}

int figure_run(const common_options *options) { return figure_draw(options, (const figure_kind *)options->command); }
