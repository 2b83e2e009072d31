/* SHA-256: the standard's examples, in plain C and, where the processor has them, by its instructions, which must
 * agree. SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/cpu.h"
#include "core/base/sha256.h"

static void check_examples(unsigned features)
{
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    FOR_ROWS(i, cases) {
        char digest[65];
        sha256 hash;
        sha256_begin(&hash, features);
        sha256_add(&hash, cases[i].text, strlen(cases[i].text));
        sha256_finish(&hash, digest);
        assert_string_equal(digest, cases[i].digest);
    }
}

TEST(test_examples_in_plain_c) { check_examples(0); }

TEST(test_examples_by_instructions)
{
    if (!(cpu_features() & CPU_SHA256)) skip();
    check_examples(CPU_SHA256);
}

/* Every split of a text of several blocks: pieces that begin and end inside a block, and runs of whole ones. */
TEST(test_pieces_and_ways_agree)
{
    const unsigned ways[] = {0, cpu_features() & CPU_SHA256};
    uint8_t text[300];
    char whole[65] = "", digest[65];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)(i * 7);
    for (size_t way = 0; way < 2; way++)
        for (size_t split = 0; split <= sizeof text; split++) {
            sha256 hash;
            sha256_begin(&hash, ways[way]);
            sha256_add(&hash, text, split);
            sha256_add(&hash, text + split, sizeof text - split);
            sha256_finish(&hash, digest);
            if (!*whole) strcpy(whole, digest);
            assert_string_equal(digest, whole);
        }
    assert_string_equal(whole, "9a76b8af8f16f19d60de2b3999c22f9d10be4395c90ea3bfc5eb6cd6254243af");
}
