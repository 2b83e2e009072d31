/* The tile registers of AMX belong to a process that asks, and to a thread while it multiplies: products of several
 * threads under signals, of children, with small signal stacks, and what a caller finds afterwards. Bits are those of
 * the scalar kernels. Where the processor has no tiles these tests are skipped.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "tests/unit/test.h"

#include "bench/child.h"
#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/dispatch.h"

enum { MOST_ROWS = 70, MOST_PANELS = 9, MOST_WIDTH = MOST_PANELS * PANEL, TILED_ROWS = 80 };
enum { DRAWN = 40, THREADS = 4 };

/* A drawn product: all bytes, all shapes, and the epilogues of linear layers and of attention. */
typedef struct drawn_product {
    integer_format format;
    integer_gemm_task task;
    uint8_t a[2 * TILED_ROWS * MAX_INTEGER_DEPTH];
    int8_t b[2 * MAX_INTEGER_DEPTH * MOST_WIDTH];
    float a_scale[TILED_ROWS], b_scale[MOST_WIDTH], bias[MOST_WIDTH], residual[MOST_ROWS * MOST_WIDTH];
    int32_t a_zero[TILED_ROWS], b_sum[2 * MOST_WIDTH];
    float results[2][MOST_ROWS * MOST_WIDTH];
} drawn_product;

/* b_sum is drawn as well: it is an operand as others are. */
static void draw_product(drawn_product *p, uint64_t *state)
{
    p->format = (integer_format)random_below(state, 3);
    const size_t most_depth = p->format == FIFTEEN_BITS ? MAX_U15_DEPTH : MAX_INTEGER_DEPTH;
    for (size_t k = 0; k < sizeof p->a; k++) p->a[k] = (uint8_t)random_next(state);
    for (size_t k = 0; k < sizeof p->b; k++) p->b[k] = (int8_t)((int)random_below(state, 255) - 127);
    for (size_t i = 0; i < TILED_ROWS; i++) {
        p->a_scale[i] = (float)random_fraction(state);
        p->a_zero[i] = (int32_t)random_below(state, 256);
    }
    for (size_t j = 0; j < MOST_WIDTH; j++) {
        p->b_scale[j] = (float)random_fraction(state) * 0x1p-10f;
        p->bias[j] = (float)random_fraction(state);
        p->b_sum[2 * j] = (int32_t)random_below(state, 100000) - 50000;
        p->b_sum[2 * j + 1] = (int32_t)random_below(state, 100000) - 50000;
    }
    for (size_t e = 0; e < MOST_ROWS * MOST_WIDTH; e++) p->residual[e] = (float)random_fraction(state);
    p->task = (integer_gemm_task){
        .rows = 1 + random_below(state, MOST_ROWS),
        .depth = DIGIT_TILE_INPUTS * (1 + random_below(state, most_depth / DIGIT_TILE_INPUTS)),
        .panels = 1 + random_below(state, MOST_PANELS),
        .a = p->a,
        .a_plane_bytes = (size_t)TILED_ROWS * MAX_INTEGER_DEPTH,
        .a_scale = p->a_scale,
        .a_zero = p->a_zero,
        .b = p->b,
        .b_scale = p->b_scale,
        .b_sum = p->b_sum,
        .ldc = MOST_WIDTH,
        .c_panel_stride = PANEL,
        .accumulate = random_below(state, 2),
        .gelu = random_below(state, 2),
        .next = random_below(state, 2) ? p->b : NULL,
    };
    if (!p->task.accumulate) p->task.bias = p->bias;
    if (random_below(state, 2)) {
        p->task.residual = p->residual;
        p->task.ld_residual = MOST_WIDTH;
        p->task.residual_panel_stride = PANEL;
    }
}

static void multiply(drawn_product *p, const kernels *table, float *result)
{
    p->task.c = result;
    for (size_t e = 0; e < MOST_ROWS * MOST_WIDTH; e++) result[e] = (float)e;
    switch (p->format) {
    case ONE_DIGIT: table->gemm_u8(&p->task); break;
    case TWO_DIGITS: table->gemm_u8x2(&p->task); break;
    default: table->gemm_u15(&p->task);
    }
}

/* How many of some drawn products differ from the scalar kernels'. */
static size_t differing(const kernels *table, uint64_t seed, size_t count)
{
    FREED_BY(free_memory) drawn_product *p = malloc(sizeof *p);
    kernels scalar;
    size_t found = 0;
    if (!p || kernels_select(&scalar, DEBERTA_ISA_SCALAR, NULL) != DEBERTA_OK) abort();
    for (size_t k = 0; k < count; k++) {
        draw_product(p, &seed);
        multiply(p, &scalar, p->results[0]);
        multiply(p, table, p->results[1]);
        found += memcmp(p->results[0], p->results[1], sizeof p->results[0]) != 0;
    }
    return found;
}

static kernels best_table(void)
{
    kernels table;
    if (kernels_select_with_tiles(&table, DEBERTA_ISA_AUTO, NULL) != DEBERTA_OK) abort();
    return table;
}

