/* One arithmetic: the same float32 bits on every tier, for any number of threads, alone or in a batch, observed or not,
 * wherever the inputs lie in memory. Golden models, and made-up ones at every length where a tile, a panel or a chunk
 * ends.
 *
 *     identity [--folder DIR] [--seed N] [--quick] [--golden] [--part K/N]
 *
 * Quick, a sample of the models and lengths, is also chosen by DEBERTA_TEST_QUICK in the environment. --golden: only
 * the golden models. --part: the K-th of N parts, which can run side by side; together they test what the whole does.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "tests/golden/encode_case.h"

typedef struct tally {
    size_t passed, failed, skipped;
} tally;

/* One way of computing the same thing; variant 0 is what the others are compared with. */
typedef struct variant {
    char name[64];
    encode_request request;
    deberta_session *session;
} variant;

enum { MAX_VARIANTS = 4 * 3 * 2, MAX_TOKENS = 2048 };

typedef struct bench {
    const char *what; /* the model, for messages */
    const deberta_model *model;
    variant variants[MAX_VARIANTS];
    size_t count;
    bool quick;
    tally *tally;
} bench;

static uint64_t random_state;

static int32_t random_number(size_t bound) { return (int32_t)random_below(&random_state, bound); }

/* ------------------------------------------------------------------------------------------------------- * variants */

static int wants_all(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context;
    (void)layer;
    (void)head;
    (void)component;
    return 1;
}

static bool bench_add(bench *b, deberta_isa isa, size_t threads, bool observed)
{
    deberta_error error = {0};
    variant *v = &b->variants[b->count];
    snprintf(v->name, sizeof v->name, "%s, %zu threads%s", deberta_isa_name(isa), threads,
             observed ? ", observed" : "");
    v->request = (encode_request){.isa = isa,
                                  .threads = threads,
                                  .observe_hidden = observed,
                                  .attention = {NULL, observed ? wants_all : NULL},
                                  .heads = (1u << DEBERTA_TASK_COUNT) - 1};
    if (encode_session(&v->session, b->model, MAX_TOKENS, &v->request, &error) != DEBERTA_OK) {
        printf("FAIL %s, %s: %s\n", b->what, v->name, error.message);
        return false;
    }
    b->count++;
    return true;
}

/* Every tier with 1, 2 and 3 threads, observed and not; 3 is more than small machines have. */
static bool bench_add_all(bench *b)
{
    bool good = true;
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        for (size_t threads = 1; threads <= 3 && !deberta_isa_missing((deberta_isa)isa); threads++)
            good =
                good && bench_add(b, (deberta_isa)isa, threads, true) && bench_add(b, (deberta_isa)isa, threads, false);
    }
    return good;
}

/* Quick, plain C only once: an emulator takes longest for it, and what threads do to it is seen natively. Each other
 * tier runs with 1 thread, observed, and with 3, which is not. */
static bool bench_add_sample(bench *b)
{
    bool good = bench_add(b, DEBERTA_ISA_SCALAR, 1, true);
    for (size_t isa = DEBERTA_ISA_SCALAR + 1; isa < DEBERTA_ISA_COUNT; isa++) {
        for (size_t threads = 1; threads <= 3 && !deberta_isa_missing((deberta_isa)isa); threads += 2)
            good = good && bench_add(b, (deberta_isa)isa, threads, threads == 1);
    }
    return good && (b->count > 1 || bench_add(b, DEBERTA_ISA_SCALAR, 3, false));
}

static bool bench_open(bench *b)
{
    const bool good = b->quick ? bench_add_sample(b) : bench_add_all(b);
    if (!good) b->tally->failed++;
    return good;
}

static void bench_close(bench *b)
{
    for (size_t i = 0; i < b->count; i++) deberta_session_free(&b->variants[i].session);
}

/* -------------------------------------------------------------------------------------------------------- comparing */

static bool same_bits(const bench *b, const char *how, const char *quantity, const float *a, const float *other,
                      size_t count)
{
    if (memcmp(a, other, count * sizeof *a) == 0) return true;
    size_t e = 0;
    while (memcmp(a + e, other + e, sizeof *a) == 0) e++;
    printf("FAIL %s: %s: %s element %zu of %zu is %.9g instead of %.9g\n", b->what, how, quantity, e, count,
           (double)other[e], (double)a[e]);
    return false;
}

/* One query's attention. Only probabilities say something about masked keys, but what is said must be the same for real
 * ones. */
static bool same_row(const bench *b, const char *how, const float *p, const float *q, const uint8_t *mask, size_t n)
{
    if (memcmp(p, q, n * sizeof *p) == 0) return true;
    for (size_t j = 0; j < n; j++) {
        if (mask[j] && !same_bits(b, how, "attention", p + j, q + j, 1)) return false;
    }
    return true;
}

