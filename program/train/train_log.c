/* Turns lines of log.jsonl into series of numbers, and names wrong lines. SPDX-License-Identifier: MIT */
#include "program/train/train_log.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "core/io/quote.h"

enum { MOST_LINE_BYTES = 1 << 20 };

/* ------------------------------------------------------------------------------------------------------------- lines */

static void train_log_append(scope *memory, log_series *s, double step, double value)
{
    s->steps = scope_grown(memory, s->steps, &s->steps_room, s->count, sizeof *s->steps);
    s->values = scope_grown(memory, s->values, &s->values_room, s->count, sizeof *s->values);
    s->steps[s->count] = step;
    s->values[s->count++] = value;
}

/* Returns the first key of an evaluation that is a measure of its task; in later lines of a log that of the first. */
static const char *measure_key(const train_log *log, const json_t *line)
{
    static const char *const others[] = {"eval_loss",      "eval_loss_generator", "eval_loss_discriminator",
                                         "eval_sequences", "eval_tokens",         "eval_labelled",
                                         "eval_right"};
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)line, key, value)
    {
        bool other = strncmp(key, "eval_", 5) != 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) other = other || strcmp(key, others[i]) == 0;
        if (!other && (!log->measure || strcmp(key + 5, log->measure) == 0)) return key;
    }
    return NULL;
}

/* Returns the fault of a line, NULL: none. Steps ascend; a measurement after a step has the step's number. */
static const char *fault_of(const train_log *log, const json_t *line, char text[80])
{
    const json_t *step = json_object_get(line, "step"), *loss = json_object_get(line, "loss");
    const log_series *losses = &log->series[LOG_LOSS];
    const double number = json_number_value(step), last = losses->count ? losses->steps[losses->count - 1] : 0;
    if (!json_is_integer(step)) return "it has no \"step\"";
    if (loss && !json_is_number(loss)) return "its \"loss\" is no number";
    if (number >= 1 && (loss ? number > last : number >= last)) return NULL;
    snprintf(text, 80, "step %.0f behind step %.0f", number, last);
    return text;
}

/* Takes the values of a line; the gradient norm of a pair is the discriminator's. */
static void train_log_take_line(train_log *log, const json_t *line)
{
    const char *keys[LOG_VALUES] = {"loss",          NULL,        "learning_rate",
                                    "gradient_norm", "eval_loss", measure_key(log, line)};
    const double step = json_number_value(json_object_get(line, "step"));
    if (keys[LOG_MEASURE] && !log->measure) log->measure = scope_text(&log->memory, "%s", keys[LOG_MEASURE] + 5);
    if (json_object_get(line, "loss_clean")) {
        keys[LOG_LOSS] = "loss_clean";
        keys[LOG_OBJECTIVE] = "loss";
    }
    if (json_object_get(line, "gradient_norm_discriminator")) keys[LOG_NORM] = "gradient_norm_discriminator";
    const double right = json_number_value(json_object_get(line, "eval_right"));
    if (json_object_get(line, "eval_right"))
        log->right = right / json_number_value(json_object_get(line, "eval_labelled"));
    for (int k = 0; k < LOG_VALUES; k++) {
        const json_t *value = keys[k] ? json_object_get(line, keys[k]) : NULL;
        if (json_is_number(value)) train_log_append(&log->memory, &log->series[k], step, json_number_value(value));
        if (k == LOG_MEASURE && json_is_null(value)) train_log_append(&log->memory, &log->series[k], step, NAN);
    }
}

/* Reads all lines. An incomplete last line is ignored: a run is writing it, or was killed meanwhile. */
static deberta_status read_lines(train_log *log, FILE *file, const char *path, deberta_error *err)
{
    char *text = NULL;
    size_t capacity = 0;
    deberta_status status = DEBERTA_OK;
    for (size_t number = 1; status == DEBERTA_OK; number++) {
        size_t length;
        status = stream_read_line(file, &text, &capacity, MOST_LINE_BYTES, &length, (stream_place){QUOTE(path), number},
                                  err);
        if (status != DEBERTA_OK || !length) break;
        json_error_t reason;
        char order[80];
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &reason);
        if (!line && number > 1 && text[length - 1] != '\n') break;
        const char *fault = line ? fault_of(log, line, order) : reason.text;
        if (fault)
            status = status_fail(err, DEBERTA_E_FORMAT, "%s, line %zu: no line of a training log: %s", QUOTE(path),
                                 number, fault);
        else
            train_log_take_line(log, line);
        json_decref(line);
    }
    free(text);
    if (status == DEBERTA_OK && log->series[LOG_LOSS].count == 0)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s has no step", QUOTE(path));
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- files */

/* Returns the name of a run: "runs/sift-1/" and "runs/sift-1/log.jsonl" are sift-1; "old.jsonl" is old. */
static char *name_of(scope *memory, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (length > 10 && strncmp(path + length - 10, "/log.jsonl", 10) == 0)
        length -= 10;
    else if (length > 6 && strncmp(path + length - 6, ".jsonl", 6) == 0)
        length -= 6;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    return scope_text(memory, "%.*s", (int)(length - begin), path + begin);
}

deberta_status train_log_read(train_log *log, const char *path, deberta_error *err)
{
    struct stat about;
    *log = (train_log){.right = NAN};
    log->name = name_of(&log->memory, path);
    const bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    if (folder) path = scope_text(&log->memory, "%s%slog.jsonl", path, path_has_suffix(path, "/") ? "" : "/");
    FILE *file = fopen(path, "r");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", QUOTE(path), strerror(errno));
    const deberta_status status = read_lines(log, file, path, err);
    stream_discard(file);
    return status;
}

const log_series *train_log_objective(const train_log *log)
{
    return &log->series[log->series[LOG_OBJECTIVE].count ? LOG_OBJECTIVE : LOG_LOSS];
}
