/* A masked language model learns a text file: the loss of every tenth step, then the model in a folder that every
 * program opens. Training is not a stable part of the interface yet: it is in the static library alone.
 *   cc example_training.c $(pkg-config --cflags deberta) $(pkg-config --variable=libdir deberta)/libdeberta.a \
 *       -lhwloc -ljansson -lzip -lpcre2-8 -lm -pthread -o example_training
 *   ./example_training models/demo corpus.txt trained
 * SPDX-License-Identifier: MIT */
#include <deberta_training.h>
#include <stdio.h>

/* Anything but 0 stops behind the step; deberta_trainer_open with resume = 1 goes on from there. */
static int show(void *context, const deberta_training_step *step)
{
    (void)context;
    if (step->step % 10 == 0) printf("step %zu of %zu: loss %.3f\n", step->step, step->steps, step->loss);
    return 0;
}

static int fail(const deberta_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

int main(int argc, char **argv)
{
    deberta_error error;
    deberta_trainer *trainer = NULL;
    deberta_trainer_options options = DEBERTA_TRAINER_DEFAULTS;
    int finished = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: example_training MODEL TEXTS FOLDER\n");
        return 2;
    }
    const char *const texts[] = {argv[2]};
    options.model = argv[1];
    options.texts = texts;
    options.text_count = 1;
    options.sequence_tokens = 64;
    options.batch_sequences = 4;
    options.steps = 20;
    options.warmup = 2;
    options.folder = argv[3];
    if (deberta_trainer_open(&trainer, &options, &error) != DEBERTA_OK) return fail(&error);
    const deberta_status status = deberta_trainer_run(trainer, show, NULL, &finished, &error);
    deberta_trainer_free(&trainer);
    if (status != DEBERTA_OK) return fail(&error);
    printf("%s\n", finished ? "done" : "stopped");
    return 0;
}
