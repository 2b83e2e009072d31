/* Holds texts as sequences of ids in memory: one text a line (or an object, core/io/text_lines.h). An empty line ends a
 * document; the lines of a document are joined and cut into [CLS] n - 2 pieces [SEP]. The last sequence of a document
 * may be short.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/text_lines.h"
#include "core/text/tokenizer.h"

/* Must be zero-initialised. */
typedef struct corpus {
    int32_t *ids;
    uint8_t *begins; /* whether a word begins with this piece */
    size_t tokens, ids_capacity, begins_capacity;
    size_t *starts; /* [sequences + 1] */
    size_t sequences, starts_capacity;
    size_t longest; /* number of tokens of the longest sequence */
    int32_t begin_id, end_id;
} corpus;

typedef struct corpus_cut {
    size_t most_tokens; /* limit of a sequence, frame included: 3 or more */
    bool by_line;       /* whether each line is a sequence, and longer lines are cut */
} corpus_cut;

/* Appends the sequences of a file. A spelled "[MASK]" is ordinary text. Broken UTF-8 is an error. */
deberta_status corpus_add_file(corpus *corpus, const char *path, const deberta_tokenizer *tokenizer, corpus_cut cut,
                               note_listener listener, deberta_error *err);
/* Computes SHA-256 of lengths, ids and words. */
void corpus_digest(const corpus *corpus, char digest[65]);
void corpus_free(corpus *corpus);
