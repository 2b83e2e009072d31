/* Sessions: what they cost, what they refuse, and that nothing about how work is cut shows in the results.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "analysis/reference/reference.h"
#include "core/base/numbers.h"
#include "core/encode/session.h"
#include "include/deberta_unstable.h"
#include "tests/unit/io_helpers.h"
#include "tests/unit/model_helpers.h"

static const char small_model[] =
    "synthetic:v3-base,layers=2,hidden=64,heads=4,intermediate=96,vocab=61,buckets=16,distance=64,lm=1";

static deberta_model *open_model_in(const char *path, deberta_precision precision)
{
    return open_model_with(path, (deberta_model_options){.precision = precision});
}

static deberta_session *open_session(const deberta_model *model, size_t max_tokens, size_t threads)
{
    return open_session_with(model, (deberta_session_options){.max_tokens = max_tokens, .threads = threads});
}

TEST(predictions_are_exact)
{
    OWN_MODEL *model = open_model(small_model);
    for (size_t tokens = 1; tokens <= 5000; tokens = tokens * 3 + 1) {
        for (unsigned features = 0; features < 8; features += 3) {
            deberta_session *session = NULL;
            deberta_session_options options = {
                .struct_size = sizeof options, .max_tokens = tokens, .threads = 2, .features = features};
            size_t predicted = 0;
            assert_ok(deberta_session_predict_bytes(&predicted, model, &options, NULL));
            assert_ok(deberta_session_create(&session, model, &options, NULL));
            assert_int_equal(deberta_session_memory_bytes(session), predicted);
            /* Under AddressSanitizer a last poisoned gap is added. */
            assert_in_range(predicted, session->arena.used_bytes, session->arena.used_bytes + 128);
            deberta_session_free(&session);
            assert_null(session);

            options.memory_limit_bytes = predicted;
            assert_ok(deberta_session_create(&session, model, &options, NULL));
            deberta_session_free(&session);
            options.memory_limit_bytes = predicted - 1;
            assert_int_equal(deberta_session_create(&session, model, &options, NULL), DEBERTA_E_MEMORY);
        }
    }
}

static void expect_refusal(const deberta_model *model, deberta_session_options options, deberta_status code,
                           const char *word)
{
    deberta_session *session = (deberta_session *)&options;
    deberta_error error = {0};
    assert_int_equal(deberta_session_create(&session, model, &options, &error), code);
    assert_null(session);
    assert_int_equal(error.code, code);
    assert_non_null(strstr(error.message, word));
}

/* What can be known without weights is the same as with them; a session cannot be made. */
TEST(descriptions)
{
    static const char *const paths[] = {small_model, "tests/golden/33-v3-mlm-emd", "tests/golden/08-v1-talking-head",
                                        "tests/golden/21-v2-conv-tanh-g2", "tests/golden/30-v3-token"};
    FOR_ROWS(i, paths) {
        deberta_model_options describe = {.struct_size = sizeof describe, .describe_only = 1};
        deberta_session_options options = {.struct_size = sizeof options, .max_tokens = 100, .threads = 2};
        OWN_MODEL *loaded = open_model(paths[i]), *described = NULL;
        assert_ok(deberta_model_open(&described, paths[i], &describe, NULL));
        assert_null(described->arena.block);

        deberta_model_info expected, info;
        expected = *deberta_model_describe(loaded);
        info = *deberta_model_describe(described);
        assert_int_equal(info.memory_bytes, loaded->arena.capacity_bytes);
        assert_int_equal(info.memory_bytes, expected.memory_bytes);
        assert_int_equal(info.parameters, expected.parameters);
        assert_int_equal(info.tasks_present, expected.tasks_present);
        assert_int_equal(info.token_labels, expected.token_labels);
        assert_int_equal(info.has_position_table, expected.has_position_table);
        assert_int_equal(info.has_position_table, loaded->position_table != NULL);
        for (size_t label = 0; label < info.token_labels; label++) {
            char name[32];
            snprintf(name, sizeof name, "LABEL_%zu", label);
            assert_string_equal(deberta_model_label(loaded, label), name);
            assert_string_equal(deberta_model_label(described, label), name);
        }
        assert_null(deberta_model_label(loaded, info.token_labels));
        size_t with_weights, without;
        assert_ok(deberta_session_predict_bytes(&with_weights, loaded, &options, NULL));
        assert_ok(deberta_session_predict_bytes(&without, described, &options, NULL));
        assert_int_equal(with_weights, without);
        expect_refusal(described, options, DEBERTA_E_ARGUMENT, "describe_only");
    }
}

static void seen_processors(void *context, size_t task, size_t worker)
{
    (void)task;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    ((int *)context)[worker] = CPU_COUNT(&allowed);
}

