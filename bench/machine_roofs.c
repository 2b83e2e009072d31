/* Measures the machine's limits. Everything before an encode runs in a child process, because its arrays would
 * otherwise count as memory of the model that is measured next. Slices of the same loops run between encodes.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/machine_roofs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/statistics.h"
#include "bench/timer.h"
#include "core/base/cpu.h"
#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/parallel.h"
#include "core/dispatch.h"
#include "output/scope.h"
#include "simd/peak.h"

enum {
    WINDOWS =
        100, /* windows, of which the best counts, as disturbances only ever slow down; many short ones find a gap */
    TASKS_PER_THREAD = 4, /* several, so that a late thread costs a quarter of a window instead of all of it */
    STREAM_WINDOWS = 3,
    STREAM_BLOCK = 1 << 18, /* floats of a task: 1 MiB */
    SLICE_WINDOWS = 2,      /* windows of a slice between encodes */
    SLICE_BLOCKS = 16,      /* blocks that a reading slice takes: 48 MiB */
    WAKING_PART = 16,
    WIDE_CLOCKS = 5
};
#define TASK_SECONDS 0.25e-3

/* ---------------------------------------------------------------------------------------------------- multiply-adds */

#define PEAK_OF_0(x)      NULL
#define PEAK_OF_1(x)      (x)
#define PEAK_OF(given, x) PEAK_OF_##given(x)

