/* Scores minimal pairs: windows of pairs become questions about the likelihood of tokens in sequences. Equal
 * questions are computed once, all in batches by length.
 *
 * SPDX-License-Identifier: MIT */
#include "program/tasks/minimal_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/json_text.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"

enum {
    WINDOW_PAIRS = 512,
    WINDOW_TOKENS = 1 << 20, /* tokens of all sequences in a window */
    MOST_TOKENS = 1024,      /* tokens of a sentence; its sequences have the square of that */
    ROWS_AT_ONCE = 128,      /* rows of logits for each pass over the vocabulary */
    SIDES = 2
};

static const char *const side_names[SIDES] = {"sentence_good", "sentence_bad"};

/* A request for the likelihoods of some tokens of a sequence. */
typedef struct question {
    const int32_t *ids, *types;   /* [tokens] */
    const int32_t *targets;       /* [count] original tokens at these places, before masking */
    size_t tokens, first, count;  /* the places are first ... first + count - 1 */
    double *scores;               /* [count] answers */
    const struct question *equal; /* question with the same ids and places, computed once for both */
} question;

typedef struct pair_side {
    deberta_tokens *tokens;
    size_t first, count; /* tokens without [CLS] and [SEP] */
    double *scores;      /* [count] */
} pair_side;

typedef struct sentence_pair {
    text_record record;
    pair_side sides[SIDES];
} sentence_pair;

typedef struct pair_run {
    const common_options *options;
    const pair_request *request;
    text_batches batches;
    text_stream stream;
    text_output output, scores; /* scores.file NULL: --scores was not given */
    pair_findings findings;
    deberta_task head;
    int32_t mask, unknown;
    sentence_pair *pairs; /* [count] pairs of a window */
    size_t count;
    question *questions; /* [question_count] questions of a window */
    size_t question_count;
} pair_run;

/* ---------------------------------------------------------------------------------------------------------- reading */

static const char *text_of_key(const text_record *record, const char *key)
{
    const json_t *value = json_object_get(record->object, key);
    return json_is_string(value) && json_string_length(value) ? json_string_value(value) : NULL;
}

/* Checks a name by which pairs are counted. One that is no text, or would end at a NUL, is a problem of the pair. */
static void check_name(text_record *record, const char *key, const char *of, bool required)
{
    const json_t *value = json_object_get(record->object, key);
    const bool is_missing = json_is_null(value) || (json_is_string(value) && !json_string_length(value));
    if (record->problem || (!required && (!value || is_missing))) return;
    if (!json_is_string(value) || is_missing)
        text_record_spoil(record, "\"%s\" is no text; expected the name of the pair's %s", key, of);
    else if (memchr(json_string_value(value), 0, json_string_length(value)))
        text_record_spoil(record, "\"%s\" holds a NUL character; expected the name of the pair's %s", key, of);
}

