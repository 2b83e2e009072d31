/* Defines the options that every command takes. SPDX-License-Identifier: MIT */
#include "core/base/tiers.h"
#include "core/base/topology.h"
#include "program/frame/option_scan.h"

void common_isa_read(common_options *options, const char *source, const char *name)
{
    deberta_isa *isa = &options->isa;
    deberta_error error;
    if (deberta_isa_from_name(isa, name, &error) != DEBERTA_OK) usage_wrong(options, "%s: %s", source, error.message);
    const char *missing = *isa == DEBERTA_ISA_AUTO ? NULL : deberta_isa_missing(*isa);
    if (missing) usage_wrong(options, "%s: %s cannot run here: %s", source, name, missing);
}

static void parse_isa(common_options *options, const char *text, void *target)
{
    (void)target; /* the member of the row */
    common_isa_read(options, "--isa", text);
}

#define X(NAME, name, ...) #name,
static const char *const tiers[] = {"auto", TIER_LIST(X) NULL};
#undef X
static const char *const references[] = {"auto", "microsoft", "hf", NULL}, *const moments[] = {"auto", "never", NULL};
const char *const precision_choices[] = {"float32", "int16", "int8", NULL};

_Static_assert(sizeof precision_choices / sizeof *precision_choices == DEBERTA_PRECISION_COUNT + 1, "a name for each");
_Static_assert(sizeof references / sizeof *references == DEBERTA_REFERENCE_COUNT + 1, "a name for each");

const char *reference_name(int reference) { return references[reference]; }

#define X(NAME, name, ...) ", " #name
const option common_option_table[] = {
    {"isa", 0, "NAME", "kernels to use: auto (default)" TIER_LIST(X) "; also from DEBERTA_ISA",
     PARSED_AT(common_options, isa, parse_isa), .choices = tiers},
    {"threads", 't', "N", "threads; 0 = OMP_NUM_THREADS, else physical cores this process may use (default)",
     SIZE_AT(common_options, threads, 0, TOPOLOGY_MAX_WORKERS)},
    {"reference", 0, "NAME",
     "distances beyond the table: hf, as transformers has them, or microsoft; auto (default): hf if config.json has "
     "a model_type, else microsoft, and so for made-up models",
     CHOICE_AT(common_options, reference, references)},
    {"precision", 0, "NAME", "linear layers in float32 (default), int16 (15 bits) or int8; see docs/precision.md",
     CHOICE_AT(common_options, precision, precision_choices)},
    {"seed", 0, "N", "seed of what is drawn at random; made-up weights have theirs in the name (seed=)",
     U64_AT(common_options, seed)},
    {"memory-limit", 0, "BYTES", "refuse before running what would need more, model included (suffixes K, M, G)",
     BYTES_AT(common_options, memory_limit_bytes)},
    {"json", 0, NULL, "results as JSON", FLAG_AT(common_options, json), .role = OPTION_SHOWS},
    {"out", 'o', "PATH", "where results go, in the form that the suffix names; default standard output",
     TEXTS_AT(common_options, outs), .role = OPTION_OUTPUT},
    {"quiet", 'q', NULL, "no notes on stderr", FLAG_AT(common_options, quiet), .role = OPTION_TALKS},
    {"progress", 0, "WHEN", "progress on stderr: auto (on a terminal) or never",
     CHOICE_AT(common_options, progress, moments), .role = OPTION_TALKS},
    {"help", 'h', NULL, "this text", FLAG_AT(common_options, help)},
    {"version", 'V', NULL, "the program's version", FLAG_AT(common_options, version)},
    {.name = NULL},
};
#undef X
