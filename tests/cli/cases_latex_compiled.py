"""What --latex writes, compiled with pdflatex and LuaLaTeX where they are installed. SPDX-License-Identifier: MIT"""
import pathlib
import re
import shutil
import subprocess
from unittest import SkipTest

from cases_latex import draw_all
from helpers import DEMO, needs_figures, needs_speed

REQUIRES = (needs_figures, needs_speed)


def latex_of(program):
    if not shutil.which(program):
        raise SkipTest(f"{program} is not installed (Debian: texlive-latex-base, texlive-luatex)")
    return program


def compiled(program, name, options=""):
    """The log of a document that has only the class and graphicx."""
    pathlib.Path("document.tex").write_text(f"\\documentclass[{options}]{{article}}\\usepackage{{graphicx}}\\begin{{document}}\\input{{{name}}}\\end{{document}}\n",
                                            encoding="utf-8")
    done = subprocess.run([program, "-interaction=nonstopmode", "-halt-on-error", "document.tex"], capture_output=True, text=True, errors="replace", timeout=120)
    log = pathlib.Path("document.log").read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, f"{program}, {name}: {log[-1500:]}"
    return log


def compiles_without_complaint(bench, program):
    latex_of(program)
    for name in draw_all(bench):
        for options in ("", "twocolumn,a4paper"):
            log = compiled(program, name, options)
            wrong = [line for line in log.splitlines() if "Missing character" in line or "Float too large" in line or line.startswith("Overfull \\hbox")
                     and float(re.search(r"\(([\d.]+)pt", line)[1]) > 10]  # a long name of a file may stick out of a caption by less
            assert not wrong, f"{program}, {name}, {options}: {wrong}"


def test_pdflatex_compiles_every_kind(bench):
    compiles_without_complaint(bench, "pdflatex")


def test_lualatex_compiles_every_kind(bench):
    compiles_without_complaint(bench, "lualatex")


def test_punctuation_is_itself(bench):
    """Every character of ASCII that is neither letter nor digit, alone and twice, in the page as it was in the text. A quote may be curled."""
    marks = "".join(c for c in map(chr, range(33, 127)) if not c.isalnum())
    text = " ".join(f"x{c}x{c}{c}" for c in marks) + " x?`x!`"
    bench.fine("attribute", DEMO, "--text", text, "--steps", "4", "-o", "f.pdf", "--latex", "f.tex", "-q")
    if not shutil.which("pdftotext"):
        raise SkipTest("pdftotext is not installed (Debian: poppler-utils)")
    for program, encoding in (("pdflatex", ""), ("pdflatex", "\\usepackage[T1]{fontenc}"), ("lualatex", "")):
        latex_of(program)
        caption = pathlib.Path("f.tex").read_text(encoding="utf-8").split("text: ``")[1].split("''. Integrated")[0]
        pathlib.Path("document.tex").write_text(f"\\documentclass{{article}}{encoding}\\pagestyle{{empty}}\\begin{{document}}\\raggedright {caption}\\end{{document}}\n", encoding="utf-8")
        done = subprocess.run([program, "-interaction=nonstopmode", "-halt-on-error", "document.tex"], capture_output=True, text=True, errors="replace", timeout=120)
        assert done.returncode == 0, f"{program} {encoding}: {done.stdout[-1500:]}"
        shown = subprocess.run(["pdftotext", "-raw", "document.pdf", "-"], capture_output=True, text=True, check=True).stdout
        shown = "".join(shown.split()).translate(str.maketrans("\u2018\u2019\u02c6\u02dc", "`'^~"))
        if not encoding and program == "pdflatex":
            shown = shown.replace("xxx`", "x_x__x`")  # OT1 has a rule in place of underscores
        assert shown == text.replace(" ", ""), f"{program} {encoding}:\n{text}\n{shown}"


def test_lualatex_sets_foreign_scripts_with_a_font(bench):
    """What the note says is true: pdflatex refuses it, LuaLaTeX does not."""
    latex_of("lualatex")
    bench.fine("attention", DEMO, "--text", "Привет", "-o", "f.pdf", "--latex", "f.tex", "-q")
    compiled("lualatex", "f")
    pathlib.Path("document.tex").write_text("\\documentclass{article}\\usepackage{graphicx}\\begin{document}\\input{f}\\end{document}\n", encoding="utf-8")
    assert subprocess.run([latex_of("pdflatex"), "-interaction=nonstopmode", "-halt-on-error", "document.tex"], capture_output=True, timeout=120).returncode == 1
