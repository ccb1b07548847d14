"""From a model's logits to ranked answers, with NumPy alone.

A model scores each token of the context as the start and as the end of the answer.
Here the two are read together: only spans that end no earlier than they start and
are not too long compete, and what comes out is the text of the original context,
never text that was put together again from tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, slots=True)
class Answer:
    """A piece of the context, offered as the answer; or none, if the text is empty.

    Attributes:
        text: `context[start:end]`; empty for "the context does not answer".
        start: Offset of the first character.
        end: Offset after the last character.
        score: Probability among all the spans that were allowed, and "no answer" where
            the model knows it.
        passage: Which of several contexts it is a piece of.
    """

    text: str
    start: int
    end: int
    score: float
    passage: int = 0

    def in_passage(self) -> dict[str, str | int | float]:
        """What is told of it where there is one passage."""
        return {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "score": self.score,
        }


class TokenSpan(NamedTuple):
    """A span of tokens.

    Attributes:
        first, last: Its first token and its last, inclusive.
        logit: Start logit plus end logit.
    """

    first: int
    last: int
    logit: float


class Spans(NamedTuple):
    """What a context has to offer.

    Attributes:
        best: The best spans, best first.
        log_total: Logarithm of the sum of exp(logit) over all allowed spans.
        no_answer: Logit of there being no answer; -inf where the model cannot tell.
    """

    best: list[TokenSpan]
    log_total: float
    no_answer: float = -np.inf


class ContextLogits(NamedTuple):
    """What a model says of a whole context.

    Attributes:
        tokens: Start and end logits of its tokens, float `(2, tokens)`.
        no_answer: Logit of there being no answer; -inf where the model cannot tell.
    """

    tokens: np.ndarray
    no_answer: float = -np.inf


# Tokens whose spans are looked at together: the numbers of all spans of a book would
# take some hundred megabytes.
STARTS = 8192

# A context without a token.
NO_SPANS = Spans([], -np.inf)


def best_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    max_answer_tokens: int = 30,
    top_k: int = 1,
) -> Spans:
    """Finds the spans of tokens with the highest start logit plus end logit.

    A span is allowed where it does not end before it starts and has at most
    `max_answer_tokens` tokens.

    Args:
        start_logits: Shape `(n,)`, one finite number for each token, padding left out.
        end_logits: As `start_logits`.
        max_answer_tokens: The most tokens a span may have.
        top_k: How many spans to return; fewer come where fewer are allowed.

    Returns:
        The best spans, and what their scores are measured by. Of equal sums, the
        smaller start comes first, then the smaller end.

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

    # Row i of the windows has the ends of spans that start at token i; -inf past the
    # last token.
    longest = min(max_answer_tokens, starts.size)
    padded_ends = np.pad(ends, (0, longest - 1), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded_ends, longest)
    found, log_totals = [], []
    for begin in range(0, starts.size, STARTS):
        rows = slice(begin, begin + STARTS)
        sums = (starts[rows, None] + windows[rows]).ravel()
        best = _best(sums, top_k)
        first, extra = np.divmod(best, longest)
        found.append(np.stack([begin + first, begin + first + extra, sums[best]]))
        log_totals.append(_log_total(sums))

    first, last, score = np.concatenate(found, axis=1)
    allowed = starts.size * longest - longest * (longest - 1) // 2
    best = _best(score, min(top_k, allowed))
    columns = first[best].astype(int).tolist(), last[best].astype(int).tolist()
    return Spans(
        best=[
            TokenSpan(*span)
            for span in zip(*columns, score[best].tolist(), strict=True)
        ],
        log_total=float(np.logaddexp.reduce(log_totals)),
    )


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """Places of the k highest scores, the highest first, of equal ones the first."""
    k = min(k, scores.size)
    # All that tie with the k-th best, in order.
    candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def _log_total(scores: np.ndarray) -> float:
    """log of the sum of exp(score); overwrites the scores."""
    peak = scores.max()
    np.subtract(scores, peak, out=scores)
    np.exp(scores, out=scores)
    return peak + np.log(scores.sum())


