/* Chooses tokens, merges them into words and labels them; merges matrices accordingly. SPDX-License-Identifier: MIT */
#include "program/attention/token_view.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "program/frame/input/input_batch.h"

/* A text is not merged into words if one word would hold more than one part in this many of its pieces. */
enum { MOST_WORDS_SHARE = 3 };

/* Mark that SentencePiece puts before an unknown character, drawn as a bar as high as the type. */
static const char lone_space[] = "\u2581", byte_space[] = "\u0120"; /* the same mark in byte-level vocabularies */

token_view_rule token_view_rule_of(deberta_component component)
{
    return component == DEBERTA_PROBABILITIES ? TOKEN_VIEW_SUM_KEYS : TOKEN_VIEW_MEAN;
}

/* -------------------------------------------------------------------------------------------------------- making */

static const deberta_tokens *tokens_of(const input_batch *input, size_t row)
{
    return input->token_lists ? input->token_lists[row] : NULL;
}

/* Returns the bytes of the one white-space character that a text of `bytes` begins with; 0 if it begins with none. */
static size_t leading_space(const char *text, size_t bytes)
{
    uint32_t character;
    const size_t length = bytes > 0 ? utf8_decode(text, bytes, &character) : 0;
    return length > 0 && utf8_is_space(character) ? length : 0;
}

/* Returns true if token t begins a word. The first column of a row of texts is 0, so token t of the text is entry t
 * of its list. A word begins after white space, with every segment, with a special token, and with each piece of a
 * script that has no white space. White space belongs to the piece after it (SentencePiece, also where the piece is
 * nothing else), or to none. */
static bool begins_word(const input_batch *input, size_t row, size_t t)
{
    const deberta_tokens *list = tokens_of(input, row);
    if (t == 0 || list->roles[t] != DEBERTA_TOKEN_TEXT || list->roles[t - 1] != DEBERTA_TOKEN_TEXT ||
        list->token_types[t] != list->token_types[t - 1])
        return true;
    const char *text = token_segment(input, row, t);
    const size_t bytes = list->token_types[t] ? input->pair_bytes[row] : input->text_bytes[row];
    const deberta_span before = list->byte_spans[t - 1], span = list->byte_spans[t];
    if (span.begin < span.end && leading_space(text + span.begin, bytes - span.begin)) return true;
    size_t skipped = span.begin;
    while (skipped > before.end && utf8_is_continuation(text[--skipped])) continue;
    return leading_space(text + skipped, span.begin - skipped) > 0 || word_ends_between(text, bytes, before, span);
}

/* Returns the label of a word as written in the text, or the name of a token that is no word. */
static const char *label_of(token_view *view, const input_batch *input, const token_view_choice *choice, size_t index)
{
    const size_t first = view->members[view->starts[index]], last = view->members[view->starts[index + 1] - 1];
    const deberta_tokens *list = tokens_of(input, view->row);
    if (!choice->words || list->roles[first] != DEBERTA_TOKEN_TEXT) return input->labels[view->first_token + first];
    const char *text = token_segment(input, view->row, first);
    size_t begin = list->byte_spans[first].begin;
    const size_t end = list->byte_spans[last].end;
    for (size_t space; (space = leading_space(text + begin, end - begin)) > 0;) begin += space;
    return begin < end ? scope_text(&view->memory, "%.*s", (int)(end - begin), text + begin)
                       : input->labels[view->first_token + first];
}

static void choose_tokens(token_view *view, const input_batch *input, const token_view_choice *choice)
{
    size_t members = 0, last = SIZE_MAX;
    const size_t n = view->span[1], end = choice->end < n ? choice->end : n;
    for (size_t t = choice->first; t < end; t++) {
        if (choice->drop_special && input->special[view->first_token + t]) continue;
        /* a word with hidden pieces goes on with the next shown piece */
        bool merged = choice->words && members > 0;
        for (size_t between = last + 1; merged && between <= t; between++)
            merged = !begins_word(input, view->row, between);
        if (!merged) {
            view->tokens[view->count] = t;
            view->starts[view->count++] = members;
        }
        view->members[members++] = last = t;
    }
    view->starts[view->count] = members;
    view->whole = view->count == n;
}

/* Returns true if a piece is inside a word but would look like a separate word. Punctuation does not. */
static bool is_inside(const token_view *view, const input_batch *input, size_t token)
{
    const size_t place = view->first_token + token;
    const unsigned char first = (unsigned char)*input->labels[place];
    return (isalnum(first) || first >= 0x80) && !begins_word(input, view->row, token) &&
           strcmp(input->labels[place - 1], lone_space) != 0;
}

static const char *drawn_label(token_view *view, const input_batch *input, size_t token, const char *name)
{
    const deberta_tokens *list = tokens_of(input, view->row);
    if (!list || list->roles[token] != DEBERTA_TOKEN_TEXT) return name;
    if (strcmp(name, lone_space) == 0 || strcmp(name, byte_space) == 0) return "\u2423";
    return is_inside(view, input, token) ? scope_text(&view->memory, "\u00b7%s", name) : name;
}

static bool is_unknown(const input_batch *input, size_t token)
{
    return input->tokenizer && input->ids[token] == deberta_tokenizer_special_id(input->tokenizer, DEBERTA_SPECIAL_UNK);
}

