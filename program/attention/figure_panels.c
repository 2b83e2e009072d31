/* Fills panels from matrices of heads; pieces become words if these fit better. SPDX-License-Identifier: MIT */
#include "program/attention/figure_panels.h"

#include <math.h>
#include <string.h>

panel_column component_column(const figure_source *source, deberta_component component)
{
    static const char *const titles[DEBERTA_COMPONENT_COUNT] = {"content to content", "content to position",
                                                                "position to content", "logits (sum)", "probabilities"};
    return (panel_column){.name = deberta_component_name(component),
                          .title = titles[component],
                          .short_title = deberta_component_name(component),
                          .kind = component != DEBERTA_PROBABILITIES ? HEATMAP_SIGNED
                                  : source->asked->logarithmic       ? HEATMAP_LOG
                                                                     : HEATMAP_POSITIVE,
                          .rule = token_view_rule_of(component),
                          .component = component};
}

size_t component_columns(const figure_source *source, panel_column columns[DEBERTA_COMPONENT_COUNT])
{
    size_t count = 0;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (source->components[c]) columns[count++] = component_column(source, c);
    return count;
}

/* Finds the cells of --mark in the view. */
static void find_marks(const figure_source *source, attention_figure *figure)
{
    const cell_list *asked = &source->asked->marks;
    attention_mark *marks = options_take(source->options, asked->count, sizeof *marks);
    for (size_t k = 0; k < asked->count; k++) {
        const attention_mark *cell = &asked->items[k];
        marks[k] =
            (attention_mark){token_view_place(&source->view, cell->query), token_view_place(&source->view, cell->key)};
        if (marks[k].query == SIZE_MAX || marks[k].key == SIZE_MAX)
            option_wrong(source->options, asked, "'%zu,%zu': no such pair of tokens is shown, the text has %zu",
                         cell->query, cell->key, source->view.span[1]);
    }
    figure->marks = marks;
    figure->mark_count = asked->count;
}

/* Returns the numbers on axes without room for labels: words count as words, from 1 on, since the tokens where they
 * begin would leave gaps; what begins the text before them is 0. */
static const size_t *axis_numbers(const figure_source *source, const token_view *view, bool words)
{
    if (!words) return token_view_numbers(view);
    size_t *numbers = options_take(source->options, view->count, sizeof *numbers);
    for (size_t k = 0; k < view->count; k++) numbers[k] = k + (view->tokens[0] > 0);
    return numbers;
}

void panels_open(const figure_sheet *sheet, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    const attention_options *asked = source->asked;
    const token_view *view = &source->view;
    const size_t *numbers = axis_numbers(source, view, asked->shown.words);
    *figure = (attention_figure){
        .style = sheet->style,
        .columns = asked->columns,
        .panel_letters = asked->letters,
        .annotate = asked->annotate,
        .keep_row_mean = asked->centre == CENTRE_NONE,
        .queries = view->count,
        .keys = view->count,
        .query_labels = view->labels,
        .key_labels = view->labels,
        .query_numbers = numbers,
        .key_numbers = numbers,
        .boundaries = &view->boundary,
        .boundary_count = view->boundary > 0,
        .units = {[HEATMAP_SIGNED] = source->unit, [HEATMAP_POSITIVE] = "probability", [HEATMAP_LOG] = "probability"}};
    memcpy(figure->scales, asked->scales, sizeof figure->scales);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const int chosen = kind == HEATMAP_SIGNED ? asked->signed_palette : asked->palette;
        if (chosen >= 0) figure->palettes[kind] = palette_list[chosen];
    }
    /* the same colours as probabilities on a linear scale */
    if (asked->palette < 0) figure->palettes[HEATMAP_LOG] = "blues";
    find_marks(source, figure);
}

attention_panel panels_add(figure_sheet *sheet, const panel_column *column, size_t layer, size_t head,
                           const float *whole)
{
    const figure_source *source = sheet->source;
    const float *shown =
        column->rule == TOKEN_VIEW_SHOWN ? whole : source_shown(source, &source->view, whole, column->rule);
    sheet_add_matrix(sheet, column->name, layer, head, shown);
    return (attention_panel){
        .values = shown, .stride = source->view.count, .title = column->title, .kind = column->kind};
}

