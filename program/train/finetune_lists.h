/* Holds examples and labels while files are read. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "program/frame/input/label_numbers.h"
#include "program/frame/input/text_stream.h"

/* Names of labels, from the model, the command line or the data. */
enum { NO_LABEL = -100 }; /* the same value as in deberta_example */

typedef struct label_list {
    const common_options *options; /* owner of the memory */
    const char **names;            /* [count]; NULL: a label without a name */
    size_t count, capacity;
    size_t lines;               /* lines whose label came from a column; objects name the label themselves */
    bool collects;              /* true: a new name is added */
    bool of_model;              /* true: the labels are the model's */
    label_numbers numbers;      /* names or numbers, of labels that are known already */
    size_t *slots;              /* hash table of label number + 1, or 0; NULL until the first search */
    size_t slot_count, indexed; /* slots of the table; labels before `indexed` are in it */
} label_list;

/* Finds the label's number, which is new where names are collected; elsewhere a code that label_list_settle gives a
 * meaning at the end of the file. Returns false after a problem of the record. */
bool label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record);
/* Ends a file: returns the label of each code that it has given, or NULL if they are labels already. */
const size_t *label_list_settle(label_list *labels);
/* Returns the first label with that name, or SIZE_MAX. */
size_t label_list_number(label_list *labels, const char *name);
/* Refuses labels that are nearly all different, which means columns in the wrong order or a file of another task. */
deberta_status label_list_check(const label_list *labels, deberta_training_task task, deberta_error *err);
/* Returns true if every label is a number or a missing value, and one is a fraction: such labels are often values. */
bool label_list_has_fractions(const label_list *labels);
/* Notes labels that differ only in capitals, or that look like several. */
void label_list_note(const label_list *labels, deberta_training_task task);
/* Sorts names in ascending order; returns the new number of each label. */
size_t *label_list_sort(label_list *labels);

/* Position of a window in its context, by which answers of several windows are compared. */
typedef struct answer_window {
    size_t question;             /* number of the question in its file */
    size_t first, count, offset; /* tokens of the context in this window, and number of context tokens before them */
    size_t answer, answer_end;   /* answer in tokens of the context, inclusive; SIZE_MAX: there is none */
} answer_window;

typedef struct example_list {
    const common_options *options; /* owner of the memory */
    deberta_example *items;
    answer_window *windows; /* [count] windows of questions about a context, else NULL */
    size_t count, capacity, window_capacity;
    size_t choices, questions;
} example_list;

typedef struct finetune_reader {
    const common_options *options;
    const char *model; /* folder of the model */
    deberta_training_task task;
    deberta_tokenizer *tokenizer;
    deberta_tokens *tokens; /* tokens of the current text */
    label_list labels;
    bool regression;
    size_t most_tokens; /* longest sequence; longer ones are refused, or cut */
    bool cuts;
    size_t texts, cut_texts; /* of the files of one option: tokenized texts, and those that were cut */
    size_t document_marks;   /* number of skipped lines with -DOCSTART- */
} finetune_reader;

/* Appends a copy of an example. */
void example_list_add(example_list *list, const deberta_example *example);
/* Replaces each label of the examples from `first` on by places[label]. */
void example_list_renumber(example_list *list, size_t first, const size_t *places);

/* Returns an error "FILE, line N: ..." if the record has a problem. */
deberta_status reader_problem(const text_record *record, deberta_error *err);
/* Tokenizes the text and its pair (NULL: none) into reader->tokens; more than most_tokens become a problem, and it
 * returns false. */
bool reader_tokenize(finetune_reader *reader, text_record *record, const char *pair, size_t pair_bytes);

/* Each function reads one file. */
deberta_status finetune_read_texts(finetune_reader *reader, text_stream *stream, example_list *list,
                                   deberta_error *err);
deberta_status finetune_read_choices(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);
deberta_status finetune_read_tags(finetune_reader *reader, text_stream *stream, example_list *list, deberta_error *err);
deberta_status finetune_read_answers(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);
