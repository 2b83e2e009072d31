/* SPDX-License-Identifier: MIT */
#include "cli/receptive_field/receptive_field_output.h"

#include <stdlib.h>
#include <string.h>

#include "output/json_text.h"

void field_findings_free(field_findings *findings)
{
    receptive_field_free(&findings->field);
    receptive_field_free(&findings->paired);
    behaviour_report_free(&findings->behaviour);
    influence_report_free(&findings->influence);
    free(findings->composed);
    findings->composed = NULL;
    config_free(&findings->config);
}

static const composed_field *of_all_layers(const field_findings *f) { return &f->composed[f->layers - 1]; }

/* The tokens of a text of `length` tokens that find every key at a row that no other of its keys has: they are
 * neighbours. */
typedef struct seeing_tokens {
    size_t first, count;
} seeing_tokens;

static seeing_tokens tokens_that_see_all(const field_findings *f)
{
    seeing_tokens seeing = {0};
    for (size_t i = 0; i < f->length; i++) {
        size_t unambiguous, own;
        receptive_field_of_token(&f->field, i, &unambiguous, &own);
        if (own != f->length) continue;
        if (!seeing.count++) seeing.first = i;
    }
    return seeing;
}

/* Places in the text that are worth a line: both ends and around the middle. */
enum { SHOWN_TOKENS = 5 };
static size_t shown_token(const field_findings *f, size_t k)
{
    const size_t last = f->length - 1,
                 places[SHOWN_TOKENS] = {0, f->length / 4, f->length / 2 - (f->length > 1), f->length / 2, last};
    return places[k];
}
static bool token_is_new(const field_findings *f, size_t k)
{
    return k == 0 || shown_token(f, k) > shown_token(f, k - 1);
}

/* ----------------------------------------------------------------------------------------------------------- JSON */

static json_t *json_size(size_t value) { return json_integer((json_int_t)value); }

static json_t *describe_config(const field_findings *f)
{
    const model_config *c = &f->config;
    json_t *terms = json_array();
    if (c->c2p) json_array_append_new(terms, json_string("c2p"));
    if (c->p2c) json_array_append_new(terms, json_string("p2c"));
    return json_pack("{s:o, s:i, s:I, s:I, s:I, s:o, s:s, s:b, s:I}", "model", json_clean_text(f->model), "version",
                     c->version, "layers", (json_int_t)c->layers, "max_relative_positions",
                     (json_int_t)c->max_relative_positions, "position_buckets", (json_int_t)c->position_buckets,
                     "position_terms", terms, "reference", f->reference == DEBERTA_REFERENCE_HF ? "hf" : "microsoft",
                     "position_biased_input", c->position_biased_input, "max_position_embeddings",
                     (json_int_t)c->max_positions);
}

/* Null where the row serves all distances beyond. */
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

/* Where a run of neighbours that begins at unique[k] ends. */
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

