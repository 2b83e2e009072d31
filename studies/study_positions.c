/* `deberta study positions`: relative and absolute positions, seen in hidden states and attention of two models.
 * SPDX-License-Identifier: MIT */
#include "studies/study_positions_output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap.h"
#include "studies/studies.h"
#include "studies/study_models.h"
#include "core/base/status.h"

enum { LEAST_PROBE_SEQUENCES = 20, SHORTEST_PHRASE = 6, LONGEST_PHRASE = 40 }; /* tokens */

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Sentences of middle length, without their frames, are the phrases; all sentences on end, cut into windows of one
 * length and framed again, are what the probes see: a window begins anywhere in a sentence, so that content says little
 * about the position. */
static deberta_status cut_texts(positions_study *study, deberta_error *err)
{
    const study_texts *texts = &study->texts;
    const size_t all = texts->starts[texts->count], inner = POSITIONS_PROBE_TOKENS - 2;
    study->phrase_tokens = malloc((all + 1) * sizeof *study->phrase_tokens);
    study->phrase_starts = calloc(texts->count + 1, sizeof *study->phrase_starts);
    study->windows = malloc((all / inner + 1) * POSITIONS_PROBE_TOKENS * sizeof *study->windows);
    if (!study->phrase_tokens || !study->phrase_starts || !study->windows)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu tokens", all);
    size_t filled = 0;
    for (size_t k = 0; k < texts->count; k++) {
        const int32_t *ids = texts->ids + texts->starts[k] + 1;
        const size_t count = texts->lists[k]->count - 2;
        for (size_t i = 0; i < count; i++, filled++)
            study->windows[filled / inner * POSITIONS_PROBE_TOKENS + 1 + filled % inner] = ids[i];
        if (count < SHORTEST_PHRASE || count > LONGEST_PHRASE) continue;
        const size_t start = study->phrase_starts[study->phrases++];
        memcpy(study->phrase_tokens + start, ids, count * sizeof *ids);
        study->phrase_starts[study->phrases] = start + count;
        if (count > study->longest_phrase) study->longest_phrase = count;
    }
    study->window_count = filled / inner;
    for (size_t k = 0; k < study->window_count; k++) {
        study->windows[k * POSITIONS_PROBE_TOKENS] = texts->ids[0];
        study->windows[(k + 1) * POSITIONS_PROBE_TOKENS - 1] = texts->ids[texts->lists[0]->count - 1];
    }
    if (study->window_count < LEAST_PROBE_SEQUENCES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the probes need %d windows of %zu tokens; these texts fill %zu",
                     LEAST_PROBE_SEQUENCES, inner, study->window_count);
    if (study->phrases < 2)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "expected at least 2 texts of %d to %d tokens, found %zu",
                     SHORTEST_PHRASE, LONGEST_PHRASE, study->phrases);
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ measurement */

static void show_progress(void *context, size_t done)
{
    positions_study *study = context;
    progress_step(&study->bar, study->done + done, NULL);
}

static deberta_status encode_model(positions_study *study, studied_model *model, deberta_error *err)
{
    deberta_session *session = NULL;
    deberta_session_options options = study->texts.model.session_options;
    const size_t batch = position_shift_tokens(study->longest_phrase);
    options.max_tokens = batch > POSITIONS_PROBE_TOKENS ? batch : POSITIONS_PROBE_TOKENS;
    options.features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION;
    DEBERTA_TRY(deberta_session_create_within(&session, model->model, &options, 0, err));
    const position_shift_input shift = {.session = session,
                                        .model = &model->info,
                                        .tokens = study->phrase_tokens,
                                        .starts = study->phrase_starts,
                                        .phrases = study->phrases,
                                        .first = study->windows[0],
                                        .last = study->windows[POSITIONS_PROBE_TOKENS - 1],
                                        .progress = show_progress,
                                        .context = study};
    const position_probe_input probe = {.session = session,
                                        .model = &model->info,
                                        .ids = study->windows,
                                        .sequences = study->window_count,
                                        .tokens = POSITIONS_PROBE_TOKENS,
                                        .progress = show_progress,
                                        .context = study};
    deberta_status status = position_shift_measure(&model->shift, &shift, err);
    study->done += study->phrases;
    if (status == DEBERTA_OK) status = position_probe_measure(&model->probe, &probe, err);
    study->done += study->window_count;
    deberta_session_free(&session);
    return status;
}

