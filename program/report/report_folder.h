/* Declares the checks that a report's folder holds only a report. SPDX-License-Identifier: MIT */
#pragma once

#include <time.h>

#include "program/frame/options.h"

/* First lines of commands.sh, which identify a report's folder. */
#define REPORT_COMMANDS_HEAD                                                                                           \
    "#!/bin/sh\n# Makes everything in this folder again but the page; run it where the report was made."

/* Ends the program if the folder holds files but no report, since they are the user's. */
void report_folder_check(const common_options *options, const char *folder);
/* Removes what an earlier report left in the folder and this one, which began at that time, did not write again. */
void report_folder_clean(const common_options *options, const char *folder, const struct timespec *begin);