static void label_tokens(token_view *view, const input_batch *input, const token_view_choice *choice)
{
    const deberta_tokens *list = tokens_of(input, view->row);
    for (size_t k = 0; k < view->count; k++) {
        const size_t token = view->tokens[k];
        const char *name = label_of(view, input, choice, k);
        const bool special = input->special[view->first_token + token] || is_unknown(input, view->first_token + token);
        view->names[k] = (figure_label){.text = name, .special = special};
        view->labels[k] = (figure_label){.text = drawn_label(view, input, token, name), .special = special};
        if (k > 0 && !view->boundary && list && list->segments > 1 && list->token_types[token]) view->boundary = k;
    }
}

deberta_status token_view_make(token_view *view, const input_batch *input, size_t row, const token_view_choice *choice,
                               deberta_error *err)
{
    *view = (token_view){.row = row};
    if (row >= input->rows)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--row: %zu is out of range, the input has %zu row%s, counted from 0",
                     row, input->rows, input->rows == 1 ? "" : "s");
    if (input->row[row].tokens == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--row: the input has no real tokens in row %zu", row);
    if ((choice->words || choice->drop_special) && !tokens_of(input, row))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--%s needs a text: ids do not say which tokens are %s",
                     choice->words ? "words" : "drop-special", choice->words ? "parts of a word" : "special");
    const size_t n = input->row[row].tokens;
    view->first_token = input->sequence_starts[input->row[row].sequence];
    view->span[1] = n;
    if (choice->first >= n || (choice->end != SIZE_MAX && choice->end > n))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--token-range: the text has %zu tokens, 0:%zu are all of them", n, n);
    view->starts = scope_take(&view->memory, n + 1, sizeof *view->starts);
    view->members = scope_take(&view->memory, n, sizeof *view->members);
    view->tokens = scope_take(&view->memory, n, sizeof *view->tokens);
    view->names = scope_take(&view->memory, n, sizeof *view->names);
    view->labels = scope_take(&view->memory, n, sizeof *view->labels);
    choose_tokens(view, input, choice);
    if (view->count == 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--drop-special: nothing is left of the text to be shown");
    label_tokens(view, input, choice);
    return DEBERTA_OK;
}

void token_view_free(token_view *view)
{
    scope_free(&view->memory);
    *view = (token_view){0};
}

/* --------------------------------------------------------------------------------------------------------- using */

void token_view_matrix(const token_view *view, const float *matrix, token_view_rule rule, float *out)
{
    for (size_t i = 0; i < view->count; i++)
        for (size_t j = 0; j < view->count; j++) {
            const size_t queries = view->starts[i + 1] - view->starts[i], keys = view->starts[j + 1] - view->starts[j];
            double sum = 0;
            for (size_t a = view->starts[i]; a < view->starts[i + 1]; a++)
                for (size_t b = view->starts[j]; b < view->starts[j + 1]; b++)
                    sum += matrix[view->members[a] * view->span[1] + view->members[b]];
            out[i * view->count + j] = (float)(sum / (double)(rule == TOKEN_VIEW_MEAN ? queries * keys : queries));
        }
}

size_t token_view_place(const token_view *view, size_t token)
{
    for (size_t k = 0; k < view->count; k++)
        for (size_t m = view->starts[k]; m < view->starts[k + 1]; m++)
            if (view->members[m] == token) return k;
    return SIZE_MAX;
}

const size_t *token_view_numbers(const token_view *view) { return view->whole ? NULL : view->tokens; }

size_t token_view_count_words(const token_view *view, const input_batch *input, const token_view_choice *choice,
                              bool *uneven)
{
    token_view words;
    token_view_choice merged = *choice;
    merged.words = true;
    deberta_error error;
    const size_t count =
        token_view_make(&words, input, view->row, &merged, &error) == DEBERTA_OK ? words.count : view->count;
    size_t longest = 0, pieces = 0;
    for (size_t k = 0; k < words.count; k++) {
        if (input->special[view->first_token + words.tokens[k]]) continue;
        longest = maximum(longest, words.starts[k + 1] - words.starts[k]);
        pieces += words.starts[k + 1] - words.starts[k];
    }
    if (uneven) *uneven = MOST_WORDS_SHARE * longest > pieces;
    token_view_free(&words);
    return count;
}

void token_view_describe(const token_view *view, const token_view_choice *choice, bool probabilities, bool logits,
                         char *text, size_t capacity)
{
    const size_t n = view->span[1];
    char range[96] = "", why[64] = "", words[320] = "";
    if (choice->first > 0 || choice->end < n)
        snprintf(range, sizeof range, "Tokens %zu to %zu of %zu. ", choice->first,
                 (choice->end < n ? choice->end : n) - 1, n);
    if (choice->fitted && choice->pieces_mm > 0)
        snprintf(why, sizeof why, "would make the figure %.0f mm high and ", choice->pieces_mm);
    else if (choice->fitted)
        snprintf(why, sizeof why, "have no room and ");
    if (choice->words)
        snprintf(words, sizeof words, "Pieces %sare merged into words (what white space separates)%s%s%s%s. ", why,
                 probabilities || logits ? ": " : "",
                 probabilities ? "probabilities are added over the keys of a word and averaged over its queries" : "",
                 probabilities && logits ? ", " : "",
                 !logits         ? ""
                 : probabilities ? "logits averaged over both"
                                 : "logits are averaged over the keys and the queries of a word");
    snprintf(text, capacity, "%s%s%s", range,
             !choice->drop_special ? ""
             : probabilities       ? "Special tokens are left out, probabilities as they are with them. "
                                   : "Special tokens are left out. ",
             words);
}