static void set_point(layer_curve *curve, size_t layer, double value, double low, double high)
{
    curve->value[layer] = value;
    curve->low[layer] = low;
    curve->high[layer] = high;
}

/* From sums by phrase and window to a number with its interval: distances as a part of that between two tokens. */
static deberta_status find_intervals(positions_study *study, studied_model *model, deberta_error *err)
{
    const position_shift *shift = &model->shift;
    const position_probe *probe = &model->probe;
    bootstrap_interval found;
    for (size_t v = 0; v < POSITION_VARIANTS; v++) {
        for (size_t layer = 0; layer <= shift->layers; layer++) {
            const double *moved = shift->moved + (v * (shift->layers + 1) + layer) * shift->phrases;
            DEBERTA_TRY(bootstrap_ratio(&found, moved, shift->spread + layer * shift->phrases, shift->phrases,
                                        study->seed, err));
            set_point(&model->moved[v], layer, sqrt(found.value), sqrt(found.low), sqrt(found.high));
            if (layer == shift->layers) continue;
            DEBERTA_TRY(bootstrap_ratio(&found, shift->attention + (v * shift->layers + layer) * shift->phrases, NULL,
                                        shift->phrases, study->seed, err));
            set_point(&model->attention[v], layer, found.value, found.low, found.high);
        }
    }
    for (size_t layer = 0; layer < probe->layers; layer++) {
        DEBERTA_TRY(bootstrap_ratio(&found, probe->errors + layer * probe->tested,
                                    probe->deviations + layer * probe->tested, probe->tested, study->seed, err));
        set_point(&model->r2, layer, 1 - found.value, 1 - found.high, 1 - found.low);
    }
    return DEBERTA_OK;
}

static deberta_status measure(positions_study *study, deberta_error *err)
{
    DEBERTA_TRY(cut_texts(study, err));
    study->bar =
        progress_begin(study->options, "sequences", study->model_count * (study->phrases + study->window_count));
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < study->model_count; k++)
        status = encode_model(study, &study->models[k], err);
    progress_end(&study->bar);
    for (size_t k = 0; status == DEBERTA_OK && k < study->model_count; k++)
        status = find_intervals(study, &study->models[k], err);
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- run */

static int open_models(positions_study *study)
{
    for (size_t k = 0; k < study->model_count; k++) {
        studied_model *model = &study->models[k];
        model->name = study_model_name(study->options, k);
        if (k == 0) {
            model->model = study->texts.model.model;
            model->info = study->texts.model.info;
        } else {
            const int status =
                study_open_beside(study->options, k, &study->texts.model.info, &model->model, &model->info);
            if (status != EXIT_OK) return status;
        }
        if (model->info.layers >= POSITIONS_MOST_LAYERS)
            return say_usage(study->options, "%s: expected at most %d layers, found %zu", model->name,
                             POSITIONS_MOST_LAYERS - 1, model->info.layers);
    }
    return EXIT_OK;
}

static void close_study(positions_study *study)
{
    for (size_t k = 0; k < study->model_count; k++) {
        position_shift_free(&study->models[k].shift);
        position_probe_free(&study->models[k].probe);
        if (k > 0) deberta_model_free(&study->models[k].model);
    }
    free(study->phrase_tokens);
    free(study->phrase_starts);
    free(study->windows);
    study_findings_free(&study->findings);
    study_texts_close(&study->texts);
}

static int run(const common_options *options)
{
    positions_study *study = calloc(1, sizeof *study);
    deberta_error error = {0};
    if (!study) {
        status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
        return say_error(options, &error);
    }
    study->options = options;
    study->seed = options->seed;
    study->model_count = options->argument_count;
    int code = EXIT_USAGE;
    if (study_check_options(options)) code = study_texts_open(&study->texts, (const study_options *)options);
    if (code == EXIT_OK) code = open_models(study);
    if (code == EXIT_OK)
        code = measure(study, &error) == DEBERTA_OK ? positions_finish(study) : say_error(options, &error);
    close_study(study);
    free(study);
    return code;
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_positions = {
    .name = "study positions",
    .summary = "what a shift of position moves, and where position can be read back, in two models",
    .arguments = "MODEL [OTHER]",
    .min_arguments = 1,
    .max_arguments = POSITIONS_MOST_MODELS,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study positions models/demo models/demo-bert --file docs/studies/data/sentences.txt\n",
    .run = run,
    .claims =
        "position mixed into the input fades in deeper layers; relative distances hold where absolute positions do not",
};
