/* `deberta study components`: which share of the attention scores each term makes, by layer and head.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bench/bootstrap.h"
#include "cli/run.h"
#include "cli/studies/studies.h"
#include "cli/studies/study.h"
#include "cli/studies/study_texts.h"
#include "core/base/status.h"
#include "study/component_share.h"

enum { MOST_SENTENCES = 100000, BATCH_TOKENS = 2048 };

typedef struct components_study {
    const parsed_options *options;
    uint64_t seed;
    study_texts texts;
    component_share share;
    study_findings findings;
    double *parts, *wholes; /* [sentences] of one bootstrap */
} components_study;

static deberta_status measure(components_study *study, deberta_error *err)
{
    study_texts *texts = &study->texts;
    deberta_session_options session_options = texts->model.session_options;
    deberta_session *session = NULL;
    size_t *starts = malloc((texts->count + 1) * sizeof *starts);
    session_options.max_tokens = study_texts_largest_batch(texts, BATCH_TOKENS);
    session_options.features = DEBERTA_OBSERVE_ATTENTION;
    deberta_status status = starts ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) status = deberta_session_create(&session, texts->model.model, &session_options, err);
    const deberta_observer observer = component_share_observer(&study->share);
    progress_bar bar = progress_begin(study->options, "sentences", texts->count);
    for (size_t first = 0, end; status == DEBERTA_OK && first < texts->count; first = end) {
        end = study_texts_batch_end(texts, first, BATCH_TOKENS);
        const deberta_batch batch = study_texts_batch(texts, first, end, starts);
        deberta_outputs outputs = {.struct_size = sizeof outputs, .observer = &observer};
        study->share.first_sentence = first;
        status = deberta_encode(session, &batch, &outputs, err);
        progress_step(&bar, end, NULL);
    }
    progress_end(&bar);
    deberta_session_free(&session);
    free(starts);
    return status;
}

/* The share of a term in the heads [first_head, end_head) of a layer. */
static deberta_status find_share(components_study *study, size_t layer, size_t first_head, size_t end_head,
                                 deberta_component term, bootstrap_interval *interval, deberta_error *err)
{
    for (size_t k = 0; k < study->texts.count; k++) {
        study->parts[k] = study->wholes[k] = 0;
        for (size_t head = first_head; head < end_head; head++) {
            const double *squares = component_share_at(&study->share, k, layer, head);
            study->parts[k] += squares[term];
            for (int t = 0; t < COMPONENT_TERMS; t++) study->wholes[k] += squares[t];
        }
    }
    return bootstrap_ratio(interval, study->parts, study->wholes, study->texts.count, study->seed, err);
}

static deberta_status add_row(components_study *study, text_table *table, size_t layer, size_t first_head,
                              size_t end_head, deberta_error *err)
{
    static const char *const names[COMPONENT_TERMS] = {"c2c", "c2p", "p2c"};
    const bool is_layer = end_head - first_head > 1;
    text_table_add(table, "%zu", layer);
    if (is_layer)
        text_table_add(table, "all");
    else
        text_table_add(table, "%zu", first_head);
    for (int term = 0; term < COMPONENT_TERMS; term++) {
        bootstrap_interval share;
        DEBERTA_TRY(find_share(study, layer, first_head, end_head, (deberta_component)term, &share, err));
        text_table_add(table, "%.1f %% (%.1f-%.1f)", 100 * share.value, 100 * share.low, 100 * share.high);
        text_table_add(&study->findings.data, "%zu", layer);
        text_table_add(&study->findings.data, is_layer ? "all" : "%zu", first_head);
        text_table_add(&study->findings.data, "%s", names[term]);
        text_table_add(&study->findings.data, "%.6f", share.value);
        text_table_add(&study->findings.data, "%.6f", share.low);
        text_table_add(&study->findings.data, "%.6f", share.high);
    }
    return DEBERTA_OK;
}

static void add_titles(text_table *table, const char *const *titles)
{
    for (size_t k = 0; k < table->columns; k++) text_table_add(table, "%s", titles[k]);
}

static deberta_status tabulate(components_study *study, deberta_error *err)
{
    study_findings *findings = &study->findings;
    text_table *table = study_add_table(findings, "shares", "Share of the variance of the scores", 5);
    findings->data = text_table_make(6);
    add_titles(table, (const char *const[]){"layer", "head", "c2c", "c2p", "p2c"});
    add_titles(&findings->data, (const char *const[]){"layer", "head", "term", "share", "low", "high"});
    for (size_t layer = 0; layer < study->share.layers; layer++) {
        for (size_t head = 0; head < study->share.heads; head++)
            DEBERTA_TRY(add_row(study, table, layer, head, head + 1, err));
        if (study->share.heads > 1) DEBERTA_TRY(add_row(study, table, layer, 0, study->share.heads, err));
    }
    snprintf(findings->note, sizeof findings->note,
             "%zu sentences, %zu tokens; 95 %% intervals over sentences (%d resamples, seed %llu).", study->texts.count,
             study->texts.starts[study->texts.count], BOOTSTRAP_RESAMPLES, (unsigned long long)study->seed);
    return DEBERTA_OK;
}

static int run(const parsed_options *options)
{
    components_study study = {.options = options};
    deberta_error error = {0};
    if (!study_check_options(options) || !options_u64(options, "seed", 1, &study.seed)) return EXIT_USAGE;
    int code = study_texts_open(&study.texts, options, MOST_SENTENCES);
    if (code == EXIT_OK) {
        const size_t count = study.texts.count;
        study.parts = calloc(count, sizeof *study.parts);
        study.wholes = calloc(count, sizeof *study.wholes);
        deberta_status status =
            study.parts && study.wholes ? DEBERTA_OK : status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
        if (status == DEBERTA_OK) status = component_share_create(&study.share, &study.texts.model.info, count, &error);
        if (status == DEBERTA_OK) status = measure(&study, &error);
        if (status == DEBERTA_OK) status = tabulate(&study, &error);
        code = status == DEBERTA_OK ? study_finish(options, &study.findings) : report_error(options, &error);
    }
    study_findings_free(&study.findings);
    component_share_free(&study.share);
    free(study.parts);
    free(study.wholes);
    study_texts_close(&study.texts);
    return code;
}

static const option_spec options[] = {
    STUDY_TEXTS_OPTIONS,
    ABLATE_OPTION,
    STUDY_OPTIONS,
    {NULL, 0, NULL, NULL},
};

const command study_components = {
    .name = "study components",
    .summary = "which share of the attention scores each term makes, by layer and head",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study components models/demo --file docs/studies/data/sentences.txt\n",
    .run = run,
    .claims = "the position-to-position term is not useful; position fades in deeper layers",
};