/* What a session says of itself is what was asked for, or what stands for the default; pinned threads are pinned. */
TEST(sessions_are_as_asked_for)
{
    OWN_MODEL *model = open_model(small_model);
    deberta_session *session = open_session(model, 16, 3);
    assert_int_equal(deberta_session_threads(session), 3);
    assert_int_equal(deberta_session_isa(session), deberta_isa_best());
    deberta_session_free(&session);

    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    for (int pin = 0; pin < 2; pin++) {
        const deberta_session_options options = {
            .struct_size = sizeof options, .isa = DEBERTA_ISA_SCALAR, .threads = 2, .pin_threads = pin};
        int processors[2] = {0};
        if (THREADS_OPENMP && pin) { /* whose threads are not ours */
            assert_int_equal(deberta_session_create(&session, model, &options, NULL), DEBERTA_E_UNSUPPORTED);
            break;
        }
        assert_ok(deberta_session_create(&session, model, &options, NULL));
        assert_int_equal(deberta_session_isa(session), DEBERTA_ISA_SCALAR);
        for (int loop = 0; loop < 100000 && !processors[1]; loop++)
            parallel_for(session->executor, 2, seen_processors, processors);
        assert_int_equal(processors[1], pin && CPU_COUNT(&mine) > 1 ? 1 : CPU_COUNT(&mine));
        deberta_session_free(&session);
    }
}

/* Memory grows with the tokens by what is kept of each, not with their square, and attention's scratch is bounded. */
TEST(memory_is_linear)
{
    OWN_MODEL *model = open_model("synthetic:v3-base,layers=1,vocab=61");
    deberta_session_options options = {.struct_size = sizeof options, .threads = 1};
    size_t bytes[3];
    for (size_t i = 0; i < 3; i++) {
        options.max_tokens = (size_t)4096 << i;
        assert_ok(deberta_session_predict_bytes(&bytes[i], model, &options, NULL));
    }
    assert_in_range(bytes[2] - bytes[1], 2 * (bytes[1] - bytes[0]) - 4096, 2 * (bytes[1] - bytes[0]) + 4096);
    OWN_SESSION *session = open_session(model, 16384, 1);
    size_t attention = session->query_rows * (session->strip_stride + session->logits_stride) +
                       session->kernels.tile_panels * PANEL * (session->transposed_rows + session->query_rows);
    assert_true(attention * sizeof(float) <= 2 << 20);
}

TEST(refusals)
{
    static const struct {
        deberta_session_options options;
        deberta_status code;
        const char *word;
    } cases[] = {{{.features = 64}, DEBERTA_E_ARGUMENT, "0x40"},
                 {{.isa = 99}, DEBERTA_E_ARGUMENT, "99"},
                 {{.max_tokens = SIZE_MAX}, DEBERTA_E_ARGUMENT, "max_tokens"},
                 {{.max_tokens = (1 << 24) + 1}, DEBERTA_E_ARGUMENT, "above the largest possible, 16777216"},
                 {{.threads = 1 << 20}, DEBERTA_E_ARGUMENT, "threads"},
                 {{.memory_limit_bytes = 4096}, DEBERTA_E_MEMORY, "the limit is"}};
    OWN_MODEL *model = open_model(small_model);
    FOR_ROWS(i, cases) {
        deberta_session_options options = cases[i].options;
        options.struct_size = sizeof options;
        expect_refusal(model, options, cases[i].code, cases[i].word);
    }
    expect_refusal(model, (deberta_session_options){.struct_size = 0}, DEBERTA_E_ARGUMENT, "struct_size");
    expect_refusal(NULL, (deberta_session_options){.struct_size = sizeof(deberta_session_options)}, DEBERTA_E_ARGUMENT,
                   "model");
}

/* What is stored must lie within what the caller says is there. */
TEST(short_outputs)
{
    OWN_MODEL *model = open_model(small_model);
    OWN_SESSION *session = open_session(model, 16, 1);
    const int32_t ids[] = {1, 2};
    const size_t starts[] = {0, 2};
    const deberta_batch batch = batch_of(ids, starts, 1);
    const float *const untouched = (const float *)&ids;
    for (size_t size = sizeof(size_t); size < sizeof(deberta_outputs); size += sizeof(size_t)) {
        deberta_error error = {0};
        deberta_outputs outputs = {.struct_size = size, .hidden = untouched, .hidden_stride = 7};
        check_refused(deberta_encode(session, &batch, &outputs, &error), &error, DEBERTA_E_ARGUMENT,
                      "expected at least");
        assert_true(outputs.hidden == untouched && outputs.hidden_stride == 7);
    }
}

TEST(refused_opening)
{
    deberta_model *model = NULL;
    deberta_error error = {0};
    const deberta_model_options options = {.struct_size = sizeof options, .threads = 1 << 20};
    check_refused(deberta_model_open(&model, small_model, &options, &error), &error, DEBERTA_E_ARGUMENT,
                  "1048576 threads");
    assert_null(model);
    model = (deberta_model *)&error; /* anything: what could not be made is NULL, whatever was there before */
    assert_int_equal(deberta_model_open(&model, NULL, NULL, &error), DEBERTA_E_ARGUMENT);
    assert_null(model);
    assert_int_equal(deberta_model_open(&model, "", NULL, &error), DEBERTA_E_ARGUMENT);
    assert_string_equal(error.message, "the path of the model is empty");
}

