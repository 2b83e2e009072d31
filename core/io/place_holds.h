/* Is a file one of those that a place holds? By device and inode, so other spellings, links and mounts do not matter.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* place: a file, which holds itself, or a folder, which holds its files and those of the folders in it (generator/,
 * 1_Pooling/), whatever links they are. False where either does not exist, and for what is no regular file. */
bool place_holds(const char *place, const char *path);
/* Is this open file, such as standard input, the one that the path names? */
bool descriptor_is_file(int descriptor, const char *path);
