/* Holds examples and labels while files are read. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "program/frame/input/text_stream.h"

/* Names of labels: those of the model or of the command line, or whatever the data has. */
enum { NO_LABEL = -100 }; /* as deberta_example has it */

typedef struct label_list {
    const common_options *options; /* whose memory all of this is */
    const char **names;            /* [count]; NULL: a label without a name */
    size_t count, capacity;
    size_t lines;               /* of columns that a label was taken from; objects say themselves what is the label */
    bool collects;              /* a new name is added */
    bool of_model;              /* they came with it */
    size_t *slots;              /* a hash table: number of the label + 1, or 0; NULL until something is looked up */
    size_t slot_count, indexed; /* labels before `indexed` are in it */
} label_list;

/* The label's number; a name that no label has is added, or becomes the record's problem: false. */
bool label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record);
/* The first label with that name, or SIZE_MAX. */
size_t label_list_number(label_list *labels, const char *name);
/* Refuses labels that are nearly all different: columns in the wrong order, or a file of another task. */
deberta_status label_list_check(const label_list *labels, deberta_training_task task, deberta_error *err);
/* Names in ascending order; returns of each label its new number. */
size_t *label_list_sort(label_list *labels);

/* Data of a window of a context by which answers of several windows are compared. */
typedef struct answer_window {
    size_t question;             /* number in its file */
    size_t first, count, offset; /* tokens of the context in this window; of the whole context before them */
    size_t answer, answer_end;   /* of the question, in tokens of the context, inclusive; SIZE_MAX: it has none */
} answer_window;

typedef struct example_list {
    const common_options *options; /* whose memory all of this is */
    deberta_example *items;
    answer_window *windows; /* [count]: of questions about a context, else NULL */
    size_t count, capacity, window_capacity;
    size_t choices, questions;
} example_list;

typedef struct finetune_reader {
    const common_options *options;
    const char *model; /* its folder */
    deberta_training_task task;
    deberta_tokenizer *tokenizer;
    deberta_tokens *tokens; /* of the text at hand */
    label_list labels;
    bool regression;
    size_t most_tokens; /* of a sequence; longer ones are refused, or cut */
    bool cuts;
    size_t document_marks; /* lines of -DOCSTART- passed over */
} finetune_reader;

/* Appends a copy. */
void example_list_add(example_list *list, const deberta_example *example);
/* Labels become places[label]. */
void example_list_renumber(example_list *list, const size_t *places);

/* "FILE, line N: ..." as an error, if the record has a problem. */
deberta_status reader_problem(const text_record *record, deberta_error *err);
/* reader->tokens of the text and its pair (NULL: none), at most most_tokens; a longer one becomes a problem: false. */
bool reader_tokenize(finetune_reader *reader, text_record *record, const char *pair, size_t pair_bytes);

/* Each reads one file. */
deberta_status finetune_read_texts(finetune_reader *reader, text_stream *stream, example_list *list,
                                   deberta_error *err);
deberta_status finetune_read_choices(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);
deberta_status finetune_read_tags(finetune_reader *reader, text_stream *stream, example_list *list, deberta_error *err);
deberta_status finetune_read_answers(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);
