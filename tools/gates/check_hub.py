#!/usr/bin/env python3
"""Compares deberta with transformers on published checkpoints: tokens, hidden states, attention components, heads.

    tools/gates/check_hub.py                              the five checkpoints below, each at its pinned revision: about 8 GB
    tools/gates/check_hub.py microsoft/deberta-v3-base    one of them
    tools/gates/check_hub.py owner/name@REVISION          another one; REVISION is a full commit hash of its repository
    tools/gates/check_hub.py models/demo FOLDER...        folders that are there already; nothing is downloaded
    tools/gates/check_hub.py --endpoint https://ADDRESS owner/name@REVISION     from a mirror of the hub

transformers runs in float64 (tools/gates/reference.py), with its position bias taken apart; deberta runs every tier of this processor, and
`deberta verify --expected` compares. --precision int16 and int8 are compared as well: hidden states of all layers and logits, by their
relative error (2-norm), with bars of 1e-3 and 1e-1, far above what models that we have give (docs/precision.md). Two inputs: a batch of short texts and one of 160 tokens, long enough for logarithmic buckets.
Tokens of a SentencePiece model are compared with that library's, because transformers 5 drops the model's map of characters.
A folder without a tokenizer is given made-up ids. v2-xlarge needs 10 GB of memory.

Exit code 0: all agree; 1: something differs; 2: wrong usage; 3: a checkpoint could not be had. Needs build/deberta (--program) and
tools/gates/reference-requirements.txt: python3 -m venv v && v/bin/pip install -r tools/gates/reference-requirements.txt
SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import reference  # prints what to install if it is missing
import sentencepiece
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PINNED = {
    "microsoft/deberta-base": "0d1b43ccf21b5acd9f4e5f7b077fa698f05cf195",
    "microsoft/deberta-v2-xlarge": "1d134961d4db8e7e8eb1bc1ab81cb370244c57f7",
    "microsoft/deberta-v3-base": "8ccc9b6f36199bec6961081d44eb72fb3f7353f3",
    "microsoft/deberta-v3-large": "64a8c8eab3e352a784c658aef62be1662607476f",
    "microsoft/mdeberta-v3-base": "a0484667b22365f84929a935b5e50a51f71f159d",
}
FILES = ["config.json", "model.safetensors*", "model-*.safetensors", "pytorch_model.bin*", "pytorch_model-*.bin", "spm.model",
         "tokenizer*.json", "added_tokens.json", "special_tokens_map.json", "vocab.json", "merges.txt", "bpe_encoder.bin"]
TEXTS = ["Paris is the capital of France.", "A new store opened beside the new mall.", "It cost 1,234.50 euros (about 20% less)!",
         "naïve café, ﬁnally: ½ of it", "  leading   and\ttabs and a trailing space ", "日本語 and English, mixed: 中文", "emoji 😀👍🏽 too",
         "don't you'll we've I'm", "UPPER lower MiXeD", "the [MASK] of the matter"]
LONG = "The river rose in the night, and by morning the lower road was under water as far as the mill; nobody had slept. " * 12
LONG_TOKENS = 160
LOW_BARS = {"int16": 1e-3, "int8": 1e-1}  # for the relative error against float64


class Unavailable(Exception):
    """A checkpoint that cannot be downloaded, or an incomplete name."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def find(name, endpoint=None):
    """Returns (title, folder) of a folder or of a published checkpoint, which is downloaded unless it is in the cache."""
    if os.path.isdir(name):
        return name, name
    repository, _, revision = name.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise Unavailable(2, f"{name}: no such folder, and not owner/name")
    import huggingface_hub
    try:
        revision = revision or PINNED.get(repository)
        if not revision:
            now = huggingface_hub.HfApi(endpoint=endpoint).model_info(repository).sha
            raise Unavailable(2, f"{repository}: no revision is pinned for it; main is {now} now: {repository}@{now}")
        if not re.fullmatch("[0-9a-f]{40}", revision):
            raise Unavailable(2, f"{name}: the revision is not a full commit hash (40 hexadecimal digits)")
        folder = huggingface_hub.snapshot_download(repository, revision=revision, allow_patterns=FILES, endpoint=endpoint)
    except (OSError, ValueError, RuntimeError) as error:
        raise Unavailable(3, f"{repository}: cannot be downloaded: {str(error).strip().splitlines()[0]}") from error
    return f"{repository}@{revision}", folder


def run(arguments, command):
    """Runs the program; returns its standard output, read as JSON, and its exit code."""
    done = subprocess.run([arguments.program] + command, stdout=subprocess.PIPE, text=True, check=False)
    return (json.loads(done.stdout) if done.stdout.strip() else None), done.returncode


def compare_tokens(arguments, folder, tokenizer):
    """Returns (texts with the same ids, texts), and prints which differ."""
    same, spm = 0, os.path.join(folder, "spm.model")
    pieces = sentencepiece.SentencePieceProcessor(model_file=spm) if os.path.exists(spm) else None
    for text in TEXTS + [LONG]:
        expected = tokenizer(text)["input_ids"]
        if pieces and "[MASK]" not in text:
            expected = [tokenizer.cls_token_id] + pieces.encode(text) + [tokenizer.sep_token_id]
        found, _ = run(arguments, ["tokenize", folder, "--json", "--quiet", "--text=" + text])
        if found and found["ids"] == expected:
            same += 1
        else:
            print(f"  {text[:60]!r}\n    expected {expected}\n    found    {found and found['ids']}")
    return same, len(TEXTS) + 1


