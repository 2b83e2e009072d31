"""A run's chain: every record is what its files say, a run of any kind is audited on other instruction sets and numbers of threads, and
whatever somebody changes afterwards is named.

SPDX-License-Identifier: MIT
"""
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess

from unittest import SkipTest

from cases_mpi import words_of
from cases_train import bad_run, case, digest, tensors, write
from cases_train_interrupted import small_run
from helpers import DEMO, check, contains, equal, is_sanitized, wait_until

SEED = int(os.environ.get("DEBERTA_TEST_SEED", random.SystemRandom().randrange(1 << 30)))
BLOCK = 4 << 18
CHAIN = ("--chain", "--chain-every", "2")


# --------------------------------------------------------------------------------- the format, written again from docs/audit.md


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read_chain(bench, run):
    return bench.objects(f"{run}/chain.jsonl")


def linked(records):
    """The lines of a chain of these records: what a forger would write who knows the format."""
    link, lines = "", []
    for record in records:
        line = {key: value for key, value in record.items() if key != "link"}
        link = sha256((link + json.dumps(line)).encode())
        lines.append(json.dumps({**line, "link": link}) + "\n")
    return "".join(lines)


def raw_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (entry["shape"], data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def state_of(folder, step, parts):
    """The digest of a checkpoint's state by its files."""
    text = f"deberta-state 1\nstep {step}\n"
    for part in parts:
        text += f"part {part}".strip() + "\n"
        weights = raw_tensors(os.path.join(folder, part, "model.safetensors"))
        moments = raw_tensors(os.path.join(folder, part, "training.safetensors"))
        for name in sorted(weights, key=str.encode):
            shape, values = weights[name]
            text += " ".join([name, *map(str, shape)]) + "\n"
            for data in (values, moments[f"m.{name}"][1], moments[f"v.{name}"][1]):
                text += "".join(sha256(data[at:at + BLOCK]) + "\n" for at in range(0, len(data), BLOCK))
    return sha256(text.encode())


def model_digest(bench, folder):
    return sha256(b"".join(open(bench.path(os.path.join(folder, name)), "rb").read() for name in ("config.json", "model.safetensors")))


def check_chain(bench, run, parts=("",)):
    """Links, recipe, and the states of all checkpoints that are there; at most 200 bytes a record."""
    text = bench.read(f"{run}/chain.jsonl")
    records = [json.loads(line) for line in text.splitlines()]
    equal(linked(records), text)
    equal(records[0]["recipe"], digest(bench, f"{run}/recipe.json"))
    check(max(map(len, text.splitlines())) <= 200, "a record of more than 200 bytes")
    states = {record["step"]: record["state"] for record in records[1:] if "state" in record}
    checkpoints = [int(name[11:]) for name in os.listdir(bench.path(run)) if name.startswith("checkpoint-")]
    for step in checkpoints:
        equal(state_of(bench.path(f"{run}/checkpoint-{step:06d}"), step, parts), states[step], f"{run}, step {step}")
    for record in records[1:]:
        if "of" in record and not record["of"].startswith("best"):
            equal(record["sha256"], model_digest(bench, os.path.join(run, record["of"])))
    return records


def chained_run(bench, steps=8, *more, out="run"):
    bench.fine(*small_run(bench, steps, *CHAIN, "--keep-every", "4", *more), "--out", out)


def audit(bench, run, *more, code=0):
    result = bench.run("verify", "--audit", run, "--segments", "99", *more)
    assert result.code == code, result.describe()
    return result


# ------------------------------------------------------------------------------------------------------------------------ a run


def test_records(bench):
    """A record every two steps and at each checkpoint, links and states as docs/audit.md has them; the program's bits stay."""
    bench.fine(*small_run(bench, 9), "--out", "plain")
    bench.fine(*small_run(bench, 9, *CHAIN, "--keep-every", "4", "--checkpoint-every", "3", "--keep", "1"), "--out", "run")
    equal(digest(bench, "run/model.safetensors"), digest(bench, "plain/model.safetensors"))
    check(not os.path.exists(bench.path("plain/chain.jsonl")), "a chain that nobody asked for")
    records = check_chain(bench, "run")
    equal([record["step"] for record in records[1:] if "state" in record], [0, 2, 3, 4, 6, 8, 9])
    equal(sorted(name for name in os.listdir(bench.path("run")) if name.startswith("checkpoint-")), ["checkpoint-000004", "checkpoint-000008"])
    contains(audit(bench, "run").out, "3 of 3 segments executed again", "every record is equal")


def audited_kind(bench, kind):
    """A run on the widest instruction set, audited on every other one that this processor has, and by other threads."""
    dice = random.Random(f"{SEED} {kind}")
    words = [*words_of(bench, dice, kind), "--chain", "--chain-every", "3", "--keep-every", "2"]
    print(f"seed {SEED}: {' '.join(words)}")
    bench.fine(*words, "--out", kind)
    records = check_chain(bench, kind, ("generator", "discriminator") if kind == "rtd" else ("",))
    equal({record["step"] for record in records[1:]}, {0, 2, 3, 4}, kind)
    tiers = [row["name"] for row in bench.json("info")["tiers"] if row["available"]]
    for tier in tiers[:-1]:
        contains(audit(bench, kind, "--isa", tier).out, "every record is equal")
    contains(audit(bench, kind, "--threads", str(dice.randrange(2, 5))).out, "every record is equal")


def test_mlm(bench):
    audited_kind(bench, "mlm")


def test_rtd(bench):
    audited_kind(bench, "rtd")


def test_sequence(bench):
    audited_kind(bench, "sequence")


def test_choice(bench):
    audited_kind(bench, "choice")


def test_best(bench):
    """The best model by held-out data is recorded whenever it is saved, and an audit saves it again."""
    bench.fine(*small_run(bench, 6, "--chain", "--eval", "corpus.txt", "--eval-every", "2"), "--out", "run")
    records = check_chain(bench, "run")
    best = [record for record in records if record.get("of") == "best"]
    check(len(best) >= 1 and best[-1]["sha256"] == model_digest(bench, "run/best"), records)
    contains(audit(bench, "run").out, "the model in best is the one recorded after step", "every record is equal")


def test_half_precision(bench):
    """A model that is saved in float16 is rounded again, and compared."""
    chained_run(bench, 4, "--save-dtype", "f16")
    contains(audit(bench, "run").out, "the model is the one recorded after step 4", "every record is equal")


def test_resumed(bench):
    """A run that is stopped, or killed at any moment, goes on with the chain that it would have had."""
    chained_run(bench, 8, out="whole")
    words = small_run(bench, 8, *CHAIN, "--keep-every", "4")
    bench.fine(*words, "--stop-at", "5", "--out", "run")
    before = open(bench.path("run/chain.jsonl"), encoding="utf-8").read()
    bench.fine(*[word for word in words if word not in CHAIN], "--resume", "--out", "run")
    check(open(bench.path("run/chain.jsonl"), encoding="utf-8").read().startswith(before), "a chain only grows")
    states = [[(record["step"], record["state"]) for record in read_chain(bench, run)[1:] if "state" in record] for run in ("run", "whole")]
    equal([state for state in states[0] if state[0] != 5], states[1])
    check_chain(bench, "run")
    audit(bench, "run")


def test_killed(bench):
    """What was recorded behind the last checkpoint is computed again, compared, and not written twice; a line cut off is written whole."""
    words = small_run(bench, 120, "--chain", "--chain-every", "1", "--checkpoint-every", "1000", "--keep-every", "60")
    program = subprocess.Popen([bench.program, *words, "--out", "run"], cwd=bench.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chain = bench.path("run/chain.jsonl")
    wait_until(lambda: os.path.exists(chain) and open(chain, "rb").read().count(b"\n") > 10 or program.poll() is not None)
    program.send_signal(signal.SIGKILL)
    program.wait()
    before = bench.read(chain)
    check(before.count("\n") > 10, before)
    whole = before[:before.rindex("\n") + 1]
    bench.write(chain, whole + '{"step": 99')
    bench.fine(*words, "--resume", "--out", "run")
    check(bench.read(chain).startswith(whole), "a chain only grows")
    equal([record["step"] for record in check_chain(bench, "run")[1:] if "state" in record], list(range(121)))
    audit(bench, "run")


def test_the_published_chain(bench):
    """models/baby: its card has the last link and the digest of the weights; audit.sh tells equal states from others and from missing ones."""
    published = os.path.join(os.path.dirname(DEMO), "baby")
    shutil.copytree(published, bench.path("baby"))
    text, card = bench.read("baby/chain.jsonl"), bench.read("baby/README.md")
    records = [json.loads(line) for line in text.splitlines()]
    equal(linked(records), text)
    contains(card, f"deberta-chain 1 {records[-1]['link']} records {len(records) - 1} step {records[-1]['step']} recipe {records[0]['recipe']}",
             "SHA-256 " + digest(bench, "baby/model.safetensors"))
    # a recipe that trains nothing, and leaves this chain
    bench.write("baby/recipe.sh", 'mkdir -p "$2/mlm"\ncp own.jsonl "$2/mlm/chain.jsonl"\n')
    os.chmod(bench.path("baby/recipe.sh"), 0o755)
    lines = text.splitlines(keepends=True)[:3]
    states = [json.loads(line)["state"] for line in lines[1:]]
    for own, code, words in (("".join(lines), 0, "steps 0 to 200: every state is that of"), (lines[0] + lines[1], 1, "no state of step 200"), ("", 1, "no state of step 200"),
                             ("".join(lines).replace(states[1], states[1][::-1]), 1, "these states are not in")):
        bench.write("own.jsonl", own)
        done = subprocess.run(["sh", bench.path("baby/audit.sh"), "books", "out"], cwd=bench.path("."), capture_output=True, text=True)
        equal(done.returncode, code, done.stdout + done.stderr)
        contains(done.stdout, words)
    equal(subprocess.run(["sh", bench.path("baby/audit.sh"), "books"], capture_output=True).returncode, 2)


def test_full_disk(bench):
    """The disk is full when a line is written, whole or in part: the run ends with exit 4 and the file's name, and goes on with the whole chain."""
    if is_sanitized(bench.program):
        raise SkipTest("system calls cannot be made to fail under a sanitizer")
    words = small_run(bench, 4, *CHAIN, "--checkpoint-every", "2", "--keep-every", "2")
    bench.fine(*words, "--out", "whole")
    library = os.path.join(os.path.dirname(os.path.abspath(bench.program)), "tests/failing_calls/failing_calls.so")
    full = {"LD_PRELOAD": library, "FAIL_WITH": "28", "FAIL_FROM": "1", "FAIL_UNDER": "/run/chain.jsonl"}
    writes = 0
    for part in ({}, {"FAIL_PART": "1"}):
        for at in range(1, 99):
            shutil.rmtree(bench.path("run"), ignore_errors=True)
            result = bench.run(*words, "--out", "run", env={**full, **part, "FAIL_AT": str(at)})
            if result.code == 0:
                break
            equal(result.code, 4, result.err)
            check("chain.jsonl: No space left on device" in result.err or "run: cannot be brought to the disk: No space" in result.err, result.err)
            bench.fine(*words, *["--resume"] * os.path.exists(bench.path("run")), "--out", "run")
            equal(bench.read("run/chain.jsonl"), bench.read("whole/chain.jsonl"), f"call {at}")
            writes += 1
    lines = bench.read("whole/chain.jsonl").count("\n")
    check(writes > 2 * lines, f"{writes} failing calls for {lines} lines")
    audit(bench, "run")


def test_a_first_line_cut_off(bench):
    """A run that was killed in the first line of its chain cannot know its steps: it asks for them, and begins the chain again."""
    words = small_run(bench, 8, *CHAIN)
    bench.fine(*words, "--stop-at", "4", "--out", "run")
    first = bench.read("run/chain.jsonl")
    for left in (0, 20):
        shutil.copytree(bench.path("run"), bench.path("cut"))
        bench.write("cut/chain.jsonl", first[:left])
        contains(bench.expect(3, *[word for word in words if word not in CHAIN], "--resume", "--out", "cut").err, "its first line was not written whole", "--chain-every")
        bench.fine(*words, "--resume", "--out", "cut")
        equal([record["step"] for record in check_chain(bench, "cut")[1:] if "state" in record], [4, 6, 8])
        audit(bench, "cut")
        shutil.rmtree(bench.path("cut"))


def test_bad_steps(bench):
    """A step that is passed over for a loss that is no number is passed over in an audit, too."""
    bench.fine(*bad_run(bench, 3, 5), "--bad-steps", "1", "--chain", "--chain-every", "1", "--keep-every", "2", "--out", "run")
    records = check_chain(bench, "run")
    states = {record["step"]: record["state"] for record in records[1:] if "state" in record}
    check(states[2] != states[3], "the number of steps is part of the state")
    contains(audit(bench, "run").out, "every record is equal")


def test_a_bad_first_step(bench):
    """The command is recorded although the first step was passed over."""
    bench.fine(*bad_run(bench, 1, 4), "--bad-steps", "1", "--chain", "--out", "run")
    contains(audit(bench, "run").out, "every record is equal")


def test_memory_limit(bench):
    """The limit of an audit is that of the training that it executes."""
    chained_run(bench, 4)
    contains(audit(bench, "run", "--memory-limit", "100M").out, "every record is equal")
    contains(bench.expect(4, "verify", "--audit", "run", "--memory-limit", "10K").err, "the limit is 10240 bytes")


def test_begun_late(bench):
    """A chain that began when a run went on covers no earlier step, which the run, the audit and --commit say; a finished run begins none."""
    words = small_run(bench, 8, "--keep-every", "4")
    bench.fine(*words, "--stop-at", "3", "--out", "run")
    contains(bench.fine(*words, "--resume", *CHAIN, "--out", "run").err, "note: the chain begins at step 3: an audit does not cover steps 1 to 3")
    check("note: the chain" not in bench.fine(*words, "--resume", *CHAIN, "--out", "run").err, "the chain has all steps from here on")
    equal([record["step"] for record in check_chain(bench, "run")[1:] if "state" in record], [3, 4, 6, 8])
    shutil.copytree(bench.path("run"), bench.path("without"))
    shutil.rmtree(bench.path("without/checkpoint-000003"))
    for run, first, more in (("run", 3, ""), ("without", 4, ", and the first kept checkpoint is of step 4")):
        note = f"note: steps 1 to {first} are not covered: the chain begins at step 3{more}"
        result = audit(bench, run)
        contains(result.err, note)
        contains(result.out, f"every record from step {first} on is equal")
        equal(json.loads(audit(bench, run, "--json").out)["first_step"], first)
    commit = bench.fine("verify", "--audit", "run", "--commit")
    contains(commit.err, "note: steps 1 to 3 are not covered: the chain begins at step 3")
    equal(len(commit.out.split()), 9)
    bench.fine(*words, "--out", "done")
    contains(bench.expect(3, *words, "--resume", *CHAIN, "--out", "done").err, "all 8 steps are done", "leave --chain out")
    check(not os.path.exists(bench.path("done/chain.jsonl")), "a chain that nothing can be audited with")


def test_commit(bench):
    """The line that is published before names the last link, and so everything above it."""
    chained_run(bench)
    line = bench.fine("verify", "--audit", "run", "--commit").out.split()
    records = read_chain(bench, "run")
    equal(line, ["deberta-chain", "1", records[-1]["link"], "records", str(len(records) - 1), "step", "8", "recipe", digest(bench, "run/recipe.json")])
    equal(json.loads(bench.fine("verify", "--audit", "run", "--commit", "--json").out)["head"], records[-1]["link"])
    early = ["deberta-chain", "1", records[3]["link"], "records", "3", "step", "4", "recipe", records[0]["recipe"]]
    for words in (line, early):
        contains(bench.fine("verify", "--audit", "run", "--published", " ".join(words)).out, f"the published line is of this chain, up to step {words[6]}")
    for place, value, named in ((2, records[1]["link"], "link"), (8, sha256(b""), "recipe"), (4, "99", "link"), (6, "9", "step 9")):
        wrong = [*line[:place], value, *line[place + 1:]]
        contains(bench.expect(1, "verify", "--audit", "run", "--published", " ".join(wrong)).out, f"differs: the published line has {named}")
    contains(bench.expect(2, "verify", "--audit", "run", "--published", "deberta-chain 2").err, "the line that --commit has printed")
    for words in (["--file", "no.txt"], ["--seed", "7"], ["--generator", "no"]):  # what it does not read
        contains(bench.expect(2, "verify", "--audit", "run", "--commit", *words).err, f"{words[0]} exclude each other")
    contains(bench.expect(2, "verify", "no", "--audit", "run", "--commit").err, "--commit reads the chain of the run alone: give no MODEL with it, found 'no'")
    contains(bench.fine("verify", "--audit", "run", "--commit", "--threads", "2").err, "--threads", "nothing is computed with --commit")


def test_draw(bench):
    """Segments are drawn from the clock unless --seed is given; the draw is printed, and repeats."""
    chained_run(bench, 16, "--keep-every", "1")
    draws = set()
    contains(bench.fine("verify", "--audit", "run").out, "a change in one segment is found so with 6 %; --segments 16 executes all", "kept checkpoints: 1, 2, 3", "head ")
    for _ in range(4):
        found = json.loads(bench.fine("verify", "--audit", "run", "--segments", "2", "--json").out)
        equal((found["drawn"], found["of"], len(found["segments"])), (2, 16, 2))
        draws.add(tuple(segment["from"] for segment in found["segments"]))
        again = json.loads(bench.fine("verify", "--audit", "run", "--segments", "2", "--seed", str(found["seed"]), "--json").out)
        equal(again["segments"], found["segments"])
    check(len(draws) > 1, "four draws of the clock are equal")


# ------------------------------------------------------------------------------------------------------------- what was changed


def flip(path, name, place):
    """Adds 1 to a value of a tensor."""
    with open(path, "r+b") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        begin = 8 + size + json.loads(file.read(size))[name]["data_offsets"][0] + 4 * place
        file.seek(begin)
        value = struct.unpack("<f", file.read(4))[0]
        file.seek(begin)
        file.write(struct.pack("<f", value + 1))


def a_weight(bench, folder):
    return next(name for name in raw_tensors(bench.path(f"{folder}/model.safetensors")) if name.endswith("output.dense.weight"))


def test_changes_are_named(bench):
    """One weight, one moment, one record, two records, a model, a recipe, a checkpoint of another run: each by what the audit says."""
    chained_run(bench)
    chained_run(bench, 8, "--learning-rate", "2e-3", out="other")
    weight = a_weight(bench, "run")

    def keep_digests(run, checkpoint):
        path = bench.path(f"{run}/{checkpoint}/training.json")
        state = json.load(open(path, encoding="utf-8"))
        state["sha256"] = {name: digest(bench, f"{run}/{checkpoint}/{name}") for name in state["sha256"]}
        bench.write(path, json.dumps(state))

    def change_weight(run):
        flip(bench.path(f"{run}/checkpoint-000004/model.safetensors"), weight, 3)

    def change_moment(run):
        flip(bench.path(f"{run}/checkpoint-000004/training.safetensors"), f"v.{weight}", 5)

    def forge_weight(run):
        change_weight(run)
        keep_digests(run, "checkpoint-000004")

    def forge_moment(run):
        change_moment(run)
        keep_digests(run, "checkpoint-000004")

    def change_model(run):
        flip(bench.path(f"{run}/model.safetensors"), weight, 0)

    def change_config(run):
        bench.append(f"{run}/config.json", "\n")

    def drop_model(run):
        edit(run, lambda records, lines: "".join(lines[:-1]))

    def drop_end(run):
        edit(run, lambda records, lines: linked([*records[:-2], records[-1]]))

    def change_recipe(run):
        bench.append(f"{run}/recipe.json", "\n")

    def edit(run, change):
        records = read_chain(bench, run)
        lines = open(bench.path(f"{run}/chain.jsonl"), encoding="utf-8").read().splitlines(True)
        bench.write(f"{run}/chain.jsonl", change(records, lines))

    def change_record(run):
        edit(run, lambda records, lines: "".join(line.replace(records[3]["state"], records[4]["state"]) if k == 3 else line for k, line in enumerate(lines)))

    def swap_records(run):
        edit(run, lambda records, lines: "".join([*lines[:3], lines[4], lines[3], *lines[5:]]))

    def drop_record(run):
        edit(run, lambda records, lines: "".join([*lines[:3], *lines[4:]]))

    def forge_record(run):
        edit(run, lambda records, lines: linked([*records[:4], {**records[4], "state": records[3]["state"]}, *records[5:]]))

    def forge_order(run):
        edit(run, lambda records, lines: linked([*records[:3], records[4], records[3], *records[5:]]))

    def forge_best(run):
        edit(run, lambda records, lines: linked([*records, {"step": 8, "of": "", "sha256": sha256(b"")}]))

    def no_digests(run):
        path = bench.path(f"{run}/checkpoint-000004/training.json")
        state = json.load(open(path, encoding="utf-8"))
        bench.write(path, json.dumps({**state, "sha256": {}}))

    def other_checkpoint(run):
        shutil.rmtree(bench.path(f"{run}/checkpoint-000004"))
        shutil.copytree(bench.path("other/checkpoint-000004"), bench.path(f"{run}/checkpoint-000004"))

    def other_weights(run):
        for name in ("model.safetensors", "training.safetensors"):
            shutil.copy(bench.path(f"other/checkpoint-000004/{name}"), bench.path(f"{run}/checkpoint-000004/{name}"))
        keep_digests(run, "checkpoint-000004")

    expected = {change_weight: "checkpoint-000004/model.safetensors has SHA-256",
                change_moment: "checkpoint-000004/training.safetensors has SHA-256",
                forge_weight: "checkpoint-000004 is not the state recorded after step 4",
                forge_moment: "checkpoint-000004 is not the state recorded after step 4",
                change_model: "the model has the digest",
                change_config: "the model has the digest",
                drop_model: "the model has no record",
                drop_end: "training.json is of step 8, and the last recorded state of step 6",
                change_recipe: "recipe.json has SHA-256",
                change_record: "line 4 of chain.jsonl, of step 4, does not follow",
                swap_records: "line 4 of chain.jsonl, of step 6, does not follow",
                drop_record: "line 4 of chain.jsonl, of step 6, does not follow",
                forge_record: "the state after step 6: computed is",
                forge_order: "line 5 of chain.jsonl is of step 4, and the line above it of step 6",
                forge_best: "the model has the digest",
                no_digests: "checkpoint-000004/training.json has no SHA-256 of files",
                other_checkpoint: "checkpoint-000004/training.json has another recipe",
                other_weights: "checkpoint-000004 is not the state recorded after step 4"}
    for change, sentence in expected.items():
        shutil.copytree(bench.path("run"), bench.path("changed"))
        change("changed")
        contains(audit(bench, "changed", code=1).out, f"differs: {sentence}")
        shutil.rmtree(bench.path("changed"))
    audit(bench, "run")


def test_another_training(bench):
    """Somebody trains on data with one label changed, and writes recipe and links of the data that he shows."""
    folder = case(bench, "t4-v2-conv-token-xadam")
    batches = tensors(os.path.join(folder, "batches.safetensors"))
    steps = batches["input_ids"][1][0]
    write(bench.path("shown.safetensors"), batches)
    labels, shape = batches["labels"][2], batches["labels"][1]
    place = (steps - 1) * shape[1] * shape[2] + next(k for k in range(shape[2]) if labels[(steps - 1) * shape[1] * shape[2] + k] >= 0)
    labels[place] = 1 - labels[place] if labels[place] in (0, 1) else 0
    write(bench.path("used.safetensors"), batches)
    for data in ("shown", "used"):
        bench.fine("finetune", "token", folder, "--dropout", "0", "--batches", f"{data}.safetensors", "--steps", str(steps + 2), "--learning-rate", "0.01",
                   "--chain", "--chain-every", "1", "--out", data)
    audit(bench, "shown")
    audit(bench, "used")
    records = read_chain(bench, "used")
    for name in ("recipe.json", "command.json"):
        shutil.copy(bench.path(f"shown/{name}"), bench.path(f"used/{name}"))
    state = json.load(open(bench.path("used/training.json"), encoding="utf-8"))
    state["recipe"] = json.load(open(bench.path("used/recipe.json"), encoding="utf-8"))
    bench.write("used/training.json", json.dumps(state))
    records[0]["recipe"] = digest(bench, "used/recipe.json")
    bench.write("used/chain.jsonl", linked(records))
    contains(audit(bench, "used", code=1).out, f"differs: the state after step {steps}: computed is")


def test_a_changed_past(bench):
    """A run does not go on from a state that its own chain does not have."""
    words = small_run(bench, 8, *CHAIN)
    bench.fine(*words, "--stop-at", "4", "--out", "run")
    weight = a_weight(bench, "run/checkpoint-000004")
    flip(bench.path("run/checkpoint-000004/model.safetensors"), weight, 3)
    state = json.load(open(bench.path("run/checkpoint-000004/training.json"), encoding="utf-8"))
    state["sha256"]["model.safetensors"] = digest(bench, "run/checkpoint-000004/model.safetensors")
    bench.write("run/checkpoint-000004/training.json", json.dumps(state))
    contains(bench.expect(3, *words, "--resume", "--out", "run").err, "the state after step 4 is", "another program version, or a damaged file")


# ------------------------------------------------------------------------------------------------- what cannot be checked, and why


def test_what_lacks(bench):
    """Data and models that are elsewhere are named with their digests, and --file and MODEL say where they are."""
    chained_run(bench)
    contains(bench.expect(3, "verify", "--audit", "new").err, "no chain.jsonl", "--chain")
    recorded = digest(bench, "corpus.txt")
    os.rename(bench.path("corpus.txt"), bench.path("moved.txt"))
    os.rename(bench.path("new"), bench.path("base"))
    contains(bench.expect(3, "verify", "--audit", "run").err, f"corpus.txt is not there; its SHA-256 is {recorded}")
    contains(audit(bench, "run", "base", "--file", "moved.txt").out, "every record is equal")
    bench.append("moved.txt", "one more line\n")
    contains(bench.expect(3, "verify", "--audit", "run", "base", "--file", "moved.txt").err, "moved.txt has SHA-256", recorded)
    contains(bench.expect(2, "verify", "--audit", "run", "base", "--file", "moved.txt", "--file", "moved.txt").err, "the run read 1 file")


def test_malformed(bench):
    """Lines that no run writes are refused with their number, and no command of a foreign file is run."""
    chained_run(bench, 4)
    text = bench.read("run/chain.jsonl")
    first, second = text.splitlines(True)[:2]
    for bad, where in {first + "{}\n": ":2", first + second.replace(", ", ",", 1): ":2", "[]\n": ":1", second: ":1", first + second[:-1]: ":2", "": "",
                       first + second.replace('"step": 0', '"step": -1'): ":2", first + second.replace('"step": 0', '"step": 1e3'): ":2",
                       first.replace("chain\": 1", "chain\": 2"): ":1", first + second + '{"step": 1, "of": "../x", "sha256": "%s", "link": "%s"}\n' % (sha256(b""), sha256(b"")): ":3",
                       first + "x" * 300 + "\n": ":2"}.items():
        bench.write("run/chain.jsonl", bad)
        contains(bench.expect(3, "verify", "--audit", "run").err, f"run/chain.jsonl{where}")
    bench.write("run/chain.jsonl", text)
    command = json.load(open(bench.path("run/command.json"), encoding="utf-8"))
    for change in ({"command": "info"}, {"command": "verify"}, {"command": 3}, {"options": [["out", "x"]]}, {"options": [["gradients", "x"]]}, {"options": [["json"]]},
                   {"options": [["steps"]]}, {"options": [["steps", "4", "5"]]}, {"options": [[]]}, {"files": [{"path": "corpus.txt"}]}, {"options": [["nothing", "x"]]}):
        before = sorted(bench.files())
        bench.write("run/command.json", json.dumps({**command, **change}))
        contains(bench.expect(3, "verify", "--audit", "run").err, "run/command.json", "as the run wrote it")
        equal(sorted(bench.files()), before)
    bench.write("run/command.json", json.dumps({**command, "options": [*command["options"], ["shards", "3"], ["beta1", "x"]]}))
    bench.expect(3, "verify", "--audit", "run")
    os.remove(bench.path("run/command.json"))
    contains(bench.expect(3, "verify", "--audit", "run").err, "run/command.json")
