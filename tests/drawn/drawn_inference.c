/* Checks features of inference: every tier and precision against float64, and other ways to the same bits.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/status.h"
#include "output/scope.h"
#include "tests/drawn/drawn_run.h"

/* ------------------------------------------------------------------------------------------------------------- texts */

/* The texts of a case one after the other, without padding. Many choices are enough in training. */
static verify_texts flatten(scope *memory, const exact_batch *batch)
{
    enum { MOST_TEXTS = 6 };
    const size_t sequences = batch->sequences < MOST_TEXTS ? batch->sequences : MOST_TEXTS,
                 cells = sequences * batch->columns;
    size_t *starts = scope_take(memory, sequences + 1, sizeof *starts);
    int32_t *ids = scope_take(memory, cells, sizeof *ids),
            *types = batch->types ? scope_take(memory, cells, sizeof *types) : NULL,
            *positions = batch->positions ? scope_take(memory, cells, sizeof *positions) : NULL;
    uint8_t *mask = scope_take(memory, cells, 1);
    for (size_t i = 0, to = 0; i < sequences; i++) {
        for (size_t t = 0; t < exact_length(batch, i); t++, to++) {
            const size_t at = i * batch->columns + t;
            ids[to] = (int32_t)batch->ids[at];
            if (types) types[to] = (int32_t)batch->types[at];
            if (positions) positions[to] = (int32_t)batch->positions[at];
            mask[to] = batch->mask[at];
        }
        starts[i + 1] = to;
    }
    return (verify_texts){.ids = ids,
                          .token_types = types,
                          .position_ids = positions,
                          .mask = mask,
                          .starts = starts,
                          .sequences = sequences};
}

/* ---------------------------------------------------------------------------------------------------- against float64 */

/* Limits of low precision are those of models whose rows have hundreds of columns, among which errors cancel. */
static const double limit_of_narrow_models = 3;

/* Returns the name under which rows are joined: "layer 2 c2p" names a place in a model, and tiers differ in bits
 * only. */
static const char *kind_of(const verify_row *row)
{
    if (strncmp(row->subject, "logits", 6) == 0) return row->subject;
    return strncmp(row->subject, "hidden", 6) == 0 ? "hidden states" : "attention";
}

typedef struct joined_row {
    const char *kind;
    const verify_row *worst, *differing; /* NULL: none */
    double error;
} joined_row;

static void join_rows(joined_row *to, const verify_report *found, double slack)
{
    for (size_t i = 0; i < found->count; i++) {
        const verify_row *row = &found->rows[i];
        const double error = row->worst / (row->limit * slack);
        if (strcmp(kind_of(row), to->kind) != 0) continue;
        if (row->differing) to->differing = row;
        if (!to->worst || !(error <= to->error)) *to = (joined_row){to->kind, row, to->differing, error};
    }
}

static void note_joined(drawn_run *run, const joined_row *row, const char *prefix)
{
    char name[160], where[320];
    const verify_row *differing = row->differing;
    snprintf(name, sizeof name, "%s%s", prefix, row->kind);
    if (!row->worst) return;
    snprintf(where, sizeof where, "%s, %s", row->worst->subject, row->worst->where);
    drawn_note(run, name, "float64", row->error, where);
    if (differing) snprintf(where, sizeof where, "%s, %s", differing->subject, deberta_isa_name(differing->tier));
    drawn_note(run, name, "bits", differing ? INFINITY : 0, where);
}

static void take_rows(drawn_run *run, const verify_report *found, const char *precision)
{
    char prefix[32] = "";
    if (*precision) snprintf(prefix, sizeof prefix, "%s: ", precision);
    for (size_t i = 0; i < found->count; i++) {
        joined_row row = {.kind = kind_of(&found->rows[i])};
        bool is_first = true;
        for (size_t k = 0; k < i; k++) is_first = is_first && strcmp(kind_of(&found->rows[k]), row.kind) != 0;
        if (!is_first) continue;
        join_rows(&row, found, *precision ? limit_of_narrow_models : 1);
        note_joined(run, &row, prefix);
    }
}

