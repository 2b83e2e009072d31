/* Prints attributions with bars of characters, and describes them as JSON. SPDX-License-Identifier: MIT */
#include "program/attribute/attribute_output.h"

#include <math.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/shown_text.h"

enum { BAR_CELLS = 24, SHOWN_DISTANCES = 12 };

const char *attribute_word(const char *token)
{
    static const char *const marks[] = {"\xE2\x96\x81", "\xC4\xA0"}; /* marks of SentencePiece and of byte pairs */
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (strncmp(token, marks[k], strlen(marks[k])) == 0) return token + strlen(marks[k]);
    return token;
}

/* Returns a name such as "logit of “good”". */
static const char *answer_text(const common_options *options, const attributed_text *text)
{
    const char *answer = options_text(options, "%s of \u201c%s\u201d", text->of, attribute_word(text->answer));
    if (text->contrast)
        answer = options_text(options, "%s minus that of \u201c%s\u201d", answer, attribute_word(text->contrast));
    return text->asked ? options_text(options, "%s at \u201c%s\u201d", answer, attribute_word(text->asked)) : answer;
}

/* --------------------------------------------------------------------------------------------------------- for a person */

static double distance_value(const deberta_attribution_distance *d) { return d->c2p + d->p2c; }

double attribute_largest(const deberta_attribution *a)
{
    double most = 0;
    for (size_t t = 0; t < a->tokens; t++)
        most = fmax(most, fmax(fabs(a->words[t]), fabs(a->positions[t] + a->token_types[t])));
    for (size_t k = 0; k < a->distance_count; k++) most = fmax(most, fabs(distance_value(&a->distances[k])));
    return most;
}

static void show_bar(FILE *out, double value, double most)
{
    const double cells = most > 0 ? fabs(value) / most * BAR_CELLS : 0;
    size_t count = (size_t)(cells + 0.5);
    fprintf(out, "  %+9.4f  ", value);
    for (size_t cell = 0; cell < BAR_CELLS; cell++) fputc(cell >= count ? ' ' : value < 0 ? '-' : '+', out);
}

static void show_tokens(FILE *out, const attributed_text *text, const char *title, const double *values,
                        const double *more, double most)
{
    fprintf(out, "  %s\n", title);
    for (size_t t = 0; t < text->found->tokens; t++) {
        show_bar(out, values[t] + (more ? more[t] : 0), most);
        fputs("  ", out);
        print_clean(out, text->tokens[t].text, strlen(text->tokens[t].text));
        fputc('\n', out);
    }
}

static void show_distance(FILE *out, const deberta_attribution_distance *d, double most)
{
    show_bar(out, distance_value(d), most);
    fprintf(out, d->first ? "  %+td" : "  %td", d->first);
    if (d->last != d->first) fprintf(out, " to %+td", d->last);
    fprintf(out, "  (c2p %+.4f, p2c %+.4f)\n", d->c2p, d->p2c);
}

/* Prints the largest rows, in the order of the table. */
static void show_distances(FILE *out, const common_options *options, const attributed_text *text, double most)
{
    const deberta_attribution *a = text->found;
    double *sizes = options_take(options, a->distance_count, sizeof *sizes);
    size_t *chosen = options_take(options, a->distance_count, sizeof *chosen);
    bool *shown = options_take(options, a->distance_count, sizeof *shown);
    for (size_t k = 0; k < a->distance_count; k++) sizes[k] = fabs(distance_value(&a->distances[k]));
    const size_t count = deberta_rank(chosen, minimum(SHOWN_DISTANCES, a->distance_count), sizes, a->distance_count);
    for (size_t k = 0; k < count; k++) shown[chosen[k]] = true;
    fprintf(out, "  distances, query minus key%s\n", count < a->distance_count ? ", the largest (--json has all)" : "");
    for (size_t k = 0; k < a->distance_count; k++)
        if (shown[k]) show_distance(out, &a->distances[k], most);
}

static double sum_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t t = 0; t < count; t++) sum += values[t];
    return sum;
}

