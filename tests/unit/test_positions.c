/* Distances to table rows: the worked values of SPEC 3.3 and 4.3, and what a map says about its tables.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/model/positions.h"
#include "include/deberta_unstable.h"

static position_rule rule_of(size_t buckets, size_t max_distance, deberta_reference reference)
{
    return (position_rule){
        .span = buckets ? buckets : max_distance,
        .buckets = buckets,
        .max_distance = max_distance,
        .clamp_distance = reference == DEBERTA_REFERENCE_MICROSOFT,
    };
}

TEST(published_values)
{
    static const struct {
        int distance, v1_row, bucket, v2_row;
    } worked[] = {
        {0, 512, 0, 256},      {1, 513, 1, 257},      {-1, 511, -1, 255},    {5, 517, 5, 261},
        {-5, 507, -5, 251},    {127, 639, 127, 383},  {128, 640, 128, 384},  {-128, 384, -128, 128},
        {129, 641, 129, 385},  {130, 642, 130, 386},  {131, 643, 131, 387},  {132, 644, 131, 387},
        {133, 645, 132, 388},  {140, 652, 137, 393},  {150, 662, 143, 399},  {160, 672, 149, 405},
        {200, 712, 169, 425},  {256, 768, 192, 448},  {-256, 256, -192, 64}, {300, 812, 207, 463},
        {383, 895, 229, 485},  {384, 896, 229, 485},  {400, 912, 233, 489},  {450, 962, 244, 500},
        {500, 1012, 254, 510}, {505, 1017, 254, 510}, {509, 1021, 255, 511}, {511, 1023, 255, 511},
        {-509, 3, -255, 1},    {-511, 1, -255, 1},
    };
    position_rule v1 = rule_of(0, 512, DEBERTA_REFERENCE_HF);
    FOR_ROWS(i, worked) {
        for (int reference = DEBERTA_REFERENCE_MICROSOFT; reference <= DEBERTA_REFERENCE_HF; reference++) {
            position_rule v2 = rule_of(256, 512, (deberta_reference)reference);
            assert_int_equal(position_bucket(&v2, worked[i].distance), worked[i].bucket);
            assert_int_equal(position_row(&v2, worked[i].distance), worked[i].v2_row);
        }
        assert_int_equal(position_row(&v1, worked[i].distance), worked[i].v1_row);
    }
}

/* By a model's description: the same rows, of real models and of one without relative positions. */
TEST(rows_by_description)
{
    const char *const paths[] = {"synthetic:v3-xsmall,layers=1,vocab=50", "synthetic:v1-base,layers=1,vocab=50",
                                 "synthetic:v3-xsmall,layers=1,vocab=50,terms=none"};
    for (size_t k = 0; k < 3; k++) {
        OWN_MODEL *model = NULL;
        const deberta_model_options options = {.struct_size = sizeof options, .describe_only = 1};
        assert_ok(deberta_model_open(&model, paths[k], &options, NULL));
        const deberta_model_info *info = deberta_model_describe(model);
        for (int reference = DEBERTA_REFERENCE_MICROSOFT; reference <= DEBERTA_REFERENCE_HF; reference++) {
            const position_rule rule = position_rule_of(info, (deberta_reference)reference);
            assert_int_equal(rule.span, k == 2 ? 0 : k == 1 ? 512 : 256);
            for (ptrdiff_t r = -700; r <= 700; r++) {
                const size_t expected = k == 2 ? 0 : position_row(&rule, r);
                assert_int_equal(deberta_position_row(info, (deberta_reference)reference, r), expected);
            }
        }
    }
}

TEST(references_part_at_the_span)
{
    position_rule hf = rule_of(256, 512, DEBERTA_REFERENCE_HF),
                  microsoft = rule_of(256, 512, DEBERTA_REFERENCE_MICROSOFT);
    assert_int_equal(position_bucket(&hf, 512), 256);
    assert_int_equal(position_bucket(&hf, 600), 270);
    assert_int_equal(position_bucket(&hf, 1000), 317);
    assert_int_equal(position_bucket(&microsoft, 512), 255);
    assert_int_equal(position_bucket(&microsoft, 600), 255);
    for (int distance = 512; distance < 700; distance++) {
        assert_int_equal(position_row(&hf, distance), 511);
        assert_int_equal(position_row(&microsoft, distance), 511);
        assert_int_equal(position_row(&hf, -distance), 0);
        assert_int_equal(position_row(&microsoft, -distance), 1);
    }
    position_rule v1 = rule_of(0, 512, DEBERTA_REFERENCE_MICROSOFT);
    assert_int_equal(position_row(&v1, 600), 1023);
    assert_int_equal(position_row(&v1, -512), 0);
}

