/* Opens model, input, selection and session of a figure, and brings matrices into the shape of the view.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"

const char *figure_name(const figure_source *source)
{
    const char *space = strchr(source->options->command->name, ' ');
    return space ? space + 1 : "components"; /* second word of the command's name */
}

void source_must(const figure_source *source, deberta_status status, const deberta_error *error)
{
    if (status == DEBERTA_E_ARGUMENT) usage_wrong(source->options, "%s", error->message);
    must(source->options, status, error);
}

/* ----------------------------------------------------------------------------------------------------- selection */

/* Chooses the components to show; the model must have at least one of them. */
static void choose_components(figure_source *source)
{
    const attention_options *asked = source->asked;
    bool any = asked->components == 0; /* true: the kind captures no components */
    char list[COMPONENT_LIST_BYTES];
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        source->components[c] = asked->components >> c & 1 && component_is_in(c, &source->info);
        any |= source->components[c];
    }
    if (any) return;
    component_list(asked->components, list);
    if (option_given(source->options, &asked->components))
        option_wrong(source->options, &asked->components, "this model has no %s", list);
    usage_wrong(source->options, "this figure shows %s, of which the model has none", list);
}

/* Returns the chosen indices, ascending. */
static size_t *choose_indices(const figure_source *source, const char *const *member, size_t limit, size_t *count)
{
    bool *flags = options_take(source->options, limit + 1, sizeof *flags);
    size_t *chosen = options_take(source->options, limit, sizeof *chosen);
    parse_index_list(source->options, member, flags, limit);
    for (size_t k = 0; k < limit; k++)
        if (flags[k]) chosen[(*count)++] = k;
    return chosen;
}

/* Chooses the first ablated layer or head if the options choose none; otherwise nothing would seem ablated. */
static void prefer_ablated(const figure_source *source, const void *member, size_t ablated, size_t *chosen,
                           size_t count)
{
    if (count == 1 && ablated != DEBERTA_EVERY && !option_given(source->options, member)) chosen[0] = ablated;
}

static void figure_source_choose(figure_source *source)
{
    const attention_options *asked = source->asked;
    const int terms = 1 + source->info.has_c2p + source->info.has_p2c;
    source->layers = choose_indices(source, &asked->layers, source->info.layers, &source->layer_count);
    source->heads = choose_indices(source, &asked->heads, source->info.heads, &source->head_count);
    if (source->options->ablated.count > 0) {
        const deberta_ablation *first = &source->options->ablated.items[0];
        prefer_ablated(source, &asked->layers, first->layer, source->layers, source->layer_count);
        prefer_ablated(source, &asked->heads, first->head, source->heads, source->head_count);
    }
    source->unit =
        terms > 1 ? options_text(source->options, "logit (scaled by 1/√(%dd))", terms) : "logit (scaled by 1/√d)";
    choose_components(source);
}

/* -------------------------------------------------------------------------------------------------------- opening */

void source_note_row(const figure_source *source)
{
    if (source->input.rows > 1 && !option_given(source->options, &source->asked->row))
        say_note(source->options, "note: row 0 of %zu is drawn; --row N draws another", source->input.rows);
}

void source_open(figure_source *source, const attention_options *asked, bool all_rows)
{
    const common_options *options = &asked->reading.common;
    deberta_error error = {0};
    *source = (figure_source){.asked = asked, .options = options};
    source->model = source_open_model(source, options, options->arguments[0], &source->info);
    input_read(&asked->reading, options->arguments[0], &source->info, &source->input);
    if (!all_rows) source_note_row(source);
    source_must(source, token_view_make(&source->view, &source->input, asked->row, &asked->shown, &error), &error);
    figure_source_choose(source);
}

