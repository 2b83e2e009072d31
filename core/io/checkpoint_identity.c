/* What says which checkpoint it is: its content, or its files as the file system describes them.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu.h"
#include "core/base/sha256.h"
#include "core/io/checkpoint_parts.h"

deberta_status checkpoint_path(const checkpoint *c, const char *name, char **path, deberta_error *err)
{
    *path = path_join(c->folder, name);
    if (!*path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(c->folder));
    return DEBERTA_OK;
}

static deberta_status map_config(const checkpoint *c, mapped_file *config, deberta_error *err)
{
    char *path = NULL;
    DEBERTA_TRY(checkpoint_path(c, "config.json", &path, err));
    deberta_status status = mapped_file_open(config, path, err);
    free(path);
    return status;
}

deberta_status checkpoint_digest(const checkpoint *c, char digest[65], deberta_error *err)
{
    mapped_file config;
    DEBERTA_TRY(map_config(c, &config, err));
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, config.bytes, config.size_bytes);
    mapped_file_close(&config);
    for (size_t i = 0; i < c->file_count; i++) sha256_add(&hash, c->files[i].map.bytes, c->files[i].map.size_bytes);
    sha256_finish(&hash, digest);
    return DEBERTA_OK;
}

static void add_to_stamp(sha256 *hash, const char *name, const mapped_file *file)
{
    char line[96];
    snprintf(line, sizeof line, " %zu %lld.%09ld\n", file->size_bytes, (long long)file->modified.tv_sec,
             file->modified.tv_nsec);
    sha256_add(hash, name, strlen(name));
    sha256_add(hash, line, strlen(line));
}

deberta_status checkpoint_stamp(const checkpoint *c, char stamp[65], deberta_error *err)
{
    mapped_file config;
    DEBERTA_TRY(map_config(c, &config, err));
    sha256 hash;
    sha256_begin(&hash, cpu_features());
    add_to_stamp(&hash, "config.json", &config);
    mapped_file_close(&config);
    for (size_t i = 0; i < c->file_count; i++) add_to_stamp(&hash, c->files[i].name, &c->files[i].map);
    sha256_finish(&hash, stamp);
    return DEBERTA_OK;
}
