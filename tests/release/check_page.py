#!/usr/bin/env python3
"""Checks a page that computes without a browser, and takes it apart: check_page.py PAGE.html [FOLDER]

Its parts have the lengths that it says, its modules are WebAssembly, and it asks no other machine for anything. FOLDER gets its modules and
its model. SPDX-License-Identifier: MIT
"""
import base64
import re
import sys
import zlib
from pathlib import Path


def parts_of(page):
    """{"modules/deberta-scalar.wasm" or "model/config.json": bytes}, of pieces that are packed together."""
    pieces, found = {}, {}
    for name, text in re.findall(r'<script type="text/plain" class="([^"]*)">([^<]*)</script>', page):
        pieces[name] = pieces.get(name, b"") + base64.b64decode(text)
    for key, name, size in re.findall(r'\{"id": ?"((?:module|file)-[^"]*)", ?"name": ?"([^"/]*)", ?"bytes": ?(\d+)\}', page):
        assert key in pieces, f"there is no part for {name}"
        data = zlib.decompress(pieces.pop(key))
        assert len(data) == int(size), f"{name} has {len(data)} bytes, expected {size}"
        assert key.startswith("file-") or data[:4] == b"\0asm", f"the module {name} is no WebAssembly"
        found[f"model/{name}" if key.startswith("file-") else f"modules/deberta-{name}.wasm"] = data
    assert not pieces, f"nothing says what {', '.join(pieces)} is"
    assert any(name.startswith("modules/") for name in found), "there are no modules"
    return found


def main():
    page = Path(sys.argv[1]).read_text("utf-8")
    asked = re.findall(r"""<(?:script|link|img|iframe)[^>]*?(?:src|href)=["'](https?:[^"']*)""", page)
    try:
        assert not asked, f"it asks {', '.join(asked)}"
        parts = parts_of(page)
    except (AssertionError, ValueError, zlib.error) as problem:
        sys.exit(f"{sys.argv[1]}: {problem}")
    for name, data in parts.items() if sys.argv[2:] else ():
        path = Path(sys.argv[2], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{sys.argv[1]}: {len(page):,} characters, {len(parts)} parts, of which {sum(name.startswith('modules/') for name in parts)} are modules; no other machine is asked")


if __name__ == "__main__":
    main()
