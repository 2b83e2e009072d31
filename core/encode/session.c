/* Manages an open session: its properties, its failures, and the order of its calls. SPDX-License-Identifier: MIT */
#include "core/encode/session.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void deberta_session_free(deberta_session **session)
{
    if (!session || !*session) return;
    deberta_session *s = *session;
    if (s->owns_executor) executor_free(&s->executor);
    arena_release(&s->arena);
    if (s->has_lock) pthread_mutex_destroy(&s->lock);
    free(s);
    *session = NULL;
}

deberta_isa deberta_session_isa(const deberta_session *session) { return session->isa; }
size_t deberta_session_threads(const deberta_session *session) { return session->threads; }
size_t deberta_session_memory_bytes(const deberta_session *session) { return session->arena.capacity_bytes; }

profile *session_profile(deberta_session *session) { return session->internal.profile ? &session->profile : NULL; }

deberta_status deberta_session_check_finite(const deberta_session *s, deberta_error *err)
{
    if (!s || !s->encoded)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_session_check_finite needs a session that has encoded a batch");
    const size_t width = s->model->config.hidden_size;
    for (size_t t = 0; t < s->tokens; t++) {
        const float *row = s->hidden + t * s->hidden_stride;
        for (size_t e = 0; e < width; e++) {
            if (isfinite(row[e])) continue;
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                         "%s: value %zu of token %zu's last hidden state is %f: weights of the model are damaged or "
                         "diverged in training, or edited",
                         s->model->name, e, t, (double)row[e]);
        }
    }
    return DEBERTA_OK;
}

void session_note_failure_locked(deberta_session *session, deberta_status status, const deberta_error *error)
{
    if (session->status != DEBERTA_OK) return;
    session->status = status;
    session->failure = *error;
}

void session_note_failure(deberta_session *session, deberta_status status, const deberta_error *error)
{
    pthread_mutex_lock(&session->lock);
    session_note_failure_locked(session, status, error);
    pthread_mutex_unlock(&session->lock);
}

deberta_status session_enter(deberta_session *session, deberta_error *err)
{
    if (!atomic_exchange_explicit(&session->busy, true, memory_order_acquire)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                 "the session is at work: it serves one call at a time, and an observer must not use it");
}

void session_leave(deberta_session *session) { atomic_store_explicit(&session->busy, false, memory_order_release); }

void session_attach(deberta_session *s, const layer_record *record)
{
    assert(s->internal.record);
    s->queries = record->queries;
    s->keys = record->keys;
    s->values = record->values;
    s->context = record->context;
    s->normed = record->normed;
}

void session_detach(deberta_session *s)
{
    s->recording = NULL;
    session_attach(s, &(layer_record){0});
}

void session_record(deberta_session *s, const layer_record *record, const float *x, size_t rows)
{
    s->recording = record;
    session_attach(s, record);
    if (record->input) memcpy(record->input, x, rows * s->hidden_stride * sizeof *x);
}