/* Sequence s of one result and sequence t of another, in everything that both hold. Rows at holes are unspecified. */
static bool same_sequence(const bench *b, const char *how, const collected *x, size_t s, const collected *y, size_t t,
                          const uint8_t *mask)
{
    size_t n = x->starts[s + 1] - x->starts[s], h = x->info.hidden_size, L = x->info.layers, A = x->info.heads;
    bool good = true, layers = x->attention && y->attention;
    for (size_t l = layers ? 0 : L; l <= L && good; l++) {
        for (size_t i = 0; i < n && good; i++) {
            if (!mask[i]) continue;
            good = same_bits(b, how, "hidden", x->hidden + (l * x->tokens + x->starts[s] + i) * h,
                             y->hidden + (l * y->tokens + y->starts[t] + i) * h, h);
        }
    }
    for (size_t slot = 0; layers && slot < L * DEBERTA_COMPONENT_COUNT && good; slot++) {
        size_t layer = slot / DEBERTA_COMPONENT_COUNT;
        deberta_component component = (deberta_component)(slot % DEBERTA_COMPONENT_COUNT);
        const float *p = collected_attention(x, layer, component, s), *q = collected_attention(y, layer, component, t);
        good = !p == !q;
        for (size_t row = 0; row < A * n && p && good; row++) {
            if (mask[row % n]) good = same_row(b, how, p + row * n, q + row * n, mask, n);
        }
    }
    for (size_t head = 0; head < DEBERTA_TASK_COUNT && good; head++) {
        size_t width = x->width[head];
        if (!x->logits[head]) continue;
        bool whole = head == DEBERTA_TASK_SEQUENCE;
        for (size_t i = 0; i < (whole ? 1 : n) && good; i++) {
            if (!mask[i]) continue;
            size_t from = whole ? s : x->starts[s] + i, to = whole ? t : y->starts[t] + i;
            good = same_bits(b, how, deberta_task_name((deberta_task)head), x->logits[head] + from * width,
                             y->logits[head] + to * width, width);
        }
    }
    return good;
}

/* The same batch in a block of memory whose arrays begin `shift` elements off. */
typedef struct shifted_batch {
    int32_t *blocks[3];
    uint8_t *mask;
    deberta_batch view;
} shifted_batch;

static void shift_batch(shifted_batch *to, const deberta_batch *from, size_t shift)
{
    size_t tokens = from->sequence_starts[from->sequences];
    const int32_t *sources[3] = {from->ids, from->token_types, from->position_ids};
    const int32_t **targets[3] = {&to->view.ids, &to->view.token_types, &to->view.position_ids};
    to->view = *from;
    for (size_t i = 0; i < 3; i++) {
        to->blocks[i] = calloc(tokens + shift, sizeof(int32_t));
        if (sources[i]) *targets[i] = memcpy(to->blocks[i] + shift, sources[i], tokens * sizeof(int32_t));
    }
    to->mask = calloc(tokens + shift, 1);
    if (from->mask) to->view.mask = memcpy(to->mask + shift, from->mask, tokens);
}

static void shifted_free(shifted_batch *batch)
{
    for (size_t i = 0; i < 3; i++) free(batch->blocks[i]);
    free(batch->mask);
}

static bool encode_or_report(const bench *b, const variant *v, const deberta_batch *batch, collected *result)
{
    deberta_error error = {0};
    if (encode_with(v->session, result, b->model, batch, &v->request, &error) == DEBERTA_OK) return true;
    printf("FAIL %s: %s: %s\n", b->what, v->name, error.message);
    return false;
}

/* Sequence s of the batch by itself must be what it was in company. */
static bool check_alone(const bench *b, const variant *v, const ragged_batch *batch, size_t s,
                        const collected *together)
{
    size_t first = batch->starts[s], n = batch->starts[s + 1] - first, starts[2] = {0, n};
    deberta_batch view = ragged_view(batch);
    view.ids += first;
    view.token_types += first;
    if (view.position_ids) view.position_ids += first;
    if (view.mask) view.mask += first;
    view.sequence_starts = starts;
    view.sequences = 1;
    collected alone = {0};
    char how[128];
    snprintf(how, sizeof how, "sequence %zu of %zu tokens alone on %s", s, n, v->name);
    bool good =
        encode_or_report(b, v, &view, &alone) && same_sequence(b, how, together, s, &alone, 0, batch->mask + first);
    collected_free(&alone);
    return good;
}