TEST(bad_batches)
{
    OWN_MODEL *model = open_model(
        "synthetic:v3-base,layers=1,hidden=32,heads=2,intermediate=32,vocab=61,biased=1,types=2,positions=8");
    OWN_SESSION *session = open_session(model, 16, 1);
    static const int32_t types[] = {0, 2, 0}, positions[] = {0, 1, 8};
    static const struct {
        int32_t last; /* token 3 of the ids */
        deberta_batch batch;
        size_t starts[3];
        const char *words;
    } cases[] = {
        {61, {.sequences = 0}, {0, 3}, "no sequence"},
        {61, {.sequences = 2}, {0, 2, 2}, "sequence 1 is empty"},
        {61, {.sequences = 1}, {1, 2}, "expected 0"},
        {61, {.sequences = 1}, {0, 17}, "made for 16"},
        {61, {.sequences = 1}, {0, 4}, "id 61 at token 3: the vocabulary has 61 rows (0 ... 60)"},
        {-1, {.sequences = 1}, {0, 4}, "id -1 at token 3"},
        {0, {.sequences = 1}, {0, 9}, "sequence 0 has 9 tokens, but the position table of this model has 8 rows"},
        {0, {.sequences = 1, .token_types = types}, {0, 3}, "token type 2 at token 1"},
        {0, {.sequences = 1, .position_ids = positions}, {0, 3}, "position 8 at token 2"},
    };
    deberta_error error;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    FOR_ROWS(i, cases) {
        const int32_t ids[32] = {1, 2, 3, cases[i].last};
        deberta_batch batch = cases[i].batch;
        batch.struct_size = sizeof batch;
        batch.ids = ids;
        batch.sequence_starts = cases[i].starts;
        check_refused(deberta_encode(session, &batch, &outputs, &error), &error, DEBERTA_E_ARGUMENT, cases[i].words);
        assert_null(outputs.hidden);
    }
    const deberta_batch without_ids = batch_of(NULL, cases[0].starts, 1);
    check_refused(deberta_encode(session, &without_ids, &outputs, &error), &error, DEBERTA_E_ARGUMENT, "needs ids");
    float logits[64];
    size_t position = 0;
    assert_int_equal(deberta_task_logits(session, DEBERTA_TASK_RTD, &position, 1, logits, 64, &error),
                     DEBERTA_E_UNSUPPORTED);
    for (int task = -1; task <= DEBERTA_TASK_COUNT; task += DEBERTA_TASK_COUNT + 1) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "task %d does not exist", task);
        assert_int_equal(deberta_task_logits(session, (deberta_task)task, &position, 1, logits, 64, &error),
                         DEBERTA_E_ARGUMENT);
        assert_string_equal(error.message, sentence);
    }
}

static deberta_status count_hidden(void *context, const deberta_hidden_block *block)
{
    (void)block;
    (*(size_t *)context)++;
    return DEBERTA_OK;
}

static int never_asked(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)layer, (void)head, (void)component;
    *(size_t *)context = 1000;
    return 0;
}

/* An observer of an earlier version of the header, without the members that came later, and one whose size was
 * forgotten. */
TEST(observers_say_how_large_they_are)
{
    OWN_MODEL *model = open_model(small_model);
    OWN_SESSION *session =
        open_session_with(model, (deberta_session_options){.max_tokens = 16, .features = DEBERTA_OBSERVE_HIDDEN});
    size_t seen = 0;
    deberta_error error = {0};
    deberta_observer observer = {.context = &seen,
                                 .on_hidden = count_hidden,
                                 .wants_attention = never_asked,
                                 .on_attention = (deberta_status(*)(void *, const deberta_attention_block *))1};
    deberta_batch batch = batch_of((const int32_t[]){1, 2, 3}, (const size_t[]){0, 3}, 1);
    batch.observer = &observer;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    check_refused(deberta_encode(session, &batch, &outputs, &error), &error, DEBERTA_E_ARGUMENT,
                  "deberta_observer: struct_size is 0");
    assert_int_equal(seen, 0);
    observer.struct_size = offsetof(deberta_observer, wants_attention);
    assert_ok(deberta_encode(session, &batch, &outputs, &error));
    assert_int_equal(seen, 3);
}

