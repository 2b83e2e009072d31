"""An output that is one of the command's inputs is refused, whatever it is called, and no input changes.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import pathlib
import shutil

from helpers import DEMO

TEXTS = b"the man went home\nthe cat sat on the mat\n"
OBJECTS = b'{"text": "a ship"}\n{"text": "the cat"}\n'
FILES = {"c.txt": TEXTS, "c.jsonl": OBJECTS, "c.tsv": b"1\ta ship\n0\tthe cat\n", "ids.json": b'{"input_ids": [[1, 3, 2]]}',
         "a.json": b"{}", "b.json": b"{}", "k.txt": b"gemm_f32 m=8 n=16 k=8\n"}

# A command, and the input that its last word would replace. M: a copy of the demo. One row at least for every command that has an output.
REPLACING = [
    "encode M --file c.jsonl --pool mean -o c.jsonl", "encode M --text x -o M/model.safetensors", "encode M --file c.txt --pool mean -o ./c.txt",
    "encode M --input ids.json -o ids.json", "encode M --text x -o link.safetensors", "encode M --text x -o hard.safetensors",
    "encode M --file c.jsonl --pool mean --resume -o over.jsonl", "encode M --text x -o N/config.json",
    "tokenize M --file c.txt -o c.txt", "tokenize M --text x --json -o M/config.json", "tokenize M --text x -o M/spm.model",
    "fill-mask M --file c.jsonl --json -o c.jsonl", "classify M --file c.jsonl --json -o c.jsonl", "tag M --file c.jsonl --json -o c.jsonl",
    "detect M --file c.jsonl --json -o c.jsonl", "answer M --file c.jsonl --json -o c.jsonl", "eval M c.tsv -o c.tsv", "attribute M --file c.jsonl --json -o c.jsonl",
    "attribute M --text x -o M/config.json", "eval M c.tsv -o M/config.json",
    "info M --json -o M/config.json", "verify M --file c.txt -o c.txt", "verify M --expected t.safetensors -o t.safetensors",
    "attention components M --text x -o f.svg --numbers M/model.safetensors", "attention components M --file c.txt -o f.svg --latex c.txt",
    "attention difference M --minus N --text x -o f.svg --numbers N/config.json", "receptive-field M --json -o M/config.json",
    "receptive-field M --plot M/config.json", "report M --file page.html -o page.html",
    "bench M --json -o M/config.json", "bench compare a.json b.json -o a.json", "bench compare a.json with b.json -o b.json", "bench plot a.json -o a.json",
    "bench merge a.json b.json -o b.json", "bench kernel k.txt -o k.txt", "bench requests M -o M/config.json", "bench train M -o M/config.json",
    "merge v.npy.shards --out v.npy.shards/0-of-1.npy", "train plot R -o R/log.jsonl", "train plot R/log.jsonl -o R/log.jsonl",
    "train mlm M --one-batch t.safetensors --gradients t.safetensors", "train mlm M --one-batch t.safetensors --gradients M/model.safetensors",
    "train mlm M --one-batch t.safetensors -o t.safetensors", "finetune sequence M --examples c.tsv --steps 1 --out c.tsv",
    "train mlm M --file c.txt --steps 1 --out c.txt", "train mlm M --file c.txt --eval over.txt --steps 1 --out over.txt",
    "train tokenizer --file T/spm.model -o T",
]


def make_inputs(bench):
    for name, content in FILES.items():
        bench.write(name, content)
    for name in ("over.jsonl.part", "over.txt", "t.safetensors", "page.html"):
        bench.write(name, TEXTS)
    for folder in ("R", "T", "v.npy.shards"):
        os.mkdir(bench.path(folder))
    bench.write("R/log.jsonl", "{}\n")
    bench.write("T/spm.model", TEXTS)
    bench.write("v.npy.shards/0-of-1.npy", b"rows")
    shutil.copytree(DEMO, bench.path("M"))
    os.mkdir(bench.path("N"))
    os.symlink(bench.path("M/config.json"), bench.path("N/config.json"))
    os.symlink(bench.path("M/model.safetensors"), bench.path("link.safetensors"))
    os.link(bench.path("M/model.safetensors"), bench.path("hard.safetensors"))
    os.rename(bench.path("over.jsonl.part"), bench.path("kept"))
    os.symlink(bench.path("c.jsonl"), bench.path("over.jsonl.part"))


def digests(bench):
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(bench.folder).rglob("*") if path.is_file()}


def test_an_output_is_no_input(bench):
    make_inputs(bench)
    before = digests(bench)
    for line in REPLACING:
        result = bench.run(*line.split())
        assert result.code == 2 and ("read" in result.err), f"{line}\n{result.describe()}"
        assert os.path.basename(line.split()[-1]) in result.err or "over.jsonl" in line or line.startswith("train tokenizer"), result.describe()
    assert digests(bench) == before


def test_an_output_is_no_input_that_a_record_names(bench):
    """The shards of a corpus and the folder of a run name their model and their data; the command line does not."""
    make_inputs(bench)
    for shard in "01":
        bench.fine("classify", "M", "--file", "c.jsonl", "--shards", "2", "--shard", shard, "-o", "all.jsonl", "-q")
        bench.fine("encode", "M", "--file", "c.jsonl", "--shards", "2", "--shard", shard, "-o", "all.safetensors", "-q")
    bench.write("long.txt", TEXTS * 20)
    bench.fine("train", "mlm", "M", "--file", "long.txt", "--eval", "c.txt", "--steps", "2", "--sequence-tokens", "16", "--batch-sequences", "2", "--chain", "--chain-every", "2",
               "-t", "1", "-q", "-o", "run")
    before = digests(bench)
    for line in ("merge all.jsonl.shards -o c.jsonl", "merge all.jsonl.shards --audit 100% -o c.jsonl", "merge all.safetensors.shards -o M/model.safetensors",
                 "verify --audit run -o long.txt", "verify --audit run --json -o M/config.json", "verify --audit run --commit -o long.txt",
                 "verify --audit run --file long.txt c.txt -o long.txt"):
        result = bench.run(*line.split())
        assert result.code == 2 and os.path.basename(line.split()[-1]) in result.err, f"{line}\n{result.describe()}"
        if "--file" not in line:
            assert "which is read" in result.err, result.describe()
    assert digests(bench) == before
    bench.fine("merge", "all.jsonl.shards", "-o", "all.jsonl", "-q")
    bench.fine("verify", "--audit", "run", "-o", "report.txt", "-q")


def test_an_output_is_not_standard_input(bench):
    make_inputs(bench)
    before = digests(bench)
    for options in ("tokenize M --file - -o c.txt", "encode M --file - --pool mean -o c.txt", "tokenize M -f - --json -o ./c.txt"):
        with open(bench.path("c.txt"), "rb") as texts:
            process = bench.start(*options.split(), stdin=texts, stderr=-1, stdout=-1)
            error = process.communicate()[1].decode()
        assert process.returncode == 2 and "standard input" in error, error
    with open(bench.path("c.txt"), "ab") as end:
        process = bench.start("tokenize", "M", "--file", "c.txt", stdout=end, stderr=-1)
        error = process.communicate()[1].decode()
    assert process.returncode == 2 and "standard output goes into 'c.txt', which --file reads" in error, error
    assert digests(bench) == before


def test_other_outputs_are_written(bench):
    """What is beside an input, or has its name elsewhere, is none; figures beside the model may be made again."""
    make_inputs(bench)
    os.mkdir(bench.path("o"))
    for _ in range(2):
        bench.fine("tokenize", "M", "--file", "c.txt", "-o", "o/c.txt")
        bench.fine("tokenize", "M", "--text", "c.txt", "-o", "o/x.txt")
        bench.fine("completion", "bash", "-o", "bash")
        bench.fine("attention", "components", "M", "--text", "a ship", "--layers", "0", "--heads", "0", "-o", "M/f.svg")
    bench.fine("encode", "M", "--text", "a ship", "-o", "M/new.safetensors")
    bench.expect(2, "encode", "M", "--text", "a ship", "-o", "M/new.safetensors")
