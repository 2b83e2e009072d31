/* Defines a problem of a kernel and the parts of a kernel's description; kernel_slots.h gives their purpose.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"
#include "include/deberta.h"

typedef enum kernel_slot {
#define X(name, parameters) SLOT_##name,
    KERNEL_LIST(X)
#undef X
        KERNEL_SLOTS
} kernel_slot;

/* ----------------------------------------------------------------------------------------------------------- arrays */

typedef enum array_kind {
    ARRAY_INPUT,           /* not written */
    ARRAY_OUTPUT,          /* written, and perhaps read before */
    ARRAY_OUTPUT_ANY_ZERO, /* the sign of a zero may differ from tier to tier */
    ARRAY_OUTPUT_ANY       /* what damaged inputs leave open may differ; what is judged may not */
} array_kind;

/* [blocks][rows][width] numbers of 32 bits with gaps between rows and between blocks; bytes lie in them four by four.
 * A vector is one row; a matrix one block; panels are blocks of rows of 16. */
typedef struct problem_array {
    const char *name; /* NULL: the problem has no such array */
    array_kind kind;
    size_t blocks, block_stride, rows, ld, width;
    size_t words; /* from the first to the last element */
    float scale;  /* of the numbers that problem_fill writes; 0: it writes none */
    float *initial, *at;
} problem_array;

enum { PROBLEM_ARRAYS = 13 };

/* --------------------------------------------------------------------------------------------------------- problems */

/* Each enumeration below is a list of X(NAME, words of problem_text), so that a name without words does not compile. */

/* Distribution of a problem's numbers. */
#define PROBLEM_VALUES(X)                                                                                              \
    X(VALUES_ORDINARY, "ordinary") /* mostly of unit size, some large, some tiny: what activations look like */        \
    X(VALUES_HUGE, "huge")                                                                                             \
    X(VALUES_TIES, "ties") /* 1 and -1 */                                                                              \
    X(VALUES_SUBNORMAL, "subnormal")                                                                                   \
    X(VALUES_CONSTANT, "constant")                                                                                     \
    X(VALUES_UNIFORM, "uniform") /* [-1, 1) */                                                                         \
    X(VALUES_BELL, "bell")       /* roughly normal, sigma 1 */                                                         \
    X(VALUES_WIDE, "wide")       /* of many magnitudes */                                                              \
    X(VALUES_WHOLE, "whole")     /* -8 ... 8: sums are exact */

/* Options of a kernel call beyond its sizes. */
#define PROBLEM_OPTIONS(X)                                                                                             \
    X(WITH_BIAS, "bias") /* epilogues of the products, in the order of core/kernels.h */                               \
    X(WITH_GELU, "gelu")                                                                                               \
    X(WITH_OUTER, "outer")                                                                                             \
    X(WITH_RESIDUAL, "residual")                                                                                       \
    X(RESIDUAL_IN_C, "residual is c")                                                                                  \
    X(WITH_ROW_SCALE, "row_scale")                                                                                     \
    X(ACCUMULATE, "accumulate")                                                                                        \
    X(WITH_C_SCALE, "c_scale")                                                                                         \
    X(FETCH_NEXT, "next")                                                                                              \
    X(WITH_SUMS, "sums")         /* gemm_tn: those of the columns of A */                                              \
    X(LARGEST, "largest digits") /* all digits as large as they can be */                                              \
    X(WITH_MASK, "mask")                                                                                               \
    X(LATER_CHUNK, "later chunk") /* softmax: not the first of a row */                                                \
    X(OWN_DELTA, "own delta")     /* softmax_backward: of a row, the sum of p dp */                                    \
    X(IN_PLACE, "in place")                                                                                            \
    X(WITH_GAIN, "gain")                                                                                               \
    X(WITH_Y, "y")               /* activate_backward: the activations as well */                                      \
    X(WITH_PRODUCTS, "products") /* sum_rows */                                                                        \
    X(WITH_COUPLING, "coupled")  /* adam */                                                                            \
    X(WITH_FACTOR, "factor")     /* of every input before it is quantised */                                           \
    X(WITHOUT_C2P, "no c2p")                                                                                           \
    X(WITHOUT_P2C, "no p2c")                                                                                           \
    X(WITHOUT_PROMISE, "no promise")     /* the map is not said to have unit steps */                                  \
    X(DAMAGED, "damaged")                /* some inputs are no numbers, and so are results that they reach */          \
    X(WITH_EXPONENTIALS, "exponentials") /* softmax_backward */

