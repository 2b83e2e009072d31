/* `deberta fill-mask` predicts the token at each [MASK], by the Enhanced Mask Decoder, by the same head without it,
 * or by both side by side. The product with the vocabulary is computed only at the masks.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "output/scope.h"
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/tasks/task_run.h"

enum { DECODERS = 2, MASKS_AT_ONCE = 64, MOST_CANDIDATES = 1000 };

static const deberta_task decoder_heads[DECODERS] = {DEBERTA_TASK_MLM_EMD, DEBERTA_TASK_MLM};

typedef struct fill_mask_options {
    reading_options reading;
    size_t top;
    int mlm_decoder;
    bool compare;
} fill_mask_options;

typedef struct fill_job {
    bool used[DECODERS];
    int32_t mask_id;
    const char *mask;
} fill_job;

/* Position of a mask: token of its text, text of the batch. */
typedef struct mask_place {
    size_t text, token;
} mask_place;

/* Finds another program's spelling of a mask in the text, if it has one; *bytes: its length. */
static const char *find_other_mask(const char *text, size_t *bytes)
{
    static const char *const spellings[] = {"<mask>", "[mask]"};
    for (size_t k = 0; k < sizeof spellings / sizeof *spellings; k++) {
        const char *found = strcasestr(text, spellings[k]);
        *bytes = strlen(spellings[k]);
        if (found) return found;
    }
    const char *word = strstr(text, "MASK"), *gap = strstr(text, "___");
    *bytes = word ? strlen("MASK") : gap ? strspn(gap, "_") : 0;
    return word ? word : gap;
}

static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    const fill_job *job = run->context;
    const deberta_model_info *info = &run->batches.info;
    size_t masks = 0, last = 0;
    for (size_t t = 0; t < text->tokens->count; t++) {
        if (text->tokens->ids[t] != job->mask_id) continue;
        masks++;
        last = t;
    }
    if (masks == 0 && text->tokens->dropped && strstr(text->record.text, job->mask))
        return text_record_spoil(&text->record, "--max-tokens cuts the text before its first %s", job->mask);
    if (masks == 0) {
        size_t bytes;
        const char *other = find_other_mask(text->record.text, &bytes);
        return text_record_spoil(&text->record, "there is no %s in the text%s%.*s%s", job->mask, other ? "; '" : "",
                                 (int)minimum(bytes, 20), other ? other : "", other ? "' is not it" : "");
    }
    if (!job->used[0] || info->position_biased_input) return DEBERTA_OK;
    /* the Enhanced Mask Decoder adds absolute positions to the queries of the masks */
    return text_batches_check_length(&run->batches, &text->record, last + 1, info->max_positions, err);
}

typedef struct candidate {
    int32_t id;
    double probability;
} candidate;

/* Finds the candidates of one decoder for some masks of the batch: found[k] has room for --top. Returns how many each
 * has. */
