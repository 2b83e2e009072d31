/* SPDX-License-Identifier: MIT */
#include "core/model/mutation.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name, *description;
} mutations[MUTATION_COUNT] = {[MUTATION_NONE] = {"none", "the engine as it is"},
#define X(identifier, name, description) [MUTATION_##identifier] = {name, description},
                               MUTATION_LIST(X)
#undef X
};

const char *mutation_name(model_mutation mutation)
{
    return (unsigned)mutation < MUTATION_COUNT ? mutations[mutation].name : NULL;
}

const char *mutation_description(model_mutation mutation)
{
    return (unsigned)mutation < MUTATION_COUNT ? mutations[mutation].description : NULL;
}

model_mutation mutation_from_name(const char *name)
{
    for (int i = 0; i < MUTATION_COUNT; i++) {
        if (strcmp(name, mutations[i].name) == 0) return (model_mutation)i;
    }
    return MUTATION_COUNT;
}
