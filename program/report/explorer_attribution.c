/* Chooses the answers that a page attributes: the word at the one [MASK], else the label of the text.
 *
 * `attribute` ends the program where it cannot answer, but a page is made all the same. Here is therefore a sentence
 * for each of its refusals, which the page shows in the place of the attributions.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_parts.h"

#include <string.h>

#include "include/deberta_training.h"
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/tasks/task_run.h"

enum { ENCODES_A_STEP = 3 }; /* forward, and twice as much backward */

/* Returns why no text of this report is attributed, or NULL. */
static const char *lack_of_report(const common_options *options)
{
    if (!deberta_training_is_built()) return "the program was built without training, which has the gradients";
    if (low_precision_name(options)) return "they are of float32 weights only";
    if (options->ablated.text) return "they are of the whole model, and this report removes terms";
    if (options->memory_limit_bytes) return "this report has a limit of memory";
    return NULL;
}

/* Returns why the command cannot read this text as it was given, or NULL. */
static const char *lack_of_input(const explorer_text *text)
{
    const input_batch *input = text->input;
    if (!input->texts) return "the text was given as ids, and they are of words";
    if (strlen(input->texts[text->row]) != input->text_bytes[text->row])
        return "the text has a NUL character, which no command line can hold";
    return NULL;
}

/* Returns the head whose answer is attributed. NULL: none, for the reason in *lack. */
static const char *choose_head(const common_options *options, const deberta_model *model, const explorer_text *text,
                               const char **lack)
{
    const json_t *full = json_object_get(text->answers, "full");
    const size_t masks = json_array_size(json_object_get(full, "masks"));
    if (masks == 1) return "mlm";
    if (json_array_size(json_object_get(full, "classes"))) {
        *lack = task_labels_lack(options, model, deberta_task_width(model, DEBERTA_TASK_SEQUENCE));
        if (!*lack) return "sequence";
    } else if (masks > 1) {
        *lack = "the text has more than one [MASK], and they are of one answer";
    } else if (json_object_get(full, "tags") || json_object_get(full, "replaced")) {
        *lack = "the model answers for each token, and they are of one answer";
    } else {
        *lack = full ? "the text has no [MASK] to answer" : "the model gives no answer by a head";
    }
    return NULL;
}

static void choose(const common_options *options, const deberta_model *model, explorer_text *text, double budget)
{
    const deberta_model_info *info = deberta_model_describe(model);
    const size_t tokens = text->input->row[text->row].tokens;
    const char *lack = lack_of_report(options), *head = NULL;
    if (!lack) head = choose_head(options, model, text, &lack);
    if (!lack) lack = lack_of_input(text);
    if (!lack && info->max_positions && tokens > info->max_positions)
        lack = "the text is longer than the model's positions";
    if (!lack && ENCODES_A_STEP * EXPLORER_ATTRIBUTION_STEPS * text->multiplications > budget)
        lack = "they would take long for a text and a model of these sizes";
    text->no_attribution = lack;
    text->attribution_head = lack ? NULL : head;
}

void explorer_attributions_choose(const common_options *options, explorer_text *texts, size_t count)
{
    deberta_model *model = open_description(options);
    for (size_t k = 0; k < count; k++) choose(options, model, &texts[k], EXPLORER_MOST_MULTIPLICATIONS / (double)count);
    deberta_model_free(&model);
}
