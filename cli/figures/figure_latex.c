/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_latex.h"

#include <string.h>

#include "cli/figures/figure_kinds.h"
#include "core/base/path.h"

/* Text as LaTeX sets it; "sqrt(3d)" as a root. */
static void put_latex(byte_buffer *out, const char *text)
{
    bool in_root = false;
    for (; *text; text++) {
        const char *special = strchr("\\{}$&#%_^~", *text);
        if (strncmp(text, "sqrt(", 5) == 0) {
            byte_buffer_text(out, "$\\sqrt{");
            text += 4;
            in_root = true;
        } else if (in_root && *text == ')') {
            byte_buffer_text(out, "}$");
            in_root = false;
        } else if (*text == '\\') {
            byte_buffer_text(out, "\\textbackslash{}");
        } else if (*text == '^' || *text == '~') {
            byte_buffer_format(out, "\\%c{}", *text);
        } else if (*text == '\n' || *text == '\r' || *text == '\t') {
            byte_buffer_text(out, " ");
        } else {
            byte_buffer_format(out, special ? "\\%c" : "%c", *text);
        }
    }
}

static const char *provenance_of(const figure_job *job, const char *key)
{
    for (size_t k = 0; k < job->style.provenance_count; k++)
        if (strcmp(job->provenance[k].key, key) == 0) return job->provenance[k].value;
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

const char *figure_latex_includes(const figure_job *job)
{
    const char *found = NULL;
    for (size_t k = 0; k < job->path_count; k++) {
        if (path_has_suffix(job->paths[k], ".pdf")) return job->paths[k];
        if (!found && path_has_suffix(job->paths[k], ".png")) found = job->paths[k];
    }
    return found;
}

static void put_caption(byte_buffer *out, const figure_job *job)
{
    const char *text = provenance_of(job, "Text"), *pair = provenance_of(job, "Pair"),
               *digest = provenance_of(job, "Model SHA-256");
    if (job->caption) put_latex(out, job->caption);
    byte_buffer_text(out, "Model: \\texttt{");
    put_latex(out, job->info.name);
    byte_buffer_text(out, "}");
    if (digest) byte_buffer_format(out, " (SHA-256 %.12s\\ldots)", digest);
    byte_buffer_text(out, text ? "; text: ``" : "; ids: ");
    put_latex(out, text ? text : provenance_of(job, "Input ids"));
    if (text) byte_buffer_text(out, "''");
    if (pair) {
        byte_buffer_text(out, " and ``");
        put_latex(out, pair);
        byte_buffer_text(out, "''");
    }
    byte_buffer_format(out, "; layer%s %s, head%s %s. ", job->layer_count == 1 ? "" : "s", provenance_of(job, "Layers"),
                       job->head_count == 1 ? "" : "s", provenance_of(job, "Heads"));
    if (job->style.note) put_latex(out, job->style.note);
    while (out->size_bytes && out->data[out->size_bytes - 1] == ' ') out->size_bytes--;
}

/* "fig:" and the name of the figure's file without its suffix, as far as a label can have it. */
static void put_label(byte_buffer *out, const char *figure)
{
    const char *slash = strrchr(figure, '/'), *name = slash ? slash + 1 : figure, *dot = strrchr(name, '.');
    byte_buffer_text(out, "fig:");
    for (; *name && name != dot; name++) byte_buffer_append(out, strchr("\\{}$&#%^~, ", *name) ? "-" : name, 1);
}

void figure_latex_write(const figure_job *job, const char *path, byte_buffer *out)
{
    const figure_style style = figure_defaults(&job->style);
    const char *figure = figure_latex_includes(job), *environment = style.width_mm > 100 ? "figure*" : "figure";
    char width[40];
    snprintf(width, sizeof width, "%gmm", style.width_mm);
    byte_buffer_text(out, "% deberta " DEBERTA_VERSION_TEXT "; needs \\usepackage{graphicx}. Made by\n% ");
    for (const char *c = provenance_of(job, "Command"); *c; c++) byte_buffer_append(out, *c == '\n' ? " " : c, 1);
    byte_buffer_format(out, "\n\\begin{%s}\n  \\centering\n  \\includegraphics[width=%s]{%s}\n  \\caption{",
                       environment, width, seen_from(path, figure));
    put_caption(out, job);
    byte_buffer_text(out, "}\n  \\label{");
    put_label(out, figure);
    byte_buffer_format(out, "}\n\\end{%s}\n", environment);
}
