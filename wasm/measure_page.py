#!/usr/bin/env python3
"""Times of the page that computes, as a reader has them: wasm/measure_page.py PROGRAM MODEL [--firefox] [--v3-base]

Prints the page's size, when it shows its answer and when it can compute (medians of openings, after the first), and for each module the
times that the page says for texts of 20, 128 and 512 tokens, with the numbers of all heads. --v3-base: instead, 20 tokens of a folder with made-up weights of that
shape, in float32 and int8. One browser, one thread. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import random
import re
import statistics
import struct
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from browser import Browser, find_chromium  # noqa: E402
from firefox import Firefox, find_firefox  # noqa: E402
from helpers import wait_until  # noqa: E402

LENGTHS = (20, 128, 512)
OPENINGS, RUNS = 9, {"relaxed": 5, "exact": 2, "scalar": 1}
BASE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "position_buckets": 256, "pooler_hidden_size": 768}
BLOCK = 1 << 20  # bytes of made-up weights that repeat
MARKS = """self.marks = {}; new MutationObserver(() => { const data = document.documentElement?.dataset ?? {};
    for (const name of ['ready', 'live']) if (data[name]) marks[name] ??= performance.now(); }).observe(document, {subtree: true, attributes: true});"""


def make_page(program, model, folder, *options):
    path = Path(folder) / "page.html"
    command = [program, "report", model, "--live", "--skip", "verify", "-q", "-o", path, *options]
    if os.spawnv(os.P_WAIT, program, [str(part) for part in command]) != 0:
        raise SystemExit("no page was made")
    return path


def wait(browser, condition):
    if not wait_until(lambda: browser.evaluate(condition), 120):
        raise SystemExit(f"not in 120 s: {condition}")


def opened(browser):
    wait(browser, "document.documentElement.dataset.live === 'ready' && document.documentElement.dataset.computing === 'no'")


def note_of(browser, words):
    """What the page says of a text that it computes."""
    return browser.evaluate(f"""(async () => {{
        const box = document.getElementById('words'), root = document.documentElement.dataset;
        box.focus();
        box.value = {json.dumps(words)};
        box.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}));
        while (root.computing === 'yes') await new Promise((done) => setTimeout(done, 1));
        return document.getElementById('live-note').textContent;
    }})()""")


def time_of(browser, tokens, runs):
    """The median of what the page says, in milliseconds; every text is another one."""
    times = []
    for run in range(runs + 1):
        note = note_of(browser, " ".join(["a" if run % 2 else "the"] * (tokens - 2)))
        found = re.match(r"(\d+) tokens, computed here in ([0-9.]+) (m?s)", note)
        if not found or int(found.group(1)) != tokens:
            raise SystemExit(f"a text of {tokens} tokens: {note}")
        times.append(float(found.group(2)) * (1 if found.group(3) == "ms" else 1000))
    return statistics.median(times[1:])


def print_table(browser, title, lengths, tiers):
    for tier in browser.evaluate("[...document.getElementById('tier').options].map((o) => o.value)"):
        if tier not in tiers:
            continue
        browser.evaluate(f"""(() => {{ const choice = document.getElementById('tier'); choice.value = '{tier}';
            choice.dispatchEvent(new Event('change', {{bubbles: true}})); }})()""")
        opened(browser)
        print(f"| {title}, `{tier}` | " + " | ".join(f"{time_of(browser, tokens, RUNS[tier]):.0f} ms" for tokens in lengths) + " |", flush=True)


def write_base(model, folder):
    """The folder of a v3-base with the model's tokenizer and small made-up weights of float16."""
    raw = (Path(model) / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    head, config = json.loads(raw[8:8 + size]), json.loads((Path(model) / "config.json").read_text())
    wide = {config[name]: BASE[name] for name in ("hidden_size", "intermediate_size")} | {2 * config["position_buckets"]: 2 * BASE["position_buckets"]}
    shapes = {}
    for name, about in head.items():
        layer = re.search(r"encoder\.layer\.(\d+)\.", name)
        if name == "__metadata__" or layer and layer.group(1) != "0":
            continue
        shape = [wide.get(n, n) for n in about["shape"]]
        for k in range(BASE["num_hidden_layers"] if layer else 1):
            shapes[name.replace("layer.0.", f"layer.{k}.")] = shape
    new, at = {}, 0
    for name, shape in shapes.items():
        count = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        new[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + count]}
        at += count
    numbers = bytearray(random.Random(1).randbytes(BLOCK))
    numbers[1::2] = bytes(0x20 + byte % 12 | byte & 0x80 for byte in numbers[1::2])  # 2^-7 to 2^-4, of both signs
    text = json.dumps(new).encode()
    with open(Path(folder) / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for left in range(at, 0, -BLOCK):
            file.write(numbers[:min(left, BLOCK)])
    (Path(folder) / "config.json").write_text(json.dumps(config | BASE))
    for name in ("spm.model", "tokenizer_config.json", "added_tokens.json"):
        (Path(folder) / name).write_bytes((Path(model) / name).read_bytes())


def measure_bundled(browser, options, folder):
    page, marks = make_page(options.program, options.model, folder), []
    for _ in range(OPENINGS + 1):
        browser.open(f"file://{page}")
        opened(browser)
        marks.append(browser.evaluate("marks"))
    shown, ready = (statistics.median(mark[name] for mark in marks[1:]) for name in ("ready", "live"))
    print(f"{page.stat().st_size / 1e6:.1f} MB; shown after {shown:.0f} ms, ready after {ready:.0f} ms")
    print("| |" + "".join(f" {n} tokens |" for n in LENGTHS) + "\n|---|" + "--:|" * len(LENGTHS))
    print_table(browser, "bundled model", LENGTHS, RUNS)


def measure_base(browser, options, folder):
    base = Path(folder) / "v3-base"
    base.mkdir()
    write_base(options.model, base)
    for precision in ("float32", "int8"):
        page = make_page(options.program, options.model, folder, "--no-model", "--precision", precision)
        browser.open(f"file://{page}")
        browser.pick_folder("#folder", base)
        opened(browser)
        print_table(browser, f"v3-base, {precision}", LENGTHS[:1], ("relaxed", "exact"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("model")
    parser.add_argument("--firefox", action="store_true")
    parser.add_argument("--v3-base", action="store_true")
    options = parser.parse_args()
    browser = Firefox(find_firefox()) if options.firefox else Browser(find_chromium())
    browser.before_page(MARKS)
    with tempfile.TemporaryDirectory() as folder:
        (measure_base if options.v3_base else measure_bundled)(browser, options, folder)
    browser.close()


if __name__ == "__main__":
    main()
