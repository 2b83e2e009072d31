/* Keeps and tells which labels a file has said by their numbers. SPDX-License-Identifier: MIT */
#include "program/frame/input/label_numbers.h"

#include <stdio.h>
#include <string.h>

void label_numbers_add(label_numbers *numbers, const common_options *options, size_t labels, size_t label,
                       const char *name)
{
    char unnamed[32];
    snprintf(unnamed, sizeof unnamed, "LABEL_%zu", label);
    if (!name || strcmp(name, unnamed) == 0) return;
    if (!numbers->read) numbers->read = options_take(options, labels, sizeof *numbers->read);
    numbers->read[label] = true;
}

bool label_numbers_note(const label_numbers *numbers, const common_options *options, const char *const *names,
                        size_t labels, const char *way_out)
{
    enum { SHOWN = 4 };
    const char *shown = "";
    size_t count = 0;
    if (!numbers->read) return false;
    for (size_t k = 0; k < labels; k++) {
        if (!numbers->read[k]) continue;
        if (count < SHOWN) shown = options_text(options, "%s%s%zu is '%.80s'", shown, count ? ", " : "", k, names[k]);
        count++;
    }
    say_note(options, "note: labels are numbers of the %zu labels from 0: %s%s; %zu of %zu occur%s", labels, shown,
             count > SHOWN ? " ..." : "", count, labels, way_out);
    return true;
}
