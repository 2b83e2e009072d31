/* Wraps PCRE2: compiles a pattern and finds its next match. The handles are PCRE2's own under another name.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

deberta_status regex_compile(regex **re, const char *pattern, deberta_error *err)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &at, NULL);
    *re = (regex *)code;
    if (!code) {
        PCRE2_UCHAR text[120];
        pcre2_get_error_message(error, text, sizeof text);
        DEBERTA_FAIL(err, error == PCRE2_ERROR_NOMEMORY ? DEBERTA_E_MEMORY : DEBERTA_E_SYSTEM,
                     "PCRE2 refuses a built-in pattern at byte %zu: %s", (size_t)at, (const char *)text);
    }
    /* Without a just-in-time compiler, matching interprets the pattern: slower, same result. */
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return DEBERTA_OK;
}

void regex_free(regex **re)
{
    pcre2_code_free((pcre2_code *)*re);
    *re = NULL;
}

deberta_status regex_find(const regex *re, regex_match **match, const char *text, size_t bytes, size_t from,
                          bool *found, size_t *begin, size_t *end, deberta_error *err)
{
    if (!*match) *match = (regex_match *)pcre2_match_data_create(1, NULL);
    if (!*match) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to match a pattern");
    pcre2_match_data *data = (pcre2_match_data *)*match;

    /* Without NO_UTF_CHECK every call would check the whole rest of the text, in quadratic time. */
    int outcome = pcre2_match((const pcre2_code *)re, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK, data, NULL);
    *found = outcome > 0;
    if (*found) {
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);
        *begin = span[0];
        *end = span[1];
    }
    if (outcome > 0 || outcome == PCRE2_ERROR_NOMATCH) return DEBERTA_OK;
    PCRE2_UCHAR message[120];
    pcre2_get_error_message(outcome, message, sizeof message);
    DEBERTA_FAIL(err, outcome == PCRE2_ERROR_NOMEMORY ? DEBERTA_E_MEMORY : DEBERTA_E_SYSTEM,
                 "PCRE2 fails at byte %zu of a text: %s", from, (const char *)message);
}

void regex_match_free(regex_match **match)
{
    pcre2_match_data_free((pcre2_match_data *)*match);
    *match = NULL;
}
