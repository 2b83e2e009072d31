/* `attention trace` draws how much of an answer comes back when one place of a corrupted run takes what the clean run
 * has there: states, heads, terms of heads.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "output/json_text.h"
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/head_map.h"
#include "program/attention/trace_texts.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "program/frame/text_output.h"
#include "viz/ticks.h"

static const char *const directions[] = {"restore", "corrupt", NULL}, *const trace_decoders[] = {"emd", "plain", NULL};

typedef struct trace_run {
    figure_source *source;
    trace_texts texts;
    trace_report report;
    bool *layers, *heads; /* chosen: [L], [A] */
    bool corrupts;
    progress_bar bar;
} trace_run;

/* ------------------------------------------------------------------------------------------------------------ measuring */

static void step(void *context, size_t done, size_t total)
{
    trace_run *run = context;
    run->bar.total = total;
    progress_step(&run->bar, done, NULL);
}

static const char *const traced_parts[] = {"states", "heads", "terms", NULL};

static void parts_parse(common_options *options, const char *text, void *target)
{
    int length;
    const char *wrong = options_names_read(text, traced_parts, target, &length);
    if (wrong) option_wrong(options, target, "expected some of states,heads,terms, found '%.*s'", length, wrong);
}

static void measure_places(trace_run *run)
{
    figure_source *source = run->source;
    const common_options *options = source->options;
    const attention_options *asked = source->asked;
    deberta_error error = {0};
    run->corrupts = asked->trace.direction == 1;
    run->texts = trace_texts_make(source);
    run->layers = options_take(options, source->info.layers, sizeof *run->layers);
    run->heads = options_take(options, source->info.heads, sizeof *run->heads);
    for (size_t k = 0; k < source->layer_count; k++) run->layers[source->layers[k]] = true;
    for (size_t k = 0; k < source->head_count; k++) run->heads[source->heads[k]] = true;
    if (asked->trace.parts & TRACE_OF_TERMS && options->precision == DEBERTA_PRECISION_INT8)
        option_wrong(options, &asked->trace.parts,
                     "terms are traced where attention is float32, and --precision int8 has integers: --what "
                     "states,heads");
    trace_options trace = {.model = source->model,
                           .tokens = run->texts.tokens,
                           .clean = run->texts.clean,
                           .corrupted = run->texts.corrupted,
                           .clean_types = run->texts.clean_types,
                           .corrupted_types = run->texts.corrupted_types,
                           .noise = run->texts.noise,
                           .answer = run->texts.answer,
                           .parts = asked->trace.parts,
                           .layers = run->layers,
                           .heads = run->heads,
                           .corrupts = run->corrupts,
                           .progress = step,
                           .context = run};
    fill_session_options(options, &trace.session);
    run->bar = progress_begin(options, "tracing", 0);
    const deberta_status status = trace_measure(&run->report, &trace, &error);
    progress_end(&run->bar);
    must(options, status, &error);
}

/* ------------------------------------------------------------------------------------------------------------- numbers */

/* The chosen entries of an array [L or L + 1][columns], as shares of the difference or as they are. */
typedef struct trace_grid {
    const char *part, *term; /* term: NULL but of terms */
    const double *values;
    size_t rows, columns;
} trace_grid;

enum { MOST_GRIDS = 2 + TRACE_TERMS };

static size_t list_grids(const trace_run *run, trace_grid grids[MOST_GRIDS])
{
    const figure_source *source = run->source;
    const size_t layers = source->info.layers, heads = source->info.heads;
    const unsigned parts = source->asked->trace.parts;
    size_t count = 0;
    if (parts & TRACE_STATES)
        grids[count++] = (trace_grid){"states", NULL, run->report.states, layers + 1, run->texts.tokens};
    if (parts & TRACE_HEADS) grids[count++] = (trace_grid){"heads", NULL, run->report.heads, layers, heads};
    for (deberta_component c = DEBERTA_C2C; c <= DEBERTA_P2C && parts & TRACE_OF_TERMS; c++)
        if (component_is_in(c, &source->info))
            grids[count++] = (trace_grid){"terms", deberta_component_name(c),
                                          run->report.terms + (size_t)c * layers * heads, layers, heads};
    return count;
}

