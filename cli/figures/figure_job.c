/* Opening a job and encoding; figure_options.c reads how it looks, figure_output.c writes it.
 * SPDX-License-Identifier: MIT */
#include "cli/figures/figure_job.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_options.h"
#include "core/base/grow.h"
#include "core/base/memory_need.h"

/* -------------------------------------------------------------------------------------------------------- memory */

/* Takes over one block; NULL (freed) when it cannot be remembered. */
static void *remember(figure_job *job, void *block)
{
    if (!block) return NULL;
    void **memory = grown(job->memory, &job->memory_capacity, job->memory_count + 1, sizeof *memory);
    if (!memory) {
        free(block);
        return NULL;
    }
    job->memory = memory;
    return job->memory[job->memory_count++] = block;
}

void *figure_job_allocate(figure_job *job, size_t count, size_t bytes_each)
{
    return remember(job, calloc(count ? count : 1, bytes_each));
}

const char *figure_job_text(figure_job *job, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    return remember(job, text);
}

int figure_job_out_of_memory(const figure_job *job) { return say_no_memory(job->options); }

int figure_job_fail(const figure_job *job, const deberta_error *error)
{
    return error->code == DEBERTA_E_ARGUMENT ? say_usage(job->options, "%s", error->message)
                                             : say_error(job->options, error);
}

/* ----------------------------------------------------------------------------------------------------- selection */

/* "c2c,probs". Of what is named at least one must be there. */
static bool choose_components(figure_job *job, const char *list)
{
    bool any = false;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        int found = -1;
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (strlen(deberta_component_name((deberta_component)c)) == length &&
                strncmp(at, deberta_component_name((deberta_component)c), length) == 0)
                found = c;
        if (found < 0) {
            say_usage(job->options, "--components: expected some of c2c,c2p,p2c,logits,probs, found '%.*s'",
                      (int)length, at);
            return false;
        }
        job->components[found] = component_is_in((deberta_component)found, &job->info);
        any |= job->components[found];
    }
    if (!any && options_has(job->options, "components"))
        say_usage(job->options, "--components: this model has no %s", list);
    else if (!any)
        say_usage(job->options, "--figure %s shows %s, of which this model has none", job->kind->name, list);
    return any;
}

/* From --layers or --heads: the chosen ones, ascending. */
static int choose_indices(figure_job *job, const char *name, const char *fallback, size_t limit, size_t **chosen,
                          size_t *count)
{
    bool *flags = calloc(limit + 1, sizeof *flags);
    *chosen = figure_job_allocate(job, limit, sizeof **chosen);
    int status = flags && *chosen ? EXIT_OK : figure_job_out_of_memory(job);
    const char *text = options_value(job->options, name, fallback);
    if (status == EXIT_OK && !parse_index_list(job->options, &text, flags, limit)) status = EXIT_USAGE;
    for (size_t k = 0; status == EXIT_OK && k < limit; k++)
        if (flags[k]) (*chosen)[(*count)++] = k;
    free(flags);
    return status;
}

static int choose(figure_job *job)
{
    const figure_kind *kind = job->kind;
    int status = choose_indices(job, "layers", kind->layers, job->info.layers, &job->layers, &job->layer_count);
    if (status == EXIT_OK)
        status = choose_indices(job, "heads", kind->heads, job->info.heads, &job->heads, &job->head_count);
    const char *components = options_value(job->options, "components", kind->components);
    if (status == EXIT_OK && components && !choose_components(job, components)) status = EXIT_USAGE;
    const int terms = 1 + job->info.has_c2p + job->info.has_p2c;
    snprintf(job->unit, sizeof job->unit, terms > 1 ? "logit / sqrt(%dd)" : "logit / sqrt(d)", terms);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- opening */

static int make_view(figure_job *job)
{
    deberta_error error = {0};
    if (token_view_make(&job->view, &job->input, job->row, &job->view_choice, &error) != DEBERTA_OK)
        return figure_job_fail(job, &error);
    char text[512];
    token_view_describe(&job->view, &job->view_choice, text, sizeof text);
    if (*text) figure_job_note(job, "%s", text);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const heatmap_choice *scale = &job->look.scales[kind];
        if (scale->policy != HEATMAP_ROBUST) continue;
        figure_job_note(job, "Colours reach to percentile %g. ", scale->percentile > 0 ? scale->percentile : 99);
        break;
    }
    return figure_options_marks(job);
}

int figure_job_open(figure_job *job, const parsed_options *options, const figure_kind *kind)
{
    *job = (figure_job){.options = options, .kind = kind};
    deberta_session_options unused;
    if (!figure_options_read(job)) return EXIT_USAGE;
    int status = EXIT_OK;
    fill_session_options(options, &unused);
    if (status == EXIT_OK) status = figure_job_open_model(job, options_argument(options, 0), &job->model, &job->info);
    if (status == EXIT_OK)
        status = input_read(reading_of(options), options_argument(options, 0), &job->info, &job->input);
    if (status == EXIT_OK && job->input.rows > 1 && !kind->all_rows && !options_has(options, "row"))
        say_note(options, "note: row 0 of %zu is drawn; --row N draws another", job->input.rows);
    if (status == EXIT_OK) status = make_view(job);
    if (status == EXIT_OK) status = choose(job);
    return status == EXIT_OK ? figure_options_provenance(job) : status;
}

