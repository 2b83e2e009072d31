/* Observers: what they are shown, how they stop an encode, and that they cannot use the session that calls them.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/model_helpers.h"

#include "include/deberta.h"

static const char small_model[] =
    "synthetic:v3-base,layers=3,hidden=64,heads=4,intermediate=96,vocab=61,buckets=16,distance=64,lm=1";
static const char talking_model[] = "tests/golden/08-v1-talking-head";

enum { TOKENS = 40, HIDDEN = 64, LAYERS = 3, HEADS = 4, NOWHERE = 1000, CODE = -77 };

/* What it saw, and where it stops: at a hidden state, or at the first block of a layer. */
typedef struct witness {
    size_t hidden_at, attention_at;
    size_t hidden_calls, attention_calls, after_stop;
    size_t asked_after_stop;
    int stopped;
    deberta_hidden_block last;
    deberta_session *session;
    deberta_error refusal, task_refusal;
    deberta_status refused, task_refused;
} witness;

static deberta_batch make_batch(const deberta_observer *observer)
{
    static int32_t ids[TOKENS];
    static const size_t starts[] = {0, 15, TOKENS};
    for (size_t t = 0; t < TOKENS; t++) ids[t] = (int32_t)(t * 7 % 30);
    deberta_batch batch = batch_of(ids, starts, 2);
    batch.observer = observer;
    return batch;
}

/* Tries what an observer must not do. */
static void call_back(witness *w)
{
    const deberta_batch batch = make_batch(NULL);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    float logits[61];
    const size_t position = 0;
    w->refused = deberta_encode(w->session, &batch, &outputs, &w->refusal);
    w->task_refused = deberta_task_logits(w->session, DEBERTA_TASK_MLM, &position, 1, logits, 61, &w->task_refusal);
}

static deberta_status on_hidden(void *context, const deberta_hidden_block *block)
{
    witness *w = context;
    w->after_stop += (size_t)w->stopped;
    w->hidden_calls++;
    w->last = *block;
    if (block->layer == 1 && w->session) call_back(w);
    w->stopped |= block->layer == w->hidden_at;
    return w->stopped ? CODE : DEBERTA_OK;
}

static int wants_attention(void *context, size_t layer, size_t head, deberta_component component)
{
    witness *w = context;
    (void)layer, (void)head;
    w->asked_after_stop += (size_t)w->stopped;
    return component == DEBERTA_PROBABILITIES;
}

static deberta_status on_attention(void *context, const deberta_attention_block *block)
{
    witness *w = context;
    w->after_stop += (size_t)w->stopped;
    w->attention_calls++;
    if (block->layer == 0 && w->session && w->refused == DEBERTA_OK) call_back(w);
    w->stopped |= block->layer == w->attention_at;
    return w->stopped ? CODE : DEBERTA_OK;
}

typedef struct fixture {
    deberta_model *model;
    deberta_session *session;
} fixture;

static fixture set_up(const char *path)
{
    deberta_model *model = open_model(path);
    const deberta_session_options options = {
        .max_tokens = TOKENS, .threads = 3, .features = DEBERTA_OBSERVE_HIDDEN | DEBERTA_OBSERVE_ATTENTION};
    return (fixture){model, open_session_with(model, options)};
}

static void tear_down(fixture *f)
{
    deberta_session_free(&f->session);
    deberta_model_free(&f->model);
}

static deberta_status encode(fixture *f, witness *w, deberta_outputs *outputs, deberta_error *error)
{
    const deberta_observer observer = {.struct_size = sizeof observer,
                                       .context = w,
                                       .on_hidden = on_hidden,
                                       .wants_attention = wants_attention,
                                       .on_attention = on_attention};
    const deberta_batch batch = make_batch(&observer);
    return deberta_encode(f->session, &batch, outputs, error);
}

TEST(blocks_say_what_they_hold)
{
    FREED_BY(tear_down) fixture f = set_up(small_model);
    witness w = {.hidden_at = NOWHERE, .attention_at = NOWHERE};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_error error = {.code = 5, .message = "as it was"};
    assert_ok(encode(&f, &w, &outputs, &error));
    assert_int_equal(w.hidden_calls, LAYERS + 1);
    assert_int_equal(w.last.layer, LAYERS);
    assert_int_equal(w.last.tokens, TOKENS);
    assert_int_equal(w.last.columns, HIDDEN);
    assert_int_equal(w.last.stride, outputs.hidden_stride);
    assert_ptr_equal(w.last.values, outputs.hidden);
    assert_int_equal(w.attention_calls, LAYERS * HEADS * (1 + 2)); /* 15 and 25 queries, 16 rows a block */
    assert_int_equal(error.code, 5);                               /* success leaves the error as it was */
    assert_string_equal(error.message, "as it was");
}

