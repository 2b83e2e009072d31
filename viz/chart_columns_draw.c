/* Draws the columns. It is separate from chart_columns.c so that builds without cairo can still fill columns.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/chart_columns.h"

deberta_status chart_columns_draw(chart_columns *c, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err)
{
    chart_figure figure = {.style = *style, .columns = c->across, .panel_height = c->panel_height, .table = c->table};
    figure.panels = chart_columns_panels(c, &figure.panel_count);
    figure.panel_letters = figure.panel_count > 1 && !c->no_letters;
    return path_count ? figure_chart(&figure, paths, path_count, NULL, err)
                      : figure_check(chart_layout, &figure, style, NULL, err);
}
