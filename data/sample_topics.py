"""What the passages of the sample speak of, and the words for it.

Only templates and lists of words; `make_sample.py` makes passages of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """One kind of fact, and the ways to state it and to ask for it.

    In the templates `{s}` is the thing spoken of, `{v}` the value, which is the answer,
    and `{a}` the article "a" or "an" that fits the value.

    Attributes:
        kind: What sort of value it has: a key of `VALUES` or a kind of name.
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
        kind: What sort of name the things have.
        subjects: Ways to mention a thing, with its name for `{n}`.
        openings: First sentences, with the number of things for `{count}`.
        relations: The facts. A "later year" follows an ordinary year.
    """

    title: str
    kind: str
    subjects: tuple[str, ...]
    openings: tuple[str, ...]
    relations: tuple[Relation, ...]


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
