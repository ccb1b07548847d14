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

DEFAULT_OUTPUT = Path(__file__).parents[1] / "qanet" / "sample"
DEFAULT_SEED = 2018
PASSAGES_OF_A_TOPIC = {"train": 64, "dev": 9}
PASSAGE_TOKENS = range(50, 81)
QUESTIONS = (3, 4, 4, 5)


@dataclass(frozen=True)
class Relation:
    """One kind of fact, and the ways to state it and to ask for it.

    In the templates `{s}` is the thing spoken of, `{v}` the value, which is the answer,
    and `{a}` the article "a" or "an" that fits the value.

    Attributes:
        kind: What sort of value it has: a key of `VALUES` or `NAME_ENDINGS`.
        predicates: What follows the thing in a sentence, so that "and" can join two.
        sentences: Whole sentences that are built otherwise.
        questions: The questions.
    """

    kind: str
    predicates: tuple[str, ...]
    sentences: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """A sort of things, and what can be said of each.

    Attributes:
        title: Title of the article.
        kind: What sort of name the things have: a key of `NAME_ENDINGS`.
        subjects: Ways to mention a thing, with its name for `{n}`.
        openings: First sentences, with the number of things for `{count}`.
        relations: The facts. A "later year" follows an ordinary year.
    """

    title: str
    kind: str
    subjects: tuple[str, ...]
    openings: tuple[str, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Fact:
    """The value of one relation for one thing."""

    name: str
    relation: Relation
    value: str


PEOPLE = Topic(
    title="People",
    kind="person",
    subjects=("{n}",),
    openings=(
        "The parish book remembers {count} people.",
        "A family album shows {count} faces.",
        "The old letters speak of {count} friends.",
    ),
    relations=(
        Relation(
            kind="year",
            predicates=(
                "was born in {v}",
                "came into the world in {v}",
                "first saw daylight in {v}",
            ),
            sentences=(
                "The birth of {s} took place in {v}.",
                "In {v}, {s} was born on a farm.",
            ),
            questions=(
                "When was {s} born?",
                "In which year was {s} born?",
                "What was the year of birth of {s}?",
                "What year did {s} come into the world?",
            ),
        ),
        Relation(
            kind="later year",
            predicates=(
                "died in {v}",
                "passed away in {v}",
                "lived until {v}",
            ),
            sentences=(
                "The death of {s} was mourned in {v}.",
                "In {v}, {s} died after a short illness.",
            ),
            questions=(
                "When did {s} die?",
                "In which year did {s} pass away?",
                "What was the year of death of {s}?",
                "What year did the life of {s} end?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "grew up in {v}",
                "was raised in {v}",
                "went to school in {v}",
            ),
            sentences=(
                "The town of {v} was the childhood home of {s}.",
                "In {v}, {s} learned to read and write.",
            ),
            questions=(
                "Where did {s} grow up?",
                "In which town was {s} raised?",
                "What town was the childhood home of {s}?",
                "Where did {s} go to school?",
            ),
        ),
        Relation(
            kind="job",
            predicates=(
                "worked as {a} {v}",
                "earned a living as {a} {v}",
                "became {a} {v}",
            ),
            sentences=(
                "By trade, {s} was {a} {v}.",
                "Neighbours knew {s} as a gifted {v}.",
            ),
            questions=(
                "What was the profession of {s}?",
                "What did {s} do for a living?",
                "What job did {s} have?",
                "What was the trade of {s}?",
            ),
        ),
    ),
)

TOWERS = Topic(
    title="Towers",
    kind="thing",
    subjects=("the {n} tower",),
    openings=(
        "The guidebook praises {count} towers.",
        "Painters often come to draw {count} towers.",
        "On a clear day {count} towers can be seen.",
    ),
    relations=(
        Relation(
            kind="metres",
            predicates=(
                "rises {v} above the street",
                "stands {v} tall",
                "reaches a height of {v}",
            ),
            sentences=(
                "At {v}, {s} can be seen from afar.",
                "The height of {s} is {v}.",
            ),
            questions=(
                "How tall is {s}?",
                "How high does {s} rise?",
                "What is the height of {s}?",
                "How far does {s} reach into the sky?",
            ),
        ),
        Relation(
            kind="person",
            predicates=(
                "was designed by {v}",
                "was planned by {v}",
                "owes its shape to {v}",
            ),
            sentences=(
                "The architect {v} designed {s}.",
                "{v} drew the plans for {s}.",
            ),
            questions=(
                "Who designed {s}?",
                "Who was the architect of {s}?",
                "Which architect planned {s}?",
                "Who drew the plans for {s}?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "was completed in {v}",
                "was finished in {v}",
                "received its roof in {v}",
            ),
            sentences=(
                "Builders completed {s} in {v}.",
                "In {v}, the last stone of {s} was laid.",
            ),
            questions=(
                "When was {s} completed?",
                "In which year was {s} finished?",
                "What year did {s} receive its roof?",
                "When did builders finish {s}?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "is found in {v}",
                "overlooks the market of {v}",
                "belongs to the town of {v}",
            ),
            sentences=(
                "The people of {v} are proud of {s}.",
                "Visitors to {v} often climb {s}.",
            ),
            questions=(
                "Where does {s} stand?",
                "In which town is {s}?",
                "What town is home to {s}?",
                "Where can visitors find {s}?",
            ),
        ),
    ),
)

RIVERS = Topic(
    title="Rivers",
    kind="thing",
    subjects=("the {n}", "the river {n}"),
    openings=(
        "The map shows {count} rivers.",
        "The green valleys are the work of {count} rivers.",
        "Salmon return each spring to {count} rivers.",
    ),
    relations=(
        Relation(
            kind="kilometres",
            predicates=(
                "is {v} long",
                "runs for {v}",
                "winds along for {v}",
            ),
            sentences=(
                "Boats can follow {s} for {v}.",
                "The length of {s} is {v}.",
            ),
            questions=(
                "How long is {s}?",
                "What is the length of {s}?",
                "How far does {s} run?",
                "How many kilometres long is {s}?",
            ),
        ),
        Relation(
            kind="mountain",
            predicates=(
                "rises on {v}",
                "springs from {v}",
                "begins below {v}",
            ),
            sentences=(
                "The snows of {v} feed {s}.",
                "The source of {s} lies on {v}.",
            ),
            questions=(
                "Where does {s} rise?",
                "Where is the source of {s}?",
                "On which mountain does {s} begin?",
                "What mountain feeds {s}?",
            ),
        ),
        Relation(
            kind="lake",
            predicates=(
                "empties into {v}",
                "ends in {v}",
                "pours into {v}",
            ),
            sentences=(
                "The mouth of {s} lies on {v}.",
                "{v} receives the water of {s}.",
            ),
            questions=(
                "Where does {s} end?",
                "Where is the mouth of {s}?",
                "Into which lake does {s} flow?",
                "What lake receives {s}?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "passes the town of {v}",
                "flows through {v}",
                "waters the gardens of {v}",
            ),
            sentences=(
                "The town of {v} lies on {s}.",
                "A stone bridge at {v} crosses {s}.",
            ),
            questions=(
                "Which town lies on {s}?",
                "What town does {s} flow through?",
                "Which town stands on the banks of {s}?",
                "Through which town does {s} pass?",
            ),
        ),
    ),
)

COMPANIES = Topic(
    title="Companies",
    kind="thing",
    subjects=("the {n} company", "the firm of {n}"),
    openings=(
        "The trade register lists {count} companies.",
        "The age of steam made {count} companies famous.",
        "An exhibition tells the story of {count} companies.",
    ),
    relations=(
        Relation(
            kind="person",
            predicates=(
                "was founded by {v}",
                "was started by {v}",
                "was set up by {v}",
            ),
            sentences=(
                "{v} founded {s} with borrowed money.",
                "The inventor {v} established {s}.",
            ),
            questions=(
                "Who founded {s}?",
                "Who was the founder of {s}?",
                "Who started {s}?",
                "Which inventor set up {s}?",
            ),
        ),
        Relation(
            kind="goods",
            predicates=(
                "made {v}",
                "sold {v}",
                "produced {v}",
            ),
            sentences=(
                "Customers ordered {v} from {s}.",
                "The best {v} came from {s}.",
            ),
            questions=(
                "What did {s} make?",
                "What goods did {s} produce?",
                "What did {s} sell?",
                "What product came from {s}?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "was founded in {v}",
                "opened for business in {v}",
                "began trading in {v}",
            ),
            sentences=(
                "In {v}, {s} hired its first workers.",
                "The history of {s} starts in {v}.",
            ),
            questions=(
                "When was {s} founded?",
                "In which year did {s} open for business?",
                "What year did {s} begin trading?",
                "When did {s} start?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "was based in {v}",
                "had its office in {v}",
                "kept a workshop in {v}",
            ),
            sentences=(
                "The main office of {s} was in {v}.",
                "The people of {v} worked for {s}.",
            ),
            questions=(
                "Where was {s} based?",
                "In which town was the office of {s}?",
                "What town was home to {s}?",
                "Where did {s} have its workshop?",
            ),
        ),
    ),
)

SHIPS = Topic(
    title="Ships",
    kind="thing",
    subjects=("the {n}", "the ship {n}"),
    openings=(
        "Sailors still tell tales of {count} ships.",
        "The harbour chapel holds models of {count} ships.",
        "A faded painting shows {count} ships.",
    ),
    relations=(
        Relation(
            kind="person",
            predicates=(
                "sailed under {v}",
                "was commanded by {v}",
                "took its orders from {v}",
            ),
            sentences=(
                "Captain {v} commanded {s}.",
                "The captain of {s} was {v}.",
            ),
            questions=(
                "Who commanded {s}?",
                "Who was the captain of {s}?",
                "Under whom did {s} sail?",
                "Which captain gave orders on {s}?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "was launched in {v}",
                "left the shipyard in {v}",
                "first put to sea in {v}",
            ),
            sentences=(
                "The launch of {s} drew a crowd in {v}.",
                "In {v}, {s} made a first voyage.",
            ),
            questions=(
                "When was {s} launched?",
                "In which year did {s} leave the shipyard?",
                "What year was the launch of {s}?",
                "When did {s} first put to sea?",
            ),
        ),
        Relation(
            kind="later year",
            predicates=(
                "sank in {v}",
                "was lost in {v}",
                "went down in {v}",
            ),
            sentences=(
                "A storm wrecked {s} in {v}.",
                "In {v}, {s} struck a reef and sank.",
            ),
            questions=(
                "When did {s} sink?",
                "In which year was {s} lost?",
                "What year did {s} go down?",
                "When was {s} wrecked?",
            ),
        ),
        Relation(
            kind="cargo",
            predicates=(
                "carried {v}",
                "was loaded with {v}",
                "traded in {v}",
            ),
            sentences=(
                "The hold of {s} was full of {v}.",
                "Merchants sent {v} abroad on {s}.",
            ),
            questions=(
                "What did {s} carry?",
                "What was the cargo of {s}?",
                "What goods did {s} trade in?",
                "What was loaded on {s}?",
            ),
        ),
    ),
)

EXPEDITIONS = Topic(
    title="Expeditions",
    kind="thing",
    subjects=("the {n} expedition",),
    openings=(
        "The academy paid for {count} expeditions.",
        "Old diaries describe {count} expeditions.",
        "A hall of the academy honours {count} expeditions.",
    ),
    relations=(
        Relation(
            kind="person",
            predicates=(
                "was led by {v}",
                "was guided by {v}",
                "chose {v} as its leader",
            ),
            sentences=(
                "{v} led {s}.",
                "The explorer {v} was the head of {s}.",
            ),
            questions=(
                "Who led {s}?",
                "Who was the leader of {s}?",
                "Who was the head of {s}?",
                "Which explorer guided {s}?",
            ),
        ),
        Relation(
            kind="mountain",
            predicates=(
                "set out for {v}",
                "hoped to reach {v}",
                "travelled towards {v}",
            ),
            sentences=(
                "The goal of {s} was {v}.",
                "The peak of {v} was the dream of {s}.",
            ),
            questions=(
                "What was the goal of {s}?",
                "Which mountain did {s} hope to reach?",
                "Towards which mountain did {s} travel?",
                "What mountain did {s} set out for?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "departed in {v}",
                "set off in {v}",
                "began in {v}",
            ),
            sentences=(
                "In {v}, {s} went on its way.",
                "The departure of {s} was in {v}.",
            ),
            questions=(
                "When did {s} depart?",
                "In which year did {s} begin?",
                "What year did {s} set off?",
                "When did {s} leave?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "started from {v}",
                "left from {v}",
                "gathered in {v}",
            ),
            sentences=(
                "Crowds in {v} cheered {s}.",
                "The town of {v} waved goodbye to {s}.",
            ),
            questions=(
                "Where did {s} start?",
                "From which town did {s} leave?",
                "Which town was the starting point of {s}?",
                "Where did {s} gather?",
            ),
        ),
    ),
)

FESTIVALS = Topic(
    title="Festivals",
    kind="thing",
    subjects=("the {n} festival",),
    openings=(
        "The calendar of the region names {count} festivals.",
        "Travellers plan their year around {count} festivals.",
        "The coast is known for {count} festivals.",
    ),
    relations=(
        Relation(
            kind="month",
            predicates=(
                "takes place in {v}",
                "is held every {v}",
                "fills the streets in {v}",
            ),
            sentences=(
                "Each {v}, {s} draws large crowds.",
                "Guests arrive for {s} in {v}.",
            ),
            questions=(
                "In which month is {s} held?",
                "In which month does {s} take place?",
                "What month is the time of {s}?",
                "During which month do guests visit {s}?",
            ),
        ),
        Relation(
            kind="theme",
            predicates=(
                "celebrates {v}",
                "is devoted to {v}",
                "is famous for its {v}",
            ),
            sentences=(
                "At {s}, crowds admire {v}.",
                "The theme of {s} is {v}.",
            ),
            questions=(
                "What does {s} celebrate?",
                "What is the theme of {s}?",
                "What is {s} famous for?",
                "What can crowds admire at {s}?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "was first held in {v}",
                "dates back to {v}",
                "was founded in {v}",
            ),
            sentences=(
                "The history of {s} starts in {v}.",
                "In {v}, {s} was held for the first time.",
            ),
            questions=(
                "When was {s} first held?",
                "In which year was {s} founded?",
                "What year does {s} date back to?",
                "When did the history of {s} start?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "belongs to the town of {v}",
                "is organised by the town of {v}",
                "brings music to {v}",
            ),
            sentences=(
                "The people of {v} are proud of {s}.",
                "Visitors come to {v} for {s}.",
            ),
            questions=(
                "Where does {s} take place?",
                "Which town organises {s}?",
                "What town is home to {s}?",
                "Where can visitors find {s}?",
            ),
        ),
    ),
)

MUSEUMS = Topic(
    title="Museums",
    kind="thing",
    subjects=("the {n} museum",),
    openings=(
        "One ticket opens the doors of {count} museums.",
        "Rainy days are best spent in {count} museums.",
        "A small leaflet recommends {count} museums.",
    ),
    relations=(
        Relation(
            kind="exhibits",
            predicates=(
                "collects {v}",
                "displays {v}",
                "is famous for its {v}",
            ),
            sentences=(
                "Visitors admire {v} at {s}.",
                "The rooms of {s} are full of {v}.",
            ),
            questions=(
                "What does {s} collect?",
                "What does {s} display?",
                "What is {s} famous for?",
                "What can visitors admire at {s}?",
            ),
        ),
        Relation(
            kind="person",
            predicates=(
                "was founded by {v}",
                "was paid for by {v}",
                "was a gift from {v}",
            ),
            sentences=(
                "The merchant {v} founded {s}.",
                "{v} gave a fortune to {s}.",
            ),
            questions=(
                "Who founded {s}?",
                "Who was the founder of {s}?",
                "Who paid for {s}?",
                "Which merchant gave money to {s}?",
            ),
        ),
        Relation(
            kind="year",
            predicates=(
                "opened in {v}",
                "welcomed its first guests in {v}",
                "opened its doors in {v}",
            ),
            sentences=(
                "In {v}, {s} opened with a concert.",
                "The history of {s} starts in {v}.",
            ),
            questions=(
                "When did {s} open?",
                "In which year did {s} open its doors?",
                "What year did {s} welcome its first guests?",
                "When did the history of {s} start?",
            ),
        ),
        Relation(
            kind="town",
            predicates=(
                "is found in {v}",
                "faces the market of {v}",
                "belongs to the town of {v}",
            ),
            sentences=(
                "The people of {v} are proud of {s}.",
                "Visitors to {v} never miss {s}.",
            ),
            questions=(
                "Where is {s}?",
                "In which town is {s}?",
                "What town is home to {s}?",
                "Where can visitors find {s}?",
            ),
        ),
    ),
)

BATTLES = Topic(
    title="Battles",
    kind="thing",
    subjects=("the battle of {n}",),
    openings=(
        "The chronicle describes {count} battles.",
        "Ballads are still sung about {count} battles.",
        "The long war is remembered for {count} battles.",
    ),
    relations=(
        Relation(
            kind="year",
            predicates=(
                "was fought in {v}",
                "took place in {v}",
                "shook the land in {v}",
            ),
            sentences=(
                "In {v}, the armies met in {s}.",
                "The year of {s} was {v}.",
            ),
            questions=(
                "When was {s} fought?",
                "In which year did {s} take place?",
                "What was the year of {s}?",
                "When did the armies meet in {s}?",
            ),
        ),
        Relation(
            kind="person",
            predicates=(
                "was won by {v}",
                "ended in victory for {v}",
                "brought fame to {v}",
            ),
            sentences=(
                "General {v} won {s}.",
                "The winner of {s} was {v}.",
            ),
            questions=(
                "Who won {s}?",
                "Who was the winner of {s}?",
                "Which general won {s}?",
                "To whom did {s} bring fame?",
            ),
        ),
        Relation(
            kind="duration",
            predicates=(
                "lasted {v}",
                "went on for {v}",
                "was over after {v}",
            ),
            sentences=(
                "After {v}, {s} came to an end.",
                "The guns of {s} were heard for {v}.",
            ),
            questions=(
                "How long did {s} last?",
                "How long did {s} go on?",
                "After how long was {s} over?",
                "How long were the guns of {s} heard?",
            ),
        ),
        Relation(
            kind="cargo",
            predicates=(
                "broke out over {v}",
                "began as a quarrel about {v}",
                "was fought over {v}",
            ),
            sentences=(
                "The cause of {s} was {v}.",
                "Greed for {v} led to {s}.",
            ),
            questions=(
                "What was the cause of {s}?",
                "What was {s} fought over?",
                "What did {s} break out over?",
                "What led to {s}?",
            ),
        ),
    ),
)

TOPICS = (
    PEOPLE,
    TOWERS,
    RIVERS,
    COMPANIES,
    SHIPS,
    EXPEDITIONS,
    FESTIVALS,
    MUSEUMS,
    BATTLES,
)

# Words that are values, by kind.
VALUES = {
    "job": (
        "architect baker beekeeper blacksmith botanist carpenter clockmaker dentist "
        "engraver gardener interpreter judge miller organist painter potter printer "
        "tailor undertaker weaver"
    ),
    "goods": (
        "bicycles boots brushes buttons candles carpets chairs clocks gloves hats "
        "kettles lamps locks mirrors pianos ropes stoves telescopes toys umbrellas"
    ),
    "cargo": (
        "amber barley cocoa coffee copper cotton flax ginger grain iron marble pepper "
        "salt silk silver sugar tea timber tobacco wool"
    ),
    "theme": (
        "apples bells bonfires cheese cherries cider dancing drums dumplings fireworks "
        "flutes herring honey jazz kites lanterns pancakes poetry puppets roses"
    ),
    "exhibits": (
        "armour beetles butterflies coins dolls fans flags fossils globes "
        "harps helmets maps meteorites mosaics posters shells stamps swords "
        "tapestries violins"
    ),
    "month": (
        "January February March April May June July August September October "
        "November December"
    ),
}

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
