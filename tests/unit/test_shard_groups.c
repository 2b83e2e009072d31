/* Which shards are in memory at once, and how sums of their gradients come together. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "train/state/shard_groups.h"

enum { SHARDS = 16, MOST_SEQUENCES = 60, LONGEST = 90 };

typedef struct dealt_step {
    step_batch batch;
    size_t starts[MOST_SEQUENCES + 1], bounds[SHARDS + 1], origin[MOST_SEQUENCES];
    int32_t ids[MOST_SEQUENCES * LONGEST];
    uint8_t mask[MOST_SEQUENCES * LONGEST];
    uint8_t passes[MOST_SEQUENCES];
} dealt_step;

/* Random lengths, dealt as any step. */
static void deal(dealt_step *step, uint64_t *state)
{
    size_t lengths[MOST_SEQUENCES], shard_of[MOST_SEQUENCES], place = 0;
    const size_t count = 1 + random_below(state, MOST_SEQUENCES), longest = 1 + random_below(state, LONGEST);
    for (size_t i = 0; i < count; i++) lengths[i] = 1 + random_below(state, longest);
    assert_ok(step_batch_deal(lengths, count, SHARDS, shard_of, NULL));
    *step = (dealt_step){0};
    for (size_t shard = 0; shard < SHARDS; shard++) {
        for (size_t i = 0; i < count; i++)
            if (shard_of[i] == shard) {
                step->origin[place] = i;
                step->starts[place + 1] = step->starts[place] + lengths[i];
                place++;
            }
        step->bounds[shard + 1] = place;
    }
    step->batch = (step_batch){.sequences = count,
                               .tokens = step->starts[count],
                               .starts = step->starts,
                               .shard_bounds = step->bounds,
                               .origin = step->origin,
                               .ids = step->ids,
                               .mask = step->mask,
                               .passes = step->passes};
}

static size_t longest_of(const dealt_step *step)
{
    size_t longest = 0;
    for (size_t i = 0; i < step->batch.sequences; i++)
        longest = maximum(longest, step->starts[i + 1] - step->starts[i]);
    return longest;
}

/* Groups follow each other, are aligned, hold no more than the plan says, and no less than it promised. */
static void check_groups(const dealt_step *step, size_t limit)
{
    const shard_plan plan = shard_plan_make(SHARDS, step->batch.tokens, longest_of(step), limit);
    size_t sequences = 0, starts[MOST_SEQUENCES + 1];
    for (size_t first = 0; first < SHARDS;) {
        const shard_group group = shard_group_at(&plan, &step->batch, first);
        const step_batch view = shard_group_view(&group, &step->batch, starts);
        assert_true(group.count > 0 && (group.count & (group.count - 1)) == 0 && first % group.count == 0);
        assert_true(group.count >= plan.least);
        assert_true(view.tokens <= plan.capacity && (group.count == 1 || limit == 0 || view.tokens <= limit));
        assert_int_equal(group.first_sequence, sequences);
        assert_int_equal(view.starts[view.sequences], view.tokens);
        assert_ptr_equal(view.ids, step->ids + step->starts[sequences]);
        assert_ptr_equal(view.passes, step->passes + sequences);
        assert_ptr_equal(view.origin, step->origin + sequences);
        sequences += view.sequences;
        first += group.count;
    }
    assert_int_equal(sequences, step->batch.sequences);
}

TEST(test_groups)
{
    static dealt_step step;
    uint64_t state = 5;
    for (size_t round = 0; round < 300; round++) {
        deal(&step, &state);
        check_groups(&step, 0);
        check_groups(&step, 1);
        check_groups(&step, 1 + random_below(&state, step.batch.tokens));
        check_groups(&step, step.batch.tokens);
    }
}

TEST(test_plan)
{
    const shard_plan whole = shard_plan_make(16, 2048, 128, 0), same = shard_plan_make(16, 2048, 128, 2048);
    assert_int_equal(whole.capacity, 2048);
    assert_int_equal(whole.least, 16);
    assert_memory_equal(&whole, &same, sizeof whole);
    const shard_plan half = shard_plan_make(16, 2048, 128, 1024);
    assert_int_equal(half.capacity, 1024);
    assert_int_equal(half.least, 4); /* a shard has up to 2048 / 16 + 128 */
    const shard_plan one = shard_plan_make(16, 2048, 128, 1);
    assert_int_equal(one.capacity, 256);
    assert_int_equal(one.least, 1);
}

/* The tree as docs/training.md has it; a shard without a sequence adds nothing. */
static float tree_of(const float *values, const bool *there, size_t count, bool *any)
{
    bool left, right;
    if (count == 1) {
        *any = there[0];
        return values[0];
    }
    const float a = tree_of(values, there, count / 2, &left),
                b = tree_of(values + count / 2, there + count / 2, count / 2, &right);
    *any = left || right;
    return left && right ? a + b : left ? a : b;
}

/* Sums of random groups, some of them empty, in arrays of two places. */
TEST(test_tree)
{
    enum { PLACES = 2, LONG = 70000 };
    const size_t counts[PLACES] = {3, LONG};
    float *at_hand[PLACES] = {large_floats(counts[0]), large_floats(counts[1])};
    gradient_place *places = calloc(PLACES, sizeof *places);
    executor *runner = NULL;
    gradient_tree tree;
    uint64_t state = 7;
    assert_ok(executor_create(&runner, 2, false, NULL, NULL));
    for (size_t i = 0; i < PLACES; i++) places[i] = (gradient_place){&at_hand[i], counts[i]};
    assert_ok(gradient_tree_open(&tree, places, PLACES, SHARDS, 1, NULL));
    for (size_t round = 0; round < 50; round++) {
        float values[SHARDS];
        bool there[SHARDS], any;
        for (size_t shard = 0; shard < SHARDS; shard++) {
            values[shard] = (float)random_below(&state, 1000000) * 1e-3f - 300;
            there[shard] = random_below(&state, 4) > 0 || shard == round % SHARDS;
        }
        gradient_tree_begin(&tree);
        for (size_t first = 0, count; first < SHARDS; first += count) {
            for (count = 1; first % (2 * count) == 0 && 2 * count <= SHARDS && random_below(&state, 2);) count *= 2;
            const float sum = tree_of(values + first, there + first, count, &any);
            for (size_t i = 0; i < PLACES; i++)
                for (size_t e = 0; e < counts[i]; e++) at_hand[i][e] = sum;
            gradient_tree_add(&tree, first, count, any, runner);
        }
        const float expected = tree_of(values, there, SHARDS, &any);
        for (size_t i = 0; i < PLACES; i++)
            for (size_t e = 0; e < counts[i]; e++) assert_memory_equal(&at_hand[i][e], &expected, sizeof expected);
    }
    gradient_tree_free(&tree);
    executor_free(&runner);
    for (size_t i = 0; i < PLACES; i++) free(at_hand[i]);
}
