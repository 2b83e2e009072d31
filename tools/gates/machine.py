"""What a run asks of this machine: its tiers, and the day, which is the seed of samples.

SPDX-License-Identifier: MIT
"""
import datetime
import os

from processes import ROOT, execute


DAY = "DEBERTA_TEST_DAY"


def day():
    """Returns the day, which decides samples; DAY in the environment repeats another day's."""
    return int(os.environ.get(DAY) or datetime.date.today().toordinal())


def even_parts(rows, parts, seconds):
    """Returns so many lists that take equally long: the longest row first, each into the list that has least to do."""
    lists, sums = [[] for _ in range(parts)], [0] * parts
    for row in sorted(rows, key=lambda row: -seconds(row)):
        least = sums.index(min(sums))
        lists[least].append(row)
        sums[least] += seconds(row)
    return lists


def turn_of_today(rows, parts, seconds):
    """Returns one of so many parts of the rows, another every day, and the rest; after `parts` days all rows have had their turn."""
    taken = even_parts(rows, parts, seconds)[day() % parts]
    return taken, [row for row in rows if row not in taken]


def has_flag(flag):
    """Returns true if an x86 processor lists this flag."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return any(line.startswith("flags") and flag in line.split() for line in lines)
    except OSError:
        return False


def native_tiers():
    """The tiers that this machine must be able to run: those that the build knows (simd/meson.build), with the words of /proc/cpuinfo
    that each needs. The stand-ins of parts run where their tier does."""
    list_of_tiers = os.path.join(ROOT, "build", "simd", "tiers.txt")
    if not os.path.exists(list_of_tiers):  # written by meson setup
        execute(["meson", "setup", "build", "-Dtests=enabled", "--buildtype=release"])
    with open(list_of_tiers, encoding="utf-8") as lines:
        words = {line.split()[0]: line.split()[2:] for line in lines if line.strip()}
    if os.uname().machine == "aarch64":
        return [tier for tier in ("scalar", "scalar_fma", "neon") if tier in words]
    words |= {f"{part}_stand_in": words[tier] for part, tier in (("avxvnni", "avx2"), ("avx512amx", "avx512")) if tier in words}
    return [tier for tier, flags in words.items() if all(has_flag(flag) for flag in flags)]
