"""Tests of qanet.ensemble."""

from dataclasses import replace

import numpy as np
import pytest

from qanet.config import load_preset
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example
from qanet.decoding import probabilities
from qanet.ensemble import Ensemble, load_readers
from qanet.errors import UserError
from qanet.reader import Reader
from qanet.text.vocabulary import RESERVED, Vocabulary

CONTEXT = "Zoë lives in Rome"
QUESTION = "Where?"


class Letters(Vocabulary):
    """Splits a text into its characters."""

    key = "letters"

    def tokens(self, text):
        places = [i for i, character in enumerate(text) if not character.isspace()]
        return [text[i] for i in places], [(i, i + 1) for i in places]

    def count(self, text, most=None):
        return len(self.tokens(text)[0])


def reader(scores, kind=Vocabulary, threshold=0.5, no_answer=None):
    """A reader that gives the tokens of `CONTEXT` these logits, as start and as end."""
    vocabulary = kind([*RESERVED, "Rome"], [*RESERVED], 4)
    logits = np.array(scores if no_answer is None else [no_answer / 2, *scores])
    none = int(no_answer is not None)

    def predict(inputs):
        rows, length = inputs["context_words"].shape
        padded = np.zeros((rows, none + length), "float32")
        padded[:, : len(logits)] = logits
        return {"start_logits": padded, "end_logits": padded}

    overrides = [f"data.no_answer={no_answer is not None}"]
    return Reader(predict, vocabulary, load_preset("qanet-tiny", overrides), threshold)


def test_the_mean_of_one_reader_and_itself_is_that_reader():
    one = reader([0.0, 1.0, 2.0, 3.0])
    expected = one.answer(QUESTION, CONTEXT, 3)
    found = Ensemble([one, one]).answer(QUESTION, CONTEXT, 3)
    assert [a.text for a in found] == [a.text for a in expected]
    np.testing.assert_allclose(
        [a.score for a in found], [a.score for a in expected], rtol=1e-5
    )


def test_texts_are_split_once_for_readers_of_the_same_tokens(monkeypatch):
    monkeypatch.setattr("qanet.ensemble.build_features", None)
    one = reader([0.0, 1.0, 2.0, 3.0])
    assert Ensemble([one, one]).answer(QUESTION, CONTEXT).text == "Rome"


def test_readers_of_other_tokens_are_averaged_on_those_of_the_first():
    examples = [Example("1", QUESTION, CONTEXT, ())]
    words = reader(np.log([0.1, 0.2, 0.3, 0.4]))
    # All on the letters of "lives", four times as much on its first and last.
    letters = reader(
        [-99] * 3 + [np.log(4), 0, 0, 0, np.log(4)] + [-99] * 6, kind=Letters
    )
    (found,) = Ensemble([words, letters]).logits(
        examples, build_features(examples, words.vocabulary.tokens)
    )
    expected = np.array([0.05, 0.1 + 0.5, 0.15, 0.2])
    said = probabilities(found)[:, 1:]
    np.testing.assert_allclose(said, [expected, expected], rtol=1e-5)
    assert found.no_answer == -np.inf


def test_a_question_is_refused_that_is_too_long_for_one_of_them():
    together = Ensemble([reader([0.0] * 4), reader([0.0] * 14, kind=Letters)])
    together.check_questions([Example("1", QUESTION, CONTEXT, ())])
    # One word, and too many letters.
    with pytest.raises(UserError, match="question 2 has 1001 "):
        together.check_questions([Example("2", "x" * 1001, CONTEXT, ())])


def test_it_is_refused_before_any_of_them_reads():
    first = reader([0.0] * 4)
    first.predict = None
    together = Ensemble([first, reader([0.0] * 14, kind=Letters)])
    with pytest.raises(UserError, match="question 0 has 1001 "):
        together.answer("x" * 1001, CONTEXT)


def test_only_the_chosen_examples_are_read():
    texts = [CONTEXT, CONTEXT.replace("Rome", "the old town of Rome"), "Bo"]
    examples = [Example(str(i), QUESTION, text, ()) for i, text in enumerate(texts)]
    both = Ensemble([reader([0.0] * 9), reader([1.0] * 9)])
    features = build_features(examples, both.vocabulary.tokens)
    found = both.logits(examples, features, np.array([0, 2]))
    assert [of.tokens.shape[1] for of in found] == [4, 1]


