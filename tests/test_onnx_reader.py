"""Tests of qanet.onnx_reader: answers are those of Keras, without Keras."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tiny_runs import BLOCKING, ROOT

from qanet.checksums import write_checksums
from qanet.errors import UserError
from qanet.export import portable
from qanet.onnx_reader import is_export, load_export
from qanet.reader import Reader

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"
PAIRS = [
    (QUESTION, CONTEXT),
    ("Who?", ["Bo in Oslo", CONTEXT]),
    ("Who lives? " * 30, "word " * 1200),
]
# What it takes to compute with a model, but for ONNX Runtime.
HEAVY = (
    *("tensorflow", "keras", "jax", "torch", "tensorflow_datasets", "h5py"),
    *("tensorboardX", "importlib_resources", "tf2onnx", "onnx"),
)


@pytest.fixture(scope="module")
def export(doubting_model, tmp_path_factory):
    """An export of a model that knows no answer and sees matches."""
    directory = tmp_path_factory.mktemp("export")
    portable.export_onnx(doubting_model, directory)
    return directory


def test_answers_are_those_of_keras(export, doubting_reader):
    reader = Reader.load(export)
    assert reader.threshold == doubting_reader.threshold == 0.25
    for found, expected in zip(
        reader.answer_many(PAIRS, 3), doubting_reader.answer_many(PAIRS, 3), strict=True
    ):
        assert [vars_of(a)[:4] for a in found] == [vars_of(a)[:4] for a in expected]
        np.testing.assert_allclose(
            [a.score for a in found], [a.score for a in expected], atol=1e-3
        )


def vars_of(answer):
    return answer.text, answer.start, answer.end, answer.passage, answer.score


@pytest.mark.parametrize(("own", "machine", "threads"), [(2, 64, 2), (64, 64, 0)])
def test_it_takes_no_more_cores_than_the_process_has(
    export, session_threads, monkeypatch, own, machine, threads
):
    """By itself ONNX Runtime takes all of the machine."""
    monkeypatch.setattr("qanet.onnx_reader.own_cores", lambda: own)
    monkeypatch.setattr("os.cpu_count", lambda: machine)
    Reader.load(export)
    # One for the words' side.
    assert sorted(session_threads) == sorted([1, threads])


def test_only_an_export_is_one(export, trained):
    assert is_export(export)
    assert not is_export(trained.directory)
    assert not is_export(export / "absent")


def test_a_name_that_onnx_runtime_does_not_open(export, tmp_path):
    copy = tmp_path / "a\udcff"
    shutil.copytree(export, copy)
    with pytest.raises(UserError, match="opens only names in UTF-8; rename it"):
        Reader.load(copy)


def test_neither_keras_nor_tensorflow_is_needed(
    export, doubting_reader, door, tiny_files, context_file, tmp_path
):
    answered = door(
        *("-m", "qanet", "answer", "--model", export, "--question", QUESTION),
        *("--context-file", context_file, "--json"),
        blocked=HEAVY,
    )
    assert answered.returncode == 0, answered.stderr
    expected = doubting_reader.answer(QUESTION, CONTEXT)
    found = json.loads(answered.stdout)
    assert (found["text"], found["start"]) == (expected.text, expected.start)

    evaluated = door(
        *("evaluate.py", "--model", export, "--data", tiny_files.dev),
        *("--output", tmp_path / "out"),
        blocked=HEAVY,
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout.splitlines()[-1])["total"] == 10

    # What does need them says so.
    trained = door("-m", "qanet", "train", blocked=HEAVY)
    assert trained.returncode == 2
    (line,) = trained.stderr.splitlines()
    assert line.startswith("error: ")
    assert "Keras cannot be imported" in line


def test_the_server_needs_neither(export, doubting_reader):
    command = [sys.executable, "-c", BLOCKING, ",".join(HEAVY), "-m", "qanet", "serve"]
    with subprocess.Popen(
        [*command, "--model", str(export), "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            (address,) = re.findall(r"http://\S+", process.stdout.readline())
            asked = {"questions": [QUESTION], "passages": [CONTEXT]}
            request = urllib.request.Request(
                f"{address}/v1/answer",
                json.dumps(asked).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                ((answer,),) = json.load(response)["answers"]
        finally:
            process.kill()
    assert answer["text"] == doubting_reader.answer(QUESTION, CONTEXT).text


@pytest.fixture
def context_file(tmp_path):
    path = tmp_path / "context.txt"
    path.write_bytes(CONTEXT.encode())
    return path


def test_the_server_reads_it_in_several_threads(
    export, doubting_reader, doubting_model
):
    from fastapi.testclient import TestClient
    from made_apps import app_of_many

    from qanet.serving.explanation import Explainer
    from qanet.serving.served import Loaded

    contexts = [f"Zoë lives in {place}. {CONTEXT}" for place in ("Oslo", "Rome") * 8]
    expected = [doubting_reader.answer(QUESTION, context) for context in contexts]
    one = Loaded(Reader.load(export, threads=1), workers=2)
    with TestClient(app_of_many({"only": one})) as client:

        def ask(context):
            asked = {"questions": [QUESTION], "passages": [context]}
            ((answer,),) = client.post("/v1/answer", json=asked).json()["answers"]
            return answer["text"]

        with ThreadPoolExecutor(8) as clients:
            assert [*clients.map(ask, contexts)] == [answer.text for answer in expected]
        asked = {"question": QUESTION, "passage": CONTEXT}
        told = client.post("/v1/explain", json=asked).json()
    expected = vars(Explainer.of(doubting_model).explain(QUESTION, CONTEXT))
    assert told.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(told[name], values, atol=2e-3)


@pytest.fixture
def copy(export, tmp_path):
    return shutil.copytree(export, tmp_path / "copy")


def test_files_that_do_not_belong_together(copy):
    table = np.load(copy / "word_table.npy")
    np.save(copy / "word_table.npy", table[:, :-1])
    with pytest.raises(UserError, match=r"\.onnx: (cannot compute|is not the network)"):
        Reader.load(copy).answer(QUESTION, CONTEXT)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("reader.json", b"{"),
        ("reader.json", b"[]"),
        ("reader.json", b'{"format": 99, "config": {}}'),
        ("reader.json", b'{"format": 2}'),
        ("reader.json", b'{"format": 2, "config": {"model": {"name": "gpt"}}}'),
        ("reader.json", b"\xff"),
        ("reader.json", b'{"format": 2, "config": {}, "threshold": 7}'),
        ("reader.json", b'{"format": 2, "config": {}, "threshold": NaN}'),
        ("reader.json", b'{"format": 2, "config": {}, "threshold": %d}' % 10**400),
        ("reader.json", b"[" * 100_000),
        ("vocabulary.json", b"{}"),
        ("vocabulary.json", None),
        ("model.onnx", b"no network"),
        ("model.onnx", None),
        ("words.onnx", None),
        ("word_table.npy", b""),
    ],
)
def test_a_damaged_export_is_a_users_mistake(copy, name, content):
    (copy / name).unlink() if content is None else (copy / name).write_bytes(content)
    with pytest.raises(UserError) as error:
        load_export(copy)
    assert str(copy / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_network_of_another_reader_is_refused(copy):
    described = json.loads((copy / "reader.json").read_bytes())
    described["config"]["model"] = {"name": "bert"}
    described["config"]["data"] |= {"context_limit": 317, "buckets": [317]}
    (copy / "reader.json").write_text(json.dumps(described))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (copy / "vocab.txt").write_text("\n".join(pieces))
    with pytest.raises(UserError, match=r"model\.onnx: is not the network of this"):
        load_export(copy)


@pytest.mark.parametrize(
    "name", ["model.onnx", "words.onnx", "word_table.npy", "vocabulary.json"]
)
def test_a_file_that_its_checksum_does_not_tell_of(copy, name, monkeypatch):
    write_checksums(copy)
    load_export(copy)
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    # It is not even read, for that may end the process.
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError) as error:
        load_export(copy)
    assert str(copy / name) in str(error.value)
    assert "SHA256SUMS" in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scales_that_are_no_numbers(copy, doubting_model, value):
    portable.export_onnx(doubting_model, copy, bits=8)
    scales = np.load(copy / "word_scales.npy")
    np.save(copy / "word_scales.npy", np.full_like(scales, value))
    with pytest.raises(UserError, match="no finite number"):
        Reader.load(copy).answer(QUESTION, CONTEXT)


def test_onnx_runtime_is_named_where_it_lacks(export, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match="pip install onnxruntime"):
        load_export(export)


def test_nothing_is_told_to_the_makers_of_onnx_runtime(export, tmp_path):
    """It would keep what it wants to send below the home directory."""
    code = f"from qanet import Reader; Reader.load({str(export)!r}).answer(*{PAIRS[0]})"
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    others = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=others | home, check=True
    )
    assert not [*tmp_path.rglob("*onnxruntime*"), *tmp_path.rglob("*Microsoft*")]