static double share(const trace_run *run, double value) { return trace_share(&run->report, run->corrupts, value); }

/* Returns which tokens are shown: [tokens]. */
static bool *list_shown(const trace_run *run)
{
    const token_view *view = &run->source->view;
    bool *shown = options_take(run->source->options, run->texts.tokens, sizeof *shown);
    for (size_t k = 0; k < view->count; k++) shown[view->tokens[k]] = true;
    return shown;
}

/* Adds a line to the data for each place that was patched, if it is shown. */
static void add_lines(figure_sheet *sheet, const trace_run *run)
{
    const common_options *options = run->source->options;
    trace_grid grids[MOST_GRIDS];
    const size_t count = list_grids(run, grids), most = run->report.variants;
    const char **parts = options_take(options, most, sizeof *parts),
               **terms = options_take(options, most, sizeof *terms),
               **names = options_take(options, most, sizeof *names);
    double *layers = options_take(options, most, sizeof *layers),
           *indices = options_take(options, most, sizeof *indices),
           *measures = options_take(options, most, sizeof *measures),
           *shares = options_take(options, most, sizeof *shares);
    const bool *shown = list_shown(run);
    size_t line = 0;
    for (size_t g = 0; g < count; g++) {
        const bool of_tokens = strcmp(grids[g].part, "states") == 0;
        for (size_t k = 0; k < grids[g].rows * grids[g].columns; k++) {
            const size_t index = k % grids[g].columns;
            if (isnan(grids[g].values[k]) || (of_tokens && !shown[index])) continue;
            parts[line] = grids[g].part;
            terms[line] = grids[g].term ? grids[g].term : "";
            names[line] = of_tokens ? run->source->input.labels[run->source->view.first_token + index] : "";
            layers[line] = (double)(k / grids[g].columns);
            indices[line] = (double)index;
            measures[line] = grids[g].values[k];
            shares[line++] = share(run, grids[g].values[k]);
        }
    }
    sheet->data.line_count = line;
    figure_data_add_column(&sheet->data, (figure_column){.name = "part", .texts = parts});
    figure_data_add_column(&sheet->data, (figure_column){.name = "term", .texts = terms});
    sheet_add_numbers(sheet, "layer", layers, line);
    sheet_add_numbers(sheet, "index", indices, line);
    figure_data_add_column(&sheet->data, (figure_column){.name = "token", .texts = names});
    sheet_add_numbers(sheet, "measure", measures, line);
    sheet_add_numbers(sheet, "share", shares, line);
}

/* ---------------------------------------------------------------------------------------------------------------- JSON */

static json_t *json_grid(const trace_run *run, const trace_grid *grid, bool shares)
{
    json_t *rows = json_array();
    for (size_t r = 0; r < grid->rows; r++) {
        json_t *row = json_array();
        for (size_t c = 0; c < grid->columns; c++) {
            const double value = grid->values[r * grid->columns + c], shown = shares ? share(run, value) : value;
            json_add(row, isfinite(shown) ? json_real(shown) : json_null());
        }
        json_add(rows, row);
    }
    return rows;
}

static json_t *json_labels(const trace_run *run, const int32_t *ids)
{
    const figure_source *source = run->source;
    json_t *labels = json_array();
    for (size_t t = 0; t < run->texts.tokens; t++) {
        const char *token =
            source->input.tokenizer ? deberta_tokenizer_token(source->input.tokenizer, ids[t], NULL) : NULL;
        json_add(labels, token ? json_clean_text(token) : json_integer(ids[t]));
    }
    return labels;
}

