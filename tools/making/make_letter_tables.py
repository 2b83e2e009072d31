#!/usr/bin/env python3
"""Writes core/base/letter_tables.h: the lower case of every character, and the scripts that part words without white space.

    tools/making/make_letter_tables.py > core/base/letter_tables.h
    tools/making/make_letter_tables.py --hash          what tests/unit/test_letters.c expects of the lower case of all characters
    tools/making/make_letter_tables.py --compare       whether Python's str.lower and the C library's towlower say the same

Lower case is that of Unicode 14.0, as Python's str.lower has it for single characters. A Python with another version would move ids, so it
is refused (exit status 77). Word breaks follow Unicode's annex 29, in which every ideograph, kana and letter of the scripts of
South-East Asia is a word of its own.
SPDX-License-Identifier: MIT
"""
import ctypes
import sys
import unicodedata

VERSION = "14.0.0"
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Blocks of scripts that separate words without white space, with their punctuation.
UNSPACED = [
    (0x0E00, 0x0E7F, "Thai"), (0x0E80, 0x0EFF, "Lao"), (0x0F0B, 0x0F0C, "Tibetan marks between syllables"), (0x1000, 0x109F, "Myanmar"),
    (0x1780, 0x17FF, "Khmer"), (0x1950, 0x19DF, "Tai Le, New Tai Lue"), (0x1A20, 0x1AAF, "Tai Tham"), (0x1B00, 0x1B7F, "Balinese"),
    (0x2E80, 0x2FDF, "radicals"), (0x3001, 0x303F, "marks of Chinese and Japanese"), (0x3040, 0x30FF, "kana"),
    (0x3100, 0x312F, "Bopomofo"), (0x31A0, 0x31BF, "Bopomofo"), (0x31F0, 0x31FF, "kana"), (0x3400, 0x4DBF, "ideographs"),
    (0x4E00, 0x9FFF, "ideographs"), (0xA980, 0xA9DF, "Javanese"), (0xA9E0, 0xA9FF, "Myanmar"), (0xAA60, 0xAA7F, "Myanmar"),
    (0xAA80, 0xAADF, "Tai Viet"), (0xF900, 0xFAFF, "ideographs"), (0xFF01, 0xFF0F, "wide marks"), (0xFF1A, 0xFF20, "wide marks"),
    (0xFF3B, 0xFF40, "wide marks"), (0xFF5B, 0xFF9F, "wide marks, narrow kana"), (0x11700, 0x1174F, "Ahom"),
    (0x16FE0, 0x18DFF, "Tangut, Khitan"), (0x1AFF0, 0x1B2FF, "kana, Nushu"), (0x20000, 0x323AF, "ideographs"),
]
# Characters that always continue the one before: joiners, variation selectors, and the marks of narrow kana.
JOINING = [(0x200C, 0x200D), (0x3099, 0x309A), (0xFE00, 0xFE0F), (0xFF9E, 0xFF9F), (0xE0100, 0xE01EF)]


def lower_runs():
    """Returns [first, last, step, what the first becomes]: every step-th character is shifted by the same amount."""
    runs = []
    for c in CHARACTERS:
        to = ord(chr(c).lower()[0])
        if to == c:
            continue
        if runs:
            first, last, step, begin = runs[-1]
            if to - begin == c - first and c - last in ((1, 2) if last == first else (step,)):
                runs[-1][1:3] = [c, c - last]
                continue
        runs.append([c, c, 1, to])
    return runs


def ranges(characters):
    found = []
    for c in sorted(characters):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def unspaced():
    """Returns the ranges without digits, which stay together in every script."""
    return ranges(c for first, last, _ in UNSPACED for c in range(first, last + 1) if unicodedata.category(chr(c)) != "Nd")


def marks():
    own = {c for first, last, _ in UNSPACED for c in range(first, last + 1) if unicodedata.category(chr(c)) in ("Mn", "Mc", "Me")}
    return ranges(own | {c for first, last in JOINING for c in range(first, last + 1)})


def write(kind, name, comment, items):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[{len(items)}] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 120:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};")


def fnv(hash, text):
    for byte in text.encode():
        hash = (hash ^ byte) * 0x100000001B3 % 2**64
    return hash


def print_hash():
    """Prints FNV-1a over the lower case, in UTF-8, of every character that has another."""
    value = 0xCBF29CE484222325
    for c in CHARACTERS:
        if chr(c).lower() != chr(c):
            value = fnv(value, chr(c).lower())
    print(f"{value:#X}")


def compare():
    c_library = ctypes.CDLL("libc.so.6")
    c_library.newlocale.restype = ctypes.c_void_p
    c_library.towlower_l.argtypes = [ctypes.c_uint, ctypes.c_void_p]
    c_library.towlower_l.restype = ctypes.c_uint
    locale = c_library.newlocale(1, b"C.UTF-8", None)
    other = [c for c in CHARACTERS if c_library.towlower_l(c, locale) != ord(chr(c).lower()[0])]
    print(f"{len(other)} of {len(CHARACTERS)} characters differ", *(f"U+{c:04X}" for c in other[:20]))
    return len(other) > 0


def main():
    if unicodedata.unidata_version != VERSION:
        print(f"skipped: this Python has Unicode {unicodedata.unidata_version}, the tables are those of {VERSION}", file=sys.stderr)
        return 77
    if sys.argv[1:] == ["--hash"]:
        return print_hash()
    if sys.argv[1:] == ["--compare"]:
        return compare()
    print(f"""/* Made by tools/making/make_letter_tables.py; not to be edited. Facts of the Unicode Character Database {VERSION}, whose
 * copyright is Unicode, Inc.'s, under the Unicode License V3 (https://www.unicode.org/license.txt).
 *
 * SPDX-License-Identifier: MIT AND Unicode-3.0 */
#pragma once

/* clang-format off */""")
    write("lower_run", "lower_runs", "Last, first and step of characters that become as many others, and the first of these; ascending.",
          [f"{{{last},{first},{step},{to}}}" for first, last, step, to in lower_runs()])
    write("character_range", "unspaced_ranges", "Last and first of scripts without white space between words; ascending.",
          [f"{{{last},{first}}}" for first, last in unspaced()])
    write("character_range", "mark_ranges", "Last and first of what goes on with the character before it: marks of these scripts, joiners; ascending.",
          [f"{{{last},{first}}}" for first, last in marks()])


if __name__ == "__main__":
    sys.exit(main())
