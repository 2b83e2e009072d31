/* Detects the instruction sets that processor and operating system support. CPUID alone is not enough: a processor may
 * have AVX-512 whose registers the operating system does not save, and using it then crashes or corrupts silently. So
 * this file asks both. It does not use __builtin_cpu_supports, which knows no processor at all in some compilers'
 * run-times.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/cpu.h"

#include <stdio.h>
#include <string.h>

#include "core/base/text.h"

#if defined(__x86_64__) || defined(__i386__)
#define ARCH_X86 1
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#else
#define ARCH_X86 0
#endif
#if defined(__aarch64__)
#define ARCH_AARCH64 1
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#else
#define ARCH_AARCH64 0
#endif
#ifdef __wasm__
#define ARCH_WASM 1
#else
#define ARCH_WASM 0
#endif

#if ARCH_X86
enum {
    LEAF_FEATURES = 1,
    BASIC_C_OSXSAVE = 1 << 27,
    LEAF_MORE_FEATURES = 7,
    MORE_D_AMX_TILE = 1 << 24,
    MORE_D_AMX_INT8 = 1 << 25,
    NEWER_A_AVXVNNI = 1 << 4,                              /* of subleaf 1 */
    STATES_AVX = 1 << 1 | 1 << 2,                          /* the registers of SSE and AVX */
    STATES_AVX512 = STATES_AVX | 1 << 5 | 1 << 6 | 1 << 7, /* masks, and both halves of the larger registers */
    STATE_TILE_CONFIG = 1 << 17,
    STATE_TILE_DATA = 1 << 18,
    TILE_DATA = 18, /* number of the tile-data state, as arch_prctl takes it */
};

typedef struct cpuid_words {
    unsigned a, b, c, d;
} cpuid_words;

/* Returns a leaf of CPUID; zeros for a missing leaf. */
static cpuid_words cpuid_of(unsigned leaf, unsigned subleaf)
{
    cpuid_words w = {0};
    if (!__get_cpuid_count(leaf, subleaf, &w.a, &w.b, &w.c, &w.d)) w = (cpuid_words){0};
    return w;
}

/* Returns subleaf 1 of leaf 7, or zeros where subleaf 0 (`more`) says that the processor does not have it. */
static cpuid_words newer_features(cpuid_words more)
{
    const cpuid_words none = {0};
    return more.a >= 1 ? cpuid_of(LEAF_MORE_FEATURES, 1) : none;
}

