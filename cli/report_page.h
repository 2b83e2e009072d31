/* The page of a report. SPDX-License-Identifier: MIT */
#ifndef CLI_REPORT_PAGE_H
#define CLI_REPORT_PAGE_H

#include "cli/options.h"

typedef struct report_step {
    const char *title;
    char *command; /* as one would type it */
    bool failed;   /* the command ran, and what it checked did not hold */
} report_step;

/* paths: info.json, sweep.json, verify.json, sweep.png, attention.png, attention.pdf; the page names them relative to
 * itself. */
int report_page_write(const parsed_options *options, const char *page, const char *model, const char *input,
                      const report_step *steps, size_t step_count, char *const paths[6]);

#endif
