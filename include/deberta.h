/* deberta.h: run DeBERTa v1, v2 and v3 encoders on the CPU, and look inside.
 *
 * A *model* is opened from a folder as transformers or Microsoft's code writes it (config.json and safetensors or
 * pytorch_model.bin), or made up ("synthetic:v3-base"). It is immutable, may be shared by threads, and holds the
 * weights packed for multiplication and every position projection already computed. A *session* is one caller's
 * workspace: kernels of one instruction set, threads, and all scratch memory, carved out once; encoding allocates
 * nothing.
 *
 * Threads: any number of sessions of one model may run at the same time. A session serves one call at a time; which
 * thread makes it does not matter. One model, and a session for each thread, is the way to use it from several. A
 * session has separate worker threads by default, so T threads of a program would make T x cores of them. Give such
 * sessions one deberta_threads to share, where calls wait for each other, or threads = 1, where each call computes
 * alone.
 *
 *     deberta_error error;
 *     deberta_model *model = NULL;
 *     deberta_session *session = NULL;
 *     if (deberta_model_open(&model, "deberta-v3-base", NULL, &error) != DEBERTA_OK) { puts(error.message); return 1; }
 *     if (deberta_session_create(&session, model, NULL, &error) != DEBERTA_OK) { puts(error.message); return 1; }
 *
 *     int32_t ids[] = {1, 291, 269, 262, 362, 4378, 2};
 *     size_t starts[] = {0, 7};
 *     deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 1};
 *     deberta_outputs outputs = {.struct_size = sizeof outputs};
 *     if (deberta_encode(session, &batch, &outputs, &error) != DEBERTA_OK) { puts(error.message); return 1; }
 *     printf("%f\n", outputs.hidden[0]);               // outputs.hidden: [tokens][hidden_stride]
 *
 *     deberta_session_free(&session);
 *     deberta_model_free(&model);
 *
 * A *tokenizer*, opened from the same folder, makes such ids of a text (deberta_tokenize).
 *
 * Batches are ragged: the ids of all sequences one after the other, with the index at which each begins. There is no
 * padding.
 *
 * Every result is the same float32 bits on every instruction set, for any number of threads, alone or in a batch.
 *
 * Errors: functions that can fail return DEBERTA_OK (0) or a negative DEBERTA_E_* and write one sentence into the
 * caller's deberta_error (which may be NULL), on failure only: success leaves it as it was. After a failure the object
 * to be created is NULL; other outputs are unspecified, unless the function says otherwise. Freeing takes the address
 * of a pointer, and accepts NULL in it. Functions without a deberta_error do not check their arguments: a NULL model or
 * session crashes. The library never prints, exits or aborts. It installs a handler and keeps global state only where
 * deberta_guard_files asks for it.
 *
 * Lifetimes: texts that deberta_..._name gives are static, and "unknown" for a number without a name. Memory that
 * belongs to a model, tokenizer or list of tokens is freed with it. Arguments are read during the call, unless it says
 * otherwise.
 *
 * Structs that begin with struct_size (set it to sizeof) may get more members in later versions; so may
 * deberta_model_info, deberta_hidden_block, deberta_attention_block and deberta_tokens, which only the library makes:
 * read them through the pointer, without copies. A program may run with an earlier or a later library than the header
 * it was compiled with; an earlier library refuses a struct in which a member is set that it does not know, instead of
 * ignoring it. deberta_error, deberta_ablation, deberta_tensor and deberta_span stay as they are. Enumerations may get
 * more values before their _COUNT, which is that of this header: ignore values that you do not know. Members of options
 * set to 0 mean the default, NULL for options means all defaults. Counts are size_t, in elements; sizes in bytes have
 * names that end in _bytes.
 *
 * Letters: n tokens of a sequence, h hidden size, A heads, d head size, L layers, V vocabulary.
 *
 * SPDX-License-Identifier: MIT */
#ifndef DEBERTA_H
#define DEBERTA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(BUILDING_DEBERTA) && defined(__GNUC__)
#define DEBERTA_API __attribute__((visibility("default")))
#else
#define DEBERTA_API
#endif
/* Marks functions of deberta_training.h and deberta_unstable.h that only the static library has: the shared one does
 * not export them. */
#define DEBERTA_STATIC_API DEBERTA_API

/* --------------------------------------------------------------------------------------------------------- version */

/* The version of this header. Only this place states it: meson.build reads it. */
#define DEBERTA_VERSION_MAJOR 0
#define DEBERTA_VERSION_MINOR 1
#define DEBERTA_VERSION_PATCH 0
/* Increases with every release, for #if: 10203 is 1.2.3. */
#define DEBERTA_VERSION_NUMBER (DEBERTA_VERSION_MAJOR * 10000 + DEBERTA_VERSION_MINOR * 100 + DEBERTA_VERSION_PATCH)

