"""A real Slurm of two nodes on loopback runs the scripts of docs/cluster.md; parts of a sweep become one file.

Skipped where Slurm or munge are not installed, or not for root. SPDX-License-Identifier: MIT
"""
import contextlib
import copy
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
from unittest import SkipTest

from helpers import DEMO, ROOT, TINY, wait_until

SEED = int(os.environ.get("DEBERTA_SHARDS_SEED", "1"))


# ------------------------------------------------------------------------------------------------------------- bench

def test_bench_merge(bench):
    """Parts of a sweep are one sweep; every point keeps its environment."""
    for part, lengths in enumerate(("8,16", "24")):
        bench.fine("bench", TINY, "-n", lengths, "--reps", 2, "--no-peak", "--json", "-o", f"part{part}.json")
    whole = json.loads(bench.fine("bench", "merge", "part0.json", "part1.json", "-o", "whole.json").out or pathlib.Path("whole.json").read_text())
    parts = [json.loads(pathlib.Path(f"part{k}.json").read_text()) for k in range(2)]
    assert [r["n"] for r in whole["results"]] == [8, 16, 24] and [r["of_environment"] for r in whole["results"]] == [0, 0, 1]
    assert [e["environment"] for e in whole["environments"]] == [p["environment"] for p in parts] and [e["file"] for e in whole["environments"]] == ["part0.json", "part1.json"]
    assert [{k: v for k, v in r.items() if k != "of_environment"} for r in whole["results"]] == parts[0]["results"] + parts[1]["results"]
    bench.fine("bench", "compare", "whole.json", "whole.json")


def test_bench_merge_of_merges(bench):
    """A merge of merges is that of all parts at once: each point keeps the environment of its own part."""
    sample = json.loads((ROOT / "tests" / "cli" / "bench_sample.json").read_text())
    names = [f"part{k}.json" for k in range(4)]
    for k, name in enumerate(names):
        point = dict(sample["results"][0], n=8 * (k + 1))
        pathlib.Path(name).write_text(json.dumps(dict(sample, environment={**sample["environment"], "date": f"2026-01-0{k + 1}T00:00:00Z"}, results=[point])))
    merged = lambda *parts: json.loads(bench.fine("bench", "merge", *parts).out)  # noqa: E731
    for name, parts in (("first.json", names[:2]), ("last.json", names[2:]), ("three.json", names[1:])):
        pathlib.Path(name).write_text(json.dumps(merged(*parts)))
    whole = merged(*names)
    assert [e["environment"]["date"][:10] for e in whole["environments"]] == [f"2026-01-0{k + 1}" for k in range(4)], whole["environments"]
    assert [r["of_environment"] for r in whole["results"]] == [0, 1, 2, 3]
    for parts in (["first.json", "last.json"], ["first.json", *names[2:]], [names[0], "three.json"]):
        assert merged(*parts) == whole, parts
    first = json.loads(pathlib.Path("first.json").read_text())
    for wrong, said in (({"results": [dict(first["results"][0], of_environment=2)]}, "none of the 2"), ({"results": [dict(first["results"][0], of_environment="1")]}, "none of the 2"),
                        ({"environments": []}, "no list"), ({"environments": 5}, "no list"), ({"environments": [{"file": "a"}]}, "has no \"environment\"")):
        pathlib.Path("wrong.json").write_text(json.dumps({**first, **wrong}))
        told = bench.expect(3, "bench", "merge", "wrong.json", names[2])
        assert "wrong.json" in told.err and said in told.err, told.describe()


def test_bench_merge_refuses(bench):
    sample = json.loads((ROOT / "tests" / "cli" / "bench_sample.json").read_text())
    first, second = (dict(sample, results=[r for r in sample["results"] if (r["n"] < 64) == small]) for small in (True, False))

    def refused(other, *wanted):
        pathlib.Path("a.json").write_text(json.dumps(first))
        pathlib.Path("b.json").write_text(json.dumps(other))
        told = bench.expect(3, "bench", "merge", "a.json", "b.json", "-o", "c.json")
        assert all(w in told.err for w in wanted) and not os.path.exists("c.json"), told.describe()

    def changed(**members):
        return dict(second, environment={**second["environment"], **members})

    refused(dict(second, results=second["results"] + copy.deepcopy(first["results"][2:3])), "a.json and b.json both have the point of")
    refused(changed(cpu="another"), "do not belong together", "cpu")
    refused(changed(commit="0123456789ab"), "b.json was measured by commit 0123456789ab")
    refused(changed(version="0.0.9"), "by version 0.0.9")
    refused({}, "b.json")
    assert "expected" in bench.expect(2, "bench", "merge", "a.json").err
    assert "a.json and a.json both have" in bench.expect(3, "bench", "merge", "a.json", "a.json").err


