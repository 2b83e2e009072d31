/* Curves that are the same cover one another. SPDX-License-Identifier: MIT */
#ifndef VIZ_CHART_EQUAL_H
#define VIZ_CHART_EQUAL_H

#include "output/byte_buffer.h"
#include "viz/chart.h"

/* Appends a sentence for each pair, with the panels in which it is one. */
void chart_say_equal(const chart_figure *spec, byte_buffer *text);

#endif