TEST(tiny_tables)
{
    position_rule rule = rule_of(4, 16, DEBERTA_REFERENCE_HF);
    static const int first_row[] = {4, 3, 2, 1, 1, 1, 1, 1}, last_row[] = {7, 7, 7, 7, 7, 6, 5, 4};
    for (int j = 0; j < 8; j++) {
        assert_int_equal(position_row(&rule, 0 - j), first_row[j]);
        assert_int_equal(position_row(&rule, 7 - j), last_row[j]);
    }
    static const int hf_rows[] = {0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7};
    static const int microsoft_rows[] = {1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7};
    position_rule hf = rule_of(4, 4, DEBERTA_REFERENCE_HF), microsoft = rule_of(4, 4, DEBERTA_REFERENCE_MICROSOFT);
    for (int r = -6; r <= 6; r++) {
        assert_int_equal(position_row(&hf, r), hf_rows[r + 6]);
        assert_int_equal(position_row(&microsoft, r), microsoft_rows[r + 6]);
    }
    position_rule two = rule_of(2, 8, DEBERTA_REFERENCE_HF);
    for (int r = 1; r < 8; r++) assert_int_equal(position_bucket(&two, r), 1);
    position_rule v1 = rule_of(0, 4, DEBERTA_REFERENCE_HF);
    static const int v1_row[] = {4, 3, 2, 1, 0, 0};
    for (int j = 0; j < 6; j++) assert_int_equal(position_row(&v1, 0 - j), v1_row[j]);
}

/* transformers' make_log_bucket_position where its buckets fall with the distance; here none is beyond 2B. */
TEST(buckets_of_a_table_too_short_for_them)
{
    static const int distances[] = {-60, -33, -12, -6, -5, -3, 0, 2, 3, 4, 5, 6, 9, 12, 20, 33, 60};
    static const struct {
        size_t buckets, max_distance;
        int bucket[sizeof distances / sizeof *distances];
    } cases[] = {
        {5, 2, {2, 2, 0, -1, -1, -2, 0, 2, 2, 1, 1, 1, 0, 0, -1, -2, -2}},
        {8, 3, {7, 5, 0, -3, -4, -3, 0, 2, 3, 4, 4, 3, 1, 0, -2, -5, -7}},
        {8, 1, {-4, -4, -4, -4, -4, -3, 0, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4}},
        {31, 5, {-1, -7, -12, -6, -5, -3, 0, 2, 3, 4, 5, 6, 9, 12, 12, 7, 1}},
        {9, 4, {18, 18, 7, 0, -2, -3, 0, 2, 3, 4, 2, 0, -4, -7, -12, -18, -18}},
    };
    FOR_ROWS(i, cases) {
        position_rule rule = rule_of(cases[i].buckets, cases[i].max_distance, DEBERTA_REFERENCE_HF);
        FOR_ROWS(k, distances) assert_int_equal(position_bucket(&rule, distances[k]), cases[i].bucket[k]);
    }
}

/* M - 1 = mid makes the quotient infinite, which must not overflow. */
TEST(meaningless_settings_stay_in_the_table)
{
    for (size_t max_distance = 1; max_distance < 10; max_distance++) {
        for (int reference = DEBERTA_REFERENCE_MICROSOFT; reference <= DEBERTA_REFERENCE_HF; reference++) {
            position_rule rule = rule_of(8, max_distance, (deberta_reference)reference);
            for (int r = -100; r <= 100; r++) assert_true(position_row(&rule, r) < 16);
        }
    }
}

static void map_agrees_with_the_rule(const position_rule *rule, size_t tokens, bool monotone, bool unit_steps)
{
    position_map map;
    arena memory = {0};
    position_map_carve(&map, &memory, rule, tokens);
    assert_ok(arena_allocate(&memory, "map", 0, NULL));
    position_map_carve(&map, &memory, rule, tokens);
    assert_true(map.reach >= (ptrdiff_t)tokens + 16);
    assert_int_equal(map.monotone, monotone);
    assert_int_equal(map.unit_steps, unit_steps);
    for (ptrdiff_t r = -map.reach; r <= map.reach; r++) {
        assert_int_equal(map.row_of[r], position_row(rule, r));
        assert_int_equal(map.position_of[r], map.last_row - map.row_of[-r]);
        assert_in_range(map.row_of[r], map.lowest, map.highest);
        assert_int_equal(r >= map.far_left, map.row_of[r] == map.row_of[map.reach]);
        assert_int_equal(r <= map.far_right, map.row_of[r] == map.row_of[-map.reach]);
    }
    arena_release(&memory);
}

/* The rule of the same table with query and key exchanged. */
static size_t row_backwards(const position_rule *rule, ptrdiff_t distance)
{
    position_rule plain = *rule;
    plain.row = NULL;
    return position_row(&plain, -distance);
}

TEST(maps)
{
    position_rule v3 = rule_of(256, 512, DEBERTA_REFERENCE_MICROSOFT), v3_hf = rule_of(256, 512, DEBERTA_REFERENCE_HF);
    position_rule v1 = rule_of(0, 512, DEBERTA_REFERENCE_MICROSOFT), odd = rule_of(7, 64, DEBERTA_REFERENCE_HF);
    map_agrees_with_the_rule(&v3, 512, true, true);
    map_agrees_with_the_rule(&v3, 4096, true, true);
    map_agrees_with_the_rule(&v3_hf, 1000, true, true);
    map_agrees_with_the_rule(&v1, 16, true, true);
    map_agrees_with_the_rule(&v1, 700, true, true);
    map_agrees_with_the_rule(&odd, 100, true, true);
    /* M so close to B / 2 that the logarithm climbs by several buckets at a time. */
    position_rule steep = rule_of(64, 40, DEBERTA_REFERENCE_HF);
    map_agrees_with_the_rule(&steep, 100, true, false);
    position_rule backwards = v3;
    backwards.row = row_backwards;
    map_agrees_with_the_rule(&backwards, 512, false, false);
}
