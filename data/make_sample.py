"""Write the small reading-comprehension data set in `qanet/sample`.

Every passage describes three or four things of one sort (rivers, ships, people, ...)
under made-up names. Each of them has the same two or three facts, one sentence states
one or two facts, and the sentences are shuffled. A question asks for one fact of one
of the things, in words that are mostly not those of the sentence. To answer it, a
reader has to find the right name and the right relation: neither the position of the
answer nor its kind (a year, a town, a person) gives it away.

The names are put together from syllables, and no name is used for two passages, so
no name of the development set occurs in the training set.

Only the standard library is used, and the same seed always gives the same files.
"""

import argparse
import json
import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sample_topics import TOPICS, VALUES, Relation, Topic

DEFAULT_OUTPUT = Path(__file__).parents[1] / "qanet" / "sample"
DEFAULT_SEED = 2018
PASSAGES_OF_A_TOPIC = {"train": 64, "dev": 9}
PASSAGE_TOKENS = range(50, 81)
QUESTIONS = (3, 4, 4, 5)


@dataclass(frozen=True)
class Fact:
    """The value of one relation for one thing."""

    name: str
    relation: Relation
    value: str


# Endings of made-up names, by kind; a person has a given name and a surname.
NAME_ENDINGS = {
    "given": "a e o el en ia ik il in or",
    "surname": "by dahl er field holt ing lund mark sen strom wick",
    "town": "burg bury ford gate ham haven holm minster mouth stad",
    "thing": "ado an ara el ent eth ix on or ula une ys",
    "mountain": "ak as enda horn im ur",
    "lake": "ain ea mere ow una",
}
ONSETS = "b br d dr f fl g gl gr h j k kl kr l m n p pl pr r s st t th tr v w z"
VOWELS = "a e i o u"
CODAS = "l m n r s v lk nd rn sk th"


