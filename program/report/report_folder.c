/* Manages a report's folder: it holds only a report, and nothing of an earlier one. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/io/mapped_file.h"
#include "program/report/explorer_parts.h"
#include "program/report/report_folder.h"

/* Returns true for "text12.png" with the word "text" and the suffix ".png". */
static bool is_numbered(const char *name, const char *word, const char *suffix)
{
    const size_t length = strlen(word), digits = strspn(name + minimum(length, strlen(name)), "0123456789");
    return strncmp(name, word, length) == 0 && digits > 0 && strcmp(name + length + digits, suffix) == 0;
}

/* Returns true if a report makes a file of this name, besides the page and commands.sh, which every report writes. */
static bool is_of_report(const char *name)
{
    static const char *const of_texts[] = {".safetensors", ".png", ".pdf"}, *const of_documents[] = {".json", ".png"};
    for (size_t k = 0; k < sizeof of_texts / sizeof *of_texts; k++)
        if (is_numbered(name, "text", of_texts[k])) return true;
    for (int k = 0; k < 2 * DOCUMENT_COUNT; k++) {
        const char *document = explorer_document_name((explorer_document)(k / 2));
        const size_t length = strlen(document);
        if (strncmp(name, document, length) == 0 && strcmp(name + length, of_documents[k % 2]) == 0) return true;
    }
    return is_numbered(name, "attribution", ".json");
}

/* Returns commands.sh, or NULL if the folder has none or that of something else. */
static const char *read_commands(const common_options *options, const char *folder)
{
    mapped_file file = {0};
    const char *text = NULL;
    if (mapped_file_open(&file, options_text(options, "%s/commands.sh", folder), NULL) == DEBERTA_OK)
        text = options_text(options, "%.*s", (int)file.size_bytes, (const char *)file.bytes);
    mapped_file_close(&file);
    return text && strncmp(text, REPORT_COMMANDS_HEAD, strlen(REPORT_COMMANDS_HEAD)) == 0 ? text : NULL;
}

const char *report_folder_check(const common_options *options, const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) return NULL; /* it will be made, or making it fails with a reason */
    const char *other = NULL, *commands = read_commands(options, folder);
    for (const struct dirent *entry; !other && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            other = options_text(options, "%s", entry->d_name);
    closedir(directory);
    if (other && !commands)
        end_with(options, EXIT_SYSTEM, "%s is not empty, it holds %s; expected a new folder, or that of a report",
                 folder, other);
    return commands;
}

void report_folder_clean(const common_options *options, const char *folder, const char *earlier)
{
    const char *now = read_commands(options, folder);
    DIR *directory = earlier ? opendir(folder) : NULL;
    if (!directory) return;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const char *name = options_text(options, "/%s", entry->d_name);
        if (is_of_report(entry->d_name) && strstr(earlier, name) && !(now && strstr(now, name)))
            remove(options_text(options, "%s%s", folder, name));
    }
    closedir(directory);
}
