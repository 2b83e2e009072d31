/* Emulates the cpuid instructions that hide_features.py has replaced by ud2 in a copy of a library, and hides
 * features. It is preloaded: CPUID_HIDE=vnni leaves AVX-512 without VNNI, avx512 leaves AVX2, avx leaves SSE.
 *
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { HIDE_NOTHING, HIDE_VNNI, HIDE_AVX512, HIDE_AVX };

static int hidden = HIDE_NOTHING;

static unsigned bits(const int *places, int count)
{
    unsigned mask = 0;
    for (int i = 0; i < count; i++) mask |= 1u << places[i];
    return mask;
}

#define BITS(...) bits((const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

/* Clears bits of leaf 1 and both subleaves of leaf 7, numbered as in the manuals. AMX goes with VNNI, bfloat16 with
 * AVX-512, FMA and F16C with AVX. */
static void take_out(unsigned leaf, unsigned subleaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    if (leaf == 1 && hidden >= HIDE_AVX) *c &= ~BITS(12, 28, 29);
    if (leaf == 7 && subleaf == 0) {
        if (hidden >= HIDE_VNNI) {
            *c &= ~BITS(11);
            *d &= ~BITS(22, 24, 25);
        }
        if (hidden >= HIDE_AVX512) {
            *b &= ~BITS(16, 17, 21, 26, 27, 28, 30, 31);
            *c &= ~BITS(1, 6, 12, 14);
            *d &= ~BITS(2, 3, 8, 23);
        }
        if (hidden >= HIDE_AVX) *b &= ~BITS(5);
    }
    if (leaf == 7 && subleaf == 1) {
        if (hidden >= HIDE_VNNI) {
            *a &= ~BITS(4);
            *d &= ~BITS(4, 10);
        }
        if (hidden >= HIDE_AVX512) *a &= ~BITS(5, 23);
    }
}

static void on_ud2(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (code[0] != 0x0f || code[1] != 0x0b) _exit(99);
    unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    take_out(leaf, subleaf, &a, &b, &c, &d);
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void)
{
    const char *names[] = {"", "vnni", "avx512", "avx"}, *told = getenv("CPUID_HIDE");
    for (int i = 0; told && i < 4; i++)
        if (!strcmp(told, names[i])) hidden = i;
    struct sigaction action = {.sa_sigaction = on_ud2, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}
