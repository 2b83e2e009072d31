/* Lists the deliberate faults, and applies each to a model that is being opened. SPDX-License-Identifier: MIT */
#include "check/mutation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "core/encode/encoder_parts.h"
#include "core/load/model.h"

/* -------------------------------------------------------------------------------------------------- position rules */

static size_t clamp_row(const position_rule *rule, ptrdiff_t row)
{
    const ptrdiff_t rows = 2 * (ptrdiff_t)rule->span;
    return (size_t)(row < 0 ? 0 : row >= rows ? rows - 1 : row);
}

static size_t row_of_opposite(const position_rule *rule, ptrdiff_t distance)
{
    return clamp_row(rule, position_bucket(rule, -distance) + (ptrdiff_t)rule->span);
}

static size_t row_shifted(const position_rule *rule, ptrdiff_t distance)
{
    return clamp_row(rule, position_bucket(rule, distance) + (ptrdiff_t)rule->span + 1);
}

static size_t row_wrapped(const position_rule *rule, ptrdiff_t distance)
{
    const ptrdiff_t rows = 2 * (ptrdiff_t)rule->span, row = position_bucket(rule, distance) + (ptrdiff_t)rule->span;
    return (size_t)((row % rows + rows) % rows);
}

/* Computes the bucket with the logarithms' quotient rounded down; the right rule rounds up what is not an integer. */
static size_t row_floored(const position_rule *rule, ptrdiff_t distance)
{
    ptrdiff_t bucket = position_bucket(rule, distance);
    const ptrdiff_t magnitude = distance < 0 ? -distance : distance, middle = (ptrdiff_t)(rule->buckets / 2);
    const ptrdiff_t largest = (ptrdiff_t)rule->max_distance - 1;
    if (rule->buckets > 0 && magnitude > middle) {
        const double reached = (double)(rule->clamp_distance && magnitude > largest ? largest : magnitude);
        const double steps =
            log(reached / (double)middle) / log((double)largest / (double)middle) * (double)(middle - 1);
        if (floor(steps) < steps) bucket += distance < 0 ? 1 : -1;
    }
    return clamp_row(rule, bucket + (ptrdiff_t)rule->span);
}

static size_t p2c_row_mirrored(const position_rule *rule, size_t row)
{
    return row == 0 ? 2 * rule->span - 1 : 2 * rule->span - row;
}

static size_t p2c_row_constant(const position_rule *rule, size_t row)
{
    (void)row;
    return rule->span;
}

static void sign(deberta_model *model) { model->rule.row = row_of_opposite; }
static void bucket_shift(deberta_model *model) { model->rule.row = row_shifted; }
static void bucket_floor(deberta_model *model) { model->rule.row = row_floored; }
static void p2c_ji(deberta_model *model) { model->rule.p2c_row = p2c_row_mirrored; }
static void p2c_constant(deberta_model *model) { model->rule.p2c_row = p2c_row_constant; }

static void no_clamp(deberta_model *model)
{
    model->rule.clamp_distance = false;
    model->rule.row = row_wrapped;
}

/* --------------------------------------------------------------------------------------------------- configurations */

static void drop_c2p(deberta_model *model) { model->config.c2p = false; }
static void drop_p2c(deberta_model *model) { model->config.p2c = false; }
static void scale_plain(deberta_model *model) { model->config.position_terms = 0; }
static void no_relative_norm(deberta_model *model) { model->config.norm_relative = false; }
static void no_token_types(deberta_model *model) { model->config.token_types = 0; }
static void no_absolute_positions(deberta_model *model) { model->config.position_biased_input = false; }

static void gelu_tanh(deberta_model *model)
{
    if (model->config.hidden_activation == ACTIVATION_GELU) model->config.hidden_activation = ACTIVATION_GELU_TANH;
}

static void epsilon(deberta_model *model)
{
    model->config.layer_norm_eps = model->config.layer_norm_eps <= 1e-12f ? 1e-7f : 1e-12f;
}

/* ---------------------------------------------------------------------------------------------------------- weights */

/* Marks of tensors: how the source of a faulty model reads them. */
enum { AS_STORED, ALL_ZEROS, AS_BLOCKS };

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static bool find_stored(const deberta_model *model, const char *name, weight_tensor *found)
{
    return model->files.find(model->files.context, name, found);
}

/* Returns the place of row (head, part, lane) of v1's in_proj in an order with all of q first, then k, then v. */
static size_t row_in_blocks(const deberta_model *model, size_t row)
{
    const size_t d = model->config.head_size, width = model->config.heads * d;
    return row / d % 3 * width + row / (3 * d) * d + row % d;
}

static deberta_status read_in_blocks(const deberta_model *model, const weight_tensor *from, size_t first, size_t count,
                                     float *values, deberta_error *err)
{
    const size_t columns = from->shape[1];
    for (size_t done = 0, part; done < count; done += part) {
        const size_t at = first + done, column = at % columns;
        part = columns - column < count - done ? columns - column : count - done;
        DEBERTA_TRY(model->files.read(model->files.context, from, row_in_blocks(model, at / columns) * columns + column,
                                      part, values + done, err));
    }
    return DEBERTA_OK;
}

