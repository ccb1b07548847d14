"""Tests of qanet.datasets.squad."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets import squad
from qanet.datasets.squad import (
    Example,
    Span,
    parse_squad,
    read_squad,
    spread,
    write_squad,
)
from qanet.errors import UserError
from qanet.text.tokenizer import tokenize

CONTEXT = "Norman castles rose in Normandy; Normandy fell in 1204."


def entry(**changes):
    """One entry of `qas`."""
    question = {
        "id": "q1",
        "question": "Where did castles rise?",
        "answers": [{"text": "Normandy", "answer_start": 23}],
    }
    return question | changes


def document(*questions, context=CONTEXT, title="Normans"):
    """A whole file of one paragraph."""
    paragraph = {"context": context, "qas": list(questions or [entry()])}
    return {"version": "1.1", "data": [{"title": title, "paragraphs": [paragraph]}]}


@pytest.fixture
def read(tmp_path):
    """Writes a document to a file and reads it back with `read_squad`."""

    def write_and_read(content):
        path = tmp_path / "squad.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return read_squad(path)

    return write_and_read


def counts(**known):
    return dict.fromkeys(squad.COUNTS, 0) | known


@pytest.mark.parametrize(("count", "taken"), [(1, "0"), (3, "036"), (99, "0123456789")])
def test_spread(count, taken):
    assert "".join(spread("0123456789", count)) == taken


def test_version_1_1(read):
    file = read(document(entry(), entry(id="q2")))

    assert file.examples[0] == Example(
        id="q1",
        question="Where did castles rise?",
        context=CONTEXT,
        answers=(Span("Normandy", 23),),
        title="Normans",
        impossible=False,
    )
    assert [example.id for example in file.examples] == ["q1", "q2"]
    assert file.counts == counts(articles=1, paragraphs=1, questions=2, answers=2)


def test_version_2_0(read):
    file = read(
        document(
            entry(is_impossible=False),
            entry(id="q2", is_impossible=True, answers=[], plausible_answers=[{}]),
        )
    )

    assert [example.impossible for example in file.examples] == [False, True]
    assert file.examples[1].answers == ()
    assert file.counts == counts(
        articles=1, paragraphs=1, questions=2, answers=1, impossible=1
    )


def test_a_question_without_answers_is_impossible_as_in_the_official_evaluation(read):
    file = read(document(entry(answers=[])))

    assert file.examples[0].impossible
    assert file.counts["impossible"] == 1


def test_examples_of_a_paragraph_share_their_context(read):
    first, second = read(document(entry(), entry(id="q2"))).examples

    assert first.context is second.context


def test_the_title_may_be_missing(read):
    content = document()
    del content["data"][0]["title"]

    assert read(content).examples[0].title == ""


@pytest.mark.parametrize("version", [{}, {"version": 1.1}, {"version": None}])
def test_the_version_does_not_matter(read, version):
    assert read(version | {"data": document()["data"]}) == read(document())


def test_white_space_at_the_edges_is_kept(read):
    file = read(document(entry(question=" Where? "), context=f" {CONTEXT}\n"))

    assert file.examples[0].question == " Where? "
    assert file.examples[0].context == f" {CONTEXT}\n"


def test_offsets_count_code_points(read):
    answer = {"text": "𝒳", "answer_start": 3}
    file = read(document(entry(answers=[answer]), context="é𝒲 𝒳"))

    assert file.examples[0].answers == (Span("𝒳", 3),)
    assert file.counts["offsets_repaired"] == 0


@pytest.mark.parametrize(
    ("offset", "nearest"),
    [(0, 23), (24, 23), (27, 23), (28, 23), (29, 33), (34, 33), (9999, 33), (-5, 23)],
)
def test_wrong_offset_moves_to_the_nearest_occurrence(read, offset, nearest):
    file = read(document(entry(answers=[{"text": "Normandy", "answer_start": offset}])))

    assert file.examples[0].answers == (Span("Normandy", nearest),)
    assert file.counts["offsets_repaired"] == 1
    assert file.counts["answers_not_found"] == 0


@given(
    st.text("ab", min_size=1, max_size=12),
    st.text("ab", min_size=1, max_size=3),
    st.integers(-3, 15),
)
def test_the_place_is_the_nearest_of_all(context, text, offset):
    places = [i for i in range(len(context)) if context.startswith(text, i)]
    answer = entry(answers=[{"text": text, "answer_start": offset}])
    (example,) = parse_squad(document(answer, context=context), "x").examples
    expected = min(places, key=lambda place: (abs(place - offset), place), default=-1)
    assert example.answers == (Span(text, expected),)


def test_negative_offset_does_not_count_from_the_end(read):
    # context[-4:] is the answer, but -4 is no offset.
    file = read(
        document(
            entry(answers=[{"text": "end.", "answer_start": -4}]), context="An end."
        )
    )

    assert file.examples[0].answers == (Span("end.", 3),)
    assert file.counts["offsets_repaired"] == 1


def test_overlapping_occurrences_are_all_considered(read):
    answers = [{"text": "aba", "answer_start": 3}]
    file = read(document(entry(answers=answers), context="ababa c"))

    assert file.examples[0].answers == (Span("aba", 2),)


def test_answer_not_in_the_context_is_kept_for_the_metrics(read):
    file = read(document(entry(answers=[{"text": "Paris", "answer_start": 0}])))

    assert file.examples[0].answers == (Span("Paris", -1),)
    assert file.counts["answers_not_found"] == 1
    assert file.counts["offsets_repaired"] == 0
    assert file.counts["answers"] == 1


def test_byte_order_mark_is_accepted(tmp_path):
    path = tmp_path / "windows.json"
    path.write_text(json.dumps(document()), encoding="utf-8-sig")

    assert len(read_squad(path).examples) == 1


def test_document_that_is_read_already_goes_by_its_name_in_messages(read):
    assert parse_squad(document(), "squad/v1.1") == read(document())
    with pytest.raises(UserError, match=r"^squad/v1\.1: data\[0\]: .* not null$"):
        parse_squad({"data": [None]}, "squad/v1.1")


AT_QUESTION = "data[0] 'Normans', paragraphs[0], qas[0]"
AT_ANSWER = f"{AT_QUESTION} 'q1', answers[0]"


def without(record, key):
    return {name: value for name, value in record.items() if name != key}


def answer_of(answer):
    return document(entry(answers=[answer]))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "must be an object, not a list"),
        ({}, "'data' is missing"),
        ({"data": {}}, "'data' must be a list, not an object"),
        ({"data": []}, "holds no questions"),
        ({"data": [None]}, "data[0]: must be an object, not null"),
        ({"data": [{"title": 7}]}, "data[0]: 'title' must be a string, not a whole"),
        ({"data": [{"title": "N"}]}, "data[0] 'N': 'paragraphs' is missing"),
        (
            {"data": [{"paragraphs": [{"qas": []}]}]},
            "data[0] '', paragraphs[0]: 'context' is missing",
        ),
        (document(context=" \n"), "paragraphs[0]: 'context' is blank"),
        (document(context=5), "'context' must be a string, not a whole number"),
        (document("q1"), f"{AT_QUESTION}: must be an object, not a string"),
        (document(without(entry(), "id")), f"{AT_QUESTION}: 'id' is missing"),
        (document(entry(id="")), f"{AT_QUESTION}: 'id' is blank"),
        (document(entry(id=3)), f"{AT_QUESTION}: 'id' must be a string"),
        (document(entry(question=" ")), f"{AT_QUESTION} 'q1': 'question' is blank"),
        (
            document(entry(question="\u200b")),
            f"{AT_QUESTION} 'q1': 'question' is blank",
        ),
        (
            document(entry(), entry()),
            "qas[1]: id 'q1' is already taken by an earlier question",
        ),
        (document(without(entry(), "answers")), "'q1': 'answers' is missing"),
        (document(entry(answers={})), "'answers' must be a list, not an object"),
        (
            document(entry(is_impossible=1)),
            "'is_impossible' must be true or false, not a whole number",
        ),
        (document(entry(is_impossible=True)), "is_impossible is true, yet there are"),
        (
            document(entry(is_impossible=False, answers=[])),
            "is_impossible is false, yet there are no answers",
        ),
        (answer_of(["Normandy", 23]), f"{AT_ANSWER}: must be an object, not a list"),
        (answer_of({"answer_start": 23}), f"{AT_ANSWER}: 'text' is missing"),
        (answer_of({"text": "Normandy"}), f"{AT_ANSWER}: 'answer_start' is missing"),
        (answer_of({"text": "", "answer_start": 0}), f"{AT_ANSWER}: 'text' is blank"),
        (
            answer_of({"text": "Norman", "answer_start": False}),
            f"{AT_ANSWER}: 'answer_start' must be a whole number, not true or false",
        ),
        (
            answer_of({"text": "Norman", "answer_start": 0.0}),
            f"{AT_ANSWER}: 'answer_start' must be a whole number, not a number with",
        ),
        (document(context="\ud83d"), "'context' holds half a surrogate pair"),
    ],
)
def test_malformed_file_gets_one_line_that_says_where(tmp_path, read, content, problem):
    with pytest.raises(UserError) as error:
        read(content)

    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'squad.json'}: ")
    assert problem in message
    assert len(message.splitlines()) == 1


def test_message_stays_on_one_line_whatever_the_title(read):
    with pytest.raises(UserError) as error:
        read(document(entry(id=3), title="two\nlines"))

    assert len(str(error.value).splitlines()) == 1


def test_a_packed_file(tmp_path):
    with pytest.raises(UserError, match=r"dev\.json\.gz: .* gunzip"):
        read_squad(tmp_path / "dev.json.gz")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not valid JSON: Expecting value: line 1 column 1"),
        (b'{"data": [', "is not valid JSON"),
        (b"[" * 200_000, "is not valid JSON"),
        (b'{"data": "caf\xe9"}', "is not UTF-8 (byte 13); save it as UTF-8"),
    ],
)
def test_file_that_is_not_json(tmp_path, content, problem):
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(UserError) as error:
        read_squad(path)

    assert str(error.value).startswith(f"{path}: {problem}")
    assert len(str(error.value).splitlines()) == 1


def test_missing_file(tmp_path):
    path = tmp_path / "missing.json"

    with pytest.raises(UserError) as error:
        read_squad(path)

    assert str(error.value) == f"{path}: cannot be read: No such file or directory"


def test_directory_in_place_of_a_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_squad(tmp_path)


def test_too_large_file_is_not_even_opened(tmp_path, monkeypatch):
    path = tmp_path / "large.json"
    path.write_bytes(b"x" * 11)
    monkeypatch.setattr(squad, "MAX_FILE_BYTES", 10)

    with pytest.raises(UserError, match="is larger than 10 bytes; split the file"):
        read_squad(path)


texts = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(str.strip)


@st.composite
def grouped_examples(draw):
    """Valid examples, those of one article and of one paragraph together."""
    examples = []
    for title in draw(st.lists(st.text(max_size=5), max_size=3, unique=True)):
        for context in draw(st.lists(texts, max_size=3, unique=True)):
            for _ in range(draw(st.integers(0, 3))):
                spans = draw(st.lists(spans_of(context), max_size=3))
                examples.append(
                    Example(
                        id=f"{len(examples)} {draw(texts)}",
                        question=draw(texts.filter(tokenize)),
                        context=context,
                        answers=tuple(spans),
                        title=title,
                        impossible=not spans,
                    )
                )
    return examples or [Example("1", "Who?", "He.", (Span("He", 0),))]


@st.composite
def spans_of(draw, context):
    """A non-blank piece of the context, or a text that it does not hold."""
    start = draw(st.integers(0, len(context) - 1))
    end = draw(st.integers(start + 1, len(context)))
    text = context[start:end]
    if not text.strip() or draw(st.booleans()):
        return Span(context + "!", -1)
    return Span(text, start)


@given(grouped_examples())
def test_round_trip(tmp_path_factory, examples):
    path = tmp_path_factory.mktemp("squad") / "squad.json"
    write_squad(path, examples)

    file = read_squad(path)

    assert file.examples == examples
    impossible = any(example.impossible for example in examples)
    version = json.loads(path.read_bytes())["version"]
    assert version == ("v2.0" if impossible else "1.1")
    assert file.counts["offsets_repaired"] == 0
    assert file.counts["questions"] == len(examples)
    assert file.counts["impossible"] == sum(e.impossible for e in examples)
    starts = [span.start for example in examples for span in example.answers]
    assert file.counts["answers"] == len(starts)
    assert file.counts["answers_not_found"] == starts.count(-1)


def example(identifier, title, context):
    return Example(identifier, "Who?", context, (Span(context, 0),), title)


def test_writing_groups_by_title_and_context_in_order_of_appearance(tmp_path):
    path = tmp_path / "squad.json"
    write_squad(
        path,
        [
            example("1", "B", "x"),
            example("2", "A", "y"),
            example("3", "B", "z"),
            example("4", "B", "x"),
            example("5", "A", "x"),
        ],
    )

    articles = json.loads(path.read_text(encoding="utf-8"))["data"]

    assert [
        (
            article["title"],
            [
                (p["context"], [q["id"] for q in p["qas"]])
                for p in article["paragraphs"]
            ],
        )
        for article in articles
    ] == [("B", [("x", ["1", "4"]), ("z", ["3"])]), ("A", [("y", ["2"]), ("x", ["5"])])]


def test_written_form_is_the_public_one(tmp_path):
    path = tmp_path / "squad.json"
    write_squad(path, [example("1", "A", "é")])

    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": "1.1",
        "data": [
            {
                "title": "A",
                "paragraphs": [
                    {
                        "context": "é",
                        "qas": [
                            {
                                "id": "1",
                                "question": "Who?",
                                "answers": [{"text": "é", "answer_start": 0}],
                                "is_impossible": False,
                            }
                        ],
                    }
                ],
            }
        ],
    }
    assert "é" in path.read_text(encoding="utf-8")


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "squad.json"
    path.write_text("old", encoding="utf-8")

    def full_disk(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(UserError) as error:
        write_squad(path, [example("1", "A", "x")])

    assert str(error.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_directory_is_made(tmp_path):
    write_squad(tmp_path / "new" / "squad.json", [example("1", "A", "x")])

    assert read_squad(tmp_path / "new" / "squad.json").examples


def test_writing_where_there_can_be_no_directory(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match="cannot be written"):
        write_squad(tmp_path / "file" / "squad.json", [example("1", "A", "x")])


def test_articles_and_paragraphs_are_counted(read):
    first, second = document(entry()), document(entry(id="q2"))
    first["data"][0]["paragraphs"] += document(entry(id="q3"))["data"][0]["paragraphs"]
    file = read({"data": first["data"] + second["data"]})
    assert file.counts == counts(articles=2, paragraphs=3, questions=3, answers=3)


def test_a_file_of_just_the_largest_size_is_read(tmp_path, monkeypatch):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(document()), encoding="utf-8")
    monkeypatch.setattr(squad, "MAX_FILE_BYTES", path.stat().st_size)
    assert len(read_squad(path).examples) == 1
