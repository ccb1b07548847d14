"""Tests of qanet.pretraining.texts."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.pretraining.texts import read_documents, split_held_out


def squad(*articles):
    """A SQuAD file of contexts alone."""
    data = [{"paragraphs": [{"context": c} for c in article]} for article in articles]
    return json.dumps({"data": data})


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        content = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return write


@pytest.mark.parametrize("name", ["text.txt", "text.gz", "text"])
def test_a_blank_line_ends_a_document(write, name):
    path = write(name, "\ufeff\n\nOne.\r\n Zoë two. \n \t\n\nThree.\n\n\nFour.")
    assert read_documents([path]) == [["One.", "Zoë two."], ["Three."], ["Four."]]


def test_an_article_is_a_document_and_each_context_is_read_once(write):
    one = write("one.json", squad(["a", "b", "a"], ["c"], [" "]))
    two = write("two.json", squad(["b", " d "], ["c"]))
    text = write("text", "a\na")
    assert read_documents([one, two, text]) == [["a", "b"], ["c"], ["d"], ["a", "a"]]
    # Nothing is left of a file that is there twice.
    assert read_documents([one, one]) == [["a", "b"], ["c"]]


@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_what_is_written_is_read(write, texts):
    documents = [[" ".join(text.split()) for text in texts_] for texts_ in texts]
    documents = [[text for text in document if text] for document in documents]
    documents = [document for document in documents if document]
    lines = "\n\n".join("\n".join(document) for document in documents)
    if documents:
        # Not what else Python takes for the end of a line.
        assert read_documents([write("text", lines)]) == documents


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text", "", "text: holds no text"),
        ("text", " \n\t\n", "text: holds no text"),
        ("a.json", squad([" "], []), "a.json: holds no text"),
        ("text", b"caf\xe9", "text: line 1 is not UTF-8"),
        ("a.json", b"caf\xe9", "a.json: is not UTF-8"),
        ("a.json", "{", "a.json: is not valid JSON"),
        ("a.json.gz", "{}", "a.json.gz: is packed JSON; unpack it"),
        ("a.tsv", "a\tb", r"a.tsv: is a table.* cut -f1"),
        ("a.tsv.gz", "a\tb", r"a.tsv.gz: is a table.* cut -f1"),
        *(
            ("a.json", content, "a.json: is not a SQuAD file")
            for content in (
                "[]",
                "3",
                "null",
                '{"data": null}',
                '{"data": "abc"}',
                '{"data": [3]}',
                '{"data": [{"paragraphs": [3]}]}',
                '{"data": [{"paragraphs": [{"context": 3}]}]}',
                '{"data": [{"paragraphs": [{"contexts": "x"}]}]}',
            )
        ),
    ],
)
def test_files_that_cannot_be_read_are_named(write, name, content, message):
    path = write(name, content)
    with pytest.raises(UserError, match=message) as error:
        read_documents([path])
    assert "\n" not in str(error.value)


def test_a_damaged_archive_and_a_missing_file(write, tmp_path):
    path = write("a.gz", "text " * 1000)
    (tmp_path / "a.gz").write_bytes((tmp_path / "a.gz").read_bytes()[:-12])
    with pytest.raises(UserError, match=r"a\.gz: is not a whole gzip file"):
        read_documents([path])
    for name in ("missing.json", "missing.txt"):
        with pytest.raises(UserError, match=rf"{name}: cannot be read"):
            read_documents([str(tmp_path / name)])


DOCUMENTS = [[f"Text {i}.", "More."] for i in range(50)]


def test_held_out_documents_follow_from_the_texts():
    train, held_out = split_held_out(DOCUMENTS, 0.1, 2)
    assert len(held_out) == 5
    assert sorted(train + held_out) == sorted(DOCUMENTS)
    backwards = split_held_out(DOCUMENTS[::-1], 0.1, 2)
    assert sorted(backwards[1]) == sorted(held_out)
    # Those of the front are as good as others.
    assert any(document not in DOCUMENTS[:10] for document in held_out)


@pytest.mark.parametrize(("share", "expected"), [(0.001, 2), (0.5, 3), (0.999, 4)])
def test_either_part_has_enough_documents(share, expected):
    train, held_out = split_held_out(DOCUMENTS[:6], share, 2)
    assert (len(train), len(held_out)) == (6 - expected, expected)


def test_too_few_documents():
    with pytest.raises(UserError, match=r"--text: 3 documents are too few.*least 4"):
        split_held_out(DOCUMENTS[:3], 0.1, 2)


def test_half_a_surrogate_pair_is_no_obstacle(write):
    (document,) = read_documents([write("a.json", squad(["\ud800 x"]))])
    assert document == ["\ud800 x"]
    split_held_out([document] * 4, 0.5, 2)