static json_t *json_answer(const trace_run *run)
{
    const trace_answer *answer = &run->report.answer;
    json_t *object = json_object();
    json_put(object, "head", json_string(deberta_task_name(answer->task)));
    if (answer->task != DEBERTA_TASK_SEQUENCE) json_put(object, "token", json_integer((json_int_t)answer->position));
    json_put(object, "column", json_integer(answer->column));
    json_put(object, "name", json_clean_text(trace_column_name(run->source, answer, answer->column)));
    if (answer->contrast < 0) return object;
    json_put(object, "contrast_column", json_integer(answer->contrast));
    json_put(object, "contrast_name", json_clean_text(trace_column_name(run->source, answer, answer->contrast)));
    return object;
}

static const char *measure_name(const trace_run *run)
{
    return run->report.answer.contrast < 0 ? "probability" : "logit difference";
}

static const char *const together_names[TOGETHER_COUNT] = {"c2c", "c2p", "p2c", "terms", "heads"};

static json_t *json_together(const trace_run *run, bool shares)
{
    json_t *object = json_object();
    for (size_t k = 0; k < TOGETHER_COUNT; k++) {
        const double value = run->report.together[k];
        if (!isnan(value)) json_put(object, together_names[k], json_real(shares ? share(run, value) : value));
    }
    return object;
}

static void print_trace(const trace_run *run)
{
    trace_grid grids[MOST_GRIDS];
    const size_t count = list_grids(run, grids);
    json_t *object = json_object(), *measures = json_object(), *shares = json_object();
    json_put(object, "schema", json_string("deberta-trace/1"));
    json_put(object, "model", json_clean_text(run->source->info.name));
    json_put(object, "tokens", json_labels(run, run->texts.clean));
    json_put(object, "corrupted_tokens", json_labels(run, run->texts.corrupted));
    json_put(object, "corruption", json_clean_text(run->texts.what));
    json_put(object, "direction", json_string(directions[run->corrupts]));
    json_put(object, "answer", json_answer(run));
    json_put(object, "measure", json_string(measure_name(run)));
    json_put(object, "clean", json_real(run->report.clean));
    json_put(object, "corrupted", json_real(run->report.corrupted));
    for (size_t g = 0; g < count; g++) {
        const char *name = grids[g].term ? grids[g].term : grids[g].part;
        json_put(measures, name, json_grid(run, &grids[g], false));
        json_put(shares, name, json_grid(run, &grids[g], true));
    }
    json_put(measures, "together", json_together(run, false));
    json_put(shares, "together", json_together(run, true));
    json_put(object, "measures", measures);
    json_put(object, "shares", shares);
    print_json_to(run->source->options, NULL, object);
}

/* ------------------------------------------------------------------------------------------------------------- drawing */

/* States above, with tokens down and layers across; heads and terms below, with layers down and heads across. */
typedef struct trace_figure {
    attention_figure states, heads;
    bool has_states, has_heads;
} trace_figure;

static deberta_status layout(draw_list *list, const void *what, figure_notes *notes, deberta_error *err)
{
    const trace_figure *figure = what;
    if (!figure->has_heads) return attention_layout(list, &figure->states, notes, err);
    if (!figure->has_states) return attention_layout(list, &figure->heads, notes, err);
    figure_notes of_heads = {0};
    DEBERTA_TRY(attention_layout(list, &figure->states, notes, err));
    const double width = draw_page_width(list), height = draw_page_height(list) + 2;
    draw_set_origin(list, 0, height);
    const deberta_status status = attention_layout(list, &figure->heads, &of_heads, err);
    draw_set_origin(list, 0, 0);
    draw_set_page(list, fmax(width, draw_page_width(list)), height + draw_page_height(list));
    notes->clipped += of_heads.clipped;
    notes->page_width = fmax(notes->page_width, of_heads.page_width);
    return status;
}

static const char *unit(const trace_run *run) { return run->corrupts ? "share lost" : "share restored"; }

