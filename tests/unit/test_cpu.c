/* Tiers: their names, and what is said about one for feature words that this machine does not have.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/part_check.h"
#include "include/deberta_unstable.h"

TEST(test_scalar_is_always_there)
{
    assert_null(cpu_missing(DEBERTA_ISA_SCALAR, 0));
    assert_null(cpu_missing(DEBERTA_ISA_AUTO, 0));
    assert_non_null(cpu_missing(DEBERTA_ISA_COUNT, ~0u));
}

TEST(test_names_lead_back_to_tiers)
{
    for (int isa = DEBERTA_ISA_AUTO; isa < DEBERTA_ISA_COUNT; isa++) {
        deberta_isa found = DEBERTA_ISA_COUNT;
        assert_ok(deberta_isa_from_name(&found, deberta_isa_name((deberta_isa)isa), NULL));
        assert_int_equal(found, isa);
    }
    deberta_isa untouched = DEBERTA_ISA_NEON;
    deberta_error err = {0};
    check_refused(deberta_isa_from_name(&untouched, "AVX2", &err), &err, DEBERTA_E_ARGUMENT,
                  "unknown instruction set 'AVX2'");
    assert_int_equal(untouched, DEBERTA_ISA_NEON);
    assert_int_equal(deberta_isa_from_name(&untouched, NULL, NULL), DEBERTA_E_ARGUMENT);
}

/* The same number of kernels on every tier; scalar's are its own everywhere, the best tier's at least in one place. */
TEST(test_kernels_say_where_they_come_from)
{
    const char *from = NULL;
    size_t count = 0, own = 0;
    for (; deberta_kernel_name(DEBERTA_ISA_SCALAR, count, &from); count++)
        assert_int_equal(strncmp(from, "scalar", 6), 0);
    assert_true(count > 4);
    assert_string_equal(deberta_kernel_name(DEBERTA_ISA_SCALAR, 0, NULL), "gemm_f32");
    for (size_t k = 0; k < count; k++) {
        assert_string_equal(deberta_kernel_name(DEBERTA_ISA_AUTO, k, &from),
                            deberta_kernel_name(DEBERTA_ISA_SCALAR, k, NULL));
        own += strncmp(from, deberta_isa_name(deberta_isa_best()), 4) == 0;
    }
    assert_true(own > 0);
    assert_null(deberta_kernel_name(DEBERTA_ISA_AUTO, count, &from));
    for (int isa = DEBERTA_ISA_SCALAR; isa <= DEBERTA_ISA_COUNT; isa++)
        assert_int_equal(deberta_kernel_name((deberta_isa)isa, 0, NULL) == NULL,
                         deberta_isa_missing((deberta_isa)isa) != NULL);
}

#if defined(__x86_64__)
enum { AVX2_PARTS = CPU_HAS_AVX2 | CPU_HAS_FMA | CPU_HAS_F16C };

/* As the build says, not the library that is tested. */
static bool compiled(deberta_isa isa) { return isa == DEBERTA_ISA_AVX2 ? HAVE_AVX2 : HAVE_AVX512; }

TEST(test_messages_name_the_first_missing_part)
{
    assert_string_equal(cpu_missing(DEBERTA_ISA_NEON, ~0u), "a tier of aarch64");
    if (compiled(DEBERTA_ISA_AVX2)) {
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX2, 0), "the processor lacks avx2");
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX2, CPU_HAS_AVX2 | CPU_HAS_FMA | CPU_FMA),
                            "the processor lacks f16c");
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX2, CPU_NO_AVX_STATE),
                            "the operating system does not save the registers of avx");
        assert_null(cpu_missing(DEBERTA_ISA_AVX2, AVX2_PARTS | CPU_AVX2));
    } else {
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX2, ~0u), "this build has no avx2 tier");
    }
    if (compiled(DEBERTA_ISA_AVX512)) {
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX512, AVX2_PARTS | CPU_AVX2), "the processor lacks avx512f");
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX512, AVX2_PARTS | CPU_AVX2 | CPU_HAS_AVX512F),
                            "the processor lacks avx512bw");
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX512, AVX2_PARTS | CPU_AVX2 | CPU_NO_AVX512_STATE),
                            "the operating system does not save the registers of avx512");
        assert_null(cpu_missing(DEBERTA_ISA_AVX512, CPU_AVX512));
    } else {
        assert_string_equal(cpu_missing(DEBERTA_ISA_AVX512, ~0u), "this build has no avx512 tier");
    }
}

