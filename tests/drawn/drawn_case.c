/* Draws task, models, texts and labels of a case one after the other from its number.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/drawn_case.h"

#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"

static const drawn_task drawn_tasks[] = {
    {"mlm", DEBERTA_TRAIN_MLM, EXACT_WORDS, DRAWN_LM, .decodes = false},
    {"mlm, legacy head", DEBERTA_TRAIN_MLM, EXACT_WORDS, DRAWN_LEGACY_LM, .decodes = false},
    {"mlm_emd", DEBERTA_TRAIN_MLM, EXACT_WORDS_DECODED, DRAWN_LM, .decodes = true},
    {"rtd", DEBERTA_TRAIN_RTD, EXACT_REPLACED, DRAWN_RTD, .decodes = false},
    {"rtd with a generator", DEBERTA_TRAIN_RTD, EXACT_REPLACED, DRAWN_RTD, .pairs_up = true},
    {"sequence", DEBERTA_TRAIN_SEQUENCE, EXACT_SEQUENCES, DRAWN_SEQUENCE, .has_sift = true},
    {"one label", DEBERTA_TRAIN_SEQUENCE, EXACT_VALUES, DRAWN_SEQUENCE, .has_sift = true},
    {"token", DEBERTA_TRAIN_TOKEN, EXACT_TOKENS, DRAWN_TOKEN, .has_sift = true},
    {"choice", DEBERTA_TRAIN_CHOICE, EXACT_CHOICES, DRAWN_SEQUENCE, .has_sift = true},
    {"qa", DEBERTA_TRAIN_QA, EXACT_ANSWERS, DRAWN_ANSWER, .has_sift = false},
};
const size_t drawn_task_count = sizeof drawn_tasks / sizeof *drawn_tasks;

static bool one_in(uint64_t *state, size_t n) { return random_below(state, n) == 0; }

static size_t between(uint64_t *state, size_t least, size_t most)
{
    return least + random_below(state, most - least + 1);
}

/* -------------------------------------------------------------------------------------------------------------- shape */

/* Sizes that some cases must exceed: a block of queries, a chunk of keys, an array of 1,024. */
enum { TWO_BLOCKS = 150, TWO_CHUNKS = 530, MANY_CHOICES = 1030, MANY_LABELS = 1024 };

typedef struct case_shape {
    size_t sequences, longest, choices, labels;
    bool sift, is_small;
} case_shape;

static void draw_texts(const drawn_task *task, uint64_t *state, case_shape *s)
{
    const bool choice = task->exact == EXACT_CHOICES;
    s->choices = choice ? between(state, 2, 4) : 1;
    s->sequences = s->choices * between(state, 1, choice || s->sift ? 2 : 4);
    s->longest = between(state, 1, s->sift ? 6 : one_in(state, 3) ? 40 : 14);
    s->is_small = s->sift;
    if (choice && one_in(state, 12)) {
        s->choices = s->sequences = MANY_CHOICES + random_below(state, 20);
        s->longest = 1;
        s->is_small = true;
    } else if (!s->sift && one_in(state, 14)) {
        s->longest = one_in(state, 4) ? TWO_CHUNKS : TWO_BLOCKS;
        s->sequences = s->choices;
        s->is_small = true;
    }
}

/* Fewer and more than the model is wide, and than others have room for. 0: widest of the model, and some. */
static size_t draw_labels(const drawn_task *task, bool sift, uint64_t *state)
{
    static const size_t few[] = {2, 3, 2, 5, 15, 16, 17, 33};
    if (task->exact == EXACT_CHOICES || task->exact == EXACT_VALUES) return 1;
    if (!(task->heads & (DRAWN_SEQUENCE | DRAWN_TOKEN))) return 2;
    switch (random_below(state, 6)) {
    case 0: return between(state, 70, 330);
    case 1: return sift ? between(state, 300, MANY_LABELS) : MANY_LABELS + between(state, 1, 300);
    default: return few[random_below(state, sizeof few / sizeof *few)];
    }
}