/* Return the version of the running library: DEBERTA_VERSION_NUMBER at its compilation, and a text, "1.2.3". */
DEBERTA_API int deberta_version_number(void);
DEBERTA_API const char *deberta_version(void);

/* ---------------------------------------------------------------------------------------------------------- errors */

typedef int deberta_status;
enum {
    DEBERTA_OK = 0,
    DEBERTA_E_ARGUMENT = -1,    /* a wrong call: a required argument is NULL, an id is unknown, the batch is empty */
    DEBERTA_E_FILE = -2,        /* a file is missing or unreadable */
    DEBERTA_E_FORMAT = -3,      /* a file exists but is damaged, or not of the kind that its name says */
    DEBERTA_E_UNSUPPORTED = -4, /* understood, but not supported by this library */
    DEBERTA_E_MEMORY = -5,      /* out of memory, or above the caller's limit */
    DEBERTA_E_SYSTEM = -6,      /* the operating system refused something else: a thread, a write */
    DEBERTA_E_NOT_FINITE = -7   /* training: a loss, a gradient or a trained weight is beyond all measure */
};

typedef struct deberta_error {
    deberta_status code;
    char message[504]; /* one sentence: what, where, found, expected. Always terminated */
} deberta_error;

/* Frees memory that the library returns and that has no type: the text of deberta_detokenize. Accepts NULL. Every type
 * has a separate deberta_..._free. */
DEBERTA_API void deberta_free(void *memory);

/* Returns the enumerator, "DEBERTA_E_FILE", for code that keeps no deberta_error; "unknown status" for any other
 * number. */
DEBERTA_API const char *deberta_status_name(deberta_status status);

/* Guards mapped files of models and texts. Without this call, a mapped file that another program shortens, or whose
 * disk fails, ends the process with SIGBUS. After this call, for files opened from then on, the call that reads such a
 * file returns DEBERTA_E_FILE instead, and so does every later deberta_encode of that model. It installs a handler of
 * SIGBUS for the process, which passes on every signal that is not about a file of this library; a program with a
 * separate handler for files calls this after installing it, or not at all. The system raises SIGBUS for whole pages: a
 * file that loses less than its last page reads as zeros there, undetected. DEBERTA_E_SYSTEM: no handler could be
 * installed. Replace a model by renaming a new file or folder over it, never by writing into it: a process that has the
 * old one open keeps it. */
DEBERTA_API deberta_status deberta_guard_files(deberta_error *err);

/* ----------------------------------------------------------------------------------------------- instruction sets */

typedef enum deberta_isa {
    DEBERTA_ISA_AUTO = 0, /* the best tier that this processor and its operating system offer */
    DEBERTA_ISA_SCALAR,   /* plain C, always available */
    DEBERTA_ISA_AVX2,     /* AVX2, FMA, F16C */
    DEBERTA_ISA_AVX512,   /* AVX-512 F, BW, DQ, VL */
    DEBERTA_ISA_NEON,     /* aarch64 */
#ifdef __wasm__
    DEBERTA_ISA_WASM, /* WebAssembly with SIMD128; unavailable elsewhere */
#endif
    DEBERTA_ISA_COUNT
} deberta_isa;

/* "auto", "scalar", "avx2", "avx512", "neon"; "wasm" in WebAssembly */
DEBERTA_API const char *deberta_isa_name(deberta_isa isa);
/* Finds the tier of a name. An unknown name is DEBERTA_E_ARGUMENT, and *isa stays unchanged. */
DEBERTA_API deberta_status deberta_isa_from_name(deberta_isa *isa, const char *name, deberta_error *err);
/* Returns NULL when a session can use the tier, else a static text with the reason ("the processor lacks avx512bw"). */
DEBERTA_API const char *deberta_isa_missing(deberta_isa isa);
/* Returns the instruction set that DEBERTA_ISA_AUTO means here; never DEBERTA_ISA_AUTO itself. */
DEBERTA_API deberta_isa deberta_isa_best(void);

/* ----------------------------------------------------------------------------------------------------------- model */

typedef struct deberta_model deberta_model;

/* Selects the treatment of distances |i - j| >= max_relative_positions with log buckets: Microsoft clamps the distance
 * first, so that it uses the outermost trained row; transformers does not, and reads row 0 on one side. Shorter inputs
 * are not affected. AUTO: that of the library that wrote the config: transformers where it has a model_type, else
 * Microsoft; made-up models have Microsoft's. */
typedef enum deberta_reference {
    DEBERTA_REFERENCE_AUTO = 0,
    DEBERTA_REFERENCE_MICROSOFT,
    DEBERTA_REFERENCE_HF,
    DEBERTA_REFERENCE_COUNT
} deberta_reference;

/* The interpretation of a sequence head's outputs, from `problem_type` of the config, as in transformers' pipeline for
 * text classification. UNSTATED: a softmax over several outputs; of a single one the value, or its sigmoid as a
 * probability. */
