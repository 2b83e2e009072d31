/* SPDX-License-Identifier: MIT */
#include "cli/tasks/eval_output.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tasks/task_output.h"
#include "output/text_table.h"
#include "core/base/status.h"

json_t *eval_json(const eval_findings *findings)
{
    const confusion *c = &findings->confusion;
    const classification_score score = confusion_score(c);
    json_t *classes = json_array(), *labels = json_array(), *rows = json_array();
    for (size_t k = 0; k < c->labels; k++) {
        const class_score one = confusion_class(c, k);
        json_t *row = json_array();
        for (size_t answered = 0; answered < c->labels; answered++)
            json_array_append_new(row, json_integer((json_int_t)confusion_at(c, k, answered)));
        json_array_append_new(rows, row);
        json_array_append_new(labels, json_clean_string(findings->names[k], strlen(findings->names[k])));
        json_array_append_new(classes, json_pack("{s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "label",
                                                 json_clean_string(findings->names[k], strlen(findings->names[k])),
                                                 "index", (json_int_t)k, "texts", (json_int_t)one.texts, "answers",
                                                 (json_int_t)one.answers, "hits", (json_int_t)one.hits, "precision",
                                                 one.precision, "recall", one.recall, "f1", one.f1));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:[f, f], s:f, s:f, s:o, s:o, s:o}", "schema", "deberta-eval/1",
                     "texts", (json_int_t)score.texts, "bad", (json_int_t)findings->bad, "hits", (json_int_t)score.hits,
                     "accuracy", score.accuracy, "accuracy_interval", score.low, score.high, "majority", score.majority,
                     "macro_f1", score.macro_f1, "classes", classes, "labels", labels, "confusion", rows);
}

static bool print_classes(const eval_findings *findings, FILE *out, result_format style)
{
    static const char *const titles[] = {"index", "label", "texts", "answers", "precision", "recall", "F1"};
    text_table table = text_table_make(sizeof titles / sizeof *titles);
    text_table_add_titles(&table, titles);
    for (size_t k = 0; k < findings->confusion.labels; k++) {
        const class_score one = confusion_class(&findings->confusion, k);
        text_table_add(&table, "%zu", k);
        text_table_add(&table, "%s", findings->names[k]);
        text_table_add(&table, "%zu", one.texts);
        text_table_add(&table, "%zu", one.answers);
        text_table_add(&table, "%.3f", one.precision);
        text_table_add(&table, "%.3f", one.recall);
        text_table_add(&table, "%.3f", one.f1);
    }
    const bool fine = text_table_print(&table, out, style);
    text_table_free(&table);
    return fine;
}

/* Rows are what is right, columns what was answered. */
static bool print_confusions(const confusion *c, FILE *out, result_format style)
{
    text_table table = text_table_make(c->labels + 1);
    text_table_add(&table, "right");
    for (size_t k = 0; k < c->labels; k++) text_table_add(&table, "%zu", k);
    for (size_t right = 0; right < c->labels; right++) {
        text_table_add(&table, "%zu", right);
        for (size_t answered = 0; answered < c->labels; answered++) {
            const size_t count = confusion_at(c, right, answered);
            text_table_add(&table, count ? "%zu" : ".", count);
        }
    }
    const bool fine = text_table_print(&table, out, style);
    text_table_free(&table);
    return fine;
}

bool eval_print(const eval_findings *findings, FILE *out, result_format format)
{
    const classification_score score = confusion_score(&findings->confusion);
    const result_format style = format;
    if (format == RESULT_CSV || format == RESULT_LATEX) return print_classes(findings, out, style);
    fprintf(out, "accuracy %.1f %% (95 %%: %.1f to %.1f), %zu of %zu; always the most frequent label: %.1f %%\n",
            100 * score.accuracy, 100 * score.low, 100 * score.high, score.hits, score.texts, 100 * score.majority);
    fprintf(out, "macro F1 %.3f, over the labels that occur\n", score.macro_f1);
    if (findings->bad) fprintf(out, "%zu line%s could not be used\n", findings->bad, findings->bad == 1 ? "" : "s");
    fputc('\n', out);
    if (!print_classes(findings, out, style)) return false;
    fprintf(out, "\nright (rows) and answered (columns), by index\n\n");
    return print_confusions(&findings->confusion, out, style);
}
