/* Provides one interface over all kinds of tokenizers: finds files and special tokens. tokenizer_encode.c turns texts
 * into tokens, tokenizer_decode.c turns tokens into text.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/io/folder_kind.h"
#include "core/io/mapped_file.h"
#include "core/text/bpe_files.h"
#include "core/text/json_value.h"
#include "core/text/tokenizer_config.h"
#include "core/text/tokenizer_inside.h"
#include "core/text/tokenizer_json.h"

static const char *const default_specials[DEBERTA_SPECIAL_COUNT] = {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"};

/* ---------------------------------------------------------------------------------------- the vocabulary inside */

static size_t inner_size(const deberta_tokenizer *t) { return t->model ? t->model->count : byte_bpe_size(t->bpe); }

static int32_t inner_find(const deberta_tokenizer *t, const char *text, size_t bytes)
{
    return t->model ? piece_find(t->model, text, bytes) : byte_bpe_find(t->bpe, text, bytes);
}

static const char *inner_token(const deberta_tokenizer *t, int32_t id, size_t *bytes)
{
    if (t->bpe) return byte_bpe_token(t->bpe, id, bytes);
    if (id < 0 || (size_t)id >= t->model->count) return NULL;
    if (bytes) *bytes = t->model->pieces[id].bytes;
    return piece_text(t->model, (size_t)id);
}

/* ---------------------------------------------------------------------------------------------- special tokens */

/* User-defined pieces stay with the SentencePiece model, even where a configuration lists them. The model never
 * normalises or splits them, but does not restart after them as after a special token. */
static void drop_user_defined(deberta_tokenizer *t)
{
    for (size_t i = 0; t->pieces && i < t->added.count;) {
        const added_token *token = &t->added.items[i];
        bool inside = (size_t)token->id < t->model->count && t->model->pieces[token->id].type == PIECE_USER_DEFINED;
        if (inside)
            added_tokens_remove(&t->added, token);
        else
            i++;
    }
}

static deberta_status check_added(const deberta_tokenizer *t, const char *folder, deberta_error *err)
{
    for (size_t i = 0; i < t->added.count; i++) {
        const added_token *token = &t->added.items[i];
        int32_t id = inner_find(t, token->text, token->bytes);
        const char *other = inner_token(t, token->id, NULL);
        quoted name = quote_bytes(token->text, token->bytes);
        if (id >= 0 && id != token->id)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added token '%s' has the id %d, but %d in %s", QUOTE(folder),
                         name.text, (int)token->id, (int)id, t->file_name);
        if (id < 0 && other)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added token '%s' has the id %d, which is '%s' in %s",
                         QUOTE(folder), name.text, (int)token->id, QUOTE(other), t->file_name);
    }
    return DEBERTA_OK;
}

static void measure_vocabulary(deberta_tokenizer *t)
{
    t->vocabulary_size = inner_size(t);
    for (size_t i = 0; i < t->added.count; i++)
        if ((size_t)t->added.items[i].id >= t->vocabulary_size) t->vocabulary_size = (size_t)t->added.items[i].id + 1;
}

/* Adds a special token with the id that the files state, the id in the vocabulary, or the next free one, which [MASK]
 * gets after the pieces of spm.model. */
static deberta_status add_special(deberta_tokenizer *t, deberta_special which, const tokenizer_config *config,
                                  const char *folder, deberta_error *err)
{
    const special_token *said = &config->specials[which];
    const char *framed =
        which == DEBERTA_SPECIAL_CLS || which == DEBERTA_SPECIAL_SEP ? config->frame.text[which] : NULL;
    added_token token = {.text = said->text ? said->text : framed ? framed : default_specials[which], .special = true};
    token.bytes = strlen(token.text);
    const added_token *known = added_tokens_find(&t->added, token.text, token.bytes);
    if (known) {
        t->specials[which] = known->id;
        return DEBERTA_OK;
    }
    token.id = inner_find(t, token.text, token.bytes);
    if (token.id < 0 && which == DEBERTA_SPECIAL_UNK && t->model) token.id = t->model->unknown_id;
    if (token.id < 0) token.id = (int32_t)t->vocabulary_size;
    if (token.id > ADDED_TOKEN_MAX_ID)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: '%s' would get the id %d, after all others; the largest possible is %d", QUOTE(folder),
                     QUOTE(token.text), (int)token.id, ADDED_TOKEN_MAX_ID);

    /* "a [MASK] b" must be a, [MASK], " b" in v1, whose words begin with their space. */
    token.strip_left = said->described ? said->strip_left : which == DEBERTA_SPECIAL_MASK && t->bpe;
    token.strip_right = said->described && said->strip_right;
    DEBERTA_TRY(added_tokens_add(&t->added, &token, QUOTE(folder), err));
    t->specials[which] = token.id;
    measure_vocabulary(t);
    return DEBERTA_OK;
}