typedef enum deberta_problem {
    DEBERTA_PROBLEM_UNSTATED = 0,
    DEBERTA_PROBLEM_SINGLE_LABEL, /* as UNSTATED */
    DEBERTA_PROBLEM_MULTI_LABEL,  /* each output is independent; its sigmoid is a probability */
    DEBERTA_PROBLEM_REGRESSION,   /* the outputs are values */
    DEBERTA_PROBLEM_COUNT
} deberta_problem;

/* The number format of products in the encoder's linear layers; everything else is float32 (docs/precision.md). Each
 * gives the same bits on every tier, for any number of threads and however texts are batched.
 *   int16: activations and weights of 15 bits, about 1e-4 from float32. Half the memory of the layers
 *   int8:  8 bits, about 1e-2 from float32. A quarter of it */
typedef enum deberta_precision {
    DEBERTA_PRECISION_FLOAT32 = 0,
    DEBERTA_PRECISION_INT16,
    DEBERTA_PRECISION_INT8,
    DEBERTA_PRECISION_COUNT
} deberta_precision;

/* "float32", "int16", "int8" */
DEBERTA_API const char *deberta_precision_name(deberta_precision precision);

typedef struct deberta_model_options {
    size_t struct_size;
    deberta_reference reference;
    size_t threads;            /* threads for loading; 0 as in deberta_session_options */
    size_t memory_limit_bytes; /* limit above which opening is refused; 0 = no limit */
    size_t layers;             /* number of first layers to load; 0 = all */
    int describe_only; /* 1 = read the tables of contents, not the weights: for deberta_model_describe and _label,
                          deberta_task_width and deberta_session_predict_bytes. No session can be made of the model */
    deberta_precision precision;
} deberta_model_options;

/* Opens a model. path: a folder, or "synthetic:<shape>[,key=value...]" with shape one of v1-base v1-large v2-xlarge
 * v3-xsmall v3-small v3-base v3-large mdeberta-base and keys layers, vocab, seed, buckets, heads, hidden, intermediate
 * and others; an unknown key is an error that lists them. DEBERTA_E_FILE, DEBERTA_E_FORMAT: a file is missing or
 * damaged, a tensor has another shape than the configuration says, or a weight is not finite or beyond 2^10 (2^30 in a
 * head), with which sums could overflow; rows of the word table are checked as they are read. DEBERTA_E_UNSUPPORTED:
 * another kind of model. DEBERTA_E_MEMORY: above memory_limit_bytes, or refused by the system. */
DEBERTA_API deberta_status deberta_model_open(deberta_model **model, const char *path,
                                              const deberta_model_options *options, deberta_error *err);

/* Types of weights, which files call F32, F16, BF16 and F64. */
typedef enum deberta_dtype {
    DEBERTA_FLOAT32 = 0,
    DEBERTA_FLOAT16,
    DEBERTA_BFLOAT16,
    DEBERTA_FLOAT64,
    DEBERTA_DTYPE_COUNT
} deberta_dtype;

/* Weights in the caller's memory. */
typedef struct deberta_tensor {
    /* name as in a checkpoint: "deberta.encoder.layer.0.output.dense.weight", or without "deberta." */
    const char *name;
    const void *values;
    deberta_dtype dtype;
    size_t rank;           /* at most 8 */
    const size_t *shape;   /* [rank] */
    const size_t *strides; /* [rank], in elements; NULL: row-major without gaps */
} deberta_tensor;

/* Opens a model from weights in another program's memory. config_json: the text of its config.json. name: its name in
 * messages. Names and shapes are checked like those of a file; the caller guarantees that values has that many
 * elements.
 *
 * All values are read while opening and may be freed afterwards, except two tables that are read row by row as long as
 * the model lives and must stay unchanged: embeddings.word_embeddings.weight, and cls.predictions.decoder.weight where
 * it is given. DEBERTA_E_ARGUMENT: NULL for a required argument, an unknown dtype, a rank above 8, an unprintable
 * name. */
DEBERTA_API deberta_status deberta_model_open_memory(deberta_model **model, const char *name, const char *config_json,
                                                     const deberta_tensor *tensors, size_t count,
                                                     const deberta_model_options *options, deberta_error *err);

/* The name of the float32 file. Low precision has separate files. */
#define DEBERTA_PACKED_FILE_NAME "deberta.packed"
/* Returns "deberta.packed", "deberta.int8.packed" ...; NULL for an unknown precision. */
DEBERTA_API const char *deberta_packed_file_name(deberta_precision precision);

typedef struct deberta_pack_options {
    size_t struct_size;
    size_t threads;            /* 0 = physical cores this process may use */
    size_t memory_limit_bytes; /* limit above which opening is refused; 0 = no limit */
    /* NULL, or a callback for a program that removes unfinished files on a signal: it receives the name of a file that
     * an interruption would leave, and NULL once there is none. */
    void (*on_temporary)(void *context, const char *path);
    void *context;
    deberta_precision precision;
} deberta_pack_options;

