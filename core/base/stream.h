/* How streams are flushed, read by lines, and ended: in one place, because each is easily asked too little.
 *
 * A write that fails in the middle drops its bytes and leaves a mark at the stream (ferror); the next fflush or fclose
 * may succeed. So both ask for the mark. tools/lint.py wants no other fflush or fclose.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/status.h"

/* Hands over what the stream holds. False if anything that was ever written to it is lost; errno is that of this try;
 * if an earlier one failed, what it still is, or EIO. Who does not ask loses nothing: the mark stays. */
bool stream_flush(FILE *stream);
/* The same, and ends the stream either way. Of a stream that is read: false if reading failed. */
bool stream_close(FILE *stream) __attribute__((warn_unused_result));
/* Ends a stream of which nobody asks more: it was read as far as wanted, or an error is told already. Accepts NULL. */
void stream_discard(FILE *stream);

/* One line with its newline, which the last may lack, and a NUL behind it, in memory that grows: *length is 0 at the
 * end. Unlike getline, refuses a line of more than most_bytes: a file of zeros has no newline. place: the file's name
 * and the line's number, from 1, for errors. */
typedef struct stream_place {
    const char *name;
    size_t line;
} stream_place;
deberta_status stream_read_line(FILE *stream, char **line, size_t *capacity, size_t most_bytes, size_t *length,
                                stream_place place, deberta_error *err);
