/* Multiple choice: a classifier with one output scores each choice as the second segment of the text; the softmax over
 * the choices says which fits best (SPEC 8.5).
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_TASKS_CLASSIFY_CHOICES_H
#define CLI_TASKS_CLASSIFY_CHOICES_H

#include "cli/tasks/head_run.h"

/* EXIT_OK where --choice was not given, or can be used: two at least, and without --pair and --multi-label. */
int classify_choices_check(const parsed_options *options);
/* Every text with every --choice instead of head_run_all; `top` of them are shown. */
int classify_choices_run(head_run *run, size_t top);

#endif
