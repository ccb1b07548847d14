"""Weights of ELMo models as they are published: `options.json` and `weights.hdf5`.

The layout is that of allenai/bilm-tf. What we train is stored in it too, so there is
one way to read either. The softmax over words is not part of it.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qanet.errors import UserError, first_line, needing, reading
from qanet.files import parse_json, write_file, write_text
from qanet.models.bilm import BiLMConfig, build_bilm
from qanet.models.character_ids import CHARACTERS, PLACES
from qanet.settings import configure

if TYPE_CHECKING:
    import keras

OPTIONS_FILE, WEIGHTS_FILE = "options.json", "weights.hdf5"

# What the settings are called there, in two sections.
SETTINGS = {
    "char_cnn": {
        "activation": "activation",
        "filters": "filters",
        "n_highway": "highway_layers",
    },
    "lstm": {
        "cell_clip": "cell_clip",
        "dim": "units",
        "n_layers": "layers",
        "proj_clip": "projection_clip",
        "projection_dim": "projection",
        "use_skip_connections": "residual",
    },
}
# While it is trained with bilm-tf, a model does not count the characters' padding.
CHARACTER_COUNTS = (CHARACTERS, CHARACTERS + 1)


def load_bilm(directory: Path) -> "keras.Model":
    """Builds the model that a directory holds, as a source of word vectors.

    Args:
        directory: of `options.json` and `weights.hdf5`; published files have to be
            named so.

    Raises:
        UserError: a file is missing or damaged, or holds something else than a model
            of this layout.
    """
    model = build_bilm(read_options(directory))
    read_weights(model, directory)
    return model


def save_bilm(directory: Path, model: "keras.Model", config: BiLMConfig) -> None:
    """Writes a model in the public layout, into a directory that is made if need be.

    Args:
        directory: where to.
        model: one of `build_bilm` or `build_language_model`.
        config: its settings.
    """
    values = config.model_dump()
    options = {
        section: {theirs: values[ours] for theirs, ours in names.items()}
        for section, names in SETTINGS.items()
    }
    options["char_cnn"] |= {
        "embedding": {"dim": config.character_width},
        "max_characters_per_token": PLACES,
        # As it has to be for a model that is read.
        "n_characters": CHARACTERS + 1,
    }
    options["dropout"] = config.dropout
    contents = io.BytesIO()
    with h5py_library().File(contents, "w") as file:
        for name, place in places(model).items():
            part = np.array(place.variable)[place.part]
            file[name] = part.reshape(place.shape)
    write_file(directory / WEIGHTS_FILE, lambda file: file.write(contents.getbuffer()))
    write_text(directory / OPTIONS_FILE, json.dumps(options, indent=2) + "\n")


def read_options(directory: Path) -> BiLMConfig:
    """The settings of a model in the public layout.

    Raises:
        UserError: the file is missing, or its model is not one that is read.
    """
    path = directory / OPTIONS_FILE
    if not path.is_file():
        raise UserError(
            f"{directory}: has no {OPTIONS_FILE}; give the directory of an ELMo model, "
            f"its files named {OPTIONS_FILE} and {WEIGHTS_FILE}"
        )
    try:
        with reading(path):
            options = parse_json(path.read_bytes())
        values = {
            ours: options[section][theirs]
            for section, names in SETTINGS.items()
            for theirs, ours in names.items()
        }
        characters = options["char_cnn"]
        values["character_width"] = characters["embedding"]["dim"]
        counts = characters["max_characters_per_token"], characters["n_characters"]
    except KeyError as error:
        raise UserError(
            f"{path}: not the options of an ELMo model (it has no {error})"
        ) from None
    except (TypeError, ValueError):
        raise UserError(f"{path}: not the options of an ELMo model") from None
    if counts[0] != PLACES or counts[1] not in CHARACTER_COUNTS:
        raise UserError(
            f"{path}: max_characters_per_token and n_characters are {counts[0]} and "
            f"{counts[1]}; only {PLACES} and {CHARACTERS} or {CHARACTERS + 1} are read"
        )
    if "dropout" in options:
        values["dropout"] = options["dropout"]
    return configure(BiLMConfig, values, [], str(path))


def read_weights(model: "keras.Model", directory: Path) -> None:
    """Gives a model the weights of a directory, all of them or none.

    Args:
        model: one of `build_bilm` or `build_language_model`; the softmax of the latter
            stays as it is.
        directory: of `weights.hdf5`.

    Raises:
        UserError: the file is missing or damaged, or lacks a data set, has one that is
            not known, or one of another shape.
    """
    path = directory / WEIGHTS_FILE
    wanted = places(model)
    arrays = _read_arrays(path, {name: p.shape for name, p in wanted.items()})
    values = {}
    for name, place in wanted.items():
        variable = place.variable
        _, value = values.setdefault(id(variable), (variable, np.array(variable)))
        target = value[place.part]
        target[...] = arrays[name].reshape(target.shape)
    for variable, value in values.values():
        variable.assign(value)


def h5py_library():
    """The library for files of ELMo models; raises `UserError` without it."""
    with needing("weights of ELMo models need h5py", "h5py"):
        import h5py
    return h5py


def _read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Reads data sets of these names and shapes, which must be all that there are."""
    h5py = h5py_library()
    try:
        with path.open("rb") as opened, h5py.File(opened, "r") as file:
            found = {}

            def note(name, part):
                if not isinstance(part, h5py.Group):
                    found[name] = part

            # It does not follow links, which may lead to other files.
            file.visititems(note)
            _check(path, found, shapes)
            arrays = {name: np.asarray(found[name], np.float32) for name in shapes}
    except FileNotFoundError:
        raise UserError(f"{path}: is missing") from None
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise UserError(
            f"{path}: cannot be read or is damaged: {first_line(error)}"
        ) from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UserError(f"{path}: {name} has numbers that are not finite")
    return arrays


