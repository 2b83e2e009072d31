"""studies/recognised.py on tiny archives of the same layout, made up here: what it writes, and what it refuses.

SPDX-License-Identifier: MIT
"""
import hashlib
import io
import json
import subprocess
import sys
import zipfile

from helpers import DEMO, ROOT, contains, equal

RTE = '<?xml version="1.0" encoding="UTF-8"?>\n<entailment-corpus>\n<pair id="7" {key}="{value}" task="IE">\n\t<t>A ship\n came &amp; went.</t>\n\t<h>A ship came.</h>\n</pair>\n</entailment-corpus>\n'
PAIR = {"sentence_good": "The ships were here.", "sentence_bad": "The ships was here.", "UID": "number", "linguistics_term": "agreement"}
TALES = [f"tale {k} of the sea ." for k in range(40)]
DOCUMENTS = {f"masc_tagged/{kind}/d{k}.txt": f"The_DT ship_NN d{k}_NNP sailed_VBD ,_, ha_UH\n \nWho_WP 's_POS a_b_NN ?_. loose\n" for kind in ("spoken", "written") for k in range(10)}
SETS = {
    "blimp": {"data/": "", "data/number.jsonl": json.dumps(PAIR) + "\n", "data/more.jsonl": json.dumps({**PAIR, "UID": "more"})},
    "mr": {"sentence_polarity/rt-polarity.neg": "a dull  caf\u00e9 . \n" + "\n".join(TALES), "sentence_polarity/rt-polarity.pos": "a fine one .\n" + "\n".join(TALES)},
    "subj": {"subjectivity/plot.tok.gt9.5000": "\n".join(TALES), "subjectivity/quote.tok.gt9.5000": "i like it .\n"},
    "trec": {"qc/train.txt": "DESC:manner How did it go ?\nNUM:dist How far ?\n", "qc/test.txt": "LOC:city What caf\u00e9 ?\n"},
    "rte": {f"rte/rte{year}_{part}.xml": RTE.format(key="value" if year == 1 else "entailment", value=("TRUE" if year == 1 else "YES") if part == "dev" else "FALSE" if year == 1 else "NO")
            for year in (1, 2, 3) for part in ("dev", "test")},
    "masc": {"masc_tagged/categories.txt": "no document\n", **DOCUMENTS},
}
LATIN = ("mr", "subj", "trec")


def archive(bench, name, files=None):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as made:
        for path, text in (files or SETS[name]).items():
            made.writestr(path, text.encode("iso-8859-1" if name in LATIN else "utf-8"))
    return bench.write(name + ".zip", memory.getvalue())


def run(bench, *words, code=0):
    done = subprocess.run([sys.executable, str(ROOT / "studies" / "recognised.py"), bench.path("out"), *words], capture_output=True, text=True, check=False)
    equal(done.returncode, code, done.stderr)
    return done


def is_held_out(name, fold):
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 10 == fold


def test_sets(bench):
    words = [word for name in SETS for word in (f"--{name}", archive(bench, name))]
    done = run(bench, *words, "--other-editions", "--fold", "3")
    files = {line.split(": ")[0].split("/out/")[1]: line.rsplit(" ", 1)[1] for line in done.stdout.splitlines()}
    texts = {name: bench.read(f"out/{name}") for name in files}
    equal(files, {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()})
    equal([json.loads(line)["UID"] for line in texts["blimp/pairs.jsonl"].splitlines()], ["more", "number"])
    for name, labelled in (("mr", [("negative", ["a dull caf\u00e9 .", *TALES]), ("positive", ["a fine one .", *TALES])]), ("subj", [("objective", TALES), ("subjective", ["i like it ."])])):
        for part, held in (("train", False), ("held-out", True)):
            expected = [f"{label}\t{text}" for label, of_it in labelled for text in of_it if is_held_out(text, 3) == held]
            equal(texts[f"{name}/{part}.tsv"].splitlines(), expected, (name, part))
            assert expected, (name, part)
    equal(texts["trec/train.tsv"], "DESC\tHow did it go ?\nNUM\tHow far ?\n")
    equal(texts["trec/held-out-fine.tsv"], "LOC:city\tWhat caf\u00e9 ?\n")
    equal(texts["rte/train.tsv"], "entailment\tA ship came & went.\tA ship came.\n" * 3)
    equal(texts["rte/held-out.tsv"], "not_entailment\tA ship came & went.\tA ship came.\n" * 3)
    held = [name for name in DOCUMENTS if is_held_out(name, 3)]
    sentences = texts["masc/held-out.tsv"].split("\n\n")[:-1]
    equal(sentences[:2], [f"The\tDET\nship\tNOUN\n{held[0].split('/')[2][:-4]}\tNOUN\nsailed\tVERB\n,\t.\nha\tX", "Who\tPRON\n's\tPRT\na_b\tNOUN\n?\t."])
    equal((len(sentences), len(texts["masc/train.tsv"].split("\n\n")) - 1), (2 * len(held), 2 * (len(DOCUMENTS) - len(held))))
    equal(bench.json("eval", DEMO, "--minimal-pairs", bench.path("out/blimp/pairs.jsonl"))["pairs"], 2)


def test_refusals(bench):
    contains(run(bench, "--trec", "nowhere.zip", code=3).stderr, "--trec nowhere.zip: No such file", "qc.zip of https://")
    path = archive(bench, "trec")
    contains(run(bench, "--trec", path, code=3).stderr, "SHA-256 ", "expected 091fb01e")
    contains(run(bench, "--trec", archive(bench, "trec", {"qc/train.txt": "no label\n"}), "--other-editions", code=3).stderr, "expected a label")
    contains(run(bench, "--rte", archive(bench, "rte", {"rte/rte1_dev.xml": "<pair"}), "--other-editions", code=3).stderr, "--rte ")
    contains(run(bench, "--mr", archive(bench, "mr", {"x": "y"}), "--other-editions", code=3).stderr, "it has no file sentence_polarity/rt-polarity.neg")
    contains(run(bench, "--masc", bench.write("no.zip", "text"), "--other-editions", code=3).stderr, "--masc ")
    contains(run(bench, code=2).stderr, "no set")
    assert "out" not in bench.files()
