/* Every study of `deberta study`; each lives in its own study_<name>.c, and
 * study_list.h comes from the build. SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDIES_H
#define STUDIES_STUDIES_H

#include "studies/study.h"
#include "studies/study_list.h"

extern const command command_study; /* lists them */
#define STUDY_DECLARE(name) extern const study_kind study_##name;
STUDY_EACH(STUDY_DECLARE)

#endif
