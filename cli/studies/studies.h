/* Every study of `deberta study`; each lives in its own study_<name>.c. SPDX-License-Identifier: MIT */
#ifndef CLI_STUDIES_STUDIES_H
#define CLI_STUDIES_STUDIES_H

#include "cli/options.h"

extern const command study_ablate, study_benchmarks, study_clipping, study_components, study_decoder, study_grid,
    study_positions, study_twins;

#endif
