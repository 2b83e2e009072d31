/* Writes a LaTeX environment for any class. The figure keeps its size where it fits, and otherwise takes that of the
 * column and of the page.
 * SPDX-License-Identifier: MIT */
#include "program/frame/figure_latex.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

/* Lengths of LaTeX's article in mm: the widest column in use by journals, the height of the text on letter paper, and
 * a line. */
static const double widest_column = 90, text_height = 193, line_height = 12 * DRAW_MM_PER_PT;
enum { CHARACTERS_OF_COLUMN = 50, CHARACTERS_OF_PAGE = 75, LINES_AROUND_CAPTION = 2, MOST_CAPTION_LINES = 20 };

static const char *provenance_of(const figure_style *style, const char *key)
{
    for (size_t k = 0; k < style->provenance_count; k++)
        if (strcmp(style->provenance[k].key, key) == 0) return style->provenance[k].value;
    return NULL;
}

/* Returns the path of the figure relative to the .tex file if both are in one folder, otherwise the path as given. */
static const char *seen_from(const char *tex, const char *figure)
{
    const char *slash = strrchr(tex, '/'), *figure_slash = strrchr(figure, '/');
    const size_t folder = slash ? (size_t)(slash - tex) : 0,
                 figure_folder = figure_slash ? (size_t)(figure_slash - figure) : 0;
    const bool same = folder == figure_folder && strncmp(tex, figure, folder) == 0 && !slash == !figure_slash;
    return same && figure_slash ? figure_slash + 1 : figure;
}

const char *figure_latex_includes(const common_options *options, const text_list *paths)
{
    const char *pdf = NULL, *png = NULL;
    for (size_t k = 0; k < paths->count; k++) {
        if (!pdf && path_has_suffix(paths->items[k], ".pdf")) pdf = paths->items[k];
        if (!png && path_has_suffix(paths->items[k], ".png")) png = paths->items[k];
    }
    const char *found = pdf ? pdf : png;
    if (!found) usage_wrong(options, "--latex includes a .pdf or a .png: give --out FILE.pdf too");
    const char *strange = strpbrk(found, "%#{}\\\"");
    if (strange)
        usage_wrong(options, "--latex: \\includegraphics cannot take the '%c' in '%s': give --out another name",
                    *strange, found);
    return found;
}

/* ---------------------------------------------------------------------------------------------------------- caption */

/* A file that is being written, and the facts collected while its caption is written. */
typedef struct latex_file {
    FILE *out;
    latex_scripts *scripts;
} latex_file;

static void put_text(const latex_file *file, const char *text)
{
    latex_text_print(text, file->out);
    latex_scripts_add(file->scripts, text);
}

/* "s" behind what a list such as 0-4,7 numbers. */
static const char *plural_of(const char *list) { return list && strpbrk(list, ",-") ? "s" : ""; }

static void put_caption(const latex_file *file, const figure_style *style, const char *caption)
{
    const char *text = provenance_of(style, "Text"), *pair = provenance_of(style, "Pair"),
               *digest = provenance_of(style, "Model SHA-256"), *note = style->note;
    const char *model = provenance_of(style, "Model"), *ids = provenance_of(style, "Input ids"),
               *layers = provenance_of(style, "Layers"), *heads = provenance_of(style, "Heads");
    FILE *out = file->out;
    if (caption) put_text(file, caption);
    if (caption) fputc(' ', out);
    if (model) { /* an anonymous figure's sentence begins with the layers */
        fputs("Model: \\texttt{", out);
        put_text(file, model);
        fputc('}', out);
        if (digest) fprintf(out, " (SHA-256 %.12s\\ldots)", digest);
    }
    if (text || ids) {
        fputs(text ? "; text: ``" : "; ids: ", out);
        put_text(file, text ? text : ids);
        if (text) fputs("''", out);
    }
    if (pair) {
        fputs(" and ``", out);
        put_text(file, pair);
        fputs("''", out);
    }
    if (layers && heads)
        fprintf(out, "%s%s %s, head%s %s", model ? "; layer" : "Layer", plural_of(layers), layers, plural_of(heads),
                heads);
    if (model || layers) fputc('.', out);
    if (!note) return;
    fputc(' ', out);
    put_text(file, note);
}

