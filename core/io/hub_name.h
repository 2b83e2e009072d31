/* SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta.h"

/* Completes the sentence about a path that holds no model. */
#define EXPECTED_PLACE "MODEL is a folder with config.json and weights, or synthetic:<shape> such as synthetic:v3-base"

/* What people type first is a path in the wrong folder, or the name of a model on a hub. DEBERTA_E_FILE for a path that
 * does not exist, with the folder in which a relative one was looked for. Where it reads like ORGANISATION/NAME, like
 * the address of such a page, or like a name that Microsoft gave, the command that downloads it is named, too. */
deberta_status hub_name_refuse(const char *path, deberta_error *err);
