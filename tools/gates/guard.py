#!/usr/bin/env python3
"""Ties the numbers of README and docs to what commands print; tools/reproduce.py also runs these commands.

    tools/gates/guard.py [PAGE...]    compares these pages, or all, with the committed outputs; exit 1 where a number differs

docs/studies/data/outputs/commands.tsv names every source: NAME, KIND, COMMAND. What the command printed is NAME.txt beside it.
KIND is "cheap" (run by --cheap), "long" (run without it), or "record": tables of times and of other engines whose files are gone,
copied from the page. A record shows that the page still states what it stated, and no more; it is counted apart.

docs/studies/data/ties.tsv ties sentences: PAGE, the words, terms. The words must stand in the page as they are there, and a number in
brackets must be what its term gives: "changes [85] of [7,283]". Terms that compare come behind those of the numbers and must hold, so that
"is worth more" is tied by [A/b/1] > [A/c/1]. In the page itself are comments that GitHub does not show:

    <!-- sources: NAME NAME -->                          at the top: tables are looked for in these outputs
    <!-- = [NAME/LABEL/3]; -[NAME/LABEL#2/1]; ? -->      at the end of a paragraph or a list item, or after a table

A table is right if one printed table has its header and all its lines, in this order, also where its numbers are whole or a comment ties them. Every other number with a decimal point needs a
term of the comment of its block, in the order of the text. [NAME/LABEL/3] is the third number of the line whose label is LABEL: the text before its
first number with a decimal point. #2 is the second such line. NAME may be a file of the repository; in a CSV file, [FILE/CELL CELL/TITLE] is the column
TITLE of the row that begins with these cells; [NAME/CELL CELL/TITLE] is the first number of that cell of a printed table, [NAME/CELL CELL#2/TITLE:3] the
third of the second table that has such a row and column.
Terms may be sums and products. "?" leaves a number untied, and it counts as such.

SPDX-License-Identifier: MIT
"""
import bisect
import difflib
import itertools
import re
import sys
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = "docs/studies/data/outputs"
TIES = "docs/studies/data/ties.tsv"
COMMENT = re.compile(r"<!--\s*=(.*?)-->", re.S)
SOURCES = re.compile(r"<!--\s*sources:(.*?)-->", re.S)
NUMBER = re.compile(r"(?:(?<![\w.)])[+\-−])?(?<![\w.,])\d[\d,]*\.\d+(?:e[+-]?\d+)?(?![\d.]*[\w])")
ANY_NUMBER = re.compile(r"(?<![\w.])[+\-−]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
# Names, not results: versions, identifiers of papers, benchmarks with a number in their name, shell code and addresses.
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+|arXiv[: ]\d+\.\d+|(?:SQuAD|version|PyTorch|transformers|Runtime|OpenVINO|Python|NumPy|oneDNN|GCC|gcc|Clang|clang|glibc|Linux|SLEEF|Section|section|C\+\+|Unicode|MKL|CUDA|tokenizers|Julia|[Ll]icen[cs]e|safetensors|QEMU|Bochs|Debian|Apache|meson|Meson) \**v?\d+\.\d+[\d.]*|\b\d+(?:\.\d+){2,}")
TIED = re.compile(r"\[([+\-−]?\d[\d,.]*)\]")
TERM = re.compile(r"\[([^\[\]]+)\]")


class Wrong(Exception):
    """A page states something else: line number, what it states, what was found, and the source."""

    def __init__(self, line, stated, found, source):
        super().__init__(stated)
        self.line, self.stated, self.found, self.source = line, stated, found, source


def plain(line):
    """A line with table bars and blanks normalised, so that the width of columns does not count."""
    return " ".join(line.replace("|", " | ").replace("**", "").replace("−", "-").split())


def value(number):
    return Decimal(number.replace(",", "").replace("−", "-"))


class Source:
    """What a command printed, or a committed file."""

    def __init__(self, name, text, command):
        self.name, self.command = name, command
        self.cells = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")] if name.endswith(".csv") else []
        self.lines = [plain(line) for line in text.splitlines()]
        self.tables = list(tables(self.lines))
        self.rows = {}
        for line in self.lines:
            label, numbers = self.split(line)
            if numbers:
                self.rows.setdefault(label, []).append(numbers)

    @staticmethod
    def split(line):
        first = re.search(r"[+-]?(?<![\w.])\d[\d,]*\.\d", line)
        cut = first.start() if first else len(line)
        if not first:  # only whole numbers: the first cell or the words before the first number are the label
            found = re.search(r"(?<=\| )[+-]?\d" if line.startswith("|") else r"(?<![\w.])\d", line[1:] if line.startswith("|") else line)
            cut = found.start() + line.startswith("|") if found else len(line)
        label = " ".join(re.sub(r"[|:\"/\[\];#]", " ", line[:cut]).split()).rstrip("( ")
        return label, [value(n) for n in ANY_NUMBER.findall(line[cut:])]

    def find(self, label, place):
        label, _, which = label.partition("#")
        if self.cells:
            return self.cell(" ".join(label.split()), place)
        if not place.isdigit():
            return self.table_cell(" ".join(label.split()), place, int(which or 1))
        place = int(place)
        rows = self.rows.get(" ".join(label.split()))
        if not rows or len(rows) < int(which or 1) or len(rows[int(which or 1) - 1]) < place:
            raise KeyError(f"no number {place} in a line '{label}' of {self.name}")
        return rows[int(which or 1) - 1][place - 1]

    def cell(self, label, column):
        """The number in a column of the one row that begins with these cells."""
        titles, *rows = self.cells
        rows = [row for row in rows if (" ".join(row) + " ").startswith(label + " ")]
        if len(rows) != 1 or column not in titles:
            raise KeyError(f"{len(rows)} rows '{label}' of {self.name}, column {column}")
        return value(rows[0][titles.index(column)])

    def table_cell(self, label, column, which):
        """A number of the cell in a column of the row that begins with these cells, in the which-th table that has both."""
        column, _, place = column.partition(":")
        found = []
        for _, (titles, *rows) in self.tables:
            titles = cells_of(titles)
            here = [cells for cells in map(cells_of, rows) if (" ".join(" ".join(cells).split()) + " ").startswith(label + " ")]
            if column in titles and here:
                found.append((titles, here))
        if len(found) < which or len(found[which - 1][1]) != 1:
            raise KeyError(f"{len(found)} tables of {self.name} have a column '{column}' and a row '{label}', which must be one row")
        titles, (cells,) = found[which - 1]
        return value(ANY_NUMBER.findall(cells[titles.index(column)])[int(place or 1) - 1])


def cells_of(row):
    """The cells of a row, without the signs that terms have for themselves."""
    return [" ".join(re.sub(r"[:/\[\];#]", " ", cell).split()) for cell in row.strip().strip("|").split("|")]


def tables(lines):
    """(number of the first line, lines) of every table."""
    begin = None
    for k, line in enumerate([*lines, ""]):
        if line.lstrip().startswith("|"):
            begin = k if begin is None else begin
        elif begin is not None:
            yield begin, [plain(one) for one in lines[begin:k]]
            begin = None


class Sources:
    def __init__(self, root=ROOT):
        self.root, self.known, self.used, self.recorded = root, {}, set(), 0
        rows = [line.split("\t") for line in (root / OUTPUTS / "commands.tsv").read_text().splitlines() if line and not line.startswith("#")]
        self.commands = {name: (kind, command) for name, kind, command in rows}

    def __getitem__(self, name):
        self.used.add(name)
        if name not in self.known:
            path = self.root / (f"{OUTPUTS}/{name}.txt" if name in self.commands else name)
            if not path.exists():
                raise KeyError(f"no source {name}")
            self.known[name] = Source(name, path.read_text(encoding="utf-8"), self.commands.get(name, ("", name))[1])
        return self.known[name]

    def evaluate(self, expression):
        """Value of an expression in terms [NAME/LABEL/PLACE]. A name may hold slashes, a label may not."""
        def put(match):
            name, label, place = match.group(1).rsplit("/", 2)
            return f"Decimal('{self[name].find(label, place)}')"
        text = TERM.sub(put, expression)
        numbers = re.sub(r"(?<![\w.'])(\d+(?:\.\d+)?)(?![\w.'])", r"Decimal('\1')", re.sub(r"Decimal\('[^']*'\)", lambda m: m.group(0), text))
        return eval(numbers, {"__builtins__": {}}, {"Decimal": Decimal, "abs": abs, "max": max, "min": min})


def blocks(text):
    """(first line, lines) of tables, paragraphs and list items; fenced and indented code is left out. A comment ends its block, after a blank line too."""
    lines, current, begin, fenced = text.splitlines(), [], 0, False

    def kind(line):
        return "table" if line.lstrip().startswith("|") else "text"
    for k, line in enumerate([*lines, ""]):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        if fenced or re.match(r"    \S", line) and not current:
            line = ""
        comment = line.lstrip().startswith("<!-- =")
        if current and not comment and (re.match(r"\s*([*-] |\d+\. |#)", line) or (line and kind(line) != kind(current[-1])) and not open_comment(current)):
            yield begin, current
            current = []
        if not line.strip() and current and not open_comment(current):
            following = next((other for other in lines[k:] if other.strip()), "")
            if not following.lstrip().startswith("<!-- =") or any("<!-- =" in one for one in current):
                yield begin, current
                current = []
            continue
        if line.strip():
            begin = begin if current else k
            current.append(line)


def open_comment(lines):
    text = "\n".join(lines)
    return text.count("<!--") > text.count("-->")


def section_numbers(text):
    """Numbers of a page's own headings, which its sentences refer to."""
    return set(re.findall(r"^#+ (\d+\.\d+)\b", text, re.M))


def stated_numbers(lines, begin, sections=()):
    """(line number, number) of the results in a block, without its comments, headings and names."""
    if lines[0].startswith("#"):
        return []
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m.group(0).count("\n"), "\n".join(lines), flags=re.S)
    text = NAMES.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    return [(begin + text[:m.start()].count("\n") + 1, m.group(0)) for m in NUMBER.finditer(text) if m.group(0) not in sections]


