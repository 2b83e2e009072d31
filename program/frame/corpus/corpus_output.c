/* Appends rows to a stream whose header is written last, with a journal from which an interrupted run resumes.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/corpus/corpus_output.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/tensor_header.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/frame/unfinished.h"

enum { MOST_TENSORS = 4, MOST_ROW_TOKENS = 1 << 30 };

bool corpus_format_of(const char *path, corpus_format *format)
{
    static const char *const suffixes[] = {".npy", ".safetensors", ".jsonl"};
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
        *format = (corpus_format)k;
        if (path_has_suffix(path, suffixes[k])) return true;
    }
    return false;
}

static deberta_status cannot_write(const corpus_output *output, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be written: %s", output->path, strerror(errno));
}

static deberta_status cannot_write_journal(const corpus_output *output, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be written: %s", output->journal_path, strerror(errno));
}

/* ---------------------------------------------------------------------------------------------------------- headers */

/* Lists the tensors in the order of their bytes; returns their number. */
static size_t declare(const corpus_output *output, export_tensor tensors[MOST_TENSORS])
{
    const size_t rows = output->row_count - output->skipped_rows;
    size_t count = 0;
    tensors[count++] =
        (export_tensor){output->per_token ? "hidden" : "pooled", DTYPE_F32, 2, {output->vectors, output->width}};
    if (output->per_token) tensors[count++] = (export_tensor){"starts", DTYPE_I64, 1, {rows + 1}};
    if (output->windows) {
        tensors[count++] = (export_tensor){"text", DTYPE_I64, 1, {rows}};
        tensors[count++] = (export_tensor){"characters", DTYPE_I64, 2, {rows, 2}};
    }
    return count;
}

static deberta_status make_safetensors_header(const corpus_output *output, tensor_header *header, deberta_error *err)
{
    export_tensor tensors[MOST_TENSORS];
    tensor_place places[MOST_TENSORS];
    const size_t count = declare(output, tensors);
    uint64_t end = 0;
    for (size_t k = 0; k < count; k++)
        DEBERTA_TRY(tensor_place_values(&places[k], &tensors[k], &end, output->path, err));
    export_note notes[CORPUS_MOST_NOTES];
    size_t note_count = 0;
    const char *key;
    json_t *value;
    json_object_foreach(output->notes, key, value)
    {
        assert(note_count < CORPUS_MOST_NOTES && json_is_string(value)); /* shard_layout_read has refused others */
        notes[note_count++] = (export_note){key, json_string_value(value)};
    }
    const tensor_contents contents = {
        .tensors = tensors, .places = places, .count = count, .notes = notes, .note_count = note_count};
    return tensor_header_safetensors(header, &contents, output->header_bytes, output->path, err);
}

/* Measures a header with room for any number of rows, in which every number has its greatest length. */
static deberta_status measure_header(corpus_output *output, deberta_error *err)
{
    enum { NUMBERS = 16, LARGEST_DIGITS = 20 };
    output->header_bytes = output->format == CORPUS_NPY ? TENSOR_HEADER_NPY_BYTES : 0;
    if (output->format != CORPUS_SAFETENSORS) return DEBERTA_OK;
    tensor_header header;
    DEBERTA_TRY(make_safetensors_header(output, &header, err));
    output->header_bytes = (header.size_bytes + NUMBERS * LARGEST_DIGITS) / 64 * 64 + 64;
    free(header.bytes);
    return DEBERTA_OK;
}

/* Makes the header for the rows so far, in new memory; .jsonl has none. */
static deberta_status make_header(const corpus_output *output, char **bytes, deberta_error *err)
{
    tensor_header header = {0};
    *bytes = NULL;
    if (output->format == CORPUS_SAFETENSORS) {
        DEBERTA_TRY(make_safetensors_header(output, &header, err));
        *bytes = header.bytes;
    } else if (output->format == CORPUS_NPY) {
        if (!(*bytes = malloc(TENSOR_HEADER_NPY_BYTES))) memory_short();
        tensor_header_npy(*bytes, output->vectors, output->width);
    }
    return DEBERTA_OK;
}

static deberta_status write_header(const corpus_output *output, deberta_error *err)
{
    char *bytes;
    DEBERTA_TRY(make_header(output, &bytes, err));
    if (!bytes) return DEBERTA_OK;
    const bool written =
        fseeko(output->file, 0, SEEK_SET) == 0 && fwrite(bytes, output->header_bytes, 1, output->file) == 1;
    free(bytes);
    return written ? DEBERTA_OK : cannot_write(output, err);
}

/* Counts the bytes of the I64 tensors that follow the values. */
static bool count_side_bytes(const corpus_output *output, uint64_t *bytes)
{
    const uint64_t rows = output->row_count - output->skipped_rows,
                   numbers =
                       (output->per_token ? 1 : 0) + rows * ((output->per_token ? 1 : 0) + (output->windows ? 3 : 0));
    *bytes = output->format == CORPUS_SAFETENSORS ? numbers * sizeof(int64_t) : 0;
    return rows < UINT64_MAX / (8 * sizeof(int64_t));
}

