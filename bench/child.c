/* Runs work in a separate process, which answers through shared memory. SPDX-License-Identifier: MIT */
#include "bench/child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/scope.h"

typedef struct shared_answer {
    deberta_status status;
    deberta_error error;
    _Alignas(max_align_t) unsigned char bytes[];
} shared_answer;

typedef struct child_task {
    child_work work;
    const void *context;
    shared_answer *shared;
} child_task;

enum { CHILD_SHORT = 4 };

/* Ends the child without the program's hook for memory shortage, which would remove files of the parent. */
static void end_for_memory(void) { _exit(CHILD_SHORT); }

static void *run_task(void *argument)
{
    const child_task *task = argument;
    task->shared->status = task->work(task->context, task->shared->bytes, &task->shared->error);
    return NULL;
}

/* Runs the task in a thread that is new to this process: GCC's OpenMP keeps for each thread the team that has worked
 * for it, and a thread that has come through a fork would wait for workers that only the parent has. */
static bool run_in_new_thread(child_task *task)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, run_task, task) == 0 && pthread_join(thread, NULL) == 0;
}

static deberta_status child_judge(int code, const char *what, deberta_error *err)
{
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return DEBERTA_OK;
    if (WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: the process was killed, most likely for want of memory", what);
    if (WIFSIGNALED(code)) {
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: the process died of signal %d (%s)", what, WTERMSIG(code),
                     strsignal(WTERMSIG(code)));
    }
    if (WEXITSTATUS(code) == CHILD_SHORT) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: out of memory", what);
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: the process ended with code %d", what, WEXITSTATUS(code));
}

static deberta_status wait_for(pid_t child, const char *what, deberta_error *err)
{
    int code;
    while (waitpid(child, &code, 0) < 0) {
        if (errno != EINTR) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: lost the process: %s", what, strerror(errno));
    }
    return child_judge(code, what, err);
}

deberta_status child_run(child_work work, const void *context, void *answer, size_t answer_bytes, const char *what,
                         deberta_error *err)
{
    size_t bytes;
    if (!size_add(sizeof(shared_answer), answer_bytes, &bytes))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: too large", what);
    shared_answer *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: %s", what, strerror(errno));

    const pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        /* whoever stops the program wants its measurements to stop as well */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
        memory_on_shortage(end_for_memory);
        if (!run_in_new_thread(&(child_task){work, context, shared})) _exit(CHILD_SHORT);
        _exit(0); /* not exit: buffered output and handlers are the parent's */
    }
    deberta_status status;
    if (child < 0) {
        status = status_fail(err, DEBERTA_E_SYSTEM, "%s: no process can be started: %s", what, strerror(errno));
    } else {
        status = wait_for(child, what, err);
        if (status == DEBERTA_OK) {
            status = shared->status;
            if (status != DEBERTA_OK) status_fail(err, status, "%s", shared->error.message);
            if (answer_bytes) memcpy(answer, shared->bytes, answer_bytes);
        }
    }
    munmap(shared, bytes);
    return status;
}
