/* What a masked language model is trained on: counters, shuffling, masking, sequences of a corpus. Expected draws are
 * from a second implementation in Python, written from the formulas of docs/training.md. SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "core/dispatch.h"
#include "core/encode/dropout.h"
#include "include/deberta_training.h"
#include "train/backward/heads.h"
#include "train/data/drawn_batches.h"
#include "train/data/examples.h"
#include "train/state/exact_math.h"

enum { TOKENS = 48, VOCABULARY = 1000, HIDDEN = 99, SEQUENCES = 12, SHARDS = 4 };

/* Below two units in the last place, beside the C library's, which has less than one. */
TEST(test_exact_exponential)
{
    for (double x = -699.3; x < 700; x += 0.37) {
        const double expected = exp(x), found = exact_exp(x);
        if (!(fabs(found - expected) <= 3 * 0x1p-52 * expected))
            fail_msg("exp(%.17g): %a, expected %a", x, found, expected);
    }
    assert_true(exact_exp(0) == 1);
}

/* The vectors that the authors of Random123 publish. */
TEST(test_philox)
{
    const struct {
        uint32_t fill, words[COUNTER_WORDS];
    } cases[] = {{0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {UINT32_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}};
    FOR_ROWS(i, cases) {
        const uint32_t fill = cases[i].fill, counter[COUNTER_WORDS] = {fill, fill, fill, fill};
        uint32_t words[COUNTER_WORDS];
        philox4x32(counter, (counter_key){fill, fill}, words);
        assert_memory_equal(words, cases[i].words, sizeof words);
    }
}

TEST(test_shuffle)
{
    static const size_t expected[2][SEQUENCES] = {{4, 7, 11, 0, 8, 6, 2, 1, 10, 3, 5, 9},
                                                  {2, 4, 7, 5, 0, 11, 10, 6, 9, 3, 8, 1}};
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        size_t order[SEQUENCES];
        counter_shuffle(order, SEQUENCES, (counter_key){7, epoch});
        assert_memory_equal(order, expected[epoch], sizeof order);
    }
}

TEST(test_masking)
{
    const struct {
        deberta_masking kind;
        double probability;
        size_t max_ngram, count;
        int32_t places[12], ids[12];
    } cases[] = {
        {DEBERTA_MASKING_NGRAM, 0.15, 1, 7, {1, 10, 13, 20, 27, 31, 42}, {99, 99, 487, 99, 99, 491, 264}},
        {DEBERTA_MASKING_NGRAM, 0.15, 3, 7, {3, 4, 5, 24, 30, 31, 32}, {99, 99, 46, 99, 130, 99, 99}},
        {DEBERTA_MASKING_NGRAM, 0.04, 1, 2, {3, 36}, {99, 99}},
        {DEBERTA_MASKING_NGRAM,
         0.25,
         1,
         12,
         {1, 7, 9, 13, 18, 21, 28, 30, 34, 38, 41, 45},
         {264, 99, 99, 99, 118, 99, 128, 99, 99, 99, 141, 196}},
        {DEBERTA_MASKING_UNIFORM, 0.15, 1, 7, {12, 23, 26, 28, 37, 39, 45}, {99, 123, 99, 99, 99, 99, 99}},
    };
    FOR_ROWS(i, cases) {
        const masking_options options = {
            cases[i].kind, cases[i].probability, cases[i].max_ngram, HIDDEN, VOCABULARY, false, 512};
        counter_draws draws = {.key = {5, 3}, .place = 2, .site = SITE_MASKING};
        int32_t ids[TOKENS], labels[TOKENS];
        uint8_t begins[TOKENS];
        size_t found = 0;
        for (int32_t t = 0; t < TOKENS; t++) {
            ids[t] = t == 0 ? 1 : t == TOKENS - 1 ? 2 : 100 + t;
            begins[t] = t % 3 != 2;
        }
        assert_ok(mask_sequence(&options, &draws, TOKENS, ids, begins, labels, NULL));
        for (int32_t t = 0; t < TOKENS; t++) {
            const int32_t before = t == 0 ? 1 : t == TOKENS - 1 ? 2 : 100 + t;
            if (labels[t] == NOT_LABELLED) {
                assert_int_equal(ids[t], before);
                continue;
            }
            assert_int_equal(labels[t], before);
            assert_int_equal(t, cases[i].places[found]);
            assert_int_equal(ids[t], cases[i].ids[found++]);
        }
        assert_int_equal(found, cases[i].count);
    }
}