/* A limit for model, session and results together; damaged weights; what a result was made of. */
TEST(limits_of_the_whole)
{
    OWN_MODEL *model = open_model(small_model);
    deberta_session *session = (deberta_session *)model;
    deberta_error error = {0};
    deberta_session_options options = {.struct_size = sizeof options, .max_tokens = 40, .threads = 2};
    size_t bytes;
    assert_ok(deberta_session_predict_bytes(&bytes, model, &options, NULL));
    const deberta_model_info *info = deberta_model_describe(model);
    options.memory_limit_bytes = info->memory_bytes + bytes + 1000;
    assert_ok(deberta_session_check_within(model, &options, 1000, NULL));
    assert_int_equal(deberta_session_check_within(model, &options, 1001, &error), DEBERTA_E_MEMORY);
    assert_int_equal(deberta_session_check_within(model, &options, SIZE_MAX, NULL), DEBERTA_E_MEMORY);
    assert_ok(deberta_session_check_within(model, NULL, SIZE_MAX, NULL)); /* no limit */
    assert_int_equal(deberta_session_check_within(NULL, &options, 0, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_session_create_within(&session, model, &options, 1001, &error), DEBERTA_E_MEMORY);
    assert_null(session);
    assert_int_equal(deberta_session_create_within(NULL, model, &options, 0, &error), DEBERTA_E_ARGUMENT);
    assert_ok(deberta_session_create_within(&session, model, &options, 1000, &error));

    assert_int_equal(deberta_session_check_finite(NULL, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_session_check_finite(session, &error), DEBERTA_E_ARGUMENT); /* no batch yet */
    const deberta_batch batch = batch_of((const int32_t[]){1, 2, 3}, (const size_t[]){0, 3}, 1);
    encode_batch(session, &batch);
    assert_ok(deberta_session_check_finite(session, &error));
    session->hidden[session->hidden_stride + 5] = NAN;
    check_refused(deberta_session_check_finite(session, &error), &error, DEBERTA_E_FORMAT,
                  "value 5 of token 1's last hidden state is nan: weights of the model are damaged or diverged in "
                  "training, or edited");

    char digest[65] = "untouched";
    assert_ok(deberta_model_digest(model, digest, NULL));
    assert_string_equal(digest, ""); /* made up: there are no files */
    assert_int_equal(deberta_model_digest(NULL, digest, NULL), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_model_digest(model, NULL, NULL), DEBERTA_E_ARGUMENT);
    deberta_session_free(&session);
    deberta_model_free(&model);
    model = open_model("tests/golden/33-v3-mlm-emd");
    assert_ok(deberta_model_digest(model, digest, NULL));
    assert_int_equal(strspn(digest, "0123456789abcdef"), 64);
}

static const float *encode(deberta_session *session, const int32_t *ids, const size_t *starts, size_t sequences)
{
    const deberta_batch batch = batch_of(ids, starts, sequences);
    return encode_batch(session, &batch).hidden;
}

/* So many sequences of one to three tokens that their keys, each in a panel of its own, need several groups. */
static void check_groups(deberta_precision precision)
{
    enum { SEQUENCES = 150 };
    OWN_MODEL *model = open_model_in(small_model, precision);
    int32_t ids[3 * SEQUENCES];
    size_t starts[SEQUENCES + 1] = {0}, alone[] = {0, 0};
    for (size_t i = 0; i < SEQUENCES; i++) starts[i + 1] = starts[i] + 1 + i % 3;
    for (size_t i = 0; i < starts[SEQUENCES]; i++) ids[i] = (int32_t)(i * 7 % 61);
    OWN_SESSION *together = open_session(model, starts[SEQUENCES], 3), *single = open_session(model, 3, 1);
    assert_true(together->key_panels < SEQUENCES);
    const float *hidden = encode(together, ids, starts, SEQUENCES);
    for (size_t i = 0; i < SEQUENCES; i++) {
        alone[1] = starts[i + 1] - starts[i];
        const float *expected = encode(single, ids + starts[i], alone, 1);
        for (size_t t = 0; t < alone[1]; t++) {
            assert_memory_equal(hidden + (starts[i] + t) * together->hidden_stride,
                                expected + t * single->hidden_stride, 64 * sizeof *hidden);
        }
    }
}

TEST(short_sequences_in_groups)
{
    check_groups(DEBERTA_PRECISION_FLOAT32);
    check_groups(DEBERTA_PRECISION_INT8);
}

/* Query blocks of every size: also where tiles are partly saturated, and across chunks of keys. */
static void check_blocks(deberta_precision precision)
{
    enum { TOKENS = 700 };
    OWN_MODEL *model = open_model_in(small_model, precision);
    int32_t ids[TOKENS];
    size_t starts[] = {0, TOKENS};
    for (size_t i = 0; i < TOKENS; i++) ids[i] = (int32_t)(i * i % 61);
    OWN_SESSION *session = open_session(model, TOKENS, 1);
    const float *hidden = encode(session, ids, starts, 1);
    size_t floats = TOKENS * session->hidden_stride;
    FREED_BY(free_memory) float *expected = malloc(floats * sizeof *expected);
    assert_non_null(expected);
    memcpy(expected, hidden, floats * sizeof *expected);
    size_t largest = session->query_rows, tile = session->row_tile;
    for (size_t rows = tile; rows < largest; rows += 5 * tile) {
        session->query_rows = rows;
        assert_memory_equal(encode(session, ids, starts, 1), expected, floats * sizeof *expected);
    }
}

TEST(query_blocks_change_no_bit)
{
    check_blocks(DEBERTA_PRECISION_FLOAT32);
    check_blocks(DEBERTA_PRECISION_INT8);
}

static long page_faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt + usage.ru_majflt;
}

/* Drawn positions in one call, near each other and apart, against each of them in a call of its own. */
TEST(decoded_positions_change_no_bit_of_each_other)
{
    enum { LONG = 330, BRIEF = 45, ALL = LONG + BRIEF, WORDS = 61, DRAWS = 12 };
    static const char *const models[] = {
        "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=32,vocab=61,lm=1",
        "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=32,vocab=61,buckets=16,distance=40,lm=1",
        "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=32,vocab=61,buckets=16,distance=40,terms=p2c,lm=1"};
    const size_t starts[] = {0, LONG, ALL};
    int32_t ids[ALL];
    uint64_t seed = 1;
    for (size_t t = 0; t < ALL; t++) ids[t] = (int32_t)random_below(&seed, WORDS);
    for (size_t i = 0; i < 2 * (sizeof models / sizeof *models); i++) {
        OWN_MODEL *model = open_model_in(models[i / 2], i % 2 ? DEBERTA_PRECISION_INT8 : DEBERTA_PRECISION_FLOAT32);
        const deberta_batch batch = batch_of(ids, starts, 2);
        static float alone[ALL * WORDS], together[ALL * WORDS];
        OWN_SESSION *session = open_session_with(
            model, (deberta_session_options){.max_tokens = ALL, .threads = 2, .features = DEBERTA_KEEP_DECODER_INPUT});
        encode_batch(session, &batch);
        for (size_t t = 0; t < ALL; t++)
            assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, &t, 1, alone + t * WORDS, WORDS, NULL));
        for (size_t draw = 0; draw < DRAWS; draw++) {
            size_t asked[ALL], count = 0;
            const uint64_t first_seed = seed;
            for (size_t t = 0; t < ALL; t++)
                if (random_below(&seed, (size_t)1 << draw % 7) == 0) asked[count++] = t;
            if (count > 1 && draw % 3 == 2) asked[count / 2] = asked[count / 2 - 1]; /* asked for twice */
            assert_ok(deberta_task_logits(session, DEBERTA_TASK_MLM_EMD, asked, count, together, WORDS, NULL));
            for (size_t k = 0; k < count; k++)
                if (memcmp(together + k * WORDS, alone + asked[k] * WORDS, WORDS * sizeof *alone))
                    fail_msg("%s: position %zu of %zu (seed %llu)", models[i / 2], k, count,
                             (unsigned long long)first_seed);
        }
    }
}

