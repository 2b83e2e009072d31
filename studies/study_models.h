/* Models that a study shows side by side: the first one's tokenizer makes the ids of all.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_MODELS_H
#define STUDIES_STUDY_MODELS_H

#include "command/options.h"

/* The last part of the path of argument `place`: what columns and legends call the model. */
const char *study_model_name(const common_options *options, size_t place);

/* Opens the model of argument `place`, beside the first one's info. EXIT_OK or an exit code, after saying why. */
int study_open_beside(const common_options *options, size_t place, const deberta_model_info *first,
                      deberta_model **model, deberta_model_info *info);

#endif