enum { LONG_TEXT = 130 };

/* Labels of a text whose words have so many pieces; returns how many are labelled. */
static size_t mask_words_of(size_t pieces, uint32_t seed, int32_t labels[LONG_TEXT])
{
    const masking_options options = {DEBERTA_MASKING_NGRAM, 0.15, 3, HIDDEN, VOCABULARY, false, 512};
    counter_draws draws = {.key = {seed, 3}, .site = SITE_MASKING};
    int32_t ids[LONG_TEXT];
    uint8_t begins[LONG_TEXT];
    size_t found = 0;
    for (size_t t = 0; t < LONG_TEXT; t++) {
        ids[t] = 100;
        begins[t] = (t - 1) % pieces == 0;
    }
    assert_ok(mask_sequence(&options, &draws, LONG_TEXT, ids, begins, labels, NULL));
    for (size_t t = 0; t < LONG_TEXT; t++) found += labels[t] != NOT_LABELLED;
    return found;
}

/* Words of up to eight pieces are labelled whole, but for the last one, which the quota (20) may cut. Longer ones, as
 * where a text has no white space at all, are taken as pieces: the share stays, and neighbours do not. */
TEST(test_words_of_many_pieces)
{
    int32_t labels[LONG_TEXT];
    for (uint32_t seed = 0; seed < 200; seed++)
        for (size_t pieces = 1; pieces <= LONG_TEXT; pieces++) {
            const size_t found = mask_words_of(pieces, seed, labels);
            assert_in_range(found, pieces == 1 || pieces > 8 ? 17 : 8, 20 + 20 / 8);
            size_t cut = 0, stretch = 0, longest = 0;
            for (size_t t = 1; t + 1 < LONG_TEXT; t++) {
                const bool labelled = labels[t] != NOT_LABELLED, goes_on = (t - 1) % pieces != 0;
                cut += goes_on && labelled != (labels[t - 1] != NOT_LABELLED);
                stretch = labelled ? stretch + 1 : 0;
                longest = stretch > longest ? stretch : longest;
            }
            if (pieces <= 8) assert_in_range(cut, 0, 1);
            if (pieces > 8) assert_in_range(longest, 1, 9); /* three stretches at most may touch */
        }
}

/* A frame alone has nothing to guess; a single piece is always labelled. */
TEST(test_short_texts)
{
    for (deberta_masking kind = DEBERTA_MASKING_NGRAM; kind <= DEBERTA_MASKING_UNIFORM; kind++) {
        const masking_options options = {kind, 0.15, 1, HIDDEN, VOCABULARY, false, 512};
        counter_draws draws = {.site = SITE_MASKING};
        const uint8_t begins[3] = {1, 1, 1};
        int32_t ids[3] = {1, 7, 2}, labels[3];
        assert_ok(mask_sequence(&options, &draws, 3, ids, begins, labels, NULL));
        assert_int_equal(labels[1], 7);
        assert_ok(mask_sequence(&options, &draws, 2, ids, begins, labels, NULL));
        assert_int_equal(labels[0], NOT_LABELLED);
        assert_int_equal(labels[1], NOT_LABELLED);
    }
}

/* ----------------------------------------------------------------------------------------------------------- corpus */

static void read_corpus(corpus *texts, const char *content, size_t most_tokens)
{
    char path[] = "/tmp/deberta-corpus-XXXXXX";
    deberta_tokenizer *tokenizer = NULL;
    deberta_error error = {0};
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, content, strlen(content)) == (ssize_t)strlen(content));
    close(file);
    assert_ok(deberta_tokenizer_open(&tokenizer, "models/demo", &error));
    if (corpus_add_file(texts, path, tokenizer, (corpus_cut){.most_tokens = most_tokens}, (note_listener){0}, &error) !=
        DEBERTA_OK)
        fail_msg("%s", error.message);
    deberta_tokenizer_free(&tokenizer);
    unlink(path);
}

