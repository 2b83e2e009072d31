/* Reads bpe_encoder.bin, Microsoft's file of v1's vocabulary: takes words and merges out of its pickle, and builds a
 * byte-level vocabulary from them.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/bpe_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/torch_container.h"
#include "core/text/json_value.h"

enum {
    FIRST_ID = 4,       /* first id of a word, after [PAD], [CLS], [SEP], [UNK] */
    GPT2_IDS = 1 << 20, /* upper bound of GPT-2's ids, of which there are 50,257 */
    MAX_JSON_BYTES = 64 << 20,
};

typedef struct encoder_source {
    const pickle *pickle;
    byte_bpe *bpe;
    int32_t *ids; /* [GPT2_IDS]: DeBERTa's id, or -1 */
    const char *where;
    deberta_error *err;
} encoder_source;

#define REFUSE(source, format, ...)                                                                                    \
    DEBERTA_FAIL((source)->err, DEBERTA_E_FORMAT, "%s: " format, (source)->where, __VA_ARGS__)

/* -------------------------------------------------------------------------------------------------- vocabulary */

static deberta_status find_member(const encoder_source *s, const char *name, pickle_value *value)
{
    size_t cursor = 0;
    pickle_value key;
    while (pickle_next(s->pickle, pickle_root(s->pickle), &cursor, &key) &&
           pickle_next(s->pickle, pickle_root(s->pickle), &cursor, value))
        if (pickle_text_is(key, name)) return DEBERTA_OK;
    REFUSE(s, "no '%s' in its dict; expected encoder, vocab and dict_map", name);
}

/* Reads the two items of a pair. */
static bool read_pair(const pickle *p, pickle_value pair, pickle_value items[2])
{
    size_t cursor = 0;
    pickle_value more;
    return pickle_next(p, pair, &cursor, &items[0]) && pickle_next(p, pair, &cursor, &items[1]) &&
           !pickle_next(p, pair, &cursor, &more);
}

/* Returns GPT-2's id that a text spells, or -1 for the placeholders in dict_map ("madeupword0000"). */
static int32_t gpt2_id(pickle_value text)
{
    int32_t id = 0;
    for (size_t i = 0; i < text.length_bytes; i++) {
        char c = text.as.text[i];
        if (c < '0' || c > '9' || id >= GPT2_IDS / 10) return -1;
        id = 10 * id + (c - '0');
    }
    return text.length_bytes > 0 ? id : -1;
}

static deberta_status read_dict_map(encoder_source *s)
{
    pickle_value list, item, entry[2];
    size_t cursor = 0, count = 0;
    DEBERTA_TRY(find_member(s, "dict_map", &list));
    if (list.kind != PICKLE_LIST) REFUSE(s, "dict_map is %s, expected a list", pickle_kind_name(list));
    for (; pickle_next(s->pickle, list, &cursor, &item); count++) {
        if (!read_pair(s->pickle, item, entry) || entry[0].kind != PICKLE_TEXT)
            REFUSE(s, "dict_map[%zu] is no pair of a text and a count", count);
        int32_t gpt2 = gpt2_id(entry[0]);
        if (gpt2 >= 0 && s->ids[gpt2] >= 0) REFUSE(s, "dict_map lists the id %d twice", (int)gpt2);
        if (gpt2 >= 0)
            s->ids[gpt2] = FIRST_ID + (int32_t)count;
        else
            DEBERTA_TRY(byte_bpe_add_token(s->bpe, entry[0].as.text, entry[0].length_bytes, FIRST_ID + (int64_t)count,
                                           s->where, s->err));
    }
    return DEBERTA_OK;
}

static deberta_status add_token(encoder_source *s, const char *text, size_t bytes, int64_t gpt2)
{
    if (gpt2 < 0 || gpt2 >= GPT2_IDS || s->ids[gpt2] < 0)
        REFUSE(s, "token '%s' has the id %lld, which dict_map does not list", QUOTE_N(text, bytes), (long long)gpt2);
    return byte_bpe_add_token(s->bpe, text, bytes, s->ids[gpt2], s->where, s->err);
}

static deberta_status add_json_tokens(encoder_source *s, pickle_value text)
{
    static const json_limits limits = {.bytes = MAX_JSON_BYTES, .depth = 2, .values = 2 * GPT2_IDS};
    json_t *root, *id;
    const char *token;
    deberta_status status = json_file_parse(&root, text.as.text, text.length_bytes, &limits, s->where, s->err);
    json_object_foreach(root, token, id)
    {
        if (status == DEBERTA_OK)
            status = add_token(s, token, strlen(token), json_is_integer(id) ? json_integer_value(id) : -1);
    }
    json_decref(root);
    return status;
}

