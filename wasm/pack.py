#!/usr/bin/env python3
"""Puts the modules, deberta.mjs and all licences into BUILD/package, and packs it where npm is: wasm/pack.py BUILD.

Nothing is uploaded. SPDX-License-Identifier: MIT
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

from configure import ROOT, TIERS, version

LICENCES = [("deberta.c", ROOT / "LICENSE"), ("jansson", "jansson-2*/LICENSE"), ("PCRE2", "pcre2-10*/LICENCE"),
            ("wasi-libc", Path("/usr/share/doc/wasi-libc/copyright")), ("compiler-rt", Path("/usr/share/doc/libclang-rt-19-dev-wasm32/copyright"))]
README = """# DeBERTa in WebAssembly

Encoders of the DeBERTa family with the bits of the native program, in Node and browsers. `example.mjs` shows the use, `deberta.d.ts` the
whole interface. Weights come from safetensors; one thread; a model and its files take at most 4 GB.
"""


def write_licences(folder, sources):
    parts = []
    for name, place in LICENCES:
        path = place if isinstance(place, Path) else next(sources.glob(place))
        parts.append(f"{'=' * 20} {name}\n\n{path.read_text(encoding='utf-8', errors='replace')}")
    (folder / "LICENSES.txt").write_text("\n".join(parts), encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    build = Path(sys.argv[1]).resolve()
    folder = build / "package"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "wasm/package", folder)
    script = folder / "deberta.mjs"
    script.write_text(script.read_text() + "\n" + (ROOT / "wasm/usable_tiers.js").read_text())
    for tier in TIERS:
        shutil.copy(build / f"deberta-{tier}.wasm", folder)
        (folder / f"deberta-{tier}.wasm").chmod(0o644)
    write_licences(folder, build / "sources")
    (folder / "README.md").write_text(README)
    about = {"name": "deberta", "version": version(), "description": "DeBERTa encoders in WebAssembly, with the bits of the native program",
             "license": "SEE LICENSE IN LICENSES.txt", "type": "module", "main": "deberta.mjs", "types": "deberta.d.ts", "private": True,
             "exports": {".": {"types": "./deberta.d.ts", "default": "./deberta.mjs"}, "./*.wasm": "./*.wasm"}, "engines": {"node": ">=18"}}
    (folder / "package.json").write_text(json.dumps(about, indent=2) + "\n")
    if not shutil.which("npm"):
        print(f"packed: {folder} (there is no npm that would make an archive)")
        return
    subprocess.run(["npm", "pack", "--offline", "--silent", "--pack-destination", str(build), str(folder)], check=True, stdout=subprocess.DEVNULL)
    print(f"packed: {build / ('deberta-' + version() + '.tgz')}")


if __name__ == "__main__":
    main()
