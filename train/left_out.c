/* Implements deberta_training.h in a build without training: every function refuses. SPDX-License-Identifier: MIT */
#include "include/deberta_training.h"

#include "core/base/status.h"

static deberta_status left_out_refuse(deberta_error *err)
{
    return status_fail(err, DEBERTA_E_UNSUPPORTED,
                       "this build has no training (it was configured with -Dtraining=disabled)");
}

int deberta_training_is_built(void) { return 0; }

void deberta_trainer_set_defaults(deberta_trainer_options *options)
{
    *options = (deberta_trainer_options)DEBERTA_TRAINER_DEFAULTS;
}

deberta_status deberta_trainer_open(deberta_trainer **trainer, const deberta_trainer_options *options,
                                    deberta_error *err)
{
    (void)options;
    *trainer = NULL;
    return left_out_refuse(err);
}

void deberta_trainer_free(deberta_trainer **trainer) { (void)trainer; }

/* No program can call these, because no trainer exists. */
size_t deberta_trainer_steps_done(const deberta_trainer *trainer) { return (void)trainer, 0; }
size_t deberta_trainer_memory_bytes(const deberta_trainer *trainer) { return (void)trainer, 0; }

deberta_status deberta_trainer_gradients(deberta_trainer *trainer, const char *path, deberta_training_step *step,
                                         deberta_error *err)
{
    (void)trainer, (void)path, (void)step;
    return left_out_refuse(err);
}

deberta_status deberta_trainer_step(deberta_trainer *trainer, deberta_training_step *step, deberta_error *err)
{
    (void)trainer, (void)step;
    return left_out_refuse(err);
}

deberta_status deberta_trainer_run(deberta_trainer *trainer,
                                   int (*on_step)(void *context, const deberta_training_step *step), void *context,
                                   int *finished, deberta_error *err)
{
    (void)trainer, (void)on_step, (void)context, (void)finished;
    return left_out_refuse(err);
}

deberta_status deberta_trainer_save(const deberta_trainer *trainer, const char *folder, deberta_error *err)
{
    (void)trainer, (void)folder;
    return left_out_refuse(err);
}

deberta_status deberta_trainer_audit(deberta_trainer *trainer, const deberta_chain *chain, size_t until,
                                     deberta_chain_listener *on_record, void *context,
                                     const deberta_chain_record **differs, char found[65], deberta_error *err)
{
    (void)trainer, (void)chain, (void)until, (void)on_record, (void)context, (void)differs, (void)found;
    return left_out_refuse(err);
}

deberta_status deberta_attribute(deberta_attribution **attribution, const deberta_model *model,
                                 const deberta_attribution_options *options, deberta_error *err)
{
    (void)model, (void)options;
    *attribution = NULL;
    return left_out_refuse(err);
}

void deberta_attribution_free(deberta_attribution **attribution) { (void)attribution; }

deberta_status deberta_tokenizer_train(const deberta_tokenizer_training *training, double *bits_per_character,
                                       deberta_error *err)
{
    (void)training, (void)bits_per_character;
    return left_out_refuse(err);
}
