/* Declares the counts over which the losses of a step are averaged. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/backward/heads.h"

head_counts step_counts(const step_batch *batch, deberta_training_task task, class_pairs pairs);
