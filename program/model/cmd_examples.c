/* `deberta examples` copies the files that the examples of --help name into a folder, so that they run from there.
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <example_files.h> /* of meson.build */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/io/quote.h"
#include "output/json_text.h"
#include "program/commands.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"

/* The list of ../../meson.build: files, and folders of files. */
static const char *const example_files[] = {EXAMPLE_FILES};
/* Those that examples name without a folder, as a reader's own. */
#define OWN_FILES "docs/examples/"
enum { FILE_COUNT = sizeof example_files / sizeof *example_files };

typedef struct copied_files {
    const common_options *options;
    size_t count;
    uint64_t bytes;
} copied_files;

static const char *joined(const common_options *options, const char *folder, const char *name)
{
    return options_text(options, "%s/%s", folder, name);
}

/* Where they are: of an installed program, of the one in a wheel, of one in the source's build folder, or where this
 * one was to be installed. */
static const char *find_folder(const common_options *options)
{
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : (size_t)length] = 0;
    char *slash = strrchr(program, '/');
    if (slash) *slash = 0;
    const char *const places[] = {joined(options, program, "../share/deberta"), joined(options, program, "share"),
                                  joined(options, program, ".."), EXAMPLES_FOLDER};
    for (size_t k = 0; k < sizeof places / sizeof *places; k++)
        if (access(joined(options, places[k], example_files[0]), R_OK | X_OK) == 0) return places[k];
    end_with(options, EXIT_SYSTEM, "the files of the examples are neither in %s nor beside the program, in %s",
             EXAMPLES_FOLDER, places[0]);
}

static _Noreturn void cannot(const copied_files *copied, const char *path, const char *what)
{
    end_with(copied->options, EXIT_SYSTEM, "%s: %s: %s", QUOTE(path), what, strerror(errno));
}

/* Makes the folders above a file. */
static void make_folders(const copied_files *copied, char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) cannot(copied, path, "this folder cannot be made");
        *slash = '/';
    }
}

static void copy_file(copied_files *copied, const char *from, const char *to, mode_t mode)
{
    char buffer[65536], *path = options_take(copied->options, strlen(to) + 1, 1);
    make_folders(copied, strcpy(path, to));
    FILE *in = fopen(from, "rb");
    if (!in) cannot(copied, from, "it cannot be read");
    FILE *out = fopen(to, "wbx");
    if (!out) cannot(copied, to, "it cannot be written");
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, in)) > 0) {
        if (fwrite(buffer, 1, got, out) != got) cannot(copied, to, "it cannot be written");
        copied->bytes += got;
    }
    if (mode & S_IXUSR) fchmod(fileno(out), mode & 0777);
    const bool is_whole = stream_close(in);
    if (!stream_close(out)) cannot(copied, to, "it cannot be written");
    if (!is_whole) cannot(copied, from, "it cannot be read");
    copied->count++;
}

/* A file, or all files of a folder. */
static void copy_entry(copied_files *copied, const char *from, const char *to)
{
    struct stat about;
    if (stat(from, &about) != 0) cannot(copied, from, "it is missing");
    if (S_ISREG(about.st_mode)) {
        copy_file(copied, from, to, about.st_mode);
        return;
    }
    DIR *entries = opendir(from);
    if (!entries) cannot(copied, from, "this folder cannot be read");
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        copy_entry(copied, joined(copied->options, from, entry->d_name), joined(copied->options, to, entry->d_name));
    }
    closedir(entries);
}

static void tell(const copied_files *copied, const char *folder)
{
    char size[32];
    result *r = result_new(NULL);
    format_bytes(size, (double)copied->bytes);
    result_set(r, "folder", json_clean_text(folder));
    result_set(r, "files", json_integer((json_int_t)copied->count));
    result_set(r, "bytes", json_integer((json_int_t)copied->bytes));
    result_say(r, "%zu files, %s: the examples of --help run in %s", copied->count, size, folder);
    finish_text_or_json(copied->options, r);
}

static int examples_run(const common_options *options)
{
    copied_files copied = {.options = options};
    const char *folder = options->arguments[0], *part = options_text(options, "%s.part", folder);
    struct stat about;
    if (!*folder) usage_wrong(options, "the name of the folder is empty");
    if (stat(folder, &about) == 0) end_with(options, EXIT_INPUT, "%s: exists; expected a new folder", QUOTE(folder));
    const char *source = find_folder(options);
    if (mkdir(part, 0777) != 0) cannot(&copied, part, "this folder cannot be made");
    unfinished_add_folder(part);
    for (size_t k = 0; k < FILE_COUNT; k++) {
        const char *own = strncmp(example_files[k], OWN_FILES, strlen(OWN_FILES)) == 0
                              ? example_files[k] + strlen(OWN_FILES)
                              : example_files[k];
        copy_entry(&copied, joined(options, source, example_files[k]), joined(options, part, own));
    }
    if (rename(part, folder) != 0) cannot(&copied, folder, "the folder cannot be named so");
    unfinished_release_folder();
    tell(&copied, folder);
    return EXIT_OK;
}

const command command_examples = {
    .name = "examples",
    .summary = "copy the small models and files that the examples of --help name into a new folder",
    .arguments = "DIR",
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE,
    .example = "  deberta examples tryout && cd tryout\n",
    .run = examples_run,
};
