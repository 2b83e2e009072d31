/* The rows of a tokenizer.json without a tree against jansson's tree: given files, cut, damaged and drawn.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/numbers.h"
#include "tests/fuzz/vocabulary_paths.h"

enum { MOST_BYTES = 4096 };

static char path[64];
static int file = -1; /* in memory: there are tens of thousands of them */
static uint64_t seed, state;

/* DEBERTA_TEST_SEED in the environment repeats a draw. */
static int begin(void **unused)
{
    const char *given = getenv("DEBERTA_TEST_SEED");
    (void)unused;
    seed = state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# DEBERTA_TEST_SEED=%llu\n", (unsigned long long)seed);
    file = memfd_create("rows", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file < 0;
}

static int end(void **unused)
{
    (void)unused;
    return close(file);
}

/* Returns whether the rows were taken out. */
static bool check(const char *text, size_t bytes)
{
    bool taken;
    assert_int_equal(ftruncate(file, (off_t)bytes), 0);
    assert_int_equal(pwrite(file, text, bytes, 0), bytes);
    if (!vocabulary_paths_agree(path, &taken)) fail_msg("seed %llu: %.*s", (unsigned long long)seed, (int)bytes, text);
    return taken;
}

static const struct {
    const char *text;
    bool taken;
} given[] = {
    {"{\"x\":[\"model\",{\"vocab\":[1]}],\"model\":{\"type\":\"Unigram\",\"m\":{\"vocab\":[2]},\"vocab\":[[\"a\\u00e9"
     "\\ud83d\\ude00\\n\\\\\\\"\",-1.5e0],[\"\xE2\x96\x81"
     "b\" , -0 ],[\"/]\\/\",-0.0],[\"z]\",12],[\"\",0.1]],\"u\":"
     "\"]}\"},\"z\":null}",
     true},
    {"\xEF\xBB\xBF{\"vocab\":[[\"x\",1.5]],\"model\":{\"vocab\":[[\"a\",-12.4626],[\"b\",0.00000000000000001],"
     "[\"c\",-14.816852569580078],[\"d\",2.581925125997208470],[\"e\",-3.873909863167881662]\r\n\t ]}}",
     true},
    {"{\"model\":{\"vocab\":[[\"a\",9.99999999999999999],[\"b\",1.0000000000000000000000000000001],[\"c\",1e-400]]}}",
     true},
    {"{\"model\":{},\"more\":{\"vocab\":[[\"a\",1.5]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1.5]],\"vocab\":[[\"b\",2.5]]}}", false},
    {"{\"model\":{\"vocab\":{\"a\":1},\"type\":\"BPE\"}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1.5]]},\"mod\\u0065l\":{}}", false},
    {"{\"model\":{\"vocab\":[[\"\\ud800\",1]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1,2]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1e400]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",01.5]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1.]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\\u0000\",1]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\xFF\",1.5]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\tb\",1.5]]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1.5],]}}", false},
    {"{\"model\":{\"vocab\":[]}}", false},
    {"{\"model\":{\"vocab\":[[\"a\",1.5]]}} x", false},
    {"[{\"model\":{\"vocab\":[[\"a\",1.5]]}}]", false},
};
enum { GIVEN = sizeof given / sizeof *given };

TEST_BETWEEN(test_given, begin, end)
{
    for (size_t i = 0; i < GIVEN; i++) assert_int_equal(check(given[i].text, strlen(given[i].text)), given[i].taken);
}

TEST_BETWEEN(test_cut, begin, end)
{
    for (size_t i = 0; i < GIVEN; i++)
        for (size_t bytes = 1; bytes < strlen(given[i].text); bytes++) check(given[i].text, bytes);
}

static size_t draw_number(char *text, size_t room)
{
    const int places = (int)random_below(&state, 22);
    const double size = ldexp(random_fraction(&state) - 0.5, (int)random_below(&state, 40) - 20);
    switch (random_below(&state, 6)) {
    case 0: return (size_t)snprintf(text, room, "%d", (int)random_below(&state, 100) - 50);
    case 1: return (size_t)snprintf(text, room, "%.*e", places, size);
    case 2: return (size_t)snprintf(text, room, "%.*f", places, size); /* a whole number for no places */
    default: return (size_t)snprintf(text, room, "%.17g", (double)(float)size);
    }
}

static size_t draw_row(char *text, size_t room)
{
    static const char *const parts[] = {"a",
                                        "bc",
                                        " ",
                                        "]",
                                        "[",
                                        ",",
                                        "\\\"",
                                        "\\\\",
                                        "\\n",
                                        "\\u00e9",
                                        "\\ud83d\\ude00",
                                        "\xE2\x96\x81",
                                        "\xC3\xA9",
                                        "\xF0\x9F\x98\x80",
                                        "vocab",
                                        "}"};
    static const char *const blanks[] = {"", "", " ", "\n          ", "\r\n\t"};
    size_t bytes = (size_t)snprintf(text, room, "[%s\"", blanks[random_below(&state, 5)]);
    for (size_t n = random_below(&state, 6); n > 0; n--)
        bytes += (size_t)snprintf(text + bytes, room - bytes, "%s",
                                  parts[random_below(&state, sizeof parts / sizeof *parts)]);
    bytes += (size_t)snprintf(text + bytes, room - bytes, "\"%s,%s", blanks[random_below(&state, 5)],
                              blanks[random_below(&state, 5)]);
    bytes += draw_number(text + bytes, room - bytes);
    return bytes + (size_t)snprintf(text + bytes, room - bytes, "%s]", blanks[random_below(&state, 5)]);
}

static size_t draw_file(char text[MOST_BYTES])
{
    size_t bytes = (size_t)snprintf(text, MOST_BYTES, "{\"version\": \"1.0\", \"model\": {\"vocab\": [");
    const size_t rows = 1 + random_below(&state, 8);
    for (size_t row = 0; row < rows; row++) {
        if (row > 0) text[bytes++] = ',';
        bytes += draw_row(text + bytes, MOST_BYTES - bytes);
    }
    return bytes + (size_t)snprintf(text + bytes, MOST_BYTES - bytes, "], \"unk_id\": 0}}");
}

/* All of them are valid, so that the rows of each are taken out, whatever its numbers and texts are. */
TEST_BETWEEN(test_drawn, begin, end)
{
    char text[MOST_BYTES];
    for (int k = 0; k < 4000; k++) {
        const size_t bytes = draw_file(text);
        assert_true(check(text, bytes));
    }
}

static size_t copy_given(char text[MOST_BYTES])
{
    const char *from = given[random_below(&state, GIVEN)].text;
    memcpy(text, from, strlen(from));
    return strlen(from);
}

TEST_BETWEEN(test_damaged, begin, end)
{
    static const char marks[] = "\"\\[]{},:0-.eu \n\x01\xFFvd";
    char text[MOST_BYTES];
    size_t taken = 0;
    for (int k = 0; k < 12000; k++) {
        const size_t bytes = k % 2 ? draw_file(text) : copy_given(text);
        for (size_t n = 1 + random_below(&state, 3); n > 0; n--)
            text[random_below(&state, bytes)] = marks[random_below(&state, sizeof marks - 1)];
        taken += check(text, bytes);
    }
    assert_true(taken > 100); /* of 600 or so */
}
