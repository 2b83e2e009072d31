/* `deberta attribute` says which words, distances and positions an answer comes from: integrated gradients, or gradient
 * times input (docs/attribution.md).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "program/attribute/attribute_options.h"
#include "program/attribute/attribute_output.h"
#include "program/commands.h"
#include "program/frame/figure_latex.h"
#include "program/frame/input/asked_answer.h"
#include "program/frame/open_model.h"

static const char *const head_names[] = {"sequence", "token", "mlm", "rtd", NULL};
static const char *const of_names[] = {"logit", "log-probability", NULL};
static const char *const method_names[] = {"ig", "gradient-input", NULL};
static const char *const baseline_names[] = {"mask", "pad", "zero", NULL};
typedef enum asked_head { HEAD_SEQUENCE, HEAD_TOKEN, HEAD_MLM, HEAD_RTD } asked_head;
typedef enum asked_baseline { BASELINE_MASK, BASELINE_PAD, BASELINE_ZERO } asked_baseline;

typedef struct attribute_job {
    const attribute_options *asked;
    task_run *run;
    output_paths paths;
    asked_head head;
    deberta_task task;
    int32_t mask_id, baseline_id;
    bool mask_noted;
    attributed_text *kept;    /* text to draw; NULL: none */
    deberta_attribution *own; /* attributions of `kept` */
    bool finished;            /* true: all texts were read, of which some may be bad */
    float *logits;            /* [width] logits of the current text */
    size_t token;             /* token that the logits belong to */
} attribute_job;

/* ------------------------------------------------------------------------------------------------------------- choices */

static const char *const part_names[] = {"words", "distances", "positions", NULL};

static void parse_attributed_parts(common_options *options, const char *text, void *target)
{
    int length;
    const char *wrong = options_names_read(text, part_names, target, &length);
    if (wrong)
        option_wrong(options, target, "expected words, distances, positions, or several with commas, found '%.*s'",
                     length, wrong);
}

static bool has_head(const task_run *run, deberta_task task) { return run->batches.info.tasks_present & 1u << task; }

/* Returns the head of --head, or the one that the other options imply. */
static asked_head choose_head(const attribute_job *job)
{
    const attribute_options *o = job->asked;
    if (option_given(&o->reading.common, &o->head)) return (asked_head)o->head;
    if (o->answer) return HEAD_MLM;
    if (o->token) return has_head(job->run, DEBERTA_TASK_TOKEN) ? HEAD_TOKEN : HEAD_RTD;
    if (has_head(job->run, DEBERTA_TASK_SEQUENCE)) return HEAD_SEQUENCE;
    if (has_head(job->run, DEBERTA_TASK_MLM) || has_head(job->run, DEBERTA_TASK_MLM_EMD)) return HEAD_MLM;
    if (has_head(job->run, DEBERTA_TASK_TOKEN)) return HEAD_TOKEN;
    return has_head(job->run, DEBERTA_TASK_RTD) ? HEAD_RTD : HEAD_SEQUENCE;
}

static deberta_task task_of_head(const attribute_job *job)
{
    const attribute_options *o = job->asked;
    switch (job->head) {
    case HEAD_SEQUENCE: return DEBERTA_TASK_SEQUENCE;
    case HEAD_TOKEN: return DEBERTA_TASK_TOKEN;
    case HEAD_RTD: return DEBERTA_TASK_RTD;
    case HEAD_MLM: break;
    }
    return task_mlm_head(&o->reading.common, &job->run->batches, &o->mlm_decoder);
}

static void check_head_options(const attribute_job *job)
{
    const attribute_options *o = job->asked;
    const common_options *options = &o->reading.common;
    const bool has_classes = job->head == HEAD_SEQUENCE || job->head == HEAD_TOKEN;
    if (o->class && !has_classes)
        option_wrong(options, &o->class, "the head '%s' has no classes; expected --head sequence or token",
                     deberta_task_name(job->task));
    if (o->answer && job->head != HEAD_MLM)
        option_wrong(options, &o->answer, "is a word at [MASK]; the head '%s' does not say words",
                     deberta_task_name(job->task));
    if ((job->head == HEAD_TOKEN || job->head == HEAD_RTD) && !o->token)
        usage_wrong(options, "the head '%s' answers for each token: say which by --token WORD, or its number",
                    deberta_task_name(job->task));
    if (o->token && job->head != HEAD_TOKEN && job->head != HEAD_RTD)
        option_wrong(options, &o->token, "the head '%s' does not ask for a token", deberta_task_name(job->task));
    if (job->task == DEBERTA_TASK_SEQUENCE || job->task == DEBERTA_TASK_TOKEN)
        task_run_check_labels(job->run, deberta_task_width(job->run->batches.model, job->task));
}

