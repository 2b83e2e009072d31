/* A training run in a folder: it writes log.jsonl, one line a step; checkpoints; and at the end the model, as any
 * program opens it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/run/run_parts.h"
#include "train/state/ranks.h"

/* Receives each step. A result other than 0 stops the run after it, with a checkpoint. */
typedef int (*step_listener)(void *context, const deberta_training_step *step);

typedef struct training_run {
    run_parts parts;
    const char *folder;
    const run_claim *claim;       /* claim of the folder, held */
    const run_record *record;     /* its recipe and its held-out data */
    bool is_written;              /* whether the folder has the end of this run, from which it was read */
    const deberta_ranks *ranks;   /* NULL: none; ranks other than 0 have no files and no evaluations */
    size_t checkpoint_every;      /* steps between checkpoints; 0: not by steps */
    double checkpoint_minutes;    /* minutes since the last one or the beginning; 0: not by time */
    size_t keep;                  /* number of checkpoints to keep */
    size_t keep_every;            /* checkpoints of multiples of this step stay as well; 0: none */
    size_t chain_every;           /* steps between records of the chain; 0: none, or as in the existing chain */
    size_t stop_at;               /* step at which the run stops; 0: runs to the end */
    const batch_source *held_out; /* data that are evaluated at the end, and every eval_every steps; NULL: none */
    size_t eval_every;            /* 0: only at the end */
    size_t skip_bad; /* largest number of steps of the whole run that may be skipped for not being finite */
    const deberta_scorer *scorer; /* NULL: the loss alone */
    size_t patience;              /* evaluations without improvement before the run ends; 0: no limit */
    step_listener on_step;
    void *context;
    void (*note)(void *context, const char *sentence); /* NULL: notes are not wanted */
    void *note_context;
} training_run;

/* Checks that a folder is new or empty. */
deberta_status run_folder_check(const char *folder, deberta_error *err);
/* Checks the same, and creates the folder. */
deberta_status run_folder_prepare(const char *folder, deberta_error *err);

/* Trains from the optimisers' step to the last of the recipe, or until it is stopped; *finished is false if it was
 * stopped. It first removes log lines of later steps. A failed step leaves the log of the steps before it, and no
 * model; a non-finite one also leaves a checkpoint of the completed steps. */
deberta_status run_folder_train(const training_run *run, bool *finished, deberta_error *err);
