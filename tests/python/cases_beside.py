"""Runs scripts case_*.py below a folder, each in a fork of one process that has imported PyTorch and transformers: importing them takes 5 s.

    python cases_beside.py FOLDER     prints `path<TAB>exit code<TAB>last line` a script

SPDX-License-Identifier: MIT
"""
import os
import runpy
import signal
import sys
import tempfile
import traceback
from pathlib import Path

LIMIT = 100  # seconds a script may take


def child(script, log):
    """Runs the script in this process, which ends with its exit code."""
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    sys.path[0] = str(script.parent)
    sys.argv = [str(script)]
    code = 0
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except ModuleNotFoundError as missing:
        print(f"no package {missing.name}")
        code = 77
    except BaseException:  # whatever a script raises is its failure
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(folder):
    import torch
    import transformers  # noqa: F401  what takes so long
    import transformers.models.deberta_v2.modeling_deberta_v2  # noqa: F401
    torch.set_num_threads(1)
    for script in sorted(Path(folder).rglob("case_*.py")):
        with tempfile.TemporaryFile() as log:
            process = os.fork()
            if process == 0:
                signal.alarm(LIMIT)
                child(script, log.fileno())
            _, status = os.waitpid(process, 0)
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()
        print(script.relative_to(folder), os.waitstatus_to_exitcode(status), said[-1].replace("\t", " ") if said else "", sep="\t", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
