"""--latex: captions that any LaTeX sets, figures that fit their column and page. SPDX-License-Identifier: MIT"""
import pathlib
import re

from helpers import DEMO, needs_figures, pdf_page

REQUIRES = (needs_figures,)

SENTENCE = "When the store opened, the old captain had already resigned."
PAIR = ("--text", "When the store opened", "--text", "When the store closed")
TWO_HEADS, ONE_HEAD = ("--layers", "2", "--heads", "0,1"), ("--layers", "2", "--heads", "0")
# Each kind with its arguments, and what its caption says in math.
KINDS = {
    "components": (("--text", SENTENCE, *TWO_HEADS), r"(scaled by $1/\sqrt{3d}$)"), "grid": (("--text", SENTENCE), ""), "mean": (("--text", SENTENCE), ""),
    "rollout": (("--text", SENTENCE), ""), "shares": (("--text", SENTENCE), ""), "entropy": (("--text", SENTENCE), ""),
    "distance": (("--text", SENTENCE), ""), "delta": (("--text", SENTENCE, *TWO_HEADS), r"$\Delta p$:"),
    "difference": ((*PAIR, *TWO_HEADS), ""), "query": (("--text", SENTENCE, *ONE_HEAD, "--query", "store"), ""),
    "lines": (("--text", SENTENCE, *ONE_HEAD, "--query", "store"), ""),
    "value-weighted": (("--text", SENTENCE, *TWO_HEADS), r"$\alpha _{ij}$ $\Vert W_{o}$ $v_{j}\Vert $,"),
    "four-types": (("--text", SENTENCE, *TWO_HEADS), r"$PQ[\delta (i,j)]$ $\cdot $ $PK[\delta (i,j)]$,"),
    "kernel": ((*PAIR, *ONE_HEAD), ""), "embeddings": (("--text", SENTENCE), r"$H[L-1]$."), "error": (("--text", SENTENCE), r"\textbar{}float32 $-$ float64\textbar{}"),
    "trace": (("--text", "the boys near the store [MASK] here", "--corrupted", "the boy near the store [MASK] here", "--answer", "were,was"), ""),
    "attribute": (("--text", "The old sailor told the boys a [MASK] about the sea.", "--answer", "story"), "Shaded: attribution to words. Bars: attribution to distances"),
}
WIDTHS = ("85", "174")


def draw_all(bench, kinds=None, widths=WIDTHS):
    """Every kind at every width: the names of the .tex files, and what was said of them."""
    return {f"{kind}-{width}": bench.fine(*(("attribute",) if kind == "attribute" else ("attention", kind)), DEMO, *KINDS[kind][0], "--width-mm", width, "-o", f"{kind}-{width}.pdf",
                                          "--latex", f"{kind}-{width}.tex").err
            for kind in kinds or KINDS for width in widths}


def test_captions(bench):
    """Symbols of the program are math, so that no character is left that pdflatex does not know; the environment follows the true width."""
    assert set(KINDS) == {"attribute"} | {line.split()[0] for line in bench.fine("attention", "list").out.splitlines()}, "every kind"
    said = draw_all(bench, widths=("85",))
    said.update(draw_all(bench, ("grid", "rollout", "components"), ("174",)))
    for name in said:
        text = pathlib.Path(f"{name}.tex").read_text(encoding="utf-8")
        kind = name.rsplit("-", 1)[0]
        assert text.translate(dict.fromkeys(range(0x2018, 0x201E))).isascii(), f"{name}: {[c for c in text if ord(c) > 127]}"  # quotes are known
        assert KINDS[kind][1] in text and "sqrt(" not in text, f"{name}: {text}"
        width = pdf_page(f"{name}.pdf")[0] / 72 * 25.4
        wide = "figure*" if width > 90 else "figure"
        assert f"\\begin{{{wide}}}" in text and f"\\end{{{wide}}}" in text, f"{name} is {width} mm wide: {text}"
        asked = float(re.search(r"width=\\ifdim([\d.]+)mm>\\linewidth\\linewidth\\else\1mm\\fi", text)[1])
        assert abs(asked - width) < 0.2, f"{name}: {asked} for {width} mm"
        lines = int(re.search(r"totalheight=\\dimexpr\\textheight-(\d+)\\baselineskip\\relax,keepaspectratio", text)[1])
        too_high = pdf_page(f"{name}.pdf")[1] / 72 * 25.4 + lines * 12 / 72 * 25.4 > 193
        assert (f"{name}.tex: with its caption the figure is higher than a page" in said[name]) == too_high, f"{name}: {said[name]}"


