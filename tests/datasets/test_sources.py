"""Tests of qanet.datasets.sources: the real tfds builder, but no network."""

import io
import json
import logging
import re
import sys
import urllib.error
from functools import partial
from pathlib import Path

import keras
import pytest

from qanet.console import log
from qanet.datasets.sources import SQUAD_FILES, SQUAD_URL, load_examples
from qanet.datasets.squad import COUNTS, Example, Span, read_squad
from qanet.errors import UserError

# Two code points outside ASCII before an answer tell characters from bytes.
FORTRESS = "Zoë’s fortress fell in 1204."
RIVER = "The Seine flows north."


def squad(*articles):
    """A SQuAD 1.1 document of (title, context, qas) triples, a paragraph each."""
    data = [
        {"title": title, "paragraphs": [{"context": context, "qas": qas}]}
        for title, context, qas in articles
    ]
    return {"version": "1.1", "data": data}


def qa(id, question, *answers):
    return {
        "id": id,
        "question": question,
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
    }


TRAIN = squad(
    (
        "Normans",
        FORTRESS,
        [
            qa("n4", "When did it fall?", ("1204", 23)),
            qa("n3", "What fell?", ("fortress", 6)),
            qa("n2", "When?", ("in 1204", 20)),
            qa("n1", "Whose fortress?", ("Zoë", 0)),
        ],
    ),
    ("France", RIVER, [qa("f1", "Which river?", ("Seine", 4), ("The Seine", 0))]),
)
DEV = squad(("Paris", RIVER, [qa("p1", "Where to?", ("north", 16))]))


@pytest.fixture
def tfds(tmp_path, monkeypatch):
    """tensorflow-datasets with its directory in `tmp_path`, and a network."""
    import tensorflow_datasets as tfds

    directory = tmp_path / "tfds"
    monkeypatch.setattr(tfds, "builder", partial(tfds.builder, data_dir=directory))
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO())
    return tfds


@pytest.fixture
def served(tfds, tmp_path, monkeypatch):
    """Serves TRAIN and DEV in place of a download."""
    files = {}
    for name, document in (("train", TRAIN), ("dev", DEV)):
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps(document), encoding="utf-8")

    def download(manager, urls):
        assert {name: url.rpartition("/")[2] for name, url in urls.items()} == {
            "train": "train-v1.1.json",
            "dev": "dev-v1.1.json",
        }
        return files

    manager = tfds.download.DownloadManager
    monkeypatch.setattr(manager, "download_and_extract", download)
    return files


@pytest.mark.parametrize(("split", "questions"), [("train", 2298), ("dev", 324)])
def test_the_sample_is_found_from_anywhere(tmp_path, monkeypatch, split, questions):
    monkeypatch.chdir(tmp_path)
    assert load_examples("sample", split).counts["questions"] == questions
    # But a file of this name is that file.
    (tmp_path / "sample").write_text(json.dumps(DEV), encoding="utf-8")
    assert load_examples("sample", split).counts["questions"] == 1


def test_squad_by_name(served):
    file = load_examples("squad", "train")
    # By title, context and id, whatever order tensorflow-datasets delivers.
    assert file.examples == [
        Example(
            "f1",
            "Which river?",
            RIVER,
            (Span("Seine", 4), Span("The Seine", 0)),
            "France",
        ),
        Example("n1", "Whose fortress?", FORTRESS, (Span("Zoë", 0),), "Normans"),
        Example("n2", "When?", FORTRESS, (Span("in 1204", 20),), "Normans"),
        Example("n3", "What fell?", FORTRESS, (Span("fortress", 6),), "Normans"),
        Example("n4", "When did it fall?", FORTRESS, (Span("1204", 23),), "Normans"),
    ]
    assert file.examples[1].context is file.examples[2].context
    counted = {"articles": 2, "paragraphs": 2, "questions": 5, "answers": 6}
    assert file.counts == dict.fromkeys(COUNTS, 0) | counted


def test_what_is_said_of_a_download_does_not_mix_with_results(served, capsys):
    load_examples("squad", "train")
    assert capsys.readouterr().out == ""


def test_dev_of_squad_is_its_validation_split(served):
    assert [example.id for example in load_examples("squad", "dev").examples] == ["p1"]


