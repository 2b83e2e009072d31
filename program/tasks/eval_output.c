/* Fills tables of classes and of confusions from the scores. SPDX-License-Identifier: MIT */
#include "program/tasks/eval_output.h"

#include "output/json_text.h"

/* Tables and CSV leave out the hits, which recall and precision already express. */
static const result_column class_columns[] = {{"index", NULL, COLUMN_INTEGER, NULL, 0},
                                              {"label", NULL, COLUMN_TEXT, NULL, 0},
                                              {"texts", NULL, COLUMN_INTEGER, NULL, 0},
                                              {"answers", NULL, COLUMN_INTEGER, NULL, 0},
                                              {"hits", NULL, COLUMN_INTEGER, NULL, NOT_IN_TABLES | NOT_IN_CSV},
                                              {"precision", NULL, COLUMN_REAL, "%.3f", 0},
                                              {"recall", NULL, COLUMN_REAL, "%.3f", 0},
                                              {"f1", "F1", COLUMN_REAL, "%.3f", CSV_SAYS_TITLE},
                                              {.name = NULL}};

static bool occurs(const confusion *c, size_t label)
{
    bool found = false;
    for (size_t other = 0; other < c->labels && !found; other++)
        found = confusion_at(c, label, other) || confusion_at(c, other, label);
    return found;
}

static void add_rows(result_table *table, const eval_findings *findings, bool all)
{
    for (size_t k = 0; k < findings->confusion.labels; k++) {
        if (!all && !occurs(&findings->confusion, k)) continue;
        const class_score one = confusion_class(&findings->confusion, k);
        cell_integer(table, (int64_t)k);
        cell_text(table, "%s", findings->names[k]);
        cell_integer(table, (int64_t)one.texts);
        cell_integer(table, (int64_t)one.answers);
        cell_integer(table, (int64_t)one.hits);
        cell_real(table, one.precision);
        cell_real(table, one.recall);
        cell_real(table, one.f1);
    }
}

/* Adds the classes: all labels to JSON and CSV, those that occur to the text form. */
static void add_classes(result *r, const eval_findings *findings)
{
    result_table *all = result_add_table(r, "classes", NULL, class_columns);
    add_rows(all, findings, true);
    result_set_data(r, all, true);
    add_rows(result_add_table(r, NULL, "labels that occur", class_columns), findings, false);
}

/* Adds the confusions: rows are the right labels, columns the answers; the text form has the labels that occur. */
static void add_confusions(result *r, const eval_findings *findings)
{
    const confusion *c = &findings->confusion;
    json_t *labels = json_array(), *rows = json_array();
    result_table *table =
        result_add_table(r, NULL, "right (rows) and answered (columns), by index, of labels that occur", NULL);
    result_leave_out(table, NOT_IN_LATEX);
    result_add_column(table, COLUMN_INTEGER, NULL, "right");
    for (size_t k = 0; k < c->labels; k++)
        if (occurs(c, k)) result_add_column(table, COLUMN_INTEGER, NULL, "%zu", k);
    for (size_t right = 0; right < c->labels; right++) {
        json_t *row = json_array();
        const bool shown = occurs(c, right);
        if (shown) cell_integer(table, (int64_t)right);
        for (size_t answered = 0; answered < c->labels; answered++) {
            const size_t count = confusion_at(c, right, answered);
            json_array_append_new(row, json_integer((json_int_t)count));
            if (shown && occurs(c, answered)) cell_text(table, count ? "%zu" : ".", count);
        }
        json_array_append_new(rows, row);
        json_array_append_new(labels, json_clean_text(findings->names[right]));
    }
    json_object_set_new(result_json(r), "labels", labels);
    json_object_set_new(result_json(r), "confusion", rows);
}

result *eval_result(const eval_findings *findings)
{
    const classification_score score = confusion_score(&findings->confusion);
    result *r = result_new("deberta-eval/1");
    json_t *about =
        json_pack("{s:I, s:I, s:I, s:f, s:[f, f], s:f, s:f}", "texts", (json_int_t)score.texts, "bad",
                  (json_int_t)findings->bad, "hits", (json_int_t)score.hits, "accuracy", score.accuracy,
                  "accuracy_interval", score.low, score.high, "majority", score.majority, "macro_f1", score.macro_f1);
    json_object_update(result_json(r), about);
    json_decref(about);
    result_say(r, "accuracy %.1f %% (95 %%: %.1f to %.1f), %zu of %zu; always the most frequent label: %.1f %%",
               100 * score.accuracy, 100 * score.low, 100 * score.high, score.hits, score.texts, 100 * score.majority);
    result_say(r, "macro F1 %.3f, over the labels that occur", score.macro_f1);
    if (findings->bad) result_say(r, "%zu line%s could not be used", findings->bad, findings->bad == 1 ? "" : "s");
    add_classes(r, findings);
    add_confusions(r, findings);
    return r;
}
