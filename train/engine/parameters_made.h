/* SPDX-License-Identifier: MIT */
#ifndef TRAIN_PARAMETERS_MADE_H
#define TRAIN_PARAMETERS_MADE_H

#include "train/engine/parameters.h"

/* Makes the parameters of a made-up model (core/model/synthetic.h). On failure *set is empty. */
deberta_status parameter_set_make(parameter_set *set, const char *path, deberta_error *err);

#endif