class Names:
    """Made-up names, each given out once.

    Args:
        rng: Where the choices come from.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def name(self, kind: str, initials: set[str]) -> str:
        """Make up a name.

        Args:
            kind: "person", "town", "thing", "mountain" or "lake".
            initials: First two letters of the words that name something in the same
                passage. New words begin otherwise, and are added.
        """
        if kind == "person":
            return f"{self._word('given', initials)} {self._word('surname', initials)}"
        prefix = {"mountain": "Mount ", "lake": "Lake "}.get(kind, "")
        return prefix + self._word(kind, initials)

    def _word(self, kind: str, initials: set[str]) -> str:
        while True:
            parts = (ONSETS, VOWELS, CODAS, NAME_ENDINGS[kind])
            word = "".join(self._rng.choice(part.split()) for part in parts)
            if word not in self._used and word[:2] not in initials:
                self._used.add(word)
                initials.add(word[:2])
                return word.capitalize()


def invent_thing(
    topic: Topic, names: Names, initials: set[str], rng: random.Random
) -> list[Fact]:
    """Invent one thing: its name, and a value of every relation of its topic."""
    name = names.name(topic.kind, initials)
    year = rng.randrange(1700, 1900)
    facts = []
    for relation in topic.relations:
        match relation.kind:
            case "year":
                value = str(year)
            case "later year":
                value = str(year + rng.randrange(25, 80))
            case "metres":
                value = f"{rng.randrange(31, 200)} metres"
            case "kilometres":
                value = f"{rng.randrange(40, 900)} kilometres"
            case "duration":
                value = f"{rng.randrange(2, 31)} {rng.choice(('hours', 'days'))}"
            case kind if kind in VALUES:
                value = rng.choice(VALUES[kind].split())
            case kind:
                value = names.name(kind, initials)
        facts.append(Fact(name, relation, value))
    return facts


def fill(template: str, subject: str, fact: Fact) -> str:
    """Put a thing, as it is mentioned, and the value of a fact into a template."""
    article = "an" if fact.value[0] in "aeiou" else "a"
    return template.format(s=subject, v=fact.value, a=article)


def mention(topic: Topic, fact: Fact, rng: random.Random) -> str:
    """Return a way to speak of the thing that a fact is about."""
    return rng.choice(topic.subjects).format(n=fact.name)


def state(topic: Topic, facts: list[Fact], used: set[str], rng: random.Random) -> str:
    """Write a sentence that states one fact, or two of the same thing.

    Args:
        topic: What the passage is about.
        facts: One or two facts.
        used: Templates that the passage has used, which are avoided as long as there
            are others; those of the sentence are added.
        rng: Where the choices come from.
    """
    subject = mention(topic, facts[0], rng)
    parts = []
    for fact in facts:
        templates = fact.relation.predicates
        if len(facts) == 1:
            templates += fact.relation.sentences
        unused = [template for template in templates if template not in used]
        template = rng.choice(unused or templates)
        used.add(template)
        parts.append(fill(template, subject, fact))
    sentence = " and ".join(parts)
    if not sentence.endswith("."):
        sentence = f"{subject} {sentence}."
    return sentence[0].upper() + sentence[1:]


def ask(topic: Topic, fact: Fact, rng: random.Random) -> str:
    """Write a question whose answer is the value of a fact."""
    return fill(rng.choice(fact.relation.questions), mention(topic, fact, rng), fact)


def write_passage(
    topic: Topic, names: Names, rng: random.Random
) -> tuple[str, list[Fact]]:
    """Write a passage; return it with the facts that it states."""
    things, relations = rng.choice(((3, 2), (3, 2), (3, 3), (4, 2)))
    # How many things have two of their facts in one sentence, so that no passage has
    # more than six sentences.
    pairs = {(3, 2): rng.randrange(3), (3, 3): 3, (4, 2): 2}[things, relations]
    chosen = rng.sample(topic.relations, relations)
    initials: set[str] = set()
    used: set[str] = set()
    stated = []
    sentences = []
    for index in range(things):
        invented = invent_thing(topic, names, initials, rng)
        facts = [fact for fact in invented if fact.relation in chosen]
        stated += facts
        alone = [facts.pop(rng.randrange(3))] if len(facts) == 3 else []
        groups = [facts] if index < pairs else [[fact] for fact in facts]
        groups += [[fact] for fact in alone]
        sentences += [state(topic, group, used, rng) for group in groups]
    rng.shuffle(sentences)
    if len(sentences) < 6:
        count = {3: "three", 4: "four"}[things]
        sentences.insert(0, rng.choice(topic.openings).format(count=count))
    return " ".join(sentences), stated


def is_sound(context: str, facts: list[Fact]) -> bool:
    """Tell whether a passage has a fitting length and each value in it once."""
    tokens = re.findall(r"\w+|[^\w\s]", context)
    text = context.lower()
    return len(tokens) in PASSAGE_TOKENS and all(
        text.count(fact.value.lower()) == 1 for fact in facts
    )


def make_paragraph(topic: Topic, names: Names, rng: random.Random, prefix: str) -> dict:
    """Write a passage with its questions, in the form of the SQuAD files.

    Args:
        topic: What the passage is about.
        names: Gives out the names.
        rng: Where the choices come from.
        prefix: What the ids of the questions begin with.
    """
    while True:
        context, facts = write_passage(topic, names, rng)
        if is_sound(context, facts):
            break
    questions = []
    for number, fact in enumerate(rng.sample(facts, rng.choice(QUESTIONS)), start=1):
        answer = {"text": fact.value, "answer_start": context.index(fact.value)}
        question = {
            "id": f"{prefix}-{number}",
            "question": ask(topic, fact, rng),
            "answers": [answer],
        }
        questions.append(question)
    return {"context": context, "qas": questions}


def make_data_sets(seed: int) -> dict[str, list[dict]]:
    """Make both data sets.

    Args:
        seed: Seed of the random choices.

    Returns:
        The articles of "train" and of "dev" in the form of the SQuAD v1.1 files: each
        has a `title` and `paragraphs`.
    """
    rng = random.Random(seed)
    names = Names(rng)
    return {
        part: [
            {
                "title": topic.title,
                "paragraphs": [
                    make_paragraph(
                        topic, names, rng, f"{part}-{topic.title.lower()}-{number}"
                    )
                    for number in range(1, count + 1)
                ],
            }
            for topic in TOPICS
        ]
        for part, count in PASSAGES_OF_A_TOPIC.items()
    }


def to_json(articles: list[dict]) -> str:
    """Return a SQuAD v1.1 file with one paragraph on a line."""
    blocks = []
    for article in articles:
        lines = ",\n".join(json.dumps(item) for item in article["paragraphs"])
        title = json.dumps(article["title"])
        blocks.append(f'{{"title": {title}, "paragraphs": [\n{lines}\n]}}')
    body = ",\n".join(blocks)
    return f'{{"version": "1.1", "data": [\n{body}\n]}}\n'


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f"{path.name}.part")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    os.replace(temporary, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""examples:
  python data/make_sample.py                    write qanet/sample again
  python data/make_sample.py --output /tmp/new --seed 7
                                                another data set of the same kind""",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=DEFAULT_OUTPUT,
        metavar="DIR",
        help="folder for train.json and dev.json; made if missing (%(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=DEFAULT_SEED,
        metavar="N",
        help="another number gives other passages (%(default)s)",
    )
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for part, articles in make_data_sets(options.seed).items():
        path = options.output / f"{part}.json"
        write_text(path, to_json(articles))
        paragraphs = [item for article in articles for item in article["paragraphs"]]
        questions = sum(len(item["qas"]) for item in paragraphs)
        print(f"{path}: {len(paragraphs)} passages, {questions} questions")


if __name__ == "__main__":
    main()
