#!/usr/bin/env python3
"""Static analysis of the library, at zero findings; the nightly stages `analysis` and `clang-tidy` of tools/gates/run_tests.py.

    tools/gates/analysis.py                  gcc's analyser and warnings, and cppcheck, over core/, simd/ and train/
    tools/gates/analysis.py clang-tidy       that one tool (gcc, cppcheck, clang-tidy); its checks stand in .clang-tidy
    tools/gates/analysis.py --folder build   whose compile_commands.json is taken

Findings that somebody has read and that are none stand in tools/gates/analysis_accepted.tsv: tool, file, check, how many, and why. One more
of a kind than accepted fails. Each tool first has to see the faults of a planted file. The list is of one version of each tool: another
version, or a tool that is absent, is skipped by name.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ACCEPTED = os.path.join("tools", "gates", "analysis_accepted.tsv")
ROOMS = ("core", "simd", "train")  # for simd, which has hardly a branch, compiler warnings suffice; cppcheck sees the scalar tier
VERSIONS = {"gcc": ("12", ["gcc", "-dumpversion"]), "cppcheck": ("2.10", ["cppcheck", "--version"]),
            "clang-tidy": ("14", ["clang-tidy", "--version"])}
FINDING = re.compile(r"^(.*?):(\d+):(?:\d+:)? (?:warning|error|performance|portability): (.*) \[([\w.,=-]+)\]$")
NO_PLACE = re.compile(r"^()cc1:() warning: (.*) \[([\w.,=-]+)\]$")
Finding = collections.namedtuple("Finding", "tool file line check message")

PLANTED = """#include <stdlib.h>
int planted(int count, double factor);
int planted(int count, double factor)
{
    int *numbers = malloc(4 * sizeof *numbers);
    if (!numbers) return 0;
    numbers[0] = count;
    free(numbers);
    int count_of = numbers[0];
    { int count = (int)factor; count_of += count; }
    short narrow = count_of;
    char small[4];
    small[4] = (char)narrow;
    return small[4];
}
"""
PLANTED_CHECKS = {"gcc": {"-Wanalyzer-use-after-free", "-Wconversion", "-Wshadow"}, "cppcheck": {"arrayIndexOutOfBounds"},
                  "clang-tidy": {"clang-analyzer-unix.Malloc"}}


class CannotRun(Exception):
    """The tool is absent, or has another version than the list of accepted findings."""


def version_of(tool):
    wanted, command = VERSIONS[tool]
    if not shutil.which(command[0]):
        raise CannotRun(f"{tool} is not installed")
    found = re.search(r"\d+(?:\.\d+)*", subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)[0]
    if (found + ".").startswith(wanted + "."):
        return found
    raise CannotRun(f"{tool} {found} is here, {ACCEPTED} is of {wanted}")


# ------------------------------------------------------------------------------------------------------------- running

def output_of(command, folder=ROOT):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False).stdout


def compilations(folder):
    """Returns [(file, command without its output)] for the library; a file that several tiers compile occurs once for each."""
    with open(os.path.join(ROOT, folder, "compile_commands.json"), encoding="utf-8") as rows:
        rows = json.load(rows)
    found = {}
    for row in rows:
        file = os.path.relpath(os.path.join(row["directory"], row["file"]), ROOT)
        # The peaks are loops that are measured; they compute no results.
        if file.split(os.sep)[0] in ROOMS and "peak_" not in file and "Wshadow" in row["command"]:
            words = [word for word in shlex.split(row["command"]) if not word.endswith("ccache")]
            begin = next(k for k, word in enumerate(words) if word in ("-MD", "-MQ", "-MF", "-o"))
            found.setdefault((file, " ".join(word for word in words if word.startswith(("-m", "-DSCALAR")))), words[:begin])
    return [(file, words) for (file, _), words in sorted(found.items())]


def run_gcc(sources, folder):
    for file, words in sources:
        words = ["gcc", *words[1:], "-O2", "-fdiagnostics-color=never"]
        if file.split(os.sep)[0] == "simd":
            words += ["-fsyntax-only"]
        elif "-fsyntax-only" not in words:
            words += ["-S", "-o", "/dev/null", "-fanalyzer", "-fdiagnostics-path-format=none"]
        yield output_of([*words, os.path.join(ROOT, file)], folder)


def run_cppcheck(sources, _folder):
    folders = {os.path.dirname(file) if file.startswith("simd") else file.split(os.sep)[0] for file, _ in sources}
    places = sorted(folder for folder in folders if not folder.startswith("simd") or folder.endswith("scalar"))
    yield output_of(["cppcheck", "--quiet", "--std=c11", "--enable=warning,performance,portability", "--template={file}:{line}: {severity}: {message} [{id}]",
                     "-I", "include", "-I", ".", "-DHAVE_AVX2=1", "-DHAVE_AVX512=1", *places])


def run_clang_tidy(sources, folder):
    files = sorted({file for file, _ in sources if file.split(os.sep)[0] != "simd"})
    for begin in range(0, len(files), 16):  # in groups, so that an unreadable file does not end the whole run
        yield output_of(["clang-tidy", "--quiet", "-p", folder, *files[begin:begin + 16]])


RUN = {"gcc": run_gcc, "cppcheck": run_cppcheck, "clang-tidy": run_clang_tidy}


def findings_in(tool, output, folder):
    """Yields the tool's findings in the project's files; a header that several sources include counts once."""
    for line in output.split("\n"):
        match = FINDING.match(line) or NO_PLACE.match(line)
        if match:
            path, number, message, check = match.groups()
            yield Finding(tool, in_project(path, folder) if path else "-", number, check.split(",")[0], message)


def in_project(path, folder):
    """Returns a path relative to the project: tools print paths from the build folder, as given, or both ways."""
    places = [os.path.normpath(os.path.join(base, path)) for base in (folder, ROOT)]
    return os.path.relpath(next((place for place in places if os.path.exists(place)), places[1]), ROOT)


def findings_of(tool, sources, folder):
    return sorted({finding for output in RUN[tool](sources, folder) for finding in findings_in(tool, output, folder)})


def sees_planted_faults(tool):
    """Tests that a tool works; returns the checks that should have found planted faults and did not."""
    with tempfile.TemporaryDirectory(dir=ROOT, prefix="build-planted-") as folder:
        path = os.path.join(folder, "planted.c")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PLANTED)
        words = ["cc", "-std=gnu17", "-Wall", "-Wconversion", "-Wshadow"]
        with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as out:
            json.dump([{"directory": folder, "file": path, "command": shlex.join([*words, "-c", path])}], out)
        seen = {finding.check for finding in findings_of(tool, [(os.path.relpath(path, ROOT), words)], folder)}
    return PLANTED_CHECKS[tool] - seen


# ------------------------------------------------------------------------------------------------------------- judging

def accepted_findings(path=ACCEPTED):
    """Returns {(tool, file, check): number}."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as rows:
        rows = [row.rstrip("\n").split("\t") for row in rows if not row.startswith("#")]
    return {(tool, file, check): int(count) for tool, file, check, count, _reason in rows[1:]}


