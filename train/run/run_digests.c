/* Computes digests of a checkpoint's files when it is written, and compares them when a run resumes.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/run_parts.h"

#include <stdio.h>
#include <string.h>

#include "core/io/mapped_file.h"
#include "core/io/quote.h"

enum { PATH_BYTES = 4096 };

static const char *const files[] = {"config.json", "model.safetensors", "training.safetensors"};

static deberta_status digest_of(const char *folder, const char *name, char digest[65], deberta_error *err)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_BYTES) *path = 0;
    return file_digest(path, digest, err);
}

deberta_status run_digests_take(json_t **digests, const run_parts *parts, const char *folder, deberta_error *err)
{
    *digests = json_object();
    for (size_t i = 0; i < parts->count; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char name[64], digest[65];
            const char *part = parts->items[i].name;
            snprintf(name, sizeof name, "%s%s%s", part, *part ? "/" : "", files[k]);
            DEBERTA_TRY(digest_of(folder, name, digest, err));
            if (json_object_set_new(*digests, name, json_string(digest)) != 0)
                DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the digests of a checkpoint");
        }
    return DEBERTA_OK;
}

deberta_status run_digests_check(const json_t *digests, const char *folder, deberta_error *err)
{
    const char *name;
    const json_t *expected;
    json_object_foreach((json_t *)digests, name, expected)
    {
        char found[65];
        DEBERTA_TRY(digest_of(folder, name, found, err));
        if (!json_is_string(expected) || strcmp(json_string_value(expected), found) != 0)
            DEBERTA_FAIL(
                err, DEBERTA_E_FORMAT,
                "%s/%s has changed since the run wrote it: its SHA-256 is %s, expected %.64s, as training.json "
                "has it",
                QUOTE(folder), QUOTE(name), found,
                json_is_string(expected) ? QUOTE(json_string_value(expected)) : "a text");
    }
    return DEBERTA_OK;
}