/* ------------------------------------------------------------------------------------------------------------- models */

/* The training of cases that have talking heads is left out. */
static bool is_trained(const drawn_case *c)
{
    enum { ONE_ROUND_IN = 6, ROUND = 2 };
    return c->task->pairs_up || c->number / drawn_task_count % ONE_ROUND_IN != ROUND;
}

static deberta_status draw_models(drawn_case *c, const case_shape *s, uint64_t *state, deberta_error *err)
{
    const drawn_wish wish = {.heads = c->task->heads | (c->task->pairs_up && one_in(state, 3) ? DRAWN_LM : 0),
                             .labels = s->labels,
                             .places = s->longest,
                             .is_small = s->is_small,
                             .is_trained = is_trained(c),
                             .decodes = c->task->decodes};
    if (!c->task->pairs_up) return drawn_model_make(&c->model, &wish, state, err);
    drawn_wish generating = wish;
    generating.heads = one_in(state, 3) ? DRAWN_LEGACY_LM : DRAWN_LM;
    generating.decodes = one_in(state, 2);
    DEBERTA_TRY(drawn_model_make(&c->generator, &generating, state, err));
    drawn_wish discriminating = wish;
    discriminating.like = &c->generator.config;
    return drawn_model_make(&c->model, &discriminating, state, err);
}

/* -------------------------------------------------------------------------------------------------------------- texts */

static void drawn_case_allocate(drawn_case *c, const case_shape *s)
{
    const size_t cells = s->sequences * c->batch.columns;
    c->ids = scope_take(&c->memory, cells, sizeof *c->ids);
    c->sampled = scope_take(&c->memory, cells, sizeof *c->sampled);
    c->types = scope_take(&c->memory, cells, sizeof *c->types);
    c->positions = scope_take(&c->memory, cells, sizeof *c->positions);
    c->labels = scope_take(&c->memory, cells, sizeof *c->labels);
    c->starts = scope_take(&c->memory, s->sequences, sizeof *c->starts);
    c->ends = scope_take(&c->memory, s->sequences, sizeof *c->ends);
    c->mask = scope_take(&c->memory, cells, 1);
    c->targets = scope_take(&c->memory, s->sequences, sizeof *c->targets);
    c->delta = scope_take(&c->memory, cells * c->model.config.hidden_size, sizeof *c->delta);
}

/* A pair's smaller position table is the limit. */
static void fill_tokens(drawn_case *c, size_t sequence, size_t n, bool holes, bool first_holes, uint64_t *state)
{
    const model_config *config = &c->model.config;
    const size_t columns = c->batch.columns, h = config->hidden_size, V = config->vocabulary_size;
    for (size_t t = 0; t < columns; t++) {
        const size_t at = sequence * columns + t;
        c->ids[at] = (int64_t)random_below(state, V);
        if (one_in(state, 8) && config->pad_token_id >= 0) c->ids[at] = config->pad_token_id;
        c->sampled[at] = c->ids[at];
        c->types[at] = config->token_types ? (int64_t)random_below(state, config->token_types) : 0;
        c->positions[at] = (int64_t)random_below(state, config->max_positions);
        const bool hole = holes && t + 1 < n && one_in(state, 6) && (t > 0 || first_holes);
        c->mask[at] = t < n && !hole;
        c->labels[at] = EXACT_NOT_LABELLED;
        for (size_t e = 0; e < h; e++) c->delta[at * h + e] = (float)(0.04 * random_fraction(state) - 0.02);
    }
}

/* A label for a third of the tokens, and for one at least: the last, which is no hole. */
static void label_tokens(drawn_case *c, size_t labels, uint64_t *state)
{
    const size_t columns = c->batch.columns;
    for (size_t i = 0; i < c->batch.sequences; i++)
        for (size_t t = 0, n = exact_length(&c->batch, i); t < n; t++) {
            const size_t at = i * columns + t;
            if (!c->mask[at] || !(one_in(state, 3) || (i == 0 && t + 1 == n))) continue;
            c->labels[at] = (int64_t)random_below(state, labels);
            /* Replaced by the generator's word, or luckily by the right one. */
            if (c->task->exact == EXACT_REPLACED && one_in(state, 3)) c->labels[at] = c->ids[at];
            if (c->task->pairs_up)
                c->sampled[at] = one_in(state, 3) ? c->labels[at] : (int64_t)random_below(state, labels);
        }
}

