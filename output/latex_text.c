/* Sets text for LaTeX word by word. SPDX-License-Identifier: MIT */
#include "output/latex_text.h"

#include <stdint.h>
#include <string.h>

#include "core/base/text.h"

/* --------------------------------------------------------------------------------------------------------- symbols */

typedef enum symbol_place { ON_LINE, BELOW, ABOVE, ROOT } symbol_place;

typedef struct symbol {
    uint32_t character;
    symbol_place place;
    const char *math;
} symbol;

/* Symbols that occur in this program's sentences. */
static const symbol symbols[] = {
    {0x3B1, ON_LINE, "\\alpha "},
    {0x3B4, ON_LINE, "\\delta "},
    {0x394, ON_LINE, "\\Delta "},
    {0x2202, ON_LINE, "\\partial "},
    {0x2212, ON_LINE, "-"},
    {0x2016, ON_LINE, "\\Vert "},
    {0xD7, ON_LINE, "\\times "},
    {0xB7, ON_LINE, "\\cdot "},
    {0x2264, ON_LINE, "\\leq "},
    {0x2265, ON_LINE, "\\geq "},
    {0x2248, ON_LINE, "\\approx "},
    {0x221E, ON_LINE, "\\infty "},
    {0x221A, ROOT, "\\sqrt"},
    {0xB9, ABOVE, "1"},
    {0xB2, ABOVE, "2"},
    {0xB3, ABOVE, "3"},
    {0x2070, ABOVE, "0"},
    {0x2074, ABOVE, "4"},
    {0x2075, ABOVE, "5"},
    {0x2076, ABOVE, "6"},
    {0x2077, ABOVE, "7"},
    {0x2078, ABOVE, "8"},
    {0x2079, ABOVE, "9"},
    {0x207B, ABOVE, "-"},
    {0x1D62, BELOW, "i"},
    {0x2C7C, BELOW, "j"},
    {0x2092, BELOW, "o"},
    {0x2096, BELOW, "k"},
    {0x2099, BELOW, "n"},
    {0x2080, BELOW, "0"},
    {0x2081, BELOW, "1"},
    {0x2082, BELOW, "2"},
    {0x2083, BELOW, "3"},
};

static bool is_greek(uint32_t c) { return (c >= 0x370 && c < 0x400) || (c >= 0x1F00 && c < 0x2000); }

/* Returns the symbol for a character; NULL for none, as for a letter of a Greek word. before, after: its
 * neighbours. */
static const symbol *symbol_of(uint32_t before, uint32_t character, uint32_t after)
{
    if (is_greek(character) && (is_greek(before) || is_greek(after))) return NULL;
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++)
        if (symbols[k].character == character) return &symbols[k];
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------------- words */

/* Part of a text, decoded as it is walked through. */
typedef struct word_cursor {
    const char *at, *end;
    uint32_t before, character;
    size_t bytes;
} word_cursor;

static uint32_t character_at(const char *at, const char *end, size_t *bytes)
{
    uint32_t character = 0;
    *bytes = at < end ? utf8_decode(at, (size_t)(end - at), &character) : 0;
    if (at < end && *bytes == 0) { /* not UTF-8: a byte is copied as it is */
        *bytes = 1;
        character = (unsigned char)*at;
    }
    return character;
}

static bool word_next(word_cursor *c)
{
    c->at += c->bytes;
    c->before = c->character;
    c->character = character_at(c->at, c->end, &c->bytes);
    return c->at < c->end;
}

static const symbol *word_symbol(const word_cursor *c)
{
    size_t unused;
    return symbol_of(c->before, c->character, character_at(c->at + c->bytes, c->end, &unused));
}

static bool is_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }

/* Returns true for a formula: it has a symbol, no word of three letters, and otherwise only ASCII. */
static bool is_formula(const char *from, const char *to)
{
    word_cursor c = {.at = from, .end = to};
    size_t letters = 0, found = 0;
    bool fine = true;
    while (word_next(&c)) {
        const bool known = word_symbol(&c) != NULL;
        letters = is_letter(c.character) ? letters + 1 : 0;
        found += known;
        fine = fine && letters < 3 && (known || (c.character < 0x80 && !strchr("\\{}$&#^_%~\"'`", (int)c.character)));
    }
    return fine && found > 0;
}

/* Writes a byte as what it is in every font encoding: OT1 has other letters in the places of < > | and ". Fonts join
 * two hyphens, quotes or commas, and a question mark with a backquote; a kern of no width keeps them apart. */
