/* Chooses ticks at steps of 1, 2 or 5 times a power of ten. Ticks are multiples of the step instead of divisions of
 * the range, so neighbouring figures share them.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/ticks.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MINUS "\xE2\x88\x92"

/* Returns the multiples of a step in a range; a tolerance keeps an end that is a multiple but for rounding. */
static tick_set multiples(double low, double high, double step)
{
    tick_set ticks = {.step = step};
    double slack = 1e-9 * (high - low) / step;
    for (double k = ceil(low / step - slack); k <= floor(high / step + slack) && ticks.count < TICKS_MAX; k++)
        ticks.at[ticks.count++] = k * step + 0.0; /* + 0.0 removes a negative zero */
    return ticks;
}

/* Returns every second, third ... tick, with the first and the last among them, so that at most `most` are left. */
static tick_set every_nth(const tick_set *all, size_t most)
{
    size_t stride = 1;
    while ((all->count - 1) % stride != 0 || (all->count - 1) / stride + 1 > most) stride++;
    tick_set ticks = {.step = all->step};
    for (size_t i = 0; i < all->count; i += stride) ticks.at[ticks.count++] = all->at[i];
    return ticks;
}

/* Tries steps upwards from a fine one: 1, 2, 5, 10 ... until there are no more than `most` ticks. Where fewer than
 * `least` are left, some ticks of the step before are taken: one number alone shows no scale. */
static tick_set linear_from(double low, double high, size_t most, size_t least, double step)
{
    static const double factors[] = {2, 2.5, 2}; /* from 1 to 2, 5, 10 */
    assert(low < high && most >= 2);
    if (most > TICKS_MAX) most = TICKS_MAX;
    double before = 0;
    for (size_t i = 0; (high - low) / step >= (double)most; i++) {
        before = step;
        step *= factors[i % 3];
    }
    const tick_set ticks = multiples(low, high, step);
    if (ticks.count >= least || before <= 0) return ticks;
    const tick_set finer = multiples(low, high, before);
    return finer.count >= least ? every_nth(&finer, most) : ticks;
}

static double fine_step(double low, double high, size_t most)
{
    return pow(10, floor(log10((high - low) / (double)most)));
}

tick_set ticks_linear(double low, double high, size_t most)
{
    return linear_from(low, high, most, 2, fine_step(low, high, most));
}

tick_set ticks_whole(double low, double high, size_t most)
{
    return linear_from(low, high, most, 2, fmax(1, fine_step(low, high, most)));
}

tick_set ticks_between(double low, double high, size_t most)
{
    return linear_from(low, high, most, 0, fine_step(low, high, most));
}

/* Returns the values digit * 10^k of a range. */
static tick_set digits_of_decades(double low, double high, const double *digits, size_t count)
{
    tick_set ticks = {0};
    for (double k = floor(log10(low)); k <= ceil(log10(high)); k++)
        for (size_t i = 0; i < count && ticks.count < TICKS_MAX; i++) {
            const double value = digits[i] * pow(10, k);
            if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.at[ticks.count++] = value;
        }
    return ticks;
}

/* Returns powers of the base, or every second, third ... of them. */
static tick_set powers(double low, double high, double base, size_t most)
{
    const double first = ceil(log(low) / log(base) - 1e-9), last = floor(log(high) / log(base) + 1e-9);
    const double stride = ceil((last - first + 1) / (double)most);
    tick_set ticks = {0};
    for (double k = first; k <= last && ticks.count < TICKS_MAX; k += stride) ticks.at[ticks.count++] = pow(base, k);
    return ticks;
}

tick_set ticks_log(double low, double high, double base, size_t most)
{
    static const double digits[] = {1, 2, 5}, thirds[] = {1, 3};
    assert(0 < low && low < high && most >= 2);
    if (most > TICKS_MAX) most = TICKS_MAX;
    /* a shorter range gets linear ticks */
    const bool decades = base == 10 && high / low >= 8 && 3 * log10(high / low) < TICKS_MAX;
    tick_set ticks = decades ? digits_of_decades(low, high, digits, 3) : (tick_set){0};
    if (ticks.count >= 2 && ticks.count <= most) return ticks;
    if (decades) ticks = digits_of_decades(low, high, thirds, 2);
    if (ticks.count >= 2 && ticks.count <= most) return ticks;
    ticks = powers(low, high, base, most);
    return ticks.count >= 2 ? ticks : ticks_linear(low, high, most); /* in a short range linear ticks are better */
}

/* Formats a number with a point, because snprintf follows the locale of the program. */
static void plain(char *text, size_t size_bytes, const char *format, int precision, double value)
{
    snprintf(text, size_bytes, format, precision, value);
    for (char *at = text; *at; at++)
        if (*at == ',') *at = '.';
}

/* Copies digits with U+2212 for a hyphen. */
static void put_sign(const char *digits, char text[TICK_TEXT_BYTES])
{
    size_t used = 0;
    bool zero = strspn(digits, "-0.") == strlen(digits); /* -0.0 is written as 0.0 */
    for (const char *at = digits + (zero && digits[0] == '-'); *at && used + 4 < TICK_TEXT_BYTES; at++) {
        if (*at == '-') {
            memcpy(text + used, MINUS, 3);
            used += 3;
        } else {
            text[used++] = *at;
        }
    }
    text[used] = '\0';
}

void tick_number(double value, int digits, bool decimals, char text[TICK_TEXT_BYTES])
{
    char written[TICK_TEXT_BYTES];
    plain(written, sizeof written, decimals ? "%.*f" : "%.*g", digits, value);
    put_sign(written, text);
}

void tick_text(double value, double step, char text[TICK_TEXT_BYTES])
{
    char digits[TICK_TEXT_BYTES];
    double size = fabs(value);
    int decimals = step > 0   ? (int)fmax(0, ceil(-log10(step) - 1e-9))
                   : size > 0 ? 2 - (int)floor(log10(size) + 1e-9)
                              : 0;
    if (value == 0) {
        snprintf(digits, sizeof digits, "0");
    } else if (size >= 1e6 || size < 1e-4 || decimals > 6) {
        plain(digits, sizeof digits, "%.*g", 3, value);
        char *exponent = strchr(digits, 'e'); /* e-07, e+06: no plus sign, no leading zero */
        if (exponent) {
            char *from = exponent + 1, *to = exponent + 1;
            if (*from == '-') *to++ = *from++;
            while (*from == '+' || *from == '0') from++;
            memmove(to, from, strlen(from) + 1);
        }
    } else {
        plain(digits, sizeof digits, "%.*f", decimals < 0 ? 0 : decimals, value);
        if (step <= 0 && strchr(digits, '.')) { /* 2.50 -> 2.5 */
            char *end = digits + strlen(digits);
            while (end[-1] == '0') *--end = '\0';
            if (end[-1] == '.') end[-1] = '\0';
        }
    }
    put_sign(digits, text);
}