def agrees(stated, found):
    number, found = value(stated), Decimal(found)
    if "e" in stated:
        digits = len(stated.partition("e")[0].partition(".")[2])
        return float(f"{found:.{digits}e}") == float(number)
    digits = Decimal(1).scaleb(-len(stated.partition(".")[2]))
    return number in {found.quantize(digits, way) for way in (ROUND_HALF_UP, ROUND_HALF_DOWN)}


def printed_table(rows, sources):
    """The source that prints these lines, in this order, in one table with this header; None if none does."""
    for source in sources:
        for _, lines in source.tables:
            if rows[0] == lines[0]:
                rest = iter(lines)
                if all(row in rest for row in rows if not re.fullmatch(r"[|\s:-]+", row)):
                    return source
    return None


def nearest(rows, begin, sources):
    """The first line of a table that is not printed."""
    printed = {line for source in sources for line in source.lines}
    for k, row in enumerate(rows):
        if row not in printed and not re.fullmatch(r"[|\s:-]+", row):
            same = difflib.get_close_matches(row, sorted(line for line in printed if line.startswith("|")), 1)
            return Wrong(begin + k + 1, row, same[0] if same else "no such line", "; ".join(source.command for source in sources))
    return Wrong(begin + 1, rows[0], "these lines in another order or table", "; ".join(source.command for source in sources))


