/* Turns the list of the trainer's options into a table: ranges, and their part of the recipe.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/trainer_options.h"

#include <string.h>

#include "core/base/status.h"
#include "core/io/json_file.h"
#include "core/kernels.h"

typedef enum option_type { COUNT, NUMBER, CHOICE, SWITCH, PATH } option_type;

typedef struct trainer_option {
    const char *member, *name, *key;
    option_type type;
    size_t at;
    double low, high;
    const char *const *words;
} trainer_option;

#define C_TYPE_COUNT            size_t
#define C_TYPE_NUMBER           double
#define C_TYPE_CHOICE           int /* bounds, or the number of values of an enumeration */
#define C_TYPE_SWITCH           int
#define C_TYPE_PATH             const char *
#define SIZE_IN_OPTIONS(member) sizeof(((deberta_trainer_options *)0)->member)

/* Lists of words, one for each value of a choice. Each type has its own macro, because a bound such as 1e30 is not
 * representable as an integer. */
#define CHECK_WORDS_COUNT(words_, high_, name_)
#define CHECK_WORDS_NUMBER(words_, high_, name_)
#define CHECK_WORDS_SWITCH(words_, high_, name_)
#define CHECK_WORDS_PATH(words_, high_, name_)
#define CHECK_WORDS_CHOICE(words_, high_, name_)                                                                       \
    _Static_assert(sizeof(words_) / sizeof(char *) == (size_t)(high_) + 2, "words of " name_);

/* Checks at compile time that members have the types of the list. */
#define CHECK_ROW(type_, member_, name_, value_, low_, high_, words_, key_, needs_, help_)                             \
    CHECK_WORDS_##type_(words_, high_, name_) _Static_assert(SIZE_IN_OPTIONS(member_) == sizeof(C_TYPE_##type_),       \
                                                             "type of " name_);
TRAINER_OPTIONS(CHECK_ROW)

#define TABLE_ROW(type_, member_, name_, value_, low_, high_, words_, key_, needs_, help_)                             \
    {#member_, name_, key_, type_, offsetof(deberta_trainer_options, member_), (double)(low_), (double)(high_), words_},
static const trainer_option table[] = {TRAINER_OPTIONS(TABLE_ROW)};
enum { OPTION_COUNT = sizeof table / sizeof *table };

_Static_assert((int)TRAINER_MOST_SHARDS == (int)MAX_ROW_PARTS, "as many shards as kernels take parts");

static double value_of(const trainer_option *row, const deberta_trainer_options *o)
{
    const char *at = (const char *)o + row->at;
    switch (row->type) {
    case COUNT: return (double)*(const size_t *)(const void *)at;
    case NUMBER: return *(const double *)(const void *)at;
    case CHOICE:
    case SWITCH: return *(const int *)(const void *)at;
    case PATH: break;
    }
    return 0;
}

deberta_status trainer_options_check(const deberta_trainer_options *o, deberta_error *err)
{
    static const deberta_trainer_options defaults = DEBERTA_TRAINER_DEFAULTS;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const trainer_option *row = &table[i];
        const double value = value_of(row, o);
        if (row->type == PATH || row->type == SWITCH) continue;
        /* NaN fails both comparisons. */
        if ((value >= row->low && value <= row->high) || value == value_of(row, &defaults)) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_trainer_options: %s is %.10g, expected %.10g to %.10g",
                     row->member, value, row->low, row->high);
    }
    return DEBERTA_OK;
}

static json_t *describe_trainer_options(const trainer_option *row, const deberta_trainer_options *o)
{
    const double value = value_of(row, o);
    switch (row->type) {
    case COUNT: return json_integer((json_int_t)value);
    case NUMBER: return json_real(value);
    case CHOICE: return json_string(row->words[(size_t)value]);
    case SWITCH: return json_boolean(value != 0);
    case PATH: break;
    }
    return json_null();
}

void trainer_options_describe(json_t *recipe, const deberta_trainer_options *o, bool *lost)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (table[i].key) json_add_member(recipe, table[i].key, describe_trainer_options(&table[i], o), lost);
}

const char *trainer_option_of_key(const char *key)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (table[i].key && strcmp(table[i].key, key) == 0) return table[i].name;
    return key;
}
