/* SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta.h"

/* Completes the sentence about a path that holds no model. */
#define EXPECTED_PLACE "MODEL is a folder with config.json and weights, or synthetic:<shape> such as synthetic:v3-base"

/* Fails with DEBERTA_E_FILE for a path that does not exist, and names the folder in which a relative path was searched.
 * Common first mistakes are a path in the wrong folder, and the name of a model on a hub. For a path like
 * ORGANISATION/NAME, like the URL of such a page, or like one of Microsoft's names, the message includes the download
 * command. */
deberta_status hub_name_refuse(const char *path, deberta_error *err);
