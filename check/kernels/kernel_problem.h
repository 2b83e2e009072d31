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
    ARRAY_OUTPUT,          /* written, and possibly read before */
    ARRAY_OUTPUT_ANY_ZERO, /* the sign of a zero may differ from tier to tier */
    ARRAY_OUTPUT_ANY       /* parts that damaged inputs leave undefined may differ; judged values may not */
} array_kind;

/* [blocks][rows][width] numbers of 32 bits with gaps between rows and between blocks; bytes lie in them four by four.
 * A vector is one row; a matrix one block; panels are blocks of rows of 16. */
typedef struct problem_array {
    const char *name; /* name of the array; NULL: the problem does not have it */
    array_kind kind;
    size_t blocks, block_stride, rows, ld, width;
    size_t words; /* number of words from the first to the last element */
    float scale;  /* factor of the numbers that problem_fill writes; 0: it writes none */
    float *initial, *at;
} problem_array;

enum { PROBLEM_ARRAYS = 13 };

/* --------------------------------------------------------------------------------------------------------- problems */

/* Each enumeration below is a list of X(NAME, words of problem_text), so that a name without words does not compile. */

/* Distribution of a problem's numbers. */
#define PROBLEM_VALUES(X)                                                                                              \
    X(VALUES_ORDINARY, "ordinary") /* mostly of unit size, some large, some tiny, like activations */                  \
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
    X(WITH_SUMS, "sums")         /* gemm_tn: also the sums of the columns of A */                                      \
    X(LARGEST, "largest digits") /* all digits as large as they can be */                                              \
    X(WITH_MASK, "mask")                                                                                               \
    X(LATER_CHUNK, "later chunk") /* softmax: the chunk is not the first of a row */                                   \
    X(OWN_DELTA, "own delta")     /* softmax_backward: delta is given: the sum of p dp of a row */                     \
    X(IN_PLACE, "in place")                                                                                            \
    X(WITH_GAIN, "gain")                                                                                               \
    X(WITH_Y, "y")               /* activate_backward: computes the activations as well */                             \
    X(WITH_PRODUCTS, "products") /* sum_rows: sums products with B */                                                  \
    X(WITH_COUPLING, "coupled")  /* adam */                                                                            \
    X(WITH_FACTOR, "factor")     /* factors of every input before it is quantised */                                   \
    X(WITHOUT_C2P, "no c2p")                                                                                           \
    X(WITHOUT_P2C, "no p2c")                                                                                           \
    X(WITHOUT_PROMISE, "no promise") /* the call does not state that the map has unit steps */                         \
    X(DAMAGED, "damaged")            /* some inputs are NaN or infinite, and the results that they reach are NaN */    \
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
    size_t rows, depth, columns; /* sizes that the kernel has; its description gives the meaning of each */
    unsigned options;
    activation function; /* activation, for kernels that have one */
    problem_values values;
    float scale; /* factor of all numbers; 0: 1 */
    problem_map map;
    ptrdiff_t distance; /* MAP_V3: distance of query 0 and key 0 */
    size_t parts;       /* number of parts of sums over rows; 0: one chain */
    bool plain;         /* whether every matrix is row-major with the engine's own strides, for measuring */
    uint64_t random;    /* seed, and then state, of the random numbers */

    /* set by problem_lay_out */
    problem_array arrays[PROBLEM_ARRAYS];
    size_t bounds[MAX_ROW_PARTS + 1];
    int32_t last_row, least_row, greatest_row; /* rows of the map's table; those that the problem uses */
    bool is_turned;                            /* fold_runs: whether the matrix is stored column by column */
    size_t first_of_c2p, first_of_p2c;
    uint64_t map_seed;
    uint32_t first_counter, threshold; /* as in dropout_task */
    const void *next;                  /* FETCH_NEXT: operand of the next call; may be replaced afterwards */
} kernel_problem;

/* The bound of an error is `limit` times `size`. `size` is an ULP of the exact result, or eps S, or half a step of
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

/* Returns whether a word of an output has its expected value. All NaNs are equal, but POISON, the signalling NaN of
 * unwritten memory, equals only itself. */
