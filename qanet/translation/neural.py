"""The translator that a translation model of ours makes."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from qanet.files import digest_of
from qanet.translation.run import TranslationRun
from qanet.translation.search import BeamSearch, Sampling
from qanet.translation.subwords import END, PADDING
from qanet.translation.translator import BATCH_SIZE, BATCH_TOKENS, BEAMS


class NeuralTranslator:
    """Translates with a model of ours.

    Args:
        directory: its directory.
        temperature: draw translations with this temperature; by default the likeliest
            ones are searched for.
        beams: hypotheses of the search, at least; as many as translations if those
            are more.

    Raises:
        UserError: a file of the directory is missing or damaged.
    """

    batch_size = BATCH_SIZE

    def __init__(
        self,
        directory: str | Path,
        temperature: float | None = None,
        beams: int = BEAMS,
    ):
        run = TranslationRun(directory)
        self.config = run.load_config()
        self.model, self.subwords = run.load_model()
        self.temperature = temperature
        self.beams = beams
        digest = digest_of([run.config_path, run.subwords_path, run.weights_path])
        way = f"beam {beams}"
        if temperature is not None:
            way = f"temperature {temperature} by 23 bits"
        self.name = f"nmt:{Path(directory).name} {digest[:12]} {way}, ended"
        self._searches = {}

    def translate(self, sentences: Sequence[str], count: int) -> list[list[str]]:
        """See `Translator.translate`.

        A sentence longer than all buckets has none, and one whose translations do not
        end within half as much again.
        """
        results: list[list[str]] = [[] for _ in sentences]
        encoded = self.subwords.encode(sentences)
        lengths = np.array([len(pieces) for pieces in encoded])
        shortest = 1
        for bucket in self.config.training.buckets:
            # With the mark of the end a source is one longer.
            items = np.flatnonzero((lengths >= shortest) & (lengths < bucket))
            shortest = bucket
            rows = max(BATCH_TOKENS // bucket, 1)
            for first in range(0, len(items), rows):
                part = items[first : first + rows]
                source = np.full((rows, bucket), PADDING, dtype=np.int32)
                seeds = np.zeros(rows, dtype=np.uint32)
                for row, item in enumerate(part):
                    pieces = [*encoded[item], END]
                    source[row, : len(pieces)] = pieces
                    seeds[row] = zlib.crc32(sentences[item].encode())
                tokens, _ = self._search(bucket, count).predict_on_batch(
                    {"source": source, "seed": seeds}
                )
                for item, found in zip(part, tokens, strict=False):
                    # What has no end was cut, in the middle of a repetition mostly.
                    ended = found[(found == END).any(axis=-1)]
                    texts = dict.fromkeys(self.subwords.decode(ended))
                    results[item] = [text for text in texts if text][:count]
        return results

    def _search(self, length: int, count: int) -> keras.Model:
        """The compiled search for sources of a length, made at its first use."""
        if (length, count) not in self._searches:
            longest = length + length // 2
            if self.temperature is None:
                search = BeamSearch(self.model, max(self.beams, count), longest)
            else:
                search = Sampling(self.model, count, longest, self.temperature)
            search.compile(jit_compile=True)
            self._searches[length, count] = search
        return self._searches[length, count]
