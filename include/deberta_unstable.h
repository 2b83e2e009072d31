/* deberta_unstable.h: functions that the programs of this project need beyond deberta.h. They may change or disappear
 * in any version, without any promise about struct_size or compatibility. The shared library exports those that the
 * Python package needs, and the package checks the library's version when it loads it; only the static library has the
 * rest.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DEBERTA_UNSTABLE_H
#define DEBERTA_UNSTABLE_H

#include "deberta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a folder of sentence-transformers makes one vector of a text, as modules.json and the files beside it state. */
typedef struct deberta_vector_recipe {
    int given;           /* whether the folder states it */
    int cls, normalized; /* whether the vector is the row of [CLS], else the mean over all tokens; whether it is then
                            divided by its length */
    size_t max_tokens;   /* largest number of tokens of a text; 0: no limit */
    char obstacle[160];  /* the first requirement that this library does not support; empty: none */
} deberta_vector_recipe;
DEBERTA_API deberta_status deberta_vector_recipe_read(deberta_vector_recipe *recipe, const char *folder,
                                                      deberta_error *err);

/* Checks that the model, a session with these options, and kept_bytes of results that the caller will keep fit together
 * into memory_limit_bytes (0: no limit). DEBERTA_E_MEMORY, with all parts, if they do not. */
DEBERTA_STATIC_API deberta_status deberta_session_check_within(const deberta_model *model,
                                                               const deberta_session_options *options,
                                                               size_t kept_bytes, deberta_error *err);
/* Calls deberta_session_create if that check succeeds. */
DEBERTA_STATIC_API deberta_status deberta_session_create_within(deberta_session **session, const deberta_model *model,
                                                                const deberta_session_options *options,
                                                                size_t kept_bytes, deberta_error *err);
/* Reads values of a tensor by its canonical name ("encoder.layer.0.output.dense.weight"), as the model holds them, for
 * a caller that has freed its weights. Those of queries were scaled and are divided again, which may differ in the last
 * place. DEBERTA_E_UNSUPPORTED for tensors that were only folded or changed while opening (the relative table, separate
 * position projections) and those that stay in the files. */
DEBERTA_API deberta_status deberta_model_read_weight(const deberta_model *model, const char *name, float *values,
                                                     size_t count, deberta_error *err);
/* Hidden states of the whole batch, in the layout of deberta_hidden_block, that may be changed. */
typedef struct deberta_hidden_edit {
    size_t layer, tokens, columns, stride;
    float *values; /* [tokens][stride]; the first `columns` of each row may be written */
} deberta_hidden_edit;

/* Activation patching: a place of one sequence takes what another sequence of the same batch has there, so that a clean
 * text, a corrupted one and all their mixtures are one batch. */
typedef enum deberta_patch_place {
    DEBERTA_PATCH_STATE = 0, /* row of a token in H[layer] */
    DEBERTA_PATCH_HEAD,      /* output of a head, P V, for all tokens */
    DEBERTA_PATCH_TERM,      /* one term of a head's logits, for all queries and keys */
} deberta_patch_place;

typedef struct deberta_patch {
    deberta_patch_place place;
    deberta_component term; /* term for DEBERTA_PATCH_TERM: DEBERTA_C2C, DEBERTA_C2P or DEBERTA_P2C */
    size_t layer;           /* STATE: H[0] ... H[L]; else the layer, 0 ... L - 1. DEBERTA_EVERY: all */
    size_t index;           /* STATE: a token of the sequence; else a head. DEBERTA_EVERY: all */
    size_t sequence, from;  /* sequences of the batch, equally long; `from` must not be patched itself */
} deberta_patch;

/* A feature of sessions in which terms are patched: it takes memory for a sequence's keys in every thread. */
enum { DEBERTA_PATCH_TERMS = 1u << 16 };

/* Changes inside an encode, for studies of a model's behaviour. All zeros: none. */
typedef struct deberta_interventions {
    void *context;
    /* NULL, or a callback that the encoding thread calls with H[0] ... H[L] in turn, once each. All later steps read
     * its result: the next layer, with H[0] the convolution as well, on_hidden, with H[L-1] the Enhanced Mask Decoder,
     * with H[L] deberta_outputs and the heads. The decoder's own passes are not shown. A result other than DEBERTA_OK
     * stops the encode, as an observer does. */
    deberta_status (*edit_hidden)(void *context, const deberta_hidden_edit *edit);
    /* NULL, or [L][A][2K], added to c2p by row of the relative table (deberta_position_row), on the scale of the
     * logits: an additional function of the distance. It is read while encoding, and by the Enhanced Mask Decoder, so
     * it must stay until the heads have run. */
    const float *row_bias;
    /* [patch_count], made after edit_hidden, in the order of the list. They must stay until the heads have run: the
     * Enhanced Mask Decoder makes those of the last layer in both of its passes, for which it needs the same tokens of
     * both sequences among its positions, in ascending order. */
    const deberta_patch *patches;
    size_t patch_count;
    /* The encode begins at H[first_layer], all of whose rows edit_hidden writes: neither the embedding nor the layers
     * before run. 0: it begins with the ids. */
    size_t first_layer;
    /* NULL, or [tokens of the batch][embedding_size], added to the rows of the word table before anything else is. */
    const float *word_noise;
} deberta_interventions;

