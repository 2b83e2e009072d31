/* What a trainer refuses, each with a sentence that names what was asked for; and where its steps end.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/unit/test.h"

#include "include/deberta_training.h"
#include "tests/unit/io_helpers.h"

static const char model[] = "tests/golden_train/03-v3-mlm-emd", demo[] = "models/demo",
                  batch[] = "tests/golden_train/03-v3-mlm-emd/batch.safetensors",
                  readme[] = "tests/golden_train/README.md";

static deberta_trainer_options options_of_batch(void)
{
    deberta_trainer_options o = DEBERTA_TRAINER_DEFAULTS;
    o.model = model;
    o.batch = batch;
    o.threads = 1;
    return o;
}

static deberta_trainer_options options_of_readme(size_t sequence_tokens, size_t batch_sequences, size_t steps)
{
    static const char *const texts[] = {readme};
    deberta_trainer_options o = DEBERTA_TRAINER_DEFAULTS;
    o.model = demo;
    o.texts = texts;
    o.text_count = 1;
    o.threads = 1;
    o.sequence_tokens = sequence_tokens;
    o.batch_sequences = batch_sequences;
    o.steps = steps;
    return o;
}

static deberta_trainer *open_trainer(const deberta_trainer_options *o)
{
    deberta_error err = {0};
    deberta_trainer *trainer = NULL;
    if (deberta_trainer_open(&trainer, o, &err) != DEBERTA_OK) fail_msg("%s: %s", o->model, err.message);
    return trainer;
}

static void assert_refused(const deberta_trainer_options *o, deberta_status expected, const char *words)
{
    deberta_error err = {0};
    deberta_trainer *trainer = (deberta_trainer *)&err;
    check_refused(deberta_trainer_open(&trainer, o, &err), &err, expected, words);
    assert_null(trainer);
}

/* Opens what the macro's caller has changed in the options of a batch. */
#define REFUSED(status, words, ...)                                                                                    \
    do {                                                                                                               \
        deberta_trainer_options o = options_of_batch();                                                                \
        __VA_ARGS__;                                                                                                   \
        assert_refused(&o, status, words);                                                                             \
    } while (0)

static void trade(void *context, const float *all, float *received, size_t floats)
{
    (void)context, (void)all, (void)received, (void)floats;
}
static void gather(void *context, float *all, size_t floats) { (void)context, (void)all, (void)floats; }
static void join(void *context, void *bytes, size_t size) { (void)context, (void)bytes, (void)size; }