static attention_panel panel_of(const trace_run *run, const trace_grid *grid, const char *title, const size_t *rows,
                                size_t row_count, const size_t *columns, size_t column_count, bool columns_first)
{
    float *cells = options_take(run->source->options, row_count * column_count, sizeof *cells);
    for (size_t i = 0; i < row_count; i++)
        for (size_t j = 0; j < column_count; j++) {
            const size_t r = columns_first ? columns[j] : rows[i], c = columns_first ? rows[i] : columns[j];
            cells[i * column_count + j] = (float)share(run, grid->values[r * grid->columns + c]);
        }
    return (attention_panel){.values = cells, .stride = column_count, .title = title, .kind = HEATMAP_SIGNED};
}

/* Lists the chosen states: the input of each chosen layer, and with the last layer its output, if that is read. */
static size_t *list_states(const trace_run *run, size_t *count)
{
    const figure_source *source = run->source;
    size_t *states = options_take(source->options, source->info.layers + 1, sizeof *states);
    for (size_t l = 0; l < run->report.states_end; l++)
        if (run->layers[l < source->info.layers ? l : source->info.layers - 1]) states[(*count)++] = l;
    return states;
}

/* Returns the aspect of a cell that gives each token a line of type, also where few layers do not fill the width. */
static double state_aspect(const figure_source *source, size_t columns)
{
    const double line = 3.6, beside = 35, widest_cell = 10; /* mm of a token, of tokens and colour bar, of a layer */
    const double across = figure_defaults(&source->asked->style).width_mm - beside;
    return fmin(1, fmax(0.15, line / fmin(widest_cell, across / (double)columns)));
}

static void describe_states(const figure_sheet *sheet, const trace_run *run, const trace_grid *grid,
                            attention_figure *figure)
{
    const figure_source *source = run->source;
    size_t count = 0;
    const size_t *states = list_states(run, &count);
    attention_panel *panel = options_take(source->options, 1, sizeof *panel);
    panels_open(sheet, figure);
    *panel = panel_of(run, grid, "states H[l], inputs of layers", source->view.tokens, source->view.count, states,
                      count, true);
    figure->panels = panel;
    figure->grid_rows = figure->grid_columns = 1;
    figure->keys = count;
    figure->key_labels = head_number_labels(source, states, count);
    figure->key_numbers = states;
    figure->boundary_count = 0;
    figure->query_axis = "token";
    figure->key_axis = "layer";
    figure->cell_aspect = state_aspect(source, count);
    figure->keep_row_mean = true;
    figure->units[HEATMAP_SIGNED] = unit(run);
}

static void describe_heads(const figure_sheet *sheet, const trace_run *run, const trace_grid *grids, size_t count,
                           attention_figure *figure)
{
    const figure_source *source = run->source;
    attention_panel *panels = options_take(source->options, count, sizeof *panels);
    panels_open(sheet, figure);
    for (size_t k = 0; k < count; k++)
        panels[k] = panel_of(run, &grids[k], grids[k].term ? grids[k].term : "heads", source->layers,
                             source->layer_count, source->heads, source->head_count, false);
    figure->panels = panels;
    figure->grid_rows = 1;
    figure->grid_columns = count;
    head_map_axes(source, figure);
    figure->annotate_if_room = false;
    figure->units[HEATMAP_SIGNED] = unit(run);
}

