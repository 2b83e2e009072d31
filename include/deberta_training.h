/* deberta_training.h: functions to train models. They may change in any version, so only the static library has them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DEBERTA_TRAINING_H
#define DEBERTA_TRAINING_H

#include "deberta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A trainer holds one model, or a generator and a discriminator of replaced tokens: weights in float32, gradients, the
 * optimiser's moments, and the training data. docs/training.md defines the computation and its order. It serves one
 * call at a time.
 *
 *     deberta_trainer_options options = DEBERTA_TRAINER_DEFAULTS;
 *     const char *texts[] = {"corpus.txt"};
 *     options.model = "deberta-v3-small", options.texts = texts, options.text_count = 1;
 *     options.steps = 1000, options.folder = "trained";
 *     if (deberta_trainer_open(&trainer, &options, &error) != DEBERTA_OK || ...
 *         deberta_trainer_run(trainer, NULL, NULL, &finished, &error) != DEBERTA_OK) puts(error.message);
 *     deberta_trainer_free(&trainer);                                                   // docs/example_training.c */
typedef struct deberta_trainer deberta_trainer;

typedef enum deberta_training_task {
    DEBERTA_TRAIN_MLM = 0,
    DEBERTA_TRAIN_RTD,
    DEBERTA_TRAIN_SEQUENCE,
    DEBERTA_TRAIN_CHOICE,
    DEBERTA_TRAIN_TOKEN,
    DEBERTA_TRAIN_QA
} deberta_training_task;

typedef enum deberta_training_head {
    DEBERTA_TRAIN_HEAD_AUTO = 0, /* the model's own masked-language head: mlm_emd where it has one */
    DEBERTA_TRAIN_HEAD_MLM,
    DEBERTA_TRAIN_HEAD_MLM_EMD
} deberta_training_head;

typedef enum deberta_optimizer { DEBERTA_ADAMW = 0, DEBERTA_XADAM } deberta_optimizer;
typedef enum deberta_schedule {
    DEBERTA_SCHEDULE_LINEAR = 0,
    DEBERTA_SCHEDULE_MICROSOFT,
    DEBERTA_SCHEDULE_CONSTANT
} deberta_schedule;
/* Relation of a discriminator's tables of words and positions to the generator's. */
typedef enum deberta_sharing {
    DEBERTA_SHARING_GDES = 0, /* the generator's + a difference; the discriminator's loss trains only the difference */
    DEBERTA_SHARING_ES,       /* one table, which both losses train: coupled only */
    DEBERTA_SHARING_NONE
} deberta_sharing;
typedef enum deberta_masking { DEBERTA_MASKING_NGRAM = 0, DEBERTA_MASKING_UNIFORM } deberta_masking;

/* One labelled text as ids, for a task with classes or answers. A task reads only the members that it uses. */
typedef struct deberta_example {
    size_t tokens;
    const int32_t *ids, *token_types; /* [tokens]; token_types: NULL for zeros */
    const int32_t *token_labels;      /* [tokens]: labels of a token task; -100: none */
    int32_t label;                    /* a class; for a choice, the number of the right one, read from its first text */
    float target;                     /* target value, for a head with one output */
    int32_t start, end;               /* first and last token of the answer; -100: not in this text */
} deberta_example;

/* Measures of a task on held-out examples, besides the loss. Rows come in any order between begin and end. */
enum { DEBERTA_MEASURES = 4 };
typedef struct deberta_scorer {
    const char *names[DEBERTA_MEASURES]; /* names of the measures, NULL after the last; by the first one the best model
                                            is chosen */
    void *context;
    void (*begin)(void *context);
    /* Receives logits [width] of a row that the head reads, with its example and token. */
    void (*row)(void *context, size_t example, size_t token, const float *logits, size_t width);
    /* Returns the values of the measures: the higher the better. NaN: an undefined measure, null in the log; where the
     * first is undefined, the lower loss decides which model is best. */
    void (*end)(void *context, double measures[DEBERTA_MEASURES]);
} deberta_scorer;

/* Processes that compute the steps of one run together, each some of the shards: all have the same options, and call
 * the same functions in the same order. Only rank 0 writes files. The functions return when their part is done; the
 * loss of a rank ends the others. */
typedef struct deberta_ranks {
    void *context;
    size_t rank, count;
    /* Sends row k of `all`, [count][floats], to rank k, and stores the row from rank k in row k of `received`. */
    void (*trade)(void *context, const float *all, float *received, size_t floats);
    /* Sends this rank's row of `all`, [count][floats], to all ranks, and stores theirs in their rows. */
    void (*gather)(void *context, float *all, size_t floats);
    /* Replaces the bytes by the bitwise or of those of all ranks. */
    void (*join)(void *context, void *bytes, size_t size);
} deberta_ranks;

