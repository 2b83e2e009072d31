/* Reads log.jsonl of training runs. SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "output/scope.h"

/* Values of a line. The loss is that of the task, as on held-out data. The objective is the function whose gradients
 * were taken; a line has it only if it differs from the loss, as for SiFT, which adds a distance. */
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
    double *steps, *values; /* [count] steps ascending; an undefined measure is NaN */
    size_t count, steps_room, values_room;
} log_series;

typedef struct train_log {
    scope memory; /* owner of everything; free it, also after a failure */
    char *name;   /* name of the run: its folder, or the file without its suffix */
    log_series series[LOG_VALUES];
    char *measure; /* name of the first measure: "accuracy"; NULL: none */
    double right;  /* share of the held-out masked tokens whose likeliest word is right; NaN: not counted */
} train_log;

/* Reads the log in a run's folder, or the file itself. DEBERTA_E_FORMAT: a line, named by its number, is not a log's;
 * or there is no step. */
deberta_status train_log_read(train_log *log, const char *path, deberta_error *err);
/* Returns the series of the function whose gradients were taken. */
const log_series *train_log_objective(const train_log *log);
