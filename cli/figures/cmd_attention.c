/* `deberta attention`: figures of attention. What is drawn is a kind of figure, each in a file of cli/figures.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "command/ablate.h"
#include "cli/commands.h"
#include "cli/figures/figure_kinds.h"
#include "command/input/input.h"
#include "command/run.h"

static int run(const parsed_options *options)
{
    const char *name = options_value(options, "figure", "components");
    if (options_has(options, "json"))
        return say_usage(options, "--json: figures are no JSON; --data FILE.csv has their numbers");
    if (strcmp(name, "list") == 0) return figure_kinds_print(options);
    const figure_kind *kind = figure_kind_find(name);
    if (!kind) return say_usage(options, "--figure: there is no kind '%s'; --figure list names them", name);
    if (options_argument_count(options) == 0)
        return say_usage(options, "expected MODEL, a folder or synthetic:<shape>");
    if (!figure_kind_takes_all(kind, options)) return EXIT_USAGE;
    figure_job job;
    int status = figure_job_open(&job, options, kind);
    if (status == EXIT_OK) status = kind->run(&job);
    figure_job_close(&job);
    return status;
}

static const option_spec options[] = {
    INPUT_OPTIONS,
    ABLATE_OPTION,
    {"figure", 0, "KIND", "what is drawn (default components); list prints the kinds"},
    {"row", 0, "N", "which row of the input to draw (default 0)"},
    {"layers", 0, "LIST", "layers, counted from 0: all, or such as 0,3-5 (default: 0, or what the kind needs)"},
    {"heads", 0, "LIST", "heads, counted from 0 (default: the same)"},
    {"components", 0, "LIST", "some of c2c,c2p,p2c,logits,probs (default: what the kind shows)"},
    {"measure", 0, "WHAT", "shares: variance (default), shapley or kl"},
    {"form", 0, "FORM", "shares: map (default) or bars"},
    {"statistic", 0, "WHAT", "distance, kernel: median (default of distance) or mean (of kernel)"},
    {"ribbon", 0, "PART", "distance, kernel: what the ribbon leaves out on each side (default 0.1)"},
    {"against", 0, "MODEL",
     "difference: the model that is subtracted; what both have is compared. Without it, two texts"},
    {"query", 0, "I", "query, lines: this query only, counted in tokens of the text from 0"},
    {"threshold", 0, "PART", "lines: weaker ones than this part of the strongest are left out (default 0.05)"},
    {"tokens", 0, "A:B", "show tokens A to B-1 of the text only"},
    {"drop-special", 0, NULL, "leave special tokens out; nothing is renormalised"},
    {"words", 0, NULL,
     "merge pieces into words (what white space separates): probabilities are added over the keys of a word and "
     "averaged over its queries, logits averaged over both"},
    {"center", 0, "WHAT", "row: subtract what is constant over the keys, which a softmax ignores (default); none"},
    {"scale", 0, "SCALE",
     "shared: one colour scale for all panels of a kind (default); panel: one each; robust[:P]: to percentile P "
     "(default 99), clipped cells counted; LOW,HIGH: signed panels if LOW < 0, else the others, and above 0 with "
     "--log; may be repeated"},
    {"palette", 0, "NAME", "of what cannot be negative: viridis, cividis (default), magma, polar"},
    {"signed-palette", 0, "NAME", "of signed panels: the same names (default polar, which is diverging)"},
    {"log", 0, NULL, "probabilities in logarithmic colours"},
    {"annotate", 0, NULL, "the number in every cell"},
    {"mark", 0, "QUERY,KEY", "outline this cell, counted in tokens of the text from 0; may be repeated"},
    {"letters", 0, NULL, "a, b, c before the titles of panels"},
    {"layout", 0, "COLUMNS", "panels side by side (default: as many as leave room for the tokens)"},
    {"title", 0, "TEXT", "above the figure"},
    {"width-mm", 0, "MM", "width on paper: 85 a column, 174 a page (default)"},
    {"dpi", 0, "N", "resolution of a PNG (default 300)"},
    {"font", 0, "FAMILY", "type of labels"},
    {"out", 'o', "FILE", "the figure: .png, .svg or .pdf; may be repeated", TEXTS_AT(common_options, outs),
     .role = OPTION_OUTPUT},
    {"data", 0, "FILE", "its numbers, neither centred nor pooled: .csv or .safetensors", .role = OPTION_OUTPUT},
    {"latex", 0, "FILE", "a .tex file beside the figure: \\includegraphics, caption and label", .role = OPTION_OUTPUT},
    {NULL, 0, NULL, NULL},
};

const command command_attention = {
    .name = "attention",
    .summary = "figures of attention: content-to-content, content-to-position, position-to-content and what they make",
    .arguments = "MODEL",
    .min_arguments = 0, /* --figure list needs none */
    .max_arguments = 1,
    .most_outputs = FIGURE_MOST_PATHS,
    .options = options,
    .size = sizeof(reading_options),
    .example = "  deberta attention models/demo --text 'a new store opened beside the new mall' -o attention.png\n"
               "  deberta attention synthetic:v3-xsmall --ids 1,7,3,11,5,2 --layers 0,1 --heads 0 -o attention.png -o "
               "attention.pdf\n",
    .run = run,
};
