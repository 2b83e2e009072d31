/* Executes steps of a run again and compares their states with the records of its chain.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/numbers.h"
#include "train/run/chain_file.h"
#include "train/run/state_digest.h"
#include "train/run/trainer.h"

/* The chain that an audit compares, and the listener that it calls. */
typedef struct run_audit {
    const deberta_chain *chain;
    deberta_chain_listener *on_record;
    void *context;
    size_t next; /* first record of a step that the audit has not passed */
    bool goes_on;
    const deberta_chain_record **differs;
    char *found;
} run_audit;

/* Compares the records of the current step. */
static deberta_status compare_step(run_audit *audit, const run_parts *parts, deberta_error *err)
{
    const size_t step = run_parts_done(parts);
    const deberta_chain_record *record;
    bool is_known = false;
    while ((record = deberta_chain_record_at(audit->chain, audit->next)) && record->step < step) audit->next++;
    for (; audit->goes_on && (record = deberta_chain_record_at(audit->chain, audit->next)) && record->step == step;
         audit->next++) {
        if (!record->of && !is_known) DEBERTA_TRY(state_digest(parts, audit->found, err));
        is_known = is_known || !record->of;
        if (!record->of && strcmp(record->digest, audit->found) != 0) {
            *audit->differs = record;
            audit->goes_on = false;
        } else if (audit->on_record && audit->on_record(audit->context, record) != 0) {
            audit->goes_on = false;
        }
    }
    return DEBERTA_OK;
}

/* Runs one step, and skips one that is not finite: the run has skipped it too, or ended there. */
static deberta_status audit_step(const run_parts *parts, deberta_error *err)
{
    deberta_training_step step;
    bool is_bad = false;
    const size_t number = run_parts_done(parts) + 1;
    const deberta_status status = run_parts_step(parts, &step, &is_bad, err);
    if (!is_bad) return status;
    run_parts_skip(parts, number);
    return DEBERTA_OK;
}

deberta_status deberta_trainer_audit(deberta_trainer *t, const deberta_chain *chain, size_t until,
                                     deberta_chain_listener *on_record, void *context,
                                     const deberta_chain_record **differs, char found[65], deberta_error *err)
{
    if (!t || !chain || !differs || !found || !t->options.audit)
        DEBERTA_FAIL(
            err, DEBERTA_E_ARGUMENT,
            "deberta_trainer_audit needs a trainer that was opened for it, a chain, and a place for what differs");
    run_audit audit = {.chain = chain,
                       .on_record = on_record,
                       .context = context,
                       .goes_on = true,
                       .differs = differs,
                       .found = found};
    *differs = NULL;
    *found = 0;
    DEBERTA_TRY(compare_step(&audit, &t->parts, err));
    while (audit.goes_on && run_parts_done(&t->parts) < minimum(until, t->options.steps)) {
        DEBERTA_TRY(audit_step(&t->parts, err));
        DEBERTA_TRY(compare_step(&audit, &t->parts, err));
    }
    return DEBERTA_OK;
}