static const struct {
    const char *name;
    const peak_kernel *floats, *bytes; /* NULL: the tier is missing, or not compiled in */
} peaks[] = {
#define X(NAME, name, BELOW, ARCH, needs, parts, not_saved, word, floats, bytes)                                       \
    {#name, IF_BUILT(HAVE_##NAME, PEAK_OF(floats, &peak_##name)),                                                      \
     IF_BUILT(HAVE_##NAME, PEAK_OF(bytes, &peak_bytes_##name))},
    TIER_LIST(X) PART_LIST(X)
#undef X
};

static size_t peak_by_name(const char *name)
{
    size_t k = 0;
    while (k + 1 < sizeof peaks / sizeof *peaks && strcmp(peaks[k].name, name) != 0) k++;
    return k;
}

/* Returns the kernel for floats; NULL if the tier, or for scalar the instruction, is missing. */
static const peak_kernel *kernel_of(deberta_isa isa)
{
#if defined(__x86_64__)
    if (isa == DEBERTA_ISA_SCALAR && !(cpu_features() & CPU_FMA)) return NULL;
#endif
    return deberta_isa_missing(isa) ? NULL : peaks[peak_by_name(deberta_isa_name(isa))].floats;
}

/* Returns the kernel that multiplies integers, likewise. */
static const peak_kernel *integer_kernel_of(deberta_isa isa)
{
    kernels table;
    if (kernels_select_with_tiles(&table, isa, NULL) != DEBERTA_OK) return NULL;
    return peaks[peak_by_name(table.gemm_u8_isa)].bytes;
}

typedef struct peak_work {
    const peak_kernel *kernel;
    size_t rounds;
    volatile float sink; /* written by all threads and never read, so that the loop is not removed */
} peak_work;

static void run_chains(void *context, size_t task, size_t worker)
{
    (void)task, (void)worker;
    peak_work *work = context;
    work->sink = work->kernel->run(work->rounds);
}

/* Returns the rounds that one thread does in TASK_SECONDS. */
static size_t calibrate(const peak_kernel *kernel)
{
    peak_work work = {.kernel = kernel, .rounds = 1000};
    for (;;) {
        double start = timer_now();
        run_chains(&work, 0, 0);
        double seconds = timer_now() - start;
        if (seconds >= TASK_SECONDS / 2) return (size_t)((double)work.rounds * TASK_SECONDS / seconds) + 1;
        work.rounds *= 2;
    }
}

/* Returns the rate of all threads in GFLOP/s. busy: number of threads that have a core. */
static double chain_gflops(executor *by, size_t busy, const peak_kernel *kernel, size_t rounds)
{
    size_t tasks = busy * TASKS_PER_THREAD;
    peak_work work = {.kernel = kernel, .rounds = rounds};
    double start = timer_now();
    parallel_for(by, tasks, run_chains, &work);
    return 1e-9 * (double)(tasks * rounds * kernel->flops_per_round) / (timer_now() - start);
}

void machine_slices_prepare(machine_slices *slices, deberta_isa isa, executor *by, size_t cores)
{
    *slices = (machine_slices){.by = by,
                               .kernels = {kernel_of(isa), integer_kernel_of(isa)},
                               .busy = by->threads < cores ? by->threads : cores};
    for (int kind = 0; kind < 2; kind++)
        if (slices->kernels[kind]) slices->rounds[kind] = calibrate(slices->kernels[kind]);
}

/* The first loop, which is not timed, wakes the threads. */
double machine_slice_products(const machine_slices *slices, bool of_integers, double *seconds)
{
    const peak_kernel *kernel = slices->kernels[of_integers];
    const size_t rounds = slices->rounds[of_integers];
    if (!kernel) return 0;
    const double begun = timer_now();
    executor_begin(slices->by);
    chain_gflops(slices->by, slices->busy, kernel, rounds / WAKING_PART + 1);
    const double rate = chain_gflops(slices->by, SLICE_WINDOWS * slices->busy, kernel, rounds);
    executor_end(slices->by);
    *seconds += timer_now() - begun;
    return rate;
}

double machine_wide_clock_ghz(void)
{
    const peak_kernel *kernel = kernel_of(deberta_isa_best());
    double clocks[WIDE_CLOCKS];
    if (!kernel) return 0;
    peak_work work = {.kernel = kernel, .rounds = SLICE_WINDOWS * TASKS_PER_THREAD * calibrate(kernel)};
    for (size_t k = 0; k < WIDE_CLOCKS; k++) {
        run_chains(&work, 0, 0);
        clocks[k] = timer_clock_ghz_now();
    }
    return statistics_median(clocks, WIDE_CLOCKS);
}

static void raise_to(double *best, double value)
{
    if (value > *best) *best = value;
}

/* Kinds of chains: float32 of every tier, followed by the integers of every tier. */
enum { CHAIN_KINDS = 2 * DEBERTA_ISA_COUNT };

static const peak_kernel *chain_kernel(int kind, unsigned isa_mask)
{
    const int isa = kind % DEBERTA_ISA_COUNT;
    if (isa == DEBERTA_ISA_AUTO || !(isa_mask & 1u << isa)) return NULL;
    return kind < DEBERTA_ISA_COUNT ? kernel_of((deberta_isa)isa) : integer_kernel_of((deberta_isa)isa);
}

static void measure_chains(executor *by, size_t cores, machine_roof *roof, unsigned isa_mask)
{
    const size_t busy = by->threads < cores ? by->threads : cores;
    const peak_kernel *kernels[CHAIN_KINDS];
    size_t rounds[CHAIN_KINDS] = {0};
    double rates[CHAIN_KINDS][WINDOWS];
    for (int kind = 0; kind < CHAIN_KINDS; kind++) {
        kernels[kind] = chain_kernel(kind, isa_mask);
        if (kernels[kind]) rounds[kind] = calibrate(kernels[kind]);
    }
    for (int window = 0; window < WINDOWS; window++) /* in turn, so that a disturbance does not hit one alone */
        for (int kind = 0; kind < CHAIN_KINDS; kind++) {
            const int isa = kind % DEBERTA_ISA_COUNT;
            if (!kernels[kind]) continue;
            rates[kind][window] = chain_gflops(by, busy, kernels[kind], rounds[kind]);
            raise_to(kind < DEBERTA_ISA_COUNT ? &roof->gflops[isa] : &roof->gops[isa], rates[kind][window]);
        }
    int fastest = DEBERTA_ISA_AUTO;
    for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
        if (roof->gflops[isa] > roof->gflops[fastest]) fastest = isa;
    }
    if (roof->gflops[fastest] > 0)
        roof->typical_share = statistics_median(rates[fastest], WINDOWS) / roof->gflops[fastest];
}

/* -------------------------------------------------------------------------------------------------------- bandwidth */

typedef struct stream {
    float *a, *b, *c;
    size_t blocks;
    volatile uint64_t sink;
} stream;

static void fill_block(void *context, size_t task, size_t worker)
{
    (void)worker;
    stream *s = context;
    for (size_t i = task * STREAM_BLOCK; i < (task + 1) * STREAM_BLOCK; i++) {
        s->a[i] = 0;
        s->b[i] = (float)(i & 1023);
        s->c[i] = 1;
    }
}

static void triad_block(void *context, size_t task, size_t worker)
{
    (void)worker;
    stream *s = context;
    float *restrict a = s->a + task * STREAM_BLOCK;
    const float *restrict b = s->b + task * STREAM_BLOCK, *restrict c = s->c + task * STREAM_BLOCK;
    for (size_t i = 0; i < STREAM_BLOCK; i++) a[i] = b[i] + 3 * c[i];
}

/* Sums whole numbers, because the compiler may reorder their sum and so uses vector registers. */
static void read_block(void *context, size_t task, size_t worker)
{
    (void)worker;
    stream *s = context;
    const float *of[] = {s->a, s->b, s->c};
    uint64_t sum = 0;
    for (size_t array = 0; array < 3; array++) {
        const unsigned char *bytes = (const unsigned char *)(of[array] + task * STREAM_BLOCK);
        for (size_t i = 0; i < STREAM_BLOCK * sizeof(float); i += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, bytes + i, sizeof word);
            sum += word;
        }
    }
    s->sink = sum;
}

