"""What `info` says of the machine and of models, and that it reads no weights for it. SPDX-License-Identifier: MIT
"""
import errno
import json
import math
import os
import shutil
import struct
import subprocess
from unittest import SkipTest

from helpers import DEMO, ROOT, TINY, check, contains, equal, is_sanitized



def test_info_json(bench):
    found = json.loads(bench.fine("info", "--json").out)
    assert set(found) == {"version", "tiers", "topology", "kernels", "wrong_parts", "mpi"} and found["mpi"] is False, set(found)
    assert found["wrong_parts"] == []
    assert [t["name"] for t in found["tiers"]] == ["scalar", "avx2", "avx512", "neon"]
    for tier in found["tiers"]:
        assert set(tier) == {"name", "available", "reason"} and tier["available"] == (tier["reason"] == ""), tier
    available = {t["name"] for t in found["tiers"] if t["available"]}
    assert found["kernels"] and all(set(k) == {"slot", "isa"} and k["isa"].startswith(tuple(available)) for k in found["kernels"])
    assert all(isinstance(found["topology"][k], int) for k in ("cores", "usable_cores", "l1d_bytes", "l2_bytes"))
    scalar = json.loads(bench.fine("info", "--json", env={"DEBERTA_ISA": "scalar"}).out)
    assert {k["isa"] for k in scalar["kernels"]} == {"scalar"}
    assert "scalar_fma" not in bench.fine("info", "--isa", "scalar").out
    for words in (["--version"], ["info", "--version"], ["encode", "-V"], ["bench", "compare", "--version"]):
        assert bench.fine(*words).out == f"deberta {found['version']}\n", words


def test_options_of_machines(bench):
    """A script may give the same --threads to every command: one that they would not change says so, and goes on; a wrong value stays wrong."""
    for words in (["info", DEMO], ["tokenize", DEMO, "--text", "a ship"], ["completion", "bash"]):
        plain = bench.fine(*words)
        for option, value in (("--threads", "2"), ("-t", "2"), ("--memory-limit", "8G"), ("--progress", "never")):
            result = bench.fine(*words, option, value)
            name = {"-t": "--threads"}.get(option, option)
            equal(result.out, plain.out)
            check(result.err in (plain.err, plain.err + f"note: {name} changes nothing here\n"), result.describe())
    contains(bench.fine("info", DEMO, "-t", "2").err, "note: --threads changes nothing here")
    contains(bench.expect(2, "info", DEMO, "-t", "two").err, "--threads: expected a whole number")
    contains(bench.expect(2, "info", DEMO, "--seed", "2").err, "--seed would change nothing here")


def test_parts_check_themselves(bench):
    """A part of a tier whose products are wrong is not used, and `info` says so; results keep their bits."""
    wrong = os.path.join(os.path.dirname(bench.program), "tests", "stand_ins", "deberta_wrong_part")
    parts = {k["isa"] for k in json.loads(bench.fine("info", "--json").out)["kernels"]} - {t["name"] for t in json.loads(bench.fine("info", "--json").out)["tiers"]}
    if not parts or not os.path.exists(wrong):
        raise SkipTest("this processor has no part of a tier")

    def run(program, *words):
        return subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, cwd=bench.folder).stdout
    found = json.loads(run(wrong, "info", "--json"))
    assert parts <= set(found["wrong_parts"]) and not parts & {k["isa"] for k in found["kernels"]}, found  # AMX goes before VNNI, which is wrong as well
    assert all(f"  {part} is not used: " in run(wrong, "info") for part in parts)
    words = ["encode", TINY, "--ids", "1,2,3,4,5,6,7", "--precision", "int8", "-q", "-o"]
    for program, name in ((bench.program, "sound.safetensors"), (wrong, "wrong.safetensors")):
        run(program, *words, name)
    assert bench.bytes("sound.safetensors") == bench.bytes("wrong.safetensors")


