/* Checks options of the command line, and fills the options of the library's trainer.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/train_options.h"

#include <stdio.h>
#include <string.h>

#include "program/frame/output_names.h"
#include "program/frame/same_files.h"

enum { MOST_LAYERS = 256 };

const train_options train_defaults = {
    .trainer = DEBERTA_TRAINER_DEFAULTS,
    .chain_every = 500,
};

static bool is_among(const text_list *files, const char *path)
{
    for (size_t k = 0; k < files->count; k++)
        if (files_are_same(path, files->items[k])) return true;
    return false;
}

/* Notes files that are given twice, and held-out ones that are trained on. */
static void note_files(const train_options *o)
{
    const char *const more = "each counts twice in an epoch";
    same_files_note(&o->common, o->texts.items, o->texts.count, more);
    same_files_note(&o->common, o->data.items, o->data.count, more);
    same_files_note(&o->common, o->held_out.items, o->held_out.count, "each counts twice in what is measured");
    for (size_t k = 0; k < o->held_out.count; k++)
        if (is_among(&o->data, o->held_out.items[k]) || is_among(&o->texts, o->held_out.items[k]))
            say_note(&o->common, "note: --eval %s is trained on as well: its measures are not those of new texts",
                     o->held_out.items[k]);
}

/* Notes options of a run that the others leave without effect. */
static void note_unused(const train_options *o)
{
    const deberta_trainer_options *t = &o->trainer;
    const void *const of_sift[] = {&t->perturb_raw, &t->sift_step, &t->sift_start};
    for (size_t k = 0; t->sift_weight <= 0 && k < sizeof of_sift / sizeof *of_sift; k++)
        option_note_unused(&o->common, of_sift[k], "--sift 0 moves no input");
    if (!train_runs(o)) return;
    if (t->learning_rate <= 0)
        say_note(&o->common, "note: --learning-rate %g: %s", t->learning_rate,
                 o->config                  ? "the new model stays as it is drawn"
                 : o->labels || o->new_head ? "the new head stays as it is drawn, and measures are of chance"
                                            : "no weight changes");
    if (t->stop_at > t->steps)
        say_note(&o->common, "note: --stop-at %zu: the run ends before, with step %zu", t->stop_at, t->steps);
    if (t->eval_every >= t->steps)
        say_note(&o->common, "note: --eval-every %zu: held-out data is measured after the last step alone, step %zu",
                 t->eval_every, t->steps);
    /* The first measurement is the best so far, and behind the last one no step is left. A run that is resumed may
     * have measured more often before. */
    const size_t measurements = t->eval_every ? t->steps / t->eval_every + (t->steps % t->eval_every != 0) : 0;
    if (measurements && !t->resume && t->patience + 1 >= measurements)
        option_note_unused(&o->common, &t->patience,
                           options_text(&o->common, "the run has %zu measurement%s, too few to end it before its last",
                                        measurements, measurements == 1 ? "" : "s"));
}

void train_options_check(const train_options *o)
{
    const deberta_trainer_options *t = &o->trainer;
    if (!o->config == !o->common.argument_count)
        usage_wrong(&o->common, o->config ? "expected MODEL or --config FOLDER, found both"
                                          : "expected MODEL, or --config FOLDER for a new one");
    if (!t->batch && !train_runs(o))
        usage_wrong(&o->common, "expected %s FILE --steps N --out FOLDER",
                    option_exists(&o->common, &o->data)        ? "--examples"
                    : option_exists(&o->common, &t->generator) ? "--generator MODEL --file"
                                                               : "--file");
    if (o->texts.count && !t->generator && option_exists(&o->common, &t->generator))
        usage_wrong(&o->common, "--file needs --generator MODEL, whose draws are what is to be found out");
    if (o->labels && o->new_head)
        option_wrong(&o->common, &o->labels, "this makes a new head already: leave --new-head out");
    check_output_name(&o->common, &o->gradients, o->gradients, ".safetensors");
    if (train_runs(o) && !options_out(&o->common)) usage_wrong(&o->common, "--steps needs --out FOLDER");
    if (t->shards & (t->shards - 1)) option_wrong(&o->common, &t->shards, "%zu is no power of two", t->shards);
    if (t->masking == DEBERTA_MASKING_UNIFORM && option_given(&o->common, &t->max_ngram))
        option_wrong(&o->common, &t->max_ngram, "uniform masking has no n-grams");
    if (t->generator && t->sharing == DEBERTA_SHARING_ES && !t->coupled)
        option_wrong(&o->common, &t->sharing, "es, one table for both losses, needs --coupled");
    note_unused(o);
    note_files(o);
    if (t->warmup > 0 && t->warmup > t->steps)
        option_wrong(&o->common, &t->warmup, "%zu steps of warm-up, but %zu steps", t->warmup, t->steps);
}

/* Expands "layers:2-4" into one pattern for each layer, and "embeddings" and "encoder" into all of theirs; other
 * patterns stay. */
static void add_freeze(const train_options *o, const char *text, const char **patterns, size_t *count)
{
    size_t first = 0, last = 0;
    int end = 0;
    if (sscanf(text, "layers:%zu-%zu%n", &first, &last, &end) != 2 || text[end]) {
        end = 0;
        last = sscanf(text, "layers:%zu%n", &first, &end) == 1 && !text[end] ? first : 0;
        if (!end || text[end]) end = 0;
    }
    if (end && first > last)
        option_wrong(&o->common, &o->freeze, "'%s' holds no layer: expected layers:A-B with A at most B", text);
    if (strcmp(text, "embeddings") == 0 || strcmp(text, "encoder") == 0)
        patterns[(*count)++] = options_text(&o->common, "%s.*", text);
    else if (!end)
        patterns[(*count)++] = text;
    for (size_t layer = first; end && layer <= last && layer - first < MOST_LAYERS; layer++)
        patterns[(*count)++] = options_text(&o->common, "encoder.layer.%zu.*", layer);
}

static void take_freeze(const train_options *o, deberta_trainer_options *t)
{
    const char **patterns = options_take(&o->common, o->freeze.count * MOST_LAYERS + 1, sizeof *patterns);
    for (size_t i = 0; i < o->freeze.count; i++) add_freeze(o, o->freeze.items[i], patterns, &t->freeze_count);
    t->freeze = patterns;
}

deberta_trainer_options train_trainer_options(const train_options *o, deberta_training_task task)
{
    deberta_trainer_options t = o->trainer;
    t.task = task;
    t.model = o->config ? o->config : o->common.arguments[0];
    t.begin = o->config != NULL;
    if (o->new_head) t.new_labels = 1; /* with labelled data, the data sets the number */
    take_freeze(o, &t);
    t.drop = (const char *const *)o->drop.items;
    t.drop_count = o->drop.count;
    if (option_given(&o->common, &o->trainer.checkpoint_every) &&
        !option_given(&o->common, &o->trainer.checkpoint_minutes))
        t.checkpoint_minutes = 0;
    if (o->chain) t.chain_every = o->chain_every;
    t.texts = o->texts.items;
    t.text_count = o->texts.count;
    t.held_out = o->held_out.items;
    t.held_out_count = o->held_out.count;
    t.reference = (deberta_reference)o->common.reference;
    t.seed = option_given(&o->common, &o->common.seed) ? o->common.seed : 0;
    t.folder = train_runs(o) ? options_out(&o->common) : NULL;
    t.isa = o->common.isa;
    t.threads = o->common.threads;
    t.memory_limit_bytes = o->common.memory_limit_bytes;
    t.ranks = o->common.ranks;
    return t;
}
