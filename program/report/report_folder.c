/* Manages a report's folder: it holds only a report, and nothing of an earlier one. SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "program/report/explorer_parts.h"
#include "program/report/report_folder.h"

/* Returns true for "text12.png" with the word "text", or "verify.json" with the word "verify". */
static bool is_named(const char *name, const char *word, bool numbered)
{
    const size_t length = strlen(word);
    if (strncmp(name, word, length) != 0) return false;
    name += length;
    if (numbered && !isdigit((unsigned char)*name)) return false;
    while (numbered && isdigit((unsigned char)*name)) name++;
    return *name == '.' && !strchr(name + 1, '.');
}

/* Returns true if a report makes files of this name. */
static bool is_of_report(const char *name)
{
    if (is_named(name, "index", false) || is_named(name, "commands", false) || is_named(name, "text", true) ||
        is_named(name, "attribution", true))
        return true;
    for (int k = 0; k < DOCUMENT_COUNT; k++)
        if (is_named(name, explorer_document_name((explorer_document)k), false)) return true;
    return false;
}

static bool holds_report(const common_options *options, const char *folder)
{
    char line[sizeof REPORT_COMMANDS_HEAD];
    FILE *file = fopen(options_text(options, "%s/commands.sh", folder), "r");
    if (!file) return false;
    const size_t count = fread(line, 1, sizeof line - 1, file);
    line[count] = '\0';
    return stream_close(file) && strcmp(line, REPORT_COMMANDS_HEAD) == 0;
}

void report_folder_check(const common_options *options, const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) return; /* it will be made, or making it fails with a reason */
    const char *other = NULL;
    for (const struct dirent *entry; !other && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            other = options_text(options, "%s", entry->d_name);
    closedir(directory);
    if (other && !holds_report(options, folder))
        end_with(options, EXIT_SYSTEM, "%s is not empty, it holds %s; expected a new folder, or that of a report",
                 folder, other);
}

void report_folder_clean(const common_options *options, const char *folder, const struct timespec *begin)
{
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        struct stat about;
        const char *path = options_text(options, "%s/%s", folder, entry->d_name);
        if (!is_of_report(entry->d_name) || stat(path, &about) != 0) continue;
        if (about.st_mtim.tv_sec < begin->tv_sec ||
            (about.st_mtim.tv_sec == begin->tv_sec && about.st_mtim.tv_nsec < begin->tv_nsec))
            remove(path);
    }
    closedir(directory);
}
