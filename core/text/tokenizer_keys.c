/* Lists the keys that tokenizer_config.json, special_tokens_map.json and tokenizer.json are known to hold. A key on no
 * list is named in a note: a later version of transformers must neither make the file unusable nor change ids silently.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer_keys.h"

#include <stdio.h>
#include <string.h>

#include "core/io/json_file.h"

typedef enum key_use {
    USED,     /* tokenizer_config.c or tokenizer_json.c reads the key */
    HARMLESS, /* no id depends on the key, in this library or in transformers */
    OFF,      /* the key is harmless while it is null, false, 0 or empty */
    ONE_OF,   /* the key is harmless while it is null or one of the texts in `about`, between blanks */
} key_use;

/* about: why the key is harmless, which texts are, or what happens instead. */
typedef struct known_key {
    const char *name;
    key_use use;
    const char *about;
} known_key;

static const known_key of_settings[] = {
    {"cls_token", USED, NULL},
    {"sep_token", USED, NULL},
    {"unk_token", USED, NULL},
    {"pad_token", USED, NULL},
    {"mask_token", USED, NULL},
    {"bos_token", USED, NULL},
    {"eos_token", USED, NULL},
    {"additional_special_tokens", USED, NULL},
    {"extra_special_tokens", USED, NULL},
    {"added_tokens_decoder", USED, NULL},
    {"do_lower_case", USED, NULL},
    {"split_by_punct", USED, NULL},
    {"add_prefix_space", USED, NULL},

    {"model_max_length", HARMLESS, "nothing is cut unless asked for"},
    {"max_length", HARMLESS, "nothing is cut unless asked for"},
    {"max_len", HARMLESS, "nothing is cut unless asked for"},
    {"stride", HARMLESS, "of windows, which are asked for"},
    {"truncation", HARMLESS, "nothing is cut unless asked for"},
    {"truncation_strategy", HARMLESS, "nothing is cut unless asked for"},
    {"padding", HARMLESS, "there is none"},
    {"padding_side", HARMLESS, "there is no padding"},
    {"padding_strategy", HARMLESS, "there is no padding"},
    {"pad_to_multiple_of", HARMLESS, "there is no padding"},
    {"pad_to_max_length", HARMLESS, "there is no padding"},
    {"pad_token_type_id", HARMLESS, "there is no padding"},
    {"model_input_names", HARMLESS, "what a batch holds"},
    {"return_token_type_ids", HARMLESS, "what a batch holds"},
    {"return_tensors", HARMLESS, "what a batch holds"},
    {"clean_up_tokenization_spaces", HARMLESS, "of decoding"},
    {"spaces_between_special_tokens", HARMLESS, "of decoding"},
    {"errors", HARMLESS, "of decoding"},
    {"chat_template", HARMLESS, "of chats"},
    {"trim_offsets", HARMLESS, "of places in the text"},
    {"unk_id", HARMLESS, "the vocabulary says it"},
    {"backend", HARMLESS, "where it came from"},
    {"is_local", HARMLESS, "where it came from"},
    {"local_files_only", HARMLESS, "where it came from"},
    {"name_or_path", HARMLESS, "where it came from"},
    {"special_tokens_map_file", HARMLESS, "where it came from"},
    {"tokenizer_file", HARMLESS, "where it came from"},
    {"full_tokenizer_file", HARMLESS, "where it came from"},
    {"vocab_file", HARMLESS, "where it came from"},
    {"merges_file", HARMLESS, "where it came from"},
    {"cache_dir", HARMLESS, "where it came from"},
    {"revision", HARMLESS, "where it came from"},
    {"token", HARMLESS, "where it came from"},
    {"use_auth_token", HARMLESS, "where it came from"},
    {"trust_remote_code", HARMLESS, "where it came from"},
    {"transformers_version", HARMLESS, "where it came from"},
    {"processor_class", HARMLESS, "what it is part of"},
    {"tokenizer_type", HARMLESS, "what it is part of"},
    {"model_type", HARMLESS, "what it is part of"},
    {"use_fast", HARMLESS, "which of two classes that give the same ids"},
    {"from_slow", HARMLESS, "which of two classes that give the same ids"},
    {"legacy", HARMLESS, "of Llama's class alone"},
    {"init_inputs", OFF, "of a class of its own"},

    {"tokenizer_class", ONE_OF,
     " DebertaTokenizer DebertaTokenizerFast DebertaV2Tokenizer DebertaV2TokenizerFast PreTrainedTokenizerFast "
     "TokenizersBackend "},
    {"slow_tokenizer_class", ONE_OF, " DebertaTokenizer DebertaV2Tokenizer "},
    {"vocab_type", ONE_OF, " spm gpt2 "},
    {"truncation_side", ONE_OF, " right "},
    {"add_bos_token", OFF, "texts have the frame of DeBERTa"},
    {"add_eos_token", OFF, "texts have the frame of DeBERTa"},
    {"add_bos", OFF, "texts have the frame of DeBERTa"},
    {"add_eos", OFF, "texts have the frame of DeBERTa"},
    {"sp_model_kwargs", OFF, "the best path is taken, none is drawn"},
    {"split_special_tokens", OFF, "special tokens are found in texts"},
    {"auto_map", OFF, "Python's code in the folder is not run"},
    {"never_split", OFF, NULL},
};

