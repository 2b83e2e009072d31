/* SPDX-License-Identifier: MIT */
#include "cli/text_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

static deberta_status add_text(input_batch *input, size_t *capacity, const char *text, size_t bytes, deberta_error *err)
{
    if (input->rows == *capacity) {
        const size_t grown = *capacity ? 2 * *capacity : 16;
        char **texts = realloc(input->texts, grown * sizeof *texts);
        if (texts) input->texts = texts;
        size_t *sizes = texts ? realloc(input->text_bytes, grown * sizeof *sizes) : NULL;
        if (sizes) input->text_bytes = sizes;
        if (!sizes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        *capacity = grown;
    }
    char *copy = malloc(bytes + 1);
    if (!copy) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    input->texts[input->rows] = copy;
    input->text_bytes[input->rows++] = bytes;
    return DEBERTA_OK;
}

static deberta_status read_lines(const char *path, input_batch *input, size_t *capacity, deberta_error *err)
{
    const bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    deberta_status status = DEBERTA_OK;
    for (ssize_t length; status == DEBERTA_OK && (length = getline(&line, &room, file)) >= 0;) {
        if (length && line[length - 1] == '\n') length--;
        if (length && line[length - 1] == '\r') length--;
        status = add_text(input, capacity, line, (size_t)length, err);
    }
    if (status == DEBERTA_OK && ferror(file))
        status = status_fail(err, DEBERTA_E_FILE, "%s: cannot be read: %s", path, strerror(errno));
    free(line);
    if (!standard) fclose(file);
    return status;
}

/* --pair belongs to the text of the same number; with one pair and one text that is what one expects. */
static deberta_status add_pairs(const parsed_options *options, input_batch *input, deberta_error *err)
{
    if (!options_has(options, "pair")) return DEBERTA_OK;
    input->pairs = calloc(input->rows, sizeof *input->pairs);
    input->pair_bytes = calloc(input->rows, sizeof *input->pair_bytes);
    if (!input->pairs || !input->pair_bytes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    size_t k = 0;
    for (const char *pair; (pair = options_nth_value(options, "pair", k)); k++) {
        if (k >= input->rows) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--pair was given more often than --text");
        if (!(input->pairs[k] = strdup(pair))) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        input->pair_bytes[k] = strlen(pair);
    }
    if (k != input->rows)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu texts but %zu --pair: give one for each", input->rows, k);
    return DEBERTA_OK;
}

deberta_status text_source_read(const parsed_options *options, input_batch *input, deberta_error *err)
{
    size_t capacity = 0;
    for (size_t k = 0; options_nth_value(options, "text", k); k++) {
        const char *text = options_nth_value(options, "text", k);
        DEBERTA_TRY(add_text(input, &capacity, text, strlen(text), err));
    }
    for (size_t k = 0; options_nth_value(options, "file", k); k++)
        DEBERTA_TRY(read_lines(options_nth_value(options, "file", k), input, &capacity, err));
    if (input->rows == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines",
                     strcmp(options_value(options, "file", "-"), "-") == 0 ? "standard input"
                                                                           : options_value(options, "file", "-"));
    return add_pairs(options, input, err);
}