def test_no_answer_is_averaged_too():
    examples = [Example("1", QUESTION, CONTEXT, ())]
    readers = [
        reader([0.0] * 4, no_answer=2 * np.log(4.0), threshold=0.2),
        reader([0.0] * 4, no_answer=2 * np.log(12.0), threshold=0.4),
    ]
    both = Ensemble(readers)
    (found,) = both.logits(examples, build_features(examples))
    # (4 / 8 + 12 / 16) / 2
    np.testing.assert_allclose(probabilities(found)[:, 0], 0.625, rtol=1e-5)
    # Also where the totals of the two sides differ: only the end has high logits.
    predict = readers[0].predict

    def high(inputs):
        outputs = predict(inputs)
        return outputs | {"end_logits": outputs["end_logits"] + 3}

    readers[0].predict = high
    (found,) = both.logits(examples, build_features(examples))
    np.testing.assert_allclose(probabilities(found)[:, 0], 0.625, rtol=1e-5)
    assert both.threshold == pytest.approx(0.3)


def test_passages_compete_as_they_do_for_one_reader():
    """By logits, not by the probabilities within a passage."""

    class Long(Reader):
        """A token's logit is the number of its characters."""

        def __init__(self):
            super().__init__(None, *vars_of(reader([0.0])))
            self.predict = lambda inputs: dict.fromkeys(
                ("start_logits", "end_logits"),
                3.0 * (inputs["context_characters"] != 0).sum(axis=2, dtype="float32"),
            )

    def vars_of(one):
        return one.vocabulary, one.config

    alone, both = Long(), Ensemble([Long(), Long()])
    passages = ["x", "yyyy zz yyy"]
    for found, expected in zip(
        both.answer(QUESTION, passages, 3),
        alone.answer(QUESTION, passages, 3),
        strict=True,
    ):
        assert (found.text, found.passage) == (expected.text, expected.passage)
        assert found.score == pytest.approx(expected.score, abs=1e-4)
    assert expected.passage == 1


def test_readers_that_know_no_answer_and_others_do_not_go_together():
    with pytest.raises(UserError, match=r"data\.no_answer"):
        Ensemble([reader([0.0] * 4), reader([0.0] * 4, no_answer=1.0)])


def test_answers_may_be_as_long_as_those_of_any_reader():
    limits = []
    for limit in (2, 9, 4):
        one = reader([0.0, 1.0, 2.0, 3.0])
        data = one.config.data.model_copy(update={"answer_limit": limit})
        one.config = one.config.model_copy(update={"data": data})
        limits.append(one)
    for order in (limits, limits[::-1]):
        assert Ensemble(order).config.data.answer_limit == 9


def test_where_one_reader_chooses_among_words_answers_are_spans_all_the_same():
    spans, words = reader([0.0, 0.0, 9.0, 9.0]), reader([0.0, 0.0, 8.0, 9.0])
    words.limits = replace(words.limits, answer=1)
    for order in ([spans, words], [words, spans]):
        assert Ensemble(order).limits.answer is None
    assert Ensemble([words, words]).limits.answer == 1


def test_one_run_is_no_ensemble(monkeypatch):
    monkeypatch.setattr(Reader, "load", lambda run: reader([float(run)] * 4))
    assert type(load_readers(["1"])) is Reader
    both = load_readers(["1", "2"])
    assert [type(one) for one in (both, *both.readers)] == [Ensemble, Reader, Reader]


def test_passages_compete_by_the_mean_of_the_readers_totals():
    """So that a reader and itself are as sure between passages as it is alone."""
    alone = reader([0.0] * 9)
    passages = ["one", "two words"]
    examples = [Example(str(i), QUESTION, text, ()) for i, text in enumerate(passages)]
    features = build_features(examples)
    one = alone.logits(examples, features)
    both = Ensemble([alone, alone]).logits(examples, features)
    for found, expected in zip(both, one, strict=True):
        np.testing.assert_allclose(found.tokens, expected.tokens, atol=1e-4)


def test_progress_tells_which_reader_reads(caplog):
    examples = [Example("1", QUESTION, CONTEXT, ())]
    labels = []

    class Told(Reader):
        def logits(self, examples, features, chosen=None, progress=None):
            labels.append(progress)
            return super().logits(examples, features, chosen)

    one = reader([0.0] * 4)
    told = Told(one.predict, one.vocabulary, one.config)
    with caplog.at_level("INFO", "qanet"):
        Ensemble([told, told]).logits(examples, build_features(examples))
        assert not caplog.messages
        Ensemble([told, told]).logits(
            examples, build_features(examples), progress="reading"
        )
    assert caplog.messages == ["reader 1 of 2", "reader 2 of 2"]
    assert labels == [None, None, "reading", "reading"]