/* Shape of the map from distances to rows of a table. */
#define PROBLEM_MAPS(X)                                                                                                \
    X(MAP_V3, "v3")                                                                                                    \
    X(MAP_FLAT, "flat")                                                                                                \
    X(MAP_LINEAR, "linear")                                                                                            \
    X(MAP_HALF, "steps at random")                                                                                     \
    X(MAP_RARE, "few steps")                                                                                           \
    X(MAP_DENSE, "many steps")                                                                                         \
    X(MAP_SATURATED, "linear between flat ends")                                                                       \
    X(MAP_ANY, "no order")

#define NAME(name, words) name,
#define BIT(name, words)  name##_BIT,
#define FLAG(name, words) name = 1 << name##_BIT,
typedef enum problem_values { PROBLEM_VALUES(NAME) } problem_values;
typedef enum problem_map { PROBLEM_MAPS(NAME) } problem_map;
enum { PROBLEM_OPTIONS(BIT) PROBLEM_OPTION_COUNT };
typedef enum problem_option { PROBLEM_OPTIONS(FLAG) PROBLEM_OPTIONS_END = 1 << PROBLEM_OPTION_COUNT } problem_option;
#undef NAME
#undef BIT
#undef FLAG

enum { MAP_V3_ROWS = 512 };

typedef struct kernel_problem {
    kernel_slot slot;
    size_t rows, depth, columns; /* those that the kernel has; the meaning of each is in its description */
    unsigned options;
    activation function; /* of kernels that have one */
    problem_values values;
    float scale; /* of all numbers; 0: 1 */
    problem_map map;
    ptrdiff_t distance; /* MAP_V3: of query 0 and key 0 */
    size_t parts;       /* of sums over rows; 0: one chain */
    bool plain;         /* every row-major, at the engine's own strides: what is measured */
    uint64_t random;    /* the seed, and what becomes of it */

    /* made by problem_lay_out */
    problem_array arrays[PROBLEM_ARRAYS];
    size_t bounds[MAX_ROW_PARTS + 1];
    int32_t last_row, least_row, greatest_row; /* of the map's table, and used */
    bool is_turned;                            /* fold_runs: the matrix lies column by column */
    size_t first_of_c2p, first_of_p2c;
    uint64_t map_seed;
    uint32_t first_counter, threshold; /* of dropout */
    const void *next;                  /* FETCH_NEXT; may be replaced afterwards */
} kernel_problem;

/* The bound of an error is `limit` times `size`. A size is an ULP of the exact result, or eps S, or half a step of
 * digits. eps is 2^-24, half an ULP of 1; S is the sum of the absolute values of the terms before they cancel. */
typedef enum error_unit { UNIT_ULP, UNIT_EPS_S, UNIT_HALF_STEP, UNIT_COUNT } error_unit;
const char *unit_name(error_unit unit);

typedef struct exact_value {
    double value, size, limit;
    error_unit unit;
} exact_value;

/* Judges a result; false ends the problem. found is element `index` of p->arrays[array].at, or the value that digits
 * there represent. */
typedef struct exact_judge {
    bool (*judge)(void *context, const kernel_problem *p, size_t array, size_t index, double found,
                  const exact_value *want);
    void *context;
} exact_judge;

/* Whether a word of an output has its expected value. All NaNs are equal, but POISON equals only itself: the signalling
 * NaN of memory that nothing has written. */
#define POISON 0x7fa5a5a5u
bool same_word(uint32_t found, uint32_t expected, array_kind kind);
/* Writes POISON. */
void poison_words(float *words, size_t count);
uint32_t float_bits(float x);
float float_from_bits(uint32_t bits);
/* Distance of neighbouring floats at the size of x, not below the smallest normal number's. */
double ulp_of(double x);

/* --------------------------------------------------------------------------------------------------- descriptions */

typedef struct problem_sizes {
    size_t rows, depth, columns;
} problem_sizes;

/* Product of sizes that counts a call's elements. */
typedef enum problem_elements { ROWS_COLUMNS, ROWS_DEPTH, DEPTH_COLUMNS } problem_elements;