/* Initialise it with DEBERTA_TRAINER_DEFAULTS: 0 is a value here, such as a weight decay of 0. */
typedef struct deberta_trainer_options {
    size_t struct_size;
    deberta_training_task task;
    const char *model;     /* folder of the model; for a pair, of the discriminator */
    const char *generator; /* folder of the generator; NULL: one model is trained */

    /* Training data: one of the four. */
    const char *batch;   /* safetensors: ids and labels of one step, for deberta_trainer_gradients */
    const char *batches; /* safetensors: the same with a leading axis of steps, used cyclically */
    /* [text_count]: files, one text a line, documents between empty lines; or one object a line, whose "text" is read
     */
    const char *const *texts;
    size_t text_count;
    const char *const
        *held_out; /* [held_out_count]: texts whose loss is logged at the end and every eval_every steps */
    size_t held_out_count;
    const deberta_example *examples, *held_out_examples; /* copied while opening */
    size_t example_count, held_out_example_count;
    size_t choices;               /* examples of a question, one after the other; 1: none */
    const deberta_scorer *scorer; /* measures of held-out examples, which must stay; NULL: their loss alone */

    /* Models and heads without weights yet. */
    int begin;         /* 1: trains from scratch; the folder has a configuration and a tokenizer, no weights */
    size_t new_labels; /* outputs of a new head that replaces the model's own; 0: keep its own. Use 1 for a masked
                          language model, whose outputs are the vocabulary, and for replaced tokens */
    const char *const *labels; /* [new_labels]: names of the new labels; NULL: none */

    /* Sampling of texts. */
    size_t sequence_tokens;               /* limit for texts; 0: 512, or the model's number of places */
    int by_line;                          /* 1: a line is a sequence, cut at sequence_tokens; 0: documents are cut up */
    size_t batch_sequences, batch_tokens; /* limits of a step; both 0: 16 sequences, or questions */
    deberta_masking masking;
    double mask_probability; /* share of the tokens that are to be guessed; above 0, below 1 */
    size_t max_ngram;

    /* Parameters of a step. */
    size_t seed;    /* seed of all draws: order, masks, dropout; below 2^32 */
    double dropout; /* dropout probability at all places, below 1; -1: the values in the model's config.json */
    deberta_training_head head;
    deberta_reference reference;
    double rtd_weight, sift_weight;
    int perturb_raw;         /* with sift_weight: the embeddings are moved without normalisation */
    deberta_sharing sharing; /* only for a pair */
    int coupled;             /* only for a pair: both losses at the same weights, one norm; 0: the generator's update
                              * first */
    size_t shards;           /* a power of two */

    /* Updates; steps 0: gradients alone. */
    deberta_optimizer optimizer;
    deberta_schedule schedule;
    double learning_rate, weight_decay, beta1, beta2, epsilon, layer_decay;
    double clip; /* largest norm of the gradients; 0: any */
    size_t steps, warmup;
    /* [freeze_count]: names of tensors, with wildcards * and ?, that stay unchanged, in both models of a pair */
    const char *const *freeze;
    size_t freeze_count;

    /* A run in a folder. */
    const char *folder;
    int resume; /* 1: resumes from its latest checkpoint, or, if killed before the first one, from the beginning */
    /* steps between checkpoints, 0: never; keep: number of checkpoints that stay */
    size_t checkpoint_every, keep, stop_at, eval_every;
    size_t skip_bad; /* largest number of steps that may be skipped for a loss or gradient that is not finite */
    deberta_dtype save_dtype; /* dtype of the trained model, not of checkpoints: DEBERTA_FLOAT32 or DEBERTA_FLOAT16 */
    size_t patience;          /* number of evaluations without improvement after which the run ends; 0: no limit */

    /* The following options affect no bit. */
    deberta_isa isa;
    size_t threads;
    size_t memory_limit_bytes; /* limit of memory; 0: none. Opening refuses a run that needs more; so does a step where
                                  more than a quarter of the tokens have labels and EMD's rows would exceed it */
    size_t micro_tokens; /* tokens whose activations are in memory at once: as many neighbouring shards, 1, 2, 4 ..., as
                          * have no more, and one at least; with sift_weight moved copies count. 0: whole steps.
                          * Gradients of parts wait for others: up to log2(shards) times the weights */
    int recompute; /* keep only the inputs of layers, each of which runs a second time before its backward pass: less
                    * memory, a third more work */
    /* A checkpoint is also written after this many minutes since the last; 0: steps alone decide. No bit depends on
     * it. */
    double checkpoint_minutes;
    const deberta_ranks *ranks; /* processes that compute the run together, which must stay; NULL: this process alone */
    /* [drop_count]: names of tensors, with wildcards * and ?, that the trained model does not have; for a pair the
     * discriminator */
    const char *const *drop;
    size_t drop_count;
    /* With sift_weight: the ascent begins at N(0, sift_start^2), cut at twice that, and goes sift_step in the largest
     * component of a token. */
    double sift_step, sift_start;
    /* NULL, or a callback that receives notes, one sentence at a time: about unused content of text files, about
     * padding before a sequence of a prepared batch, which is cut, and about a run that goes on from rounded weights.
     */
    void (*note)(void *context, const char *sentence);
    void *note_context;
    size_t chain_every; /* steps between records of chain.jsonl; 0: no chain, unless the resumed run has one */
    size_t keep_every;  /* checkpoints at multiples of this number of steps are written and stay; 0: none */
    /* 1: for deberta_trainer_audit. The folder is that of a run with a chain; nothing is written in it. */
    int audit;
    size_t audit_from; /* step of the checkpoint from which the audit starts; 0: the beginning of the run */
} deberta_trainer_options;

