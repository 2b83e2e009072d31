/* Writes findings as sentences and tables, and as members for JSON. SPDX-License-Identifier: MIT */
#include "program/receptive_field/receptive_field_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/json_text.h"

void field_findings_free(field_findings *findings)
{
    scope_free(&findings->field.memory);
    scope_free(&findings->paired.memory);
    scope_free(&findings->behaviour.memory);
    scope_free(&findings->influence.memory);
    free(findings->composed);
    findings->composed = NULL;
}

static const composed_field *of_all_layers(const field_findings *f) { return &f->composed[f->layers - 1]; }

/* ----------------------------------------------------------------------------------------------------------- JSON */

static json_t *json_size(size_t value) { return json_integer((json_int_t)value); }

static json_t *describe_config(const field_findings *f)
{
    const deberta_model_info *c = &f->info;
    json_t *terms = json_array();
    if (c->has_c2p) json_array_append_new(terms, json_string("c2p"));
    if (c->has_p2c) json_array_append_new(terms, json_string("p2c"));
    return json_pack("{s:o, s:i, s:I, s:I, s:I, s:o, s:s, s:b, s:I}", "model", json_clean_text(f->info.name), "version",
                     c->version, "layers", (json_int_t)c->layers, "max_relative_positions",
                     (json_int_t)c->max_relative_positions, "position_buckets", (json_int_t)c->position_buckets,
                     "position_terms", terms, "reference", f->reference == DEBERTA_REFERENCE_HF ? "hf" : "microsoft",
                     "position_biased_input", c->position_biased_input, "max_position_embeddings",
                     (json_int_t)c->max_positions);
}

/* Describes a row; null ends mean that it serves all distances beyond. */
static json_t *describe_row(const field_row *row, bool endless_low, bool endless_high)
{
    return json_pack("{s:I, s:o, s:o, s:o}", "row", (json_int_t)row->row, "lowest",
                     endless_low ? json_null() : json_integer(row->lowest), "highest",
                     endless_high ? json_null() : json_integer(row->highest), "count",
                     row->count == SIZE_MAX ? json_null() : json_size(row->count));
}

static bool endless(const field_findings *f, size_t index, bool low)
{
    return f->length == 0 && index == (low ? 0 : f->field.slots_used - 1);
}

static json_t *describe_rows(const field_findings *f, bool only_shared)
{
    json_t *list = json_array();
    for (size_t k = 0; k < f->field.slots_used; k++) {
        const field_row *row = &f->field.rows[k];
        if (only_shared && row->count == 1) continue;
        json_array_append_new(list, describe_row(row, endless(f, k, true), endless(f, k, false)));
    }
    return list;
}

/* Returns the end of the run of neighbours that begins at unique[k]. */
static size_t end_of_interval(const receptive_field *field, size_t k)
{
    while (k + 1 < field->unique_count && field->unique[k + 1] == field->unique[k] + 1) k++;
    return k;
}

static json_t *describe_unique(const receptive_field *field)
{
    json_t *intervals = json_array();
    for (size_t k = 0, end; k < field->unique_count; k = end + 1) {
        end = end_of_interval(field, k);
        json_array_append_new(intervals,
                              json_pack("[I, I]", (json_int_t)field->unique[k], (json_int_t)field->unique[end]));
    }
    json_t *object = json_pack("{s:I, s:o}", "count", (json_int_t)field->unique_count, "intervals", intervals);
    json_object_set_new(object, "min", field->unique_count ? json_integer(field->unique_min) : json_null());
    json_object_set_new(object, "max", field->unique_count ? json_integer(field->unique_max) : json_null());
    return object;
}

static json_t *describe_run(const receptive_field *field)
{
    return json_pack("{s:I, s:I, s:I}", "left", (json_int_t)field->run_left, "right", (json_int_t)field->run_right,
                     "width", (json_int_t)(field->run_left + field->run_right + 1));
}

static json_t *describe_composed(const composed_field *composed)
{
    json_t *object = json_object();
    for (int d = 0; d < FIELD_DEFINITIONS; d++)
        json_object_set_new(object, field_definition_name((field_definition)d),
                            json_size(composed_field_value(composed, (field_definition)d)));
    return object;
}

static ptrdiff_t formula_excess(const field_findings *f, field_formula formula, field_definition definition)
{
    return (ptrdiff_t)field_formula_value(formula, f->field.rule.span, f->layers) -
           (ptrdiff_t)composed_field_value(of_all_layers(f), definition);
}

