/* Opens the float64 reference and gives it the hidden states of the encoder. SPDX-License-Identifier: MIT */
#include "program/attention/figure_reference.h"

#include "program/frame/options.h"

reference_model *figure_reference_open(const figure_source *source)
{
    const common_options *options = source->options;
    reference_model *reference = NULL;
    deberta_error error = {0};
    must(options, reference_open(&reference, options->arguments[0], (deberta_reference)options->reference, &error),
         &error);
    return reference;
}

static int64_t *widen(const figure_source *source, const int32_t *values)
{
    if (!values) return NULL;
    const size_t count = source->view.span[1];
    int64_t *wide = options_take(source->options, count, sizeof *wide);
    for (size_t t = 0; t < count; t++) wide[t] = values[source->view.first_token + t];
    return wide;
}

reference_input figure_reference_input(const figure_source *source)
{
    const input_batch *batch = &source->input;
    return (reference_input){.tokens = source->view.span[1],
                             .mask = source_text_mask(source),
                             .ids = widen(source, batch->ids),
                             .token_types = widen(source, batch->token_types),
                             .position_ids = widen(source, batch->position_ids)};
}

double *figure_hidden(const figure_source *source, size_t layer)
{
    const size_t cells = source->view.span[1] * source->info.hidden_size;
    double *hidden = options_take(source->options, cells, sizeof *hidden);
    for (size_t k = 0; k < cells; k++) hidden[k] = (double)source->capture.hidden_states[layer][k];
    return hidden;
}

const float *figure_view_rows(const figure_source *source, const double *rows, size_t columns)
{
    const token_view *view = &source->view;
    float *out = options_take(source->options, view->count * columns, sizeof *out);
    for (size_t k = 0; k < view->count; k++)
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;
            for (size_t m = view->starts[k]; m < view->starts[k + 1]; m++) sum += rows[view->members[m] * columns + c];
            out[k * columns + c] = (float)(sum / (double)(view->starts[k + 1] - view->starts[k]));
        }
    return out;
}
