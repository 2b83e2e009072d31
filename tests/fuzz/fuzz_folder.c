/* The folder of such a target is made, and each input is put into it and read. SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz_folder.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/deberta.h"
#include "tests/fuzz/fuzz.h"

static char folder[64];

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) fprintf(stderr, "%s stays\n", folder);
}

/* The folder with the files beside the input, in memory where there is such a place. */
static void make_folder(const fuzz_target *target)
{
    char files[1024], *rest = files;
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/deberta-fuzz-XXXXXX" : "/tmp/deberta-fuzz-XXXXXX");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    snprintf(files, sizeof files, "%s", target->beside);
    for (const char *file; (file = strsep(&rest, " "));) {
        char from[4096], to[4096];
        const char *slash = strrchr(file, '/');
        if (!slash) continue;
        snprintf(from, sizeof from, "%s/golden/%s", TESTS_FOLDER, file);
        snprintf(to, sizeof to, "%s%s", folder, slash);
        if (symlink(from, to) != 0) abort();
    }
}

static const fuzz_target *find_in(const fuzz_target *table)
{
    const char *wanted = getenv("FUZZ_TARGET");
    while (table->name && (!wanted || strcmp(table->name, wanted) != 0)) table++;
    return table->name ? table : NULL;
}

static const fuzz_target *begin(void)
{
    const fuzz_target *target = find_in(fuzz_library_targets);
    if (!target) target = find_in(fuzz_made_targets);
    if (!target) target = find_in(fuzz_program_targets);
    if (!target) {
        fprintf(stderr, "FUZZ_TARGET in the environment must name one of the targets in tests/fuzz/targets.txt\n");
        abort();
    }
    /* Looking at the real machine takes most of the time in which a small model is opened. */
    setenv("HWLOC_SYNTHETIC", "numa:1 core:1 pu:1", 1);
    setenv("HWLOC_PLUGINS_PATH", "/nowhere", 1);
    make_folder(target);
    return target;
}

static void write_at(const char *path, const char *mode, long place, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, mode);
    if (!file || fseek(file, place, SEEK_SET) != 0 || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

/* Packed weights are made of the model, now and then anew: the input is four bytes for a place in them, and what stands
 * there instead. A file of bytes from nowhere would end at its digest. */
static void damage_packed(const char *path, const uint8_t *data, size_t size)
{
    static size_t packed_bytes;
    deberta_error error;
    if (size < 5) return;
    if (packed_bytes == 0 || data[0] % 64 == 0) {
        if (deberta_model_pack(folder, NULL, &error) != DEBERTA_OK) abort();
        FILE *file = fopen(path, "rb");
        if (!file || fseek(file, 0, SEEK_END) != 0) abort();
        packed_bytes = (size_t)ftell(file);
        fclose(file);
    }
    const size_t place = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % packed_bytes;
    write_at(path, "r+b", (long)place, data + 4, size - 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fuzz_target *target;
    if (!target) target = begin();
    if (target->file) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, target->file);
        if (strcmp(target->file, "deberta.packed") == 0)
            damage_packed(path, data, size);
        else
            write_at(path, "wb", 0, data, size);
        target->read(folder, size);
        return 0;
    }
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    target->read(text, size);
    free(text);
    return 0;
}
