/* `deberta encode` for corpora: any number of texts, streamed, encoded in ragged batches of like length, one vector a
 * text (or one a token), resumable. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_ENCODE_ENCODE_CORPUS_H
#define PROGRAM_ENCODE_ENCODE_CORPUS_H

#include "program/encode/encode_options.h"

/* Do these options ask for it, rather than for padded tensors with everything inside? */
bool encode_corpus_wanted(const encode_options *o);
/* The command. EXIT_OK or an exit code, after saying why. */
int encode_corpus(const encode_options *o);

#endif