def _check(path: Path, found: Mapping, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses what else a file may hold, before anything of it is read."""
    h5py = h5py_library()
    for name in shapes:
        if name not in found:
            raise UserError(f"{path}: has no data set {name}")
    for name, part in found.items():
        if name not in shapes:
            raise UserError(
                f"{path}: has a data set {name}, for which there is no place"
            )
        if not isinstance(part, h5py.Dataset) or part.dtype.kind != "f":
            raise UserError(f"{path}: {name} does not hold floating point numbers")
        if part.shape != shapes[name]:
            raise UserError(
                f"{path}: {name} has shape {part.shape}, not {shapes[name]}"
            )
        if part.external or part.is_virtual:
            raise UserError(f"{path}: {name} is kept in another file")


class Place(NamedTuple):
    """Where a data set goes.

    Attributes:
        variable: the variable.
        part: the direction, of what both have, or all of it.
        shape: the data set's.
    """

    variable: "keras.Variable"
    part: int | slice
    shape: tuple[int, ...]


def places(model: "keras.Model") -> dict[str, Place]:
    """Where each data set goes, by its name."""
    found = {}

    def put(name, variable, part=slice(None), leading=()):
        shape = tuple(variable.shape[1:] if isinstance(part, int) else variable.shape)
        found[name] = Place(variable, part, (*leading, *shape))

    cnn = model.get_layer("character_cnn")
    put("char_embed", cnn.table)
    for i, (kernel, bias) in enumerate(zip(cnn.kernels, cnn.biases, strict=True)):
        # Convolutions over words, of which a filter sees one, and characters.
        put(f"CNN/W_cnn_{i}", kernel, leading=(1,))
        put(f"CNN/b_cnn_{i}", bias)
    highway = model.get_layer("highway")
    pairs = zip(highway.transforms, highway.gates, strict=True)
    for i, (transform, gate) in enumerate(pairs):
        # Called carry, but it is the share of what is transformed.
        for role, dense in (("transform", transform), ("carry", gate)):
            put(f"CNN_high_{i}/W_{role}", dense.kernel)
            put(f"CNN_high_{i}/b_{role}", dense.bias)
    projection = model.get_layer("projection")
    put("CNN_proj/W_proj", projection.kernel)
    put("CNN_proj/b_proj", projection.bias)
    lstms = [layer for layer in model.layers if layer.name.startswith("lstm_")]
    for i, lstm in enumerate(lstms):
        for direction in (0, 1):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            put(f"{name}/W_0", lstm.kernel, direction)
            put(f"{name}/B", lstm.bias, direction)
            put(f"{name}/W_P_0", lstm.projection_kernel, direction)
    return found