static json_t *describe_verdict(const field_findings *f, field_formula formula)
{
    json_t *equals = json_array(), *verdict = json_pack("{s:o}", "equals", equals);
    for (int d = 0; d < FIELD_DEFINITIONS; d++) {
        const char *name = field_definition_name((field_definition)d);
        const ptrdiff_t excess = formula_excess(f, formula, (field_definition)d);
        char member[32];
        snprintf(member, sizeof member, "over_%s_by", name);
        json_object_set_new(verdict, member, json_integer(excess));
        if (excess == 0) json_array_append_new(equals, json_string(name));
    }
    return verdict;
}

static json_t *describe_behaviour(const behaviour_report *report)
{
    json_t *object = json_object();
    for (size_t k = 0; k < report->count; k++) {
        const behaviour_test *test = &report->tests[k];
        json_t *entry = json_pack("{s:o}", "pass", test->skipped ? json_null() : json_boolean(test->passed));
        if (test->skipped) json_object_set_new(entry, "skipped", json_string(test->skipped));
        for (size_t number = 0; number < test->number_count; number++) {
            const double value = test->numbers[number].value;
            const bool whole = value == (double)(json_int_t)value;
            json_object_set_new(entry, test->numbers[number].name,
                                whole ? json_integer((json_int_t)value) : json_real(value));
        }
        json_object_set_new(object, test->name, entry);
    }
    return object;
}

/* Returns true if a bin of distances lies inside the run of keys of one layer, composed over so many layers. */
static bool bin_is_inside_run(const field_findings *f, const influence_bin *bin, size_t layers)
{
    return bin->to <= (ptrdiff_t)(f->field.run_left * layers) && -bin->from <= (ptrdiff_t)(f->field.run_right * layers);
}

static json_t *describe_influence_layer(const field_findings *f, size_t index)
{
    const influence_layer *layer = &f->influence.layer[index];
    json_t *bins = json_array();
    for (size_t k = 0; k < layer->bin_count; k++) {
        const influence_bin *bin = &layer->bins[k];
        json_array_append_new(bins, json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b}", "from", (json_int_t)bin->from,
                                              "to", (json_int_t)bin->to, "count", (json_int_t)bin->count, "mean",
                                              bin->mean, "q10", bin->q10, "median", bin->median, "q90", bin->q90,
                                              "inside_run", bin_is_inside_run(f, bin, index + 1)));
    }
    return json_pack("{s:I, s:I, s:b, s:f, s:f, s:o}", "layers", (json_int_t)(index + 1), "radius95",
                     (json_int_t)layer->radius95, "bounded", layer->bounded, "self", layer->self, "noise_floor",
                     layer->noise_floor, "bins", bins);
}

static json_t *describe_influence(const field_findings *f)
{
    const influence_report *influence = &f->influence;
    json_t *layers = json_array(), *steps = json_array();
    for (size_t k = 0; k + 1 < INFLUENCE_STEPS; k++)
        json_array_append_new(
            steps, json_pack("{s:f, s:f}", "step", influence->steps[k], "disagreement", influence->disagreement[k]));
    for (size_t l = 0; l < influence->layers; l++) json_array_append_new(layers, describe_influence_layer(f, l));
    json_t *check = influence->checked
                        ? json_pack("{s:I, s:f, s:f}", "values", (json_int_t)influence->float64_values, "median_error",
                                    influence->float64_median, "worst_error", influence->float64_worst)
                        : json_null();
    return json_pack("{s:I, s:I, s:f, s:o, s:o, s:o}", "tokens", (json_int_t)influence->tokens, "sources",
                     (json_int_t)influence->sources, "step", influence->step, "sweep", steps, "float64", check,
                     "per_layer", layers);
}

