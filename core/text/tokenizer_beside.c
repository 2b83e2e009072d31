/* Compares tokenizer.json with spm.model where a folder has both. transformers reads tokenizer.json, this library
 * spm.model. With the same settings both give the same ids, and a folder of one tokenizer holds both.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/tokenizer_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/quote.h"
#include "core/text/tokenizer_json.h"

typedef struct differences {
    char text[700];
    size_t length, left_out; /* left_out: differences that have no room */
} differences;

static void differ(differences *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void differ(differences *list, const char *format, ...)
{
    va_list arguments;
    if (list->length + 200 > sizeof list->text) {
        list->left_out++;
        return;
    }
    if (list->length) list->length += (size_t)snprintf(list->text + list->length, 3, "; ");
    va_start(arguments, format);
    const int added = vsnprintf(list->text + list->length, 200, format, arguments);
    va_end(arguments);
    list->length += strlen(list->text + list->length);
    (void)added;
}

static const char *yes(bool flag) { return flag ? "true" : "false"; }

static void compare_flag(differences *list, const char *name, bool here, bool there)
{
    if (here != there) differ(list, "%s (%s, in tokenizer.json %s)", name, yes(here), yes(there));
}

static void compare_pieces(differences *list, const piece_model *here, const piece_model *there)
{
    size_t other = 0, scores = 0, first = 0;
    if (here->count != there->count) differ(list, "the pieces (%zu, in tokenizer.json %zu)", here->count, there->count);
    for (size_t i = 0; i < here->count && i < there->count; i++) {
        const piece *a = &here->pieces[i], *b = &there->pieces[i];
        const bool same = a->bytes == b->bytes && memcmp(piece_text(here, i), piece_text(there, i), a->bytes) == 0;
        if (!same && other++ == 0) first = i;
        if (same && (float)a->score != (float)b->score && a->type == PIECE_NORMAL) scores++;
    }
    if (other)
        differ(list, "%zu pieces (%zu is '%.40s', in tokenizer.json '%.40s')", other, first,
               QUOTE(piece_text(here, first)), QUOTE(piece_text(there, first)));
    if (scores) differ(list, "the scores of %zu pieces", scores);
}

static void compare_normal_forms(differences *list, const piece_model *here, const piece_model *there)
{
    const bool same = here->charsmap_bytes == there->charsmap_bytes &&
                      (!here->charsmap_bytes || memcmp(here->charsmap, there->charsmap, here->charsmap_bytes) == 0);
    if (there->of_tokenizers) {
        differ(list, "what becomes of rare forms of characters and of runs of blanks (that of transformers 5 in "
                     "tokenizer.json)");
        return;
    }
    if (!same || there->remove_spaces || there->form_kc)
        differ(list, "the normalizer (what becomes of rare forms of characters)");
    compare_flag(list, "a blank before the text", here->add_dummy_prefix, there->add_dummy_prefix);
    compare_flag(list, "runs of blanks to one", here->remove_extra_whitespaces, there->remove_extra_whitespaces);
}

/* Takes the added tokens that do not contradict the model; the note only names the others. */
static deberta_status take_added(tokenizer_config *config, const added_tokens *from, const piece_model *model,
                                 differences *list, const char *where, deberta_error *err)
{
    for (size_t i = 0; i < from->count; i++) {
        const added_token *token = &from->items[i];
        const added_token *known = added_tokens_find(&config->added, token->text, token->bytes);
        const added_token *other = added_tokens_with_id(&config->added, token->id);
        const int32_t of_piece = piece_find(model, token->text, token->bytes);
        const int32_t id = known ? known->id : of_piece;
        if (id >= 0 && id != token->id)
            differ(list, "the id of '%.40s' (%d, in tokenizer.json %d)", QUOTE(token->text), (int)id, (int)token->id);
        else if (id < 0 && (other || (size_t)token->id < model->count))
            differ(list, "what has the id %d ('%.40s', in tokenizer.json '%.40s')", (int)token->id,
                   QUOTE(other ? other->text : piece_text(model, (size_t)token->id)), QUOTE(token->text));
        else if (!known)
            DEBERTA_TRY(added_tokens_add(&config->added, token, where, err));
        if (token->normalized && config->lower_case && (!known || known->id == token->id) && !token->special)
            differ(list, "'%.40s' (found in the lower-cased text by tokenizer.json)", QUOTE(token->text));
    }
    return DEBERTA_OK;
}

static deberta_status tokenizer_beside_compare(tokenizer_config *config, const piece_model *here,
                                               const tokenizer_config *said, const piece_model *there, bool is_bpe,
                                               differences *list)
{
    if (is_bpe || here->algorithm != PIECES_UNIGRAM) {
        differ(list, "the way of cutting (%s, in tokenizer.json %s)",
               here->algorithm == PIECES_UNIGRAM ? "unigram" : "BPE", is_bpe ? "byte-level BPE" : "unigram");
        return DEBERTA_OK;
    }
    compare_pieces(list, here, there);
    compare_flag(list, "lower case", config->lower_case, said->lower_case);
    compare_flag(list, "punctuation alone", config->split_by_punctuation, said->split_by_punctuation);
    compare_flag(list, "bytes of unknown characters", here->byte_fallback, there->byte_fallback);
    compare_normal_forms(list, here, there);
    if (said->frame.pair_separators > 1)
        differ(list, "the separators of two segments (1, in tokenizer.json %zu)", said->frame.pair_separators);
    return DEBERTA_OK;
}

static deberta_status read_beside(tokenizer_config *config, const piece_model *model, const char *path,
                                  deberta_error *err)
{
    const quoted where = quote_bytes(path, strlen(path));
    tokenizer_config said = {0};
    piece_model there;
    byte_bpe *bpe = NULL;
    deberta_error error;
    differences list = {0};
    piece_model_init(&there);
    deberta_status status = tokenizer_json_load(path, &said, &there, &bpe, &error);
    const bool readable = status == DEBERTA_OK;
    if (readable) /* before added tokens, whose number has no end */
        status = tokenizer_beside_compare(config, model, &said, &there, bpe != NULL, &list);
    if (status == DEBERTA_E_MEMORY)
        status = status_fail(err, status, "%s", error.message);
    else
        status = take_added(config, &said.added, model, &list, where.text, err);
    for (size_t i = 0; i < said.notes.count && status == DEBERTA_OK; i++)
        status = notes_add(&config->notes, err, "%s", said.notes.sentences[i]);
    if (status == DEBERTA_OK && !readable) {
        char *advice = strstr(error.message, "; put the spm.model");
        if (advice) *advice = 0;
        status = notes_add(&config->notes, err,
                           "%.300s; so it cannot be compared with the spm.model beside it, which cuts", error.message);
    }
    char more[32] = "";
    if (list.left_out) snprintf(more, sizeof more, " and %zu more", list.left_out);
    if (status == DEBERTA_OK && list.length)
        status = notes_add(&config->notes, err,
                           "%s: spm.model lies beside it and cuts; they differ in %s%s: where transformers reads this "
                           "file, ids may differ",
                           where.text, list.text, more);
    byte_bpe_free(&bpe);
    piece_model_free(&there);
    tokenizer_config_free(&said);
    return status;
}

deberta_status tokenizer_beside_read(tokenizer_config *config, const piece_model *model, const char *folder,
                                     deberta_error *err)
{
    char *path;
    DEBERTA_TRY(tokenizer_file_find(&path, folder, "tokenizer.json", err));
    if (!path) return DEBERTA_OK;
    const deberta_status status = read_beside(config, model, path, err);
    free(path);
    return status;
}
