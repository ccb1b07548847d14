"""QANet as an ONNX graph that is written for its runtime.

The graph of training, traced, makes five passes over the weights of the attention and
nine over the features of a convolution, where a compiler fuses them. ONNX Runtime fuses
little, so here each is the one operation that ONNX has for it, and constant factors
are part of the weights.
"""

from collections.abc import Mapping

import numpy as np
import onnx

from qanet.export.onnx_graph import Graph
from qanet.layers.encoder import survival_at
from qanet.layers.numerics import MASKED_LOGIT
from qanet.layers.positions import frequencies
from qanet.layers.residual import EPSILON
from qanet.layers.spelling import NOTHING, SPELLINGS
from qanet.models.qanet import QANetConfig, StackConfig
from qanet.settings import Section


def is_written(config: Section) -> bool:
    """Whether this module knows a model of these settings."""
    return (
        isinstance(config, QANetConfig)
        and config.separable
        and config.attention == "both_ways"
        and config.heads > 0
    )


def qanet_graph(
    config: QANetConfig,
    weights: Mapping[str, np.ndarray],
    no_answer: bool,
    half: bool = False,
) -> onnx.ModelProto:
    """The network above what a word alone decides.

    Contexts are not padded: all of a batch have one length, so their attention needs
    no mask. Questions are padded with words of number 0.

    Args:
        config: settings that `is_written` knows.
        weights: the model's variables by path.
        no_answer: whether it has a logit of "no answer".
        half: store the weights in half precision.

    Returns:
        A model with inputs of those of `qanet.models.words.above_words`: vectors and,
        if texts are compared, spellings of both texts, and the question's words. Its
        outputs are `start_logits`, `end_logits` and `attention`, float32 `(batch,
        context_length, question_length)`.
    """
    graph = Graph(half)
    layers = _Layers(graph, config, weights)

    def text(name):
        return graph.input(f"{name}_vectors", "float32", (*shapes[name], config.width))

    def spelling(name):
        return graph.input(f"{name}_spellings", "int32", (*shapes[name], SPELLINGS))

    shapes = {name: ("batch", f"{name}_length") for name in ("context", "question")}
    context, question = text("context"), text("question")
    words = graph.input("question_words", "int32", shapes["question"])
    if config.question_match:
        of_context, of_question = spelling("context"), spelling("question")
        context = layers.match(context, of_context, of_question)
        question = layers.match(question, of_question, of_context)
    real = graph.add("Not", graph.add("Equal", words, graph.constant(np.int32(0))))

    first = "embedding_encoder", config.embedding_encoder
    second = "model_encoder", config.model_encoder
    signal = layers.position_signal(context)
    context = layers.stack(*first, context, signal)
    question = layers.stack(*first, question, layers.position_signal(question), real)
    x, attention = layers.context_query_attention(context, question, real)
    outputs = []
    for _ in range(config.passes):
        x = layers.stack(*second, x, signal)
        outputs.append(x)
    m0, m1, m2 = outputs[-3:]
    logits = {
        "start_logits": layers.pointer("start", m0, m1),
        "end_logits": layers.pointer("end", m0, m2),
    }
    length = "context_length"
    if no_answer:
        logits = {name: layers.no_answer(x) for name, x in logits.items()}
        length = "context_length_and_1"
    output_shapes = {name: ("batch", length) for name in logits}
    output_shapes["attention"] = "batch", "context_length", "question_length"
    return graph.model(logits | {"attention": attention}, output_shapes)


