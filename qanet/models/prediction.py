"""One compiled graph of a model for inputs of any shape."""

from collections.abc import Callable

import keras


def any_shape(model: keras.Model) -> Callable | None:
    """A function like `model.predict_on_batch` that is traced once.

    Keras compiles each shape anew, which takes seconds; whoever meets shapes as they
    come would wait for that. `None` on other backends than TensorFlow, which cannot
    leave shapes open.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    def spec(tensor: keras.KerasTensor) -> tf.TensorSpec:
        return tf.TensorSpec(tensor.shape, tensor.dtype)

    inputs = keras.tree.map_structure(spec, model.input)

    @tf.function(input_signature=[inputs], autograph=False)
    def read(inputs):
        return model(inputs, training=False)

    return lambda inputs: keras.tree.map_structure(lambda y: y.numpy(), read(inputs))
