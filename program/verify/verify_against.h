/* `verify --expected`: the engine against a file of tensors. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_VERIFY_VERIFY_AGAINST_H
#define PROGRAM_VERIFY_VERIFY_AGAINST_H

#include "program/frame/options.h"
#include "check/verify.h"

/* The file holds input_ids [B,N], perhaps attention_mask, token_type_ids, position_ids, and some of hidden_states.*,
 * attn.*, logits.* as `encode` writes them. Only real rows are compared. What cannot be compared is refused, but for
 * names that the model does not compute if `extras` are allowed. EXIT_OK or an exit code after saying why. */
int verify_against_file(const common_options *options, const char *path, bool extras, const verify_options *verify,
                        verify_report *report);

#endif
