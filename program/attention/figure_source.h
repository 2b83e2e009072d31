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
    const common_options *options; /* of the same */
    deberta_model *model;
    deberta_model_info info;
    input_batch input;
    token_view view; /* of the row that --row names */

    size_t *layers, layer_count, *heads, head_count; /* chosen, ascending */
    bool components[DEBERTA_COMPONENT_COUNT];        /* chosen, and the model has them */
    bool hidden;                                     /* hidden states are captured too */
    bool keeps_pieces;                               /* words would not do: those of two texts are not as many */
    char digest[65];                                 /* of the model, once it was needed */
    const char *unit;                                /* of components: "logit (scaled by 1/√(3d))" */

    deberta_session *session;          /* from source_encode */
    capture capture;                   /* of the row, from source_encode */
    size_t model_bytes, session_bytes; /* of all that are open */
} figure_source;

/* Opens the model, reads the input, chooses. all_rows: the figure shows more of the input than --row. */
void source_open(figure_source *source, const attention_options *asked, bool all_rows);
void source_close(figure_source *source);
/* Back to before anything was encoded, with the tokens that `asked` shows. */
void source_restart(figure_source *source, const attention_options *asked);

/* Encodes the row into source->capture. */
void source_encode(figure_source *source);

/* The parts of that, for figures of several texts or models. options: the source's, or a copy with other ablations. */
deberta_model *source_open_model(figure_source *source, const common_options *options, const char *path,
                                 deberta_model_info *info);
/* A session for any one row of the input. features: DEBERTA_OBSERVE_*. */
deberta_session *source_open_session(figure_source *source, const common_options *options, const deberta_model *model,
                                     unsigned features);
/* A capture of the selection for the view's text, allocated. The info must stay as long as the capture. */
void source_open_capture(figure_source *source, const deberta_model_info *info, const token_view *view,
                         capture *capture);
/* Encodes one row alone. */
void source_observe(figure_source *source, deberta_session *session, size_t row, const deberta_observer *observer);

/* Returns one captured matrix in the shape of the view, [count][count]; NULL if the model lacks the component. */
const float *source_matrix(const figure_source *source, size_t layer, size_t head, deberta_component component);
const float *source_matrix_of(const figure_source *source, const capture *capture, const token_view *view, size_t layer,
                              size_t head, deberta_component component);
/* A matrix [n][n] that was computed for the view's whole text, in the shape of the view. */
const float *source_shown(const figure_source *source, const token_view *view, const float *whole,
                          token_view_rule rule);

/* Index k of the chosen heads, layer by layer: layer k / head_count, head k % head_count of the choice. */
size_t source_heads(const figure_source *source);
size_t source_layer(const figure_source *source, size_t index);
size_t source_head(const figure_source *source, size_t index);
/* "layer 2, head 0" */
const char *source_head_title(const figure_source *source, size_t index);

/* Mask of the view's tokens that are queries and keys; NULL: all of them. */
const unsigned char *source_mask(const figure_source *source);
/* The mask of the whole text. */
const unsigned char *source_text_mask(const figure_source *source);
/* Positions of the view's rows; NULL: 0, 1, 2 ..., as for words. */
const size_t *source_positions(const figure_source *source);
/* The row of the view that --query names; 0 without the option. */
size_t source_query(const figure_source *source);
/* Ends the program as `must` does, but an error of an option's value (DEBERTA_E_ARGUMENT) is wrong usage. */
void source_must(const figure_source *source, deberta_status status, const deberta_error *error);
/* The kind that was asked for: "lines". */
const char *figure_name(const figure_source *source);