static json_t *describe_layers(const field_findings *f)
{
    json_t *list = json_array();
    for (size_t n = 1; n <= f->layers; n++) {
        json_t *object = describe_composed(&f->composed[n - 1]);
        json_object_set_new(object, "layers", json_size(n));
        json_array_append_new(list, object);
    }
    return list;
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

static json_t *describe_tokens(const field_findings *f)
{
    json_t *tokens = json_array();
    for (size_t k = 0; k < SHOWN_TOKENS; k++) {
        if (!token_is_new(f, k)) continue;
        size_t unambiguous, own;
        receptive_field_of_token(&f->field, shown_token(f, k), &unambiguous, &own);
        json_array_append_new(tokens, json_pack("{s:I, s:I, s:I}", "position", (json_int_t)shown_token(f, k),
                                                "unambiguous", (json_int_t)unambiguous, "among_own", (json_int_t)own));
    }
    const seeing_tokens seeing = tokens_that_see_all(f);
    json_t *all = seeing.count
                      ? json_pack("{s:I, s:I, s:I}", "first", (json_int_t)seeing.first, "last",
                                  (json_int_t)(seeing.first + seeing.count - 1), "count", (json_int_t)seeing.count)
                      : json_null();
    return json_pack("{s:o, s:o}", "sees_every_key_uniquely", all, "positions", tokens);
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

/* Keys of one layer's run, composed over n of them: what a bin of distances is compared with. */
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
    return json_pack("{s:I, s:I, s:f, s:f, s:o}", "layers", (json_int_t)(index + 1), "radius95",
                     (json_int_t)layer->radius95, "self", layer->self, "noise_floor", layer->noise_floor, "bins", bins);
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

json_t *field_findings_json(const field_findings *f)
{
    json_t *formulas = json_object(), *verdicts = json_object();
    for (int k = 0; k < FIELD_FORMULAS; k++) {
        const char *name = field_formula_name((field_formula)k);
        json_object_set_new(formulas, name,
                            json_size(field_formula_value((field_formula)k, f->field.rule.span, f->layers)));
        json_object_set_new(verdicts, name, describe_verdict(f, (field_formula)k));
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "deberta-receptive-field/1",
        "meaning",
        "attention is global at every layer; the numbers bound unambiguous relative position, not reach. "
        "r = i - j; r > 0 is a key to the left of the query",
        "config", describe_config(f), "k", (json_int_t)f->field.rule.span, "layers", (json_int_t)f->layers, "length",
        f->length ? json_size(f->length) : json_null(), "slots_used", (json_int_t)f->field.slots_used,
        "unique_distances", describe_unique(&f->field), "contiguous_unique", describe_run(&f->field), "aliases",
        describe_rows(f, true), "composed", describe_composed(of_all_layers(f)), "per_layer", describe_layers(f),
        "formulas", formulas, "verdicts", verdicts);
    json_object_set_new(object, "paper_pairs",
                        json_pack("{s:o, s:o}", "unique_distances", describe_unique(&f->paired), "contiguous_unique",
                                  describe_run(&f->paired)));
    json_object_set_new(object, "longest_unambiguous_text", json_size(f->longest));
    if (f->length) json_object_set_new(object, "per_token", describe_tokens(f));
    if (f->has_behaviour) json_object_set_new(object, "behaviour", describe_behaviour(&f->behaviour));
    if (f->has_influence) json_object_set_new(object, "influence", describe_influence(f));
    if (f->all_rows) json_object_set_new(object, "rows", describe_rows(f, false));
    return object;
}

/* ----------------------------------------------------------------------------------------------------------- text */

static void print_head(const field_findings *f, FILE *out)
{
    fprintf(out, "receptive field of %s\n", f->model);
    fprintf(out, "K = %zu, %s, %zu layers, distances as %s computes them", f->field.rule.span,
            f->config.position_buckets ? "logarithmic buckets" : "one row a distance", f->layers,
            f->reference == DEBERTA_REFERENCE_HF ? "transformers" : "Microsoft");
    if (f->length) fprintf(out, ", texts of %zu tokens", f->length);
    fprintf(
        out,
        "\n\nAttention is global at every layer: every token sees every other. What is bounded is the range in which "
        "a\n"
        "relative position is unambiguous: distances whose table row no other distance shares. These numbers count\n"
        "that, not reach. r = i - j, query minus key: r > 0 is a key to the left.\n");
}

static void print_row(const field_findings *f, size_t index, FILE *out)
{
    const field_row *row = &f->field.rows[index];
    char low[24] = "...", high[24] = "...", count[24] = "without end";
    if (!endless(f, index, true)) snprintf(low, sizeof low, "%td", row->lowest);
    if (!endless(f, index, false)) snprintf(high, sizeof high, "%td", row->highest);
    if (row->count != SIZE_MAX) snprintf(count, sizeof count, "%zu", row->count);
    if (row->count == 1)
        fprintf(out, "  %6zu  %8td\n", row->row, row->lowest);
    else
        fprintf(out, "  %6zu  %8s  to %8s  (%s)\n", row->row, low, high, count);
}

/* All of them, or the few at both ends of the table. */
static void print_aliases(const field_findings *f, FILE *out)
{
    enum { SHOWN = 4 };
    size_t shared = 0, seen = 0;
    for (size_t k = 0; k < f->field.slots_used; k++) shared += f->field.rows[k].count > 1;
    if (f->all_rows) {
        fprintf(out, "\nrows of the table   r\n");
        for (size_t k = 0; k < f->field.slots_used; k++) print_row(f, k, out);
        return;
    }
    if (!shared) {
        fprintf(out, "  shared rows           none\n");
        return;
    }
    fprintf(out, "\nrows that several distances share: %zu%s\n", shared,
            shared > 2 * SHOWN ? " (--rows lists all)" : "");
    for (size_t k = 0; k < f->field.slots_used; k++) {
        if (f->field.rows[k].count == 1) continue;
        if (shared <= 2 * SHOWN || seen < SHOWN || seen >= shared - SHOWN) print_row(f, k, out);
        if (shared > 2 * SHOWN && seen == SHOWN) fprintf(out, "     ...\n");
        seen++;
    }
}

static void print_layer(const field_findings *f, FILE *out)
{
    const receptive_field *field = &f->field;
    fprintf(out, "\none layer\n");
    fprintf(out, "  rows in use           %zu of %zu\n", field->slots_used, 2 * field->rule.span);
    fprintf(out, "  unique distances      %zu", field->unique_count);
    if (field->unique_count) fprintf(out, ", r = %td to %td", field->unique_min, field->unique_max);
    fprintf(out, "\n  run around 0          %zu keys to the left and %zu to the right, %zu with the token itself\n",
            field->run_left, field->run_right, field->run_left + field->run_right + 1);
    fprintf(out,
            "  pairs (paper's p2c)   %zu unique, %zu keys to the left and %zu to the right: (row(r), row(-r)); both "
            "implementations read row(r) only\n",
            f->paired.unique_count, f->paired.run_left, f->paired.run_right);
    fprintf(out, "  unambiguous texts     up to %zu tokens: every distance in them has a row of its own\n", f->longest);
    print_aliases(f, out);
}

static void print_tokens(const field_findings *f, FILE *out)
{
    fprintf(out,
            "\nby token, in a text of %zu\n  token   keys at a row that is unique in the text   ... among this token's "
            "keys\n",
            f->length);
    for (size_t k = 0; k < SHOWN_TOKENS; k++) {
        size_t unambiguous, own;
        if (!token_is_new(f, k)) continue;
        receptive_field_of_token(&f->field, shown_token(f, k), &unambiguous, &own);
        fprintf(out, "  %5zu   %40zu   %25zu\n", shown_token(f, k), unambiguous, own);
    }
    const seeing_tokens seeing = tokens_that_see_all(f);
    if (seeing.count == 0)
        fprintf(out, "  no token sees every key at a row of its own\n");
    else if (seeing.count == 1)
        fprintf(out, "  token %zu alone sees every key at a row of its own\n", seeing.first);
    else
        fprintf(out, "  tokens %zu to %zu see every key at a row of its own\n", seeing.first,
                seeing.first + seeing.count - 1);
}

static void print_composition(const field_findings *f, FILE *out)
{
    fprintf(out, "\nover layers: displacements that are sums of one unambiguous distance a layer\n"
                 "  run          sums of distances of the run around 0\n"
                 "  unique set   sums of any unique distances\n"
                 "  contiguous   those of them around 0 without a gap\n"
                 "  hull         from the smallest to the largest of them\n\n"
                 "  layers         run  unique set  contiguous        hull\n");
    for (size_t n = 1; n <= f->layers; n++) {
        const composed_field *c = &f->composed[n - 1];
        fprintf(out, "  %6zu  %10zu  %10zu  %10zu  %10zu\n", n, c->run, c->unique_set, c->contiguous, c->hull);
    }
}

static void print_formulas(const field_findings *f, FILE *out)
{
    fprintf(out, "\nquoted formulas for k = %zu and n = %zu, and by how much they are over or under each definition\n",
            f->field.rule.span, f->layers);
    fprintf(out, "  formula         value         run  unique set  contiguous        hull\n");
    for (int k = 0; k < FIELD_FORMULAS; k++) {
        fprintf(out, "  %-11s %9zu", field_formula_name((field_formula)k),
                field_formula_value((field_formula)k, f->field.rule.span, f->layers));
        for (int d = 0; d < FIELD_DEFINITIONS; d++) {
            const ptrdiff_t excess = formula_excess(f, (field_formula)k, (field_definition)d);
            if (excess)
                fprintf(out, "  %+10td", excess);
            else
                fprintf(out, "  %10s", "equal");
        }
        fputc('\n', out);
    }
}

static void print_behaviour(const behaviour_report *report, FILE *out)
{
    size_t skipped = 0;
    fprintf(out, "\nbehaviour on the model's weights (changes in eps = 2^-23 times the largest value of the output)\n");
    for (size_t k = 0; k < report->count; k++) {
        const behaviour_test *test = &report->tests[k];
        skipped += test->skipped != NULL;
        fprintf(out, "  %-7s %-36s", test->skipped ? "skipped" : test->passed ? "passed" : "FAILED", test->name);
        for (size_t number = 0; number < test->number_count; number++) {
            if (strcmp(test->numbers[number].name, "layers") == 0) continue;
            fprintf(out, "  %s %.4g", test->numbers[number].name, test->numbers[number].value);
        }
        fprintf(out, "%s%s\n", test->skipped ? "  " : "", test->skipped ? test->skipped : "");
    }
    fprintf(out, "  %zu passed, %zu failed, %zu skipped\n", report->count - report->failures - skipped,
            report->failures, skipped);
}

static void print_influence(const field_findings *f, FILE *out)
{
    const influence_report *influence = &f->influence;
    fprintf(out,
            "\ninfluence |d H[n]_i / d H[0]_j| in a text of %zu tokens, %zu of them moved by %.3g of their length\n",
            influence->tokens, influence->sources, influence->step);
    fprintf(out, "  layers    on itself   next to it   at the run's end   farthest   noise floor   95 %% within\n");
    for (size_t l = 0; l < influence->layers; l++) {
        const influence_layer *layer = &influence->layer[l];
        double near = 0, edge = 0;
        for (size_t k = 0; k < layer->bin_count; k++) {
            const influence_bin *bin = &layer->bins[k];
            if (bin->from == 1) near = bin->mean;
            if (bin->from > 0 && bin->from <= (ptrdiff_t)f->field.run_left) edge = bin->mean;
        }
        fprintf(out, "  %6zu   %10.4g   %10.4g   %16.4g %10.4g   %11.2g   %11zu\n", l + 1, layer->self, near, edge,
                layer->bin_count ? layer->bins[layer->bin_count - 1].mean : 0, layer->noise_floor, layer->radius95);
    }
    if (influence->checked)
        fprintf(
            out,
            "  against float64: relative error %.2g in the median, %.2g at worst, of %zu influences above the noise\n",
            influence->float64_median, influence->float64_worst, influence->float64_values);
}

void field_findings_print(const field_findings *f, FILE *out)
{
    print_head(f, out);
    print_layer(f, out);
    if (f->length) print_tokens(f, out);
    print_composition(f, out);
    print_formulas(f, out);
    if (f->has_behaviour) print_behaviour(&f->behaviour, out);
    if (f->has_influence) print_influence(f, out);
}
