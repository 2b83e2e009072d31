/* `attention difference` draws one text minus another, one model minus another, or a model before minus after an
 * ablation.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/frame/input/input.h"

/* The subtracted side. Where only the source is ablated, this is the side from which the source is subtracted. */
typedef struct other_side {
    common_options options; /* options of the source, with the ablations of this side */
    deberta_model *model;   /* NULL: the source's model */
    deberta_model_info info;
    deberta_session *session; /* NULL: the source's session */
    bool before;              /* true: a comparison with the unablated model, drawn as this side minus the source */
    token_view view;
    bool own_view; /* false: the view of the source is used */
    capture capture;
} other_side;

static void close_other(other_side *other)
{
    capture_free(&other->capture);
    deberta_session_free(&other->session);
    deberta_model_free(&other->model);
    if (other->own_view) token_view_free(&other->view);
}

static _Noreturn void refuse_component(const figure_source *source, const deberta_model_info *lacking,
                                       deberta_component component)
{
    option_wrong(source->options, &source->asked->components,
                 "%s has no %s, so there is nothing to subtract; both models have c2c, logits and probs%s%s",
                 lacking->name, deberta_component_name(component),
                 component != DEBERTA_C2P && component_is_in(DEBERTA_C2P, lacking) ? ", c2p" : "",
                 component != DEBERTA_P2C && component_is_in(DEBERTA_P2C, lacking) ? ", p2c" : "");
}

/* Refuses a term that one model lacks if it was asked for by name; otherwise leaves it out, with a note. */
static void choose_shared(figure_source *source, figure_sheet *sheet, const deberta_model_info *other)
{
    const attention_options *asked = source->asked;
    const bool by_name = option_given(source->options, &asked->components);
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        const bool own_has = component_is_in(c, &source->info);
        if (own_has == component_is_in(c, other)) continue;
        const deberta_model_info *lacking = own_has ? other : &source->info;
        if (by_name && asked->components >> c & 1) refuse_component(source, lacking, c);
        if (!by_name)
            sheet_note(sheet, "%s has no %s. ",
                       !asked->anonymous ? lacking->name
                       : own_has         ? "The second model"
                                         : "The first model",
                       deberta_component_name(c));
        source->components[c] = false;
    }
}

/* ----------------------------------------------------------------------------------------- what ids mean in both models */

/* Returns the tokenizer of a model; NULL: it has none. */
static deberta_tokenizer *open_tokenizer(const figure_source *source, const char *folder)
{
    deberta_tokenizer *tokenizer = NULL;
    deberta_error error = {0};
    if (strncmp(folder, "synthetic:", 10) == 0) return NULL;
    const deberta_status status = deberta_tokenizer_open(&tokenizer, folder, &error);
    if (status != DEBERTA_E_FILE) must(source->options, status, &error);
    return tokenizer;
}

static const char *spelling(const figure_source *source, const deberta_tokenizer *tokenizer, int32_t id)
{
    size_t bytes;
    const char *name = deberta_tokenizer_token(tokenizer, id, &bytes);
    return name ? options_text(source->options, "'%.*s'", (int)bytes, name) : "no token";
}

/* Refuses a model whose tokenizer makes other tokens of the text: both models are given the ids of the first. */
static void compare_text(const figure_source *source, const other_side *other, const deberta_tokenizer *its)
{
    const attention_options *asked = source->asked;
    const size_t row = source->view.row;
    const deberta_tokens *own = source->input.token_lists[row];
    const deberta_text text =
        input_text(&asked->reading, &source->input, row, input_token_limit(&asked->reading, &source->info));
    deberta_tokens *tokens = NULL;
    deberta_error error = {0};
    must(source->options, deberta_tokenize(&tokens, its, &text, &error), &error);
    size_t t = 0;
    while (t < own->count && t < tokens->count && own->ids[t] == tokens->ids[t] &&
           own->token_types[t] == tokens->token_types[t])
        t++;
    if (t < own->count || t < tokens->count)
        option_wrong(source->options, &asked->against,
                     "the tokenizer of %s reads the text otherwise: token %zu is %s (id %d) there, and %s (id %d) for "
                     "%s. A difference is of the same tokens: give a model of the same tokenizer, or the text as --ids",
                     other->info.name, t, t < tokens->count ? spelling(source, its, tokens->ids[t]) : "none",
                     t < tokens->count ? (int)tokens->ids[t] : -1,
                     t < own->count ? spelling(source, source->input.tokenizer, own->ids[t]) : "none",
                     t < own->count ? (int)own->ids[t] : -1, source->info.name);
    deberta_tokens_free(&tokens);
}