TEST(test_options_that_do_not_fit)
{
    static const char *const texts[] = {readme}, *const broken[] = {"fine", "\xff"}, *const unknown[] = {"no.such.*"};
    static const int32_t ids[] = {1, 2};
    const deberta_example examples[3] = {
        {.tokens = 2, .ids = ids}, {.tokens = 2, .ids = ids}, {.tokens = 2, .ids = ids}};
    deberta_ranks ranks = {.rank = 2, .count = 2, .trade = trade, .gather = gather, .join = join};
    deberta_error err;
    deberta_trainer *trainer;

    REFUSED(DEBERTA_E_ARGUMENT, "no model", o.model = NULL);
    REFUSED(DEBERTA_E_ARGUMENT, "one of batch, batches, texts and examples, found 0", o.batch = NULL);
    REFUSED(DEBERTA_E_ARGUMENT, "found 2", o.batches = batch);
    REFUSED(DEBERTA_E_ARGUMENT, "3 and 0 examples are no multiples of 2 choices", o.batch = NULL; o.examples = examples;
            o.example_count = 3; o.choices = 2);
    REFUSED(DEBERTA_E_ARGUMENT, "2 and 3 examples are no multiples of 2 choices", o.batch = NULL; o.examples = examples;
            o.example_count = 2; o.held_out_examples = examples; o.held_out_example_count = 3; o.choices = 2);
    REFUSED(DEBERTA_E_ARGUMENT, "choices", o.choices = 0);
    REFUSED(DEBERTA_E_ARGUMENT, "6 shards, expected a power of two", o.shards = 6);
    REFUSED(DEBERTA_E_ARGUMENT, "5 steps of warm-up, but 4 steps", o.steps = 4; o.warmup = 5);
    REFUSED(DEBERTA_E_ARGUMENT, "a made-up model has no files", o.model = "synthetic:v3-base,layers=1"; o.folder = "x");
    REFUSED(DEBERTA_E_ARGUMENT, "texts need a generator", o.batch = NULL; o.texts = texts; o.text_count = 1;
            o.task = DEBERTA_TRAIN_RTD);
    REFUSED(DEBERTA_E_ARGUMENT, "is coupled only", o.task = DEBERTA_TRAIN_RTD; o.generator = model;
            o.sharing = DEBERTA_SHARING_ES);
    REFUSED(DEBERTA_E_UNSUPPORTED, "SiFT compares", o.sift_weight = 1);
    REFUSED(DEBERTA_E_UNSUPPORTED, "SiFT compares", o.sift_weight = 1; o.task = DEBERTA_TRAIN_QA);
    REFUSED(DEBERTA_E_ARGUMENT, "resume needs the folder", o.resume = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "labels[1] is no text in UTF-8", o.labels = broken; o.new_labels = 2);
    REFUSED(DEBERTA_E_ARGUMENT, "freeze[1] is no text in UTF-8", o.freeze = broken; o.freeze_count = 2);
    REFUSED(DEBERTA_E_ARGUMENT, "drop[1] is no text in UTF-8", o.drop = broken; o.drop_count = 2);
    REFUSED(DEBERTA_E_ARGUMENT, "no tensor 'no.such.*' that could be frozen", o.freeze = unknown; o.freeze_count = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "no tensor 'no.such.*' that could be left out", o.drop = unknown; o.drop_count = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "dropout is 1", o.dropout = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "mask_probability is nan", o.mask_probability = (double)NAN);
    REFUSED(DEBERTA_E_ARGUMENT, "rank 2 of 2", o.ranks = &ranks);
    ranks.rank = 1;
    ranks.gather = NULL;
    REFUSED(DEBERTA_E_ARGUMENT, "a function of the ranks is missing", o.ranks = &ranks);
    ranks.gather = gather;
    REFUSED(DEBERTA_E_ARGUMENT, "2 ranks, but a step has 1 shards", o.ranks = &ranks; o.shards = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "struct_size", o.struct_size = 1);
    assert_int_equal(deberta_trainer_open(&trainer, NULL, &err), DEBERTA_E_ARGUMENT);
    const deberta_trainer_options fine = options_of_batch();
    assert_int_equal(deberta_trainer_open(NULL, &fine, &err), DEBERTA_E_ARGUMENT);
}

TEST(test_models_and_data_that_do_not_fit)
{
    static const char *const texts[] = {readme};
    static const int32_t ids[] = {1, 2};
    const deberta_example examples[2] = {{.tokens = 2, .ids = ids}, {.tokens = 0, .ids = ids}};
    /* other words than the discriminator has */
    REFUSED(DEBERTA_E_FORMAT, "rows, but that of", o.batch = NULL; o.texts = texts; o.text_count = 1; o.model = model;
            o.generator = demo; o.task = DEBERTA_TRAIN_RTD; o.new_labels = 1);
    REFUSED(DEBERTA_E_ARGUMENT, "example 1 has no tokens", o.model = "tests/golden_train/08-v2-conv-token";
            o.batch = NULL; o.examples = examples; o.example_count = 2; o.task = DEBERTA_TRAIN_TOKEN);
    REFUSED(DEBERTA_E_FILE, "no/such/folder", o.model = "no/such/folder");
    REFUSED(DEBERTA_E_UNSUPPORTED, "has no head 'qa': a new head makes one", o.task = DEBERTA_TRAIN_QA);
}

/* A limit below what it holds is refused, one above it is not. */
TEST(test_memory_limit)
{
    deberta_trainer_options o = options_of_batch();
    FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
    const size_t bytes = deberta_trainer_memory_bytes(trainer);
    assert_true(bytes > 100000);
    deberta_trainer_free(&trainer);
    assert_null(trainer);
    deberta_trainer_free(&trainer);
    o.memory_limit_bytes = bytes / 2;
    assert_refused(&o, DEBERTA_E_MEMORY, "");
    o.memory_limit_bytes = 4 * bytes;
    trainer = open_trainer(&o);
}

