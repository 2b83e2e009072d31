/* Finds words among tokens, corrupts them, and finds the tokens of an answer. SPDX-License-Identifier: MIT */
#include "program/attention/trace_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "program/frame/input/asked_answer.h"
#include "program/tasks/task_run.h"

typedef struct text_work {
    figure_source *source;
    const common_options *options;
    const attention_options *asked;
    const input_batch *input;
    const deberta_tokens *list; /* NULL: of ids */
    deberta_text given;         /* of the list */
    asked_text words;
    size_t row, n, first_token;
    trace_texts *found;
} text_work;

/* ------------------------------------------------------------------------------------------------------------- words */

static bool is_number(const char *text) { return *text && !text[strspn(text, "0123456789")]; }

/* Marks a token by its number, or the tokens of a word that the text has once. */
static void find_word(const text_work *w, const void *member, const char *word, bool *marked)
{
    if (is_number(word)) {
        errno = 0;
        const unsigned long long token = strtoull(word, NULL, 10);
        if (errno || token >= w->n)
            option_wrong(w->options, member, "there is no token %s: the text has %zu, counted from 0", word, w->n);
        marked[token] = true;
        return;
    }
    if (!w->list) option_wrong(w->options, member, "'%s' is no number: of ids, tokens are named by number", word);
    if (!*word) option_wrong(w->options, member, "expected a word of the text or the number of a token, found nothing");
    asked_count count;
    deberta_error error = {0};
    must(w->options, asked_word_mark(&w->words, word, marked, &count, &error), &error);
    if (count.kept == 1) return;
    if (!count.kept && count.cut)
        option_wrong(w->options, member, "%s", asked_word_was_cut(w->options, &w->words, word));
    option_wrong(w->options, member,
                 count.kept ? "'%s' is %zu times in the text: name the token by its number "
                              "(deberta tokenize shows them)"
                            : "the word '%s' is %zu times in the text",
                 word, count.kept);
}

/* Returns the next part of a list with commas, and advances *at. */
static const char *next_part(const text_work *w, const char **at)
{
    const char *begin = *at;
    if (!begin) return NULL;
    const size_t length = strcspn(begin, ",");
    *at = begin[length] ? begin + length + 1 : NULL;
    return options_text(w->options, "%.*s", (int)length, begin);
}

/* --------------------------------------------------------------------------------------------------------- corruption */

static int32_t *take_ids(const text_work *w)
{
    int32_t *ids = options_take(w->options, w->n, sizeof *ids);
    memcpy(ids, w->found->clean, w->n * sizeof *ids);
    return ids;
}

static void mask_word(const text_work *w)
{
    const attention_options *asked = w->asked;
    bool *marked = options_take(w->options, w->n, sizeof *marked);
    if (!w->list) option_wrong(w->options, &asked->trace.mask_word, "ids have no [MASK]: give --corrupted LIST");
    int32_t *ids = take_ids(w);
    find_word(w, &asked->trace.mask_word, asked->trace.mask_word, marked);
    for (size_t t = 0; t < w->n; t++)
        if (marked[t]) ids[t] = deberta_tokenizer_special_id(w->input->tokenizer, DEBERTA_SPECIAL_MASK);
    w->found->corrupted = ids;
    w->found->what = options_text(w->options, "%s is masked", asked->trace.mask_word);
}

/* Exchanges the tokens of two words, which keeps their number. */
static void swap_words(const text_work *w)
{
    const char *at = w->asked->trace.swap, *a = next_part(w, &at), *b = next_part(w, &at);
    const void *member = &w->asked->trace.swap;
    if (!b || at)
        option_wrong(w->options, member, "expected two words such as boy,girls, found '%s'", w->asked->trace.swap);
    bool *of[2] = {options_take(w->options, w->n, sizeof(bool)), options_take(w->options, w->n, sizeof(bool))};
    find_word(w, member, a, of[0]);
    find_word(w, member, b, of[1]);
    size_t first[2] = {w->n, w->n}, end[2] = {0};
    for (size_t k = 0; k < 2; k++)
        for (size_t t = 0; t < w->n; t++)
            if (of[k][t]) {
                first[k] = minimum(first[k], t);
                end[k] = t + 1;
            }
    const size_t left = first[1] < first[0], right = 1 - left;
    if (end[left] > first[right]) option_wrong(w->options, member, "'%s' and '%s' share a token", a, b);
    int32_t *ids = take_ids(w);
    size_t to = first[left];
    for (size_t t = first[right]; t < end[right]; t++) ids[to++] = w->found->clean[t];
    for (size_t t = end[left]; t < first[right]; t++) ids[to++] = w->found->clean[t];
    for (size_t t = first[left]; t < end[left]; t++) ids[to++] = w->found->clean[t];
    w->found->corrupted = ids;
    w->found->what = options_text(w->options, "%s and %s are exchanged", a, b);
}