/* Notes the first id that is another token in the other model: ids are taken as they are given. */
static void compare_ids(const figure_source *source, const other_side *other, const deberta_tokenizer *its)
{
    deberta_tokenizer *own = open_tokenizer(source, source->options->arguments[0]);
    const int32_t *ids = source->input.ids + source->view.first_token;
    for (size_t t = 0; own && t < source->view.span[1]; t++) {
        const char *here = spelling(source, own, ids[t]), *there = spelling(source, its, ids[t]);
        if (strcmp(here, there) == 0) continue;
        say_note(source->options, "note: --minus: id %d is %s in %s and %s in %s: the ids are taken as they are",
                 (int)ids[t], here, source->info.name, there, other->info.name);
        break;
    }
    deberta_tokenizer_free(&own);
}

/* Checks that ids are the same tokens for both models. Those of a made-up model stand for no words. */
static void compare_tokenizers(const figure_source *source, const other_side *other)
{
    deberta_tokenizer *its = open_tokenizer(source, source->asked->against);
    if (its && source->input.token_lists)
        compare_text(source, other, its);
    else if (its)
        compare_ids(source, other, its);
    else if (source->input.token_lists && strncmp(source->asked->against, "synthetic:", 10) != 0)
        say_note(source->options, "note: --minus: %s has no tokenizer: it is given the ids that the text has in %s",
                 other->info.name, source->info.name);
    deberta_tokenizer_free(&its);
}

/* ---------------------------------------------------------------------------------------------------------- both sides */

/* Opens the other model. source_open_capture checks layers and heads, since models may have more than those shown. */
static void open_other_model(figure_source *source, figure_sheet *sheet, other_side *other)
{
    const deberta_model_info *own = &source->info, *its = &other->info;
    other->options = *source->options;
    other->options.ablated.items = source->asked->against_ablated.items;
    other->options.ablated.count = source->asked->against_ablated.count;
    other->model = source_open_model(source, &other->options, source->asked->against, &other->info);
    if (its->vocabulary_size != own->vocabulary_size)
        option_wrong(source->options, &source->asked->against,
                     "%s knows %zu tokens, %s %zu: ids would mean other things", its->name, its->vocabulary_size,
                     own->name, own->vocabulary_size);
    source_note_row(source);
    compare_tokenizers(source, other);
    choose_shared(source, sheet, its);
    other->session = source_open_session(source, &other->options, other->model, DEBERTA_OBSERVE_ATTENTION);
    other->view = source->view;
}

/* Encodes the text in the model without interventions. */
static void open_unablated(figure_source *source, other_side *other)
{
    other->options = *source->options;
    other->options.ablated.items = NULL;
    other->options.ablated.count = 0;
    other->info = source->info;
    other->view = source->view;
    other->before = true;
    other->session = source_open_session(source, &other->options, source->model, DEBERTA_OBSERVE_ATTENTION);
}

/* Opens the second of two texts, which must have as many tokens as the first after the choice of tokens. */
static void open_other_text(figure_source *source, other_side *other)
{
    const size_t rows = source->input.rows;
    deberta_error error = {0};
    if (rows != 2)
        usage_wrong(source->options,
                    "give two texts (--text A --text B), a second model (--minus MODEL) or an ablation; "
                    "there %s %zu %s",
                    rows == 1 ? "is" : "are", rows, rows == 1 ? "text" : "texts");
    other->info = source->info;
    other->own_view = true;
    source_must(source,
                token_view_make(&other->view, &source->input, 1 - source->view.row, &source->asked->shown, &error),
                &error);
    const token_view *own = &source->view, *its = &other->view;
    source->keeps_pieces = token_view_count_words(own, &source->input, &source->asked->shown, NULL) !=
                           token_view_count_words(its, &source->input, &source->asked->shown, NULL);
    if (its->span[1] != own->span[1] || its->count != own->count)
        usage_wrong(source->options, "the texts must have equally many tokens, found %zu and %zu",
                    own->whole ? own->span[1] : own->count, own->whole ? its->span[1] : its->count);
}