/* Once a length has been encoded, its memory is there. The system may take a page back at any time: of some encodes,
 * one must do without a fault. */
TEST(encoding_again_faults_no_page)
{
#ifdef WITH_TSAN
    skip(); /* its own memory grows */
#endif
    enum { TOKENS = 2048, TRIES = 5 };
    static int32_t ids[TOKENS];
    OWN_MODEL *model = open_model("synthetic:v3-xsmall,layers=1,vocab=61");
    OWN_SESSION *session = open_session(model, TOKENS, 2);
    static const size_t lengths[] = {128, TOKENS};
    FOR_ROWS(k, lengths) {
        size_t starts[] = {0, lengths[k]};
        long fewest = 1;
        encode(session, ids, starts, 1);
        for (size_t i = 0; i < TRIES && fewest > 0; i++) {
            const long before = page_faults();
            encode(session, ids, starts, 1);
            const long faults = page_faults() - before;
            if (i == 0 || faults < fewest) fewest = faults;
        }
        assert_int_equal(fewest, 0);
    }
}

/* Recomputing position projections is a matter of time only, and so are times per stage. */
TEST(internal_switches_change_no_bit)
{
    static const char *const paths[] = {small_model,
                                        "synthetic:v1-base,layers=2,hidden=48,heads=3,intermediate=20,vocab=61"};
    int32_t ids[] = {5, 7, 1, 0, 60, 33, 2, 5, 5, 9};
    size_t starts[] = {0, 6, 10};
    for (size_t i = 0; i < 2; i++) {
        OWN_MODEL *model = NULL;
        model_internal_options keep = {.keep_position_projections = true};
        assert_ok(model_open_internal(&model, paths[i], NULL, &keep, NULL));
        OWN_SESSION *plain = open_session(model, 16, 2), *special = NULL;
        deberta_session_options options = {.struct_size = sizeof options, .max_tokens = 16, .threads = 2};
        session_internal_options internal = {.recompute_positions = true, .profile = true};
        assert_ok(session_create_internal(&special, model, &options, &internal, NULL));
        const float *expected = encode(plain, ids, starts, 2), *hidden = encode(special, ids, starts, 2);
        assert_memory_equal(hidden, expected, 10 * plain->hidden_stride * sizeof *hidden);
        assert_null(session_profile(plain));
        assert_true(session_profile(special)->lanes[0].seconds[PROFILE_POSITIONS] > 0);
        assert_true(session_profile(special)->lanes[0].seconds[PROFILE_FEED_FORWARD] > 0);
    }
}