/* A tier's bit must follow from its parts on the machine at hand. */
TEST(test_features_of_this_machine_are_consistent)
{
    unsigned features = cpu_features();
    assert_int_equal(!!(features & CPU_AVX2), (features & AVX2_PARTS) == AVX2_PARTS);
    if (features & CPU_NO_AVX_STATE) assert_int_equal(features & (CPU_AVX2 | CPU_FMA | AVX2_PARTS), 0);
    assert_int_equal(!!(features & CPU_FMA), !!(features & CPU_HAS_FMA));
    if (features & CPU_AVX512) assert_true(features & CPU_AVX2);
    if (features & CPU_AVXVNNI) assert_true(features & CPU_AVX2);
    if (features & (CPU_AVX512VNNI | CPU_AVX512AMX)) assert_true(features & CPU_AVX512);
    assert_false(features & (CPU_NEON_DOT | CPU_NEON_I8MM));
    assert_false(features & CPU_NEON);
}
#else
TEST(test_messages_name_the_first_missing_part)
{
    assert_string_equal(cpu_missing(DEBERTA_ISA_AVX2, ~0u), "a tier of x86-64");
    assert_string_equal(cpu_missing(DEBERTA_ISA_AVX512, ~0u), "a tier of x86-64");
}

TEST(test_features_of_this_machine_are_consistent)
{
    unsigned features = cpu_features();
    assert_false(features & (CPU_AVX2 | CPU_AVX512 | CPU_AVXVNNI | CPU_AVX512VNNI | CPU_AVX512AMX));
    if (features & (CPU_NEON_DOT | CPU_NEON_I8MM)) assert_true(features & CPU_NEON);
    assert_false(cpu_allow_tiles());
}
#endif

TEST(test_the_name_fits_and_is_trimmed)
{
    char name[64], part[64], one[1];
    memset(name, 'x', sizeof name);
    cpu_name(name, sizeof name);
    assert_true(strlen(name) > 0 && strlen(name) < sizeof name);
#if defined(__x86_64__)
    assert_string_not_equal(name, "unknown");
#endif
    assert_true(name[0] != ' ' && name[strlen(name) - 1] != ' ');
    assert_null(strstr(name, "  "));
    for (size_t capacity = 1; capacity <= sizeof part; capacity++) {
        cpu_name(part, capacity);
        const size_t length = strlen(part), fits = minimum(capacity - 1, strlen(name));
        assert_true(fits == 0 || length + (name[fits - 1] == ' ') == fits);
        assert_memory_equal(part, name, length);
    }
    cpu_name(one, sizeof one);
    assert_int_equal(one[0], 0);
}

/* What the part below does wrong: it takes one value of one operand for another. */
typedef enum spoiled { NOTHING, A, A_SCALE, A_ZERO, B, B_SCALE, BIAS, SPOILED } spoiled;
static spoiled spoiled_operand;
static kernels honest;

static void spoil(const integer_gemm_task *task, void (*product)(const integer_gemm_task *task))
{
    enum { ROW = 11, COLUMN = 2 * PANEL + 5 };
    _Alignas(64) static float scales[4096];
    static int32_t zeros[4096];
    integer_gemm_task wrong = *task;
    const spoiled operand = spoiled_operand;
    const float *const from = operand == A_SCALE ? task->a_scale : operand == B_SCALE ? task->b_scale : task->bias;
    const size_t count = operand == A_SCALE ? task->rows : task->panels * PANEL;
    memcpy(scales, from, count * sizeof(float));
    memcpy(zeros, task->a_zero, task->rows * sizeof(int32_t));
    scales[operand == A_SCALE ? ROW : COLUMN] *= 1.5F;
    zeros[ROW]++;
    switch (operand) {
    case A: wrong.a += DIGIT_TILE_INPUTS; break;
    case A_SCALE: wrong.a_scale = scales; break;
    case A_ZERO: wrong.a_zero = zeros; break;
    case B: wrong.b += PANEL; break;
    case B_SCALE: wrong.b_scale = scales; break;
    case BIAS: wrong.bias = scales; break;
    case NOTHING:
    case SPOILED: break;
    }
    product(&wrong);
}

#define X(name, parameters)                                                                                            \
    static void spoiled_##name parameters { spoil(task, honest.name); }                                                \
    static void put_##name(kernels *table) { table->name = spoiled_##name; }
INTEGER_GEMM_KERNEL_LIST(X)
#undef X

/* Every operand of the small problem shows: a part that takes one value of it for another is not used. */
TEST(test_the_self_check_sees_every_operand)
{
    kernels_init_scalar(&honest);
#define X(name, parameters) put_##name,
    void (*const parts[])(kernels * table) = {INTEGER_GEMM_KERNEL_LIST(X)};
#undef X
    FOR_ROWS(k, parts)
        for (spoiled_operand = NOTHING; spoiled_operand < SPOILED; spoiled_operand++) {
            part_verdict verdict = PART_UNKNOWN;
            const bool has_zeros = k == 0; /* with two digits and 15 bits nobody looks at them */
            assert_int_equal(part_is_right(&verdict, parts[k]),
                             spoiled_operand == NOTHING || (spoiled_operand == A_ZERO && !has_zeros));
        }
}