void source_restart(figure_source *source, const attention_options *asked)
{
    deberta_error error = {0};
    capture_free(&source->capture);
    deberta_session_free(&source->session);
    token_view_free(&source->view);
    source->model_bytes = source->info.memory_bytes;
    source->session_bytes = 0;
    source->asked = asked;
    source->options = &asked->reading.common;
    source_must(source, token_view_make(&source->view, &source->input, asked->row, &asked->shown, &error), &error);
    choose_components(source);
}

void source_close(figure_source *source)
{
    capture_free(&source->capture);
    deberta_session_free(&source->session);
    token_view_free(&source->view);
    input_free(&source->input);
    deberta_model_free(&source->model);
}

deberta_model *source_open_model(figure_source *source, const common_options *options, const char *path,
                                 deberta_model_info *info)
{
    deberta_model *model = open_model_at(options, path);
    *info = *deberta_model_describe(model);
    source->model_bytes += info->memory_bytes;
    return model;
}

deberta_session *source_open_session(figure_source *source, const common_options *options, const deberta_model *model,
                                     unsigned features)
{
    deberta_session_options session_options;
    deberta_session *session;
    deberta_error error = {0};
    fill_session_options(options, &session_options);
    session_options.features = features;
    session_options.max_tokens = 1;
    for (size_t r = 0; r < source->input.rows; r++)
        session_options.max_tokens = maximum(session_options.max_tokens, source->input.row[r].tokens);
    memory_need need = {.model_bytes = source->model_bytes};
    must(source->options, deberta_session_predict_bytes(&need.session_bytes, model, &session_options, &error), &error);
    need.session_bytes += source->session_bytes;
    source->session_bytes = need.session_bytes;
    must(source->options, memory_need_check(&need, session_options.memory_limit_bytes, &error), &error);
    must(source->options, deberta_session_create(&session, model, &session_options, &error), &error);
    return session;
}

/* Selects everything chosen from a model, which may have fewer layers and heads than the one it was chosen for. */
static void select_wanted(const figure_source *source, const deberta_model_info *info, capture *capture)
{
    for (size_t k = 0; k < source->layer_count; k++) {
        if (source->layers[k] >= info->layers)
            usage_wrong(source->options, "--layers: %s has no layer %zu", info->name, source->layers[k]);
        for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (source->components[c]) capture_want(capture, source->layers[k], c);
    }
    for (size_t k = 0; k < source->head_count; k++) {
        if (source->heads[k] >= info->heads)
            usage_wrong(source->options, "--heads: %s has no head %zu", info->name, source->heads[k]);
        capture->heads[source->heads[k]] = true;
    }
    capture->hidden = source->hidden;
}

void source_open_capture(figure_source *source, const deberta_model_info *info, const token_view *view,
                         capture *capture)
{
    deberta_error error = {0};
    capture_create(capture, info, view->span, 1);
    select_wanted(source, info, capture);
    size_t kept_bytes = capture_bytes(capture);
    if (capture != &source->capture && source->capture.model &&
        !size_add(kept_bytes, capture_bytes(&source->capture), &kept_bytes))
        kept_bytes = SIZE_MAX;
    const memory_need need = {source->model_bytes, source->session_bytes, kept_bytes};
    must(source->options, memory_need_check(&need, source->options->memory_limit_bytes, &error), &error);
    must(source->options, capture_allocate(capture, &error), &error);
}

/* ------------------------------------------------------------------------------------------------------- encoding */

void source_observe(figure_source *source, deberta_session *session, size_t row, const deberta_observer *observer)
{
    const input_batch *input = &source->input;
    if (input->row[row].tokens == 0) usage_wrong(source->options, "the input has no real tokens in row %zu", row);
    const size_t first = input->sequence_starts[input->row[row].sequence], starts[2] = {0, input->row[row].tokens};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = input->ids + first,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .token_types = input->token_types ? input->token_types + first : NULL,
                                 .position_ids = input->position_ids ? input->position_ids + first : NULL,
                                 .mask = input->mask ? input->mask + first : NULL,
                                 .observer = observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_error error = {0};
    must(source->options, deberta_encode(session, &batch, &outputs, &error), &error);
}

