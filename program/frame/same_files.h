/* Notices a file that is given twice, also by another path or as a copy. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Returns true if two paths lead to one file, or to two with the same bytes. A pipe is no file. */
bool files_are_same(const char *a, const char *b);
/* Notes the first two of these files that are the same: "note: A and B hold the same: <why>". */
void same_files_note(const common_options *options, const char *const *paths, size_t count, const char *why);