/* Checks that the tokens of the frame are the special tokens; otherwise tokenizer.json contradicts the files next to
 * it. */
static deberta_status check_frame(const deberta_tokenizer *t, const tokenizer_frame *frame, const char *folder,
                                  deberta_error *err)
{
    static const char *const names[2] = {"cls_token", "sep_token"};
    _Static_assert(DEBERTA_SPECIAL_CLS == 0 && DEBERTA_SPECIAL_SEP == 1, "the order of the frame");
    for (size_t i = 0; frame->pair_separators && i < 2; i++)
        if (frame->id[i] != t->specials[i])
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: the post_processor of tokenizer.json frames texts with '%s' of the id %d, but the %s has "
                         "the id %d",
                         QUOTE(folder), QUOTE(frame->text[i]), (int)frame->id[i], names[i], (int)t->specials[i]);
    return DEBERTA_OK;
}

/* Adds further special tokens: texts that spell such a piece give that one token. A name without an id is left out,
 * because transformers would give it an id that the model may lack. */
static deberta_status add_more_specials(deberta_tokenizer *t, const tokenizer_config *config, const char *folder,
                                        deberta_error *err)
{
    size_t i;
    const json_t *name;
    json_array_foreach(config->more_specials, i, name)
    {
        added_token token = {.text = json_string_value(name), .bytes = json_string_length(name), .special = true};
        if (added_tokens_find(&t->added, token.text, token.bytes)) continue;
        token.id = inner_find(t, token.text, token.bytes);
        if (token.id < 0)
            DEBERTA_TRY(notes_add(
                &t->notes, err, "%s: '%s' is named a special token, and no file gives it an id: it is cut as any text",
                QUOTE(folder), QUOTE(token.text)));
        else if (!t->pieces || t->model->pieces[token.id].type != PIECE_USER_DEFINED)
            DEBERTA_TRY(added_tokens_add(&t->added, &token, QUOTE(folder), err));
    }
    return DEBERTA_OK;
}

static deberta_status settle_specials(deberta_tokenizer *t, tokenizer_config *config, const char *folder,
                                      deberta_error *err)
{
    t->added = config->added;
    config->added = (added_tokens){0};
    t->notes = config->notes;
    config->notes = (kept_notes){0};
    drop_user_defined(t);
    DEBERTA_TRY(check_added(t, folder, err));
    measure_vocabulary(t);
    for (size_t i = 0; i < DEBERTA_SPECIAL_COUNT; i++)
        DEBERTA_TRY(add_special(t, (deberta_special)i, config, folder, err));
    DEBERTA_TRY(add_more_specials(t, config, folder, err));
    DEBERTA_TRY(check_frame(t, &config->frame, folder, err));
    if (t->words) return metaspace_add_tokens(t->words, &t->added, QUOTE(folder), err);
    /* Such tokens are found in the text as it is. */
    for (size_t i = 0; i < t->added.count; i++) t->added.items[i].normalized = false;
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- opening */

static deberta_status load_spm(piece_model *model, const char *path, deberta_error *err)
{
    mapped_file file;
    DEBERTA_TRY(mapped_file_open_at_most(&file, path, VOCABULARY_FILE_MOST_BYTES, err));
    deberta_status status = piece_model_read(model, file.bytes, file.size_bytes, file.name.text, err);
    return mapped_file_end(&file, status, err);
}

static deberta_status find_vocabulary(const char *folder, char **path, char **merges_path, const char **name,
                                      deberta_error *err)
{
    static const char *const names[] = {"spm.model", "tokenizer.json", "vocab.json", "bpe_encoder.bin"};
    *path = *merges_path = NULL;
    struct stat facts;
    if (stat(folder, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        const int reason = errno;
        DEBERTA_TRY(folder_check_tokenizer(folder, err));
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "folder '%s' cannot be read: %s", QUOTE(folder), strerror(reason));
    }
    bool merges_missing = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*path; i++) {
        *name = names[i];
        DEBERTA_TRY(tokenizer_file_find(path, folder, names[i], err));
        if (!*path || strcmp(*name, "vocab.json") != 0) continue;
        DEBERTA_TRY(tokenizer_file_find(merges_path, folder, "merges.txt", err));
        if (*merges_path) continue;
        merges_missing = true;
        free(*path);
        *path = NULL;
    }
    if (!*path && merges_missing)
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "'%s' holds a vocab.json, but not the merges.txt that belongs to it",
                     QUOTE(folder));
    if (!*path) DEBERTA_TRY(folder_check_tokenizer(folder, err));
    if (!*path)
        DEBERTA_FAIL(err, DEBERTA_E_FILE,
                     "'%s' holds no tokenizer: looked for spm.model, tokenizer.json, vocab.json with merges.txt, "
                     "bpe_encoder.bin",
                     QUOTE(folder));
    return DEBERTA_OK;
}

