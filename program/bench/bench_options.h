/* Declares the code that the commands of `deberta bench` share: lists among their options, and the end of their
 * output.
 *
 * The parsers serve PARSED_AT rows; their lists live as long as the options.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/sweep.h"
#include "program/frame/text_output.h"

typedef struct isa_list {
    deberta_isa values[DEBERTA_ISA_COUNT];
    size_t count;
} isa_list;

enum { BENCH_MOST_MIXES = 64, BENCH_MOST_TERMS = 4 };

/* Options of a sweep, `deberta bench MODEL`. */
typedef struct bench_options {
    common_options common;
    sweep_options sweep;
    size_list mixes[BENCH_MOST_MIXES];
    term_selection terms[BENCH_MOST_TERMS];
    isa_list isas;
} bench_options;

extern const command command_bench_machine, command_bench_kernel, command_bench_requests, command_bench_train,
    command_bench_compare, command_bench_merge, command_bench_plot; /* plot: in a program with figures */

/* Parses one value of a list option into a size_list: values from 1 to highest. repeated: as for range_parse. */
void bench_parse_list(common_options *options, const char *name, const char *text, size_t highest, bool repeated,
                      size_list *list);
void bench_parse_tokens(common_options *options, const char *text, void *size_list);
/* Parses --threads. A single 0 means OMP_NUM_THREADS or the physical cores, as everywhere; it gives an empty list. */
void bench_parse_threads(common_options *options, const char *text, void *size_list);
/* Parses "avx2,avx512", "all" or "auto"; the choices are the single words. */
extern const char *const bench_isa_choices[];
void bench_parse_isas(common_options *options, const char *text, void *isa_list);
/* Fills an empty list with the tier of DEBERTA_ISA, or the best tier. */
void bench_default_isas(const common_options *options, isa_list *list);

#define BENCH_TOKENS_OPTION(S, member, help)                                                                           \
    {                                                                                                                  \
        "tokens", 'n', "LIST", "lengths: 16,40,128 or 16-512*2 or 16-128+16 (default " help ")",                       \
            PARSED_AT(S, member, bench_parse_tokens)                                                                   \
    }
#define BENCH_THREADS_OPTION(S, member, help)                                                                          \
    {                                                                                                                  \
        "threads", 't', "LIST", "numbers of threads (default " help ")", PARSED_AT(S, member, bench_parse_threads)     \
    }
#define BENCH_ISAS_OPTION(S, member)                                                                                   \
    {                                                                                                                  \
        "isa", 0, "LIST", "tiers: avx2,avx512 or all (default the best)", PARSED_AT(S, member, bench_parse_isas),      \
            .choices = bench_isa_choices                                                                               \
    }
/* Describes what was measured, with the command line in it, and writes it. */
void bench_finish(const common_options *options, text_output *output, bench_results *results, result_format format);