def make_rows(folder, tokenizer):
    """Returns two inputs, as lists of ids: a ragged batch and a long text."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    longest = min(LONG_TOKENS, config.get("max_position_embeddings", 512))
    if tokenizer:
        return [tokenizer(text)["input_ids"][:longest] for text in TEXTS[:3]], [tokenizer(LONG)["input_ids"][:longest]]
    dice = torch.Generator().manual_seed(1)
    draw = lambda count: torch.randint(config["vocab_size"], (count,), generator=dice).tolist()
    return [draw(9), draw(1), draw(14)], [draw(longest)]


def kind_of(subject):
    """Returns the line in the table that a tensor belongs to."""
    if subject.startswith("attn."):
        return {"probs": "probabilities"}.get(subject.rsplit(".", 1)[1], subject.rsplit(".", 1)[1])
    return "hidden states" if subject.startswith("hidden_states.") else subject


def add_checks(table, found):
    for check in found["results"]:
        line = table.setdefault(kind_of(check["subject"]), [0, 0.0, 0.0, 0])
        line[0] += check["values"]
        line[3] += not check["passed"]
        if check["worst"] / check["limit"] >= (line[1] / line[2] if line[2] else 0):
            line[1:3] = check["worst"], check["limit"]


def compare_numbers(arguments, folder, tokenizer):
    """Over both inputs and all tiers, or None where the program failed: {kind: [values, worst, its limit, failures]} of float32, an
    error being in eps times the tensor's largest value, and {precision: {kind: worst relative error}} of the others."""
    table, low = {}, {precision: {} for precision in LOW_BARS}
    for rows in make_rows(folder, tokenizer):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "expected.safetensors")
            reference.save(path, reference.compute(folder, *reference.pad(rows)), folder)
            command = ["verify", folder, "--expected", path, "--reference", "hf", "--json", "--quiet"]
            found = {precision: run(arguments, [*command, "--precision", precision]) for precision in ("float32", *LOW_BARS)}
        if any(report is None or code not in (0, 1) for report, code in found.values()):
            return None
        add_checks(table, found["float32"][0])
        for precision, kinds in low.items():
            for check in found[precision][0]["results"]:
                kind = kind_of(check["subject"])
                if kind == "hidden states" or kind.startswith("logits."):
                    kinds[kind] = max(kinds.get(kind, 0.0), check["relative_error"])
    return table, low


def check(arguments, name):
    """Compares one checkpoint and prints its table; returns true if all agrees."""
    title, folder = find(name, arguments.endpoint)
    print(title, flush=True)
    tokenizer, agrees = None, True
    if any(os.path.exists(os.path.join(folder, file)) for file in ("spm.model", "tokenizer.json", "vocab.json", "bpe_encoder.bin")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        same, texts = compare_tokens(arguments, folder, tokenizer)
        agrees = same == texts
        print(f"  {'tokens':14} {same} of {texts} texts have the same ids{'' if agrees else '  DIFFERENT'}")
    else:
        print(f"  {'tokens':14} no tokenizer in the folder: made-up ids")
    numbers = compare_numbers(arguments, folder, tokenizer)
    if numbers is None:
        print("  deberta failed: see above")
        return False
    table, low = numbers
    for kind, (values, worst, limit, failures) in table.items():
        print(f"  {kind:14} {values:>10} values, worst {worst:8.3g} of {limit:.0f}{'  DIFFERENT' if failures else ''}", flush=True)
    for precision, kinds in low.items():
        for kind, error in kinds.items():
            fits = error <= LOW_BARS[precision]
            agrees = agrees and fits
            print(f"  {precision:5} {kind:14} relative error {error:8.2g} of {LOW_BARS[precision]:.0e}{'' if fits else '  TOO FAR'}")
    return agrees and not any(failures for _, _, _, failures in table.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*", metavar="CHECKPOINT", help="a folder, or owner/name[@REVISION]; default: all pinned ones")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "deberta"))
    parser.add_argument("--endpoint", help="address of the hub or of a mirror; default: HF_ENDPOINT, else https://huggingface.co")
    arguments = parser.parse_args()
    if not os.access(arguments.program, os.X_OK):
        parser.error(f"{arguments.program} is not there: ./build.sh builds it, --program names another")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print("errors in eps x the largest value of each tensor, the worst of all tiers, and its limit\n")
    worst, agree, names = 0, 0, arguments.checkpoints or list(PINNED)
    for name in names:
        try:
            fine = check(arguments, name)
            agree += fine
            worst = max(worst, 0 if fine else 1)
        except Unavailable as error:
            print(error, file=sys.stderr)
            worst = max(worst, error.code)
        print()
    print(f"{agree} of {len(names)} checkpoints agree")
    return worst


if __name__ == "__main__":
    sys.exit(main())
