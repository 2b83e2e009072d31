/* Copies and checks the interventions of a study, and applies them between the layers of an encode.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/session.h"
#include "include/deberta_unstable.h"

static deberta_status check_patch(const deberta_model *model, unsigned features, size_t number,
                                  const deberta_patch *patch, deberta_error *err)
{
    static const char *const unknown = "patch %zu: %s %d does not exist";
    const bool state = patch->place == DEBERTA_PATCH_STATE, term = patch->place == DEBERTA_PATCH_TERM;
    const size_t layers = model->config.layers + (state ? 1 : 0), heads = model->config.heads;
    if ((unsigned)patch->place > DEBERTA_PATCH_TERM)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, unknown, number, "place", (int)patch->place);
    if (patch->layer != DEBERTA_EVERY && patch->layer >= layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu: %s %zu is out of range; %s has %zu (0 ... %zu)", number,
                     state ? "hidden state" : "layer", patch->layer, model->name, layers, layers - 1);
    if (!state && patch->index != DEBERTA_EVERY && patch->index >= heads)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu: head %zu is out of range; %s has %zu (0 ... %zu)", number,
                     patch->index, model->name, heads, heads - 1);
    if (!term) return DEBERTA_OK;
    if ((unsigned)patch->term >= ABLATION_TERMS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, unknown, number, "term", (int)patch->term);
    if ((patch->term == DEBERTA_C2P && !model->has_c2p) || (patch->term == DEBERTA_P2C && !model->has_p2c))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu: %s has no term %s", number, model->name,
                     deberta_component_name(patch->term));
    if (model->integer_attention)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: a patched term needs attention in float32; found %s", model->name,
                     deberta_precision_name(model->precision));
    if (!(features & DEBERTA_PATCH_TERMS))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu of a term needs a session with DEBERTA_PATCH_TERMS", number);
    return DEBERTA_OK;
}

deberta_status interventions_check(const deberta_model *model, unsigned features, const deberta_interventions *changes,
                                   deberta_error *err)
{
    if (changes->patch_count > 0 && !changes->patches)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu patches, but no list of them", changes->patch_count);
    for (size_t k = 0; k < changes->patch_count; k++)
        DEBERTA_TRY(check_patch(model, features, k, &changes->patches[k], err));
    if (changes->first_layer > 0 && !changes->edit_hidden)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an encode from H[%zu] needs edit_hidden, which gives its rows",
                     changes->first_layer);
    if (changes->first_layer > model->config.layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an encode from H[%zu]: %s has H[0] ... H[%zu]", changes->first_layer,
                     model->name, model->config.layers);
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
    DEBERTA_TRY(interventions_check(session->model, session->features, &changes, err));
    DEBERTA_TRY(session_enter(session, err));
    session->internal.interventions.next = changes;
    session_leave(session);
    return DEBERTA_OK;
}

deberta_status interventions_edit(const deberta_session *s, size_t layer, deberta_error *err)
{
    const deberta_interventions *changes = &s->internal.interventions.changes;
    if (changes->edit_hidden) {
        const deberta_hidden_edit edit = {.layer = layer,
                                          .tokens = s->tokens,
                                          .columns = s->model->config.hidden_size,
                                          .stride = s->hidden_stride,
                                          .values = s->hidden};
        const deberta_status status = changes->edit_hidden(changes->context, &edit);
        if (status != DEBERTA_OK)
            DEBERTA_FAIL(err, status, "the edit of hidden states %zu stopped the encode with status %d", layer, status);
    }
    patches_make_states(s, layer);
    return DEBERTA_OK;
}