static bool uses_tiles(const kernels *table) { return strcmp(table->gemm_u8_isa, "avx512amx") == 0; }

static void skip_without_tiles(void)
{
    if (!(cpu_features() & CPU_AVX512AMX) || !HAVE_AVX512AMX) skip();
}

/* ------------------------------------------------------------------------------------------------------- permission */

/* Must be the first test: a process that has tiles keeps them. */
static deberta_status work_with_small_stack(const void *context, void *answer, deberta_error *err)
{
    (void)context, (void)err;
    static char small[2048];
    const stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    stack_t before;
    bool *right = answer;
    if (sigaltstack(&stack, &before) != 0) return DEBERTA_OK;
    const kernels table = best_table();
    *right = !cpu_allow_tiles() && !uses_tiles(&table) && differing(&table, 1, DRAWN) == 0;
    sigaltstack(&before, NULL); /* a sanitizer takes its own down in the end */
    return DEBERTA_OK;
}

TEST(test_a_small_signal_stack_keeps_tiles_away)
{
    bool right = false;
    skip_without_tiles();
    assert_ok(child_run(work_with_small_stack, NULL, &right, sizeof right, "working", NULL));
    assert_true(right);
}

static deberta_status work_after_permission(const void *context, void *answer, deberta_error *err)
{
    (void)context, (void)err;
    static char small[2048];
    const stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    const kernels table = best_table();
    bool *right = answer;
    *right = uses_tiles(&table) && sigaltstack(&stack, NULL) != 0 && errno == ENOMEM;
    return DEBERTA_OK;
}

TEST(test_small_signal_stacks_are_refused_after_tiles)
{
    bool right = false;
    skip_without_tiles();
    assert_ok(child_run(work_after_permission, NULL, &right, sizeof right, "working", NULL));
    assert_true(right);
}

/* ------------------------------------------------------------------------------------------------------- who has them */

static deberta_status multiply_in_child(const void *context, void *answer, deberta_error *err)
{
    (void)err;
    *(bool *)answer = differing(context, 3, DRAWN) == 0;
    return DEBERTA_OK;
}

TEST(test_children_multiply_with_the_table_of_their_parent)
{
    bool right = false;
    skip_without_tiles();
    const kernels table = best_table();
    assert_true(uses_tiles(&table));
    assert_int_equal(differing(&table, 2, DRAWN), 0);
    assert_ok(child_run(multiply_in_child, &table, &right, sizeof right, "multiplying", NULL));
    assert_true(right);
}

typedef struct tile_thread {
    pthread_t thread;
    const kernels *table;
    uint64_t seed;
    size_t differing;
} tile_thread;

static void *multiply_in_thread(void *context)
{
    tile_thread *of = context;
    of->differing = differing(of->table, of->seed, DRAWN);
    return NULL;
}

static volatile float disturbed;
static volatile sig_atomic_t signals;

/* Floats of a handler come and go in the same registers. */
static void disturb(int number)
{
    float x[64];
    for (int k = 0; k < 64; k++) x[k] = (float)(number + k) * disturbed;
    for (int k = 0; k < 64; k++) disturbed = disturbed + x[k];
    signals = signals + 1;
}

/* More threads than processors, so that they are taken off in the middle of products, and a signal a millisecond. */
TEST(test_threads_and_signals_leave_tiles_alone)
{
    const uint64_t seed = (uint64_t)time(NULL);
    tile_thread threads[THREADS];
    skip_without_tiles();
    const kernels table = best_table();
    const struct sigaction action = {.sa_handler = disturb, .sa_flags = SA_RESTART};
    const struct itimerval often = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}}, never = {0};
    struct sigaction before;
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_PROF, &often, NULL), 0);
    for (size_t t = 0; t < THREADS; t++) {
        threads[t] = (tile_thread){.table = &table, .seed = seed + t};
        assert_int_equal(pthread_create(&threads[t].thread, NULL, multiply_in_thread, &threads[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t].thread, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &before, NULL);
    assert_true(signals > 0);
    for (size_t t = 0; t < THREADS; t++)
        if (threads[t].differing) fail_msg("seed %llu: products differ", (unsigned long long)threads[t].seed);
}

/* What a caller finds: registers that are not in use, so that no switch of threads saves them. */
TEST(test_tiles_are_given_back)
{
    skip_without_tiles();
#if defined(__x86_64__)
    const kernels table = best_table();
    drawn_product *p = malloc(sizeof *p);
    uint64_t state = 5;
    assert_non_null(p);
    for (int k = 0; k < DRAWN; k++) {
        static const unsigned char zeros[64];
        _Alignas(64) unsigned char config[64] = {1, [16] = 64, [48] = 16}; /* one register, in use by the caller */
        __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" ::"a"(config) : "memory"); /* ldtilecfg (%rax) */
        draw_product(p, &state);
        multiply(p, &table, p->results[0]);
        __asm__ volatile(".byte 0xc4, 0xe2, 0x79, 0x49, 0x00" ::"a"(config) : "memory"); /* sttilecfg (%rax) */
        assert_memory_equal(config, zeros, sizeof config);
    }
    free(p);
#endif
}
