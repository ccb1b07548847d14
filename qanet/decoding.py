"""From a model's logits to ranked answers, with NumPy alone.

A model scores each token of the context as the start and as the end of the answer.
Here the two are read together: only spans that end no earlier than they start and
are not too long compete, and what comes out is the text of the original context,
never text that was put together again from tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Answer:
    """A piece of the context, offered as the answer.

    Attributes:
        text: `context[start:end]`.
        start: Offset of the first character.
        end: Offset after the last character.
        score: Probability among all the spans that were allowed.
    """

    text: str
    start: int
    end: int
    score: float


def best_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    max_answer_tokens: int = 30,
    top_k: int = 1,
) -> list[tuple[int, int, float]]:
    """Finds the spans of tokens with the highest start logit plus end logit.

    A span is allowed where it does not end before it starts and has at most
    `max_answer_tokens` tokens. Takes memory for `n * max_answer_tokens` numbers.

    Args:
        start_logits: Shape `(n,)`, one finite number for each token, padding left out.
        end_logits: As `start_logits`.
        max_answer_tokens: The most tokens a span may have.
        top_k: How many spans to return; fewer come where fewer are allowed.

    Returns:
        Triples of first token, last token (inclusive) and score, the best first. The
        score is the softmax of the summed logits over all allowed spans. Of equal
        sums, the smaller start comes first, then the smaller end.

    Raises:
        ValueError: The logits are empty, not finite or not of one length, or a limit
            is below 1.
    """
    starts = np.asarray(start_logits, np.float64)
    ends = np.asarray(end_logits, np.float64)
    if starts.ndim != 1 or starts.shape != ends.shape or not starts.size:
        raise ValueError(
            "start and end logits must be two vectors of one length, at least 1; "
            f"their shapes are {starts.shape} and {ends.shape}"
        )
    if not (np.isfinite(starts).all() and np.isfinite(ends).all()):
        raise ValueError("start and end logits must be finite")
    if max_answer_tokens < 1 or top_k < 1:
        raise ValueError(
            "max_answer_tokens and top_k must be at least 1; "
            f"they are {max_answer_tokens} and {top_k}"
        )

    # sums[i, j] belongs to the span of tokens i to i + j; those past the end get -inf.
    longest = min(max_answer_tokens, starts.size)
    padded_ends = np.pad(ends, (0, longest - 1), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded_ends, longest)
    sums = (starts[:, None] + windows).ravel()

    allowed = starts.size * longest - longest * (longest - 1) // 2
    k = min(top_k, allowed)
    # All spans that tie with the k-th best, in order of start and end.
    candidates = np.flatnonzero(sums >= np.partition(sums, -k)[-k])
    best = candidates[np.argsort(-sums[candidates], kind="stable")[:k]]

    weights = np.exp(sums - sums.max())
    scores = weights[best] / weights.sum()
    first, extra = np.divmod(best, longest)
    columns = first.tolist(), (first + extra).tolist(), scores.tolist()
    return list(zip(*columns, strict=True))


def answers_from_spans(
    context: str,
    token_spans: Sequence[tuple[int, int]],
    spans: Iterable[tuple[int, int, float]],
) -> list[Answer]:
    """Cuts the answers out of the context.

    Args:
        context: The original text.
        token_spans: For each token, the offsets of its first character and after its
            last.
        spans: First token, last token and score, as from `best_spans`.

    Returns:
        One answer for each span, in the same order.
    """
    answers = []
    for first, last, score in spans:
        start, end = int(token_spans[first][0]), int(token_spans[last][1])
        answers.append(Answer(context[start:end], start, end, score))
    return answers