/* Writes <path>/deberta.packed, or the file of that precision, with the checkpoint's weights as opening packs them. A
 * file of low precision also has the words: in a folder with its config.json and without weights it is a model of that
 * precision. deberta_model_open maps it from then on, so that opening takes almost no time and all processes that map
 * it share its memory; results are the same bits. Opening ignores it if the checkpoint's files have changed since, if
 * another version of this library made it or it is damaged, and for a model of fewer layers. Opening compares little:
 * name, size and time of modification of the files, the content of config.json, samples of the weights (both ends and
 * 15 places between); of the packed file its header, its table of digests, and its last 256 KiB. The file appears whole
 * or not at all. Errors are those of deberta_model_open, and DEBERTA_E_SYSTEM where it cannot be written. */
DEBERTA_API deberta_status deberta_model_pack(const char *path, const deberta_pack_options *options,
                                              deberta_error *err);
/* Reads both files, and compares every byte: the packed file with the SHA-256 of its blocks, the checkpoint's files
 * with their SHA-256 (deberta_model_digest) at packing. It uses only the precision of the options. DEBERTA_E_FILE:
 * there is no packed file; DEBERTA_E_FORMAT: the difference, for example the first damaged block. */
DEBERTA_API deberta_status deberta_model_check_packed(const char *path, const deberta_pack_options *options,
                                                      deberta_error *err);
/* Frees a model, and sets *model to NULL; all its sessions must be freed before. The results of deberta_model_describe
 * and _label are freed with the model. */
DEBERTA_API void deberta_model_free(deberta_model **model);

typedef enum deberta_packed {
    DEBERTA_PACKED_NONE = 0, /* no deberta.packed */
    DEBERTA_PACKED_MAPPED,   /* mapped and in use */
    DEBERTA_PACKED_STALE     /* present, but ignored: this library would pack this checkpoint differently */
} deberta_packed;

typedef struct deberta_model_info {
    const char *name;       /* path as given when opening */
    int version;            /* 1 for v1's parameterisation; 2 for that of v2 and v3 */
    size_t vocabulary_size; /* rows of the word table */
    size_t hidden_size, intermediate_size, layers, heads, head_size, embedding_size;
    size_t max_positions;          /* rows of the absolute position table in the config */
    size_t max_relative_positions; /* M */
    size_t position_buckets;       /* 0: none */
    size_t relative_rows;          /* 2K rows of the relative table; 0: no relative attention */
    int has_c2p, has_p2c;
    int position_biased_input, has_position_table;
    size_t token_types;
    size_t convolution_width; /* 0: none */
    unsigned tasks_present;   /* bit 1 << deberta_task */
    size_t sequence_labels, token_labels;
    size_t parameters;     /* encoder without heads */
    size_t memory_bytes;   /* bytes that the model holds; with describe_only, those that it would hold */
    deberta_packed packed; /* state of the packed file; NONE also for a model of fewer layers than its checkpoint has */
    deberta_precision precision;
    deberta_reference reference; /* reference with which it was opened; never AUTO */
    deberta_problem problem;     /* interpretation of the sequence head's outputs */
    int32_t padding_id;          /* id that fills batches; 0 if the config has none */
} deberta_model_info;

/* Returns a description that belongs to the model, and never changes. */
DEBERTA_API const deberta_model_info *deberta_model_describe(const deberta_model *model);
/* Returns the name of that class in id2label, or NULL. It belongs to the model. */
DEBERTA_API const char *deberta_model_label(const deberta_model *model, size_t label);
/* Returns a note about a setting of the folder that this library does not follow, or follows in an unexpected way: a
 * sentence for each index from 0 on, NULL after the last. A program should show the notes to its user. They belong to
 * the model. */
DEBERTA_API const char *deberta_model_note(const deberta_model *model, size_t index);
/* Computes SHA-256 of the checkpoint's files as 64 hex digits and a NUL, which identifies the source of a result. It
 * reads all files, gigabytes of a large model. Empty for a made-up model and one of weights in memory, which have no
 * files. DEBERTA_E_FILE: a file can no longer be read. */
DEBERTA_API deberta_status deberta_model_digest(const deberta_model *model, char digest[65], deberta_error *err);

/* --------------------------------------------------------------------------------------------------------- session */

typedef struct deberta_session deberta_session;

/* Results that a session can provide while it encodes; off by default because each needs scratch memory. */
enum {
    DEBERTA_OBSERVE_HIDDEN = 1,     /* on_hidden */
    DEBERTA_OBSERVE_ATTENTION = 2,  /* on_attention */
    DEBERTA_KEEP_DECODER_INPUT = 4, /* H[L-1], the input of the Enhanced Mask Decoder */
    DEBERTA_ONLY_HEADS = 8 /* an encode is followed by heads alone: it leaves the last layer to deberta_task_logits,
                              which computes the positions that it is asked for, with the same bits. outputs.hidden
                              is NULL then; on_hidden gets H[0] ... H[L-1], and there is no on_attention. Ask for the
                              positions of a whole batch in one call: each reads the layer's weights */
};

