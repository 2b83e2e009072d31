"""What `deberta report` puts into its page: the parts that are asked for, and what the model answers, against the commands that say it.

SPDX-License-Identifier: MIT
"""
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess

from helpers import DEMO, ROOT, check, check_message, contains, equal

MODELS = os.path.dirname(DEMO)
TINY = "synthetic:v3-xsmall,vocab=50,layers=1,hidden=64,heads=1"
MASKED = "The King and the [MASK] sat upon their thrones."
PARTS = {"latency": "lengths", "verify": "verify", "receptive-field": "receptive-field"}


def page_of(bench, path="r/index.html"):
    return json.loads(re.search(r'id="json-page">(.*?)</script>', bench.read(path)).group(1))


def parts_of(bench, folder="r"):
    return {part for part, name in PARTS.items() if os.path.exists(bench.path(f"{folder}/{name}.json"))}


def test_parts(bench):
    """Without a word only what is quick; of two options that name a part the last decides; options of the sweeps ask for them."""
    quick = ["--reps", "1", "--isa", "scalar", "-q"]
    for k, (options, wanted) in enumerate((([], {"receptive-field"}), (["--skip", "latency,verify"], {"receptive-field"}), (["--skip", "receptive-field"], set()),
                                           (["--with", "verify"], {"verify", "receptive-field"}), (["-n", "4", *quick], {"latency", "receptive-field"}),
                                           (["-n", "4", *quick, "--skip", "latency"], {"receptive-field"}),
                                           (["--skip", "latency,verify", "--with", "verify"], {"verify", "receptive-field"}))):
        bench.fine("report", TINY, "-q", *options, "-o", f"r{k}")
        equal(parts_of(bench, f"r{k}"), wanted, " ".join(options))
    for word in (["--reps", "3"], ["-n", "8"], ["--depth", "1"]):  # options of sweeps that are left out are named
        contains(bench.fine("report", TINY, "--skip", "latency", *word, "-o", "skipped").err, "note: --", "--skip latency leaves the sweeps out")
    check_message(bench.run("report", TINY, "--with", "receptive-field", "-o", "no"), 2, ["--with", "latency,verify", "'receptive-field'"])


def test_part_by_its_command(bench):
    """The line that the page shows in the place of a part adds it, also to a page alone."""
    bench.fine("report", TINY, "--skip", "verify", "--isa", "scalar", "-q", "-o", "r")
    command = shlex.split(page_of(bench)["command"])
    equal(command[:3], ["deberta", "report", TINY], "the command of the page")
    bench.fine(*command[1:], "--with", "verify")
    equal(parts_of(bench), {"verify", "receptive-field"}, " ".join(command))
    bench.fine("report", TINY, "--isa", "scalar", "-q", "-n", "4", "--reps", "1", "-o", "alone.html", "--with", "verify")
    html = bench.read("alone.html")
    check('id="json-verify"' in html and 'id="json-lengths"' in html, "a page alone holds what was asked for")
    check(not os.path.exists(bench.path("alone.html.parts")), "and nothing beside it")


# ------------------------------------------------------------------------------------------------------------- answers


def close(found, wanted, what):
    check(abs(found - wanted) <= 2e-9 + 2e-8 * abs(wanted), f"{what}: {found}, expected {wanted}")


def same_words(bench, model, text, answer, ablation, what):
    told = json.loads(bench.fine("fill-mask", model, "--text", text, "--json", *ablation).out)["masks"]
    equal([mask["place"] for mask in answer["masks"]], [mask["token"] for mask in told], what)
    for mask, other in zip(answer["masks"], told):
        (candidates,) = other["candidates"].values()
        equal([token["id"] for token in mask["tokens"]], [one["id"] for one in candidates], what)
        for token, one in zip(mask["tokens"], candidates):
            close(token["probability"], one["probability"], what)


def same_classes(bench, model, text, answer, ablation, what):
    told = json.loads(bench.fine("classify", model, "--text", text, "--json", *ablation).out)
    if "score" in told:
        return close(answer["classes"][0]["score"], told["score"], what)
    equal([one["label"] for one in answer["classes"]], [one["label"] for one in told["labels"]], what)
    for one, other in zip(answer["classes"], told["labels"]):
        close(one.get("probability", one.get("score")), other.get("probability", other.get("score")), what)


def same_replaced(bench, model, text, answer, ablation, what):
    for one in json.loads(bench.fine("detect", model, "--text", text, "--json", *ablation).out)["tokens"]:
        close(answer["replaced"][one["index"]], one["probability"], what)


def same_tags(bench, model, text, answer, ablation, what):
    told = json.loads(bench.fine("tag", model, "--text", text, "--grouping", "none", "--json", *ablation).out)["tokens"]
    for token, one in enumerate(told, 1):
        best = one["labels"][0] if "labels" in one else one
        equal(answer["tags"][token]["label"], best["label"], what)
        close(answer["tags"][token]["probability"], best["probability"], what)


def names_of(layers, heads):
    """What a page offers to take out: every subset of the terms of a layer and of all, each term of a head."""
    subsets = [[term for k, term in enumerate(("c2c", "c2p", "p2c")) if bits >> k & 1] for bits in range(1, 8)]
    whole = [",".join(f"{term}@{place}" for term in terms) for place in ("all", *range(layers)) for terms in subsets]
    return whole + [f"{term}@{layer}:{head}" for layer in range(layers) for head in range(heads) for term in ("c2c", "c2p", "p2c")]


