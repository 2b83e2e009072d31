/* Every golden line of every tokenizer, every damaged folder, and what a text can be made of.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/tokenizer_golden.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text/utf8.h"

/* ----------------------------------------------------------------------------------------------- golden lines */

typedef struct golden_run {
    const tokenizer *tokenizer;
    const char *name;
    token_list list;
    size_t wrong, literal;
} golden_run;

static void check_row(json_t *row, size_t line, void *context)
{
    golden_run *run = context;
    encode_row(run->tokenizer, row, NULL, &run->list);
    const char *difference = first_difference(row, &run->list);
    if (difference) {
        print_error("%s: line %zu: %s differ\n", run->name, line, difference);
        run->wrong++;
    }
}

static size_t check_golden(const char *name, const char *folder)
{
    tokenizer *t = open_folder(folder);
    golden_run run = {.tokenizer = t, .name = name};
    size_t lines = for_each_golden(name, check_row, &run);
    token_list_free(&run.list);
    tokenizer_free(&t);
    assert_int_equal(run.wrong, 0);
    return lines;
}

static void test_golden(void **state)
{
    static const struct {
        const char *name;
        size_t lines;
    } cases[] = {{"spm-unigram", 306}, {"spm-bytefallback", 152}, {"spm-bpe", 152}, {"spm-flags", 112}, {"bpe-v1", 306}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[TEST_PATH_BYTES];
        assert_int_equal(check_golden(cases[i].name, golden_path(path, cases[i].name)), cases[i].lines);
    }
}

/* A folder under the system's temporary one that holds links to some files of a golden folder. */
static const char *linked_folder(char folder[TEST_PATH_BYTES], const char *name, const char *const *files)
{
    const char *temporary = getenv("TMPDIR");
    assert_non_null(mkdtemp((char *)format_path(folder, "%s/deberta-text-XXXXXX", temporary ? temporary : "/tmp")));
    for (; *files; files++) {
        char file[TEST_PATH_BYTES], from[TEST_PATH_BYTES], to[TEST_PATH_BYTES];
        char *absolute = realpath(golden_path(from, format_path(file, "%s/%s", name, *files)), NULL);
        assert_non_null(absolute);
        assert_int_equal(symlink(absolute, format_path(to, "%s/%s", folder, *files)), 0);
        free(absolute);
    }
    return folder;
}

static void put_file(const char *folder, const char *name, const void *content, size_t bytes)
{
    char path[TEST_PATH_BYTES];
    FILE *file = fopen(format_path(path, "%s/%s", folder, name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void remove_folder(const char *folder)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        char path[TEST_PATH_BYTES];
        if (*entry->d_name != '.') unlink(format_path(path, "%s/%s", folder, entry->d_name));
    }
    closedir(list);
    assert_int_equal(rmdir(folder), 0);
}

/* The same lines from other files of the same tokenizer. */
static void test_golden_from_other_files(void **state)
{
    static const struct {
        const char *name, *files[5], *file_name;
        size_t lines;
    } cases[] = {
        {"spm-unigram", {"spm.model"}, "spm.model", 306},
        {"spm-unigram", {"spm.model", "added_tokens.json"}, "spm.model", 306},
        {"spm-unigram", {"tokenizer.json"}, "tokenizer.json", 306},
        {"spm-unigram", {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}, "tokenizer.json", 306},
        {"bpe-v1", {"tokenizer.json"}, "tokenizer.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt"}, "vocab.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt", "special_tokens_map.json"}, "vocab.json", 306},
        {"bpe-v1", {"vocab.json", "merges.txt", "tokenizer_config.json"}, "vocab.json", 306},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[TEST_PATH_BYTES];
        linked_folder(folder, cases[i].name, cases[i].files);
        tokenizer *t = open_folder(folder);
        assert_string_equal(tokenizer_file_name(t), cases[i].file_name);
        tokenizer_free(&t);
        assert_int_equal(check_golden(cases[i].name, folder), cases[i].lines);
        remove_folder(folder);
    }
}

/* "raw_sp_ids": special tokens not found, no frame, one list for each segment. */
static void check_literal_row(json_t *row, size_t line, void *context)
{
    golden_run *run = context;
    const json_t *raw = json_object_get(row, "raw_sp_ids");
    if (!raw) return;
    encode_row(run->tokenizer, row, &(tokenizer_options){.literal_specials = true}, &run->list);
    bool same = true;
    size_t at = 1;
    for (size_t segment = 0; segment < json_array_size(raw); segment++, at++)
        for (size_t i = 0; i < json_array_size(json_array_get(raw, segment)); i++, at++)
            same = same && at < run->list.count &&
                   json_integer_value(json_array_get(json_array_get(raw, segment), i)) == run->list.ids[at];
    if (!same || at != run->list.count) print_error("%s: line %zu: raw ids differ\n", run->name, line);
    run->wrong += !same || at != run->list.count;
    run->literal++;
}

static void test_literal_specials(void **state)
{
    static const char *const names[] = {"spm-unigram", "spm-bytefallback", "spm-bpe", "spm-flags"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tokenizer *t = open_golden(names[i]);
        golden_run run = {.tokenizer = t, .name = names[i]};
        for_each_golden(names[i], check_literal_row, &run);
        assert_int_equal(run.wrong, 0);
        assert_true(run.literal >= 10);
        token_list_free(&run.list);
        tokenizer_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_golden_from_other_files),
        cmocka_unit_test(test_literal_specials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