static double sum_of_distances(const deberta_attribution *a)
{
    double sum = 0;
    for (size_t k = 0; k < a->distance_count; k++) sum += distance_value(&a->distances[k]);
    return sum;
}

static double sum_of_positions(const deberta_attribution *a)
{
    return sum_of(a->positions, a->tokens) + sum_of(a->token_types, a->tokens);
}

bool attribute_has_positions(const deberta_attribution *a)
{
    for (size_t t = 0; t < a->tokens; t++)
        if (a->positions[t] != 0 || a->token_types[t] != 0) return true;
    return false;
}

void attribute_show(FILE *out, const common_options *options, const attributed_text *text)
{
    const deberta_attribution *a = text->found;
    const double most = attribute_largest(a);
    fprintf(out, "  %s: %.4f, of the baseline (%s) %.4f\n", answer_text(options, text), a->value, text->baseline,
            a->baseline_value);
    fprintf(out, "  attributions add up to %.4f of %.4f: gap %.2g %%, %zu point%s\n", a->sum,
            a->value - a->baseline_value, 100 * a->gap, a->steps, a->steps == 1 ? "" : "s");
    fprintf(out, "  words %+.4f, distances %+.4f, positions %+.4f\n", sum_of(a->words, a->tokens), sum_of_distances(a),
            sum_of_positions(a));
    if (text->changed & DEBERTA_ATTRIBUTE_WORDS) show_tokens(out, text, "words", a->words, NULL, most);
    if (a->distance_count) show_distances(out, options, text, most);
    if (attribute_has_positions(a))
        show_tokens(out, text, "positions and token types", a->positions, a->token_types, most);
}

/* ----------------------------------------------------------------------------------------------------------------- JSON */

static json_t *describe_name(const char *name, size_t index)
{
    return json_pack("{s:o, s:I}", "name", json_clean_text(name), "index", (json_int_t)index);
}

static json_t *describe_tokens(const attributed_text *text)
{
    const deberta_attribution *a = text->found;
    json_t *tokens = json_array();
    for (size_t t = 0; t < a->tokens; t++)
        json_array_append_new(tokens,
                              json_pack("{s:I, s:o, s:o, s:o, s:b, s:f, s:f, s:f}", "index", (json_int_t)t, "token",
                                        json_clean_text(text->tokens[t].text), "characters",
                                        json_span(text->places[t].characters), "bytes",
                                        json_span(text->places[t].bytes), "special", text->tokens[t].special, "word",
                                        a->words[t], "position", a->positions[t], "token_type", a->token_types[t]));
    return tokens;
}

static json_t *describe_distances(const deberta_attribution *a)
{
    json_t *distances = json_array();
    for (size_t k = 0; k < a->distance_count; k++) {
        const deberta_attribution_distance *d = &a->distances[k];
        json_array_append_new(distances, json_pack("{s:I, s:I, s:I, s:f, s:f}", "row", (json_int_t)d->row, "first",
                                                   (json_int_t)d->first, "last", (json_int_t)d->last, "c2p", d->c2p,
                                                   "p2c", d->p2c));
    }
    return distances;
}

json_t *attribute_describe(const attributed_text *text)
{
    const deberta_attribution *a = text->found;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "schema", "deberta-attribution/1", "head",
                               text->head, "of", text->of, "method", text->method, "baseline", text->baseline, "parts",
                               text->parts, "answer", describe_name(text->answer, text->answer_index));
    if (text->contrast) json_object_set_new(object, "contrast", describe_name(text->contrast, text->contrast_index));
    if (text->asked) json_object_set_new(object, "at", json_integer((json_int_t)text->asked_token));
    json_t *numbers = json_pack("{s:f, s:f, s:f, s:f, s:I}", "value", a->value, "baseline_value", a->baseline_value,
                                "sum", a->sum, "gap", isfinite(a->gap) ? a->gap : -1, "steps", (json_int_t)a->steps);
    json_object_update_missing(object, numbers);
    json_decref(numbers);
    if (!isfinite(a->gap)) json_object_set_new(object, "gap", json_null());
    json_object_set_new(object, "tokens", describe_tokens(text));
    json_object_set_new(object, "distances", describe_distances(a));
    return object;
}