/* ---------------------------------------------------------------------------------------------------------- threads */

enum { CALLERS = 4, CALLER_TOKENS = 90, WIDTH = 64, VOCABULARY = 61 };

/* One caller's text, and what a session with a single thread makes of it while nobody else calls. */
typedef struct caller {
    const deberta_model *model;
    deberta_threads *shared; /* NULL: threads of its own */
    deberta_session *session;
    int32_t ids[CALLER_TOKENS];
    size_t starts[3], positions[CALLER_TOKENS];
    float hidden[CALLER_TOKENS][WIDTH], logits[CALLER_TOKENS][VOCABULARY];
} caller;

/* Into hidden and logits. */
static deberta_status call(const caller *c, deberta_session *session, float (*hidden)[WIDTH],
                           float (*logits)[VOCABULARY])
{
    const deberta_batch batch = batch_of(c->ids, c->starts, 2);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(deberta_encode(session, &batch, &outputs, NULL));
    for (size_t t = 0; t < c->starts[2]; t++)
        memcpy(hidden[t], outputs.hidden + t * outputs.hidden_stride, sizeof *hidden);
    return deberta_task_logits(session, DEBERTA_TASK_MLM, c->positions, c->starts[2], logits[0], VOCABULARY, NULL);
}

static const char *call_again(const caller *c)
{
    float hidden[CALLER_TOKENS][WIDTH] = {{0}}, logits[CALLER_TOKENS][VOCABULARY] = {{0}};
    if (call(c, c->session, hidden, logits) != DEBERTA_OK) return "a call failed";
    if (memcmp(hidden, c->hidden, sizeof hidden) != 0) return "hidden states differ from those of a lone session";
    return memcmp(logits, c->logits, sizeof logits) == 0 ? NULL : "logits differ from those of a lone session";
}

/* NULL, or what was wrong. Makes a session of its own and leaves it. */
static void *run_caller(void *context)
{
    caller *c = context;
    const char *complaint = NULL;
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .max_tokens = CALLER_TOKENS,
                                             .threads = c->shared ? 0 : 2,
                                             .shared_threads = c->shared};
    if (deberta_session_create(&c->session, c->model, &options, NULL) != DEBERTA_OK) return "no session";
    for (int round = 0; round < 20 && !complaint; round++) complaint = call_again(c);
    return (void *)(uintptr_t)complaint;
}

/* Texts of his own, and what a session alone makes of them. */
static void prepare_caller(caller *c, size_t number, const deberta_model *model, deberta_threads *shared)
{
    const size_t tokens = CALLER_TOKENS - 17 * number;
    *c = (caller){.model = model, .shared = shared, .starts = {0, tokens / (number + 2), tokens}};
    for (size_t t = 0; t < tokens; t++) {
        c->ids[t] = (int32_t)((t * t + 7 * number) % VOCABULARY);
        c->positions[t] = t;
    }
    OWN_SESSION *alone = open_session(model, CALLER_TOKENS, 1);
    assert_ok(call(c, alone, c->hidden, c->logits));
}

/* All at the same time, a session each. */
static void run_callers(const deberta_model *model, deberta_threads *shared)
{
    static caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        prepare_caller(&callers[i], i, model, shared);
        assert_true(i == 0 || memcmp(callers[i].hidden, callers[0].hidden, sizeof callers[i].hidden) != 0);
    }
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
    for (size_t i = 0; i < CALLERS; i++) {
        void *complaint;
        assert_int_equal(pthread_join(threads[i], &complaint), 0);
        if (complaint) fail_msg("caller %zu: %s", i, (const char *)complaint);
    }
    for (size_t i = 0; i < CALLERS; i++) { /* another thread than the one that made it and called before */
        assert_null(call_again(&callers[i]));
        deberta_session_free(&callers[i].session);
    }
}

TEST(sessions_of_one_model_run_at_the_same_time)
{
    OWN_MODEL *model = open_model(small_model);
    run_callers(model, NULL);
}

static size_t threads_of_process(void)
{
    size_t count = 0;
    DIR *listing = opendir("/proc/self/task");
    assert_non_null(listing);
    while (readdir(listing)) count++;
    closedir(listing);
    return count - 2; /* . and .. */
}