/* Notes the facts that a reader of the figure needs: both runs, what was corrupted, what was asked. */
static void say_runs(figure_sheet *sheet, const trace_run *run)
{
    const figure_source *source = run->source;
    const trace_answer *answer = &run->report.answer;
    const bool anonymous = source->asked->anonymous;
    const char *asked = trace_column_name(source, answer, answer->column);
    if (answer->contrast >= 0)
        asked = options_text(source->options, "%s less %s", asked, trace_column_name(source, answer, answer->contrast));
    char clean[TICK_TEXT_BYTES], corrupted[TICK_TEXT_BYTES], returned[TICK_TEXT_BYTES];
    tick_number(run->report.clean, 3, false, clean);
    tick_number(run->report.corrupted, 3, false, corrupted);
    sheet_note(sheet, "%s%s%s: clean %s, corrupted %s. ", answer->contrast < 0 ? "Probability" : "Logit difference",
               anonymous ? "" : " of ", anonymous ? "" : asked, clean, corrupted);
    if (!anonymous) sheet_note(sheet, "Corrupted: %s. ", run->texts.what);
    const char *together = "";
    for (size_t k = 0; k < TOGETHER_COUNT; k++)
        if (!isnan(run->report.together[k])) {
            tick_number(share(run, run->report.together[k]), 2, true, returned);
            together = options_text(source->options, "%s%s%s %s", together, *together ? ", " : "", together_names[k],
                                    returned);
        }
    if (*together) sheet_note(sheet, "All heads of all layers together: %s. ", together);
    if (run->report.states_end == source->info.layers && source->asked->trace.parts & TRACE_STATES)
        sheet_note(sheet, "The Enhanced Mask Decoder does not read the last layer\u2019s output. ");
}

static const double least_difference = 0.05; /* as a part of the stronger answer */

/* Says where shares mean little: they are parts of the difference of two runs. */
static void say_if_wrong(const trace_run *run)
{
    const double clean = run->report.clean, corrupted = run->report.corrupted;
    if (clean < corrupted)
        say_note(run->source->options,
                 "note: the answer is stronger in the corrupted text (%.4g) than in the clean one (%.4g)", corrupted,
                 clean);
    if (fabs(clean - corrupted) <= least_difference * fmax(fabs(clean), fabs(corrupted)))
        say_note(run->source->options,
                 "note: clean (%.4g) and corrupted (%.4g) answers differ by less than %g %%, and shares are of that "
                 "difference: take another corruption",
                 clean, corrupted, 100 * least_difference);
}

/* Names the options of parts that --what leaves out. */
static void note_left_out(const figure_source *source)
{
    const attention_options *asked = source->asked;
    if (!(asked->trace.parts & (TRACE_HEADS | TRACE_OF_TERMS)))
        option_note_unused(source->options, &asked->heads, "states have no heads, which --what may name too");
    if (asked->trace.parts & TRACE_STATES) return;
    const char *why = "heads and terms are traced for all tokens: --what states has them one by one";
    option_note_unused(source->options, &asked->shown, why);
    option_note_unused(source->options, &asked->shown.drop_special, why);
}

static void figure_trace_draw(figure_source *source, figure_sheet *sheet)
{
    trace_run run = {.source = source};
    trace_figure figure = {0};
    trace_grid grids[MOST_GRIDS];
    note_left_out(source);
    measure_places(&run);
    const size_t count = list_grids(&run, grids);
    figure.has_states = source->asked->trace.parts & TRACE_STATES;
    figure.has_heads = count > figure.has_states;
    say_runs(sheet, &run);
    sheet_caption(sheet, run.corrupts
                             ? "How much of an answer is lost when one place of the run on a clean text takes "
                               "what the run on a corrupted text has there. "
                             : "How much of an answer comes back when one place of the run on a corrupted text "
                               "takes what the run on the clean text has there. ");
    say_if_wrong(&run);
    add_lines(sheet, &run);
    if (source->options->json) {
        if (figure.has_states && source->view.count < run.texts.tokens)
            say_note(source->options,
                     "note: --json has all %zu tokens; --token-range and --drop-special choose those of the figure and "
                     "of --numbers",
                     run.texts.tokens);
        print_trace(&run);
    }
    if (source->options->outs.count || source->asked->data) {
        panels_check_limits(source, source->asked->scales, (bool[HEATMAP_KINDS]){[HEATMAP_SIGNED] = true});
        if (figure.has_states) describe_states(sheet, &run, &grids[0], &figure.states);
        if (figure.has_heads)
            describe_heads(sheet, &run, grids + figure.has_states, count - figure.has_states, &figure.heads);
        if (figure.has_states && figure.has_heads) { /* the note stands under both, the title above */
            figure.states.style.note = NULL;
            figure.heads.style.title = NULL;
        }
        sheet_finish(sheet, layout, &figure);
    }
    scope_free(&run.report.memory);
}

