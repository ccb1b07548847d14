"""What computes a trained model's outputs."""

from collections.abc import Callable

import keras
import numpy as np

from qanet.models.half_precision import around_products, is_half_on_processor


def prediction(model: keras.Model) -> Callable:
    """A function like `model.predict_on_batch` that several threads may call.

    On JAX, Keras' own gives the buffers of the weights away and stores new ones, which
    breaks what another thread computes with them meanwhile. On TensorFlow, Keras' own
    has XLA compute everything, and XLA does not multiply in half precision as fast as a
    processor can.
    """
    if is_half_on_processor(model):
        import tensorflow as tf

        @tf.function(autograph=False, reduce_retracing=True)
        @around_products
        def read(inputs):
            return model(inputs, training=False)

        return lambda inputs: arrays_of(read(inputs))
    if keras.backend.backend() != "jax":
        return model.predict_on_batch
    import jax

    @jax.jit
    def outputs_of(values, others, inputs):
        return model.stateless_call(values, others, inputs, training=False)[0]

    def predict(inputs):
        variables = model.trainable_variables, model.non_trainable_variables
        values = ([variable.value for variable in group] for group in variables)
        return keras.tree.map_structure(np.asarray, outputs_of(*values, inputs))

    return predict


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

    return lambda inputs: arrays_of(read(inputs))


def arrays_of(outputs):
    """TensorFlow's tensors as NumPy's arrays."""
    return keras.tree.map_structure(lambda tensor: tensor.numpy(), outputs)