def test_squad_by_name_is_the_file_that_is_downloaded(served):
    by_id = {e.id: e for e in read_squad(served["train"]).examples}
    assert {e.id: e for e in load_examples("squad", "train").examples} == by_id


def test_squad_is_prepared_once(served, monkeypatch):
    first = load_examples("squad", "train")
    monkeypatch.setattr("urllib.request.urlopen", no_network)
    for path in served.values():
        path.unlink()
    assert load_examples("squad", "train").examples == first.examples


@pytest.mark.parametrize(
    "error",
    [ConnectionError("no route to host\nretried 5 times"), OSError(), KeyError()],
)
def test_a_download_that_fails(tfds, monkeypatch, error):
    def download(*_):
        raise error

    monkeypatch.setattr(tfds.download.DownloadManager, "download_and_extract", download)
    with pytest.raises(UserError) as refusal:
        load_examples("squad", "dev")
    message = str(refusal.value)
    assert message.isprintable(), "one line"
    assert message.startswith("squad: tensorflow-datasets could not provide squad/v1.1")
    assert str(error).partition("\n")[0] in message
    assert "give the path of a SQuAD file" in message


def no_network(*_, **__):
    raise urllib.error.URLError("no address for this name")


def test_without_a_network_nothing_is_tried_again(tfds, monkeypatch):
    def download(*_):
        pytest.fail("tensorflow-datasets tries for minutes")

    monkeypatch.setattr(tfds.download.DownloadManager, "download_and_extract", download)
    monkeypatch.setattr("urllib.request.urlopen", no_network)
    with pytest.raises(UserError, match=r"no address for this name.*check the network"):
        load_examples("squad", "train")


def test_a_server_that_refuses_the_question_is_asked_for_the_file(served, monkeypatch):
    def refuse(request, **_):
        raise urllib.error.HTTPError(request.full_url, 405, "no HEAD", None, None)

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    assert load_examples("squad", "dev").examples


def test_a_damaged_preparation_is_the_same_error(served, tmp_path):
    load_examples("squad", "train")
    (records,) = (tmp_path / "tfds").rglob("squad-train.tfrecord*")
    records.write_bytes(records.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"squad/v1\.1"):
        load_examples("squad", "train")


@pytest.fixture
def without_tfds(monkeypatch, tmp_path):
    """A machine without tensorflow-datasets; what is downloaded is noted."""
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def get_file(name, url, **options):
        asked.append((name, url, options))
        # Keras itself takes another place where this one is missing.
        assert options["cache_dir"].is_dir()
        sys.stdout.write("Downloading\n")
        path = tmp_path / name
        path.write_text(json.dumps(TRAIN), encoding="utf-8")
        return str(path)

    monkeypatch.setattr(keras.utils, "get_file", get_file)
    return asked


@pytest.mark.parametrize(
    ("source", "split", "name"),
    [
        ("squad", "train", "train-v1.1.json"),
        ("squad", "dev", "dev-v1.1.json"),
        ("squad_v2", "train", "train-v2.0.json"),
        ("squad_v2", "dev", "dev-v2.0.json"),
    ],
)
def test_squad_without_tensorflow_datasets(
    without_tfds, tmp_path, capsys, source, split, name
):
    found = load_examples(source, split).examples
    by_id = {example.id: example for example in read_squad(tmp_path / name).examples}
    # In the order that tensorflow-datasets gives.
    assert [example.id for example in found] == ["f1", "n1", "n2", "n3", "n4"]
    assert {example.id: example for example in found} == by_id
    ((asked, url, options),) = without_tfds
    assert asked == name
    assert url == f"https://rajpurkar.github.io/SQuAD-explorer/dataset/{name}"
    assert re.fullmatch("[0-9a-f]{64}", options["file_hash"])
    assert str(tmp_path / "cache") in str(options["cache_dir"])
    assert capsys.readouterr().out == ""


def test_checksums_are_those_of_tensorflow_datasets():
    import tensorflow_datasets as tfds

    root = Path(tfds.__file__).parent / "datasets" / "squad" / "checksums.tsv"
    lines = [line.split("\t") for line in root.read_text().splitlines()]
    known = {url: checksum for url, _, checksum, _ in lines}
    assert known == {
        SQUAD_URL + name: checksum for name, checksum in SQUAD_FILES.values()
    }


