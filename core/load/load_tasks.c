/* Detects the output heads in the files, and loads their tensors (SPEC 8). SPDX-License-Identifier: MIT */
#include "core/load/load_parts.h"

#include <string.h>

static bool architecture_has(const model_config *config, const char *part)
{
    return config->architecture && strstr(config->architecture, part);
}

static deberta_status load_mlm(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    static const char *const names[2][5] = {
        {"lm_predictions.lm_head.dense.weight", "lm_predictions.lm_head.dense.bias",
         "lm_predictions.lm_head.LayerNorm.weight", "lm_predictions.lm_head.LayerNorm.bias",
         "lm_predictions.lm_head.bias"},
        {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias",
         "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.bias",
         "cls.predictions.bias"},
    };
    static const char legacy_weight[] = "cls.predictions.decoder.weight",
                      legacy_bias[] = "cls.predictions.decoder.bias";
    const model_config *config = &model->config;
    model_tasks *tasks = &model->tasks;
    bool legacy = !loader_has(loader, names[0][0]);
    if (!loader_has(loader, names[legacy][0])) return DEBERTA_OK;

    size_t width = config->embedding_size, vocabulary = config->vocabulary_size;
    const char *const *name = names[legacy];
    matrix_plan dense = matrix_plan_plain(name[0], name[1], width, config->hidden_size);
    DEBERTA_TRY(loader_matrix(loader, &tasks->mlm_dense, &dense, err));
    DEBERTA_TRY(load_norm(loader, &tasks->mlm_norm, name[2], name[3], width, err));
    /* decoder.bias and predictions.bias are two names of one vector: never add both (SPEC 8.2). */
    bool own_bias = legacy && loader_has(loader, legacy_bias), own_weight = legacy && loader_has(loader, legacy_weight);
    DEBERTA_TRY(loader_vector(loader, &tasks->mlm_bias, own_bias ? legacy_bias : name[4], vocabulary, err));
    tasks->mlm_decoder = model->words;
    tasks->decoder_apart = own_weight;
    if (own_weight) {
        DEBERTA_TRY(
            loader_find(loader, &tasks->mlm_decoder.stored, legacy_weight, 2, (size_t[]){vocabulary, width}, err));
    }
    tasks->present |= 1u << DEBERTA_TASK_MLM;
    /* With absolute positions at the input, the decoder is the plain head; without them it needs the position table,
     * whose rows it adds to H[L-1]. */
    bool decodes = model->has_position_table && !config->talking_heads;
    if ((config->position_biased_input || decodes) && width == config->hidden_size) {
        tasks->present |= 1u << DEBERTA_TASK_MLM_EMD;
    }
    return DEBERTA_OK;
}

static deberta_status load_rtd(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    model_tasks *tasks = &model->tasks;
    size_t hidden = model->config.hidden_size;
    if (!loader_has(loader, "mask_predictions.dense.weight")) return DEBERTA_OK;
    matrix_plan dense =
        matrix_plan_plain("mask_predictions.dense.weight", "mask_predictions.dense.bias", hidden, hidden);
    matrix_plan classifier =
        matrix_plan_plain("mask_predictions.classifier.weight", "mask_predictions.classifier.bias", 1, hidden);
    DEBERTA_TRY(loader_matrix(loader, &tasks->rtd_dense, &dense, err));
    DEBERTA_TRY(loader_matrix(loader, &tasks->rtd_classifier, &classifier, err));
    DEBERTA_TRY(load_norm(loader, &tasks->rtd_norm, "mask_predictions.LayerNorm.weight",
                          "mask_predictions.LayerNorm.bias", hidden, err));
    tasks->present |= 1u << DEBERTA_TASK_RTD;
    return DEBERTA_OK;
}

/* Returns whether a classifier without a pooler is a token head. A classifier belongs to the sequence if there is a
 * pooler, else to tokens. An architecture that the config names decides instead, and its pooler must exist. After
 * Microsoft's `proj` the classifier is neither (SPEC 8.5). */
