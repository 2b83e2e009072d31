"""Wrong use and bad input: every message must be one sentence that says what is wrong, and nothing may be left behind.

Each line: name, arguments, exit code, words that the message must hold. Words are compared as they are.
SPDX-License-Identifier: MIT
"""
import os
from unittest import SkipTest

from helpers import SPM, TINY, at_most, check_message, contains, needs_figures

TINY_100 = TINY.replace("vocab=50", "vocab=100")

# {G} is the folder of golden data, {DEMO} the bundled model. "in" are files that are made first: name -> bytes.
TABLE = [
    # ---- the program
    ("no-arguments", [], 2, ["usage: deberta"]),
    ("command-unknown", ["foo"], 2, ["unknown command 'foo'", "deberta --help"]),
    ("command-empty", [""], 2, ["unknown command ''"]),
    ("command-is-model", ["{DEMO}"], 2, ["a command comes first", "deberta info"]),
    ("command-is-synthetic", ["synthetic:v3-base"], 2, ["a command comes first", "deberta info synthetic:v3-base"]),
    ("option-cmap", ["attention", "{DEMO}", "--text", "a", "--cmap", "greys", "-o", "a.png"], 2, ["here it is --palette"]),
    ("command-is-option", ["--foo"], 2, ["unknown option '--foo'"]),
    ("help-unknown", ["help", "foo"], 2, ["unknown command 'foo'"]),
    ("completion-none", ["completion"], 2, ["expected bash|zsh|fish"]),
    ("completion-unknown", ["completion", "csh"], 2, ["expected bash|zsh|fish, found 'csh'"]),
    # ---- models
    ("model-missing-folder", ["info", "nofolder"], 3, ["nofolder", "no such folder", "synthetic:"]),
    ("model-hub-name", ["info", "microsoft/deberta-v3-base"], 3, ["no such folder in ", "; if a model on the hub has that name", "hf download microsoft/deberta-v3-base '*.json'", "--local-dir deberta-v3-base"]),
    ("model-wrong-folder", ["info", "models/demo"], 3, ["models/demo: no such folder in /", "; MODEL is a folder with config.json"]),
    ("model-hub-name-elsewhere", ["encode", "org-1/n_a.me", "--ids", "1", "-o", "x.safetensors"], 3, ["hf download org-1/n_a.me", "--local-dir n_a.me"]),
    ("model-path-in-folder", ["info", "d/model"], 3, ["d/model: no such folder in /", "; MODEL is a folder"]),
    ("model-path-deep", ["info", "a/b/c"], 3, ["a/b/c: no such folder in /"]),
    ("model-path-strange", ["info", "a b/c"], 3, ["a b/c: no such folder in /"]),
    ("model-empty-name", ["info", ""], 3, ["MODEL", "empty"]),
    ("model-is-file", ["info", "f"], 3, ["f", "file", "folder"]),
    ("model-empty-folder", ["info", "."], 3, ["config.json"]),
    ("model-shape", ["info", "{G}/bad/38-st-shape-transposed"], 3, ["38-st-shape-transposed/model.safetensors: tensor '", "has shape", "expected"]),
    ("model-dtype", ["info", "{G}/bad/37-st-dtype-i64"], 3, ["37-st-dtype-i64/model.safetensors: tensor '", "has type I64"]),
    ("synthetic-none", ["info", "synthetic:"], 3, ["unknown shape ''", "v3-base"]),
    ("synthetic-shape", ["info", "synthetic:v9"], 3, ["unknown shape 'v9'", "v3-base"]),
    ("synthetic-key", ["info", "synthetic:v3-xsmall,foo=1"], 3, ["foo", "layers", "vocab"]),
    ("synthetic-no-value", ["info", "synthetic:v3-xsmall,layers"], 3, ["'layers'", "key=value"]),
    ("synthetic-empty-value", ["info", "synthetic:v3-xsmall,layers="], 3, ["layers=", "''"]),
    ("synthetic-zero", ["info", "synthetic:v3-xsmall,layers=0"], 3, ["0", "expected", "1"]),
    ("synthetic-huge", ["info", "synthetic:v3-xsmall,layers=99999999999999999999"], 3, ["99999999999999999999"]),
    ("synthetic-negative", ["info", "synthetic:v3-xsmall,vocab=-5"], 3, ["-5"]),
    ("synthetic-indivisible", ["info", "synthetic:v3-xsmall,hidden=64,heads=3"], 3, ["64", "3"]),
    # ---- options every command has
    ("option-unknown", ["info", "--nonsense"], 2, ["unknown option '--nonsense'"]),
    ("option-mistyped", ["encode", "{DEMO}", "--texts", "a"], 2, ["unknown option '--texts'; did you mean --text?"]),
    ("option-shortened", ["encode", "{DEMO}", "--batch", "3"], 2, ["did you mean --batch-tokens?"]),
    ("command-mistyped", ["fillmask"], 2, ["unknown command 'fillmask'; did you mean fill-mask?"]),
    ("bench-compare-json", ["bench", "compare", "x.json", "y.json", "--json", "--format", "csv"], 2, ["give one of --format and --json"]),
    ("encode-npz", ["encode", "{DEMO}", "--text", "a", "-o", "a.npz"], 2, [".safetensors, .npy or .jsonl, found 'a.npz'"]),
    ("tag-no-such-folder", ["tag", "nomodel", "--text", "a"], 3, ["nomodel: no such folder in /"]),
    ("tokenize-no-such-folder", ["tokenize", "nomodel", "--text", "a"], 3, ["nomodel: no such folder"]),
    ("tokenize-not-utf8", ["tokenize", "{DEMO}", "--strict", "--file", "latin1.txt"], 3, ["text 1: the text is not UTF-8"]),
    ("command-is-second-word", ["plot", "a.json"], 2, ["unknown command 'plot'; did you mean bench plot?"]),
    ("fill-mask-other-spelling", ["fill-mask", "{DEMO}", "--text", "a <mask> b"], 3, ["there is no [MASK] in the text; '<mask>' is not it"]),
    ("fill-mask-without-brackets", ["fill-mask", "{DEMO}", "--text", "a MASK b"], 3, ["there is no [MASK] in the text; 'MASK' is not it"]),
    ("fill-mask-gap", ["fill-mask", "{DEMO}", "--text", "a _____ b"], 3, ["there is no [MASK] in the text; '_____' is not it"]),
    ("train-tokenizer-vocab", ["train", "tokenizer", "--vocab", "100"], 2, ["unknown option '--vocab'; did you mean --vocabulary?"]),
    ("train-tokenizer-vocab-size", ["train", "tokenizer", "--vocab-size", "100"], 2, ["unknown option '--vocab-size'; here it is --vocabulary"]),
    ("option-of-others", ["finetune", "sequence", "{DEMO}", "--lr", "1"], 2, ["unknown option '--lr'; here it is --learning-rate"]),
    ("option-of-others-absent", ["info", "--lr", "1"], 2, ["unknown option '--lr'\n"]),
    ("finetune-which", ["finetune", "{DEMO}", "--examples", "a.tsv"], 2, ["expected sequence|choice|token|qa MODEL first", "--examples belongs to finetune sequence"]),
    ("attention-list-model", ["attention", "list", "{DEMO}"], 2, ["'list' stands alone"]),
    ("attention-other-model-behind", ["attention", "difference", "{DEMO}", "{DEMO}-bert", "--text", "a"], 2, ["another model is given with --minus"]),
    ("bench-lengths", ["bench", TINY, "--lengths", "16"], 2, ["these do: bench requests; here it is --tokens"]),
    ("attention-no-such-kind", ["attention", "ribbons", "{DEMO}", "--text", "a"], 2, ["'ribbons' is none of: components, grid"]),
    ("attention-two-models", ["attention", "{DEMO}", "{DEMO}", "--text", "a"], 2, ["unexpected argument"]),
    ("answer-no-head-says-how", ["answer", "{DEMO}", "--question", "a", "--context", "b"], 3, ["'qa', for answers to questions", "finetune qa --new-head"]),
    ("option-letter-unknown", ["info", "-Z"], 2, ["unknown option '-Z'"]),
    ("option-empty-name", ["info", "--=3"], 2, ["unknown option '--'"]),
    ("option-value-missing", ["info", "--isa"], 2, ["--isa", "needs a value", "NAME"]),
    ("option-letter-value-missing", ["verify", "-t"], 2, ["--threads", "needs a value"]),
    ("option-flag-with-value", ["info", "--json=1"], 2, ["--json", "takes no value"]),
    ("option-letter-flag-with-value", ["info", "-q3"], 2, ["-q", "takes no value", "3"]),
    ("argument-unexpected", ["info", "a", "b"], 2, ["unexpected argument 'b'"]),
    ("attention-argument-is-a-text", ["attention", TINY, "a new store", "-o", "x.svg"], 2, ["unexpected argument 'a new store'; a text is given with --text"]),
    ("isa-unknown", ["info", "--isa", "foo"], 2, ["--isa", "foo", "scalar", "avx2"]),
    ("isa-not-here", ["info", "--isa", "{OTHER_ISA}"], 2, ["--isa", "{OTHER_ISA}", "cannot run here"]),
    ("isa-takes-dash", ["info", "--isa", "-q"], 2, ["--isa", "'-q'"]),
    ("isa-empty", ["info", "--isa="], 2, ["--isa", "''"]),
    ("threads-text", ["verify", "--threads", "x"], 2, ["--threads", "'x'", "whole number"]),
    ("threads-negative", ["verify", "--threads", "-1"], 2, ["--threads", "'-1'"]),
    ("threads-empty", ["verify", "--threads", ""], 2, ["--threads", "''"]),
    ("threads-many", ["verify", "--threads", "1025"], 2, ["--threads", "1024", "1025"]),
    ("threads-huge", ["verify", "--threads", "99999999999999999999"], 2, ["--threads", "99999999999999999999"]),
    ("seed-text", ["verify", "--seed", "1.5"], 2, ["--seed", "'1.5'"]),
    ("option-without-effect", ["completion", "bash", "--reference", "hf"], 2, ["--reference would change nothing here"]),
    ("files-are-arguments", ["eval", "{DEMO}", "--file", "x.tsv"], 2, ["unknown option '--file'; files are an argument here: deberta eval MODEL FILE"]),
    ("progress-unknown", ["verify", "--progress", "always"], 2, ["--progress", "always", "auto", "never"]),
    ("reference-unknown", ["info", "--reference", "foo"], 2, ["--reference", "foo", "microsoft", "hf"]),
    ("memory-suffix", ["info", "--memory-limit", "1Q"], 2, ["--memory-limit", "'1Q'", "512M"]),
    ("memory-negative", ["info", "--memory-limit", "-1"], 2, ["--memory-limit", "'-1'"]),
    ("memory-overflow", ["info", "--memory-limit", "99999999999T"], 2, ["--memory-limit"]),
    ("memory-too-small", ["info", TINY, "--memory-limit", "1K"], 4, ["needs", "the limit is 1024 bytes"]),
    ("out-no-folder", ["info", "--json", "-o", "no/such/x"], 4, ["no/such/x", "cannot be written", "No such file"]),
    ("out-no-folder-text", ["info", "-o", "no/such/x"], 4, ["no/such/x", "cannot be written"]),
    ("out-empty", ["info", "--json", "-o", ""], 2, ["--out", "empty"]),
    ("out-is-folder", ["info", "--json", "-o", "d"], 4, ["d", "not a regular file"]),
    ("out-twice", ["info", "--json", "-o", "a", "-o", "b"], 2, ["--out", "2 times"]),
    ("out-full-disk", ["info", "--json", "-o", "/dev/full"], 4, ["/dev/full", "No space left"]),
    ("out-picture-info", ["info", "-o", "m.svg"], 2, ["--out: 'm.svg' is the name of a picture"]),
    ("out-picture-unknown", ["info", "--json", "-o", "m.JPEG"], 2, ["--out: 'm.JPEG' is the name of a picture"]),
    ("out-picture-tokenize", ["tokenize", "{DEMO}", "--text", "a", "-o", "t.png"], 2, ["--out: 't.png' is the name of a picture"]),
    ("out-picture-classify", ["classify", "{DEMO}", "--text", "a", "-o", "t.pdf"], 2, ["--out: 't.pdf' is the name of a picture"]),
    ("out-picture-receptive-field", ["receptive-field", TINY, "-o", "f.gif"], 2, ["'f.gif'", ".png, .svg or .pdf"]),
    ("out-picture-bench", ["bench", TINY, "-n", "8", "-o", "x.png"], 2, ["'x.png' is the name of a picture", "deberta bench plot"]),
    ("out-picture-machine", ["bench", "machine", "-o", "m.pdf"], 2, ["'m.pdf' is the name of a picture"]),
    ("out-picture-verify", ["verify", TINY, "-o", "m.gif"], 2, ["unknown suffix in 'm.gif'", ".png, .svg or .pdf"]),
    ("bench-plot-list-picture", ["bench", "plot", "--figure", "list", "-o", "l.png"], 2, ["'l.png' is the name of a picture"]),
    ("attention-list-picture", ["attention", "list", "-o", "l.png"], 2, ["'l.png' is the name of a picture"]),
    # ---- encode
    ("encode-no-model", ["encode"], 2, ["expected MODEL"]),
    ("encode-no-out", ["encode", TINY, "--ids", "1"], 2, ["--out"]),
    ("encode-suffix", ["encode", TINY, "--ids", "1", "-o", "x.npz"], 2, ["--out", ".safetensors", "x.npz"]),
    ("encode-no-suffix", ["encode", TINY, "--ids", "1", "-o", "x"], 2, ["--out", ".safetensors"]),
    ("encode-out-twice", ["encode", TINY, "--ids", "1", "-o", "x.safetensors", "-o", "y.safetensors"], 2, ["--out", "2 times"]),
    ("encode-nothing", ["encode", TINY, "-o", "x.safetensors"], 2, ["--text", "--file", "--ids", "--input"]),
    ("encode-two-sources", ["encode", TINY, "--ids", "1", "--text", "a", "-o", "x.safetensors"], 2, ["--text", "--ids"]),
    ("encode-text-synthetic", ["encode", TINY, "--text", "a", "-o", "x.safetensors"], 2, ["no tokenizer", "--ids"]),
    ("encode-text-no-tokenizer", ["encode", "{G}/33-v3-mlm-emd", "--text", "a", "-o", "x.safetensors"], 3, ["tokenizer", "spm.model"]),
    ("encode-id-large", ["encode", TINY, "--ids", "1,50", "-o", "x.safetensors"], 2, ["--ids: id 50 in row 0, column 1: the vocabulary has 50 rows (0 ... 49)"]),
    ("encode-id-negative", ["encode", TINY, "--ids", "1", "--ids", "1,-1", "-o", "x.safetensors"], 2, ["--ids: id -1 in row 1, column 1"]),
    ("encode-id-64-bit", ["encode", TINY, "--ids", "1,99999999999", "-o", "x.safetensors"], 2, ["--ids: id 99999999999 in row 0, column 1", "32 bits"]),
    ("encode-input-id", ["encode", TINY, "--input", "large.json", "-o", "x.safetensors"], 3, ["large.json: id 900 in row 1, column 2: the vocabulary has 50 rows (0 ... 49)"]),
    ("encode-input-id-64-bit", ["encode", TINY, "--input", "huge.json", "-o", "x.safetensors"], 3, ["huge.json: id 99999999999 in row 0, column 1 does not fit in 32 bits"]),
    ("encode-input-type", ["encode", TINY + ",types=2", "--input", "types.json", "-o", "x.safetensors"], 3, ["types.json: token type 2 in row 0, column 1: the token type table has 2 rows (0 ... 1)"]),
    ("encode-input-stdin-empty", ["encode", TINY, "--input", "-", "-o", "x.safetensors"], 3, ["standard input: is empty"]),
    ("encode-id-huge", ["encode", TINY, "--ids", "9" * 40, "-o", "x.safetensors"], 2, ["--ids"]),
    ("encode-ids-empty", ["encode", TINY, "--ids", "", "-o", "x.safetensors"], 2, ["--ids", "''"]),
    ("encode-ids-hole", ["encode", TINY, "--ids", "1,,2", "-o", "x.safetensors"], 2, ["--ids", "'1,,2'"]),
    ("encode-ids-end", ["encode", TINY, "--ids", "1,2,", "-o", "x.safetensors"], 2, ["--ids", "'1,2,'"]),
    ("encode-ids-text", ["encode", TINY, "--ids", "1,a", "-o", "x.safetensors"], 2, ["--ids", "'1,a'"]),
    ("encode-ids-max-tokens", ["encode", TINY, "--ids", "1", "--max-tokens", "9", "-o", "x.safetensors"], 2, ["--max-tokens", "--ids"]),
    ("encode-ids-pair", ["encode", TINY, "--ids", "1", "--pair", "b", "-o", "x.safetensors"], 2, ["--pair", "--text"]),
    ("encode-ids-strict", ["encode", TINY, "--ids", "1", "--strict", "-o", "x.safetensors"], 2, ["--strict", "--text"]),
    ("encode-hidden", ["encode", TINY, "--ids", "1", "--hidden", "foo", "-o", "x.safetensors"], 2, ["--hidden", "last", "all", "foo"]),
    ("encode-layer-range", ["encode", TINY, "--ids", "1", "--attention-layers", "1", "-o", "x.safetensors"], 2, ["--attention-layers", "1 is out of range"]),
    ("encode-layer-huge", ["encode", TINY, "--ids", "1", "--attention-layers", "9" * 30, "-o", "x.safetensors"], 2, ["--attention-layers"]),
    ("encode-layer-dash", ["encode", TINY, "--ids", "1", "--attention-layers", "-1", "-o", "x.safetensors"], 2, ["--attention-layers", "'-1'"]),
    ("encode-layer-empty", ["encode", TINY, "--ids", "1", "--attention-layers", "", "-o", "x.safetensors"], 2, ["--attention-layers", "''"]),
    ("encode-components-range", ["encode", TINY, "--ids", "1", "--component-layers", "0-9", "-o", "x.safetensors"], 2, ["--component-layers", "9 is out of range"]),
    ("encode-out-no-folder", ["encode", TINY, "--ids", "1", "-o", "no/x.safetensors"], 4, ["no/x.safetensors", "cannot be written"]),
    ("encode-out-is-folder", ["encode", TINY, "--ids", "1", "-o", "d.safetensors"], 4, ["d.safetensors", "not a regular file"]),
    ("encode-input-missing", ["encode", TINY, "--input", "no.safetensors", "-o", "x.safetensors"], 3, ["no.safetensors", "No such file"]),
    ("encode-input-suffix", ["encode", TINY, "--input", "f", "-o", "x.safetensors"], 2, ["'f'", "suffix", ".safetensors", ".json"]),
    ("encode-input-broken", ["encode", TINY, "--input", "broken.safetensors", "-o", "x.safetensors"], 3, ["broken.safetensors"]),
    ("encode-input-json-broken", ["encode", TINY, "--input", "broken.json", "-o", "x.safetensors"], 3, ["broken.json"]),
    ("encode-input-json-ragged", ["encode", TINY, "--input", "ragged.json", "-o", "x.safetensors"], 3, ["ragged.json", "input_ids"]),
    ("encode-input-json-no-ids", ["encode", TINY, "--input", "noids.json", "-o", "x.safetensors"], 3, ["noids.json", "input_ids"]),
    ("encode-input-json-empty", ["encode", TINY, "--input", "empty.json", "-o", "x.safetensors"], 3, ["empty.json", "input_ids"]),
    ("encode-input-json-float", ["encode", TINY, "--input", "float.json", "-o", "x.safetensors"], 3, ["float.json", "1.5"]),
    ("encode-positions", ["encode", TINY + ",positions=4,biased=1", "--ids", "1,2,3,4,5", "-o", "x.safetensors"], 3, ["5 tokens", "4 rows"]),
    ("encode-memory", ["encode", TINY, "--ids", "1", "--memory-limit", "1K", "-o", "x.safetensors"], 4, ["needs", "1024 bytes"]),
    ("encode-memory-session", ["encode", TINY, "--ids", ",".join(["1"] * 3000), "--component-layers", "all", "--memory-limit", "2M", "-o", "x.safetensors"], 4, ["needs"]),
    ("encode-isa", ["encode", TINY, "--ids", "1", "--isa", "{OTHER_ISA}", "-o", "x.safetensors"], 2, ["{OTHER_ISA}", "cannot run here"]),
    ("encode-no-config", ["encode", "{G}/" + SPM, "--file", "nofile", "-o", "x.safetensors"], 3, ["config.json"]),
    ("encode-receptive-bert", ["encode", "{DEMO}-bert", "--text", "a", "--max-tokens", "receptive", "-o", "x.safetensors"], 2, ["--max-tokens receptive: the model has no relative positions\n"]),
    ("encode-corpus-receptive-bert", ["encode", "{DEMO}-bert", "--text", "a", "--max-tokens", "receptive", "-o", "x.npy"], 2, ["the model has no relative positions\n"]),
    ("classify-receptive-bert", ["classify", "{DEMO}-bert", "--text", "a", "--max-tokens", "receptive"], 2, ["the model has no relative positions\n"]),
    ("fill-mask-receptive-bert", ["fill-mask", "{DEMO}-bert", "--text", "[MASK]", "--max-tokens", "receptive"], 2, ["the model has no relative positions\n"]),
    # ---- tokenize
    ("tokenize-nothing", ["tokenize", "{G}/" + SPM], 2, ["--text", "--file"]),
    ("tokenize-synthetic", ["tokenize", TINY, "--text", "a"], 2, ["a made-up model has no tokenizer\n"]),
    ("tokenize-no-tokenizer", ["tokenize", "{G}/01-v1-both-n33", "--text", "a"], 3, ["tokenizer", "spm.model", "vocab.json"]),
    ("tokenize-no-folder", ["tokenize", "nofolder", "--text", "a"], 3, ["nofolder"]),
    ("tokenize-file-missing", ["tokenize", "{G}/" + SPM, "--file", "nofile"], 3, ["nofile", "No such file"]),
    ("tokenize-file-is-folder", ["tokenize", "{G}/" + SPM, "--file", "d"], 3, ["d", "folder"]),
    ("tokenize-file-empty", ["tokenize", "{G}/" + SPM, "--file", "-"], 3, ["no lines"]),
    ("tokenize-pair-alone", ["tokenize", "{G}/" + SPM, "--pair", "a"], 2, ["--text"]),
    ("tokenize-pair-more", ["tokenize", "{G}/" + SPM, "--text", "a", "--pair", "b", "--pair", "c"], 2, ["--pair", "--text"]),
    ("tokenize-pair-fewer", ["tokenize", "{G}/" + SPM, "--text", "a", "--text", "c", "--pair", "b"], 2, ["2 --text", "1 --pair"]),
    ("tokenize-max-small", ["tokenize", "{G}/" + SPM, "--text", "a", "--max-tokens", "2"], 2, ["--max-tokens", "at least 3"]),
    ("tokenize-max-text", ["tokenize", "{G}/" + SPM, "--text", "a", "--max-tokens", "many"], 2, ["--max-tokens", "'many'"]),
    ("tokenize-max-trained", ["tokenize", "{G}/" + SPM, "--text", "a", "--max-tokens", "trained"], 2, ["--max-tokens trained", "model"]),
    ("tokenize-strict", ["tokenize", "{G}/" + SPM, "--strict", "--file", "latin1.txt"], 3, ["not UTF-8", "0xE9"]),
    ("tokenize-out", ["tokenize", "{G}/" + SPM, "--text", "a", "-o", "no/x"], 4, ["no/x", "cannot be written"]),
    # ---- verify
    ("verify-no-folder", ["verify", "nofolder"], 3, ["nofolder"]),
    ("verify-position-table", ["verify", TINY + ",biased=1,positions=2", "-n", "3"], 2, ["--tokens: 3 tokens, but the position table of this model ends at 2"]),
    ("verify-tokens-zero", ["verify", TINY, "--tokens", "0"], 2, ["--tokens", "1 to 65536", "0"]),
    ("verify-configurations-moved", ["verify", "--configurations", "20"], 2, ["--configurations", "build/tests/drawn/drawn"]),
    ("verify-training-moved", ["verify", "--training", "--mutate", "list"], 2, ["--training", "build/tests/drawn/drawn"]),
    ("verify-first-moved", ["verify", "--first=3"], 2, ["--first", "build/tests/drawn/drawn"]),
    ("verify-mutation-unknown", ["verify", "--mutate", "foo"], 2, ["foo", "list"]),
    ("verify-mutation-empty", ["verify", "--mutate", ""], 2, ["''"]),
    ("verify-mutation-model", ["verify", TINY, "--mutate", "sign"], 2, ["--mutate", "MODEL"]),
    ("verify-mutation-csv", ["verify", "--mutate", "p2c_ji", "--format", "csv"], 2, ["--mutate", "text or JSON"]),
    ("verify-mutation-suffix", ["verify", "--mutate", "list", "-o", "m.md"], 2, ["--mutate", "text or JSON"]),
    ("verify-mutation-picture", ["verify", "--mutate", "p2c_ji", "-o", "m.png"], 2, ["--out: 'm.png' is a picture"]),
    ("verify-expected-no-model", ["verify", "--expected", "x.safetensors"], 2, ["--expected", "MODEL"]),
    ("verify-expected-missing", ["verify", TINY, "--expected", "no.safetensors"], 3, ["no.safetensors", "No such file"]),
    ("verify-expected-and-ids", ["verify", TINY, "--expected", "no.safetensors", "--ids", "1"], 2, ["--expected", "--ids"]),
    ("verify-expected-other-model", ["verify", TINY, "--expected", "{G}/01-v1-both-n33/expected.safetensors"], 3, ["expected.safetensors: id 60 in row 0, column ", "50 rows"]),
    ("verify-expected-other-heads", ["verify", TINY_100, "--expected", "{G}/01-v1-both-n33/expected.safetensors", "--allow-extra"], 3, ["expected.safetensors", "attn.0.c2c", "[1, 4, 33, 33], expected [1, 2, 33, 33]"]),
    ("verify-expected-other-width", ["verify", TINY_100 + ",heads=4", "--expected", "{G}/01-v1-both-n33/expected.safetensors", "--allow-extra"], 3, ["hidden_states.0", "[1, 33, 48], expected [1, 33, 64]"]),
    ("verify-id-large", ["verify", TINY, "--ids", "1,99"], 2, ["--ids: id 99 in row 0, column 1", "50 rows"]),
    ("verify-ids-no-model", ["verify", "--ids", "1"], 2, ["--ids", "MODEL"]),
    ("verify-tokens-no-model", ["verify", "-n", "9"], 2, ["--tokens", "MODEL"]),
    ("verify-ids-and-tokens", ["verify", TINY, "--ids", "1", "-n", "4"], 2, ["--tokens", "--ids"]),
    ("verify-isa", ["verify", "--isa", "{OTHER_ISA}"], 2, ["{OTHER_ISA}", "cannot run here"]),
    ("verify-out", ["verify", TINY, "-o", "no/x"], 4, ["no/x", "cannot be written"]),
    ("verify-format", ["verify", TINY, "--format", "foo"], 2, ["--format", "foo", "latex"]),
    ("verify-two-formats", ["verify", TINY, "--json", "--format", "latex"], 2, ["give one of --format and --json"]),
    ("verify-latex-file", ["verify", TINY, "--latex", "x.tex"], 2, ["--latex"]),
    ("verify-two-texts", ["verify", TINY, "-o", "a.txt", "-o", "b.txt"], 2, ["a.txt", "b.txt", ".png"]),
    ("verify-seed", ["verify", TINY, "--seed", "-1"], 2, ["--seed", "'-1'"]),
    # ---- bench
    ("bench-none", ["bench"], 2, ["MODEL", "machine", "compare"]),
    ("bench-no-folder", ["bench", "nofolder"], 3, ["nofolder"]),
    ("bench-extra", ["bench", TINY, "extra"], 2, ["unexpected argument 'extra'"]),
    ("bench-n-zero", ["bench", TINY, "-n", "0"], 2, ["--tokens", "0 is too small"]),
    ("bench-n-text", ["bench", TINY, "-n", "x"], 2, ["--tokens", "'x'", "16-512*2"]),
    ("bench-n-empty", ["bench", TINY, "-n", ""], 2, ["--tokens", "missing"]),
    ("bench-n-backwards", ["bench", TINY, "-n", "5-1"], 2, ["--tokens", "5", "1"]),
    ("bench-n-stuck", ["bench", TINY, "-n", "1-10*1"], 2, ["--tokens", "leads nowhere"]),
    ("bench-n-step-zero", ["bench", TINY, "-n", "1-10+0"], 2, ["--tokens", "0"]),
    ("bench-n-huge", ["bench", TINY, "-n", "99999999"], 2, ["--tokens", "too large"]),
    ("bench-depth-zero", ["bench", TINY, "--depth", "0"], 2, ["--depth", "0 is too small"]),
    ("bench-depth-many", ["bench", TINY, "--depth", "1,2"], 2, ["--depth: 2 is too large", "1 layer"]),
    ("bench-terms-absent", ["bench", TINY + ",terms=c2p", "--attention", "full,c2c+p2c"], 2, ["--attention: c2c+p2c asks for p2c", "terms=c2p lacks"]),
    ("bench-terms-none", ["bench", TINY + ",terms=none", "--attention", "c2c+c2p"], 2, ["--attention: c2c+c2p asks for c2p"]),
    ("bench-attention", ["bench", TINY, "--attention", "foo"], 2, ["--attention", "foo", "c2c"]),
    ("bench-isa", ["bench", TINY, "--isa", "{OTHER_ISA}"], 2, ["{OTHER_ISA}", "cannot run here"]),
    ("bench-isa-twice", ["bench", TINY, "--isa", "scalar,scalar"], 2, ["scalar", "twice"]),
    ("bench-isa-empty", ["bench", TINY, "--isa", ""], 2, ["--isa", "''"]),
    ("bench-reps", ["bench", TINY, "--reps", "0"], 2, ["--reps", "0"]),
    ("bench-min-time-text", ["bench", TINY, "--min-time", "x"], 2, ["--min-time", "'x'"]),
    ("bench-min-time-negative", ["bench", TINY, "--min-time", "-1"], 2, ["--min-time", "-1"]),
    ("bench-format", ["bench", TINY, "--format", "foo"], 2, ["--format", "foo", "csv"]),
    ("bench-two-formats", ["bench", TINY, "--format", "csv", "--json"], 2, ["give one of --format and --json"]),
    ("bench-compare-isa", ["bench", "compare", "a", "b", "--isa", "foo"], 2, ["--isa: compare does not take it", "bench kernel"]),
    ("bench-machine-isa", ["bench", "machine", "--isa", "scalar"], 2, ["--isa: machine does not take it"]),
    ("bench-plot-isa", ["bench", "plot", "--figure", "list", "--isa", "scalar"], 2, ["--isa: plot does not take it"]),
    ("bench-plot-json", ["bench", "plot", "a", "--json", "-o", "a.svg"], 2, ["--json: plot does not take it"]),
    ("bench-threads-letter", ["bench", "kernel", "f", "-n", "8"], 2, ["-n: kernel does not take it; these do: bench"]),
    ("bench-out-spreadsheet", ["bench", TINY, "-o", "x.xlsx"], 2, ["--out: 'x.xlsx' is the name of a spreadsheet; expected", ".csv", "--format"]),
    ("bench-position-cache", ["bench", TINY, "--position-cache", "foo"], 2, ["--position-cache", "foo"]),
    ("bench-mix", ["bench", TINY, "--mix", "0"], 2, ["--mix", "0"]),
    ("bench-threads", ["bench", TINY, "--threads", "9999"], 2, ["--threads", "9999"]),
    ("bench-batch", ["bench", TINY, "--batch", "0"], 2, ["--batch", "0"]),
    ("bench-out", ["bench", TINY, "-o", "no/x"], 4, ["no/x", "cannot be written"]),
    ("bench-compare-option", ["bench", "compare", "a", "b", "-n", "zzz"], 2, ["-n: compare does not take it; these do: bench"]),
    ("bench-plot-option", ["bench", "plot", "a", "--reps", "3", "-o", "a.svg"], 2, ["--reps: plot does not take it; these do: bench, bench kernel"]),
    ("bench-machine-option", ["bench", "machine", "--cold"], 2, ["--cold: machine does not take it; these do: bench, bench kernel"]),
    ("bench-sweep-option", ["bench", TINY, "--title", "x"], 2, ["--title: bench does not take it; these do: bench plot"]),
    ("bench-compare-none", ["bench", "compare"], 2, ["expected A.json B.json"]),
    ("bench-compare-one", ["bench", "compare", "a"], 2, ["expected A.json B.json, or A1.json A2.json ... with B1.json"]),
    ("bench-compare-three", ["bench", "compare", "a", "b", "c"], 2, ["3 files and no 'with' between the two sides"]),
    ("bench-compare-one-side", ["bench", "compare", "a", "b", "with"], 2, ["both sides of 'with'"]),
    ("bench-compare-by-with", ["bench", "compare", "a", "with", "b", "--by", "isa"], 2, ["--by: compares within each file"]),
    ("bench-compare-by", ["bench", "compare", "a", "--by", "colour"], 2, ["--by: expected one of file, threads, isa, model, depth"]),
    ("bench-compare-by-nothing", ["bench", "compare", "noresults.json", "--by", "isa"], 3, ["noresults.json has no two points that differ in isa alone"]),
    ("bench-compare-missing", ["bench", "compare", "a", "b"], 3, ["a:", "No such file"]),
    ("bench-compare-not-json", ["bench", "compare", "f", "f"], 3, ["f"]),
    ("bench-compare-other-json", ["bench", "compare", "noids.json", "noids.json"], 3, ["noids.json", "schema"]),
    ("bench-compare-folder", ["bench", "compare", "d", "d"], 3, ["d: is a folder"]),
    ("bench-compare-nothing", ["bench", "compare", "noresults.json", "noresults.json"], 3, ["noresults.json", "no measured point in common"]),
    ("bench-plot-none", ["bench", "plot"], 2, ["plot", "JSON file"]),
    ("bench-plot-two", ["bench", "plot", "a.json", "b.json", "--figure", "grid", "-o", "x.svg"], 2, ["--figure grid draws one file, found 2", "deberta bench compare a.json b.json"]),
    ("bench-plot-no-out", ["bench", "plot", "f"], 2, ["plot", "--out"]),
    ("bench-plot-out-same", ["bench", "plot", "f", "-o", "a.pdf", "-o", "./a.pdf"], 2, ["--out", "'./a.pdf'", "twice"]),
    ("bench-plot-missing", ["bench", "plot", "nofile", "-o", "a.png"], 3, ["nofile", "No such file"]),
    ("bench-kernel-format", ["bench", "kernel", "garbage.txt", "--format", "xml"], 2, ["--format: expected one of table, md, csv, json, latex; found 'xml'"]),
    ("bench-kernel-none", ["bench", "kernel"], 2, ["bench kernel: expected FILE..."]),
    ("bench-kernel-missing", ["bench", "kernel", "nofile"], 3, ["nofile", "No such file"]),
    ("bench-kernel-folder", ["bench", "kernel", "d"], 3, ["d", "directory"]),
    ("bench-kernel-garbage", ["bench", "kernel", "garbage.txt"], 3, ["garbage.txt"]),
    ("bench-machine-extra", ["bench", "machine", "extra"], 2, ["unexpected argument 'extra'"]),
    # ---- attention
    ("attention-no-out", ["attention", TINY, "--ids", "1,2"], 2, ["--out", "--numbers"]),
    ("attention-json", ["attention", TINY, "--ids", "1,2", "--json", "-o", "a.png"], 2, ["--json", "--numbers FILE.csv"]),
    ("attention-nothing", ["attention", TINY, "-o", "a.png"], 2, ["--text", "--ids"]),
    ("attention-suffix", ["attention", TINY, "--ids", "1,2", "-o", "a.txt"], 2, ["a.txt", ".txt", ".png", ".svg", ".pdf"]),
    ("attention-no-suffix", ["attention", TINY, "--ids", "1,2", "-o", "a"], 2, ["a", "suffix", ".png"]),
    ("attention-one-bad-suffix", ["attention", TINY, "--ids", "1,2", "-o", "a.png", "-o", "b.gif"], 2, ["b.gif", ".png"]),
    ("attention-out-same", ["attention", TINY, "--ids", "1,2", "-o", "a.png", "-o", "a.png"], 2, ["--out", "'a.png'", "twice"]),
    ("attention-out-same-spelled", ["attention", TINY, "--ids", "1,2", "-o", "d/../a.png", "-o", "a.png"], 2, ["--out", "'a.png'", "twice"]),
    ("attention-data-is-out", ["attention", TINY, "--ids", "1,2", "-o", "a.png", "--numbers", "./a.png"], 2, ["--numbers", "'./a.png'", "--out"]),
    ("attention-out-empty", ["attention", TINY, "--ids", "1,2", "-o", ""], 2, ["--out", "empty"]),
    ("attention-layer", ["attention", TINY, "--ids", "1,2", "--layers", "1", "-o", "a.png"], 2, ["--layers", "1 is out of range"]),
    ("attention-head", ["attention", TINY, "--ids", "1,2", "--heads", "2", "-o", "a.png"], 2, ["--heads", "2 is out of range", "0 to 1"]),
    ("attention-heads-text", ["attention", TINY, "--ids", "1,2", "--heads", "x", "-o", "a.png"], 2, ["--heads", "'x'"]),
    ("attention-component", ["attention", TINY, "--ids", "1,2", "--components", "foo", "-o", "a.png"], 2, ["--components", "foo", "c2p"]),
    ("attention-component-empty", ["attention", TINY, "--ids", "1,2", "--components", "", "-o", "a.png"], 2, ["--components", "''"]),
    ("attention-component-absent", ["attention", "{G}/04-v1-plain-posbias-types", "--ids", "1,2", "--components", "p2c", "-o", "a.png"], 2, ["--components", "p2c", "model"]),
    ("attention-row", ["attention", TINY, "--ids", "1,2", "--row", "1", "-o", "a.png"], 2, ["--row: 1 is out of range, the input has 1 row,"]),
    ("attention-kind-absent", ["attention", "kernel", TINY + ",terms=none", "--ids", "1,2", "-o", "a.png"], 2, ["this figure shows c2p,p2c, of which the model has none"]),
    ("attention-dpi-low", ["attention", TINY, "--ids", "1,2", "--dpi", "-3", "-o", "a.png"], 2, ["-3", "36 to 2400"]),
    ("attention-dpi-zero", ["attention", TINY, "--ids", "1,2", "--dpi", "0", "-o", "a.png"], 2, ["--dpi", "found 0"]),
    ("attention-width-zero", ["attention", TINY, "--ids", "1,2", "--width-mm", "0", "-o", "a.png"], 2, ["--width-mm", "found 0"]),
    ("bench-plot-dpi-low", ["bench", "plot", "a.json", "--dpi", "-3", "-o", "a.png"], 2, ["-3", "36 to 2400"]),
    ("attention-dpi-nan", ["attention", TINY, "--ids", "1,2", "--dpi", "nan", "-o", "a.png"], 2, ["--dpi", "'nan'"]),
    ("attention-dpi-high", ["attention", TINY, "--ids", "1,2", "--dpi", "1e9", "-o", "a.png"], 2, ["dpi", "36 to 2400"]),
    ("attention-width", ["attention", TINY, "--ids", "1,2", "--width-mm", "1", "-o", "a.png"], 2, ["width", "30 to 1000"]),
    ("attention-center", ["attention", TINY, "--ids", "1,2", "--center", "foo", "-o", "a.png"], 2, ["--center", "row", "none", "foo"]),
    ("attention-no-folder", ["attention", TINY, "--ids", "1,2", "-o", "no/a.png"], 4, ["no/a.png", "No such file"]),
    ("attention-id", ["attention", TINY, "--ids", "1,77", "-o", "a.png"], 2, ["--ids: id 77 in row 0, column 1", "50 rows"]),
    ("attention-memory", ["attention", TINY, "--ids", "1,2", "--memory-limit", "1K", "-o", "a.png"], 4, ["needs", "1024 bytes"]),
    ("attention-full", ["attention", TINY, "--ids", "1,2", "-o", "full.png"], 4, ["full.png", "No space left"]),
    # ---- heads
    ("fill-mask-no-model", ["fill-mask"], 2, ["expected MODEL"]),
    ("fill-mask-no-folder", ["fill-mask", "nofolder", "--text", "a"], 3, ["nofolder"]),
    ("fill-mask-nothing", ["fill-mask", "{DEMO}"], 2, ["--text", "--file"]),
    ("fill-mask-no-mask", ["fill-mask", "{DEMO}", "--text", "a"], 3, ["text 1", "no [MASK]"]),
    ("fill-mask-top", ["fill-mask", "{DEMO}", "--text", "[MASK]", "--top", "0"], 2, ["--top", "0"]),
    ("fill-mask-decoder", ["fill-mask", "{DEMO}", "--text", "[MASK]", "--mlm-decoder", "foo"], 2, ["--mlm-decoder", "emd", "plain", "foo"]),
    ("fill-mask-out", ["fill-mask", "{DEMO}", "--text", "[MASK]", "-o", "no/x"], 4, ["no/x", "cannot be written"]),
    ("fill-mask-file", ["fill-mask", "{DEMO}", "--file", "nofile"], 3, ["nofile", "No such file"]),
    ("detect-no-head", ["detect", "{DEMO}", "--text", "a"], 3, ["'rtd'", "mlm"]),
    ("tag-no-head", ["tag", "{DEMO}", "--text", "a"], 3, ["'token'", "mlm"]),
    ("answer-no-head", ["answer", "{DEMO}", "--question", "a", "--context", "b"], 3, ["'qa'", "mlm"]),
    ("answer-no-text-option", ["answer", "{DEMO}", "--text", "a"], 2, ["unknown option '--text'"]),
    ("classify-pair-alone", ["classify", "{DEMO}", "--pair", "x"], 2, ["no text: give --text or --file"]),
    ("classify-file", ["classify", "{DEMO}", "--file", "nofile"], 3, ["nofile: No such file"]),
    ("classify-file-is-folder", ["classify", "{DEMO}", "--file", "d"], 3, ["d: is a folder"]),
    ("tag-grouping", ["tag", "{DEMO}", "--text", "x", "--grouping", "y"], 2, ["--grouping: expected one of first, simple, none; found 'y'"]),
    ("classify-max-tokens", ["classify", "{DEMO}", "--text", "a", "--max-tokens", "1"], 2, ["--max-tokens", "1"]),
    ("encode-pool", ["encode", "{DEMO}", "--text", "a", "--pool", "foo", "-o", "x.npy"], 2, ["--pool", "mean", "foo"]),
    ("encode-stride-alone", ["encode", "{DEMO}", "--text", "a", "--stride", "5", "-o", "x.npy"], 2, ["--stride", "--window"]),
    ("encode-corpus-folder", ["encode", "{DEMO}", "--text", "a", "--pool", "mean", "-o", "d.npy"], 4, ["d.npy", "not a regular file"]),
    ("encode-corpus-json", ["encode", "{DEMO}", "--text", "a", "--pool", "mean", "--json", "-o", "x.safetensors"], 2, ["--json", "corpus", "--pool"]),
    ("encode-corpus-file", ["encode", "{DEMO}", "--file", "x.jsonl", "--logits", "-o", "x.safetensors"], 2, ["--logits", "corpus", "'x.jsonl'"]),
    ("encode-corpus-no-lines", ["encode", "{DEMO}", "--file", "-", "-o", "x.npy"], 3, ["standard input has no lines"]),
    ("encode-corpus-no-lines-jsonl", ["encode", "{DEMO}", "--file", "/dev/null", "--pool", "none", "-o", "x.jsonl"], 3, ["/dev/null has no lines"]),
    ("encode-pool-hidden", ["encode", "{DEMO}", "--text", "a", "--hidden", "all", "-o", "x.npy"], 2, ["--hidden", "corpus"]),
    ("encode-pool-none-npy", ["encode", "{DEMO}", "--text", "x", "--pool", "none", "-o", "x.npy"], 2, [".npy file cannot hold texts of different length"]),
    ("encode-window-npy", ["encode", "{DEMO}", "--text", "x", "--window", "8", "-o", "x.npy"], 2, [".npy file cannot say which rows are windows"]),
    ("encode-pool-nowhere", ["encode", "{DEMO}", "--text", "x", "--pool", "cls"], 2, ["say where the results go: --out FILE"]),
    ("encode-stride-large", ["encode", "{DEMO}", "--text", "x", "--window", "8", "--stride", "7", "-o", "x.jsonl"], 2, ["--stride: expected 1 to 6, found 7"]),
    ("encode-pool-logits", ["encode", "{DEMO}", "--text", "x", "--pool", "cls", "--logits", "-o", "x.npy"], 2, ["--logits: does not go with the output of a corpus"]),
    ("encode-pool-suffix", ["encode", "{DEMO}", "--text", "x", "--pool", "cls", "-o", "x.txt"], 2, ["--out: expected a name that ends in .npy", "'x.txt'"]),
    ("encode-corpus-out", ["encode", "{DEMO}", "--text", "x", "-o", "no/x.npy"], 4, ["no/x.npy: cannot be written"]),
    ("encode-corpus-missing", ["encode", "{DEMO}", "--file", "missing.txt", "-o", "x.npy"], 3, ["missing.txt: No such file"]),
    # ---- interventions
    ("ablate-term", ["encode", TINY, "--ids", "1", "--ablate", "p2p@0", "-o", "x.safetensors"], 2, ["--ablate", "'p2p@0'", "c2c, c2p or p2c"]),
    ("ablate-no-layer", ["encode", TINY, "--ids", "1", "--ablate", "c2p", "-o", "x.safetensors"], 2, ["--ablate", "@layer", "'c2p'"]),
    ("ablate-empty", ["encode", TINY, "--ids", "1", "--ablate", "", "-o", "x.safetensors"], 2, ["--ablate", "''"]),
    ("ablate-end", ["encode", TINY, "--ids", "1", "--ablate", "c2p@0,", "-o", "x.safetensors"], 2, ["--ablate", "''"]),
    ("ablate-kind", ["encode", TINY, "--ids", "1", "--ablate", "c2p=median@0", "-o", "x.safetensors"], 2, ["'c2p=median@0'", "=zero|=mean"]),
    ("ablate-head-empty", ["encode", TINY, "--ids", "1", "--ablate", "c2p@0:", "-o", "x.safetensors"], 2, ["'c2p@0:'"]),
    ("ablate-negative", ["encode", TINY, "--ids", "1", "--ablate", "c2p@-1", "-o", "x.safetensors"], 2, ["'c2p@-1'"]),
    ("ablate-huge", ["encode", TINY, "--ids", "1", "--ablate", "c2p@" + "9" * 30, "-o", "x.safetensors"], 2, ["--ablate"]),
    ("ablate-layer-range", ["encode", TINY, "--ids", "1", "--ablate", "c2p@1", "-o", "x.safetensors"], 2, ["layer 1 is out of range", "0 ... 0"]),
    ("ablate-head-range", ["encode", TINY, "--ids", "1", "--ablate", "c2c@0,c2p@all:2", "-o", "x.safetensors"], 2, ["ablation 1", "head 2 is out of range", "0 ... 1"]),
    ("ablate-lacking", ["encode", TINY + ",terms=c2p", "--ids", "1", "--ablate", "p2c@0", "-o", "x.safetensors"], 2, ["has no term p2c", "c2c, c2p"]),
    ("ablate-verify", ["verify", TINY, "--ablate", "c2p@7"], 2, ["--ablate", "layer 7"]),
    ("ablate-fill-mask", ["fill-mask", "{DEMO}", "--text", "a [MASK]", "--ablate", "c2p@5"], 2, ["--ablate", "layer 5"]),
    ("ablate-receptive-field", ["receptive-field", "{DEMO}", "--influence", "--ablate", "c2p@5"], 2, ["--ablate", "layer 5"]),
    ("ablate-receptive-field-alone", ["receptive-field", "{DEMO}", "--ablate", "c2p@0"], 2, ["--ablate", "--behaviour", "--influence"]),
    ("ablate-report", ["report", TINY, "--ablate", "p2p@0", "-o", "r"], 2, ["--ablate", "'p2p@0'"]),
    # ---- receptive-field
    ("receptive-field-no-model", ["receptive-field"], 2, ["expected MODEL"]),
    ("receptive-field-no-folder", ["receptive-field", "nofolder"], 3, ["nofolder", "no such folder"]),
    ("receptive-field-depth", ["receptive-field", "synthetic:v3-base", "--depth", "0"], 2, ["--depth", "0"]),
    ("receptive-field-tokens", ["receptive-field", "synthetic:v3-base", "-n", "0"], 2, ["--tokens", "0"]),
    ("receptive-field-out", ["receptive-field", "synthetic:v3-base", "-o", "no/x"], 4, ["no/x", "cannot be written"]),
    ("receptive-field-behaviour-tokens", ["receptive-field", TINY, "--behaviour-tokens", "9"], 2, ["--behaviour-tokens needs --behaviour"]),
    ("receptive-field-behaviour-depth", ["receptive-field", TINY, "--behaviour-depth", "1"], 2, ["--behaviour-depth needs --behaviour"]),
    ("receptive-field-influence-tokens", ["receptive-field", TINY, "--influence-tokens", "9"], 2, ["--influence-tokens needs --influence"]),
    ("receptive-field-influence-sources", ["receptive-field", TINY, "--influence-sources", "1"], 2, ["--influence-sources needs --influence"]),
    ("receptive-field-influence-ids", ["receptive-field", TINY, "--influence", "--influence-tokens", "9", "--ids", "1,2,3"], 2, ["--influence-tokens and --ids exclude each other"]),
    ("receptive-field-no-terms", ["receptive-field", "{G}/14-v2-none-n7"], 3, ["no relative positions"]),
    # ---- report
    ("report-none", ["report"], 2, ["expected MODEL"]),
    ("report-no-folder", ["report", "nofolder", "-o", "r"], 3, ["nofolder"]),
    ("report-out", ["report", TINY, "-o", "/proc/no/r"], 4, ["/proc/no: the folder cannot be made"]),
    ("report-out-in-file", ["report", TINY, "-o", "f/such/r"], 4, ["f: is a file"]),
    ("report-out-file", ["report", TINY, "-o", "f"], 4, ["f", "is a file"]),
    ("report-limit-without-text", ["report", "{DEMO}", "--max-tokens", "5", "-o", "r"], 2, ["--max-tokens: goes with --text or --file"]),
    ("report-pair-without-text", ["report", "{DEMO}", "--pair", "x", "-o", "r"], 2, ["--pair: goes with --text or --file"]),
    ("report-reps", ["report", TINY, "--reps", "0", "-o", "r"], 2, ["--reps", "0"]),
    ("report-text-and-ids", ["report", TINY, "--ids", "1", "--text", "a", "-o", "r"], 2, ["--text", "--ids"]),
    ("report-lengths", ["report", TINY, "-n", "x", "-o", "r"], 2, ["--tokens", "'x'"]),
    ("report-depth", ["report", TINY, "--depth", "0", "-o", "r"], 2, ["--depth", "0"]),
    ("report-skip", ["report", TINY, "--skip", "latency,all", "-o", "r"], 2, ["--skip", "'all'", "receptive-field"]),
    ("report-many", ["report", TINY, *["--ids", "1"] * 17, "-o", "r"], 2, ["at most 16 texts", "17"]),
    ("report-text-synthetic", ["report", TINY, "--text", "a", "-o", "r"], 2, ["no tokenizer", "--ids"]),
    ("report-layers", ["report", TINY, "--layers", "9", "-o", "r"], 2, ["--layers", "9 is out of range"]),
    ("report-json", ["report", TINY, "--json", "-o", "r"], 2, ["--json", "--json: what this command makes is no JSON"]),
    ("report-head", ["report", TINY, "--heads", "9", "-o", "r"], 2, ["--heads", "9 is out of range"]),
    ("report-id-large", ["report", TINY, "--ids", "1,99", "-o", "r"], 2, ["--ids: id 99 in row 0, column 1", "50 rows"]),
    ("report-ablate-layer", ["report", TINY, "--ablate", "p2c@9", "-o", "r"], 2, ["--ablate", "layer 9"]),
    ("report-depth-many", ["report", TINY, "--depth", "1,9", "-o", "r"], 2, ["--depth", "9 is too large", "1 layer"]),
    ("report-ids", ["report", TINY, "--ids", "1,x", "-o", "r"], 2, ["--ids", "'1,x'"]),
]

