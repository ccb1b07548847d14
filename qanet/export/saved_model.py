"""A reader as a TensorFlow SavedModel: strings in, answers out.

It needs TensorFlow and nothing of ours: the graph splits the text, looks the words up,
reads long contexts in windows, and finds the spans, all as `qanet.reader.Reader` does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from qanet.datasets.plans import READING_PAIRS, pairs_of
from qanet.export.span_graph import best_spans
from qanet.export.text_graph import Tokenizer, Tokens, WordTable
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS
from qanet.models.words import above_words, word_embedding, word_side
from qanet.run import TrainedModel

# Answers to a question: there is room made for so many.
MOST_ANSWERS = 1000


class Windows(NamedTuple):
    """The stretches of context that are read, one an item.

    Attributes:
        texts: int32 `(items,)`, the context that an item belongs to.
        offsets: int32 `(items,)`, its first token.
        lengths: int32 `(items,)`, its tokens.
        cuts: int32 `(items, 2)`, tokens at either end that another window tells.
    """

    texts: tf.Tensor
    offsets: tf.Tensor
    lengths: tf.Tensor
    cuts: tf.Tensor


def windows_of(counts: tf.Tensor, limits: ReadingLimits) -> Windows:
    """Windows that overlap over contexts of so many tokens `(texts,)`."""
    window, stride = limits.window, limits.stride
    items = 1 + tf.maximum(0, counts - window + stride - 1) // stride
    texts = tf.repeat(tf.range(tf.size(counts)), items)
    number = tf.range(tf.size(texts)) - tf.gather(
        tf.cumsum(items, exclusive=True), texts
    )
    offsets = number * stride
    lengths = tf.minimum(tf.gather(counts, texts) - offsets, window)
    # A token's logits are those of the window that it is most central in.
    overlap = window - stride
    is_last = tf.equal(number, tf.gather(items, texts) - 1)
    cuts = tf.stack(
        [
            tf.where(number > 0, overlap // 2, 0),
            tf.where(is_last, 0, overlap - overlap // 2),
        ],
        axis=1,
    )
    return Windows(texts=texts, offsets=offsets, lengths=lengths, cuts=cuts)


def _cut_out(texts: tf.Tensor, begin: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Stretches of strings `(batch,)` by their bytes, `(batch, k)` each.

    One column at a time: at once, TensorFlow would copy each text k times.
    """
    columns = tf.map_fn(
        lambda places: tf.strings.substr(texts, *places),
        (tf.transpose(begin), tf.transpose(size)),
        fn_output_signature=tf.TensorSpec([None], tf.string),
    )
    return tf.transpose(columns)


def _unsaved(model: Callable) -> Callable:
    """A model as a plain function, which is not saved as a part of what has it."""
    return lambda *arguments, **options: model(*arguments, **options)


