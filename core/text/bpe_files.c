/* Reads the files of a byte-level vocabulary: vocab.json and merges.txt.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/bpe_files.h"

#include <stdio.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/text/json_value.h"

deberta_status bpe_files_add_vocabulary(byte_bpe *bpe, json_t *vocabulary, const char *where, deberta_error *err)
{
    const char *token;
    json_t *id;
    json_object_foreach(vocabulary, token, id)
    {
        if (!json_is_integer(id))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: token '%s' has %s, expected an id", where, QUOTE(token),
                         json_describe(id).text);
        DEBERTA_TRY(byte_bpe_add_token(bpe, token, strlen(token), json_integer_value(id), where, err));
    }
    return DEBERTA_OK;
}

deberta_status bpe_files_add_merges(byte_bpe *bpe, const char *text, size_t bytes, const char *where,
                                    deberta_error *err)
{
    static const char version[] = "#version";
    size_t line_number = 0;
    for (size_t at = 0; at < bytes;) {
        const char *line = text + at, *newline = memchr(line, '\n', bytes - at);
        size_t length = newline ? (size_t)(newline - line) : bytes - at;
        at += length + 1;
        line_number++;
        if (length > 0 && line[length - 1] == '\r') length--;
        if (line_number == 1 && length >= sizeof version - 1 && memcmp(line, version, sizeof version - 1) == 0)
            continue;
        if (length == 0 && at >= bytes) break;
        char line_where[QUOTE_BYTES + 32];
        snprintf(line_where, sizeof line_where, "%s: line %zu", where, line_number);
        DEBERTA_TRY(byte_bpe_add_merge_line(bpe, line, length, line_where, err));
    }
    return DEBERTA_OK;
}

static deberta_status add_vocabulary_file(byte_bpe *bpe, const char *path, deberta_error *err)
{
    json_t *root;
    DEBERTA_TRY(json_value_read(&root, path, err));
    deberta_status status = bpe_files_add_vocabulary(bpe, root, QUOTE(path), err);
    json_decref(root);
    return status;
}

static deberta_status add_merges_file(byte_bpe *bpe, const char *path, deberta_error *err)
{
    mapped_file file;
    DEBERTA_TRY(mapped_file_open_at_most(&file, path, VOCABULARY_FILE_MOST_BYTES, err));
    deberta_status status = bpe_files_add_merges(bpe, (const char *)file.bytes, file.size_bytes, file.name.text, err);
    return mapped_file_end(&file, status, err);
}

deberta_status bpe_files_load(byte_bpe **bpe, const char *vocabulary_path, const char *merges_path, deberta_error *err)
{
    DEBERTA_TRY(byte_bpe_create(bpe, err));
    deberta_status status = add_vocabulary_file(*bpe, vocabulary_path, err);
    if (status == DEBERTA_OK) status = add_merges_file(*bpe, merges_path, err);
    if (status != DEBERTA_OK) byte_bpe_free(bpe);
    return status;
}
