/* Holds the list of the keys of config.json and compares an object's keys with it. docs/followed.md shows the list; a
 * test compares them.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "core/io/json_file.h"

typedef enum key_use {
    FOLLOWED, /* config.c or training reads the key */
    HARMLESS, /* no result depends on the key, whatever its value */
    NOTED,    /* the key becomes a note, unless its value is one of those without effect */
    REFUSED   /* the key becomes an error, unless its value is one of those without effect */
} key_use;

/* clang-format off */
#define CONFIG_KEYS(X)                                                                                                 \
    /* keys of the model */                                                                                                    \
    X(FOLLOWED, "model_type", "which of transformers' classes; without it the config is Microsoft's")                  \
    X(FOLLOWED, "architectures", "which heads the tensors belong to")                                                  \
    X(FOLLOWED, "vocab_size", "rows of the word table")                                                                \
    X(FOLLOWED, "hidden_size", "width of a token's vector")                                                            \
    X(FOLLOWED, "embedding_size", "width of the word table")                                                           \
    X(FOLLOWED, "num_hidden_layers", "layers")                                                                         \
    X(FOLLOWED, "num_attention_heads", "heads")                                                                        \
    X(FOLLOWED, "attention_head_size", "must be hidden_size / num_attention_heads; v1's class ignores it")             \
    X(FOLLOWED, "intermediate_size", "width of the feed-forward part")                                                 \
    X(FOLLOWED, "hidden_act", "activation")                                                                            \
    X(FOLLOWED, "layer_norm_eps", "LayerNorm")                                                                         \
    X(FOLLOWED, "max_position_embeddings", "rows of the table of absolute positions")                                  \
    X(FOLLOWED, "type_vocab_size", "token types")                                                                      \
    X(FOLLOWED, "relative_attention", "relative positions")                                                            \
    X(FOLLOWED, "max_relative_positions", "relative positions")                                                        \
    X(FOLLOWED, "position_buckets", "relative positions; v1's class ignores it")                                       \
    X(FOLLOWED, "pos_att_type", "terms of attention")                                                                  \
    X(FOLLOWED, "position_biased_input", "absolute positions at the input")                                            \
    X(FOLLOWED, "share_att_key", "projections of positions; v1's class ignores it")                                    \
    X(FOLLOWED, "norm_rel_ebd", "LayerNorm of the relative table; v1's class ignores it")                              \
    X(FOLLOWED, "talking_head", "v1's talking heads; v2's class ignores it")                                           \
    X(FOLLOWED, "conv_kernel_size", "convolution; v1's class ignores it")                                              \
    X(FOLLOWED, "conv_groups", "convolution; v1's class ignores it")                                                   \
    X(FOLLOWED, "conv_act", "convolution; v1's class ignores it")                                                      \
    X(FOLLOWED, "pad_token_id", "what fills batches")                                                                  \
    X(FOLLOWED, "padding_idx", "Microsoft's pad_token_id")                                                             \
    X(FOLLOWED, "pooler_hidden_act", "pooler of the sequence head")                                                    \
    X(FOLLOWED, "pooling", "Microsoft's pooler: hidden_act, dropout")                                                  \
    X(FOLLOWED, "discriminator", "of Microsoft's pair: the model")                                                     \
    X(FOLLOWED, "generator", "of Microsoft's pair: left out")                                                          \
    X(FOLLOWED, "base_model", "names another model: refused where hidden_size is missing")                             \
    X(FOLLOWED, "id2label", "names of labels")                                                                         \
    X(FOLLOWED, "num_labels", "how many labels, without id2label")                                                     \
    X(FOLLOWED, "problem_type", "how the outputs of a sequence head are read")                                         \
    X(FOLLOWED, "initializer_range", "training: spread of a new head")                                                 \
    X(FOLLOWED, "hidden_dropout_prob", "training")                                                                     \
    X(FOLLOWED, "attention_probs_dropout_prob", "training")                                                            \
    X(FOLLOWED, "pooler_dropout", "training")                                                                          \
    X(FOLLOWED, "cls_dropout", "training")                                                                             \
    X(FOLLOWED, "dropout", "training; inside `pooling`")                                                               \
    /* keys on which no result depends */                                                                                      \
    X(HARMLESS, "label2id", "id2label says it")                                                                        \
    X(HARMLESS, "_num_labels", "id2label and the classifier say it")                                                   \
    X(HARMLESS, "pooler_hidden_size", "the pooler's tensor says it, and must fit")                                     \
    X(HARMLESS, "embedding_sharing", "how Microsoft's pair was trained; the tensors say what came out")                \
    X(HARMLESS, "legacy", "which names the masked head has; the tensors say it")                                       \
    X(HARMLESS, "tie_word_embeddings", "the masked head's own table is used where the file has one")                   \
    X(HARMLESS, "tie_encoder_decoder", "there is no decoder")                                                          \
    X(HARMLESS, "dtype", "the tensors say it")                                                                         \
    X(HARMLESS, "torch_dtype", "the tensors say it")                                                                   \
    X(HARMLESS, "use_bfloat16", "the tensors say it")                                                                  \
    X(HARMLESS, "classifier_dropout", "training of other models")                                                      \
    X(HARMLESS, "gradient_checkpointing", "memory of training")                                                        \
    X(HARMLESS, "chunk_size_feed_forward", "memory; the same result")                                                  \
    X(HARMLESS, "use_cache", "generation")                                                                             \
    X(HARMLESS, "output_past", "generation")                                                                           \
    X(HARMLESS, "return_dict", "form of transformers' results")                                                        \
    X(HARMLESS, "output_attentions", "form of transformers' results")                                                  \
    X(HARMLESS, "output_hidden_states", "form of transformers' results")                                               \
    X(HARMLESS, "torchscript", "form of transformers' results")                                                        \
    X(HARMLESS, "tf_legacy_loss", "training in TensorFlow")                                                            \
    X(HARMLESS, "attn_implementation", "how transformers computes the same")                                           \
    X(HARMLESS, "_attn_implementation", "how transformers computes the same")                                          \
    X(HARMLESS, "_attn_implementation_internal", "how transformers computes the same")                                 \
    X(HARMLESS, "_attn_implementation_autoset", "how transformers computes the same")                                  \
    X(HARMLESS, "_experts_implementation", "there are no experts")                                                     \
    X(HARMLESS, "_experts_implementation_internal", "there are no experts")                                            \
    X(HARMLESS, "_output_attentions", "form of transformers' results")                                                 \
    X(HARMLESS, "_name_or_path", "where the folder came from")                                                         \
    X(HARMLESS, "name_or_path", "where the folder came from")                                                          \
    X(HARMLESS, "_commit_hash", "where the folder came from")                                                          \
    X(HARMLESS, "transformers_version", "who wrote it")                                                                \
    X(HARMLESS, "adapter_transformers_version", "who wrote it")                                                        \
    X(HARMLESS, "finetuning_task", "a name")                                                                           \
    X(HARMLESS, "task_specific_params", "generation")                                                                  \
    X(HARMLESS, "function_to_apply", "transformers' pipeline has decided before it looks there")                       \
    X(HARMLESS, "transformers.js_config", "which file a browser loads")                                                \
    X(HARMLESS, "xla_device", "where it was trained")                                                                  \
    X(HARMLESS, "tokenizer_class", "the tokenizer's files say it")                                                     \
    X(HARMLESS, "bos_token_id", "the tokenizer's files say it")                                                        \
    X(HARMLESS, "eos_token_id", "the tokenizer's files say it")                                                        \
    X(HARMLESS, "sep_token_id", "the tokenizer's files say it")                                                        \
    X(HARMLESS, "cls_token_id", "the tokenizer's files say it")                                                        \
    X(HARMLESS, "mask_token_id", "the tokenizer's files say it")                                                       \
    X(HARMLESS, "unk_token_id", "the tokenizer's files say it")                                                        \
    X(HARMLESS, "decoder_start_token_id", "generation")                                                                \
    X(HARMLESS, "prefix", "generation")                                                                                \
    X(HARMLESS, "summary_type", "other models' heads")                                                                 \
    X(HARMLESS, "summary_use_proj", "other models' heads")                                                             \
    X(HARMLESS, "summary_activation", "other models' heads")                                                           \
    X(HARMLESS, "summary_last_dropout", "other models' heads")                                                         \
    X(HARMLESS, "summary_first_dropout", "other models' heads")                                                        \
    X(HARMLESS, "summary_proj_to_labels", "other models' heads")                                                       \
    /* keys of generation, which no DeBERTa does */                                                                            \
    GENERATION(X, "max_length") GENERATION(X, "min_length") GENERATION(X, "max_new_tokens")                            \
    GENERATION(X, "do_sample") GENERATION(X, "early_stopping") GENERATION(X, "num_beams")                              \
    GENERATION(X, "num_beam_groups") GENERATION(X, "diversity_penalty") GENERATION(X, "temperature")                   \
    GENERATION(X, "top_k") GENERATION(X, "top_p") GENERATION(X, "min_p") GENERATION(X, "typical_p")                    \
    GENERATION(X, "epsilon_cutoff") GENERATION(X, "eta_cutoff") GENERATION(X, "repetition_penalty")                    \
    GENERATION(X, "encoder_repetition_penalty") GENERATION(X, "length_penalty")                                        \
    GENERATION(X, "no_repeat_ngram_size") GENERATION(X, "encoder_no_repeat_ngram_size")                                \
    GENERATION(X, "bad_words_ids") GENERATION(X, "num_return_sequences") GENERATION(X, "output_scores")                \
    GENERATION(X, "return_dict_in_generate") GENERATION(X, "forced_bos_token_id")                                      \
    GENERATION(X, "forced_eos_token_id") GENERATION(X, "remove_invalid_values")                                        \
    GENERATION(X, "exponential_decay_length_penalty") GENERATION(X, "suppress_tokens")                                 \
    GENERATION(X, "begin_suppress_tokens") GENERATION(X, "num_assistant_tokens")                                       \
    GENERATION(X, "num_assistant_tokens_schedule") GENERATION(X, "assistant_confidence_threshold")                     \
    GENERATION(X, "assistant_lookbehind") GENERATION(X, "target_lookbehind")                                           \
    /* keys that would change the result */                                                                                 \
    X(NOTED, "is_decoder", "no class of DeBERTa hides later tokens, so attention goes in both directions")             \
    X(NOTED, "is_encoder_decoder", "the encoder alone is computed")                                                    \
    X(NOTED, "add_cross_attention", "the encoder alone is computed")                                                   \
    X(NOTED, "cross_attention_hidden_size", "the encoder alone is computed")                                           \
    X(NOTED, "auto_map", "the code of the folder's author is not run: the model is computed as transformers' own class does") \
    X(NOTED, "custom_pipelines", "the code of the folder's author is not run")                                         \
    X(NOTED, "adapters", "adapters are not applied: merge them into the weights first")                                \
    X(NOTED, "sentence_transformers", "outputs are read as transformers' pipeline reads them, without the activation that CrossEncoder applies") \
    X(NOTED, "sbert_ce_default_activation_function", "outputs are read as transformers' pipeline reads them, without the activation that CrossEncoder applies") \
    X(REFUSED, "quantization_config", "none: quantized models are not read")                                           \
    X(REFUSED, "compression_config", "none: compressed models are not read")                                           \
    X(REFUSED, "pruned_heads", "none: take the heads' rows out of the tensors, or set them to zero")                   \
    X(REFUSED, "per_layer_config", "none: all layers have one configuration here")
