"""Training runs as people and machines interrupt them: killed, hung up, damaged, started twice. What goes on ends with the bits of a run
that nothing happened to, or is refused with a name.

SPDX-License-Identifier: MIT
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from cases_train import TRAIN, bad_run, digest, in_two_parts, log_without_time, read_log
from helpers import DEMO, check, contains, equal, has_figures, wait_until

LINES = [f"the old sailor number {n} sold {n * 7 % 13} silver spoons to a stranger" for n in range(60)]
FILES = ("model.safetensors", "training.safetensors")


def small_run(bench, steps, *more):
    """Words of a run of a model that is trained in milliseconds."""
    if not os.path.exists(bench.path("new")):
        bench.write("corpus.txt", "\n".join(LINES) + "\n")
        bench.fine("train", "tokenizer", "--file", "corpus.txt", "--vocabulary", "50", "--depth", "1", "--width", "32", "--head-count", "2", "--out", "new")
    return ["train", "mlm", "--config", "new", "--file", "corpus.txt", "--sequence-tokens", "16", "--batch-sequences", "4", "--steps", str(steps),
            "--learning-rate", "1e-3", "--threads", "1", *more]


def same_run(bench, found, expected):
    for file in FILES:
        equal(digest(bench, f"{found}/{file}"), digest(bench, f"{expected}/{file}"), f"{found}/{file}")
    equal(log_without_time(bench, found), log_without_time(bench, expected), found)


def test_killed_at_any_moment(bench):
    """SIGKILL at twenty drawn moments, from before the first line to behind the last; then one command more: the same weights, moments and log."""
    words = small_run(bench, 240, "--eval", "corpus.txt", "--eval-every", "40", "--checkpoint-every", "30")
    began = time.monotonic()
    bench.fine(*words, "--out", "whole")
    duration, dice, met = time.monotonic() - began, random.Random(20), set()
    for number in range(20):
        out = f"killed-{number}"
        run = bench.start(*words, "--out", out, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, duration) if number else 0)
        run.kill()
        run.wait()
        there = os.path.isdir(bench.path(out))
        names = os.listdir(bench.path(out)) if there else []
        kept = any(name.startswith("checkpoint-") or name == "training.json" for name in names)
        met.add(kept)
        said = bench.fine(*words, *(["--resume"] if there else []), "--out", out).err
        equal("has no checkpoint yet" in said, there and not kept, f"{names}: {said}")
        same_run(bench, out, "whole")
    equal(met, {True, False}, "runs were killed before their first checkpoint and behind it")


def best_of(bench, out, until):
    """The step with the least held-out loss up to this one, by the log of a run."""
    found = [line for line in read_log(bench, out) if "eval_loss" in line and line["step"] <= until]
    return min(found, key=lambda line: line["eval_loss"])["step"]


def test_best_is_the_model_that_is_told(bench):
    """What a killed run has left in best/ of steps that are repeated stays, and nobody says that it is an earlier model."""
    words = small_run(bench, 16, "--eval", "corpus.txt", "--eval-every", "1", "--checkpoint-every", "4")
    bench.fine(*words, "--out", "whole")
    equal(best_of(bench, "whole", 16), 16, "the loss falls to the end, so that each measurement is the best")
    bench.fine(*words, "--stop-at", "8", "--out", "at-8")
    shutil.copytree(bench.path("at-8"), bench.path("same"))
    bench.fine(*words, "--stop-at", "11", "--out", "at-11")
    for out in ("killed", "early"):
        shutil.copytree(bench.path("at-11"), bench.path(out))
        shutil.rmtree(bench.path(f"{out}/checkpoint-000011"))
    # Steps 9 and 10 are no better than step 8, and best/ is of step 11.
    log = bench.read("killed/log.jsonl")
    for step, loss in ((8, "0.5"), (11, "0.25")):
        log = re.sub(f'("step": {step}, "eval_loss": )[^,]*', rf"\g<1>{loss}", log)
    bench.write("killed/log.jsonl", log)
    said = bench.fine(*words, "--resume", "--stop-at", "9", "--out", "killed").err
    contains(said, "the best is step 8 with 0.5", "whose model is gone: in best/ is a later one, of a step that is repeated")
    equal(digest(bench, "killed/best/model.safetensors"), digest(bench, "at-11/best/model.safetensors"), "nothing is lost")
    # Without checkpoints the run begins again.
    for step in (4, 8):
        shutil.rmtree(bench.path(f"early/checkpoint-00000{step}"), ignore_errors=True)
    bench.fine(*words, "--resume", "--eval-every", "4", "--stop-at", "3", "--out", "early")
    equal((os.path.exists(bench.path("early/best-is-later")), os.path.exists(bench.path("same/best-is-later"))), (True, False))
    for out in ("same", "early"):  # best/ of the checkpoint itself stays
        before = digest(bench, "at-8/best/model.safetensors")
        bench.fine(*words, "--resume", *(["--stop-at", "8"] if out == "same" else []), "--out", out)
        equal(digest(bench, f"{out}/best/model.safetensors"), before if out == "same" else digest(bench, "whole/best/model.safetensors"))
        equal(os.path.exists(bench.path(f"{out}/best-is-later")), False)


def test_killed_early(bench):
    """What a run leaves that was killed before its first checkpoint, piece by piece: --resume begins again; another recipe is refused."""
    words = small_run(bench, 6)
    bench.fine(*words, "--out", "whole")
    recipe, log = bench.read("whole/recipe.json"), bench.read("whole/log.jsonl")
    lines = log.splitlines(keepends=True)
    for number, files in enumerate(({}, {"recipe.json": ""}, {"recipe.json": recipe[:40]}, {"recipe.json": recipe}, {"recipe.json": recipe, "log.jsonl": ""},
                                    {"recipe.json": recipe, "log.jsonl": "".join(lines[:3]) + lines[3][:20], ".checkpoint/config.json": "{}"},
                                    {"recipe.json": recipe[:40], ".deberta-12-0.tmp": "half"}, {"recipe.json": recipe, "log.jsonl": log, "config.json": "{}"})):
        out = f"early-{number}"
        for name, text in ({"x": None} | files).items():
            os.makedirs(os.path.dirname(bench.path(f"{out}/{name}")), exist_ok=True)
            if text is not None:
                bench.write(f"{out}/{name}", text)
        if files:
            contains(bench.expect(3, *words, "--out", out).err, f"{out} is not empty")
        if files.get("recipe.json") == recipe:
            contains(bench.expect(3, *words, "--seed", "3", "--resume", "--out", out).err, f"{out} is of another run: seed 0, now 3")
        contains(bench.fine(*words, "--resume", "--out", out).err, "has no checkpoint yet: the run begins again with step 1")
        same_run(bench, out, "whole")
    os.mkdir(bench.path("other"))
    bench.write("other/notes.txt", "mine")
    contains(bench.expect(3, *words, "--resume", "--out", "other").err, "other has no checkpoint to go on from, but notes.txt")
    equal(os.listdir(bench.path("other")), ["notes.txt"])


def test_checkpoints_by_time(bench):
    """A checkpoint where so much time is over: as many as there are steps when it is short, none when it is long; the result is the same."""
    words = small_run(bench, 8, "--keep", "100")
    for out, more, expected in (("often", ("--checkpoint-minutes", "1e-9"), 7), ("seldom", (), 0), ("never", ("--checkpoint-minutes", "0"), 0),
                                ("steps", ("--checkpoint-every", "3"), 2), ("both", ("--checkpoint-minutes", "1e-9", "--checkpoint-every", "3"), 7)):
        bench.fine(*words, *more, "--out", out)
        equal(len([name for name in os.listdir(bench.path(out)) if name.startswith("checkpoint-")]), expected, out)
        same_run(bench, out, "often")


def test_hung_up(bench):
    """A lost connection, SIGHUP, is a Ctrl-C: the step is finished, a checkpoint written, 130. A run under nohup goes on."""
    words = small_run(bench, 3000)
    for out, ignores in (("hung-up", False), ("nohup", True)):
        def prepare(handler=signal.SIG_IGN if ignores else signal.SIG_DFL):
            signal.signal(signal.SIGHUP, handler)
        run = bench.start(*words, "--out", out, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
        wait_until(lambda log=bench.path(f"{out}/log.jsonl"): os.path.exists(log) and os.path.getsize(log) > 0)
        run.send_signal(signal.SIGHUP)
        if ignores:
            time.sleep(0.05)
            run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=120)[1]
        equal(run.returncode, 75 if ignores else 130, said)
        check(re.search("stopped after step [0-9]+ of 3000; --resume goes on", said), said)
    steps = [len(read_log(bench, out)) for out in ("hung-up", "nohup")]
    check(steps[0] < steps[1], f"one stopped at SIGHUP, the other at SIGTERM: {steps}")


def test_two_at_once(bench):
    """Another run in the same folder is refused at once and by name, begun anew or resumed; the first one ends as if alone."""
    words = small_run(bench, 3000, "--checkpoint-every", "500")
    short = small_run(bench, 3000, "--checkpoint-every", "500", "--stop-at", "1000")
    bench.fine(*short, "--out", "whole")
    run = bench.start(*short, "--out", "run", stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(bench.path("run/log.jsonl")))
    for more in ((), ("--resume",)):
        equal(bench.expect(4, *words, *more, "--out", "run").err, "deberta train mlm: run: another run is at work in this folder\n")
    equal(run.wait(timeout=120), 0)
    for file in FILES:
        equal(digest(bench, f"run/checkpoint-001000/{file}"), digest(bench, f"whole/checkpoint-001000/{file}"))
    equal(log_without_time(bench, "run"), log_without_time(bench, "whole"))


def test_cut_log(bench):
    """A half line behind the checkpoint goes, as its step is repeated; a half line of the checkpoint itself is refused. The log stays JSON."""
    words = small_run(bench, 6)
    bench.fine(*words, "--out", "whole")
    bench.fine(*words, "--stop-at", "4", "--out", "cut")
    log = bench.read("cut/log.jsonl")
    bench.write("cut/log.jsonl", log[:-9])
    contains(bench.expect(3, *words, "--resume", "--out", "cut").err, "cut/log.jsonl does not reach step 4, or its line is cut off")
    bench.write("cut/log.jsonl", log[:-1])  # only the end of the line
    contains(bench.expect(3, *words, "--resume", "--out", "cut").err, "cut/log.jsonl does not reach step 4, or its line is cut off")
    bench.write("cut/log.jsonl", log + '{"step": 5, "loss": 3.1')
    bench.fine(*words, "--resume", "--out", "cut")
    same_run(bench, "cut", "whole")
    if has_figures(bench):
        bench.fine("train", "plot", "cut", "-o", "plot.svg")


def test_flipped_bits(bench):
    """One bit of a checkpoint's configuration, weights or moments: refused by name. Checkpoints of before there were digests open."""
    words = small_run(bench, 4)
    bench.fine(*words, "--out", "whole")
    bench.fine(*words, "--stop-at", "2", "--out", "run")
    for file in ("config.json", *FILES):
        folder = "flipped-" + file.replace(".", "-")
        shutil.copytree(bench.path("run"), bench.path(folder))
        bench.flip(f"{folder}/checkpoint-000002/{file}", -10)
        contains(bench.expect(3, *words, "--resume", "--out", folder).err, f"checkpoint-000002/{file} has changed since the run wrote it")
    state = json.loads(bench.read("run/checkpoint-000002/training.json"))
    equal(state["sha256"], {file: digest(bench, f"run/checkpoint-000002/{file}") for file in ("config.json", *FILES)})
    del state["sha256"]
    bench.write("run/checkpoint-000002/training.json", json.dumps(state))
    os.remove(bench.path("run/recipe.json"))
    bench.fine(*words, "--resume", "--out", "run")
    same_run(bench, "run", "whole")


