/* Holds the source of a figure: the model, its input and the shown part of it, the session, and the captures of its
 * encode.
 *
 * Matrices live as long as the options.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/capture.h"
#include "program/attention/attention_options.h"

typedef struct figure_source {
    const attention_options *asked;
    const common_options *options; /* options of the command */
    deberta_model *model;
    deberta_model_info info;
    input_batch input;
    token_view view; /* view of the row that --row names */

    size_t *layers, layer_count, *heads, head_count; /* chosen indices, ascending */
    bool components[DEBERTA_COMPONENT_COUNT];        /* true: chosen, and the model has it */
    bool hidden;                                     /* true: hidden states are captured too */
    /* true: never merged into words, as two texts may have different numbers of words */
    bool keeps_pieces;
    char digest[65];  /* digest of the model, once it was needed */
    const char *unit; /* unit of components: "logit (scaled by 1/√(3d))" */

    deberta_session *session;          /* session of source_encode */
    capture capture;                   /* capture of source_encode */
    size_t model_bytes, session_bytes; /* bytes of all open models and sessions */
} figure_source;

/* Opens the model, reads the input, and applies the selection. all_rows: the figure shows more of the input than
 * --row. */
void source_open(figure_source *source, const attention_options *asked, bool all_rows);
/* Notes which row is drawn if there are several and none was asked for. */
void source_note_row(const figure_source *source);
void source_close(figure_source *source);
/* Resets the source to its state before encoding, with the tokens that `asked` shows. */
void source_restart(figure_source *source, const attention_options *asked);

/* Encodes the row into source->capture. */
void source_encode(figure_source *source);

/* Opens a model, for figures of several texts or models. options: the source's, or a copy with other ablations. */
deberta_model *source_open_model(figure_source *source, const common_options *options, const char *path,
                                 deberta_model_info *info);
/* Opens a session for any one row of the input. features: DEBERTA_OBSERVE_*. */
deberta_session *source_open_session(figure_source *source, const common_options *options, const deberta_model *model,
                                     unsigned features);
/* Allocates a capture of the selection for the view's text. `info` must live as long as the capture. */
void source_open_capture(figure_source *source, const deberta_model_info *info, const token_view *view,
                         capture *capture);
/* Encodes one row alone into a capture. */
void source_observe(figure_source *source, deberta_session *session, size_t row, const deberta_observer *observer);

/* Returns one captured matrix in the shape of the view, [count][count]; NULL if the model lacks the component. */
const float *source_matrix(const figure_source *source, size_t layer, size_t head, deberta_component component);
const float *source_matrix_of(const figure_source *source, const capture *capture, const token_view *view, size_t layer,
                              size_t head, deberta_component component);
/* Returns a matrix [n][n], computed for the view's whole text, in the shape of the view. */
const float *source_shown(const figure_source *source, const token_view *view, const float *whole,
                          token_view_rule rule);

/* Number of chosen heads of all layers; index k means layer k / head_count and head k % head_count of the choice. */
size_t source_heads(const figure_source *source);
size_t source_layer(const figure_source *source, size_t index);
size_t source_head(const figure_source *source, size_t index);
/* Returns a title such as "layer 2, head 0". */
const char *source_head_title(const figure_source *source, size_t index);

/* Returns the mask of the view's tokens that are queries and keys; NULL: all of them. */
const unsigned char *source_mask(const figure_source *source);
/* Returns the mask of the whole text. */
const unsigned char *source_text_mask(const figure_source *source);
/* Returns the positions of the view's rows; NULL: 0, 1, 2 ..., as for words. */
const size_t *source_positions(const figure_source *source);
/* Returns the row of the view that --query names; 0 without the option. */
size_t source_query(const figure_source *source);
/* Ends the program as `must` does, but reports an error of an option's value (DEBERTA_E_ARGUMENT) as wrong usage. */
void source_must(const figure_source *source, deberta_status status, const deberta_error *error);
/* Returns the name of the chosen kind: "lines". */
const char *figure_name(const figure_source *source);