# ------------------------------------------------------------------------------------------------------------- Slurm

@contextlib.contextmanager
def cluster():
    missing = [tool for tool in ("/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "sbatch") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        raise SkipTest(f"no Slurm for root here: {', '.join(missing)}")
    tool = ROOT / "tools" / "gates" / "slurm_local.sh"
    started = subprocess.run([tool, "start", "slurm", "2"], capture_output=True, text=True)
    os.environ["SLURM_CONF"] = os.path.abspath("slurm/slurm.conf")
    try:
        assert started.returncode == 0, started.stderr
        yield
    finally:
        subprocess.run(["scancel", "--user", "root"], capture_output=True)
        subprocess.run([tool, "stop", "slurm"], capture_output=True)


def script_of(bench, marker):
    """The block of the document that has the marker, for this machine."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.S)
    (text,) = [block for block in blocks if marker in block]
    for old, new in (("deberta encode MODEL", f"{bench.program} encode {DEMO} --batch-tokens 16 --pool cls"), ("0-63", "0-5"), ("--shards 64", "--shards 6"),
                     ("--cpus-per-task=8", "--cpus-per-task=1"), ("corpus.jsonl", "corpus.txt")):
        assert old in text, old
        text = text.replace(old, new)
    return text


def submit(*words):
    return subprocess.run(["sbatch", "--parsable", *words], capture_output=True, text=True, check=True).stdout.split(";")[0].strip()


def queue():
    asked = subprocess.run(["squeue", "-h", "-r", "-o", "%K %T"], capture_output=True, text=True)
    return asked.stdout.split("\n")[:-1] if asked.returncode == 0 else [f"no answer: {asked.stderr}"]  # a busy controller may be late


def script_of_task(job, task):
    """The process of a task's script; only of this cluster, whose configuration it was started with."""
    wanted = {f"SLURM_ARRAY_JOB_ID={job}", f"SLURM_ARRAY_TASK_ID={task}", f"SLURM_CONF={os.environ['SLURM_CONF']}"}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = set((folder / "environ").read_text(errors="replace").split("\0"))
            if wanted <= environment and "slurm_script" in (folder / "cmdline").read_text(errors="replace"):
                return int(folder.name)
    raise AssertionError(f"no process of task {task}: {queue()}")


def test_an_array_of_slurm(bench):
    """An array over two nodes: a task is told to stop and is queued again, another is cancelled and found missing; then the bytes are those of one process."""
    dice, words = random.Random(SEED), "the a new store opened beside old mall and".split()
    pathlib.Path("corpus.txt").write_text("".join(" ".join(dice.choices(words, k=dice.randrange(1, 40))) + "\n" for _ in range(2500)))
    pathlib.Path("encode.sh").write_text(script_of(bench, "#SBATCH --array"))
    with cluster():
        job = submit("encode.sh")
        subprocess.run(["scancel", f"{job}_5"], check=True)
        journal = pathlib.Path("vectors.npy.shards/0-of-6.npy.part.journal")
        assert wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 2), queue()
        script = script_of_task(job, 0)
        os.kill(script, signal.SIGUSR1)  # what --signal=B:USR1@120 does before the time limit
        assert wait_until(lambda: "0 PENDING" in queue(), 60), (queue(), pathlib.Path(f"slurm-{job}_0.out").read_text())
        assert wait_until(lambda: not os.path.exists(f"/proc/{script}"), 60), queue()
        subprocess.run(["scontrol", "update", f"JobId={job}_0", "StartTime=now"], check=True)  # Slurm waits two minutes before it repeats a task
        assert wait_until(lambda: not queue(), 90), queue()
        array = bench.expect(1, "merge", "vectors.npy.shards", "--verify", "--quiet").out
        # Because the two minutes were left out, Slurm may take the end of the first script of task 0 for that of its second.
        assert array in ("--array=5\n", "--array=0,5\n"), (array, pathlib.Path(f"slurm-{job}_0.out").read_text())
        submit(array.strip(), "encode.sh")
        assert wait_until(lambda: not queue(), 90), queue()
        while bench.run("merge", "vectors.npy.shards", "--verify").code != 0:
            time.sleep(0.2)
    bench.fine("merge", "vectors.npy.shards", "-o", "vectors.npy")
    bench.fine("encode", DEMO, "--file", "corpus.txt", "--pool", "cls", "-o", "one.npy")
    assert pathlib.Path("vectors.npy").read_bytes() == pathlib.Path("one.npy").read_bytes()
