/* Each text goes through a second model, alone: bits do not depend on batches. SPDX-License-Identifier: MIT */
#include "program/tasks/eval_against.h"

#include <stdlib.h>

#include "analysis/logits.h"
#include "core/base/integers.h"
#include "core/base/status.h"
#include "output/scope.h"
#include "program/frame/open_model.h"

int eval_against_open(eval_against *against, const common_options *options, deberta_precision precision, size_t labels)
{
    common_options other = *options;
    other.precision = (int)precision;
    *against = (eval_against){.options = options, .precision = precision, .labels = labels};
    return open_model(&other, &against->model);
}

/* As many tokens as the longest text so far. */
static deberta_status make_room(eval_against *against, size_t tokens, deberta_error *err)
{
    deberta_session_options options;
    if (against->session && tokens <= against->max_tokens) return DEBERTA_OK;
    deberta_session_free(&against->session);
    against->max_tokens = tokens < 256 ? 256 : 2 * tokens;
    fill_session_options(against->options, &options);
    options.max_tokens = against->max_tokens;
    return deberta_session_create(&against->session, against->model, &options, err);
}

static deberta_status find_label(eval_against *against, const deberta_tokens *tokens, size_t *label, deberta_error *err)
{
    const size_t starts[] = {0, tokens->count}, sequence = 0;
    const bool typed = deberta_model_describe(against->model)->token_types > 0;
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = tokens->ids,
                                 .token_types = typed ? tokens->token_types : NULL,
                                 .sequence_starts = starts,
                                 .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(make_room(against, tokens->count, err));
    DEBERTA_TRY(deberta_encode(against->session, &batch, &outputs, err));
    float *logits = memory_take(against->labels, sizeof *logits);
    const deberta_status status =
        deberta_task_logits(against->session, DEBERTA_TASK_SEQUENCE, &sequence, 1, logits, against->labels, err);
    if (status == DEBERTA_OK) *label = logits_largest(logits, against->labels);
    free(logits);
    return status;
}

static void note_change(eval_against *against, const text_record *record, size_t found, size_t expected)
{
    against->changes = memory_grown(against->changes, &against->capacity, against->count + 1, sizeof *against->changes);
    against->changes[against->count++] = (label_change){record->source, record->line, record->index, found, expected};
}

deberta_status eval_against_compare(eval_against *against, const task_text *text, size_t label, deberta_error *err)
{
    size_t expected = 0;
    if (!against->model) return DEBERTA_OK;
    DEBERTA_TRY(find_label(against, text->tokens, &expected, err));
    against->texts++;
    if (label != expected) note_change(against, &text->record, label, expected);
    return DEBERTA_OK;
}

static int by_place(const void *a, const void *b)
{
    const label_change *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

void eval_against_tell(eval_against *against, result *r, const char *const *names)
{
    static const result_column columns[] = {{"file", NULL, COLUMN_TEXT, NULL, 0},
                                            {"line", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"label", NULL, COLUMN_TEXT, NULL, 0},
                                            {"expected", NULL, COLUMN_TEXT, NULL, 0},
                                            {.name = NULL}};
    if (!against->model) return;
    const char *precision = deberta_precision_name(against->precision);
    result_set(r, "against", json_string(precision));
    result_set(r, "changed", json_integer((json_int_t)against->count));
    result_say(r, "\n%zu of %zu labels are others than in %s", against->count, against->texts, precision);
    if (against->count) qsort(against->changes, against->count, sizeof *against->changes, by_place);
    result_table *table = result_add_table(r, "changes", "texts with another label, and the one expected", columns);
    for (size_t k = 0; k < against->count; k++) {
        const label_change *one = &against->changes[k];
        cell_text(table, "%s", one->source ? one->source : "");
        cell_integer(table, (int64_t)one->line);
        cell_text(table, "%s", names[one->found]);
        cell_text(table, "%s", names[one->expected]);
    }
}

void eval_against_free(eval_against *against)
{
    deberta_session_free(&against->session);
    deberta_model_free(&against->model);
    free(against->changes);
    *against = (eval_against){0};
}
