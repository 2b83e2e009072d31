/* Exchanges sums between ranks of MPI, and ends them together. All waiting sleeps, because ranks may share cores.
 *
 * SPDX-License-Identifier: MIT */
#include "program/cluster/cluster.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/build_name.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "include/deberta_training.h"
#include "output/scope.h"

enum { VERSION_BYTES = 128, SAID_BYTES = 4096 };

struct cluster {
    deberta_ranks ranks;
    /* `ends` has a communicator of its own, because a rank may end while others wait in `work` */
    MPI_Comm work, ends;
    MPI_Request *requests; /* [2 count] */
    int *statuses;         /* [count] */
    char host[MPI_MAX_PROCESSOR_NAME];
    int error_stream; /* descriptor that rank 0 writes its errors to */
    FILE *said;       /* messages of another rank, kept until its end */
};

/* ---------------------------------------------------------------------------------------------------------- waiting */

static const double FOREVER = 1e30;

/* Waits for requests; returns false if the time is over. */
static bool wait_for(MPI_Request *requests, int count, double seconds)
{
    enum { TRIES = 200 };
    const struct timespec pause = {.tv_nsec = 50000};
    const double end = clock_seconds() + seconds;
    int done = 0;
    for (size_t tries = 0;; tries++) {
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (done) return true;
        if (tries < TRIES) {
            sched_yield();
            continue;
        }
        if (clock_seconds() > end) return false;
        nanosleep(&pause, NULL);
    }
}

/* ---------------------------------------------------------------------------------------------------------- exchange */

static void trade(void *context, const float *all, float *received, size_t floats)
{
    const cluster *c = context;
    const size_t own = c->ranks.rank;
    int count = 0;
    for (size_t k = 0; k < c->ranks.count; k++) {
        if (k == own) continue;
        MPI_Irecv(received + k * floats, (int)floats, MPI_FLOAT, (int)k, 0, c->work, &c->requests[count++]);
        MPI_Isend(all + k * floats, (int)floats, MPI_FLOAT, (int)k, 0, c->work, &c->requests[count++]);
    }
    memcpy(received + own * floats, all + own * floats, floats * sizeof *all);
    wait_for(c->requests, count, FOREVER);
}

static void gather(void *context, float *all, size_t floats)
{
    const cluster *c = context;
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)floats, MPI_FLOAT, c->work, c->requests);
    wait_for(c->requests, 1, FOREVER);
}

static void cluster_mpi_join(void *context, void *bytes, size_t size)
{
    enum { AT_ONCE = 1 << 24 };
    const cluster *c = context;
    for (size_t at = 0; at < size; at += AT_ONCE) {
        const size_t part = size - at < AT_ONCE ? size - at : AT_ONCE;
        MPI_Iallreduce(MPI_IN_PLACE, (char *)bytes + at, (int)part, MPI_BYTE, MPI_BOR, c->work, c->requests);
        wait_for(c->requests, 1, FOREVER);
    }
}

/* ---------------------------------------------------------------------------------------------------------- opening */

bool cluster_has_mpi(void) { return true; }

/* Keeps the messages of ranks other than 0, and shows them only if one of them has failed. */
static bool keep_quiet(cluster *c, common_options *options)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    c->said = tmpfile();
    c->error_stream = dup(STDERR_FILENO);
    const bool fine = nowhere >= 0 && c->said && c->error_stream >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 &&
                      dup2(fileno(c->said), STDERR_FILENO) >= 0;
    if (nowhere >= 0) close(nowhere);
    options->quiet = true;
    options->progress = PROGRESS_NEVER;
    return fine;
}

/* Compares the builds of all ranks, before any exchange that could differ between builds. options NULL: a rank that
 * has nothing to compute, which exchanges nothing else. */
static void compare_builds(const cluster *c, const common_options *options)
{
    const size_t count = c->ranks.count;
    char *builds = memory_take(count, VERSION_BYTES);
    if (options) snprintf(builds + c->ranks.rank * VERSION_BYTES, VERSION_BYTES, "%s", build_name());
    cluster_mpi_join((void *)c, builds, count * VERSION_BYTES);
    for (size_t k = 0; options && k < count; k++) {
        const char *other = builds + k * VERSION_BYTES;
        if (!*other) end_with(options, EXIT_USAGE, "rank %zu printed its help or its version, and computes nothing", k);
        if (*builds && strcmp(other, builds) != 0)
            end_with(options, EXIT_INPUT, "rank %zu is version %.120s, but rank 0 is %.120s", k, other, builds);
    }
    free(builds);
}