static deberta_status against_float64(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    (void)err;
    verify_options options = run->options->verify;
    verify_report found = {0};
    scope memory = {0};
    deberta_error refusal;
    char path[128];
    options.precision = feature->precision;
    options.reference = run->drawn->options.reference;
    drawn_path(run, "model", path);
    const verify_texts texts = flatten(&memory, &run->drawn->batch);
    if (verify_texts_of(&found, &options, path, "", &texts, &refusal) == DEBERTA_OK)
        take_rows(run, &found, feature->precision == DEBERTA_PRECISION_FLOAT32 ? "" : feature->name);
    else
        drawn_note_refusal(run, feature->name, "float64", &refusal);
    scope_free(&found.memory);
    scope_free(&memory);
    return DEBERTA_OK;
}

static bool always(const drawn_run *run)
{
    (void)run;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ the same bits */

/* Outputs of a model for all texts: H[L], and the logits of each of its heads. */
typedef struct outputs {
    scope memory;
    float *hidden;                     /* [tokens][h] */
    float *logits[DEBERTA_TASK_COUNT]; /* [tokens or sequences][width] */
    bool only_heads;                   /* whether there is no H[L] */
} outputs;

static size_t drawn_inference_rows_of(deberta_task task, const verify_texts *texts)
{
    return task == DEBERTA_TASK_SEQUENCE ? texts->sequences : texts->starts[texts->sequences];
}

/* Copies the logits of the first `rows` places of the last encode into the rows from `first_row` on. */
static deberta_status take_logits(deberta_session *session, deberta_task task, outputs *to, size_t first_row,
                                  size_t rows, size_t width, deberta_error *err)
{
    size_t *positions = memory_take(rows, sizeof *positions);
    for (size_t i = 0; i < rows; i++) positions[i] = i;
    const deberta_status status =
        deberta_task_logits(session, task, positions, rows, to->logits[task] + first_row * width, width, err);
    free(positions);
    return status;
}

/* Asks for the places in calls of three, from the last one to the first. */
static deberta_status take_logits_by_threes(deberta_session *session, deberta_task task, outputs *to, size_t first_row,
                                            size_t rows, size_t width, deberta_error *err)
{
    enum { AT_ONCE = 3 };
    size_t positions[AT_ONCE];
    float *logits = memory_take(AT_ONCE * width, sizeof *logits);
    deberta_status status = DEBERTA_OK;
    for (size_t left = rows, count; status == DEBERTA_OK && left > 0; left -= count) {
        count = left < AT_ONCE ? left : AT_ONCE;
        for (size_t i = 0; i < count; i++) positions[i] = left - 1 - i;
        status = deberta_task_logits(session, task, positions, count, logits, width, err);
        for (size_t i = 0; status == DEBERTA_OK && i < count; i++)
            memcpy(to->logits[task] + (first_row + positions[i]) * width, logits + i * width, width * sizeof *logits);
    }
    free(logits);
    return status;
}

/* Texts [first, end) in one batch. */
static deberta_status drawn_inference_encode(const deberta_model *model, deberta_session *session,
                                             const verify_texts *texts, size_t first, size_t end, outputs *to,
                                             deberta_error *err)
{
    const deberta_model_info *info = deberta_model_describe(model);
    const size_t at = texts->starts[first], tokens = texts->starts[end] - at, h = info->hidden_size;
    size_t *starts = memory_take(end - first + 1, sizeof *starts);
    for (size_t i = first; i <= end; i++) starts[i - first] = texts->starts[i] - at;
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = texts->ids + at,
                                 .token_types = texts->token_types ? texts->token_types + at : NULL,
                                 .position_ids = texts->position_ids ? texts->position_ids + at : NULL,
                                 .mask = texts->mask + at,
                                 .sequence_starts = starts,
                                 .sequences = end - first};
    deberta_outputs given = {.struct_size = sizeof given};
    deberta_status status = deberta_encode(session, &batch, &given, err);
    for (size_t t = 0; status == DEBERTA_OK && given.hidden && t < tokens; t++)
        memcpy(to->hidden + (at + t) * h, given.hidden + t * given.hidden_stride, h * sizeof *to->hidden);
    for (int k = 0; status == DEBERTA_OK && k < DEBERTA_TASK_COUNT; k++) {
        const deberta_task task = (deberta_task)k;
        const bool by_text = task == DEBERTA_TASK_SEQUENCE;
        if (to->logits[k])
            status = (given.hidden ? take_logits : take_logits_by_threes)(session, task, to, by_text ? first : at,
                                                                          by_text ? end - first : tokens,
                                                                          deberta_task_width(model, task), err);
    }
    free(starts);
    return status;
}

