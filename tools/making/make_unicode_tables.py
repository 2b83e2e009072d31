#!/usr/bin/env python3
"""Writes core/text/unicode_tables.h: what NFC, NFKC and Punctuation of the library `tokenizers` know of Unicode.

    tools/making/make_unicode_tables.py > core/text/unicode_tables.h
    tools/making/make_unicode_tables.py --hashes       what tests/unit/test_metaspace.c expects of all characters

The library normalises by Unicode 9.0 and finds punctuation by Unicode 8.0. Characters that came later are ordinary ones to it, and
must be so here. Properties are those of Python's unicodedata (9.0 or later: they never change once a character has them); a character
is in the tables if the library treats it so. Needs tokenizers (tested: 0.23.3); exit status 77 without.
SPDX-License-Identifier: MIT
"""
import sys
import unicodedata

try:
    from tokenizers import __version__, normalizers, pre_tokenizers
except ImportError as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(77)

from make_letter_tables import fnv, write

HANGUL = range(0xAC00, 0xAC00 + 11172)  # these are composed by a formula
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c not in HANGUL]
nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
nfkc, nfkd = normalizers.NFKC().normalize_str, normalizers.NFKD().normalize_str


def decompositions():
    """Yields (character, first, second or 0), one step each, for characters that the library decomposes."""
    for c in CHARACTERS:
        parts = unicodedata.decomposition(chr(c)).split()
        if parts and not parts[0].startswith("<") and nfd(chr(c)) != chr(c):
            first, second = (int(p, 16) for p in (*parts, "0")[:2])
            yield c, first, second


def compatible():
    """Returns runs [first, last, what the first becomes] of equally shifted characters, and the rest as (character, its parts)."""
    runs, texts = [], []
    for c in CHARACTERS:
        parts = [ord(part) for part in nfkd(chr(c))]
        if nfkd(chr(c)) == nfd(chr(c)):
            continue
        if len(parts) > 1:
            texts.append((c, parts))
        elif runs and runs[-1][1] == c - 1 and parts[0] - runs[-1][2] == c - runs[-1][0]:
            runs[-1][1] = c
        else:
            runs.append([c, c, parts[0]])
    return runs, texts


def combining_class(c):
    """Returns the class; 0 for a character that the library does not reorder beside a mark of another class."""
    own = unicodedata.combining(chr(c))
    low, high = "a" + chr(c) + "\u0334", "a\u0345" + chr(c)  # marks of the classes 1 and 240
    return own if nfd(low) != low or nfd(high) != high else 0


def ranges(pairs):
    """Returns (first, last, value) of neighbours with the same non-zero value."""
    found = []
    for c, value in pairs:
        if value and found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        elif value:
            found.append([c, c, value])
    return found


def is_punctuation(c, splitter=pre_tokenizers.Punctuation(behavior="isolated")):
    return len(splitter.pre_tokenize_str("a" + chr(c) + "a")) == 3


def print_hashes():
    """FNV-1a of what the library makes of every character, alone and beside marks, where that is not the same text; and of its
    punctuation."""
    composed = folded = marks = 0xCBF29CE484222325
    for c in (c for c in range(0x110000) if not 0xD800 <= c < 0xE000):
        for text in (chr(c), f"a{chr(c)}\u0334", f"a\u0345{chr(c)}"):
            if nfc(text) != text:
                composed = fnv(composed, nfc(text))
            if nfkc(text) != text:
                folded = fnv(folded, nfkc(text))
        marks = fnv(marks, chr(c)) if is_punctuation(c) else marks
    print(f"NFC {composed:#x} NFKC {folded:#x} punctuation {marks:#x}")


def main():
    if sys.argv[1:] == ["--hashes"]:
        return print_hashes()
    steps = list(decompositions())
    composed = sorted((first, second, at) for at, (c, first, second) in enumerate(steps)
                      if second and nfc(chr(first) + chr(second)) == chr(c))
    classes = ranges((c, combining_class(c)) for c in CHARACTERS)
    runs, texts = compatible()
    marks = ranges((c, is_punctuation(c)) for c in CHARACTERS)
    print(f"""/* Made by tools/making/make_unicode_tables.py; not to be edited. Facts of the Unicode Character Database: canonical and
 * compatibility decompositions, compositions and combining classes as of Unicode 9.0, punctuation as of Unicode 8.0,
 * which is what the library tokenizers {__version__} has. Their copyright is Unicode, Inc.'s, under the Unicode License V3
 * (https://www.unicode.org/license.txt).
 *
 * SPDX-License-Identifier: MIT AND Unicode-3.0 */
#pragma once

/* clang-format off */""")
    write("decomposition_step", "decomposition_steps", "A character and the one or two (0: one) that it is taken apart into, ascending.",
          [f"{{{c},{first},{second}}}" for c, first, second in steps])
    write("uint16_t", "composition_order", "Places in decomposition_steps of what is put together again, ascending by the two parts.",
          [str(at) for _, _, at in composed])
    write("compatible_run", "compatible_runs", "First and last of characters that become as many others, and the first of these; ascending.",
          [f"{{{first},{last},{to}}}" for first, last, to in runs])
    write("compatible_text", "compatible_texts", "A character, where its parts begin in compatible_parts, and how many they are; ascending.",
          [f"{{{c},{sum(len(p) for _, p in texts[:at])},{len(parts)}}}" for at, (c, parts) in enumerate(texts)])
    write("uint32_t", "compatible_parts", "The parts, taken apart as far as they go.", [str(part) for _, parts in texts for part in parts])
    write("class_range", "class_ranges", "First, last and their combining class, where it is not 0; ascending.",
          [f"{{{first},{last},{value}}}" for first, last, value in classes])
    write("character_range", "punctuation_ranges", "First and last; ascending.", [f"{{{first},{last}}}" for first, last, _ in marks])
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
