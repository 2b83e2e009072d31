/* Files that become shorter while they are mapped: an error, not the end of the process; and signals that are about
 * something else go where they went before.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/reference/reference.h"
#include "core/io/mapped_file.h"
#include "tests/unit/model_helpers.h"

enum { FILE_BYTES = 64 << 10 };

static char folder[64];

static const char *inside(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void copy_golden(const char *name)
{
    char command[1024];
    const char *golden = getenv("DEBERTA_GOLDEN");
    snprintf(command, sizeof command, "cp '%s/16-v3-b256-n33/%s' '%s'", golden ? golden : "tests/golden", name, folder);
    assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/deberta-guard-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_zeros(const char *path, size_t count)
{
    const int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)count), 0);
    assert_int_equal(close(file), 0);
}

/* What becomes of a child that does this: its exit status, or minus the signal that ended it. */
static int outcome(int (*act)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        _exit(act());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int sum_shortened(void)
{
    mapped_file file;
    deberta_error error = {0};
    unsigned sum = 0;
    if (mapped_file_open(&file, inside("zeros"), &error) != DEBERTA_OK) return 90;
    if (mapped_file_intact(&file, &error) != DEBERTA_OK) return 91;
    if (truncate(inside("zeros"), 100) != 0) return 92;
    for (size_t k = 0; k < file.size_bytes; k++) sum += file.bytes[k];
    const deberta_status status = mapped_file_end(&file, DEBERTA_OK, &error);
    if (status == DEBERTA_OK) return 93;
    return status == DEBERTA_E_FILE && sum == 0 && strstr(error.message, "became shorter") ? 0 : 94;
}

static int unguarded(void) { return sum_shortened(); }
static int guarded(void) { return deberta_guard_files(NULL) == DEBERTA_OK ? sum_shortened() : 95; }

/* More mappings than the table has room for, and slots that are used again. */
static int guarded_after_many(void)
{
    if (deberta_guard_files(NULL) != DEBERTA_OK) return 95;
    enum { MANY = 1500 };
    static mapped_file files[MANY];
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < MANY; k++)
            if (mapped_file_open(&files[k], inside("zeros"), NULL) != DEBERTA_OK) return 96;
        for (int k = 0; k < MANY; k++) mapped_file_close(&files[k]);
    }
    return sum_shortened();
}

TEST_BETWEEN(a_shortened_file_is_an_error_where_files_are_guarded, begin, end)
{
    write_zeros(inside("zeros"), FILE_BYTES);
    assert_int_equal(outcome(unguarded), -SIGBUS);
    write_zeros(inside("zeros"), FILE_BYTES);
    assert_int_equal(outcome(guarded), 0);
    write_zeros(inside("zeros"), FILE_BYTES);
    assert_int_equal(outcome(guarded_after_many), 0);
}

static volatile const char *foreign_page;

static int touch_foreign(void)
{
    const int file = open(inside("foreign"), O_RDONLY);
    foreign_page = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    if (deberta_guard_files(NULL) != DEBERTA_OK || foreign_page == MAP_FAILED) return 95;
    if (truncate(inside("foreign"), 100) != 0) return 92;
    return foreign_page[FILE_BYTES - 1];
}

static void leave(int number) { _exit(number == SIGBUS ? 42 : 43); }

static int touch_foreign_handled(void)
{
    signal(SIGBUS, leave);
    return touch_foreign();
}

static int raise_it(void)
{
    if (deberta_guard_files(NULL) != DEBERTA_OK) return 95;
    raise(SIGBUS);
    return 0;
}

/* One signal of a thread to itself, and one of a process to itself, which the kernel tells apart. */
static int send_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    if (deberta_guard_files(NULL) != DEBERTA_OK) return 95;
    raise(SIGBUS);
    kill(getpid(), SIGBUS);
    return 41;
}

TEST_BETWEEN(signals_about_something_else_go_where_they_went_before, begin, end)
{
    write_zeros(inside("foreign"), FILE_BYTES);
    assert_int_equal(outcome(touch_foreign), -SIGBUS);
    write_zeros(inside("foreign"), FILE_BYTES);
    assert_int_equal(outcome(touch_foreign_handled), 42);
    assert_int_equal(outcome(raise_it), -SIGBUS);
    assert_int_equal(outcome(send_ignored), 41);
}

