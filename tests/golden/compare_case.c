/* Each quantity of a case is compared with its expected tensor, its bar and its checksum.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/golden/compare_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double bar_factor = 3, bar_floor = 2e-6;

void fail_case(tally *sum, const settings *s, const char *name, const char *text)
{
    if (!s->silent) printf("FAIL %-32s %s\n", name, text);
    sum->failed++;
}

/* bar: a member of the case's bars. */
static void judge(comparison *c, const char *quantity, double error, const double *bar_of)
{
    tally *sum = c->tally;
    const double listed = *bar_of;
    double bar = fmax(isnan(listed) ? 0 : bar_factor * listed, bar_floor), ratio = error / bar;
    bool good = ratio <= 1; /* NaN is not */
    if (!c->settings->silent && (!good || !c->settings->failures_only))
        printf("%-4s %-32s %-7s %-9s %-16s error %.2e  bar %.2e  ratio %.2f\n", good ? "ok" : "FAIL", c->item->name,
               deberta_isa_name(c->isa), c->prefix, quantity, error, bar, ratio);
    if (!(ratio <= sum->worst[c->isa])) {
        sum->worst[c->isa] = ratio;
        snprintf(sum->worst_where[c->isa], sizeof *sum->worst_where, "%s %s", c->item->name, quantity);
    }
    good ? sum->passed++ : sum->failed++;
    /* The sum of the components has no bar of its own. */
    if (c->is_pytorchs && strcmp(quantity, "logits") != 0 &&
        !pytorch_ratios_add(&sum->ratios[c->isa], c->item->name, (size_t)(bar_of - &c->item->bars.hidden), listed,
                            error))
        fail_case(sum, c->settings, c->item->name, "more results than PYTORCH_RATIOS_MOST");
}

/* The larger of a and b; NaN if either is. */
static double larger(double a, double b) { return a >= b ? a : a < b ? b : NAN; }

/* ----------------------------------------------------------------------------------------------------------- errors */

static const file_tensor *expect(const comparison *c, const char *name, size_t layer, const char *rest)
{
    return tensor_file_find(&c->item->expected, "%s%s.%zu%s", c->prefix, name, layer, rest);
}

static void compare_hidden(comparison *c)
{
    size_t h = c->result.info.hidden_size, N = c->item->columns;
    double worst = 0, observed_twice = 0;
    size_t compared = 0;
    for (size_t l = 0; l <= c->result.info.layers; l++) {
        const file_tensor *expected = expect(c, "hidden_states", l, "");
        for (size_t s = 0; expected && s < c->batch.sequences; s++) {
            for (size_t t = c->batch.starts[s]; t < c->batch.starts[s + 1]; t++) {
                if (!c->batch.mask[t]) continue;
                size_t column = c->batch.first_column[s] + t - c->batch.starts[s];
                const float *found = c->result.hidden + (l * c->result.tokens + t) * h;
                for (size_t e = 0; e < h; e++)
                    worst = larger(worst, fabs(found[e] - expected->values[(s * N + column) * h + e]));
            }
        }
        compared += expected != NULL;
    }
    for (size_t e = 0; e < c->result.tokens * h; e++) {
        const float *last = c->result.hidden + c->result.info.layers * c->result.tokens * h;
        observed_twice = larger(observed_twice, fabs((double)last[e] - (double)c->result.last_observed[e]));
    }
    judge(c, "hidden", compared ? worst : NAN, &c->item->bars.hidden);
    if (c->result.bad_block || observed_twice != 0)
        fail_case(c->tally, c->settings, c->item->name, "the observer was handed blocks that do not fit the batch");
}

static const char *const component_names[] = {".c2c", ".c2p", ".p2c", ".logits", ".probs"};

/* The expected [heads][N] of one query at a stride between heads, NULL if there is none. */
typedef struct expected_row {
    const double *values;
    size_t heads, head_stride;
} expected_row;

static expected_row find_row(const comparison *c, size_t layer, const char *component, size_t sequence, size_t column)
{
    size_t A = c->result.info.heads, N = c->item->columns;
    char rest[32];
    const file_tensor *found = expect(c, "attn", layer, component);
    if (found) return (expected_row){found->values + (sequence * A * N + column) * N, A, N * N};
    snprintf(rest, sizeof rest, "%s.head0", component);
    if ((found = expect(c, "attn", layer, rest)))
        return (expected_row){found->values + (sequence * N + column) * N, 1, N * N};
    snprintf(rest, sizeof rest, "%s.rows", component);
    const file_tensor *rows = tensor_file_find(&c->item->expected, "probs_rows");
    found = expect(c, "attn", layer, rest);
    for (size_t k = 0; found && rows && k < rows->elements; k++) {
        size_t R = rows->elements;
        if ((size_t)rows->values[k] == column)
            return (expected_row){found->values + (sequence * A * R + k) * N, A, R * N};
    }
    return (expected_row){0};
}

/* Rows of the terms that make up a component: itself, or for logits, which have no tensor of their own, all there are.
 */
