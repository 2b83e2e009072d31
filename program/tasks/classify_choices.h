/* Multiple choice: a classifier with one output scores each choice as the second segment of the text; the softmax over
 * the choices says which fits best (SPEC 8.5).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/tasks/task_run.h"

/* Every text with every choice instead of task_run_all; `top` of them are shown. */
int classify_choices_run(const common_options *options, const text_list *choices, size_t top);
