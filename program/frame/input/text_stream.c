/* Opens files in turn, and turns their lines or objects into records with a place. SPDX-License-Identifier: MIT */
#include "program/frame/input/text_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/text_lines.h"
#include "output/scope.h"

static bool is_standard_input(const char *path) { return strcmp(path, "-") == 0; }

/* ------------------------------------------------------------------------------------------------------- records */

void text_record_free(text_record *record)
{
    free(record->text);
    free(record->pair);
    free(record->problem);
    json_decref(record->id);
    json_decref(record->object);
    *record = (text_record){0};
}

void text_record_place(const text_record *record, char place[256])
{
    if (record->source)
        snprintf(place, 256, "%.200s, line %zu", record->source, record->line);
    else
        snprintf(place, 256, "text %zu", record->line);
}

void text_stream_report(text_stream *stream, const text_record *record)
{
    char place[256];
    if (++stream->problems > MOST_REPORTED) return;
    text_record_place(record, place);
    fprintf(stderr, "deberta %s: %s: %s\n", stream->options->common.command->name, place, record->problem);
}

void text_stream_report_rest(const text_stream *stream)
{
    const size_t rest = stream->problems > MOST_REPORTED ? stream->problems - MOST_REPORTED : 0;
    if (rest)
        fprintf(stderr, "deberta %s: %zu more line%s cannot be used\n", stream->options->common.command->name, rest,
                rest == 1 ? "" : "s");
}

static bool is_control(char byte) { return (unsigned char)byte < ' ' || byte == 0x7f; }

/* Writes control characters as \xNN: what a record holds must not steer a terminal. */
static char *without_controls(char *sentence)
{
    size_t bytes = 1;
    for (const char *at = sentence; *at; at++) bytes += is_control(*at) ? 4 : 1;
    if (bytes == strlen(sentence) + 1) return sentence;
    char *clean = memory_take(bytes, 1), *to = clean;
    for (const char *at = sentence; *at; at++)
        if (is_control(*at))
            to += snprintf(to, 5, "\\x%02x", (unsigned char)*at);
        else
            *to++ = *at;
    *to = 0;
    free(sentence);
    return clean;
}

int text_record_spoil(text_record *record, const char *format, ...)
{
    if (record->problem) return 0;
    va_list arguments;
    va_start(arguments, format);
    const int written = vasprintf(&record->problem, format, arguments);
    va_end(arguments);
    if (written < 0) memory_short();
    record->problem = without_controls(record->problem);
    return 0;
}

static void copy_text(char **to, size_t *to_bytes, const char *text, size_t bytes)
{
    *to = memory_take(bytes + 1, 1);
    memcpy(*to, text, bytes);
    *to_bytes = bytes;
}

/* Copies a key's text into the record; returns false if the object has none. */
static bool take_key(const json_t *object, const char *key, char **to, size_t *to_bytes, text_record *record)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return false;
    if (!json_is_string(value)) return text_record_spoil(record, "the value of \"%s\" is not a text", key);
    copy_text(to, to_bytes, json_string_value(value), json_string_length(value));
    return true;
}

/* Checks that an object has the keys that this command reads. */
static void check_keys(text_stream *stream, text_record *record, const json_t *object)
{
    const text_stream_names *names = stream->names;
    const bool has_pair = names->pair && strcmp(names->pair, "pair") == 0;
    const char *const all[] = {"id",           names->text,    names->pair,    has_pair ? "text_pair" : NULL,
                               names->also[0], names->also[1], names->also[2], names->also[3]};
    const char *used[sizeof all / sizeof *all + 1] = {0};
    char problem[KEY_SENTENCE_BYTES];
    for (size_t k = 0, count = 0; k < sizeof all / sizeof *all; k++)
        if (all[k]) used[count++] = all[k];
    if (!record_keys_check(object, used, &stream->unused, problem)) text_record_spoil(record, "%s", problem);
}

static void miss_key(text_record *record, const json_t *object, const char *key)
{
    char its_keys[KEY_SENTENCE_BYTES];
    if (json_object_get(object, key)) {
        text_record_spoil(record, "the value of \"%s\" is null, not a text", key);
        return;
    }
    record_keys_describe(object, its_keys);
    const bool nested = json_is_array(json_object_get(object, "data")) ||
                        json_is_array(json_object_get(object, "paragraphs")) ||
                        json_is_array(json_object_get(object, "qas"));
    text_record_spoil(record, "the object has no key \"%s\"%s%s", key, its_keys,
                      nested ? "; SQuAD's nested articles are not read: give one object a line, with \"question\", "
                               "\"context\" and for training \"text\", \"start\""
                             : "");
}

