/* Saving figures: several formats at once, provenance in each, the same bytes twice, and no half file whatever goes
 * wrong.
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"
#include "tests/unit/pdf_reader.h"
#include "tests/unit/png_reader.h"
#include "viz/attention_figure.h"
#include "viz/chart.h"

static char *folder;

static int make_place(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static size_t files_in_folder(void)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(directory);
    return count;
}

static int remove_place(void **state)
{
    (void)state;
    remove_folder(&folder);
    return 0;
}

static const char *in_folder(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static const float values[] = {0.1f, 0.2f, 0.7f, 0.5f, 0.25f, 0.25f};
static const attention_panel panel = {values, 3, "probabilities", HEATMAP_POSITIVE};
static const figure_label tokens[] = {{"<&>", false}, {"\xE6\xBC\xA2", false}, {"[SEP]", true}};
static const provenance_entry provenance[] = {{"model", "demo 1234"}, {"text", "a<b\ttab\xFF"}};

static attention_figure sample(void)
{
    return (attention_figure){
        .style = {.width_mm = 60, .title = "Title", .provenance = provenance, .provenance_count = 2},
        .panels = &panel,
        .grid_rows = 1,
        .grid_columns = 1,
        .queries = 2,
        .keys = 3,
        .query_labels = tokens,
        .key_labels = tokens};
}

TEST_BETWEEN(all_formats_with_provenance_and_the_same_bytes_twice, make_place, remove_place)
{
    static const char *const names[2][3] = {{"a.png", "a.svg", "a.PDF"}, {"b.png", "b.svg", "b.pdf"}};
    char paths[2][3][128];
    attention_figure spec = sample();
    for (size_t k = 0; k < 2; k++) {
        const char *pointers[3];
        for (size_t i = 0; i < 3; i++) pointers[i] = in_folder(names[k][i], paths[k][i]);
        deberta_error err;
        figure_notes notes;
        if (figure_attention(&spec, pointers, 3, &notes, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    }
    assert_int_equal(files_in_folder(), 6);
    for (size_t i = 0; i < 3; i++) {
        FREED_BY(buffer_free) buffer a = read_whole(paths[0][i]), b = read_whole(paths[1][i]);
        assert_int_equal(a.count, b.count);
        assert_memory_equal(a.bytes, b.bytes, a.count);
        put_byte(&a, 0);
        const char *svg = (const char *)a.bytes;
        if (i == 0) {
            FREED_BY(png_content_free) png_content png;
            assert_ok(png_decode(a.bytes, b.count, &png, NULL));
            assert_int_equal(png.columns, 709); /* 60 mm at 300 dpi */
            assert_true(fabs(png.dpi - 300) < 0.02);
            assert_int_equal(png.entry_count, 2);
            assert_string_equal(png.values[0], "demo 1234");
            assert_string_equal(png.values[1], "a<b\xE2\x90\x89tab\xEF\xBF\xBD");
        } else if (i == 1) {
            assert_non_null(strstr(svg, "<entry key=\"model\">demo 1234</entry>"));
            assert_non_null(strstr(svg, ">&lt;&amp;&gt;</text>"));
            assert_non_null(strstr(svg, ">\xE6\xBC\xA2</text>"));
            assert_non_null(strstr(svg, "<title>Title</title>"));
        } else {
            FREED_BY(free_memory) char *about = pdf_report("pdfinfo", a.bytes, b.count);
            if (!about) fail_msg("pdfinfo is needed (Debian: poppler-utils)");
            assert_non_null(strstr(about, "Title:           Title\n"));
            assert_non_null(strstr(about, "Subject:         model: demo 1234; "));
            assert_null(strstr(about, "Date:"));
        }
    }
    struct stat info; /* an ordinary file, as the umask has it */
    assert_int_equal(stat(paths[0][0], &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

/* Everything that must fail: nothing new in the folder, and an old file keeps its content. */
TEST_BETWEEN(failures_leave_no_file, make_place, remove_place)
{
    char good[128], other[128], directory[128];
    in_folder("old.png", good);
    write_text(folder, "old.png", "old");
    in_folder("folder.png", directory);
    assert_int_equal(mkdir(directory, 0777), 0);
    size_t before = files_in_folder();
    static const struct {
        const char *name;
        deberta_status status;
        const char *says;
    } cases[] = {{"x.gif", DEBERTA_E_ARGUMENT, ".gif"},     {"x", DEBERTA_E_ARGUMENT, "no suffix"},
                 {"png", DEBERTA_E_ARGUMENT, "no suffix"},  {"x.png.", DEBERTA_E_ARGUMENT, "suffix"},
                 {"old.png", DEBERTA_E_ARGUMENT, "twice"},  {"missing/x.pdf", DEBERTA_E_SYSTEM, "No such file"},
                 {"folder.png", DEBERTA_E_SYSTEM, "folder"}};
    FOR_ROWS(i, cases) {
        const char *paths[] = {good, in_folder(cases[i].name, other)};
        deberta_error err = {0};
        attention_figure spec = sample();
        assert_int_equal(figure_attention(&spec, paths, 2, NULL, &err), cases[i].status);
        assert_non_null(strstr(err.message, cases[i].says));
        assert_non_null(strstr(err.message, cases[i].name));
        assert_int_equal(files_in_folder(), before);
    }
    FREED_BY(buffer_free) buffer content = read_whole(good);
    assert_int_equal(content.count, 3);
    assert_memory_equal(content.bytes, "old", 3);
    attention_figure spec = sample();
    assert_int_equal(figure_attention(&spec, NULL, 0, NULL, NULL), DEBERTA_E_ARGUMENT);
    rmdir(directory);
}

TEST_BETWEEN(a_full_disk_is_reported, make_place, remove_place)
{
    char path[128];
    in_folder("full.svg", path);
    if (access("/dev/full", W_OK) != 0 || symlink("/dev/full", path) != 0) skip();
    const char *paths[] = {path};
    deberta_error err = {0};
    attention_figure spec = sample();
    check_refused(figure_attention(&spec, paths, 1, NULL, &err), &err, DEBERTA_E_SYSTEM, "No space left");
    struct stat info; /* the device is still one */
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

TEST_BETWEEN(too_large_a_picture_is_refused, make_place, remove_place)
{
    char path[128];
    const char *paths[] = {in_folder("huge.png", path)};
    deberta_error err = {0};
    const double heights[] = {1, 2};
    const chart_series series = {.kind = CHART_BARS, .y = heights, .count = 2};
    const chart_panel panel = {.series = &series, .series_count = 1};
    const chart_figure spec = {.style = {.width_mm = 1000, .dpi = 2400}, .panels = &panel, .panel_count = 1};
    check_refused(figure_chart(&spec, paths, 1, NULL, &err), &err, DEBERTA_E_ARGUMENT, "32767");
}

TEST(letters)
{
    static const struct {
        size_t index;
        const char *text;
    } cases[] = {{0, "a"}, {25, "z"}, {26, "aa"}, {27, "ab"}, {26 + 26 * 26 - 1, "zz"}, {26 + 26 * 26, "aaa"}};
    FOR_ROWS(i, cases) {
        char text[8];
        figure_letter(cases[i].index, text);
        assert_string_equal(text, cases[i].text);
    }
}
