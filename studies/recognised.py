#!/usr/bin/env python3
"""Recognised data sets, from the reader's own copies into what `deberta finetune` and `deberta eval` read.

    recognised.py OUT [--blimp ZIP] [--mr ZIP] [--subj ZIP] [--trec ZIP] [--rte ZIP] [--masc ZIP] [--fold K]

Nothing is downloaded, and nothing of these sets is in the repository. Each ZIP is compared with the SHA-256 below. OUT gets a folder
for each set: train.tsv, to learn from, and held-out.tsv, to be measured on.

    set    labels                        held out
    blimp  pairs.jsonl, its 67 files one after the other, for `deberta eval --minimal-pairs`; there is nothing to learn from
    mr     negative, positive            a tenth, by the SHA-256 of the text: texts that are equal stay together
    subj   objective, subjective         the same
    trec   six kinds of questions        its own test set; train-fine.tsv and held-out-fine.tsv have the fifty kinds
    rte    entailment, not_entailment    the test sets of the three years; pairs of texts
    masc   a word a line with its part   a tenth of the documents, by the SHA-256 of their names
           of speech, of twelve

--fold K, 0 to 9, is which tenth of mr, subj and masc (0): all ten together are a cross-validation. SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import sys
import xml.etree.ElementTree
import zipfile
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

FOLDS = 10
BAD_INPUT, SYSTEM = 3, 4
NLTK = "https://github.com/nltk/nltk_data, packages/corpora, at commit 5db857e6f7df11eabb5e5665836db9ec8df07e28"
Files = Dict[str, str]  # name: its text


class Refused(Exception):
    """Input that cannot be used."""


def is_held_out(name: str, fold: int) -> bool:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % FOLDS == fold


def one_line(text: str) -> str:
    return " ".join(text.split())


def member(archive: zipfile.ZipFile, name: str, encoding: str) -> str:
    try:
        return archive.read(name).decode(encoding)
    except KeyError as problem:
        raise Refused(f"it has no file {name}") from problem
    except (UnicodeDecodeError, zipfile.BadZipFile) as problem:
        raise Refused(f"{name}: {problem}") from problem


def names_in(archive: zipfile.ZipFile, begin: str, end: str) -> List[str]:
    names = sorted(name for name in archive.namelist() if name.startswith(begin) and name.endswith(end))
    if not names:
        raise Refused(f"it has no files {begin}*{end}")
    return names


def split(examples: Iterator[Tuple[str, str]], fold: int) -> Files:
    """(what the digest is of, the lines of the example)."""
    parts: Dict[str, List[str]] = {"train.tsv": [], "held-out.tsv": []}
    for key, lines in examples:
        parts["held-out.tsv" if is_held_out(key, fold) else "train.tsv"].append(lines)
    return {name: "".join(part) for name, part in parts.items()}


# ------------------------------------------------------------------------------------------------ sets


def blimp(archive: zipfile.ZipFile, _: int) -> Files:
    return {"pairs.jsonl": "".join(member(archive, name, "utf-8").rstrip("\n") + "\n" for name in names_in(archive, "data/", ".jsonl"))}


def two_files(files: Dict[str, str], fold: int, archive: zipfile.ZipFile) -> Files:
    """files: the name of each label's texts, one a line."""
    texts = ((label, one_line(line)) for label, name in files.items() for line in member(archive, name, "iso-8859-1").split("\n"))
    return split(((text, f"{label}\t{text}\n") for label, text in texts if text), fold)


def mr(archive: zipfile.ZipFile, fold: int) -> Files:
    return two_files({"negative": "sentence_polarity/rt-polarity.neg", "positive": "sentence_polarity/rt-polarity.pos"}, fold, archive)


def subj(archive: zipfile.ZipFile, fold: int) -> Files:
    return two_files({"objective": "subjectivity/plot.tok.gt9.5000", "subjective": "subjectivity/quote.tok.gt9.5000"}, fold, archive)


def trec(archive: zipfile.ZipFile, _: int) -> Files:
    files = {}
    for source, name in (("train", "train"), ("test", "held-out")):
        lines = [line.partition(" ") for line in member(archive, f"qc/{source}.txt", "iso-8859-1").split("\n") if line.strip()]
        if not all(":" in label and one_line(text) for label, _, text in lines):
            raise Refused(f"qc/{source}.txt: expected a label KIND:kind, a blank and a question in every line")
        files[f"{name}.tsv"] = "".join(f"{label.partition(':')[0]}\t{one_line(text)}\n" for label, _, text in lines)
        files[f"{name}-fine.tsv"] = "".join(f"{label}\t{one_line(text)}\n" for label, _, text in lines)
    return files


def rte(archive: zipfile.ZipFile, _: int) -> Files:
    labels = {"TRUE": "entailment", "YES": "entailment", "FALSE": "not_entailment", "NO": "not_entailment"}
    files = {}
    for source, name in (("dev", "train.tsv"), ("test", "held-out.tsv")):
        lines = []
        for year in (1, 2, 3):
            path = f"rte/rte{year}_{source}.xml"
            for pair in xml.etree.ElementTree.fromstring(member(archive, path, "utf-8")).iter("pair"):
                label = labels.get(pair.get("entailment") or pair.get("value") or "")
                texts = [one_line(pair.findtext(part) or "") for part in "th"]
                if not label or not all(texts):
                    raise Refused(f"{path}: pair {pair.get('id')}: expected <t>, <h> and whether one follows from the other")
                lines.append(f"{label}\t{texts[0]}\t{texts[1]}\n")
        files[name] = "".join(lines)
    return files