def test_names_of_figures(bench):
    """A name that \\includegraphics cannot take is refused before anything is written; a name beside it is taken."""
    for sign in '%#{}"\\':
        done = bench.run("attention", DEMO, "--text", SENTENCE, "-o", f"a{sign}b.pdf", "--latex", "n.tex")
        assert done.code == 2 and f"cannot take the '{sign}'" in done.err, f"{sign}: {done.code}, {done.err}"
        assert not list(pathlib.Path(".").glob("*.pdf")) and not pathlib.Path("n.tex").exists(), sign
    bench.fine("attention", DEMO, "--text", SENTENCE, "-o", "a%b.png", "-o", "a b_~&$^.pdf", "--latex", "n.tex")
    assert "{a b_~&$^.pdf}" in pathlib.Path("n.tex").read_text(encoding="utf-8")


def test_words_of_formulas(bench):
    """Drawn from what figures say: a formula is one piece of math, a symbol in a sentence its own, Greek words stay text."""
    for text, expected in (("α", r"$\alpha $"), ("x αᵢⱼ, y", r"x $\alpha _{ij}$, y"), ("2⁻²³", "$2^{-23}$"), ("(see √d)", r"(see $\sqrt{d}$)"),
                           ("naïve²", "naïve$^{2}$"), ("a − b", "a $-$ b"), ("λόγος", "λόγος"), ("50% of $5 & #1_a {b} ~ ^ \\", r"50\% of \$5 \& \#1\_a \{b\} \textasciitilde{} \textasciicircum{} \textbackslash{}"),
                           ("<a>|\"b\" don't -- ?`", r"\textless{}a\textgreater{}\textbar{}\texttt{\char34}b\texttt{\char34} don't -\kern0pt{}- ?\kern0pt{}`"),
                           ("‖x‖ ≤ 1", r"$\Vert x\Vert $ $\leq $ 1"), ("τέλος δ", r"τέλος $\delta $"), ("well−known", "well$-$known"),
                           ("1.5e−06 %", r"$1.5\times 10^{-6}$ \%"), ("−2e+10", r"$-2\times 10^{10}$"), ("e−5", "$e-5$"), ("3e−0", r"$3\times 10^{-0}$")):
        bench.fine("attention", DEMO, "--text", text, "-o", "w.pdf", "--latex", "w.tex", "-q")
        found = re.search(r"text: ``(.*?)''", pathlib.Path("w.tex").read_text(encoding="utf-8"), re.S)[1]
        assert found == expected, f"{text}: {found}"


def test_foreign_scripts(bench):
    """Letters that pdflatex has not are named, in the file and on stderr; those that it has are not."""
    for text, names in (("Привет", "Cyrillic"), ("你好 store", "Chinese characters"), ("λόγος 🙂", "Greek, emoji"), ("שלום", "Hebrew"),
                        ("café — “naïve” straße Łódź…", ""), ("a new store", "")):
        said = bench.fine("attention", DEMO, "--text", text, "-o", "f.pdf", "--latex", "f.tex").err
        file = pathlib.Path("f.tex").read_text(encoding="utf-8")
        assert (f"f.tex has {names}, which pdflatex cannot set" in said) == bool(names), f"{text}: {said}"
        assert (f"% Needs LuaLaTeX and a font with: {names} (" in file) == bool(names), f"{text}: {file}"


def test_attributions(bench):
    """The file names model, text and second segment; what cannot be included or has another suffix is refused, and a list of texts."""
    bench.fine("attribute", DEMO, "--text", "a new store", "--pair", "opened", "--width-mm", "85", "-o", "a.png", "--latex", "a.tex")
    text = pathlib.Path("a.tex").read_text(encoding="utf-8")
    for expected in (r"Model: \texttt{", "(SHA-256 ", "text: ``a new store'' and ``opened''. Integrated gradients", r"\includegraphics[width=", "{a.png}", r"\label{fig:a}", "deberta attribute "):
        assert expected in text, f"{expected}: {text}"
    for arguments, expected in ((("-o", "a.svg", "--latex", "b.tex"), "--latex includes a .pdf or a .png"), (("-o", "a.pdf", "--latex", "b.txt"), "expected .tex"), (("-o", "a#b.pdf", "--latex", "b.tex"), "cannot take the '#'"),
                                (("-o", "b.pdf", "--text", "another", "--latex", "b.tex"), "a figure shows one text"), (("--latex", "b.tex"), "--out")):
        done = bench.run("attribute", DEMO, "--text", "a new store", *arguments)
        said = done.err
        assert done.code == 2 and expected in said and not pathlib.Path("b.tex").exists(), f"{arguments}: {done.code}, {said}"
