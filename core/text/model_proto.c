/* Parses the few protobuf messages in SentencePiece model files.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/model_proto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/mapped_file.h"
#include "core/io/quote.h"

/* Limits of a plausible vocabulary; mDeBERTa's has 250,101. They keep ids and sizes of tables far from any overflow. */
enum { MAX_PIECES = 1 << 24, MAX_PIECE_BYTES = 1 << 16 };

void piece_model_init(piece_model *model)
{
    *model = (piece_model){
        .algorithm = PIECES_UNIGRAM,
        .add_dummy_prefix = true,
        .remove_extra_whitespaces = true,
        .escape_whitespaces = true,
        .unknown_id = -1,
    };
}

void piece_model_free(piece_model *model)
{
    free(model->pieces);
    free(model->texts);
    free(model->charsmap);
    piece_model_init(model);
}

deberta_status piece_model_add(piece_model *model, const char *text, size_t bytes, double score, piece_type type,
                               deberta_error *err)
{
    piece *pieces = grown(model->pieces, &model->capacity, model->count + 1, sizeof *pieces);
    if (pieces) model->pieces = pieces;
    char *texts = grown(model->texts, &model->texts_capacity, model->texts_bytes + bytes + 1, 1);
    if (texts) model->texts = texts;
    if (!pieces || !texts) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu pieces", model->count + 1);

    pieces[model->count++] = (piece){.begin = model->texts_bytes, .bytes = bytes, .score = score, .type = type};
    memcpy(texts + model->texts_bytes, text, bytes);
    texts[model->texts_bytes + bytes] = '\0';
    model->texts_bytes += bytes + 1;
    return DEBERTA_OK;
}

int32_t piece_find(const piece_model *model, const char *text, size_t bytes)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->pieces[i].bytes == bytes && memcmp(piece_text(model, i), text, bytes) == 0 &&
            model->pieces[i].type != PIECE_HIDDEN)
            return (int32_t)i;
    return -1;
}

