/* The arena: measuring and carving agree, pieces are aligned, zero and apart, and sizes that cannot be are refused.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

typedef struct pieces {
    float *activations;
    char *odd;
    void *nothing;
    double *last;
} pieces;

enum { ACTIVATIONS = 1000, ODD_BYTES = 77, LAST = 3 };

static void carve(arena *memory, pieces *p)
{
    p->activations = arena_take(memory, ACTIVATIONS, sizeof(float));
    p->odd = arena_take(memory, ODD_BYTES, 1);
    p->nothing = arena_take(memory, 0, sizeof(float));
    p->last = arena_take(memory, LAST, sizeof(double));
}

TEST(test_carving_repeats_the_measuring)
{
    arena memory = {0};
    pieces p;
    carve(&memory, &p);
    assert_null(p.activations);
    assert_null(p.last);
    size_t measured = memory.used_bytes;
    assert_true(measured >= ACTIVATIONS * sizeof(float) + ODD_BYTES + LAST * sizeof(double));

    assert_ok(arena_allocate(&memory, "test", 0, NULL));
    carve(&memory, &p);
    assert_int_equal(memory.used_bytes, measured);
    const void *const starts[] = {p.activations, p.odd, p.nothing, p.last};
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(starts[i]);
        assert_int_equal((uintptr_t)starts[i] % ARENA_ALIGNMENT_BYTES, 0);
    }
    assert_true(p.odd >= (char *)(p.activations + ACTIVATIONS));
    assert_true((char *)p.last >= p.odd + ODD_BYTES);
    for (size_t i = 0; i < ACTIVATIONS; i++) assert_true(p.activations[i] == 0);
    memset(p.activations, 1, ACTIVATIONS * sizeof(float));
    memset(p.odd, 1, ODD_BYTES);
    memset(p.last, 1, LAST * sizeof(double));
    arena_release(&memory);
    assert_null(memory.block);
    assert_int_equal(memory.used_bytes, 0);
}

TEST(test_an_empty_arena_becomes_real)
{
    arena memory = {0};
    assert_null(arena_take(&memory, 0, 8));
    assert_ok(arena_allocate(&memory, "nothing", 0, NULL));
    assert_non_null(arena_take(&memory, 0, 8));
    arena_release(&memory);
    arena_release(&memory);
}

TEST(test_large_blocks_start_on_a_huge_page)
{
    for (size_t extra = 0; extra < 3; extra++) {
        arena memory = {0};
        size_t bytes = ((size_t)2 << 20) + extra * 12345;
        arena_take(&memory, bytes, 1);
        assert_ok(arena_allocate(&memory, "test", 0, NULL));
        assert_int_equal((uintptr_t)memory.block % (2 << 20), 0);
        unsigned char *piece = arena_take(&memory, bytes, 1);
        for (size_t i = 0; i < bytes; i += 4096) assert_int_equal(piece[i], 0);
        piece[bytes - 1] = 7;
        arena_release(&memory);
    }
}

TEST(test_sizes_that_overflow_are_refused)
{
    const size_t huge[][2] = {{SIZE_MAX / 2, 3}, {SIZE_MAX, 1}, {SIZE_MAX - 64, 1}, {SIZE_MAX - (3 << 20), 1}};
    FOR_ROWS(i, huge) {
        arena memory = {0};
        deberta_error err = {0};
        arena_take(&memory, 1, 1);
        assert_null(arena_take(&memory, huge[i][0], huge[i][1]));
        check_refused(arena_allocate(&memory, "session", 0, &err), &err, DEBERTA_E_MEMORY, "session");
        assert_null(memory.block);
        arena_release(&memory);
    }
}

/* Memory that no machine has must be an error now, not a killed process at first touch. */
TEST(test_impossible_sizes_fail_at_once)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    const int policy = file ? fgetc(file) : '0';
    if (file) fclose(file);
    if (policy == '1') skip(); /* the system has been told to refuse nothing */
    arena memory = {0};
    deberta_error err = {0};
    arena_take(&memory, (size_t)1 << 45, 1);
    check_refused(arena_allocate(&memory, "model", 0, &err), &err, DEBERTA_E_MEMORY,
                  "model: the system refused 335544");
    arena_release(&memory);
}

TEST(test_the_limit_is_kept_and_named)
{
    arena memory = {0};
    deberta_error err = {0};
    size_t capacity;
    arena_take(&memory, 3 << 20, 1);
    assert_ok(arena_predict(&memory, "session", 0, &capacity, &err));
    check_refused(arena_allocate(&memory, "session", 1 << 20, &err), &err, DEBERTA_E_MEMORY, "session: needs 3.0 MiB");
    assert_non_null(strstr(err.message, "the limit is 1.0 MiB"));
    assert_int_equal(arena_allocate(&memory, "session", capacity - 1, &err), DEBERTA_E_MEMORY);
    assert_ok(arena_allocate(&memory, "session", capacity, &err));
    arena_release(&memory);
}

TEST(test_gaps_are_poisoned)
{
#ifdef WITH_ASAN
    arena memory = {0};
    pieces p;
    carve(&memory, &p);
    assert_ok(arena_allocate(&memory, "test", 0, NULL));
    carve(&memory, &p);
    assert_true(__asan_address_is_poisoned((char *)p.activations - 1));
    assert_false(__asan_address_is_poisoned(p.activations));
    assert_true(__asan_address_is_poisoned(p.activations + ACTIVATIONS));
    assert_false(__asan_address_is_poisoned(p.odd + ODD_BYTES - 1));
    assert_true(__asan_address_is_poisoned(p.odd + ODD_BYTES));
    assert_true(__asan_address_is_poisoned(p.last + LAST));
    arena_release(&memory);
#else
    skip();
#endif
}

/* What one carving has filled another finds, in memory that is not the arena's. */
TEST(test_a_filled_block_can_be_borrowed)
{
    static _Alignas(ARENA_ALIGNMENT_BYTES) unsigned char copy[8192];
    arena filled = {0}, view = {0};
    pieces p;
    size_t capacity;
    carve(&filled, &p);
    assert_ok(arena_predict(&filled, "test", 0, &capacity, NULL));
    assert_in_range(capacity, 1, sizeof copy);
    assert_ok(arena_allocate(&filled, "test", 0, NULL));
    carve(&filled, &p);
    p.activations[ACTIVATIONS - 1] = 1.5f;
    memset(p.odd, 'o', ODD_BYTES);
    p.last[0] = 2.5;
    memcpy(copy, arena_contents(&filled), capacity);
    arena_release(&filled);

    carve(&view, &p);
    arena_borrow(&view, copy);
    carve(&view, &p);
    assert_true((unsigned char *)p.activations >= copy && (unsigned char *)(p.last + LAST) <= copy + capacity);
    assert_true(p.activations[0] == 0 && p.activations[ACTIVATIONS - 1] == 1.5f && p.last[0] == 2.5);
    assert_true(p.odd[0] == 'o' && p.odd[ODD_BYTES - 1] == 'o');
    arena_release(&view);
    assert_null(view.block);
    copy[0] = 1; /* neither given back nor poisoned */
    assert_int_equal(copy[sizeof copy - 1], 0);
}
