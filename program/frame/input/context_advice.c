/* What `info` says about lengths is worked out from the description of the model. SPDX-License-Identifier: MIT */
#include "program/frame/input/context_advice.h"

#include "analysis/receptive_field.h"

json_t *context_advice(result *r, const deberta_model_info *info, deberta_reference reference)
{
    const size_t limit = info->position_biased_input ? info->max_positions : 0;
    json_t *advice =
        json_pack("{s:I, s:o, s:I}", "trained_length", (json_int_t)info->max_positions, "position_table_limit",
                  limit ? json_integer((json_int_t)limit) : json_null(), "layers", (json_int_t)info->layers);
    result_say(r, "  trained length    %zu tokens, the rows of its position table", info->max_positions);
    if (limit)
        result_say(r,
                   "  longest text      %zu tokens: absolute positions are added to the input, and there are no more",
                   limit);
    else
        result_say(r, "  longest text      any: no absolute positions at the input, beyond the trained length at one's "
                      "own risk");
    receptive_field field;
    if (receptive_field_of_model(&field, info, reference, 0, NULL) != DEBERTA_OK) return advice;
    const size_t longest = receptive_field_longest_of_model(info, reference, NULL),
                 width = field.run_left + field.run_right, composed = 1 + width * info->layers;
    json_object_set_new(advice, "longest_unambiguous_text", json_integer((json_int_t)longest));
    json_object_set_new(advice, "contiguous_unique",
                        json_pack("{s:I, s:I, s:I}", "left", (json_int_t)field.run_left, "right",
                                  (json_int_t)field.run_right, "width", (json_int_t)(width + 1)));
    json_object_set_new(advice, "composed_run", json_integer((json_int_t)composed));
    result_say(r, "  unambiguous       every distance in texts of up to %zu tokens", longest);
    if (!limit || limit > longest)
        result_say(r,
                   "                    in longer ones %zu keys to the left and %zu to the right; a run of %zu over "
                   "%zu layer%s",
                   field.run_left, field.run_right, composed, info->layers, info->layers == 1 ? "" : "s");
    result_say(r, "                    (attention is global all the same; see deberta receptive-field)");
    scope_free(&field.memory);
    return advice;
}

void note_trained_length(const common_options *options, size_t longest, const deberta_model_info *info)
{
    if (info->max_positions && longest > info->max_positions)
        say_note(options, "note: the longest text has %zu tokens; the model was trained on up to %zu", longest,
                 info->max_positions);
}
