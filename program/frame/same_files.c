/* Compares files by place, then by content. SPDX-License-Identifier: MIT */
#include "program/frame/same_files.h"

#include <string.h>
#include <sys/stat.h>

#include "core/io/mapped_file.h"

static bool have_same_bytes(const char *a, const char *b)
{
    mapped_file left, right;
    deberta_error unread; /* whoever reads the file says what is wrong with it */
    if (mapped_file_open(&left, a, &unread) != DEBERTA_OK) return false;
    bool same = mapped_file_open(&right, b, &unread) == DEBERTA_OK;
    if (same) {
        same = left.size_bytes == right.size_bytes && memcmp(left.bytes, right.bytes, left.size_bytes) == 0;
        mapped_file_close(&right);
    }
    mapped_file_close(&left);
    return same;
}

bool files_are_same(const char *a, const char *b)
{
    struct stat one, other;
    if (stat(a, &one) != 0 || stat(b, &other) != 0 || !S_ISREG(one.st_mode) || !S_ISREG(other.st_mode)) return false;
    if (one.st_dev == other.st_dev && one.st_ino == other.st_ino) return true;
    return one.st_size == other.st_size && have_same_bytes(a, b);
}

void same_files_note(const common_options *options, const char *const *paths, size_t count, const char *why)
{
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < k; i++) {
            if (!files_are_same(paths[i], paths[k])) continue;
            if (strcmp(paths[i], paths[k]) == 0)
                say_note(options, "note: %s is given twice: %s", paths[k], why);
            else
                say_note(options, "note: %s and %s hold the same: %s", paths[i], paths[k], why);
            return;
        }
}