static deberta_status read_marked(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const deberta_model *model = context;
    if (from->mark == AS_BLOCKS) return read_in_blocks(model, from, first, count, values, err);
    if (from->mark == AS_STORED) return model->files.read(model->files.context, from, first, count, values, err);
    memset(values, 0, count * sizeof *values);
    return DEBERTA_OK;
}

static const float *view_unmarked(const void *context, const weight_tensor *from)
{
    const deberta_model *model = context;
    return from->mark == AS_STORED && model->files.view ? model->files.view(model->files.context, from) : NULL;
}

static void forget(const void *context, const weight_tensor *from)
{
    const deberta_model *model = context;
    if (model->files.forget) model->files.forget(model->files.context, from);
}

static void read_through(deberta_model *model, bool (*find)(const void *, const char *, weight_tensor *))
{
    model->source = (weight_source){.context = model,
                                    .name = model->files.name,
                                    .find = find,
                                    .read = read_marked,
                                    .view = view_unmarked,
                                    .forget = forget};
}

static bool find_with_blocks(const void *context, const char *name, weight_tensor *found)
{
    if (!find_stored(context, name, found)) return false;
    if (ends_in(name, "attention.self.in_proj.weight")) found->mark = AS_BLOCKS;
    return true;
}

static bool find_without_key_bias(const void *context, const char *name, weight_tensor *found)
{
    if (!find_stored(context, name, found)) return false;
    if (ends_in(name, "attention.self.key_proj.bias")) found->mark = ALL_ZEROS;
    return true;
}

/* Projections of positions that a model shares with those of the content are found under separate names. */
static bool find_without_position_bias(const void *context, const char *name, weight_tensor *found)
{
    static const char *const shared[][2] = {{"attention.self.pos_key_proj.", "attention.self.key_proj."},
                                            {"attention.self.pos_query_proj.", "attention.self.query_proj."}};
    char other[256];
    bool is_there = find_stored(context, name, found);
    for (size_t k = 0; !is_there && k < sizeof shared / sizeof *shared; k++) {
        const char *place = strstr(name, shared[k][0]);
        if (!place) continue;
        snprintf(other, sizeof other, "%.*s%s%s", (int)(place - name), name, shared[k][1],
                 place + strlen(shared[k][0]));
        is_there = find_stored(context, other, found);
    }
    if (!is_there) return false;
    if (strstr(name, "attention.self.pos_") && ends_in(name, ".bias")) found->mark = ALL_ZEROS;
    return true;
}

static void inproj_blocks(deberta_model *model) { read_through(model, find_with_blocks); }
static void key_bias_dropped(deberta_model *model) { read_through(model, find_without_key_bias); }

static void position_bias_dropped(deberta_model *model)
{
    model->config.share_att_key = false;
    read_through(model, find_without_position_bias);
}

/* ------------------------------------------------------------------------------------------------------ convolution */

static void convolve_output(deberta_session *session)
{
    convolution_keep_input(session);
    convolution_run(session);
}

static void convolution_source(deberta_model *model) { model->convolve = convolve_output; }

/* --------------------------------------------------------------------------------------------------------- the list */

static const mutation mutations[] = {
    {"sign", "distance j - i instead of i - j", sign},
    {"bucket_shift", "table row off by one", bucket_shift},
    {"bucket_floor", "floor instead of ceil in the logarithmic bucket", bucket_floor},
    {"no_clamp", "rows outside the table wrap around instead of being clamped", no_clamp},
    {"p2c_ji", "p2c reads the row of (j, i), as the paper prints it", p2c_ji},
    {"p2c_constant", "p2c without positions: every distance reads the row of distance 0", p2c_constant},
    {"drop_c2p", "the c2p term is left out", drop_c2p},
    {"drop_p2c", "the p2c term is left out", drop_p2c},
    {"scale_plain", "scale sqrt(d) instead of sqrt(d (1 + terms))", scale_plain},
    {"key_bias_dropped", "key_proj.bias is ignored, which p2c does see", key_bias_dropped},
    {"position_bias_dropped", "biases of the position projections are ignored", position_bias_dropped},
    {"inproj_blocks", "v1's in_proj read as blocks q, k, v instead of interleaved heads", inproj_blocks},
    {"no_relative_norm", "the relative table is not normalised", no_relative_norm},
    {"gelu_tanh", "tanh approximation of gelu", gelu_tanh},
    {"epsilon", "layer_norm_eps 1e-12 instead of the configured one (1e-7 where that is 1e-12)", epsilon},
    {"no_token_types", "token type embeddings are left out", no_token_types},
    {"no_absolute_positions", "absolute position embeddings are left out", no_absolute_positions},
    {"convolution_source", "the convolution reads the output of layer 0 instead of its input", convolution_source},
    {NULL, NULL, NULL},
};

static void unsmoothed(deberta_model *model) { model->unsmoothed = true; }

const mutation mutation_unsmoothed = {"unsmoothed", "low precision with large channels as they are", unsmoothed};

const mutation *mutation_list(void) { return mutations; }

const mutation *mutation_find(const char *name)
{
    for (const mutation *m = mutations; m->name; m++)
        if (strcmp(m->name, name) == 0) return m;
    return NULL;
}

deberta_status model_open_mutated(deberta_model **model, const char *path, const deberta_model_options *options,
                                  const mutation *fault, deberta_error *err)
{
    const model_internal_options internal = {.decorate = fault ? fault->apply : NULL};
    return model_open_internal(model, path, options, &internal, err);
}
