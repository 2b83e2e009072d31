/* A tokenizer.json beside the spm.model that is read: what only it holds, and where the two differ.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/model_proto.h"
#include "core/text/tokenizer_config.h"

/* Takes the added tokens that the other files of the folder do not name, and adds one note where anything differs that
 * can change ids. model: of spm.model, checked. A tokenizer.json that cannot be read is named in the note, too. */
deberta_status tokenizer_beside_read(tokenizer_config *config, const piece_model *model, const char *folder,
                                     deberta_error *err);