/* ------------------------------------------------------------------------------------------------------------ encode */

static const char *shortened_name;
static bool reads_layers_from_file; /* packed weights are mapped; others were copied when the model was opened */

/* The file is cut between the first hidden states and the first layer. What an encode needs of it later is gone. */
static deberta_status cut_meanwhile(void *context, const deberta_hidden_block *block)
{
    (void)context;
    if (block->layer > 0) return DEBERTA_OK;
    return truncate(inside(shortened_name), 4096) == 0 ? DEBERTA_OK : DEBERTA_E_SYSTEM;
}

static int encode_cut(void)
{
    deberta_error error = {0};
    deberta_model *model;
    deberta_session *session;
    if (deberta_guard_files(NULL) != DEBERTA_OK) return 95;
    if (deberta_model_open(&model, folder, NULL, &error) != DEBERTA_OK) return 96;
    const deberta_session_options options = {
        .struct_size = sizeof options, .max_tokens = 64, .features = DEBERTA_OBSERVE_HIDDEN};
    if (deberta_session_create(&session, model, &options, &error) != DEBERTA_OK) return 97;
    int32_t ids[64];
    const size_t vocabulary = deberta_model_describe(model)->vocabulary_size;
    for (size_t t = 0; t < 64; t++) ids[t] = (int32_t)((t * 977 + 5) % vocabulary);
    const deberta_observer observer = {.struct_size = sizeof observer, .on_hidden = cut_meanwhile};
    deberta_batch batch = batch_of(ids, (size_t[]){0, 64}, 1);
    batch.observer = &observer;
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_status status = deberta_encode(session, &batch, &outputs, &error);
    if (reads_layers_from_file && status != DEBERTA_E_FILE) return 99;
    batch.observer = NULL;
    for (int again = 0; again < 2; again++) {
        error = (deberta_error){0};
        status = deberta_encode(session, &batch, &outputs, &error);
        if (status != DEBERTA_E_FILE || !strstr(error.message, shortened_name)) return 98;
    }
    deberta_session_free(&session);
    deberta_model_free(&model);
    return 0;
}

TEST_BETWEEN(weights_that_shrink_during_an_encode_are_an_error, begin, end)
{
    copy_golden("config.json");
    copy_golden("model.safetensors");
    shortened_name = "model.safetensors";
    assert_int_equal(outcome(encode_cut), 0);
    copy_golden("model.safetensors");
    assert_ok(deberta_model_pack(folder, NULL, NULL));
    shortened_name = "deberta.packed";
    assert_int_equal(outcome(encode_cut), 0);
}

/* --------------------------------------------------------------------------------------------------- second opinion */

static void cut_at_the_first_row(void *context, const reference_attention_row *row)
{
    (void)context;
    if (row->layer == 0 && row->query == 0 && truncate(inside("model.safetensors"), 4096) != 0) _exit(89);
}

/* The reference reads each layer when it needs it. */
static int reference_cut(void)
{
    enum { TOKENS = 3 };
    deberta_error error = {0};
    reference_model *model;
    if (deberta_guard_files(NULL) != DEBERTA_OK) return 95;
    if (reference_open(&model, folder, DEBERTA_REFERENCE_HF, &error) != DEBERTA_OK) return 96;
    FREED_BY(free_memory)
    double *hidden = calloc((model->config.layers + 1) * TOKENS * model->config.hidden_size, sizeof *hidden);
    const reference_input input = {.tokens = TOKENS, .ids = (int64_t[]){1, 2, 3}};
    const reference_observer observer = {.on_row = cut_at_the_first_row};
    if (!hidden || reference_encode(model, &input, hidden, &observer, &error) != DEBERTA_E_FILE) return 97;
    reference_free(&model);
    return strstr(error.message, "model.safetensors") && strstr(error.message, "became shorter") ? 0 : 98;
}

TEST_BETWEEN(weights_that_shrink_while_the_second_opinion_reads_are_an_error, begin, end)
{
    copy_golden("config.json");
    copy_golden("model.safetensors");
    assert_int_equal(outcome(reference_cut), 0);
}
