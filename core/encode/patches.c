/* Makes activation patches: rows of hidden states and outputs of heads are copied from one sequence of the batch to
 * another; terms of the logits read the other's queries and keys (attention_head.c).
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/encode/session.h"

/* --------------------------------------------------------------------------------------------------------- checking */

static const deberta_patch *patches_of(const deberta_session *s, size_t *count)
{
    *count = s->internal.interventions.changes.patch_count;
    return s->internal.interventions.changes.patches;
}

/* Refuses a patch from a sequence that is patched itself, so that results do not depend on the order of patches.
 * Patching a sequence with its own value is allowed. */
static deberta_status check_donors(const deberta_session *s, deberta_error *err)
{
    size_t count;
    const deberta_patch *patches = patches_of(s, &count);
    size_t *is_patched = s->task_starts; /* Attention has not begun to use this memory. */
    memset(is_patched, 0, s->sequences * sizeof *is_patched);
    for (size_t k = 0; k < count; k++)
        if (patches[k].from != patches[k].sequence) is_patched[patches[k].sequence] = 1;
    for (size_t k = 0; k < count; k++)
        if (patches[k].from != patches[k].sequence && is_patched[patches[k].from])
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu takes from sequence %zu, which is patched itself", k,
                         patches[k].from);
    return DEBERTA_OK;
}

deberta_status patches_check(const deberta_session *s, deberta_error *err)
{
    size_t count;
    const deberta_patch *patches = patches_of(s, &count);
    for (size_t k = 0; k < count; k++) {
        const deberta_patch *patch = &patches[k];
        const size_t beyond = patch->sequence >= s->sequences ? patch->sequence : patch->from;
        if (beyond >= s->sequences)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu: the batch has %zu sequences, and no sequence %zu", k,
                         s->sequences, beyond);
        const size_t n = session_sequence_length(s, patch->sequence), given = session_sequence_length(s, patch->from);
        if (n != given)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "patch %zu: sequence %zu has %zu tokens, and sequence %zu, from which it takes, %zu; expected "
                         "as many",
                         k, patch->sequence, n, patch->from, given);
        if (patch->place == DEBERTA_PATCH_STATE && patch->index != DEBERTA_EVERY && patch->index >= n)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "patch %zu: sequence %zu has %zu tokens, and no token %zu", k,
                         patch->sequence, n, patch->index);
    }
    return check_donors(s, err);
}

static bool is_of(const deberta_patch *patch, size_t layer)
{
    return patch->layer == DEBERTA_EVERY || patch->layer == layer;
}

/* Returns whether the positions have the same places of both sequences. */
static bool has_same_places(const deberta_session *s, const size_t *positions, size_t count, size_t a, size_t b)
{
    const size_t of_a = session_positions_before(positions, count, s->starts[a]),
                 rows = session_positions_before(positions, count, s->starts[a + 1]) - of_a,
                 of_b = session_positions_before(positions, count, s->starts[b]);
    if (session_positions_before(positions, count, s->starts[b + 1]) - of_b != rows) return rows == 0;
    for (size_t i = 0; i < rows; i++)
        if (positions[of_a + i] - s->starts[a] != positions[of_b + i] - s->starts[b]) return false;
    return true;
}

deberta_status patches_check_decoder(const deberta_session *s, const size_t *positions, size_t count,
                                     deberta_error *err)
{
    size_t patch_count;
    const deberta_patch *patches = patches_of(s, &patch_count);
    bool ascending = true;
    for (size_t i = 1; i < count; i++) ascending &= positions[i] > positions[i - 1];
    for (size_t k = 0; k < patch_count; k++) {
        if (patches[k].place == DEBERTA_PATCH_STATE || !is_of(&patches[k], s->model->config.layers - 1)) continue;
        if (ascending && has_same_places(s, positions, count, patches[k].sequence, patches[k].from)) continue;
        DEBERTA_FAIL(
            err, DEBERTA_E_ARGUMENT,
            "patch %zu of the last layer: the Enhanced Mask Decoder needs the same tokens of sequences %zu and "
            "%zu, in ascending order",
            k, patches[k].sequence, patches[k].from);
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- patching */

size_t patches_donor(const deberta_session *s, deberta_component term, size_t layer, size_t head, size_t sequence)
{
    size_t count, donor = sequence;
    const deberta_patch *patches = patches_of(s, &count);
    for (size_t k = 0; k < count; k++) {
        const deberta_patch *patch = &patches[k];
        if (patch->place == DEBERTA_PATCH_TERM && patch->sequence == sequence && patch->term == term &&
            is_of(patch, layer) && (patch->index == DEBERTA_EVERY || patch->index == head))
            donor = patch->from;
    }
    return donor;
}

void patches_make_states(const deberta_session *s, size_t layer)
{
    size_t count;
    const deberta_patch *patches = patches_of(s, &count);
    for (size_t k = 0; k < count; k++) {
        const deberta_patch *patch = &patches[k];
        if (patch->place != DEBERTA_PATCH_STATE || !is_of(patch, layer) || patch->from == patch->sequence) continue;
        const bool every = patch->index == DEBERTA_EVERY;
        const size_t first = every ? 0 : patch->index, rows = every ? session_sequence_length(s, patch->sequence) : 1;
        memcpy(s->hidden + (s->starts[patch->sequence] + first) * s->hidden_stride,
               s->hidden + (s->starts[patch->from] + first) * s->hidden_stride,
               rows * s->hidden_stride * sizeof *s->hidden);
    }
}

void patches_make_heads(const deberta_session *s, size_t layer, const size_t *positions, size_t count)
{
    const size_t padded = s->model->padded_head;
    size_t patch_count;
    const deberta_patch *patches = patches_of(s, &patch_count);
    for (size_t k = 0; k < patch_count; k++) {
        const deberta_patch *patch = &patches[k];
        if (patch->place != DEBERTA_PATCH_HEAD || !is_of(patch, layer) || patch->from == patch->sequence) continue;
        const bool every = patch->index == DEBERTA_EVERY;
        const size_t column = every ? 0 : patch->index * padded,
                     columns = every ? s->model->config.heads * padded : padded;
        size_t to = s->starts[patch->sequence], from = s->starts[patch->from],
               rows = session_sequence_length(s, patch->sequence);
        if (positions) {
            rows = session_positions_before(positions, count, s->starts[patch->sequence + 1]);
            to = session_positions_before(positions, count, to);
            from = session_positions_before(positions, count, from);
            rows -= to;
        }
        for (size_t i = 0; i < rows; i++)
            memcpy(s->context + (to + i) * s->context_stride + column,
                   s->context + (from + i) * s->context_stride + column, columns * sizeof *s->context);
    }
}