/* Takes the second text, which has two possible keys; an object may have only one of them. */
static void take_pair(text_record *record, const text_stream_names *names, const json_t *object)
{
    const char *key = names->pair;
    const json_t *other = strcmp(key, "pair") == 0 ? json_object_get(object, "text_pair") : NULL;
    if (other && !json_is_null(other)) {
        const json_t *pair = json_object_get(object, key);
        if (pair && !json_is_null(pair)) {
            text_record_spoil(record, "the object has both \"pair\" and \"text_pair\", which mean the same");
            return;
        }
        key = "text_pair";
    }
    if (!take_key(object, key, &record->pair, &record->pair_bytes, record) && names->pair_required)
        miss_key(record, object, key);
}

static void read_object(text_stream *stream, text_record *record, const char *line, size_t bytes)
{
    const text_stream_names *names = stream->names;
    json_error_t json_error;
    json_t *object = json_loadb(line, bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &json_error);
    if (!json_is_object(object)) {
        json_decref(object);
        text_record_spoil(record, "expected a JSON object%s%s%s%s%s", names->text ? " with the key \"" : "",
                          names->text ? names->text : "", names->text ? "\"" : "", object ? "" : ": ",
                          object ? "" : json_error.text);
        return;
    }
    json_t *id = json_object_get(object, "id");
    if (!json_is_null(id)) record->id = json_incref(id); /* null is no id, as with other keys */
    if (names->keeps_object) record->object = json_incref(object);
    if (names->text && !take_key(object, names->text, &record->text, &record->text_bytes, record))
        miss_key(record, object, names->text);
    if (names->text && names->pair) take_pair(record, names, object);
    check_keys(stream, record, object);
    if (names->text && names->pair && !names->pair_required) text_stream_count(stream, record);
    json_decref(object);
}

/* -------------------------------------------------------------------------------------------------------- opening */

static void check_given(const text_stream *stream)
{
    const text_stream_names *names = stream->names;
    const common_options *options = &stream->options->common;
    const size_t texts = stream->options->texts.count, pairs = names->pair ? stream->options->pairs.count : 0;
    if (texts + stream->files.count == 0)
        usage_wrong(options, "no text: give --%s or --file (- is standard input)", names->text);
    if (pairs > texts) usage_wrong(options, "--%s was given more often than --%s", names->pair, names->text);
    const bool shared = names->share_pair && pairs == 1;
    if (pairs != texts && !shared && (pairs > 0 || names->pair_required))
        usage_wrong(options, "%zu --%s but %zu --%s: give one for each", texts, names->text, pairs, names->pair);
}

/* Returns why a regular file holds no texts, or NULL. */
static const char *find_no_texts(const char *path)
{
    char bytes[NO_TEXTS_BYTES];
    const bool standard = is_standard_input(path);
    const int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = file < 0 ? 0 : pread(file, bytes, sizeof bytes, 0);
    if (file >= 0 && !standard) close(file);
    return no_texts_reason(bytes, count > 0 ? (size_t)count : 0);
}

/* Checks each file before anything runs, since a misspelt name should not show after an hour. A named pipe is not
 * opened, because that would wait for its writer and lose data already written. */
static void measure_files(text_stream *stream)
{
    const common_options *options = &stream->options->common;
    bool regular = true;
    for (size_t k = 0; k < stream->files.count; k++) {
        const char *path = stream->files.items[k];
        struct stat about;
        const bool standard = is_standard_input(path);
        const bool found = (standard ? fstat(STDIN_FILENO, &about) : stat(path, &about)) == 0;
        const bool folder = found && S_ISDIR(about.st_mode);
        if (!found || folder || (!standard && access(path, R_OK) != 0))
            end_with(options, EXIT_INPUT, "%s: %s", path, folder ? "is a folder" : strerror(errno));
        const char *why = S_ISREG(about.st_mode) ? find_no_texts(path) : NULL;
        if (why) end_with(options, EXIT_INPUT, "%s: %s", standard ? "standard input" : path, why);
        regular = regular && S_ISREG(about.st_mode);
        stream->total_bytes += (uint64_t)about.st_size;
    }
    if (!regular) stream->total_bytes = 0;
}

