/* Reads and writes the lines of chain.jsonl (docs/audit.md).
 *
 *     {"deberta-chain": 1, "recipe": "...", "every": 100, "link": "..."}
 *     {"step": 0, "state": "...", "link": "..."}
 *     {"step": 1000, "of": "best", "sha256": "...", "link": "..."}
 *
 * The link of a line is SHA-256 of the link above it, nothing above the first, and of the line without its link:
 * {"step": 0, "state": "..."}.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"

enum { CHAIN_LINE_BYTES = 256, CHAIN_DIGEST_BYTES = 65 };

#define CHAIN_FILE "chain.jsonl"

typedef struct chain_line {
    deberta_chain_record record;
    char digest[CHAIN_DIGEST_BYTES], link[CHAIN_DIGEST_BYTES];
} chain_line;

struct deberta_chain {
    deberta_chain_info info;
    char recipe[CHAIN_DIGEST_BYTES], first_link[CHAIN_DIGEST_BYTES];
    chain_line *lines; /* [info.count] */
    size_t capacity;
    size_t whole_bytes; /* number of bytes up to the end of the last whole line */
};

/* Prints the first line, or that of a record, with its link. */
void chain_print_head(char line[CHAIN_LINE_BYTES], const char *recipe, size_t every, char link[CHAIN_DIGEST_BYTES]);
/* link: the last one before, replaced by that of the line. of: NULL for a state. */
void chain_print_record(char line[CHAIN_LINE_BYTES], size_t step, const char *of, const char *digest,
                        char link[CHAIN_DIGEST_BYTES]);

/* Reads a chain that a run continues; its last line may be cut off. *chain is NULL where there is none. */
deberta_status chain_read_begun(deberta_chain **chain, const char *folder, deberta_error *err);
