/* What the panels of each kind in an attention figure have in common. SPDX-License-Identifier: MIT */
#ifndef VIZ_ATTENTION_KINDS_H
#define VIZ_ATTENTION_KINDS_H

#include "viz/attention_figure.h"

/* What the colours of a kind are, and what they mean. */
const char *attention_palette(const attention_figure *spec, heatmap_kind kind);
void attention_unit(const attention_figure *spec, heatmap_kind kind, char text[HEATMAP_UNIT_BYTES]);
/* Whether a panel has cells: not an empty place, nor a word instead. */
bool attention_has_cells(const attention_figure *spec, size_t index);
/* What the panels of a kind share a scale with; a row that is the only one shares it with all. */
heatmap_policy attention_policy(const attention_figure *spec, heatmap_kind kind);
/* Whether a bar stands at the right of the panel; whether bars stand in the lines of the titles of rows. */
bool attention_has_own_bar(const attention_figure *spec, size_t index);
bool attention_has_row_bars(const attention_figure *spec);

#endif
