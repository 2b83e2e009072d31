/* The figure environment, its caption and its label are written, with LaTeX's characters escaped.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_latex.h"

#include <string.h>

#include "core/base/path.h"
#include "output/text_table.h"

/* Text as LaTeX sets it, on one line; "sqrt(3d)" as a root. Without a space at its end. */
static void put_text(FILE *out, const char *text)
{
    bool in_root = false;
    for (size_t length = strlen(text); *text && !(*text == ' ' && length == 1); text++, length--) {
        if (strncmp(text, "sqrt(", 5) == 0) {
            fputs("$\\sqrt{", out);
            text += 4;
            length -= 4;
            in_root = true;
        } else if (in_root && *text == ')') {
            fputs("}$", out);
            in_root = false;
        } else {
            print_latex_cell((const char[2]){strchr("\n\r\t", *text) ? ' ' : *text, 0}, out);
        }
    }
}

static const char *provenance_of(const figure_style *style, const char *key)
{
    for (size_t k = 0; k < style->provenance_count; k++)
        if (strcmp(style->provenance[k].key, key) == 0) return style->provenance[k].value;
    return NULL;
}

/* The path as seen from the folder of the .tex file, where that is the same folder. */
static const char *seen_from(const char *tex, const char *figure)
{
    const char *slash = strrchr(tex, '/'), *figure_slash = strrchr(figure, '/');
    const size_t folder = slash ? (size_t)(slash - tex) : 0,
                 figure_folder = figure_slash ? (size_t)(figure_slash - figure) : 0;
    const bool same = folder == figure_folder && strncmp(tex, figure, folder) == 0 && !slash == !figure_slash;
    return same && figure_slash ? figure_slash + 1 : figure;
}

const char *figure_latex_includes(const text_list *paths)
{
    const char *found = NULL;
    for (size_t k = 0; k < paths->count; k++) {
        if (path_has_suffix(paths->items[k], ".pdf")) return paths->items[k];
        if (!found && path_has_suffix(paths->items[k], ".png")) found = paths->items[k];
    }
    return found;
}

static void put_caption(const figure_source *source, const figure_style *style, const char *caption, FILE *out)
{
    const char *text = provenance_of(style, "Text"), *pair = provenance_of(style, "Pair"),
               *digest = provenance_of(style, "Model SHA-256"), *note = style->note;
    if (caption) put_text(out, caption);
    const char *model = provenance_of(style, "Model"), *ids = provenance_of(style, "Input ids");
    if (caption) fputc(' ', out);
    if (model) { /* else the figure is anonymous, and the sentence begins with the layers */
        fputs("Model: \\texttt{", out);
        put_text(out, model);
        fputc('}', out);
        if (digest) fprintf(out, " (SHA-256 %.12s\\ldots)", digest);
    }
    if (text || ids) {
        fputs(text ? "; text: ``" : "; ids: ", out);
        put_text(out, text ? text : ids);
        if (text) fputs("''", out);
    }
    if (pair) {
        fputs(" and ``", out);
        put_text(out, pair);
        fputs("''", out);
    }
    fprintf(out, "%s%s %s, head%s %s.", model ? "; layer" : "Layer", source->layer_count == 1 ? "" : "s",
            provenance_of(style, "Layers"), source->head_count == 1 ? "" : "s", provenance_of(style, "Heads"));
    if (!note) return;
    fputc(' ', out);
    put_text(out, note);
}

/* "fig:" and the name of the figure's file without its suffix, as far as a label can have it. */
static void put_label(FILE *out, const char *figure)
{
    const char *slash = strrchr(figure, '/'), *name = slash ? slash + 1 : figure, *dot = strrchr(name, '.');
    fputs("fig:", out);
    for (; *name && name != dot; name++) fputc(strchr("\\{}$&#%^~, ", *name) ? '-' : *name, out);
}

deberta_status figure_latex_write(const figure_source *source, const figure_style *style, const char *caption,
                                  double width, atomic_file **file, deberta_error *err)
{
    const char *path = source->asked->latex, *figure = figure_latex_includes(&source->options->outs),
               *environment = width > 100 ? "figure*" : "figure";
    FILE *out;
    DEBERTA_TRY(atomic_file_open(file, path, err));
    DEBERTA_TRY(atomic_file_stream(&out, *file, err));
    fputs("% deberta " DEBERTA_VERSION_TEXT "; needs \\usepackage{graphicx}.", out);
    const char *command = provenance_of(style, "Command");
    if (command) fputs(" Made by\n% ", out);
    for (const char *c = command; c && *c; c++) fputc(*c == '\n' ? ' ' : *c, out);
    fprintf(out, "\n\\begin{%s}\n  \\centering\n  \\includegraphics[width=%gmm]{%s}\n  \\caption{", environment, width,
            seen_from(path, figure));
    put_caption(source, style, caption, out);
    fputs("}\n  \\label{", out);
    put_label(out, figure);
    fprintf(out, "}\n\\end{%s}\n", environment);
    return DEBERTA_OK;
}