bool corpus_output_fits(const corpus_output *layout, size_t rows, size_t vectors, const void *bytes,
                        uint64_t size_bytes, uint64_t *begin, uint64_t *end)
{
    corpus_output output = {.format = layout->format,
                            .width = layout->width,
                            .per_token = layout->per_token,
                            .windows = layout->windows,
                            .notes = layout->notes,
                            .path = "the rows"};
    char *header;
    uint64_t value_bytes, side_bytes;
    deberta_error error;
    *begin = 0, *end = size_bytes;
    if (output.format == CORPUS_JSONL) return true;
    if (measure_header(&output, &error) != DEBERTA_OK) return false;
    output.row_count = rows, output.vectors = vectors;
    if (!count_side_bytes(&output, &side_bytes) || __builtin_mul_overflow(vectors, output.width, &value_bytes) ||
        __builtin_mul_overflow(value_bytes, sizeof(float), &value_bytes) ||
        __builtin_add_overflow(value_bytes, output.header_bytes, end) || *end > size_bytes ||
        size_bytes - *end != side_bytes)
        return false;
    *begin = output.header_bytes;
    if (make_header(&output, &header, &error) != DEBERTA_OK) return false;
    const bool same = memcmp(header, bytes, output.header_bytes) == 0;
    free(header);
    return same;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static deberta_status no_journal(const corpus_output *output, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is no journal of this program", output->journal_path);
}

/* Reads a row from [text, tokens, begin, end]; a text without a row has [text] alone. */
static bool corpus_output_read_row(const json_t *list, corpus_row *row)
{
    json_int_t text, tokens = 0, begin = 0, end = 0;
    json_t *values = (json_t *)(uintptr_t)list;
    row->skipped = json_array_size(values) == 1;
    if (json_unpack(values, row->skipped ? "[I!]" : "[I, I, I, I!]", &text, &tokens, &begin, &end) != 0) return false;
    if (text < 0 || tokens < 0 || tokens > MOST_ROW_TOKENS || begin < 0 || end < begin) return false;
    row->text = (size_t)text;
    row->tokens = (size_t)tokens;
    row->characters = (deberta_span){(size_t)begin, (size_t)end};
    return true;
}

/* Takes the rows of one flush. Rows are in the order of their texts, which lie between this flush and the one
 * before. */
static bool take_rows(corpus_output *output, const json_t *rows, size_t texts)
{
    size_t k, last = output->flushed_texts;
    json_t *list;
    if (!json_is_array(rows)) return false;
    json_array_foreach((json_t *)(uintptr_t)rows, k, list)
    {
        corpus_row row;
        if (!corpus_output_read_row(list, &row) || row.text < last || row.text >= texts) return false;
        corpus_output_row(output, row);
        last = row.text;
    }
    return true;
}

/* Checks that the number of value bytes agrees with the rows, as it must in a format with a header. */
static bool bytes_fit(const corpus_output *output, uint64_t bytes)
{
    uint64_t expected;
    if (output->format == CORPUS_JSONL) return true;
    return !__builtin_mul_overflow(output->vectors, output->width * sizeof(float), &expected) &&
           !__builtin_add_overflow(expected, output->header_bytes, &expected) && bytes == expected;
}

static bool are_problems(const json_t *problems)
{
    size_t k;
    json_t *pair;
    json_array_foreach((json_t *)(uintptr_t)problems, k, pair)
    {
        const char *place, *why;
        if (json_unpack(pair, "[s, s!]", &place, &why) != 0) return false;
    }
    return !problems || json_is_array(problems);
}

/* Reads one line of the journal, the state of a flush. */
static deberta_status take_entry(corpus_output *output, const json_t *entry, corpus_progress *progress,
                                 uint64_t *data_bytes, deberta_error *err)
{
    json_int_t texts, bad, bytes;
    const char *hash;
    json_t *rows, *problems = NULL;
    if (json_unpack((json_t *)(uintptr_t)entry, "{s:I, s:I, s:I, s:s, s:o, s?o}", "texts", &texts, "bad", &bad, "bytes",
                    &bytes, "hash", &hash, "rows", &rows, "problems", &problems) != 0)
        return no_journal(output, err);
    if (texts < (json_int_t)output->flushed_texts || bad < (json_int_t)progress->bad || bad > texts ||
        bytes < (json_int_t)*data_bytes || !take_rows(output, rows, (size_t)texts) ||
        !bytes_fit(output, (uint64_t)bytes) || !are_problems(problems))
        return no_journal(output, err);
    if (output->problems && problems && json_array_extend(output->problems, problems) != 0)
        return no_journal(output, err);
    *progress = (corpus_progress){(size_t)texts, (size_t)bad, strtoull(hash, NULL, 16)};
    output->flushed_texts = progress->texts;
    output->flushed_problems = json_array_size(output->problems);
    *data_bytes = (uint64_t)bytes;
    return DEBERTA_OK;
}

/* Reads the journal up to its last whole line, and cuts both files off after the state of that line. */
static deberta_status resume(corpus_output *output, const json_t *settings, corpus_progress *progress,
                             deberta_error *err)
{
    char *line = NULL;
    size_t room = 0;
    uint64_t data_bytes = 0;
    off_t whole = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t number = 0; status == DEBERTA_OK && getline(&line, &room, output->journal) > 0; number++) {
        if (!strchr(line, '\n')) break;
        json_t *entry = json_loads(line, 0, NULL);
        if (number == 0 && !json_equal(entry, settings))
            status = status_fail(
                err, DEBERTA_E_ARGUMENT,
                "%s was begun with other settings (%.*s): finish it with those, or remove it and its journal",
                output->part, (int)strcspn(line, "\n"), line);
        else if (number > 0)
            status = take_entry(output, entry, progress, &data_bytes, err);
        whole = ftello(output->journal);
        json_decref(entry);
    }
    free(line);
    if (status != DEBERTA_OK) return status;
    if (data_bytes < output->header_bytes) data_bytes = output->header_bytes;
    if (fseeko(output->file, 0, SEEK_END) != 0 || (progress->texts && (uint64_t)ftello(output->file) < data_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is shorter than its journal says", output->part);
    if (ftruncate(fileno(output->journal), whole) != 0 || ftruncate(fileno(output->file), (off_t)data_bytes) != 0 ||
        fseeko(output->journal, whole, SEEK_SET) != 0 || fseeko(output->file, (off_t)data_bytes, SEEK_SET) != 0)
        return cannot_write(output, err);
    if (whole == 0 && (json_dumpf(settings, output->journal, JSON_COMPACT) != 0 || fputc('\n', output->journal) == EOF))
        return cannot_write(output, err);
    return DEBERTA_OK;
}

static FILE *open_or_make(const char *path, bool *is_new)
{
    FILE *file = fopen(path, "r+b");
    *is_new = !file;
    return file ? file : fopen(path, "w+bx");
}

static deberta_status open_resumable(corpus_output *output, const json_t *settings, corpus_progress *progress,
                                     deberta_error *err)
{
    if (asprintf(&output->part, "%s.part", output->path) < 0 ||
        asprintf(&output->journal_path, "%s.journal", output->part) < 0)
        memory_short();
    bool is_new;
    if (!(output->journal = open_or_make(output->journal_path, &is_new))) return cannot_write_journal(output, err);
    /* Another process may have finished and removed the file between our opening and our locking. */
    struct stat about;
    const bool locked = flock(fileno(output->journal), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!locked || (fstat(fileno(output->journal), &about) == 0 && about.st_nlink == 0))
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s is being written by another run", output->part);
    /* A shard that was killed between the renaming of its output and its manifest resumes from its end. */
    if (output->of_shard && access(output->part, F_OK) != 0) rename(output->path, output->part);
    if (!(output->file = open_or_make(output->part, &is_new))) return cannot_write(output, err);
    /* A journal without data is from a run that was killed after it had renamed its output. */
    if (is_new && ftruncate(fileno(output->journal), 0) != 0) return cannot_write_journal(output, err);
    return resume(output, settings, progress, err);
}

deberta_status corpus_output_open(corpus_output *output, const char *path, const json_t *settings,
                                  corpus_progress *progress, deberta_error *err)
{
    *progress = (corpus_progress){0};
    DEBERTA_TRY(atomic_file_target(&output->path, path, err));
    DEBERTA_TRY(measure_header(output, err));
    if (output->resumable) return open_resumable(output, settings, progress, err);
    unfinished_hold();
    const deberta_status made = atomic_file_open(&output->whole, output->path, err);
    unfinished_add(made == DEBERTA_OK ? atomic_file_temporary(output->whole) : NULL);
    DEBERTA_TRY(made);
    DEBERTA_TRY(atomic_file_stream(&output->file, output->whole, err));
    if (fseeko(output->file, (off_t)output->header_bytes, SEEK_SET) != 0) return cannot_write(output, err);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

deberta_status corpus_output_values(corpus_output *output, const float *values, size_t vectors, deberta_error *err)
{
    const size_t count = vectors * output->width;
    if (count && fwrite(values, sizeof *values, count, output->file) != count) return cannot_write(output, err);
    return DEBERTA_OK;
}

void corpus_output_row(corpus_output *output, corpus_row row)
{
    output->rows = memory_grown(output->rows, &output->row_capacity, output->row_count + 1, sizeof *output->rows);
    output->rows[output->row_count++] = row;
    if (row.skipped)
        output->skipped_rows++;
    else
        output->vectors += output->per_token ? row.tokens : 1;
}

void corpus_output_problem(corpus_output *output, const char *place, const char *problem)
{
    if (output->of_shard)
        json_add(output->problems, json_pack("[o, o]", json_clean_text(place), json_clean_text(problem)));
}

/* Writes the problems since the last flush. */
static void write_new_problems(corpus_output *output)
{
    const size_t count = json_array_size(output->problems);
    for (size_t k = output->flushed_problems; k < count; k++) {
        fputs(k == output->flushed_problems ? ",\"problems\":[" : ",", output->journal);
        json_dumpf(json_array_get(output->problems, k), output->journal, JSON_COMPACT);
    }
    if (output->flushed_problems < count) fputc(']', output->journal);
    output->flushed_problems = count;
}

deberta_status corpus_output_flush(corpus_output *output, const corpus_progress *progress, deberta_error *err)
{
    if (!stream_flush(output->file)) return cannot_write(output, err);
    if (!output->journal) return DEBERTA_OK;
    /* The journal must never be ahead of the data, not even after a power cut. */
    if (!file_sync(fileno(output->file))) return cannot_write(output, err);
    size_t first = output->row_count;
    while (first > 0 && output->rows[first - 1].text >= output->flushed_texts) first--;
    fprintf(output->journal, "{\"texts\":%zu,\"bad\":%zu,\"bytes\":%lld,\"hash\":\"%016llx\",\"rows\":[",
            progress->texts, progress->bad, (long long)ftello(output->file), (unsigned long long)progress->hash);
    for (size_t k = first; k < output->row_count; k++) {
        const corpus_row *row = &output->rows[k];
        fprintf(output->journal, row->skipped ? "%s[%zu]" : "%s[%zu,%zu,%zu,%zu]", k > first ? "," : "", row->text,
                row->tokens, row->characters.begin, row->characters.end);
    }
    fputc(']', output->journal);
    write_new_problems(output);
    fputs("}\n", output->journal);
    output->flushed_texts = progress->texts;
    return stream_flush(output->journal) ? DEBERTA_OK : cannot_write_journal(output, err);
}

static bool put_numbers(const corpus_output *output, const int64_t *numbers, size_t count)
{
    return fwrite(numbers, sizeof *numbers, count, output->file) == count;
}

/* Writes the I64 tensors after the values, for the texts that have rows. */
static bool write_side_tensors(const corpus_output *output)
{
    int64_t start = 0;
    bool fine = true;
    if (output->format != CORPUS_SAFETENSORS) return true;
    if (output->per_token) fine = put_numbers(output, &start, 1);
    for (size_t k = 0; fine && output->per_token && k < output->row_count; k++) {
        start += (int64_t)output->rows[k].tokens;
        if (!output->rows[k].skipped) fine = put_numbers(output, &start, 1);
    }
    for (size_t k = 0; fine && output->windows && k < output->row_count; k++)
        if (!output->rows[k].skipped) fine = put_numbers(output, &(int64_t){(int64_t)output->rows[k].text}, 1);
    for (size_t k = 0; fine && output->windows && k < output->row_count; k++) {
        const deberta_span span = output->rows[k].characters;
        const int64_t ends[2] = {(int64_t)span.begin, (int64_t)span.end};
        if (!output->rows[k].skipped) fine = put_numbers(output, ends, 2);
    }
    return fine;
}

static deberta_status finish_resumable(corpus_output *output, deberta_error *err)
{
    const bool kept = stream_flush(output->file) && file_sync(fileno(output->file));
    const int reason = errno;
    const bool closed = stream_close(output->file);
    output->file = NULL;
    if (!kept) errno = reason;
    if (!kept || !closed || rename(output->part, output->path) != 0) return cannot_write(output, err);
    if (output->of_shard || unlink(output->journal_path) == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be removed: %s", output->journal_path, strerror(errno));
}

deberta_status corpus_output_finish(corpus_output *output, deberta_error *err)
{
    if (!write_side_tensors(output)) return cannot_write(output, err);
    DEBERTA_TRY(write_header(output, err));
    if (output->resumable) return finish_resumable(output, err);
    output->file = NULL;
    const deberta_status status = atomic_file_commit(&output->whole, err);
    unfinished_done();
    return status;
}

void corpus_output_close(corpus_output *output)
{
    if (output->whole) {
        atomic_file_discard(&output->whole);
        unfinished_done();
    } else if (output->file) {
        stream_discard(output->file);
    }
    stream_discard(output->journal);
    free(output->path);
    free(output->part);
    free(output->journal_path);
    free(output->rows);
    json_decref(output->problems);
    *output = (corpus_output){0};
}