static void add_noise(const text_work *w)
{
    const attention_options *asked = w->asked;
    const common_options *options = w->options;
    bool *marked = options_take(options, w->n, sizeof *marked);
    float *noise = options_take(options, w->n * w->source->info.embedding_size, sizeof *noise);
    deberta_error error = {0};
    for (const char *at = asked->trace.noise, *word; (word = next_part(w, &at));)
        find_word(w, &asked->trace.noise, word, marked);
    must(options, trace_noise(noise, w->source->model, marked, w->n, asked->trace.noise_scale, options->seed, &error),
         &error);
    w->found->corrupted = w->found->clean;
    w->found->corrupted_types = w->found->clean_types;
    w->found->noise = noise;
    w->found->what = options_text(options, "noise of %g standard deviations on %s (seed %llu)",
                                  asked->trace.noise_scale, asked->trace.noise, (unsigned long long)options->seed);
}

static deberta_tokens *tokenize(const text_work *w, const char *text)
{
    deberta_tokens *tokens = NULL;
    deberta_error error = {0};
    deberta_text what = w->given;
    what.text = text;
    what.text_bytes = 0;
    must(w->options, deberta_tokenize(&tokens, w->input->tokenizer, &what, &error), &error);
    return tokens;
}

/* tokens: of the corrupted text, also those that were cut off, since a cut would hide that all places behind a word of
 * more pieces have moved. */
static void refuse_length(const text_work *w, size_t tokens)
{
    const size_t clean = w->n + (w->list ? w->list->dropped : 0);
    if (tokens == clean) return;
    option_wrong(
        w->options, &w->asked->trace.corrupted,
        "the corrupted text has %zu tokens and the clean one %zu; a place of one must be a place of the other: "
        "choose words of as many pieces (deberta tokenize shows them), or --mask-word, --swap or --noise",
        tokens, clean);
}

static void take_corrupted(const text_work *w)
{
    const char *given = w->asked->trace.corrupted;
    if (w->list) {
        deberta_tokens *tokens = tokenize(w, given);
        refuse_length(w, tokens->count + tokens->dropped);
        int32_t *ids = options_take(w->options, w->n, sizeof *ids),
                *types = options_take(w->options, w->n, sizeof *types);
        memcpy(ids, tokens->ids, w->n * sizeof *ids);
        memcpy(types, tokens->token_types, w->n * sizeof *types);
        w->found->corrupted = ids;
        w->found->corrupted_types = types;
        deberta_tokens_free(&tokens);
        w->found->what = options_text(w->options, "\u201c%s\u201d", given);
        return;
    }
    int32_t *ids = options_take(w->options, strlen(given) + 1, sizeof *ids);
    size_t count = 0;
    for (const char *at = given, *part; (part = next_part(w, &at)); count++) {
        if (!is_number(part)) option_wrong(w->options, &w->asked->trace.corrupted, "expected ids, found '%s'", part);
        ids[count] = (int32_t)minimum(strtoull(part, NULL, 10), INT32_MAX);
    }
    refuse_length(w, count);
    w->found->corrupted = ids;
    w->found->what = "other ids";
}

/* ------------------------------------------------------------------------------------------------------------- answer */

/* Returns the token whose answer is followed: --at, or the only [MASK]. */
static size_t find_position(const text_work *w)
{
    const attention_options *asked = w->asked;
    size_t place = 0;
    if (asked->trace.at != SIZE_MAX) {
        if (asked->trace.at >= w->n)
            option_wrong(w->options, &asked->trace.at, "there is no token %zu: the text has %zu, counted from 0",
                         asked->trace.at, w->n);
        return asked->trace.at;
    }
    if (!w->list) usage_wrong(w->options, "ids have no [MASK] that an answer could be at: say where with --at N");
    const size_t masks = asked_masks(&w->words, &place);
    if (masks != 1)
        end_with(w->options, EXIT_INPUT,
                 "the text%s has %zu [MASK], and an answer is looked for at one: write one, or choose with --at N",
                 w->list->dropped ? " as it was cut" : "", masks);
    return place;
}