/* Fills *model or t->bpe from the file, and *config from it and the files next to it. */
static deberta_status load_vocabulary(deberta_tokenizer *t, const char *path, const char *merges_path,
                                      const char *folder, tokenizer_config *config, piece_model *model,
                                      deberta_error *err)
{
    const bool of_sentencepiece = strcmp(t->file_name, "spm.model") == 0;
    if (of_sentencepiece)
        DEBERTA_TRY(load_spm(model, path, err));
    else if (strcmp(t->file_name, "tokenizer.json") == 0)
        DEBERTA_TRY(tokenizer_json_load(path, config, model, &t->bpe, err));
    else if (merges_path)
        DEBERTA_TRY(bpe_files_load(&t->bpe, path, merges_path, err));
    else
        DEBERTA_TRY(bpe_encoder_load(&t->bpe, path, err));
    DEBERTA_TRY(tokenizer_config_read(config, folder, err));
    if (of_sentencepiece) DEBERTA_TRY(tokenizer_beside_read(config, model, folder, err));
    t->pair_separators = config->frame.pair_separators ? config->frame.pair_separators : 1;
    if (t->bpe) {
        t->add_prefix_space = config->add_prefix_space;
        t->prefix_every_stretch = strcmp(t->file_name, "tokenizer.json") == 0;
        return DEBERTA_OK;
    }
    if (model->of_tokenizers) {
        metaspace_options options = {.lower_case = config->lower_case,
                                     .split_by_punctuation = config->split_by_punctuation};
        DEBERTA_TRY(metaspace_create(&t->words, model, &options, QUOTE(path), err));
        t->model = metaspace_model(t->words);
        return DEBERTA_OK;
    }
    sentencepiece_options options = {.lower_case = config->lower_case,
                                     .split_by_punctuation = config->split_by_punctuation};
    DEBERTA_TRY(sentencepiece_create(&t->pieces, model, &options, QUOTE(path), err));
    t->model = sentencepiece_model(t->pieces);
    return DEBERTA_OK;
}

/* Notes settings that this kind of vocabulary does not follow. */
static deberta_status note_settings(const deberta_tokenizer *t, tokenizer_config *config, const char *folder,
                                    deberta_error *err)
{
    const bool cases = t->bpe && (config->lower_case || config->split_by_punctuation);
    if (!cases && (t->bpe || !config->no_prefix_space || !t->model->add_dummy_prefix)) return DEBERTA_OK;
    return notes_add(&config->notes, err, "%s: %s, which a %s does not follow", QUOTE(folder),
                     cases ? "do_lower_case or split_by_punct is true" : "add_prefix_space is false",
                     deberta_tokenizer_kind_name(t));
}

/* Notes an added token that tokenizers finds in the normalised text, where other spellings are it too. */
static deberta_status note_normalized(const deberta_tokenizer *t, tokenizer_config *config, const char *folder,
                                      deberta_error *err)
{
    const bool from_json = strcmp(t->file_name, "tokenizer.json") == 0;
    if (!from_json || !t->pieces) return DEBERTA_OK;
    for (size_t i = 0; i < config->added.count; i++) {
        const added_token *one = &config->added.items[i];
        if (!one->normalized || one->special || (!config->lower_case && !t->model->charsmap_bytes)) continue;
        return notes_add(&config->notes, err,
                         "%s: added tokens such as '%s' are found as they are spelled, not in the normalised text",
                         QUOTE(folder), QUOTE(one->text));
    }
    return DEBERTA_OK;
}

