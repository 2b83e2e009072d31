/* SPDX-License-Identifier: MIT */
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>

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