static void encode_other(figure_source *source, other_side *other)
{
    source_open_capture(source, &other->info, &other->view, &other->capture);
    const deberta_observer observer = capture_observer(&other->capture);
    source_observe(source, other->session ? other->session : source->session, other->view.row, &observer);
}

/* Labels a token as "mall", or as "mall/shop" where the texts differ. */
static const figure_label *join_labels(const figure_source *source, const figure_label *own, const figure_label *its)
{
    const size_t count = source->view.count;
    figure_label *labels = options_take(source->options, count, sizeof *labels);
    for (size_t t = 0; t < count; t++) {
        labels[t] = own[t];
        if (strcmp(own[t].text, its[t].text) != 0)
            labels[t].text = options_text(source->options, "%s/%s", own[t].text, its[t].text);
    }
    return labels;
}

static const float *subtract(void *context, const figure_source *source, size_t index, const panel_column *column)
{
    const other_side *other = context;
    const size_t cells = source->view.count * source->view.count, layer = source_layer(source, index),
                 head = source_head(source, index);
    const float *a = source_matrix(source, layer, head, column->component),
                *b = source_matrix_of(source, &other->capture, &other->view, layer, head, column->component);
    float *difference = options_take(source->options, cells, sizeof *difference);
    for (size_t c = 0; c < cells; c++) difference[c] = other->before ? b[c] - a[c] : a[c] - b[c];
    return difference;
}

/* Gives probabilities a scale and unit of their own. Their differences have signs, so they get the signed colours and
 * a range that is symmetric unless it was chosen. Limits below 0 apply to them where no other panel is signed. */
static void style_probabilities(attention_figure *figure)
{
    bool alone = true;
    for (size_t k = 0; k < figure->grid_rows * figure->grid_columns; k++)
        alone = alone && figure->panels[k].kind == HEATMAP_RANGE;
    figure->palettes[HEATMAP_RANGE] = figure->palettes[HEATMAP_SIGNED] ? figure->palettes[HEATMAP_SIGNED] : "polar";
    if (alone && figure->scales[HEATMAP_SIGNED].policy == HEATMAP_FIXED) {
        figure->scales[HEATMAP_RANGE] = figure->scales[HEATMAP_SIGNED];
        figure->scales[HEATMAP_SIGNED].policy = HEATMAP_SHARED; /* HEATMAP_SIGNED has no panel here */
    }
    figure->scales[HEATMAP_RANGE].symmetric = true;
    figure->units[HEATMAP_RANGE] = "difference of probability";
}

/* Returns the largest magnitude among the panels of a kind in a row of panels. */
static double row_reach(const attention_figure *figure, size_t row, heatmap_kind kind)
{
    double reach = 0;
    for (size_t k = row * figure->grid_columns; k < (row + 1) * figure->grid_columns; k++)
        for (size_t c = 0; c < figure->queries * figure->keys && figure->panels[k].kind == kind; c++)
            reach = fmax(reach, fabs((double)figure->panels[k].values[c]));
    return reach;
}

/* Gives each row its own scale if one would be nearly white on the scale of another, as above an ablated layer. A
 * scale that was chosen is kept. In a figure without row titles, each panel of a row counts as a row. */