const float *captured_matrix(void *context, const figure_source *source, size_t index, const panel_column *column)
{
    (void)context;
    return capture_matrix(&source->capture, source_layer(source, index), source_head(source, index), column->component,
                          0);
}

/* Returns true if the session ablated this component of the head. */
static bool is_ablated(const figure_source *source, size_t index, deberta_component component)
{
    for (size_t k = 0; k < source->options->ablated.count; k++) {
        const deberta_ablation *ablation = &source->options->ablated.items[k];
        if (ablation->term == component &&
            (ablation->layer == DEBERTA_EVERY || ablation->layer == source_layer(source, index)) &&
            (ablation->head == DEBERTA_EVERY || ablation->head == source_head(source, index)))
            return true;
    }
    return false;
}

bool panel_is_zero(const attention_panel *panel, size_t cells)
{
    bool zero = true;
    for (size_t c = 0; c < cells && zero; c++) zero = panel->values[c] == 0;
    return zero;
}

/* Lets the panels of one column follow each other. The head is the title of each, and the colour bar names the
 * quantity. */
static void flow_panels(const figure_source *source, attention_figure *figure, const panel_column *column)
{
    figure->grid_columns = figure->grid_rows;
    figure->grid_rows = 1;
    figure->row_titles = NULL;
    if (column->component < DEBERTA_PROBABILITIES)
        figure->units[column->kind] =
            options_text(source->options, "%s, %s", column->short_title, figure->units[column->kind]);
}

void panels_of_heads(figure_sheet *sheet, attention_figure *figure, const panel_column *columns, size_t count,
                     panel_matrix matrix, void *context)
{
    const figure_source *source = sheet->source;
    const common_options *options = source->options;
    const size_t heads = source_heads(source);
    const bool flows = count == 1 && heads > 1;
    const char **titles = options_take(options, heads, sizeof *titles);
    const char **short_titles = options_take(options, heads * count, sizeof *short_titles);
    const char **words = options_take(options, heads * count, sizeof *words);
    attention_panel *panels = options_take(options, heads * count, sizeof *panels);
    for (size_t k = 0; k < heads; k++) {
        const size_t layer = source_layer(source, k), head = source_head(source, k);
        titles[k] = source_head_title(source, k);
        for (size_t c = 0; c < count; c++) {
            const size_t place = k * count + c;
            panels[place] = panels_add(sheet, &columns[c], layer, head, matrix(context, source, k, &columns[c]));
            const bool ablated = is_ablated(source, k, columns[c].component);
            const char *addition = ablated ? " (ablated)" : "";
            if (ablated && panel_is_zero(&panels[place], figure->queries * figure->keys)) words[place] = "all 0";
            panels[place].title = options_text(options, "%s%s", flows ? titles[k] : panels[place].title, addition);
            short_titles[place] = flows ? options_text(options, "L%zu H%zu%s", layer, head, addition)
                                        : options_text(options, "%s%s", columns[c].short_title, addition);
        }
    }
    figure->panels = panels;
    figure->row_titles = titles;
    figure->short_titles = short_titles;
    figure->words = words;
    figure->grid_rows = heads;
    figure->grid_columns = count;
    if (flows) flow_panels(source, figure, columns);
}

void panels_check_limits(const figure_source *source, const heatmap_choice scales[HEATMAP_KINDS],
                         const bool drawn[HEATMAP_KINDS])
{
    const heatmap_choice *given = &scales[HEATMAP_POSITIVE];
    const bool unsigned_panels = drawn[HEATMAP_POSITIVE] || drawn[HEATMAP_RANGE] || drawn[HEATMAP_LOG];
    const void *member = &source->asked->scales;
    if (scales[HEATMAP_SIGNED].policy == HEATMAP_FIXED && !drawn[HEATMAP_SIGNED])
        option_wrong(source->options, member, "limits that begin below 0 are for signed panels, and there are none");
    if (given->policy == HEATMAP_FIXED && !unsigned_panels)
        option_wrong(source->options, member,
                     "limits that begin at 0 or above are for panels without negative values, and there are none");
    if (given->policy == HEATMAP_FIXED && drawn[HEATMAP_LOG] && scales[HEATMAP_LOG].policy != HEATMAP_FIXED)
        option_wrong(source->options, member, "logarithmic colours need limits above 0, such as 0.001,1, found '%g,%g'",
                     given->low, given->high);
}