/* The terms of a logit, their sum, and its softmax. */
typedef enum deberta_component {
    DEBERTA_C2C = 0,       /* q_i . k_j, divided by sqrt(d (1 + terms)) like all of them */
    DEBERTA_C2P,           /* q_i . PK[row(i - j)] */
    DEBERTA_P2C,           /* k_j . PQ[row(i - j)] */
    DEBERTA_LOGITS,        /* their sum, before the mask */
    DEBERTA_PROBABILITIES, /* softmax over the keys; a masked key has 0 */
    DEBERTA_COMPONENT_COUNT
} deberta_component;

/* "c2c", "c2p", "p2c", "logits", "probs" */
DEBERTA_API const char *deberta_component_name(deberta_component component);

/* An ablation removes a term from a head. The scale stays sqrt(d (1 + terms)) of the model, the other terms keep their
 * values, and observers see the changed term. The Enhanced Mask Decoder runs the last layer again, and with it that
 * layer's interventions (with the means of the encoder's own pass). */
typedef enum deberta_ablation_kind {
    DEBERTA_ABLATE_ZERO = 0, /* the term is 0 */
    /* the mean over the tokens of the sequence, without holes, replaces the token's own vector in the term, q_i or
     * (p2c) k_j: the term then no longer depends on the token */
    DEBERTA_ABLATE_MEAN
} deberta_ablation_kind;

#define DEBERTA_EVERY ((size_t)-1)

typedef struct deberta_ablation {
    deberta_component term; /* DEBERTA_C2C, DEBERTA_C2P or DEBERTA_P2C; the model must have it */
    size_t layer, head;     /* from 0, or DEBERTA_EVERY */
    deberta_ablation_kind kind;
} deberta_ablation;

/* Worker threads that several sessions share. Calls of these sessions take turns, in order of arrival, and each then
 * has all of the threads. */
typedef struct deberta_threads deberta_threads;

/* Creates threads. count includes the calling thread; 0 = the default of a session. pin: 1 = bind the others to a core
 * each. DEBERTA_E_ARGUMENT: count above 1024. DEBERTA_E_MEMORY, DEBERTA_E_SYSTEM: the system refuses memory, a thread
 * or its binding. DEBERTA_E_UNSUPPORTED: as for pin_threads. */
DEBERTA_API deberta_status deberta_threads_create(deberta_threads **threads, size_t count, int pin, deberta_error *err);
/* Frees the threads, after the last session that uses them. */
DEBERTA_API void deberta_threads_free(deberta_threads **threads);
/* Returns the number of threads, including the calling one. */
DEBERTA_API size_t deberta_threads_count(const deberta_threads *threads);

typedef struct deberta_session_options {
    size_t struct_size;
    deberta_isa isa;   /* instruction set; it can only lower the tier; an unavailable one is an error */
    size_t max_tokens; /* limit of the tokens of all sequences of a batch together; 0 = 512 */
    size_t threads;    /* 0 = OMP_NUM_THREADS of the environment, if it is one of 1 to 1024; else the physical cores
                          that this process might use when the model was opened */
    unsigned features; /* DEBERTA_OBSERVE_*, DEBERTA_KEEP_*, DEBERTA_ONLY_HEADS */
    size_t memory_limit_bytes;         /* limit of the session's memory, without the model's; 0 = no limit */
    int pin_threads;                   /* 1 = bind each of its worker threads to a core, except the calling one */
    const deberta_ablation *ablations; /* [ablation_count], read while the session is made; where several name the same
                                          place, the last one counts */
    size_t ablation_count;
    deberta_threads *shared_threads; /* threads that the session uses, all of them; threads and pin_threads must then be
                                        0. NULL: threads of its own */
} deberta_session_options;

/* Creates a session. DEBERTA_E_ARGUMENT: no model, or one opened with describe_only; a tier that cannot be used here;
 * unknown features; max_tokens above 2^24, threads above 1024, or set beside shared_threads; an ablation of a term,
 * layer or head that the model lacks. DEBERTA_E_MEMORY: above memory_limit_bytes, or refused by the system.
 * DEBERTA_E_SYSTEM: the system refuses another resource, such as a thread or its binding. DEBERTA_E_UNSUPPORTED:
 * pin_threads where the library was built to run its loops on OpenMP, whose environment binds threads (OMP_PROC_BIND).
 * The model must outlive the session. */
DEBERTA_API deberta_status deberta_session_create(deberta_session **session, const deberta_model *model,
                                                  const deberta_session_options *options, deberta_error *err);