/* However many sessions there are, no more workers than were made once, and the bits of sessions alone. */
TEST(sessions_share_threads)
{
    OWN_MODEL *model = open_model(small_model);
    deberta_threads *shared = NULL;
    deberta_session *sessions[5] = {0};
    assert_ok(deberta_threads_create(&shared, 3, 0, NULL));
    assert_int_equal(deberta_threads_count(shared), 3);
    const size_t before = threads_of_process();
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = CALLER_TOKENS, .shared_threads = shared};
    size_t predicted;
    assert_ok(deberta_session_predict_bytes(&predicted, model, &options, NULL));
    FOR_ROWS(i, sessions) {
        assert_ok(deberta_session_create(&sessions[i], model, &options, NULL));
        assert_int_equal(deberta_session_threads(sessions[i]), 3);
        assert_int_equal(deberta_session_memory_bytes(sessions[i]), predicted);
    }
    assert_int_equal(threads_of_process(), before);
    FOR_ROWS(i, sessions) deberta_session_free(&sessions[i]);
    run_callers(model, shared);
    deberta_threads_free(&shared);
    assert_null(shared);
    deberta_threads_free(&shared);
    deberta_threads_free(NULL);
}

TEST(shared_threads_are_refused)
{
    OWN_MODEL *model = open_model(small_model);
    FREED_BY(deberta_threads_free) deberta_threads *shared = (deberta_threads *)model;
    deberta_error error = {0};
    assert_int_equal(deberta_threads_create(NULL, 1, 0, &error), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_threads_create(&shared, 1025, 0, &error), DEBERTA_E_ARGUMENT);
    assert_null(shared);
    assert_non_null(strstr(error.message, "1025 threads are more than 1024"));
    assert_ok(deberta_threads_create(&shared, 2, 0, NULL));
    deberta_session_options options = {.struct_size = sizeof options, .threads = 2, .shared_threads = shared};
    expect_refusal(model, options, DEBERTA_E_ARGUMENT, "shared_threads");
    options.threads = 0;
    options.pin_threads = 1;
    expect_refusal(model, options, DEBERTA_E_ARGUMENT, "shared_threads");
}

enum { WATCHED_THREADS = 4, WATCHED_TOKENS = 150, WATCHED_LAYERS = 2, WATCHED_HEADS = 4 };

/* Plain memory but for the flag: calls that do not overlap, but are not ordered either, would be a race here. */
typedef struct watch {
    atomic_bool inside;
    bool overlapped, unasked, unwanted;
    pthread_t threads[WATCHED_THREADS + 1];
    size_t thread_count, hidden_calls;
    bool asked[WATCHED_LAYERS][WATCHED_HEADS][DEBERTA_COMPONENT_COUNT];
    size_t rows[WATCHED_LAYERS][WATCHED_HEADS][DEBERTA_COMPONENT_COUNT];
} watch;

static bool is_watched(size_t head, deberta_component component)
{
    return head != 2 && (component == DEBERTA_C2P || component == DEBERTA_PROBABILITIES);
}

static void enter(watch *w)
{
    w->overlapped |= atomic_exchange(&w->inside, true);
    size_t known = 0;
    while (known < w->thread_count && !pthread_equal(w->threads[known], pthread_self())) known++;
    if (known == w->thread_count && known <= WATCHED_THREADS) w->threads[w->thread_count++] = pthread_self();
    usleep(50); /* long enough for another thread to come in, if it may */
}

static void leave(watch *w) { atomic_store(&w->inside, false); }

static deberta_status watch_hidden(void *context, const deberta_hidden_block *block)
{
    (void)block;
    watch *w = context;
    enter(w);
    w->hidden_calls++;
    leave(w);
    return DEBERTA_OK;
}

static int watch_wants(void *context, size_t layer, size_t head, deberta_component component)
{
    watch *w = context;
    enter(w);
    w->asked[layer][head][component] = true;
    leave(w);
    return is_watched(head, component);
}

static deberta_status watch_attention(void *context, const deberta_attention_block *block)
{
    watch *w = context;
    enter(w);
    w->unasked |= !w->asked[block->layer][block->head][block->component];
    w->unwanted |= !is_watched(block->head, block->component);
    w->rows[block->layer][block->head][block->component] += block->rows;
    leave(w);
    return DEBERTA_OK;
}

/* One call at a time, from whichever thread; asked first, and only for what is wanted, and all of that. */
TEST(observers_are_called_one_at_a_time)
{
    watch w = {.overlapped = false};
    int32_t ids[WATCHED_TOKENS];
    for (size_t t = 0; t < WATCHED_TOKENS; t++) ids[t] = (int32_t)(t * 5 % VOCABULARY);
    OWN_MODEL *model = open_model(small_model);
    deberta_session_options options = {.max_tokens = WATCHED_TOKENS, .threads = WATCHED_THREADS};
    options.features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION;
    OWN_SESSION *session = open_session_with(model, options);
    const deberta_observer observer = {.struct_size = sizeof observer,
                                       .context = &w,
                                       .on_hidden = watch_hidden,
                                       .wants_attention = watch_wants,
                                       .on_attention = watch_attention};
    deberta_batch batch = batch_of(ids, (const size_t[]){0, 50, WATCHED_TOKENS}, 2);
    batch.observer = &observer;
    encode_batch(session, &batch);
    assert_false(w.overlapped || w.unasked || w.unwanted);
    assert_in_range(w.thread_count, 2, WATCHED_THREADS); /* with one there would have been nothing to keep apart */
    assert_int_equal(w.hidden_calls, WATCHED_LAYERS + 1);
    for (size_t layer = 0; layer < WATCHED_LAYERS; layer++)
        for (size_t head = 0; head < WATCHED_HEADS; head++)
            for (size_t part = 0; part < DEBERTA_COMPONENT_COUNT; part++)
                assert_int_equal(w.rows[layer][head][part],
                                 is_watched(head, (deberta_component)part) ? WATCHED_TOKENS : 0);
}

