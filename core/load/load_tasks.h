/* The end of the walk that load_layers.h begins. SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

/* Which tasks the files have heads for, and their weights. */
deberta_status load_tasks(weight_loader *loader, deberta_model *model, deberta_error *err);
