/* `deberta encode` for corpora: any number of texts, streamed, encoded in ragged batches of like length, one vector a
 * text (or one a token), resumable. SPDX-License-Identifier: MIT */
#ifndef CLI_ENCODE_ENCODE_CORPUS_H
#define CLI_ENCODE_ENCODE_CORPUS_H

#include "command/options.h"

/* Do these options ask for it, rather than for padded tensors with everything inside? */
bool encode_corpus_wanted(const parsed_options *options);
/* The command. */
int encode_corpus(const parsed_options *options);

#define ENCODE_CORPUS_OPTIONS                                                                                          \
    {"pool", 0, "HOW",                                                                                                 \
     "corpora: one vector a text, its mean over all tokens, frame included (default), or cls; or none: all tokens"},   \
        {"window", 0, "W", "corpora: long texts as windows of W tokens, frame included"},                              \
        {"stride", 0, "S", "corpora: tokens from one window to the next (default half of what a window holds)"},       \
        {"batch-tokens", 0, "N",                                                                                       \
         "corpora: tokens encoded together (default 2048); changes speed and memory, no result"},                      \
        {"resume", 0, NULL, "corpora: keep what is done in OUT.part, and go on from there"},                           \
    {                                                                                                                  \
        "jsonl", 0, NULL,                                                                                              \
            "corpora: files hold one JSON object a line (\"text\", perhaps \"pair\", \"id\"), whatever their names"    \
    }

#endif
