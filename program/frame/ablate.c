/* Parses the text of --ablate item by item into the list that a session takes. SPDX-License-Identifier: MIT */
#include "include/deberta_unstable.h"
#include "program/frame/ablate.h"

#include <string.h>

void ablate_parse(common_options *options, const char *list, void *target)
{
    ablation_list *ablated = target;
    size_t count = ablated->count + 1;
    for (const char *c = list; *c; c++) count += *c == ',';
    deberta_ablation *items = options_take(options, count, sizeof *items);
    if (ablated->count) memcpy(items, ablated->items, ablated->count * sizeof *items);
    deberta_error error;
    if (deberta_ablations_parse(items + ablated->count, &count, list, &error) != DEBERTA_OK)
        option_wrong(options, target, "%s", error.message);
    ablated->count += count;
    ablated->items = items;
    ablated->text = ablated->text ? options_text(options, "%s,%s", ablated->text, list) : list;
}
