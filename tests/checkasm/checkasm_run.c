/* How one case runs: buffers between guard pages, the protected call, the comparison byte for byte, and the words for
 * what went wrong. Nothing here knows a kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/numbers.h"

enum { CAPACITY = 1 << 18, /* floats of the largest test_buffer */ CANARIES = 32, MESSAGES = 5 };

/* Where the copies of one buffer live: the tested one between two pages, the others in ordinary memory. */
typedef struct buffer_mapping {
    unsigned char *base; /* page, data, page */
    float *initial, *expected;
} buffer_mapping;

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t data_bytes(void) { return CAPACITY * sizeof(float); }

/* ---------------------------------------------------------------------------------------------------------- signals */

static sigjmp_buf crash_return;
static volatile sig_atomic_t crash_armed, crash_signal;
static void *volatile crash_address;

static void on_crash(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (!crash_armed) {
        /* Not inside a kernel: a bug of the test itself. Die of it as if there were no handler. */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    crash_armed = 0;
    crash_signal = signal_number;
    crash_address = info->si_addr;
    siglongjmp(crash_return, 1);
}

static void catch_crashes(void)
{
    /* SA_NODEFER: the handler leaves by a jump, which must not leave the signal blocked. */
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}

/* A function of its own: nothing that lives in a register may be needed after the jump. */
static bool call_survives(kernel_call call, const kernels *table, const void *task)
{
    if (sigsetjmp(crash_return, 0)) return false;
    crash_armed = 1;
    call(table, task);
    crash_armed = 0;
    return true;
}

/* ---------------------------------------------------------------------------------------------------- life of a run */

static void die(const char *what)
{
    perror(what);
    exit(4);
}

void run_setup(test_run *run, const test_options *options)
{
    *run = (test_run){.options = options};
    run->mappings = calloc(PROBLEM_ARRAYS, sizeof *run->mappings);
    if (!run->mappings) die("checkasm: buffers");
    const size_t page = page_bytes(), bytes = data_bytes();
    for (size_t i = 0; i < PROBLEM_ARRAYS; i++) {
        buffer_mapping *m = &run->mappings[i];
        m->base = mmap(NULL, bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (m->base == MAP_FAILED) die("checkasm: buffers");
        if (!options->no_guard &&
            (mprotect(m->base, page, PROT_NONE) || mprotect(m->base + page + bytes, page, PROT_NONE)))
            die("checkasm: guard pages");
        m->initial = malloc(bytes + 2 * CANARIES * sizeof(float));
        m->expected = malloc(bytes + 2 * CANARIES * sizeof(float));
        if (!m->initial || !m->expected) die("checkasm: buffers");
    }
    catch_crashes();
}

void run_release(test_run *run)
{
    for (size_t i = 0; i < PROBLEM_ARRAYS; i++) {
        munmap(run->mappings[i].base, data_bytes() + 2 * page_bytes());
        free(run->mappings[i].initial);
        free(run->mappings[i].expected);
    }
    free(run->mappings);
    run->mappings = NULL;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

/* Numbers of a case depend on the seed, the check and the case alone, so that one case can be repeated by itself. */
static uint64_t case_seed(const test_run *run)
{
    uint64_t hash = 0xcbf29ce484222325u ^ run->options->seed;
    for (const char *c = run->check; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash ^ (run->case_index * 0x9e3779b97f4a7c15u);
}

static bool case_wanted(test_run *run, size_t weight)
{
    if (run->options->only_case != SIZE_MAX) return run->case_index == run->options->only_case;
    if (!run->options->quick || weight <= 1) return true;
    run->random_state = case_seed(run);
    return random_below(&run->random_state, (weight + 2) / 3) == 0;
}

void run_case(test_run *run, size_t weight, case_body body, const void *parameters, const char *format, ...)
{
    run->case_index++;
    if (run->quiet && run->failures > 0) return; /* the fault is caught */
    if (!case_wanted(run, weight)) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->case_text, sizeof run->case_text, format, arguments);
    va_end(arguments);

    run->cases++;
    const size_t failures = run->failures;
    for (int edge = 0; edge < 2 && run->failures == failures; edge++) {
        run->right_edge = edge == 0;
        run->buffer_count = 0;
        run->random_state = case_seed(run);
        body(run, parameters);
    }
}

test_buffer *run_buffer(test_run *run, const char *name, size_t size, array_kind kind)
{
    if (run->buffer_count == PROBLEM_ARRAYS || size + CANARIES > CAPACITY) {
        fprintf(stderr, "checkasm: %s has too many or too large buffers\n", run->check);
        exit(4);
    }
    const buffer_mapping *m = &run->mappings[run->buffer_count];
    test_buffer *b = &run->buffers[run->buffer_count++];
    *b = (test_buffer){.name = name, .size = size, .kind = kind};

    /* Right: the last float touches the page behind. Left: the first one touches the page in front, or lies 1 to 3
     * floats behind it, so that every alignment occurs. */
    float *first = (float *)(m->base + page_bytes());
    float *data = run->right_edge ? first + CAPACITY - size : first + run->case_index % 4;
    b->canary_before = run->right_edge || run->options->no_guard ? CANARIES : run->case_index % 4;
    b->canary_behind = !run->right_edge || run->options->no_guard ? CANARIES : 0;
    b->copy[COPY_TESTED] = data;
    b->copy[COPY_INITIAL] = m->initial + CANARIES;
    b->copy[COPY_EXPECTED] = m->expected + CANARIES;
    poison_words(b->copy[COPY_INITIAL] - b->canary_before, b->canary_before + size + b->canary_behind);
    return b;
}

static void protect_inputs(const test_run *run, int protection)
{
    if (run->options->no_guard) return;
    for (size_t i = 0; i < run->buffer_count; i++) {
        if (run->buffers[i].kind != ARRAY_INPUT) continue;
        if (mprotect(run->mappings[i].base + page_bytes(), data_bytes(), protection)) die("checkasm: mprotect");
    }
}

/* ------------------------------------------------------------------------------------------------------- comparison */

/* Index of the first word of [first, end) that differs, or end. Indices may be negative: canaries. */
static ptrdiff_t first_difference(const test_buffer *b, ptrdiff_t first, ptrdiff_t end)
{
    const float *got = b->copy[COPY_TESTED], *want = b->copy[COPY_EXPECTED];
    if (end <= first || memcmp(got + first, want + first, (size_t)(end - first) * sizeof(float)) == 0) return end;
    for (ptrdiff_t i = first; i < end; i++)
        if (!same_word(float_bits(got[i]), float_bits(want[i]), b->kind)) return i;
    return end;
}

static bool compare_buffer(test_run *run, const test_buffer *b)
{
    const ptrdiff_t begin = -(ptrdiff_t)b->canary_before, size = (ptrdiff_t)b->size;
    const ptrdiff_t end = size + (ptrdiff_t)b->canary_behind;
    ptrdiff_t i = first_difference(b, begin, 0);
    if (i < 0) {
        run_fail(run, "wrote %td floats in front of %s", -i, b->name);
        return false;
    }
    i = first_difference(b, size, end);
    if (i < end) {
        run_fail(run, "wrote behind %s: element %td of %td", b->name, i, size);
        return false;
    }
    if (b->kind == ARRAY_OUTPUT_ANY) return true;
    i = first_difference(b, 0, size);
    if (i == size) return true;

    const float got = b->copy[COPY_TESTED][i], want = b->copy[COPY_EXPECTED][i];
    const char *what = b->kind == ARRAY_INPUT       ? "changed its input"
                       : float_bits(want) == POISON ? "wrote between the rows of"
                       : float_bits(got) == POISON  ? "left unwritten"
                                                    : "other bits than the scalar kernel in";
    run_fail(run, "%s %s[%td]: got %.9g (%08x), expected %.9g (%08x)", what, b->name, i, got, float_bits(got), want,
             float_bits(want));
    return false;
}

static void fail_crash(test_run *run)
{
    const char *name = strsignal(crash_signal);
    for (size_t i = 0; i < run->buffer_count; i++) {
        const test_buffer *b = &run->buffers[i];
        const unsigned char *address = crash_address, *base = run->mappings[i].base;
        if (address < base || address >= base + data_bytes() + 2 * page_bytes()) continue;
        run_fail(run, "%s at %s[%td], which has %zu floats%s", name, b->name,
                 (address - (const unsigned char *)b->copy[COPY_TESTED]) / (ptrdiff_t)sizeof(float), b->size,
                 b->kind == ARRAY_INPUT ? " and is read-only" : "");
        return;
    }
    run_fail(run, "%s at address %p", name, crash_address);
}

bool run_kernels(test_run *run, kernel_call call, task_maker task_for, void *context)
{
    for (size_t i = 0; i < run->buffer_count; i++) {
        const test_buffer *b = &run->buffers[i];
        const size_t bytes = (b->canary_before + b->size + b->canary_behind) * sizeof(float);
        for (int copy = COPY_EXPECTED; copy <= COPY_TESTED; copy++)
            memcpy(b->copy[copy] - b->canary_before, b->copy[COPY_INITIAL] - b->canary_before, bytes);
    }
    if (!call_survives(call, run->expected, task_for(context, COPY_EXPECTED))) {
        run_fail(run, "the kernel that sets the standard: %s at address %p", strsignal(crash_signal), crash_address);
        return false;
    }

    protect_inputs(run, PROT_READ);
    const bool survived = call_survives(call, run->tested, task_for(context, COPY_TESTED));
    protect_inputs(run, PROT_READ | PROT_WRITE);
    if (!survived) {
        fail_crash(run);
        return false;
    }
    bool same = true;
    for (size_t i = 0; i < run->buffer_count && same; i++) same = compare_buffer(run, &run->buffers[i]);
    return same;
}

/* --------------------------------------------------------------------------------------------------------- failures */

static void print_command(const test_run *run)
{
    const test_options *o = run->options;
    printf("      repeat: checkasm --isa=%s --kernel=%s --seed=%llu --case=%zu%s%s\n", run->isa, run->check,
           (unsigned long long)o->seed, run->case_index, o->quick ? " --quick" : "", o->no_guard ? " --no-guard" : "");
}

void run_fail(test_run *run, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    run->failures++;
    if (run->failures == 1) memcpy(run->first_failure, text, sizeof text);
    if (run->quiet || run->failures > MESSAGES) return;
    printf("FAILED %s %s: %s\n      case %zu: %s; seed %llu, %s edge\n", run->check, run->isa, text, run->case_index,
           run->case_text, (unsigned long long)run->options->seed, run->right_edge ? "right" : "left");
    print_command(run);
    if (run->failures == MESSAGES) printf("      further failures of this check are only counted\n");
}

bool run_error(test_run *run, const char *where, size_t index, double got, double want, error_unit unit, double size,
               double limit)
{
    /* Infinities and NaN must be met exactly. */
    double error = 0;
    if (isnan(want))
        error = isnan(got) ? 0 : INFINITY;
    else if (got != want)
        error = isinf(want) ? INFINITY : fabs(got - want) / size;

    /* Negated, so that a NaN fails. */
    if (!(error <= limit)) {
        run_fail(run, "%s[%zu]: got %.9g, expected %.17g, error %.3g %s, allowed %.3g", where, index, got, want, error,
                 unit_name(unit), limit);
        return false;
    }
    error_gauge *gauge = &run->gauges[unit];
    gauge->used = true;
    gauge->worst = fmax(gauge->worst, error);
    if (limit > 0) gauge->worst_of_limit = fmax(gauge->worst_of_limit, error / limit);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- problems */

problem_array *run_array(kernel_problem *p, const char *name)
{
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++)
        if (p->arrays[k].name && strcmp(p->arrays[k].name, name) == 0) return &p->arrays[k];
    return NULL;
}

typedef struct problem_case {
    kernel_problem problem;
    const planted_values *plant;
    const void *what;
} problem_case;

static void call_problem(const kernels *table, const void *task) { problem_call(table, task); }

/* The arrays of a copy. */
static const void *problem_for(void *context, int copy)
{
    test_run *run = context;
    kernel_problem *p = run->problem;
    size_t b = 0;
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++)
        if (p->arrays[k].name) p->arrays[k].at = run->buffers[b++].copy[copy];
    return p;
}

static bool judge_value(void *context, const kernel_problem *p, size_t array, size_t index, double found,
                        const exact_value *want)
{
    test_run *run = context;
    return run_error(run, p->arrays[array].name, index, found, want->value, want->unit, want->size, want->limit);
}

static void problem_body(test_run *run, const void *parameters)
{
    const problem_case *c = parameters;
    kernel_problem p = c->problem;
    p.slot = run->slot;
    p.random = run->random_state;
    problem_lay_out(&p);
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++) {
        problem_array *array = &p.arrays[k];
        if (array->name) array->initial = run_buffer(run, array->name, array->words, array->kind)->copy[COPY_INITIAL];
    }
    problem_fill(&p);
    if (c->plant) c->plant->plant(&p, c->what);
    run->problem = &p;
    if (!run_kernels(run, call_problem, problem_for, run)) return;
    /* float64 is slow, and at the left edge the bits are those of a kernel that was judged at the right one. */
    if (run->right_edge || run->tested == run->expected) problem_exact(&p, &(exact_judge){judge_value, run});
    if (c->plant && c->plant->after) c->plant->after(run, &p);
}

void run_planted(test_run *run, size_t weight, const kernel_problem *problem, const planted_values *plant,
                 const void *what)
{
    char text[200];
    problem_case c = {.problem = *problem, .plant = plant, .what = what};
    c.problem.slot = run->slot;
    problem_text(&c.problem, text, sizeof text);
    run_case(run, weight, problem_body, &c, "%s%s%s", text, plant ? ", " : "", plant ? plant->name : "");
}

void run_problem(test_run *run, size_t weight, const kernel_problem *problem)
{
    run_planted(run, weight, problem, NULL, NULL);
}