static deberta_status encode_all(const deberta_model *model, const verify_texts *texts, size_t threads, bool alone,
                                 unsigned features, outputs *to, deberta_error *err)
{
    const deberta_model_info *info = deberta_model_describe(model);
    const deberta_session_options options = {
        .struct_size = sizeof options,
        .threads = threads,
        .max_tokens = texts->starts[texts->sequences],
        .features = features | (info->tasks_present & 1u << DEBERTA_TASK_MLM_EMD ? DEBERTA_KEEP_DECODER_INPUT : 0)};
    deberta_session *session = NULL;
    to->hidden = scope_take(&to->memory, texts->starts[texts->sequences] * info->hidden_size, sizeof *to->hidden);
    for (deberta_task task = 0; task < DEBERTA_TASK_COUNT; task++)
        if (info->tasks_present & 1u << task)
            to->logits[task] = scope_take(
                &to->memory, drawn_inference_rows_of(task, texts) * deberta_task_width(model, task), sizeof(float));
    deberta_status status = deberta_session_create(&session, model, &options, err);
    const size_t step = alone ? 1 : texts->sequences;
    for (size_t i = 0; status == DEBERTA_OK && i < texts->sequences; i += step)
        status = drawn_inference_encode(model, session, texts, i, i + step, to, err);
    deberta_session_free(&session);
    return status;
}

/* Rows of holes are unspecified. */
static bool same_rows(const verify_texts *texts, const float *a, const float *b, size_t rows, size_t width,
                      bool by_text)
{
    for (size_t i = 0; i < rows; i++)
        if ((by_text || texts->mask[i]) && memcmp(a + i * width, b + i * width, width * sizeof *a) != 0) return false;
    return true;
}

static const char *difference_of(const deberta_model *model, const verify_texts *texts, const outputs *a,
                                 const outputs *b)
{
    const size_t tokens = texts->starts[texts->sequences], h = deberta_model_describe(model)->hidden_size;
    if (!b->only_heads && !same_rows(texts, a->hidden, b->hidden, tokens, h, false)) return "hidden states";
    for (int k = 0; k < DEBERTA_TASK_COUNT; k++) {
        const deberta_task task = (deberta_task)k;
        if (a->logits[k] && !same_rows(texts, a->logits[k], b->logits[k], drawn_inference_rows_of(task, texts),
                                       deberta_task_width(model, task), task == DEBERTA_TASK_SEQUENCE))
            return deberta_task_name(task);
    }
    return NULL;
}

typedef enum model_place { FROM_FILE, FROM_MEMORY, FROM_PACKED, FROM_PACKED_ALONE } model_place;

/* A folder that has the model's config.json and packed file, and no weights. */
static deberta_status leave_alone(const drawn_run *run, const char *path, deberta_precision precision, char alone[128],
                                  deberta_error *err)
{
    const char *const names[] = {"config.json", deberta_packed_file_name(precision)};
    drawn_path(run, "alone", alone);
    mkdir(alone, 0700);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char from[256], to[256];
        snprintf(from, sizeof from, "%s/%s", path, names[k]);
        snprintf(to, sizeof to, "%s/%s", alone, names[k]);
        if (link(from, to) != 0) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be linked", to);
    }
    return DEBERTA_OK;
}

