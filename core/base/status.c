/* Formats error texts, copies options of any struct_size, and returns the library's version.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

deberta_status status_fail(deberta_error *err, deberta_status code, const char *format, ...)
{
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        err->code = code;
        vsnprintf(err->message, sizeof err->message, format, arguments);
        va_end(arguments);
    }
    return code;
}

const char *deberta_status_name(deberta_status status)
{
    switch (status) {
    case DEBERTA_OK: return "DEBERTA_OK";
    case DEBERTA_E_ARGUMENT: return "DEBERTA_E_ARGUMENT";
    case DEBERTA_E_FILE: return "DEBERTA_E_FILE";
    case DEBERTA_E_FORMAT: return "DEBERTA_E_FORMAT";
    case DEBERTA_E_UNSUPPORTED: return "DEBERTA_E_UNSUPPORTED";
    case DEBERTA_E_MEMORY: return "DEBERTA_E_MEMORY";
    case DEBERTA_E_SYSTEM: return "DEBERTA_E_SYSTEM";
    case DEBERTA_E_NOT_FINITE: return "DEBERTA_E_NOT_FINITE";
    default: return "unknown status";
    }
}

void deberta_free(void *memory) { free(memory); }

/* An upper bound for the size of public structs: a larger struct_size means that the caller never set it. */
enum { LARGEST_STRUCT_BYTES = 4096 };

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i]) return false;
    return true;
}

deberta_status copy_struct(void *to, const void *from, size_t size_bytes, const char *what, deberta_error *err)
{
    memset(to, 0, size_bytes);
    if (!from) return DEBERTA_OK;
    size_t given_bytes;
    memcpy(&given_bytes, from, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes || given_bytes > LARGEST_STRUCT_BYTES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: struct_size is %zu; set it to sizeof the struct", what, given_bytes);
    if (given_bytes > size_bytes && !is_zero((const unsigned char *)from + size_bytes, given_bytes - size_bytes))
        DEBERTA_FAIL(
            err, DEBERTA_E_ARGUMENT,
            "%s: something is set beyond the %zu bytes that version %s of the library knows; struct_size is %zu", what,
            size_bytes, deberta_version(), given_bytes);
    memcpy(to, from, given_bytes < size_bytes ? given_bytes : size_bytes);
    return DEBERTA_OK;
}

const char *deberta_version(void) { return DEBERTA_VERSION_TEXT; }

int deberta_version_number(void) { return DEBERTA_VERSION_NUMBER; }
