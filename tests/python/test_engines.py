"""Encoder in the engines of docs/cluster.md: Ray, and datasets and datatrove by the lines that stand there. Run by `tests/python/run.py --engines`, in an
environment of their own. SPDX-License-Identifier: MIT"""
import os
import random
import re

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, ROOT
from deberta_c import _program

WORDS = "the a new store opened beside old mall in Zürich ☃ and".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Texts, and the rows that the program has for them."""
    seed = int(os.environ.get("DEBERTA_ENGINES_SEED", "1"))
    print(f"DEBERTA_ENGINES_SEED={seed}")
    folder, dice = tmp_path_factory.mktemp("corpus"), random.Random(seed)
    texts = [" ".join(dice.choices(WORDS, k=dice.randrange(1, 30))) for _ in range(120)]
    (folder / "c.txt").write_text("".join(t + "\n" for t in texts))
    _program.run("encode", DEMO, "--file", str(folder / "c.txt"), "--out", str(folder / "rows.npy"))
    return texts, np.load(folder / "rows.npy")


def lines_of_document(marker, *changes):
    """The block of the document that has the marker, for this machine."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.S)
    (text,) = [block for block in blocks if marker in block]
    for old, new in (("MODEL", DEMO), *changes):
        assert old in text, old
        text = text.replace(old, new)
    return text


def same_rows(found, rows):
    return np.stack([np.asarray(row, np.float32) for row in found]).tobytes() == rows.tobytes()


def test_ray(corpus, monkeypatch):
    """Two actors of a local Ray."""
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # a busy machine starts it late
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    texts, rows = corpus
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        items = ray.data.from_items([{"n": n, "text": text} for n, text in enumerate(texts)], override_num_blocks=5)
        done = items.map_batches(deberta_c.Encoder, fn_constructor_kwargs={"path": DEMO, "threads": 1}, batch_size=17, concurrency=2).take_all()
    finally:
        ray.shutdown()
    done.sort(key=lambda row: row["n"])
    assert same_rows([row["vector"] for row in done], rows)


def test_datasets(corpus, tmp_path, monkeypatch):
    """Two processes of datasets; the answers are those of the program."""
    datasets = pytest.importorskip("datasets")
    texts, _ = corpus
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    space = {"deberta_c": deberta_c, "dataset": datasets.Dataset.from_dict({"text": texts})}
    exec(lines_of_document("dataset.map", ("batch_size=256, num_proc=8", "batch_size=17, num_proc=2")), space)
    wanted = deberta_c.Encoder(DEMO, task="classify")({"text": texts})["classify"]
    assert list(space["dataset"]["classify"]) == list(wanted) and list(space["dataset"]["text"]) == texts


def test_datatrove(corpus, tmp_path):
    """A step of a pipeline."""
    pytest.importorskip("datatrove")
    from datatrove.data import Document
    from datatrove.executor.local import LocalPipelineExecutor
    texts, rows = corpus
    space, found = {"deberta_c": deberta_c}, {}
    exec(lines_of_document("def add_vectors", ("256", "17")), space)

    def read(_documents, rank, world_size):
        yield from (Document(text=text, id=str(n)) for n, text in enumerate(texts) if n % world_size == rank)

    def keep(documents, rank, world_size):
        for document in documents:
            found[int(document.id)] = document.metadata["vector"]
            yield document

    LocalPipelineExecutor(pipeline=[read, space["add_vectors"], keep], tasks=1, logging_dir=str(tmp_path)).run()
    assert same_rows([found[n] for n in range(len(texts))], rows)