int piece_byte(const char *text, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    const char *high = memchr(digits, text[3], 16), *low = memchr(digits, text[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

deberta_status piece_model_trie(const piece_model *model, unsigned types, trie *t, const char *where,
                                deberta_error *err)
{
    size_t count = 0;
    trie_key *keys = malloc((model->count + 1) * sizeof *keys);
    *t = (trie){0};
    if (!keys) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu pieces", where, model->count);
    for (size_t i = 0; i < model->count; i++)
        if (types >> model->pieces[i].type & 1)
            keys[count++] =
                (trie_key){.text = piece_text(model, i), .bytes = model->pieces[i].bytes, .value = (int32_t)i};
    deberta_status status = trie_build(t, keys, count, where, err);
    free(keys);
    return status;
}

static int by_text_and_id(const void *a, const void *b)
{
    const trie_key *p = a, *q = b;
    if (p->bytes != q->bytes) return p->bytes < q->bytes ? -1 : 1;
    int order = memcmp(p->text, q->text, p->bytes);
    return order ? order : (p->value > q->value) - (p->value < q->value);
}

deberta_status piece_model_hide_repeated(piece_model *model, const char *where, deberta_error *err)
{
    trie_key *keys = malloc((model->count + 1) * sizeof *keys);
    if (!keys) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu pieces", where, model->count);
    for (size_t i = 0; i < model->count; i++)
        keys[i] = (trie_key){.text = piece_text(model, i), .bytes = model->pieces[i].bytes, .value = (int32_t)i};
    qsort(keys, model->count, sizeof *keys, by_text_and_id);
    for (size_t i = 1; i < model->count; i++)
        if (keys[i - 1].bytes == keys[i].bytes && memcmp(keys[i - 1].text, keys[i].text, keys[i].bytes) == 0)
            model->pieces[keys[i - 1].value].type = PIECE_HIDDEN;
    free(keys);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- reading */

/* Part of a file that holds one message. Positions count from the beginning of the file, for messages. */
typedef struct proto_reader {
    const uint8_t *file;
    size_t at, end;
    const char *where;
    deberta_error *err;
} proto_reader;

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BLOCK = 2, WIRE_FIXED32 = 5 };

typedef struct proto_field {
    uint64_t number;
    unsigned wire;
    uint64_t value;     /* value of a varint, or the bits of a fixed field */
    proto_reader block; /* content of a block */
} proto_field;

#define REFUSE(reader, format, ...)                                                                                    \
    DEBERTA_FAIL((reader)->err, DEBERTA_E_FORMAT, "%s: byte %zu: " format, (reader)->where, (reader)->at, __VA_ARGS__)

static deberta_status read_varint(proto_reader *r, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->at >= r->end) REFUSE(r, "%s", "the file ends inside a number; it is cut off or no SentencePiece model");
        uint8_t byte = r->file[r->at++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return DEBERTA_OK;
    }
    REFUSE(r, "%s", "a number of more than 10 bytes; the file is damaged or no SentencePiece model");
}

static deberta_status read_field(proto_reader *r, proto_field *field)
{
    uint64_t tag;
    DEBERTA_TRY(read_varint(r, &tag));
    *field = (proto_field){.number = tag >> 3, .wire = tag & 7};
    uint64_t length;
    switch (field->wire) {
    case WIRE_VARINT: return read_varint(r, &field->value);
    case WIRE_FIXED64: length = 8; break;
    case WIRE_FIXED32: length = 4; break;
    case WIRE_BLOCK: DEBERTA_TRY(read_varint(r, &length)); break;
    default:
        REFUSE(r, "wire type %u of field %llu is not in use; the file is damaged or no SentencePiece model",
               field->wire, (unsigned long long)field->number);
    }
    if (!range_is_inside(r->at, length, r->end))
        REFUSE(r, "field %llu is %llu bytes long, but only %zu are left; the file is cut off or damaged",
               (unsigned long long)field->number, (unsigned long long)length, r->end - r->at);
    if (field->wire == WIRE_FIXED32) field->value = load_u32(r->file + r->at);
    field->block = *r;
    field->block.end = r->at + (size_t)length;
    r->at += (size_t)length;
    return DEBERTA_OK;
}

/* Requires that a known field has its wire type. Protobuf would ignore it as an unknown one; no writer produces
 * that. */
static deberta_status expect(const proto_reader *r, const proto_field *field, unsigned wire, const char *name)
{
    if (field->wire != wire) REFUSE(r, "%s has wire type %u, expected %u", name, field->wire, wire);
    return DEBERTA_OK;
}

static deberta_status read_piece(piece_model *model, proto_reader r)
{
    proto_reader text = r;
    text.end = text.at;
    float score = 0;
    uint64_t type = PIECE_NORMAL;
    while (r.at < r.end) {
        proto_field field;
        DEBERTA_TRY(read_field(&r, &field));
        if (field.number == 1) {
            DEBERTA_TRY(expect(&r, &field, WIRE_BLOCK, "the text of a piece"));
            text = field.block;
        } else if (field.number == 2) {
            DEBERTA_TRY(expect(&r, &field, WIRE_FIXED32, "the score of a piece"));
            uint32_t bits = (uint32_t)field.value;
            memcpy(&score, &bits, sizeof score);
        } else if (field.number == 3) {
            DEBERTA_TRY(expect(&r, &field, WIRE_VARINT, "the type of a piece"));
            type = field.value;
        }
    }
    if (type < PIECE_NORMAL || type > PIECE_BYTE)
        REFUSE(&r, "piece %zu has type %llu, expected 1 to 6", model->count, (unsigned long long)type);
    if (text.end - text.at > MAX_PIECE_BYTES || model->count >= MAX_PIECES)
        REFUSE(&r, "more than %d pieces, or one of more than %d bytes", MAX_PIECES, MAX_PIECE_BYTES);
    return piece_model_add(model, (const char *)text.file + text.at, text.end - text.at, (double)score,
                           (piece_type)type, r.err);
}

typedef struct flag_field {
    uint64_t number;
    bool *flag;
    const char *name;
} flag_field;

static deberta_status read_flag(const proto_reader *r, const proto_field *field, const flag_field *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (field->number != flags[i].number) continue;
        DEBERTA_TRY(expect(r, field, WIRE_VARINT, flags[i].name));
        *flags[i].flag = field->value != 0;
    }
    return DEBERTA_OK;
}

static deberta_status read_trainer(piece_model *model, proto_reader r)
{
    const flag_field flags[] = {
        {24, &model->treat_whitespace_as_suffix, "treat_whitespace_as_suffix"},
        {35, &model->byte_fallback, "byte_fallback"},
    };
    while (r.at < r.end) {
        proto_field field;
        DEBERTA_TRY(read_field(&r, &field));
        DEBERTA_TRY(read_flag(&r, &field, flags, sizeof flags / sizeof *flags));
        if (field.number == 3) {
            DEBERTA_TRY(expect(&r, &field, WIRE_VARINT, "model_type"));
            model->algorithm = field.value;
        }
    }
    return DEBERTA_OK;
}

static deberta_status read_normalizer(piece_model *model, proto_reader r)
{
    const flag_field flags[] = {
        {3, &model->add_dummy_prefix, "add_dummy_prefix"},
        {4, &model->remove_extra_whitespaces, "remove_extra_whitespaces"},
        {5, &model->escape_whitespaces, "escape_whitespaces"},
    };
    while (r.at < r.end) {
        proto_field field;
        DEBERTA_TRY(read_field(&r, &field));
        DEBERTA_TRY(read_flag(&r, &field, flags, sizeof flags / sizeof *flags));
        if (field.number == 2) {
            DEBERTA_TRY(expect(&r, &field, WIRE_BLOCK, "precompiled_charsmap"));
            size_t bytes = field.block.end - field.block.at;
            uint8_t *copy = malloc(bytes ? bytes : 1);
            if (!copy) DEBERTA_FAIL(r.err, DEBERTA_E_MEMORY, "%s: no memory for %zu bytes", r.where, bytes);
            memcpy(copy, field.block.file + field.block.at, bytes);
            free(model->charsmap);
            model->charsmap = copy;
            model->charsmap_bytes = bytes;
        }
    }
    return DEBERTA_OK;
}

static deberta_status read_model(piece_model *model, proto_reader r)
{
    while (r.at < r.end) {
        proto_field field;
        DEBERTA_TRY(read_field(&r, &field));
        /* These fields hold self tests, denormalizer and extensions. */
        if (field.number < 1 || field.number > 3) continue;
        DEBERTA_TRY(expect(&r, &field, WIRE_BLOCK, "a part of the model"));
        if (field.number == 1) DEBERTA_TRY(read_piece(model, field.block));
        if (field.number == 2) DEBERTA_TRY(read_trainer(model, field.block));
        if (field.number == 3) DEBERTA_TRY(read_normalizer(model, field.block));
    }
    return DEBERTA_OK;
}

deberta_status piece_model_read(piece_model *model, const uint8_t *bytes, size_t size_bytes, const char *where,
                                deberta_error *err)
{
    piece_model_init(model);
    deberta_status status =
        read_model(model, (proto_reader){.file = bytes, .end = size_bytes, .where = where, .err = err});
    if (status == DEBERTA_OK) status = piece_model_check(model, where, err);
    if (status != DEBERTA_OK) piece_model_free(model);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- checking */

static deberta_status check_piece(const piece_model *model, size_t id, const char *where, deberta_error *err)
{
    const piece *p = &model->pieces[id];
    const char *text = piece_text(model, id);
    if (p->bytes == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: piece %zu is empty", where, id);
    if (!utf8_is_valid(text, p->bytes) || memchr(text, 0, p->bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: piece %zu ('%s') is not UTF-8 text", where, id,
                     QUOTE_N(text, p->bytes));
    if (!isfinite(p->score))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: piece %zu ('%s') has the score %g", where, id, QUOTE_N(text, p->bytes),
                     p->score);
    if (p->type == PIECE_BYTE && (!model->byte_fallback || piece_byte(text, p->bytes) < 0))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: piece %zu ('%s') is of type BYTE, but %s", where, id,
                     QUOTE_N(text, p->bytes),
                     model->byte_fallback ? "is not of the form <0xNN>" : "byte_fallback is off");
    return DEBERTA_OK;
}

deberta_status piece_model_check(piece_model *model, const char *where, deberta_error *err)
{
    if (model->count == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: no pieces; this is no SentencePiece model", where);
    if (model->algorithm != PIECES_UNIGRAM && model->algorithm != PIECES_BPE)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: model_type %llu%s, expected 1 (unigram) or 2 (BPE)", where,
                     (unsigned long long)model->algorithm,
                     model->algorithm == 3   ? " (word)"
                     : model->algorithm == 4 ? " (character)"
                                             : "");
    bool seen[256] = {false};
    size_t bytes_seen = 0;
    model->unknown_id = -1;
    for (size_t i = 0; i < model->count; i++) {
        DEBERTA_TRY(check_piece(model, i, where, err));
        const piece *p = &model->pieces[i];
        if (p->type == PIECE_UNKNOWN && model->unknown_id >= 0)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: pieces %d and %zu are both of type UNKNOWN", where,
                         (int)model->unknown_id, i);
        if (p->type == PIECE_UNKNOWN) model->unknown_id = (int32_t)i;
        if (p->type == PIECE_BYTE) {
            bool *byte = &seen[piece_byte(piece_text(model, i), p->bytes)];
            bytes_seen += !*byte;
            *byte = true;
        }
    }
    if (model->unknown_id < 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: no piece is of type UNKNOWN", where);
    if (model->byte_fallback && bytes_seen != 256)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: byte_fallback is on, but only %zu of the 256 byte pieces are there",
                     where, bytes_seen);
    return DEBERTA_OK;
}
