"""Structs, constants and functions of the package are those of include/deberta.h, as a C compiler has them. SPDX-License-Identifier: MIT"""
import ctypes
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from deberta_c import _abi

HEADER = re.sub(r"/\*.*?\*/", " ", "".join((ROOT / "include" / f"deberta{part}.h").read_text() for part in ("", "_unstable")), flags=re.S)
CC = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(not CC, reason="no C compiler")


def snake(name):
    return "deberta_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


STRUCTS = {snake(kind.__name__): kind for kind in vars(_abi).values() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}


def members(header, name):
    """Names of a struct's members, in the order of the header."""
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.S).group(1)
    found = []
    for declaration in filter(str.strip, body.split(";")):
        function = re.search(r"\(\*(\w+)\)", declaration)
        found += [function.group(1)] if function else [re.findall(r"\w+", re.sub(r"\[.*?\]", "", one))[-1] for one in declaration.split(",")]
    return found


def compiled(lines, folder):
    """Numbers that C expressions have with the header."""
    (folder / "abi.c").write_text('#include "deberta_unstable.h"\n#include <stdio.h>\nint main(void)\n{\n'
                                  + "".join(f'    printf("%lld\\n", (long long)({line}));\n' for line in lines) + "    return 0;\n}\n")
    subprocess.run([CC, "-I", ROOT / "include", folder / "abi.c", "-o", folder / "abi"], check=True)
    return [int(line) for line in subprocess.run([folder / "abi"], capture_output=True, text=True, check=True).stdout.split()]


def differences(header, name, kind, layout):
    """What is not the same in a struct: members, or where they lie. layout: size, then offset and size of each member of ours."""
    if [member for member, _ in kind._fields_] != members(header, name):
        return f"{name}: the header has {members(header, name)}"
    ours = [ctypes.sizeof(kind)] + [number for member, _ in kind._fields_
                                    for number in (getattr(kind, member).offset, getattr(kind, member).size)]
    return "" if ours == layout else f"{name}: {ours}, in C {layout}"


@needs_compiler
@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_structs(name, tmp_path):
    kind = STRUCTS[name]
    asked = [f"sizeof({name})"] + [what for member, _ in kind._fields_
                                   for what in (f"offsetof({name}, {member})", f"sizeof((({name} *)0)->{member})")]
    layout = compiled(asked, tmp_path)
    assert not differences(HEADER, name, kind, layout)
    end = f"}} {name};"
    assert differences(HEADER.replace(end, f"    size_t another;\n{end}"), name, kind, layout), "a new member is noticed"
    assert differences(HEADER, name, kind, [layout[0] + 8, *layout[1:]]), "another size is noticed"


def test_every_struct_is_there():
    """Of those that functions which the package calls take, none is missing in the comparison."""
    assert set(STRUCTS) >= {f"deberta_{one}" for one in (
        "error", "model_options", "tensor", "model_info", "session_options", "batch", "outputs", "observer", "tokens")}


@needs_compiler
def test_constants(tmp_path):
    lists = [("DEBERTA_TASK_{}", _abi.TASKS), ("DEBERTA_SPECIAL_{}", _abi.SPECIALS), ("DEBERTA_PRECISION_{}", _abi.PRECISIONS),
             ("DEBERTA_REFERENCE_{}", _abi.REFERENCES), ("DEBERTA_{}", ["PROBABILITIES" if one == "probs" else one for one in _abi.COMPONENTS])]
    expected = {form.format(name.upper()): number for form, names in lists for number, name in enumerate(names)}
    expected.update(DEBERTA_OBSERVE_HIDDEN=_abi.OBSERVE_HIDDEN, DEBERTA_OBSERVE_ATTENTION=_abi.OBSERVE_ATTENTION, DEBERTA_TOKEN_FRAME=_abi.FRAME,
                    DEBERTA_KEEP_DECODER_INPUT=_abi.KEEP_DECODER_INPUT, DEBERTA_TASK_MLM_EMD=_abi.TASK_EMD,
                    DEBERTA_TASK_COUNT=len(_abi.TASKS), DEBERTA_SPECIAL_COUNT=len(_abi.SPECIALS), DEBERTA_COMPONENT_COUNT=len(_abi.COMPONENTS),
                    DEBERTA_PRECISION_COUNT=len(_abi.PRECISIONS))
    assert dict(zip(expected, compiled(expected, tmp_path))) == expected
    statuses = re.findall(r"DEBERTA_E_(\w+)\s*=\s*(-\d+)", HEADER)
    assert {int(number) for _, number in statuses} == set(_abi.ERRORS)


def prototype(name):
    """Whether a function returns a status, and how many parameters it has."""
    result, parameters = re.search(rf"DEBERTA_API ([\w \*]*?)\s*\*?deberta_{name}\((.*?)\);", HEADER, re.S).groups()
    return result.endswith("deberta_status"), 0 if parameters == "void" else parameters.count(",") + 1


@pytest.mark.parametrize("name", sorted(_abi.FUNCTIONS))
def test_functions(name):
    result, *parameters = _abi.FUNCTIONS[name].split()
    is_status = result == "status"
    assert (is_status, len(parameters) + is_status) == prototype(name)


@needs_compiler
def test_version_of_the_header(tmp_path):
    assert compiled(["DEBERTA_VERSION_NUMBER"], tmp_path) == [_abi.VERSION_NUMBER]


@needs_compiler
@pytest.mark.parametrize("source, words", [
    ("int deberta_version_number(void) { return 10203; }", "is version 1.2.3 of the library, but this package was made for 0.1.0"),
    ("int another(void) { return 1; }", "is no library of this package")])
def test_another_library_is_refused(source, words, tmp_path):
    """By name, before anything of it is called whose form may differ."""
    (tmp_path / "other.c").write_text(source)
    subprocess.run([CC, "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / "other.so"], check=True)
    done = subprocess.run([sys.executable, "-c", "import deberta_c"], capture_output=True, text=True, env={**os.environ, "DEBERTA_LIBRARY": str(tmp_path / "other.so")})
    assert done.returncode == 1 and "ImportError: " in done.stderr and words in done.stderr and "other.so" in done.stderr, done.stderr


def test_where_the_source_lies(tmp_path):
    """Modules without a library beside them take that of build/, where ./build.sh puts it, and its program."""
    shutil.copytree(ROOT / "python" / "deberta_c", tmp_path / "python" / "deberta_c", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "libdeberta.so.0").symlink_to(os.path.realpath(os.environ.get("DEBERTA_LIBRARY") or _abi.BUILT / "libdeberta.so.0"))
    bare = {name: value for name, value in os.environ.items() if name not in ("DEBERTA_LIBRARY", "DEBERTA_PROGRAM")}
    code = "import deberta_c, deberta_c._program as p; print(deberta_c.__file__, p.PROGRAM, deberta_c.Model('synthetic:v3-xsmall,layers=1,vocab=50').info['layers'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={**bare, "PYTHONPATH": str(tmp_path / "python")})
    assert done.returncode == 0, done.stderr
    module, program, layers = done.stdout.split()
    assert module.startswith(str(tmp_path)) and program == str(tmp_path / "build" / "deberta") and layers == "1"