static void put_plain(char c, char next, FILE *out)
{
    if (strchr("&%$#_{}", c)) fputc('\\', out);
    switch (c) {
    case '<': fputs("\\textless{}", out); break;
    case '>': fputs("\\textgreater{}", out); break;
    case '|': fputs("\\textbar{}", out); break;
    case '"': fputs("\\texttt{\\char34}", out); break;
    case '\\': fputs("\\textbackslash{}", out); break;
    case '~': fputs("\\textasciitilde{}", out); break;
    case '^': fputs("\\textasciicircum{}", out); break;
    default: fputc(c, out);
    }
    if (strchr("-'`,<>", c) ? next == c : strchr("?!", c) && next == '`') fputs("\\kern0pt{}", out);
}

/* Returns the end of a radicand whose root sign is before `from`: an expression in parentheses, which are left out,
 * or letters and digits. */
static const char *root_end(const char *from, const char *to)
{
    const char *end = from;
    if (from < to && *from == '(') {
        const char *close = memchr(from, ')', (size_t)(to - from));
        return close ? close + 1 : from;
    }
    while (end < to && (is_letter((unsigned char)*end) || is_digit((unsigned char)*end))) end++;
    return end;
}

static void put_root(word_cursor *c, FILE *out)
{
    const char *from = c->at + c->bytes, *to = root_end(from, c->end);
    const bool enclosed = to > from && *from == '(';
    fprintf(out, "{%.*s}", (int)(to - from - (enclosed ? 2 : 0)), from + enclosed);
    c->bytes += (size_t)(to - from);
    c->character = ')';
}

/* Writes an exponent behind a digit, such as e-06, as a power of ten. Returns its bytes; 0 if there is none. */
static size_t put_exponent(const word_cursor *c, FILE *out)
{
    size_t bytes;
    const uint32_t sign = character_at(c->at + 1, c->end, &bytes);
    if (c->character != 'e' || !is_digit(c->before) || (sign != '+' && sign != '-' && sign != 0x2212)) return 0;
    const char *from = c->at + 1 + bytes, *to = from;
    while (to < c->end && is_digit((unsigned char)*to)) to++;
    while (from + 1 < to && *from == '0') from++;
    if (from == to) return 0;
    fprintf(out, "\\times 10^{%s%.*s}", sign == '+' ? "" : "-", (int)(to - from), from);
    return (size_t)(to - c->at);
}

/* Writes a formula; neighbouring symbols of one position share their braces: _{ij}. */
static void put_math(const char *from, const char *to, FILE *out)
{
    word_cursor c = {.at = from, .end = to};
    symbol_place place = ON_LINE;
    while (word_next(&c)) {
        const symbol *s = word_symbol(&c);
        const symbol_place next = s && s->place != ROOT ? s->place : ON_LINE;
        if (place != ON_LINE && place != next) fputc('}', out);
        if (next != ON_LINE && place != next) fputs(next == BELOW ? "_{" : "^{", out);
        place = next;
        const size_t exponent = put_exponent(&c, out);
        if (exponent)
            c.bytes = exponent;
        else if (s)
            fputs(s->math, out);
        else
            fwrite(c.at, 1, c.bytes, out);
        if (s && s->place == ROOT) put_root(&c, out);
    }
    if (place != ON_LINE) fputc('}', out);
}

/* Writes text as it is, with each run of symbols in math. */
static void put_mixed(const char *from, const char *to, FILE *out)
{
    word_cursor c = {.at = from, .end = to};
    while (word_next(&c)) {
        const char *begin = c.at;
        const symbol *s = word_symbol(&c);
        if (!s) {
            if (c.bytes == 1)
                put_plain(*c.at, c.at + 1 < c.end ? c.at[1] : ' ', out);
            else
                fwrite(c.at, 1, c.bytes, out);
            continue;
        }
        const char *end = s->place == ROOT ? root_end(c.at + c.bytes, to) : c.at + c.bytes;
        fputc('$', out);
        put_math(begin, end, out);
        fputc('$', out);
        c.bytes = (size_t)(end - c.at);
    }
}

static bool closes_more(const char *from, const char *to)
{
    int depth = 0;
    for (const char *c = from; c < to; c++) depth += (*c == '(') - (*c == ')');
    return depth < 0;
}

/* Writes a word. Punctuation around it is not part of its formula, nor is a parenthesis whose partner is in another
 * word. */
