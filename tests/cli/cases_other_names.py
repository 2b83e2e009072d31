"""What people type who know other programs: hyperfine, llama-bench, llama.cpp, the scripts of transformers, bertviz, optimum-cli,
sentence-transformers. Each line is refused in one sentence that names the option of here, which the command must have.

SPDX-License-Identifier: MIT
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from cases_documents import commands_of
from helpers import DEMO, TINY, check, check_message, contains, equal, has_figures

PAGE = {}  # the help of a command, read once
DEVICE = "all of it runs on the processor; --threads and --isa say how"
MODEL = "it is an argument here: deberta "
STEPS = "here it is --steps, updates of --batch-sequences examples each"

# the command with its arguments; what is typed behind it; the answer
LINES = [
    # hyperfine, llama-bench
    ("bench {TINY}", "--warmup 3", "it needs no option: each point is computed before it is measured"),
    ("bench {TINY}", "-w 3", "it needs no option: each point is computed before it is measured"),
    ("bench {TINY}", "--runs 10", "here it is --reps"),
    ("bench {TINY}", "-r 5", "here it is --reps"),
    ("bench {TINY}", "--repetitions=5", "here it is --reps"),
    ("bench {TINY}", "--export-json r.json", "here it is --out FILE.json"),
    ("bench {TINY}", "--export-markdown r.md", "here it is --format, with --out FILE"),
    ("bench {TINY}", "--seq-len 128", "here it is --tokens"),
    ("bench {TINY}", "--sequence_length 128", "here it is --tokens"),
    ("bench {TINY}", "-p 512", "here it is --tokens"),
    ("bench {TINY}", "--n-prompt 512", "here it is --tokens"),
    ("bench {TINY}", "--batch-size 8", "here it is --batch"),
    ("bench {TINY}", "--layers 2", "here it is --depth, how many layers"),
    ("bench", "-m {TINY}", MODEL + "bench MODEL"),
    ("bench", "--model {TINY}", MODEL + "bench MODEL"),
    # llama.cpp, sentence-transformers
    ("encode {DEMO}", "--output x.npy", "here it is --out"),
    ("encode {DEMO}", "--output-file x.npy", "here it is --out"),
    ("encode {DEMO}", "--device cpu", DEVICE),
    ("encode {DEMO}", "--n-gpu-layers 0", DEVICE),
    ("encode {DEMO}", "--pooling mean", "here it is --pool mean, cls or none"),
    ("encode {DEMO}", "--normalize-embeddings", "vectors are written as they are pooled: divide each by its norm"),
    ("encode {DEMO}", "--output-attentions", "here it is --attention-layers all"),
    ("encode {DEMO}", "--output_hidden_states", "here it is --hidden all"),
    ("encode {DEMO}", "--max-length 128", "here it is --max-tokens"),
    ("encode {DEMO}", "--ctx-size 128", "here it is --max-tokens"),
    ("encode {DEMO}", "-c 128", "here it is --max-tokens"),
    ("encode {DEMO}", "--batch-size 32", "here it is --batch-tokens"),
    ("encode {DEMO}", "--num-threads 2", "here it is --threads"),
    ("encode {DEMO}", "-j 2", "here it is --threads"),
    ("encode {DEMO}", "--prompt a", "here it is --text"),
    ("encode {DEMO}", "-p a", "here it is --text"),
    ("encode", "--model {DEMO}", MODEL + "encode MODEL"),
    ("encode {DEMO}", "--fp16", "here it is --precision int16 or int8; without it float32"),
    ("encode {DEMO}", "--dtype int8", "here it is --precision"),
    ("encode {DEMO}", "--verbose", "notes are said anyway, --quiet leaves them out"),
    ("encode {DEMO}", "--padding", "nothing is padded"),
    ("classify {DEMO}", "--input in.txt", "here it is --file"),
    ("classify {DEMO}", "--text-pair b", "here it is --pair"),
    ("classify {DEMO}", "--tokenizer {DEMO}", "the tokenizer is that of MODEL's folder"),
    ("fill-mask {DEMO}", "--top-k 3", "here it is --top"),
    ("fill-mask {DEMO}", "-k 3", "here it is --top"),
    ("tag {DEMO}", "--aggregation_strategy first", "here it is --grouping"),
    ("answer {DEMO}", "--max_answer_length 9", "here it is --max-answer"),
    ("info", "--model {DEMO}", MODEL + "info [MODEL]"),
    ("info {DEMO}", "--output x", "here it is --out"),
    ("info {DEMO}", "--export-json x", "here it is --json with --out FILE"),
    ("eval {DEMO}", "--test_file a.tsv", "files are an argument here: deberta eval MODEL FILE"),
    ("eval {DEMO}", "--per_device_eval_batch_size 8", "here it is --batch-tokens"),
    # optimum-cli
    ("pack", "--model {DEMO}", MODEL + "pack MODEL"),
    ("pack {DEMO}", "--task fill-mask", "each task is a command of its own: deberta --help lists them"),
    ("pack {DEMO}", "--cache_dir d", "MODEL is a folder of this machine"),
    ("pack {DEMO}", "--quantize", "here it is --precision"),
    # run_mlm.py, run_glue.py and their kind
    ("train mlm", "--model_name_or_path {DEMO}", MODEL + "train mlm MODEL"),
    ("train mlm {DEMO}", "--train_file a.txt", "here it is --file"),
    ("train mlm {DEMO}", "--validation_file a.txt", "here it is --eval"),
    ("train mlm {DEMO}", "--per_device_train_batch_size 8", "here it is --batch-sequences"),
    ("train mlm {DEMO}", "--num_train_epochs 3", STEPS),
    ("train mlm {DEMO}", "--max_steps 3", "here it is --steps"),
    ("train mlm {DEMO}", "--fp16", "training computes in float32, and --save-dtype f16 is how it stores"),
    ("train mlm {DEMO}", "--bf16", "training computes in float32, and --save-dtype f16 is how it stores"),
    ("train mlm {DEMO}", "--max_seq_length 64", "here it is --sequence-tokens"),
    ("train mlm {DEMO}", "--warmup_ratio 0.1", "here it is --warmup N, in steps"),
    ("train mlm {DEMO}", "--lr_scheduler_type linear", "here it is --schedule"),
    ("train mlm {DEMO}", "--mlm_probability 0.15", "here it is --mask-probability"),
    ("train mlm {DEMO}", "--line_by_line", "here it is --sequences lines"),
    ("train mlm {DEMO}", "--save_steps 100", "here it is --checkpoint-every N, in steps"),
    ("train mlm {DEMO}", "--save_total_limit 2", "here it is --keep"),
    ("train mlm {DEMO}", "--resume_from_checkpoint d", "here it is --resume, with the same --out"),
    ("train mlm {DEMO}", "--gradient_checkpointing", "here it is --recompute"),
    ("train mlm {DEMO}", "--gradient_accumulation_steps 2", "here it is --micro-tokens"),
    ("train mlm {DEMO}", "--max_grad_norm 1", "here it is --clip"),
    ("train mlm {DEMO}", "--adam_epsilon 1e-6", "here it is --epsilon"),
    ("train mlm {DEMO}", "--overwrite_output_dir", "no run is overwritten: --out names a new folder"),
    ("train mlm {DEMO}", "--output_dir d", "here it is --out"),
    ("train mlm {DEMO}", "--do_train", "each task is a command of its own"),
    ("train mlm {DEMO}", "--config_name d", "here it is --config"),
    ("train mlm {DEMO}", "--device cuda", DEVICE),
    ("train tokenizer", "--vocab_size 100", "here it is --vocabulary"),
    ("train tokenizer", "--num_hidden_layers 3", "here it is --depth, how many layers"),
    ("finetune sequence {DEMO}", "--train_file a.tsv", "here it is --examples"),
    ("finetune sequence {DEMO}", "--num_labels 3", "here it is --labels"),
    ("finetune sequence {DEMO}", "--early_stopping_patience 3", "here it is --patience"),
    ("finetune sequence {DEMO}", "--epochs 3", STEPS),
    ("finetune", "--epochs 3", "expected sequence|choice|token|qa MODEL first; as for '--epochs', " + STEPS),
    ("train", "--lr 3", "expected mlm|rtd|tokenizer|plot MODEL first; as for '--lr', here it is --learning-rate"),
    # one dash before a long name, as llama.cpp has it: no letter with a value
    ("encode {DEMO}", "-ngl 99", DEVICE),
    ("bench {TINY}", "-ngl 99", DEVICE),
    ("classify {DEMO}", "-output x.json", "here it is --out"),
    ("encode {DEMO}", "-fa", "it needs no option: attention never holds a whole matrix"),
    ("encode {DEMO}", "-ub 512", "here it is --batch-tokens"),
    ("encode {DEMO}", "-b 512", "here it is --batch-tokens"),
    ("encode {DEMO}", "--embd-output-format json", "here it is the suffix of --out: .npy, .safetensors or .jsonl"),
    ("fill-mask {DEMO}", "-n 4", "nothing is generated, and --max-tokens is where texts are cut"),
    ("fill-mask {DEMO}", "--temp 0.7", "nothing is drawn at random"),
    ("classify {DEMO}", "--attn_implementation eager", "it needs no option"),
    # more of transformers' trainer
    ("finetune sequence {DEMO}", "--model_name_or_path {DEMO}", MODEL + "finetune sequence MODEL"),
    ("finetune sequence {DEMO}", "--metric_for_best_model f1", "each task has its measure"),
    ("finetune sequence {DEMO}", "--push_to_hub", "nothing is uploaded"),
    ("finetune sequence {DEMO}", "--max_train_samples 9", "all lines of a file are used: head -n N FILE"),
    ("finetune sequence {DEMO}", "--text_column_name text", "the file names its columns: label, text and pair"),
    ("finetune sequence {DEMO}", "--lora_r 8", "all weights are trained but those of --freeze"),
    ("finetune sequence {DEMO}", "--freeze_encoder", "here it is --freeze"),
    ("finetune sequence {DEMO}", "--deepspeed d.json", "several processes are started by mpirun"),
    ("finetune sequence {DEMO}", "--group_by_length", "it needs no option"),
    ("finetune sequence {DEMO}", "--label_smoothing_factor 0.1", "the loss is the plain one"),
    ("finetune sequence {DEMO}", "--torch_compile", "it needs no option: all of it is compiled"),
    # of other commands
    ("attribute {DEMO}", "--ablate c2p@0", "attributions are of whole models"),
    ("bench {TINY}", "--ablate c2p@0", "a term that is ablated is computed all the same, and takes as long: --attention leaves terms out"),
    ("bench train {TINY}", "--ablate c2p@0", "a term that is ablated is computed all the same"),
    ("train mlm {DEMO}", "--ablate c2p@0", "models are trained whole; eval, encode and others take --ablate"),
    ("finetune qa {DEMO}", "--ablate=c2p@0", "models are trained whole"),
    # bertviz, matplotlib
    ("attention {DEMO}", "--cmap greys", "here it is --palette"),
    ("attention {DEMO}", "--figsize 3,4", "here it is --width-mm"),
    ("attention {DEMO}", "--vmin 0", "here it is --scale"),
    ("attention {DEMO}", "--include_layers 0", "here it is --layers"),
    ("attention {DEMO}", "--sentence_a a", "here it is --text"),
    ("attention {DEMO}", "--sentence_b a", "here it is --pair"),
    ("attention {DEMO}", "--save a.png", "here it is --out"),
    ("attention {DEMO}", "--head-view", "lines between tokens are a kind of figure: deberta attention lines MODEL"),
]


def help_of(bench, command):
    if command not in PAGE:
        PAGE[command] = bench.fine(*command.split(), "--help").out
    return PAGE[command]


def words_of(bench, text):
    return [word.format(DEMO=DEMO, TINY=TINY) for word in text.split()]


def test_options_of_others(bench):
    draws, typed = has_figures(bench), 0
    for command, given, answer in LINES:
        if command.startswith("attention") and not draws:
            continue
        words = words_of(bench, given)
        result = bench.run(*words_of(bench, command), *words)
        option = words[0].split("=")[0]
        check_message(result, 2, [answer if command in ("train", "finetune") else f"unknown option '{option}'; {answer}"])
        for named in re.findall(r"here it is --([\w-]+)", answer):  # what is named must be there
            page = help_of(bench, re.sub(r" *\{.*", "", command) + {"train": " mlm", "finetune": " sequence"}.get(command, ""))
            check(re.search(rf"^ +(-\w, )? *--{named}\b", page, re.M), f"{command} has no --{named}")
        typed += 1
    check(typed >= 80, f"only {typed} lines were typed")


def test_words_of_others(bench):
    """A second word that another program has, where none is needed or another is meant; a folder of that name stays a model."""
    if has_figures(bench):
        for word in ("heatmap", "heatmaps", "heads"):
            for more in ([], [DEMO, "--text", "a", "-o", "a.png"], ["--text", "a"]):
                check_message(bench.run("attention", word, *more), 2, [f"there is no '{word}'; heat maps need no word: deberta attention MODEL"])
        check_message(bench.run("attention", "head_view", DEMO), 2, ["here it is lines: deberta attention lines MODEL"])
        os.symlink(DEMO, bench.path("heatmap"))
        bench.fine("attention", "heatmap", "--text", "a", "-o", "a.svg")
    check_message(bench.run("bench", "latency", TINY), 2, ["a sweep needs no word: deberta bench MODEL"])
    check_message(bench.run("finetune", "ner", DEMO), 2, ["here it is token: deberta finetune token MODEL"])
    check_message(bench.run("train", "electra", DEMO), 2, ["here it is rtd: deberta train rtd MODEL"])


def test_a_text_that_is_missing(bench):
    """Standard input is named, and `-t TEXT` is understood as what it is meant to be."""
    for command in ("classify", "tokenize", "fill-mask", "tag", "detect"):
        check_message(bench.run(command, DEMO), 2, ["no text: give --text or --file (- is standard input)"])
    check_message(bench.run("encode", DEMO, "-o", "a.npy"), 2, ["--file (- is standard input)"])
    check_message(bench.run("answer", DEMO), 2, ["no text: give --question or --file (- is standard input)"])
    bench.fine("tokenize", DEMO, "--file", "-", stdin=b"a new store\n")
    check_message(bench.run("classify", DEMO, "-t", "my sentence"), 2, ["--threads: expected a whole number, found 'my sentence'; a text is given with --text"])
    result = bench.run("classify", DEMO, "--text", "a", "-t", "-1")
    check("a text is given" not in result.err, result.err)


def test_one_dash(bench):
    """A long name behind one dash would be a letter with its value."""
    for given, meant in (("-text", "--text"), ("-threads", "--threads"), ("-out", "--out"), ("-help", "--help"), ("-file=x", "--file")):
        name = given.split("=")[0]
        check_message(bench.run("classify", DEMO, given, "a"), 2, [f"unknown option '{name}'; did you mean -{name}?"])
    bench.fine("tokenize", DEMO, "--text", "a", "-ox.txt", "-q")
    equal(os.path.exists(bench.path("x.txt")), True, "a value behind its letter")


def test_a_new_model(bench):
    """A folder that has only a configuration is refused with the option that begins a new model from it."""
    bench.fine("train", "tokenizer", "--file", bench.write("c.txt", "the old house by the sea\n" * 30), "--vocabulary", "20", "--depth", "1", "--width", "16",
               "--head-count", "1", "-o", "new")
    words = ("--file", "c.txt", "--steps", "1", "--sequence-tokens", "16", "-o", "out")
    check_message(bench.run("train", "mlm", "new", *words), 3, ["new: no weights; expected model.safetensors or pytorch_model.bin, or for a new model --config new in place of MODEL"])
    check(not os.path.exists(bench.path("out")), "a folder was made")
    bench.fine("train", "mlm", "--config", "new", *words)
    check_message(bench.run("train", "mlm", DEMO, *words), 3, ["out is not empty: it holds a run, which --resume goes on with"])


# ----------------------------------------------------------------------------------------------------------------------- width

def widest(text):
    return max(map(len, text.split("\n")))


def same_words(a, b):
    """Folding moves words, and adds the backslashes and hashes of commands, but loses none."""
    strip = [re.sub(r"[\\#]", " ", text).split() for text in (a, b)]
    equal(strip[0], strip[1], "words")


def test_help_at_a_width(bench):
    """COLUMNS counts, then the terminal; a file has the lines that a terminal of 112 columns or more has."""
    for page in [(), *(tuple(name.split()) for name in commands_of(bench))]:
        plain = bench.fine(*page, "--help").out
        for width in (60, 80, 100):
            folded = bench.fine(*page, "--help", env={"COLUMNS": str(width)}).out
            check(widest(folded) <= width, f"{page}, {width} columns: {widest(folded)}")
            same_words(plain, folded)
        wide = bench.fine(*page, "--help", env={"COLUMNS": "240"}).out
        check(widest(wide) <= 112, f"{page}: {widest(wide)}")
    for nonsense in ("", "0", "x", "-5", "80x"):
        equal(bench.fine("encode", "--help", env={"COLUMNS": nonsense}).out, bench.fine("encode", "--help").out, f"COLUMNS={nonsense}")
    check(widest(bench.fine("encode", "--help", env={"COLUMNS": "3"}).out) < 60, "narrower than the narrowest")


def test_folded_commands(bench):
    """A folded example is still what a shell runs: its words are those of the example that is not folded."""
    for page in ("encode", "report", "verify", "fill-mask", "eval"):
        plain, folded = (re.split(r"\nexamples?:\n", bench.fine(page, "--help", env=env).out)[1] for env in ({}, {"COLUMNS": "50"}))
        commands = [[line for line in text.replace("\\\n", " ").split("\n") if line.startswith("  deberta ")] for text in (plain, folded)]
        split = [[subprocess.run(["sh", "-c", "deberta() { printf '<%s>' \"$@\"; }\n" + line.split("<")[0]], capture_output=True, text=True, check=True).stdout for line in lines]
                 for lines in commands]
        equal(split[1], split[0], page)
        check("\\\n" in folded, f"{page}: nothing was folded")


def test_help_on_a_terminal(bench):
    for width in (60, 90):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        process = bench.start("encode", "--help", stdout=theirs)
        os.close(theirs)
        text = b""
        try:
            while True:
                part = os.read(ours, 65536)
                if not part:
                    break
                text += part
        except OSError:  # the terminal's other end is closed
            pass
        os.close(ours)
        equal(process.wait(), 0)
        shown = text.decode().replace("\r", "")
        contains(shown, "usage: deberta encode")
        check(width - 12 < widest(shown) <= width, f"{width} columns: {widest(shown)}")
        equal(shown, bench.fine("encode", "--help", env={"COLUMNS": str(width)}).out, "COLUMNS and a terminal of that width")
