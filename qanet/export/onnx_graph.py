"""Writes ONNX graphs operation by operation."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 18
# The version of the file format that goes with it.
IR_VERSION = 8


class Graph:
    """A graph that is being written.

    Tensors are named: the methods take the names of tensors and return that of the
    result.

    Args:
        half: store weights in half precision. They are computed with in single.
    """

    def __init__(self, half: bool = False):
        self.half = half
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._names: dict[bytes, str] = {}
        self._inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: str, shape: Sequence[int | str]) -> str:
        """An input of the network.

        Args:
            name: its name.
            dtype: of its numbers, as NumPy names it.
            shape: a size for each axis, or a name for a size that is open.
        """
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, values) -> str:
        """A constant; equal ones are stored once.

        Args:
            values: what NumPy makes an array of; floats become single precision.
        """
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        return self._stored(array)

    def weight(self, values: np.ndarray) -> str:
        """A constant of the model that was learned, floats."""
        if not self.half:
            return self.constant(values)
        half = self._stored(values.astype(np.float16))
        return self.add("Cast", half, to=onnx.TensorProto.FLOAT)

    def _stored(self, array: np.ndarray) -> str:
        key = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
        if key not in self._names:
            name = f"constant_{len(self._constants)}"
            array = np.ascontiguousarray(array).reshape(array.shape)
            self._constants.append(numpy_helper.from_array(array, name))
            self._names[key] = name
        return self._names[key]

    def add(self, operator: str, *inputs: str, **attributes) -> str:
        """An operation with one result.

        Args:
            operator: its name in ONNX.
            inputs: tensors that it takes.
            attributes: its attributes.
        """
        name = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def model(
        self, outputs: Mapping[str, str], shapes: Mapping[str, Sequence[int | str]]
    ) -> onnx.ModelProto:
        """The graph as a file holds it, checked.

        Args:
            outputs: for the name of each output the float tensor that it shows.
            shapes: their shapes, as of `input`.
        """
        for name, tensor in outputs.items():
            self._nodes.append(helper.make_node("Identity", [tensor], [name]))
        graph = helper.make_graph(
            self._nodes,
            "reader",
            self._inputs,
            [
                helper.make_tensor_value_info(
                    name, onnx.TensorProto.FLOAT, shapes[name]
                )
                for name in outputs
            ],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="qanet",
        )
        onnx.checker.check_model(model)
        return model