static void put_word(const char *from, const char *to, FILE *out)
{
    const char *begin = from, *end = to;
    while (end > begin && (strchr(".,;:!?", end[-1]) || (end[-1] == ')' && closes_more(begin, end)))) end--;
    while (begin < end && *begin == '(' && !memchr(begin, ')', (size_t)(end - begin))) begin++;
    if (!is_formula(begin, end)) {
        put_mixed(from, to, out);
        return;
    }
    put_mixed(from, begin, out);
    fputc('$', out);
    put_math(begin, end, out);
    fputc('$', out);
    put_mixed(end, to, out);
}

static bool parts_words(char c) { return (unsigned char)c <= ' ' || c == 0x7F; }

void latex_text_print(const char *text, FILE *out)
{
    while (*text) {
        const char *end = text;
        while (*end && !parts_words(*end)) end++;
        put_word(text, end, out);
        if (*end && end[1]) fputc(' ', out);
        text = *end ? end + 1 : end;
    }
}

/* --------------------------------------------------------------------------------------------------------- scripts */

typedef struct character_range {
    uint32_t from, to; /* bounds, inclusive */
} character_range;

/* Characters that pdflatex sets from UTF-8 in the class article without further packages, as tried with TeX Live
 * 2022. */
static const character_range plain[] = {
    {0x20, 0x7E},     {0xA0, 0xAA},     {0xAC, 0xBA},     {0xBC, 0xCF},     {0xD1, 0xDD},     {0xDF, 0xEF},
    {0xF1, 0xFD},     {0xFF, 0x103},    {0x106, 0x10F},   {0x112, 0x117},   {0x11A, 0x125},   {0x128, 0x12D},
    {0x130, 0x137},   {0x139, 0x13E},   {0x141, 0x148},   {0x14C, 0x165},   {0x168, 0x171},   {0x174, 0x17E},
    {0x2010, 0x2016}, {0x2018, 0x2019}, {0x201C, 0x201D}, {0x2020, 0x2022}, {0x2026, 0x2026}, {0x2030, 0x2031},
    {0x20AB, 0x20AC}, {0x2116, 0x2117}, {0x2122, 0x2122}, {0x2190, 0x2193}, {0xFB00, 0xFB06},
};

typedef struct script_range {
    uint32_t from, to;
    const char *name;
} script_range;

static const script_range scripts[] = {
    {0x80, 0x24F, "Latin letters beyond Western European"},
    {0x250, 0x2AF, "phonetic letters"},
    {0x300, 0x36F, "combining accents"},
    {0x370, 0x3FF, "Greek"},
    {0x400, 0x52F, "Cyrillic"},
    {0x530, 0x58F, "Armenian"},
    {0x590, 0x5FF, "Hebrew"},
    {0x600, 0x77F, "Arabic"},
    {0x900, 0x97F, "Devanagari"},
    {0x980, 0x9FF, "Bengali"},
    {0xB80, 0xBFF, "Tamil"},
    {0xE00, 0xE7F, "Thai"},
    {0x10A0, 0x10FF, "Georgian"},
    {0x1100, 0x11FF, "Hangul"},
    {0x1E00, 0x1EFF, "Latin letters beyond Western European"},
    {0x1F00, 0x1FFF, "Greek"},
    {0x2000, 0x206F, "punctuation beyond Western European"},
    {0x3000, 0x303F, "Chinese, Japanese or Korean punctuation"},
    {0x3040, 0x30FF, "kana"},
    {0x3400, 0x9FFF, "Chinese characters"},
    {0xAC00, 0xD7AF, "Hangul"},
    {0xFF00, 0xFFEF, "full-width forms"},
    {0x1F000, 0x1FAFF, "emoji"},
    {0x20000, 0x3FFFF, "Chinese characters"},
    {0x80, 0x10FFFF, "other symbols"},
};

static const char *script_of(uint32_t character)
{
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        if (character <= ' ' || (character >= plain[k].from && character <= plain[k].to)) return NULL;
    for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++)
        if (character >= scripts[k].from && character <= scripts[k].to) return scripts[k].name;
    return NULL;
}

void latex_scripts_add(latex_scripts *to, const char *text)
{
    word_cursor c = {.at = text, .end = text + strlen(text)};
    while (word_next(&c)) {
        const char *name = word_symbol(&c) ? NULL : script_of(c.character);
        const size_t used = strlen(to->names);
        if (!name || strstr(to->names, name) || used + strlen(name) + 3 > LATEX_SCRIPTS_BYTES) continue;
        snprintf(to->names + used, LATEX_SCRIPTS_BYTES - used, "%s%s", used ? ", " : "", name);
    }
}