void panels_note_unused(const figure_source *source, const bool drawn[HEATMAP_KINDS])
{
    const attention_options *asked = source->asked;
    if (!drawn[HEATMAP_SIGNED]) {
        option_note_unused(source->options, &asked->signed_palette, "no panel is signed");
        option_note_unused(source->options, &asked->centre, "no panel is of logits");
    }
    if (!drawn[HEATMAP_POSITIVE] && !drawn[HEATMAP_RANGE] && !drawn[HEATMAP_LOG])
        option_note_unused(source->options, &asked->palette, "every panel is signed: --signed-palette is for those");
    if (!drawn[HEATMAP_LOG]) option_note_unused(source->options, &asked->logarithmic, "no panel is of probabilities");
}

void panels_begin_at_zero(attention_figure *figure, double reach)
{
    double most = reach;
    for (size_t k = 0; k < figure->grid_rows * figure->grid_columns; k++)
        for (size_t c = 0; c < figure->queries * figure->keys && figure->panels[k].kind == HEATMAP_RANGE; c++)
            most = fmax(most, (double)figure->panels[k].values[c]);
    if (figure->scales[HEATMAP_RANGE].policy == HEATMAP_SHARED && most > 0)
        figure->scales[HEATMAP_RANGE] = (heatmap_choice){.policy = HEATMAP_FIXED, .low = 0, .high = most};
}

/* ------------------------------------------------------------------------------------------------- pieces or words */

/* Height above which a figure of pieces becomes a figure of words, if that is lower. */
static const double pleasant_height = 150; /* mm */

/* Lays out the figure in words, with the note that says so, and with this many panels side by side (0: automatic). Its
 * panels hold no values, since the layout does not depend on them. */
static bool lay_out_words(const figure_sheet *sheet, const attention_figure *figure, size_t columns, bool drop_special,
                          figure_notes *notes)
{
    const figure_source *source = sheet->source;
    const size_t count = figure->grid_rows * figure->grid_columns;
    token_view words;
    token_view_choice choice = source->asked->shown;
    choice.words = true;
    choice.drop_special |= drop_special;
    deberta_error error;
    bool fine = token_view_make(&words, &source->input, source->view.row, &choice, &error) == DEBERTA_OK;
    if (fine) {
        float *nothing = options_take(source->options, words.count * words.count, sizeof *nothing);
        attention_panel *panels = options_take(source->options, count, sizeof *panels);
        for (size_t k = 0; k < count; k++) {
            panels[k] = figure->panels[k];
            if (panels[k].values) panels[k].values = nothing;
            panels[k].stride = words.count;
        }
        attention_figure other = *figure;
        const token_view_choice merged = {.words = true, .fitted = true, .end = SIZE_MAX};
        other.style.note = options_text(source->options, "%s%s", figure->style.note ? figure->style.note : "",
                                        sheet_describe_tokens(source, &merged));
        other.columns = columns;
        other.panels = panels;
        other.queries = other.keys = words.count;
        other.query_labels = other.key_labels = words.labels;
        other.query_numbers = other.key_numbers = axis_numbers(source, &words, true);
        other.boundary_count = other.mark_count = 0;
        fine = figure_check(attention_layout, &other, &other.style, notes, &error) == DEBERTA_OK;
    }
    token_view_free(&words);
    return fine;
}

/* Returns true if the tokens have room, and the figure fits on a page. */
static bool shows(const attention_figure *figure, figure_notes *notes)
{
    deberta_error error;
    return figure_check(attention_layout, figure, &figure->style, notes, &error) == DEBERTA_OK && !notes->positions &&
           notes->page_height <= FIGURE_HIGHEST_MM;
}

/* Returns the height of the lowest figure that shows the tokens on a page, in mm, and its number of panels side by
 * side; 0 if there is none. */
static double lowest_with_tokens(const attention_figure *figure, size_t *columns)
{
    double lowest = 0;
    for (size_t across = figure->grid_columns; across > 0; across--) {
        attention_figure other = *figure;
        figure_notes notes = {0};
        other.columns = across;
        if (!shows(&other, &notes) || (lowest > 0 && notes.page_height >= lowest)) continue;
        lowest = notes.page_height;
        *columns = across;
    }
    return lowest;
}

/* Returns true if tokens have no room as pieces but as words, or words make a high figure lower. Other columns that are
 * as low with pieces are taken instead; a given number of them also decides the height. */