/* Some starts and ends are nowhere; none is a hole. */
static int64_t draw_end(const drawn_case *c, size_t sequence, uint64_t *state)
{
    const size_t n = exact_length(&c->batch, sequence), place = random_below(state, n);
    if (sequence > 0 && one_in(state, 5)) return one_in(state, 2) ? -1 : (int64_t)(n + random_below(state, 5));
    return c->mask[sequence * c->batch.columns + place] ? (int64_t)place : (int64_t)n - 1;
}

static void label_sequences(drawn_case *c, size_t labels, uint64_t *state)
{
    const size_t count = c->batch.sequences / c->batch.choices;
    const size_t classes = c->task->exact == EXACT_CHOICES ? c->batch.choices : labels;
    for (size_t i = 0; i < count; i++) {
        const bool none = i > 0 && c->task->exact == EXACT_SEQUENCES && one_in(state, 4);
        c->labels[i] = none ? EXACT_NOT_LABELLED : (int64_t)random_below(state, classes);
    }
    for (size_t i = 0; i < c->batch.sequences; i++) {
        c->targets[i] = (float)(4 * random_fraction(state) - 2);
        c->starts[i] = draw_end(c, i, state);
        c->ends[i] = draw_end(c, i, state);
    }
}

static void fill_batch(drawn_case *c, const case_shape *s, bool first_holes, uint64_t *state)
{
    const bool holes = one_in(state, 2), same_length = s->choices > MANY_LABELS || one_in(state, 4);
    for (size_t i = 0; i < s->sequences; i++)
        fill_tokens(c, i, same_length || i == 0 ? s->longest : between(state, 1, s->longest), holes, first_holes,
                    state);
    const size_t classes = c->task->exact == EXACT_TOKENS ? s->labels : c->model.config.vocabulary_size;
    if (exact_labels_tokens(c->task->exact))
        label_tokens(c, classes, state);
    else
        label_sequences(c, s->labels, state);
}

/* --------------------------------------------------------------------------------------------------------------- case */

static void drawn_case_join(drawn_case *c, const case_shape *s, uint64_t *state)
{
    const bool types = c->model.config.token_types && !one_in(state, 6), positions = one_in(state, 5);
    exact_batch *b = &c->batch;
    b->task = c->task->exact;
    b->ids = c->task->pairs_up ? c->sampled : c->ids;
    b->types = types ? c->types : NULL;
    b->positions = positions ? c->positions : NULL;
    b->mask = c->mask;
    b->labels = c->labels;
    b->targets = c->targets;
    b->starts = c->starts;
    b->ends = c->ends;
    b->delta = c->delta;
    b->sift_weight = s->sift ? 0.5 + 3 * random_fraction(state) : 0;
    b->moves_raw = s->sift && one_in(state, 3);
    c->generator_batch = *b;
    c->generator_batch.ids = c->ids;
    for (size_t i = 0; i < b->sequences; i++) {
        c->tokens += exact_length(b, i);
        c->longest = maximum(c->longest, exact_length(b, i));
    }
}

/* Every spelling of the head that leads to the same model. */
static deberta_training_head draw_head(const drawn_case *c, bool generator_decodes, uint64_t *state)
{
    if (c->task->task == DEBERTA_TRAIN_MLM)
        return !c->task->decodes  ? DEBERTA_TRAIN_HEAD_MLM
               : one_in(state, 2) ? DEBERTA_TRAIN_HEAD_AUTO
                                  : DEBERTA_TRAIN_HEAD_MLM_EMD;
    if (!c->task->pairs_up) return (deberta_training_head)random_below(state, 3);
    return generator_decodes ? DEBERTA_TRAIN_HEAD_MLM_EMD : DEBERTA_TRAIN_HEAD_MLM;
}

