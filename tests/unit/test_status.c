/* What every call of the library shares: the version, the structs of callers of other versions, names of codes.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "core/base/status.h"

/* The header's macros, the build system's text and what the library says at run time are one version. */
TEST(one_version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", DEBERTA_VERSION_MAJOR, DEBERTA_VERSION_MINOR, DEBERTA_VERSION_PATCH);
    assert_string_equal(text, DEBERTA_VERSION_TEXT);
    assert_string_equal(text, deberta_version());
    assert_int_equal(deberta_version_number(), DEBERTA_VERSION_NUMBER);
    int major, minor, patch;
    assert_int_equal(sscanf(deberta_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(deberta_version_number(), (major * 100 + minor) * 100 + patch);
#if DEBERTA_VERSION_NUMBER < 100
    fail_msg("the number cannot be compared by the preprocessor");
#endif
}

typedef struct known {
    size_t struct_size;
    int first, second;
} known;

/* What a program sees that was compiled with a later header. */
typedef struct later {
    known known;
    int third;
    unsigned char rest[5000];
} later;

TEST(earlier_structs_are_filled_up)
{
    const known given = {.struct_size = offsetof(known, second), .first = 7, .second = 8};
    known found = {.first = 1, .second = 1};
    assert_ok(copy_struct(&found, &given, sizeof found, "known", NULL));
    assert_int_equal(found.first, 7);
    assert_int_equal(found.second, 0);
    assert_ok(copy_struct(&found, NULL, sizeof found, "known", NULL));
    assert_int_equal(found.first, 0);
}

TEST(later_structs_must_not_ask_for_more)
{
    static later given;
    known found;
    deberta_error error = {0};
    given = (later){.known = {.struct_size = offsetof(later, rest), .first = 7, .second = 8}};
    assert_ok(copy_struct(&found, &given, sizeof found, "known", &error));
    assert_int_equal(found.second, 8);

    given.third = 1;
    assert_int_equal(copy_struct(&found, &given, sizeof found, "known", &error), DEBERTA_E_ARGUMENT);
    char expected[64];
    snprintf(expected, sizeof expected, "known: something is set beyond the %zu bytes", sizeof(known));
    assert_non_null(strstr(error.message, expected));
    assert_non_null(strstr(error.message, deberta_version()));

    given.third = 0;
    given.known.struct_size = 4096;
    assert_ok(copy_struct(&found, &given, sizeof found, "known", NULL));
    given.rest[4095 - offsetof(later, rest)] = 1; /* the last byte that struct_size covers */
    assert_int_equal(copy_struct(&found, &given, sizeof found, "known", NULL), DEBERTA_E_ARGUMENT);
    given.known.struct_size = 4095;
    assert_ok(copy_struct(&found, &given, sizeof found, "known", NULL));
}

/* A size that nobody can have meant is found before anything behind the struct is looked at. */
TEST(sizes_that_were_never_set)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 4097, 1000000000000000, SIZE_MAX};
    FOR_ROWS(i, sizes) {
        known given = {.struct_size = sizes[i]}, found;
        deberta_error error = {0};
        assert_int_equal(copy_struct(&found, &given, sizeof found, "known", &error), DEBERTA_E_ARGUMENT);
        char expected[64];
        snprintf(expected, sizeof expected, "known: struct_size is %zu; set it", sizes[i]);
        assert_non_null(strstr(error.message, expected));
    }
}

TEST(codes_have_names)
{
    assert_string_equal(deberta_status_name(DEBERTA_OK), "DEBERTA_OK");
    assert_string_equal(deberta_status_name(DEBERTA_E_ARGUMENT), "DEBERTA_E_ARGUMENT");
    assert_string_equal(deberta_status_name(DEBERTA_E_SYSTEM), "DEBERTA_E_SYSTEM");
    assert_string_equal(deberta_status_name(DEBERTA_E_NOT_FINITE - 1), "unknown status");
    assert_string_equal(deberta_status_name(1), "unknown status");
    for (deberta_status a = DEBERTA_E_NOT_FINITE; a <= DEBERTA_OK; a++)
        for (deberta_status b = DEBERTA_E_NOT_FINITE; b < a; b++)
            assert_string_not_equal(deberta_status_name(a), deberta_status_name(b));
}

TEST(components_have_names)
{
    assert_string_equal(deberta_component_name(DEBERTA_C2C), "c2c");
    assert_string_equal(deberta_component_name(DEBERTA_PROBABILITIES), "probs");
    assert_string_equal(deberta_component_name(DEBERTA_COMPONENT_COUNT), "unknown");
    deberta_free(NULL);
}
