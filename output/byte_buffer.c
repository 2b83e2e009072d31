/* Appends bytes to an array that grows, and formats numbers and texts on the way.
 *
 * SPDX-License-Identifier: MIT */
#include "output/byte_buffer.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/scope.h"

void byte_buffer_free(byte_buffer *buffer)
{
    free(buffer->data);
    *buffer = (byte_buffer){0};
}

void byte_buffer_append(byte_buffer *buffer, const void *data, size_t size_bytes)
{
    size_t needed;
    if (size_bytes == 0) return;
    if (__builtin_add_overflow(buffer->size_bytes, size_bytes, &needed)) memory_short();
    buffer->data = memory_grown(buffer->data, &buffer->capacity_bytes, needed, 1);
    memcpy(buffer->data + buffer->size_bytes, data, size_bytes);
    buffer->size_bytes = needed;
}

void byte_buffer_text(byte_buffer *buffer, const char *text) { byte_buffer_append(buffer, text, strlen(text)); }

/* Formats into an array on the stack first, as nearly all texts fit. Only longer ones need an allocation. */
void byte_buffer_format(byte_buffer *buffer, const char *format, ...)
{
    char text[1024], *longer = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const bool fits = length >= 0 && (size_t)length < sizeof text;
    if (!fits) {
        va_start(arguments, format);
        length = vasprintf(&longer, format, arguments);
        va_end(arguments);
    }
    if (length < 0) memory_short();
    byte_buffer_append(buffer, fits ? text : longer, (size_t)length);
    free(longer);
}

void byte_buffer_number(byte_buffer *buffer, double value, int decimals)
{
    static const long long powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    assert(decimals >= 0 && decimals <= 6);
    /* Coordinates outside +-1e9 mm or NaN have no place on paper; a finite number keeps the file well-formed. */
    if (!(fabs(value) < 1e9)) value = 0;
    long long scaled = llround(value * (double)powers[decimals]), whole = llabs(scaled) / powers[decimals];
    long long rest = llabs(scaled) % powers[decimals];
    while (decimals > 0 && rest % 10 == 0) {
        rest /= 10;
        decimals--;
    }
    byte_buffer_format(buffer, "%s%lld", scaled < 0 ? "-" : "", whole);
    if (decimals > 0) byte_buffer_format(buffer, ".%0*lld", decimals, rest);
}

void byte_buffer_base64(byte_buffer *buffer, const unsigned char *data, size_t size_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size_bytes; i += 3) {
        size_t have = size_bytes - i < 3 ? size_bytes - i : 3;
        unsigned group =
            (unsigned)data[i] << 16 | (have > 1 ? (unsigned)data[i + 1] << 8 : 0) | (have > 2 ? data[i + 2] : 0u);
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63], digits[group & 63]};
        if (have < 3) text[3] = '=';
        if (have < 2) text[2] = '=';
        byte_buffer_append(buffer, text, 4);
    }
}