static size_t find_terms(const comparison *c, size_t layer, deberta_component component, size_t sequence, size_t column,
                         expected_row terms[3])
{
    bool sum = component == DEBERTA_LOGITS;
    size_t first = sum ? DEBERTA_C2C : component, last = sum ? DEBERTA_P2C : component, count = 0;
    for (size_t part = first; part <= last; part++) {
        terms[count] = find_row(c, layer, component_names[part], sequence, column);
        if (terms[count].values) count++;
    }
    return count;
}

/* Largest error in one sequence, one layer; queries and keys that are real, and for probabilities 0 at holes too. */
static double compare_matrix(const comparison *c, size_t layer, deberta_component component, size_t s)
{
    size_t n = c->batch.starts[s + 1] - c->batch.starts[s], first = c->batch.first_column[s];
    const uint8_t *mask = c->batch.mask + c->batch.starts[s];
    const float *found = collected_attention(&c->result, layer, component, s);
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        expected_row terms[3];
        size_t count = mask[i] ? find_terms(c, layer, component, s, first + i, terms) : 0;
        if (count > 0 && !found) return NAN;
        for (size_t a = 0; count > 0 && a < terms[0].heads; a++) {
            for (size_t j = 0; j < n; j++) {
                if (!mask[j] && component != DEBERTA_PROBABILITIES) continue;
                double value = 0;
                for (size_t part = 0; part < count; part++)
                    value += terms[part].values[a * terms[part].head_stride + first + j];
                worst = larger(worst, fabs(found[(a * n + i) * n + j] - value));
            }
        }
    }
    return worst;
}

static bool has_expected(const comparison *c, size_t layer, deberta_component component)
{
    static const char *const parts[] = {"", ".head0", ".rows"};
    const char *name = component_names[component == DEBERTA_LOGITS ? DEBERTA_C2C : component];
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        char rest[32];
        snprintf(rest, sizeof rest, "%s%s", name, parts[k]);
        if (expect(c, "attn", layer, rest)) return true;
    }
    return false;
}

static void compare_attention(comparison *c)
{
    for (size_t component = 0; component < DEBERTA_COMPONENT_COUNT; component++) {
        double worst = 0;
        bool compared = false;
        for (size_t l = 0; l < c->result.info.layers; l++) {
            if (!has_expected(c, l, (deberta_component)component)) continue;
            for (size_t s = 0; s < c->batch.sequences; s++)
                worst = larger(worst, compare_matrix(c, l, (deberta_component)component, s));
            compared = true;
        }
        bool probabilities = component == DEBERTA_PROBABILITIES;
        if (compared)
            judge(c, component_names[component] + 1, worst,
                  probabilities ? &c->item->bars.probabilities : &c->item->bars.components);
    }
}

static const double *head_bar(const golden_bars *bars, deberta_task head)
{
    return head == DEBERTA_TASK_MLM_EMD ? &bars->emd : head == DEBERTA_TASK_RTD ? &bars->rtd : &bars->logits;
}

static void compare_heads(comparison *c)
{
    for (size_t head = 0; head < DEBERTA_TASK_COUNT; head++) {
        char name[32];
        snprintf(name, sizeof name, "logits.%s", deberta_task_name((deberta_task)head));
        const file_tensor *expected = tensor_file_find(&c->item->expected, "%s%s", c->prefix, name);
        if (!expected) continue;
        bool per_sequence = head == DEBERTA_TASK_SEQUENCE;
        size_t width = expected->elements / (c->item->rows * (per_sequence ? 1 : c->item->columns));
        double worst = c->result.logits[head] && c->result.width[head] == width ? 0 : NAN;
        for (size_t s = 0; s < c->batch.sequences && !isnan(worst); s++) {
            size_t begin = per_sequence ? s : c->batch.starts[s], end = per_sequence ? s + 1 : c->batch.starts[s + 1];
            for (size_t t = begin; t < end; t++) {
                if (!per_sequence && !c->batch.mask[t]) continue;
                size_t row = per_sequence ? s : s * c->item->columns + c->batch.first_column[s] + t - begin;
                for (size_t w = 0; w < width; w++)
                    worst =
                        larger(worst, fabs(c->result.logits[head][t * width + w] - expected->values[row * width + w]));
            }
        }
        judge(c, name, worst, head_bar(&c->item->bars, (deberta_task)head));
    }
}

/* ------------------------------------------------------------------------------------------------------------- bits */

/* In this order: hidden states, components, tasks. */
enum { BITS_QUANTITIES = 1 + DEBERTA_COMPONENT_COUNT + DEBERTA_TASK_COUNT };

static word_sum sum_of_quantity(const comparison *c, size_t which, size_t damaged)
{
    word_sum sum = word_sum_begin(damaged);
    if (which == 0)
        word_sum_hidden(&sum, &c->result, &c->batch);
    else if (which <= DEBERTA_COMPONENT_COUNT)
        word_sum_component(&sum, &c->result, &c->batch, (deberta_component)(which - 1));
    else
        word_sum_task(&sum, &c->result, &c->batch, (deberta_task)(which - 1 - DEBERTA_COMPONENT_COUNT));
    return sum;
}

