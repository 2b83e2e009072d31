/* Folds the output of --help to the width of a terminal. SPDX-License-Identifier: MIT */
#include "program/frame/help_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COMMAND_INDENT = 2, GOES_ON_INDENT = 6, ROOM_OF_A_ROW = 32, NARROW_INDENT = 10 };

/* Returns COLUMNS, or the terminal's width; 0 if neither is known. */
static size_t columns_of(FILE *out)
{
    struct winsize size;
    const char *name = getenv("COLUMNS");
    char *end;
    const unsigned long given = name ? strtoul(name, &end, 10) : 0;
    if (name && *name >= '0' && *name <= '9' && !*end && given) return given;
    const int file = fileno(out);
    return isatty(file) && ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

help_lines help_lines_to(FILE *out)
{
    const size_t columns = columns_of(out);
    const size_t wide = columns && columns < HELP_WIDEST ? columns : HELP_WIDEST;
    return (help_lines){out, wide > HELP_NARROWEST ? wide : HELP_NARROWEST, columns != 0};
}

static void print_blanks(const help_lines *lines, size_t count) { fprintf(lines->out, "%*s", (int)count, ""); }

/* Returns the length of a word up to a blank or the end of the line; within a command, quotes hold blanks
 * together. */
static size_t single_length(const char *word, bool is_command)
{
    char quote = 0;
    size_t k = 0;
    for (; word[k] && word[k] != '\n' && (quote || word[k] != ' '); k++)
        if (is_command && (word[k] == '\'' || word[k] == '"')) quote = !quote ? word[k] : quote == word[k] ? 0 : quote;
    return k;
}

/* Returns the length of a word; an option of a command and its value count as one word. */
static size_t word_length(const char *word, bool is_command)
{
    const size_t length = single_length(word, is_command);
    const bool has_value = is_command && *word == '-' && word[length] == ' ' && !strchr(" -#", word[length + 1]);
    return has_value ? length + 1 + single_length(word + length + 1, true) : length;
}

/* Prints words up to `stop`, the first at `column`. Every line but the last ends with `mark`. */
static void print_words(const help_lines *lines, const char *text, const char *stop, size_t column, size_t indent,
                        const char *mark)
{
    bool begins = true;
    while (text < stop) {
        const bool is_command = *mark != 0;
        const size_t length = word_length(text, is_command), gap = begins ? 0 : 1;
        const char *next = text + length + strspn(text + length, " \n");
        const size_t room = lines->width - (next < stop ? strlen(mark) : 0);
        if (!begins && column + gap + length > room) {
            fprintf(lines->out, "%s\n", mark);
            print_blanks(lines, indent);
            column = indent;
        } else if (gap) {
            fputc(' ', lines->out);
            column++;
        }
        fprintf(lines->out, "%.*s", (int)length, text);
        column += length;
        begins = false;
        text = next;
    }
    fputc('\n', lines->out);
}

void help_row(const help_lines *lines, const char *left, size_t indent, const char *text)
{
    const bool beside = lines->width >= indent + ROOM_OF_A_ROW;
    const size_t used = strlen(left), at = beside ? indent : NARROW_INDENT;
    fputs(left, lines->out);
    if (beside && used < at) {
        print_blanks(lines, at - used);
    } else if (beside) { /* the name is longer than its column */
        fputc(' ', lines->out);
    } else {
        fputc('\n', lines->out);
        print_blanks(lines, at);
    }
    print_words(lines, text, text + strlen(text), beside && used >= at ? used + 1 : at, at, "");
}

void help_paragraph(const help_lines *lines, size_t indent, const char *text)
{
    if (lines->folds)
        print_words(lines, text, text + strlen(text), 0, indent, "");
    else
        fprintf(lines->out, "%s\n", text);
}

/* Returns where a command's comment begins: after a blank, outside quotes. */
static const char *comment_of(const char *line, const char *stop)
{
    for (const char *at = line; at < stop;) {
        if (*at == '#') return at;
        at += word_length(at, true);
        at += strspn(at, " ");
    }
    return stop;
}

static void print_command(const help_lines *lines, const char *line, const char *stop)
{
    const char *comment = comment_of(line, stop), *end = comment;
    while (end > line && end[-1] == ' ') end--;
    print_blanks(lines, COMMAND_INDENT);
    print_words(lines, line, end, COMMAND_INDENT, GOES_ON_INDENT, " \\");
    if (comment == stop) return;
    print_blanks(lines, GOES_ON_INDENT);
    fputs("# ", lines->out);
    comment += strspn(comment, "# ");
    for (const char *word = comment; word < stop;) { /* each line of a folded comment begins with # */
        size_t column = GOES_ON_INDENT + 2, length = word_length(word, false);
        while (word < stop && (column == GOES_ON_INDENT + 2 || column + 1 + length <= lines->width)) {
            fprintf(lines->out, "%s%.*s", column == GOES_ON_INDENT + 2 ? "" : " ", (int)length, word);
            column += length + 1;
            word += length + strspn(word + length, " ");
            length = word_length(word, false);
        }
        fputc('\n', lines->out);
        if (word >= stop) return;
        print_blanks(lines, GOES_ON_INDENT);
        fputs("# ", lines->out);
    }
}

/* Returns the end of the line; for sentences that begin in the first column, the end of the paragraph. */
static const char *end_of_lines(const help_lines *lines, const char *text)
{
    const char *stop = text + strcspn(text, "\n");
    while (lines->folds && !strchr(" \n", *text) && *stop && stop[1] && !strchr(" \n", stop[1]))
        stop += 1 + strcspn(stop + 1, "\n");
    return stop;
}

void help_examples(const help_lines *lines, const char *text)
{
    for (const char *stop; *text; text = stop + (*stop == '\n')) {
        stop = end_of_lines(lines, text);
        const size_t length = (size_t)(stop - text), indent = strspn(text, " ");
        if (!lines->folds || length <= lines->width) {
            fprintf(lines->out, "%.*s\n", (int)length, text);
        } else if (strncmp(text + indent, "deberta ", 8) == 0) {
            print_command(lines, text + indent, stop);
        } else {
            print_blanks(lines, indent);
            print_words(lines, text + indent, stop, indent, indent ? indent + 2 : 0, "");
        }
    }
}
