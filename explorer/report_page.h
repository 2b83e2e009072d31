/* The page of a report: one file that needs nothing else.
 *
 * The page is explorer.html, explorer.css and explorer*.js of cli/report, which the build puts into the program,
 * filled with what the commands wrote into the report's folder. SPDX-License-Identifier: MIT */
#ifndef EXPLORER_REPORT_PAGE_H
#define EXPLORER_REPORT_PAGE_H

#include "explorer/report_text.h"

typedef struct report_step {
    const char *title;
    char *command; /* as one would type it */
    bool failed;   /* the command ran, and what it checked did not hold */
} report_step;

typedef struct report_contents {
    const char *folder, *model;
    report_text *texts;
    size_t text_count;
    report_step *steps;
    size_t step_count;
    const char *documents[8]; /* of this run: "info" for info.json; what else lies in the folder is not shown */
    size_t document_count;
} report_contents;

/* Writes folder/index.html from what lies in the folder. EXIT_OK or an exit code, after saying why. */
int report_page_write(const parsed_options *options, const report_contents *contents);
/* folder/name, in new memory. */
char *report_path(const char *folder, const char *name);

#endif