/* Applies changes from the next encode on; NULL: none. The struct is copied. The changes do not depend on threads,
 * tiers or precision. DEBERTA_E_UNSUPPORTED: a row_bias for a model without c2p; a patched term in int8, whose
 * attention multiplies integers. DEBERTA_E_ARGUMENT: a call of the session is running; a patch names what the model
 * lacks, or a term in a session without DEBERTA_PATCH_TERMS. deberta_encode checks that the batch has the sequences. */
DEBERTA_API deberta_status deberta_session_intervene(deberta_session *session,
                                                     const deberta_interventions *interventions, deberta_error *err);
/* Reads the relative table as a layer's heads use it: keys (c2p) and queries (p2c), [A][2K][d] each; NULL: not needed.
 * Queries are divided by the common scale. DEBERTA_E_UNSUPPORTED: the model lacks the term, or keeps integers (int8).
 */
DEBERTA_API deberta_status deberta_model_read_positions(const deberta_model *model, size_t layer, float *keys,
                                                        float *queries, deberta_error *err);
/* Parses the syntax of the program's --ablate, "c2p@3:5,p2c=mean@all": items term[=zero|=mean]@layer[:head], layer and
 * head a number or all. ablations: room for one more than the text has commas; *count: their number.
 * deberta_session_create checks that a model has them. DEBERTA_E_ARGUMENT names the first invalid item. */
DEBERTA_API deberta_status deberta_ablations_parse(deberta_ablation *ablations, size_t *count, const char *text,
                                                   deberta_error *err);
/* Computes the softmax of logits: probabilities[k] = exp(logits[k]) / sum, in double; both [count]. */
DEBERTA_API void deberta_softmax(double *probabilities, const float *logits, size_t count);
/* Returns 1 / (1 + exp(-logit)). */
DEBERTA_API double deberta_sigmoid(double logit);
/* Ranks the indices of the `top` largest of values [count], descending; equal ones in ascending order. ranked: room for
 * `top`. Returns their number, at most count. */
DEBERTA_API size_t deberta_rank(size_t *ranked, size_t top, const double *values, size_t count);

typedef struct deberta_place {
    deberta_span bytes, characters;
} deberta_place;
/* Returns the place of a token in its segment, without its leading space. text: that segment, as it was tokenized. */
DEBERTA_API deberta_place deberta_token_place(const deberta_tokens *tokens, size_t token, const char *text);

typedef struct deberta_entity {
    deberta_place place;
    const char *type; /* label without its prefix ("PER" of "B-PER"), owned by the model; NULL: the label has no name */
    size_t label;     /* number of the label of its first unit */
    size_t units;     /* number of words or tokens */
    double probability; /* mean probability over its units */
} deberta_entity;

typedef enum deberta_entity_units { DEBERTA_ENTITIES_BY_WORD = 0, DEBERTA_ENTITIES_BY_TOKEN } deberta_entity_units;

/* Finds entities. entities: room for one per token; *count: the number found, in the order of the text. logits:
 * DEBERTA_TASK_TOKEN of all tokens, [tokens][labels]. It fails for lack of memory, for tokens of a pair, and for tokens
 * that end beyond text_bytes. */
DEBERTA_API deberta_status deberta_entities(deberta_entity *entities, size_t *count, const deberta_model *model,
                                            const deberta_tokens *tokens, const char *text, size_t text_bytes,
                                            const float *logits, deberta_entity_units units, deberta_error *err);

typedef struct deberta_answer {
    size_t first_token, last_token; /* neither has an empty place */
    deberta_place place;            /* place in the context; no two answers have the same */
    double probability;             /* probability of begin times that of end, summed over the spans of that place */
} deberta_answer;

/* Counts the tokens of the second segment; an empty one contains no answer. */
DEBERTA_API size_t deberta_context_tokens(const deberta_tokens *tokens);
/* Finds the *count most probable spans of at most `longest` tokens, best first: answers has room for *count, which
 * becomes their number. *no_answer: the probability that there is none. context: the text of the second segment. Begin
 * and end are softmaxes over the tokens of the context and [CLS], which stands for "no answer". logits: DEBERTA_TASK_QA
 * of all tokens, [tokens][2]. It fails only for lack of memory. */
DEBERTA_API deberta_status deberta_answers(deberta_answer *answers, size_t *count, double *no_answer,
                                           const deberta_tokens *tokens, const char *context, const float *logits,
                                           size_t longest, deberta_error *err);

/* Returns the name of the kernel of that number, from 0, and in *from the implementation that a session of the tier
 * runs ("avx2", "scalar_fma"). NULL beyond the last kernel, and for a tier that cannot be used here. */
DEBERTA_STATIC_API const char *deberta_kernel_name(deberta_isa isa, size_t kernel, const char **from);
/* Returns the name of part `number` of the tier, from 0, among those that this processor has but that are unused,
 * because their products differ from the scalar ones. Each part ("avx512vnni", "neoni8mm") is compared once in a
 * process, before it is used. NULL beyond the last: all are right. */
DEBERTA_STATIC_API const char *deberta_wrong_part(deberta_isa isa, size_t number);
/* Returns the row of the relative table that c2p and p2c read for a query minus key distance, from a model's
 * description; below relative_rows. 0 for a model without relative positions. */
DEBERTA_API size_t deberta_position_row(const deberta_model_info *info, deberta_reference reference,
                                        ptrdiff_t distance);

#ifdef __cplusplus
}
#endif
#endif
