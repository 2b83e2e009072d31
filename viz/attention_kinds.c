/* Determines the properties shared by panels of one kind in an attention figure: colours, unit, scale and the place of
 * its bar.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/attention_kinds.h"

const char *attention_palette(const attention_figure *spec, heatmap_kind kind)
{
    static const char *const defaults[] = {"polar", "blues", "viridis", "viridis"};
    return spec->palettes[kind] ? spec->palettes[kind] : defaults[kind];
}

void attention_unit(const attention_figure *spec, heatmap_kind kind, char text[HEATMAP_UNIT_BYTES])
{
    heatmap_unit_text(spec->units[kind], kind, spec->keep_row_mean, text);
}

bool attention_has_cells(const attention_figure *spec, size_t index)
{
    return spec->panels[index].values && !(spec->words && spec->words[index]);
}

heatmap_policy attention_policy(const attention_figure *spec, heatmap_kind kind)
{
    const heatmap_policy policy = spec->scales[kind].policy;
    return policy == HEATMAP_ROW && spec->grid_rows == 1 ? HEATMAP_SHARED : policy;
}

bool attention_has_own_bar(const attention_figure *spec, size_t index)
{
    return attention_has_cells(spec, index) && spec->scales[spec->panels[index].kind].policy == HEATMAP_PANEL;
}

bool attention_has_row_bars(const attention_figure *spec)
{
    bool any = false;
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) any |= attention_policy(spec, kind) == HEATMAP_ROW;
    return any;
}
