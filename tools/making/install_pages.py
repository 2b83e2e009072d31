#!/usr/bin/env python3
"""Makes words of links in installed pages whose files are not installed, such as those into the source. Meson runs it on their
folders, which are below the prefix.

SPDX-License-Identifier: MIT
"""
import os
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[([^][]*)\]\((?![a-z]+:)([^)#\s]+)[^)\s]*\)")


def main():
    inside = os.environ.get("DESTDIR", "") + os.path.join(os.environ["MESON_INSTALL_PREFIX"], "")
    for page in (page for folder in sys.argv[1:] for page in Path(inside + folder).rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        kept = LINK.sub(lambda link: link[0] if (page.parent / link[2]).exists() else link[1], text)
        if kept != text:
            page.write_text(kept, encoding="utf-8")


if __name__ == "__main__":
    main()
