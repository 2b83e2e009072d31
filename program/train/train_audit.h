/* Declares the audit of a run: drawn segments of the training are executed again on this machine and compared with the
 * run's chain. `deberta verify --audit` calls it; the command that trained is rebuilt from RUN/command.json.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "output/result.h"
#include "program/frame/options.h"

typedef struct train_audit_request {
    const common_options *common;
    const char *run;               /* the folder */
    const char *published;         /* a line of --commit from before; NULL: none */
    const char *model, *generator; /* their places on this machine; NULL: as the run's command has them */
    const text_list *files;        /* the data's, in the order of that command; empty: as it has them */
    size_t segments;               /* number of segments to execute; 0: none */
} train_audit_request;

/* Checks the chain, then executes the segments. The exit code. */
int train_audit(const train_audit_request *request, result *r);
/* Checks the chain, and says the line that identifies it. The exit code. */
int train_audit_commit(const train_audit_request *request, result *r);

/* A segment of a run, which a command of training executes in place of a run. */
typedef struct train_segment {
    const deberta_chain *chain;
    size_t from, until;           /* steps */
    const char *folder;           /* for weights that are saved again */
    size_t records;               /* that were compared */
    const char *wrong;            /* what differs, a sentence; NULL: nothing */
    const common_options *common; /* of the audit */
    const char *run;
} train_segment;

/* Executes it with a trainer that was opened for its beginning. */
deberta_status train_segment_execute(train_segment *segment, deberta_trainer *trainer, deberta_error *err);