static deberta_status open_from(const drawn_run *run, model_place place, deberta_precision precision,
                                deberta_model **model, deberta_error *err)
{
    const deberta_model_options options = {.struct_size = sizeof options,
                                           .reference = run->drawn->options.reference,
                                           .precision = precision,
                                           .threads = 1};
    char path[128], alone[128];
    const bool left = place == FROM_PACKED_ALONE && precision != DEBERTA_PRECISION_FLOAT32;
    drawn_path(run, "model", path);
    if (place == FROM_MEMORY) return drawn_model_open(model, &run->drawn->model, &options, err);
    if (place == FROM_PACKED || place == FROM_PACKED_ALONE) {
        const deberta_pack_options packing = {.struct_size = sizeof packing, .threads = 1, .precision = precision};
        DEBERTA_TRY(deberta_model_pack(path, &packing, err));
    }
    if (left) DEBERTA_TRY(leave_alone(run, path, precision, alone, err));
    DEBERTA_TRY(deberta_model_open(model, left ? alone : path, &options, err));
    if (place >= FROM_PACKED && deberta_model_describe(*model)->packed != DEBERTA_PACKED_MAPPED)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the packed file is not used");
    return DEBERTA_OK;
}

static const struct {
    const char *name;
    model_place place;
    size_t threads;
    bool alone;
    unsigned features;
} places[] = {
    {"inference: each text alone", FROM_FILE, 1, .alone = true},
    {"inference: 2 threads", FROM_FILE, 2, .alone = false},
    {"inference: the last layer's rows by heads", FROM_FILE, 2, .features = DEBERTA_ONLY_HEADS},
    {"inference: from memory", FROM_MEMORY, 1, .alone = false},
    {"inference: packed", FROM_PACKED, 1, .alone = false},
    {"inference: packed, without weights", FROM_PACKED_ALONE, 2, .alone = false},
};

static void compare_place(drawn_run *run, size_t k, deberta_precision precision, const verify_texts *texts,
                          const outputs *base)
{
    deberta_model *model = NULL;
    outputs other = {.only_heads = places[k].features & DEBERTA_ONLY_HEADS};
    deberta_error refusal;
    if (open_from(run, places[k].place, precision, &model, &refusal) == DEBERTA_OK &&
        encode_all(model, texts, places[k].threads, places[k].alone, places[k].features, &other, &refusal) ==
            DEBERTA_OK) {
        const char *difference = difference_of(model, texts, base, &other);
        drawn_note(run, places[k].name, "bits", difference ? INFINITY : 0, difference);
    } else {
        drawn_note_refusal(run, places[k].name, "bits", &refusal);
    }
    scope_free(&other.memory);
    deberta_model_free(&model);
}

static deberta_status run_places(drawn_run *run, const drawn_feature *feature, deberta_error *err)
{
    (void)err;
    const deberta_precision precision = (deberta_precision)(run->drawn->number / 3 % DEBERTA_PRECISION_COUNT);
    deberta_model *model = NULL;
    outputs base = {0};
    deberta_error refusal;
    const verify_texts texts = flatten(&base.memory, &run->drawn->batch);
    if (open_from(run, FROM_FILE, precision, &model, &refusal) == DEBERTA_OK &&
        encode_all(model, &texts, 1, false, 0, &base, &refusal) == DEBERTA_OK)
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) compare_place(run, k, precision, &texts, &base);
    else
        drawn_note_refusal(run, feature->name, "bits", &refusal);
    scope_free(&base.memory);
    deberta_model_free(&model);
    return DEBERTA_OK;
}

const drawn_feature drawn_inference_features[] = {
    {"inference", always, .run = against_float64},
    {"int16", always, .run = against_float64, .precision = DEBERTA_PRECISION_INT16},
    {"int8", always, .run = against_float64, .precision = DEBERTA_PRECISION_INT8},
    {"inference: opened", always, .run = run_places},
    {0},
};
