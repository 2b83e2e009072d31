/* `deberta study components`: which share of the attention scores each term makes, by layer, head, distance and kind of
 * token; and what the term that the models leave out, position to position, would make and do.
 * SPDX-License-Identifier: MIT */
#include "studies/component_tables.h"

#include <stdlib.h>

#include "command/options.h"
#include "command/progress.h"
#include "studies/studies.h"
#include "studies/token_class.h"
#include "core/base/status.h"

enum { BATCH_TOKENS = 2048 };

static deberta_status classify(components_study *study, deberta_error *err)
{
    const study_texts *texts = &study->texts;
    study->classes = malloc(texts->starts[texts->count] + 1);
    if (!study->classes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; k < texts->count; k++)
        for (size_t t = 0; t < texts->lists[k]->count; t++)
            study->classes[texts->starts[k] + t] = (uint8_t)token_class_of(texts->lists[k], t, texts->sentences[k]);
    study->share.classes = study->classes;
    study->share.starts = texts->starts;
    return DEBERTA_OK;
}

/* The squares of all terms over all sentences. */
static deberta_status measure_shares(components_study *study, deberta_error *err)
{
    study_texts *texts = &study->texts;
    deberta_session_options session_options = texts->model.session_options;
    deberta_session *session = NULL;
    size_t *starts = malloc((texts->count + 1) * sizeof *starts);
    session_options.max_tokens = study_texts_largest_batch(texts, BATCH_TOKENS);
    session_options.features = DEBERTA_OBSERVE_ATTENTION;
    deberta_status status = starts ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK)
        status = deberta_session_create_within(&session, texts->model.model, &session_options, 0, err);
    const deberta_observer observer = component_share_observer(&study->share);
    progress_bar bar = progress_begin(study->options, "sentences", texts->count);
    for (size_t first = 0, end; status == DEBERTA_OK && first < texts->count; first = end) {
        end = study_texts_batch_end(texts, first, BATCH_TOKENS);
        deberta_batch batch = study_texts_batch(texts, first, end, starts);
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        batch.observer = &observer;
        study->share.first_sentence = first;
        status = deberta_encode(session, &batch, &outputs, err);
        progress_step(&bar, end, NULL);
    }
    progress_end(&bar);
    deberta_session_free(&session);
    free(starts);
    return status;
}

/* The masked-LM loss as it is, and with either version of p2p added to the scores. */
static deberta_status measure_losses(components_study *study, deberta_error *err)
{
    const text_batches *model = &study->texts.model;
    masked_texts masked = {0};
    deberta_status status = study_texts_hide(&study->texts, study->seed, &masked, &study->masks, err);
    for (size_t k = 0; status == DEBERTA_OK && k < COMPONENT_LOSSES; k++) {
        const float *row_bias = k ? study->p2p[k - 1].by_row : NULL;
        study->losses[k] = calloc(study->texts.count, sizeof *study->losses[k]);
        status = study->losses[k] ? masked_texts_measure(&masked, model->model, &model->session_options, row_bias,
                                                         BATCH_TOKENS, study->losses[k], err)
                                  : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    }
    masked_texts_free(&masked);
    return status;
}

/* p2p needs both projections of the positions, and its effect a masked-LM head: without them that part is left out. */
static deberta_status prepare_p2p(components_study *study, deberta_error *err)
{
    const text_batches *model = &study->texts.model;
    deberta_task head;
    if (!model->info.has_c2p || !model->info.has_p2c) return DEBERTA_OK;
    study->has_p2p = true;
    study->has_losses = masked_texts_head(&head, model->model, NULL) == DEBERTA_OK;
    for (int k = 0; k < COMPONENT_P2P; k++)
        DEBERTA_TRY(position_term_make(&study->p2p[k], model->model, (position_term_index)k,
                                       study_texts_largest_batch(&study->texts, 1), err));
    study->share.extra = &study->p2p[POSITION_TERM_CODE];
    return DEBERTA_OK;
}

static deberta_status work(components_study *study, deberta_error *err)
{
    const size_t count = study->texts.count;
    study->parts = calloc(count, sizeof *study->parts);
    study->wholes = calloc(count, sizeof *study->wholes);
    if (!study->parts || !study->wholes) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    DEBERTA_TRY(component_share_create(&study->share, &study->texts.model.info, count, err));
    DEBERTA_TRY(classify(study, err));
    DEBERTA_TRY(prepare_p2p(study, err));
    DEBERTA_TRY(measure_shares(study, err));
    if (study->has_losses) DEBERTA_TRY(measure_losses(study, err));
    return component_tables_make(study, err);
}

static void release(components_study *study)
{
    study_findings_free(&study->findings);
    component_share_free(&study->share);
    for (size_t k = 0; k < COMPONENT_P2P; k++) position_term_free(&study->p2p[k]);
    for (size_t k = 0; k < COMPONENT_LOSSES; k++) free(study->losses[k]);
    free(study->classes);
    free(study->masks);
    free(study->parts);
    free(study->wholes);
    study_texts_close(&study->texts);
}

static int run(const common_options *options)
{
    components_study study = {.options = options, .seed = options->seed};
    deberta_error error = {0};
    if (!study_check_options(options)) return EXIT_USAGE;
    int code = study_texts_open(&study.texts, (const study_options *)options);
    if (code == EXIT_OK)
        code = work(&study, &error) == DEBERTA_OK ? component_tables_finish(&study) : say_error(options, &error);
    release(&study);
    return code;
}

static const option options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_components = {
    .name = "study components",
    .summary = "which share of the attention scores each term makes, by layer, head, distance and kind of token",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study components models/demo --file docs/studies/data/sentences.txt -o shares.png\n",
    .run = run,
    .claims = "the position-to-position term is not useful; position fades in deeper layers",
};
