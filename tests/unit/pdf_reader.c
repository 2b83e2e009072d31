/* A PDF in memory is written to a file of its own, which poppler's programs read.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/pdf_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *read_all(FILE *stream)
{
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1);
    if (text) text[fread(text, 1, MOST, stream)] = 0;
    return text;
}

char *pdf_report(const char *command, const void *data, size_t size_bytes)
{
    char path[] = "/tmp/deberta-test-XXXXXX", line[256];
    const int file = mkstemp(path);
    if (file < 0) return NULL;
    const int written = write(file, data, size_bytes) == (ssize_t)size_bytes;
    close(file);
    snprintf(line, sizeof line, "%s %s 2>/dev/null", command, path);
    FILE *stream = written ? popen(line, "r") : NULL;
    char *text = stream ? read_all(stream) : NULL;
    if (stream && pclose(stream) != 0) {
        free(text);
        text = NULL;
    }
    unlink(path);
    return text;
}
