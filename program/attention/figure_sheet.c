/* Collects provenance, notes, caption and title, and writes all files of a figure together.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_sheet.h"

#include <stdarg.h>
#include <string.h>

#include "analysis/trace.h"
#include "core/base/text.h"
#include "program/frame/figure_latex.h"
#include "program/frame/open_model.h"

/* ---------------------------------------------------------------------------------------------------- provenance */

static void figure_sheet_add(figure_sheet *sheet, const char *key, const char *value)
{
    if (value && *value && sheet->style.provenance_count < FIGURE_MOST_PROVENANCE)
        sheet->provenance[sheet->style.provenance_count++] = (provenance_entry){key, value};
}

/* Writes indices as a user would type them: "0-4,7". */
static const char *list_indices(const common_options *options, const size_t *indices, size_t count)
{
    const char *text = "";
    for (size_t k = 0, last; k < count; k = last + 1) {
        for (last = k; last + 1 < count && indices[last + 1] == indices[last] + 1;) last++;
        if (last == k + 1) last = k; /* a run of two is written "0,1" */
        text = options_text(options, k ? "%s,%zu" : "%s%zu", text, indices[k]);
        if (last > k) text = options_text(options, "%s-%zu", text, indices[last]);
    }
    return text;
}

/* Return true if the figure has heads or tokens: a trace of states alone has no heads, one of heads no tokens. */
static bool shows_heads(const figure_source *source)
{
    const unsigned parts = source->asked->trace.parts;
    return !parts || parts & (TRACE_HEADS | TRACE_OF_TERMS);
}

static bool shows_tokens(const figure_source *source)
{
    const unsigned parts = source->asked->trace.parts;
    return !parts || parts & TRACE_STATES;
}

/* Lists the ids of the row, cut where they would fill a page. */
static const char *list_ids(const figure_source *source)
{
    enum { MOST_BYTES = 1024 };
    char text[MOST_BYTES + 16] = "";
    size_t used = 0;
    for (size_t t = 0; t < source->view.span[1]; t++) {
        if (used > MOST_BYTES - 16) {
            strcpy(text + used, ",...");
            break;
        }
        used += (size_t)snprintf(text + used, 16, t ? ",%d" : "%d", source->input.ids[source->view.first_token + t]);
    }
    return options_text(source->options, "%s", text);
}

/* Returns true if any of the files asked for holds provenance. A .csv does not, and the model, which may be
 * gigabytes, is then not read again for its digest. */
static bool writes_provenance(const attention_options *asked)
{
    return asked->reading.common.outs.count > 0 || asked->latex ||
           (asked->data && !path_has_suffix(asked->data, ".csv"));
}

static void add_provenance(figure_sheet *sheet, figure_source *source)
{
    const common_options *options = source->options;
    const input_batch *input = &source->input;
    deberta_error error = {0};
    if (!*source->digest && writes_provenance(source->asked))
        must(options, deberta_model_digest(source->model, source->digest, &error), &error);
    figure_sheet_add(sheet, "Software", "deberta " DEBERTA_VERSION_TEXT);
    figure_sheet_add(sheet, "Figure", figure_name(source));
    if (!source->asked->anonymous) figure_sheet_add(sheet, "Model", source->info.name);
    /* anonymous figures omit the digest too, since it identifies a published checkpoint */
    if (!source->asked->anonymous) {
        figure_sheet_add(sheet, "Model SHA-256", source->digest);
        figure_sheet_add(sheet, "Text", input->texts ? input->texts[source->view.row] : NULL);
        figure_sheet_add(sheet, "Pair", input->pairs ? input->pairs[source->view.row] : NULL);
        figure_sheet_add(sheet, "Input ids", list_ids(source));
    }
    figure_sheet_add(sheet, "Layers", list_indices(options, source->layers, source->layer_count));
    if (shows_heads(source)) figure_sheet_add(sheet, "Heads", list_indices(options, source->heads, source->head_count));
    figure_sheet_add(sheet, "Precision", low_precision_name(options));
    if (option_given(options, &options->seed))
        figure_sheet_add(sheet, "Seed", options_text(options, "%llu", (unsigned long long)options->seed));
    if (!source->asked->anonymous) figure_sheet_add(sheet, "Command", options_command_line(options, false));
    sheet->style.provenance = sheet->provenance;
}

/* --------------------------------------------------------------------------------------------------------- texts */

