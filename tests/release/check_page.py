#!/usr/bin/env python3
"""Checks a page that computes without a browser: check_page.py PAGE.html. Its modules are WebAssembly, and it asks no other machine for anything.

SPDX-License-Identifier: MIT
"""
import base64
import re
import sys

LONG = 20000  # letters of base64: a module or a model's file


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    parts = [base64.b64decode(text + "=" * (-len(text) % 4)) for text in re.findall(rf"[A-Za-z0-9+/]{{{LONG},}}", page)]
    modules = sum(part[:4] == b"\0asm" for part in parts)
    asked = [url for url in re.findall(r"""<(?:script|link|img|iframe)[^>]*?(?:src|href)=["'](https?:[^"']*)""", page)]
    if not modules or asked:
        sys.exit(f"{sys.argv[1]}: {modules} modules, asks {asked}")
    print(f"{sys.argv[1]}: {len(page):,} bytes, {len(parts)} parts, of which {modules} are WebAssembly; no other machine is asked")


if __name__ == "__main__":
    main()