def test_words_and_classes(bench):
    """With all terms, and without some that are drawn: what fill-mask and classify say with --ablate."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    text = "The [MASK] and the [MASK] sat upon their thrones."
    bench.fine("report", DEMO, "--text", text, "-q", "-o", "r")
    answers = page_of(bench)["texts"][0]["answers"]
    equal(sorted(answers["without"]), sorted(names_of(5, 3)), "what is computed beforehand")
    for name in ["", *random.Random(seed).sample(sorted(answers["without"]), 5)]:
        answer, ablation = (answers["without"][name], ("--ablate", name)) if name else (answers["full"], ())
        same_words(bench, DEMO, text, answer, ablation, f"seed {seed}, without '{name}'")
        same_classes(bench, DEMO, text, answer, ablation, f"seed {seed}, without '{name}'")


def test_other_heads(bench):
    """Replaced tokens, and tags; a report with an ablation of its own, to which those of the page come."""
    text = "the old man sat by the see"
    for folder, same in (("discriminator", same_replaced), ("tags", same_tags)):
        model = os.path.join(MODELS, folder)
        bench.fine("report", model, "--text", text, "-q", "-o", folder, "--ablate", "c2p@0")
        answers = page_of(bench, f"{folder}/index.html")["texts"][0]["answers"]
        check("masks" not in answers["full"], f"{folder} has no words: {list(answers['full'])}")
        same(bench, model, text, answers["full"], ("--ablate", "c2p@0"), "the report's own ablation")
        name = "p2c@1" if "p2c@1" in answers["without"] else "p2c@all"
        same(bench, model, text, answers["without"][name], ("--ablate", f"c2p@0,{name}"), "another one on top")


def test_by_layer(bench):
    """The last of the answers by layer is that of the plain head, and there is one more than layers."""
    bench.fine("report", DEMO, "--text", MASKED, "-q", "-o", "r")
    answers = page_of(bench)["texts"][0]["answers"]
    equal(len(answers["layers"]), 6, "H[0] to H[5]")
    told = json.loads(bench.fine("fill-mask", DEMO, "--text", MASKED, "--json", "--mlm-decoder", "plain").out)["masks"][0]["candidates"]["plain"]
    for found, wanted in zip(answers["layers"][-1]["masks"][0]["tokens"], told):
        equal(found["id"], wanted["id"], "H[5]")
        close(found["probability"], wanted["probability"], "H[5]")
    same_classes(bench, DEMO, MASKED, answers["layers"][-1], (), "H[5]")
    check(len({json.dumps(answer["masks"]) for answer in answers["layers"]}) == 6, "each layer answers otherwise")


def test_models_without_answers(bench):
    """Ids of a model without a head; a text that is too long for what is computed beforehand."""
    bench.fine("report", TINY, "--ids", "1,7,3", "-q", "-o", "r")
    about = page_of(bench)["texts"][0]
    check(not about.get("answers") or "masks" not in about["answers"]["full"], f"no tokenizer, no words: {about.get('answers')}")
    large = "synthetic:v3-large,vocab=100,layers=2"
    bench.fine("report", large, "--ids", ",".join(str(3 + k % 90) for k in range(200)), "-q", "-o", "r2", "--skip", "receptive-field")
    about = page_of(bench, "r2/index.html")["texts"][0]
    check(len(about.get("answers", {}).get("without", {})) < len(names_of(2, 16)), "a large model is computed for some terms only")


def test_demo_asks_for_modules_where_they_are(bench):
    """./build.sh demo: the page that computes where ./build.sh wasm has been, and no word of modules elsewhere."""
    for folder in ("tools/making", "models/demo", "build"):
        os.makedirs(bench.path(folder))
    shutil.copy(os.path.join(ROOT, "tools/making/demo.sh"), bench.path("tools/making/demo.sh"))
    bench.write("models/demo/config.json", "{}")
    bench.write("build/deberta", "#!/bin/sh\necho \"run: $*\"\n")
    os.chmod(bench.path("build/deberta"), 0o755)
    for has_modules in (False, True):
        if has_modules:
            os.makedirs(bench.path("build-wasm"))
            bench.write("build-wasm/deberta-scalar.wasm", "")
        said = subprocess.run(["sh", bench.path("tools/making/demo.sh")], capture_output=True, text=True, check=True).stdout
        report = next(line for line in said.split("\n") if line.startswith("run: report"))
        check(("--live" in report) == has_modules and "[MASK]" in report and " -n " not in report, report)


def test_damaged_head(bench):
    """A head whose weights are no numbers is refused by its tensor, and no page is left."""
    shutil.copytree(DEMO, bench.path("damaged"))
    place = bench.path("damaged/model.safetensors")
    with open(place, "r+b") as file:
        header = struct.unpack("<Q", file.read(8))[0]
        begin, end = json.loads(file.read(header))["classifier.bias"]["data_offsets"]
        file.seek(8 + header + begin)
        file.write(b"\xff" * (end - begin))  # not a number, in any type
    result = bench.run("report", "damaged", "--text", MASKED, "--skip", "receptive-field", "-o", "r")
    check(result.code == 3 and "value 0 of tensor 'classifier.bias' is" in result.err, result.err)
    check(not os.path.exists(bench.path("r/index.html")), "a page is left")