/* -------------------------------------------------------------------------------------------------------- positions */

enum { PLACED = 13, PLACED_WIDTH = 64 };

static double largest_difference(const float *values, size_t stride, const double *expected, size_t rows, size_t width)
{
    double worst = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < width; c++)
            worst = fmax(worst, fabs((double)values[i * stride + c] - expected[i * width + c]));
    return worst;
}

/* H[L] and the logits of a head in float64, of one sequence. */
static void reference_results(const char *path, const int32_t *ids, const int32_t *positions, deberta_task head,
                              double *hidden, double *logits)
{
    int64_t wide_ids[PLACED], wide_positions[PLACED];
    for (size_t t = 0; t < PLACED; t++) {
        wide_ids[t] = ids[t];
        wide_positions[t] = positions[t];
    }
    const reference_input input = {.tokens = PLACED, .ids = wide_ids, .position_ids = wide_positions};
    FREED_BY(reference_free) reference_model *model = NULL;
    assert_ok(reference_open(&model, path, DEBERTA_REFERENCE_MICROSOFT, NULL));
    const size_t states = PLACED * model->config.hidden_size;
    FREED_BY(free_memory) double *all = calloc((model->config.layers + 1) * states, sizeof *all);
    assert_non_null(all);
    assert_ok(reference_encode(model, &input, all, NULL, NULL));
    memcpy(hidden, all + model->config.layers * states, states * sizeof *hidden);
    if (head < DEBERTA_TASK_COUNT) assert_ok(reference_head_logits(model, head, &input, all, logits, NULL));
}

/* Positions of the caller's choice, moved along in one sequence and shuffled in the other, where they enter at the
 * input and where the Enhanced Mask Decoder adds them; `moves`: what the default positions would be off by at least. */
TEST(positions_of_the_caller)
{
    static const struct {
        const char *path;
        deberta_task head;
        bool biased;
    } cases[] = {{"tests/golden/04-v1-plain-posbias-types", DEBERTA_TASK_COUNT, true},
                 {"tests/golden/35-v2-mlm-posbias", DEBERTA_TASK_MLM, true},
                 {"tests/golden/10-v1-mlm-emd", DEBERTA_TASK_MLM_EMD, false},
                 {"tests/golden/33-v3-mlm-emd", DEBERTA_TASK_MLM_EMD, false}};
    const double tolerance = 2e-5, moves = 1e-2;
    const size_t starts[] = {0, PLACED, 2 * PLACED};
    int32_t ids[2 * PLACED], positions[2 * PLACED];
    size_t all[2 * PLACED];
    for (size_t t = 0; t < 2 * PLACED; t++) {
        all[t] = t;
        ids[t] = (int32_t)(t * 11 % VOCABULARY);
        positions[t] = (int32_t)(t < PLACED ? 40 + t : t * 5 % PLACED + 3);
    }
    FOR_ROWS(i, cases) {
        OWN_MODEL *model = open_model(cases[i].path);
        OWN_SESSION *session = open_session_with(
            model, (deberta_session_options){.max_tokens = 2 * PLACED, .features = DEBERTA_KEEP_DECODER_INPUT});
        const size_t width = deberta_model_describe(model)->hidden_size, columns = VOCABULARY;
        double hidden[PLACED * PLACED_WIDTH], logits[PLACED * VOCABULARY];
        float found[2 * PLACED * VOCABULARY];
        assert_in_range(width, 1, PLACED_WIDTH);
        for (int given = 0; given < 2; given++) {
            deberta_batch batch = batch_of(ids, starts, 2);
            batch.position_ids = given ? positions : NULL;
            const deberta_outputs outputs = encode_batch(session, &batch);
            if (cases[i].head < DEBERTA_TASK_COUNT)
                assert_ok(deberta_task_logits(session, cases[i].head, all, 2 * PLACED, found, columns, NULL));
            for (size_t s = 0; s < 2; s++) {
                reference_results(cases[i].path, ids + s * PLACED, positions + s * PLACED, cases[i].head, hidden,
                                  logits);
                const double states = largest_difference(outputs.hidden + s * PLACED * outputs.hidden_stride,
                                                         outputs.hidden_stride, hidden, PLACED, width);
                assert_true(given || !cases[i].biased ? states < tolerance : states > moves);
                if (cases[i].head == DEBERTA_TASK_COUNT) continue;
                const double answers =
                    largest_difference(found + s * PLACED * columns, columns, logits, PLACED, columns);
                assert_true(given ? answers < tolerance : answers > moves);
            }
        }
    }
}
