"""What is installed: a wheel for any Python 3, whole after auditwheel, without compilers and from another folder. SPDX-License-Identifier: MIT"""
import ast
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import deberta_c
from conftest import DEMO, ROOT

WHEELS = os.environ.get("DEBERTA_WHEELS")
needs_wheel = pytest.mark.skipif(not WHEELS, reason="run by tests/python/run.py, which builds the wheel")

LINES = """
import deberta_c, sys
m = deberta_c.Model(sys.argv[1])
print(m.encode("a new store")["hidden_states.5"].shape, m.fill_mask("a new [MASK] opened", top=1)["masks"][0]["candidates"][0]["text"])
print(len(deberta_c.bench(sys.argv[1], tokens=16, reps=1, no_peak=True)))
"""


def test_the_installed_package_is_tested():
    if WHEELS:
        assert not Path(deberta_c.__file__).is_relative_to(ROOT / "python")
    assert (Path(deberta_c.__file__).parent / "py.typed").exists()
    header = (ROOT / "include" / "deberta.h").read_text()
    assert all(f"_{part} {number}\n" in header for part, number in zip(("MAJOR", "MINOR", "PATCH"), deberta_c.__version__.split(".")))


def test_the_oldest_python():
    """What pyproject.toml promises: the language and its library as they were then."""
    oldest = tuple(map(int, re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text()).groups()))
    files = sorted(Path(deberta_c.__file__).parent.glob("*.py"))
    for file in files:
        ast.parse(file.read_text(), feature_version=oldest)
    pytest.importorskip("vermin")
    command = [sys.executable, "-c", "import vermin; vermin.main()", f"-t={oldest[0]}.{oldest[1]}-", "--violations", "--no-tips", "--eval-annotations"]
    done = subprocess.run([*command, *files], capture_output=True, text=True)
    assert done.returncode == 0 and len(files) > 5, done.stdout


@needs_wheel
def test_wheel_for_others(tmp_path):
    """tools/making/wheel_with_figures.sh makes it; a clean environment with NumPy alone uses it where no compiler and no source is."""
    if not shutil.which("auditwheel"):
        pytest.skip("auditwheel is not installed")
    (wheel,) = Path(WHEELS).glob("*.whl")
    done = subprocess.run([ROOT / "tools" / "making" / "wheel_with_figures.sh", wheel, tmp_path / "dist"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (fixed,) = (tmp_path / "dist").glob("*.whl")
    assert "-py3-none-manylinux" in fixed.name
    names = zipfile.ZipFile(fixed).namelist()
    assert any("libjansson" in name for name in names) and not any(name.endswith((".c", ".h", ".a")) for name in names)
    venv.create(tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    # With this environment's pip, and without compiling all of NumPy: both would take longer than the rest.
    done = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", "--only-binary=:all:", fixed],
                          capture_output=True, text=True)
    if done.returncode and "numpy" in done.stderr:
        pytest.skip("NumPy cannot be installed here")
    assert done.returncode == 0, done.stderr
    bare = {"PATH": str(python.parent), "HOME": str(tmp_path)}
    done = subprocess.run([python, "-c", LINES, DEMO], capture_output=True, text=True, cwd=tmp_path, env=bare)
    assert done.stdout.split("\n")[0] == "(1, 5, 192) door" and done.stdout.split("\n")[1] == "1", done.stderr
    assert deberta_c.__version__ in subprocess.run([python.parent / "deberta", "--version"], capture_output=True, text=True, env=bare).stdout
    done = subprocess.run([python.parent / "deberta", "examples", "kit"], capture_output=True, text=True, cwd=tmp_path, env=bare)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / "kit" / name).exists() for name in ("models/answers/config.json", "docs/precision.md", "docs/studies/data/books.tsv"))
    assert list((tmp_path / "clean").rglob("deberta_c-*/**/LICENSE"))


@needs_wheel
@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="a source distribution is made of a git repository")
def test_source_distribution(tmp_path):
    """It holds what pip needs to build, and no built file."""
    pytest.importorskip("build")
    done = subprocess.run([sys.executable, "-m", "build", "-q", "--sdist", "--no-isolation", "--skip-dependency-check", "-o", tmp_path, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    listed = subprocess.run(["tar", "tzf", archive], capture_output=True, text=True).stdout
    for name in ("pyproject.toml", "meson.build", "include/deberta.h", "python/deberta_c/py.typed"):
        assert f"/{name}\n" in listed
    assert ".so" not in listed


def test_a_missing_library_says_so():
    code = "import os; os.environ['DEBERTA_LIBRARY'] = '/nowhere/lib.so'\ntry:\n import deberta_c\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("/nowhere/lib.so: the library of this package cannot be loaded"), done.stderr
