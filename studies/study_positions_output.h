/* The study of positions in two parts: study_positions.c measures, study_positions_output.c makes tables and the
 * figure.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_POSITIONS_OUTPUT_H
#define STUDIES_STUDY_POSITIONS_OUTPUT_H

#include "command/options.h"
#include "command/progress.h"
#include "studies/study.h"
#include "studies/study_texts.h"
#include "analysis/position_probe.h"
#include "analysis/position_shift.h"

enum {
    POSITIONS_MOST_MODELS = 2,
    POSITIONS_MOST_LAYERS = 65,   /* H[0] ... H[64] */
    POSITIONS_PROBE_TOKENS = 128, /* of a sequence, frame included */
};

/* A number with its interval for every layer, as tables and charts want it. */
typedef struct layer_curve {
    double value[POSITIONS_MOST_LAYERS], low[POSITIONS_MOST_LAYERS], high[POSITIONS_MOST_LAYERS];
} layer_curve;

typedef struct studied_model {
    const char *name;
    deberta_model *model;
    deberta_model_info info;
    position_shift shift;
    position_probe probe;
    layer_curve moved[POSITION_VARIANTS], attention[POSITION_VARIANTS], r2;
} studied_model;

typedef struct positions_study {
    const common_options *options;
    uint64_t seed;
    study_texts texts;
    studied_model models[POSITIONS_MOST_MODELS];
    size_t model_count;
    int32_t *phrase_tokens, *windows; /* [windows][POSITIONS_PROBE_TOKENS] */
    size_t *phrase_starts, phrases, window_count, longest_phrase;
    study_findings findings;
    char hidden_title[128];
    progress_bar bar;
    size_t done; /* encoded sequences before the part under way */
} positions_study;

/* Fills study->findings with tables and data, draws, writes and prints. EXIT_OK or an exit code, after saying why. */
int positions_finish(positions_study *study);

#endif
