/* Reads and writes members of a struct by their types, as JSON and as cells. SPDX-License-Identifier: MIT */
#include "output/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/text.h"
#include "output/json_text.h"

static const void *member_of(const void *record, const record_field *field) { return (const char *)record + field->at; }

static json_t *json_of(const record_field *field, const void *member)
{
    char bits[17];
    switch (field->type) {
    case RECORD_IS_TEXT: return json_clean_text(member);
    case RECORD_IS_SIZE: return json_integer((json_int_t) * (const size_t *)member);
    case RECORD_IS_FLAG: return json_boolean(*(const bool *)member);
    case RECORD_IS_BITS:
        snprintf(bits, sizeof bits, "%016" PRIx64, *(const uint64_t *)member);
        return json_string(bits);
    case RECORD_IS_NUMBER: break;
    }
    const double value = *(const double *)member;
    return isfinite(value) && !(field->unknown_is_zero && value == 0) ? json_real(value) : json_null();
}

/* Returns true for 0 or an empty text: the value was not measured. */
static bool is_absent(const record_field *field, const void *member)
{
    if (!field->absent_is_zero) return false;
    switch (field->type) {
    case RECORD_IS_TEXT: return *(const char *)member == '\0';
    case RECORD_IS_SIZE: return *(const size_t *)member == 0;
    case RECORD_IS_NUMBER: return *(const double *)member == 0;
    case RECORD_IS_FLAG: return !*(const bool *)member;
    case RECORD_IS_BITS: break;
    }
    return *(const uint64_t *)member == 0;
}

void record_write(json_t *object, const record_field *fields, const void *record)
{
    for (; fields->name; fields++) {
        const void *member = member_of(record, fields);
        if (is_absent(fields, member)) continue;
        json_put(object, fields->name, json_of(fields, member));
    }
}

void record_read(void *record, const record_field *fields, const json_t *object)
{
    for (; fields->name; fields++) {
        void *member = (char *)record + fields->at;
        const json_t *value = json_object_get(object, fields->name);
        const char *text = json_string_value(value);
        const double number = json_number_value(value); /* 0 if it is no number */
        switch (fields->type) {
        case RECORD_IS_TEXT:
            if (text) utf8_copy(member, fields->bytes, text);
            break;
        case RECORD_IS_SIZE: *(size_t *)member = number > 0 && number < 1e18 ? (size_t)number : 0; break;
        case RECORD_IS_NUMBER: *(double *)member = number; break;
        case RECORD_IS_FLAG: *(bool *)member = json_is_boolean(value) ? json_is_true(value) : fields->fallback; break;
        case RECORD_IS_BITS: *(uint64_t *)member = text ? strtoull(text, NULL, 16) : 0; break;
        }
    }
}

void record_cell(char cell[RECORD_CELL_BYTES], const record_field *field, const void *record, bool people, int digits)
{
    static const char *const off_on[] = {"off", "on"}, *const false_true[] = {"false", "true"};
    const void *member = member_of(record, field);
    const bool scaled = people && field->scale != 0;
    double number = 0;
    *cell = '\0';
    if (is_absent(field, member)) return;
    switch (field->type) {
    case RECORD_IS_TEXT: snprintf(cell, RECORD_CELL_BYTES, "%s", (const char *)member); return;
    case RECORD_IS_FLAG:
        snprintf(cell, RECORD_CELL_BYTES, "%s",
                 (!people        ? false_true
                  : field->words ? field->words
                                 : off_on)[*(const bool *)member]);
        return;
    case RECORD_IS_BITS:
        if (*(const uint64_t *)member) snprintf(cell, RECORD_CELL_BYTES, "%016" PRIx64, *(const uint64_t *)member);
        return;
    case RECORD_IS_SIZE: number = (double)*(const size_t *)member; break;
    case RECORD_IS_NUMBER: number = *(const double *)member; break;
    }
    if (!isfinite(number) || (field->unknown_is_zero && !(number > 0))) return;
    if (people && (field->type == RECORD_IS_NUMBER || scaled))
        snprintf(cell, RECORD_CELL_BYTES, "%.*f", field->digits == RECORD_DIGITS_OF_ROW ? digits : field->digits,
                 number * (scaled ? field->scale : 1));
    else if (field->type == RECORD_IS_SIZE)
        snprintf(cell, RECORD_CELL_BYTES, "%zu", *(const size_t *)member);
    else
        snprintf(cell, RECORD_CELL_BYTES, "%.9g", number);
}