/* More labels than a plan expects take more memory, which a limit bounds as well; the step can be taken again. */
TEST(test_memory_limit_of_many_labels)
{
    deberta_error err;
    deberta_training_step free_step, step;
    deberta_trainer_options o = options_of_readme(64, 8, 1);
    o.mask_probability = 0.9;
    FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
    const size_t planned = deberta_trainer_memory_bytes(trainer);
    assert_ok(deberta_trainer_gradients(trainer, NULL, &free_step, &err));
    const size_t grown = deberta_trainer_memory_bytes(trainer);
    assert_true(grown > planned);
    deberta_trainer_free(&trainer);
    o.memory_limit_bytes = planned;
    trainer = open_trainer(&o);
    for (int again = 0; again < 2; again++)
        check_refused(deberta_trainer_gradients(trainer, NULL, &step, &err), &err, DEBERTA_E_MEMORY,
                      "labelled tokens needs");
    deberta_trainer_free(&trainer);
    o.memory_limit_bytes = grown;
    trainer = open_trainer(&o);
    assert_ok(deberta_trainer_gradients(trainer, NULL, &step, &err));
    assert_true(step.loss == free_step.loss && step.gradient_norm == free_step.gradient_norm);
}

/* The same step gives the same once more, whatever its memory held: of every task, and after a step of another shape.
 */
TEST(test_a_step_leaves_nothing_behind)
{
    static const struct {
        const char *name;
        deberta_training_task task;
        double sift;
    } cases[] = {{"03-v3-mlm-emd", DEBERTA_TRAIN_MLM, 0},      {"07-v1-sequence-types", DEBERTA_TRAIN_SEQUENCE, 0},
                 {"08-v2-conv-token", DEBERTA_TRAIN_TOKEN, 0}, {"10-v3-qa", DEBERTA_TRAIN_QA, 0},
                 {"11-v3-rtd", DEBERTA_TRAIN_RTD, 0},          {"13-v3-sift-sequence", DEBERTA_TRAIN_SEQUENCE, 5},
                 {"18-v3-choice", DEBERTA_TRAIN_CHOICE, 0},    {"18-v3-choice", DEBERTA_TRAIN_CHOICE, 5}};
    FOR_ROWS(i, cases) {
        char folder[100], file[200];
        deberta_training_step steps[3];
        deberta_trainer_options o = options_of_batch();
        snprintf(folder, sizeof folder, "tests/golden_train/%s", cases[i].name);
        snprintf(file, sizeof file, "%s/batch.safetensors", folder);
        o.model = folder;
        o.batch = file;
        o.task = cases[i].task;
        o.sift_weight = cases[i].sift;
        o.dropout = 0.1;
        FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
        for (size_t k = 0; k < 3; k++) {
            assert_ok(deberta_trainer_gradients(trainer, NULL, &steps[k], NULL));
            if (memcmp(&steps[k], &steps[0], sizeof *steps) != 0)
                fail_msg("%s: losses %.17g and %.17g, norms %.17g and %.17g", folder, steps[0].loss, steps[k].loss,
                         steps[0].gradient_norm, steps[k].gradient_norm);
        }
        assert_true(steps[0].loss > 0 && isfinite(steps[0].gradient_norm));
    }
}

/* Two ranks in one process: each is a thread that takes the other's memory. */
typedef struct meeting {
    pthread_barrier_t barrier;
    const void *shown[2];
} meeting;

typedef struct rank_work {
    meeting *together;
    deberta_ranks ranks;
    deberta_trainer_options options;
    deberta_status status;
    deberta_error err;
    deberta_training_step steps[2];
} rank_work;

static const void *shown_by_other(rank_work *work, const void *mine)
{
    work->together->shown[work->ranks.rank] = mine;
    pthread_barrier_wait(&work->together->barrier);
    return work->together->shown[!work->ranks.rank];
}

static void trade_in_memory(void *context, const float *all, float *received, size_t floats)
{
    rank_work *work = context;
    const size_t me = work->ranks.rank, bytes = floats * sizeof *all;
    const float *other = shown_by_other(work, all);
    memcpy(received + me * floats, all + me * floats, bytes);
    memcpy(received + !me * floats, other + me * floats, bytes);
    pthread_barrier_wait(&work->together->barrier);
}

static void gather_in_memory(void *context, float *all, size_t floats)
{
    rank_work *work = context;
    const size_t he = !work->ranks.rank;
    const float *other = shown_by_other(work, all);
    memcpy(all + he * floats, other + he * floats, floats * sizeof *all);
    pthread_barrier_wait(&work->together->barrier);
}

