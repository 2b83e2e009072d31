/* Parses --ablate, interventions on the terms of the scores:
 *
 *     --ablate c2p@3:5,p2c@all,c2c=mean@0
 *
 * An item is term[=zero|=mean]@layer[:head]; layer and head are numbers from 0 or `all`, and a missing head means
 * all.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Appends to the ablation_list at target. Opening the model checks that it has the terms, layers and heads. */
void ablate_parse(common_options *options, const char *list, void *target);

#define ABLATE_OPTION                                                                                                  \
    {                                                                                                                  \
        "ablate", 0, "LIST",                                                                                           \
            "take terms out: term[=zero|=mean]@layer[:head], such as c2p@3:5,p2c=mean@all; of several for one place "  \
            "the last counts; may be repeated",                                                                        \
            PARSED_AT(common_options, ablated, ablate_parse), .adds_up = true                                          \
    }
