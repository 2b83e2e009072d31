/* Names of files: what they end in and how they are put together.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Does the path end in the suffix (".json")? The case of ASCII letters does not count: X.CSV is what x.csv is. False
 * for NULL. */
bool path_has_suffix(const char *path, const char *suffix);
/* folder/name (just name for an empty folder) in new memory, NULL without memory. */
char *path_join(const char *folder, const char *name);
