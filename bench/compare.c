/* Pairs points of two sets of runs, compares them by rank, as sets or as pairs of neighbours, and corrects for the
 * number of points, so that few of the reported differences are chance.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/scope.h"

#define SIGNIFICANCE 0.05

/* ----------------------------------------------------------------------------------------------------- environments */

/* Collects "cpu: 'x' and 'y'" in one sentence. */
typedef struct differences {
    char text[400];
    size_t used;
} differences;

__attribute__((format(printf, 2, 3))) static void add_difference(differences *d, const char *format, ...)
{
    va_list arguments;
    if (d->used >= sizeof d->text) return;
    if (d->used > 0) d->used += (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "; ");
    if (d->used >= sizeof d->text) return;
    va_start(arguments, format);
    d->used += (size_t)vsnprintf(d->text + d->used, sizeof d->text - d->used, format, arguments);
    va_end(arguments);
}

static void differ_text(differences *d, const char *name, const char *a, const char *b)
{
    if (*a && *b && strcmp(a, b) != 0) add_difference(d, "%s '%.60s' and '%.60s'", name, a, b);
}

static void differ_size(differences *d, const char *name, size_t a, size_t b)
{
    if (a && b && a != b) add_difference(d, "%s %zu and %zu", name, a, b);
}

/* Compares environments; a member that a file of another program lacks does not count as a difference. */
deberta_status compare_environments(const bench_results *a, const bench_results *b, deberta_error *err)
{
    const machine_sheet *left = &a->sheet, *right = &b->sheet;
    const topology_info *machine = &left->topology, *other = &right->topology;
    differences d = {0};
    differ_text(&d, "cpu", left->cpu, right->cpu);
    differ_text(&d, "architecture", left->architecture, right->architecture);
    differ_size(&d, "cores", machine->cores, other->cores);
    differ_size(&d, "usable cores", machine->usable_cores, other->usable_cores);
    differ_size(&d, "L2 bytes", machine->l2_bytes, other->l2_bytes);
    differ_size(&d, "L3 bytes", machine->l3_bytes, other->l3_bytes);
    differ_text(&d, "system", left->system, right->system);
    differ_text(&d, "governor", left->governor, right->governor);
    differ_text(&d, "compiler", left->compiler, right->compiler);
    differ_text(&d, "flags", left->flags, right->flags);
    if (d.used > 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the two were not measured alike: %s", d.text);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- pairing */

enum { ENGINE_FACETS = BENCH_ENGINE | BENCH_ISA | BENCH_PRECISION };

static const bench_result *find_like(const bench_results *run, const bench_result *like)
{
    for (size_t k = 0; k < run->count; k++)
        if (bench_result_alike(&run->result[k], like, 0)) return &run->result[k];
    return NULL;
}

/* Collects the medians of a point from the runs that have it; returns how many. */
static size_t medians_of(const compare_side *side, const bench_result *like, double *medians)
{
    size_t count = 0;
    for (size_t k = 0; k < side->count; k++) {
        const bench_result *found = find_like(&side->runs[k], like);
        if (found) medians[count++] = found->time.median;
    }
    return count;
}

/* ------------------------------------------------------------------------------------------------------------ turns */

/* The runs of both sides by time: the k-th of one side is the neighbour of the k-th of the other. NULL: the runs were
 * not interleaved. */
typedef struct neighbours {
    const bench_results **a, **b;
    size_t count;
} neighbours;

/* Orders runs by date; the dates sort as texts. */
static int by_date(const void *left, const void *right)
{
    const bench_results *const *a = left, *const *b = right;
    const int order = strcmp((*a)->sheet.date, (*b)->sheet.date);
    return order ? order : (*a > *b) - (*a < *b); /* within a second, in the order of the files */
}

static const bench_results **runs_by_date(scope *memory, const compare_side *side)
{
    const bench_results **runs = scope_take(memory, side->count, sizeof(bench_results *));
    for (size_t k = 0; k < side->count; k++) {
        if (!*side->runs[k].sheet.date) return NULL;
        runs[k] = &side->runs[k];
    }
    qsort(runs, side->count, sizeof(bench_results *), by_date);
    return runs;
}

/* Finds the pairs of interleaved runs. Each pair ends before the next begins: A B A B, A B B A, or any other order
 * within the pairs. */
static neighbours find_neighbours(scope *memory, const compare_side *a, const compare_side *b)
{
    neighbours found = {.count = a->count};
    if (a->count != b->count) return (neighbours){0};
    found.a = runs_by_date(memory, a);
    found.b = runs_by_date(memory, b);
    if (!found.a || !found.b) return (neighbours){0};
    for (size_t k = 0; k + 1 < found.count; k++) {
        const char *const now[] = {found.a[k]->sheet.date, found.b[k]->sheet.date}, *const next[] = {
                                                                                        found.a[k + 1]->sheet.date,
                                                                                        found.b[k + 1]->sheet.date};
        for (int i = 0; i < 4; i++)
            if (strcmp(now[i / 2], next[i % 2]) > 0) return (neighbours){0};
    }
    return found;
}

/* Adds the test of neighbours to a pair of points. */
static void compare_neighbours(compare_pair *pair, const neighbours *runs)
{
    if (runs->count == 0) return;
    double *a = memory_take(2 * runs->count, sizeof *a), *b = a + runs->count;
    size_t count = 0;
    for (size_t k = 0; k < runs->count; k++) {
        const bench_result *one = find_like(runs->a[k], pair->a), *other = find_like(runs->b[k], pair->b);
        if (!one || !other) continue;
        a[count] = one->time.median;
        b[count++] = other->time.median;
    }
    if (count) statistics_compare_pairs(&pair->pairs, a, b, count);
    free(a);
}

/* Returns true if `pairs` pairs, all of one sign, would be significant among `points` points. */
static bool pairs_decide(size_t pairs, size_t points)
{
    return pairs > 0 && ldexp(2, -(int)pairs) <= SIGNIFICANCE / (double)points;
}

/* ------------------------------------------------------------------------------------------------------- pairing runs */

/* Returns true if two sets of these sizes, completely separated, would be significant: 2 of all orders of the
 * runs. */
static bool can_decide(size_t a, size_t b)
{
    double orders = 1;
    for (size_t k = 1; k <= a; k++) orders *= (double)(b + k) / (double)k;
    return 2 / orders <= SIGNIFICANCE;
}

static void add_pair(compare_list *list, const compare_side *left, const bench_result *a, const compare_side *right,
                     const bench_result *b)
{
    double *medians = memory_take(left->count + right->count, sizeof *medians), *other = medians + left->count;
    compare_pair *pair = &list->pairs[list->count];
    *pair =
        (compare_pair){.a = a, .b = b, .runs_a = medians_of(left, a, medians), .runs_b = medians_of(right, b, other)};
    /* Other numbers of layers are other work, with other results. */
    pair->checksums_differ = a->layers == b->layers && a->checksum && b->checksum && a->checksum != b->checksum;
    pair->verdict = can_decide(pair->runs_a, pair->runs_b) ? COMPARE_SAME : COMPARE_UNDECIDED;
    statistics_compare(&pair->time, medians, pair->runs_a, other, pair->runs_b);
    pair->seconds_a = statistics_median(medians, pair->runs_a);
    pair->seconds_b = statistics_median(other, pair->runs_b);
    list->count++;
    free(medians);
}

/* Returns the p of the test that decides. */
static double p_of(const compare_pair *pair) { return pair->by_pairs ? pair->pairs.p : pair->time.p; }
static double ratio_of(const compare_pair *pair) { return pair->by_pairs ? pair->pairs.ratio : pair->time.ratio; }

static int by_p(const void *left, const void *right)
{
    const compare_pair *const *a = left, *const *b = right;
    return (p_of(*a) > p_of(*b)) - (p_of(*a) < p_of(*b));
}

/* Applies Benjamini and Hochberg's rule: of m points, those with the k smallest p are called different, k being the
 * largest for which the k-th is at most k/m of the level. */
static void compare_judge(compare_list *list)
{
    compare_pair **order = memory_take(list->count + 1, sizeof *order);
    size_t decided = 0, different = 0;
    double sum = 0;
    for (size_t k = 0; k < list->count; k++) {
        list->pairs[k].by_pairs = pairs_decide(list->pairs[k].pairs.count, list->count);
        sum += log(ratio_of(&list->pairs[k]));
        if (list->pairs[k].verdict != COMPARE_UNDECIDED) order[decided++] = &list->pairs[k];
    }
    list->mean_ratio = list->count ? exp(sum / (double)list->count) : 0;
    qsort(order, decided, sizeof(compare_pair *), by_p);
    for (size_t k = 1; k <= decided; k++)
        if (p_of(order[k - 1]) <= SIGNIFICANCE * (double)k / (double)decided) different = k;
    for (size_t k = 0; k < different; k++) order[k]->verdict = ratio_of(order[k]) < 1 ? COMPARE_FASTER : COMPARE_SLOWER;
    free(order);
}

static bool is_paired(const compare_list *list, const bench_result *r)
{
    for (size_t k = 0; k < list->count; k++)
        if (list->pairs[k].a == r || list->pairs[k].b == r) return true;
    return false;
}

/* The points of all runs of a side, each once; a stopped run lacks some. */
typedef struct points {
    const bench_result **of;
    size_t count;
} points;

static points points_of(scope *memory, const compare_side *side)
{
    points all = {0};
    size_t most = 0;
    for (size_t k = 0; k < side->count; k++) most += side->runs[k].count;
    all.of = scope_take(memory, most, sizeof *all.of);
    for (size_t k = 0; k < side->count; k++)
        for (size_t i = 0; i < side->runs[k].count; i++) {
            const bench_result *r = &side->runs[k].result[i];
            bool known = false;
            for (size_t j = 0; j < all.count && !known; j++) known = bench_result_alike(all.of[j], r, 0);
            if (!known) all.of[all.count++] = r;
        }
    return all;
}

/* Pairs points that are alike but for the facets and have no partner yet. */
static void pair_up(compare_list *list, const compare_side *a, const points *lefts, const compare_side *b,
                    const points *rights, unsigned except)
{
    for (size_t i = 0; i < lefts->count; i++) {
        const bench_result *left = lefts->of[i];
        for (size_t j = 0; j < rights->count && !is_paired(list, left); j++) {
            const bench_result *right = rights->of[j];
            if (is_paired(list, right) || !bench_result_alike(left, right, except)) continue;
            add_pair(list, a, left, b, right);
            list->pairs[list->count - 1].place = i;
        }
    }
}

static int by_place(const void *left, const void *right)
{
    const compare_pair *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

void compare_sides(compare_list *list, const compare_side *a, const compare_side *b)
{
    *list = (compare_list){0};
    const points lefts = points_of(&list->memory, a), rights = points_of(&list->memory, b);
    list->pairs = scope_take(&list->memory, lefts.count, sizeof *list->pairs);
    pair_up(list, a, &lefts, b, &rights, 0);
    pair_up(list, a, &lefts, b, &rights, ENGINE_FACETS);
    list->only_a = lefts.count - list->count;
    list->only_b = rights.count - list->count;
    qsort(list->pairs, list->count, sizeof *list->pairs, by_place);
    const neighbours runs = find_neighbours(&list->memory, a, b);
    for (size_t k = 0; k < list->count; k++) compare_neighbours(&list->pairs[k], &runs);
    compare_judge(list);
}

void compare_within(compare_list *list, const compare_side *runs, unsigned facet)
{
    *list = (compare_list){0};
    const points all = points_of(&list->memory, runs);
    list->pairs = scope_take(&list->memory, all.count, sizeof *list->pairs);
    for (size_t j = 0; j < all.count; j++) {
        const bench_result *b = all.of[j], *a = b;
        for (size_t i = 0; i < j && a == b; i++)
            if (bench_result_alike(all.of[i], b, facet)) a = all.of[i];
        if (a != b) add_pair(list, runs, a, runs, b);
    }
    for (size_t k = 0; k < all.count; k++) list->only_a += !is_paired(list, all.of[k]);
    compare_judge(list);
}

bool compare_difference(char text[BENCH_DIFFERENCE_BYTES], const compare_side *a, const compare_side *b)
{
    char found[BENCH_DIFFERENCE_BYTES];
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < a->runs[0].count; i++)
        for (size_t j = 0; j < b->runs[0].count; j++) {
            const size_t facets = bench_result_difference(found, &a->runs[0].result[i], &b->runs[0].result[j]);
            if (facets >= least) continue;
            least = facets;
            memcpy(text, found, sizeof found);
        }
    return least < SIZE_MAX;
}

/* --------------------------------------------------------------------------------------------------------- in words */

static const char *verdict_text(const compare_pair *pair)
{
    static const char *const texts[] = {"not decided", "no difference shown", "faster", "slower"};
    const bool one_each = pair->runs_a == 1 && pair->runs_b == 1;
    return pair->verdict == COMPARE_UNDECIDED && one_each ? "not decided: one run each" : texts[pair->verdict];
}

/* Adds "avx2", or "avx2 / avx512" if the two differ. */
static void add_both(result_table *table, const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        cell_text(table, "%s", a);
    else
        cell_text(table, "%s / %s", a, b);
}

/* Returns the last part of a path, to keep rows of tables short. */
static const char *folder_name(const char *model)
{
    const char *slash = strrchr(model, '/');
    return slash && slash[1] ? slash + 1 : model;
}

static void add_tiers(result_table *table, const bench_result *a, const bench_result *b)
{
    if (strcmp(a->precision, b->precision) != 0)
        cell_text(table, "%s %s %s / %s %s %s", a->engine, a->precision, a->isa, b->engine, b->precision, b->isa);
    else if (strcmp(a->engine, b->engine) == 0)
        add_both(table, a->isa, b->isa);
    else
        cell_text(table, "%s %s / %s %s", a->engine, a->isa, b->engine, b->isa);
}

static void add_neighbours(result_table *table, const compare_pair *pair)
{
    const statistics_pairs *c = &pair->pairs;
    cell_integer(table, (int64_t)c->count);
    cell_real(table, c->count ? c->ratio : NAN);
    const bool has_spread = c->count > 1; /* one pair has a ratio, but neither an interval nor a test */
    cell_real(table, has_spread ? c->low : NAN);
    cell_real(table, has_spread ? c->high : NAN);
    cell_real(table, has_spread ? 100 * c->coverage : NAN);
    cell_real(table, has_spread ? c->p : NAN);
    cell_text(table, "%s", pair->by_pairs ? "pairs" : "runs");
}

static void compare_add_row(result_table *table, const compare_pair *pair)
{
    const bench_result *a = pair->a, *b = pair->b;
    const statistics_comparison *c = &pair->time;
    const bool decided = pair->verdict != COMPARE_UNDECIDED;
    char threads[2][24], layers[2][24];
    snprintf(threads[0], sizeof threads[0], "%zu", a->threads);
    snprintf(threads[1], sizeof threads[1], "%zu", b->threads);
    snprintf(layers[0], sizeof layers[0], "%zu", a->layers);
    snprintf(layers[1], sizeof layers[1], "%zu", b->layers);
    add_both(table, a->model, b->model);
    add_both(table, folder_name(a->model), folder_name(b->model));
    cell_integer(table, (int64_t)a->n);
    cell_integer(table, (int64_t)a->batch);
    add_both(table, layers[0], layers[1]);
    add_both(table, threads[0], threads[1]);
    add_tiers(table, a, b);
    cell_text(table, "%s%s%s%s", a->attention, a->position_cache ? "" : ", no position cache", a->cold ? ", cold" : "",
              a->lengths ? ", ragged" : "");
    cell_text(table, "%zu + %zu", pair->runs_a, pair->runs_b);
    cell_real(table, 1e3 * pair->seconds_a);
    cell_real(table, 1e3 * pair->seconds_b);
    /* Single runs show the scatter of their samples, the only estimate of the ratio's error. */
    cell_real(table, pair->runs_a == 1 ? 1e3 * a->time.mad : NAN);
    cell_real(table, pair->runs_b == 1 ? 1e3 * b->time.mad : NAN);
    cell_real(table, c->ratio);
    cell_real(table, 1 / c->ratio);
    cell_real(table, decided ? c->low : NAN);
    cell_real(table, decided ? c->high : NAN);
    cell_real(table, decided ? 100 * c->coverage : NAN);
    cell_real(table, decided ? c->p : NAN);
    cell_real(table, decided ? c->effect : NAN);
    add_neighbours(table, pair);
    cell_text(table, "%s%s", verdict_text(pair), pair->checksums_differ ? "; other results" : "");
}

/* Repeats the notes that made a run doubtful, since they make the comparison doubtful too. */
static void say_notes(result *r, const compare_side *side)
{
    for (size_t k = 0; k < side->count; k++) {
        const machine_sheet *sheet = &side->runs[k].sheet;
        for (size_t n = 0; n < sheet->note_count; n++)
            result_say(r, "not quiet: %s: %s", side->names[k], sheet->notes[n]);
    }
}

/* Names sides A and B: "A: before1.json and 3 more runs; AMD EPYC; 2 threads". */
static void say_side(result *r, char letter, const compare_side *side, const compare_list *list)
{
    json_t *files = json_array();
    for (size_t k = 0; k < side->count; k++) {
        const machine_sheet *sheet = &side->runs[k].sheet;
        json_array_append_new(files, json_pack("{s:s, s:s, s:s, s:s}", "file", side->names[k], "cpu", sheet->cpu,
                                               "date", sheet->date, "commit", sheet->commit));
    }
    result_set(r, letter == 'A' ? "a" : "b", files);
    size_t least = 0, most = 0;
    for (size_t k = 0; k < list->count; k++) {
        const size_t threads = letter == 'A' ? list->pairs[k].a->threads : list->pairs[k].b->threads;
        least = k ? minimum(least, threads) : threads;
        most = maximum(most, threads);
    }
    result_say(r, "%c: %s", letter, side->names[0]);
    if (side->count > 1) result_say_more(r, " and %zu more runs", side->count - 1);
    if (*side->runs[0].sheet.cpu) result_say_more(r, "; %s", side->runs[0].sheet.cpu);
    if (least == most)
        result_say_more(r, "; %zu thread%s", least, least == 1 ? "" : "s");
    else
        result_say_more(r, "; %zu to %zu threads", least, most);
}

/* Finds the earliest and the latest date of the runs; returns false if a file has none. The dates sort as texts. */
static bool dates_of(const compare_side *side, const char **first, const char **last)
{
    *first = *last = side->runs[0].sheet.date;
    for (size_t k = 0; k < side->count; k++) {
        const char *date = side->runs[k].sheet.date;
        if (!*date) return false;
        if (strcmp(date, *first) < 0) *first = date;
        if (strcmp(date, *last) > 0) *last = date;
    }
    return true;
}

/* Reports a side that ran before the other, since load and temperature then differ between the sides. */
static void say_order(result *r, const compare_side *a, const compare_side *b)
{
    const char *first_a, *last_a, *first_b, *last_b;
    const bool known = dates_of(a, &first_a, &last_a) && dates_of(b, &first_b, &last_b);
    const bool apart =
        known && a->count > 1 && b->count > 1 && (strcmp(last_a, first_b) < 0 || strcmp(last_b, first_a) < 0);
    if (known) result_set(r, "in_turns", json_boolean(!apart));
    if (apart)
        result_say(r,
                   "not in turns: all runs of %s were made before the first of %s, so a machine that changed meanwhile "
                   "looks like a difference",
                   strcmp(last_a, first_b) < 0 ? "A" : "B", strcmp(last_a, first_b) < 0 ? "B" : "A");
}

/* Reports which test has decided, if there are two. */
static void say_deciding(result *r, const compare_list *list)
{
    size_t pairs = 0, deciding = 0;
    for (size_t k = 0; k < list->count; k++) {
        pairs = maximum(pairs, list->pairs[k].pairs.count);
        deciding += list->pairs[k].by_pairs;
    }
    if (deciding)
        result_say(r, "in turns: the signed ranks of %zu pairs of neighbours decide %zu of %zu points", pairs, deciding,
                   list->count);
    else if (pairs > 1)
        result_say(r, "in turns, but the ranks of all runs decide: %zu pairs are too few for %zu point%s", pairs,
                   list->count, list->count == 1 ? "" : "s");
}

static void say_summary(result *r, const compare_list *list, bool within)
{
    size_t counts[COMPARE_SLOWER + 1] = {0};
    for (size_t i = 0; i < list->count; i++) counts[list->pairs[i].verdict]++;
    result_say(
        r,
        "%zu compared: %zu faster, %zu slower, %zu without a difference, %zu not decided; geometric mean of time "
        "B / time A %.4f",
        list->count, counts[COMPARE_FASTER], counts[COMPARE_SLOWER], counts[COMPARE_SAME], counts[COMPARE_UNDECIDED],
        list->mean_ratio);
    if (counts[COMPARE_UNDECIDED])
        result_say(
            r,
            "not decided: two runs of one program differ as well, by more than the MAD of the samples of each; four "
            "runs with four can tell, three with five, two with eight or one with 39, taken in turns%s",
            within ? "" : ": A1.json ... with B1.json ...");
    say_deciding(r, list);
    if (list->only_a || list->only_b)
        result_say(r, "without a partner: %zu of A, %zu of B", list->only_a, list->only_b);
}

void compare_describe(result *r, const compare_list *list, const compare_side *a, const compare_side *b, unsigned by)
{
    static const result_column columns[] = {
        {"model", NULL, COLUMN_TEXT, NULL, NOT_IN_TABLES},
        {"name", "model", COLUMN_TEXT, NULL, NOT_IN_JSON | NOT_IN_CSV},
        {"n", NULL, COLUMN_INTEGER, NULL, 0},
        {"batch", NULL, COLUMN_INTEGER, NULL, 0},
        {"layers", NULL, COLUMN_TEXT, NULL, 0},
        {"threads", NULL, COLUMN_TEXT, NULL, 0},
        {"isa", NULL, COLUMN_TEXT, NULL, 0},
        {"attention", NULL, COLUMN_TEXT, NULL, 0},
        {"runs", NULL, COLUMN_TEXT, NULL, 0},
        {"a_ms", "A ms", COLUMN_REAL, "%.3f", 0},
        {"b_ms", "B ms", COLUMN_REAL, "%.3f", 0},
        {"a_mad_ms", "A MAD", COLUMN_REAL, "%.3f", 0},
        {"b_mad_ms", "B MAD", COLUMN_REAL, "%.3f", 0},
        {"ratio", "B / A", COLUMN_REAL, "%.4f", 0},
        {"times", "A / B ×", COLUMN_REAL, "%.2f", 0},
        {"low", NULL, COLUMN_REAL, "%.4f", 0},
        {"high", NULL, COLUMN_REAL, "%.4f", 0},
        {"confidence_percent", "conf. %", COLUMN_REAL, "%.0f", 0},
        {"p", NULL, COLUMN_REAL, "%.2g", 0},
        {"effect", NULL, COLUMN_REAL, "%+.2f", 0},
        {"pairs", NULL, COLUMN_INTEGER, NULL, NOT_IN_TABLES},
        {"pairs_ratio", "B / A in pairs", COLUMN_REAL, "%.4f", 0},
        {"pairs_low", NULL, COLUMN_REAL, "%.4f", NOT_IN_TABLES},
        {"pairs_high", NULL, COLUMN_REAL, "%.4f", NOT_IN_TABLES},
        {"pairs_confidence_percent", NULL, COLUMN_REAL, "%.0f", NOT_IN_TABLES},
        {"pairs_p", "p of pairs", COLUMN_REAL, "%.2g", 0},
        {"decided_by", NULL, COLUMN_TEXT, NULL, NOT_IN_TABLES},
        {"verdict", "B is", COLUMN_TEXT, NULL, 0},
        {NULL, NULL, COLUMN_TEXT, NULL, 0},
    };
    if (by) {
        result_say(r, "A and B: the first value and another of each point of %s; %s", a->names[0],
                   a->runs[0].sheet.cpu);
    } else {
        say_side(r, 'A', a, list);
        say_side(r, 'B', b, list);
        say_order(r, a, b);
    }
    say_notes(r, a);
    if (!by) say_notes(r, b);
    result_table *table = result_add_table(r, "points", NULL, columns);
    for (size_t i = 0; i < list->count; i++) compare_add_row(table, &list->pairs[i]);
    say_summary(r, list, by != 0);
}