/* Initializes MPI and options->ranks. options NULL: as in compare_builds. */
static void begin_ranks(cluster *c, common_options *options)
{
    int rank, count, length, level;
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level); /* workers of the session never call MPI */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Get_processor_name(c->host, &length);
    MPI_Comm_dup(MPI_COMM_WORLD, &c->work);
    MPI_Comm_dup(MPI_COMM_WORLD, &c->ends);
    c->ranks = (deberta_ranks){.context = c,
                               .rank = (size_t)rank,
                               .count = (size_t)count,
                               .trade = trade,
                               .gather = gather,
                               .join = cluster_mpi_join};
    c->requests = calloc(2 * (size_t)count, sizeof(MPI_Request));
    c->statuses = calloc((size_t)count, sizeof *c->statuses);
    if (count == 1) return;
    if (!c->requests || !c->statuses || (options && rank > 0 && !keep_quiet(c, options))) end_program(EXIT_SYSTEM);
    if (options) options->ranks = &c->ranks;
    compare_builds(c, options);
    if (options && !options->command->spreads)
        end_with(
            options, EXIT_USAGE,
            "several ranks compute train and finetune, and corpora by encode, classify, tag, detect and fill-mask\n"
            "see: deberta --help");
}

void cluster_open(cluster **place, common_options *options)
{
    cluster *c = *place = calloc(1, sizeof *c);
    if (!c) end_program(EXIT_SYSTEM);
    c->error_stream = -1;
    begin_ranks(c, options);
}

/* ---------------------------------------------------------------------------------------------------------- the end */

/* Prints the messages of a rank, or says that it was rank 0 that failed. */
static void cluster_mpi_tell(const cluster *c)
{
    char text[SAID_BYTES] = "", name[512];
    if (!c->said) {
        fprintf(stderr, "deberta: this was rank 0 of %zu (%s), which ends the others\n", c->ranks.count, c->host);
        return;
    }
    const ssize_t length = pread(fileno(c->said), text, sizeof text - 1, 0);
    snprintf(name, sizeof name, "rank %zu of %zu (%.200s): ", c->ranks.rank, c->ranks.count, c->host);
    if (length <= 0) snprintf(text, sizeof text, "ended without a word\n");
    if (write(c->error_stream, name, strlen(name)) < 0) return;
    if (write(c->error_stream, text, strlen(text)) < 0) return;
}

/* Exchanges the exit codes of all ranks. A rank that succeeded waits without limit; one that failed waits 2 s, since
 * ranks that fail alike arrive together. */
static int end_together(cluster *c, int status)
{
    const double seconds = status == EXIT_OK ? FOREVER : 2;
    size_t first = 0;
    MPI_Iallgather(&status, 1, MPI_INT, c->statuses, 1, MPI_INT, c->ends, c->requests);
    if (!wait_for(c->requests, 1, seconds)) {
        cluster_mpi_tell(c);
        MPI_Abort(MPI_COMM_WORLD, status);
    }
    while (first + 1 < c->ranks.count && c->statuses[first] == EXIT_OK) first++;
    if (c->statuses[first] != EXIT_OK && first > 0 && first == c->ranks.rank) cluster_mpi_tell(c);
    return c->statuses[first];
}

/* Returns true if this is one of several processes that mpirun has started. */
static bool is_launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t k = 0; k < sizeof variables / sizeof *variables; k++)
        if (getenv(variables[k])) return true;
    return false;
}

int cluster_close(cluster **place, int status)
{
    /* A rank that printed its help has opened nothing, and the others would wait for it without end. mpirun notices a
     * rank that fails this early, and ends the others. */
    if (!*place && status == EXIT_OK && is_launched()) cluster_open(place, NULL);
    cluster *c = *place;
    if (!c) return status;
    if (c->ranks.count > 1 && c->requests && c->statuses) status = end_together(c, status);
    if (c->ranks.count > 0) MPI_Finalize();
    if (c->said) stream_discard(c->said);
    free(c->requests);
    free(c->statuses);
    free(c);
    *place = NULL;
    return status;
}
