/* bpe_encoder.bin: out of its container, and into a vocabulary.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/bpe_encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/pickle.h"
#include "core/io/zip_reader.h"
#include "core/text/bpe_files.h"

enum {
    FIRST_ID = 4,       /* behind [PAD], [CLS], [SEP], [UNK] */
    GPT2_IDS = 1 << 20, /* more than any; GPT-2 has 50,257 */
    LEGACY_HEADERS = 3, /* pickles before the object: a magic number, a protocol version, sizes of integers */
    MAX_PICKLE_BYTES = 64 << 20,
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

/* The two items of a pair. */
static bool read_pair(const pickle *p, pickle_value pair, pickle_value items[2])
{
    size_t cursor = 0;
    pickle_value more;
    return pickle_next(p, pair, &cursor, &items[0]) && pickle_next(p, pair, &cursor, &items[1]) &&
           !pickle_next(p, pair, &cursor, &more);
}

/* GPT-2's id that a text spells, or -1: dict_map also has words that fill it up ("madeupword0000"). */
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
    static const json_limits limits = {.bytes = MAX_PICKLE_BYTES, .depth = 2, .values = 2 * GPT2_IDS};
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

/* --------------------------------------------------------------------------------------------------- container */

static deberta_status read_zip_member(byte_bpe *bpe, zip_reader *zip, const char *where, deberta_error *err)
{
    const zip_member *member = NULL;
    for (size_t i = 0; i < zip_reader_count(zip) && !member; i++) {
        const char *slash = strchr(zip_reader_at(zip, i)->name, '/');
        if (slash && strcmp(slash, "/data.pkl") == 0) member = zip_reader_at(zip, i);
    }
    if (!member) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a zip archive without a data.pkl", where);
    DEBERTA_TRY(zip_reader_check(zip, member, err));
    if (member->size_bytes > MAX_PICKLE_BYTES)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a data.pkl of %llu bytes, expected at most %d", where,
                     (unsigned long long)member->size_bytes, MAX_PICKLE_BYTES);
    pickle *p = NULL;
    uint8_t *code = malloc(member->size_bytes + 1);
    if (!code) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its data.pkl", where);
    deberta_status status = zip_reader_read(zip, member, code, err);
    if (status == DEBERTA_OK) status = pickle_read(&p, code, member->size_bytes, where, err);
    if (status == DEBERTA_OK) status = read_vocabulary(bpe, p, where, err);
    pickle_free(&p);
    free(code);
    return status;
}

static deberta_status read_zip(byte_bpe *bpe, const mapped_file *file, deberta_error *err)
{
    zip_reader *zip = NULL;
    DEBERTA_TRY(zip_reader_open(&zip, file->bytes, file->size_bytes, file->name.text, err));
    deberta_status status = read_zip_member(bpe, zip, file->name.text, err);
    zip_reader_close(&zip);
    return status;
}

static deberta_status read_legacy(byte_bpe *bpe, const mapped_file *file, deberta_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i <= LEGACY_HEADERS; i++) {
        pickle *p = NULL;
        DEBERTA_TRY(pickle_read(&p, file->bytes + at, file->size_bytes - at, file->name.text, err));
        at += pickle_length_bytes(p);
        deberta_status status = i < LEGACY_HEADERS ? DEBERTA_OK : read_vocabulary(bpe, p, file->name.text, err);
        pickle_free(&p);
        if (status != DEBERTA_OK) return status;
    }
    return DEBERTA_OK;
}

deberta_status bpe_encoder_load(byte_bpe **bpe, const char *path, deberta_error *err)
{
    mapped_file file;
    *bpe = NULL;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    bool zip = file.size_bytes >= 4 && memcmp(file.bytes, "PK\3\4", 4) == 0;
    deberta_status status = byte_bpe_create(bpe, err);
    if (status == DEBERTA_OK) status = zip ? read_zip(*bpe, &file, err) : read_legacy(*bpe, &file, err);
    if (status != DEBERTA_OK) byte_bpe_free(bpe);
    mapped_file_close(&file);
    return status;
}