/* One batch in every way. */
static void check_batch(bench *b, const ragged_batch *batch)
{
    deberta_batch view = ragged_view(batch);
    collected base = {0};
    bool good = encode_or_report(b, &b->variants[0], &view, &base);
    for (size_t i = 1; i < b->count && good; i++) {
        collected other = {0};
        shifted_batch shifted;
        char how[128];
        snprintf(how, sizeof how, "%zu tokens in %zu sequences on %s", batch->tokens, batch->sequences,
                 b->variants[i].name);
        shift_batch(&shifted, &view, i % 4);
        good = encode_or_report(b, &b->variants[i], &shifted.view, &other);
        for (size_t s = 0; s < batch->sequences && good; s++)
            good = same_sequence(b, how, &base, s, &other, s, batch->mask + batch->starts[s]);
        collected_free(&other);
        shifted_free(&shifted);
    }
    /* The first variant is of the scalar tier, the last is of the best. */
    for (size_t s = 0; s < batch->sequences && batch->sequences > 1 && good; s++)
        good = check_alone(b, &b->variants[s % b->count], batch, s, &base) &&
               check_alone(b, &b->variants[b->count - 1], batch, s, &base);
    collected_free(&base);
    good ? b->tally->passed++ : b->tally->failed++;
}

/* Heads answer any subset of positions with the bits they give for all. */
static void check_head_subsets(bench *b, const ragged_batch *batch)
{
    deberta_batch view = ragged_view(batch);
    const variant *v = &b->variants[b->count - 1];
    collected all = {0};
    bool good = encode_or_report(b, v, &view, &all);
    for (size_t head = 0; head < DEBERTA_TASK_COUNT && good; head++) {
        if (!all.logits[head] || head == DEBERTA_TASK_SEQUENCE) continue;
        size_t width = all.width[head], stride = width + 3;
        for (size_t step = 1; step <= 5 && good; step += 2) {
            size_t count = 0, positions[MAX_TOKENS];
            for (size_t t = step - 1; t < all.tokens; t += step) positions[count++] = all.tokens - 1 - t;
            float *logits = calloc((count + 1) * stride, sizeof *logits);
            good = deberta_task_logits(v->session, (deberta_task)head, positions, count, logits, stride, NULL) ==
                   DEBERTA_OK;
            for (size_t i = 0; i < count && good; i++) {
                if (batch->mask[positions[i]])
                    good = same_bits(b, "a subset of positions", deberta_task_name((deberta_task)head),
                                     all.logits[head] + positions[i] * width, logits + i * stride, width);
            }
            free(logits);
        }
    }
    collected_free(&all);
    good ? b->tally->passed++ : b->tally->failed++;
}

/* ----------------------------------------------------------------------------------------------------------- models */

/* Random ids and types; with holes, about one inner token in six is masked. */
static deberta_status random_batch(ragged_batch *batch, const deberta_model *model, size_t sequences,
                                   const size_t *lengths, bool holes)
{
    deberta_model_info info;
    size_t columns = 0;
    info = *deberta_model_describe(model);
    for (size_t s = 0; s < sequences; s++) columns = lengths[s] > columns ? lengths[s] : columns;
    double *ids = calloc(3 * sequences * columns, sizeof *ids), *mask = ids + sequences * columns;
    double *types = mask + sequences * columns;
    for (size_t s = 0; s < sequences; s++) {
        for (size_t t = 0; t < lengths[s]; t++) {
            size_t e = s * columns + t;
            bool inner = t > 0 && t + 1 < lengths[s];
            ids[e] = random_number(info.vocabulary_size);
            types[e] = info.token_types > 1 ? random_number(info.token_types) : 0;
            mask[e] = !(holes && inner && random_number(6) == 0);
        }
    }
    deberta_status status = ragged_create(batch, sequences, columns, ids, mask, types, NULL);
    free(ids);
    return status;
}

static void check_lengths(bench *b, size_t sequences, const size_t *lengths, bool holes)
{
    ragged_batch batch;
    if (random_batch(&batch, b->model, sequences, lengths, holes) != DEBERTA_OK) {
        b->tally->failed++;
        return;
    }
    check_batch(b, &batch);
    if (sequences > 1) check_head_subsets(b, &batch);
    ragged_free(&batch);
}

/* Ends of 16-wide panels, 24-query groups, 48-, 96- and 126-row blocks, 256- and 512-key chunks. */
static const size_t edge_lengths[] = {47,  48,  49,  63,  64,  65,  95,  96,  97,  126, 127,
                                      128, 129, 130, 131, 255, 256, 257, 511, 512, 513, 600};

static void check_made_up(const char *path, bool quick, tally *sum)
{
    deberta_model *model = NULL;
    deberta_error error = {0};
    if (deberta_model_open(&model, path, NULL, &error) != DEBERTA_OK) {
        printf("FAIL %s: %s\n", path, error.message);
        sum->failed++;
        return;
    }
    bench b = {.what = path, .model = model, .quick = quick, .tally = sum};
    if (bench_open(&b)) {
        for (size_t n = 1; n <= 40; n += quick ? 5 : 1) check_lengths(&b, 1, &n, false);
        for (size_t i = quick ? 7 : 0; i < sizeof edge_lengths / sizeof *edge_lengths; i += quick ? 6 : 1)
            check_lengths(&b, 1, &edge_lengths[i], i % 4 == 3);
        for (size_t round = 0; round < (quick ? 2 : 8); round++) {
            size_t lengths[6], count = 2 + (size_t)random_number(5);
            for (size_t s = 0; s < count; s++) lengths[s] = 1 + (size_t)random_number(round % 2 ? 200 : 30);
            check_lengths(&b, count, lengths, round % 4 == 2);
        }
    }
    bench_close(&b);
    deberta_model_free(&model);
}

