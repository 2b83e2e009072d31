/* Double arrays: against a search through all keys, and at their edges.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/text/trie.h"

static int32_t find(const trie *t, const char *text, size_t bytes)
{
    int32_t node = trie_walk(t, TRIE_ROOT, text, bytes);
    return node == TRIE_NO_NODE ? TRIE_NO_VALUE : t->nodes[node].value;
}

static int32_t search(const trie_key *keys, size_t count, const char *text, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].bytes == bytes && memcmp(keys[i].text, text, bytes) == 0) return keys[i].value;
    return TRIE_NO_VALUE;
}

/* Keys of few different bytes share most of their beginnings, keys of many have nodes of many children. */
TEST(test_random_keys)
{
    enum { KEYS = 600, LENGTH = 8, TEXTS = 20000 };
    static const unsigned alphabets[] = {1, 2, 5, 256};
    static char texts[KEYS][LENGTH];
    uint64_t random = 5;
    FOR_ROWS(a, alphabets) {
        trie_key keys[KEYS];
        size_t count = 0;
        for (size_t i = 0; i < KEYS; i++) {
            size_t bytes = 1 + random_next(&random) % LENGTH;
            for (size_t k = 0; k < bytes; k++) texts[i][k] = (char)(unsigned char)(random_next(&random) % alphabets[a]);
            if (search(keys, count, texts[i], bytes) == TRIE_NO_VALUE)
                keys[count++] = (trie_key){.text = texts[i], .bytes = bytes, .value = (int32_t)i};
        }
        FREED_BY(trie_free) trie t;
        assert_ok(trie_build(&t, keys, count, "test", NULL));
        for (size_t i = 0; i < count; i++) assert_int_equal(find(&t, keys[i].text, keys[i].bytes), keys[i].value);
        for (size_t i = 0; i < TEXTS; i++) {
            char text[LENGTH];
            size_t bytes = random_next(&random) % LENGTH, longest = 0;
            for (size_t k = 0; k < bytes; k++)
                text[k] = (char)(unsigned char)(random_next(&random) % (alphabets[a] + i % 2));
            for (size_t k = 1; k <= bytes; k++)
                if (search(keys, count, text, k) != TRIE_NO_VALUE) longest = k;
            assert_int_equal(find(&t, text, bytes), bytes ? search(keys, count, text, bytes) : TRIE_NO_VALUE);
            assert_int_equal(trie_longest(&t, text, bytes), longest);
        }
    }
}

/* A node that has all 256 children, and a key as long as a piece may be: depth costs no stack. */
TEST(test_wide_and_deep)
{
    enum { DEPTH = 1 << 16 };
    static char deep[DEPTH], bytes[256];
    static trie_key keys[258];
    FREED_BY(trie_free) trie t;
    for (size_t i = 0; i < 256; i++) {
        bytes[i] = (char)(unsigned char)i;
        keys[i] = (trie_key){.text = &bytes[i], .bytes = 1, .value = (int32_t)i};
    }
    memset(deep, 'x', DEPTH);
    keys[256] = (trie_key){.text = deep, .bytes = DEPTH, .value = 256};
    keys[257] = (trie_key){.text = deep, .bytes = DEPTH - 1, .value = 257};
    assert_ok(trie_build(&t, keys, 258, "test", NULL));
    for (size_t i = 0; i < 256; i++) assert_int_equal(find(&t, &bytes[i], 1), i);
    assert_int_equal(find(&t, deep, DEPTH), 256);
    assert_int_equal(find(&t, deep, DEPTH - 1), 257);
    assert_int_equal(find(&t, deep, DEPTH - 2), TRIE_NO_VALUE);
    assert_int_equal(trie_longest(&t, deep, DEPTH - 2), 1);
    assert_in_range(t.count, 256 + DEPTH, 256 + DEPTH + DEPTH / 8);
}

TEST(test_no_keys)
{
    FREED_BY(trie_free) trie t;
    assert_ok(trie_build(&t, NULL, 0, "test", NULL));
    for (unsigned byte = 0; byte < 256; byte++) assert_int_equal(trie_step(&t, TRIE_ROOT, (char)byte), TRIE_NO_NODE);
}

TEST(test_same_keys)
{
    trie_key keys[] = {{"ab", 2, 0}, {"abc", 3, 1}, {"ab", 2, 2}};
    deberta_error error = {0};
    FREED_BY(trie_free) trie t;
    assert_int_equal(trie_build(&t, keys, 3, "test", &error), DEBERTA_E_FORMAT);
    assert_string_equal(error.message, "test: piece 'ab' is already defined");
}
