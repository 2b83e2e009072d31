#!/usr/bin/env python3
"""A program that was built with -Dtraining=disabled: what trains refuses with a sentence, the rest works.

    tests/install/without_training.py PROGRAM

The last line is `N passed, N failed`. SPDX-License-Identifier: MIT
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEMO = os.path.join(ROOT, "models", "demo")
SENTENCE = "no training (it was configured with -Dtraining=disabled)"
REFUSED = [["train", "mlm", DEMO, "--file", "text.txt", "--steps", "2", "--out", "new"], ["train", "rtd", DEMO, "--file", "text.txt", "--steps", "2", "--out", "new"],
           ["finetune", "sequence", DEMO, "--examples", "rows.tsv", "--new-head", "--steps", "2", "--out", "new"],
           ["train", "tokenizer", "--file", "text.txt", "--vocabulary", "20", "--out", "new"], ["bench", "train", DEMO, "--reps", "1"]]
WORKS = [["info", DEMO], ["fill-mask", DEMO, "--text", "a new [MASK] opened"], ["encode", DEMO, "--text", "a new store", "--out", "states.npy"], ["bench", DEMO, "-n", "4", "--reps", "1", "--no-peak"],
         ["verify", DEMO, "-n", "8"], ["train", "mlm", "--help"], ["eval", "--help"]]


def run(program, words, folder):
    return subprocess.run([program, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def main():
    program, failed = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("text.txt", "a new store\n" * 9), ("rows.tsv", "a\ta new store\nb\tan old mall\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        for words in REFUSED + WORKS:
            done, refused = run(program, words, folder), words in REFUSED
            fine = done.returncode != 0 and SENTENCE in done.stdout and not os.path.exists(os.path.join(folder, "new")) if refused else done.returncode == 0
            failed += not fine
            if not fine:
                print(f"{' '.join(words)}: status {done.returncode}, expected {'a refusal' if refused else 'success'}\n{done.stdout[-500:]}")
    print(f"{len(REFUSED + WORKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