typedef struct kernel_description {
    const char *name; /* the slot's */
    const char *word; /* in the lines of bench/kernel_problems.h */
    void (*lay_out)(kernel_problem *p);
    void (*fill)(kernel_problem *p); /* after the numbers, what is more than numbers */
    void (*call)(const kernels *table, const kernel_problem *p);
    void (*exact)(const kernel_problem *p, const exact_judge *judge);

    problem_sizes drawn;    /* the largest that verify draws; 0: the kernel has no such size */
    problem_sizes measured; /* of a base model: what checkasm --bench measures */
    unsigned optional;      /* options that may be drawn; lay_out takes back those that do not go together */
    bool has_function, has_map, has_parts;
    size_t column_unit, depth_unit;  /* what columns and depth must be multiples of; 0: 1 */
    size_t most_columns, most_depth; /* 0: any */

    bool multiplies;   /* 2 rows depth columns operations */
    int byte_products; /* that one of these takes; 0: it is one of float32 */
    double moved[3];   /* numbers of 32 bits, of rows x columns, rows x depth, depth x columns */
    problem_elements elements;
    bool restored; /* works in place: before it is measured again its arrays are made anew */
} kernel_description;

#define X(name, parameters) extern const kernel_description describe_##name;
KERNEL_LIST(X)
#undef X

/* Defines a description from its arguments; the functions follow by name. A description without one of these functions
 * does not compile. */
#define DESCRIBE_KERNEL(slot_, word_, ...)                                                                             \
    const kernel_description describe_##slot_ = {.name = #slot_,                                                       \
                                                 .word = (word_),                                                      \
                                                 .lay_out = slot_##_lay_out,                                           \
                                                 .call = slot_##_call,                                                 \
                                                 .exact = slot_##_exact,                                               \
                                                 __VA_ARGS__};

/* ------------------------------------------------------------------------------------------------ for descriptions */

static inline bool has_option(const kernel_problem *p, unsigned options) { return (p->options & options) != 0; }

/* The next row's distance: the engine's where the problem is plain, else 0, 1 or 7 more than the width. */
size_t problem_stride(kernel_problem *p, size_t width);
problem_array *take_vector(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t width, float scale);
problem_array *take_matrix(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t width,
                           float scale);
/* [panels][rows][16], row-major or a panel at a time. */
problem_array *take_panels(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t panels,
                           float scale);
/* Bytes, or other words that are no floats: no numbers are written. */
void take_bytes(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t bytes);
/* After strides were changed by hand. */
void count_words(problem_array *array);

/* NULL where the problem has no such array. */
static inline float *now_in(const kernel_problem *p, size_t k) { return p->arrays[k].at; }
static inline float *given_in(const kernel_problem *p, size_t k) { return p->arrays[k].initial; }
static inline void *raw_in(const kernel_problem *p, size_t k) { return p->arrays[k].at; }
static inline void *raw_given(const kernel_problem *p, size_t k) { return p->arrays[k].initial; }
/* Element `column` of row `row`, as it was filled, and where it lies. */
static inline size_t place_in(const problem_array *a, size_t row, size_t column)
{
    return a->blocks > 1 ? column / PANEL * a->block_stride + row * a->ld + column % PANEL : row * a->ld + column;
}
static inline double given(const kernel_problem *p, size_t k, size_t row, size_t column)
{
    const problem_array *a = &p->arrays[k];
    return (double)a->initial[place_in(a, row, column)];
}

size_t draw_below(kernel_problem *p, size_t limit); /* 0 if limit is 0 */
bool draw_flag(kernel_problem *p);
float draw_uniform(kernel_problem *p, float low, float high);
float draw_bell(kernel_problem *p);
float draw_number(kernel_problem *p);
/* Numbers of the problem's kind, all over the array. */
void draw_array(kernel_problem *p, size_t k);

/* A value with the sizes of the terms that it is made of. */
typedef struct exact_sum {
    double value, terms;
} exact_sum;
void add_term(exact_sum *sum, double term);

#define EPS 0x1p-24
/* A result in the array, of which the bound is limit eps terms; beside that it may lose so many times the smallest
 * number as limit says. */
bool expect_sum(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_sum want,
                double limit);
bool expect_result(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_value want);