# The twelve parts of speech of Petrov, Das and McDonald (arXiv 1104.2086) for those of the Penn treebank; what has no letter is a mark.
COARSE = {tag: part for part, tags in {
    "NOUN": "NN NNS NNP NNPS", "VERB": "VB VBD VBG VBN VBP VBZ MD", "ADJ": "JJ JJR JJS", "ADV": "RB RBR RBS WRB", "PRON": "PRP PRP$ WP WP$",
    "DET": "DT PDT WDT EX", "ADP": "IN", "NUM": "CD", "CONJ": "CC", "PRT": "RP TO POS"}.items() for tag in tags.split()}


def part_of_speech(tag: str) -> str:
    return COARSE.get(tag, "X" if any(map(str.isalpha, tag)) else ".")


def tagged(lines: List[str]) -> str:
    """A word and its label a line, an empty line behind each line of the document."""
    sentences = []
    for line in lines:
        words = [word.rpartition("_") for word in line.split()]
        rows = [f"{word}\t{part_of_speech(tag)}\n" for word, between, tag in words if between and word]
        if rows:
            sentences.append("".join(rows) + "\n")
    return "".join(sentences)


def masc(archive: zipfile.ZipFile, fold: int) -> Files:
    names = [name for name in names_in(archive, "masc_tagged/", ".txt") if name.count("/") == 2]
    return split(((name, tagged(member(archive, name, "utf-8").split("\n"))) for name in names), fold)


class Set(NamedTuple):
    """A data set: who reads it, and where it is from."""
    name: str
    read: Callable[[zipfile.ZipFile, int], Files]
    sha256: str
    source: str


SETS = (
    Set("blimp", blimp, "172a1a714d72e72a89e8384dd531483f3d0f8a9aee3d33dccaf7992d8cecbb73",
        "BLiMP.zip of https://github.com/alexwarstadt/blimp at commit 3e56b06fcabca9b30822fc66435fca6b1aa40bb1"),
    Set("mr", mr, "6e1ed4405b65c7eabf1d199a7f7c437091ac21da0ea7467b410a74062574566b", f"sentence_polarity.zip of {NLTK}"),
    Set("subj", subj, "741f3371e1a4375051b874fd82fd55857b90975473c91c19a3101cbe17fc4d8c", f"subjectivity.zip of {NLTK}"),
    Set("trec", trec, "091fb01e50883014d150acb7d5013d787136968b3f955ae01725a65e7e80f304", f"qc.zip of {NLTK}"),
    Set("rte", rte, "2f806ead4d53171601254747c3b7c97d758e63a6ef54e3c010a6d62885ab214a", f"rte.zip of {NLTK}"),
    Set("masc", masc, "678a5141cf3381bedb1839c58a330507337be07c7c71603279c0ef5337032304", f"masc_tagged.zip of {NLTK}"))


# ------------------------------------------------------------------------------------------------ files


def read_set(one: Set, path: Path, fold: int, other_editions: bool) -> Files:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise Refused(f"--{one.name} {path}: {problem.strerror or problem}; expected {one.source}") from problem
    digest = hashlib.sha256(content).hexdigest()
    if digest != one.sha256 and not other_editions:
        raise Refused(f"--{one.name} {path}: SHA-256 {digest}; expected {one.sha256}, that of {one.source} (--other-editions takes any)")
    try:
        with zipfile.ZipFile(path) as archive:
            return one.read(archive, fold)
    except (Refused, zipfile.BadZipFile, xml.etree.ElementTree.ParseError) as problem:
        raise Refused(f"--{one.name} {path}: {problem}; expected {one.source}") from problem


def write(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        part = folder / (name + ".part")
        part.write_text(text, encoding="utf-8")
        part.replace(folder / name)
        examples = text.count("\n\n") if folder.name == "masc" else text.count("\n")
        print(f"{folder / name}: {examples} examples, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for one in SETS:
        parser.add_argument(f"--{one.name}", type=Path, metavar="ZIP", help=one.source)
    parser.add_argument("--fold", type=int, default=0, choices=range(FOLDS), metavar="K", help="the tenth that is held out (%(default)s)")
    parser.add_argument("--other-editions", action="store_true", help="read files of another SHA-256, too")
    options = parser.parse_args()
    chosen = [(one, getattr(options, one.name)) for one in SETS if getattr(options, one.name)]
    if not chosen:
        parser.error("no set: give " + " or ".join(f"--{one.name}" for one in SETS))
    problems = 0
    for one, path in chosen:
        try:
            write(options.out / one.name, read_set(one, path, options.fold, options.other_editions))
        except Refused as problem:
            print(f"recognised.py: {problem}", file=sys.stderr)
            problems += 1
        except OSError as problem:
            print(f"recognised.py: {problem.filename}: {problem.strerror or problem}", file=sys.stderr)
            return SYSTEM
    return BAD_INPUT if problems else 0


if __name__ == "__main__":
    sys.exit(main())
