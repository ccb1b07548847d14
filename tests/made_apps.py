"""Applications of readers that are at hand."""

from qanet.decoding import Answer
from qanet.models.limits import ReadingLimits
from qanet.serving.readers import Readers
from qanet.serving.served import Loaded
from qanet.serving.server import make_app
from qanet.text.vocabulary import RESERVED, Vocabulary


class Ready:
    """A reader that answers at once with the question, but fails at "fail"."""

    vocabulary = Vocabulary([*RESERVED], [*RESERVED], 1)
    limits = ReadingLimits()
    attends = False

    def answer(self, question, context):
        return Answer("", 0, 0, 0.0)

    def answer_many(self, pairs, top_k, max_answer_tokens):
        questions = [question for question, _ in pairs]
        if "fail" in questions:
            raise RuntimeError("secret")
        return [[Answer(question, 0, 1, 1.0)] for question in questions]


def app_of(reader, model=None, limits=None):
    """The application of one reader, called `only`."""
    return app_of_many({"only": Loaded(reader, model)}, limits)


def app_of_many(loaded, limits=None):
    """The application of several readers by name."""
    readers = Readers(
        {name: lambda one=one: one for name, one in loaded.items()}, limits
    )
    readers.load()
    return make_app(readers)
