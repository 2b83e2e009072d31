"""Cases that lie beside the repository: scripts that each rebuild a question which users have asked in public, and exit with 0 where the
answer is right. DEBERTA_CASES_BESIDE names their folder; without it there is nothing to run. SPDX-License-Identifier: MIT"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from deberta_c import _program

BESIDE = os.environ.get("DEBERTA_CASES_BESIDE", "")
CASES = sorted(str(script.relative_to(BESIDE)) for script in Path(BESIDE).rglob("case_*.py")) if BESIDE else []
CANNOT_JUDGE = 77  # exit code of a case whose packages or tools are not there


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """{case: (exit code, last line)}"""
    place = tmp_path_factory.mktemp("cases")
    own = dict(os.environ, DEBERTA=str(Path(_program.PROGRAM).resolve()), DEBERTA_MODELS=str(ROOT / "models"), TMPDIR=str(place))
    done = subprocess.run([sys.executable, Path(__file__).with_name("cases_beside.py"), BESIDE, *CASES], capture_output=True, text=True, env=own, cwd=place)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(CASES), done.stderr[-2000:]
    return {name: (int(code), said) for name, code, said in rows}


@pytest.mark.skipif(not CASES, reason="no cases lie beside the repository (DEBERTA_CASES_BESIDE)")
@pytest.mark.parametrize("case", CASES or [None])
def test_case(ended, case):
    code, said = ended[case]
    if code == CANNOT_JUDGE:
        pytest.skip(f"{case}: {said}")
    assert code == 0, f"{case}: {said}"
