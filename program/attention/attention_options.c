/* Parses the options of figures, and defines the rows of their tables that all kinds share.
 * SPDX-License-Identifier: MIT */
#include "program/attention/attention_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "program/attention/figure_data.h"
#include "program/frame/input/input.h"
#include "program/frame/output_names.h"
#include "program/frame/text_output.h"

const char *const figure_measures[] = {"variance", "shapley", "kl", NULL},
                  *const figure_forms[] = {"map", "bars", NULL}, *const figure_statistics[] = {"median", "mean", NULL},
                  *const figure_centres[] = {"row", "none", NULL};

const option attention_input_rows[] = {
    INPUT_OPTIONS,
    ABLATE_OPTION,
    {"row", 0, "N", "which row of the input to draw (default 0)", SIZE_AT(attention_options, row, 0, SIZE_MAX)},
    NO_MORE_ROWS,
};

const option attention_page_rows[] = {
    FIGURE_STYLE_ROWS(attention_options, style),
    {"anonymous", 0, NULL, "no file names the model, the text or the command", FLAG_AT(attention_options, anonymous)},
    NO_MORE_ROWS,
};

const option attention_file_rows[] = {
    {"out", 'o', "PATH", "the figure: .png, .svg or .pdf; may be repeated", TEXTS_AT(common_options, outs),
     .role = OPTION_OUTPUT},
    {"numbers", 0, "FILE", "its numbers, cells neither centred nor pooled: .csv or .safetensors",
     TEXT_AT(attention_options, data), .role = OPTION_OUTPUT},
    {"latex", 0, "FILE", "a .tex file beside the figure: \\includegraphics, caption and label",
     TEXT_AT(attention_options, latex), .role = OPTION_OUTPUT, .needs = "out"},
    NO_MORE_ROWS,
};

/* Returns true if a panel can have the scale that --scale gave with this text. */
static bool scale_counts(const attention_options *asked, const char *text)
{
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++)
        if ((kind != HEATMAP_LOG || asked->logarithmic) && asked->scale_text[kind] &&
            strcmp(asked->scale_text[kind], text) == 0)
            return true;
    return false;
}

/* Names each --scale that later ones replaced for all panels: limits of both signs add up, most others do not. */
static void note_replaced_scales(const attention_options *asked)
{
    const text_list *texts = &asked->scale_texts;
    for (size_t k = 0; k + 1 < texts->count; k++)
        if (!scale_counts(asked, texts->items[k]))
            say_note(&asked->reading.common, "note: --scale: the last counts for panels of one kind: '%s', not '%s'",
                     texts->items[texts->count - 1], texts->items[k]);
}

/* Refuses what changes a picture where there is none: the numbers are the same without it. */
static void refuse_looks(const attention_options *asked)
{
    static const char why[] = "changes a picture, and none is drawn: name one with --out FILE.pdf";
    const common_options *common = &asked->reading.common;
    const void *const members[] = {&asked->scales,   &asked->palette,     &asked->signed_palette,
                                   &asked->annotate, &asked->letters,     &asked->columns,
                                   &asked->marks,    &asked->logarithmic, &asked->form};
    figure_style_refuse(common, &asked->style, why);
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        if (option_given(common, members[k])) option_wrong(common, members[k], "%s", why);
    /* curves over distances are centred in the numbers too */
    if (!option_exists(common, &asked->ribbon) && option_given(common, &asked->centre))
        option_wrong(common, &asked->centre, "%s", why);
}

void attention_options_check(const attention_options *asked)
{
    const common_options *common = &asked->reading.common;
    check_figure_paths(common);
    if (asked->data && !figure_data_knows_suffix(asked->data))
        option_wrong(common, &asked->data, "unknown suffix in '%s', expected .csv or .safetensors", asked->data);
    if (asked->latex && !path_has_suffix(asked->latex, ".tex"))
        option_wrong(common, &asked->latex, "unknown suffix in '%s', expected .tex", asked->latex);
    if (!common->outs.count && !asked->data && !common->json)
        usage_wrong(common,
                    "say where the figure goes: --out FILE.png (or .svg, .pdf), or where its numbers go: "
                    "--numbers FILE.csv (or .safetensors)%s",
                    options_find(common->command, "json") ? ", or --json" : "");
    if (!common->outs.count) refuse_looks(asked);
    note_replaced_scales(asked);
}

void component_list(unsigned components, char text[COMPONENT_LIST_BYTES])
{
    size_t used = 0;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (components >> c & 1)
            used += (size_t)snprintf(text + used, COMPONENT_LIST_BYTES - used, "%s%s", used ? "," : "",
                                     deberta_component_name(c));
}

