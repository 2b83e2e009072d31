/* Groups labels of tokens to entities.
 *
 * Labels may carry a scheme: B- begins an entity, I- continues it, E- and L- end it, S- and U- mark an entity of one
 * word; O is no entity. Neighbours with the same label without a prefix form one entity. A word has the label of its
 * first token, because such models are trained on it; DEBERTA_ENTITIES_BY_TOKEN uses each token's label, for models
 * trained by token.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/base/text.h"
#include "include/deberta_unstable.h"

/* The inputs and scratch memory of one grouping. */
typedef struct tagging {
    const deberta_model *model;
    const deberta_tokens *tokens;
    const char *text;
    size_t bytes;
    const float *logits; /* [tokens][labels] */
    size_t labels;
    double *probabilities; /* scratch [labels] */
} tagging;

/* Returns whether the character at a place between two characters, or the one before it, is punctuation. */
static bool touches_punctuation(const char *text, size_t bytes, size_t place)
{
    uint32_t character = 0, before = 0;
    size_t at = place;
    while (at > 0 && utf8_is_continuation(text[--at])) continue;
    if (place > 0) utf8_decode(text + at, place - at, &before);
    if (place < bytes) utf8_decode(text + place, bytes - place, &character);
    return utf8_is_punctuation(character) || utf8_is_punctuation(before);
}

/* Returns whether a new word begins here: after a space, and on both sides of punctuation, where corpora of this kind
 * split too. */
static bool begins_word(const tagging *job, const deberta_place *place, const deberta_entity *before)
{
    const size_t begin = place->bytes.begin;
    return !before || begin > before->place.bytes.end || touches_punctuation(job->text, job->bytes, begin);
}

static void extend(deberta_entity *last, const deberta_place *place)
{
    last->place.bytes.end = place->bytes.end;
    last->place.characters.end = place->characters.end;
}

/* Collects the units that get one label each, words or tokens: at most one per token. */
static size_t collect_units(const tagging *job, bool by_words, deberta_entity *units)
{
    size_t count = 0, best;
    for (size_t t = 0; t < job->tokens->count; t++) {
        const deberta_place place = deberta_token_place(job->tokens, t, job->text);
        /* The frame, lone space marks, and all but one of the tokens that share a character form no unit. */
        if (job->tokens->roles[t] == DEBERTA_TOKEN_FRAME || place.bytes.begin >= place.bytes.end) continue;
        if (by_words && !begins_word(job, &place, count ? &units[count - 1] : NULL)) {
            extend(&units[count - 1], &place);
            continue;
        }
        deberta_softmax(job->probabilities, job->logits + t * job->labels, job->labels);
        deberta_rank(&best, 1, job->probabilities, job->labels);
        units[count++] =
            (deberta_entity){.place = place, .label = best, .units = 1, .probability = job->probabilities[best]};
    }
    return count;
}

/* "B-PER" is 'B' and "PER"; "PER" is 0 and "PER"; "O" is 'O' and "". A label without a name: 0 and NULL. */
static char split_label(const char *label, const char **type)
{
    *type = label;
    if (!label) return 0;
    if (strcmp(label, "O") == 0) {
        *type = "";
        return 'O';
    }
    if (label[0] == 0 || label[1] != '-' || !strchr("BIELSU", label[0])) return 0;
    *type = label + 2;
    return label[0];
}

static bool same_type(const deberta_entity *a, const deberta_entity *b)
{
    return a->type && b->type ? strcmp(a->type, b->type) == 0 : !a->type && !b->type && a->label == b->label;
}

/* Groups in place, because there are no more entities than units. */
static size_t group(const tagging *job, deberta_entity *units, size_t count)
{
    size_t found = 0;
    bool open = false;
    for (size_t k = 0; k < count; k++) {
        deberta_entity unit = units[k];
        const char prefix = split_label(deberta_model_label(job->model, unit.label), &unit.type);
        const bool alone = prefix == 'S' || prefix == 'U';
        if (prefix == 'O') {
            open = false;
            continue;
        }
        if (open && prefix != 'B' && !alone && same_type(&units[found - 1], &unit)) {
            deberta_entity *last = &units[found - 1];
            extend(last, &unit.place);
            last->probability += (unit.probability - last->probability) / (double)++last->units;
        } else {
            units[found++] = unit;
        }
        open = !alone && prefix != 'E' && prefix != 'L';
    }
    return found;
}

deberta_status deberta_entities(deberta_entity *entities, size_t *count, const deberta_model *model,
                                const deberta_tokens *tokens, const char *text, size_t text_bytes, const float *logits,
                                deberta_entity_units units, deberta_error *err)
{
    tagging job = {.model = model,
                   .tokens = tokens,
                   .text = text,
                   .bytes = text_bytes,
                   .logits = logits,
                   .labels = deberta_task_width(model, DEBERTA_TASK_TOKEN)};
    /* Places in a second segment count from its own start, so that they are none in this text. */
    if (tokens->segments > 1)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "entities are those of one text, and the tokens are those of a pair");
    for (size_t t = 0; t < tokens->count; t++)
        if (tokens->byte_spans[t].end > text_bytes)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "token %zu ends at byte %zu, but the text has %zu: it is another text", t,
                         tokens->byte_spans[t].end, text_bytes);
    job.probabilities = malloc((job.labels + 1) * sizeof *job.probabilities);
    if (!job.probabilities)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the probabilities of %zu labels", job.labels);
    *count = group(&job, entities, collect_units(&job, units == DEBERTA_ENTITIES_BY_WORD, entities));
    free(job.probabilities);
    return DEBERTA_OK;
}
