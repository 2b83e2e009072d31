"""Changes of one token of the library, and how many of them live in one program: each is a choice that a number makes at run time.

A changed expression stands beside the one that was, `(MUTANT(17) ? (a - b) : (a + b))`; a statement that is dropped in an `if`. The
variable DEBERTA_MUTANT of the environment has the number of the one that is real; none is without it. DEBERTA_MUTANTS_REACHED names a
file in which each mutant has a byte, set by any program that comes to its place.

SPDX-License-Identifier: MIT
"""
import collections
import functools
import os
import re

OPERATORS = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
             "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["*"], "+=": ["-="], "-=": ["+="], "++": ["--"], "<<": [">>"], ">>": ["<<"],
             "&": ["|"], "|": ["&"], "!": [""]}
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*"""
                   r"""|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S|\n""", re.S)
STATEMENT = re.compile(r"^\s+(?!return\b|else\b|break\b|continue\b|goto\b|case\b|for\b|if\b|while\b|do\b|switch\b|(?:const |static |struct |unsigned )*[a-z_]\w*(?: |\s*\*)+[a-z_]\w*(?:\[.*\])*(?: =|;|,))"
                       r"[a-zA-Z_*(+-][^{}]*;\s*(?:/\*.*\*/)?$")
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
BEFORE = {";", ",", "?", ":", "return", "else", "do", "case"}  # what an expression cannot contain to its left
HEADER = """/* A mutant is the number in DEBERTA_MUTANT (tools/mutation.py). */
#ifndef MUTANT
extern volatile int mutant_of_this_run;
extern volatile unsigned char *mutants_reached;
#define MUTANT(number) (mutants_reached[number] = 1, mutant_of_this_run == (number))
#endif
"""
SELECTION = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MUTANTS = 1 << 16 };
static unsigned char reached_here[MUTANTS];
volatile int mutant_of_this_run;
volatile unsigned char *mutants_reached = reached_here;
__attribute__((constructor(101))) static void choose_mutant(void)
{
    const char *number = getenv("DEBERTA_MUTANT"), *path = getenv("DEBERTA_MUTANTS_REACHED");
    if (number) mutant_of_this_run = atoi(number);
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *bytes = mmap(NULL, MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED) mutants_reached = bytes;
    close(file);
}
"""
MOST = 1 << 16

# line and column: of the token, from 1 and from 0. old: the token; or a whole statement, and new is ";".
Mutant = collections.namedtuple("Mutant", "file line column old new")


class NoMutant(Exception):
    """It cannot be written as a choice at run time."""


def changes_of_line(line):
    """[(column, old, new)]: every change of one token in it; a dropped statement is a change of the whole line."""
    found, before = [], "("
    for match in TOKEN.finditer(line):
        token, at = match.group(), match.start()
        spaced = line[at - 1:at] == " " and line[match.end():match.end() + 1] == " "
        if token in OPERATORS:
            binary = spaced or token in ("++", "!")
            # A star and an ampersand are pointers more often than not; where clang-format puts blanks on both sides they are not.
            found += [(at, token, new) for new in OPERATORS[token]] if binary and not (token == "!" and before == "#") else []
        elif re.fullmatch(r"\d+[uUlL]*", token):
            number, suffix = re.fullmatch(r"(\d+)([uUlL]*)", token).groups()
            found.append((at, token, str(int(number) + 1) + suffix))
            if int(number) > 0:
                found.append((at, token, str(int(number) - 1) + suffix))
        elif token in ("true", "false"):
            found.append((at, token, "false" if token == "true" else "true"))
        before = token
    if STATEMENT.match(line) and not re.match(r"\s+(?:free|\w+_free)\(", line):  # leaks are the sanitizers' to notice
        found.append((len(line) - len(line.lstrip()), line.strip(), ";"))
    return found


def lines_with_code(text):
    """[number] of the lines inside functions that hold code and can be changed."""
    found, depth, continued = [], 0, False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if directive or line.lstrip().startswith(("*", "/*", "//", "_Static_assert")):
            continue
        if depth > 0 and not re.match(r"\s*(?:static const|enum)\b", line) and changes_of_line(line):
            found.append(number)
        # Functions begin with a brace in the first column, or hold a whole body in a line; tables and types do not.
        if re.match(r"\{", line):
            depth = 1
        elif re.match(r"\}", line):
            depth = 0
    return found


# ------------------------------------------------------------------------------------------------------------- one program