const char *const component_choices[] = {"c2c", "c2p", "p2c", "logits", "probs", NULL};
_Static_assert(sizeof component_choices / sizeof *component_choices == DEBERTA_COMPONENT_COUNT + 1, "a name for each");

void components_parse(common_options *options, const char *text, void *target)
{
    int length;
    const char *wrong = options_names_read(text, component_choices, target, &length);
    if (wrong) option_wrong(options, target, "expected some of c2c,c2p,p2c,logits,probs, found '%.*s'", length, wrong);
}

void tokens_parse(common_options *options, const char *text, void *target)
{
    token_view_choice *shown = target;
    char *colon, *end;
    bool fine = *text >= '0' && *text <= '9';
    errno = 0;
    if (fine) shown->first = strtoull(text, &colon, 10);
    fine = fine && *colon == ':' && ((colon[1] >= '0' && colon[1] <= '9') || colon[1] == 0);
    shown->end = SIZE_MAX;
    if (fine && colon[1]) {
        shown->end = strtoull(colon + 1, &end, 10);
        fine = *end == 0 && shown->first < shown->end && shown->end < SIZE_MAX; /* SIZE_MAX is an open end */
    }
    fine = fine && errno == 0;
    if (fine) return;
    option_wrong(options, target, "expected FIRST:END such as 0:8 (the end is not shown) or 4:, found '%s'", text);
}

/* Parses "shared", "panel", "robust", "robust:98" or "-2,2". */
static bool read_scale(const char *text, heatmap_choice *choice)
{
    char *end = NULL;
    const char *const words[] = {[HEATMAP_SHARED] = "shared",
                                 [HEATMAP_PANEL] = "panel",
                                 [HEATMAP_ROW] = "row",
                                 [HEATMAP_FIXED] = "",
                                 [HEATMAP_ROBUST] = "robust"};
    for (heatmap_policy policy = HEATMAP_SHARED; *text && policy <= HEATMAP_ROBUST; policy++)
        if (strcmp(text, words[policy]) == 0) {
            *choice = (heatmap_choice){.policy = policy};
            return true;
        }
    if (strncmp(text, "robust:", 7) == 0) {
        *choice = (heatmap_choice){.policy = HEATMAP_ROBUST, .percentile = strtod(text + 7, &end)};
        return end > text + 7 && *end == 0 && choice->percentile > 50 && choice->percentile <= 100;
    }
    *choice = (heatmap_choice){.policy = HEATMAP_FIXED, .low = strtod(text, &end)};
    if (end == text || *end != ',') return false;
    const char *high = end + 1;
    choice->high = strtod(high, &end);
    return end > high && *end == 0 && isfinite(choice->low) && isfinite(choice->high) && choice->low < choice->high;
}

/* Parses --scale. Limits that begin below zero apply to signed panels, other limits to panels that cannot be
 * negative; a word applies to all. */
void scale_parse(common_options *options, const char *text, void *target)
{
    attention_options *asked = (attention_options *)options;
    heatmap_choice *scales = target, choice;
    if (!read_scale(text, &choice))
        option_wrong(options, target,
                     "expected shared, row, panel, LOW,HIGH with LOW < HIGH such as -2,2, or robust:PERCENTILE "
                     "with 50 < PERCENTILE <= 100, found '%s'",
                     text);
    const char **texts = options_take(options, asked->scale_texts.count + 1, sizeof *texts);
    if (asked->scale_texts.count) memcpy(texts, asked->scale_texts.items, asked->scale_texts.count * sizeof *texts);
    texts[asked->scale_texts.count] = text;
    asked->scale_texts = (text_list){texts, asked->scale_texts.count + 1};
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const bool fits = choice.policy != HEATMAP_FIXED || (choice.low < 0) == (kind == HEATMAP_SIGNED);
        if (!fits || (kind == HEATMAP_LOG && choice.policy == HEATMAP_FIXED && choice.low <= 0)) continue;
        asked->scale_text[kind] = text;
        scales[kind] = choice;
    }
}

/* Parses "3,5", the cell of query 3 and key 5, and adds it to a cell_list. */
void mark_parse(common_options *options, const char *text, void *target)
{
    cell_list *marks = target;
    unsigned long long query = 0, key = 0;
    int used = 0;
    if (sscanf(text, "%llu,%llu%n", &query, &key, &used) != 2 || text[used] || strpbrk(text, "+- "))
        option_wrong(options, target, "expected QUERY,KEY such as 3,5, found '%s'", text);
    attention_mark *items = options_take(options, marks->count + 1, sizeof *items);
    if (marks->count) memcpy(items, marks->items, marks->count * sizeof *items);
    items[marks->count] = (attention_mark){query, key};
    *marks = (cell_list){items, marks->count + 1};
}