/* Returns the number of lines that the caption takes, including the space around it. */
static size_t count_lines(const figure_style *style, const char *caption, bool wide)
{
    const char *const parts[] = {caption, style->note, provenance_of(style, "Model"), provenance_of(style, "Text"),
                                 provenance_of(style, "Pair")};
    size_t characters = 80; /* characters of a line */
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) characters += parts[k] ? strlen(parts[k]) : 0;
    const size_t lines = characters / (wide ? CHARACTERS_OF_PAGE : CHARACTERS_OF_COLUMN) + 1 + LINES_AROUND_CAPTION;
    return lines < MOST_CAPTION_LINES ? lines : MOST_CAPTION_LINES;
}

/* ------------------------------------------------------------------------------------------------------------- file */

/* Writes "fig:" and the name of the figure's file without its suffix, reduced to characters that a label can have. */
static void put_label(FILE *out, const char *figure)
{
    const char *slash = strrchr(figure, '/'), *name = slash ? slash + 1 : figure, *dot = strrchr(name, '.');
    fputs("fig:", out);
    for (; *name && name != dot; name++) fputc(strchr("\\{}$&#%^~, ", *name) ? '-' : *name, out);
}

/* Writes, as comments, what the file needs and what made it. */
static void put_head(FILE *out, const char *command, bool wide, const figure_notes *page, const latex_scripts *scripts)
{
    fputs("% deberta " DEBERTA_VERSION_TEXT "; needs \\usepackage{graphicx}.", out);
    if (command) fputs(" Made by\n% ", out);
    for (const char *c = command; c && *c; c++) fputc(*c == '\n' ? ' ' : *c, out);
    fprintf(out, "\n%% The figure is %.0f x %.0f mm, or as much smaller as the %s and the page are.\n",
            page->page_width, page->page_height, wide ? "page's width" : "column");
    if (*scripts->names)
        fprintf(out, "%% Needs LuaLaTeX and a font with: %s (\\usepackage{fontspec}, \\setmainfont{...}).\n",
                scripts->names);
}

deberta_status figure_latex_write(const char *path, const char *figure, const figure_style *style, const char *caption,
                                  const figure_notes *page, figure_latex_facts *facts, atomic_file **file,
                                  deberta_error *err)
{
    const bool wide = page->page_width > widest_column;
    const char *environment = wide ? "figure*" : "figure";
    const size_t lines = count_lines(style, caption, wide);
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out, *body = open_memstream(&text, &text_bytes);
    if (!body) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "the caption has no room in memory");
    put_caption(&(latex_file){body, &facts->scripts}, style, caption);
    const bool written = stream_close(body);
    deberta_status status = DEBERTA_OK;
    if (!written) status = status_fail(err, DEBERTA_E_MEMORY, "the caption has no room in memory");
    facts->is_too_high = page->page_height + (double)lines * line_height > text_height;
    DEBERTA_TRY_OR_FAIL(status, status);
    DEBERTA_TRY_OR_FAIL(status, atomic_file_open(file, path, err));
    DEBERTA_TRY_OR_FAIL(status, atomic_file_stream(&out, *file, err));
    put_head(out, provenance_of(style, "Command"), wide, page, &facts->scripts);
    fprintf(
        out,
        "\\begin{%s}\n  \\centering\n  \\includegraphics[width=\\ifdim%gmm>\\linewidth\\linewidth\\else%gmm\\fi,%%\n"
        "    totalheight=\\dimexpr\\textheight-%zu\\baselineskip\\relax,keepaspectratio]{%s}\n  \\caption{%s}\n"
        "  \\label{",
        environment, page->page_width, page->page_width, lines, seen_from(path, figure), text);
    put_label(out, figure);
    fprintf(out, "}\n\\end{%s}\n", environment);
fail:
    free(text);
    return status;
}

void figure_latex_tell(const common_options *options, const char *path, const figure_latex_facts *facts,
                       double height_mm, const char *lower)
{
    if (*facts->scripts.names)
        say_note(options, "note: %s has %s, which pdflatex cannot set: use LuaLaTeX and a font with these letters",
                 path, facts->scripts.names);
    if (facts->is_too_high)
        say_note(options,
                 "note: %s: with its caption the figure is higher than a page of LaTeX's article and is included "
                 "smaller than its %.0f mm; lower with %s",
                 path, height_mm, lower);
}
