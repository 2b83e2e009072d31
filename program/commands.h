/* Declares the commands of this room; each lives in its own cmd_<name>.c. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

extern const command command_answer, command_attribute, command_bench, command_classify, command_completion,
    command_detect, command_encode, command_eval, command_examples, command_fill_mask, command_finetune, command_info,
    command_merge, command_pack, command_receptive_field, command_report, command_tag, command_tokenize, command_train,
    command_verify, train_tokenizer;
#if HAVE_VIZ
extern const command command_attention, command_bench_plot, train_plot;
#endif