static void receptive_field_output_describe(const field_findings *f, result *r)
{
    static const char meaning[] =
        "attention is global at every layer; the numbers bound unambiguous relative position, "
        "not reach. r = i - j; r > 0 is a key to the left of the query";
    json_t *formulas = json_object(), *verdicts = json_object();
    for (field_formula k = 0; k < FIELD_FORMULAS; k++) {
        const char *name = field_formula_name(k);
        json_object_set_new(formulas, name, json_size(field_formula_value(k, f->field.rule.span, f->layers)));
        json_object_set_new(verdicts, name, describe_verdict(f, k));
    }
    result_set(r, "meaning", json_string(meaning));
    result_set(r, "config", describe_config(f));
    result_set(r, "k", json_size(f->field.rule.span));
    result_set(r, "layers", json_size(f->layers));
    result_set(r, "length", f->length ? json_size(f->length) : json_null());
    result_set(r, "slots_used", json_size(f->field.slots_used));
    result_set(r, "unique_distances", describe_unique(&f->field));
    result_set(r, "contiguous_unique", describe_run(&f->field));
    result_set(r, "aliases", describe_rows(f, true));
    result_set(r, "composed", describe_composed(of_all_layers(f)));
    result_set(r, "formulas", formulas);
    result_set(r, "verdicts", f->length ? json_null() : verdicts);
    if (f->length) json_decref(verdicts);
    result_set(r, "paper_pairs",
               json_pack("{s:o, s:o}", "unique_distances", describe_unique(&f->paired), "contiguous_unique",
                         describe_run(&f->paired)));
    result_set(r, "longest_unambiguous_text", json_size(f->longest));
    if (f->has_behaviour) result_set(r, "behaviour", describe_behaviour(&f->behaviour));
    if (f->has_influence) result_set(r, "influence", describe_influence(f));
    if (f->all_rows) result_set(r, "rows", describe_rows(f, false));
}

/* ----------------------------------------------------------------------------------------------------------- text */

static void say_head(const field_findings *f, result *r)
{
    result_say(r, "receptive field of %s", f->info.name);
    result_say(r, "K = %zu, %s, %zu layers, distances as %s computes them", f->field.rule.span,
               f->info.position_buckets ? "logarithmic buckets" : "one row a distance", f->layers,
               f->reference == DEBERTA_REFERENCE_HF ? "transformers" : "Microsoft");
    if (f->length) result_say_more(r, ", texts of %zu tokens", f->length);
    result_say(
        r,
        "\nAttention is global at every layer: every token sees every other. What is bounded is the range in which a\n"
        "relative position is unambiguous: distances whose table row no other distance shares. These numbers count\n"
        "that, not reach. r = i - j, query minus key: r > 0 is a key to the left.");
}

static void say_row(const field_findings *f, size_t index, result *r)
{
    const field_row *row = &f->field.rows[index];
    char low[24] = "...", high[24] = "...", count[24] = "without end";
    if (!endless(f, index, true)) snprintf(low, sizeof low, "%td", row->lowest);
    if (!endless(f, index, false)) snprintf(high, sizeof high, "%td", row->highest);
    if (row->count != SIZE_MAX) snprintf(count, sizeof count, "%zu", row->count);
    if (row->count == 1)
        result_say(r, "  %6zu  %8td", row->row, row->lowest);
    else
        result_say(r, "  %6zu  %8s  to %8s  (%s)", row->row, low, high, count);
}

/* Reports all aliases, or the few at both ends of the table. */
static void say_aliases(const field_findings *f, result *r)
{
    enum { SHOWN = 4 };
    size_t shared = 0, seen = 0;
    for (size_t k = 0; k < f->field.slots_used; k++) shared += f->field.rows[k].count > 1;
    if (f->all_rows) {
        result_say(r, "\nrows of the table   r");
        for (size_t k = 0; k < f->field.slots_used; k++) say_row(f, k, r);
        return;
    }
    if (!shared) {
        result_say(r, "  shared rows           none");
        return;
    }
    result_say(r, "\nrows that several distances share: %zu%s", shared,
               shared > 2 * SHOWN ? " (--rows lists all)" : "");
    for (size_t k = 0; k < f->field.slots_used; k++) {
        if (f->field.rows[k].count == 1) continue;
        if (shared <= 2 * SHOWN || seen < SHOWN || seen >= shared - SHOWN) say_row(f, k, r);
        if (shared > 2 * SHOWN && seen == SHOWN) result_say(r, "     ...");
        seen++;
    }
}

