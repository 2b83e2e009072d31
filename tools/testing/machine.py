"""What this machine is asked for: its tiers.

SPDX-License-Identifier: MIT
"""
import os


def has_flag(flag):
    """Is this in the processor's list? (x86)"""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return any(line.startswith("flags") and flag in line.split() for line in lines)
    except OSError:
        return False


# What /proc/cpuinfo must have for a tier to be required of this machine (core/base/cpu.c).
AVX2 = ["avx2", "fma", "f16c"]
AVX512 = ["avx512f", "avx512bw", "avx512dq", "avx512vl", *AVX2]
TIER_FLAGS = {"scalar": [], "scalar_fma": ["fma"], "avx2": AVX2, "avxvnni": [*AVX2, "avx_vnni"], "avxvnni_stand_in": AVX2,
              "avx512": AVX512, "avx512vnni": [*AVX512, "avx512_vnni"],
              "avx512amx": [*AVX512, "amx_tile", "amx_int8"], "avx512amx_stand_in": AVX512}


def native_tiers():
    """The tiers that this machine must be able to run."""
    if os.uname().machine == "aarch64":
        return ["scalar", "scalar_fma", "neon"]
    return [tier for tier, flags in TIER_FLAGS.items() if all(has_flag(flag) for flag in flags)]
