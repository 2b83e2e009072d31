/* Counts pairs by name, and fills tables from the counts. SPDX-License-Identifier: MIT */
#include "program/tasks/pair_output.h"

#include <string.h>

#include "analysis/classification.h"

const char *const pair_score_names[] = {"pll", "rtd", NULL};

/* Neighbouring pairs mostly share a name, so the search begins with the latest group. */
static void count_in(scope *memory, pair_groups *list, const char *name, bool right)
{
    size_t k = list->count;
    while (k > 0 && strcmp(list->groups[k - 1].name, name) != 0) k--;
    if (k == 0) {
        list->groups = scope_grown(memory, list->groups, &list->capacity, list->count, sizeof *list->groups);
        list->groups[list->count] = (pair_group){.name = scope_text(memory, "%s", name)};
        k = ++list->count;
    }
    list->groups[k - 1].pairs++;
    list->groups[k - 1].right += right;
}

void pair_findings_add(pair_findings *findings, const char *paradigm, const char *term, double good, double bad)
{
    const bool right = good > bad;
    findings->pairs++;
    findings->right += right;
    findings->ties += good == bad;
    count_in(&findings->memory, &findings->paradigms, paradigm, right);
    if (term) count_in(&findings->memory, &findings->terms, term, right);
}

void pair_findings_free(pair_findings *findings)
{
    scope_free(&findings->memory);
    *findings = (pair_findings){0};
}

/* Columns of a table by group; the intervals are Wilson's at 95 %. */
#define GROUP_COLUMNS(title)                                                                                           \
    {                                                                                                                  \
        {"name", title, COLUMN_TEXT, NULL, 0}, {"pairs", NULL, COLUMN_INTEGER, NULL, 0},                               \
            {"right", NULL, COLUMN_INTEGER, NULL, 0}, {"accuracy", NULL, COLUMN_REAL, "%.3f", 0},                      \
            {"low", NULL, COLUMN_REAL, "%.3f", 0}, {"high", NULL, COLUMN_REAL, "%.3f", 0}, {.name = NULL},             \
    }
static const result_column paradigm_columns[] = GROUP_COLUMNS("paradigm"), term_columns[] = GROUP_COLUMNS("term");

static void add_groups(result_table *table, const pair_groups *list)
{
    for (size_t k = 0; k < list->count; k++) {
        const pair_group *group = &list->groups[k];
        const accuracy_score score = accuracy_of(group->right, group->pairs);
        cell_text(table, "%s", group->name);
        cell_integer(table, (int64_t)group->pairs);
        cell_integer(table, (int64_t)group->right);
        cell_real(table, score.accuracy);
        cell_real(table, score.low);
        cell_real(table, score.high);
    }
}

result *pair_result(const pair_findings *findings)
{
    static const char *const sums[] = {"the log likelihood of each token among the others",
                                       "the log probability that a token was not replaced"};
    const accuracy_score score = accuracy_of(findings->right, findings->pairs);
    result *r = result_new("deberta-minimal-pairs/1");
    json_t *about =
        json_pack("{s:s, s:s, s:I, s:I, s:f, s:[f, f], s:I, s:I}", "score", pair_score_names[findings->score], "head",
                  findings->head, "pairs", (json_int_t)findings->pairs, "right", (json_int_t)findings->right,
                  "accuracy", score.accuracy, "interval", score.low, score.high, "ties", (json_int_t)findings->ties,
                  "bad", (json_int_t)findings->bad);
    json_object_update(result_json(r), about);
    json_decref(about);
    if (findings->precision) result_set(r, "precision", json_string(findings->precision));
    if (findings->ablated) result_set(r, "ablate", json_string(findings->ablated));
    result_say(r, "accuracy %.1f %% (95 %%: %.1f to %.1f): of %zu of %zu pairs the good sentence is likelier",
               100 * score.accuracy, 100 * score.low, 100 * score.high, findings->right, findings->pairs);
    result_say(r, "a sentence's score: the sum of %s (head '%s')", sums[findings->score], findings->head);
    if (findings->precision) result_say(r, "linear layers in %s", findings->precision);
    if (findings->ablated) result_say(r, "ablated: %s", findings->ablated);
    if (findings->ties)
        result_say(r, "%zu pair%s: equal scores, which are not right", findings->ties, findings->ties == 1 ? "" : "s");
    if (findings->bad) result_say(r, "%zu line%s could not be used", findings->bad, findings->bad == 1 ? "" : "s");
    result_table *paradigms = result_add_table(r, "paradigms", "by paradigm, with intervals of 95 %", paradigm_columns),
                 *terms = result_add_table(r, "terms", findings->terms.count ? "by term" : NULL, term_columns);
    if (!findings->terms.count) result_leave_out(terms, NOT_IN_TABLES);
    add_groups(paradigms, &findings->paradigms);
    add_groups(terms, &findings->terms);
    result_set_data(r, paradigms, false);
    return r;
}