class Source:
    """The tokens of a file that are code: (begin, end, text)."""

    def __init__(self, text):
        self.text, self.tokens = text, []
        for match in TOKEN.finditer(text):
            token = match.group()
            if token != "\n" and not token.startswith(("/*", "//")):
                self.tokens.append((match.start(), match.end(), token))
        self.at = {begin: index for index, (begin, _, _) in enumerate(self.tokens)}
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def word(self, index):
        return self.tokens[index][2] if 0 <= index < len(self.tokens) else ";"

    def partner(self, index, step):
        """Of a bracket."""
        pairs = OPENING if step > 0 else CLOSING
        depth, own = 0, self.word(index)
        while 0 <= index < len(self.tokens):
            word = self.word(index)
            depth += (word == own) - (word == pairs[own])
            if depth == 0:
                return index
            index += step
        raise NoMutant("a bracket without a partner")

    def expression(self, index):
        """First and last token of the widest expression around a token; it holds no assignment, unless the token is one."""
        first = last = index
        assigns = self.word(index) in ASSIGNMENTS
        while True:
            word = self.word(first - 1)
            if word in OPENING or word in BEFORE or word == "}" or (word in ASSIGNMENTS and not assigns):
                break
            if word in (")", "]"):
                start = self.partner(first - 1, -1)
                if self.word(start - 1) in ("if", "for", "while", "switch"):
                    break
                first = start
            else:
                first -= 1
        while True:
            word = self.word(last + 1)
            if word in CLOSING or word in (";", ",", "?", ":"):
                break
            last = self.partner(last + 1, 1) if word in OPENING else last + 1
        return first, last

    def place(self, mutant):
        """(first token, last token, index of the token) of what stands for the mutant."""
        begin = self.starts[mutant.line - 1] + mutant.column
        index = self.at.get(begin)
        if index is None:
            raise NoMutant("not code")
        if mutant.new == ";":
            return (*self.statement(index, begin + len(mutant.old)), None)
        if self.word(index) != mutant.old:
            raise NoMutant("another token")
        if mutant.old[0].isdigit() or mutant.old in ("true", "false"):
            return index, index, index
        return (*self.expression(index), index)

    def statement(self, first, end):
        last = max(index for index in range(first, len(self.tokens)) if self.tokens[index][1] <= end)
        words = [self.word(index) for index in range(first, last + 1)]
        if self.word(first - 1) not in (";", "{", "}", ")", "else", ":") or words[-1] != ";" or words.count(";") != 1:
            raise NoMutant("not a statement")
        if any(words.count(a) != words.count(b) for a, b in OPENING.items()):
            raise NoMutant("not a whole statement")
        return first, last

    def spell(self, first, last, index=None, new=""):
        """The tokens in one line without comments, one of them another; so the lines of the file keep their numbers."""
        text, end = "", self.tokens[first][0]
        for number in range(first, last + 1):
            begin, after, word = self.tokens[number]
            gap = self.text[end:begin]
            if "#" in gap:
                raise NoMutant("a directive inside")
            text += (" " if gap else "") + (new if number == index else word)
            end = after
        return text

    def with_choices(self, mutants):
        """The whole text with all of them, {number: mutant}."""
        groups = collections.defaultdict(list)
        for number, mutant in mutants.items():
            first, last, index = self.place(mutant)
            groups[(first, last)].append((number, mutant, index))
        order = sorted(groups, key=lambda span: (span[0], -span[1]))
        inside = {span: [] for span in order}
        top, stack = [], []
        for span in order:
            while stack and stack[-1][1] < span[0]:
                stack.pop()
            if stack and span[1] > stack[-1][1]:
                raise NoMutant("two expressions that overlap")
            (inside[stack[-1]] if stack else top).append(span)
            stack.append(span)
        return self._emit(0, len(self.text), top, groups, inside)

    def _emit(self, begin, end, spans, groups, inside):
        text = ""
        for first, last in spans:
            start, after = self.tokens[first][0], self.tokens[last][1]
            kept = self._emit(start, after, inside[(first, last)], groups, inside)
            rows = groups[(first, last)]
            if rows[0][2] is None:
                choice = "{ if (!(" + " || ".join(f"MUTANT({number})" for number, _, _ in rows) + f")) {{ {kept} }} }}"
            else:
                choice = "".join(f"MUTANT({number}) ? ({self.spell(first, last, index, mutant.new)}) : " for number, mutant, index in rows)
                choice = f"({choice}({kept}))"
            text += self.text[begin:start] + choice
            begin = after
        return text + self.text[begin:end]


@functools.lru_cache(None)
def source_of(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return Source(file.read())


def program_text(root, name, mutants):
    """What the file becomes: {number: mutant} are its own."""
    return HEADER + "#line 1\n" + source_of(root, name).with_choices(mutants)


def changed_text(root, mutant):
    """The file as if the mutant had been typed."""
    source = source_of(root, mutant.file)
    begin = source.starts[mutant.line - 1] + mutant.column
    assert source.text[begin:begin + len(mutant.old)] == mutant.old
    return source.text[:begin] + mutant.new + source.text[begin + len(mutant.old):]


def draw(rng, root, places):
    """One place, and one of its changes. places: [(file, line)]"""
    name, number = rng.choice(places)
    return Mutant(name, number, *rng.choice(changes_of_line(source_of(root, name).text.split("\n")[number - 1])))