/* After a stop nothing more is shown, the code and a sentence come back, the batch is gone, and the session serves the
 * next one with the same results. */
static void check_stop(const char *path, size_t hidden_at, size_t attention_at, const char *sentence)
{
    FREED_BY(tear_down) fixture f = set_up(path);
    witness w = {.hidden_at = hidden_at, .attention_at = attention_at},
            none = {.hidden_at = NOWHERE, .attention_at = NOWHERE};
    deberta_outputs outputs = {.struct_size = sizeof outputs}, untouched = outputs;
    deberta_error error = {0};
    assert_ok(encode(&f, &none, &outputs, NULL));
    const float before = outputs.hidden[0];
    assert_int_equal(encode(&f, &w, &untouched, &error), CODE);
    assert_int_equal(error.code, CODE);
    assert_non_null(strstr(error.message, sentence));
    assert_null(untouched.hidden);
    assert_int_equal(w.after_stop + w.asked_after_stop, 0);
    assert_in_range(w.hidden_calls, 1, attention_at == NOWHERE ? hidden_at + 1 : attention_at + 1);
    float logits[61];
    const size_t position = 0;
    if (path == small_model) {
        check_refused(deberta_task_logits(f.session, DEBERTA_TASK_MLM, &position, 1, logits, 61, &error), &error,
                      DEBERTA_E_ARGUMENT, "no batch has been encoded");
    }
    assert_ok(encode(&f, &none, &outputs, NULL));
    assert_memory_equal(&before, &outputs.hidden[0], sizeof before);
}

TEST(an_observer_stops_the_encode)
{
    check_stop(small_model, 0, NOWHERE, "stopped the encode with status -77 at hidden states 0");
    check_stop(small_model, 2, NOWHERE, "stopped the encode with status -77 at hidden states 2");
    check_stop(small_model, LAYERS, NOWHERE, "stopped the encode with status -77 at hidden states 3");
    check_stop(small_model, NOWHERE, 0, "stopped the encode with status -77 at layer 0, sequence 0, head ");
    check_stop(small_model, NOWHERE, 2, "stopped the encode with status -77 at layer 2, sequence 0, head ");
    check_stop(talking_model, NOWHERE, 1, "stopped the encode with status -77 at layer 1, sequence 0, head ");
}

TEST(calling_back_is_refused)
{
    for (int attention = 0; attention < 2; attention++) {
        FREED_BY(tear_down) fixture f = set_up(small_model);
        witness w = {.hidden_at = NOWHERE, .attention_at = NOWHERE, .session = f.session};
        deberta_outputs outputs = {.struct_size = sizeof outputs};
        const deberta_observer observer = {.struct_size = sizeof observer,
                                           .context = &w,
                                           .on_hidden = attention ? NULL : on_hidden,
                                           .on_attention = attention ? on_attention : NULL};
        const deberta_batch batch = make_batch(&observer);
        assert_ok(deberta_encode(f.session, &batch, &outputs, NULL));
        assert_int_equal(w.refused, DEBERTA_E_ARGUMENT);
        assert_int_equal(w.task_refused, DEBERTA_E_ARGUMENT);
        assert_non_null(strstr(w.refusal.message, "an observer must not use it"));
        assert_string_equal(w.refusal.message, w.task_refusal.message);
        assert_ok(deberta_encode(f.session, &batch, &outputs, NULL)); /* and it is free again */
    }
}

/* A second session of the same model is another matter. */
static deberta_status use_another(void *context, const deberta_hidden_block *block)
{
    const deberta_batch batch = make_batch(NULL);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    (void)block;
    return deberta_encode(context, &batch, &outputs, NULL);
}

TEST(another_session_may_be_used)
{
    FREED_BY(tear_down) fixture f = set_up(small_model);
    deberta_session *other = NULL;
    assert_ok(deberta_session_create(&other, f.model, NULL, NULL));
    const deberta_observer observer = {.struct_size = sizeof observer, .context = other, .on_hidden = use_another};
    const deberta_batch batch = make_batch(&observer);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    assert_ok(deberta_encode(f.session, &batch, &outputs, NULL));
    deberta_session_free(&other);
}
