"""A model's variables as arrays: named, stored, checked and put back."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qanet.files import write_file

if TYPE_CHECKING:
    import keras


def saved_variables(model: "keras.Model") -> dict[str, "keras.Variable"]:
    """The weights by path, without frozen word vectors: the vocabulary holds those.

    Raises:
        ValueError: two have the same path; a file would hold one of them.
    """
    variables = {variable.path: variable for variable in model.trainable_variables}
    if len(variables) < len(model.trainable_variables):
        raise ValueError(
            "weights of two layers have one path; give the layers different names, and "
            "build what is within them in `build`"
        )
    return variables


def assign_variables(
    variables: dict[str, "keras.Variable"], arrays: dict[str, np.ndarray]
) -> None:
    """Assigns arrays to variables by name, all of them or none.

    Raises:
        ValueError: an array is missing, left over, of another shape or of another kind
            of numbers.
    """
    if arrays.keys() != variables.keys():
        odd = min(arrays.keys() ^ variables.keys())
        raise ValueError(f"{odd} is in only one of file and model")
    for name, variable in variables.items():
        if arrays[name].dtype.kind not in ("f" if "float" in variable.dtype else "iu"):
            raise ValueError(f"{name} has numbers of type {arrays[name].dtype}")
        if arrays[name].shape != tuple(variable.shape):
            raise ValueError(
                f"{name} has shape {arrays[name].shape}, not {tuple(variable.shape)}"
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])


def save_variables(
    path: Path, variables: dict[str, "keras.Variable"], **arrays
) -> None:
    """Stores variables, and further arrays, in one `.npz` file."""
    import keras

    values = {
        name: keras.ops.convert_to_numpy(variable)
        for name, variable in variables.items()
    }
    write_file(path, lambda file: np.savez(file, **values, **arrays))
