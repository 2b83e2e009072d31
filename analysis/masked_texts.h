/* Masked language modelling as a measure: some tokens of every sentence are replaced by [MASK], and the loss is how
 * surprised the model's head is by what stood there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_MASKED_TEXTS_H
#define ANALYSIS_MASKED_TEXTS_H

#include "core/base/status.h"
#include "include/deberta.h"

typedef struct masked_texts {
    size_t count;         /* sentences */
    const size_t *starts; /* [count + 1] of the sentences among the tokens; the caller's */
    int32_t *ids;         /* [starts[count]] with masks in place */
    size_t *mask_starts;  /* [count + 1] of the sentences among the masks */
    size_t *places;       /* [masks] tokens, ascending */
    int32_t *targets;     /* [masks] what stood there */
} masked_texts;

/* Hides each token whose maskable[t] is not 0 with probability `rate`, and at least one of every sentence that has any.
 * The same for a seed. */
deberta_status masked_texts_make(masked_texts *texts, const int32_t *ids, const uint8_t *maskable, const size_t *starts,
                                 size_t count, int32_t mask_id, double rate, uint64_t seed, deberta_error *err);
void masked_texts_free(masked_texts *texts);

/* Masked tokens of the sentences [first, end). */
static inline size_t masked_texts_masks(const masked_texts *texts, size_t first, size_t end)
{
    return texts->mask_starts[end] - texts->mask_starts[first];
}

/* Where a batch that begins with sentence `first` ends: as many as fit in `tokens`, at least one. starts [count + 1] */
size_t texts_batch_end(const size_t *starts, size_t count, size_t first, size_t tokens);
static inline size_t masked_texts_batch_end(const masked_texts *texts, size_t first, size_t tokens)
{
    return texts_batch_end(texts->starts, texts->count, first, tokens);
}

/* What the largest of these batches has. */
void masked_texts_largest_batch(const masked_texts *texts, size_t batch_tokens, size_t *tokens, size_t *masks);

/* Which head is asked. */
typedef enum masked_decoder {
    MASKED_DECODER_TRAINED, /* that of the training: after the Enhanced Mask Decoder where there is one, else on H[L] */
    MASKED_DECODER_EMD,     /* after the Enhanced Mask Decoder, which runs the last layer two more times */
    MASKED_DECODER_PLAIN    /* on H[L] */
} masked_decoder;
/* DEBERTA_E_UNSUPPORTED if the model does not have it. */
deberta_status masked_texts_head(deberta_task *head, const deberta_model *model, masked_decoder decoder,
                                 deberta_error *err);

/* A session and what it takes to ask its head. */
typedef struct masked_reader {
    deberta_session *session;
    deberta_task head;
    size_t width; /* of the head: vocabulary */
    const deberta_observer *observer;
} masked_reader;

/* Encodes the sentences [first, end); logits [masks of them][width]. */
deberta_status masked_texts_read(const masked_texts *texts, const masked_reader *reader, size_t first, size_t end,
                                 float *logits, deberta_error *err);
/* loss[k] = the sum over the masks of sentence k of -ln p(target), for first <= k < end. */
void masked_texts_loss(const masked_texts *texts, const float *logits, size_t width, size_t first, size_t end,
                       double *loss);

/* The same for all sentences, by a session of its own. row_bias: [L][A][2K] added to c2p by table row, as of
 * session_internal_options; NULL for the model as it is. */
deberta_status masked_texts_measure(const masked_texts *texts, const deberta_model *model,
                                    const deberta_session_options *options, const float *row_bias, size_t batch_tokens,
                                    double *loss, deberta_error *err);

#endif
