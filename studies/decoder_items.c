/* SPDX-License-Identifier: MIT */
#include "studies/decoder_items.h"

#include <string.h>

#include "core/base/status.h"
#include "core/io/quote.h"

enum { SENTENCE_BYTES = 512, MOST_ALTERNATIVES = 4096 };

/* ----------------------------------------------------------------------------------------------------------- words */

/* The id of a word that is one token in the middle of a sentence; -1 if it is several. */
static deberta_status find_word(const deberta_tokenizer *tokenizer, const char *word, int32_t *id, deberta_error *err)
{
    char spaced[DECODER_WORD_BYTES + 1];
    deberta_tokens *list = NULL;
    snprintf(spaced, sizeof spaced, " %s", word);
    const deberta_text text = {.struct_size = sizeof text, .text = spaced};
    const deberta_status status = deberta_tokenize(&list, tokenizer, &text, err);
    *id = -1;
    size_t pieces = 0;
    for (size_t t = 0; status == DEBERTA_OK && t < list->count; t++) {
        if (list->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        *id = ++pieces == 1 ? list->ids[t] : -1;
    }
    deberta_tokens_free(&list);
    return status;
}

static deberta_status add_pair(decoder_items *items, decoder_frame *frame, const deberta_tokenizer *tokenizer,
                               const char *text, size_t bytes, deberta_error *err)
{
    decoder_pair pair = {0};
    const char *slash = memchr(text, '/', bytes);
    const size_t first = slash ? (size_t)(slash - text) : 0, second = slash ? bytes - first - 1 : 0;
    if (!first || !second || first >= DECODER_WORD_BYTES || second >= DECODER_WORD_BYTES)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "expected word/word, found '%.*s'", (int)bytes, text);
    memcpy(pair.words[0], text, first);
    memcpy(pair.words[1], slash + 1, second);
    for (size_t w = 0; w < DECODER_MASKS; w++) DEBERTA_TRY(find_word(tokenizer, pair.words[w], &pair.ids[w], err));
    if (pair.ids[0] < 0 || pair.ids[1] < 0) {
        items->skipped_pairs++;
        return DEBERTA_OK;
    }
    frame->pairs =
        options_grown(items->options, frame->pairs, &frame->pair_capacity, frame->pair_count, sizeof *frame->pairs);
    frame->pairs[frame->pair_count++] = pair;
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------- sentences */

typedef struct sentence {
    char text[SENTENCE_BYTES];
    size_t bytes;
} sentence;

static bool append(sentence *s, const char *text, size_t bytes)
{
    if (s->bytes + bytes >= sizeof s->text) return false;
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
    s->text[s->bytes] = 0;
    return true;
}

/* Piece number k of "a|b|c"; *count is how many there are. */
static const char *alternative(const char *text, size_t bytes, size_t k, size_t *length, size_t *count)
{
    const char *found = NULL, *begin = text;
    *count = 0;
    for (const char *end = text; end <= text + bytes; end++) {
        if (end < text + bytes && *end != '|') continue;
        if ((*count)++ == k) {
            found = begin;
            *length = (size_t)(end - begin);
        }
        begin = end + 1;
    }
    return found;
}

/* Choice number `choice` of all combinations of alternatives, a digit for each; *combinations counts them. False if the
 * template is malformed or too long. */
static bool expand(const char *template, const char *mask, size_t choice, sentence *out, size_t *combinations)
{
    size_t masks = 0;
    *out = (sentence){0};
    *combinations = 1;
    for (const char *c = template; *c; c++) {
        bool fine;
        if (*c == '{') {
            fine = (c[1] == '1' || c[1] == '2') && c[2] == '}' && masks == (size_t)(c[1] - '1') &&
                   append(out, mask, strlen(mask));
            masks++;
            c += 2;
        } else if (*c == '<') {
            const char *end = strchr(c, '>'), *piece;
            size_t length = 0, count = 0;
            if (!end) return false;
            alternative(c + 1, (size_t)(end - c - 1), SIZE_MAX, &length, &count);
            piece = alternative(c + 1, (size_t)(end - c - 1), choice / *combinations % count, &length, &count);
            fine = append(out, piece, length) && *combinations <= MOST_ALTERNATIVES / count;
            *combinations *= count;
            c = end;
        } else {
            fine = append(out, c, 1);
        }
        if (!fine) return false;
    }
    return masks == DECODER_MASKS;
}

static deberta_status add_context(decoder_items *items, const deberta_tokenizer *tokenizer, const sentence *s,
                                  deberta_error *err)
{
    deberta_tokens *list = NULL;
    const deberta_text text = {.struct_size = sizeof text, .text = s->text, .text_bytes = s->bytes};
    DEBERTA_TRY(deberta_tokenize(&list, tokenizer, &text, err));
    items->contexts = options_grown(items->options, items->contexts, &items->context_capacity, items->context_count,
                                    sizeof *items->contexts);
    decoder_context *context = &items->contexts[items->context_count++];
    *context = (decoder_context){.frame = items->frame_count - 1,
                                 .text = options_text(items->options, "%s", s->text),
                                 .ids = options_take(items->options, list->count, sizeof *context->ids),
                                 .tokens = list->count};
    size_t masks = 0;
    const int32_t mask_id = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK);
    for (size_t t = 0; t < list->count; t++) {
        context->ids[t] = list->ids[t];
        if (list->ids[t] == mask_id && masks < DECODER_MASKS) context->masks[masks++] = t;
    }
    deberta_tokens_free(&list);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- lines */

static deberta_status check_kind(const char *kind, deberta_error *err)
{
    static const char *const kinds[] = {"subject", "verb", "preposition", "either"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kind, kinds[k]) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "expected the kind subject, verb, preposition or either, found '%s'",
                 QUOTE(kind));
}