/* Lines of a document are joined, documents are not; nothing is lost at a cut. */
TEST(test_corpus)
{
    FREED_BY(corpus_free) corpus joined = {0}, parts = {0};
    read_corpus(&joined, "The cat sat on the mat.\r\nIt slept.\r\n\r\n\r\nThe dog barked.", 512);
    read_corpus(&parts, "The cat sat on the mat.\nIt slept.\n\nThe dog barked.\n", 5);
    assert_int_equal(joined.sequences, 2);
    assert_int_equal(joined.starts[2], joined.tokens);
    assert_true(parts.sequences > 3);
    assert_int_equal(parts.longest, 5);
    size_t at = 1, document = 0;
    for (size_t i = 0; i < parts.sequences; i++) {
        const size_t first = parts.starts[i], end = parts.starts[i + 1];
        assert_int_equal(parts.ids[first], parts.begin_id);
        assert_int_equal(parts.ids[end - 1], parts.end_id);
        for (size_t t = first + 1; t + 1 < end; t++, at++) {
            assert_int_equal(parts.ids[t], joined.ids[at]);
            assert_int_equal(parts.begins[t], joined.begins[at]);
        }
        if (joined.ids[at] == joined.end_id) at = joined.starts[++document] + 1;
    }
    assert_int_equal(document, 2);
}

/* A word begins with the piece that has the space before it, and with the first one. */
TEST(test_words_of_a_corpus)
{
    FREED_BY(corpus_free) corpus texts = {0};
    size_t begun = 0;
    read_corpus(&texts, "Nobody understands internationalisation zyxwvq", 512);
    for (size_t t = 1; t + 1 < texts.tokens; t++) begun += texts.begins[t];
    assert_int_equal(begun, 4);
    assert_true(texts.tokens > 4 + 2 && texts.begins[1]);
}

/* ---------------------------------------------------------------------------------------------------------- batches */

static void read_step(drawn_batches *batches, size_t step, step_batch *batch)
{
    const batch_source source = drawn_batches_source(batches);
    assert_ok(source.read(source.context, step, SHARDS, 0, batch, NULL));
}

/* Steps asked for in any order are the same; an epoch has every sequence once. */
TEST(test_steps)
{
    enum { STEPS = 8, STEP_SEQUENCES = 3 };
    FREED_BY(corpus_free) corpus texts = {0};
    FREED_BY(drawn_batches_close) drawn_batches *batches = NULL;
    step_batch inorder[STEPS], again;
    char content[SEQUENCES * 32] = "";
    for (size_t i = 0; i < SEQUENCES; i++)
        snprintf(content + strlen(content), sizeof content - strlen(content), "%.*s end\n\n", (int)(2 + i),
                 "aaaaaaaaaaaaaa");
    read_corpus(&texts, content, 32);
    const drawn_options options = {.masking = {DEBERTA_MASKING_NGRAM, 0.15, 1, HIDDEN, VOCABULARY, false, 512},
                                   .order = {.batch_items = STEP_SEQUENCES}};
    assert_int_equal(texts.sequences, SEQUENCES);
    assert_ok(drawn_batches_open(&batches, &texts, &options, NULL));
    for (size_t step = 0; step < STEPS; step++) read_step(batches, step, &inorder[step]);
    size_t tokens = 0;
    for (size_t step = 0; step < SEQUENCES / STEP_SEQUENCES; step++) tokens += inorder[step].tokens;
    assert_int_equal(tokens, texts.tokens);
    assert_true(inorder[SEQUENCES / STEP_SEQUENCES - 1].epoch == 1 && inorder[STEPS - 1].epoch == 2);
    const size_t others[] = {5, 2, 2, 7, 0};
    FOR_ROWS(i, others) {
        const step_batch *was = &inorder[others[i]];
        read_step(batches, others[i], &again);
        assert_int_equal(again.tokens, was->tokens);
        assert_memory_equal(again.ids, was->ids, was->tokens * sizeof *was->ids);
        assert_memory_equal(again.labels, was->labels, was->tokens * sizeof *was->labels);
        step_batch_free(&again);
    }
    for (size_t step = 0; step < STEPS; step++) step_batch_free(&inorder[step]);
}

