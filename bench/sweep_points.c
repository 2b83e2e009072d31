/* Makes the points of a sweep from all combinations of its lists. SPDX-License-Identifier: MIT */
#include "bench/sweep_work.h"

/* Lists with their defaults filled in. */
typedef struct axes {
    const size_t *lengths, *batches, *layers, *threads;
    size_t length_count, batch_count, layer_count, thread_count;
    const deberta_isa *isas;
    const term_selection *terms;
    size_t isa_count, term_count;
    bool caches[2];
    size_t cache_count;
    size_t default_length, default_batch, default_layers, default_threads;
    deberta_isa default_isa;
    term_selection default_terms;
} axes;

static void sweep_points_choose(const size_t **values, size_t *count, const size_list *list, const size_t *fallback)
{
    *values = list->count ? list->values : fallback;
    *count = list->count ? list->count : 1;
}

static void fill_axes(axes *a, const sweep_options *o, const deberta_model_info *model, size_t default_threads)
{
    *a = (axes){
        .default_length = SWEEP_DEFAULT_LENGTH,
        .default_batch = 1,
        .default_layers = model->layers,
        .default_threads = default_threads,
        .default_isa = deberta_isa_best(),
        .default_terms = TERM_SELECTION_FULL,
    };
    sweep_points_choose(&a->lengths, &a->length_count, &o->lengths, &a->default_length);
    sweep_points_choose(&a->batches, &a->batch_count, &o->batches, &a->default_batch);
    sweep_points_choose(&a->layers, &a->layer_count, &o->layers, &a->default_layers);
    sweep_points_choose(&a->threads, &a->thread_count, &o->threads, &a->default_threads);
    if (o->lengths.count == 0 && o->mix_count > 0) a->length_count = 0;
    a->isas = o->isa_count ? o->isas : &a->default_isa;
    a->isa_count = o->isa_count ? o->isa_count : 1;
    a->terms = o->term_count ? o->terms : &a->default_terms;
    a->term_count = o->term_count ? o->term_count : 1;
    if (o->position_cache != SWEEP_CACHE_OFF) a->caches[a->cache_count++] = true;
    if (o->position_cache != SWEEP_CACHE_ON) a->caches[a->cache_count++] = false;
}

deberta_status sweep_check(const sweep_options *options, const deberta_model_info *model, deberta_error *err)
{
    for (size_t i = 0; i < options->layers.count; i++) {
        if (options->layers.values[i] > model->layers)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--depth: %zu is too large, %s has %zu layer%s",
                         options->layers.values[i], model->name, model->layers, model->layers == 1 ? "" : "s");
    }
    for (size_t i = 0; i < options->term_count; i++) {
        const term_selection terms = options->terms[i];
        const char *lacks = terms == TERM_SELECTION_C2C_C2P && !model->has_c2p   ? "c2p"
                            : terms == TERM_SELECTION_C2C_P2C && !model->has_p2c ? "p2c"
                                                                                 : NULL;
        if (lacks)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--attention: %s asks for %s, which %s lacks",
                         term_selection_name(terms), lacks, model->name);
    }
    return DEBERTA_OK;
}

static deberta_status check_tiers(const axes *a, deberta_error *err)
{
    for (size_t i = 0; i < a->isa_count; i++) {
        const char *missing = deberta_isa_missing(a->isas[i]);
        if (missing)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "instruction set '%s' cannot be used here: %s",
                         deberta_isa_name(a->isas[i]), missing);
    }
    return DEBERTA_OK;
}

/* Sets the lengths of a point: one length `sequences` times, or the lengths of a mix. */
static deberta_status set_lengths(scope *memory, sweep_point *p, size_t length, const size_list *mix, size_t sequences,
                                  deberta_error *err)
{
    p->result.batch = mix ? mix->count : sequences;
    p->lengths = scope_take(memory, p->result.batch, sizeof *p->lengths);
    for (size_t i = 0; i < p->result.batch; i++) {
        p->lengths[i] = mix ? mix->values[i] : length;
        if (p->lengths[i] > p->result.n) p->result.n = p->lengths[i];
        if (!size_add(p->result.tokens, p->lengths[i], &p->result.tokens))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a batch of %zu sequences has too many tokens", p->result.batch);
    }
    p->result.lengths = mix ? p->lengths : NULL;
    return DEBERTA_OK;
}