#define DEBERTA_TRAINER_DEFAULTS                                                                                       \
    {                                                                                                                  \
        .struct_size = sizeof(deberta_trainer_options), .choices = 1, .mask_probability = 0.15, .max_ngram = 1,        \
        .dropout = -1, .rtd_weight = 50, .shards = 16, .learning_rate = 1e-4, .weight_decay = 0.01, .beta1 = 0.9,      \
        .beta2 = 0.999, .epsilon = 1e-6, .layer_decay = 1, .clip = 1, .keep = 2, .checkpoint_minutes = 10,             \
        .sift_step = 1e-4, .sift_start = 0.01                                                                          \
    }

/* Returns 1 if the library was built with training, and 0 if all that trains refuses. */
DEBERTA_STATIC_API int deberta_training_is_built(void);

/* Fills *options with the defaults, for callers that cannot use the macro. */
DEBERTA_STATIC_API void deberta_trainer_set_defaults(deberta_trainer_options *options);

/* The result of a step. */
typedef struct deberta_training_step {
    size_t step;       /* number of the step, from 1 */
    size_t steps;      /* number of steps of the whole run */
    double loss;       /* the loss whose gradients were computed; a pair's is the generator's + weight times the
                        * discriminator's */
    double loss_clean; /* with sift_weight: without the moved input */
    double loss_generator, loss_discriminator; /* a pair's, not weighted; replaced tokens alone have the second */
    double gradient_norm; /* before clipping; a pair has one norm over both models, and each its own */
    double gradient_norm_generator, gradient_norm_discriminator;
    double learning_rate;
    double epoch; /* epoch of the texts */
    size_t sequences, tokens, labelled;
} deberta_training_step;

/* Opens models and data; with resume also the checkpoint, whose recipe must be the same. DEBERTA_E_ARGUMENT: options
 * that do not fit each other, sequences that do not fit the model, another recipe. DEBERTA_E_UNSUPPORTED: a head that
 * the model lacks. */
DEBERTA_STATIC_API deberta_status deberta_trainer_open(deberta_trainer **trainer,
                                                       const deberta_trainer_options *options, deberta_error *err);
DEBERTA_STATIC_API void deberta_trainer_free(deberta_trainer **trainer);
/* Returns the number of completed updates. */
DEBERTA_STATIC_API size_t deberta_trainer_steps_done(const deberta_trainer *trainer);
/* Returns the bytes that the trainer holds: weights, gradients, moments, and memory of steps; texts and logits come on
 * top. */
DEBERTA_STATIC_API size_t deberta_trainer_memory_bytes(const deberta_trainer *trainer);
/* Computes gradients of the next step, without an update. path: NULL, or the safetensors file for losses and
 * gradients. */
DEBERTA_STATIC_API deberta_status deberta_trainer_gradients(deberta_trainer *trainer, const char *path,
                                                            deberta_training_step *step, deberta_error *err);
/* Runs one update, without files. DEBERTA_E_NOT_FINITE: nothing has changed then. */
DEBERTA_STATIC_API deberta_status deberta_trainer_step(deberta_trainer *trainer, deberta_training_step *step,
                                                       deberta_error *err);