/* A step ends before the sequence that would exceed the limit, and the next begins with it. */
TEST(test_token_limit)
{
    FREED_BY(corpus_free) corpus texts = {0};
    drawn_batches *batches = NULL;
    step_batch batch;
    size_t sequences = 0, tokens = 0;
    read_corpus(&texts, "One two three four five six.\n\nSeven.\n\nEight nine ten.\n\nEleven twelve.\n", 32);
    const drawn_options options = {.masking = {DEBERTA_MASKING_NGRAM, 0.15, 1, HIDDEN, VOCABULARY, false, 512},
                                   .order = {.batch_tokens = texts.longest + 3}};
    assert_ok(drawn_batches_open(&batches, &texts, &options, NULL));
    assert_int_equal(drawn_batches_most_tokens(batches), texts.longest + 3);
    for (size_t step = 0; step < 40; step++) {
        read_step(batches, step, &batch);
        assert_true(batch.sequences > 0 && batch.tokens <= texts.longest + 3);
        sequences += batch.sequences;
        tokens += batch.tokens;
        step_batch_free(&batch);
    }
    assert_true(sequences / texts.sequences * texts.tokens <= tokens);
    drawn_batches_close(&batches);
    const drawn_options small = {.masking = options.masking, .order = {.batch_tokens = texts.longest - 1}};
    assert_int_equal(drawn_batches_open(&batches, &texts, &small, NULL), DEBERTA_E_ARGUMENT);
}

enum { WORDS = 1301, DRAWS = 500 };

/* The word in which u lies, by plain sums of doubles; words without a probability are never drawn. */
TEST(test_drawing)
{
    float logits[WORDS];
    double sums[WORDS + 1] = {0};
    kernels table;
    counter_draws draws = {.key = {1, 2}};
    assert_ok(kernels_select(&table, DEBERTA_ISA_AUTO, NULL));
    for (size_t w = 0; w < WORDS; w++) {
        logits[w] = w % 7 == 0 || w >= WORDS - 3 ? -1e6f : (float)(8 * counter_fraction(&draws));
        sums[w + 1] = sums[w] + exp((double)logits[w]);
    }
    for (size_t i = 0; i < DRAWS; i++) {
        const double u = counter_drawing((counter_key){3, (uint32_t)i}, 4, 5);
        const size_t w = draw_class(&table, logits, WORDS, u);
        assert_true(w < WORDS - 3 && w % 7 != 0);
        assert_true(sums[w] <= (u + 1e-6) * sums[WORDS] && (u - 1e-6) * sums[WORDS] < sums[w + 1]);
    }
    assert_int_equal(draw_class(&table, logits, WORDS, 1), (WORDS - 4) % 7 ? WORDS - 4 : WORDS - 5);
    assert_int_equal(draw_class(&table, logits, WORDS, 0), 1);
}

enum { DROPPED_ROWS = 500, DROPPED_COLUMNS = 191 };

/* Means and variances of masks lie where those of independent draws do, and a token's mask is its own: the same behind
 * other tokens, another at another place, site, layer, head, pass and step. */
TEST(test_dropout)
{
    static float x[DROPPED_ROWS][DROPPED_COLUMNS], once[DROPPED_COLUMNS];
    static dropout_row tokens[DROPPED_ROWS];
    kernels table;
    const double p = 0.2, n = DROPPED_ROWS * DROPPED_COLUMNS;
    dropout_plan plan = {.rates = {p, p, p, p}, .seed = 3, .step = 4, .tokens = tokens};
    dropout_place place = {.site = DROPOUT_FEED_FORWARD, .layer = 2};
    double sum = 0, squares = 0, neighbours = 0;
    assert_ok(kernels_select(&table, DEBERTA_ISA_AUTO, NULL));
    for (uint32_t t = 0; t < DROPPED_ROWS; t++) tokens[t] = (dropout_row){t % 100, t / 100, 0};
    for (size_t i = 0; i < DROPPED_ROWS; i++)
        for (size_t c = 0; c < DROPPED_COLUMNS; c++) x[i][c] = 1;
    dropout_rows(&table, &plan, &place, x[0], DROPPED_COLUMNS, DROPPED_COLUMNS, 0, DROPPED_ROWS);
    for (size_t i = 0; i < DROPPED_ROWS; i++)
        for (size_t c = 0; c < DROPPED_COLUMNS; c++) {
            assert_true(x[i][c] == 0 || x[i][c] == 1.25f);
            sum += (double)x[i][c];
            squares += (double)x[i][c] * (double)x[i][c];
            if (c > 0) neighbours += ((double)x[i][c] - 1) * ((double)x[i][c - 1] - 1);
        }
    const double variance = p / (1 - p); /* of a value; that of its square is 0.39 */
    assert_true(fabs(sum / n - 1) < 5 * sqrt(variance / n));
    assert_true(fabs(squares / n - 1 / (1 - p)) < 5 * sqrt(0.40 / n));
    assert_true(fabs(neighbours / n) < 5 * variance / sqrt(n));
    const size_t alone = 321;
    for (size_t change = 0; change < 8; change++) {
        const dropout_row token = {tokens[alone].place + (change == 1), tokens[alone].sequence + (change == 2),
                                   (uint32_t)(change == 3) << DROPOUT_PASS_SHIFT};
        dropout_plan other = plan;
        dropout_place there = place;
        other.tokens = &token;
        other.step += change == 4;
        other.model = (uint32_t)(change == 5) << 31;
        there.layer += change == 6;
        there.site = change == 7 ? DROPOUT_ATTENTION : there.site;
        for (size_t c = 0; c < DROPPED_COLUMNS; c++) once[c] = 1;
        dropout_rows(&table, &other, &there, once, DROPPED_COLUMNS, DROPPED_COLUMNS, 0, 1);
        assert_int_equal(memcmp(once, x[alone], sizeof once) == 0, change == 0);
    }
}

