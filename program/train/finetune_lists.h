/* Examples while files are read. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_FINETUNE_LISTS_H
#define PROGRAM_TRAIN_FINETUNE_LISTS_H

#include "program/train/label_list.h"
#include "program/frame/input/text_stream.h"
#include "include/deberta_training.h"

/* What a window of a context needs so that answers of several windows can be compared. */
typedef struct answer_window {
    size_t question;             /* number in its file */
    size_t first, count, offset; /* tokens of the context in this window; of the whole context before them */
    size_t answer, answer_end;   /* of the question, in tokens of the context, inclusive; SIZE_MAX: it has none */
} answer_window;

typedef struct example_list {
    deberta_example *items; /* arrays are the list's */
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
} finetune_reader;

/* Appends a copy; *added: the list's own, valid until the next. */
void example_list_add(example_list *list, const deberta_example *example, deberta_example **added);
void example_list_free(example_list *list);
/* Labels become places[label]. */
void example_list_renumber(example_list *list, const size_t *places);

/* "FILE, line N: ..." as an error, if the record has a problem. */
deberta_status reader_problem(const text_record *record, deberta_error *err);
/* reader->tokens of the text and its pair (NULL: none), at most most_tokens; a longer one becomes a problem. */
deberta_status reader_tokenize(finetune_reader *reader, text_record *record, const char *pair, size_t pair_bytes);

/* Each reads one file. */
deberta_status finetune_read_texts(finetune_reader *reader, text_stream *stream, example_list *list,
                                   deberta_error *err);
deberta_status finetune_read_choices(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);
deberta_status finetune_read_tags(finetune_reader *reader, text_stream *stream, example_list *list, deberta_error *err);
deberta_status finetune_read_answers(finetune_reader *reader, text_stream *stream, example_list *list,
                                     deberta_error *err);

#endif
