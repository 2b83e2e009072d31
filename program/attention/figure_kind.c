/* A kind of figure is run: its source is opened, its function draws, and everything is closed.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_kind.h"

#include "program/attention/figure_panels.h"

int figure_draw(const common_options *options, const figure_kind *kind)
{
    const attention_options *asked = (const attention_options *)options;
    figure_source source = {0};
    figure_sheet sheet;
    attention_options in_words = *asked;
    in_words.shown.words = in_words.shown.fitted = true;
    int status = attention_options_check(asked);
    if (status != EXIT_OK) return status;
    figure_style_note_font(options, &asked->style);
    status = source_open(&source, asked, kind->all_rows);
    source.hidden = kind->hidden;
    if (status == EXIT_OK) status = sheet_open(&sheet, &source);
    if (status == EXIT_OK) status = kind->draw(&source, &sheet);
    if (status == FIGURE_WANTS_WORDS) {
        status = source_restart(&source, &in_words);
        if (status == EXIT_OK) status = sheet_open(&sheet, &source);
        if (status == EXIT_OK) status = kind->draw(&source, &sheet);
    }
    source_close(&source);
    return status;
}

int figure_run(const common_options *options) { return figure_draw(options, (const figure_kind *)options->command); }