static void attribute_begin(task_run *run)
{
    attribute_job *job = run->context;
    const deberta_tokenizer *tokenizer = run->batches.tokenizer;
    job->run = run;
    run->out = job->paths.text;
    job->head = choose_head(job);
    job->task = task_of_head(job);
    task_require(run->options, &run->batches, job->task, NULL);
    check_head_options(job);
    if (job->task == DEBERTA_TASK_MLM_EMD) run->batches.session_options.features |= DEBERTA_KEEP_DECODER_INPUT;
    job->mask_id = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK);
    job->baseline_id = job->asked->baseline == BASELINE_MASK ? job->mask_id
                       : job->asked->baseline == BASELINE_PAD
                           ? deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_PAD)
                           : -1;
}

/* ------------------------------------------------------------------------------------------------- what is asked of a text */

/* Finds the one token that a word is at the [MASK]; returns false if the record has a problem now. */
static bool find_word(attribute_job *job, text_record *record, const asked_text *in, size_t at, const char *word,
                      size_t *answer, deberta_error *err)
{
    int32_t id;
    size_t pieces;
    must(job->run->options, asked_word_fill(job->run->options, in, at, word, &id, &pieces, err), err);
    const char *mask = deberta_tokenizer_token(in->tokenizer, job->mask_id, NULL);
    if (id < 0 && pieces == 1)
        text_record_spoil(record, "\"%s\" would be one token with the text beside %s", word, mask);
    else if (id < 0)
        text_record_spoil(record, "\"%s\" is %zu tokens of this model, expected one: it must fill one %s", word, pieces,
                          mask);
    *answer = (size_t)id;
    return id >= 0;
}

static void label_wrong(const attribute_job *job, const char *name)
{
    const size_t labels = deberta_task_width(job->run->batches.model, job->task);
    option_wrong(job->run->options, &job->asked->class,
                 "'%s' is no label of %s; expected its name (such as '%s') or a "
                 "number from 0 to %zu",
                 name, job->run->batches.info.name, task_run_label(job->run, 0), labels - 1);
}

static void read_class(const attribute_job *job, deberta_attribution_options *o)
{
    const common_options *options = job->run->options;
    const size_t labels = deberta_task_width(job->run->batches.model, job->task);
    size_t other;
    const char *wrong =
        asked_labels_find(options, job->run->batches.model, labels, job->asked->class, &o->answer, &other);
    if (wrong) label_wrong(job, wrong);
    if (other == o->answer)
        option_wrong(options, &job->asked->class, "'%s' is one label twice: a difference is of two", job->asked->class);
    if (other != SIZE_MAX) o->contrast = other;
}

static bool read_answer(attribute_job *job, text_record *record, const asked_text *in, deberta_attribution_options *o,
                        deberta_error *err)
{
    const common_options *options = job->run->options;
    const char *word, *other;
    asked_pair_split(options, job->asked->answer, &word, &other);
    if (other && !find_word(job, record, in, o->token, other, &o->contrast, err)) return false;
    if (!find_word(job, record, in, o->token, word, &o->answer, err)) return false;
    if (o->answer == o->contrast)
        option_wrong(options, &job->asked->answer, "'%s' is one word twice: a difference is of two",
                     job->asked->answer);
    return true;
}

/* Notes that the class is explained if a text has a [MASK] that another head of the model answers. */
static void note_mask(attribute_job *job, const asked_text *in)
{
    const attribute_options *o = job->asked;
    const bool chosen = o->class || option_given(&o->reading.common, &o->head);
    size_t place;
    const size_t masks = asked_masks(in, &place);
    if (chosen || job->mask_noted || !masks) return;
    if (!has_head(job->run, DEBERTA_TASK_MLM) && !has_head(job->run, DEBERTA_TASK_MLM_EMD)) return;
    job->mask_noted = true;
    say_note(job->run->options, "note: this is about the label of the text; --head mlm asks for the word at %s%s",
             deberta_tokenizer_token(in->tokenizer, job->mask_id, NULL), masks == 1 ? "" : ", of which it takes one");
}