def test_flipped_bit_of_a_pair(bench):
    text = bench.write("corpus.txt", "\n".join(LINES) + "\n")
    words = ["train", "rtd", DEMO, "--generator", DEMO, "--new-head", *TRAIN, "--file", text, "--sequence-tokens", "16", "--batch-sequences", "2",
             "--steps", "3", "--out", "pair"]
    bench.fine(*words, "--stop-at", "1")
    bench.flip("pair/checkpoint-000001/generator/training.safetensors", -1)
    contains(bench.expect(3, *words, "--resume").err, "checkpoint-000001/generator/training.safetensors has changed since the run wrote it")


def test_end_names_the_weights(bench):
    """Behind the last step the digests of the weights, as sha256sum has them: on the terminal and in JSON; not of a run that stopped."""
    words = small_run(bench, 4, "--eval", "corpus.txt")
    said = bench.fine(*words, "--out", "run").err
    names = ("model.safetensors", "best/model.safetensors")
    for name in names:
        contains(said, f"sha256 {digest(bench, f'run/{name}')}  run/{name}\n")
    found = json.loads(bench.fine(*words, "--json", "--out", "other").out)
    equal(found["sha256"], {name: digest(bench, f"run/{name}") for name in names})
    check("sha256" not in bench.fine(*words, "--stop-at", "2", "--out", "cut").err, "no weights are there yet")


