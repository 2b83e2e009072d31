"""Does ./build.sh end in the build of a new folder, whatever was done and installed before? Its tools are stand-ins: a meson that remembers
what it found, as the real one does, and packages that are names in a file.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
from unittest import SkipTest

from helpers import ROOT, check, contains, equal

TOOLS = {
    # What is found is kept from the first setup on, and so are the options in the file that meson has for them.
    "meson": r"""
[ "$1" != --version ] || { echo 1.3.0; exit; }
kept=build/meson-private/cmd_line.txt; action=$1; shift 2
echo "$action $*" >>log
for argument in "$@"; do case $argument in *machine*) exit 1 ;; esac; done
mkdir -p build/meson-private; touch build/build.ninja $kept
[ -e build/meson-private/found ] || sort packages >build/meson-private/found
options=$(sed -n 's/ = /=/p' $kept)
for argument in "$@"; do
    name=${argument#-D}; name=${name#--}
    options=$(echo "$options" | grep -v "^${name%%=*}=" || true; echo "$name")
done
{ echo '[options]'; echo "$options" | grep = | sed 's/=/ = /' | sort; printf '\n[properties]\n'; } >$kept""",
    "ninja": "",
    "pkg-config": r"""
[ "$1" != --modversion ] || shift
[ "$1" != --exists ] || shift
for name in "$@"; do grep -qx "$name" packages || exit 1; done; echo 1.0""",
    "cc": r"""
case $1 in
-E) read -r line; line=${line#*<}; case ${line%>} in sleef.h) grep -qx sleef packages ;; esac ;;
-dumpversion) echo 12 ;;
--version) echo "stand-in ${COMPILER:-12}" ;;
esac""",
    "python3": "",
    "objdump": "", "git": "", "dpkg-query": "", "pdfinfo": "",
    "mpicc": "",
}
LIBRARIES = ["hwloc", "jansson", "libzip", "libpcre2-8", "zlib"]
FIGURES = ["cairo", "cairo-pdf", "pangocairo", "harfbuzz", "libpng"]


def newcomer(bench, name):
    folder = pathlib.Path(bench.path(name))
    (folder / "bin").mkdir(parents=True)
    (folder / "tools" / "making").mkdir(parents=True)
    shutil.copy(ROOT / "build.sh", folder)
    for tool, script in TOOLS.items():
        (folder / "bin" / tool).write_text("#!/bin/sh\nset -eu\n" + script + "\n", encoding="utf-8")
        (folder / "bin" / tool).chmod(0o755)
    (folder / "tools" / "making" / "demo.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "tools" / "making" / "demo.sh").chmod(0o755)
    (folder / "packages").write_text("\n".join(LIBRARIES) + "\n", encoding="utf-8")
    return folder


def build(folder, *arguments, packages=(), status=0, **environment):
    """Runs build.sh where these packages came before it."""
    with open(folder / "packages", "a", encoding="utf-8") as file:
        file.writelines(f"{package}\n" for package in packages)
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "CC": "cc", "HOME": str(folder), **environment}
    done = subprocess.run(["sh", "./build.sh", "--no-install", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    equal(done.returncode, status, done.stdout + done.stderr)
    return done.stderr


def state(folder):
    """What meson has found, and the options but of the tests: they stay once they were asked for."""
    private = folder / "build" / "meson-private"
    options = [line for line in (private / "cmd_line.txt").read_text().split("\n") if not line.startswith(("tests", "viz"))]
    return sorted(set((private / "found").read_text().split())), options


def log(folder):
    return (folder / "log").read_text().rstrip("\n").split("\n")


def test_build_script_configures_again_when_a_package_came(bench):
    folder = newcomer(bench, "later")
    build(folder, "demo", "--no-viz")
    build(folder, "demo", "--no-viz")
    equal([line.split()[0] for line in log(folder)], ["setup", "configure"])
    build(folder, "test", "--no-viz", packages=["cmocka", "sleef"])
    equal(state(folder)[0], sorted([*LIBRARIES, "cmocka", "sleef"]))
    contains(log(folder)[-1], "setup", "-Dtests=enabled", "-Dbuildtype=release", "-Dviz=disabled")
    build(folder, "--no-viz", COMPILER="13")  # another compiler too; the tests stay
    contains(log(folder)[-1], "setup", "-Dtests=enabled")
    build(folder, "--no-viz", COMPILER="13")
    contains(log(folder)[-1], "configure")


def test_build_script_keeps_options(bench):
    folder = newcomer(bench, "options")
    build(folder, "--no-viz")
    kept = folder / "build" / "meson-private" / "cmd_line.txt"
    kept.write_text(kept.read_text().replace("[options]\n", "[options]\nc_args = -O2 -g\nkernels = plain\n"))
    build(folder, "--no-viz", packages=["ompi-c"])
    contains(log(folder)[-1], "-Dc_args=-O2 -g", "-Dkernels=plain")
    kept.write_text(kept.read_text() + "native_file = ['clang.ini']\n")
    contains(build(folder, "--no-viz", packages=["mpich"], status=4), "machine file")
    check(kept.exists(), "nothing is removed where it cannot be made again")


def test_build_script_any_order_is_a_new_folder(bench):
    random_order = random.Random(7)
    for case in range(3):
        folder, order = newcomer(bench, f"order{case}"), random_order.sample(["cmocka", "sleef", "ompi-c", *FIGURES], 8)
        build(folder, "build", "--no-viz")
        came = {order.pop() for _ in range(random_order.randint(0, 3))}
        build(folder, random_order.choice(["build", "demo"]), "--no-viz", packages=came)
        build(folder, "test", "--no-viz", packages=[p for p in order if p != "harfbuzz"] + ["cmocka", "sleef"])
        build(folder, random_order.choice(["build", "demo"]), "--no-viz", packages=order)
        fresh = newcomer(bench, f"fresh{case}")
        build(fresh, "build", "--no-viz", packages=set((folder / "packages").read_text().split()) - set(LIBRARIES))
        equal(state(folder), state(fresh))


def test_build_script_looks_where_meson_looks(bench):
    """Each library, header, program and module that a build file asks for is in what build.sh remembers."""
    remembered = re.search(r"what_is_found\(\) \{\n(.*?)\n\}", (ROOT / "build.sh").read_text(encoding="utf-8"), re.S).group(1).split()
    remembered = {word.strip(';"') for word in remembered}
    asked = set()
    for path in [ROOT / "meson.build", *ROOT.glob("[a-z]*/**/meson.build")]:
        if path.relative_to(ROOT).parts[0].startswith("build"):
            continue
        text = path.read_text(encoding="utf-8")
        asked.update(re.findall(r"\bdependency\('([^']+)'", text), re.findall(r"has_headers?(?:: |\()'([^']+)'", text),
                     re.findall(r"find_library\('([^']+)'", text), re.findall(r"find_program\('([^']+)'", text), re.findall(r"run_command\('([^']+)'", text),
                     re.findall(r"modules: \['([^']+)'", text))
        for names in re.findall(r"foreach name : \[([^\]]+)\]\n *\w+ = dependency", text):
            asked.update(re.findall(r"'([^']+)'", names))
    # The C library has these; meson's own scripts; MPI by its wrapper and Open MPI's name.
    asked -= {"m", "dl", "threads", "openmp", "mpi"} | {name for name in asked if name.endswith(".sh")}
    check({"hwloc", "sleef.h", "sleef", "c++", "sentencepiece", "cairo-pdf"} <= asked, asked)
    equal(asked - remembered, set(), "build.sh does not remember")


def test_build_refuses_fast_math(bench):
    compiler = shutil.which("cc")
    if not compiler:
        raise SkipTest("there is no compiler")
    for flag, fine in (("-O2", True), ("-ffast-math", False), ("-ffinite-math-only", False)):
        done = subprocess.run([compiler, "-D_GNU_SOURCE", flag, f"-I{ROOT}", "-fsyntax-only", "-x", "c", str(ROOT / "core" / "kernels.h")], capture_output=True, text=True)
        equal(done.returncode == 0, fine, done.stderr)
        check(fine or "change results" in done.stderr, done.stderr)
