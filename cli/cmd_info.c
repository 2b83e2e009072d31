/* `deberta info`: this machine, its tiers and kernels; and, with a model, what is in it. SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/run.h"
#include "core/base/cpu.h"
#include "core/base/topology.h"
#include "core/dispatch.h"