def test_not_finite_keeps_what_was_good(bench):
    """Without a word about checkpoints: the steps before the bad one are kept, and --resume --bad-steps goes on behind it."""
    words = bad_run(bench, 3, 5)
    bench.fine(*words, "--bad-steps", "1", "--out", "passed")
    result = bench.expect(1, *words, "--out", "stopped")
    contains(result.err, "step 3: the loss is", "stopped/checkpoint-000002 has the steps before it: --resume --bad-steps 1 passes over it")
    contains(bench.expect(1, *words, "--resume", "--out", "stopped").err, "step 3: the loss is")
    bench.fine(*words, "--resume", "--bad-steps", "1", "--out", "stopped")
    same_run(bench, "stopped", "passed")
    for option, value in (("--beta1", "1"), ("--beta2", "1"), ("--epsilon", "0")):
        contains(bench.expect(2, *words, option, value, "--out", "never").err, option[2:])
        check(not os.path.exists(bench.path("never")), option)


def test_remains_are_removed(bench):
    """A checkpoint of which only a part is left, since its removal was interrupted, goes with the next one."""
    words = small_run(bench, 8, "--checkpoint-every", "2")
    bench.fine(*words, "--stop-at", "6", "--out", "run")
    os.mkdir(bench.path("run/checkpoint-000002"))
    bench.write("run/checkpoint-000002/model.safetensors", "half")
    bench.fine(*words, "--resume", "--stop-at", "7", "--out", "run")
    equal(sorted(name for name in os.listdir(bench.path("run")) if name.startswith("checkpoint")), ["checkpoint-000006", "checkpoint-000007"])


