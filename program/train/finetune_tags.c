/* Reads words with labels: "word TAB label" a line, with an empty line between sentences; or objects with "words" and
 * "labels". A first line such as "word TAB label" names the columns. The words of a sentence are joined by spaces,
 * and the first piece of a word has its label.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/status.h"
#include "include/deberta_unstable.h"
#include "output/scope.h"
#include "program/frame/input/labelled_text.h"
#include "program/train/finetune_lists.h"

/* A sentence whose words are being read. */
typedef struct sentence {
    text_record record; /* joined words, with the place of the first */
    size_t *begins;     /* [words] offsets in bytes */
    int32_t *labels;    /* [words] */
    size_t words, begins_capacity, labels_capacity, bytes_capacity;
} sentence;

static void add_word(sentence *s, const char *word, int32_t label)
{
    text_record *r = &s->record;
    const size_t length = strlen(word);
    r->text = memory_grown(r->text, &s->bytes_capacity, r->text_bytes + length + 2, 1);
    s->begins = memory_grown(s->begins, &s->begins_capacity, s->words + 1, sizeof *s->begins);
    s->labels = memory_grown(s->labels, &s->labels_capacity, s->words + 1, sizeof *s->labels);
    if (s->words > 0) r->text[r->text_bytes++] = ' ';
    s->begins[s->words] = r->text_bytes;
    s->labels[s->words++] = label;
    memcpy(r->text + r->text_bytes, word, length + 1);
    r->text_bytes += length;
}

static void free_sentence(sentence *s)
{
    text_record_free(&s->record);
    free(s->begins);
    free(s->labels);
    *s = (sentence){0};
}

/* Labels tokens. A word without any piece (its characters are all dropped) has no label. */
static void label_tokens(const sentence *s, const deberta_tokens *tokens, int32_t *token_labels)
{
    size_t word = 0;
    for (size_t t = 0; t < tokens->count; t++) {
        const deberta_place place = deberta_token_place(tokens, t, s->record.text);
        token_labels[t] = NO_LABEL;
        if (tokens->roles[t] == DEBERTA_TOKEN_FRAME || place.bytes.begin >= place.bytes.end) continue;
        while (word + 1 < s->words && s->begins[word + 1] < place.bytes.end) {
            if (s->begins[word] >= place.bytes.begin) break;
            word++;
        }
        if (word < s->words && s->begins[word] < place.bytes.end && s->begins[word] >= place.bytes.begin)
            token_labels[t] = s->labels[word++];
    }
}

static deberta_status end_sentence(finetune_reader *r, sentence *s, example_list *list, deberta_error *err)
{
    if (s->words == 0) return DEBERTA_OK;
    if (!reader_tokenize(r, &s->record, NULL, 0) &&
        r->labels.collects) /* limits the length, as a file of another task looks like one long sentence */
        DEBERTA_TRY(label_list_check(&r->labels, r->task, err));
    DEBERTA_TRY(reader_problem(&s->record, err));
    int32_t *labels = memory_take(r->tokens->count, sizeof *labels);
    label_tokens(s, r->tokens, labels);
    const deberta_example example = {.tokens = r->tokens->count,
                                     .ids = r->tokens->ids,
                                     .token_types = r->tokens->token_types,
                                     .token_labels = labels,
                                     .label = NO_LABEL,
                                     .start = NO_LABEL,
                                     .end = NO_LABEL};
    example_list_add(list, &example);
    free(labels);
    free_sentence(s);
    return DEBERTA_OK;
}

static bool take_word(finetune_reader *r, sentence *s, text_record *record, const char *word, const char *name)
{
    int32_t label;
    if (!*word) return text_record_spoil(record, "the word is empty");
    if (!label_list_find(&r->labels, name, &label, record)) return false;
    if (s->words == 0) {
        s->record.source = record->source;
        s->record.line = record->line;
    }
    add_word(s, word, label);
    return true;
}

/* Characters after a NUL would be lost. */
static const char nul_in_word[] = "a word or its label holds a NUL character";
static bool has_nul(const json_t *text)
{
    return json_is_string(text) && memchr(json_string_value(text), 0, json_string_length(text));
}