/* Runs all updates to the last, or to stop_at. It writes log, checkpoints and at last the model in options.folder,
 * which must be new or empty unless the run resumes; no other run may be active in it. on_step: NULL, or called after
 * each step; a result other than 0 stops after it with a checkpoint. *finished: whether the last step is done.
 * DEBERTA_E_NOT_FINITE: a step is not finite, or the model that was saved has weights that opening it refuses. */
DEBERTA_STATIC_API deberta_status deberta_trainer_run(deberta_trainer *trainer,
                                                      int (*on_step)(void *context, const deberta_training_step *step),
                                                      void *context, int *finished, deberta_error *err);
/* Saves the model as a checkpoint that any program opens, in an existing folder; a pair in its subfolders generator/
 * and discriminator/. */
DEBERTA_STATIC_API deberta_status deberta_trainer_save(const deberta_trainer *trainer, const char *folder,
                                                       deberta_error *err);

/* The chain of a run: records of the state of the training after a step, each with a digest over itself and the record
 * before it (docs/audit.md). */

typedef struct deberta_chain deberta_chain;

/* Folders of a run that hold a saved model, which a record may name; "" is the run's own. */
#define DEBERTA_CHAIN_MODELS "", "generator", "discriminator", "best", "best/generator", "best/discriminator"
/* A file beside best/ while that is of a step which is repeated: it is not the best so far. */
#define DEBERTA_BEST_IS_LATER "best-is-later"

typedef struct deberta_chain_record {
    size_t step;
    const char *of;     /* folder of the run whose weights `digest` identifies: "" is its own, "best", "generator", ...
                           NULL: it identifies the whole state */
    const char *digest; /* 64 hex digits */
    const char *link;   /* 64 hex digits: SHA-256 of the previous link and of this record */
    int follows;        /* whether the link is right */
} deberta_chain_record;

typedef struct deberta_chain_info {
    size_t every;       /* steps between records */
    size_t count;       /* number of records */
    const char *recipe; /* SHA-256 of the run's recipe.json */
    const char *head;   /* the last link: it identifies all records and the recipe */
    int follows;        /* whether the first link is right */
} deberta_chain_info;

/* Reads RUN/chain.jsonl and computes all links again. DEBERTA_E_FORMAT: malformed; DEBERTA_E_SYSTEM: there is none. */
DEBERTA_STATIC_API deberta_status deberta_chain_open(deberta_chain **chain, const char *folder, deberta_error *err);
DEBERTA_STATIC_API void deberta_chain_free(deberta_chain **chain);
/* Both live as long as the chain. A record beyond the last is NULL. */
DEBERTA_STATIC_API const deberta_chain_info *deberta_chain_describe(const deberta_chain *chain);
DEBERTA_STATIC_API const deberta_chain_record *deberta_chain_record_at(const deberta_chain *chain, size_t index);

/* Receives a record of an audit. A result other than 0 stops the audit. */
typedef int deberta_chain_listener(void *context, const deberta_chain_record *record);

/* Compares the state of a trainer that was opened with `audit` with the records of its step, then executes steps until
 * the step `until` and compares all records on the way. It stops at the first state that differs: *differs is that
 * record, and `found` what was computed; NULL: all states are equal. on_record: NULL, or called after each record that
 * is compared, and for records of saved models, which the caller compares with what deberta_trainer_save
 * writes. */
DEBERTA_STATIC_API deberta_status deberta_trainer_audit(deberta_trainer *trainer, const deberta_chain *chain,
                                                        size_t until, deberta_chain_listener *on_record, void *context,
                                                        const deberta_chain_record **differs, char found[65],
                                                        deberta_error *err);

typedef struct deberta_tokenizer_training {
    size_t struct_size;
    const char *const *texts; /* [text_count]: files */
    size_t text_count;
    size_t pieces;      /* size of the vocabulary, with [PAD], [CLS], [SEP] and [UNK]; [MASK] comes on top */
    const char *folder; /* existing folder for the tokenizer */
    /* NULL, or a callback that receives one sentence at a time about unused content of the files. */
    void (*note)(void *context, const char *sentence);
    void *note_context;
} deberta_tokenizer_training;

/* Trains a unigram tokenizer from texts: spm.model, tokenizer_config.json and added_tokens.json. *bits_per_character:
 * the mean cost of a character of the texts; may be NULL. DEBERTA_E_ARGUMENT: the texts do not have enough different
 * pieces. */
