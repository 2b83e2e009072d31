/* --ablate: interventions on the terms of the scores, for every command that runs a model.
 *
 *     --ablate c2p@3:5,p2c@all,c2c=mean@0
 *
 * term[=zero|=mean]@layer[:head], where layer and head are numbers from 0 or `all` (a head that is not given: all).
 *
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_ABLATE_H
#define COMMAND_ABLATE_H

#include "command/options.h"

/* Sets ablations and ablation_count of the session options from all --ablate; the list lives as long as `options`.
 * EXIT_OK, or the exit code after saying why not. What the model has is checked by deberta_session_create. */
int ablate_read(const parsed_options *options, deberta_session_options *session_options);

/* All --ablate as one list, for provenance; NULL where there is none. Lives as long as `options`. */
const char *ablate_text(const parsed_options *options);

#define ABLATE_OPTION                                                                                                  \
    {                                                                                                                  \
        "ablate", 0, "LIST",                                                                                           \
            "take terms out: term[=zero|=mean]@layer[:head], such as c2p@3:5,p2c=mean@all; may be repeated"            \
    }

#endif