static void name_quantity(const comparison *c, size_t which, char name[32])
{
    const bool low = c->precision != DEBERTA_PRECISION_FLOAT32;
    char prefix[24];
    snprintf(prefix, sizeof prefix, "%s%s%s", low ? deberta_precision_name(c->precision) : "", low ? "." : "",
             c->prefix);
    if (which == 0)
        snprintf(name, 32, "%shidden", prefix);
    else if (which <= DEBERTA_COMPONENT_COUNT)
        snprintf(name, 32, "%s%s", prefix, component_names[which - 1] + 1);
    else
        snprintf(name, 32, "%slogits.%s", prefix,
                 deberta_task_name((deberta_task)(which - 1 - DEBERTA_COMPONENT_COUNT)));
}

/* The first tier says what the file will hold, the others must agree. */
static bool take_bits(comparison *c, const char *quantity, uint64_t sum)
{
    bits_line *line = bits_file_find(c->settings->frozen, c->item->name, quantity);
    if (!line) line = bits_file_add(c->settings->frozen, c->item->name, quantity);
    if (!line) return false;
    if (!line->seen) line->sum = sum;
    line->seen = true;
    return line->sum == sum;
}

static void judge_bits(comparison *c, const char *quantity, uint64_t sum)
{
    bits_line *line = bits_file_find(c->settings->frozen, c->item->name, quantity);
    const bool frozen = line && line->sum == sum, damaged = c->settings->bits == BITS_DAMAGED;
    const bool good = c->settings->bits == BITS_TAKEN ? take_bits(c, quantity, sum) : line && frozen != damaged;
    if (line) line->seen = true;
    good ? c->tally->passed++ : c->tally->failed++;
    if (good && c->settings->failures_only) return;
    printf("%-4s %-32s %-7s %-16s bits %016llx", good ? "ok" : "FAIL", c->item->name, deberta_isa_name(c->isa),
           quantity, (unsigned long long)sum);
    if (!line)
        printf(c->settings->bits == BITS_TAKEN ? ", new" : ", no line in bits.tsv: --update-bits writes it");
    else if (!good)
        printf(damaged ? ", a flipped bit was not noticed" : ", expected %016llx", (unsigned long long)line->sum);
    printf("\n");
}

static void compare_bits(comparison *c)
{
    for (size_t which = 0; which < BITS_QUANTITIES; which++) {
        char quantity[32];
        const bool component = which >= 1 && which <= DEBERTA_COMPONENT_COUNT;
        if (component && c->precision != DEBERTA_PRECISION_FLOAT32) continue;
        name_quantity(c, which, quantity);
        word_sum sum = sum_of_quantity(c, which, 0);
        if (sum.words == 0) continue; /* the model has no such component or task */
        /* the last word: everything before it has gone through the sum by then */
        if (c->settings->bits == BITS_DAMAGED) sum = sum_of_quantity(c, which, sum.words);
        judge_bits(c, quantity, sum.sum);
    }
}

/* ---------------------------------------------------------------------------------------------------- low precision */

/* Of the last hidden states, |found - expected| over |expected| as 2-norms: what the worst of the cases has, doubled. A
 * layer of the wrong weights gives 1. A case that magnifies every error, as its bar for float32 shows, has as much more
 * here. */
static const double low_bars[DEBERTA_PRECISION_COUNT] = {
    [DEBERTA_PRECISION_INT16] = 5e-4, [DEBERTA_PRECISION_INT8] = 5e-2};

static void compare_low_precision(comparison *c)
{
    const size_t h = c->result.info.hidden_size, last = c->result.info.layers;
    const file_tensor *expected = expect(c, "hidden_states", last, "");
    double difference = 0, size = 0;
    for (size_t s = 0; expected && s < c->batch.sequences; s++) {
        for (size_t t = c->batch.starts[s]; t < c->batch.starts[s + 1]; t++) {
            if (!c->batch.mask[t]) continue;
            const size_t column = c->batch.first_column[s] + t - c->batch.starts[s];
            const double *want = expected->values + (s * c->item->columns + column) * h;
            for (size_t e = 0; e < h; e++) {
                const double d = c->result.hidden[(last * c->result.tokens + t) * h + e] - want[e];
                difference += d * d;
                size += want[e] * want[e];
            }
        }
    }
    const double error = expected ? sqrt(difference / size) : 0;
    const double usual = 7e-6, bar = low_bars[c->precision] * fmax(1, c->item->bars.hidden / usual);
    const bool good = error <= bar;
    good ? c->tally->passed++ : c->tally->failed++;
    if (!good || !c->settings->failures_only)
        printf("%-4s %-32s %-7s %-9s %-16s relative error %.2e  bar %.0e\n", good ? "ok" : "FAIL", c->item->name,
               deberta_isa_name(c->isa), c->prefix, deberta_precision_name(c->precision), error, bar);
}

void compare_case(comparison *c)
{
    if (c->settings->bits != BITS_IGNORED) compare_bits(c);
    if (c->settings->bits == BITS_DAMAGED) return;
    if (c->precision != DEBERTA_PRECISION_FLOAT32) {
        compare_low_precision(c);
        return;
    }
    compare_hidden(c);
    compare_attention(c);
    if (!*c->prefix) compare_heads(c);
}