def must_agree(line, number, term, sources):
    found = sources.evaluate(term)
    if not agrees(number, found):
        raise Wrong(line, number, f"{found.normalize():f}", term)


def check_terms(begin, lines, sources, sections):
    """Compares the numbers of a block with its comment; returns how many are tied."""
    text = "\n".join(lines)
    terms = [" ".join(term.split()) for comment in COMMENT.findall(text) for term in comment.split(";") if term.strip()]
    numbers, tied = stated_numbers(lines, begin, sections), 0
    if len(terms) != len(numbers):
        raise Wrong(begin + 1, f"{len(numbers)} numbers", f"{len(terms)} terms in the comment", text[-60:])
    for (line, number), term in zip(numbers, terms):
        if term != "?":
            must_agree(line, number, term, sources)
            tied += 1
    return tied


def check_page(text, sources, page):
    """Yields (numbers, tied ones, Wrong or None) for every block of a page, and for its sentences in ties.tsv."""
    yield from check_ties(page, text, sources)
    yield from check_verdicts(text)
    yield from check_sentences(text, sources, [sources[name] for names in SOURCES.findall(text) for name in names.split()])
    own = [sources[name] for names in SOURCES.findall(text) for name in names.split()]
    sections = section_numbers(text)
    for begin, lines in blocks(text):
        numbers = stated_numbers(lines, begin, sections)
        commented = any("<!-- =" in line for line in lines)
        try:
            if commented:
                rows = [plain(line) for line in lines if line.lstrip().startswith("|")]
                if any({*rows[2:]} & {*table} for source in own for _, table in source.tables if rows) and not printed_table(rows, own):
                    raise nearest(rows, begin, own)
                yield len(numbers), check_terms(begin, lines, sources, sections), None
            elif lines[0].lstrip().startswith("|") and own:
                rows = [plain(line) for line in lines]
                known = any({*rows[:1], *rows[2:]} & {*table} for source in own for _, table in source.tables)
                source = printed_table(rows, own) if numbers or known else None
                if (numbers or known) and not source:
                    raise nearest(rows, begin, own)
                if source and sources.commands.get(source.name, ("",))[0] == "record":
                    sources.recorded += len(numbers)
                yield len(numbers), len(numbers), None
            else:
                yield len(numbers), 0, None
        except (KeyError, SyntaxError, ValueError, ArithmeticError, TypeError) as reason:
            yield len(numbers), 0, Wrong(begin + 1, lines[0][:60], f"a comment that cannot be read: {reason}", "")
        except Wrong as wrong:
            yield len(numbers), 0, wrong