def hybrid_machine():
    """Two fast cores with two threads each, and four slow ones: what hwloc would write of it."""
    ids = iter(range(1, 100))

    def thing(kind, number, cpus, inside="", more=""):
        return (f'<object type="{kind}" os_index="{number}" cpuset="{cpus:#x}" complete_cpuset="{cpus:#x}" nodeset="0x1" complete_nodeset="0x1"'
                f' gp_index="{next(ids)}"{more}>{inside}</object>')
    cores = [(0, 1), (2, 3), (4,), (5,), (6,), (7,)]
    inside = "".join(thing("Core", k, sum(1 << cpu for cpu in cpus), "".join(thing("PU", cpu, 1 << cpu) for cpu in cpus)) for k, cpus in enumerate(cores))
    whole = thing("NUMANode", 0, 0xff, more=' local_memory="1000000000"') + thing("Package", 0, 0xff, inside)
    machine = thing("Machine", 0, 0xff, whole, ' allowed_cpuset="0xff" allowed_nodeset="0x1"')
    kinds = "".join(f'<cpukind cpuset="{cpus:#x}" forced_efficiency="{rank}"><info name="CoreType" value="{name}"/></cpukind>'
                    for cpus, rank, name in ((0xf0, 0, "IntelAtom"), (0x0f, 1, "IntelCore")))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">{machine}{kinds}</topology>\n'


def test_odd_machines(bench):
    """Machines of other shapes, as hwloc describes them: one processor, many, without caches, with cores of two kinds; as many cores as they
    have are used, and encoding and training give the same bytes."""
    bench.write("hybrid.xml", hybrid_machine())
    batch, written = str(ROOT / "tests" / "golden_train" / "03-v3-mlm-emd"), set()
    tasks = [["encode", TINY, "--ids", "1,2,3,4,5", "--ids", "6,7", "-q", "-o"],
             ["train", "mlm", batch, "--one-batch", batch + "/batch.safetensors", "-q", "--gradients"]]
    machines = [({"HWLOC_SYNTHETIC": text}, cores) for text, cores in (
        ("numa:1 core:1 pu:1", 1), ("package:2 numa:2 l3:2 core:8 pu:2", 64), ("numa:1 core:64 pu:4", 64), ("numa:3 core:3 pu:3", 9), ("pack:1 pu:1", 1))]
    for environment, cores in [*machines, ({"HWLOC_XMLFILE": bench.path("hybrid.xml")}, 6), ({}, None)]:
        found = json.loads(bench.fine("info", "--json", env=environment).out)["topology"]
        assert cores is None or found["cores"] == found["usable_cores"] == cores, (environment, found)
        for words, threads in ((words, threads) for words in tasks for threads in ([], ["-t", 3])):
            bench.fine(*words, "x.safetensors", *threads, env=environment)
            written.add((words[0], bench.bytes("x.safetensors")))
    assert len(written) == len(tasks)


QUOTA = """mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu && cd /sys/fs/cgroup && echo "$0 100000" | sed s/-1/max/ >cpu.max &&
echo $0 >cpu/cpu.cfs_quota_us && echo 100000 >cpu/cpu.cfs_period_us && cd "$OLDPWD" && exec "$@" """


def limited(quota, command):
    """The command in a namespace of its own in which the group of this process has a quota, in both versions' files."""
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", QUOTA, str(quota), *map(str, command)]


