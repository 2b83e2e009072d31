/* A library to preload: it lets one system call of a program that writes files fail.
 *
 *     LD_PRELOAD=failing_calls.so FAIL_AT=3 FAIL_WITH=28 FAIL_REPORT=FILE deberta encode ...
 *
 * What counts: creating, writing, lengthening, syncing, closing, renaming and removing regular files and folders, and
 * writing to standard output. FAIL_AT is the number of the call that fails, from 1; 0 only counts. FAIL_WITH is its
 * errno. FAIL_FROM=1: that call and all that follow, as on a disk that stays full. FAIL_PART=1: if that call is a
 * write, half of its bytes are written, as where a disk becomes full. FAIL_KILL=1: in its place the process is killed,
 * as by want of memory or power. FAIL_UNDER=out: only calls about paths that have this part count.
 * FAIL_REPORT, a file of sizeof(struct report) bytes, tells how many calls there were, and which one failed. FAIL_LOG,
 * a file, gets a line for each call that counts: its number and what it is about.
 *
 * The C library's streams do not call its exported write(), so names cannot be taken over. The kernel hands the calls
 * over instead: a filter (seccomp) turns them into the signal SIGSYS, whose handler makes them itself or not. That
 * needs no privilege. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined __x86_64__ && !defined __aarch64__
#error "written for x86-64 and aarch64"
#endif

/* The sixth argument, which none of these calls has, of calls that the filter lets pass. */
#define PASS 0x6c657420u

/* In shared memory: children that the program makes count on. */
struct report {
    uint64_t calls, failed; /* failed: how many were made to fail */
    int64_t number;         /* of the first of these, as in sys/syscall.h */
    char path[232];         /* what it was about, where the call names it */
};

static struct report *report, own_report;
static uint64_t fail_at;
static long fail_with = ENOSPC;
static bool fail_from, fail_kill, fail_part;
static const char *fail_under;
static int log_file = -1;

static const int watched[] = {
#ifdef __x86_64__
    SYS_rename,          SYS_mkdir,    SYS_rmdir,     SYS_unlink,   SYS_link,      SYS_symlink,
#endif
    SYS_openat,          SYS_write,    SYS_writev,    SYS_pwrite64, SYS_pwritev,   SYS_ftruncate,
    SYS_truncate,        SYS_fsync,    SYS_fdatasync, SYS_close,    SYS_fallocate, SYS_renameat,
    SYS_renameat2,       SYS_mkdirat,  SYS_unlinkat,  SYS_linkat,   SYS_symlinkat, SYS_sync_file_range,
    SYS_copy_file_range, SYS_sendfile,
};
enum { WATCHED = sizeof watched / sizeof *watched };

static long make_call(long number, const long a[5])
{
    return syscall(number, a[0], a[1], a[2], a[3], a[4], (long)PASS);
}