DEBERTA_STATIC_API deberta_status deberta_tokenizer_train(const deberta_tokenizer_training *training,
                                                          double *bits_per_character, deberta_error *err);

/* Attributions: shares of an answer that tokens, distances and positions have, whose sum is the answer minus that of a
 * baseline (docs/attribution.md). They go through the backward pass of training, in float32. */

typedef enum deberta_attribution_method {
    DEBERTA_INTEGRATED_GRADIENTS = 0, /* along the straight line from the baseline to the text */
    DEBERTA_GRADIENT_INPUT /* gradient at the text times the difference to the baseline; no sum is guaranteed */
} deberta_attribution_method;

/* Inputs that the path from the baseline to the text changes; all others stay as in the text. */
enum {
    DEBERTA_ATTRIBUTE_WORDS = 1,     /* rows of the word table */
    DEBERTA_ATTRIBUTE_DISTANCES = 2, /* the relative table, after its norm: from the mean of the rows that the text
                                      * reads */
    DEBERTA_ATTRIBUTE_POSITIONS = 4, /* rows of absolute positions, at the input or in the Enhanced Mask Decoder, and of
                                      * token types: from zeros */
    DEBERTA_ATTRIBUTE_ALL = 7
};

#define DEBERTA_NO_CONTRAST ((size_t)-1)

typedef struct deberta_attribution_options {
    size_t struct_size;
    size_t tokens;                             /* number of tokens n */
    const int32_t *ids;                        /* [n] */
    const int32_t *token_types, *position_ids; /* [n] or NULL, as in a deberta_batch */
    const uint8_t *mask;                       /* [n] or NULL */
    const int32_t *baseline_ids; /* [n]: id of the word that replaces each token in the baseline; the token's own id: no
                                    change; -1: zeros */
    deberta_task task;           /* head of the answer: all but DEBERTA_TASK_QA */
    size_t token;                /* token whose row of logits has the answer; not read for DEBERTA_TASK_SEQUENCE */
    size_t answer;               /* column of the logit */
    size_t contrast;             /* column of a logit that is subtracted; DEBERTA_NO_CONTRAST: none */
    int log_probability; /* whether to attribute the log-probability instead, by softmax, or by sigmoid where outputs
                            are independent; not with a contrast */
    deberta_attribution_method method;
    unsigned parts; /* DEBERTA_ATTRIBUTE_WORDS ...; 0: all */
    size_t steps;   /* number of points of the path, by Gauss and Legendre; 0: doubled from 32 on until the gap is small
                       enough */
    double tolerance;  /* largest gap at which doubling ends, for steps 0 */
    size_t most_steps; /* largest number of points, for steps 0 */
    deberta_isa isa;
    size_t threads; /* 0: all */
} deberta_attribution_options;

#define DEBERTA_ATTRIBUTION_DEFAULTS                                                                                   \
    {                                                                                                                  \
        .struct_size = sizeof(deberta_attribution_options), .contrast = DEBERTA_NO_CONTRAST,                           \
        .parts = DEBERTA_ATTRIBUTE_ALL, .tolerance = 0.01, .most_steps = 512                                           \
    }

/* A row of the relative table that the text reads, for pairs whose distance, query minus key, is first ... last. */
typedef struct deberta_attribution_distance {
    size_t row;
    ptrdiff_t first, last;
    double c2p, p2c;
} deberta_attribution_distance;

typedef struct deberta_attribution {
    size_t tokens;
    const double *words, *positions, *token_types; /* [tokens] */
    const deberta_attribution_distance *distances; /* [distance_count], by row */
    size_t distance_count;
    double value, baseline_value; /* answer of the text, and of the baseline */
    double sum;                   /* sum of all attributions */
    double gap;                   /* |sum - (value - baseline_value)| / |value - baseline_value|; 0 where both are 0 */
    size_t steps;                 /* final number of points of the path */
} deberta_attribution;

/* Computes the attributions of one text; free them with deberta_attribution_free. The model stays as it is.
 * DEBERTA_E_UNSUPPORTED: a model in low precision or with talking heads, or without the head. DEBERTA_E_ARGUMENT: a
 * token, logit or baseline that does not exist. DEBERTA_E_NOT_FINITE: the answer is not a number. */
DEBERTA_STATIC_API deberta_status deberta_attribute(deberta_attribution **attribution, const deberta_model *model,
                                                    const deberta_attribution_options *options, deberta_error *err);
DEBERTA_STATIC_API void deberta_attribution_free(deberta_attribution **attribution);

#ifdef __cplusplus
}
#endif
#endif
