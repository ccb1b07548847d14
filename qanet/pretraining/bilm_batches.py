"""What a bidirectional language model is trained on."""

from collections.abc import Sequence

import numpy as np

from qanet.datasets.length_buckets import LengthBuckets
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.models.character_ids import PLACES, character_ids
from qanet.pretraining.config import BiLMLearningConfig
from qanet.pretraining.samples import draw_sample, log_expected_counts
from qanet.pretraining.word_vocabulary import BEGIN, END, WordVocabulary


class SentenceBatches(LengthBuckets):
    """Batches of sentences, each as long as its bucket; longer ones are cut.

    Args:
        sentences: their words; empty ones are left out.
        vocabulary: the words that are predicted.
        config: gives buckets, size of a batch and of a sample, and the seed.

    Raises:
        UserError: there is no sentence, or there are fewer samples than sentences in a
            batch.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        vocabulary: WordVocabulary,
        config: BiLMLearningConfig,
    ):
        longest = config.buckets[-1]
        parts = [
            sentence[first : first + longest]
            for sentence in sentences
            for first in range(0, len(sentence), longest)
        ]
        if not parts:
            raise UserError("the text has no words; give more text")
        lengths = np.array(list(map(len, parts)))
        super().__init__(lengths, config.buckets, config.batch_tokens, config.seed)
        self.vocabulary = vocabulary
        self.samples = min(config.samples, len(vocabulary))
        rows = self._rows(config.buckets[0])
        if self.samples < rows:
            # Other words are drawn for a batch than those that follow in it.
            few = f"training.samples={config.samples}"
            if len(vocabulary) < rows:
                few = f"{len(vocabulary)} words that are predicted"
            raise UserError(
                f"{few}: less than the {rows} sentences of a batch; give more, or "
                "fewer training.batch_tokens"
            )
        # Of each different word, from 1; row 0 is padding.
        words = sorted({word for part in parts for word in part})
        number_of = {word: number for number, word in enumerate(words, start=1)}
        self._sentences = [
            np.array([number_of[word] for word in part], dtype=np.int32)
            for part in parts
        ]
        self._characters = np.zeros((len(words) + 1, PLACES), dtype=np.int16)
        self._characters[1:] = character_ids(words)
        self._numbers = np.zeros(len(words) + 1, dtype=np.int32)
        self._numbers[1:] = vocabulary.numbers(words)

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """What a model reads, see `build_language_model`.

        The sample follows from the batch's items and the seed. Where TensorFlow's
        replicas share a batch, each draws one for its own items.

        Returns:
            `characters`, int32 `(rows, length, 50)`, 0 at padding; with the marks of
            begin and end `words`, int32, their numbers in the vocabulary, and
            `log_counts`, float32, both `(rows, length + 2)`; `sample`, int32, and
            `sample_log_counts`, float32, both `(rows, share)`: all inputs have a row
            for each item, by which devices share them.
        """
        items, length = batch.items[batch.real], batch.context_length
        rows = len(batch.items)
        sentences = np.zeros((rows, length), dtype=np.int32)
        words = np.zeros((rows, length + 2), dtype=np.int32)
        begin, end = (self.vocabulary.number_of[mark] for mark in (BEGIN, END))
        for row, item in enumerate(items):
            sentence = self._sentences[item]
            sentences[row, : len(sentence)] = sentence
            marked = [begin, *self._numbers[sentence], end]
            words[row, : len(marked)] = marked

        size = len(self.vocabulary)
        random = np.random.default_rng([self.seed, *items])
        sample, draws = draw_sample(size, self.samples // rows * rows, random)
        sample = sample.reshape(rows, -1)
        return {
            "characters": self._characters[sentences].astype(np.int32),
            "words": words,
            "log_counts": log_expected_counts(words, size, draws),
            "sample": sample,
            "sample_log_counts": log_expected_counts(sample, size, draws),
        }

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """Which predictions count: `real`, float32 `(rows, length + 1)`.

        One more than a sentence has words, for each direction.
        """
        real = np.zeros((len(batch.items), batch.context_length + 1), np.float32)
        for row, item in enumerate(batch.items[batch.real]):
            real[row, : len(self._sentences[item]) + 1] = 1.0
        return {"real": real}