/* Returns the low word of XCR0: the register states that the operating system saves. */
static unsigned saved_states(cpuid_words basic)
{
    unsigned low = 0, high = 0;
    if (basic.c & BASIC_C_OSXSAVE) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has_tiles_of_bytes(cpuid_words basic, cpuid_words more)
{
    const unsigned states = STATE_TILE_CONFIG | STATE_TILE_DATA, wanted = MORE_D_AMX_TILE | MORE_D_AMX_INT8;
    return (more.d & wanted) == wanted && (saved_states(basic) & states) == states;
}

bool cpu_allow_tiles(void)
{
#if defined(__linux__) && defined(__x86_64__)
    /* The value is in <asm/prctl.h>, whose copy on some systems is older than AMX. */
    enum { ARCH_REQ_XCOMP_PERM = 0x1023 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
#else
    return false;
#endif
}

unsigned cpu_features(void)
{
    const cpuid_words basic = cpuid_of(LEAF_FEATURES, 0), more = cpuid_of(LEAF_MORE_FEATURES, 0);
    const unsigned states = saved_states(basic);
    const bool avx = (basic.c & bit_AVX) && (states & STATES_AVX) == STATES_AVX,
               avx512 = avx && (states & STATES_AVX512) == STATES_AVX512;
    unsigned found = 0;
    if (avx && (more.b & bit_AVX2)) found |= CPU_HAS_AVX2;
    if (avx && (basic.c & bit_FMA)) found |= CPU_HAS_FMA;
    if (avx && (basic.c & bit_F16C)) found |= CPU_HAS_F16C;
    if (avx512 && (more.b & bit_AVX512F)) found |= CPU_HAS_AVX512F;
    if (avx512 && (more.b & bit_AVX512BW)) found |= CPU_HAS_AVX512BW;
    if (avx512 && (more.b & bit_AVX512DQ)) found |= CPU_HAS_AVX512DQ;
    if (avx512 && (more.b & bit_AVX512VL)) found |= CPU_HAS_AVX512VL;

    if (!avx && (basic.c & bit_AVX)) found |= CPU_NO_AVX_STATE;
    if (!(found & CPU_HAS_AVX512F) && (more.b & bit_AVX512F)) found |= CPU_NO_AVX512_STATE;

    /* The SHA instructions use registers that every x86-64 system saves, so no state is checked. */
    if ((basic.c & bit_SSSE3) && (basic.c & bit_SSE4_1) && (more.b & bit_SHA)) found |= CPU_SHA256;
    if (found & CPU_HAS_FMA) found |= CPU_FMA;
    if ((found & CPU_AVX2_PARTS) == CPU_AVX2_PARTS) found |= CPU_AVX2;
    if ((found & CPU_AVX512_PARTS) == CPU_AVX512_PARTS) found |= CPU_AVX512;
    if ((found & CPU_AVX2) && (newer_features(more).a & NEWER_A_AVXVNNI)) found |= CPU_AVXVNNI;
    if ((found & CPU_AVX512) && (more.c & bit_AVX512VNNI)) found |= CPU_AVX512VNNI;
    if ((found & CPU_AVX512) && has_tiles_of_bytes(basic, more)) found |= CPU_AVX512AMX;
    return found;
}
#elif ARCH_AARCH64
unsigned cpu_features(void)
{
#if defined(__linux__)
    const unsigned long hardware = getauxval(AT_HWCAP);
    if (!(hardware & HWCAP_ASIMD)) return 0;
    return CPU_FMA | CPU_NEON | (hardware & HWCAP_SHA2 ? CPU_SHA256 : 0) |
           (hardware & HWCAP_ASIMDDP ? CPU_NEON_DOT : 0) | (getauxval(AT_HWCAP2) & HWCAP2_I8MM ? CPU_NEON_I8MM : 0);
#else
    return CPU_FMA | CPU_NEON;
#endif
}
#elif ARCH_WASM
/* An engine does not even compile a module whose instructions it lacks. */
unsigned cpu_features(void) { return HAVE_WASM ? CPU_WASM : 0; }
#else
unsigned cpu_features(void) { return 0; }
#endif

#if !ARCH_X86
bool cpu_allow_tiles(void) { return false; }
#endif

typedef struct part {
    unsigned bit;
    const char *lacking;
} part;

#define LACKS "the processor lacks "
static const part parts[] = {
    {CPU_HAS_AVX2, LACKS "avx2"},         {CPU_HAS_FMA, LACKS "fma"},
    {CPU_HAS_F16C, LACKS "f16c"},         {CPU_HAS_AVX512F, LACKS "avx512f"},
    {CPU_HAS_AVX512BW, LACKS "avx512bw"}, {CPU_HAS_AVX512DQ, LACKS "avx512dq"},
    {CPU_HAS_AVX512VL, LACKS "avx512vl"}, {CPU_NEON, LACKS "asimd"},
};

static const char *first_lacking(unsigned wanted, unsigned features)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (wanted & ~features & parts[i].bit) return parts[i].lacking;
    return "the processor lacks it";
}

#define NOT_SAVED(name) "the operating system does not save the registers of " name

#define ARCH_ANY        1
#define FOREIGN_ANY     ""
#define FOREIGN_X86     "a tier of x86-64"
#define FOREIGN_AARCH64 "a tier of aarch64"
#define FOREIGN_WASM    "a tier of WebAssembly"

/* Conditions under which each tier can run, and the reasons why it cannot. */
static const struct {
    bool native, built;
    const char *foreign, *not_built;
    /* feature bits: the whole tier; its parts; register states not saved for it or its base */
    unsigned whole, parts, not_saved;
} tiers[DEBERTA_ISA_COUNT] = {
#define X(NAME, name, BELOW, ARCH, needs, parts, not_saved, word, peak, peak_u8)                                       \
    [DEBERTA_ISA_##NAME] = {ARCH_##ARCH, HAVE_##NAME, FOREIGN_##ARCH, "this build has no " #name " tier",              \
                            needs,       parts,       not_saved},
    TIER_LIST(X)
#undef X
};

const char *cpu_missing(deberta_isa isa, unsigned features)
{
    if (isa == DEBERTA_ISA_AUTO || isa == DEBERTA_ISA_SCALAR) return NULL;
    if ((unsigned)isa >= DEBERTA_ISA_COUNT) return "no such tier";
    if (!tiers[isa].native) return tiers[isa].foreign;
    if (!tiers[isa].built) return tiers[isa].not_built;
    if (features & tiers[isa].whole) return NULL;
    if (features & tiers[isa].not_saved & CPU_NO_AVX_STATE) return NOT_SAVED("avx");
    if (features & tiers[isa].not_saved) return NOT_SAVED("avx512");
    return first_lacking(tiers[isa].parts, features);
}

#if ARCH_X86
/* Reads the brand string from three CPUID leaves of 16 characters. */
static bool read_name(char text[64])
{
    unsigned words[12], a, b, c, d;
    if (!__get_cpuid(0x80000000, &a, &b, &c, &d) || a < 0x80000004) return false;
    for (unsigned leaf = 0; leaf < 3; leaf++) {
        unsigned *word = words + 4 * leaf;
        if (!__get_cpuid(0x80000002 + leaf, &word[0], &word[1], &word[2], &word[3])) return false;
    }
    memcpy(text, words, sizeof words);
    text[sizeof words] = '\0';
    return true;
}
#else
/* Arm machines name themselves, if at all, in the device tree or as a "model name" or "Hardware" of /proc/cpuinfo. */
static bool read_name(char text[64])
{
    static const char *const fields[] = {"model name", "Hardware"};
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        for (size_t i = 0; colon && i < 2; i++) {
            if (strncmp(line, fields[i], strlen(fields[i])) != 0) continue;
            snprintf(text, 64, "%s", colon + 1);
            stream_discard(file);
            return true;
        }
    }
    stream_discard(file);
    file = fopen("/proc/device-tree/model", "r");
    if (!file) return false;
    size_t length = fread(text, 1, 63, file);
    stream_discard(file);
    text[length] = '\0';
    return length > 0;
}
#endif

/* Copies words separated by single blanks: brand strings are padded before, after and in the middle. */
void cpu_name(char *name, size_t capacity_bytes)
{
    char text[64];
    size_t length = 0;
    if (!capacity_bytes) return;
    if (!read_name(text)) strcpy(text, "unknown");
    for (const char *c = text; *c && length + 1 < capacity_bytes; c++) {
        bool blank = *c == ' ' || *c == '\t' || *c == '\n';
        if (blank && (length == 0 || name[length - 1] == ' ')) continue;
        name[length++] = blank ? ' ' : *c;
    }
    while (length > 0 && name[length - 1] == ' ') length--;
    name[length] = '\0';
    if (length == 0) snprintf(name, capacity_bytes, "unknown");
}