static void part_scales(const figure_source *source, attention_figure *figure)
{
    enum { LEAST_PART = 4 };
    static const heatmap_kind kinds[] = {HEATMAP_SIGNED, HEATMAP_RANGE};
    const bool flows = !figure->row_titles;
    const size_t rows = flows ? figure->grid_columns : figure->grid_rows;
    attention_figure by_row = *figure;
    by_row.grid_columns = flows ? 1 : figure->grid_columns;
    bool dwarfed = false;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        double least = INFINITY, most = 0;
        for (size_t row = 0; row < rows; row++) {
            const double reach = row_reach(&by_row, row, kinds[kind]);
            if (reach > 0) least = fmin(least, reach); /* a reach of 0 means identical sides */
            most = fmax(most, reach);
        }
        dwarfed = dwarfed || most > LEAST_PART * least;
    }
    if (!dwarfed || option_given(source->options, &source->asked->scales)) return;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        figure->scales[kinds[kind]].policy = flows ? HEATMAP_PANEL : HEATMAP_ROW;
}

/* Returns the titles of the identical rows: "layer 0, head 1; layer 1, head 1". */
static const char *list_rows(const common_options *options, const attention_figure *figure, const bool *identical)
{
    const char *list = "";
    for (size_t row = 0; row < figure->grid_rows; row++)
        if (identical[row]) list = options_text(options, "%s%s%s", list, *list ? "; " : "", figure->row_titles[row]);
    return list;
}

/* Removes the rows whose sides are identical, or keeps only the first where all are. */
static void leave_out_rows(const common_options *options, attention_figure *figure, const bool *identical)
{
    const size_t columns = figure->grid_columns;
    attention_panel *panels = options_take(options, figure->grid_rows * columns, sizeof *panels);
    const char **short_titles = options_take(options, figure->grid_rows * columns, sizeof *short_titles),
               **words = options_take(options, figure->grid_rows * columns, sizeof *words),
               **titles = options_take(options, figure->grid_rows, sizeof *titles);
    size_t kept = 0;
    for (size_t row = 0; row < figure->grid_rows; row++) {
        if (identical[row]) continue;
        for (size_t c = 0; c < columns; c++) {
            panels[kept * columns + c] = figure->panels[row * columns + c];
            short_titles[kept * columns + c] = figure->short_titles[row * columns + c];
            words[kept * columns + c] = figure->words[row * columns + c];
        }
        titles[kept++] = figure->row_titles[row];
    }
    figure->grid_rows = kept ? kept : 1;
    if (!kept) return;
    figure->panels = panels;
    figure->short_titles = short_titles;
    figure->words = words;
    figure->row_titles = titles;
}

/* Says in words which panels are identical on both sides, because a blank panel would not tell. */
static void say_identical(figure_sheet *sheet, attention_figure *figure)
{
    const common_options *options = sheet->source->options;
    const size_t rows = figure->grid_rows, columns = figure->grid_columns, cells = figure->queries * figure->keys;
    const char **words = options_take(options, rows * columns, sizeof *words);
    bool *identical = options_take(options, rows, sizeof *identical);
    size_t left_out = 0;
    for (size_t row = 0; row < rows; row++) {
        identical[row] = true;
        for (size_t k = row * columns; k < (row + 1) * columns; k++) {
            words[k] = panel_is_zero(&figure->panels[k], cells) ? "identical" : NULL;
            identical[row] = identical[row] && words[k];
        }
        left_out += identical[row];
    }
    figure->words = words;
    if (figure->row_titles && left_out > 0 && left_out < rows)
        sheet_note(sheet, "Both sides are identical in %s. ", list_rows(options, figure, identical));
    if (figure->row_titles && left_out > 0) leave_out_rows(options, figure, identical);
    if (left_out < rows) return;
    sheet_note(sheet, "Both sides are identical. ");
    if (!sheet->source->asked->shown.fitted) /* otherwise the figure of pieces has said so already */
        say_note(options, "note: both sides are identical, every difference is 0");
}