def sentences(text):
    """Sentences with a number and four words or more, in lines of one blank between words."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"<!--.*?-->", "", text, flags=re.S)):
        for sentence in re.split(r"(?<=[.;]) ", plain(paragraph)):
            if re.search(r"\d", sentence) and len(sentence.split()) >= 4 and "|" not in sentence:
                yield sentence


def check_sentences(text, sources, own):
    """Yields as check_page for every sentence that a source prints in the same words: its numbers are the same as well."""
    masked = {}
    for source in own:
        for sentence in sentences("\n\n".join(source.lines)):
            masked.setdefault(re.sub(r"\d+", "#", sentence), []).append((sentence, source))
    for sentence in sentences(text):
        printed = masked.get(re.sub(r"\d+", "#", sentence), [])
        if printed and sentence not in [one for one, _ in printed]:
            yield 0, 0, Wrong(1, sentence, printed[0][0], printed[0][1].command)


def check_verdicts(text):
    """Yields as check_page for a table of verdicts: each numbered section has the verdict, in bold letters, under which the table lists it."""
    table = re.search(r"^\| verdict \|.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.M)
    if not table:
        return
    listed = {int(number): cells[0] for cells in map(cells_of, table[1].splitlines()) for number in re.findall(r"\d+", cells[1])}
    verdicts = "|".join(sorted(set(listed.values())))
    for number, section in re.findall(r"^## (\d+)\.(.*?)(?=^## |\Z)", text, re.M | re.S):
        found = re.findall(rf"\*\*({verdicts})\*\*", section, re.I)
        here = found[-1].lower() if found else "none"
        wrong = Wrong(text[:text.index(f"## {number}.")].count("\n") + 1, f"claim {number}: {here}", listed.pop(int(number), "none"), "the table of verdicts")
        yield 0, 0, None if here == wrong.found else wrong
    for number in listed:
        yield 0, 0, Wrong(1, f"claim {number}", "no section", "the table of verdicts")


def check_ties(page, text, sources):
    """Yields (numbers, tied ones, Wrong or None) for every sentence of the page that ties.tsv has."""
    flat, ends = " ".join(text.split()), list(itertools.accumulate(len(line.split()) for line in text.splitlines()))
    for row in (sources.root / TIES).read_text(encoding="utf-8").splitlines():
        if row.split("\t")[0] != page:
            continue
        _, words, terms = row.split("\t")
        terms = [term.strip() for term in terms.split(";")]
        numbers = TIED.findall(words)
        sentence = TIED.sub(r"\1", words)
        begin = bisect.bisect(ends, flat.count(" ", 0, flat.index(sentence))) if sentence in flat else None
        try:
            if begin is None:
                raise Wrong(1, "other words", sentence, TIES)
            if len(terms) < len(numbers):
                raise Wrong(begin + 1, f"{len(numbers)} numbers", f"{len(terms)} terms", TIES)
            for number, term in zip(numbers, terms):
                must_agree(begin + 1, number, term, sources)
            for term in terms[len(numbers):]:
                if sources.evaluate(term) is not True:
                    raise Wrong(begin + 1, sentence, "does not hold", term)
            yield 0, 0, None
        except (KeyError, SyntaxError, ValueError, ArithmeticError, TypeError, IndexError) as reason:
            yield 0, 0, Wrong((begin or 0) + 1, sentence, f"a term that cannot be read: {reason}", TIES)
        except Wrong as wrong:
            yield 0, 0, wrong


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def tell(names, sources, text_of=text_of):
    """Prints for each page how many of its numbers are tied, and what is wrong; returns (tied numbers, numbers, wrong ones)."""
    tied = total = faults = 0
    for page in names:
        here, there = 0, 0
        for count, known, wrong in check_page(text_of(page), sources, page):
            here, there = here + known, there + count
            if wrong:
                faults += 1
                print(f"{page}:{wrong.line}: stated {wrong.stated}; found {wrong.found}; source {wrong.source}")
        print(f"{here:5} of {there:5} numbers tied  {page}")
        tied, total = tied + here, total + there
    print(f"{tied:5} of {total:5} numbers with a decimal point tied to a source: {100 * tied / max(total, 1):.1f} %; of them {sources.recorded} to a record only")
    return tied, total, faults


def pages(root=ROOT):
    pages_of = [*(root / "docs").rglob("*.md"), *(root / "models").rglob("*.md")]
    return ["README.md", *sorted(str(path.relative_to(root)) for path in pages_of if "data" not in path.parts)]


def main(words):
    unknown = [word for word in words if word not in pages()]
    if unknown:
        print(f"guard.py: {unknown[0]} is no page of the project; expected README.md or a page of docs or models, seen from the top of the tree", file=sys.stderr)
        return 2
    tied, _, faults = tell(words or pages(), Sources())
    print(f"{tied} passed, {faults} failed")
    return 1 if faults or not tied else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
