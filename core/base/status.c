/* SPDX-License-Identifier: MIT */
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
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

deberta_status copy_struct(void *to, const void *from, size_t size_bytes, const char *what, deberta_error *err)
{
    memset(to, 0, size_bytes);
    if (!from) return DEBERTA_OK;
    size_t given_bytes;
    memcpy(&given_bytes, from, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: struct_size is %zu; set it to sizeof the struct", what, given_bytes);
    }
    memcpy(to, from, given_bytes < size_bytes ? given_bytes : size_bytes);
    return DEBERTA_OK;
}
