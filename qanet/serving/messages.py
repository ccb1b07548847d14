"""What is asked over HTTP, and what is answered."""

from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)

from qanet.text.tokenizer import count_tokens
from qanet.utf8 import is_encodable


def _with_a_token(text: str) -> str:
    if not is_encodable(text):
        raise ValueError("half a surrogate pair is no text")
    if not count_tokens(text):
        raise ValueError("is blank; give some text")
    return text


Text = Annotated[str, AfterValidator(_with_a_token)]
# The first mistake is told. The limits of a server are far below this one, which keeps
# a body of half a million texts from being looked at text by text.
Texts = Annotated[list[Text], FailFast(), Field(min_length=1, max_length=1000)]
Name = Annotated[
    str | None, Field(description="the reader's, by default that of the first")
]


class _Request(BaseModel):
    """What is asked has these fields and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _one_unknown_field(cls, body: object) -> object:
        """Leaves one unknown field to be refused, instead of an error for each."""
        if not isinstance(body, dict):
            return body
        unknown = next((name for name in body if name not in cls.model_fields), None)
        kept = {*cls.model_fields, unknown}
        return {name: value for name, value in body.items() if name in kept}


class Question(_Request):
    """Questions, each of which is asked of all the passages."""

    questions: Texts = Field(examples=[["Who opened the museum?"]])
    passages: Texts = Field(examples=[["Anna Kov opened the museum in 1984."]])
    top_k: int = Field(1, ge=1, description="answers to each question")
    max_answer_tokens: int | None = Field(
        None, ge=1, description="by default the limit that the reader was trained with"
    )
    model: Name = None


class Asked(_Request):
    """A question on a passage."""

    question: Text = Field(examples=["Who opened the museum?"])
    passage: Text = Field(examples=["Anna Kov opened the museum in 1984."])
    model: Name = None


class Explained(BaseModel):
    """What an answer comes from, word by word."""

    passage_tokens: list[list[int]] = Field(
        description="for each word of the passage the code points before and to its end"
    )
    question_tokens: list[list[int]] = Field(description="the same of the question")
    start: list[float] = Field(description="probability that the answer starts here")
    end: list[float] = Field(description="probability that the answer ends here")
    attention: list[list[float]] = Field(
        description="for each word of the passage its attention to the question's words"
    )


class FoundAnswer(BaseModel):
    """A piece of a passage, or that none of them answers."""

    text: str = Field(
        description="empty for no answer; then passage, start and end are 0"
    )
    passage: int = Field(description="which passage, from 0")
    start: int = Field(description="code points of the passage before it")
    end: int = Field(description="code points of the passage up to its end")
    score: float = Field(
        description="probability among all spans of all passages, and no answer"
    )


class Answers(BaseModel):
    """For each question its answers, best first."""

    answers: list[list[FoundAnswer]]


class ModelInformation(BaseModel):
    """What the reader is."""

    name: str
    version: str = Field(description="of this package")
    digest: str = Field(description="SHA-256, another for every other reader")
    parameters: int | None = Field(description="null where it cannot be told")
    words: int = Field(description="words or word pieces that have a vector")
    max_answer_tokens: int
    no_answer: bool = Field(description="whether it can say that there is no answer")
    threshold: float | None = Field(
        description="the probability above which it does; null where it cannot"
    )
    limits: dict[str, int]


class ListedModel(ModelInformation):
    """What one of the readers is."""

    model: str = Field(description="its name, the `model` of a request")


class Models(BaseModel):
    """What the readers are; the first answers who names none."""

    models: list[ListedModel]


class Health(BaseModel):
    """Whether the server is ready."""

    status: str


class ErrorDetail(BaseModel):
    """What is wrong."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """The shape of every error."""

    error: ErrorDetail
