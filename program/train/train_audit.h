/* Declares the audit of a run: randomly drawn segments of the training are executed again on this machine and
 * compared with the run's chain. `deberta verify --audit` calls it; the command of the training is rebuilt from
 * RUN/command.json.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "output/result.h"
#include "program/frame/options.h"

typedef struct train_audit_request {
    const common_options *common;
    const char *run;               /* folder of the run */
    const char *published;         /* earlier line of --commit; NULL: none */
    const char *model, *generator; /* paths on this machine; NULL: those in the run's command */
    const text_list *files;        /* paths of the data, in the order of that command; empty: those in it */
    size_t segments;               /* number of segments to execute; 0: none */
} train_audit_request;

/* Checks the chain, then executes the segments. Returns the exit code. */
int train_audit(const train_audit_request *request, result *r);
/* Checks the chain, and prints the line that identifies it. Returns the exit code. */
int train_audit_commit(const train_audit_request *request, result *r);

/* A segment of a run, which a training command executes instead of a run. */
typedef struct train_segment {
    const deberta_chain *chain;
    size_t from, until;           /* first and last step */
    const char *folder;           /* folder for weights that are saved again */
    size_t records;               /* number of records compared */
    const char *wrong;            /* difference as a sentence; NULL: none */
    const common_options *common; /* options of the audit */
    const char *run;
} train_segment;

/* Executes the segment with a trainer that was opened at its first step. */
deberta_status train_segment_execute(train_segment *segment, deberta_trainer *trainer, deberta_error *err);