void text_stream_open(text_stream *stream, const reading_options *options, const text_stream_names *names)
{
    const common_options *common = &options->common;
    *stream = (text_stream){.options = options, .names = names, .files = options->files};
    if (names->file_arguments) stream->files = (text_list){common->arguments + 1, common->argument_count - 1};
    if (!names->file_arguments) check_given(stream);
    item_choice_settle(common, &options->items, &stream->choice);
    measure_files(stream);
}

void text_stream_count(text_stream *stream, const text_record *record)
{
    if (record->problem) return;
    stream->texts++;
    stream->pairs += record->pair != NULL;
    if (!record->pair && !stream->alone_line) stream->alone_line = record->line;
}

/* Names, in one sentence each for a file, the keys that nothing reads, and texts without a pair among pairs. */
static void note_file(text_stream *stream)
{
    if (stream->pairs && stream->alone_line)
        say_note(&stream->options->common,
                 "note: %s: %zu of %zu texts have a pair; the others, line %zu is the first, are read alone",
                 stream->path, stream->pairs, stream->texts, stream->alone_line);
    stream->texts = stream->pairs = stream->alone_line = 0;
    char sentence[KEY_SENTENCE_BYTES];
    unused_keys_describe(&stream->unused, sentence);
    if (*sentence) say_note(&stream->options->common, "note: %s: %s", stream->path, sentence);
    stream->unused = (unused_keys){0};
}

void text_stream_close(text_stream *stream)
{
    note_file(stream);
    if (stream->file && stream->file != stdin) stream_discard(stream->file);
    free(stream->buffer);
    *stream = (text_stream){0};
}

/* -------------------------------------------------------------------------------------------------------- reading */

static void next_given(text_stream *stream, text_record *record, const char *text)
{
    const text_stream_names *names = stream->names;
    const text_list *pairs = &stream->options->pairs;
    const size_t index = names->share_pair && pairs->count == 1 ? 0 : stream->given;
    const char *pair = names->pair && index < pairs->count ? pairs->items[index] : NULL;
    record->line = ++stream->given;
    copy_text(&record->text, &record->text_bytes, text, strlen(text));
    if (pair) copy_text(&record->pair, &record->pair_bytes, pair, strlen(pair));
}

/* Decides by the first non-blank line whether a file holds texts or objects. */
static deberta_status find_form(text_stream *stream, size_t bytes, deberta_error *err)
{
    text_form form;
    const command *command = stream->options->common.command;
    stream->form_known = stream->form_known || stream->json;
    if (stream->form_known) return DEBERTA_OK;
    text_form_find(&form, stream->path, stream->buffer, bytes, stream->names->columns);
    if (*form.refusal)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s%s%s", stream->path, form.refusal,
                     form.document && stream->names->pair_required
                         ? options_text(&stream->options->common, ", with \"%s\" and \"%s\"", stream->names->text,
                                        stream->names->pair)
                         : "",
                     form.document && options_find(command, "ids") ? "; --input takes one batch of ids" : "");
    if (*form.note) say_note(&stream->options->common, "note: %s: %s", stream->path, form.note);
    stream->json = form.objects;
    stream->form_known = !form.open;
    return DEBERTA_OK;
}