static void check_golden(const char *folder, const char *name, bool quick, tally *sum)
{
    golden_case item;
    deberta_model *model = NULL;
    ragged_batch batch = {0};
    deberta_error error = {0};
    deberta_status status = golden_case_read(&item, folder, name, NULL, NULL, &error);
    if (status == DEBERTA_OK)
        status = ragged_create(&batch, item.rows, item.columns, item.ids, item.mask, item.types, &error);
    if (status == DEBERTA_OK) status = deberta_model_open(&model, item.folder, NULL, &error);
    bench b = {.what = name, .model = model, .quick = quick, .tally = sum};
    if (status != DEBERTA_OK) {
        printf("FAIL %s: %s\n", name, error.message);
        sum->failed++;
    } else if (bench_open(&b)) {
        check_batch(&b, &batch);
        check_head_subsets(&b, &batch);
    }
    bench_close(&b);
    deberta_model_free(&model);
    ragged_free(&batch);
    golden_case_free(&item);
}

/* Small layers with odd sizes: v3, v1, v2 with convolution, one without relative attention, one whose distances go
 * beyond M. */
static const char *const made_up[] = {
    "synthetic:v3-base,layers=2,hidden=72,heads=3,intermediate=100,vocab=61,buckets=32,rtd=1",
    "synthetic:v1-base,layers=2,hidden=40,heads=2,intermediate=52,vocab=61,positions=1024,lm=1",
    "synthetic:v2-xlarge,layers=2,hidden=64,heads=4,intermediate=64,vocab=61,buckets=8,distance=64",
    "synthetic:v3-base,layers=1,hidden=48,heads=3,intermediate=64,vocab=61,terms=none",
    "synthetic:v3-base,layers=2,hidden=64,heads=1,intermediate=80,vocab=61,buckets=16,distance=24,terms=p2c",
};

enum { MADE_UP = sizeof made_up / sizeof *made_up };

typedef struct settings {
    const char *folder;
    uint64_t seed;
    bool quick, golden;
    size_t part, parts;
} settings;

/* Is the model of that number, golden and then made up, in the part that is asked for? */
static bool is_in_part(const settings *s, size_t model) { return model % s->parts + 1 == s->part; }

static bool parse(settings *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0)
            s->quick = true;
        else if (strcmp(argv[i], "--golden") == 0)
            s->golden = true;
        else if (strcmp(argv[i], "--folder") == 0)
            s->folder = value, i++;
        else if (strcmp(argv[i], "--seed") == 0)
            s->seed = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--part") == 0 && sscanf(value, "%zu/%zu", &s->part, &s->parts) == 2 && s->part > 0 &&
                 s->part <= s->parts)
            i++;
        else
            return fprintf(stderr, "unknown option %s %s\n", argv[i], value), false;
    }
    return true;
}

int main(int argc, char **argv)
{
    settings s = {.folder = "tests/golden",
                  .seed = 20240607,
                  .quick = getenv("DEBERTA_TEST_QUICK") != NULL,
                  .part = 1,
                  .parts = 1};
    size_t models = 0;
    tally sum = {0};
    char **names;
    deberta_error error = {0};
    if (!parse(&s, argc, argv)) return 2;
    printf("seed %llu\n", (unsigned long long)s.seed);
    for (size_t isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        const char *missing = deberta_isa_missing((deberta_isa)isa);
        if (missing) printf("skip tier %s: %s\n", deberta_isa_name((deberta_isa)isa), missing);
        sum.skipped += missing != NULL;
    }
    if (golden_list(&names, s.folder, &error) != DEBERTA_OK) return fprintf(stderr, "%s\n", error.message), 2;
    for (size_t i = 0, step = s.quick ? 5 : 1; names[i]; i++) {
        if (i % step == 0 && is_in_part(&s, models++)) check_golden(s.folder, names[i], s.quick, &sum);
    }
    golden_list_free(&names);
    for (size_t i = 0; i < MADE_UP && !s.golden; i++) {
        random_state = 2 * (s.seed + i) + 1; /* its own: the same texts whether others went before or not */
        if (is_in_part(&s, models++)) check_made_up(made_up[i], s.quick, &sum);
    }
    printf("%zu passed, %zu failed, %zu skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed > 0 || sum.passed == 0;
}
