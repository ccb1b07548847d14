"""One compiled graph of a model for inputs of any shape."""

from collections.abc import Callable

import keras


def any_shape(model: keras.Model) -> Callable[[dict], dict] | None:
    """A function like `model.predict_on_batch` that is traced once.

    Keras compiles each shape anew, which takes seconds; whoever meets shapes as they
    come would wait for that. `None` on other backends than TensorFlow, which cannot
    leave shapes open.
    """
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    inputs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype)
        for name, tensor in model.input.items()
    }

    @tf.function(input_signature=[inputs], autograph=False)
    def read(inputs):
        return model(inputs, training=False)

    return lambda inputs: {name: out.numpy() for name, out in read(inputs).items()}