/* Against the inverse of the normal distribution in Python's statistics; beyond 4 it is 4. */
TEST(test_normal_numbers)
{
    static const struct {
        uint32_t word;
        double expected;
    } known[] = {{0, -4},
                 {1, -4},
                 {1u << 20, -3.4871039765916896},
                 {0x10000000u, -1.5341205434059566},
                 {0x12345678u, -1.4675657314922321},
                 {0x7fffffffu, -2.9180993729166234e-10},
                 {0xdeadbeefu, 1.1256287403742193},
                 {0xffffffffu, 4}};
    FOR_ROWS(i, known)
        assert_true(fabs(counter_normal(known[i].word) - known[i].expected) <= 1e-13 * fabs(known[i].expected));
}

/* Questions of three choices: an epoch has each once, its choices together in the batch and with its label. */
TEST(test_examples)
{
    enum { QUESTIONS = 7, CHOICES = 3, STEP_QUESTIONS = 2 };
    FREED_BY(examples_free) example_set set = {.choices = CHOICES};
    FREED_BY(example_batches_close) example_batches batches = {0};
    step_batch batch;
    size_t seen[QUESTIONS] = {0};
    for (int32_t i = 0; i < QUESTIONS * CHOICES; i++) {
        const int32_t ids[] = {1, i, i, i};
        examples_add(&set, ids, NULL, NULL, (size_t)(2 + i % CHOICES),
                     (example_labels){.label = i / CHOICES % CHOICES});
    }
    const batch_order_options options = {.batch_items = STEP_QUESTIONS, .seed = 3};
    assert_ok(example_batches_open(&batches, &set, &options, NULL));
    assert_int_equal(batch_order_most_tokens(&batches.order), STEP_QUESTIONS * (2 + 3 + 4)); /* of three choices */
    const batch_source source = example_batches_source(&batches);
    for (size_t step = 0; step * STEP_QUESTIONS < QUESTIONS * STEP_QUESTIONS; step++) {
        assert_ok(source.read(source.context, step, SHARDS, 0, &batch, NULL));
        assert_int_equal(batch.sequences, STEP_QUESTIONS * CHOICES);
        for (size_t i = 0; i < batch.sequences; i++) {
            const size_t number = batch.members[i], question = batch.origin[i] / CHOICES;
            assert_int_equal(number % CHOICES, batch.origin[i] % CHOICES);
            assert_int_equal(batch.ids[batch.starts[i] + 1], number);
            assert_int_equal(batch.starts[i + 1] - batch.starts[i], 2 + number % CHOICES);
            assert_int_equal(batch.question_labels[question], number / CHOICES % CHOICES);
            seen[number / CHOICES]++;
        }
        step_batch_free(&batch);
    }
    for (size_t q = 0; q < QUESTIONS; q++) assert_int_equal(seen[q], STEP_QUESTIONS * CHOICES);
}