static void figure_sheet_append(const figure_sheet *sheet, const char **text, const char *format, va_list arguments)
{
    const char *added = options_print(sheet->source->options, format, arguments);
    *text = options_text(sheet->source->options, "%s%s", *text ? *text : "", added);
}

void sheet_note(figure_sheet *sheet, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    figure_sheet_append(sheet, &sheet->style.note, format, arguments);
    va_end(arguments);
}

void sheet_caption(figure_sheet *sheet, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    figure_sheet_append(sheet, &sheet->caption, format, arguments);
    va_end(arguments);
}

static void add_to_title(figure_sheet *sheet, const char *what)
{
    const char *title = sheet->style.title;
    sheet->style.title = title ? options_text(sheet->source->options, "%s (%s)", title, what) : what;
}

/* Names the ablations in picture, title and caption, because the unchanged model looks different. */
static void say_ablated(figure_sheet *sheet)
{
    const common_options *options = sheet->source->options;
    sheet_note(sheet, "Ablated: %s. ", options->ablated.text);
    add_to_title(sheet, options_text(options, "ablated: %s", options->ablated.text));
}

/* Names the precision of the weights in the same places. */
static void say_precision(figure_sheet *sheet)
{
    const char *precision = low_precision_name(sheet->source->options);
    if (!precision) return;
    sheet_note(sheet, "Linear layers in %s. ", precision);
    add_to_title(sheet, precision);
}

/* Returns the SHOW_* bits of what is captured for the figure. */
static unsigned shown_components(const figure_source *source)
{
    unsigned shown = 0;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (source->components[c]) shown |= 1u << c;
    return shown;
}

const char *sheet_describe_tokens(const figure_source *source, const token_view_choice *choice)
{
    char text[512];
    const unsigned shown = shown_components(source);
    token_view_describe(&source->view, choice, shown & SHOW_PROBABILITIES, shown & (SHOW_TERMS | SHOW_LOGITS), text,
                        sizeof text);
    return options_text(source->options, "%s", text);
}

void sheet_open(figure_sheet *sheet, figure_source *source)
{
    const attention_options *asked = source->asked;
    *sheet = (figure_sheet){.source = source, .style = asked->style, .data = {.options = source->options}};
    if (source->options->ablated.text) say_ablated(sheet);
    say_precision(sheet);
    const char *tokens = shows_tokens(source) ? sheet_describe_tokens(source, &asked->shown) : "";
    if (*tokens) sheet_note(sheet, "%s", tokens);
    for (heatmap_kind kind = 0; kind < HEATMAP_KINDS; kind++) {
        const heatmap_choice *scale = &asked->scales[kind];
        if (scale->policy != HEATMAP_ROBUST) continue;
        sheet_note(sheet, "Colours reach to percentile %g. ", scale->percentile > 0 ? scale->percentile : 99);
        break;
    }
    add_provenance(sheet, source);
}

/* ------------------------------------------------------------------------------------------------------- numbers */

void sheet_add_matrix(figure_sheet *sheet, const char *name, size_t layer, size_t head, const float *values)
{
    const token_view *view = &sheet->source->view;
    sheet->data.row_axis = "query";
    sheet->data.column_axis = "key";
    sheet->data.row_labels = sheet->data.column_labels = view->names;
    sheet->data.row_numbers = sheet->data.column_numbers = token_view_numbers(view);
    figure_data_add_matrix(&sheet->data, (figure_matrix){name, layer, head, values, view->count, view->count});
}

void sheet_add_numbers(figure_sheet *sheet, const char *name, const double *numbers, size_t count)
{
    sheet->data.line_count = count;
    figure_data_add_column(&sheet->data, (figure_column){.name = name, .numbers = numbers});
}

/* --------------------------------------------------------------------------------------------------------- files */

/* The data and the LaTeX file under temporary names, until the figure is written. */
typedef struct side_files {
    figure_data_file data;
    atomic_file *latex;
    figure_latex_facts facts;
} side_files;

static deberta_status write_all(const figure_sheet *sheet, figure_layout layout, const void *figure, side_files *files,
                                figure_notes *notes, deberta_error *err)
{
    const attention_options *asked = sheet->source->asked;
    const text_list *outs = &sheet->source->options->outs;
    figure_data data = sheet->data;
    data.note = sheet->style.note;
    data.words = asked->shown.words;
    if (asked->data)
        DEBERTA_TRY(
            figure_data_write(&data, asked->data, sheet->provenance, sheet->style.provenance_count, &files->data, err));
    if (asked->latex) {
        figure_notes page = {0};
        DEBERTA_TRY(figure_check(layout, figure, &sheet->style, &page, err));
        DEBERTA_TRY(figure_latex_write(asked->latex, figure_latex_includes(sheet->source->options, outs), &sheet->style,
                                       sheet->caption, &page, &files->facts, &files->latex, err));
    }
    if (outs->count) DEBERTA_TRY(figure_save(layout, figure, &sheet->style, outs->items, outs->count, notes, err));
    DEBERTA_TRY(figure_data_commit(&files->data, err));
    return files->latex ? atomic_file_commit(&files->latex, err) : DEBERTA_OK;
}

