/* Implements deberta_tokenizer_train: writes pieces learned from texts into a tokenizer's folder, which SentencePiece
 * and transformers can open.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/atomic_file.h"
#include "core/text/model_proto.h"
#include "include/deberta_training.h"
#include "train/pieces/piece_learner.h"

enum { SPECIALS = 4, FEWEST_PIECES = SPECIALS + 2, MOST_PIECES = 1000000 };

static const char *const special_names[SPECIALS] = {"[PAD]", "[CLS]", "[SEP]", "[UNK]"};
enum { UNKNOWN_ID = 3 };

/* ------------------------------------------------------------------------------------------------- protobuf, written */

typedef struct proto_bytes {
    uint8_t *bytes;
    size_t count, capacity;
    bool failed;
} proto_bytes;

static void put(proto_bytes *p, const void *bytes, size_t count)
{
    uint8_t *grew = p->failed ? NULL : grown(p->bytes, &p->capacity, p->count + count, 1);
    p->failed = !grew;
    if (!grew) return;
    p->bytes = grew;
    memcpy(grew + p->count, bytes, count);
    p->count += count;
}

static void put_number(proto_bytes *p, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        put(p, &byte, 1);
        value >>= 7;
    } while (value);
}

enum { WIRE_VARINT = 0, WIRE_BLOCK = 2, WIRE_FIXED32 = 5 };

static void put_tag(proto_bytes *p, unsigned field, unsigned wire) { put_number(p, field << 3 | wire); }

static void put_varint(proto_bytes *p, unsigned field, uint64_t value)
{
    put_tag(p, field, WIRE_VARINT);
    put_number(p, value);
}

static void put_block(proto_bytes *p, unsigned field, const void *bytes, size_t count)
{
    put_tag(p, field, WIRE_BLOCK);
    put_number(p, count);
    put(p, bytes, count);
}

static void put_piece(proto_bytes *p, const char *text, size_t bytes, float score, piece_type type)
{
    proto_bytes record = {0};
    put_block(&record, 1, text, bytes);
    put_tag(&record, 2, WIRE_FIXED32);
    put(&record, &score, sizeof score); /* The bytes are little-endian, as on all supported machines. */
    if (type != PIECE_NORMAL) put_varint(&record, 3, type);
    p->failed = p->failed || record.failed;
    put_block(p, 1, record.bytes, record.count);
    free(record.bytes);
}

/* Writes the fields of trainer_spec that readers need. */
static void put_trainer(proto_bytes *p, size_t pieces)
{
    proto_bytes spec = {0};
    put_varint(&spec, 3, PIECES_UNIGRAM);
    put_varint(&spec, 4, pieces);
    const unsigned ids[][2] = {{40, UNKNOWN_ID}, {41, 1}, {42, 2}, {43, 0}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) put_varint(&spec, ids[i][0], ids[i][1]);
    const unsigned names[][2] = {{45, UNKNOWN_ID}, {46, 1}, {47, 2}, {48, 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_block(&spec, names[i][0], special_names[names[i][1]], strlen(special_names[names[i][1]]));
    p->failed = p->failed || spec.failed;
    put_block(p, 2, spec.bytes, spec.count);
    free(spec.bytes);
}

/* No characters are replaced; spaces are U+2581, one before the text, never two. */
static void put_normalizer(proto_bytes *p)
{
    proto_bytes spec = {0};
    put_block(&spec, 1, "identity", 8);
    for (unsigned field = 3; field <= 5; field++) put_varint(&spec, field, 1);
    p->failed = p->failed || spec.failed;
    put_block(p, 3, spec.bytes, spec.count);
    free(spec.bytes);
}

/* ------------------------------------------------------------------------------------------------------------ files */

static deberta_status write_file(const char *folder, const char *name, const void *bytes, size_t count,
                                 deberta_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return atomic_file_replace(path, bytes, count, err);
}

static deberta_status write_model(const char *folder, const learned_pieces *pieces, deberta_error *err)
{
    proto_bytes model = {0};
    for (size_t k = 0; k < SPECIALS; k++)
        put_piece(&model, special_names[k], strlen(special_names[k]), 0,
                  k == UNKNOWN_ID ? PIECE_UNKNOWN : PIECE_CONTROL);
    for (size_t k = 0; k < pieces->count; k++)
        put_piece(&model, pieces->texts + pieces->items[k].begin, pieces->items[k].bytes, (float)pieces->items[k].score,
                  PIECE_NORMAL);
    put_trainer(&model, pieces->count + SPECIALS);
    put_normalizer(&model);
    const deberta_status status = model.failed ? status_fail(err, DEBERTA_E_MEMORY, "no memory for a tokenizer")
                                               : write_file(folder, "spm.model", model.bytes, model.count, err);
    free(model.bytes);
    return status;
}

static deberta_status write_settings(const char *folder, size_t mask_id, deberta_error *err)
{
    static const char config[] =
        "{\n  \"tokenizer_class\": \"DebertaV2Tokenizer\",\n  \"do_lower_case\": false,\n"
        "  \"split_by_punct\": false,\n  \"vocab_type\": \"spm\",\n  \"model_max_length\": 512,\n"
        "  \"cls_token\": \"[CLS]\",\n  \"sep_token\": \"[SEP]\",\n  \"pad_token\": \"[PAD]\",\n"
        "  \"unk_token\": \"[UNK]\",\n  \"mask_token\": \"[MASK]\"\n}\n";
    char added[64];
    const int length = snprintf(added, sizeof added, "{\n  \"[MASK]\": %zu\n}\n", mask_id);
    DEBERTA_TRY(write_file(folder, "tokenizer_config.json", config, sizeof config - 1, err));
    return write_file(folder, "added_tokens.json", added, (size_t)length, err);
}

/* -------------------------------------------------------------------------------------------------------------- all */

static deberta_status check_options(const deberta_tokenizer_training *o, deberta_error *err)
{
    if (!o->folder || o->text_count == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_tokenizer_train needs texts and a folder");
    if (o->pieces < FEWEST_PIECES || o->pieces > MOST_PIECES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu pieces, expected %d to %d", o->pieces, FEWEST_PIECES, MOST_PIECES);
    return DEBERTA_OK;
}

deberta_status deberta_tokenizer_train(const deberta_tokenizer_training *given, double *bits_per_character,
                                       deberta_error *err)
{
    deberta_tokenizer_training o;
    text_counts words = {0}, characters = {0};
    learned_pieces pieces = {0};
    DEBERTA_TRY(copy_struct(&o, given, sizeof o, "deberta_tokenizer_training", err));
    DEBERTA_TRY(check_options(&o, err));
    deberta_status status = DEBERTA_OK;
    for (size_t i = 0; status == DEBERTA_OK && i < o.text_count; i++)
        status = piece_words_add_file(&words, &characters, o.texts[i], (note_listener){o.note, o.note_context}, err);
    if (status == DEBERTA_OK && words.count == 0)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s holds no words", o.texts[0]);
    if (status == DEBERTA_OK) status = piece_learner_run(&pieces, &words, &characters, o.pieces - SPECIALS, err);
    if (status == DEBERTA_OK) status = write_model(o.folder, &pieces, err);
    if (status == DEBERTA_OK) status = write_settings(o.folder, o.pieces, err);
    if (status == DEBERTA_OK && bits_per_character) *bits_per_character = pieces.bits_per_character;
    learned_pieces_free(&pieces);
    text_counts_free(&words);
    text_counts_free(&characters);
    return status;
}
