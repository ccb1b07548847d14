"""A reader's network as LiteRT and ONNX files: what stands for words in, logits out.

Beside the network goes the vocabulary, which tells a program in any language what the
numbers stand for. Splitting the text and finding the spans is that program's; see
docs/export.md.
"""

import json
import tempfile
import warnings
from pathlib import Path

import keras
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2,
)

from qanet.errors import UserError, first_line, needing
from qanet.export.onnx_graph import OPSET
from qanet.export.qanet_graph import is_written, qanet_graph
from qanet.files import write_file, write_text
from qanet.models.registry import MODELS, with_attention
from qanet.models.words import above_words, word_embedding, word_side
from qanet.onnx_reader import NETWORK_FILE, READER_FILE, WORD_FILE, described
from qanet.run import TrainedModel
from qanet.telemetry import refuse_telemetry
from qanet.text.folded import FoldedTable
from qanet.weights import saved_variables


def export_litert(trained: TrainedModel, directory: Path) -> None:
    """Writes `model.tflite` and, with 8-bit weights, `model.int8.tflite`.

    Their signature `serving_default` reads one question of any length.
    """
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        _save_frozen(trained.model, temporary)
        for name, optimizations in (
            ("model.tflite", []),
            ("model.int8.tflite", [tf.lite.Optimize.DEFAULT]),
        ):
            converter = tf.lite.TFLiteConverter.from_saved_model(temporary)
            converter.optimizations = optimizations
            data = converter.convert()
            write_file(directory / name, lambda file, data=data: file.write(data))
    trained.vocabulary.save_words(directory)


def export_onnx(trained: TrainedModel, directory: Path, bits: int = 16) -> None:
    """Writes what `qanet.onnx_reader` needs.

    Args:
        trained: the model.
        directory: where to write.
        bits: of each number of the word table, see `FoldedTable`; below 16 the weights
            of a network that is written here are stored in half precision.

    Raises:
        UserError: the library that converts to ONNX is not installed, or a part of the
            model is not known to it.
    """
    refuse_telemetry()
    with needing("ONNX files need tf2onnx", "qanet[onnx]"):
        import onnx
        import tf2onnx  # noqa: F401
    model, settings = trained.model, trained.config.model
    has_words = MODELS[settings.name].text == "words"
    if has_words:
        folded = word_embedding(model).fold()
        if bits == 4 and folded.shape[1] % 2:
            raise UserError(
                f"--word-bits 4: a word has {folded.shape[1]} numbers here, which must "
                "be even; give 8 or 16"
            )
        FoldedTable.of(folded, bits).save(directory)
        _trace(word_side(model), directory / WORD_FILE)
    network = directory / NETWORK_FILE
    if is_written(settings):
        weights = {
            path: keras.ops.convert_to_numpy(variable)
            for path, variable in saved_variables(model).items()
        }
        no_answer = trained.config.data.no_answer
        data = qanet_graph(settings, weights, no_answer, half=bits < 16)
        write_file(network, lambda file: onnx.save(data, file))
    else:
        model = with_attention(model, settings)
        _trace(above_words(model) if has_words else model, network)
    trained.vocabulary.save_words(directory)
    text = json.dumps(described(trained.config, trained.threshold), indent=1)
    write_text(directory / READER_FILE, text + "\n")


def _trace(model: keras.Model, path: Path) -> None:
    """Writes the graph of a model, for batches of any size and length."""
    import onnx

    inputs = {
        name: keras.InputSpec(dtype=tensor.dtype, shape=tensor.shape, name=name)
        for name, tensor in model.input.items()
    }
    with warnings.catch_warnings():
        # Keras makes up for what tf2onnx still takes for NumPy's.
        warnings.simplefilter("ignore", FutureWarning)
        model.export(
            str(path),
            format="onnx",
            verbose=False,
            input_signature=[inputs],
            opset_version=OPSET,
        )
    try:
        # The converter writes what it does not know as it is.
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        raise UserError(
            f"--format onnx: cannot be converted: {first_line(error)}"
        ) from None


def _save_frozen(model: keras.Model, directory: str) -> None:
    """Saves the model for one question, with constants in the place of variables.

    The converter leaves variables as they are: they would be neither filled nor
    written in 8 bits.
    """

    @tf.function(autograph=False)
    def read(**inputs):
        return model(inputs, training=False)

    specs = {
        name: tf.TensorSpec([1, *tensor.shape[1:]], tensor.dtype, name=name)
        for name, tensor in model.input.items()
    }
    graph = read.get_concrete_function(**specs)
    frozen = convert_variables_to_constants_v2(graph)

    @tf.function(autograph=False)
    def read_frozen(**inputs):
        return tf.nest.pack_sequence_as(graph.structured_outputs, frozen(**inputs))

    tf.saved_model.save(
        tf.Module(),
        directory,
        signatures=read_frozen.get_concrete_function(**specs),
    )
