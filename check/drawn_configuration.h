/* SPDX-License-Identifier: MIT */
#ifndef CHECK_DRAWN_CONFIGURATION_H
#define CHECK_DRAWN_CONFIGURATION_H

#include "check/drawn_model.h"

/* The text of a config.json, to be freed; NULL without memory. Every key is there or left out, in every spelling that
 * the reader takes. */
char *drawn_configuration(const drawn_wish *wish, uint64_t *state);

#endif