static bool wants_words(figure_sheet *sheet, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    const attention_options *asked = source->asked;
    figure_notes pieces = {0}, words = {0};
    deberta_error error;
    if (asked->shown.words || asked->shown.pieces || source->keeps_pieces || !asked->components ||
        !source->options->outs.count)
        return false;
    bool uneven;
    if (token_view_count_words(&source->view, &source->input, &asked->shown, &uneven) == source->view.count || uneven)
        return false;
    const bool laid_out = figure_check(attention_layout, figure, &figure->style, &pieces, &error) == DEBERTA_OK,
               tokens = laid_out && !pieces.positions;
    if (tokens && pieces.page_height <= (figure->columns ? FIGURE_HIGHEST_MM : pleasant_height)) return false;
    if (!lay_out_words(sheet, figure, figure->columns, false, &words) || words.positions ||
        words.page_height > FIGURE_HIGHEST_MM)
        return false;
    size_t columns = figure->columns;
    sheet->pieces_mm = tokens ? pieces.page_height : columns ? 0 : lowest_with_tokens(figure, &columns);
    if (sheet->pieces_mm == 0 || words.page_height < sheet->pieces_mm) return true;
    figure->columns = columns;
    return false;
}

/* Returns true if tokens and figure fit with this many panels side by side (0: automatic) at this font size. */
static bool shows_tokens(const attention_figure *figure, size_t columns, double font_size)
{
    attention_figure other = *figure;
    other.columns = columns;
    other.style.font_size = font_size;
    return shows(&other, &(figure_notes){0});
}

static bool shows_words(const figure_sheet *sheet, const attention_figure *figure, size_t columns, bool drop_special)
{
    figure_notes notes = {0};
    return sheet->source->asked->components && lay_out_words(sheet, figure, columns, drop_special, &notes) &&
           !notes.positions && notes.page_height <= FIGURE_HIGHEST_MM;
}

/* Returns the option that makes room for words if --layout leaves none: fewer words, or an automatic layout. */
static const char *find_room_for_words(const figure_sheet *sheet, const attention_figure *figure)
{
    const token_view_choice *shown = &sheet->source->asked->shown;
    if (!figure->columns || shown->pieces) return NULL;
    if (!shown->drop_special && shows_words(sheet, figure, figure->columns, true))
        return shown->words ? "--drop-special" : "--words --drop-special";
    return shows_words(sheet, figure, 0, false) ? "leaving out --layout" : NULL;
}

/* Returns the options that would show the tokens: other columns, smaller type, both, or words; NULL if none do. */
static const char *find_room(const figure_sheet *sheet, const attention_figure *figure)
{
    const common_options *options = sheet->source->options;
    const double size = figure_defaults(&figure->style).font_size;
    const bool has_layout = options_find(options->command, "layout");
    for (size_t columns = figure->grid_columns; has_layout && columns > 0; columns--)
        if (shows_tokens(figure, columns, size)) return options_text(options, "--layout %zu", columns);
    for (double smaller = size - 0.5; smaller >= FIGURE_SMALLEST_TYPE; smaller -= 0.5)
        if (shows_tokens(figure, figure->columns, smaller)) return options_text(options, "--font-size %g", smaller);
    for (size_t columns = figure->grid_columns; has_layout && columns > 0; columns--)
        if (shows_tokens(figure, columns, FIGURE_SMALLEST_TYPE))
            return options_text(options, "--layout %zu --font-size %d", columns, FIGURE_SMALLEST_TYPE);
    return find_room_for_words(sheet, figure);
}

/* Returns the first of some paper widths that has room for the tokens; 0 if none has. */
static double find_width(const attention_figure *figure)
{
    static const double widths[] = {85, 120, 174, 250, 350, 500, 700, 1000};
    attention_figure other = *figure;
    const double asked = figure_defaults(&figure->style).width_mm;
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        other.style.width_mm = widths[k];
        if (widths[k] > asked && shows(&other, &(figure_notes){0})) return widths[k];
    }
    return 0;
}

