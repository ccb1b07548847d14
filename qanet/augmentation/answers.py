"""Where the answer stands in the paraphrase of its sentence.

Two ways to compare words: `bigrams` is after the paper (Yu et al., 2018, section 3);
`edges` is ours, after ideas of chrisakroyd's QANet: stop words at the edges do not
count, words are compared by their Jaro-Winkler similarity, and the whole must look like
the answer.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qanet.augmentation.numbers import splits_number
from qanet.errors import needing
from qanet.text.tokenizer import token_spans

# Words that may stand at an answer's edge without being what was asked for.
STOP_WORDS = frozenset(
    "a about all an and another approximately are around as at by for from had has "
    "have her his in into is its just more most my of on or our over some such than "
    "that the their these they this those to under up was were when where which who "
    "with your".split()
)
# Candidates for either edge, and words that an answer may gain.
EDGES = 10
MORE_WORDS = 2


@dataclass(frozen=True, slots=True)
class Match:
    """An answer that was found again.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last one.
        score: Likeness to the old answer, from 0 to 1; 1 where it is the same.
    """

    start: int
    end: int
    score: float


def find_exact(answer: str, text: str, position: float) -> Match | None:
    """Finds an answer word for word.

    Args:
        answer: The old answer.
        text: Where to look.
        position: Where about in the text it should stand, from 0 to 1; the nearest of
            several places is taken.

    Returns:
        The answer's place, or `None` where the text does not hold it as whole tokens,
        or only within a number.
    """
    spans = token_spans(text)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    found = []
    start = text.find(answer)
    while start != -1:
        end = start + len(answer)
        is_whole = start in starts and end in ends
        if is_whole and not splits_number(text, start, end):
            found.append(Match(start, end, 1.0))
        start = text.find(answer, start + 1)
    return min(found, key=lambda match: _distance(match, text, position), default=None)


def find_by_bigrams(answer: str, text: str, position: float) -> Match | None:
    """Finds an answer by the measure of the paper.

    The word most like the answer's first word is the new start and the one most like
    its last word is the new end, by the share of pairs of neighbouring letters that
    two words have in common. The paper takes several candidates that begin and end
    so, and of them the one most like the whole answer; how many, it does not say.

    Args:
        answer: The old answer.
        text: The paraphrased sentence.
        position: Where about in the text it should stand, from 0 to 1.

    Returns:
        The answer's place, its score the mean of both words'; or `None` where no word
        is like the first or the last one, the end comes before the start, or either
        is within a number.
    """
    old, new = _words(answer), _words(text)
    if not old or not new:
        return None
    start_score, first = _most_like(old[0].text, new, position)
    end_score, last = _most_like(old[-1].text, new, position)
    if not start_score or not end_score or last < first:
        return None
    start, end = new[first].start, new[last].end
    if splits_number(text, start, end):
        return None
    return Match(start, end, (start_score + end_score) / 2)


def find_by_edges(answer: str, text: str, position: float) -> Match | None:
    """Finds an answer by both of its edges and its whole.

    Every span between a likely start and a likely end is scored by the mean of the
    likeness of its first word, its last word and the whole to the old answer's. Stop
    words and symbols at the answer's edges count only where the text has them too.

    Args:
        answer: The old answer.
        text: The paraphrased sentence.
        position: Where about in the text it should stand, from 0 to 1.

    Returns:
        The best span, or `None` where the answer or the text has no word. None begins
        or ends within a number.
    """
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.fuzz import ratio

    old, new = _without_stop_words(_words(answer)), _words(text)
    if not old or not new:
        return None
    core = answer[old[0].start : old[-1].end].casefold()

    def likely(edge: "_Word") -> list[tuple[float, int]]:
        scored = (
            (JaroWinkler.similarity(edge.text, word.text), i)
            for i, word in enumerate(new)
            if word.text not in STOP_WORDS or word.text == edge.text
        )
        return heapq.nlargest(
            EDGES, scored, key=lambda one: _liking(one, len(new), position)
        )

    found = []
    ends = likely(old[-1])
    for start_score, first in likely(old[0]):
        for end_score, last in ends:
            if first <= last < first + len(old) + MORE_WORDS:
                start, end = new[first].start, new[last].end
                if splits_number(text, start, end):
                    continue
                whole = ratio(core, text[start:end].casefold()) / 100
                score = (start_score + end_score + whole) / 3
                found.append(Match(start, end, score))
    if not found:
        return None
    best = max(
        found, key=lambda match: (match.score, -_distance(match, text, position))
    )
    head, tail = answer[: old[0].start], answer[old[-1].end :]
    return _with_edges(best, text, head, tail)


def _with_edges(match: Match, text: str, head: str, tail: str) -> Match:
    """The match with what an answer has before and after it, where the text has it."""
    start, end = match.start, match.end
    starts, ends = map(set, zip(*token_spans(text), strict=True))
    # Of whole words: "his army" is not in "this army".
    if text[:start].endswith(head) and start - len(head) in starts:
        start -= len(head)
    if text.startswith(tail, end) and end + len(tail) in ends:
        end += len(tail)
    return Match(start, end, match.score)


MATCHERS: dict[str, Callable[[str, str, float], Match | None]] = {
    "edges": find_by_edges,
    "bigrams": find_by_bigrams,
}


def require_matchers() -> None:
    """Raises `UserError` where the library that compares words is not installed."""
    with needing("finding answers again needs rapidfuzz", "qanet[augment]"):
        import rapidfuzz  # noqa: F401


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


def _words(text: str) -> list[_Word]:
    """The tokens that hold a letter or a digit, without regard to case."""
    return [
        _Word(text[start:end].casefold(), start, end)
        for start, end in token_spans(text)
        if any(character.isalnum() for character in text[start:end])
    ]


def _without_stop_words(words: list[_Word]) -> list[_Word]:
    """The words from the first to the last that is none; all if all are."""
    kept = [i for i, word in enumerate(words) if word.text not in STOP_WORDS]
    return words[kept[0] : kept[-1] + 1] if kept else words


def _most_like(
    word: str, others: Sequence[_Word], position: float
) -> tuple[float, int]:
    """The best score and its word, the one nearest to `position` among equals."""
    return max(
        ((bigram_similarity(word, other.text), i) for i, other in enumerate(others)),
        key=lambda scored: _liking(scored, len(others), position),
    )


def _liking(
    scored: tuple[float, int], words: int, position: float
) -> tuple[float, float]:
    """Orders words by their score, and by how near to `position` they stand."""
    score, i = scored
    return score, -abs(i - position * words)


def bigram_similarity(a: str, b: str) -> float:
    """Share of neighbouring letters that two words have in common (Dice, 1945).

    A word of one letter is a pair with nothing.
    """
    pairs_a, pairs_b = _bigrams(a), _bigrams(b)
    common = (pairs_a & pairs_b).total()
    return 2 * common / (pairs_a.total() + pairs_b.total())


def _bigrams(word: str) -> Counter[str]:
    return Counter(word[i : i + 2] for i in range(max(len(word) - 1, 1)))


def _distance(match: Match, text: str, position: float) -> float:
    return abs(match.start / len(text) - position)
