/* `deberta report`: one folder with everything about a model and a text, and a page to explore it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

extern const command command_report;