static void figure_difference_tell(figure_sheet *sheet, const other_side *other)
{
    const figure_source *source = sheet->source;
    const attention_options *asked = source->asked;
    if (other->before) {
        sheet_note(sheet, "Before minus after the ablation. ");
        sheet_caption(sheet, "Attention without an ablation minus attention with it (%s). ",
                      source->options->ablated.text);
        if (!asked->style.title)
            sheet->style.title =
                options_text(source->options, "before minus after ablating %s", source->options->ablated.text);
        return;
    }
    sheet_caption(sheet, "Difference of attention between two %s. ", asked->against ? "models" : "texts");
    if (!asked->against) {
        if (source->input.texts && !asked->anonymous)
            sheet_caption(sheet, "The other text: “%s”. ", source->input.texts[other->view.row]);
        sheet_note(sheet, "%s text minus the %s. ", source->view.row ? "Second" : "First",
                   source->view.row ? "first" : "second");
    } else if (asked->anonymous)
        sheet_note(sheet, "The first model minus the second. ");
    else
        sheet_note(sheet, "%s minus %s. ", source->info.name, asked->against);
    if (asked->against_ablated.text)
        sheet_note(sheet, "Ablated in the second model: %s. ", asked->against_ablated.text);
    else if (asked->against && source->options->ablated.text)
        sheet_note(sheet, "The second model is not ablated. ");
}

static void encode_both(figure_source *source, figure_sheet *sheet, other_side *other)
{
    const heatmap_choice *positive = &source->asked->scales[HEATMAP_POSITIVE];
    if (positive->policy == HEATMAP_FIXED)
        option_wrong(source->options, &source->asked->scales,
                     "differences have both signs, expected limits such as -0.5,0.5, found '%g,%g'", positive->low,
                     positive->high);
    const bool ablation = source->input.rows == 1 && source->options->ablated.count > 0;
    if (source->asked->against)
        open_other_model(source, sheet, other);
    else if (ablation)
        open_unablated(source, other);
    else
        open_other_text(source, other);
    source_encode(source);
    encode_other(source, other);
    figure_difference_tell(sheet, other);
}

static void draw_both(figure_source *source, figure_sheet *sheet, other_side *other)
{
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    attention_figure figure;
    encode_both(source, sheet, other);
    panels_open(sheet, &figure);
    const bool same_unit = other->info.has_c2p == source->info.has_c2p && other->info.has_p2c == source->info.has_p2c;
    figure.units[HEATMAP_SIGNED] =
        options_text(source->options, "difference of %s", same_unit ? source->unit : "scaled logits");
    const size_t count = component_columns(source, columns);
    for (size_t c = 0; c < count; c++) {
        columns[c].rule = TOKEN_VIEW_SHOWN;
        if (columns[c].component == DEBERTA_PROBABILITIES) columns[c].kind = HEATMAP_RANGE;
    }
    panels_of_heads(sheet, &figure, columns, count, subtract, other);
    style_probabilities(&figure);
    part_scales(source, &figure);
    say_identical(sheet, &figure);
    figure.style = sheet->style;
    figure.query_labels = figure.key_labels = join_labels(source, source->view.labels, other->view.labels);
    sheet->data.row_labels = sheet->data.column_labels = join_labels(source, source->view.names, other->view.names);
    panels_finish(sheet, &figure);
}

static void figure_difference_draw(figure_source *source, figure_sheet *sheet)
{
    other_side other = {0};
    draw_both(source, sheet, &other);
    close_other(&other);
}

static const option part[] = {
    PART_ROWS,
    COMPONENTS_ROW,
    {"minus", 0, "MODEL", "what is subtracted; what both have is compared. Without it, two texts",
     TEXT_AT(attention_options, against)},
    {"minus-ablate", 0, "LIST", "take terms out of the model that is subtracted; --ablate is of the first alone",
     PARSED_AT(attention_options, against_ablated, ablate_parse), .adds_up = true, .needs = "minus"},
    NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, CENTER_ROW, ANNOTATE_ROW,
                              MARK_ROW,  LETTERS_ROW,        LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_difference = {
    FIGURE_COMMAND(
        "difference", "one text minus another of equal length, one model minus another, or before minus after --ablate",
        FIGURE_TEXT " --text 'an old store opened' -o difference.pdf", groups, FIRST_HEAD, .components = SHOW_ALL),
    .all_rows = true,
    .draw = figure_difference_draw,
};
