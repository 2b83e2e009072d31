/* Reads texts one after the other, from the command line and from files of any length, each with its place for
 * messages.
 *
 * A file holds one text a line ("\n" or "\r\n"; a last line without a line break counts; NUL is a character like
 * others), or one JSON object a line: core/io/text_lines.h decides by its name and its first line, or --jsonl. A line
 * that is not such an object becomes a record with a problem, and reading continues. core/io/record_keys.h judges the
 * keys of objects.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/record_keys.h"
#include "program/frame/input/item_choice.h"

/* Kinds of --max-tokens: none, a number, the number the model was trained with, or the number with unambiguous
 * distances. */
typedef enum token_limit_kind { LIMIT_NONE, LIMIT_TOKENS, LIMIT_TRAINED, LIMIT_RECEPTIVE } token_limit_kind;
typedef struct token_limit {
    token_limit_kind kind;
    size_t tokens; /* number of LIMIT_TOKENS */
} token_limit;
void token_limit_parse(common_options *options, const char *text, void *target);

/* First member of the options of commands that read texts or ids; each command has rows for the members that it
 * takes. */
typedef struct reading_options {
    common_options common;
    text_list texts, pairs, files, ids, tensors; /* tensors: values of --input */
    bool jsonl, strict;
    token_limit max_tokens;
    size_t batch_tokens; /* 0: the default */
    item_choice items;
} reading_options;

/* Returns the reading options of a command whose struct begins with them. */
static inline const reading_options *reading_of(const common_options *options)
{
    return (const reading_options *)options;
}

/* At most this many problems of lines, and notes of one kind, are printed; further ones are only counted. */
enum { MOST_REPORTED = 10 };

/* A command's names for a text and its second segment, which are options and keys of JSON objects. */
typedef struct text_stream_names {
    const char *text, *pair; /* text: NULL if the caller splits lines and objects itself */
    /* true: a record without a second segment has a problem; a line of a plain file never has one */
    bool pair_required;
    bool share_pair;     /* true: one pair option serves every text */
    bool keeps_object;   /* true: the record keeps the whole object */
    bool file_arguments; /* true: the arguments after MODEL are files, and the only source */
    bool objects;        /* true: files hold objects, whatever their names */
    bool columns;        /* true: lines of plain files have labels and tabs, which the caller splits */
    const char *also[4]; /* further keys of objects that the caller reads from the kept object; ends with NULL */
} text_stream_names;

typedef struct text_record {
    char *text, *pair; /* pair: NULL for none; both end in an extra NUL */
    size_t text_bytes, pair_bytes;
    const char *source; /* path of the file, or NULL for the command line; owned by the stream */
    size_t line;        /* number from 1, in its file or among the command line's texts */
    size_t index;       /* index from 0 in the whole input, including items of other shards */
    json_t *id;         /* value of "id" in the JSON object; NULL: none, or null */
    json_t *object;     /* NULL: not asked for, or not an object */
    char *problem;      /* why the record cannot be used, or NULL */
} text_record;

typedef struct text_stream {
    const reading_options *options;
    const text_stream_names *names;
    text_list files;
    /* number of command-line texts that were read; index of the current file and its last line */
    size_t given, file_index, line;
    FILE *file;
    const char *path;
    bool json, form_known;
    /* state of the current file: labelled_text.c has read its first line, has noted quotation marks */
    bool columns_known, quotes_said, has_header, pair_named; /* pair_named: its header has a column of pairs */
    size_t texts, pairs, alone_line; /* of the current file: texts, those with a pair, line of the first without one */
    unused_keys unused;              /* of the current file */
    char *buffer;
    size_t buffer_bytes;
    uint64_t done_bytes;  /* bytes of the files read so far */
    uint64_t total_bytes; /* 0: unknown, because something is not a regular file */
    item_choice choice;
    size_t read;     /* items so far, including other shards' */
    uint64_t hash;   /* hash of all that the command reads of them */
    size_t problems; /* records with a problem, printed or counted */
} text_stream;

/* Opens the stream. It ends the program for usage errors (nothing given, a pair too many) and files that cannot be
 * opened. */
void text_stream_open(text_stream *stream, const reading_options *options, const text_stream_names *names);
/* Fills the record and sets *end to false, or sets it to true after the last. Items of other shards are skipped. The
 * caller frees the records. */
deberta_status text_stream_next(text_stream *stream, text_record *record, bool *end, deberta_error *err);
/* Counts a text of the current file and its pair, so that a file with both kinds of rows is noted. */
void text_stream_count(text_stream *stream, const text_record *record);
/* Skips this many items, or all that are left if there are fewer. */
deberta_status text_stream_skip(text_stream *stream, size_t items, deberta_error *err);
void text_stream_close(text_stream *stream);

void text_record_free(text_record *record);
/* Writes a place such as "corpus.txt, line 3" or "text 3". */
void text_record_place(const text_record *record, char place[256]);
/* Prints "deberta tag: corpus.txt, line 3: the text is empty" on stderr, for a record with a problem. Only the first
 * few are printed, since a file of the wrong kind has a problem in every line; the rest is counted. */
void text_stream_report(text_stream *stream, const text_record *record);
/* Prints how many problems were only counted, if any, after the last one. */
void text_stream_report_rest(const text_stream *stream);

/* Sets the record's problem unless it has one already. Returns 0, which is DEBERTA_OK as a status and false as a
 * bool. */
int text_record_spoil(text_record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TEXT_STREAM_FILE_OPTIONS                                                                                       \
    {"file", 'f', "FILE",                                                                                              \
     "one text a line, or objects (.jsonl); - is standard input, answered as its lines come; may "                     \
     "be repeated",                                                                                                    \
     TEXTS_AT(reading_options, files)},                                                                                \
    {                                                                                                                  \
        "jsonl", 0, NULL, "files hold one JSON object a line, whatever their names", FLAG_AT(reading_options, jsonl)   \
    }