/* Finishes a byte-level vocabulary. One without [UNK] gets it, so that every resulting id has a text. */
static deberta_status finish_bpe(deberta_tokenizer *t, const char *where, deberta_error *err)
{
    int32_t unknown = t->specials[DEBERTA_SPECIAL_UNK];
    const added_token *token = added_tokens_with_id(&t->added, unknown);
    if (!byte_bpe_token(t->bpe, unknown, NULL))
        DEBERTA_TRY(byte_bpe_add_token(t->bpe, token->text, token->bytes, unknown, where, err));
    return byte_bpe_finish(t->bpe, unknown, where, err);
}

deberta_status deberta_tokenizer_open(deberta_tokenizer **tokenizer_out, const char *folder, deberta_error *err)
{
    if (!tokenizer_out) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_tokenizer_open needs a place for the tokenizer");
    *tokenizer_out = NULL;
    if (!folder) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "no folder given to open a tokenizer from");
    tokenizer_config config = {0};
    piece_model model;
    piece_model_init(&model);
    char *path = NULL, *merges_path = NULL;
    deberta_status status;
    deberta_tokenizer *t = calloc(1, sizeof *t);
    if (!t) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a tokenizer");

    DEBERTA_TRY_OR_FAIL(status, find_vocabulary(folder, &path, &merges_path, &t->file_name, err));
    DEBERTA_TRY_OR_FAIL(status, load_vocabulary(t, path, merges_path, folder, &config, &model, err));
    DEBERTA_TRY_OR_FAIL(status, note_settings(t, &config, folder, err));
    DEBERTA_TRY_OR_FAIL(status, note_normalized(t, &config, folder, err));
    DEBERTA_TRY_OR_FAIL(status, settle_specials(t, &config, folder, err));
    if (t->bpe) DEBERTA_TRY_OR_FAIL(status, finish_bpe(t, QUOTE(path), err));
    t->cuts_as_microsoft = tokenizer_config_is_microsoft(folder);
    *tokenizer_out = t;
    t = NULL;
fail:
    deberta_tokenizer_free(&t);
    tokenizer_config_free(&config);
    piece_model_free(&model);
    free(path);
    free(merges_path);
    return status;
}

void deberta_tokenizer_free(deberta_tokenizer **t)
{
    if (!t || !*t) return;
    sentencepiece_free(&(*t)->pieces);
    metaspace_free(&(*t)->words);
    byte_bpe_free(&(*t)->bpe);
    added_tokens_free(&(*t)->added);
    notes_free(&(*t)->notes);
    free(*t);
    *t = NULL;
}

/* --------------------------------------------------------------------------------------------------- questions */

const char *deberta_tokenizer_kind_name(const deberta_tokenizer *t)
{
    if (t->bpe) return "byte-level BPE";
    if (t->words) return "Metaspace unigram";
    return t->model->algorithm == PIECES_BPE ? "SentencePiece BPE" : "SentencePiece unigram";
}

const char *deberta_tokenizer_note(const deberta_tokenizer *t, size_t index) { return notes_at(&t->notes, index); }
const char *tokenizer_file_name(const deberta_tokenizer *t) { return t->file_name; }
size_t deberta_tokenizer_vocabulary_size(const deberta_tokenizer *t) { return t->vocabulary_size; }
int32_t deberta_tokenizer_special_id(const deberta_tokenizer *t, deberta_special special)
{
    return (unsigned)special < DEBERTA_SPECIAL_COUNT ? t->specials[special] : -1;
}

const char *deberta_tokenizer_token(const deberta_tokenizer *t, int32_t id, size_t *bytes)
{
    const char *text = inner_token(t, id, bytes);
    if (text) return text;
    const added_token *added = added_tokens_with_id(&t->added, id);
    if (added && bytes) *bytes = added->bytes;
    return added ? added->text : NULL;
}

int deberta_tokenizer_is_special(const deberta_tokenizer *t, int32_t id)
{
    for (size_t i = 0; i < DEBERTA_SPECIAL_COUNT; i++)
        if (t->specials[i] == id) return true;
    const added_token *added = added_tokens_with_id(&t->added, id);
    return added && added->special;
}