/* Finds the token of --token: a number, or the first token of a word that the text has once. */
static bool find_named(attribute_job *job, text_record *record, const asked_text *in, size_t *found, deberta_error *err)
{
    const char *asked = job->asked->token;
    char *end;
    *found = strtoull(asked, &end, 10);
    if (*asked >= '0' && *asked <= '9' && *end == 0 && *found < in->tokens->count) return true;
    bool *marked = options_take(job->run->options, in->tokens->count, sizeof *marked);
    asked_count count;
    must(job->run->options, asked_word_mark(in, asked, marked, &count, err), err);
    for (*found = 0; count.kept == 1 && *found < in->tokens->count; ++*found)
        if (marked[*found]) return true;
    if (count.kept > 1)
        text_record_spoil(record, "has the word '%s' %zu times: name the token by its number", asked, count.kept);
    else if (count.cut)
        text_record_spoil(record, "%s", asked_word_was_cut(job->run->options, in, asked));
    else
        text_record_spoil(record, "has no token '%s', nor a token of that number", asked);
    return false;
}

/* Finds the token whose answer is explained. */
static bool find_token(attribute_job *job, text_record *record, const asked_text *in, size_t *found, deberta_error *err)
{
    if (job->head == HEAD_SEQUENCE) {
        note_mask(job, in);
        return true;
    }
    if (job->head != HEAD_MLM) return find_named(job, record, in, found, err);
    const size_t count = asked_masks(in, found);
    if (count != 1)
        text_record_spoil(record, "the text%s has %zu %s, expected one", in->tokens->dropped ? " as it was cut" : "",
                          count, deberta_tokenizer_token(in->tokenizer, job->mask_id, NULL));
    return count == 1;
}

static deberta_status keep_logits(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                  const deberta_outputs *outputs, deberta_error *err)
{
    attribute_job *job = context;
    const text_batches *batches = &job->run->batches;
    const task_batch batch = {.session = batches->session, .model = batches->model, .count = count, .starts = starts};
    const size_t position = job->task == DEBERTA_TASK_SEQUENCE ? 0 : job->token;
    (void)pieces, (void)outputs;
    return task_run_logits(&batch, job->task, &position, 1, job->logits, err);
}