static void say_layer(const field_findings *f, result *r)
{
    const receptive_field *field = &f->field;
    result_say(r, "\none layer");
    result_say(r, "  rows in use           %zu of %zu", field->slots_used, 2 * field->rule.span);
    result_say(r, "  unique distances      %zu", field->unique_count);
    if (field->unique_count) result_say_more(r, ", r = %td to %td", field->unique_min, field->unique_max);
    result_say(r, "  run around 0          %zu keys to the left and %zu to the right, %zu with the token itself",
               field->run_left, field->run_right, field->run_left + field->run_right + 1);
    result_say(r,
               "  pairs (paper's p2c)   %zu unique, %zu keys to the left and %zu to the right: (row(r), row(-r)); both "
               "implementations read row(r) only",
               f->paired.unique_count, f->paired.run_left, f->paired.run_right);
    result_say(r, "  unambiguous texts     up to %zu tokens: every distance in them has a row of its own", f->longest);
    say_aliases(f, r);
}

/* Adds a line for tokens at both ends of the text and around its middle. */
static void add_tokens(const field_findings *f, result *r)
{
    static const result_column columns[] = {
        {"position", "token", COLUMN_INTEGER, NULL, 0},
        {"unambiguous", "keys at a row that is unique in the text", COLUMN_INTEGER, NULL, 0},
        {"among_own", "... among this token's keys", COLUMN_INTEGER, NULL, 0},
        {.name = NULL}};
    const size_t last = f->length - 1,
                 places[] = {0, f->length / 4, f->length / 2 - (f->length > 1), f->length / 2, last};
    size_t first = 0;
    const size_t count = receptive_field_seeing_tokens(&f->field, &first);
    json_t *all = count ? json_pack("{s:I, s:I, s:I}", "first", (json_int_t)first, "last",
                                    (json_int_t)(first + count - 1), "count", (json_int_t)count)
                        : json_null();
    result_set(r, "per_token", json_pack("{s:o}", "sees_every_key_uniquely", all));
    result_say(r, "\nby token, in a text of %zu", f->length);
    result_table *table = result_add_table(r, "per_token.positions", NULL, columns);
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        size_t unambiguous, own;
        if (k > 0 && places[k] <= places[k - 1]) continue;
        receptive_field_of_token(&f->field, places[k], &unambiguous, &own);
        cell_integer(table, (int64_t)places[k]);
        cell_integer(table, (int64_t)unambiguous);
        cell_integer(table, (int64_t)own);
    }
    if (count == 0)
        result_say(r, "no token sees every key at a row of its own");
    else if (count == 1)
        result_say(r, "token %zu alone sees every key at a row of its own", first);
    else
        result_say(r, "tokens %zu to %zu see every key at a row of its own", first, first + count - 1);
}

static void add_composition(const field_findings *f, result *r)
{
    static const result_column columns[] = {{"layers", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"run", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"unique_set", "unique set", COLUMN_INTEGER, NULL, 0},
                                            {"contiguous", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"hull", NULL, COLUMN_INTEGER, NULL, 0},
                                            {.name = NULL}};
    result_say(r, "\nover layers: displacements that are sums of one unambiguous distance a layer\n"
                  "  run          sums of distances of the run around 0\n"
                  "  unique set   sums of any unique distances\n"
                  "  contiguous   those of them around 0 without a gap\n"
                  "  hull         from the smallest to the largest of them");
    result_table *table = result_add_table(r, "per_layer", NULL, columns);
    for (size_t n = 1; n <= f->layers; n++) {
        cell_integer(table, (int64_t)n);
        for (field_definition d = 0; d < FIELD_DEFINITIONS; d++)
            cell_integer(table, (int64_t)composed_field_value(&f->composed[n - 1], d));
    }
}

static void add_formulas(const field_findings *f, result *r)
{
    static const result_column columns[] = {{"formula", NULL, COLUMN_TEXT, NULL, 0},
                                            {"value", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"run", NULL, COLUMN_INTEGER, "%+" PRId64, 0},
                                            {"unique set", NULL, COLUMN_INTEGER, "%+" PRId64, 0},
                                            {"contiguous", NULL, COLUMN_INTEGER, "%+" PRId64, 0},
                                            {"hull", NULL, COLUMN_INTEGER, "%+" PRId64, 0},
                                            {.name = NULL}};
    if (f->length) {
        result_say(
            r,
            "a text of %zu tokens has at most %zu displacements, whatever the number of layers: the quoted formulas "
            "are of texts\nof any length, and are compared without -n",
            f->length, 2 * f->length - 1);
        return;
    }
    result_say(r, "quoted formulas for k = %zu and n = %zu, and by how much they are over or under each definition",
               f->field.rule.span, f->layers);
    result_table *table = result_add_table(r, NULL, NULL, columns);
    for (field_formula k = 0; k < FIELD_FORMULAS; k++) {
        cell_text(table, "%s", field_formula_name(k));
        cell_integer(table, (int64_t)field_formula_value(k, f->field.rule.span, f->layers));
        for (field_definition d = 0; d < FIELD_DEFINITIONS; d++) {
            const ptrdiff_t excess = formula_excess(f, k, d);
            if (excess)
                cell_integer(table, excess);
            else
                cell_text(table, "equal");
        }
    }
}

