/* What every kind of attention figure shares: the model and its input, which layers, heads, components and tokens are
 * looked at, how the figure looks, what is told in it and beside it, and writing it all.
 *
 * cmd_attention opens a job and hands it to the kind's run function. That encodes, computes, describes a figure and its
 * numbers, and ends with figure_job_finish. Functions that return int have said what was wrong; the number is the exit
 * code. Memory from figure_job_allocate and matrices from figure_job_matrix live as long as the job, so that a kind has
 * nothing to clean up but sessions, models and captures of its own.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_JOB_H
#define CLI_FIGURES_FIGURE_JOB_H

#include "cli/figures/figure_data.h"
#include "cli/figures/token_view.h"
#include "command/run.h"
#include "analysis/capture.h"
#include "viz/attention_figure.h"

enum { FIGURE_MOST_PATHS = 16, FIGURE_MOST_PROVENANCE = 16 };

struct figure_kind;

/* Heat maps: from --scale, --palette, --signed-palette, --center, --annotate, --letters, --layout, --log, --mark. */
typedef struct heatmap_look {
    heatmap_choice scales[HEATMAP_KINDS];
    const char *palettes[HEATMAP_KINDS];
    bool keep_row_mean, annotate, letters, logarithmic;
    size_t columns;
} heatmap_look;

typedef struct figure_job {
    const parsed_options *options;
    const struct figure_kind *kind;

    deberta_model *model;
    deberta_model_info info;
    input_batch input;
    size_t row; /* of the input, as --row says: the text that is drawn, where a kind draws one */
    token_view_choice view_choice;
    token_view view; /* of that row */

    size_t *layers, layer_count, *heads, head_count; /* chosen, ascending */
    bool components[DEBERTA_COMPONENT_COUNT];        /* chosen and there */
    deberta_session *session;                        /* of the model, from figure_job_encode */
    capture capture;                                 /* of the row, from figure_job_encode */
    size_t model_bytes, session_bytes;               /* of all that are open */

    figure_style style; /* title, width, type, provenance, and the note: figure_job_note adds to it */
    heatmap_look look;
    attention_mark *marks; /* [mark_count] cells of the view */
    size_t mark_count;
    char unit[32]; /* of components: "logit / sqrt(3d)" */

    figure_data data;    /* what --data writes: the kind adds to it */
    const char *caption; /* of --latex; figure_job_caption adds to it */
    provenance_entry provenance[FIGURE_MOST_PROVENANCE];
    const char *paths[FIGURE_MOST_PATHS]; /* --out */
    size_t path_count;

    void **memory; /* figure_job_allocate */
    size_t memory_count, memory_capacity;
} figure_job;

/* Checks every option, opens the model, reads the input, makes the view and the selection. */
int figure_job_open(figure_job *job, const parsed_options *options, const struct figure_kind *kind);
void figure_job_close(figure_job *job);

/* ----------------------------------------------------------------------------------------------------- computing */

/* Encodes job->row with the model into job->capture. */
int figure_job_encode(figure_job *job);

/* The parts of that, for kinds that encode several texts, use a second model or observe by themselves. */
int figure_job_open_model(figure_job *job, const char *path, deberta_model **model, deberta_model_info *info);
/* A session with the common options for any one row of the input. features: DEBERTA_OBSERVE_*. */
int figure_job_open_session(figure_job *job, const deberta_model *model, unsigned features, deberta_session **session);
/* A capture of the job's selection for the view's text, allocated. The info must stay as long as the capture. */
int figure_job_open_capture(figure_job *job, const deberta_model_info *info, const token_view *view, capture *capture);
/* Encodes one row alone. */
int figure_job_observe(figure_job *job, deberta_session *session, size_t row, const deberta_observer *observer);

/* One captured matrix in the shape of the view, [count][count]; NULL where the model lacks the component. */
int figure_job_matrix(figure_job *job, const capture *capture, const token_view *view, size_t layer, size_t head,
                      deberta_component component, const float **matrix);

/* A matrix [n][n] that was computed for the view's whole text, in the shape of the view. It is the same where every
 * token is shown. */
int figure_job_view_matrix(figure_job *job, const token_view *view, const float *whole, token_view_rule rule,
                           const float **matrix);

/* Zero-filled memory that lives as long as the job; NULL without saying so when there is none. */
void *figure_job_allocate(figure_job *job, size_t count, size_t bytes_each);
/* A text in such memory. */
const char *figure_job_text(figure_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
int figure_job_out_of_memory(const figure_job *job);
/* Reports an error; of an option's value (DEBERTA_E_ARGUMENT) as wrong usage. */
int figure_job_fail(const figure_job *job, const deberta_error *error);

/* ------------------------------------------------------------------------------------------------------- drawing */

/* "content to content": the title of a panel. */
const char *component_title(deberta_component component);
/* Kind of its values: signed for components and logits, positive (or, with --log, logarithmic) for probabilities. */
heatmap_kind figure_job_kind_of(const figure_job *job, deberta_component component);
/* A figure with everything but the panels: style, look, labels, numbers, boundary and marks of the view, units. */
attention_figure figure_job_attention(const figure_job *job);
/* A matrix of the view for --data, with the view's labels and numbers. */
int figure_job_add_matrix(figure_job *job, const char *name, size_t layer, size_t head, const float *values);

/* A sentence under the figure, ending in a space; in time, that is before the style is copied into a figure. */
void figure_job_note(figure_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The sentence that begins the caption of --latex: what the figure shows. Model, text, layers, heads follow. */
void figure_job_caption(figure_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds unit and centring of signed panels to it. */
void figure_job_caption_unit(figure_job *job);

/* False after saying which limits of --scale no panel takes: no such kind is drawn, or it cannot be. scales: those of
 * the figure. figure_job_finish asks for attention_layout; kinds with another layout ask themselves. */
bool figure_job_takes_limits(const figure_job *job, const heatmap_choice scales[HEATMAP_KINDS],
                             const bool drawn[HEATMAP_KINDS]);

/* Writes figure, data and LaTeX file, all or none, and says on stderr what the reader of the figure cannot see. */
int figure_job_finish(figure_job *job, figure_layout layout, const void *figure);

#endif
