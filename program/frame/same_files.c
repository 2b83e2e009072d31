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

static bool is_regular(const char *path, struct stat *about)
{
    return stat(path, about) == 0 && S_ISREG(about->st_mode);
}

static bool are_same(const char *a, const struct stat *about_a, const char *b, const struct stat *about_b)
{
    if (about_a->st_dev == about_b->st_dev && about_a->st_ino == about_b->st_ino) return true;
    return about_a->st_size == about_b->st_size && have_same_bytes(a, b);
}

bool files_are_same(const char *a, const char *b)
{
    struct stat one, other;
    return is_regular(a, &one) && is_regular(b, &other) && are_same(a, &one, b, &other);
}

void same_files_note(const common_options *options, const char *const *paths, size_t count, const char *why)
{
    struct stat *about = options_take(options, count, sizeof *about);
    bool *regular = options_take(options, count, sizeof *regular);
    for (size_t k = 0; k < count; k++) {
        regular[k] = is_regular(paths[k], &about[k]);
        for (size_t i = 0; regular[k] && i < k; i++) {
            if (!regular[i] || !are_same(paths[i], &about[i], paths[k], &about[k])) continue;
            if (strcmp(paths[i], paths[k]) == 0)
                say_note(options, "note: %s is given twice: %s", paths[k], why);
            else
                say_note(options, "note: %s and %s hold the same: %s", paths[i], paths[k], why);
            return;
        }
    }
}