static deberta_status open_next_file(text_stream *stream, const char *path, deberta_error *err)
{
    stream->file = is_standard_input(path) ? stdin : fopen(path, "rb");
    if (!stream->file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    stream->path = is_standard_input(path) ? "standard input" : path;
    stream->json = stream->names->objects || stream->options->jsonl;
    stream->form_known = stream->columns_known = stream->quotes_said = stream->has_header = stream->pair_named = false;
    stream->line = 0;
    stream->file_index++;
    return DEBERTA_OK;
}

static void parse_line(text_stream *stream, text_record *record, size_t bytes)
{
    record->source = stream->path;
    record->line = ++stream->line;
    if (stream->json)
        read_object(stream, record, stream->buffer, bytes);
    else if (stream->names->pair_required)
        text_record_spoil(record, "a plain line holds one text; give objects with \"%s\" and \"%s\" in a .jsonl file",
                          stream->names->text, stream->names->pair);
    else
        copy_text(&record->text, &record->text_bytes, stream->buffer, bytes);
}

static deberta_status next_of_all(text_stream *stream, text_record *record, bool *end, deberta_error *err)
{
    *record = (text_record){0};
    *end = false;
    const text_list *texts = &stream->options->texts;
    if (!stream->names->file_arguments && stream->given < texts->count) {
        next_given(stream, record, texts->items[stream->given]);
        return DEBERTA_OK;
    }
    for (;;) {
        if (stream->file) {
            size_t bytes;
            DEBERTA_TRY(stream_read_line(stream->file, &stream->buffer, &stream->buffer_bytes, TEXT_LINE_MOST_BYTES,
                                         &bytes, (stream_place){stream->path, stream->line + 1}, err));
            if (bytes) {
                stream->done_bytes += bytes;
                if (stream->line == 0 && byte_order_mark(stream->buffer, bytes)) {
                    bytes -= 3;
                    memmove(stream->buffer, stream->buffer + 3, bytes + 1);
                    if (!bytes) continue; /* the line held the byte order mark alone */
                }
                if (bytes && stream->buffer[bytes - 1] == '\n') bytes--;
                if (bytes && stream->buffer[bytes - 1] == '\r') bytes--;
                DEBERTA_TRY(find_form(stream, bytes, err));
                /* As elsewhere, a blank line between objects is none. */
                if (stream->json && text_line_is_blank(stream->buffer, bytes)) {
                    stream->line++;
                    continue;
                }
                parse_line(stream, record, bytes);
                return DEBERTA_OK;
            }
            if (stream->file != stdin) stream_discard(stream->file);
            stream->file = NULL;
            note_file(stream);
        }
        if (stream->file_index == stream->files.count) break;
        DEBERTA_TRY(open_next_file(stream, stream->files.items[stream->file_index], err));
    }
    *end = true;
    return DEBERTA_OK;
}

/* Hashes a text with its length, so that no two sequences of texts are the same bytes; none differs from an empty
 * one. */
static uint64_t hash_text(uint64_t hash, const char *text, size_t bytes)
{
    char length[32];
    const int written = text ? snprintf(length, sizeof length, "%zu:", bytes) : snprintf(length, sizeof length, "-");
    return hash_bytes(hash_bytes(hash, length, (size_t)written), text, text ? bytes : 0);
}

static uint64_t hash_value(uint64_t hash, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    if (value && !text) memory_short();
    hash = hash_text(hash, text, text ? strlen(text) : 0);
    free(text);
    return hash;
}

/* Hashes all that the command reads of a record. An id counts as well: it stands in the rows, and decides which shard
 * an item belongs to. */
static uint64_t hash_record(uint64_t hash, const text_stream_names *names, const text_record *record)
{
    if (hash == 0) hash = hash_of_nothing;
    hash = hash_value(hash, record->id);
    hash = hash_text(hash, record->text, record->text_bytes);
    hash = hash_text(hash, record->pair, record->pair_bytes);
    for (size_t k = 0; k < sizeof names->also / sizeof *names->also && names->also[k]; k++)
        hash = hash_value(hash, json_object_get(record->object, names->also[k]));
    return hash;
}

static deberta_status next_counted(text_stream *stream, text_record *record, bool *end, deberta_error *err)
{
    DEBERTA_TRY(next_of_all(stream, record, end, err));
    if (*end) return DEBERTA_OK;
    record->index = stream->read++;
    stream->hash = hash_record(stream->hash, stream->names, record);
    return DEBERTA_OK;
}

deberta_status text_stream_next(text_stream *stream, text_record *record, bool *end, deberta_error *err)
{
    for (;; text_record_free(record)) {
        DEBERTA_TRY(next_counted(stream, record, end, err));
        if (*end) return DEBERTA_OK;
        const item_name name = {record->id, record->source, record->line};
        if (item_is_taken(&stream->choice, &name)) return DEBERTA_OK;
    }
}

deberta_status text_stream_skip(text_stream *stream, size_t items, deberta_error *err)
{
    bool end = false;
    for (size_t k = 0; k < items && !end; k++) {
        text_record record;
        DEBERTA_TRY(next_counted(stream, &record, &end, err));
        text_record_free(&record);
    }
    return DEBERTA_OK;
}
