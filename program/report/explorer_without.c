/* Computes the model's answers to the texts of a page: with all terms, by layer, and without each term that a page
 * offers to remove.
 *
 * How much is computed beforehand depends only on the sizes of model and text, so that the same command makes the
 * same page anywhere. A page that computes fills in the rest.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_parts.h"

#include <string.h>

#include "program/frame/open_model.h"
#include "program/report/explorer_answer.h"
#include "program/tasks/task_run.h"

enum {
    TABLE_READS = 4,   /* reading the word table once costs as much as so many products with it */
    MOST_LISTS = 10000 /* lists of candidates for a [MASK] in a text, of some 300 bytes each */
};

enum { TERMS = 3 };

typedef struct answering {
    const common_options *options;
    const deberta_model_info *info;
    answered_text text;
    bool has_term[TERMS];
    json_t *without; /* object of answers, by the list of removed terms as --ablate names them */
} answering;

/* ----------------------------------------------------------------------------------------------------- one encode */

/* Returns true if the answer can be shown. Heads with damaged weights have no answer, and the page leaves them
 * out. */
static bool is_answered(const answering *a, deberta_status status, const deberta_error *error)
{
    if (status == DEBERTA_E_FORMAT)
        say_note(a->options, "note: the page has no answers of the model: %s", error->message);
    else
        must(a->options, status, error);
    return status == DEBERTA_OK;
}

/* Opens a session with the report's own ablations and those of the list. */
static void open_answering(answering *a, const char *ablations, unsigned features)
{
    deberta_session_options options;
    deberta_error error;
    fill_session_options(a->options, &options);
    size_t most = options.ablation_count + TERMS, count = 0;
    deberta_ablation *all = options_take(a->options, most + 1, sizeof *all);
    for (size_t k = 0; k < options.ablation_count; k++) all[k] = options.ablations[k];
    if (*ablations)
        must(a->options, deberta_ablations_parse(all + options.ablation_count, &count, ablations, &error), &error);
    options.ablations = all;
    options.ablation_count += count;
    options.max_tokens = a->text.tokens;
    options.features = features;
    if (a->info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD) options.features |= DEBERTA_KEEP_DECODER_INPUT;
    must(a->options, deberta_session_create(&a->text.session, a->text.model, &options, &error), &error);
}

/* Returns the answer, or NULL if the heads' numbers are not finite. */
static json_t *answer_without(answering *a, const char *ablations)
{
    struct scope_piece *mark = options_mark(a->options);
    const size_t starts[2] = {0, a->text.tokens};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = a->text.ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .token_types = a->text.token_types};
    json_t *answer = NULL;
    deberta_error error;
    open_answering(a, ablations, 0);
    must(a->options, deberta_encode(a->text.session, &batch, &outputs, &error), &error);
    is_answered(a, explorer_answer(&a->text, false, &answer, &error), &error);
    deberta_session_free(&a->text.session);
    options_release(a->options, mark);
    return answer;
}

static json_t *answers_by_layer(answering *a)
{
    json_t *answers = NULL;
    deberta_error error;
    open_answering(a, "", DEBERTA_OBSERVE_HIDDEN);
    is_answered(a, explorer_answers_by_layer(&a->text, &answers, &error), &error);
    deberta_session_free(&a->text.session);
    return answers;
}

/* ------------------------------------------------------------------------------------------------- what is taken out */

/* Adds the answer without the terms of `set` (bits) at one place, in the page's order: "c2p@3,p2c@3". */
static void take_out(answering *a, unsigned set, const char *place)
{
    char list[128] = "";
    for (int term = 0; term < TERMS; term++)
        if (set >> term & 1u) {
            const size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%s@%s", used ? "," : "",
                     deberta_component_name((deberta_component)term), place);
        }
    json_object_set_new(a->without, list, answer_without(a, list));
}

/* Removes every subset of the model's terms; single: each term by itself. Returns how many there are; without a place
 * it only counts them. */
static size_t take_out_at(answering *a, bool single, const char *place)
{
    size_t count = 0;
    for (unsigned set = 1; set < 1u << TERMS; set++) {
        bool fits = !single || (set & (set - 1)) == 0;
        for (int term = 0; term < TERMS; term++) fits = fits && (!(set >> term & 1u) || a->has_term[term]);
        if (fits && place) take_out(a, set, place);
        count += fits;
    }
    return count;
}

/* Removes terms layer by layer, with `all` as the place if the model has one layer, and the layer if it has one
 * head. */
