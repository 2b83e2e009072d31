/* SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta.h"

/* What people type first is a path in the wrong folder, or the name of a model on a hub. DEBERTA_E_FILE for a relative
 * path that does not exist, with the folder in which it was looked for. Where it reads like ORGANISATION/NAME, the
 * command that downloads it is named, too. DEBERTA_OK for any other path. */
deberta_status hub_name_check(const char *path, deberta_error *err);
