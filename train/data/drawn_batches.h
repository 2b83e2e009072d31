/* Draws batches of a masked language model from a corpus: every epoch shuffles the sequences anew, and every draw masks
 * them anew. The batch of a step follows from the options and its number alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/data/batch_order.h"
#include "train/data/corpus.h"
#include "train/data/masking.h"
#include "train/state/step_batch.h"

typedef struct drawn_options {
    masking_options masking;
    batch_order_options order;
} drawn_options;

typedef struct drawn_batches drawn_batches;

/* Opens batches; the corpus must stay. DEBERTA_E_ARGUMENT if a sequence has more tokens than a step may have. */
deberta_status drawn_batches_open(drawn_batches **batches, const corpus *corpus, const drawn_options *options,
                                  deberta_error *err);
void drawn_batches_close(drawn_batches **batches);

/* Returns the largest number of tokens of a step. */
size_t drawn_batches_most_tokens(const drawn_batches *batches);

batch_source drawn_batches_source(drawn_batches *batches);