void source_encode(figure_source *source)
{
    const unsigned features = DEBERTA_OBSERVE_ATTENTION | (source->hidden ? DEBERTA_OBSERVE_HIDDEN : 0);
    source->session = source_open_session(source, source->options, source->model, features);
    source_open_capture(source, &source->info, &source->view, &source->capture);
    const deberta_observer observer = capture_observer(&source->capture);
    source_observe(source, source->session, source->view.row, &observer);
}

/* ------------------------------------------------------------------------------------------------------- matrices */

const float *source_shown(const figure_source *source, const token_view *view, const float *whole, token_view_rule rule)
{
    if (view->whole || !whole) return whole;
    float *shown = options_take(source->options, view->count * view->count, sizeof *shown);
    token_view_matrix(view, whole, rule, shown);
    return shown;
}

const float *source_matrix_of(const figure_source *source, const capture *capture, const token_view *view, size_t layer,
                              size_t head, deberta_component component)
{
    return source_shown(source, view, capture_matrix(capture, layer, head, component, 0),
                        token_view_rule_of(component));
}

const float *source_matrix(const figure_source *source, size_t layer, size_t head, deberta_component component)
{
    return source_matrix_of(source, &source->capture, &source->view, layer, head, component);
}

size_t source_heads(const figure_source *source) { return source->layer_count * source->head_count; }

size_t source_layer(const figure_source *source, size_t index) { return source->layers[index / source->head_count]; }

size_t source_head(const figure_source *source, size_t index) { return source->heads[index % source->head_count]; }

const char *source_head_title(const figure_source *source, size_t index)
{
    return options_text(source->options, "layer %zu, head %zu", source_layer(source, index),
                        source_head(source, index));
}

const unsigned char *source_text_mask(const figure_source *source)
{
    return source->input.mask ? source->input.mask + source->view.first_token : NULL;
}

const unsigned char *source_mask(const figure_source *source)
{
    const token_view *view = &source->view;
    const unsigned char *whole = source_text_mask(source);
    if (!whole || view->whole) return whole;
    unsigned char *kept = options_take(source->options, view->count, sizeof *kept);
    for (size_t k = 0; k < view->count; k++) /* inputs with masks are ids, so a row of the view is one token */
        kept[k] = whole[view->members[view->starts[k]]];
    return kept;
}

const size_t *source_positions(const figure_source *source)
{
    return source->asked->shown.words ? NULL : token_view_numbers(&source->view);
}

/* Returns the row of the view with this name, which must be unique. */
static size_t query_of_word(const figure_source *source, const char *word)
{
    const token_view *view = &source->view;
    const void *member = &source->asked->query;
    const bool merged = source->asked->shown.words;
    size_t found = 0, places[2] = {0};
    for (size_t k = 0; k < view->count; k++)
        if (strcmp(view->names[k].text, word) == 0 && found++ < 2) places[found - 1] = k;
    if (found == 0)
        option_wrong(source->options, member, "no %s that is shown is '%s'%s", merged ? "word" : "token", word,
                     merged ? "" : "; --words merges pieces into words");
    if (found > 1)
        option_wrong(source->options, member, "'%s' is shown %zu times: --query %zu is the first, %zu the next", word,
                     found, view->tokens[places[0]], view->tokens[places[1]]);
    return places[0];
}

size_t source_query(const figure_source *source)
{
    const char *text = source->asked->query;
    if (!text) return 0;
    if (!*text || text[strspn(text, "0123456789")]) return query_of_word(source, text);
    errno = 0;
    const unsigned long long token = strtoull(text, NULL, 10);
    const size_t query = errno ? SIZE_MAX : token_view_place(&source->view, token);
    if (query == SIZE_MAX)
        option_wrong(source->options, &source->asked->query, "token %s is not shown, the text has %zu, counted from 0",
                     text, source->view.span[1]);
    return query;
}