FILES = {
    "f": b"not json\n",
    "large.json": b'{"input_ids": [[1, 2, 3], [1, 2, 900]], "attention_mask": [[1, 1, 1], [0, 1, 1]]}',
    "huge.json": b'{"input_ids": [[1, 99999999999]]}',
    "types.json": b'{"input_ids": [[1, 2]], "token_type_ids": [[1, 2]]}',
    "broken.safetensors": b"\xff" * 40,
    "broken.json": b'{"input_ids": [[1, 2]',
    "ragged.json": b'{"input_ids": [[1, 2], [3]]}',
    "noids.json": b'{"ids": [[1, 2]]}',
    "noresults.json": b'{"schema": "deberta-bench/1", "environment": {}, "results": []}',
    "empty.json": b'{"input_ids": []}',
    "float.json": b'{"input_ids": [[1.5]]}',
    "latin1.txt": b"caf\xe9\n",
    "garbage.txt": b"make me a sandwich\n",
}


def prepare(bench):
    for name, data in FILES.items():
        bench.write(name, data)
    os.mkdir(bench.path("d"))
    os.mkdir(bench.path("d.safetensors"))
    os.mkdir(bench.path("d.npy"))
    os.symlink("/dev/full", bench.path("full.png"))
    return set(bench.files())


