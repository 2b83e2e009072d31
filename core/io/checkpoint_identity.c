/* Identifies a checkpoint by its content (digest), or by the metadata of its files (stamp).
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/io/checkpoint_parts.h"

deberta_status checkpoint_digest(const checkpoint *c, char digest[65], deberta_error *err)
{
    mapped_file config;
    char *path = NULL;
    DEBERTA_TRY(checkpoint_path(c, "config.json", &path, err));
    deberta_status status = mapped_file_open(&config, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, config.bytes, config.size_bytes);
    DEBERTA_TRY(mapped_file_end(&config, DEBERTA_OK, err));
    for (size_t i = 0; i < c->file_count; i++) sha256_add(&hash, c->files[i].map.bytes, c->files[i].map.size_bytes);
    sha256_finish(&hash, digest);
    return checkpoint_intact(c, err);
}

deberta_status checkpoint_digest_folder(const char *folder, char digest[65], deberta_error *err)
{
    checkpoint *files = NULL;
    DEBERTA_TRY(checkpoint_open(&files, folder, err));
    const deberta_status status = checkpoint_digest(files, digest, err);
    checkpoint_close(&files);
    return status;
}

static void add_to_stamp(sha256 *hash, const char *name, size_t size_bytes, struct timespec modified)
{
    char line[96];
    snprintf(line, sizeof line, " %zu %lld.%09ld\n", size_bytes, (long long)modified.tv_sec, modified.tv_nsec);
    sha256_add(hash, name, strlen(name));
    sha256_add(hash, line, strlen(line));
}

/* Adds config.json to the stamp. A folder without a readable one has the stamp of its weights; lack of memory is an
 * error. */
static deberta_status add_config(sha256 *hash, const checkpoint *c, deberta_error *err)
{
    mapped_file config;
    deberta_error missing = {0};
    char *path = NULL;
    DEBERTA_TRY(checkpoint_path(c, "config.json", &path, err));
    const deberta_status status = mapped_file_open(&config, path, &missing);
    if (status == DEBERTA_OK) {
        sha256_add(hash, config.bytes, config.size_bytes);
        mapped_file_close(&config);
    }
    free(path);
    if (status != DEBERTA_E_MEMORY) return DEBERTA_OK;
    if (err) *err = missing;
    return status;
}

/* Hashes both ends of the file, where a table of contents usually is, and samples in between, where training changes
 * nearly every value. */
static void add_samples(sha256 *hash, const mapped_file *file)
{
    enum { ENDS_BYTES = 4096, SAMPLE_BYTES = 64, SAMPLES = 16 };
    const size_t ends = minimum(ENDS_BYTES, file->size_bytes);
    sha256_add(hash, file->bytes, ends);
    for (size_t k = 1; k < SAMPLES; k++) {
        const size_t at = file->size_bytes / SAMPLES * k;
        sha256_add(hash, file->bytes + at, minimum(SAMPLE_BYTES, file->size_bytes - at));
    }
    sha256_add(hash, file->bytes + file->size_bytes - ends, ends);
}

deberta_status checkpoint_stamp(const checkpoint *c, char stamp[65], deberta_error *err)
{
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    DEBERTA_TRY(add_config(&hash, c, err));
    if (c->config.there) add_to_stamp(&hash, "config.json", c->config.size_bytes, c->config.modified);
    if (c->index.there) add_to_stamp(&hash, "index", c->index.size_bytes, c->index.modified);
    for (size_t i = 0; i < c->file_count; i++) {
        add_to_stamp(&hash, c->files[i].name, c->files[i].map.size_bytes, c->files[i].map.modified);
        add_samples(&hash, &c->files[i].map);
    }
    sha256_finish(&hash, stamp);
    return DEBERTA_OK;
}
