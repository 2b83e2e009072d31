/* Reads log.jsonl of training runs. SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "output/scope.h"

/* Values of a line. The loss is that of the task, as on held-out data; the objective is the function whose gradients
 * were taken, and a line has it only if it differs from the loss: SiFT adds a distance. */
typedef enum log_value {
    LOG_LOSS,
    LOG_OBJECTIVE,
    LOG_RATE,
    LOG_NORM,
    LOG_EVAL_LOSS,
    LOG_MEASURE,
    LOG_VALUES
} log_value;

typedef struct log_series {
    double *steps, *values; /* [count], steps ascending; a measure that does not exist is NaN */
    size_t count, steps_room, values_room;
} log_series;

typedef struct train_log {
    scope memory; /* of all of it: free it, also after a failure */
    char *name;   /* of the run: its folder, or the file without its suffix */
    log_series series[LOG_VALUES];
    char *measure; /* name of the first measure, "accuracy"; NULL: none */
} train_log;

/* Reads the log of a run's folder, or the file itself. DEBERTA_E_FORMAT: a line that is none of a log, with its number;
 * no step. */
deberta_status train_log_read(train_log *log, const char *path, deberta_error *err);
/* Series of the function whose gradients were taken. */
const log_series *train_log_objective(const train_log *log);
