/* The text of --ablate is parsed item by item into the list that a session takes. SPDX-License-Identifier: MIT */
#include "program/frame/ablate.h"
#include "include/deberta_unstable.h"

#include <string.h>

/* member: what the option fills, for messages. */
static int append_list(const common_options *options, const void *member, const char *list, ablation_list *ablated)
{
    size_t count = ablated->count + 1;
    for (const char *c = list; *c; c++) count += *c == ',';
    deberta_ablation *items = options_take(options, count, sizeof *items);
    if (ablated->count) memcpy(items, ablated->items, ablated->count * sizeof *items);
    deberta_error error;
    if (deberta_ablations_parse(items + ablated->count, &count, list, &error) != DEBERTA_OK)
        return option_wrong(options, member, "%s", error.message);
    ablated->count += count;
    ablated->items = items;
    ablated->text = ablated->text ? options_text(options, "%s,%s", ablated->text, list) : list;
    return EXIT_OK;
}

int ablation_list_parse(common_options *options, const char *list, void *target)
{
    return append_list(options, target, list, target);
}

int ablate_parse(common_options *options, const char *list, void *target)
{
    ablation_list ablated = {options->ablations, options->ablation_count, options->ablate_text};
    const int status = append_list(options, target, list, &ablated); /* target is the first of three members */
    options->ablations = ablated.items;
    options->ablation_count = ablated.count;
    options->ablate_text = ablated.text;
    return status;
}
