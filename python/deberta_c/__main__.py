"""python -m deberta_c compare MODEL --file TEXTS: a model of transformers before accelerate and after. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import argparse
import json
import sys
from typing import Any, List, Optional

from ._abi import PRECISIONS, ArgumentError, Error, FileError, UnsupportedError
from .comparison import compare

DTYPES = ("auto", "float32", "float16", "bfloat16", "float64")


def _texts(path: str, limit: int) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\r\n") for line in file]
    except (OSError, UnicodeError) as reason:
        raise FileError(f"{path}: cannot be read ({reason})") from None
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise ArgumentError(f"{path}: there is no text in it, expected one a line")
    if len(texts) < len(lines):
        print(f"deberta_c compare: note: {path}: {len(lines) - len(texts)} of {len(lines)} lines are empty, and passed over", file=sys.stderr)
    if len(texts) > limit:
        print(f"deberta_c compare: note: {path}: the first {limit} of {len(texts)} texts are compared; --limit takes more", file=sys.stderr)
    return texts[:limit]


def _opened(folder: str, task: Optional[str], dtype: str) -> "tuple[Any, Any]":
    """Opens a pipeline, or the model that its config names with its tokenizer. dtype: "auto" is transformers' choice, the file's type."""
    try:
        import transformers
    except ImportError as reason:
        raise UnsupportedError(f"compare runs models of transformers, which is not here ({reason}): pip install torch transformers") from None
    transformers.logging.set_verbosity_error()
    try:
        if task:
            return transformers.pipeline(task, model=folder, device="cpu", dtype=dtype), None
        name = (transformers.AutoConfig.from_pretrained(folder).architectures or ["AutoModel"])[0]
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        try:
            return getattr(transformers, name, transformers.AutoModel).from_pretrained(folder, dtype=dtype).eval(), tokenizer
        except AttributeError as reason:  # transformers 5 ties a weight that DebertaV2ForMaskedLM does not have without "legacy"
            print(f"deberta_c compare: note: transformers does not open {name} ({reason}); the encoder alone is compared, --task names another head", file=sys.stderr)
            return transformers.AutoModel.from_pretrained(folder, dtype=dtype).eval(), tokenizer
    except Exception as reason:  # noqa: BLE001: transformers raises many kinds
        raise FileError(f"{folder}: transformers does not open it ({' '.join(str(reason).split())[:300]}){'' if task else '; --task names another head'}") from None


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deberta_c", description="A model of transformers in PyTorch and by deberta_c.accelerate, in turn.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("compare", help="times, differences and memory, on your own texts")
    one.add_argument("model", nargs="?", default="models/demo", help="folder with a model and its tokenizer, or a name on the hub (%(default)s)")
    one.add_argument("--file", required=True, help="texts, one a line")
    one.add_argument("--task", help="of a pipeline of transformers (text-classification, token-classification, fill-mask ...); without it the model's logits")
    one.add_argument("--dtype", default=DTYPES[0], choices=DTYPES, help="type of the weights in PyTorch; auto: as they are stored, which transformers chooses (%(default)s)")
    one.add_argument("--precision", default=",".join(PRECISIONS), help="one or more of %(default)s")
    one.add_argument("--rounds", type=int, default=5, help="how often each text is run by both (%(default)s)")
    one.add_argument("--limit", type=int, default=100, help="texts that are read at most (%(default)s)")
    one.add_argument("--batch", type=int, help="texts a call (one)")
    one.add_argument("--threads", type=int, help="of deberta_c (as accelerate)")
    one.add_argument("--json", action="store_true", help="the same as JSON")
    options = parser.parse_args(arguments)
    try:
        texts = _texts(options.file, options.limit)
        model, tokenizer = _opened(options.model, options.task, options.dtype)
        found = compare(model, texts, tokenizer=tokenizer, batch=options.batch, precisions=options.precision.split(","), rounds=options.rounds,
                        threads=options.threads)
    except Error as reason:
        print(f"deberta_c compare: {reason}", file=sys.stderr)
        return 2 if isinstance(reason, ArgumentError) else 3
    print(json.dumps(found.as_dict(), indent=1) if options.json else found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