/* Returns how many tokens, from the first one on, have room; 0 if the rows of the panels are not tokens. */
static size_t count_that_fit(const figure_sheet *sheet, const attention_figure *figure)
{
    const token_view_choice *shown = &sheet->source->asked->shown;
    attention_figure other = *figure;
    size_t low = 0, high = figure->queries;
    other.boundary_count = other.mark_count = 0;
    while (!shown->words && !shown->drop_special && high - low > 1) {
        const size_t middle = (low + high) / 2;
        other.queries = other.keys = middle;
        *(shows(&other, &(figure_notes){0}) ? &low : &high) = middle;
    }
    return low;
}

/* Tells the user that tokens did not fit, and which options would show them; only options that were tried are
 * named. */
static void tell_positions(const figure_sheet *sheet, const attention_figure *figure)
{
    const common_options *options = sheet->source->options;
    const token_view_choice *shown = &sheet->source->asked->shown;
    const double asked = figure_defaults(&figure->style).width_mm;
    const char *items = shown->words ? "words" : "tokens";
    const char *room = find_room(sheet, figure);
    if (room) {
        say_note(options, "note: the %s do not fit at %g mm, axes show positions; %s shows %s", items, asked, room,
                 items);
        return;
    }
    const double wider = find_width(figure);
    const size_t some = count_that_fit(sheet, figure);
    const char *ways[3], *text = "";
    size_t count = 0;
    if (shown->pieces && shows_words(sheet, figure, figure->columns, false)) ways[count++] = "leaving out --pieces";
    if (wider > 0) ways[count++] = options_text(options, "--width-mm %g", wider);
    if (some > 1) ways[count++] = options_text(options, "--token-range %zu:%zu", shown->first, shown->first + some);
    if (count == 0) {
        say_note(options, "note: %zu %s do not fit at %g mm, axes show positions; more room with fewer of %s",
                 figure->queries, items, asked, sheet_remedies(sheet, "layers,heads,components,token-range A:B"));
        return;
    }
    for (size_t k = 0; k < count; k++)
        text = options_text(options, "%s%s%s", text, k == 0 ? "" : k + 1 == count ? " or " : ", ", ways[k]);
    say_note(options, "note: %zu %s do not fit at %g mm, axes show positions; %s are shown with %s", figure->queries,
             items, asked, items, text);
}

/* Tells the user about a wider page if panels are stacked in one tower with empty space beside it. */
static void tell_width(const figure_sheet *sheet, const attention_figure *figure, const figure_notes *notes)
{
    const double asked = figure_defaults(&figure->style).width_mm;
    const bool tower = notes->page_width < 0.8 * asked && notes->page_height > 1.3 * notes->page_width;
    if (!tower || !options_find(sheet->source->options->command, "layout")) return;
    const char *why = figure->columns    ? "a higher --layout uses more"
                      : notes->positions ? "--layout N puts more panels side by side"
                                         : "more panels side by side (--layout) leave its tokens no room";
    say_note(sheet->source->options, "note: the figure is %.0f mm wide and leaves the rest of %g mm unused: %s",
             notes->page_width, asked, why);
}

/* Tells the user why pieces are merged. */
static void tell_words(const figure_source *source, const attention_figure *figure)
{
    const double height = source->asked->shown.pieces_mm, width = figure_defaults(&figure->style).width_mm;
    const char *why = height > 0 ? options_text(source->options, "they would make the figure %.0f mm high", height)
                                 : options_text(source->options, "they have no room at %g mm", width);
    say_note(source->options, "note: pieces are merged into words%s, because %s; --pieces keeps them%s",
             source->asked->data ? ", in the numbers too" : "", why, height > 0 ? "" : ", with positions on the axes");
}

void panels_finish(figure_sheet *sheet, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    bool drawn[HEATMAP_KINDS] = {false};
    for (size_t k = 0; k < figure->grid_rows * figure->grid_columns; k++)
        if (figure->panels[k].values) drawn[figure->panels[k].kind] = true;
    panels_check_limits(source, figure->scales, drawn);
    figure_notes notes = {0};
    const bool of_tokens = figure->key_labels == source->view.labels && figure->keys == source->view.count;
    sheet->wants_words = of_tokens && wants_words(sheet, figure);
    if (sheet->wants_words) return;
    panels_note_unused(source, drawn);
    sheet_write(sheet, attention_layout, figure, &notes);
    if (source->asked->shown.fitted) tell_words(source, figure);
    if (notes.positions && of_tokens) tell_positions(sheet, figure);
    if (source->options->outs.count) tell_width(sheet, figure, &notes);
}