def test_older_checkpoints_are_removed_on_going_on(bench):
    """Also those that an interrupted run should have removed, where no other checkpoint is written."""
    words = small_run(bench, 4, "--checkpoint-every", "1")
    bench.fine(*words, "--keep", "3", "--stop-at", "3", "--out", "run")
    bench.fine(*words, "--keep", "1", "--resume", "--out", "run")
    equal([name for name in sorted(os.listdir("run")) if name.startswith("checkpoint-")], ["checkpoint-000003"])


def test_many_labels(bench):
    """A run with thousands of labels is resumed: its recipe is long."""
    data = bench.write("many.jsonl", "".join(json.dumps({"label": f"label {n // 2}", "text": LINES[n % 60]}) + "\n" for n in range(2400)))
    bench.write("corpus.txt", "\n".join(LINES) + "\n")
    bench.fine("train", "tokenizer", "--file", "corpus.txt", "--vocabulary", "50", "--depth", "1", "--width", "512", "--head-count", "8", "--out", "wide")
    bench.fine("train", "mlm", "--config", "wide", "--file", "corpus.txt", "--sequence-tokens", "16", "--steps", "1", "--out", "base")
    words = ["finetune", "sequence", "base", "--examples", data, "--new-head", "--sequence-tokens", "32", "--cut", "--batch-sequences", "2", "--steps", "2", *TRAIN]
    bench.fine(*words, "--out", "whole")
    in_two_parts(bench, words, 1, "cut")
    same_run(bench, "cut", "whole")