def split_no_answer(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Takes apart what a model that knows no answer says.

    Only the sum of a pair of logits counts, and only against other sums: each side is
    moved so that no answer has the same logit on both, half of what is returned.

    Args:
        logits: Start and end logits, `(batch, 2, 1 + length)`, of no answer first.

    Returns:
        Logits of the tokens, `(batch, 2, length)`, and of there being no answer,
        `(batch,)`.
    """
    none = logits[:, :, :1]
    moved = logits[:, :, 1:] - none + none.mean(axis=1, keepdims=True)
    return moved, none[:, :, 0].sum(axis=1)


def join_windows(
    logits: Sequence[np.ndarray], offsets: np.ndarray, no_answer: np.ndarray
) -> ContextLogits:
    """Logits of a whole context, each token's from the window it is most central in.

    There is no answer where no window has one.

    Args:
        logits: `(2, length)` for each window, in order.
        offsets: First token of each window, int `(windows,)`.
        no_answer: Each window's logit of there being no answer; -inf where the model
            cannot tell.
    """
    ends = offsets + [window.shape[1] for window in logits]
    parts = [logits[0]]
    for window, overlap in zip(logits[1:], ends[:-1] - offsets[1:], strict=True):
        keep = overlap // 2
        parts[-1] = parts[-1][:, : parts[-1].shape[1] - (overlap - keep)]
        parts.append(window[:, keep:])
    return ContextLogits(np.concatenate(parts, axis=1), float(no_answer.min()))


def spans_of_context(
    logits: ContextLogits, max_answer_tokens: int, top_k: int
) -> Spans:
    """The best spans of a context.

    Args:
        logits: What a model says of it.
        max_answer_tokens: The most tokens a span may have.
        top_k: How many spans to return.
    """
    starts, ends = logits.tokens
    # Without a token: nothing but white space and control characters.
    found = best_spans(starts, ends, max_answer_tokens, top_k) if len(starts) else None
    return (found or NO_SPANS)._replace(no_answer=logits.no_answer)


def rank_answers(
    contexts: Sequence[str],
    token_spans: Sequence[Sequence[tuple[int, int]]],
    spans: Sequence[Spans],
    top_k: int,
) -> list[Answer]:
    """Cuts the best answers out of one context or several.

    Spans of several contexts compete by their logits (Clark and Gardner, 2018): the
    score is the softmax over all allowed spans of all of them, and no answer, whose
    logit is the sum of those of start and end. There is no answer where none of the
    contexts has one, so the lowest logit of that competes with the spans.

    Args:
        contexts: The original texts.
        token_spans: For each token of each context, the offsets of its first character
            and after its last.
        spans: What each context has to offer, as from `best_spans`.
        top_k: How many spans to return; fewer come where there are fewer.

    Returns:
        The best spans, best first, and among them "no answer" where the model knows it
        or no context has a token.
    """
    found = [
        (span, passage) for passage, some in enumerate(spans) for span in some.best
    ]
    found.sort(key=lambda entry: -entry[0].logit)
    no_answer = min(some.no_answer for some in spans)
    log_total = np.logaddexp.reduce([no_answer, *(some.log_total for some in spans)])
    answers = []
    for span, passage in found[:top_k]:
        places = token_spans[passage]
        start, end = int(places[span.first][0]), int(places[span.last][1])
        score = float(np.exp(span.logit - log_total))
        text = contexts[passage][start:end]
        answers.append(Answer(text, start, end, score, passage))
    if no_answer > -np.inf:
        none = Answer("", 0, 0, float(np.exp(no_answer - log_total)))
        answers.append(none)
        answers.sort(key=lambda answer: -answer.score)
    return answers or [Answer("", 0, 0, 0.0)]


def decide(answers: Sequence[Answer], threshold: float) -> list[Answer]:
    """Puts "no answer" first if its probability is above the threshold, else not first.

    Args:
        answers: Ranked answers, as from `rank_answers`.
        threshold: Between 0 and 1.
    """
    spans = [answer for answer in answers if answer.text]
    if not spans or len(spans) == len(answers):
        return list(answers)
    (none,) = (answer for answer in answers if not answer.text)
    if none.score > threshold:
        return [none, *spans]
    place = max(1, answers.index(none))
    return [*spans[:place], none, *spans[place:]]


def probabilities(logits: ContextLogits) -> np.ndarray:
    """Softmax of the start logits and of the end logits, "no answer" among them.

    Half of the logit of no answer, which is a sum of two, goes to either side.

    Returns:
        float64 `(2, 1 + tokens)`, rows that sum to one, that of no answer first; that
        is 0 where the model cannot tell. All are 0 where it can say nothing.
    """
    return np.exp(_with_no_answer(logits) - log_totals(logits)[:, None])


def log_totals(logits: ContextLogits) -> np.ndarray:
    """Logarithm of what `probabilities` divides by, float64 `(2,)`.

    It tells contexts that compete for one question apart; 0 where there is nothing.
    """
    totals = np.logaddexp.reduce(_with_no_answer(logits), axis=1)
    return np.where(np.isfinite(totals), totals, 0.0)


def _with_no_answer(logits: ContextLogits) -> np.ndarray:
    """The logits, float64 `(2, 1 + tokens)`, half of that of no answer on each side."""
    none = np.full((2, 1), logits.no_answer / 2)
    return np.concatenate([none, np.asarray(logits.tokens, np.float64)], axis=1)
