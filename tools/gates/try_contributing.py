#!/usr/bin/env python3
"""Does what CONTRIBUTING.md shows still work? Applies its diffs to a copy of the tree, builds that, and runs the commands below each diff.

    tools/gates/try_contributing.py [--fit] [FOLDER]

--fit: only that each diff fits the tree and touches as few files as it should; nothing is built. FOLDER holds the copy and its build, and is kept; without it both are temporary. A diff that touches more than three files, of a kernel
more than five, of an activation more than four, of an instruction set more than eight, of a study more than one, fails: adding something must not mean searching for all the places that know of it.
Needs meson, ninja and, for a kernel or an instruction set, cmocka.
The last line is `N passed, N failed`.

SPDX-License-Identifier: MIT
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_FILES = {"Add a kernel": 5, "Add an activation": 4, "Add an instruction set": 8, "Add a study": 1}
USUAL_MOST_FILES = 3
# A diff, and the commands that show its effect.
EXAMPLE = re.compile(r"^```diff\n(.*?)^```\n.*?^```sh\n(.*?)^```$", re.M | re.S)

def copy_tree(folder):
    """Copies all files that git knows, with uncommitted changes."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True).stdout
    present = b"\0".join(name for name in names.split(b"\0") if name and os.path.exists(os.path.join(ROOT.encode(), name)))
    packed = subprocess.run(["tar", "-C", ROOT, "--null", "-T", "-", "-cf", "-"], input=present, capture_output=True, check=True).stdout
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["tar", "-C", folder, "-xf", "-"], input=packed, check=True)

def files_of(diff):
    """Returns [(path, [hunk, ...])]; a hunk is its lines with their first characters."""
    parts = re.split(r"^(?:--- a/\S+\n)?\+\+\+ b/(\S+)\n", diff, flags=re.M)[1:]
    return [(path, [hunk for hunk in re.split(r"^@@.*\n", body, flags=re.M) if hunk]) for path, body in zip(parts[::2], parts[1::2])]

def side(hunk, signs):
    return "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in signs)

def apply(folder, path, hunks):
    """Applies hunks. A new file takes the new side; otherwise the old side of each hunk must occur in the file once."""
    place = os.path.join(folder, path)
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        text = side(hunks[0], "+")
    else:
        with open(place, encoding="utf-8") as file:
            text = file.read()
        for hunk in hunks:
            old = side(hunk, " -")
            assert text.count(old) == 1, f"{path}: these lines stand in it {text.count(old)} times:\n{old}"
            text = text.replace(old, side(hunk, " +"))
    with open(place, "w", encoding="utf-8") as file:
        file.write(text)

def shell(folder, command):
    environment = {**os.environ, "PATH": os.path.join(folder, "build") + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    ran_tests = not re.search(r"^0 passed", done.stdout, re.M)
    # Warnings are on, but without -Werror, so that the compiler's cache knows the files from build/.
    warned = re.search(r"\bwarning:.*", done.stdout)
    assert done.returncode == 0 and ran_tests and not warned, f"{command}\n{warned.group() if warned else ''}\n{done.stdout[-4000:]}"

def try_all(folder, fit):
    counts = {True: 0, False: 0}

    def attempt(what, function, *arguments):
        try:
            function(*arguments)
            fine = True
        except (AssertionError, subprocess.CalledProcessError) as failure:
            fine = False
            print(f"CONTRIBUTING.md, {what}: {failure}")
        counts[fine] += 1
        return fine

    def add(what, diff):
        files, most = files_of(diff), MOST_FILES.get(what, USUAL_MOST_FILES)
        assert 0 < len(files) <= most, f"touches {len(files)} files, at most {most} should be needed"
        for path, hunks in files:
            apply(folder, path, hunks)

    copy_tree(folder)
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)
    examples = [(section.split("\n")[0], *found) for section in sections for found in EXAMPLE.findall(section)]
    attempt("as a whole", lambda: shell(ROOT, f"test {len(examples)} -ge 3"))
    tried = [(what, commands) for what, diff, commands in examples if attempt(what, add, what, diff)]
    if not fit and attempt("building", shell, folder, "[ -e build/build.ninja ] || meson setup build -Dtests=disabled -Dkernels=plain; ninja -C build"):
        for what, commands in tried:
            for command in commands.strip().split("\n"):
                attempt(what, shell, folder, command)
    print(f"{counts[True]} passed, {counts[False]} failed")
    return counts[False] == 0

def main():
    words = sys.argv[1:]
    fit = "--fit" in words
    if fit:
        words.remove("--fit")
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print(__doc__)
        return 2
    if words:
        return 0 if try_all(os.path.abspath(words[0]), fit) else 1
    with tempfile.TemporaryDirectory() as folder:
        return 0 if try_all(folder, fit) else 1

if __name__ == "__main__":
    sys.exit(main())