static bool is_of_tokens(const model_config *config)
{
    return !config->architecture || architecture_has(config, "TokenClassification");
}

/* Adds a note that a classifier is not offered: in a file of another class its name does not mean a token head. */
static deberta_status note_classifier(deberta_model *model, const char *why, deberta_error *err)
{
    return notes_add(&model->notes, err,
                     "%s: tensor 'classifier.weight' is no head that is known here, and none is offered: %s",
                     model->files.name, why);
}

static deberta_status load_classifier(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    model_tasks *tasks = &model->tasks;
    size_t hidden = model->config.hidden_size;
    weight_tensor found;
    if (!loader_has(loader, "classifier.weight")) return DEBERTA_OK;
    if (loader_has(loader, "proj.weight")) return note_classifier(model, "it reads what Microsoft's 'proj' makes", err);
    bool sequence =
        architecture_has(&model->config, "SequenceClassification") ||
        (loader_has(loader, "pooler.dense.weight") && !architecture_has(&model->config, "TokenClassification"));
    if (!sequence && !is_of_tokens(&model->config))
        return note_classifier(model,
                               "without a 'pooler.dense' it belongs to tokens, but the first of `architectures` in "
                               "config.json is no class for TokenClassification",
                               err);
    DEBERTA_TRY(loader_find(loader, &found, "classifier.weight", 2, (size_t[]){ANY_SIZE, hidden}, err));
    if (found.shape[0] == 0) {
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor 'classifier.weight' has no rows", found.place);
    }
    tasks->labels = found.shape[0];
    if (sequence) {
        matrix_plan pooler = matrix_plan_plain("pooler.dense.weight", "pooler.dense.bias", hidden, hidden);
        DEBERTA_TRY(loader_matrix(loader, &tasks->pooler, &pooler, err));
    }
    matrix_plan classifier = matrix_plan_plain("classifier.weight", "classifier.bias", tasks->labels, hidden);
    DEBERTA_TRY(loader_matrix(loader, &tasks->classifier, &classifier, err));
    tasks->present |= 1u << (sequence ? DEBERTA_TASK_SEQUENCE : DEBERTA_TASK_TOKEN);
    return DEBERTA_OK;
}

static deberta_status load_answer(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    if (!loader_has(loader, "qa_outputs.weight")) return DEBERTA_OK;
    matrix_plan answer = matrix_plan_plain("qa_outputs.weight", "qa_outputs.bias", 2, model->config.hidden_size);
    DEBERTA_TRY(loader_matrix(loader, &model->tasks.answer, &answer, err));
    model->tasks.present |= 1u << DEBERTA_TASK_QA;
    return DEBERTA_OK;
}

/* Users give custom heads the names of transformers'. One that does not fit is not offered, and a note gives the
 * reason, but other uses of the model still work. */
deberta_status load_tasks(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    static deberta_status (*const head_loader[])(weight_loader *, deberta_model *,
                                                 deberta_error *) = {load_mlm, load_rtd, load_classifier, load_answer};
    model_tasks *tasks = &model->tasks;
    tasks->present = 0;
    loader->counting = false;
    loader->most = LARGEST_WEIGHT_OF_HEADS;
    if (loader->pass == LOAD_CHECK) tasks->unfit = 0;
    for (unsigned head = 0; head < sizeof head_loader / sizeof *head_loader; head++) {
        const unsigned before = tasks->present;
        deberta_error why = {0};
        if (tasks->unfit & 1u << head) continue;
        const deberta_status status = head_loader[head](loader, model, &why);
        if (status == DEBERTA_OK) continue;
        if (status != DEBERTA_E_FORMAT || loader->pass != LOAD_CHECK)
            return status_fail(err, status, "%s", why.message);
        tasks->present = before;
        tasks->unfit |= 1u << head;
        DEBERTA_TRY(notes_add(&model->notes, err, "%s; so this head is not offered", why.message));
    }
    return DEBERTA_OK;
}