/* Finds the model's answer if none was asked for: the first of the largest logits. */
static deberta_status find_first(attribute_job *job, const task_text *text, deberta_attribution_options *o,
                                 deberta_error *err)
{
    const size_t width = deberta_task_width(job->run->batches.model, job->task);
    text_piece piece = {
        .ids = text->tokens->ids, .types = text->tokens->token_types, .tokens = text->tokens->count, .index = 0};
    if (width == 1) return DEBERTA_OK;
    job->logits = options_take(job->run->options, width, sizeof *job->logits);
    job->token = o->token;
    DEBERTA_TRY(text_batches_run(&job->run->batches, &piece, 1, keep_logits, job, err));
    for (size_t k = 1; k < width; k++)
        if (job->logits[k] > job->logits[o->answer]) o->answer = k;
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- one text */

static const char *logit_name(const attribute_job *job, size_t index)
{
    const task_run *run = job->run;
    size_t bytes;
    if (job->task == DEBERTA_TASK_RTD) return "replaced";
    if (job->task == DEBERTA_TASK_SEQUENCE || job->task == DEBERTA_TASK_TOKEN)
        return options_text(run->options, "%s", task_run_label(run, index)); /* a figure is drawn without the model */
    const char *name = deberta_tokenizer_token(run->batches.tokenizer, (int32_t)index, &bytes);
    return name ? options_text(run->options, "%.*s", (int)bytes, name) : options_text(run->options, "%zu", index);
}

/* Copies the tokens' names into the attributed text, where they live as long as the options. */
static void name_tokens(const attribute_job *job, const task_text *text, attributed_text *to)
{
    const common_options *options = job->run->options;
    const deberta_tokens *tokens = text->tokens;
    figure_label *labels = options_take(options, tokens->count, sizeof *labels);
    deberta_place *places = options_take(options, tokens->count, sizeof *places);
    for (size_t t = 0; t < tokens->count; t++) {
        size_t bytes;
        const char *name = deberta_tokens_text(tokens, t, &bytes);
        const char *source = tokens->token_types[t] && text->record.pair ? text->record.pair : text->record.text;
        labels[t] =
            (figure_label){options_text(options, "%.*s", (int)bytes, name),
                           tokens->roles[t] == DEBERTA_TOKEN_FRAME || tokens->roles[t] == DEBERTA_TOKEN_SPELLED};
        places[t] = deberta_token_place(tokens, t, source);
    }
    to->tokens = labels;
    to->places = places;
}

static const char *list_parts(const common_options *options, unsigned parts)
{
    const char *list = "";
    for (size_t k = 0; part_names[k]; k++)
        if (parts >> k & 1) list = options_text(options, "%s%s%s", list, *list ? "," : "", part_names[k]);
    return list;
}

static attributed_text attributed_text_of(const attribute_job *job, const task_text *text,
                                          const deberta_attribution_options *o, const deberta_attribution *found)
{
    const attribute_options *asked = job->asked;
    attributed_text shown = {
        .found = found,
        .head = deberta_task_name(job->task),
        .answer = logit_name(job, o->answer),
        .contrast = o->contrast == DEBERTA_NO_CONTRAST ? NULL : logit_name(job, o->contrast),
        .answer_index = o->answer,
        .contrast_index = o->contrast,
        .of = of_names[asked->of],
        .method = method_names[asked->method],
        .baseline = baseline_names[asked->baseline],
        .parts = list_parts(job->run->options, asked->parts),
        .changed = asked->parts,
    };
    name_tokens(job, text, &shown);
    if (job->task != DEBERTA_TASK_SEQUENCE) {
        shown.asked = shown.tokens[o->token].text;
        shown.asked_token = o->token;
    }
    return shown;
}

/* Returns the ids of the baseline, in which special tokens stay. */
static const int32_t *baseline_of(const attribute_job *job, const deberta_tokens *tokens)
{
    int32_t *ids = options_take(job->run->options, tokens->count, sizeof *ids);
    for (size_t t = 0; t < tokens->count; t++) {
        const bool stays = tokens->roles[t] == DEBERTA_TOKEN_FRAME || tokens->roles[t] == DEBERTA_TOKEN_SPELLED;
        ids[t] = stays ? tokens->ids[t] : job->baseline_id;
    }
    return ids;
}

static deberta_status ask_text(attribute_job *job, task_text *text, deberta_attribution_options *o, deberta_error *err)
{
    const deberta_tokens *tokens = text->tokens;
    const attribute_options *asked = job->asked;
    const deberta_text given = text_batches_text(&job->run->batches, &text->record);
    const asked_text in = {&given, tokens, job->run->batches.tokenizer};
    *o = (deberta_attribution_options)DEBERTA_ATTRIBUTION_DEFAULTS;
    o->tokens = tokens->count;
    o->ids = tokens->ids;
    o->token_types = tokens->token_types;
    o->baseline_ids = baseline_of(job, tokens);
    o->task = job->task;
    o->log_probability = asked->of;
    o->method = (deberta_attribution_method)asked->method;
    o->parts = asked->parts;
    o->steps = asked->steps;
    o->isa = job->run->options->isa;
    o->threads = job->run->options->threads;
    if (job->task == DEBERTA_TASK_MLM_EMD) /* the Enhanced Mask Decoder adds absolute positions */
        DEBERTA_TRY(text_batches_check_length(&job->run->batches, &text->record, tokens->count,
                                              job->run->batches.info.max_positions, err));
    if (text->record.problem || !find_token(job, &text->record, &in, &o->token, err)) return DEBERTA_OK;
    if (asked->class)
        read_class(job, o);
    else if (!asked->answer)
        return find_first(job, text, o, err);
    else if (!read_answer(job, &text->record, &in, o, err))
        return DEBERTA_OK;
    if (o->log_probability && o->contrast != DEBERTA_NO_CONTRAST)
        option_wrong(job->run->options, &asked->of,
                     "a contrast is of logits: its log-probability is the same difference");
    return DEBERTA_OK;
}

static void note_gap(const attribute_job *job, const deberta_attribution_options *o, const deberta_attribution *found)
{
    if (o->method == DEBERTA_INTEGRATED_GRADIENTS && found->gap > o->tolerance)
        say_note(job->run->options, "note: the gap is %.2g %% of the difference after %zu points%s", 100 * found->gap,
                 found->steps, o->steps ? "; without --steps they are doubled until it is at most 1 %" : "");
}

/* Copies the facts about the source of a figure, which is drawn after model and text are released. */
static void name_source(const attribute_job *job, const task_text *text, attributed_text *to)
{
    const common_options *options = job->run->options;
    const text_record *record = &text->record;
    char *digest = options_take(options, 65, 1);
    deberta_error error;
    to->options = options;
    to->latex = job->asked->latex;
    if (job->asked->anonymous) return;
    must(options, deberta_model_digest(job->run->batches.model, digest, &error), &error);
    to->model = options_text(options, "%s", job->run->batches.info.name);
    to->digest = digest;
    to->text = options_text(options, "%s", record->text);
    to->pair = record->pair ? options_text(options, "%s", record->pair) : NULL;
}

/* Keeps a text for the figure, which shows one text only. */
static void keep_for_figure(attribute_job *job, const task_text *text, const attributed_text *shown,
                            deberta_attribution **found)
{
    if (job->paths.figure_count == 0 && !job->asked->numbers) return;
    if (job->kept)
        usage_wrong(job->run->options,
                    "a figure shows one text, but there are more: leave out the picture and --numbers");
    job->kept = options_take(job->run->options, 1, sizeof *job->kept);
    *job->kept = *shown;
    if (job->paths.figure_count) name_source(job, text, job->kept);
    job->own = *found;
    *found = NULL;
}

static deberta_status attribute_look(task_run *run, task_text *text, deberta_error *err)
{
    attribute_job *job = run->context;
    deberta_attribution_options options;
    deberta_attribution *found = NULL;
    FILE *out;
    if (text->record.problem) return DEBERTA_OK;
    DEBERTA_TRY(ask_text(job, text, &options, err));
    if (text->record.problem) return DEBERTA_OK;
    DEBERTA_TRY(deberta_attribute(&found, run->batches.model, &options, err));
    const attributed_text shown = attributed_text_of(job, text, &options, found);
    note_gap(job, &options, found);
    task_text_out(run, text, &out);
    if (out)
        attribute_show(out, run->options, &shown);
    else
        text->answer = attribute_describe(&shown);
    keep_for_figure(job, text, &shown, &found);
    deberta_attribution_free(&found);
    return DEBERTA_OK;
}

static deberta_status attribute_finish(task_run *run, FILE *out, deberta_error *err)
{
    (void)out, (void)err;
    ((attribute_job *)run->context)->finished = true;
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static void write_numbers(const attribute_job *job)
{
    deberta_error error;
    deberta_status (*const write)(const common_options *, const attributed_text *, const char *, deberta_error *) =
        DRAWING(attribute_write_numbers);
    if (write)
        must(&job->asked->reading.common, write(&job->asked->reading.common, job->kept, job->asked->numbers, &error),
             &error);
}

static void check_numbers(const attribute_options *o)
{
    if (!o->numbers) return;
    if (!HAVE_VIZ) option_wrong(&o->reading.common, &o->numbers, "this program was built without figures");
    if (!path_has_suffix(o->numbers, ".csv"))
        option_wrong(&o->reading.common, &o->numbers, "'%s' does not end in .csv", o->numbers);
}

static void check_latex(const attribute_options *o, const output_paths *paths)
{
    if (!o->latex) return;
    if (!path_has_suffix(o->latex, ".tex"))
        option_wrong(&o->reading.common, &o->latex, "unknown suffix in '%s', expected .tex", o->latex);
    if (!HAVE_VIZ) option_wrong(&o->reading.common, &o->latex, "this program was built without figures");
    if (HAVE_VIZ) figure_latex_includes(&o->reading.common, &(text_list){paths->figures, paths->figure_count});
}

/* Notes options that the others leave without effect. */
static void note_unused(const attribute_options *o)
{
    if (o->method == DEBERTA_GRADIENT_INPUT)
        option_note_unused(&o->reading.common, &o->steps,
                           "gradient-input has no way with points: it takes the gradient at the text alone");
    if (!(o->parts & DEBERTA_ATTRIBUTE_WORDS))
        option_note_unused(&o->reading.common, &o->baseline,
                           "it is of words, and without words among --parts they stay as in the text");
}

static int attribute_run(const common_options *options)
{
    static const task_command command = {.names = {.text = "text", .pair = "pair"},
                                         .begin = attribute_begin,
                                         .look = attribute_look,
                                         .answers_alone = true,
                                         .finish = attribute_finish};
    const attribute_options *o = (const attribute_options *)options;
    attribute_job job = {.asked = o};
    check_float32(options, "an attribution");
    check_numbers(o);
    output_paths_read(options, &o->style, &job.paths);
    check_latex(o, &job.paths);
    note_unused(o);
    const int status = task_run_all(options, &command, &job);
    /* Bad lines beside the good one are reported, and do not keep it from being drawn. */
    if (job.finished && job.kept)
        output_draw(options, &job.paths, DRAWING(attribute_draw), job.kept, &o->style, NULL, NULL);
    if (job.finished && job.kept && o->numbers) write_numbers(&job);
    deberta_attribution_free(&job.own);
    return status;
}

static const option asked[] = {
    {"text", 0, "TEXT", "whose answer is explained; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number", TEXTS_AT(reading_options, pairs)},
    TEXT_STREAM_FILE_OPTIONS,
    {"head", 0, "NAME", "sequence, token, mlm or rtd; default: what --answer and --token ask, else what the model has",
     CHOICE_AT(attribute_options, head, head_names)},
    {"class", 0, "LABEL[,OTHER]",
     "the class, by name or number; with a second one the difference of their logits. "
     "Default: the model's answer",
     TEXT_AT(attribute_options, class), .not_with = "answer"},
    {"answer", 0, "WORD[,OTHER]",
     "a word at the one [MASK], of one token; with a second one the difference. Default: the "
     "model's answer",
     TEXT_AT(attribute_options, answer), .not_with = "class token"},
    {"token", 0, "WORD", "the token whose answer it is, or its number from 0: of the heads token and rtd",
     TEXT_AT(attribute_options, token)},
    {"of", 0, "NAME", "logit (default), or log-probability", CHOICE_AT(attribute_options, of, of_names)},
    {TASK_MLM_DECODER_ROW(attribute_options)},
    {"method", 0, "NAME", "ig, integrated gradients (default), or gradient-input, which does not add up",
     CHOICE_AT(attribute_options, method, method_names)},
    {"baseline", 0, "NAME", "what words are compared with: mask (default), pad, or zero; special tokens stay",
     CHOICE_AT(attribute_options, baseline, baseline_names)},
    {"parts", 0, "LIST",
     "what the baseline lacks: words,distances,positions (default: all); others stay as in the text",
     PARSED_AT(attribute_options, parts, parse_attributed_parts), .choices = part_names},
    {"steps", 0, "N", "points of the way by Gauss and Legendre; default: doubled from 32 until the gap is at most 1 %",
     SIZE_AT(attribute_options, steps, 1, 65536)},
    {"max-tokens", 0, "N", "cut longer texts to N tokens, frame included; also: trained, receptive",
     PARSED_AT(reading_options, max_tokens, token_limit_parse)},
    {"strict", 0, NULL, "broken UTF-8 is a problem of its line instead of being replaced by U+FFFD",
     FLAG_AT(reading_options, strict)},
    {.name = NULL},
};
static const option look[] = {
    FIGURE_STYLE_ROWS(attribute_options, style),
    {"anonymous", 0, NULL, "no picture and no caption names the model, the text, the answer or the command",
     FLAG_AT(attribute_options, anonymous), .needs = "out"},
    {"numbers", 0, "FILE", "the attributions of the text as .csv: part, index, label, attribution",
     TEXT_AT(attribute_options, numbers), .role = OPTION_OUTPUT},
    {"latex", 0, "FILE", "a .tex file beside the figure: \\includegraphics, caption and label",
     TEXT_AT(attribute_options, latex), .role = OPTION_OUTPUT, .needs = "out"},
    {.name = NULL},
};
static const option_group groups[] = {{asked, 0, NULL}, {look, 0, "the figure"}, {NULL, 0, NULL}};

const command command_attribute = {
    .name = "attribute",
    .summary = "which words, distances and positions an answer comes from: integrated gradients",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .groups = groups,
    .size = sizeof(attribute_options),
    .defaults = &(const attribute_options){.parts = DEBERTA_ATTRIBUTE_ALL},
    .most_outputs = OUTPUT_PATHS_MOST,
    .example =
        "  deberta attribute models/demo --text 'Call me Ishmael.'\n"
        "  deberta attribute models/demo --text 'a new [MASK] opened' --answer store,house -o store.pdf\n"
        "  deberta attribute models/demo --file texts.txt --class 1 --of log-probability --json\n"
        "\nwith --json, one line a text:\n"
        "  {\"line\", \"schema\", \"head\", \"of\", \"method\", \"baseline\", \"parts\", \"answer\": {\"name\", "
        "\"index\"},\n"
        "    \"value\", \"baseline_value\", \"sum\", \"gap\", \"steps\",\n"
        "    \"tokens\": [{\"index\", \"token\", \"characters\", \"bytes\", \"special\", \"word\", \"position\", "
        "\"token_type\"}],\n"
        "    \"distances\": [{\"row\", \"first\", \"last\", \"c2p\", \"p2c\"}]}\n"
        "\nAttributions of words, distances and positions add up to value - baseline_value, but for the gap.\n",
    .run = attribute_run,
    .without = "seed",
};
