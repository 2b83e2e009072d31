/* SPDX-License-Identifier: MIT */
#include "cli/corpus_output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run.h"
#include "core/base/status.h"

enum { NPY_HEADER_BYTES = 128, LARGEST_DIGITS = 20 };

bool corpus_format_of(const char *path, corpus_format *format)
{
    static const char *const suffixes[] = {".npy", ".safetensors", ".jsonl"};
    const char *suffix = path ? strrchr(path, '.') : NULL;
    for (size_t k = 0; suffix && k < sizeof suffixes / sizeof *suffixes; k++) {
        *format = (corpus_format)k;
        if (strcmp(suffix, suffixes[k]) == 0) return true;
    }
    return false;
}

static deberta_status cannot_write(const corpus_output *output, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be written: %s", output->path, strerror(errno));
}

/* ---------------------------------------------------------------------------------------------------------- headers */

/* One tensor of the header; offsets grow over all of them. */
static void add_tensor(json_t *header, const char *name, const char *type, size_t element_bytes, size_t rows,
                       size_t columns, size_t *offset)
{
    json_t *shape = json_pack("[I]", (json_int_t)rows);
    const size_t end = *offset + rows * (columns ? columns : 1) * element_bytes;
    if (columns) json_array_append_new(shape, json_integer((json_int_t)columns));
    json_object_set_new(header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets",
                                  (json_int_t)*offset, (json_int_t)end));
    *offset = end;
}

/* The tensors in the order of their bytes; jansson keeps it. */
static json_t *safetensors_header(const corpus_output *output)
{
    size_t offset = 0;
    json_t *header = json_pack("{s:O}", "__metadata__", output->notes);
    add_tensor(header, output->per_token ? "hidden" : "pooled", "F32", sizeof(float), output->vectors, output->width,
               &offset);
    if (output->per_token) add_tensor(header, "starts", "I64", sizeof(int64_t), output->row_count + 1, 0, &offset);
    if (output->windows) {
        add_tensor(header, "text", "I64", sizeof(int64_t), output->row_count, 0, &offset);
        add_tensor(header, "characters", "I64", sizeof(int64_t), output->row_count, 2, &offset);
    }
    return header;
}

