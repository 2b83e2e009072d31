#!/usr/bin/env python3
"""Labelled examples for the heads of models/discriminator, by rules, from prose with quotation marks.

    make_examples.py TEXT... --tags OUT.tsv --questions OUT.jsonl [--names TEXT...]

A TEXT has a paragraph a line. Tags: the quotation marks of a paragraph are taken off; what stood between them is SPEECH, and who
speaks ("said the captain") is SPEAKER. Questions: a sentence "NAME did so and so" becomes "Who did so and so?", the answer is the
name, the context are the paragraphs around it; somebody else must be named there as well. Who counts as a person is learned from
the texts: whoever speaks in them, or in those of --names.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import json
import random
import re

SPEAKS = ("said|asked|cried|replied|answered|exclaimed|returned|inquired|enquired|observed|remarked|added|whispered|shouted|continued|repeated|"
          "muttered|murmured|demanded|rejoined|called|screamed|growled|laughed|sighed|resumed|suggested|responded|ejaculated|interrupted|faltered")
PAST = ("was|had|did|said|went|came|saw|took|gave|made|got|found|knew|thought|told|left|kept|began|felt|heard|held|ran|stood|sat|spoke|"
        "brought|caught|fell|threw|drew|rose|put|shook|let|led|lay|met|read|rode|sent|set|shut|sang|slept|struck|swore|wore|won|wrote|woke|"
        "bent|bit|blew|broke|bought|built|could|would|might|must|should|drank|drove|ate|flew|forgot|grew|hid|hung|hurt|laid|leant|leaned|lost|"
        "paid|rang|sprang|stole|stuck|taught|tore|understood|wept|became|chose|cut|dug|fought|hit|sank|shot|spent|spread|swam|swung|\\w\\w+ed")
TITLE = r"(?:(?:Mr|Mrs|Dr|St)\. |(?:Miss|Captain|Doctor|Sir|Lady|Lord|Madame|Uncle|Aunt|Master|Mistress|Colonel|Major|Professor|Squire|Mother|Father) )"
WORD = r"[A-Z][a-z]+(?:[-'’](?!s\b)[A-Za-z]+)*"
NAME = rf"(?:{TITLE}?{WORD}(?: {WORD}){{0,2}})"
COMMON = r"(?:(?:[Tt]he|[Mm]y|[Hh]is|[Hh]er|[Oo]ur|[Tt]heir|[Aa]n?)(?: [a-z]+(?:-[a-z]+)?){1,3}?)"
PRONOUN = r"(?:I|he|she|we|they|you)"
AFTER = r"(?=[,.;:!?—]| and | with | in | to | as | at | when | from |$)"
# What follows a closing quotation mark, or what a paragraph has before an opening one.
ATTRIBUTION = re.compile(rf"\s*(?:(?:{SPEAKS}) (?P<after>{NAME}|{PRONOUN}\b|{COMMON}{AFTER})|(?P<before>{NAME}|{PRONOUN}|{COMMON}) (?:{SPEAKS})\b)")
BEFORE = "|".join(f"(?<={before} )" for before in ("[.!?;:,]", '[.!?][\"”]', "and", "but", "when", "as", "while", "that", "where", "until", "for", "if"))
CLAUSE = re.compile(rf"(?:^|{BEFORE})(?<!Mr\. )(?<!Dr\. )(?<!St\. )(?<!Mrs\. )(?P<who>{NAME}|{COMMON}) "
                    rf"(?P<did>(?:{PAST})\b(?: [\w'’-]+){{1,8}}?)(?=[.,;:!?—])")
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Dr\.)(?<!St\.)(?<!Mrs\.)([\"”’]?) ")
NOBODY = set("The But And Then When What Why How That This There Here They She He It If So As At In On Now For From With Yes No Not Oh Well Her His My Our "
             "Their You We Who Chapter After Before Once Where While All One Some Such Any Every God Heaven Both Each Nothing Something Nobody "
             "Everybody Even Only Still Perhaps I he she we they you it then there also now again here still who".split())
SOMEBODY = re.compile(f"{NAME}|{COMMON}")


def quotations(paragraph):
    """(the text without quotation marks, [begin, end) of each quotation in it), or None where they do not come in pairs."""
    text, spans, begin = "", [], None
    for character in paragraph:
        if character not in "“”\"":
            text += character
        elif (begin is None) != (character == "“" or (character == '"' and begin is None)):
            return None
        elif begin is None:
            begin = len(text)
        else:
            spans.append((begin, len(text)))
            begin = None
    return None if begin is not None or not spans else (text, spans)


def speakers(text, spans):
    """Spans of those who speak: named right after a quotation, outside of the next one."""
    for k, (_, end) in enumerate(spans):
        limit = spans[k + 1][0] if k + 1 < len(spans) else len(text)
        found = ATTRIBUTION.match(text[:limit], end)
        if found:
            yield found.span("after" if found["after"] else "before")


def head_of(name):
    """The word that says who it is: the last one."""
    return name.split()[-1]


def persons_of(paragraphs):
    """Words that say who speaks, each found twice: names, and nouns such as "captain"."""
    seen = collections.Counter()
    for paragraph in paragraphs:
        cut = quotations(paragraph)
        seen.update(head_of(cut[0][begin:end]) for begin, end in (speakers(*cut) if cut else ()))
    return {word for word, count in seen.items() if count > 1} - NOBODY


def tags_of(paragraph):
    """[(word, label)]"""
    cut = quotations(paragraph)
    if not cut:
        return []
    text, speech = cut
    labelled = [("SPEECH", span) for span in speech] + [("SPEAKER", span) for span in speakers(text, speech)]
    words, last = [], None
    for word in re.finditer(r"\S+", text):
        inside = next(((kind, span) for kind, span in labelled if span[0] <= word.start() < span[1]), None)
        words.append((word[0], "O" if not inside else ("I-" if inside == last else "B-") + inside[0]))
        last = inside
    return words if 6 <= len(words) <= 90 else []


def is_person(name, persons):
    return head_of(name) in persons and name.split()[0] not in NOBODY - {"The", "His", "Her", "My", "Our", "Their"}


def context_of(sentences, at, draw, most=70):
    """Numbers of the sentences around `at`, with at most so many words: a drawn share of them before it, the rest after."""
    first, last, words = at, at + 1, sentences[at].count(" ") + 1
    ahead = draw.randrange(0, most)
    while first > 0 and sentences[first - 1].count(" ") + 1 <= min(ahead, most - words):
        first -= 1
        ahead -= sentences[first].count(" ") + 1
        words += sentences[first].count(" ") + 1
    while last < len(sentences) and words + sentences[last].count(" ") + 1 <= most:
        words += sentences[last].count(" ") + 1
        last += 1
    return first, last


def questions_of(paragraphs, persons, draw):
    """One question of a clause whose subject is a person, where the context names another one."""
    sentences = [sentence for paragraph in paragraphs for sentence in SENTENCE_END.sub(r"\1\n", paragraph).split("\n")]
    for at, sentence in enumerate(sentences):
        for match in CLAUSE.finditer(sentence) if sentence.count(" ") < 60 else ():
            if not is_person(match["who"], persons):
                continue
            first, last = context_of(sentences, at, draw)
            context = " ".join(sentences[first:last])
            start = sum(len(one) + 1 for one in sentences[first:at]) + match.start("who")
            others = {head_of(m[0]) for m in SOMEBODY.finditer(context) if is_person(m[0], persons)} - {head_of(match["who"])}
            if others:
                yield json.dumps({"question": f"Who {match['did']}?", "context": context, "text": match["who"], "start": start}, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--names", nargs="*", default=[])
    parser.add_argument("--tags", required=True)
    parser.add_argument("--questions", required=True)
    parser.add_argument("--windows", type=int, default=1, help="contexts drawn for a question (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    def paragraphs_of(paths):
        found = []
        for path in paths:
            with open(path, encoding="utf-8") as file:
                found += [line for line in file.read().split("\n") if line]
        return found
    paragraphs, draw = paragraphs_of(options.texts), random.Random(options.seed)
    persons = persons_of(paragraphs + paragraphs_of(options.names))
    with open(options.tags, "w", encoding="utf-8") as file:
        for words in filter(None, map(tags_of, paragraphs)):
            file.write("".join(f"{word}\t{label}\n" for word, label in words) + "\n")
    with open(options.questions, "w", encoding="utf-8") as file:
        for question in dict.fromkeys(one for _ in range(options.windows) for one in questions_of(paragraphs, persons, draw)):
            file.write(question + "\n")


if __name__ == "__main__":
    main()
