/* Feeds files to a fuzz target without a fuzzer: replay [--mutations N] FILE-OR-FOLDER...
 *
 * With mutations every file is also fed N times with random damage, the same damage in every run.
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/numbers.h"
#include "tests/fuzz/fuzz.h"

static size_t inputs;

/* In memory of exactly its size, so that a sanitizer sees the first byte too many. */
static void feed(const uint8_t *bytes, size_t count)
{
    uint8_t *exact = malloc(count ? count : 1);
    if (!exact) abort();
    if (count > 0) memcpy(exact, bytes, count);
    LLVMFuzzerTestOneInput(exact, count);
    free(exact);
    inputs++;
}

/* One to four pieces of damage: a flipped bit, an odd byte, a piece cut out or repeated, the end cut off. */
static size_t damage(uint8_t *bytes, size_t count, size_t room, uint64_t *state)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '"', '[', '{', '(', '.'};
    for (uint64_t steps = 1 + random_next(state) % 4; steps > 0 && count > 0; steps--) {
        size_t at = random_next(state) % count, length = 1 + random_next(state) % 16;
        if (length > count - at) length = count - at;
        switch (random_next(state) % 6) {
        case 0: bytes[at] = odd[random_next(state) % sizeof odd]; break;
        case 1: count = at + 1; break;
        case 2:
            memmove(bytes + at, bytes + at + length, count - at - length);
            count -= length;
            break;
        case 3:
            if (count + length > room) break;
            memmove(bytes + at + length, bytes + at, count - at);
            count += length;
            break;
        default: bytes[at] ^= (uint8_t)(1u << random_next(state) % 8); break;
        }
    }
    return count;
}

static bool feed_file(const char *path, size_t mutations)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        if (file) fclose(file);
        return false;
    }
    size_t size = (size_t)status.st_size, room = size + 256;
    uint8_t *bytes = calloc(room, 1), *damaged = calloc(room, 1);
    if (!bytes || !damaged) abort();
    bool complete = fread(bytes, 1, size, file) == size;
    fclose(file);
    if (complete) feed(bytes, size);
    uint64_t state = size;
    for (size_t i = 0; complete && i < mutations; i++) {
        memcpy(damaged, bytes, size);
        feed(damaged, damage(damaged, size, room, &state));
    }
    free(bytes);
    free(damaged);
    return complete;
}

static bool feed_path(const char *path, size_t mutations)
{
    DIR *folder = opendir(path);
    if (!folder) return feed_file(path, mutations);
    bool complete = true;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char inside[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        complete &= feed_file(inside, mutations);
    }
    closedir(folder);
    return complete;
}

int main(int count, char **arguments)
{
    size_t mutations = 0;
    bool complete = count > 1;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--mutations") == 0 && i + 1 < count)
            mutations = strtoul(arguments[++i], NULL, 10);
        else
            complete &= feed_path(arguments[i], mutations);
    }
    printf("%zu inputs\n", inputs);
    return complete && inputs > 0 ? 0 : 1;
}
