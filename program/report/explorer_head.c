/* Computes a page's numbers of one head before its cells are packed. SPDX-License-Identifier: MIT */
#include "program/report/explorer_cells.h"

#include <math.h>

#include "analysis/attention_habits.h"
#include "analysis/attention_statistics.h"
#include "analysis/attention_terms.h"

/* Returns a JSON number, or null for NaN and infinity: logits that do not vary have no shares. */
static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *numbers(const double *values, size_t count)
{
    json_t *list = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(list, number(values[k]));
    return list;
}

static void describe_effects(size_t tokens, float *const matrices[DEBERTA_COMPONENT_COUNT], json_t *about)
{
    const logit_terms terms = {.term = {matrices[DEBERTA_C2C], matrices[DEBERTA_C2P], matrices[DEBERTA_P2C]},
                               .tokens = tokens};
    const attention_summary summary = attention_summarize(matrices[DEBERTA_PROBABILITIES], tokens, NULL, NULL);
    attention_term_effects effects;
    attention_term_effects_measure(&effects, &terms);
    json_object_set_new(about, "share", numbers(effects.variance_share, ATTENTION_TERMS));
    json_object_set_new(about, "shapley", numbers(effects.shapley, ATTENTION_TERMS));
    json_object_set_new(about, "entropy", number(summary.entropy));
    json_object_set_new(about, "distance", number(summary.distance));
}

static void describe_habits(size_t tokens, const float *probabilities, const unsigned char *special, json_t *about)
{
    const attention_habits h = attention_habits_measure(probabilities, tokens, special);
    json_object_set_new(about, "habits",
                        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "left", number(h.left), "right", number(h.right),
                                  "itself", number(h.itself), "first", number(h.first), "last", number(h.last), "word",
                                  number(h.word)));
}

static void describe_scales(const cell_scales *scales, json_t *about)
{
    json_object_set_new(about, "scale", numbers(scales->scale, DEBERTA_COMPONENT_COUNT));
    json_object_set_new(about, "range", numbers(scales->range, DEBERTA_COMPONENT_COUNT));
    json_object_set_new(about, "centred", number(scales->largest_centred));
    json_object_set_new(about, "plain", number(scales->largest_plain));
    json_object_set_new(about, "not_finite", json_integer((json_int_t)scales->not_finite));
}

void explorer_head_pack(const cell_layout *layout, float *const matrices[DEBERTA_COMPONENT_COUNT],
                        const unsigned char *special, uint8_t *bytes, json_t *about)
{
    cell_scales scales;
    describe_effects(layout->n, matrices, about);
    describe_habits(layout->n, matrices[DEBERTA_PROBABILITIES], special, about);
    cells_pack(layout, matrices, bytes, &scales);
    describe_scales(&scales, about);
}