static void join_in_memory(void *context, void *bytes, size_t size)
{
    rank_work *work = context;
    unsigned char *mine = bytes, *copy = malloc(size);
    memcpy(copy, shown_by_other(work, bytes), size);
    pthread_barrier_wait(&work->together->barrier);
    for (size_t i = 0; i < size; i++) mine[i] |= copy[i];
    free(copy);
}

static void *run_rank(void *context)
{
    rank_work *work = context;
    deberta_trainer *trainer;
    work->status = deberta_trainer_open(&trainer, &work->options, &work->err);
    for (size_t i = 0; i < 2 && work->status == DEBERTA_OK; i++)
        work->status = deberta_trainer_step(trainer, &work->steps[i], &work->err);
    if (trainer) deberta_trainer_free(&trainer);
    return NULL;
}

static void run_two_ranks(rank_work works[2], const deberta_trainer_options *options)
{
    meeting together;
    pthread_t threads[2];
    pthread_barrier_init(&together.barrier, NULL, 2);
    for (size_t i = 0; i < 2; i++) {
        works[i] = (rank_work){.together = &together,
                               .options = *options,
                               .ranks = {&works[i], i, 2, trade_in_memory, gather_in_memory, join_in_memory}};
        works[i].options.ranks = &works[i].ranks;
    }
    works[1].options.seed += options->seed == 2; /* the second differs */
    for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &works[i]), 0);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together.barrier);
}

/* Steps of two ranks are those of one process; what one of them has otherwise, both name. */
TEST(test_two_ranks)
{
    rank_work alone = {.options = options_of_readme(24, 6, 2)}, works[2];
    deberta_trainer_options *o = &alone.options;
    run_rank(&alone);
    if (alone.status != DEBERTA_OK) fail_msg("%s", alone.err.message);
    run_two_ranks(works, o);
    for (size_t i = 0; i < 2; i++) {
        if (works[i].status != DEBERTA_OK) fail_msg("%s", works[i].err.message);
        for (size_t k = 0; k < 2; k++)
            assert_true(works[i].steps[k].loss == alone.steps[k].loss &&
                        works[i].steps[k].gradient_norm == alone.steps[k].gradient_norm);
    }
    o->seed = 2;
    run_two_ranks(works, o);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(works[i].status, DEBERTA_E_FORMAT);
        assert_non_null(strstr(works[i].err.message, "rank 1 has another 'seed' than rank 0"));
    }
}

/* Where texts are moved for SiFT, what is said of the clean ones is what they give without it; and the distance between
 * the two counts as often as it is asked for. */
TEST(test_clean_losses_of_moved_texts)
{
    static const int32_t ids[] = {1, 9, 12, 7, 30, 8, 2, 1, 5, 2, 1, 17, 22, 6, 2};
    const deberta_example examples[3] = {{.tokens = 7, .ids = ids, .label = 1, .target = 0.5f},
                                         {.tokens = 3, .ids = ids + 7, .label = 0, .target = -1},
                                         {.tokens = 5, .ids = ids + 10, .label = 1, .target = 2}};
    for (size_t shards = 1; shards <= 4; shards *= 2) {
        deberta_training_step steps[3];
        for (size_t i = 0; i < 3; i++) {
            deberta_trainer_options o = options_of_batch();
            o.model = "tests/golden_train/13-v3-sift-sequence";
            o.batch = NULL;
            o.task = DEBERTA_TRAIN_SEQUENCE;
            o.examples = examples;
            o.example_count = 3;
            o.batch_sequences = 3;
            o.sift_weight = (double[]){0, 2, 8}[i];
            o.sift_start = 0.5;
            o.dropout = 0;
            o.shards = shards;
            o.steps = 1;
            FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
            assert_ok(deberta_trainer_gradients(trainer, NULL, &steps[i], NULL));
        }
        for (size_t i = 1; i < 3; i++) /* the norm's gain is applied apart, which rounds */
            assert_true(fabs(steps[i].loss_clean - steps[0].loss) < 1e-6 * steps[0].loss);
        const double once = steps[1].loss - steps[1].loss_clean, four_times = steps[2].loss - steps[2].loss_clean;
        assert_true(once > 1e-9 && fabs(four_times - 4 * once) < 1e-6 * four_times);
    }
}

