/* Declares the checks that a report's folder holds only a report. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* First lines of commands.sh, which identify a report's folder. */
#define REPORT_COMMANDS_HEAD                                                                                           \
    "#!/bin/sh\n# Makes everything in this folder again but the page; run it where the report was made."

/* Ends the program if the folder holds files but no report, since they are the user's. Returns the commands of the
 * report that it holds, or NULL. */
const char *report_folder_check(const common_options *options, const char *folder);
/* Removes the files that the earlier report's commands name and those of this one do not; others are the user's. */
void report_folder_clean(const common_options *options, const char *folder, const char *earlier);