/* Adds all variants of one batch: layers, attention, cache, threads, tier; the last varies fastest. */
static deberta_status add_variants(sweep_points *list, const axes *a, const sweep_options *o,
                                   const deberta_model_info *model, size_t length, const size_list *mix,
                                   size_t sequences, deberta_error *err)
{
    size_t variants = a->layer_count * a->term_count * a->cache_count * a->thread_count * a->isa_count;
    for (size_t v = 0; v < variants; v++) {
        sweep_point *p = &list->points[list->count++];
        size_t rest = v;
        DEBERTA_TRY(set_lengths(list->memory, p, length, mix, sequences, err));
        p->isa = a->isas[rest % a->isa_count];
        if (p->isa == DEBERTA_ISA_AUTO) p->isa = deberta_isa_best();
        rest /= a->isa_count;
        p->result.threads = a->threads[rest % a->thread_count];
        rest /= a->thread_count;
        p->result.position_cache = a->caches[rest % a->cache_count];
        rest /= a->cache_count;
        p->terms = a->terms[rest % a->term_count];
        rest /= a->term_count;
        p->result.layers = a->layers[rest];
        cost_point work = {.lengths = p->lengths,
                           .sequences = p->result.batch,
                           .layers = p->result.layers,
                           .terms = p->terms,
                           .recompute_positions = !p->result.position_cache};
        cost_model_compute(&p->cost, model, o->reference, &work);
    }
    return DEBERTA_OK;
}

enum { MOST_POINTS = 100000 };

static deberta_status count_points(size_t *count, const axes *a, const sweep_options *o, deberta_error *err)
{
    size_t batches = a->length_count * a->batch_count + o->mix_count;
    const size_t factors[] = {a->layer_count, a->term_count, a->cache_count, a->thread_count, a->isa_count};
    *count = batches;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (!size_multiply(*count, factors[i], count) || *count > MOST_POINTS)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a sweep over more than %d points", MOST_POINTS);
    }
    return DEBERTA_OK;
}

deberta_status sweep_points_make(sweep_points *list, const sweep_options *options, const deberta_model_info *model,
                                 size_t default_threads, deberta_error *err)
{
    axes a;
    size_t count;
    fill_axes(&a, options, model, default_threads);
    DEBERTA_TRY(sweep_check(options, model, err));
    DEBERTA_TRY(check_tiers(&a, err));
    DEBERTA_TRY(count_points(&count, &a, options, err));
    list->points = scope_take(list->memory, count, sizeof *list->points);
    for (size_t b = 0; b < a.batch_count; b++)
        for (size_t n = 0; n < a.length_count; n++)
            DEBERTA_TRY(add_variants(list, &a, options, model, a.lengths[n], NULL, a.batches[b], err));
    for (size_t m = 0; m < options->mix_count; m++)
        DEBERTA_TRY(add_variants(list, &a, options, model, 0, &options->mixes[m], 0, err));
    return DEBERTA_OK;
}

void sweep_point_describe(const sweep_point *p, char *text, size_t capacity_bytes)
{
    int used = p->result.lengths
                   ? snprintf(text, capacity_bytes, "%zu sequences of up to %zu tokens", p->result.batch, p->result.n)
                   : snprintf(text, capacity_bytes, "n = %zu, batch %zu", p->result.n, p->result.batch);
    if (used < 0 || (size_t)used >= capacity_bytes) return;
    snprintf(text + used, capacity_bytes - (size_t)used, ", %zu layers, %s, %zu thread%s, attention %s%s",
             p->result.layers, deberta_isa_name(p->isa), p->result.threads, p->result.threads == 1 ? "" : "s",
             term_selection_name(p->terms), p->result.position_cache ? "" : ", no position cache");
}