static deberta_status add_frame(decoder_items *items, const deberta_tokenizer *tokenizer, char *line,
                                deberta_error *err)
{
    const char *mask =
        deberta_tokenizer_token(tokenizer, deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK), NULL);
    char *template = strchr(line, '\t'), *pairs = template ? strchr(template + 1, '\t') : NULL;
    if (!pairs) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "expected kind, tab, template, tab, pairs");
    *template ++ = *pairs++ = 0;
    DEBERTA_TRY(check_kind(line, err));
    items->frames =
        options_grown(items->options, items->frames, &items->frame_capacity, items->frame_count, sizeof *items->frames);
    decoder_frame *frame = &items->frames[items->frame_count++];
    *frame = (decoder_frame){0};
    snprintf(frame->kind, sizeof frame->kind, "%s", line);
    for (const char *pair = pairs; pair; pair = strchr(pair, ',') ? strchr(pair, ',') + 1 : NULL)
        DEBERTA_TRY(add_pair(items, frame, tokenizer, pair, strcspn(pair, ","), err));
    sentence s;
    size_t combinations = 1;
    for (size_t choice = 0; choice < combinations; choice++) {
        if (!expand(template, mask, choice, &s, &combinations))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "expected a sentence with {1}, then {2}, and <a|b>, found '%.200s'",
                         template);
        if (frame->pair_count) DEBERTA_TRY(add_context(items, tokenizer, &s, err));
    }
    return DEBERTA_OK;
}

static deberta_status add_record(decoder_items *items, const deberta_tokenizer *tokenizer, text_record *record,
                                 deberta_error *err)
{
    deberta_error error = {0};
    char place[256];
    deberta_status status = DEBERTA_OK;
    if (record->problem)
        status = status_fail(&error, DEBERTA_E_FORMAT, "%s", record->problem);
    else if (memchr(record->text, 0, record->text_bytes))
        status = status_fail(&error, DEBERTA_E_FORMAT, "expected kind, tab, template, tab, pairs, found a NUL byte");
    else if (record->text_bytes && *record->text != '#')
        status = add_frame(items, tokenizer, record->text, &error);
    if (status == DEBERTA_OK) return DEBERTA_OK;
    text_record_place(record, place);
    DEBERTA_FAIL(err, status, "%s: %s", place, error.message);
}

deberta_status decoder_items_read(decoder_items *items, const common_options *options, text_stream *stream,
                                  const deberta_tokenizer *tokenizer, deberta_error *err)
{
    *items = (decoder_items){.options = options};
    for (bool end = false; !end;) {
        text_record record;
        deberta_status status = text_stream_next(stream, &record, &end, err);
        if (status == DEBERTA_OK && !end) status = add_record(items, tokenizer, &record, err);
        text_record_free(&record);
        DEBERTA_TRY(status);
    }
    if (!items->context_count) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "there is no frame whose words are single tokens");
    return DEBERTA_OK;
}