#define POISON 0x7fa5a5a5u
bool same_word(uint32_t found, uint32_t expected, array_kind kind);
/* Fills memory with POISON. */
void poison_words(float *words, size_t count);
uint32_t float_bits(float x);
float float_from_bits(uint32_t bits);
/* Returns the distance of neighbouring floats at the magnitude of x, not below that of the smallest normal number. */
double ulp_of(double x);

/* --------------------------------------------------------------------------------------------------- descriptions */

typedef struct problem_sizes {
    size_t rows, depth, columns;
} problem_sizes;

/* The product of sizes that counts the elements of a call. */
typedef enum problem_elements { ROWS_COLUMNS, ROWS_DEPTH, DEPTH_COLUMNS } problem_elements;

typedef struct kernel_description {
    const char *name; /* name of the slot */
    const char *word; /* name in the lines of bench/kernel_problems.h */
    void (*lay_out)(kernel_problem *p);
    /* function that fills, after the numbers, everything that is more than numbers; may be NULL */
    void (*fill)(kernel_problem *p);
    void (*call)(const kernels *table, const kernel_problem *p);
    void (*exact)(const kernel_problem *p, const exact_judge *judge);

    problem_sizes drawn;    /* largest sizes that verify draws; 0: the kernel has no such size */
    problem_sizes measured; /* sizes of a base model, which checkasm --bench measures */
    unsigned optional;      /* options that may be drawn; lay_out removes those that exclude each other */
    bool has_function, has_map, has_parts;
    size_t column_unit, depth_unit;  /* units of columns and depth; 0: 1 */
    size_t most_columns, most_depth; /* largest depth; 0: any */

    bool multiplies;   /* whether a call takes 2 rows depth columns operations */
    int byte_products; /* operations that one of these takes; 0: it is one of float32 */
    double moved[3];   /* 32-bit words moved, per element of rows x columns, rows x depth, depth x columns */
    problem_elements elements;
    bool restored; /* whether it works in place, so that its arrays are restored before each measurement */
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

/* Returns the distance to the next row: the engine's stride for a plain problem, else 0, 1 or 7 more than the width. */
size_t problem_stride(kernel_problem *p, size_t width);
problem_array *take_vector(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t width, float scale);
problem_array *take_matrix(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t width,
                           float scale);
/* Declares an array [panels][rows][16], row-major or a panel at a time. */
problem_array *take_panels(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t panels,
                           float scale);
/* Declares an array of bytes, or of other words that are not floats, into which problem_fill writes no numbers. */
void take_bytes(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t bytes);
/* Recomputes the words of an array after its strides were changed by hand. */
void count_words(problem_array *array);

/* Return an array, as it is now or as it was filled; NULL where the problem does not have it. */
static inline float *now_in(const kernel_problem *p, size_t k) { return p->arrays[k].at; }
static inline float *given_in(const kernel_problem *p, size_t k) { return p->arrays[k].initial; }
static inline void *raw_in(const kernel_problem *p, size_t k) { return p->arrays[k].at; }
static inline void *raw_given(const kernel_problem *p, size_t k) { return p->arrays[k].initial; }
/* Return the index of element `column` of row `row`, and its value as it was filled. */
static inline size_t place_in(const problem_array *a, size_t row, size_t column)
{
    return a->blocks > 1 ? column / PANEL * a->block_stride + row * a->ld + column % PANEL : row * a->ld + column;
}
static inline double given(const kernel_problem *p, size_t k, size_t row, size_t column)
{
    const problem_array *a = &p->arrays[k];
    return (double)a->initial[place_in(a, row, column)];
}

size_t draw_below(kernel_problem *p, size_t limit); /* Draws a number below limit; 0 if limit is 0. */
bool draw_flag(kernel_problem *p);
float draw_uniform(kernel_problem *p, float low, float high);
float draw_bell(kernel_problem *p);
float draw_number(kernel_problem *p);
/* Fills the whole array with numbers of the problem's kind. */
void draw_array(kernel_problem *p, size_t k);

/* A value, with the sum of the magnitudes of its terms. */
typedef struct exact_sum {
    double value, terms;
} exact_sum;
void add_term(exact_sum *sum, double term);

#define EPS 0x1p-24
/* Judges a result in the array. Its bound is limit eps terms, plus `limit` times the smallest positive number (2^-149).
 */
bool expect_sum(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_sum want,
                double limit);
bool expect_result(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_value want);
