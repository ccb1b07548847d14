"""The pieces that a masked language model predicts (Devlin et al., 2019, section 3.1).

How many they are is as in the authors' `create_pretraining_data.py`: a share of the
pieces, rounded, but at least one. Ours is the share of the pieces of the text; there,
[CLS] and [SEP] count too, though they are never chosen.
"""

import numpy as np

from qanet.text.pieces import CLS, MASK, PADDING, SEP, SPECIAL, WordPieces

# Of the chosen pieces; the rest stays as it is (appendix A.1).
MASKED, REPLACED = 0.8, 0.1


class Masking:
    """Chooses pieces of a sequence and masks them.

    Args:
        vocabulary: of the pieces.
        share: share of the pieces that is chosen.
        whole_words: choose all pieces of a word together. Words are taken in a random
            order; one that is longer than what is left to choose is left out.
    """

    def __init__(self, vocabulary: WordPieces, share: float, whole_words: bool = False):
        number_of = vocabulary.number_of
        self.share = share
        self.whole_words = whole_words
        self._mask = number_of[MASK]
        self._replacements = np.array(
            [n for n, piece in enumerate(vocabulary.pieces) if piece not in SPECIAL],
            dtype=np.int32,
        )
        self._may_be_chosen = np.ones(len(number_of), dtype=bool)
        self._may_be_chosen[[number_of[piece] for piece in (PADDING, CLS, SEP)]] = False
        self._continues = np.array([p.startswith("##") for p in vocabulary.pieces])

    def count(self, pieces: int) -> int:
        """How many of so many pieces are chosen, at most."""
        return max(1, round(self.share * pieces))

    def mask(
        self, pieces: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Chooses pieces; most become [MASK], some another piece, some stay.

        [CLS], [SEP] and padding are never chosen, and no piece becomes one of the
        vocabulary's special pieces but [MASK].

        Args:
            pieces: int32 `(length,)`.
            random: what is drawn from.

        Returns:
            The sequence as the model sees it, and the positions that were chosen, which
            rise. Of whole words, none may have fitted.
        """
        candidates = np.flatnonzero(self._may_be_chosen[pieces])
        count = self.count(len(candidates))
        if self.whole_words:
            positions = self._whole_words(pieces, candidates, count, random)
        else:
            positions = random.permutation(candidates)[:count]
        positions = np.sort(positions)
        fate = random.random(len(positions))
        others = self._replacements[
            random.integers(len(self._replacements), size=len(positions))
        ]
        kept = np.where(fate < MASKED + REPLACED, others, pieces[positions])
        masked = pieces.copy()
        masked[positions] = np.where(fate < MASKED, self._mask, kept)
        return masked, positions

    def _whole_words(
        self,
        pieces: np.ndarray,
        candidates: np.ndarray,
        count: int,
        random: np.random.Generator,
    ) -> np.ndarray:
        """Positions of words that come to at most so many pieces."""
        begins = ~self._continues[pieces[candidates]]
        # What a cut has left of a word is a word of its own.
        begins |= np.diff(candidates, prepend=-2) > 1
        words = np.flatnonzero(begins)
        ends = np.append(words[1:], len(candidates))
        chosen = np.zeros(len(candidates), dtype=bool)
        left = count
        for word in random.permutation(len(words)):
            size = ends[word] - words[word]
            if size <= left:
                chosen[words[word] : ends[word]] = True
                left -= size
        return candidates[chosen]
