/* `deberta study twins`: how attention is spread and how far it reaches, in two models of one tokenizer side by side.
 * SPDX-License-Identifier: MIT */
#include "studies/study_twins_output.h"

#include <stdlib.h>

#include "command/progress.h"
#include "command/input/input.h"
#include "studies/studies.h"
#include "studies/study_models.h"
#include "core/base/memory_need.h"

/* ------------------------------------------------------------------------------------------------------- measuring */

/* Every layer and head, and what the model has of the components but the logits, which are their sum. */
static deberta_status open_capture(const twins_study *study, const twin *model, const deberta_session *session,
                                   const size_t *starts, capture *captured, deberta_error *err)
{
    DEBERTA_TRY(capture_create(captured, &model->info, starts, 1, err));
    for (size_t head = 0; head < model->info.heads; head++) captured->heads[head] = true;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (c != DEBERTA_LOGITS) capture_want_everywhere(captured, c);
    const memory_need need = {study->models[0].info.memory_bytes + study->models[1].info.memory_bytes,
                              deberta_session_memory_bytes(session), capture_bytes(captured)};
    DEBERTA_TRY(memory_need_check(&need, study->texts.model.session_options.memory_limit_bytes, err));
    return capture_allocate(captured, err);
}

/* One sentence at a time: their matrices are kept whole. */
static deberta_status measure_sentence(twins_study *study, twin *model, deberta_session *session, size_t k,
                                       deberta_error *err)
{
    size_t starts[2];
    capture captured = {0};
    deberta_batch batch = study_texts_batch(&study->texts, k, k + 1, starts);
    deberta_status status = open_capture(study, model, session, starts, &captured, err);
    const deberta_observer observer = capture_observer(&captured);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    batch.observer = &observer;
    if (status == DEBERTA_OK) status = deberta_encode(session, &batch, &outputs, err);
    if (status == DEBERTA_OK)
        status = attention_spread_add(&model->spread, k, &captured, study->own + study->texts.starts[k], err);
    capture_free(&captured);
    return status;
}

static deberta_status measure_model(twins_study *study, twin *model, progress_bar *bar, deberta_error *err)
{
    const size_t count = study->texts.count, before = model == study->models ? 0 : count;
    deberta_session_options options = study->texts.model.session_options;
    deberta_session *session = NULL;
    options.max_tokens = study_texts_largest_batch(&study->texts, 1);
    options.features = DEBERTA_OBSERVE_ATTENTION;
    DEBERTA_TRY(attention_spread_create(&model->spread, &model->info, count, study->reach, err));
    deberta_status status = deberta_session_create(&session, model->model, &options, err);
    for (size_t k = 0; status == DEBERTA_OK && k < count; k++) {
        status = measure_sentence(study, model, session, k, err);
        progress_step(bar, before + k + 1, NULL);
    }
    deberta_session_free(&session);
    return status;
}

static deberta_status measure(twins_study *study, deberta_error *err)
{
    const study_texts *texts = &study->texts;
    const size_t tokens = texts->starts[texts->count], longest = study_texts_largest_batch(texts, 1);
    study->reach = longest - 1 < TWINS_REACH ? longest - 1 : (size_t)TWINS_REACH;
    study->own = malloc(tokens + 1);
    study->parts = malloc(texts->count * sizeof *study->parts);
    study->wholes = malloc(texts->count * sizeof *study->wholes);
    if (!study->own || !study->parts || !study->wholes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; k < texts->count; k++)
        for (size_t t = 0; t < texts->lists[k]->count; t++)
            study->own[texts->starts[k] + t] = texts->lists[k]->roles[t] != DEBERTA_TOKEN_FRAME;
    progress_bar bar = progress_begin(study->options, "sentences", TWINS * texts->count);
    deberta_status status = DEBERTA_OK;
    for (size_t m = 0; status == DEBERTA_OK && m < TWINS; m++)
        status = measure_model(study, &study->models[m], &bar, err);
    progress_end(&bar);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- run */

typedef struct twins_options {
    study_options study;
    const char *drawn_layers;
} twins_options;

static int open_models(twins_study *study)
{
    const text_batches *first = &study->texts.model;
    study->models[0].model = first->model;
    study->models[0].info = first->info;
    const int status =
        study_open_beside(study->options, 1, &first->info, &study->models[1].model, &study->models[1].info);
    if (status != EXIT_OK) return status;
    for (size_t m = 0; m < TWINS; m++) {
        study->models[m].name = study_model_name(study->options, m);
        const size_t layers = study->models[m].info.layers;
        if (layers > TWINS_MOST_LAYERS)
            return say_usage(study->options, "%s: expected at most %d layers, found %zu", study->models[m].name,
                             TWINS_MOST_LAYERS, layers);
        if (layers > study->layers) study->layers = layers;
    }
    const twins_options *o = (const twins_options *)study->options;
    return parse_index_list(study->options, &o->drawn_layers, study->drawn, study->layers) ? EXIT_OK : EXIT_USAGE;
}

static void close_study(twins_study *study)
{
    study_findings_free(&study->findings);
    for (size_t m = 0; m < TWINS; m++)
        if (study->models[m].spread.model) attention_spread_free(&study->models[m].spread);
    deberta_model_free(&study->models[1].model); /* the first is of the texts */
    free(study->own);
    free(study->parts);
    free(study->wholes);
    study_texts_close(&study->texts);
}

static int run(const common_options *options)
{
    twins_study study = {.options = options, .seed = options->seed};
    deberta_error error = {0};
    if (!study_check_options(options)) return EXIT_USAGE;
    int code = study_texts_open(&study.texts, (const study_options *)options);
    if (code == EXIT_OK) code = open_models(&study);
    if (code == EXIT_OK)
        code = measure(&study, &error) == DEBERTA_OK ? twins_finish(&study) : say_error(options, &error);
    close_study(&study);
    return code;
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    {"layers", 0, "LIST", "layers whose curves are drawn, counted from 0 (default all); tables and data have all",
     TEXT_AT(twins_options, drawn_layers)},
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_twins = {
    .name = "study twins",
    .summary = "entropy of every head and attention by distance, in two models side by side",
    .arguments = "MODEL OTHER",
    .min_arguments = TWINS,
    .max_arguments = TWINS,
    .options = options,
    .defaults = &(const twins_options){.drawn_layers = "all"},
    .size = sizeof(twins_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example =
        "  deberta study twins models/demo models/demo-bert --file docs/studies/data/sentences.txt -o twins.png\n",
    .run = run,
    .claims = "disentangled attention looks elsewhere than attention with positions at the input",
};