static bool is_remedy(const figure_source *source, const char *name)
{
    const option *row = options_find(source->options->command, name);
    const token_view_choice *shown = &source->asked->shown;
    if (!row) return false;
    if (!shows_tokens(source) && strstr("words drop-special token-range", name)) return false;
    if (strcmp(name, "words") == 0)
        return !shown->words && token_view_count_words(&source->view, &source->input, shown, NULL) < source->view.count;
    if (strcmp(name, "drop-special") == 0) return !shown->drop_special;
    if (strcmp(name, "layers") == 0) return source->layer_count > 1;
    if (strcmp(name, "heads") == 0) return shows_heads(source) && source->head_count > 1;
    if (strcmp(name, "components") == 0) return (shown_components(source) & (shown_components(source) - 1)) != 0;
    return true;
}

const char *sheet_remedies(const figure_sheet *sheet, const char *words)
{
    enum { MOST = 8 };
    const common_options *options = sheet->source->options;
    const char *kept[MOST], *text = "";
    size_t count = 0;
    for (const char *at = words; *at && count < MOST; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        const char *name = options_text(options, "%.*s", (int)strcspn(at, ","), at);
        const char *end = strchr(name, ' '); /* end of the word in front of the option's value */
        if (is_remedy(sheet->source, end ? options_text(options, "%.*s", (int)(end - name), name) : name))
            kept[count++] = name;
    }
    for (size_t k = 0; k < count; k++)
        text = options_text(options, "%s%s--%s", text, k == 0 ? "" : k + 1 == count ? " or " : ", ", kept[k]);
    return text;
}

/* Returns the options that make this figure lower. Words are left out if heat maps would have chosen them already. */
static const char *sheet_lower(const figure_sheet *sheet, const figure_notes *notes)
{
    return sheet_remedies(sheet, notes->positions ? "layers,heads,components,token-range A:B,layout"
                                                  : "layers,heads,token-range A:B,words,drop-special,layout");
}

static void figure_sheet_tell(const figure_sheet *sheet, const figure_notes *notes, const figure_latex_facts *latex)
{
    const common_options *options = sheet->source->options;
    figure_latex_tell(options, sheet->source->asked->latex, latex, notes->page_height,
                      latex->is_too_high ? sheet_lower(sheet, notes) : NULL);
    if (notes->coarse)
        say_note(options, "note: a drawn cell is the mean of %zu \u00d7 %zu cells at %g dpi; fewer share one with %s",
                 notes->pooled_rows ? notes->pooled_rows : notes->pooled, notes->pooled, sheet->style.dpi,
                 sheet_remedies(sheet, "dpi 300,token-range A:B"));
    if (notes->names_stride > 1)
        say_note(options, "note: one of every %zu names is written below the bars; more with %s", notes->names_stride,
                 sheet_remedies(sheet, "words,token-range A:B,width-mm MM"));
    figure_notes_tell(options, notes->missing_glyphs);
    if (notes->page_height > FIGURE_HIGHEST_MM)
        say_note(options, "note: the figure is %.0f mm high, more than a page of text has; lower with %s",
                 notes->page_height, sheet_lower(sheet, notes));
}

void sheet_finish(const figure_sheet *sheet, figure_layout layout, const void *figure)
{
    figure_notes notes = {0};
    sheet_write(sheet, layout, figure, &notes);
}

void sheet_write(const figure_sheet *sheet, figure_layout layout, const void *figure, figure_notes *notes)
{
    const common_options *options = sheet->source->options;
    if (sheet->source->asked->latex) figure_latex_includes(options, &options->outs);
    side_files files = {0};
    deberta_error error = {0};
    const deberta_status status = write_all(sheet, layout, figure, &files, notes, &error);
    figure_data_discard(&files.data);
    atomic_file_discard(&files.latex);
    source_must(sheet->source, status, &error);
    figure_sheet_tell(sheet, notes, &files.facts);
}