static void say_behaviour(const behaviour_report *report, result *r)
{
    size_t skipped = 0;
    result_say(r, "behaviour on the model's weights (changes in eps = 2^-23 times the largest value of the output)");
    for (size_t k = 0; k < report->count; k++) {
        const behaviour_test *test = &report->tests[k];
        skipped += test->skipped != NULL;
        result_say(r, "  %-7s %-36s", test->skipped ? "skipped" : test->passed ? "passed" : "FAILED", test->name);
        for (size_t number = 0; number < test->number_count; number++) {
            if (strcmp(test->numbers[number].name, "layers") == 0) continue;
            result_say_more(r, "  %s %.4g", test->numbers[number].name, test->numbers[number].value);
        }
        result_say_more(r, "%s%s", test->skipped ? "  " : "", test->skipped ? test->skipped : "");
    }
    result_say(r, "  %zu passed, %zu failed, %zu skipped", report->count - report->failures - skipped, report->failures,
               skipped);
}

static void add_influence(const field_findings *f, result *r)
{
    static const result_column columns[] = {
        {"layers", NULL, COLUMN_INTEGER, NULL, 0},      {"on itself", NULL, COLUMN_REAL, "%.4g", 0},
        {"next to it", NULL, COLUMN_REAL, "%.4g", 0},   {"at the run's end", NULL, COLUMN_REAL, "%.4g", 0},
        {"farthest", NULL, COLUMN_REAL, "%.4g", 0},     {"noise floor", NULL, COLUMN_REAL, "%.2g", 0},
        {"95 % within", NULL, COLUMN_INTEGER, NULL, 0}, {.name = NULL}};
    const influence_report *influence = &f->influence;
    result_say(r,
               "\ninfluence |d H[n]_i / d H[0]_j| in a text of %zu tokens, %zu of them moved by %.3g of their length",
               influence->tokens, influence->sources, influence->step);
    result_table *table = result_add_table(r, NULL, NULL, columns);
    size_t unbounded = 0;
    for (size_t l = 0; l < influence->layers; l++) {
        const influence_layer *layer = &influence->layer[l];
        double near = 0, edge = 0;
        for (size_t k = 0; k < layer->bin_count; k++) {
            const influence_bin *bin = &layer->bins[k];
            if (bin->from == 1) near = bin->mean;
            if (bin->from > 0 && bin->from <= (ptrdiff_t)f->field.run_left) edge = bin->mean;
        }
        cell_integer(table, (int64_t)l + 1);
        cell_real(table, layer->self);
        cell_real(table, near);
        cell_real(table, edge);
        cell_real(table, layer->bin_count ? layer->bins[layer->bin_count - 1].mean : 0);
        cell_real(table, layer->noise_floor);
        if (layer->bounded)
            cell_integer(table, (int64_t)layer->radius95);
        else
            cell_text(table, "not bounded");
        unbounded += !layer->bounded;
    }
    if (unbounded)
        result_say(r,
                   "not bounded by this text: its %zu tokens have distances up to %zu, and the radius is beyond half "
                   "of that:\nit follows the length of the text (--influence-tokens)",
                   influence->tokens, influence->tokens - 1);
    if (influence->checked)
        result_say(
            r, "against float64: relative error %.2g in the median, %.2g at worst, of %zu influences above the noise",
            influence->float64_median, influence->float64_worst, influence->float64_values);
}

result *field_findings_result(const field_findings *f)
{
    result *r = result_new("deberta-receptive-field/1");
    receptive_field_output_describe(f, r);
    say_head(f, r);
    say_layer(f, r);
    if (f->length) add_tokens(f, r);
    add_composition(f, r);
    add_formulas(f, r);
    if (f->has_behaviour) say_behaviour(&f->behaviour, r);
    if (f->has_influence) add_influence(f, r);
    return r;
}
