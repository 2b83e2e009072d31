/* Copies and checks the interventions of a study, and applies them between the layers of an encode.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/session.h"
#include "include/deberta_unstable.h"

deberta_status interventions_check(const deberta_model *model, const deberta_interventions *changes, deberta_error *err)
{
    if (changes->row_bias && !model->has_c2p)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no c2p, to which a bias by table row could be added",
                     model->name);
    return DEBERTA_OK;
}

deberta_status deberta_session_intervene(deberta_session *session, const deberta_interventions *interventions,
                                         deberta_error *err)
{
    if (!session) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_session_intervene needs a session");
    const deberta_interventions changes = interventions ? *interventions : (deberta_interventions){0};
    DEBERTA_TRY(interventions_check(session->model, &changes, err));
    DEBERTA_TRY(session_enter(session, err));
    session->internal.interventions.changes = changes;
    session_leave(session);
    return DEBERTA_OK;
}

deberta_status interventions_edit(const deberta_session *s, size_t layer, deberta_error *err)
{
    const deberta_interventions *changes = &s->internal.interventions.changes;
    if (!changes->edit_hidden) return DEBERTA_OK;
    const deberta_hidden_edit edit = {.layer = layer,
                                      .tokens = s->tokens,
                                      .columns = s->model->config.hidden_size,
                                      .stride = s->hidden_stride,
                                      .values = s->hidden};
    const deberta_status status = changes->edit_hidden(changes->context, &edit);
    if (status == DEBERTA_OK) return DEBERTA_OK;
    DEBERTA_FAIL(err, status, "the edit of hidden states %zu stopped the encode with status %d", layer, status);
}
