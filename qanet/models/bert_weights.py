"""Weights of public BERT models: what their files hold, and where it goes.

Two layouts are read: a directory with `config.json`, `vocab.txt` and
`model.safetensors`, which is also written, and the original one with
`bert_config.json`, `vocab.txt` and the TensorFlow checkpoint `bert_model.ckpt`.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qanet.errors import UserError, first_line, needing, reading
from qanet.files import parse_json, write_file, write_text
from qanet.text.pieces import WordPieces

if TYPE_CHECKING:
    import keras

    from qanet.models.bert import BERTConfig

# Below the directory of a pre-training.
ENCODER_DIRECTORY = "encoder"
SAFETENSORS, CHECKPOINT = "model.safetensors", "bert_model.ckpt"

# What the encoder's tensors begin with where those of heads are beside them.
PREFIX = "bert."
# A reader's head, a matrix and a bias.
READER_HEAD = "qa_outputs"
PIECE_TABLE, POSITION_TABLE = (
    f"embeddings.{name}_embeddings.weight" for name in ("word", "position")
)

WHOLE = slice(None)

# What a file's settings are called here, and the only value that some may have.
SETTINGS = {
    "hidden_size": "width",
    "num_hidden_layers": "blocks",
    "num_attention_heads": "heads",
    "intermediate_size": "feed_forward",
}
FIXED = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2}

# Heads and other tensors that a model or a file may lack. But a file with one tensor of
# a reader's head must have both.
OPTIONAL = re.compile(rf"pooler\.|cls\.|embeddings\.position_ids|{READER_HEAD}\.")


def load_pretrained(model: "keras.Model", config: "BERTConfig") -> None:
    """Gives a model of `qanet.models.bert.encode` the weights of `config.pretrained`.

    The pointer of a reader and the heads of a pre-training stay as they are where the
    file has none.

    Raises:
        UserError: a file is missing or damaged, is of other sizes than the model, or
            lacks a tensor, has one that is not known, or one of another shape.
    """
    directory = Path(config.pretrained)
    check_sizes(config)
    path, tensors = read_tensors(directory)
    is_reader = any(name.startswith(READER_HEAD) for name in tensors)
    values = {}
    for name, place in places(model).items():
        if name not in tensors:
            is_needed = is_reader and name.startswith(READER_HEAD)
            if OPTIONAL.match(name) and not is_needed:
                continue
            raise UserError(f"{path}: has no tensor {name}")
        tensor = place.change(tensors.pop(name))
        if not np.isfinite(tensor).all():
            raise UserError(
                f"{path}: {name} has what is no finite number; fetch the model anew"
            )
        whole = values.setdefault(
            id(place.variable), (place.variable, np.array(place.variable))
        )[1]
        target = whole[..., place.part]
        if tensor.shape != target.shape:
            raise UserError(
                f"{path}: {name} has shape {tensor.shape}, not {target.shape}"
            )
        target[...] = tensor
    left = sorted(name for name in tensors if not OPTIONAL.match(name))
    if left:
        raise UserError(f"{path}: has a tensor {left[0]}, for which there is no place")
    for variable, value in values.values():
        variable.assign(value)


def save_pretrained(
    model: "keras.Model", config: "BERTConfig", directory: Path
) -> None:
    """Writes what `load_pretrained` reads, in the layout of public models.

    `vocab.txt`, which belongs to it, is what `WordPieces.save` writes.

    Args:
        model: of `qanet.models.bert.encode`, with the heads of a pre-training.
        config: its settings.
        directory: where `config.json` and `model.safetensors` go.

    Raises:
        UserError: safetensors is not installed, or the disk refuses a file.
    """
    safetensors = safetensors_library()
    tensors = {}
    for name, place in places(model).items():
        # Each change undoes itself.
        tensor = place.change(np.array(place.variable)[..., place.part])
        public = name if name.startswith("cls.") else f"{PREFIX}{name}"
        tensors[public] = np.ascontiguousarray(tensor)
    stored = {
        "architectures": ["BertForPreTraining"],
        "model_type": "bert",
        "vocab_size": len(tensors[f"{PREFIX}{PIECE_TABLE}"]),
        "max_position_embeddings": len(tensors[f"{PREFIX}{POSITION_TABLE}"]),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "pad_token_id": 0,
        **{theirs: getattr(config, ours) for theirs, ours in SETTINGS.items()},
        **FIXED,
    }
    # That it is of PyTorch's order of axes, which other readers ask for.
    content = safetensors.numpy.save(tensors, metadata={"format": "pt"})
    write_file(directory / SAFETENSORS, lambda file: file.write(content))
    # Last, so that it is there where all is.
    write_text(directory / "config.json", json.dumps(stored, indent=2) + "\n")


def check_pretrained(config: "BERTConfig") -> None:
    """Refuses a directory that is no public model, or one of other sizes.

    Raises:
        UserError: a file is missing, the sizes are others, or the vocabulary is none.
    """
    check_sizes(config)
    directory = Path(config.pretrained)
    weight_files(directory)
    WordPieces.load(directory)


def check_sizes(config: "BERTConfig") -> None:
    """Refuses files of a model of other sizes; says how to set them.

    Raises:
        UserError: they are, or their configuration cannot be read.
    """
    wanted = read_sizes(Path(config.pretrained))
    if any(getattr(config, ours) != value for ours, value in wanted.items()):
        raise UserError(
            f"{config.pretrained}: is of another size than the model; give "
            f"{size_options(wanted)}"
        )


def read_sizes(directory: Path) -> dict[str, int]:
    """The sizes of a public model, as settings of ours.

    Raises:
        UserError: its configuration cannot be read, or is of another kind of model.
    """
    check_encoder(directory)
    path = directory / "config.json"
    if not path.exists():
        path = directory / "bert_config.json"
    try:
        with reading(path):
            stored = dict(parse_json(path.read_bytes()))
        sizes = {ours: int(stored[theirs]) for theirs, ours in SETTINGS.items()}
    except (KeyError, OverflowError, TypeError, ValueError):
        raise UserError(f"{path}: not the configuration of a BERT model") from None
    for key, value in FIXED.items():
        if stored.get(key, value) != value:
            raise UserError(f"{path}: {key} is {stored[key]!r}; only {value!r} is read")
    return sizes


def check_encoder(directory: Path) -> None:
    """Refuses what is no directory, and a pre-training's in place of its encoder's."""
    if not directory.is_dir():
        raise UserError(
            f"{directory}: is no directory; give that of a language model, or "
            "RUN_DIR/encoder of a pre-training"
        )
    if all((directory / n).is_dir() for n in (ENCODER_DIRECTORY, "checkpoints")):
        raise UserError(
            f"{directory}: is a pre-training's; give {directory / ENCODER_DIRECTORY}"
        )


def size_options(sizes: Mapping[str, int]) -> str:
    """The options that give a model these sizes; others than sizes are left out."""
    return " ".join(f"--set model.{key}={sizes[key]}" for key in SETTINGS.values())


def read_tensors(directory: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """All tensors of a public model by the names of the safetensors layout.

    Matrices are `(output, input)`, as that layout has them.

    Returns:
        The file, and its tensors.

    Raises:
        UserError: there is no such file, or it is damaged.
    """
    first, *_ = weight_files(directory)
    if first.name == SAFETENSORS:
        return first, _read_safetensors(first)
    return directory / CHECKPOINT, _read_checkpoint(directory / CHECKPOINT)


def weight_files(directory: Path) -> list[Path]:
    """The files of a public model's weights; of two copies those that are read.

    Raises:
        UserError: there are none.
    """
    if (directory / SAFETENSORS).exists():
        return [directory / SAFETENSORS]
    if (directory / f"{CHECKPOINT}.index").exists():
        return sorted(directory.glob(f"{CHECKPOINT}.*"))
    raise UserError(
        f"{directory}: has neither {SAFETENSORS} nor {CHECKPOINT}.index; give the "
        "directory of a public BERT model"
    )


def safetensors_library():
    """The library for files of public models; raises `UserError` without it."""
    with needing("weights of public models need safetensors", "safetensors"):
        import safetensors.numpy
    return safetensors


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    safetensors = safetensors_library()
    with reading(path):
        try:
            tensors = safetensors.numpy.load_file(path)
        # A type that NumPy does not have is an attribute that it lacks.
        except (
            safetensors.SafetensorError,
            AttributeError,
            TypeError,
            ValueError,
        ) as error:
            raise UserError(
                f"{path}: damaged, or of a type not read: {error}"
            ) from None
    return {
        _present_name(name.removeprefix(PREFIX)): value
        for name, value in tensors.items()
    }


def _read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    with needing(f"{path}: reading it needs TensorFlow", "tensorflow"):
        import tensorflow as tf
    try:
        reader = tf.train.load_checkpoint(str(path))
        names = reader.get_variable_to_shape_map()
        tensors = {name: reader.get_tensor(name) for name in names}
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise UserError(f"{path}: damaged: {first_line(error)}") from None
    return dict(
        _renamed(name, value)
        for name, value in tensors.items()
        if not re.search(r"adam_|global_step", name)
    )


def _present_name(name: str) -> str:
    """The name of a norm's parts, which the oldest files call by other names."""
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)