def misuse(name, arguments, code, words):
    def test(bench):
        if name.startswith(("attention", "option-cmap", "bench-plot", "bench-sweep-option", "out-picture-bench", "report-layers", "command-is-second-word")):
            needs_figures(bench)
        other = "avx2" if os.uname().machine == "aarch64" else "neon"
        there = prepare(bench)
        place = lambda text: text.replace("{G}", bench.golden).replace("{DEMO}", os.path.join(bench.root, "models", "demo")).replace("{OTHER_ISA}", other)
        quiet = ["-q"] if arguments and arguments[0] == "report" and len(arguments) > 1 else []
        result = bench.run(*[place(a) for a in arguments], *quiet)
        if bench.show:
            print(f"{result.command}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        check_message(result, code, [place(w) for w in words])
        left = set(bench.files()) - there
        assert not left, f"left behind: {left}"
    return test


def bad_folder(folder, words):
    def test(bench):
        path = os.path.join(bench.golden, "bad", folder)
        result = bench.run("encode", path, "--ids", "1,2,3", "-o", "x.safetensors")
        if bench.show:
            print(f"{folder}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        check_message(result, 3, [])
        for word in words:
            assert any(w in result.err for w in word.split("|")), f"the message does not say '{word}'\n{result.describe()}"
        assert bench.files() == [], bench.files()
    return test


def bad_tokenizer(folder, expect):
    def test(bench):
        result = bench.run("tokenize", os.path.join(bench.golden, "tokenizers", "bad", folder), "--text", "a b")
        if bench.show:
            print(f"{folder}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        if expect == "error":
            check_message(result, 3, [])
        else:
            assert result.code == 0 or (expect != "load" and result.code == 3), result.describe()
    return test


def bad_input(folder, words):
    def test(bench):
        path = os.path.join(bench.golden, "bad", folder)
        result = bench.run("encode", path, "--input", os.path.join(path, "inputs.json"), "-o", "x.safetensors")
        check_message(result, 3, words)
    return test


def isa_of_environment(bench):
    """The variable counts for every command that computes; an option overrides it."""
    tiny = [TINY, "--ids", "1,2"]
    for arguments in (["info"], ["encode", *tiny, "-o", "x.safetensors"], ["verify", TINY], ["bench", TINY]):
        result = bench.run(*arguments, env={"DEBERTA_ISA": "foo"})
        check_message(result, 2, ["DEBERTA_ISA", "foo", "scalar"])
        check_message(bench.run(*arguments, env={"DEBERTA_ISA": "neon" if os.uname().machine != "aarch64" else "avx2"}), 2,
                      ["DEBERTA_ISA", "cannot run here"])
    bench.fine("info", "--isa", "scalar", env={"DEBERTA_ISA": "foo"})
    quick = ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", "--format", "csv"]
    assert ",scalar," in bench.fine(*quick, env={"DEBERTA_ISA": "scalar"}).out


def too_long_a_list(bench):
    """A command line for which memory runs out is not a wrong one."""
    words, few = ["encode", TINY, "--ids", "1", "-o", "x.safetensors"], at_most("DATA", 1 << 25)
    if bench.run(*words, preexec_fn=few).code:
        raise SkipTest("does not run in 32 MB")
    contains(bench.expect(4, *words, *["--ablate", ",".join(["c2p@0"] * 20000)] * 14, preexec_fn=few).err, "out of memory")


def rows(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    return [line.split("\t") for line in lines[1:]]


def tests(settings):
    for name, arguments, code, words in TABLE:
        yield "misuse/" + name, misuse(name, arguments, code, words)
    bad = os.path.join(settings.golden, "bad")
    words = {row[0]: row[1].split(",") for row in rows(os.path.join(bad, "words.tsv"))}
    for folder, expect, where, *_ in rows(os.path.join(bad, "expect.tsv")):
        if expect == "error" and where != "inputs":
            yield "bad-model/" + folder, bad_folder(folder, words.get(folder, []))
    yield "bad-input/vocabulary", bad_input("80-ids-out-of-vocab", ["inputs.json: id 11 in row ", "11 rows"])
    yield "bad-input/negative", bad_input("81-ids-negative", ["inputs.json: id -1 in row "])
    for folder, expect, *_ in rows(os.path.join(settings.golden, "tokenizers", "bad", "expect.tsv")):
        yield "bad-tokenizer/" + folder, bad_tokenizer(folder, expect)
    yield "isa-of-the-environment", isa_of_environment
    yield "too-long-a-list", too_long_a_list