/* clang-format off */
static const option trace_rows[] = {
    {"corrupted", 0, "TEXT", "the corrupted text, of as many tokens; with --ids a list of ids", TEXT_AT(attention_options, trace.corrupted)},
    {"mask-word", 0, "WORD", "corrupt by [MASK] in the place of a word, or of the token of this number", TEXT_AT(attention_options, trace.mask_word), .not_with = "corrupted"},
    {"swap", 0, "A,B", "corrupt by exchanging two words", TEXT_AT(attention_options, trace.swap), .not_with = "corrupted mask-word"},
    {"noise", 0, "WORDS", "corrupt by noise on the embeddings of these words, which --seed draws", TEXT_AT(attention_options, trace.noise), .not_with = "corrupted mask-word swap"},
    {"noise-scale", 0, "X", "its standard deviation, in those of the word table (default 3)", NUMBER_AT(attention_options, trace.noise_scale, 1e-6, 1e6), .needs = "noise"},
    {"answer", 0, "WORD[,OTHER]", "the word at [MASK] whose probability is followed, or its logit less that of the other (default: the clean run's most probable word)",
     TEXT_AT(attention_options, trace.answer)},
    {"class", 0, "LABEL[,OTHER]", "the same of a classifier's label (default: the clean run's first)", TEXT_AT(attention_options, trace.label), .not_with = "answer"},
    {"at", 0, "N", "the token at which the answer is looked for (default: the one [MASK])", SIZE_AT(attention_options, trace.at, 0, SIZE_MAX - 1), .not_with = "class"},
    {"mlm-decoder", 0, "NAME", "head: emd, the Enhanced Mask Decoder (default where there is one), or plain, on the last layer, as transformers has it", CHOICE_AT(attention_options, trace.mlm_decoder, trace_decoders), .not_with = "class"},
    {"direction", 0, "WHAT", "restore (default): clean values into the corrupted run; corrupt: the other way round", CHOICE_AT(attention_options, trace.direction, directions)},
    {"what", 0, "LIST", "some of states,heads,terms (default: all)", PARSED_AT(attention_options, trace.parts, parts_parse),
     .choices = traced_parts},
    NO_MORE_ROWS};
static const option part[] = {HEADS_ROWS,
    {"token-range", 0, "A:B", "show tokens A to B-1 of the text only", PARSED_AT(attention_options, shown, tokens_parse)},
    {"drop-special", 0, NULL, "leave special tokens out of the figure", FLAG_AT(attention_options, shown.drop_special)},
    NO_MORE_ROWS};
/* clang-format on */
static const option look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, ANNOTATE_ROW, LETTERS_ROW, NO_MORE_ROWS};
static const option_group groups[] = {{attention_input_rows, 0, "input"},
                                      {trace_rows, 0, "what is traced"},
                                      {part, 0, "part of it"},
                                      {look, 0, "colours and layout"},
                                      {attention_page_rows, 0, "page"},
                                      {attention_file_rows, 0, "files"},
                                      {NULL, 0, NULL}};

const figure_kind figure_trace = {
    FIGURE_COMMAND_WITHOUT(
        NULL, "trace", "which states, heads and terms bring an answer back into a corrupted text",
        "--text 'The old [MASK] told a story.' --mask-word old --answer man -o trace.pdf", groups, EVERY_HEAD,
        .trace = {.noise_scale = 3, .at = SIZE_MAX, .parts = TRACE_STATES | TRACE_HEADS | TRACE_OF_TERMS}),
    .draw = figure_trace_draw,
};