void figure_job_close(figure_job *job)
{
    for (size_t k = 0; k < job->memory_count; k++) free(job->memory[k]);
    free(job->memory);
    figure_data_free(&job->data);
    capture_free(&job->capture);
    deberta_session_free(&job->session);
    token_view_free(&job->view);
    input_free(&job->input);
    deberta_model_free(&job->model);
}

/* ------------------------------------------------------------------------------------------------------ encoding */

int figure_job_open_model(figure_job *job, const char *path, deberta_model **model, deberta_model_info *info)
{
    const int status = run_open_model_at(job->options, path, model);
    if (status != EXIT_OK) return status;
    *info = *deberta_model_describe(*model);
    job->model_bytes += info->memory_bytes;
    return EXIT_OK;
}

int figure_job_open_session(figure_job *job, const deberta_model *model, unsigned features, deberta_session **session)
{
    deberta_session_options session_options;
    deberta_error error = {0};
    int status = EXIT_OK;
    fill_session_options(job->options, &session_options);
    if (status != EXIT_OK) return status;
    session_options.features = features;
    session_options.max_tokens = 1;
    for (size_t r = 0; r < job->input.rows; r++)
        if (job->input.row[r].tokens > session_options.max_tokens)
            session_options.max_tokens = job->input.row[r].tokens;
    memory_need need = {.model_bytes = job->model_bytes};
    if (deberta_session_predict_bytes(&need.session_bytes, model, &session_options, &error) != DEBERTA_OK)
        return say_error(job->options, &error);
    need.session_bytes += job->session_bytes;
    job->session_bytes = need.session_bytes;
    if (memory_need_check(&need, session_options.memory_limit_bytes, &error) != DEBERTA_OK ||
        deberta_session_create(session, model, &session_options, &error) != DEBERTA_OK)
        return say_error(job->options, &error);
    return EXIT_OK;
}

int figure_job_open_capture(figure_job *job, const deberta_model_info *info, const token_view *view, capture *capture)
{
    deberta_session_options session_options;
    deberta_error error = {0};
    int status = EXIT_OK;
    fill_session_options(job->options, &session_options);
    if (status != EXIT_OK) return status;
    if (capture_create(capture, info, view->span, 1, &error) != DEBERTA_OK) return say_error(job->options, &error);
    for (size_t k = 0; k < job->layer_count; k++) {
        if (job->layers[k] >= info->layers)
            return say_usage(job->options, "--layers: %s has no layer %zu", info->name, job->layers[k]);
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (job->components[c]) capture_want(capture, job->layers[k], (deberta_component)c);
    }
    for (size_t k = 0; k < job->head_count; k++) {
        if (job->heads[k] >= info->heads)
            return say_usage(job->options, "--heads: %s has no head %zu", info->name, job->heads[k]);
        capture->heads[job->heads[k]] = true;
    }
    capture->hidden = job->kind->hidden;
    size_t kept_bytes = capture_bytes(capture);
    if (capture != &job->capture && job->capture.model &&
        !size_add(kept_bytes, capture_bytes(&job->capture), &kept_bytes))
        kept_bytes = SIZE_MAX;
    const memory_need need = {job->model_bytes, job->session_bytes, kept_bytes};
    if (memory_need_check(&need, session_options.memory_limit_bytes, &error) != DEBERTA_OK ||
        capture_allocate(capture, &error) != DEBERTA_OK)
        return say_error(job->options, &error);
    return EXIT_OK;
}

int figure_job_observe(figure_job *job, deberta_session *session, size_t row, const deberta_observer *observer)
{
    const input_batch *input = &job->input;
    if (input->row[row].tokens == 0) return say_usage(job->options, "the input has no real tokens in row %zu", row);
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
    return deberta_encode(session, &batch, &outputs, &error) == DEBERTA_OK ? EXIT_OK : say_error(job->options, &error);
}

int figure_job_encode(figure_job *job)
{
    const unsigned features = DEBERTA_OBSERVE_ATTENTION | (job->kind->hidden ? DEBERTA_OBSERVE_HIDDEN : 0);
    int status = figure_job_open_session(job, job->model, features, &job->session);
    if (status == EXIT_OK) status = figure_job_open_capture(job, &job->info, &job->view, &job->capture);
    if (status != EXIT_OK) return status;
    const deberta_observer observer = capture_observer(&job->capture);
    return figure_job_observe(job, job->session, job->row, &observer);
}

int figure_job_matrix(figure_job *job, const capture *capture, const token_view *view, size_t layer, size_t head,
                      deberta_component component, const float **matrix)
{
    const float *whole = capture_matrix(capture, layer, head, component, 0);
    *matrix = NULL;
    return whole ? figure_job_view_matrix(job, view, whole, token_view_rule_of(component), matrix) : EXIT_OK;
}

int figure_job_view_matrix(figure_job *job, const token_view *view, const float *whole, token_view_rule rule,
                           const float **matrix)
{
    *matrix = whole;
    if (view->whole) return EXIT_OK;
    float *shown = figure_job_allocate(job, view->count * view->count, sizeof *shown);
    if (!shown) return figure_job_out_of_memory(job);
    token_view_matrix(view, whole, rule, shown);
    *matrix = shown;
    return EXIT_OK;
}