/* clang-format on */
#define GENERATION(X, key) X(HARMLESS, key, "generation")

static const struct known_key {
    const char *name;
    key_use use;
    const char *why;
} known_keys[] = {
#define KEY(use, name, why) {name, use, why},
    CONFIG_KEYS(KEY)
#undef KEY
};

static const struct known_key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++)
        if (strcmp(known_keys[i].name, name) == 0) return &known_keys[i];
    return NULL;
}

/* Returns whether a value is null, false, 0, an empty text, or a list or object of nothing else: transformers writes
 * these for "not used". */
static bool says_nothing(const json_t *value)
{
    const char *key;
    json_t *member;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, member)
        {
            if (!says_nothing(member)) return false;
        }
        return true;
    }
    return json_is_null(value) || json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_number(value) && json_number_value(value) == 0);
}

/* Names of keys that are on no list; those beyond the room are counted. */
typedef struct unknown_keys {
    char text[512];
    size_t length, count, left_out;
} unknown_keys;

static void add_unknown(unknown_keys *unknown, const char *inside, const char *name)
{
    char one[QUOTE_BYTES + 64];
    const int length = snprintf(one, sizeof one, "%s%s%s", unknown->count++ ? ", " : "", inside, QUOTE(name));
    if (length < 0 || unknown->length + (size_t)length >= sizeof unknown->text) {
        unknown->left_out++;
        return;
    }
    memcpy(unknown->text + unknown->length, one, (size_t)length + 1);
    unknown->length += (size_t)length;
}