static double bandwidth_gbs(executor *by, stream *s, parallel_body body)
{
    double start = timer_now();
    parallel_for(by, s->blocks, body, s);
    return 1e-9 * (double)(s->blocks * STREAM_BLOCK * sizeof(float) * 3) / (timer_now() - start);
}

static void measure_bandwidth(executor *by, machine_roof *roof, stream *s)
{
    for (int window = 0; window < STREAM_WINDOWS; window++) {
        raise_to(&roof->triad_gbs, bandwidth_gbs(by, s, triad_block));
        raise_to(&roof->read_gbs, bandwidth_gbs(by, s, read_block));
    }
}

/* Returns the blocks of each of three arrays, which together have four times the size of the caches, at least 192 MiB,
 * and at most a quarter of the free memory and 1 GiB: a guest may see the whole cache of its host, and four times that
 * would take too long. */
static size_t stream_blocks(const topology_info *machine)
{
    size_t mebibyte = (size_t)1 << 20;
    size_t bytes = 4 * topology_cache_bytes(machine);
    size_t available = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 4;
    if (bytes < 192 * mebibyte) bytes = 192 * mebibyte;
    if (bytes > 1024 * mebibyte) bytes = 1024 * mebibyte;
    if (bytes > available) bytes = available;
    size_t blocks = bytes / (3 * STREAM_BLOCK * sizeof(float));
    return blocks ? blocks : 1;
}

static void carve_stream(arena *memory, stream *s)
{
    s->a = arena_take(memory, s->blocks * STREAM_BLOCK, sizeof(float));
    s->b = arena_take(memory, s->blocks * STREAM_BLOCK, sizeof(float));
    s->c = arena_take(memory, s->blocks * STREAM_BLOCK, sizeof(float));
}

/* --------------------------------------------------------------------------------------------- slices between encodes */

struct machine_stream {
    arena memory;
    stream arrays, piece; /* all arrays, and the blocks of a slice */
    size_t next;          /* index of the next block */
};

machine_stream *machine_stream_new(const topology_info *machine)
{
    machine_stream *made = memory_take(1, sizeof *made);
    *made = (machine_stream){.arrays.blocks = stream_blocks(machine)};
    carve_stream(&made->memory, &made->arrays);
    if (arena_allocate(&made->memory, "reading between encodes", 0, NULL) != DEBERTA_OK) {
        free(made);
        return NULL;
    }
    carve_stream(&made->memory, &made->arrays);
    for (size_t k = 0; k < made->arrays.blocks; k++) fill_block(&made->arrays, k, 0);
    return made;
}

void machine_stream_free(machine_stream **old)
{
    if (*old) arena_release(&(*old)->memory);
    free(*old);
    *old = NULL;
}

double machine_slice_reading(machine_stream *s, executor *by, double *seconds)
{
    const size_t blocks = minimum(SLICE_BLOCKS, s->arrays.blocks);
    if (s->next + blocks > s->arrays.blocks) s->next = 0;
    const size_t first = s->next * STREAM_BLOCK;
    s->piece = (stream){.a = s->arrays.a + first, .b = s->arrays.b + first, .c = s->arrays.c + first, .blocks = blocks};
    s->next += blocks;
    const double begun = timer_now();
    executor_begin(by);
    const double rate = bandwidth_gbs(by, &s->piece, read_block);
    executor_end(by);
    *seconds += timer_now() - begun;
    return rate;
}

