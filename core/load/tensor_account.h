/* What of a checkpoint was used, and what becomes of the rest: nothing inside the base model is passed over in silence.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"
#include "core/load/weight_loader.h"

/* Goes through the names of model->files once the model's tensors were looked for, and frees the account. opened: how
 * that went. Where it went well, what nobody used below "encoder." or "embeddings." is refused (DEBERTA_E_UNSUPPORTED)
 * or becomes a note; where a tensor was missing, adapters that are there in its place are the reason that is given. */
deberta_status tensor_account_close(tensor_account *account, deberta_model *model, deberta_status opened,
                                    deberta_error *err);
