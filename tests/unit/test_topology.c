/* Cores, caches, order of workers and cgroup limits, on machines described by text and folders made for the occasion.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/base/topology.h"

/* Two packages of four cores with two hyper-threads; indexes count as Linux does: all first threads, then all second
 * ones. */
static const char two_packages[] = "package:2 l3:1(size=32MiB) l2:4(size=512KiB) l1d:1(size=32KiB) core:1 "
                                   "pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)";

static void write_below(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *c = name + strlen(root) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(name, 0700);
        *c = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

typedef struct root_file {
    const char *path, *text;
} root_file;

/* Of a machine on whose disk nothing is but these files; path NULL ends them. */
static topology_info described_with(const char *synthetic, const char *allowed, const root_file *files)
{
    FREED_BY(remove_folder) char *root = make_folder();
    for (; files->path; files++) write_below(root, files->path, files->text);
    topology_info info;
    deberta_error err = {0};
    topology_source source = {.synthetic = synthetic, .allowed = allowed, .root_folder = root};
    if (topology_read_source(&info, &source, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return info;
}

static topology_info described(const char *synthetic, const char *allowed)
{
    return described_with(synthetic, allowed, &(root_file){0});
}

TEST(counts_and_caches)
{
    topology_info info = described(two_packages, "0-15");
    assert_int_equal(info.logical, 16);
    assert_int_equal(info.cores, 8);
    assert_int_equal(info.packages, 2);
    assert_int_equal(info.allowed_logical, 16);
    assert_int_equal(info.allowed_cores, 8);
    assert_int_equal(info.usable_cores, 8);
    assert_int_equal(info.l1d_bytes, 32 << 10);
    assert_int_equal(info.l2_bytes, 512 << 10);
    assert_int_equal(info.l3_bytes, 32 << 20);
    assert_int_equal(info.l2_cores, 1);
    assert_int_equal(info.l3_cores, 4);
    assert_true(info.cpu_quota == 0);
    assert_int_equal(topology_cache_bytes(&info), 2 * (32 << 20) + 8 * (512 << 10));
    /* more than one last-level cache in a package */
    info = described("package:1 l3:4(size=32MiB) l2:2(size=1MiB) core:2 pu:1", "0-15");
    assert_int_equal(info.cores, 16);
    assert_int_equal(topology_cache_bytes(&info), 4 * (32 << 20) + 8 * (1 << 20));
}

TEST(workers_fill_cores_before_hyper_threads)
{
    topology_info info = described(two_packages, "0-15");
    for (int w = 0; w < 16; w++) assert_int_equal(topology_worker_cpu(&info, (size_t)w), w);
    assert_int_equal(topology_worker_cpu(&info, 16), -1);
    assert_int_equal(topology_worker_cpu(&info, SIZE_MAX), -1);
}

TEST(affinity_limits_cores_and_workers)
{
    /* 2 and 10 are the threads of one core, 11 is the second thread of a core whose first is forbidden. */
    topology_info info = described(two_packages, "2,10-11");
    assert_int_equal(info.logical, 16);
    assert_int_equal(info.allowed_logical, 3);
    assert_int_equal(info.allowed_cores, 2);
    assert_int_equal(info.usable_cores, 2);
    assert_int_equal(topology_worker_cpu(&info, 0), 2);
    assert_int_equal(topology_worker_cpu(&info, 1), 11);
    assert_int_equal(topology_worker_cpu(&info, 2), 10);
    assert_int_equal(topology_worker_cpu(&info, 3), -1);
}

TEST(workers_begin_apart_from_their_caller)
{
    topology_info info = described(two_packages, "0-15");
    for (int caller = 0; caller < 16; caller++) {
        bool taken[8] = {false};
        taken[caller % 8] = true; /* 8 to 15 are the second threads of cores 0 to 7 */
        for (size_t worker = 1; worker < 8; worker++) {
            int processor = topology_processor_apart(&info, caller, worker);
            assert_in_range(processor, 0, 7);
            assert_false(taken[processor]);
            taken[processor] = true;
        }
    }
    assert_int_equal(topology_processor_apart(&info, 16, 1), -1);
    assert_int_equal(topology_processor_apart(&info, -1, 1), -1);

    info = described(two_packages, "2,10-11");
    assert_int_equal(topology_processor_apart(&info, 2, 1), 11);
    assert_int_equal(topology_processor_apart(&info, 10, 1), 11);
    assert_int_equal(topology_processor_apart(&info, 11, 1), 2);

    info = described(two_packages, "0-1,9"); /* one thread of core 0, both of core 1 */
    assert_int_equal(topology_processor_apart(&info, 9, 1), 0);
    assert_int_equal(topology_processor_apart(&info, 1, 1), 0);
    assert_int_equal(topology_processor_apart(&info, 0, 1), 1);
}

TEST(more_processors_than_the_table_holds)
{
    topology_info info = described("package:2 core:1024 pu:1", "0-2047");
    assert_int_equal(info.usable_cores, 2048);
    assert_int_equal(info.workers, TOPOLOGY_MAX_WORKERS);
    assert_int_equal(topology_worker_cpu(&info, TOPOLOGY_MAX_WORKERS - 1), TOPOLOGY_MAX_WORKERS - 1);
    assert_int_equal(topology_worker_cpu(&info, TOPOLOGY_MAX_WORKERS), -1);
}

/* clang-format off */
#define GROUPS(text)        {"/proc/self/cgroup", text}
#define LIMIT(folder, text) {"/sys/fs/cgroup" folder "/cpu.max", text}
#define QUOTA(folder, text) {"/sys/fs/cgroup" folder "/cpu.cfs_quota_us", text}
#define PERIOD(folder)      {"/sys/fs/cgroup" folder "/cpu.cfs_period_us", "100000\n"}

static const struct {
    const char *allowed;
    double quota;
    size_t usable_cores;
    root_file files[5];
} quotas[] = {
    /* version 2: the least of a group and those around it */
    {"0-15", 2.5, 2,
     {GROUPS("0::/outer/inner\n"), LIMIT("/outer/inner", "max 100000\n"), LIMIT("/outer", "250000 100000\n")}},
    {"0-15", 0.5, 1,
     {GROUPS("0::/outer/inner\n"), LIMIT("/outer/inner", "50000 100000\n"), LIMIT("/outer", "250000 100000\n")}},
    {"0-3", 64, 4, {GROUPS("0::/\n"), LIMIT("", "6400000 100000\n")}},
    /* version 1 */
    {"0-15", 3, 3,
     {GROUPS("7:memory:/x\n4:cpu,cpuacct:/docker/0123\n0::/\n"),
      QUOTA("/cpu,cpuacct", "300000\n"), PERIOD("/cpu,cpuacct")}},
    {"0-15", 0, 8,
     {GROUPS("7:memory:/x\n4:cpu,cpuacct:/docker/0123\n0::/\n"),
      QUOTA("/cpu,cpuacct", "-1\n"), PERIOD("/cpu,cpuacct")}},
    /* A file that holds less than it should sets no limit, and its numbers do not mix with another file's. */
    {"0-15", 0, 8, {GROUPS("0::/\n"), LIMIT("", "200000\n"), QUOTA("", ""), PERIOD("")}},
    {"0-15", 0, 8, {GROUPS("0::/\n"), LIMIT("", "none\n"), QUOTA("", ""), PERIOD("")}},
    /* controllers with names alike */
    {"0-15", 0, 8,
     {GROUPS("3:cpuset:/\n2:cpuacct:/\nnonsense\n9:name=systemd:/a:b\n"),
      QUOTA("/cpuset", "100000\n"), PERIOD("/cpuset")}},
};
/* clang-format on */

TEST(quotas_of_control_groups)
{
    FOR_ROWS(i, quotas) {
        const topology_info info = described_with(two_packages, quotas[i].allowed, quotas[i].files);
        assert_true(info.cpu_quota == quotas[i].quota);
        assert_int_equal(info.usable_cores, quotas[i].usable_cores);
    }
}

TEST(wrong_descriptions_are_refused)
{
    topology_info info;
    deberta_error err = {0};
    check_refused(topology_read_source(&info, &(topology_source){.synthetic = "banana:2"}, &err), &err,
                  DEBERTA_E_ARGUMENT, "banana");
    assert_int_equal(topology_read_source(&info, &(topology_source){.synthetic = two_packages, .allowed = "99"}, &err),
                     DEBERTA_E_SYSTEM);
}

TEST(this_machine)
{
    topology_info info;
    assert_ok(topology_read(&info, NULL));
    assert_true(info.usable_cores >= 1 && info.usable_cores <= info.allowed_cores);
    assert_true(info.allowed_cores <= info.allowed_logical && info.allowed_logical <= info.logical);
    assert_true(topology_worker_cpu(&info, 0) >= 0);
}