class _Layers:
    """The layers of `qanet.layers`, each a few operations of a graph.

    Args:
        graph: where they are written.
        config: the model's settings.
        weights: its variables by path.
    """

    def __init__(
        self, graph: Graph, config: QANetConfig, weights: Mapping[str, np.ndarray]
    ):
        self.graph = graph
        self.config = config
        self.weights = weights

    def match(self, x: str, spellings: str, others: str) -> str:
        """Adds what `TextMatch` finds, projected."""
        add, constant = self.graph.add, self.graph.constant
        count = self._alike(spellings, spellings, 1)
        count = add("ReduceSum", count, constant([2]), keepdims=1)
        features = [
            add(
                "ReduceMax",
                self._alike(spellings, others, form),
                constant([2]),
                keepdims=1,
            )
            for form in range(SPELLINGS)
        ]
        # A word that nothing is like, not even itself, occurs once.
        features.append(add("Log", add("Max", count, constant(1.0))))
        joined = add("Concat", *features, axis=2)
        projected = add("MatMul", joined, self._weight("match_projection/kernel"))
        return add("Add", x, projected)

    def _alike(self, spellings: str, others: str, form: int) -> str:
        """1 for each pair of words that is spelled alike, 0 for others."""
        add, constant = self.graph.add, self.graph.constant
        one = add("Gather", spellings, constant([form]), axis=2)
        other = add("Gather", others, constant([form]), axis=2)
        same = add("Equal", one, add("Transpose", other, perm=[0, 2, 1]))
        known = add("Not", add("Equal", one, constant(np.int32(NOTHING))))
        return add("Cast", add("And", same, known), to=onnx.TensorProto.FLOAT)

    def position_signal(self, x: str) -> str:
        """`position_signal` for the length of x, scaled."""
        add, constant = self.graph.add, self.graph.constant
        length = add("Gather", add("Shape", x), constant(1), axis=0)
        positions = add("Range", constant(0), length, constant(1))
        positions = add("Cast", positions, to=onnx.TensorProto.FLOAT)
        angles = add(
            "Mul", self._widened(positions, 1), constant(frequencies(self.config.width))
        )
        signal = add("Concat", add("Sin", angles), add("Cos", angles), axis=1)
        return add("Mul", signal, constant(self.config.position_scale))

    def stack(
        self, name: str, part: StackConfig, x: str, signal: str, real: str | None = None
    ) -> str:
        """`EncoderStack`.

        Args:
            name: of the stack.
            part: its sizes.
            x: the text.
            signal: its positions' signal.
            real: where it is real; `None` everywhere.
        """
        config, add = self.config, self.graph.add
        kinds = [f"convolution_{i}" for i in range(part.convolutions)]
        kinds += ["attention", "feed_forward"]
        depth = part.blocks * len(kinds)
        for level in range(depth):
            block, kind = divmod(level, len(kinds))
            if level == 0 or (config.position_per_block and kind == 0):
                x = add("Add", x, signal)
            survival = survival_at(level + 1, depth, config.survival)
            scale = config.residual_scale * survival
            path = f"{name}/residual_block_{block}_{kinds[kind]}"
            y = self._norm(f"{path}/norm", x)
            path = f"{path}/block_{block}_{kinds[kind]}"
            if kinds[kind] == "attention":
                y = self._attention(path, y, real, scale)
            elif kinds[kind] == "feed_forward":
                y = self._feed_forward(path, y, scale)
            else:
                y = self._convolution(path, y, real, scale)
            x = add("Add", x, y)
        return self._norm(f"{name}/norm", x) if config.final_norm else x

    def _convolution(self, path: str, x: str, real: str | None, scale: float) -> str:
        """`DepthwiseSeparableConv1D`."""
        add, constant = self.graph.add, self.graph.constant
        weight = self.graph.weight
        depthwise = self.weights[f"{path}/depthwise_kernel"]
        pointwise = self.weights[f"{path}/pointwise_kernel"] * scale
        size, width = depthwise.shape
        before = (size - 1) // 2
        if real:
            x = add("Where", self._widened(real, 2), x, constant(0.0))
        # As an image of one row: the runtime has a fast kernel for those alone, and
        # reads and writes its features last where they are put first just before.
        x = add("Transpose", self._widened(x, 1), perm=[0, 3, 1, 2])
        x = add(
            "Conv",
            x,
            weight(depthwise.T[:, None, None, :]),
            group=width,
            kernel_shape=[1, size],
            pads=[0, before, 0, size - 1 - before],
        )
        # The rectifier and a positive factor may change places.
        bias = self._weight(f"{path}/bias", scale)
        x = add("Relu", add("Conv", x, weight(pointwise.T[:, :, None, None]), bias))
        return add("Squeeze", add("Transpose", x, perm=[0, 2, 3, 1]), constant([1]))

    def _attention(self, path: str, x: str, real: str | None, scale: float) -> str:
        """`MultiHeadSelfAttention`."""
        add, constant = self.graph.add, self.graph.constant
        kernel = self.weights[f"{path}/query_key_value/kernel"]
        width, heads = len(kernel), self.config.heads
        size = width // heads

        def heads_of(kernel, order):
            y = add("MatMul", x, self.graph.weight(kernel))
            y = add("Reshape", y, constant([0, 0, heads, size]))
            return add("Transpose", y, perm=order)

        query, key, value = np.split(kernel, 3, axis=1)
        logits = add(
            "MatMul",
            heads_of(query * size**-0.5, [0, 2, 1, 3]),
            heads_of(key, [0, 2, 3, 1]),
        )
        weights = self._softmax(logits, real and self._widened(real, 1, 2))
        y = add("MatMul", weights, heads_of(value, [0, 2, 1, 3]))
        y = add("Transpose", y, perm=[0, 2, 1, 3])
        y = add("Reshape", y, constant([0, 0, width]))
        return add("MatMul", y, self._weight(f"{path}/output/kernel", scale))

    def _feed_forward(self, path: str, x: str, scale: float) -> str:
        """`FeedForward`."""
        hidden = self.graph.add("Relu", self._dense(f"{path}/expand", x))
        return self._dense(f"{path}/contract", hidden, scale)

    def context_query_attention(
        self, context: str, question: str, real: str
    ) -> tuple[str, str]:
        """`ContextQueryAttention`, projected, and its weights over the question.

        What is the same along an axis does not change a softmax over it, so each of the
        two has one of the similarity's terms less.
        """
        add, path = self.graph.add, "context_query_attention"
        product = self._weight(f"{path}/product_weight")

        def similarity(x, other, weight):
            x = add("Add", add("Mul", x, product), self._weight(f"{path}/{weight}"))
            return add("MatMul", x, add("Transpose", other, perm=[0, 2, 1]))

        rows = similarity(context, question, "question_weight")
        rows = self._softmax(rows, self._widened(real, 1))
        columns = self._softmax(similarity(question, context, "context_weight"))
        a = add("MatMul", rows, question)
        b = add("MatMul", rows, add("MatMul", columns, context))
        products = add("Mul", context, a), add("Mul", context, b)
        joined = add("Concat", context, a, *products, axis=2)
        return add("MatMul", joined, self._weight("attended/kernel")), rows

    def pointer(self, name: str, first: str, second: str) -> str:
        """One side of `SpanPointer`."""
        add = self.graph.add
        x = add("Concat", first, second, axis=2)
        x = add("MatMul", x, self._weight(f"pointer/{name}/kernel"))
        return add("Squeeze", x, self.graph.constant([2]))

    def no_answer(self, logits: str) -> str:
        """`NoAnswerLogit`."""
        add, constant = self.graph.add, self.graph.constant
        batch = add("Gather", add("Shape", logits), constant([0]), axis=0)
        shape = add("Concat", batch, constant([1]), axis=0)
        none = add("Expand", self._weight("no_answer/logit"), shape)
        return add("Concat", none, logits, axis=1)

    def _softmax(self, logits: str, real: str | None = None) -> str:
        if real:
            logits = self.graph.add(
                "Where", real, logits, self.graph.constant(MASKED_LOGIT)
            )
        return self.graph.add("Softmax", logits, axis=-1)

    def _norm(self, path: str, x: str) -> str:
        return self.graph.add(
            "LayerNormalization",
            x,
            self._weight(f"{path}/gamma"),
            self._weight(f"{path}/beta"),
            axis=-1,
            epsilon=EPSILON,
        )

    def _dense(self, path: str, x: str, scale: float = 1.0) -> str:
        product = self.graph.add("MatMul", x, self._weight(f"{path}/kernel", scale))
        return self.graph.add("Add", product, self._weight(f"{path}/bias", scale))

    def _widened(self, x: str, *axes: int) -> str:
        return self.graph.add("Unsqueeze", x, self.graph.constant(list(axes)))

    def _weight(self, path: str, scale: float = 1.0) -> str:
        return self.graph.weight(self.weights[path] * scale)
