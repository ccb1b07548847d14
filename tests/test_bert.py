"""A reader of word pieces, from files to answers: what differs from words."""

from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from made_models import PIECE_SIZES
from tiny_runs import eagerly

from qanet import cli
from qanet.config import load_preset
from qanet.datasets.training_data import load_packed, save_packed
from qanet.datasets.training_files import read_training_data
from qanet.errors import UserError
from qanet.models.bert import LIMITS, MARKS, BERTConfig
from qanet.models.bert_weights import read_tensors
from qanet.models.registry import build_model
from qanet.reader import Reader
from qanet.run import Run
from qanet.serving.explanation import Explainer, explainer_of
from qanet.text.pieces import WordPieces
from qanet.training.distribution import make_distribution
from qanet.training.session import train_run
from qanet.training.trainer import Trainer

PUBLIC = Path(__file__).parent / "models" / "public_bert"
TINY = """
    data.context_limit=64 data.question_limit=16 data.buckets=[64]
    vocabulary.pieces=120
    model.width=8 model.blocks=2 model.heads=2 model.feed_forward=12
    training.steps=4 training.batch_size=4 training.warmup_steps=2
    training.evaluate_every=2 training.evaluation_questions=0
    training.evaluation_batch_size=4
""".split()
QUESTION, CONTEXT = "Where does Zoë7 live?", "Zoë7 lives in São Paulo, Bo’7 in Rome."


@pytest.fixture(scope="module")
def config(tiny_files):
    files = [f"data.train={tiny_files.train}", f"data.dev={tiny_files.dev}"]
    return load_preset("bert-6", [*TINY, *files])


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    """A finished run."""
    run = Run(tmp_path_factory.mktemp("runs") / "bert")
    with eagerly():
        train_run(config, run)
    return run


def test_word_pieces_are_made_of_the_training_set_and_stored(run, tiny_files):
    vocabulary = run.load_vocabulary()
    assert isinstance(vocabulary, WordPieces)
    assert 100 < len(vocabulary.pieces) <= 120
    assert {"lives", "rome"} <= set(vocabulary.pieces)
    assert [path.name for path in run.vocabulary_directory.iterdir()] == ["vocab.txt"]


def test_attention_has_a_dropout_of_its_own():
    config = BERTConfig(
        width=8, blocks=1, heads=2, feed_forward=5, dropout=0.1, attention_dropout=0.3
    )
    model = build_model(config, PIECE_SIZES)
    block = model.get_layer("block_0")
    assert (block.dropout.rate, block.attention.dropout.rate) == (0.1, 0.3)
    assert model.get_layer("embedding").dropout.rate == 0.1


def test_it_answers_with_a_piece_of_the_context(run):
    reader = Reader.load(run.directory)
    answers = reader.answer(QUESTION, CONTEXT, top_k=3)
    for answer in answers:
        assert CONTEXT[answer.start : answer.end] == answer.text
        assert answer.text


def test_it_reads_long_contexts_in_its_own_windows(run):
    reader = Reader.load(run.directory)
    shapes = []

    def noted(inputs):
        shapes.append({name: array.shape[1] for name, array in inputs.items()})
        return predict(inputs)

    predict, reader.predict = reader.predict, noted
    long = " ".join(f"Rome {i}." for i in range(500))
    answer = reader.answer("Rome? " * 20, long)
    assert long[answer.start : answer.end] == answer.text
    assert max(shape["context_pieces"] for shape in shapes) == LIMITS.window
    with pytest.raises(UserError, match=f"shorten it to at most {LIMITS.question}"):
        reader.answer("Rome? " * LIMITS.question, long)
    assert LIMITS.window + LIMITS.question + MARKS == 512


def test_evaluation_and_packed_data_read_the_same_pieces(run, config, tmp_path):
    data = read_training_data(config, tmp_path)
    assert data.vocabulary.pieces == run.load_vocabulary().pieces
    path = tmp_path / "data.npz"
    save_packed(path, data)
    again = load_packed(path, "pieces")
    assert again.vocabulary.pieces == data.vocabulary.pieces
    np.testing.assert_array_equal(again.dev.context_words, data.dev.context_words)
    np.testing.assert_array_equal(again.dev.context_spans, data.dev.context_spans)
    with pytest.raises(UserError, match="for a model of other tokens than words"):
        load_packed(path, "words")


def test_attention_between_the_texts_explains_the_answer(run):
    trained = run.load()
    told = Explainer.of(trained).explain(QUESTION, CONTEXT)
    pieces, spans = trained.vocabulary.tokens(CONTEXT)
    assert told.passage_tokens == [list(span) for span in spans]
    attention = np.array(told.attention)
    questions = trained.vocabulary.tokens(QUESTION)[0]
    assert attention.shape == (len(pieces), len(questions))
    # [CLS] question [SEP] context [SEP], by the last block's own weights.
    block = trained.model.get_layer("block_1")
    numbers = [
        trained.vocabulary.table(["", *part])["pieces"][1:][None]
        for part in (questions, pieces)
    ]
    inputs = dict(zip(("question_pieces", "context_pieces"), numbers, strict=True))
    states = keras.Model(trained.model.input, block.input)(inputs)
    weights = np.asarray(keras.ops.convert_to_numpy(block.weights_of(*states)))[0]
    first = 1 + len(questions) + 1
    expected = weights[first : first + len(pieces), 1 : 1 + len(questions)]
    np.testing.assert_allclose(attention, expected, atol=1e-4)
    assert sum(told.start) == pytest.approx(1, abs=0.01)