static void take_out_of_layers(answering *a)
{
    char place[32];
    for (size_t layer = 0; a->info->layers > 1 && layer < a->info->layers; layer++) {
        snprintf(place, sizeof place, "%zu", layer);
        take_out_at(a, false, place);
    }
}

static void take_out_of_heads(answering *a)
{
    char place[64];
    for (size_t k = 0; a->info->heads > 1 && k < a->info->layers * a->info->heads; k++) {
        snprintf(place, sizeof place, "%zu:%zu", k / a->info->heads, k % a->info->heads);
        take_out_at(a, true, place);
    }
}

static size_t count_masks(const answering *a)
{
    size_t count = 0;
    if (!a->text.tokenizer) return 0;
    const int32_t mask = deberta_tokenizer_special_id(a->text.tokenizer, DEBERTA_SPECIAL_MASK);
    for (size_t t = 0; t < a->text.tokens; t++) count += a->text.ids[t] == mask;
    return count;
}

static double multiplications(const answering *a)
{
    const deberta_model_info *info = a->info;
    const double h = (double)info->hidden_size, n = (double)a->text.tokens;
    /* multiplications of a token in a layer */
    const double one = 4 * h * h + 2 * h * (double)info->intermediate_size + 4 * n * h;
    const double masks = (double)count_masks(a), words = masks > 0 ? masks + TABLE_READS : 0;
    return (double)info->layers * one * n + words * h * (double)info->vocabulary_size;
}

/* Returns true if so many encodes, each with its answers, fit into the budget. */
static bool is_worth(const answering *a, double runs, double budget)
{
    return runs * multiplications(a) <= budget && runs * (double)count_masks(a) <= MOST_LISTS;
}

static json_t *answer_text(answering *a, double budget)
{
    const double layers = (double)a->info->layers, heads = (double)a->info->heads;
    const double runs_of_layers = layers * (double)take_out_at(a, false, NULL) + layers + 1,
                 runs_of_heads = layers * heads * (double)take_out_at(a, true, NULL);
    json_t *full = answer_without(a, "");
    if (!full) return NULL;
    json_t *answers = json_pack("{s:o, s:{}}", "full", full, "without");
    if (!answers) memory_short();
    a->without = json_object_get(answers, "without");
    if (is_worth(a, runs_of_layers, budget)) {
        json_object_set_new(answers, "layers", answers_by_layer(a));
        take_out_at(a, false, "all");
        take_out_of_layers(a);
    }
    if (is_worth(a, runs_of_layers + runs_of_heads, budget)) take_out_of_heads(a);
    return answers;
}

/* Returns why the page has no class and no label of a token, or NULL: made-up names would look like the model's. */
static const char *lack_of_labels(const common_options *options, const deberta_model *model)
{
    const size_t classes = deberta_task_width(model, DEBERTA_TASK_SEQUENCE);
    const size_t labels = classes ? classes : deberta_task_width(model, DEBERTA_TASK_TOKEN);
    const char *lack = labels ? task_labels_lack(options, model, labels) : NULL;
    if (lack) say_note(options, "note: the page has no labels of the model: %s", lack);
    return lack;
}

const char *explorer_answers_compute(const common_options *options, explorer_text *texts, size_t count)
{
    deberta_model *model = open_model(options);
    const deberta_model_info info = *deberta_model_describe(model);
    deberta_tokenizer *tokenizer = NULL;
    const char *folder = options->arguments[0];
    if (strncmp(folder, "synthetic:", 10) != 0) (void)deberta_tokenizer_open(&tokenizer, folder, NULL);
    answering a = {.options = options,
                   .info = &info,
                   .has_term = {true, info.has_c2p, info.has_p2c},
                   .text = {.model = model, .tokenizer = tokenizer}};
    for (size_t k = 0; explorer_answer_is_there(&a.text) && k < count; k++) {
        const input_batch *input = texts[k].input;
        const input_row *row = &input->row[texts[k].row];
        const size_t first = input->sequence_starts[row->sequence];
        a.text.ids = input->ids + first;
        a.text.token_types = input->token_types ? input->token_types + first : NULL;
        a.text.tokens = row->tokens;
        texts[k].answers = answer_text(&a, EXPLORER_MOST_MULTIPLICATIONS / (double)count);
        texts[k].multiplications = multiplications(&a);
    }
    const char *lack = lack_of_labels(options, model);
    deberta_tokenizer_free(&tokenizer);
    deberta_model_free(&model);
    return lack;
}
