"""How much a model reads at a time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingLimits:
    """How long texts may be, in tokens, for a model to read them at once.

    Attributes:
        window: contexts of at most so many tokens are read whole, longer ones in
            windows of this length.
        stride: tokens from the start of one window to that of the next.
        question: the longest question. It is read whole, so this alone bounds its
            memory, which grows with the square of its length. By default no question
            that anyone asks is as long.
        together: tokens of both texts together, at most; `None` where nothing but the
            memory bounds them.
        answer: tokens of an answer, at most; `None` where any span is one. With 1,
            see `one_word`.
    """

    window: int = 1000
    stride: int = 750
    question: int = 1000
    together: int | None = None
    answer: int | None = None

    @property
    def one_word(self) -> bool:
        """Whether an answer is one word, whose start and end are one logit."""
        return self.answer == 1

    def __post_init__(self):
        if not 0 < self.stride <= self.window:
            raise ValueError(f"stride={self.stride}: not from 1 to {self.window}")