static deberta_status decode(task_run *run, const task_batch *batch, size_t decoder, const mask_place *places,
                             size_t count, candidate **found, size_t *candidates, deberta_error *err)
{
    const size_t vocabulary = run->batches.info.vocabulary_size, top = ((const fill_mask_options *)run->options)->top;
    size_t positions[MASKS_AT_ONCE], *chosen;
    struct scope_piece *mark = options_mark(run->options);
    float *logits = options_take(run->options, count, vocabulary * sizeof *logits);
    double *probabilities = options_take(run->options, vocabulary, sizeof *probabilities);
    for (size_t k = 0; k < count; k++) positions[k] = batch->starts[places[k].text] + places[k].token;
    const deberta_status status = task_run_logits(batch, decoder_heads[decoder], positions, count, logits, err);
    for (size_t k = 0; status == DEBERTA_OK && k < count; k++) {
        deberta_softmax(probabilities, logits + k * vocabulary, vocabulary);
        *candidates = task_run_choose(run, top, probabilities, vocabulary, &chosen);
        for (size_t c = 0; c < *candidates; c++)
            found[k][c] = (candidate){(int32_t)chosen[c], probabilities[chosen[c]]};
    }
    options_release(run->options, mark);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Returns the text of a token, which the caller frees; NULL if it has none. *bytes may be NULL. */
static char *text_of(const task_run *run, int32_t id, size_t *bytes)
{
    char *text = NULL;
    const deberta_status status = deberta_detokenize(&text, bytes, run->batches.tokenizer, &id, 1, NULL);
    if (status == DEBERTA_E_MEMORY) memory_short();
    return status == DEBERTA_OK ? text : NULL;
}

static json_t *describe_candidate(const task_run *run, const candidate *c)
{
    size_t token_bytes = 0, text_bytes = 0;
    const char *token = deberta_tokenizer_token(run->batches.tokenizer, c->id, &token_bytes);
    char *text = token ? text_of(run, c->id, &text_bytes) : NULL;
    /* rows of the table beyond the last token have no name */
    json_t *object = json_pack("{s:i, s:o, s:o, s:f}", "id", (int)c->id, "token",
                               token ? json_clean_string(token, token_bytes) : json_null(), "text",
                               text ? json_clean_string(text, text_bytes) : json_null(), "probability", c->probability);
    deberta_free(text);
    return object;
}

static void describe_mask(const task_run *run, task_text *text, const mask_place *mask, candidate *const *columns,
                          size_t count)
{
    const deberta_place place = deberta_token_place(text->tokens, mask->token, text->record.text);
    json_t *by_decoder = json_object();
    for (size_t d = 0; d < DECODERS; d++) {
        json_t *array = columns[d] ? json_array() : NULL;
        for (size_t c = 0; array && c < count; c++)
            json_array_append_new(array, describe_candidate(run, &columns[d][c]));
        if (array) json_object_set_new(by_decoder, mlm_decoder_names[d], array);
    }
    if (!text->answer) text->answer = json_pack("{s:[]}", "masks");
    json_array_append_new(json_object_get(text->answer, "masks"),
                          json_pack("{s:I, s:o, s:o, s:o}", "token", (json_int_t)mask->token, "characters",
                                    json_span(place.characters), "bytes", json_span(place.bytes), "candidates",
                                    by_decoder));
}

/* ---------------------------------------------------------------------------------------------------- for a person */

static const char *name_of(const task_run *run, int32_t id)
{
    const char *name = deberta_tokenizer_token(run->batches.tokenizer, id, NULL);
    char *text = name ? text_of(run, id, NULL) : NULL;
    if (text && *text) name = options_text(run->options, "%s", text);
    deberta_free(text);
    return name ? name : "(no token)";
}

/* Prints the candidates of each decoder side by side; the first column is as wide as its widest entry. */
static void show_columns(FILE *out, const task_run *run, candidate *const *columns, size_t count)
{
    const candidate *left = columns[0] ? columns[0] : columns[1], *right = columns[0] ? columns[1] : NULL;
    const char **names = options_take(run->options, count, sizeof *names);
    size_t width = 5;
    for (size_t c = 0; c < count; c++) {
        names[c] = name_of(run, left[c].id);
        if (clean_width(names[c], strlen(names[c])) > width) width = clean_width(names[c], strlen(names[c]));
    }
    if (right) fprintf(out, "  %-*s  %s\n", (int)width + 7, mlm_decoder_names[0], mlm_decoder_names[1]);
    for (size_t c = 0; c < count; c++) {
        print_probability(out, left[c].probability, names[c]);
        if (right) {
            fprintf(out, "%*s", (int)(width - clean_width(names[c], strlen(names[c]))), "");
            print_probability(out, right[c].probability, name_of(run, right[c].id));
        }
        fputc('\n', out);
    }
}

static void show_mask(FILE *out, const task_run *run, const task_text *text, const mask_place *mask,
                      candidate *const *columns, size_t count)
{
    const deberta_place place = deberta_token_place(text->tokens, mask->token, text->record.text);
    if (ftell(out) > 0) fputc('\n', out);
    print_marked(out, text->record.text, text->record.text_bytes, place.bytes);
    fputc('\n', out);
    show_columns(out, run, columns, count);
}

/* ---------------------------------------------------------------------------------------------------------- answers */

static deberta_status answer_masks(task_run *run, const task_batch *batch, const mask_place *places, size_t count,
                                   deberta_error *err)
{
    const fill_job *job = run->context;
    const size_t top = ((const fill_mask_options *)run->options)->top;
    candidate *found[DECODERS][MASKS_AT_ONCE] = {{NULL}};
    size_t candidates = 0;
    for (size_t d = 0; d < DECODERS; d++) {
        if (!job->used[d]) continue;
        for (size_t k = 0; k < count; k++) found[d][k] = options_take(run->options, top, sizeof *found[d][k]);
        DEBERTA_TRY(decode(run, batch, d, places, count, found[d], &candidates, err));
    }
    for (size_t k = 0; k < count; k++) {
        task_text *text = batch->texts[places[k].text];
        candidate *const columns[DECODERS] = {found[0][k], found[1][k]};
        FILE *out;
        task_text_out(run, text, &out);
        if (out)
            show_mask(out, run, text, &places[k], columns, candidates);
        else
            describe_mask(run, text, &places[k], columns, candidates);
    }
    return DEBERTA_OK;
}

/* Answers the masks of all texts together, a number at a time, so that each pass over the vocabulary serves many. */
static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    const fill_job *job = run->context;
    mask_place places[MASKS_AT_ONCE];
    size_t held = 0;
    for (size_t k = 0; k < batch->count; k++)
        for (size_t t = 0; t < batch->texts[k]->tokens->count; t++) {
            if (batch->texts[k]->tokens->ids[t] != job->mask_id) continue;
            places[held++] = (mask_place){k, t};
            if (held < MASKS_AT_ONCE) continue;
            DEBERTA_TRY(answer_masks(run, batch, places, held, err));
            held = 0;
        }
    return held ? answer_masks(run, batch, places, held, err) : DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static void fill_mask_begin(task_run *run)
{
    const fill_mask_options *o = (const fill_mask_options *)run->options;
    fill_job *job = run->context;
    job->used[task_mlm_head(run->options, &run->batches, &o->mlm_decoder) == DEBERTA_TASK_MLM] = true;
    if (o->compare) job->used[0] = job->used[1] = true;
    for (size_t d = DECODERS; d-- > 0;)
        if (job->used[d]) task_require(run->options, &run->batches, decoder_heads[d], NULL);
    if (run->batches.info.tasks_present & 1u << DEBERTA_TASK_RTD)
        say_note(
            run->options,
            "note: %s is a discriminator of replaced-token training: its masked head was left over, and what it says "
            "means little; the generator's checkpoint fills masks",
            run->batches.info.name);
    job->mask_id = deberta_tokenizer_special_id(run->batches.tokenizer, DEBERTA_SPECIAL_MASK);
    job->mask = deberta_tokenizer_token(run->batches.tokenizer, job->mask_id, NULL);
    run->batches.session_options.features |= DEBERTA_ONLY_HEADS | (job->used[0] ? DEBERTA_KEEP_DECODER_INPUT : 0);
}

static int fill_mask_run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "text"}, .begin = fill_mask_begin, .look = look, .answer = answer};
    fill_job job = {0};
    return task_run_all(options, &command, &job);
}

static const option options[] = {
    {"text", 0, "TEXT", "text with one or more [MASK]; may be repeated", TEXTS_AT(reading_options, texts)},
    TEXT_STREAM_FILE_OPTIONS,
    {TASK_MLM_DECODER_ROW(fill_mask_options)},
    {"compare", 0, NULL, "both decoders, side by side", FLAG_AT(fill_mask_options, compare), .not_with = "mlm-decoder"},
    TASK_TOP_ROW(fill_mask_options, MOST_CANDIDATES, "candidates for each mask (default 5)"),
    TEXT_BATCHES_OPTIONS,
    SHARD_OPTIONS,
    {.name = NULL},
};

const command command_fill_mask = {
    .name = "fill-mask",
    .summary = "what belongs at each [MASK] of a text",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(fill_mask_options),
    .defaults = &(const fill_mask_options){.top = 5},
    .example = "  deberta fill-mask models/demo --compare --text 'a new [MASK] opened beside the new [MASK]'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"masks\": [{\"token\", \"characters\": [begin, end], \"bytes\": [begin, end],\n"
               "    \"candidates\": {\"emd\" or \"plain\": [{\"id\", \"token\", \"text\", \"probability\"}]}}]}\n",
    .run = fill_mask_run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
