/* Appends the records of a run to RUN/chain.jsonl. A run that continues from a checkpoint computes recorded steps
 * again. It compares these with their records and does not write them twice, so the file only grows.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/run/chain_file.h"
#include "train/run/run_parts.h"

typedef struct run_chain {
    int file; /* descriptor; -1: the run has no chain */
    const char *folder;
    size_t every;
    deberta_chain *begun; /* records that existed before this process, or NULL */
    size_t next;          /* number of the first of them that this process has not passed */
    size_t last_step;     /* step of the last record in the file */
    bool is_recorded;     /* whether the state after last_step is recorded */
    char link[CHAIN_DIGEST_BYTES];
} run_chain;

/* Opens the chain of a run, or begins one. every: 0 continues an existing chain but begins none. It records the state
 * of the run, unless that is read from a written run: the chain has its record, and half precision has rounded it. The
 * caller closes the chain even after a failure. */
deberta_status run_chain_open(run_chain *chain, const char *folder, size_t every, const run_parts *parts,
                              bool is_written, deberta_error *err);
/* Returns whether a record is due after `step`. */
bool run_chain_is_due(const run_chain *chain, size_t step);
/* Records the state. If this step has a record already, both must be equal. */
deberta_status run_chain_add_state(run_chain *chain, const run_parts *parts, deberta_error *err);
/* Records the digests of the saved models in the folder "best" of the run, or in the run's own. */
deberta_status run_chain_add_model(run_chain *chain, const run_parts *parts, bool of_best, deberta_error *err);
/* Brings the records to the disk. */
deberta_status run_chain_sync(const run_chain *chain, deberta_error *err);
void run_chain_close(run_chain *chain);
