/* The end of the walk that load_layers.h begins. SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_LOAD_TASKS_H
#define CORE_MODEL_LOAD_TASKS_H

#include "core/model/model.h"

/* Which tasks the files have heads for, and their weights. */
deberta_status load_tasks(weight_loader *loader, deberta_model *model, deberta_error *err);

#endif