static const known_key of_pipeline[] = {
    {"version", HARMLESS, "of the file's form"},
    {"truncation", HARMLESS, "nothing is cut unless asked for"},
    {"padding", HARMLESS, "there is none"},
    {"decoder", HARMLESS, "of decoding"},
    {"added_tokens", USED, NULL},
    {"normalizer", USED, NULL},
    {"pre_tokenizer", USED, NULL},
    {"post_processor", USED, NULL},
    {"model", USED, NULL},
};

static const known_key of_model[] = {
    {"type", USED, NULL},
    {"vocab", USED, NULL},
    {"merges", USED, NULL},
    {"unk_id", USED, NULL},
    {"byte_fallback", USED, NULL},
    {"dropout", OFF, "the best path is taken, none is drawn"}, /* These four are refused with BPE. */
    {"continuing_subword_prefix", OFF, NULL},
    {"end_of_word_suffix", OFF, NULL},
    {"ignore_merges", OFF, NULL},
    {"alpha", OFF, "the best path is taken, none is drawn"},
    {"nbest_size", OFF, "the best path is taken, none is drawn"},
    {"fuse_unk", OFF, "each unknown symbol has an id of its own"},
    {"unk_token", HARMLESS, "every byte has a symbol"},
    {"cache_capacity", HARMLESS, "of speed"},
};

/* Indexed by tokenizer_file. */
static const struct {
    const known_key *keys;
    size_t count;
} tables[] = {{of_settings, sizeof of_settings / sizeof *of_settings},
              {of_pipeline, sizeof of_pipeline / sizeof *of_pipeline},
              {of_model, sizeof of_model / sizeof *of_model}};

static bool is_off(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           ((json_is_array(value) || json_is_object(value)) && json_array_size(value) + json_object_size(value) == 0);
}

static bool is_one_of(const json_t *value, const char *texts)
{
    char sought[64];
    if (json_is_null(value)) return true;
    if (!json_is_string(value)) return false;
    snprintf(sought, sizeof sought, " %.60s ", json_string_value(value));
    return strstr(texts, sought);
}

static bool passes(const known_key *key, const json_t *value)
{
    if (key->use == OFF) return is_off(value);
    return key->use != ONE_OF || is_one_of(value, key->about);
}

deberta_status tokenizer_keys_note(kept_notes *list, const json_t *root, tokenizer_file kind, const char *where,
                                   deberta_error *err)
{
    const known_key *table = tables[kind].keys;
    const size_t count = tables[kind].count;
    char named[600] = "";
    size_t length = 0, left_out = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        size_t k = 0;
        while (k < count && strcmp(table[k].name, name) != 0) k++;
        if ((k < count && passes(&table[k], value)) || (k == count && json_is_null(value))) continue;
        const bool says = k < count && table[k].use == OFF && table[k].about;
        if (length + 200 < sizeof named)
            length += (size_t)snprintf(named + length, sizeof named - length, "%s%.40s is %.80s%s%s%s",
                                       *named ? ", " : "", QUOTE(name), json_describe(value).text, says ? " (" : "",
                                       says ? table[k].about : "", says ? ")" : "");
        else
            left_out++;
    }
    if (!*named) return DEBERTA_OK;
    if (left_out) snprintf(named + length, sizeof named - length, " and %zu more", left_out);
    return notes_add(list, err, "%s: %s: not followed, where another library may cut texts otherwise", where, named);
}
