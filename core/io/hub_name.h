/* SPDX-License-Identifier: MIT */
#ifndef CORE_IO_HUB_NAME_H
#define CORE_IO_HUB_NAME_H

#include "include/deberta.h"

/* What people try first is the name of a model on a hub: DEBERTA_E_FILE, with the command that downloads it, for a path
 * that does not exist and reads like ORGANISATION/NAME. DEBERTA_OK for any other path. */
deberta_status hub_name_check(const char *path, deberta_error *err);

#endif