static bool take_object(finetune_reader *r, sentence *s, text_record *record)
{
    const json_t *words = json_object_get(record->object, "words"), *labels = json_object_get(record->object, "labels");
    const size_t count = json_array_size(words);
    if (!json_is_array(words) || !json_is_array(labels) || json_array_size(labels) != count || count == 0)
        return text_record_spoil(record, "expected arrays \"words\" and \"labels\" of the same length");
    for (size_t k = 0; k < count; k++) {
        const json_t *word = json_array_get(words, k), *label = json_array_get(labels, k);
        if (!json_is_string(word)) return text_record_spoil(record, "word %zu is no text", k);
        if (has_nul(word) || has_nul(label)) return text_record_spoil(record, nul_in_word);
        char *name = labelled_text_of(label);
        if (!name) return text_record_spoil(record, "the label of word %zu is neither a text nor a number", k);
        const bool taken = take_word(r, s, record, json_string_value(word), name);
        free(name);
        if (!taken) return false;
    }
    return true;
}

/* Returns true if the two fields are names of columns rather than a word and its label. */
static bool is_header(const char *word, const char *label)
{
    static const char *const words[] = {"word", "words", "token", "tokens", "form", "text", "sentence"};
    static const char *const labels[] = {"label",    "labels", "tag",      "tags",     "ner",  "ner_tag",
                                         "ner_tags", "pos",    "pos_tag",  "pos_tags", "upos", "xpos",
                                         "chunk",    "entity", "entities", "iob",      "bio"};
    bool found = false;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) found = found || strcasecmp(word, words[k]) == 0;
    for (size_t k = 0; found && k < sizeof labels / sizeof *labels; k++)
        if (strcasecmp(label, labels[k]) == 0) return true;
    return false;
}

static bool finetune_tags_take_line(finetune_reader *r, sentence *s, text_record *record)
{
    char *tab = memchr(record->text, '\t', record->text_bytes);
    if (!tab) return text_record_spoil(record, "expected a word, a tab and a label, found no tab");
    if (memchr(record->text, 0, record->text_bytes)) return text_record_spoil(record, nul_in_word);
    if (strchr(tab + 1, '\t')) return text_record_spoil(record, "expected a word and a label, found more fields");
    *tab = 0;
    const bool header = is_header(record->text, tab + 1);
    if (header && record->line > 1)
        return text_record_spoil(record, "a header within the table, as where two files were joined: leave it out");
    if (header) return true;
    return take_word(r, s, record, record->text, tab + 1);
}

/* Returns true if the record is CoNLL's mark between documents, a line of its own that readers of such files skip. */
static bool is_document_mark(finetune_reader *r, const text_record *record)
{
    static const char mark[] = "-DOCSTART-";
    const size_t length = sizeof mark - 1;
    if (record->object || record->problem || record->text_bytes < length) return false;
    if (strncmp(record->text, mark, length) != 0) return false;
    if (record->text_bytes > length && !strchr("\t ", record->text[length])) return false;
    if (r->document_marks++ == 0)
        say_note(r->options, "note: lines of -DOCSTART- between documents are passed over; they are no words");
    return true;
}

static deberta_status take_record(finetune_reader *r, sentence *s, text_record *record, example_list *list,
                                  deberta_error *err)
{
    const bool ends = record->object || record->text_bytes == 0 || is_document_mark(r, record);
    if (record->object)
        take_object(r, s, record);
    else if (!record->problem && !ends)
        finetune_tags_take_line(r, s, record);
    DEBERTA_TRY(reader_problem(record, err));
    return ends ? end_sentence(r, s, list, err) : DEBERTA_OK;
}

deberta_status finetune_read_tags(finetune_reader *r, text_stream *stream, example_list *list, deberta_error *err)
{
    sentence s = {0};
    deberta_status status = DEBERTA_OK;
    list->choices = 1;
    for (bool end = false; status == DEBERTA_OK && !end;) {
        text_record record;
        status = text_stream_next(stream, &record, &end, err);
        if (status == DEBERTA_OK && !end) status = take_record(r, &s, &record, list, err);
        text_record_free(&record);
    }
    if (status == DEBERTA_OK) status = end_sentence(r, &s, list, err);
    free_sentence(&s);
    return status;
}
