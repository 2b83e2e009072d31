"""Made-up models: their shapes, which heads they have, and that each head computes what float64 does. SPDX-License-Identifier: MIT
"""
import json
import os
import random

from helpers import TINY, contains, read_tensors

SEED, DRAWN = 20, 10
SMALL = "layers=2,hidden=48,heads=2,intermediate=52,vocab=61,positions=40,distance=16,buckets=8"
PUBLISHED = {"v1-base": "deberta-base", "v1-large": "deberta-large", "v1-xlarge": "deberta-xlarge", "v2-xlarge": "deberta-v2-xlarge",
             "v2-xxlarge": "deberta-v2-xxlarge", "v3-xsmall": "deberta-v3-xsmall", "v3-small": "deberta-v3-small",
             "v3-base": "deberta-v3-base", "v3-large": "deberta-v3-large", "mdeberta-base": "mdeberta-v3-base"}


def described(bench, model):
    return json.loads(bench.fine("info", model, "--json").out)["model"]


def published_rows(bench):
    """Layers, hidden size, heads, intermediate size, words and parameters, by name, of the specification's table."""
    with open(os.path.join(bench.root, "docs", "specification.md"), encoding="utf-8") as file:
        rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in file if line.startswith(("| deberta-", "| mdeberta-"))]
    return {row[0].split()[0]: ([int(cell.replace(",", "")) for cell in row[1:7]], "convolution" in row[0] or "the same" in row[0]) for row in rows
            if len(row) == 7}


def test_shapes(bench):
    """Every shape is that of the specification's table, and all of them are there."""
    published = published_rows(bench)
    assert set(published) == set(PUBLISHED.values()), set(published)
    for shape, name in PUBLISHED.items():
        model = described(bench, "synthetic:" + shape)
        found = [model[key] for key in ("layers", "hidden_size", "heads", "intermediate_size", "vocabulary_size", "parameters")]
        numbers, convolves = published[name]
        assert found == numbers and model["convolution_width"] == (3 if convolves else 0), (shape, model)
        assert (model["version"], model["relative_rows"]) == ((1, 1024) if shape.startswith("v1") else (2, 512)) and model["heads_present"] == []
    contains(bench.expect(3, "info", "synthetic:v4-base").err, "unknown shape 'v4-base'", *PUBLISHED)


def test_all_heads(bench):
    """heads=all, wherever it stands and whatever the number of attention heads; one classifier, of sequences unless tokens are asked for."""
    for words, expected, classes in ((",heads=all", "mlm mlm_emd rtd sequence qa", 3), (",heads=all,heads=4", "mlm mlm_emd rtd sequence qa", 3),
                                     (",token=7,heads=all", "mlm mlm_emd rtd token qa", 7), (",heads=all,sequence=1", "mlm mlm_emd rtd sequence qa", 1),
                                     (",qa=1,token=2", "token qa", 2), (",lm=0", "", 0)):
        model = described(bench, TINY + words)
        assert model["heads_present"] == expected.split() and model["heads"] == (4 if "heads=4" in words else 2), (words, model)
        if classes:
            bench.fine("encode", TINY + words, "--ids", "1,7,2", "--logits", "-o", "o.safetensors")
            head = "sequence" if "sequence" in expected else "token"
            assert read_tensors(bench.path("o.safetensors"))[0]["logits." + head].shape[-1] == classes, words
    for words, text in ((",heads=every", "'every' is not a number from 0 to 2147483647, nor all"), (",heads=", "nor all"), (",layers=all", "'all' is not a number"),
                        (",token=2,sequence=3,heads=all", "expected sequence=3 or token=2, found both"), (",token=2000000", "num_labels"),
                        (",choice=1", "unknown key in 'choice=1'; known are terms, layers,"), (",embedding=9999999", "embedding_size")):
        contains(bench.expect(3, "info", TINY + words).err, text)


def drawn_model(drawn):
    """A name, and the heads that the model has."""
    narrow, biased, classifier = drawn.randrange(3) == 0, drawn.randrange(2), drawn.choice(["", "sequence", "token"])
    shape = drawn.choice(["v1-base", "v2-xlarge", "v3-small"])
    words = [f"synthetic:{shape}", SMALL, f"biased={biased}", f"types={drawn.randrange(3)}", f"terms={drawn.choice(['both', 'c2p', 'p2c', 'none'])}",
             f"seed={drawn.randrange(1000)}"]
    words += [f"embedding={drawn.choice([20, 33, 64])}"] if narrow else []
    words += [f"convolution={drawn.choice([0, 1, 3, 5])}"] if shape != "v1-base" else []
    words += [f"{classifier}={drawn.randrange(1, 20)}"] if classifier else []
    heads = {"lm", "rtd", "qa"} if drawn.randrange(2) else {head for head in ("lm", "rtd", "qa") if drawn.randrange(2)}
    every = len(heads) == 3 and drawn.randrange(2)
    words += ["heads=all"] if every else [f"{head}=1" for head in sorted(heads)]
    drawn.shuffle(tail := words[1:])
    present = {"rtd", "qa"} & heads | ({"mlm"} | (set() if narrow else {"mlm_emd"}) if "lm" in heads else set())
    present |= {classifier or "sequence"} if classifier or every else set()
    return ",".join(words[:1] + tail), present


def test_drawn_heads(bench):
    """Narrow and wide embeddings, convolutions, token types and absolute positions, with every choice of heads."""
    print(f"seed {SEED}")
    drawn = random.Random(SEED)
    for _ in range(DRAWN):
        name, present = drawn_model(drawn)
        assert set(described(bench, name)["heads_present"]) == present, (name, present)
        bench.fine("verify", name, "-n", 19)
        if not present:
            continue
        bench.fine("encode", name, "--ids", "1,7,60,2", "--ids", "1,9,2", "--logits", "-o", "o.safetensors")
        found = {key.removeprefix("logits.") for key in read_tensors(bench.path("o.safetensors"))[0] if key.startswith("logits.")}
        assert found == present, (name, found)
