/* `verify --publish`: digests that are the same on every machine. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_VERIFY_VERIFY_PUBLISH_H
#define PROGRAM_VERIFY_VERIFY_PUBLISH_H

#include "program/frame/options.h"

/* Prints one line with tabs between: version, processor, instruction set and the parts that its kernels come from,
 * model, its digest, and SHA-256 of ten texts' last hidden states in float32, int16 and int8 and of four steps of
 * training. The first three tell of the machine, the others are the same everywhere; a made-up model has no digest and
 * no training: "-". EXIT_OK or an exit code after saying why. */
int verify_publish(const common_options *options, const char *out);

#endif