class StringReader(tf.Module):
    """A reader whose every step is a TensorFlow operation.

    Args:
        trained: the model to take over.
    """

    def __init__(self, trained: TrainedModel):
        super().__init__()
        # These are saved, the models are not: each would be traced for a signature
        # of its own.
        self.weights = [variable.value for variable in trained.model.variables]
        self.limits = MODELS[trained.config.model.name].limits
        self.answer_limit = trained.config.data.answer_limit
        self.knows_no_answer = trained.config.data.no_answer
        self.threshold = trained.threshold
        self.tokenizer = Tokenizer()
        self.table = WordTable(
            trained.vocabulary,
            word_embedding(trained.model).fold(),
            _unsaved(word_side(trained.model)),
        )
        self.reading = _unsaved(above_words(trained.model))

    def answer(self, context, question, top_k) -> dict[str, tf.Tensor]:
        """The answers to questions.

        Args:
            context, question: UTF-8 strings `(batch,)`.
            top_k: int32 scalar, answers to each question, at most `MOST_ANSWERS`.

        Returns:
            `answer`, strings; `start` and `end`, int32, code points of the context
            before the answer and up to its end; `score`, float32, the probability
            among all spans and no answer: `(batch, top_k)` each, best first. An empty
            one says that the context does not answer, where the model knows that;
            where a context has fewer spans, the rest is empty with a score of 0.
        """
        with tf.control_dependencies(
            [
                tf.debugging.assert_equal(
                    tf.size(context), tf.size(question), "one context a question"
                ),
                tf.debugging.assert_positive(top_k, "top_k must be at least 1"),
                tf.debugging.assert_less_equal(
                    top_k, MOST_ANSWERS, f"top_k must be at most {MOST_ANSWERS}"
                ),
            ]
        ):
            tokens = self.tokenizer(context)
            questions = self.tokenizer(question)
        with tf.control_dependencies(
            [
                tf.debugging.assert_less_equal(
                    questions.counts,
                    self.limits.question,
                    f"a question has more than {self.limits.question} words and signs",
                )
            ]
        ):
            logits, no_answer = self._logits(tokens, questions)
        if self.limits.one_word:
            # Start and end are one logit, that of the word.
            logits = logits / 2
        first, last, score = best_spans(
            logits, no_answer, tokens.counts, self.answer_limit, self.threshold, top_k
        )
        # Their places among the tokens of all contexts; where there is no span, any.
        found = first >= 0
        base = tf.cumsum(tokens.counts, exclusive=True)[:, None]
        first, last = tf.where(found, base + first, 0), tf.where(found, base + last, 0)

        def place(values, numbers):
            # One more, in case that no context has a token.
            values = tf.concat([values, [0]], axis=0)
            return tf.where(found, tf.gather(values, numbers), 0)

        begin = place(tokens.first_bytes, first)
        size = place(tokens.last_bytes, last) - begin
        return {
            "answer": _cut_out(context, begin, size),
            "start": place(tokens.starts, first),
            "end": place(tokens.ends, last),
            "score": score,
        }

    def _logits(
        self, contexts: Tokens, questions: Tokens
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """What the model says of the contexts.

        Returns:
            Start and end logits of each token, `(tokens, 2)`, and logits of there
            being no answer, `(texts,)`.
        """
        windows = windows_of(contexts.counts, self.limits)
        longest = tf.maximum(1, tf.reduce_max(tf.concat([windows.lengths, [1]], 0)))
        question = tf.reduce_max(tf.concat([questions.counts, [0]], 0))
        rows = tf.maximum(1, READING_PAIRS // pairs_of(longest, question))
        items = tf.size(windows.texts)
        context_base = tf.cumsum(contexts.counts, exclusive=True)
        question_base = tf.cumsum(questions.counts, exclusive=True)

        def read(first, parts, no_answer):
            now = slice(first, first + rows)
            texts, lengths = windows.texts[now], windows.lengths[now]
            begin = tf.gather(context_base, texts) + windows.offsets[now]
            context, real = self._look_up(contexts.words, begin, lengths)
            question, _ = self._look_up(
                questions.words,
                tf.gather(question_base, texts),
                tf.gather(questions.counts, texts),
            )
            outputs = self.reading(
                {f"context_{name}": column for name, column in context.items()}
                | {f"question_{name}": column for name, column in question.items()},
                training=False,
            )
            logits = tf.stack([outputs["start_logits"], outputs["end_logits"]], -1)
            if self.knows_no_answer:
                none, logits = tf.reduce_sum(logits[:, 0], -1), logits[:, 1:]
                # There is none where no window has one.
                no_answer = tf.tensor_scatter_nd_min(no_answer, texts[:, None], none)
            place = tf.range(tf.shape(real)[1])[None]
            cuts = windows.cuts[now]
            is_kept = (place >= cuts[:, :1]) & (place < (lengths - cuts[:, 1])[:, None])
            parts = parts.write(first // rows, tf.boolean_mask(logits, is_kept))
            return first + rows, parts, no_answer

        parts = tf.TensorArray(
            tf.float32,
            size=0,
            dynamic_size=True,
            element_shape=[None, 2],
            infer_shape=False,
        )
        highest = float("inf") if self.knows_no_answer else -float("inf")
        no_answer = tf.fill([tf.size(contexts.counts)], highest)
        _, parts, no_answer = tf.while_loop(
            lambda first, *_: first < items,
            read,
            (0, parts, no_answer),
            parallel_iterations=1,
        )
        return parts.concat(), no_answer

    def _look_up(self, words, begin, lengths):
        """What the model sees of stretches of words.

        Args:
            words: strings `(words,)`.
            begin, lengths: int32 `(items,)`.

        Returns:
            The columns of `WordTable`, `(items, longest, ...)`, zero at padding, and
            where they are real, boolean `(items, longest)`.
        """
        # At least one place, for layers that cannot do without.
        longest = tf.maximum(1, tf.reduce_max(lengths))
        place = tf.range(longest)[None]
        real = place < lengths[:, None]
        chosen = tf.gather(words, tf.boolean_mask(begin[:, None] + place, real))

        def placed(part):
            shape = tf.concat([tf.shape(real), tf.shape(part)[1:]], axis=0)
            return tf.scatter_nd(tf.where(real), part, tf.cast(shape, tf.int64))

        columns = self.table(chosen)
        return {name: placed(column) for name, column in columns.items()}, real


def export_saved_model(trained: TrainedModel, directory: Path) -> None:
    """Writes a SavedModel.

    Its signature `serving_default` is `StringReader.answer`; `tensors` maps the model's
    own inputs to its logits.
    """
    module = StringReader(trained)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="context"),
            tf.TensorSpec([None], tf.string, name="question"),
            tf.TensorSpec([], tf.int32, name="top_k"),
        ],
        autograph=False,
    )
    def answer(context, question, top_k):
        return module.answer(context, question, top_k)

    @tf.function(autograph=False)
    def tensors(**inputs):
        return trained.model(inputs, training=False)

    inputs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
        for name, tensor in trained.model.input.items()
    }
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": answer,
            "tensors": tensors.get_concrete_function(**inputs),
        },
    )