def not_accepted(findings, accepted):
    """Returns all findings of a kind that has more than accepted, since it is unknown which of them is new."""
    kinds = collections.Counter((finding.tool, finding.file, finding.check) for finding in findings)
    return [finding for finding in findings if kinds[finding[0], finding[1], finding[3]] > accepted.get((finding[0], finding[1], finding[3]), 0)]


def unneeded(tool, findings, accepted):
    kinds = collections.Counter((finding.tool, finding.file, finding.check) for finding in findings)
    return sorted(kind for kind, count in accepted.items() if kind[0] == tool and kinds[kind] < count)


def judge(tool, folder):
    """Returns (passed, failed): one test for the planted faults, one for the library."""
    version = version_of(tool)
    missed = sees_planted_faults(tool)
    for check in sorted(missed):
        print(f"{tool}: a planted fault was not seen: {check}")
    sources = compilations(folder)
    if not sources:
        print(f"{folder}: no file of the library is compiled with its warnings (-Wshadow): nothing was read")
        return 1 - bool(missed), 1 + bool(missed)
    findings, accepted = findings_of(tool, sources, os.path.join(ROOT, folder)), accepted_findings()
    faults = not_accepted(findings, accepted)
    for finding in faults:
        print(f"{finding.file}:{finding.line}: {finding.message} [{tool} {finding.check}]")
    for kind in unneeded(tool, findings, accepted):
        print(f"{ACCEPTED}: fewer of this are left: {' '.join(kind)}")
    print(f"{tool} {version}: {len(findings)} findings, {len(findings) - len(faults)} of them read and accepted", flush=True)
    return 2 - bool(missed) - bool(faults), bool(missed) + bool(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", default=["gcc", "cppcheck"])
    parser.add_argument("--folder", default="build")
    options = parser.parse_args()
    if set(options.tools) - set(RUN):
        parser.error(f"tools are {', '.join(RUN)}")
    passed = failed = skipped = 0
    for tool in options.tools:
        try:
            fine, bad = judge(tool, options.folder)
            passed, failed = passed + fine, failed + bad
        except CannotRun as reason:
            print(f"skipped: {reason}")
            skipped += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
