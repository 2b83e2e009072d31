/* Computes a page's numbers of one head, as JSON: its shares, Shapley values, entropy, habits and the scales of its
 * cells.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "program/report/explorer_cells.h"

/* matrices as for cells_pack, by which they are then packed into bytes; special: [n], not 0 for tokens that frame the
 * text. Adds to the object `about`. */
void explorer_head_pack(const cell_layout *layout, float *const matrices[DEBERTA_COMPONENT_COUNT],
                        const unsigned char *special, uint8_t *bytes, json_t *about);
