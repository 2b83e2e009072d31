/* Curves that are the same cover one another: which ones do is said under the chart. SPDX-License-Identifier: MIT */
#include "viz/chart_equal.h"

#include <string.h>

static bool is_curve(const chart_series *s)
{
    return s->name && !s->faint && s->count > 1 && (s->kind == CHART_LINE || s->kind == CHART_CURVE);
}

static bool are_equal(const chart_series *a, const chart_series *b)
{
    const size_t bytes = a->count * sizeof(double);
    if (!is_curve(a) || !is_curve(b) || a->count != b->count || strcmp(a->name, b->name) == 0) return false;
    if (memcmp(a->y, b->y, bytes) != 0 || !a->x != !b->x) return false;
    return !a->x || memcmp(a->x, b->x, bytes) == 0;
}

/* The first series before this one that is equal to it; NULL: there is none. */
static const chart_series *covered_by(const chart_panel *panel, size_t index)
{
    for (size_t k = 0; k < index; k++)
        if (are_equal(&panel->series[k], &panel->series[index])) return &panel->series[k];
    return NULL;
}

/* Whether the panel has series of both names, the second covering the first. */
static bool has_pair(const chart_panel *panel, const char *first, const char *second)
{
    bool found = false;
    for (size_t k = 0; k < panel->series_count && !found; k++) {
        const chart_series *covered = covered_by(panel, k);
        found = covered && strcmp(covered->name, first) == 0 && strcmp(panel->series[k].name, second) == 0;
    }
    return found;
}

static void say_pair(const chart_figure *spec, size_t panel, const char *first, const char *second, byte_buffer *text)
{
    byte_buffer_format(text, "%s and %s are equal, one covers the other", first, second);
    const char *before = " (";
    for (; panel < spec->panel_count && spec->panel_count > 1; panel++) {
        if (!spec->panels[panel].title || !has_pair(&spec->panels[panel], first, second)) continue;
        byte_buffer_format(text, "%s%s", before, spec->panels[panel].title);
        before = ", ";
    }
    byte_buffer_format(text, *before == ',' ? "). " : ". ");
}

void chart_say_equal(const chart_figure *spec, byte_buffer *text)
{
    enum { MOST_PAIRS = 3 };
    size_t pairs = 0;
    for (size_t p = 0; p < spec->panel_count; p++) {
        for (size_t k = 1; k < spec->panels[p].series_count; k++) {
            const chart_series *covered = covered_by(&spec->panels[p], k);
            bool said = !covered;
            for (size_t before = 0; before < p && !said; before++)
                said = has_pair(&spec->panels[before], covered->name, spec->panels[p].series[k].name);
            if (!said && pairs++ < MOST_PAIRS) say_pair(spec, p, covered->name, spec->panels[p].series[k].name, text);
        }
    }
    if (pairs > MOST_PAIRS) byte_buffer_format(text, "So are %zu other pairs. ", pairs - MOST_PAIRS);
}
