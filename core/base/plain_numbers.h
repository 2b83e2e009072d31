/* Numbers in files have a point, whatever the host program's locale writes: printf and strtod between begin and end are
 * those of the locale "C", in this thread alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <locale.h>

typedef struct plain_numbers {
    locale_t plain, before;
} plain_numbers;

/* Where there is no memory for a locale, numbers stay the host's. */
static inline plain_numbers plain_numbers_begin(void)
{
    plain_numbers numbers = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (numbers.plain) numbers.before = uselocale(numbers.plain);
    return numbers;
}

static inline void plain_numbers_end(plain_numbers numbers)
{
    if (!numbers.plain) return;
    uselocale(numbers.before);
    freelocale(numbers.plain);
}