def _renamed(name: str, value: np.ndarray) -> tuple[str, np.ndarray]:
    """A tensor of the original checkpoints as the safetensors layout has it."""
    name = name.removeprefix("bert/").replace("/", ".")
    name = re.sub(r"layer_(\d+)", r"layer.\1", name)
    if name.endswith(".kernel"):
        name, value = name.removesuffix("kernel") + "weight", value.T
    name = _present_name(name)
    if name.endswith("_embeddings"):
        name += ".weight"
    # Of the heads, the right way round already.
    name = re.sub(r"(?<=[.])output_(?=bias$)", "", name)
    name = re.sub(r"(?<=[.])output_weights$", "weight", name)
    # The head of a reader.
    name = name.replace("cls.squad", READER_HEAD)
    return name, value


class Place(NamedTuple):
    """Where a tensor goes.

    Attributes:
        variable: the variable.
        part: the part of it, along its last axis, that the tensor is.
        change: makes of the tensor what the variable holds.
    """

    variable: "keras.Variable"
    part: slice
    change: Callable[[np.ndarray], np.ndarray]


def places(model: "keras.Model") -> dict[str, Place]:
    """Where each tensor goes, by its name.

    Args:
        model: of `qanet.models.bert.encode`; the pointer of a reader and the heads of a
            pre-training, see `qanet.pretraining.mlm_model`, have places too.
    """
    # Here, so that files are looked at without Keras.
    from qanet.layers.transformer_block import transformer_blocks

    found = {}

    def put(name, variable, part=WHOLE, change=np.asarray):
        found[name] = Place(variable, part, change)

    def put_dense(name, layer, part=WHOLE):
        put(f"{name}.weight", layer.kernel, part, np.transpose)
        put(f"{name}.bias", layer.bias, part)

    def put_norm(name, layer):
        put(f"{name}.weight", layer.gamma)
        put(f"{name}.bias", layer.beta)

    embedding = model.get_layer("embedding")
    put(PIECE_TABLE, embedding.piece_table)
    put(POSITION_TABLE, embedding.position_table)
    put("embeddings.token_type_embeddings.weight", embedding.segment_table)
    put_norm("embeddings.LayerNorm", embedding.norm)
    for i, block in enumerate(transformer_blocks(model)):
        name = f"encoder.layer.{i}"
        # Ours are one matrix.
        projection = block.attention.projection
        width = projection.kernel.shape[0]
        for number, role in enumerate(("query", "key", "value")):
            part = slice(number * width, (number + 1) * width)
            put_dense(f"{name}.attention.self.{role}", projection, part)
        put_dense(f"{name}.attention.output.dense", block.attention.output_projection)
        put_norm(f"{name}.attention.output.LayerNorm", block.attention_norm)
        put_dense(f"{name}.intermediate.dense", block.feed_forward.expand)
        put_dense(f"{name}.output.dense", block.feed_forward.contract)
        put_norm(f"{name}.output.LayerNorm", block.feed_forward_norm)
    layers = {layer.name for layer in model.layers}
    if "pointer" in layers:
        put_dense(READER_HEAD, model.get_layer("pointer").span)
    if "pooler" in layers:
        put_dense("pooler.dense", model.get_layer("pooler"))
        put_dense("cls.seq_relationship", model.get_layer("next_sentence"))
        predictor = model.get_layer("predictor")
        put_dense("cls.predictions.transform.dense", predictor.transform)
        put_norm("cls.predictions.transform.LayerNorm", predictor.norm)
        put("cls.predictions.bias", predictor.bias)
    return found