DEBERTA_API void deberta_session_free(deberta_session **session);
/* Returns the tier whose kernels the session runs; never DEBERTA_ISA_AUTO. */
DEBERTA_API deberta_isa deberta_session_isa(const deberta_session *session);
/* Returns the number of computing threads, including the calling one. */
DEBERTA_API size_t deberta_session_threads(const deberta_session *session);
/* Returns the bytes that the session holds besides the model, constant over its lifetime. */
DEBERTA_API size_t deberta_session_memory_bytes(const deberta_session *session);
/* Predicts the bytes that a session with these options needs, without creating it; as memory_limit_bytes this is just
 * enough. It also accepts a model with describe_only. DEBERTA_E_ARGUMENT: options that deberta_session_create
 * refuses. */
DEBERTA_API deberta_status deberta_session_predict_bytes(size_t *bytes, const deberta_model *model,
                                                         const deberta_session_options *options, deberta_error *err);

/* ---------------------------------------------------------------------------------------------------------- encode */

/* Hidden states after one layer, for all tokens of the batch. */
typedef struct deberta_hidden_block {
    size_t layer;                   /* 0 = the embeddings, the input of the first layer; L = the last one's output */
    size_t tokens, columns, stride; /* stride: floats from a token to the next, at least columns, which is h */
    const float *values;            /* [tokens][stride], the first `columns` of each; valid during the call */
} deberta_hidden_block;

/* Attention values of one layer, head and sequence: query rows first_query ... first_query + rows - 1, all keys of the
 * sequence. Terms and logits are inputs of the softmax, already divided by sqrt(d (1 + terms)). */
typedef struct deberta_attention_block {
    size_t layer, sequence, head, first_query, rows, keys, stride;
    deberta_component component;
    const float *values; /* [rows][stride], the first `keys` of each; valid during the call */
} deberta_attention_block;

/* Called while encoding, one call at a time, from any of the session's threads. Observing changes no bit of the result.
 * wants_attention (may be NULL: everything) is called first, so that only wanted components are computed.
 *
 * on_hidden and on_attention return DEBERTA_OK, or another value to stop: no more callbacks follow, and deberta_encode
 * returns that value with a sentence that names the place. An observer must not use its own session: deberta_encode and
 * deberta_task_logits refuse it. Three mistakes are not detected: freeing that session; a call of another one that
 * shares its threads, which waits for ever; and leaving a callback by longjmp or an exception, after which the session
 * stays busy.
 *
 * Stacks: a thread that calls the library needs 64 KiB, besides the needs of its callbacks. With less, a signal ends
 * it. */
typedef struct deberta_observer {
    size_t struct_size;
    void *context;
    deberta_status (*on_hidden)(void *context, const deberta_hidden_block *block);
    int (*wants_attention)(void *context, size_t layer, size_t head, deberta_component component);
    deberta_status (*on_attention)(void *context, const deberta_attention_block *block);
} deberta_observer;

/* The input of one encode. */
typedef struct deberta_batch {
    size_t struct_size;
    const int32_t *ids;            /* [tokens] */
    const size_t *sequence_starts; /* [sequences + 1], ascending, first 0, last = tokens; every sequence has a token */
    size_t sequences;
    const int32_t *token_types;  /* [tokens] or NULL: all 0 */
    const int32_t *position_ids; /* [tokens] or NULL: 0, 1, 2 ... in each sequence. Absolute positions only */
    const uint8_t *mask;         /* [tokens] or NULL: 0 marks a hole: never a key; its own rows are unspecified */
    /* observer, or NULL; its callbacks need the session's DEBERTA_OBSERVE_* features */
    const deberta_observer *observer;
} deberta_batch;

/* The output of one encode. The session owns the memory: valid until its next encode, or until it is freed. Heads
 * (deberta_task_logits) leave it unchanged. */
typedef struct deberta_outputs {
    size_t struct_size;
    const float *hidden;  /* H[L], [tokens][hidden_stride], the first h of each; tokens in the order of the batch */
    size_t hidden_stride; /* floats from a token to the next, at least h */
} deberta_outputs;

/* Runs the encoder, from embeddings to H[L], over a batch; heads then use the hidden states that it leaves in the
 * session.
 *
 * Before anything is computed, DEBERTA_E_ARGUMENT for: NULL for session, batch or outputs, or a struct_size that was
 * not set; no ids or sequence_starts; no sequence, an empty one, or more tokens than max_tokens of the session; an id
 * outside the vocabulary; a token type outside its table, where the model has one; where the model adds absolute
 * positions at the input, a position outside their table (without position_ids: a sequence longer than it); a callback
 * whose feature the session lacks. The session then stays unchanged, with the earlier batch and its hidden states.
 *
 * Also DEBERTA_E_ARGUMENT, and nothing changed, while another call of the session runs: from an observer, or from a
 * second thread.
 *
 * Afterwards only reading a row of the word table, which stays in the model's files, can fail (DEBERTA_E_FORMAT,
 * DEBERTA_E_MEMORY), and an observer can stop. The session can then be used again, but holds no batch until the next
 * encode. *outputs is written on success only. */
DEBERTA_API deberta_status deberta_encode(deberta_session *session, const deberta_batch *batch,
                                          deberta_outputs *outputs, deberta_error *err);

