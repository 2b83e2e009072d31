/* SPDX-License-Identifier: MIT */
#include "command/input/context_advice.h"

#include "analysis/receptive_field.h"

json_t *context_advice(const deberta_model_info *info, deberta_reference reference)
{
    json_t *advice =
        json_pack("{s:I, s:o, s:I}", "trained_length", (json_int_t)info->max_positions, "position_table_limit",
                  info->position_biased_input ? json_integer((json_int_t)info->max_positions) : json_null(), "layers",
                  (json_int_t)info->layers);
    receptive_field field;
    if (receptive_field_of_model(&field, info, reference, 0, NULL) != DEBERTA_OK) return advice;
    const size_t longest = receptive_field_longest_of_model(info, reference, NULL),
                 width = field.run_left + field.run_right;
    json_object_set_new(advice, "longest_unambiguous_text", json_integer((json_int_t)longest));
    json_object_set_new(advice, "contiguous_unique",
                        json_pack("{s:I, s:I, s:I}", "left", (json_int_t)field.run_left, "right",
                                  (json_int_t)field.run_right, "width", (json_int_t)(width + 1)));
    json_object_set_new(advice, "composed_run", json_integer((json_int_t)(1 + width * info->layers)));
    receptive_field_free(&field);
    return advice;
}

static long long number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

void context_advice_print(FILE *out, const json_t *advice)
{
    const json_t *run = json_object_get(advice, "contiguous_unique");
    const long long limit = number_of(advice, "position_table_limit"),
                    longest = number_of(advice, "longest_unambiguous_text");
    const long long layers = number_of(advice, "layers");
    fprintf(out, "  trained length    %lld tokens, the rows of its position table\n",
            number_of(advice, "trained_length"));
    if (limit)
        fprintf(out,
                "  longest text      %lld tokens: absolute positions are added to the input, and there are no more\n",
                limit);
    else
        fprintf(out,
                "  longest text      any: no absolute positions at the input, beyond the trained length at one's own "
                "risk\n");
    if (!run) return;
    fprintf(out, "  unambiguous       every distance in texts of up to %lld tokens\n", longest);
    if (!limit || limit > longest)
        fprintf(out,
                "                    in longer ones %lld keys to the left and %lld to the right; a run of %lld over "
                "%lld layer%s\n",
                number_of(run, "left"), number_of(run, "right"), number_of(advice, "composed_run"), layers,
                layers == 1 ? "" : "s");
    fprintf(out, "                    (attention is global all the same; see deberta receptive-field)\n");
}
