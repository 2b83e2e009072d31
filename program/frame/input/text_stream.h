/* Reads texts one after the other, from the command line and from files of any length, each with its place for
 * messages.
 *
 * A file holds one text a line ("\n" or "\r\n"; a last line without a line break counts; NUL is a character like
 * others), or one JSON object a line: core/io/text_lines.h decides by its name and its first line, or --jsonl. A line
 * that is no such object is a record with a problem, not the end. Keys of objects are judged by core/io/record_keys.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/record_keys.h"
#include "program/frame/input/item_choice.h"

/* --max-tokens: a number, or as many as the model was trained with, or as many as have unambiguous distances. */
typedef enum token_limit_kind { LIMIT_NONE, LIMIT_TOKENS, LIMIT_TRAINED, LIMIT_RECEPTIVE } token_limit_kind;
typedef struct token_limit {
    token_limit_kind kind;
    size_t tokens; /* of LIMIT_TOKENS */
} token_limit;
void token_limit_parse(common_options *options, const char *text, void *target);

/* First member of the options of commands that read texts or ids; each command has rows for the members that it
 * takes. */
typedef struct reading_options {
    common_options common;
    text_list texts, pairs, files, ids, tensors; /* tensors: --input */
    bool jsonl, strict;
    token_limit max_tokens;
    size_t batch_tokens; /* 0: the default */
    item_choice items;
} reading_options;

/* The struct of a command that begins so. */
static inline const reading_options *reading_of(const common_options *options)
{
    return (const reading_options *)options;
}

/* So many problems of lines, and notes of one kind, are named; the rest is counted. */
enum { MOST_REPORTED = 10 };

/* A command's names for a text and its second segment, as options and as keys of JSON objects. */
typedef struct text_stream_names {
    const char *text, *pair; /* text: NULL where lines and objects are the caller's to take apart */
    bool pair_required;      /* a record without a second segment has a problem; a line of a plain file never has one */
    bool share_pair;         /* one pair option serves every text */
    bool keeps_object;       /* the record of an object has all of it */
    bool file_arguments;     /* files are the arguments after MODEL, and there are no other texts */
    bool objects;            /* files hold objects, whatever their names */
    bool columns;            /* lines of plain files have labels and tabs, which the caller takes apart */
    const char *also[4];     /* keys of objects that the caller reads besides; NULL at the end */
} text_stream_names;

typedef struct text_record {
    char *text, *pair; /* pair: NULL for none. Both end in an extra NUL */
    size_t text_bytes, pair_bytes;
    const char *source; /* the file, or NULL for the command line; the stream's */
    size_t line;        /* from 1: of its file, or of the command line's texts */
    size_t index;       /* from 0: in the whole input, items of other shards counted */
    json_t *id;         /* what the JSON object holds under "id", or NULL */
    json_t *object;     /* NULL: not asked for, or no object */
    char *problem;      /* why this line cannot be used, or NULL */
} text_record;

typedef struct text_stream {
    const reading_options *options;
    const text_stream_names *names;
    text_list files;
    size_t given, file_index, line; /* texts of the command line that are done; the current file and its last line */
    FILE *file;
    const char *path;
    bool json, form_known;
    bool columns_known, quotes_said; /* of the current file: labelled_text.c has read a line, and said what it has */
    unused_keys unused;              /* of the current file */
    char *buffer;
    size_t buffer_bytes;
    uint64_t done_bytes;  /* of the files, read so far */
    uint64_t total_bytes; /* 0: not known, something is no regular file */
    item_choice choice;
    size_t read;     /* items so far, those of other shards too */
    uint64_t hash;   /* of their texts */
    size_t problems; /* of records, reported or counted */
} text_stream;

/* Usage errors (nothing given, a pair too many) and files that cannot be opened are found here. */
void text_stream_open(text_stream *stream, const reading_options *options, const text_stream_names *names);
/* Fills the record and sets *end to false, or sets it to true after the last. Items of other shards are passed over.
 * Records are the caller's, to be freed. */
deberta_status text_stream_next(text_stream *stream, text_record *record, bool *end, deberta_error *err);
/* Passes over this many items, or to the end if there are fewer. */
deberta_status text_stream_skip(text_stream *stream, size_t items, deberta_error *err);
void text_stream_close(text_stream *stream);

void text_record_free(text_record *record);
/* "corpus.txt, line 3" or "text 3". */
void text_record_place(const text_record *record, char place[256]);
/* Prints "deberta tag: corpus.txt, line 3: the text is empty" on stderr, for a record with a problem. A file of another
 * kind has one in every line: after the first few they are only counted. */
void text_stream_report(text_stream *stream, const text_record *record);
/* Says how many problems were only counted, if any, after the last one printed. */
void text_stream_report_rest(const text_stream *stream);

/* Says why the record cannot be used; the first reason stays. Returns 0: to those who have a status for other faults it
 * is DEBERTA_OK, to those who have none false. */
int text_record_spoil(text_record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TEXT_STREAM_FILE_OPTIONS                                                                                       \
    {"file", 'f', "FILE", "one text a line, or objects (.jsonl); - is standard input; may be repeated",                \
     TEXTS_AT(reading_options, files)},                                                                                \
    {                                                                                                                  \
        "jsonl", 0, NULL, "files hold one JSON object a line, whatever their names", FLAG_AT(reading_options, jsonl)   \
    }