/* Checks the last encode's H[L], or with DEBERTA_ONLY_HEADS what the session holds of it, H[L-1]: DEBERTA_E_FORMAT,
 * with the place, if a value is not finite. Edits of hidden states and trained weights can cause that; a checkpoint's
 * weights are checked as they are read, see deberta_model_open. Not part of deberta_encode, because an edit may be
 * meant so. DEBERTA_E_ARGUMENT: nothing has been encoded. */
DEBERTA_API deberta_status deberta_session_check_finite(const deberta_session *session, deberta_error *err);

/* ----------------------------------------------------------------------------------------------------------- tasks */

/* An output head of the model. (Heads without a qualifier are those of attention.) */
typedef enum deberta_task {
    DEBERTA_TASK_MLM = 0,  /* masked language model on H[L]: [positions][V] */
    DEBERTA_TASK_MLM_EMD,  /* the same after the Enhanced Mask Decoder; needs DEBERTA_KEEP_DECODER_INPUT: [positions][V]
                            */
    DEBERTA_TASK_RTD,      /* replaced-token detection: [positions][1], the logit of "was replaced" */
    DEBERTA_TASK_SEQUENCE, /* sequence classification: positions are sequence numbers, [positions][labels] */
    DEBERTA_TASK_TOKEN,    /* token classification: [positions][labels] */
    DEBERTA_TASK_QA,       /* [positions][2]: start, end */
    DEBERTA_TASK_COUNT
} deberta_task;

/* "mlm", "mlm_emd", "rtd", "sequence", "token", "qa" */
DEBERTA_API const char *deberta_task_name(deberta_task task);
/* Returns the number of columns of the head's logits; 0 if the checkpoint does not have the head. */
DEBERTA_API size_t deberta_task_width(const deberta_model *model, deberta_task task);
/* Computes logits of the last encoded batch at `positions` [count] (indices into the batch's tokens, or sequence
 * numbers for DEBERTA_TASK_SEQUENCE). logits: [count][stride], the caller's memory; the first deberta_task_width of
 * each row are written.
 *
 * DEBERTA_E_ARGUMENT: no batch in the session, a position beyond it, a stride below the width, DEBERTA_TASK_MLM_EMD
 * without DEBERTA_KEEP_DECODER_INPUT, another running call of the session. DEBERTA_E_UNSUPPORTED: the model lacks the
 * head. As after deberta_encode, reading the word table can fail.
 *
 * Any subset of positions, in any order, gives the same bits, but a call should cover many: every call for
 * DEBERTA_TASK_MLM or _MLM_EMD reads and packs the whole word table (V x embedding size, 98 million weights of
 * v3-base), and the Enhanced Mask Decoder the keys of the sequences as well. A block of 100 to 200 positions hides that
 * cost. */
DEBERTA_API deberta_status deberta_task_logits(deberta_session *session, deberta_task task, const size_t *positions,
                                               size_t count, float *logits, size_t stride, deberta_error *err);

/* ------------------------------------------------------------------------------------------------------- tokenizer */

/* Converts text to ids and back, for all generations: SentencePiece vocabularies (v2, v3, mDeBERTa) and byte-level BPE
 * (v1). Immutable; any number of threads may use one at the same time. */
typedef struct deberta_tokenizer deberta_tokenizer;

/* Special tokens, in the order in which transformers appends those that a vocabulary lacks. */
typedef enum deberta_special {
    DEBERTA_SPECIAL_CLS = 0,
    DEBERTA_SPECIAL_SEP,
    DEBERTA_SPECIAL_UNK,
    DEBERTA_SPECIAL_PAD,
    DEBERTA_SPECIAL_MASK,
    DEBERTA_SPECIAL_COUNT
} deberta_special;

/* Opens a tokenizer from a folder with, in this order of preference: spm.model; tokenizer.json; vocab.json with
 * merges.txt; bpe_encoder.bin. No config.json and no weights are needed. Names, ids and flags of special tokens come
 * from tokenizer_config.json, special_tokens_map.json and added_tokens.json if present. DEBERTA_E_FILE: the folder has
 * none of them. DEBERTA_E_FORMAT: damaged. */
DEBERTA_API deberta_status deberta_tokenizer_open(deberta_tokenizer **tokenizer, const char *folder,
                                                  deberta_error *err);
DEBERTA_API void deberta_tokenizer_free(deberta_tokenizer **tokenizer);

/* Returns notes like deberta_model_note, about the tokenizer's files. */
DEBERTA_API const char *deberta_tokenizer_note(const deberta_tokenizer *tokenizer, size_t index);
/* Returns "SentencePiece unigram", "SentencePiece BPE", "byte-level BPE" or "Metaspace unigram" (a tokenizer.json
 * alone). */