/* A regular file or a folder that was opened for what the call does, or standard output. */
static bool is_file(long number, int descriptor)
{
    struct stat about;
    if (descriptor == STDERR_FILENO || fstat(descriptor, &about) != 0) return false;
    if (number == SYS_close) return S_ISREG(about.st_mode) && (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
    return S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || descriptor == STDOUT_FILENO;
}

/* The path that the call names, NULL for calls on descriptors. */
static const char *path_of(long number, const long a[5])
{
    switch (number) {
#ifdef __x86_64__
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_unlink: return (const char *)a[0];
    case SYS_rename:
    case SYS_link:
    case SYS_symlink: return (const char *)a[1];
#endif
    case SYS_truncate: return (const char *)a[0];
    case SYS_openat:
    case SYS_mkdirat:
    case SYS_unlinkat: return (const char *)a[1];
    case SYS_symlinkat: return (const char *)a[2];
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat: return (const char *)a[3];
    default: return NULL;
    }
}

enum { MOST_PATH = 4096 };

static const char *path_of_descriptor(char found[MOST_PATH], int descriptor)
{
    char place[64];
    snprintf(place, sizeof place, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(place, found, MOST_PATH - 1);
    found[length < 0 ? 0 : length] = 0;
    return found;
}

static bool is_under(const char *path, int descriptor)
{
    char found[MOST_PATH];
    return !fail_under || strstr(path ? path : path_of_descriptor(found, descriptor), fail_under);
}

static bool counts(long number, const long a[5])
{
    const char *path = path_of(number, a);
    if (!is_under(path, (int)a[0])) return false;
    if (path) return strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0;
    return is_file(number, (int)a[0]);
}

static void log_call(long number, const long a[5])
{
    char found[MOST_PATH], line[MOST_PATH + 32];
    const char *path = path_of(number, a);
    const int length =
        snprintf(line, sizeof line, "%ld %s\n", number, path ? path : path_of_descriptor(found, (int)a[0]));
    const long write_line[5] = {log_file, (long)line, length};
    make_call(SYS_write, write_line);
}

/* A full disk does not mind. */
static bool is_removal(long number)
{
#ifdef __x86_64__
    if (number == SYS_unlink || number == SYS_rmdir) return true;
#endif
    return number == SYS_unlinkat;
}

/* Whether this call is one of those that fail. */
static bool is_chosen(long number, const long a[5])
{
    const uint64_t count = __atomic_add_fetch(&report->calls, 1, __ATOMIC_SEQ_CST);
    if (log_file >= 0) log_call(number, a);
    if (!fail_at || (fail_from ? count < fail_at : count != fail_at)) return false;
    if (fail_from && count > fail_at && is_removal(number)) return false;
    if (__atomic_add_fetch(&report->failed, 1, __ATOMIC_SEQ_CST) > 1) return true;
    const char *path = path_of(number, a);
    report->number = number;
    if (path) strncpy(report->path, path, sizeof report->path - 1);
    if (fail_kill) kill(getpid(), SIGKILL);
    return true;
}

static long answer(long number, const long a[5])
{
    const bool chosen = counts(number, a) && is_chosen(number, a);
    if (chosen && number == SYS_close) make_call(number, a); /* a descriptor is gone also where closing it failed */
    if (chosen && !(fail_part && number == SYS_write && report->failed == 1)) return -fail_with;
    const long half[5] = {a[0], a[1], a[2] / 2};
    const long result = make_call(number, chosen ? half : a);
    return result == -1 ? -errno : result;
}

static void on_call(int signal_number, siginfo_t *about, void *context)
{
    (void)signal_number;
    const int before = errno;
    ucontext_t *machine = context;
#ifdef __x86_64__
    const greg_t *r = machine->uc_mcontext.gregs;
    const long arguments[5] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]};
    machine->uc_mcontext.gregs[REG_RAX] = answer(about->si_syscall, arguments);
#else
    const unsigned long long *r = machine->uc_mcontext.regs;
    const long arguments[5] = {(long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4]};
    machine->uc_mcontext.regs[0] = (unsigned long long)answer(about->si_syscall, arguments);
#endif
    errno = before;
}

/* Three instructions on the mark, one and a return for each call; files that are only read are opened at once. */
static bool install_filter(void)
{
    enum { FLAG_TESTS = 2 };
    struct sock_filter code[4 + FLAG_TESTS + WATCHED + 2];
    size_t n = 0;
    const size_t end = sizeof code / sizeof *code, trap = end - 1, allow = end - 2;
#define LOAD(field)                (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (field))
#define JUMP(test, value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (yes), (no))
    code[n++] = LOAD(offsetof(struct seccomp_data, args[5]));
    code[n] = JUMP(BPF_JEQ, PASS, (uint8_t)(allow - n - 1), 0), n++;
    code[n++] = LOAD(offsetof(struct seccomp_data, nr));
    code[n++] = JUMP(BPF_JEQ, SYS_openat, 0, FLAG_TESTS);
    code[n++] = LOAD(offsetof(struct seccomp_data, args[2]));
    code[n] = JUMP(BPF_JSET, O_CREAT, (uint8_t)(trap - n - 1), (uint8_t)(allow - n - 1)), n++;
    for (size_t k = 0; k < WATCHED; k++) code[n] = JUMP(BPF_JEQ, (uint32_t)watched[k], (uint8_t)(trap - n - 1), 0), n++;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sock_fprog program = {(unsigned short)n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static struct report *open_report(void)
{
    const char *path = getenv("FAIL_REPORT");
    const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file < 0) return &own_report;
    void *shared = MAP_FAILED;
    if (ftruncate(file, sizeof own_report) == 0)
        shared = mmap(NULL, sizeof own_report, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return shared == MAP_FAILED ? &own_report : shared;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT"), *with = getenv("FAIL_WITH");
    if (!at) return;
    fail_at = strtoull(at, NULL, 10);
    if (with) fail_with = strtol(with, NULL, 10);
    fail_from = getenv("FAIL_FROM") != NULL;
    fail_kill = getenv("FAIL_KILL") != NULL;
    fail_part = getenv("FAIL_PART") != NULL;
    fail_under = getenv("FAIL_UNDER");
    report = open_report();
    if (getenv("FAIL_LOG")) log_file = open(getenv("FAIL_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    /* The program would run without a failure and pass: whoever cannot watch says so. */
    if (sigaction(SIGSYS, &action, NULL) != 0 || !install_filter()) _exit(77);
}