def test_swapped_columns(bench):
    """Labels nearly as many as lines are texts: refused with a question, of classes and of words; objects and small files are taken as they are."""
    run = ["finetune", "sequence", DEMO, "--new-head", "--steps", "1", "--sequence-tokens", "32", "--batch-sequences", "2", *TRAIN]
    result = bench.expect(3, *run, "--examples", bench.write("swapped.tsv", "".join(f"{line}\tsea\n" for line in LINES)), "--out", "a")
    contains(result.err, "60 labels for 60 lines: are the columns swapped?", "label, tab, text", ".jsonl")
    check(not os.path.exists(bench.path("a")), "nothing was begun")
    named = bench.write("named.jsonl", "".join(json.dumps({"label": f"l{n}", "text": line}) + "\n" for n, line in enumerate(LINES[:12])))
    bench.fine(*run, "--examples", named, "--out", "b")
    bench.fine(*run, "--examples", bench.write("two.tsv", "sea\tthe old sailor\nland\tthe old house\n"), "--out", "c")
    words = ["finetune", "token", *run[2:]]
    sequences = bench.write("sequences.tsv", "".join(f"sea\t{line}\n" for line in LINES))
    contains(bench.expect(3, *words, "--examples", sequences, "--out", "d").err, "60 labels for 60 lines", "word, tab, label", "finetune sequence")
    tags = bench.write("tags.tsv", "\n".join("".join(f"{word}\t{'OB'[len(word) % 2]}\n" for word in line.split()) for line in LINES))
    bench.fine(*words, "--examples", tags, "--out", "e")


def test_a_finished_run_is_not_written_again(bench):
    """With --resume its weights stay to the bit, chain or not; another --save-dtype is refused before anything is written."""
    for name, dtype, other, chain in (("full", [], ["--save-dtype", "f16"], []), ("half", ["--save-dtype", "f16"], [], []),
                                      ("chained", [], ["--save-dtype", "f16"], ["--chain"]), ("half-chained", ["--save-dtype", "f16"], [], ["--chain"])):
        words = [*small_run(bench, 3, *chain), "--out", name]
        bench.fine(*words, *dtype)
        before = {file: bench.bytes(f"{name}/{file}") for file in os.listdir(bench.path(name))}
        contains(bench.expect(3, *words, *other, "--resume").err, f"{name}: this run is finished, with weights in float{16 if dtype else 32}", "--save-dtype f16")
        contains(bench.fine(*words, *dtype, "--resume").err, "note: this run is finished: nothing is trained or measured")
        equal({file: bench.bytes(f"{name}/{file}") for file in os.listdir(bench.path(name))}, before, name)


def test_measures_of_other_data_are_not_compared(bench):
    """A run that goes on has the held-out data that it began with, from a checkpoint and when it is finished; it may also begin to measure."""
    bench.write("others.txt", "\n".join(reversed(LINES)) + "\n")
    words = [*small_run(bench, 6, "--eval-every", "2", "--checkpoint-every", "2"), "--out", "measured"]
    bench.fine(*words, "--eval", "corpus.txt", "--stop-at", "4")
    refusal = "the data of --eval has other contents now"
    contains(bench.expect(3, *words, "--eval", "others.txt", "--resume").err, "measured/checkpoint-000004: " + refusal)
    bench.fine(*words, "--eval", "corpus.txt", "--resume")
    contains(bench.expect(3, *words, "--eval", "others.txt", "--resume").err, refusal)
    words = [*small_run(bench, 6, "--eval-every", "2", "--checkpoint-every", "2"), "--out", "late"]
    bench.fine(*words[:words.index("--eval-every")], *words[words.index("--eval-every") + 2:], "--stop-at", "4")
    bench.fine(*words, "--eval", "others.txt", "--resume")


def test_what_belongs_to_a_folder_comes_along(bench):
    """A tokenizer's files are copied, Microsoft's too; how vectors are made is not, and that is said once."""
    shutil.copytree(DEMO, bench.path("source"))
    bench.write("source/bpe_encoder.bin", b"a vocabulary")
    bench.write("source/modules.json", json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                                   {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]))
    os.mkdir(bench.path("source/1_Pooling"))
    bench.write("source/1_Pooling/config.json", json.dumps({"word_embedding_dimension": 192, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    bench.write("lines.txt", "\n".join(LINES) + "\n")
    words = ["train", "mlm", "source", "--file", "lines.txt", "--sequence-tokens", "16", "--steps", "2", "--out", "made"]
    said = bench.fine(*words, "--stop-at", "1").err
    equal(said.count("modules.json of the model says how vectors are made, and is not copied"), 1, said)
    assert "modules.json" not in bench.fine(*words, "--resume").err
    equal(bench.bytes("made/bpe_encoder.bin"), b"a vocabulary")