static char *header_text(const corpus_output *output)
{
    char *text = NULL;
    if (output->format == CORPUS_NPY) {
        if (asprintf(&text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", output->vectors,
                     output->width) < 0)
            return NULL;
        return text;
    }
    json_t *header = safetensors_header(output);
    text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

/* Room for any number of rows: every number of the empty header might grow to its longest. */
static deberta_status measure_header(corpus_output *output, deberta_error *err)
{
    enum { NUMBERS = 16 };
    output->header_bytes = output->format == CORPUS_NPY ? NPY_HEADER_BYTES : 0;
    if (output->format != CORPUS_SAFETENSORS) return DEBERTA_OK;
    char *text = header_text(output);
    if (!text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    output->header_bytes = (8 + strlen(text) + NUMBERS * LARGEST_DIGITS) / 64 * 64 + 64;
    free(text);
    return DEBERTA_OK;
}

/* The text in its fixed room, filled up with spaces, behind magic and length. */
static deberta_status write_header(corpus_output *output, deberta_error *err)
{
    if (output->header_bytes == 0) return DEBERTA_OK;
    char *text = header_text(output), *header = malloc(output->header_bytes);
    deberta_status status = text && header ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) {
        const size_t prefix = output->format == CORPUS_NPY ? 10 : 8, room = output->header_bytes - prefix;
        memset(header, ' ', output->header_bytes);
        if (output->format == CORPUS_NPY) {
            memcpy(header, "\x93NUMPY\x01\x00", 8);
            header[8] = (char)(room & 0xFF);
            header[9] = (char)(room >> 8);
            header[output->header_bytes - 1] = '\n';
        } else {
            for (size_t k = 0; k < 8; k++) header[k] = (char)((uint64_t)room >> 8 * k & 0xFF);
        }
        memcpy(header + prefix, text, strlen(text) < room ? strlen(text) : room);
        if (fseeko(output->file, 0, SEEK_SET) != 0 ||
            fwrite(header, 1, output->header_bytes, output->file) != output->header_bytes)
            status = cannot_write(output, err);
    }
    free(text);
    free(header);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* One line of the journal: what was whole at a flush. */
static deberta_status take_entry(corpus_output *output, const json_t *entry, corpus_progress *progress,
                                 uint64_t *data_bytes, deberta_error *err)
{
    json_int_t texts, bad, bytes;
    const char *hash;
    json_t *rows, *row;
    size_t k;
    if (json_unpack((json_t *)(uintptr_t)entry, "{s:I, s:I, s:I, s:s, s:o}", "texts", &texts, "bad", &bad, "bytes",
                    &bytes, "hash", &hash, "rows", &rows) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is no journal of this program", output->journal_path);
    json_array_foreach(rows, k, row)
    {
        json_int_t text, tokens, begin, end;
        if (json_unpack(row, "[I, I, I, I]", &text, &tokens, &begin, &end) != 0)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is no journal of this program", output->journal_path);
        DEBERTA_TRY(
            corpus_output_row(output, (corpus_row){(size_t)text, (size_t)tokens, {(size_t)begin, (size_t)end}}, err));
    }
    *progress = (corpus_progress){(size_t)texts, (size_t)bad, strtoull(hash, NULL, 16)};
    output->flushed_texts = progress->texts;
    *data_bytes = (uint64_t)bytes;
    return DEBERTA_OK;
}

/* Reads the journal up to its last whole line; what was written behind that is cut off both files. */
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

static FILE *open_or_make(const char *path)
{
    FILE *file = fopen(path, "r+b");
    return file ? file : fopen(path, "w+bx");
}

deberta_status corpus_output_open(corpus_output *output, const char *path, const json_t *settings,
                                  corpus_progress *progress, deberta_error *err)
{
    struct stat about;
    *progress = (corpus_progress){0};
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s cannot be written: it exists and is not a regular file", path);
    output->path = strdup(path);
    if (!output->path ||
        (output->resumable ? asprintf(&output->part, "%s.part", path)
                           : asprintf(&output->part, "%s.%ld.part", path, (long)getpid())) < 0 ||
        asprintf(&output->journal_path, "%s.journal", output->part) < 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    DEBERTA_TRY(measure_header(output, err));
    if (output->resumable) {
        if (!(output->file = open_or_make(output->part)) || !(output->journal = open_or_make(output->journal_path)))
            return cannot_write(output, err);
        if (flock(fileno(output->journal), LOCK_EX | LOCK_NB) != 0)
            DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s is being written by another run", output->part);
        return resume(output, settings, progress, err);
    }
    if (!(output->file = fopen(output->part, "w+bx"))) return cannot_write(output, err);
    run_remove_on_signal(output->part);
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

deberta_status corpus_output_row(corpus_output *output, corpus_row row, deberta_error *err)
{
    if (output->row_count == output->row_capacity) {
        const size_t capacity = output->row_capacity ? 2 * output->row_capacity : 1024;
        corpus_row *rows = realloc(output->rows, capacity * sizeof *rows);
        if (!rows) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        output->rows = rows;
        output->row_capacity = capacity;
    }
    output->rows[output->row_count++] = row;
    output->vectors += output->per_token ? row.tokens : 1;
    return DEBERTA_OK;
}

deberta_status corpus_output_flush(corpus_output *output, const corpus_progress *progress, deberta_error *err)
{
    if (fflush(output->file) != 0) return cannot_write(output, err);
    if (!output->journal) return DEBERTA_OK;
    /* The journal must never be ahead of the data, not even after a power cut. */
    if (fdatasync(fileno(output->file)) != 0) return cannot_write(output, err);
    size_t first = output->row_count;
    while (first > 0 && output->rows[first - 1].text >= output->flushed_texts) first--;
    fprintf(output->journal, "{\"texts\":%zu,\"bad\":%zu,\"bytes\":%lld,\"hash\":\"%016llx\",\"rows\":[",
            progress->texts, progress->bad, (long long)ftello(output->file), (unsigned long long)progress->hash);
    for (size_t k = first; k < output->row_count; k++)
        fprintf(output->journal, "%s[%zu,%zu,%zu,%zu]", k > first ? "," : "", output->rows[k].text,
                output->rows[k].tokens, output->rows[k].characters.begin, output->rows[k].characters.end);
    fputs("]}\n", output->journal);
    output->flushed_texts = progress->texts;
    return fflush(output->journal) == 0 && !ferror(output->journal) ? DEBERTA_OK : cannot_write(output, err);
}

/* The I64 tensors behind the values. */
static bool write_side_tensors(const corpus_output *output)
{
    int64_t start = 0;
    bool fine = true;
    if (output->format != CORPUS_SAFETENSORS) return true;
    if (output->per_token) fine = fwrite(&start, sizeof start, 1, output->file) == 1;
    for (size_t k = 0; fine && output->per_token && k < output->row_count; k++) {
        start += (int64_t)output->rows[k].tokens;
        fine = fwrite(&start, sizeof start, 1, output->file) == 1;
    }
    for (size_t k = 0; fine && output->windows && k < output->row_count; k++) {
        const int64_t text = (int64_t)output->rows[k].text;
        fine = fwrite(&text, sizeof text, 1, output->file) == 1;
    }
    for (size_t k = 0; fine && output->windows && k < output->row_count; k++) {
        const int64_t span[2] = {(int64_t)output->rows[k].characters.begin, (int64_t)output->rows[k].characters.end};
        fine = fwrite(span, sizeof span, 1, output->file) == 1;
    }
    return fine;
}

deberta_status corpus_output_finish(corpus_output *output, deberta_error *err)
{
    if (!write_side_tensors(output)) return cannot_write(output, err);
    DEBERTA_TRY(write_header(output, err));
    const bool closed = fclose(output->file) == 0;
    output->file = NULL;
    const bool placed = closed && rename(output->part, output->path) == 0;
    const deberta_status status = placed ? DEBERTA_OK : cannot_write(output, err);
    if (!placed && !output->resumable) unlink(output->part);
    run_remove_on_signal(NULL);
    if (placed && output->journal) unlink(output->journal_path);
    return status;
}

void corpus_output_close(corpus_output *output)
{
    if (output->file) {
        fclose(output->file);
        if (!output->resumable) unlink(output->part);
        run_remove_on_signal(NULL);
    }
    if (output->journal) fclose(output->journal);
    free(output->path);
    free(output->part);
    free(output->journal_path);
    free(output->rows);
    *output = (corpus_output){0};
}
