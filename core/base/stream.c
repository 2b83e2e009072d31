/* Streams are flushed, closed and read by lines here, with the mark of an earlier failure in mind.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/stream.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "core/base/grow.h"

/* The reason of an earlier failure, where errno still is one of a write. */
static bool is_unmarked(FILE *stream)
{
    if (!ferror(stream)) return true;
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EPIPE) errno = EIO;
    return false;
}

bool stream_flush(FILE *stream) { return fflush(stream) == 0 && is_unmarked(stream); }

bool stream_close(FILE *stream)
{
    const bool fine = is_unmarked(stream);
    const bool closed = fclose(stream) == 0; /* tells errno also where there was a mark */
    return closed && fine;
}

void stream_discard(FILE *stream)
{
    if (stream) (void)fclose(stream);
}

deberta_status stream_read_line(FILE *stream, char **line, size_t *capacity, size_t most_bytes, size_t *length,
                                stream_place place, deberta_error *err)
{
    size_t count = 0;
    *length = 0;
    for (int byte = 0; byte != '\n' && (byte = getc_unlocked(stream)) != EOF;) {
        if (count + 1 >= *capacity) {
            char *larger = grown(*line, capacity, count + 2, 1);
            if (!larger) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s, line %zu: no memory for it", place.name, place.line);
            *line = larger;
        }
        if (count == most_bytes)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s, line %zu: expected at most %zu bytes, found more", place.name,
                         place.line, most_bytes);
        (*line)[count++] = (char)byte;
    }
    if (ferror(stream)) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be read: %s", place.name, strerror(errno));
    if (count) (*line)[count] = '\0';
    *length = count;
    return DEBERTA_OK;
}