/* Tokenizes one sentence as a record of its own; its problem becomes the pair's. */
static deberta_status tokenize_side(pair_run *run, sentence_pair *pair, size_t which, deberta_error *err)
{
    pair_side *side = &pair->sides[which];
    text_record *record = &pair->record, sentence = *record;
    if (record->problem) return DEBERTA_OK;
    if (which == 1) sentence.text = record->pair, sentence.text_bytes = record->pair_bytes;
    sentence.pair = NULL, sentence.pair_bytes = 0;
    DEBERTA_TRY(text_batches_tokenize(&run->batches, &sentence, &side->tokens, err));
    const deberta_tokens *tokens = side->tokens;
    if (!sentence.problem)
        DEBERTA_TRY(text_batches_check_length(&run->batches, &sentence, tokens->count,
                                              minimum(run->batches.longest, MOST_TOKENS), err));
    if (!sentence.problem && run->head == DEBERTA_TASK_MLM_EMD && !run->batches.info.position_biased_input)
        DEBERTA_TRY(
            text_batches_check_length(&run->batches, &sentence, tokens->count, run->batches.info.max_positions, err));
    side->first = side->count = 0;
    for (size_t t = 0; !sentence.problem && t < tokens->count; t++) {
        if (tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        if (tokens->roles[t] == DEBERTA_TOKEN_SPELLED)
            text_record_spoil(&sentence, "the text spells '%s', a special token", deberta_tokens_text(tokens, t, NULL));
        if (side->count++ == 0) side->first = t;
    }
    if (!sentence.problem && side->count == 0) text_record_spoil(&sentence, "the text is empty");
    if (sentence.problem) text_record_spoil(record, "\"%s\": %s", side_names[which], sentence.problem);
    free(sentence.problem);
    return DEBERTA_OK;
}

static deberta_status minimal_pairs_prepare(pair_run *run, sentence_pair *pair, deberta_error *err)
{
    text_record *record = &pair->record;
    bool unknown = false;
    check_name(record, "UID", "paradigm", true);
    check_name(record, "linguistics_term", "linguistic term", false);
    for (size_t which = 0; which < SIDES; which++) DEBERTA_TRY(tokenize_side(run, pair, which, err));
    if (record->problem) return DEBERTA_OK;
    for (size_t which = 0; which < SIDES; which++)
        for (size_t t = 0; t < pair->sides[which].tokens->count; t++)
            unknown = unknown || pair->sides[which].tokens->ids[t] == run->unknown;
    run->findings.unknown += unknown;
    run->findings.equal +=
        record->text_bytes == record->pair_bytes && memcmp(record->text, record->pair, record->text_bytes) == 0;
    return DEBERTA_OK;
}

/* Returns the number of tokens in the sequences of the pair. */
static size_t cost_of(const pair_run *run, const sentence_pair *pair)
{
    size_t cost = 0;
    if (pair->record.problem) return 0;
    for (size_t which = 0; which < SIDES; which++) {
        const pair_side *side = &pair->sides[which];
        cost += side->tokens->count * (run->head == DEBERTA_TASK_RTD ? 1 : side->count);
    }
    return cost;
}

static deberta_status read_window(pair_run *run, bool *end, deberta_error *err)
{
    size_t cost = 0;
    for (run->count = 0; run->count < WINDOW_PAIRS && cost < WINDOW_TOKENS; run->count++) {
        sentence_pair *pair = &run->pairs[run->count];
        DEBERTA_TRY(text_stream_next(&run->stream, &pair->record, end, err));
        if (*end) break;
        DEBERTA_TRY(minimal_pairs_prepare(run, pair, err));
        cost += cost_of(run, pair);
    }
    if (run->stream.read == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s has no lines", run->stream.path);
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- questions */

/* Adds a question for each token, with that token masked. */
static void ask_masked(pair_run *run, const pair_side *side)
{
    const deberta_tokens *tokens = side->tokens;
    for (size_t k = 0; k < side->count; k++) {
        int32_t *ids = options_take(run->options, tokens->count, sizeof *ids);
        memcpy(ids, tokens->ids, tokens->count * sizeof *ids);
        ids[side->first + k] = run->mask;
        run->questions[run->question_count++] = (question){.ids = ids,
                                                           .types = tokens->token_types,
                                                           .targets = tokens->ids + side->first + k,
                                                           .tokens = tokens->count,
                                                           .first = side->first + k,
                                                           .count = 1,
                                                           .scores = side->scores + k};
    }
}

static void ask_all(pair_run *run, const pair_side *side)
{
    const deberta_tokens *tokens = side->tokens;
    run->questions[run->question_count++] = (question){.ids = tokens->ids,
                                                       .types = tokens->token_types,
                                                       .targets = tokens->ids + side->first,
                                                       .tokens = tokens->count,
                                                       .first = side->first,
                                                       .count = side->count,
                                                       .scores = side->scores};
}

static void ask(pair_run *run)
{
    size_t most = 0;
    for (size_t k = 0; k < run->count; k++)
        for (size_t which = 0; which < SIDES && !run->pairs[k].record.problem; which++)
            most += run->pairs[k].sides[which].count;
    run->questions = options_take(run->options, most, sizeof *run->questions);
    run->question_count = 0;
    for (size_t k = 0; k < run->count; k++)
        for (size_t which = 0; which < SIDES && !run->pairs[k].record.problem; which++) {
            pair_side *side = &run->pairs[k].sides[which];
            side->scores = options_take(run->options, side->count, sizeof *side->scores);
            (run->head == DEBERTA_TASK_RTD ? ask_all : ask_masked)(run, side);
        }
}

static int by_content(const void *a, const void *b)
{
    const question *x = a, *y = b;
    if (x->tokens != y->tokens) return x->tokens < y->tokens ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return memcmp(x->ids, y->ids, x->tokens * sizeof *x->ids);
}

/* Groups equal questions in lists, whose first one becomes a piece for the encoder. The two sentences of a pair often
 * differ in one token; with that token masked they are equal. */
static size_t choose_pieces(pair_run *run, text_piece *pieces)
{
    size_t count = 0;
    qsort(run->questions, run->question_count, sizeof *run->questions, by_content);
    for (size_t k = 0; k < run->question_count; k++) {
        question *one = &run->questions[k];
        if (k && by_content(one, one - 1) == 0) {
            one[-1].equal = one;
            continue;
        }
        pieces[count++] = (text_piece){.ids = one->ids, .types = one->types, .tokens = one->tokens, .index = k};
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------------- answers */

/* A row of logits to compute in a batch. */
typedef struct asked_row {
    const question *first; /* first of a list of equal questions */
    size_t offset;         /* index among its places */
} asked_row;

static double largest_of(const float *values, size_t count)
{
    float largest = values[0];
    for (size_t k = 1; k < count; k++) largest = values[k] > largest ? values[k] : largest;
    return largest;
}

/* Returns log(sum of exp(logit)). */
static double log_total(const float *logits, size_t count)
{
    const double largest = largest_of(logits, count);
    double sum = 0;
    for (size_t k = 0; k < count; k++) sum += exp(logits[k] - largest);
    return largest + log(sum);
}

/* Returns log(1 - sigmoid(logit)). */
static double log_original(double logit) { return -(fmax(logit, 0) + log1p(exp(-fabs(logit)))); }

static void answer_row(const pair_run *run, const asked_row *row, const float *logits, size_t width)
{
    const bool masked = run->head != DEBERTA_TASK_RTD;
    const double total = masked ? log_total(logits, width) : 0, original = masked ? 0 : log_original(logits[0]);
    for (const question *one = row->first; one; one = one->equal)
        one->scores[row->offset] = masked ? logits[one->targets[row->offset]] - total : original;
}

static deberta_status answer_batch(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                   const deberta_outputs *outputs, deberta_error *err)
{
    (void)outputs;
    pair_run *run = context;
    const task_batch batch = {
        .session = run->batches.session, .model = run->batches.model, .count = count, .starts = starts};
    const size_t width = deberta_task_width(run->batches.model, run->head);
    struct scope_piece *mark = options_mark(run->options);
    float *logits = options_take(run->options, ROWS_AT_ONCE, width * sizeof *logits);
    asked_row rows[ROWS_AT_ONCE];
    size_t positions[ROWS_AT_ONCE], held = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < count; k++) {
        const question *one = &run->questions[pieces[k].index];
        for (size_t offset = 0; status == DEBERTA_OK && offset < one->count; offset++) {
            rows[held] = (asked_row){one, offset};
            positions[held++] = starts[k] + one->first + offset;
            if (held < ROWS_AT_ONCE && (k + 1 < count || offset + 1 < one->count)) continue;
            status = task_run_logits(&batch, run->head, positions, held, logits, err);
            for (size_t row = 0; status == DEBERTA_OK && row < held; row++)
                answer_row(run, &rows[row], logits + row * width, width);
            held = 0;
        }
    }
    options_release(run->options, mark);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- results */

static void print_scores(pair_run *run, const text_record *record, const double *scores)
{
    json_t *object = json_pack("{s:o, s:I, s:s, s:f, s:f}", "file", json_clean_text(record->source), "line",
                               (json_int_t)record->line, "UID", text_of_key(record, "UID"), side_names[0], scores[0],
                               side_names[1], scores[1]);
    write_json_line(run->scores.file, object);
}

static void count_pair(pair_run *run, sentence_pair *pair)
{
    const text_record *record = &pair->record;
    double scores[SIDES] = {0};
    if (record->problem) {
        text_stream_report(&run->stream, record);
        run->findings.bad++;
        return;
    }
    for (size_t which = 0; which < SIDES; which++)
        for (size_t t = 0; t < pair->sides[which].count; t++) scores[which] += pair->sides[which].scores[t];
    pair_findings_add(&run->findings, text_of_key(record, "UID"), text_of_key(record, "linguistics_term"), scores[0],
                      scores[1]);
    if (run->scores.file) print_scores(run, record, scores);
}

static deberta_status judge_window(pair_run *run, deberta_error *err)
{
    struct scope_piece *mark = options_mark(run->options);
    ask(run);
    text_piece *pieces = options_take(run->options, run->question_count, sizeof *pieces);
    const size_t count = choose_pieces(run, pieces);
    const deberta_status status = text_batches_run(&run->batches, pieces, count, answer_batch, run, err);
    for (size_t k = 0; k < run->count; k++) {
        if (status == DEBERTA_OK) count_pair(run, &run->pairs[k]);
        text_record_free(&run->pairs[k].record);
    }
    options_release(run->options, mark);
    return status;
}

static deberta_status judge_all(pair_run *run, deberta_error *err)
{
    progress_bar bar = progress_begin(run->options, "pairs", (size_t)run->stream.total_bytes);
    bar.enabled = bar.enabled && bar.total;
    deberta_status status = DEBERTA_OK;
    for (bool end = false; status == DEBERTA_OK && !end;) {
        status = read_window(run, &end, err);
        if (status == DEBERTA_OK) status = judge_window(run, err);
        progress_step(&bar, (size_t)run->stream.done_bytes, NULL);
    }
    progress_end(&bar);
    text_stream_report_rest(&run->stream);
    if (status == DEBERTA_OK && run->findings.pairs == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "none of the lines can be used");
    return status;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static void open_run(pair_run *run, const reading_options *options)
{
    static const text_stream_names names = {.text = "sentence_good",
                                            .pair = "sentence_bad",
                                            .pair_required = true,
                                            .keeps_object = true,
                                            .objects = true,
                                            .also = {"UID", "linguistics_term"}};
    const pair_request *request = run->request;
    text_batches_open(&run->batches, options, 0);
    run->findings.score = (pair_score)request->score;
    run->head = request->score == PAIR_SCORE_RTD ? DEBERTA_TASK_RTD
                                                 : task_mlm_head(run->options, &run->batches, request->mlm_decoder);
    task_require(run->options, &run->batches, run->head, NULL);
    run->batches.session_options.features |= DEBERTA_ONLY_HEADS;
    if (run->head == DEBERTA_TASK_MLM_EMD) run->batches.session_options.features |= DEBERTA_KEEP_DECODER_INPUT;
    run->findings.head = deberta_task_name(run->head);
    run->findings.precision = low_precision_name(run->options);
    run->findings.ablated = run->options->ablated.text;
    run->mask = deberta_tokenizer_special_id(run->batches.tokenizer, DEBERTA_SPECIAL_MASK);
    run->unknown = deberta_tokenizer_special_id(run->batches.tokenizer, DEBERTA_SPECIAL_UNK);
    text_stream_open(&run->stream, options, &names);
}

static void close_run(pair_run *run)
{
    for (size_t k = 0; k < WINDOW_PAIRS; k++) {
        text_record_free(&run->pairs[k].record);
        for (size_t which = 0; which < SIDES; which++) deberta_tokens_free(&run->pairs[k].sides[which].tokens);
    }
    text_stream_close(&run->stream);
    text_batches_close(&run->batches);
    pair_findings_free(&run->findings);
}

int minimal_pairs_run(const reading_options *options, const pair_request *request)
{
    deberta_error error = {0};
    const common_options *common = &options->common;
    pair_run run = {.options = common, .request = request};
    const result_format format = result_format_read(common);
    if (request->scores && strcmp(request->scores, "-") == 0)
        usage_wrong(common, "--pair-scores: expected a file, found '-': standard output has the accuracies");
    run.pairs = options_take(common, WINDOW_PAIRS, sizeof *run.pairs);
    open_run(&run, options);
    text_output_open(common, request->text, &run.output);
    if (request->scores) text_output_open(common, request->scores, &run.scores);
    int status = EXIT_OK;
    if (judge_all(&run, &error) == DEBERTA_OK) {
        if (run.findings.unknown)
            say_note(common, "%zu pair%s text that the vocabulary does not know, which counts as one token",
                     run.findings.unknown, run.findings.unknown == 1 ? " holds" : "s hold");
        if (run.findings.equal)
            say_note(common, "%zu pair%s one sentence twice: a tie, which counts as wrong", run.findings.equal,
                     run.findings.equal == 1 ? " has" : "s have");
        if (request->scores) text_output_close(common, &run.scores);
        finish_result_in(common, &run.output, pair_result(&run.findings), format);
        status = run.findings.bad ? EXIT_INPUT : EXIT_OK;
    } else {
        status = say_error(common, &error);
        text_output_discard(&run.output);
        text_output_discard(&run.scores);
    }
    close_run(&run);
    return status;
}