def test_quotas(bench):
    """On 64 described cores a quota decides how many threads are used: rounded down, one at least, and the same bytes; a number that is
    asked for goes before it."""
    environment = bench.environment({"HWLOC_SYNTHETIC": "package:2 l3:2 core:16 pu:2"})
    try:
        subprocess.run(limited(100000, ["true"]), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise SkipTest("no namespace can be made here") from None
    if not os.path.exists("/proc/self/cgroup"):
        raise SkipTest("there are no control groups here")

    def run(quota, *words):
        return subprocess.run(limited(quota, bench.command(words)), stdout=subprocess.PIPE, check=True, cwd=bench.folder, env=environment).stdout
    written = set()
    for quota, cores, threads in ((250000, 2.5, 2), (50000, 0.5, 1), (-1, 0, 64), (300000, 3, 3), (10 ** 9, 10 ** 4, 64)):
        found = json.loads(run(quota, "info", "--json"))["topology"]
        assert (found["cpu_quota"], found["usable_cores"], found["cores"]) == (cores, threads, 64), (quota, found)
        for words, used in ([], threads), (["--threads", 5], 5):
            timed = json.loads(run(quota, "bench", "requests", TINY, "--json", "--requests", 2, "--lengths", "short-uniform", *words))
            assert timed["threads"] == used, (quota, words, timed["threads"])
            run(quota, "encode", TINY, "--ids", "1,2,3,4,5", "-q", "-o", "x.safetensors", *words)
            written.add(bench.bytes("x.safetensors"))
    assert len(written) == 1


def published(golden):
    """[(model, its digests)]"""
    with open(os.path.join(golden, "published.tsv"), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t", 1) for line in file if not line.startswith("#")]


def published_digests(number):
    """`verify --publish` gives the committed digests on every tier and any number of threads; with a sanitizer the last model on the best tier."""
    def run(bench):
        expected = published(bench.golden)
        model, digests = expected[number]
        tiers = [t["name"] for t in json.loads(bench.fine("info", "--json").out)["tiers"] if t["available"]]
        if is_sanitized(bench.program):
            if number + 1 < len(expected):
                raise SkipTest("a sanitizer takes the last model")
            tiers = tiers[-1:]
        path = model if model.startswith("synthetic:") else os.path.join(bench.root, model)
        for k, tier in enumerate(tiers):
            line = bench.fine("verify", path, "--publish", "--isa", tier, "-t", 1 + k % 2).out
            fields = line.rstrip("\n").split("\t", 4)
            assert line.count("\n") == 1 and fields[2].split()[0] == tier and fields[3] == path, line
            assert fields[4] == digests, f"{model} on {tier}: {fields[4]}"
    return run


def test_published_digests_refused(bench):
    for words in (["--json"], ["--out", "x.svg"], ["--format", "csv"], ["--mutate", "list"], ["--precision", "int8"]):
        bench.expect(2, "verify", TINY, "--publish", *words)
    bench.expect(2, "verify", "--publish")
    assert "89 tokens" in bench.expect(3, "verify", "synthetic:v1-base,layers=1,vocab=20,positions=50", "--publish").err


def test_info_model(bench):
    model = json.loads(bench.fine("info", TINY, "--json").out)["model"]
    assert model["layers"] == 1 and model["hidden_size"] == 64 and model["heads"] == 2 and model["vocabulary_size"] == 50, model
    assert model["position_terms"] == "c2p|p2c" and model["relative_rows"] == 512, model
    small = "synthetic:v3-small,layers=2,vocab=1000"
    text = bench.fine("info", small).out
    bench.expect_text("info-model", text[text.index("\nmodel "):])
    bench.fine("info", small, "-o", "info.txt")
    assert bench.read("info.txt") == text
    head = json.loads(bench.fine("info", os.path.join(bench.golden, "33-v3-mlm-emd"), "--json").out)["model"]
    assert head["heads_present"] == ["mlm", "mlm_emd"], head


def test_info_mdeberta(bench):
    """The multilingual shape: v3-base with a larger vocabulary (whose table is read row by row, not held)."""
    shape, base = (json.loads(bench.fine("info", "synthetic:" + name, "--json").out)["model"] for name in ("mdeberta-base", "v3-base"))
    differing = {key for key in shape if shape[key] != base[key]}
    assert differing == {"name", "vocabulary_size", "parameters"} and shape["vocabulary_size"] == 251000, differing
    bench.fine("encode", "synthetic:mdeberta-base,layers=1,vocab=100", "--ids", "1,99,2", "-o", "o.safetensors")


def test_info_tokenizer(bench):
    assert json.loads(bench.fine("info", TINY, "--json").out)["model"]["tokenizer"] is None
    assert json.loads(bench.fine("info", DEMO, "--json").out)["model"]["tokenizer"] == {"kind": "SentencePiece unigram", "vocabulary_size": 5991}
    assert "\n  tokenizer         SentencePiece unigram, 5991 tokens\n" in bench.fine("info", DEMO).out
    none = bench.fine("info", os.path.join(bench.golden, "33-v3-mlm-emd"))
    assert "\n  tokenizer         none\n" in none.out and none.err == "", none.describe()
    shutil.copytree(DEMO, bench.path("broken"))
    bench.write("broken/spm.model", b"no vocabulary")
    broken = bench.fine("info", "broken")
    assert "\n  tokenizer         none\n" in broken.out and "spm.model" in broken.err, broken.describe()


def write_hollow_model(folder, hidden, layers):
    """A checkpoint of the v3 kind whose weights are a hole in the file: as large as asked for, and no room on the disk. Its parameters."""
    inner, rows = 4 * hidden, 32
    config = {"model_type": "deberta-v2", "vocab_size": 100, "hidden_size": hidden, "num_attention_heads": hidden // 64,
              "intermediate_size": inner, "num_hidden_layers": layers, "max_position_embeddings": 64, "position_buckets": rows // 2,
              "max_relative_positions": -1, "relative_attention": True, "pos_att_type": "c2p|p2c", "share_att_key": True,
              "norm_rel_ebd": "layer_norm", "position_biased_input": False, "type_vocab_size": 0}
    norm = lambda name: {name + ".weight": [hidden], name + ".bias": [hidden]}
    linear = lambda name, outputs, inputs: {name + ".weight": [outputs, inputs], name + ".bias": [outputs]}
    shapes = {"embeddings.word_embeddings.weight": [100, hidden], "encoder.rel_embeddings.weight": [rows, hidden],
              **norm("embeddings.LayerNorm"), **norm("encoder.LayerNorm")}
    for layer in (f"encoder.layer.{k}." for k in range(layers)):
        for name in ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj", "attention.output.dense"):
            shapes.update(linear(layer + name, hidden, hidden))
        shapes.update({**linear(layer + "intermediate.dense", inner, hidden), **linear(layer + "output.dense", hidden, inner),
                       **norm(layer + "attention.output.LayerNorm"), **norm(layer + "output.LayerNorm")})
    header, end = {}, 0
    for name, shape in shapes.items():
        header["deberta." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + 4 * math.prod(shape)]}
        end += 4 * math.prod(shape)
    text = json.dumps(header).encode()
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return end // 4


def test_info_reads_no_weights(bench):
    """The size of a process shows what it touched: reading or packing these weights would take their 400 MB."""
    parameters = write_hollow_model(bench.path("hollow"), 2048, 2)
    process = bench.start("info", "hollow", "--json", stdout=subprocess.PIPE)
    model = json.loads(process.stdout.read())["model"]
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert model["parameters"] == parameters and model["heads_present"] == [], model
    assert 4 * parameters < model["memory_bytes"] < 4.4 * parameters, model
    assert usage.ru_maxrss * 1024 < 2 * parameters, f"{usage.ru_maxrss} KB at its largest, the weights are {4 * parameters} bytes"


def test_columns_and_lengths(bench):
    """Kernels stand in one column; a text beyond the trained length is noted once, whatever reads it."""
    lines = bench.fine("info").out.split("kernels, and the tier that runs each here\n")[1].splitlines()
    assert len({len(line) - len(line.split()[-1]) for line in lines}) == 1, lines
    note = "the model was trained on up to 512"
    bench.write("long.txt", "store " * 600 + "\nshort\n")
    for options in (["--text", "store " * 600, "-o", "x.safetensors"], ["--file", "long.txt", "--pool", "mean", "-o", "x.jsonl"]):
        assert bench.fine("encode", DEMO, *options).err.count(note) == 1
    assert note not in bench.fine("encode", DEMO, "--text", "short", "-o", "x.safetensors").err


AFFINITY = "tests/failing_calls/failing_affinity.so"


def test_affinity_is_not_told(bench):
    library = os.path.join(os.path.dirname(os.path.abspath(bench.program)), AFFINITY)
    if is_sanitized(bench.program) or not os.path.exists(library):
        raise SkipTest("the call cannot be made to fail here")
    words = ["encode", TINY, "--ids", "1,2,3,4,5", "-o"]
    bench.fine(*words, "told.safetensors")
    for number in (errno.EPERM, errno.EINVAL, errno.ENOSYS):
        environment = {"LD_PRELOAD": library, "FAIL_WITH": str(number)}
        contains(bench.run("info", env=environment, timeout=20).out, "the system does not say which this process may use", os.strerror(number))
        topology = json.loads(bench.run("info", "--json", env=environment, timeout=20).out)["topology"]
        check(topology["cores"] == topology["logical_processors"] >= topology["usable_cores"] >= 1, topology)
        for more in ([], ["--threads", "2"]):
            result = bench.run(*words, "untold.safetensors", *more, env=environment, timeout=20)
            equal(result.code, 0, result.describe())
            contains(result.err, "the system does not say which processors this process may use", os.strerror(number))
            equal(bench.bytes("told.safetensors"), bench.bytes("untold.safetensors"))


def tests(settings):
    for number in range(len(published(settings.golden))):
        yield f"info/published-digests-{number}", published_digests(number)