DEBERTA_API const char *deberta_tokenizer_kind_name(const deberta_tokenizer *tokenizer);
/* Returns one more than the largest id; the model's word table may have more rows. */
DEBERTA_API size_t deberta_tokenizer_vocabulary_size(const deberta_tokenizer *tokenizer);
/* Returns the id of a special token, which every vocabulary has; -1 for an unknown special. */
DEBERTA_API int32_t deberta_tokenizer_special_id(const deberta_tokenizer *tokenizer, deberta_special special);
/* Returns the token in the vocabulary's spelling ("\u2581the", "\u0120the"), terminated; NULL where no token has the
 * id. bytes may be NULL. It belongs to the tokenizer. */
DEBERTA_API const char *deberta_tokenizer_token(const deberta_tokenizer *tokenizer, int32_t id, size_t *bytes);
/* Returns 1 for the five special tokens and for others that the folder's files add, else 0. */
DEBERTA_API int deberta_tokenizer_is_special(const deberta_tokenizer *tokenizer, int32_t id);

typedef struct deberta_text {
    size_t struct_size;
    const char *text;     /* UTF-8, less than 2 GiB; may hold NUL */
    size_t text_bytes;    /* 0 = the text is terminated, and its length is computed */
    const char *pair;     /* a second segment, or NULL; an empty one is a segment */
    size_t pair_bytes;    /* as text_bytes */
    size_t max_tokens;    /* limit of the tokens, [CLS] and [SEP] included; of a pair the longer segment loses its last
                             token until all fits. 0 = cut nothing */
    int strict;           /* 1 = broken UTF-8 is an error (DEBERTA_E_FORMAT); 0 = U+FFFD replaces it */
    int literal_specials; /* 1 = "[MASK]" in a text is six ordinary characters; 0 = the token */
} deberta_text;

/* [begin, end) */
typedef struct deberta_span {
    size_t begin, end;
} deberta_span;

typedef enum deberta_token_role {
    DEBERTA_TOKEN_TEXT = 0, /* a piece of the text */
    DEBERTA_TOKEN_SPELLED,  /* a special token that the text spells out, such as "[MASK]" */
    DEBERTA_TOKEN_FRAME     /* the [CLS] and [SEP] put around the segments: spans are 0, 0 without a meaning */
} deberta_token_role;

/* [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; deberta_batch takes these ids and token_types. */
typedef struct deberta_tokens {
    size_t count;
    const int32_t *ids;         /* [count] */
    const int32_t *token_types; /* [count]: 1 for the pair and its [SEP], else 0 */
    /* [count] each: the source range of a token in its segment, as given, in bytes and in Unicode characters. Spans may
     * be empty: of [CLS] and [SEP], of SentencePiece's added space, and of all but the last of several tokens made of
     * one character. */
    const deberta_span *byte_spans, *character_spans;
    size_t dropped;                                     /* number of tokens that max_tokens cut off */
    size_t replaced;                                    /* units of broken UTF-8 that became U+FFFD */
    size_t first_replaced_segment, first_replaced_byte; /* the place of the first of them, in the segment as given */
    size_t segments;                                    /* 1, or 2 with a pair */
    const uint8_t *roles;                               /* [count] of deberta_token_role */
} deberta_tokens;

/* Tokenizes a text. *tokens: NULL, or the result of an earlier call, whose memory is reused and whose content is lost.
 * The list does not need the tokenizer afterwards; deberta_tokens_free frees it. Time is linear in the length (times
 * its logarithm for BPE). On failure an earlier list is empty. */
DEBERTA_API deberta_status deberta_tokenize(deberta_tokens **tokens, const deberta_tokenizer *tokenizer,
                                            const deberta_text *text, deberta_error *err);
/* Copies the tokens into *copy, a separate list without spare memory. A list that deberta_tokenize fills repeatedly
 * keeps memory for the next text, several times the size of its tokens. For callers that keep many lists. */
DEBERTA_API deberta_status deberta_tokens_copy(deberta_tokens **copy, const deberta_tokens *tokens, deberta_error *err);
DEBERTA_API void deberta_tokens_free(deberta_tokens **tokens);
/* Returns the token in the vocabulary's spelling (deberta_tokenizer_token), except that SentencePiece reports an
 * unknown range by its own, normalised text. Terminated, but may contain NUL; bytes may be NULL. NULL for index >=
 * count. Valid until the list changes. */
DEBERTA_API const char *deberta_tokens_text(const deberta_tokens *tokens, size_t index, size_t *bytes);
/* Returns the text of ids, terminated; the caller frees it by deberta_free; bytes may be NULL. [CLS], [SEP] and [PAD]
 * are omitted, other special tokens are spelled. Bytes that form no character become U+FFFD. DEBERTA_E_ARGUMENT for an
 * id without a token; *text is NULL then. */
DEBERTA_API deberta_status deberta_detokenize(char **text, size_t *bytes, const deberta_tokenizer *tokenizer,
                                              const int32_t *ids, size_t count, deberta_error *err);

#ifdef __cplusplus
}
#endif
#endif