def test_the_server_tells_how_many_pieces_it_knows(run):
    from fastapi.testclient import TestClient
    from made_apps import app_of

    reader = Reader.load(run.directory)
    with TestClient(app_of(reader)) as client:
        told = client.get("/v1/model").json()
    assert told["words"] == len(reader.vocabulary.pieces)


def test_strings_in_a_saved_model_are_refused(run, tmp_path, refused):
    arguments = ["export", "--model", str(run.directory), "--format", "saved_model"]
    error = refused(cli.main, *arguments, "--output", tmp_path / "out")
    assert "bert reads word pieces" in error
    assert "onnx or litert" in error


@pytest.mark.parametrize("lengths", [(12, 5), (31, 9), (1, 1)])
def test_onnx_and_litert_give_the_logits(exported, run, rng, lengths):
    model = run.load().model
    inputs = {
        f"{text}_pieces": rng.integers(1, 100, (1, length)).astype("int32")
        for text, length in zip(("context", "question"), lengths, strict=True)
    }
    expected = model(inputs)
    onnx, litert = exported
    for found in (onnx(inputs), litert(inputs)):
        for name, logits in expected.items():
            np.testing.assert_allclose(found[name], logits, atol=1e-4)


def test_an_onnx_export_answers_as_the_run_does(run, onnx_directory):
    expected = Reader.load(run.directory).answer(QUESTION, CONTEXT, top_k=3)
    reader = Reader.load(onnx_directory)
    found = reader.answer(QUESTION, CONTEXT, top_k=3)
    assert [a.text for a in found] == [a.text for a in expected]
    # And tells why.
    one = explainer_of(reader, None).explain(QUESTION, CONTEXT)
    other = Explainer.of(run.load()).explain(QUESTION, CONTEXT)
    np.testing.assert_allclose(one.attention, other.attention, atol=1e-3)


@pytest.fixture(scope="module")
def onnx_directory(run, tmp_path_factory):
    from qanet.export import portable

    directory = tmp_path_factory.mktemp("onnx")
    portable.export_onnx(run.load(), directory)
    return directory


@pytest.fixture(scope="module")
def exported(run, onnx_directory, tmp_path_factory):
    """What reads each of the files."""
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    from qanet.export import portable

    directory = tmp_path_factory.mktemp("export")
    portable.export_litert(run.load(), directory)
    assert (directory / "vocab.txt").is_file()
    assert (onnx_directory / "vocab.txt").is_file()
    session = onnxruntime.InferenceSession(onnx_directory / "model.onnx")
    names = [output.name for output in session.get_outputs()]

    def onnx(inputs):
        return dict(zip(names, session.run(names, inputs), strict=True))

    litert = Interpreter(str(directory / "model.tflite")).get_signature_runner()
    return onnx, lambda inputs: litert(**inputs)


@pytest.fixture
def begun(config, tmp_path):
    """A trainer that begins with the public weights, and what it needs."""
    model = config.model.model_copy(update={"pretrained": str(PUBLIC)})
    config = config.model_copy(update={"model": model})
    data = read_training_data(config, tmp_path / "cache")
    run = Run(tmp_path / "run")

    def make():
        distribution = make_distribution(config.distribution)
        return Trainer(config, data, run, distribution)

    return SimpleNamespace(make=make, run=run, data=data)


def table_of(trainer):
    return keras.ops.convert_to_numpy(trainer.model.get_layer("embedding").piece_table)


def test_training_begins_with_public_weights_and_their_pieces(begun):
    _, tensors = read_tensors(PUBLIC)
    public = tensors["embeddings.word_embeddings.weight"]
    assert begun.data.vocabulary.pieces == WordPieces.load(PUBLIC).pieces
    trainer = begun.make()
    np.testing.assert_array_equal(table_of(trainer), public)
    # And so do the averages.
    averages = map(keras.ops.convert_to_numpy, trainer.loop.task.learner.averages)
    assert any(a.shape == public.shape and (a == public).all() for a in averages)
    # A training that goes on needs them no more.
    begun.run.checkpoint_directory.mkdir(parents=True)
    (begun.run.checkpoint_directory / "step-000002.npz").touch()
    assert not np.array_equal(table_of(begun.make()), public)


def test_public_weights_of_another_size_are_refused_at_once(
    tiny_files, tmp_path, refused
):
    arguments = ["train", "--preset", "bert-6", "--output", str(tmp_path / "run")]
    arguments += ["--train", str(tiny_files.train), "--dev", str(tiny_files.dev)]
    error = refused(cli.main, *arguments, "--set", f"model.pretrained={PUBLIC}")
    assert "give --set model.width=8 --set model.blocks=2" in error
    assert not (tmp_path / "run").exists()
