/* The end of a run is told: losses, the best measurement, digests of the weights, advice.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/train_end.h"

#include <jansson.h>
#include <string.h>

#include "output/json_text.h"
#include "output/scope.h"
#include "program/train/train_log.h"
#include "program/frame/text_output.h"
#include "core/io/file_digest.h"

/* The first measure, or else the first held-out loss, that no later one is better than, as best/ has it. */
static size_t find_best(const train_log *log)
{
    const log_series *measure = &log->series[LOG_MEASURE], *loss = &log->series[LOG_EVAL_LOSS];
    const log_series *s = measure->count ? measure : loss;
    size_t best = 0;
    for (size_t k = 1; k < s->count; k++)
        if (s == measure ? s->values[k] > s->values[best] : s->values[k] < s->values[best]) best = k;
    return best;
}

static double last_of(const log_series *s) { return s->values[s->count - 1]; }

/* A step's loss varies with its batch; what is meant is a run that was thrown off. */
static void note_rise(const train_options *o, const log_series *loss)
{
    const double first = loss->values[0], last = last_of(loss);
    if (last > 2 * first && last > first + 1)
        say_note(&o->common, "note: the loss is far above that of step %.0f, %.4f; a lower --learning-rate may help",
                 loss->steps[0], first);
}

static void tell(const train_options *o, const train_log *log)
{
    const log_series *measure = &log->series[LOG_MEASURE], *loss = &log->series[LOG_EVAL_LOSS];
    const char *folder = options_out(&o->common);
    const char *place = options_text(&o->common, "%s/best", folder);
    if (o->trainer.generator)
        place = options_text(&o->common, "%s/best/discriminator and %s/best/generator", folder, folder);
    say_note(&o->common, "loss of the last step %.4f", last_of(train_log_objective(log)));
    note_rise(o, train_log_objective(log));
    if (!loss->count) return;
    const size_t best = find_best(log);
    if (measure->count)
        say_note(&o->common, "held-out loss %.4f, %s %.4f; the best is step %.0f with %s %.4f, in %s", last_of(loss),
                 log->measure, last_of(measure), measure->steps[best], log->measure, measure->values[best], place);
    else
        say_note(&o->common, "held-out loss %.4f; the best is step %.0f with %.4f, in %s", last_of(loss),
                 loss->steps[best], loss->values[best], place);
}

static void add_held_out(json_t *object, const train_log *log)
{
    const log_series *measure = &log->series[LOG_MEASURE], *loss = &log->series[LOG_EVAL_LOSS];
    if (!loss->count) return;
    json_put(object, "eval_loss", json_real(last_of(loss)));
    if (measure->count) json_put(object, "measure", json_string(log->measure));
    if (measure->count) json_put(object, "eval_measure", json_real(last_of(measure)));
    json_put(object, "best_step", json_integer((json_int_t)loss->steps[find_best(log)]));
}

/* --------------------------------------------------------------------------------------------------------- digests */

/* SHA-256 of the weights that a finished run has left, by their places in its folder. NULL: memory ran out. */
static json_t *digest_weights(const train_options *o)
{
    const bool is_pair = o->trainer.generator != NULL;
    const char *const single[] = {"model.safetensors", "best/model.safetensors", NULL},
                      *const pair[] = {"generator/model.safetensors", "discriminator/model.safetensors",
                                       "best/generator/model.safetensors", "best/discriminator/model.safetensors",
                                       NULL};
    json_t *digests = json_object();
    for (const char *const *name = is_pair ? pair : single; digests && *name; name++) {
        char digest[65];
        deberta_error missing; /* nothing was held out */
        const char *path = options_text(&o->common, "%s/%s", options_out(&o->common), *name);
        if (file_digest(path, digest, &missing) == DEBERTA_OK) json_object_set_new(digests, *name, json_string(digest));
    }
    return digests;
}

/* As sha256sum has them, so that two machines can be compared by eye. */
static void tell_digests(const train_options *o)
{
    const char *name;
    json_t *digest, *digests = digest_weights(o);
    json_object_foreach(digests, name, digest)
        say_note(&o->common, "sha256 %s  %s/%s", json_string_value(digest), options_out(&o->common), name);
    json_decref(digests);
}

static int print_end(const train_options *o, const train_log *log, size_t done, bool finished)
{
    json_t *object =
        json_pack("{s:I, s:I, s:b, s:s, s:f}", "steps", (json_int_t)done, "of", (json_int_t)o->trainer.steps,
                  "finished", finished, "folder", options_out(&o->common), "loss", last_of(train_log_objective(log)));
    if (finished) json_put(object, "sha256", digest_weights(o));
    add_held_out(object, log);
    return print_json_to(&o->common, NULL, object); /* --out is the folder */
}

int train_end(const train_options *o, size_t done, bool finished)
{
    train_log log;
    deberta_error error = {0};
    int status = EXIT_OK;
    const bool known = train_log_read(&log, options_out(&o->common), &error) == DEBERTA_OK;
    if (!known && o->common.json)
        status = say_error(&o->common, &error); /* every step was passed over */
    else if (known && o->common.json)
        status = print_end(o, &log, done, finished);
    else if (known)
        tell(o, &log);
    if (finished && !o->common.json) tell_digests(o);
    train_log_free(&log);
    return status;
}