/* Returns the id that an answer to ids is. */
static int64_t id_of_answer(const text_work *w, const char *asked)
{
    const size_t vocabulary = w->source->info.vocabulary_size;
    if (!is_number(asked) || strtoull(asked, NULL, 10) >= vocabulary)
        option_wrong(w->options, &w->asked->trace.answer, "'%s' is no id; the vocabulary has %zu", asked, vocabulary);
    return (int64_t)strtoull(asked, NULL, 10);
}

/* Returns the token of a word in the place of [MASK], as the tokenizer would have it there. Digits are a word, too: of
 * a text nothing but words is asked. */
static int64_t token_of_answer(const text_work *w, const char *word, size_t position)
{
    if (!w->list) return id_of_answer(w, word);
    if (w->list->roles[position] == DEBERTA_TOKEN_FRAME)
        option_wrong(w->options, &w->asked->trace.answer,
                     "token %zu is of no segment, so that no word can stand there: give the text as --ids, and the "
                     "answer as an id",
                     position);
    int32_t id;
    size_t pieces;
    deberta_error error = {0};
    must(w->options, asked_word_fill(w->options, &w->words, position, word, &id, &pieces, &error), &error);
    if (id < 0 && pieces == 1)
        end_with(w->options, EXIT_INPUT,
                 "'%s' would be one token with the text beside [MASK]; expected a word of its own", word);
    if (id < 0)
        end_with(w->options, EXIT_INPUT, "'%s' is %zu tokens in the place of [MASK]; expected a word of one token",
                 word, pieces);
    return id;
}

static int64_t label_column(size_t label) { return label == SIZE_MAX ? TRACE_NO_CONTRAST : (int64_t)label; }

static void find_classes(const text_work *w, trace_answer *answer)
{
    const void *member = &w->asked->trace.label;
    const size_t labels = deberta_task_width(w->source->model, DEBERTA_TASK_SEQUENCE);
    size_t label, other;
    if (labels < 2)
        end_with(w->options, EXIT_INPUT, "%s has no classes to choose from; give --answer WORD for a text with [MASK]",
                 w->source->info.name);
    const char *lack = task_labels_lack(w->options, w->source->model, labels);
    if (lack) end_with(w->options, EXIT_INPUT, "%s: %s", w->source->info.name, lack);
    if (!w->asked->trace.label) return;
    const char *wrong = asked_labels_find(w->options, w->source->model, labels, w->asked->trace.label, &label, &other);
    if (wrong)
        option_wrong(w->options, member, "%s has no label '%s'; it has %zu, the first is '%s'", w->source->info.name,
                     wrong, labels, trace_column_name(w->source, answer, 0));
    if (label == other)
        option_wrong(w->options, member, "'%s' is one label twice: a difference is of two", w->asked->trace.label);
    answer->column = label_column(label);
    answer->contrast = label_column(other);
}

static void find_words(const text_work *w, trace_answer *answer)
{
    const char *asked = w->asked->trace.answer, *word, *other;
    if (!asked) return;
    asked_pair_split(w->options, asked, &word, &other);
    answer->column = token_of_answer(w, word, answer->position);
    if (other) answer->contrast = token_of_answer(w, other, answer->position);
    if (answer->column == answer->contrast)
        option_wrong(w->options, &w->asked->trace.answer, "'%s' is one word twice: a difference is of two", asked);
}

/* Returns true if the text has one [MASK] and the model fills it: the word is then meant, whatever else it answers. */
static bool asks_for_word(const text_work *w)
{
    const unsigned words = 1u << DEBERTA_TASK_MLM | 1u << DEBERTA_TASK_MLM_EMD;
    size_t place;
    return w->list && asked_masks(&w->words, &place) == 1 && w->source->info.tasks_present & words;
}

/* Notes that the text is classified because its [MASK] was cut off, whose word would be asked for otherwise. */
static void note_cut_mask(const text_work *w)
{
    const unsigned words = 1u << DEBERTA_TASK_MLM | 1u << DEBERTA_TASK_MLM_EMD;
    size_t place;
    if (!w->list || !w->list->dropped || w->asked->trace.label || !(w->source->info.tasks_present & words)) return;
    const char *mask = deberta_tokenizer_token(
        w->input->tokenizer, deberta_tokenizer_special_id(w->input->tokenizer, DEBERTA_SPECIAL_MASK), NULL);
    const bool was_there = mask && (strstr(w->given.text, mask) || (w->given.pair && strstr(w->given.pair, mask)));
    if (was_there && asked_masks(&w->words, &place) == 0)
        say_note(w->options,
                 "note: --max-tokens cuts the text before its %s: its label is followed, not the word there", mask);
}