def test_what_a_download_prints_goes_where_remarks_go(
    without_tfds, monkeypatch, capsys
):
    for level, printed in ((logging.INFO, "Downloading\n"), (logging.WARNING, "")):
        monkeypatch.setattr(log, "level", level)
        load_examples("squad", "dev")
        assert capsys.readouterr() == ("", printed)
    # Nor is a closed standard error a failed download.
    monkeypatch.setattr(log, "level", logging.INFO)
    monkeypatch.setattr(sys, "stderr", None)
    assert load_examples("squad", "dev").examples


def test_a_download_from_the_authors_that_fails(without_tfds, monkeypatch):
    def get_file(*_, **__):
        raise ValueError("Incomplete or corrupted file detected\nmore")

    monkeypatch.setattr(keras.utils, "get_file", get_file)
    with pytest.raises(
        UserError, match=r"train-v1\.1\.json could not be downloaded"
    ) as e:
        load_examples("squad", "train")
    assert "corrupted" in str(e.value)
    assert "\n" not in str(e.value)


def test_without_keras_too_a_name_is_a_users_mistake(without_tfds, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(
        UserError, match=r"squad: give the path of a SQuAD .*: pip install keras$"
    ):
        load_examples("squad", "dev")


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_path_is_read_whatever_the_split(tmp_path, split):
    path = tmp_path / "my.json"
    path.write_text(json.dumps(TRAIN), encoding="utf-8")
    expected = read_squad(path)
    for source in (path, str(path)):
        assert load_examples(source, split) == expected


def test_a_file_named_squad_is_a_file(served, tmp_path, monkeypatch):
    (tmp_path / "squad").write_text(json.dumps(DEV), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert [example.id for example in load_examples("squad", "train").examples] == [
        "p1"
    ]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"SQuAD\.json: cannot be read"):
        load_examples(tmp_path / "SQuAD.json", "train")


def test_a_malformed_file_is_named(tmp_path):
    path = tmp_path / "my.json"
    path.write_text("{}")
    with pytest.raises(UserError, match=r"my\.json: 'data' is missing"):
        load_examples(path, "train")


def test_squad_2_by_name(tfds, tmp_path, monkeypatch):
    document = squad(
        ("Normans", FORTRESS, [qa("n1", "When?", ("1204", 23)), qa("n2", "Who fell?")])
    )
    for question in document["data"][0]["paragraphs"][0]["qas"]:
        question["is_impossible"] = not question["answers"]
    path = tmp_path / "train.json"
    path.write_text(json.dumps(document), encoding="utf-8")

    def download(manager, urls):
        assert urls["train"].endswith("train-v2.0.json")
        return {"train": path, "dev": path}

    manager = tfds.download.DownloadManager
    monkeypatch.setattr(manager, "download_and_extract", download)
    file = load_examples("squad_v2", "train")
    assert [(e.id, e.impossible) for e in file.examples] == [
        ("n1", False),
        ("n2", True),
    ]
    assert file.counts["impossible"] == 1


def test_a_directory_of_that_name_is_no_file(tmp_path, monkeypatch):
    (tmp_path / "sample").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_examples("sample", "dev").counts["questions"] == 324


def test_paragraphs_come_in_the_order_of_their_texts(served):
    paragraphs = [
        {"context": f"{text} is.", "qas": [qa(text, "Which?", (text, 0))]}
        for text in "gcaebdf"
    ]
    document = {"data": [{"title": "Letters", "paragraphs": paragraphs}]}
    served["train"].write_text(json.dumps(document), encoding="utf-8")
    examples = load_examples("squad", "train").examples
    assert [example.id for example in examples] == list("abcdefg")


def test_the_server_is_asked_for_a_head_alone_and_not_for_ever(served, monkeypatch):
    asked = []

    def answer(request, timeout=None):
        asked.append((request.get_method(), request.full_url, timeout))
        return io.BytesIO()

    monkeypatch.setattr("urllib.request.urlopen", answer)
    load_examples("squad", "dev")
    url = "https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json"
    assert asked == [("HEAD", url, 10)]
