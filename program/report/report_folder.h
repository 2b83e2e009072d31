/* Declares what keeps a report's folder to a report. SPDX-License-Identifier: MIT */
#pragma once

#include <time.h>

#include "program/frame/options.h"

/* The first lines of commands.sh, by which a report's folder is known. */
#define REPORT_COMMANDS_HEAD                                                                                           \
    "#!/bin/sh\n# Makes everything in this folder again but the page; run it where the report was made."

/* Ends the program where the folder holds files and no report: they are somebody else's. */
void report_folder_check(const common_options *options, const char *folder);
/* Removes what an earlier report left in the folder and this one, begun then, did not write again. */
void report_folder_clean(const common_options *options, const char *folder, const struct timespec *begin);