static void find_answer(const text_work *w)
{
    const attention_options *asked = w->asked;
    const unsigned tasks = w->source->info.tasks_present;
    trace_answer *answer = &w->found->answer;
    *answer = (trace_answer){.task = DEBERTA_TASK_SEQUENCE, .column = -1, .contrast = TRACE_NO_CONTRAST};
    const bool classifies =
        asked->trace.label || (!asked->trace.answer && tasks & 1u << DEBERTA_TASK_SEQUENCE && !asks_for_word(w));
    if (classifies) {
        note_cut_mask(w);
        find_classes(w, answer);
        return;
    }
    const bool emd = tasks & 1u << DEBERTA_TASK_MLM_EMD;
    answer->task = (asked->trace.mlm_decoder == 1 || (!emd && !option_given(w->options, &asked->trace.mlm_decoder)))
                       ? DEBERTA_TASK_MLM
                       : DEBERTA_TASK_MLM_EMD;
    if (!(tasks & 1u << answer->task))
        end_with(w->options, EXIT_INPUT, "%s has no head that fills [MASK] (%s), and no classes", w->source->info.name,
                 deberta_task_name(answer->task));
    answer->position = find_position(w);
    find_words(w, answer);
}

const char *trace_column_name(const figure_source *source, const trace_answer *answer, int64_t column)
{
    const common_options *options = source->options;
    if (answer->task == DEBERTA_TASK_SEQUENCE) {
        const char *name = deberta_model_label(source->model, (size_t)column);
        return name ? name : options_text(options, "LABEL_%lld", (long long)column);
    }
    char *text = NULL;
    const int32_t id = (int32_t)column;
    if (!source->input.tokenizer ||
        deberta_detokenize(&text, NULL, source->input.tokenizer, &id, 1, NULL) != DEBERTA_OK || !*text) {
        deberta_free(text);
        return options_text(options, "id %lld", (long long)column);
    }
    const char *copy = options_text(options, "%s", text);
    deberta_free(text);
    return copy;
}

/* -------------------------------------------------------------------------------------------------------------- whole */

trace_texts trace_texts_make(figure_source *source)
{
    trace_texts found = {.tokens = source->view.span[1]};
    const attention_options *asked = source->asked;
    text_work w = {.source = source,
                   .options = source->options,
                   .asked = asked,
                   .input = &source->input,
                   .row = source->view.row,
                   .n = found.tokens,
                   .first_token = source->view.first_token,
                   .found = &found};
    const char *const ways[] = {asked->trace.corrupted, asked->trace.mask_word, asked->trace.swap, asked->trace.noise};
    size_t given = 0;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) given += ways[k] != NULL;
    if (given != 1)
        usage_wrong(source->options,
                    "expected one way to corrupt the text, found %zu: --corrupted TEXT, --mask-word "
                    "WORD, --swap A,B or --noise WORDS",
                    given);
    if (!asked->trace.noise)
        option_note_unused(source->options, &source->options->seed, "nothing is drawn without --noise");
    if (source_text_mask(source) || source->input.position_ids)
        usage_wrong(source->options, "a trace takes texts or ids, not tensors with masks or positions");
    if (source->input.token_lists) {
        w.list = source->input.token_lists[w.row];
        w.given = input_text(&asked->reading, w.input, w.row, input_token_limit(&asked->reading, &source->info));
        w.words = (asked_text){&w.given, w.list, w.input->tokenizer};
    }
    found.clean = found.corrupted = source->input.ids + w.first_token;
    if (source->input.token_types)
        found.clean_types = found.corrupted_types = source->input.token_types + w.first_token;
    if (asked->trace.corrupted) take_corrupted(&w);
    if (asked->trace.mask_word) mask_word(&w);
    if (asked->trace.swap) swap_words(&w);
    if (asked->trace.noise) add_noise(&w);
    for (size_t t = 0; t < w.n; t++)
        if (found.corrupted[t] < 0 || (size_t)found.corrupted[t] >= source->info.vocabulary_size)
            option_wrong(source->options, &asked->trace.corrupted, "id %d at token %zu: the vocabulary has %zu",
                         (int)found.corrupted[t], t, source->info.vocabulary_size);
    if (!found.clean_types) found.corrupted_types = NULL;
    find_answer(&w);
    return found;
}