/* The loss of a golden case whose configuration has this rate of one kind, and 0 of the others. */
static double loss_with_dropout(const char *name, deberta_training_task task, const char *kind, double rate)
{
    static const char *const kinds[] = {"hidden_dropout_prob", "attention_probs_dropout_prob", "pooler_dropout",
                                        "cls_dropout"};
    FREED_BY(remove_folder) char *folder = make_folder();
    char path[300], weights[300];
    deberta_training_step step;
    snprintf(path, sizeof path, "tests/golden_train/%s/config.json", name);
    json_t *config = json_load_file(path, 0, NULL);
    FOR_ROWS(i, kinds) json_object_set_new(config, kinds[i], json_real(strcmp(kinds[i], kind) == 0 ? rate : 0));
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(weights, sizeof weights, "tests/golden_train/%s/model.safetensors", name);
    FREED_BY(free_memory) char *target = realpath(weights, NULL);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    assert_int_equal(symlink(target, weights), 0);
    deberta_trainer_options o = options_of_batch();
    snprintf(path, sizeof path, "tests/golden_train/%s/batch.safetensors", name);
    o.batch = path;
    o.model = folder;
    o.task = task;
    FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
    assert_ok(deberta_trainer_gradients(trainer, NULL, &step, NULL));
    return step.loss;
}

/* Each kind of dropout has a place of its own: without it, at half, and not where the task has no such place. */
TEST(test_each_kind_of_dropout_shows)
{
    static const struct {
        const char *name;
        deberta_training_task task;
        bool has_pooler, has_classifier;
    } cases[] = {{"07-v1-sequence-types", DEBERTA_TRAIN_SEQUENCE, true, true},
                 {"18-v3-choice", DEBERTA_TRAIN_CHOICE, true, true},
                 {"08-v2-conv-token", DEBERTA_TRAIN_TOKEN, false, true},
                 {"10-v3-qa", DEBERTA_TRAIN_QA, false, false},
                 {"03-v3-mlm-emd", DEBERTA_TRAIN_MLM, false, false}};
    FOR_ROWS(i, cases) {
        const double without = loss_with_dropout(cases[i].name, cases[i].task, "none", 0);
        const struct {
            const char *kind;
            bool shows;
        } kinds[] = {{"hidden_dropout_prob", true},
                     {"attention_probs_dropout_prob", true},
                     {"pooler_dropout", cases[i].has_pooler},
                     {"cls_dropout", cases[i].has_classifier}};
        for (size_t k = 0; k < 4; k++)
            if ((loss_with_dropout(cases[i].name, cases[i].task, kinds[k].kind, 0.5) != without) != kinds[k].shows)
                fail_msg("%s: %s %s", cases[i].name, kinds[k].kind, kinds[k].shows ? "does not show" : "shows");
    }
}

/* Steps come to an end; gradients can be asked for at any time, and change nothing. */
TEST(test_steps_end)
{
    deberta_error err;
    deberta_training_step first, again, step;
    int finished = 7;
    deberta_trainer_options o = options_of_readme(16, 2, 2);
    o.shards = 2;
    FREED_BY(deberta_trainer_free) deberta_trainer *trainer = open_trainer(&o);
    assert_ok(deberta_trainer_gradients(trainer, NULL, &first, &err));
    assert_ok(deberta_trainer_gradients(trainer, NULL, &again, &err));
    assert_true(first.loss == again.loss && first.gradient_norm == again.gradient_norm && first.gradient_norm > 0);
    for (size_t done = 0; done < 2; done++) {
        assert_int_equal(deberta_trainer_steps_done(trainer), done);
        assert_ok(deberta_trainer_step(trainer, &step, &err));
        assert_int_equal(step.step, done + 1);
        assert_int_equal(step.steps, 2);
        assert_true(done > 0 || step.loss == first.loss);
    }
    check_refused(deberta_trainer_step(trainer, &step, &err), &err, DEBERTA_E_ARGUMENT, "all 2 steps");
    assert_int_equal(deberta_trainer_steps_done(trainer), 2);
    assert_int_equal(deberta_trainer_run(trainer, NULL, NULL, &finished, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_step(trainer, NULL, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_step(NULL, &step, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_gradients(NULL, NULL, &step, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_gradients(trainer, NULL, NULL, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_save(trainer, NULL, &err), DEBERTA_E_ARGUMENT);
    assert_int_equal(deberta_trainer_save(NULL, "x", &err), DEBERTA_E_ARGUMENT);
}