static deberta_status read_encoder(encoder_source *s)
{
    pickle_value encoder, token, id;
    size_t cursor = 0;
    DEBERTA_TRY(find_member(s, "encoder", &encoder));
    if (encoder.kind == PICKLE_TEXT) return add_json_tokens(s, encoder);
    if (encoder.kind != PICKLE_DICT) REFUSE(s, "encoder is %s, expected a dict or JSON", pickle_kind_name(encoder));
    while (pickle_next(s->pickle, encoder, &cursor, &token) && pickle_next(s->pickle, encoder, &cursor, &id)) {
        if (token.kind != PICKLE_TEXT || id.kind != PICKLE_INTEGER)
            REFUSE(s, "encoder holds %s with %s, expected texts with ids", pickle_kind_name(token),
                   pickle_kind_name(id));
        DEBERTA_TRY(add_token(s, token.as.text, token.length_bytes, id.as.integer));
    }
    return DEBERTA_OK;
}

static deberta_status read_merges(encoder_source *s)
{
    pickle_value merges, item, pair[2];
    size_t cursor = 0;
    DEBERTA_TRY(find_member(s, "vocab", &merges));
    if (merges.kind == PICKLE_TEXT)
        return bpe_files_add_merges(s->bpe, merges.as.text, merges.length_bytes, s->where, s->err);
    if (merges.kind != PICKLE_LIST) REFUSE(s, "vocab is %s, expected a list or a text", pickle_kind_name(merges));
    for (size_t i = 0; pickle_next(s->pickle, merges, &cursor, &item); i++) {
        char where[QUOTE_BYTES + 32];
        snprintf(where, sizeof where, "%s: vocab[%zu]", s->where, i);
        if (item.kind == PICKLE_TEXT) {
            DEBERTA_TRY(byte_bpe_add_merge_line(s->bpe, item.as.text, item.length_bytes, where, s->err));
            continue;
        }
        if (!read_pair(s->pickle, item, pair) || pair[0].kind != PICKLE_TEXT || pair[1].kind != PICKLE_TEXT)
            DEBERTA_FAIL(s->err, DEBERTA_E_FORMAT, "%s is no pair of symbols", where);
        DEBERTA_TRY(byte_bpe_add_merge(s->bpe, pair[0].as.text, pair[0].length_bytes, pair[1].as.text,
                                       pair[1].length_bytes, where, s->err));
    }
    return DEBERTA_OK;
}

static deberta_status read_vocabulary(byte_bpe *bpe, const pickle *p, const char *where, deberta_error *err)
{
    static const char *const specials[FIRST_ID] = {"[PAD]", "[CLS]", "[SEP]", "[UNK]"};
    encoder_source s = {.pickle = p, .bpe = bpe, .where = where, .err = err};
    if (pickle_root(p).kind != PICKLE_DICT)
        REFUSE(&s, "holds %s, expected a dict with encoder, vocab and dict_map", pickle_kind_name(pickle_root(p)));
    s.ids = malloc(GPT2_IDS * sizeof *s.ids);
    if (!s.ids) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its ids", where);
    for (size_t i = 0; i < GPT2_IDS; i++) s.ids[i] = -1;

    deberta_status status = DEBERTA_OK;
    for (int i = 0; i < FIRST_ID && status == DEBERTA_OK; i++)
        status = byte_bpe_add_token(bpe, specials[i], strlen(specials[i]), i, where, err);
    if (status == DEBERTA_OK) status = read_dict_map(&s);
    if (status == DEBERTA_OK) status = read_encoder(&s);
    if (status == DEBERTA_OK) status = read_merges(&s);
    free(s.ids);
    return status;
}

/* --------------------------------------------------------------------------------------------------- interface */

deberta_status bpe_encoder_load(byte_bpe **bpe, const char *path, deberta_error *err)
{
    mapped_file file;
    torch_container container;
    *bpe = NULL;
    DEBERTA_TRY(mapped_file_open_at_most(&file, path, VOCABULARY_FILE_MOST_BYTES, err));
    deberta_status status = torch_container_open(&container, file.bytes, file.size_bytes, file.name.text, err);
    if (status == DEBERTA_OK) status = byte_bpe_create(bpe, err);
    if (status == DEBERTA_OK) status = read_vocabulary(*bpe, container.object, file.name.text, err);
    if (status != DEBERTA_OK) byte_bpe_free(bpe);
    torch_container_close(&container);
    return mapped_file_end(&file, status, err);
}
