"""Pairs of segments, half of them from one document (Devlin et al., 2019, section 3.1).

A segment is a run of sentences. Pairs are made as in the authors'
`create_pretraining_data.py`, but that a pair is made of at least two sentences of a
document: there, the second segment is always random where only one sentence is at hand,
so that more than half of the pairs are random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qanet.models.bert import MARKS
from qanet.pretraining.texts import Document
from qanet.text.pieces import WordPieces
from qanet.text.sentences import sentence_spans

# Share of the pairs that are to be shorter than a sequence, as the texts are that the
# encoder reads later.
SHORT = 0.1


@dataclass(frozen=True)
class Sentences:
    """The sentences of some documents in word pieces.

    Attributes:
        pieces: int32, of all sentences in order.
        begins: for each sentence the place of its first piece, and the end of the last
            one: int64 `(sentences + 1,)`.
        documents: for each document its first sentence, and the number of all
            sentences: int64 `(documents + 1,)`.
    """

    pieces: np.ndarray
    begins: np.ndarray
    documents: np.ndarray


def encode_documents(
    documents: Sequence[Document], vocabulary: WordPieces
) -> Sentences:
    """Splits documents into sentences, and these into word pieces.

    What has no pieces is left out.

    Raises:
        UserError: a library for this is not installed.
    """
    number_of = vocabulary.number_of
    pieces, begins, firsts = [], [0], [0]
    for document in documents:
        for paragraph in document:
            for start, end in sentence_spans(paragraph):
                found, _ = vocabulary.tokens(paragraph[start:end])
                if found:
                    pieces += [number_of[piece] for piece in found]
                    begins.append(len(pieces))
        if len(begins) - 1 > firsts[-1]:
            firsts.append(len(begins) - 1)
    return Sentences(np.array(pieces, np.int32), np.array(begins), np.array(firsts))


def draw_pairs(
    sentences: Sentences, length: int, random: np.random.Generator
) -> np.ndarray:
    """Pairs that read all documents once, in a random order.

    A last sentence may be left over, for no sentence comes after it. Documents of a
    single sentence are only second segments.

    Args:
        sentences: of at least two documents.
        length: pieces of a sequence, at most, [CLS] and [SEP] included.
        random: what is drawn from.

    Returns:
        int64 `(pairs, 5)`: where segment A begins and ends in `sentences.pieces`, where
        segment B does, and whether B is random, 0 or 1.
    """
    # Lists are far faster where single numbers are read.
    begins, firsts = sentences.begins.tolist(), sentences.documents.tolist()
    pairs = []
    for document in range(len(firsts) - 1):
        pairs += _pairs_of_document(begins, firsts, document, length - MARKS, random)
    return random.permutation(np.array(pairs, dtype=np.int64).reshape(-1, 5))


def _pairs_of_document(
    begins: list[int],
    firsts: list[int],
    document: int,
    room: int,
    random: np.random.Generator,
) -> list[tuple[int, int, int, int, int]]:
    """The pairs of a document, as `draw_pairs` gives them."""
    first, last = firsts[document], firsts[document + 1]
    pairs = []
    while last - first >= 2:
        wanted = room
        if random.random() < SHORT:
            wanted = int(random.integers(2, room + 1))
        end = _filled(begins, first, last, wanted, least=2)
        middle = int(random.integers(first + 1, end))
        a = (begins[first], begins[middle])
        is_random = random.random() < 0.5
        if is_random:
            # Its own sentences after A come next.
            first = middle
            b = _from_another(begins, firsts, document, wanted - (a[1] - a[0]), random)
        else:
            first = end
            b = (begins[middle], begins[end])
        pairs.append((*_cut(a, b, room, random), int(is_random)))
    return pairs


def _filled(begins: list[int], first: int, last: int, wanted: int, least: int) -> int:
    """The end of the sentences from `first` that have so many pieces, or of all."""
    end = first + least
    while end < last and begins[end] - begins[first] < wanted:
        end += 1
    return end


def _from_another(
    begins: list[int],
    firsts: list[int],
    document: int,
    wanted: int,
    random: np.random.Generator,
) -> tuple[int, int]:
    """Sentences from a random place of another document."""
    other = int(random.integers(len(firsts) - 2))
    other += other >= document
    first, last = firsts[other], firsts[other + 1]
    first = int(random.integers(first, last))
    return begins[first], begins[_filled(begins, first, last, wanted, least=1)]


def _cut(
    a: tuple[int, int],
    b: tuple[int, int],
    room: int,
    random: np.random.Generator,
) -> tuple[int, int, int, int]:
    """Takes pieces away from the longer segment, at both ends, until both have room."""
    of_a, of_b = a[1] - a[0], b[1] - b[0]
    kept_b = min(of_b, max(room - of_a, room // 2))
    kept_a = min(of_a, room - kept_b)
    result = []
    for (begin, _), size, kept in ((a, of_a, kept_a), (b, of_b, kept_b)):
        if size > kept:
            begin += int(random.binomial(size - kept, 0.5))
        result += [begin, begin + kept]
    return tuple(result)