static bool has_positions(const drawn_model *model)
{
    for (size_t i = 0; i < model->count; i++)
        if (strstr(model->tensors[i].name, "embeddings.position_embeddings.weight")) return true;
    return false;
}

static bool can_decode(const drawn_model *model)
{
    return model->config.embedding_size == model->config.hidden_size && has_positions(model);
}

static void draw_options(drawn_case *c, uint64_t *state)
{
    static const char *const frozen[] = {"embeddings.*", "*LayerNorm*", "*encoder.layer.0.*"};
    const bool generator_decodes = c->task->pairs_up && can_decode(&c->generator) && one_in(state, 2);
    deberta_trainer_options *o = &c->options;
    deberta_trainer_set_defaults(o);
    o->task = c->task->task;
    o->seed = random_below(state, 1000);
    o->reference = random_below(state, 2) ? DEBERTA_REFERENCE_HF : DEBERTA_REFERENCE_MICROSOFT;
    o->head = draw_head(c, generator_decodes, state);
    o->rtd_weight = one_in(state, 2) ? 50 : 1 + 9 * random_fraction(state);
    o->sift_weight = c->batch.sift_weight;
    o->perturb_raw = c->batch.moves_raw;
    o->sharing = (deberta_sharing)random_below(state, 3);
    if (has_positions(&c->model) && !has_positions(&c->generator)) o->sharing = DEBERTA_SHARING_NONE;
    o->coupled = o->sharing == DEBERTA_SHARING_ES || one_in(state, 2);
    o->shards = (size_t)1 << random_below(state, 5);
    o->dropout = 0;
    c->generator_batch.task = generator_decodes ? EXACT_WORDS_DECODED : EXACT_WORDS;
    c->dropout = one_in(state, 2) ? 0.1 + 0.3 * random_fraction(state) : 0;
    if (one_in(state, 6)) {
        o->freeze = &frozen[random_below(state, sizeof frozen / sizeof *frozen)];
        o->freeze_count = 1;
    }
    o->sift_step = c->batch.sift_step = one_in(state, 2) ? 0.1 * random_fraction(state) : 1e-4; /* last: cases stay */
}

/* Neighbouring seeds and numbers share nothing. */
static uint64_t first_state(uint64_t seed, size_t number)
{
    uint64_t state = seed;
    state = random_next(&state) ^ (uint64_t)number * 0xD1342543DE82EF95u;
    return random_next(&state);
}

deberta_status drawn_case_make(drawn_case *c, uint64_t seed, size_t number, bool first_holes, deberta_error *err)
{
    uint64_t state = first_state(seed, number);
    *c = (drawn_case){.seed = seed, .number = number, .task = &drawn_tasks[number % drawn_task_count]};
    case_shape shape = {.sift = c->task->has_sift && one_in(&state, 2)};
    draw_texts(c->task, &state, &shape);
    shape.labels = draw_labels(c->task, shape.sift, &state);
    deberta_status status = draw_models(c, &shape, &state, err);
    c->batch.sequences = shape.sequences;
    c->batch.choices = shape.choices;
    c->batch.columns = shape.longest + (one_in(&state, 3) ? random_below(&state, 4) : 0);
    c->batch.mask = NULL;
    if (status == DEBERTA_OK) drawn_case_allocate(c, &shape);
    if (status == DEBERTA_OK) {
        c->batch.mask = c->mask;
        fill_batch(c, &shape, first_holes, &state);
        drawn_case_join(c, &shape, &state);
        draw_options(c, &state);
    } else {
        drawn_case_free(c);
    }
    return status;
}

void drawn_case_free(drawn_case *c)
{
    drawn_model_free(&c->model);
    drawn_model_free(&c->generator);
    scope_free(&c->memory);
    *c = (drawn_case){0};
}
