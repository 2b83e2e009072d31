/* Lists the keys that objects of texts and batches of ids may have: used keys, aliases of used keys, and metadata.
 * Every reader of objects consults these lists, so that no key is ignored silently.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */

/* X(key, meaning): keys of objects, one object a line. */
#define RECORD_KEYS(X)                                                                                                 \
    X("text", "the text; of `finetune qa` the answer")                                                                 \
    X("pair", "the second text")                                                                                       \
    X("text_pair", "the second text, as transformers calls it")                                                        \
    X("id", "what stands beside the answer, and decides the shard")                                                    \
    X("label", "the class, the value, or the number of the right choice")                                              \
    X("labels", "a label for each word")                                                                               \
    X("words", "the words of a sentence")                                                                              \
    X("choices", "the texts to choose from")                                                                           \
    X("question", "the question")                                                                                      \
    X("context", "the text that holds its answer")                                                                     \
    X("start", "the first character of the answer in the context")

/* X(name, its key): aliases, in small letters without "_", "-" and blanks, which do not count. */
#define RECORD_OTHER_NAMES(X)                                                                                          \
    X("sentence1", "text") X("sentencea", "text") X("premise", "text") X("text1", "text") X("texta", "text")           \
    X("firsttext", "text") X("texts", "text") X("query", "text") X("question1", "text") X("sent1", "text")             \
    X("sentence2", "pair") X("sentenceb", "pair") X("hypothesis", "pair") X("text2", "pair") X("textb", "pair")        \
    X("secondtext", "pair") X("pairs", "pair") X("passage", "pair") X("question2", "pair") X("sent2", "pair")          \
    X("document", "pair") X("endings", "choices") X("choice", "choices")

/* X(key): keys of batches of ids (--input, --one-batch, --batches). */
#define BATCH_KEYS(X)                                                                                                  \
    X("input_ids") X("attention_mask") X("token_type_ids") X("position_ids") X("labels") X("start_positions")          \
    X("end_positions") X("sampled_ids") X("delta")

/* X(name, its key): aliases that are refused everywhere. */
#define BATCH_OTHER_NAMES(X)                                                                                           \
    X("mask", "attention_mask") X("attentionmasks", "attention_mask") X("inputmask", "attention_mask")                 \
    X("attnmask", "attention_mask") X("paddingmask", "attention_mask") X("inputid", "input_ids")                       \
    X("tokenids", "input_ids") X("positionid", "position_ids") X("tokentypeid", "token_type_ids")                      \
    X("tokentypes", "token_type_ids") X("segmentids", "token_type_ids")

/* X(name): other results of transformers' tokenizers, and labels under another name, which batches ignore. */
#define BATCH_BESIDE(X)                                                                                                \
    X("special_tokens_mask") X("offset_mapping") X("overflow_to_sample_mapping") X("overflowing_tokens")               \
    X("num_truncated_tokens") X("length") X("word_ids") X("label") X("label_ids") X("next_sentence_label")

/* X(beginning): results that a file has beside its inputs, as in files of `encode` and the golden files. */
#define BATCH_RESULTS(X)                                                                                               \
    X("hidden_states.") X("attn.") X("logits") X("emd.") X("probs_rows") X("zero_fill.") X("ms_clamp.")                \
    X("last_hidden_state")

/* clang-format on */

enum { MOST_UNUSED_KEYS = 16, UNUSED_KEY_BYTES = 40, KEY_SENTENCE_BYTES = 1024 };

/* Collects keys of a file's objects that no reader uses, each once. */
typedef struct unused_keys {
    char names[MOST_UNUSED_KEYS][UNUSED_KEY_BYTES];
    size_t count;
    bool more; /* whether there are more than fit */
} unused_keys;

/* Checks all keys of an object. used: the keys of this reader, NULL at the end. Returns false, with the reason in
 * `problem`, for an alias of a used key and for an alias of a part of a batch; all other keys go to the list. A key
 * whose value is null is not refused. */
bool record_keys_check(const json_t *object, const char *const *used, unused_keys *unused,
                       char problem[KEY_SENTENCE_BYTES]);
/* Writes "keys not used: idx, source", or "" where there are none. */
void unused_keys_describe(const unused_keys *unused, char sentence[KEY_SENTENCE_BYTES]);
/* Writes "; its keys are idx, sentence", to follow a missing key. "" for an object without keys. */
void record_keys_describe(const json_t *object, char sentence[KEY_SENTENCE_BYTES]);

/* Returns the object key for a name or an alias of it ("pair" for both its names); NULL: none. */
const char *record_key_meant(const char *name, size_t bytes);
bool record_key_is_known(const char *name, size_t bytes);

/* Returns whether a batch must not have a member of this name; `problem` gives the reason, to follow "FILE: ". */
bool batch_key_is_wrong(const char *name, char problem[KEY_SENTENCE_BYTES]);
