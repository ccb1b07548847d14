"""What every cloze question is."""

import re

from qanet.augmentation.cloze import GAP
from qanet.text.tokenizer import tokenize


def check(question):
    """Checks what each cloze question is."""
    example = question.example
    (answer,) = example.answers
    # Without points, commas and colons in numbers, a number is one token.
    question_text = re.sub(r"(?<=[0-9])[.,:](?=[0-9])", "0", example.question)
    words = tokenize(example.context)
    assert example.context[answer.start :].startswith(answer.text)
    assert words.count(answer.text) >= 1
    # The first place: before it no token is the answer, not even within a number.
    assert answer.text not in tokenize(example.context[: answer.start])
    assert GAP in tokenize(question_text)
    assert answer.text not in tokenize(question_text)
    assert answer.text in question.candidates
    assert set(question.candidates) <= set(words)
