/* SPDX-License-Identifier: MIT */
#include "studies/study_models.h"

#include <string.h>

#include "command/open_model.h"
#include "command/options.h"

const char *study_model_name(const common_options *options, size_t place)
{
    const char *path = options->arguments[place], *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

int study_open_beside(const common_options *options, size_t place, const deberta_model_info *first,
                      deberta_model **model, deberta_model_info *info)
{
    const char *path = options->arguments[place];
    const int status = open_model_at(options, path, model);
    if (status != EXIT_OK) return status;
    *info = *deberta_model_describe(*model);
    if (info->vocabulary_size == first->vocabulary_size) return EXIT_OK;
    return say_usage(options, "%s: expected a model with the tokenizer of %s, found a vocabulary of %zu instead of %zu",
                     path, options->arguments[0], info->vocabulary_size, first->vocabulary_size);
}