static deberta_status note_unknown(const unknown_keys *unknown, const char *where, kept_notes *list, deberta_error *err)
{
    char more[64] = "";
    if (unknown->count == 0) return DEBERTA_OK;
    if (unknown->left_out) snprintf(more, sizeof more, " and %zu more", unknown->left_out);
    return notes_add(list, err, "%s: %s not known here and not used: %s%s", where,
                     unknown->count == 1 ? "a key is" : "keys are", unknown->text, more);
}

static deberta_status check_key(const struct known_key *key, const json_t *value, const char *where, kept_notes *list,
                                deberta_error *err)
{
    if (key->use == FOLLOWED || key->use == HARMLESS || says_nothing(value)) return DEBERTA_OK;
    if (key->use == REFUSED)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: %s is %s, expected %s", where, key->name,
                     json_describe(value).text, key->why);
    return notes_add(list, err, "%s: %s is %s, which is not followed: %s", where, key->name, json_describe(value).text,
                     key->why);
}

deberta_status config_keys_check(const json_t *object, const char *where, const char *inside, kept_notes *list,
                                 deberta_error *err)
{
    unknown_keys unknown = {{0}, 0, 0, 0};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const struct known_key *key = find_key(name);
        const bool read_inside = !inside && key && key->use == FOLLOWED && !json_is_object(value);
        if (key && !read_inside)
            DEBERTA_TRY(check_key(key, value, where, list, err));
        else if (!json_is_null(value))
            add_unknown(&unknown, inside ? inside : "", name);
    }
    return note_unknown(&unknown, where, list, err);
}
