#!/usr/bin/env python3
"""Questions with answers for models/answers: passages of a small grammar whose words are a book's, and sentences of the book itself.

    make_questions.py TEXT... --out OUT.jsonl [--passages 3000] [--share 0.25] [--seed 1]

A TEXT has a paragraph a line. Who acts, on what and where is counted in the texts ("the captain", "opened the door", "ran into the
garden"), so that drawn sentences have common words in common company. A passage has two to six facts, often of the same verb or the
same thing, among them sometimes a sentence of the book; each question has one answer there. --share of the passages are sentences of
the book, asked about by rule. An object a line: question, context, text, start, the number of
its passage, and what that is of.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import json
import random
import re
import sys

SPEAKS = "said|asked|cried|replied|answered|exclaimed|returned|whispered|shouted|muttered"
IRREGULAR = dict(pair.split(":") for pair in """took:take saw:see found:find held:hold left:leave made:make heard:hear read:read broke:break built:build
    brought:bring bought:buy caught:catch chose:choose cut:cut drew:draw drank:drink drove:drive ate:eat felt:feel forgot:forget gave:give got:get hid:hide
    hit:hit kept:keep knew:know laid:lay led:lead lost:lose met:meet paid:pay rang:ring rode:ride sang:sing sold:sell sent:send set:set shook:shake shut:shut
    stole:steal struck:strike swept:sweep threw:throw told:tell tore:tear wore:wear won:win wrote:write went:go came:come ran:run stood:stand
    sat:sit fell:fall slept:sleep spoke:speak rose:rise lay:lie wept:weep flew:fly swam:swim""".split())
GIVEN = dict(gave="give", brought="bring", handed="hand", showed="show", sent="send", offered="offer", carried="carry", sold="sell")
PLACES = "in|into|on|at|to|under|behind|near|from|through|beside|across|over|up|down"
NOT_NOUNS = set("""other others same first last next more most one two three whole old young little great first own new good poor very rest end way
    time times day days moment fact idea point matter case part side reason result effect sort kind course world thing things man's subject question truth
    next best worst latter former two few many midst middle back front top bottom contrary presence sense use rate least second third hope""".split())
NOBODY = set("""The But And Then When What Why How That This There Here They She He It If So As At In On Now For From With Yes No Not Oh Well Her His My Our Their
    You We Who Chapter After Before Once Where While All One Some Such Any Every God Heaven Both Each Nothing Something Nobody Everybody Even Only Still
    Perhaps Ah Which Whom Did Do Is Are Was Mr Mrs Miss Sir Lady Lord Dr Doctor Captain Colonel General Major Lieutenant Judge Professor Squire Master Madame
    Monsieur Aunt Uncle Mother Father Brother Sister King Queen Prince Princess Saint Santa Old""".split())
TITLES = ("", "", "", "", "", "Mr. ", "Mrs. ", "Miss ", "Captain ", "old ")
TIMES = "in the morning|in the evening|at night|at noon|after dinner|before breakfast|on Sunday|on Monday|at last|that day".split("|")
WORD = r"[a-z]{3,12}"
AFTER = r"(?=[.,;:!]| (?:and|with|in|to|at|on|from|for|as|when|upon|by|into)\b)"
NAME = r"[A-Z][a-z]{2,11}"
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Dr\.)(?<!St\.)(?<!Mrs\.) ")


class Words:
    """Who acts, and what with what, as often as the texts say so."""

    def base(self, verb):
        """"open" for "opened": whatever of the possible ones the texts have most often."""
        doubled = verb[:-3] if len(verb) > 5 and verb[-3] == verb[-4] else ""
        forms = [verb[:-2], verb[:-1], verb[:-3] + "y" if verb.endswith("ied") else "", doubled]
        return IRREGULAR.get(verb) or GIVEN.get(verb) or max(filter(None, forms), key=lambda form: self.known[form])

    def __init__(self, text, least):
        verbs = "|".join(IRREGULAR)
        self.known = collections.Counter(re.findall(r"\b[a-z]+\b", text))

        def frequent(pattern, usable, least=least):
            counts = collections.Counter(re.findall(pattern, text))
            return [key for key, count in counts.items() if count >= least and usable(key)]

        def is_verb(verb):
            return verb in IRREGULAR or (len(verb) > 4 and self.known[self.base(verb)] >= 3)

        def is_noun(word):
            return word not in NOT_NOUNS and not re.search("ly$|ed$|ing$", word) and self.known[word] >= 5
        names = frequent(rf'[,!?.]["”] (?:{SPEAKS}) ({NAME})\b', lambda name: name not in NOBODY, 2)
        nouns = frequent(rf'[,!?.]["”] (?:{SPEAKS}) the ({WORD})\b(?=[.,;])', is_noun, 2)
        self.people = sorted(names) + sorted(f"the {noun}" for noun in nouns)
        subject = rf"(?:[Hh]e|[Ss]he|[Tt]hey|I|[Ww]e|{NAME})"
        self.transitive = sorted(frequent(rf"\b{subject} ({verbs}|[a-z]+ed) the ({WORD})\b{AFTER}",
                                          lambda key: is_verb(key[0]) and is_noun(key[1])))
        self.intransitive = sorted(frequent(rf"\b{subject} ({verbs}|[a-z]+ed)(?=[.;])", is_verb))
        self.moving = sorted(frequent(rf"\b{subject} ({verbs}|[a-z]+ed) ({PLACES}) the ({WORD})\b{AFTER}",
                                      lambda key: is_verb(key[0]) and is_noun(key[2])))
        self.adjectives = sorted(frequent(rf"\b(?:[Hh]e|[Ss]he|{NAME}) was (?:very|quite|so) ({WORD})(?=[.,;])", lambda word: not word.endswith("ed")))
        self.qualities = "old young little great small new good poor big tall white black red heavy strange".split()
        self.things = sorted({noun for _, noun in self.transitive})
        self.places = sorted({(place, noun) for _, place, noun in self.moving if place in ("in", "on", "at", "under", "behind", "near")})
        self.verbs_of = collections.defaultdict(list)
        self.things_of = collections.defaultdict(list)
        for verb, noun in self.transitive:
            self.verbs_of[noun].append(verb)
            self.things_of[verb].append(noun)


def thing_of(words, draw, noun):
    """"the door", "his door", "a little door"."""
    adjective = draw.choice(words.qualities) + " " if draw.random() < 0.15 else ""
    article = draw.choices(("the", "his", "her", "a"), (7, 1, 1, 1))[0]
    return f"{'an' if article == 'a' and (adjective or noun)[0] in 'aeiou' else article} {adjective}{noun}"


def person_of(words, draw, someone):
    """"Tom", "Mrs. Brown", "the captain", "the old captain"."""
    if someone.startswith("the "):
        return f"the {draw.choice(words.qualities)} {someone[4:]}" if draw.random() < 0.1 else someone
    return draw.choice(TITLES) + someone


def fact_of(words, draw, facts, people):
    """{who, verb, base, what, where, to, like}: often with the verb or the thing of a fact that the passage has."""
    who = people.pop()
    kind = draw.choices(("does", "waits", "goes", "gives", "is", "meets"), (9, 3, 3, 2, 2, 2))[0]
    fact = {"who": who, "kind": kind}
    if kind == "does":
        before = [one for one in facts if one["kind"] == "does"]
        if before and draw.random() < 0.5:
            other = draw.choice(before)
            if draw.random() < 0.5:
                verb, noun = other["verb"], draw.choice(words.things_of[other["verb"]])
            else:
                noun = other["noun"]
                verb = draw.choice(words.verbs_of[noun])
        else:
            verb, noun = draw.choice(words.transitive)
        fact |= {"verb": verb, "noun": noun, "what": thing_of(words, draw, noun)}
        if draw.random() < 0.15:
            fact["where"] = " the ".join(draw.choice(words.places))
    elif kind == "waits":
        fact["verb"] = draw.choice(words.intransitive)
    elif kind == "goes":
        verb, place, noun = draw.choice(words.moving)
        fact |= {"verb": verb, "where": f"{place} the {noun}"}
    elif kind == "gives":
        fact |= {"verb": draw.choice(list(GIVEN)), "what": thing_of(words, draw, draw.choice(words.things)), "to": people.pop()}
    elif kind == "is":
        fact |= {"verb": "was", "like": draw.choice(words.adjectives)}
    else:
        fact |= {"verb": draw.choice(["saw", "met", "followed", "helped", "called", "kissed", "watched", "thanked", "loved", "feared", "found", "heard"]),
                 "whom": people.pop()}
    fact["base"] = words.base(fact["verb"])
    if draw.random() < 0.12:
        fact["when"] = draw.choice(TIMES)
    return fact


def capital(text):
    return text[0].upper() + text[1:]


def rest_of(fact, but=()):
    """What the verb and all behind it say, without some of it."""
    parts = [fact["verb"]] + [fact[key] for key in ("like", "what", "whom") if key in fact and key not in but]
    if "to" in fact and "to" not in but:
        parts.append(f"to {fact['to']}")
    return " ".join(parts + [fact[key] for key in ("where",) if key in fact and key not in but])


def passage_of(facts, draw):
    """The text, and of each fact {part: its place}."""
    text, places, k = "", [], 0

    def put(words, fact, key):
        nonlocal text
        begin = text.rindex(words) if key == "who" else text.index(words, places[-1]["who"][0])
        places[-1][key] = (begin, begin + len(words))
    while k < len(facts):
        joined = draw.choices((0, 1, 2), (7, 1, 2))[0] if k + 1 < len(facts) else 0
        group = facts[k:k + 1 + bool(joined)]
        if joined == 1:
            group[1]["who"] = group[0]["who"]
        text += " " if text else ""
        for n, fact in enumerate(group):
            shared = n == 1 and joined == 1
            begin = " and " if n else capital(fact["when"]) + ", " if "when" in fact and draw.random() < 0.5 else ""
            front = bool(begin) and not n
            who = "" if shared else capital(fact["who"]) if not begin else fact["who"]
            start = len(text) + len(begin)
            text += begin + who + ("" if shared else " ") + rest_of(fact)
            if "when" in fact and not front:
                text += " " + fact["when"]
            place = {"who": places[-1]["who"] if shared else (start, start + len(who))}
            if "when" in fact:
                at = text.index(capital(fact["when"]) if front else fact["when"], start - (len(begin) if front else 0))
                place["when"] = (at, at + len(fact["when"]))
            behind = start + len(who)
            for key in ("like", "what", "whom", "to", "where"):
                if key in fact:
                    at = text.index(fact[key], behind)
                    place[key] = (at, at + len(fact[key]))
                    behind = at + len(fact[key])
            places.append(place)
        text += "."
        k += len(group)
    return text, places


def questions_of_fact(fact, draw):
    """[(question, part that answers it, parts that it names)]"""
    who, base, found = fact["who"], fact["base"], []
    if fact["kind"] == "is":
        return [(f"Who was {fact['like']}?", "who", {"verb", "like"})]
    short = draw.random() < 0.3
    named = {"verb", *({"what", "whom"} & set(fact))}
    if "to" in fact or ("where" in fact and fact["kind"] == "goes"):
        named |= set() if short else {"to", "where"} & set(fact)
    found.append((f"Who {rest_of(fact, {'what', 'whom', 'to', 'where'} - named)}?", "who", named))
    if "what" in fact:
        found.append((f"What did {who} {base}{' to ' + fact['to'] if 'to' in fact and not short else ''}?", "what", {"verb", "who"} | (set() if short else {"to"} & set(fact))))
    if "whom" in fact:
        found.append((f"{draw.choice(('Who', 'Whom'))} did {who} {base}?", "whom", {"verb", "who"}))
    if "to" in fact:
        found.append((f"{draw.choice(('Who', 'Whom'))} did {who} {base} {fact['what']} to?", "to", {"verb", "who", "what"}))
    if "where" in fact:
        found.append((f"Where did {who} {base}{' ' + fact['what'] if 'what' in fact else ''}?", "where", {"verb", "who", "what"} & set(fact)))
    if "when" in fact:
        found.append((f"When did {who} {' '.join([base] + [fact[key] for key in ('what', 'whom') if key in fact])}?", "when", {"verb", "who", "what", "whom"} & set(fact)))
    return found


def drawn(words, draw, fillers, asked):
    """The questions of one drawn passage, each with one answer."""
    people, facts = [person_of(words, draw, one) for one in draw.sample(words.people, min(14, len(words.people)))], []
    for _ in range(draw.choice((2, 3, 3, 4, 4, 5, 6))):
        if len(people) < 2:
            break
        facts.append(fact_of(words, draw, facts, people))
    text, places = passage_of(facts, draw)
    before = ""
    if draw.random() < 0.3:
        filler = draw.choice(fillers)
        before, text = (filler + " ", text) if draw.random() < 0.5 else ("", f"{text} {filler}")
    found = []
    for fact, place in zip(facts, places):
        for question, part, named in questions_of_fact(fact, draw):
            if sum(all(one.get(key) == fact.get(key) for key in named) for one in facts) == 1 and part in place:
                begin, end = place[part]
                found.append({"question": question, "context": before + text, "text": text[begin:end], "start": len(before) + begin})
    return draw.sample(found, min(asked, len(found)))


def of_the_book(words, sentences, draw, most=60):
    """[questions] of passages whose middle sentence begins with who did what: asked for either."""
    verbs = "|".join(sorted({verb for verb, _ in words.transitive} | set(words.intransitive) | {verb for verb, _, _ in words.moving}))
    people = "|".join(sorted((re.escape(one) for one in words.people if one[0] != "t"), key=len, reverse=True))
    nouns = "|".join(sorted({one[4:] for one in words.people if one[0] == "t"}))
    clause = re.compile(rf"(?P<who>(?:Mr\. |Mrs\. |Miss )?(?:{people})|The (?:[a-z]+ )?(?:{nouns})) (?P<verb>{verbs})\b"
                        rf"(?: (?P<what>(?:the|a|an|his|her) (?:[a-z]+ )?{WORD})(?=[.,;!]| and | with | to | in ))?(?P<rest>(?: [a-z'’-]+)*)")
    someone = re.compile(rf"\b(?:{people})\b")
    for at, sentence in enumerate(sentences):
        match = clause.match(sentence) if len(sentence) < 200 else None
        if not match or not (match["rest"] or match["what"]):
            continue
        first, last, size = at, at + 1, len(sentence.split())
        for _ in range(8):
            at_front = draw.random() < 0.5
            number = first - 1 if at_front else last
            if not 0 <= number < len(sentences) or size + len(sentences[number].split()) > most:
                break
            size += len(sentences[number].split())
            first, last = (number, last) if at_front else (first, number + 1)
        context = " ".join(sentences[first:last])
        start = sum(len(one) + 1 for one in sentences[first:at])
        behind = " ".join(filter(None, [match["verb"], match["what"], " ".join(match["rest"].split()[:6])]))
        found = []
        if {m[0] for m in someone.finditer(context)} - {match["who"].split()[-1]}:
            found.append({"question": f"Who {behind}?", "context": context, "text": match["who"], "start": start})
        if match["what"]:
            name = match["who"][0].lower() + match["who"][1:] if match["who"].startswith("The ") else match["who"]
            found.append({"question": f"What did {name} {words.base(match['verb'])}?", "context": context, "text": match["what"],
                          "start": start + match.start("what")})
        if found:
            yield found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--passages", type=int, default=3000, help="how many (%(default)s)")
    parser.add_argument("--asked", type=int, default=3, help="questions of a drawn passage, at most (%(default)s)")
    parser.add_argument("--share", type=float, default=0.25, help="of the passages that are the book's own (%(default)s)")
    parser.add_argument("--least", type=int, default=1, help="how often the texts must say so of a verb and its thing (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    text = ""
    for path in options.texts:
        with open(path, encoding="utf-8") as file:
            text += file.read()
    draw, words = random.Random(options.seed), Words(text, options.least)
    if len(words.people) < 2 or not all((words.transitive, words.intransitive, words.moving, words.adjectives, words.places)):
        sys.exit("make_questions.py: the texts say too little of who did what where; expected some books with quotation marks")
    paragraphs = [line for line in text.split("\n") if line]
    sentences = [sentence for paragraph in paragraphs for sentence in SENTENCE_END.split(paragraph)]
    fillers = [one for one in sentences if 20 < len(one) < 90 and re.fullmatch(r"[A-Z][a-z ,'’;]+\.", one)]
    own = list(of_the_book(words, sentences, draw))
    draw.shuffle(own)
    own = own[:round(options.share * options.passages)]
    passages = own + [drawn(words, draw, fillers, options.asked) for _ in range(options.passages - len(own))]
    lines = [json.dumps({**one, "passage": number, "of": "the book" if number < len(own) else "the grammar"}, ensure_ascii=False) for number, found in enumerate(passages) for one in found]
    draw.shuffle(lines)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
    print(f"{len(words.people)} people, {len(words.transitive)} pairs of verb and thing, {len(words.moving)} ways, {len(words.intransitive)} verbs alone; "
          f"{len(own)} passages of the book, {len(passages) - len(own)} drawn, {len(lines)} questions")


if __name__ == "__main__":
    main()
