"""From strings to tokens and their vectors, within a TensorFlow graph.

The same rules as `qanet.text`, in TensorFlow's own operations alone, so that a saved
graph needs nothing of ours.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from qanet.text.tokenizer import SOFT_HYPHEN, SPACE, WORD, character_classes
from qanet.text.vocabulary import RESERVED, UNKNOWN, Vocabulary
from qanet.utf8 import is_encodable

# Words of the vocabulary whose vectors are computed at once, at export.
CHUNK = 4096


class Tokens(NamedTuple):
    """The tokens of some texts, all in one row.

    Attributes:
        words: string `(tokens,)`.
        counts: int32 `(texts,)`, tokens of each text.
        starts, ends: int32 `(tokens,)`, code points of the text before the token and
            up to its end.
        first_bytes, last_bytes: the same in bytes.
    """

    words: tf.Tensor
    counts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    first_bytes: tf.Tensor
    last_bytes: tf.Tensor


class Tokenizer(tf.Module):
    """Splits texts as `qanet.text.tokenizer` does."""

    def __init__(self):
        super().__init__()
        self.classes = tf.constant(character_classes())

    def __call__(self, texts: tf.Tensor) -> Tokens:
        """The tokens of UTF-8 strings `(texts,)`; what is none is U+FFFD."""
        codes, places = tf.strings.unicode_decode_with_offsets(
            texts, "UTF-8", errors="replace"
        )
        text_of = tf.cast(codes.value_rowids(), tf.int32)
        starts_of_text = tf.cast(codes.row_starts(), tf.int32)
        bytes_before = tf.cast(places.flat_values, tf.int32)
        text_ends = tf.not_equal(text_of[1:], text_of[:-1])
        last = tf.ones_like(text_of[:1], tf.bool)

        # A character goes on with a word where it and the one before are of class WORD.
        classes = tf.gather(self.classes, codes.flat_values)
        word = tf.equal(classes, WORD)
        goes_on = tf.concat(
            [tf.zeros_like(word[:1]), word[1:] & word[:-1] & ~text_ends], axis=0
        )
        token = tf.not_equal(classes, SPACE)
        begins = token & ~goes_on
        finishes = token & tf.concat([~goes_on[1:], last], axis=0)
        first = tf.cast(tf.where(begins)[:, 0], tf.int32)
        final = tf.cast(tf.where(finishes)[:, 0], tf.int32)

        words = tf.strings.unicode_encode(
            tf.RaggedTensor.from_row_lengths(
                tf.boolean_mask(codes.flat_values, token), final - first + 1
            ),
            "UTF-8",
        )
        token_text = tf.gather(text_of, first)
        before = tf.gather(starts_of_text, token_text)
        # Where the character after each one begins, which for the last is the end.
        bytes_after = tf.where(
            tf.concat([text_ends, last], axis=0),
            tf.gather(tf.strings.length(texts), text_of),
            tf.concat([bytes_before[1:], bytes_before[:1]], axis=0),
        )
        return Tokens(
            words=words,
            counts=tf.math.bincount(
                token_text,
                minlength=tf.size(texts),
                maxlength=tf.size(texts),
            ),
            starts=first - before,
            ends=final - before + 1,
            first_bytes=tf.gather(bytes_before, first),
            last_bytes=tf.gather(bytes_after, final),
        )


class WordTable(tf.Module):
    """Words as a model sees them: looked up where the vocabulary has the word itself.

    Only the other words, each once, pay for the network that makes a vector of a row
    and a spelling.

    Args:
        vocabulary: the vocabulary.
        folded: what each of its rows decides, see `InputEmbedding.fold`.
        word_side: makes columns of that, see `qanet.models.words.word_side`.
    """

    def __init__(self, vocabulary: Vocabulary, folded: np.ndarray, word_side: Callable):
        super().__init__()
        self.folded = tf.Variable(folded, trainable=False)
        self.word_side = word_side
        self.characters_per_word = vocabulary.characters_per_word
        # Words that are no Unicode text cannot be asked for either.
        rows = [
            row
            for row, word in enumerate(vocabulary.words)
            if row >= len(RESERVED) and is_encodable(word)
        ]
        words = [vocabulary.words[row].encode() for row in rows]
        self.rows = _table(words, rows, b"", -1)
        characters = vocabulary.characters[len(RESERVED) :]
        self.characters = _table(
            [ord(character) for character in characters],
            range(len(RESERVED), len(vocabulary.characters)),
            -1,
            UNKNOWN,
        )
        self.known = {
            name: tf.Variable(column, trainable=False)
            for name, column in self._columns_of_vocabulary(vocabulary).items()
        }

    def __call__(self, words: tf.Tensor) -> dict[str, tf.Tensor]:
        """The columns of strings `(words,)`, which `above_words` reads."""
        rows = self.rows.lookup(words)
        is_known = rows >= 0
        others, number = tf.unique(tf.boolean_mask(words, ~is_known))
        places = tf.range(tf.size(words))
        places = tf.tensor_scatter_nd_update(
            places, tf.where(~is_known), tf.size(words) + number
        )

        def joined(known, spelled):
            # Known words first, then the others, so that one look-up serves both.
            table = tf.concat([tf.gather(known, tf.maximum(rows, 0)), spelled], 0)
            return tf.gather(table, places)

        spelled = self._spell(others)
        return {name: joined(self.known[name], spelled[name]) for name in spelled}

    def _spell(self, words: tf.Tensor) -> dict[str, tf.Tensor]:
        # An empty word more, for layers that cannot do without any.
        words = tf.concat([[""], words], axis=0)
        simple = _plain(words)
        rows = tf.fill(tf.shape(words), UNKNOWN)
        # The last one goes first.
        for forms in (_lower(simple), _lower(words), simple):
            found = self.rows.lookup(forms)
            rows = tf.where(found < 0, rows, found)
        words = simple
        codes = tf.strings.unicode_decode(words, "UTF-8")
        codes = codes[:, : self.characters_per_word]
        characters = tf.RaggedTensor.from_row_splits(
            self.characters.lookup(tf.cast(codes.flat_values, tf.int64)),
            codes.row_splits,
        ).to_tensor(shape=[None, self.characters_per_word])
        columns = self._columns(rows, characters)
        return {name: column[1:] for name, column in columns.items()}

    def _columns(self, rows, characters) -> dict[str, tf.Tensor]:
        folded = tf.gather(self.folded, rows)
        parts = {"folded": folded, "words": rows, "characters": characters}
        columns = self.word_side(
            {name: tf.convert_to_tensor(part)[None] for name, part in parts.items()}
        )
        columns = {name: column[0] for name, column in columns.items()}
        return columns | {"words": rows, "characters": characters}

    def _columns_of_vocabulary(self, vocabulary: Vocabulary) -> dict[str, np.ndarray]:
        """The columns of each row's own word."""
        parts = []
        for first in range(0, len(vocabulary.words), CHUNK):
            words = vocabulary.words[first : first + CHUNK]
            # The first entry of a list of words is padding to `Vocabulary.table`.
            table = vocabulary.table(["", *words])
            columns = self._columns(table["words"][1:], table["characters"][1:])
            parts.append({name: np.asarray(part) for name, part in columns.items()})
        return {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0]
        }


def _plain(words: tf.Tensor) -> tf.Tensor:
    """As `qanet.text.vocabulary.plain`, which also composes characters."""
    hyphen, other = SOFT_HYPHEN, f"([^{SOFT_HYPHEN}])"
    words = tf.strings.regex_replace(words, f"{other}{hyphen}+", r"\1")
    return tf.strings.regex_replace(words, f"^{hyphen}+{other}", r"\1")


def _lower(words: tf.Tensor) -> tf.Tensor:
    return tf.strings.lower(words, encoding="utf-8")


def _table(
    keys, values, no_key: bytes | int, default: int
) -> tf.lookup.StaticHashTable:
    """A table of numbers. TensorFlow refuses one without keys, so it has `no_key`."""
    kind = tf.string if isinstance(no_key, bytes) else tf.int64
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant([*keys, no_key], kind),
            tf.constant([*values, default], tf.int32),
        ),
        default,
    )
