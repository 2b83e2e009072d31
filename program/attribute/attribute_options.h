/* Declares the options of `deberta attribute`. SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/figure_style.h"
#include "program/frame/input/input.h"

typedef struct attribute_options {
    reading_options reading;
    const char *class, *answer, *token;
    int head, of, method, baseline, mlm_decoder;
    unsigned parts; /* set of DEBERTA_ATTRIBUTE_WORDS ... */
    const char *numbers;
    bool anonymous;
    size_t steps;
    const char *latex;
    figure_style style;
} attribute_options;