/* -------------------------------------------------------------------------------------------------------- the child */

typedef struct roof_request {
    const size_t *threads;
    size_t count;
    unsigned isa_mask;
    bool bandwidth;
} roof_request;

static deberta_status measure_roof(machine_roof *roof, const roof_request *request, stream *s, deberta_error *err)
{
    executor *by = NULL;
    topology_info machine;
    DEBERTA_TRY(topology_read(&machine, err));
    DEBERTA_TRY(executor_create(&by, roof->threads, false, &machine, err));
    measure_chains(by, machine.usable_cores, roof, request->isa_mask);
    if (request->bandwidth) measure_bandwidth(by, roof, s);
    executor_free(&by);
    return DEBERTA_OK;
}

/* Fills the arrays with all threads of the largest pool, which spreads them over the memory nodes. */
static deberta_status fill_stream(stream *s, arena *memory, const roof_request *request, deberta_error *err)
{
    topology_info machine;
    executor *by = NULL;
    size_t most = 1;
    for (size_t i = 0; i < request->count; i++) most = request->threads[i] > most ? request->threads[i] : most;
    DEBERTA_TRY(topology_read(&machine, err));
    s->blocks = stream_blocks(&machine);
    carve_stream(memory, s);
    DEBERTA_TRY(arena_allocate(memory, "the bandwidth measurement", 0, err));
    carve_stream(memory, s);
    DEBERTA_TRY(executor_create(&by, most, false, &machine, err));
    parallel_for(by, s->blocks, fill_block, s);
    executor_free(&by);
    return DEBERTA_OK;
}

static deberta_status measure_roofs(const void *context, void *answer, deberta_error *err)
{
    const roof_request *request = context;
    machine_roofs *roofs = answer;
    arena memory = {0};
    stream s = {0};
    deberta_status status = DEBERTA_OK;
    if (request->bandwidth) {
        DEBERTA_TRY_OR_FAIL(status, fill_stream(&s, &memory, request, err));
        roofs->stream_bytes = 3 * s.blocks * STREAM_BLOCK * sizeof(float);
    }
    roofs->count = request->count;
    for (size_t i = 0; i < request->count; i++) {
        roofs->roof[i].threads = request->threads[i];
        DEBERTA_TRY_OR_FAIL(status, measure_roof(&roofs->roof[i], request, &s, err));
    }
fail:
    arena_release(&memory);
    return status;
}

deberta_status machine_measure_roofs(machine_roofs *roofs, const size_t *threads, size_t count, unsigned isa_mask,
                                     bool bandwidth, deberta_error *err)
{
    if (count > MACHINE_MAX_ROOFS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu numbers of threads; at most %d can be measured at once", count,
                     MACHINE_MAX_ROOFS);
    roof_request request = {.threads = threads, .count = count, .isa_mask = isa_mask, .bandwidth = bandwidth};
    *roofs = (machine_roofs){0};
    return child_run(measure_roofs, &request, roofs, sizeof *roofs, "measuring the machine's limits", err);
}

const machine_roof *machine_find_roof(const machine_roofs *roofs, size_t threads)
{
    for (size_t i = 0; i < roofs->count; i++) {
        if (roofs->roof[i].threads == threads) return &roofs->roof[i];
    }
    return NULL;
}

double machine_rate_of(double gflops, double gops, deberta_precision precision)
{
    enum { PRODUCTS_OF_INT16 = 3 };
    switch (precision) {
    case DEBERTA_PRECISION_INT8: return gops;
    case DEBERTA_PRECISION_INT16: return gops / PRODUCTS_OF_INT16;
    default: return gflops;
    }
}

double machine_peak_of(const machine_roofs *roofs, deberta_isa isa, size_t threads, deberta_precision precision)
{
    const machine_roof *roof = machine_find_roof(roofs, threads);
    if (!roof || (unsigned)isa >= DEBERTA_ISA_COUNT) return 0;
    return machine_rate_of(roof->gflops[isa], roof->gops[isa], precision);
}

double machine_peak_gflops(const machine_roofs *roofs, deberta_isa isa, size_t threads)
{
    return machine_peak_of(roofs, isa, threads, DEBERTA_PRECISION_FLOAT32);
}
