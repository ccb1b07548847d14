"""The sample that ships with the project: reproducible, sound, not to be guessed."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import make_sample
import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "qanet" / "sample"
FILES = {part: SAMPLE / f"{part}.json" for part in ("train", "dev")}

# Words that are capitalised inside a sentence and are no made-up names.
MONTHS = make_sample.VALUES["month"].split()
TITLES = ["Mount", "Lake", "Captain", "General"]


class Question(NamedTuple):
    id: str
    text: str
    context: str
    answer: str
    start: int
    title: str


def read(part: str) -> list[Question]:
    data = json.loads(FILES[part].read_text(encoding="utf-8"))
    assert data["version"] == "1.1"
    questions = []
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                (answer,) = qa["answers"]
                questions.append(
                    Question(
                        id=qa["id"],
                        text=qa["question"],
                        context=paragraph["context"],
                        answer=answer["text"],
                        start=answer["answer_start"],
                        title=article["title"],
                    )
                )
    return questions


QUESTIONS = {part: read(part) for part in FILES}
ALL = QUESTIONS["train"] + QUESTIONS["dev"]


def contexts(part: str) -> list[str]:
    return list(dict.fromkeys(question.context for question in QUESTIONS[part]))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def words_of(part: str) -> set[str]:
    return {
        token
        for question in QUESTIONS[part]
        for token in tokens(f"{question.context} {question.text}")
    }


def sentences(context: str) -> list[tuple[int, int]]:
    """Begin and end of each sentence."""
    return [match.span() for match in re.finditer(r"[^.]+\.", context)]


def names(text: str) -> set[str]:
    """Made-up names: the other words that are capitalised inside a sentence."""
    inside = re.findall(r"(?<=[^.?] )[A-Z]\w+", text)
    return set(inside) - set(MONTHS) - set(TITLES)


def kind_pattern(answer: str) -> str:
    """A pattern of whatever is of the same kind as an answer."""
    for words in make_sample.VALUES.values():
        if answer in words.split():
            return rf"\b(?:{'|'.join(words.split())})\b"
    endings = make_sample.NAME_ENDINGS
    given, surname, town = (
        rf"\b[A-Z][a-z]+(?:{'|'.join(endings[kind].split())})\b"
        for kind in ("given", "surname", "town")
    )
    patterns = (
        r"\b1[789]\d\d\b",
        r"\b\d+ metres",
        r"\b\d+ kilometres",
        r"\b\d+ (?:hours|days)",
        r"Mount [A-Z]\w+",
        r"Lake [A-Z]\w+",
        rf"(?!Captain|General){given} {surname}",
        rf"(?<!Mount )(?<!Lake ){town}",
    )
    return next(pattern for pattern in patterns if re.fullmatch(pattern, answer))


def candidates(question: Question) -> list[tuple[int, int]]:
    """Where the passage has something of the same kind as the answer."""
    pattern = kind_pattern(question.answer)
    return [match.span() for match in re.finditer(pattern, question.context)]


def test_the_generator_writes_the_committed_files(tmp_path: Path) -> None:
    make_sample.main(["--output", str(tmp_path / "new")])

    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "dev.json",
        "train.json",
    ]
    for path in FILES.values():
        assert (tmp_path / "new" / path.name).read_bytes() == path.read_bytes()


def test_another_seed_writes_other_files(tmp_path: Path) -> None:
    make_sample.main(["--output", str(tmp_path), "--seed", "1"])

    for path in FILES.values():
        assert (tmp_path / path.name).read_bytes() != path.read_bytes()


def test_help_explains_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        make_sample.main(["--help"])

    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert "--output DIR" in text
    assert "--seed N" in text
    assert "python data/make_sample.py" in text


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES.values()) <= 1_000_000
    assert 1500 <= len(QUESTIONS["train"]) <= 2500
    assert 280 <= len(QUESTIONS["dev"]) <= 350


def test_ids_and_questions_of_a_passage_are_unique() -> None:
    assert len({question.id for question in ALL}) == len(ALL)
    asked = [(question.context, question.answer) for question in ALL]
    assert len(set(asked)) == len(asked)


def test_passages_are_short_and_occur_once() -> None:
    every = contexts("train") + contexts("dev")

    assert len(set(every)) == len(every)
    for context in every:
        assert 50 <= len(tokens(context)) <= 80
        assert 4 <= len(sentences(context)) <= 6
    assert set(Counter(question.context for question in ALL).values()) == {3, 4, 5}


@pytest.mark.parametrize("part", FILES)
def test_answers_stand_once_at_their_offset_and_are_whole_tokens(part: str) -> None:
    for question in QUESTIONS[part]:
        answer, start, context = question.answer, question.start, question.context
        end = start + len(answer)
        assert context[start:end] == answer
        assert context.count(answer) == 1
        assert len(tokens(answer)) <= 4
        # No letter or digit next to it: tokens begin and end with the answer.
        assert not re.match(r"\w", context[end:])
        assert start == 0 or not re.match(r"\w", context[start - 1])


def test_names_in_questions_occur_in_the_passage() -> None:
    for question in ALL:
        asked = names(question.text)
        assert asked, question.text
        assert asked <= set(tokens(question.context))


def test_no_name_of_dev_occurs_in_train() -> None:
    train = {word.lower() for word in words_of("train")}
    dev = set()
    for question in QUESTIONS["dev"]:
        dev |= names(question.context) | names(question.text)

    assert len(dev) > 500
    assert not {name for name in dev if name.lower() in train}


def test_no_name_is_used_for_two_passages() -> None:
    used = Counter(
        name
        for context in contexts("train") + contexts("dev")
        for name in names(context)
    )
    assert used.most_common(1)[0][1] == 1


def test_every_common_word_of_dev_occurs_in_train() -> None:
    words = {token for token in words_of("dev") if token.islower()}

    assert words <= words_of("train")


@pytest.mark.parametrize("part", FILES)
def test_two_other_sentences_hold_a_candidate_of_the_same_kind(part: str) -> None:
    for question in QUESTIONS[part]:
        spans = candidates(question)
        assert (question.start, question.start + len(question.answer)) in spans
        holding = {
            begin
            for begin, end in sentences(question.context)
            if not begin <= question.start < end
            and any(begin <= start < end for start, _ in spans)
        }
        assert len(holding) >= 2, question


def share_right(guesses: Iterator[bool]) -> float:
    guesses = list(guesses)
    return sum(guesses) / len(guesses)


@pytest.mark.parametrize("part", FILES)
@pytest.mark.parametrize("place", [0, 1, 2, -1])
def test_the_place_among_the_candidates_does_not_give_the_answer(
    part: str, place: int
) -> None:
    def guess(question: Question) -> bool:
        return candidates(question)[place][0] == question.start

    assert share_right(guess(question) for question in QUESTIONS[part]) < 0.45


@pytest.mark.parametrize("part", FILES)
def test_the_sentence_most_like_the_question_does_not_give_the_answer(
    part: str,
) -> None:
    # The baseline even knows what kind of thing is asked for.
    def guess(question: Question) -> bool:
        asked = set(tokens(question.text.lower()))
        begin, end = max(
            sentences(question.context),
            key=lambda span: len(
                asked & set(tokens(question.context[slice(*span)].lower()))
            ),
        )
        inside = [start for start, _ in candidates(question) if begin <= start < end]
        return inside[:1] == [question.start]

    assert share_right(guess(question) for question in QUESTIONS[part]) < 0.6


@pytest.mark.parametrize("topic", make_sample.TOPICS, ids=lambda topic: topic.title)
def test_facts_are_stated_and_asked_in_many_ways(topic) -> None:
    for relation in topic.relations:
        statements = {*relation.predicates, *relation.sentences}
        assert len(statements) >= 5
        assert len(set(relation.questions)) >= 4
        assert all(statement.count("{v}") == 1 for statement in statements)
        assert all(statement.count("{s}") == 1 for statement in relation.sentences)
        assert all(question.count("{s}") == 1 for question in relation.questions)


@pytest.mark.parametrize("topic", make_sample.TOPICS, ids=lambda topic: topic.title)
def test_every_template_is_in_the_training_set(topic) -> None:
    of_topic = [q for q in QUESTIONS["train"] if q.title == topic.title]
    passages = "\n".join(dict.fromkeys(question.context for question in of_topic))
    asked = "\n".join(question.text for question in of_topic)

    def occurs(template: str, text: str) -> bool:
        pattern = re.escape(template)
        for field in ("s", "v", "a"):
            pattern = pattern.replace(re.escape("{" + field + "}"), r"[\w ]+")
        return re.search(pattern, text, re.IGNORECASE) is not None

    for relation in topic.relations:
        for template in (*relation.predicates, *relation.sentences):
            assert occurs(template, passages), template
        for template in relation.questions:
            assert occurs(template, asked), template


def test_articles_fit() -> None:
    text = "\n".join(contexts("train") + contexts("dev"))

    assert not re.search(r"\ba [aeiou]", text)
    assert not re.search(r"\ban [^aeiou]", text)
    assert re.search(r"\ban [aeiou]", text)


def test_the_readme_shows_a_passage_of_the_sample() -> None:
    lines = (SAMPLE / "README.md").read_text(encoding="utf-8").splitlines()
    readme = " ".join(line.removeprefix("> ") for line in lines)
    shown = {
        question.context for question in QUESTIONS["dev"] if question.context in readme
    }
    assert len(shown) == 1
    for question in QUESTIONS["dev"]:
        if question.context in shown:
            assert question.text in readme
            assert question.answer in readme
    for part, questions in QUESTIONS.items():
        row = f"| {part}.json | {len(contexts(part)):,} | {len(questions):,} |"
        assert row in readme
