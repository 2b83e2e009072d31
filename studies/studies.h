/* Every study of `deberta study`; each lives in its own study_<name>.c. SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDIES_H
#define STUDIES_STUDIES_H

#include "command/options.h"

extern const command command_study; /* lists them */
extern const command study_ablate, study_benchmarks, study_clipping, study_components, study_decoder, study_grid,
    study_positions, study_twins;

#endif
