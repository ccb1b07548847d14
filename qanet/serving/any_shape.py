"""One compiled graph of a model for inputs of any shape."""

from collections.abc import Callable

import keras

from qanet.reader import Reader


def any_shape(model: keras.Model) -> Callable[[dict], dict]:
    """A function like `model.predict_on_batch` that is traced once.

    Keras compiles each shape anew, which takes seconds; a server that meets shapes as
    they come would make its clients wait for that. On other backends than TensorFlow,
    which cannot leave shapes open, it is `predict_on_batch`.
    """
    if keras.backend.backend() != "tensorflow":
        return model.predict_on_batch
    import tensorflow as tf

    inputs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype)
        for name, tensor in model.input.items()
    }

    @tf.function(input_signature=[inputs], autograph=False)
    def read(inputs):
        return model(inputs, training=False)

    return lambda inputs: {name: out.numpy() for name, out in read(inputs).items()}


def any_shape_reader(reader: Reader) -> Reader:
    """The same reader, for texts as they come: no shape is compiled anew."""
    free = keras.backend.backend() == "tensorflow"
    predict = any_shape(reader.model)
    return Reader(
        reader.model,
        reader.vocabulary,
        reader.config,
        predict,
        free,
        reader.threshold,
    )
