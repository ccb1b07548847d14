"""Tests of qanet.reader: offsets, many pairs, long contexts, and blank texts.

Where only the way of the logits matters, a model stands in whose logits depend on the
word alone: however a context is cut into windows, the answers must stay the same.
"""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import qanet
from qanet.config import load_preset
from qanet.datasets.batches import BatchMaker
from qanet.datasets.features import build_features
from qanet.datasets.plans import PlannedBatch
from qanet.datasets.squad import Example
from qanet.datasets.windows import reading_windows
from qanet.errors import UserError
from qanet.models.limits import ReadingLimits
from qanet.reader import Reader, inputs_of
from qanet.text.tokenizer import tokenize
from qanet.text.vocabulary import RESERVED, Vocabulary

VOCABULARY = Vocabulary(
    words=[*RESERVED, "Rome", "Oslo", "in", "lives", "word"],
    characters=[*RESERVED, *"abcdefghijklmnopqrstuvwxyz0123456789"],
    characters_per_word=8,
)
QUESTION = "Where does Zoë live?"
# Everything that text may hold, but for half surrogate pairs.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


class WordModel:
    """Logits from each word's row and spelling alone; notes the shapes it is given."""

    def __init__(self):
        self.shapes = []

    def __call__(self, inputs):
        rows, characters = inputs["context_words"], inputs["context_characters"]
        self.shapes.append((*rows.shape, inputs["question_words"].shape[1]))
        weights = np.arange(1, characters.shape[2] + 1)
        number = rows + (characters * weights).sum(axis=2)
        number = number + inputs["question_characters"].sum(axis=(1, 2))[:, None]
        return {
            "start_logits": np.sin(number * 12.9898).astype("float32"),
            "end_logits": np.cos(number * 78.233).astype("float32"),
        }


class CentralityModel:
    """A token's logits are its distance from the nearer edge of its window."""

    def __call__(self, inputs):
        lengths = (inputs["context_words"] != 0).sum(axis=1)[:, None]
        places = np.arange(inputs["context_words"].shape[1])
        logits = np.minimum(places, lengths - 1 - places).astype("float32")
        return {"start_logits": logits, "end_logits": logits}


class DoubtingModel(WordModel):
    """As `WordModel`; no answer is the less likely the more tokens a window has."""

    def __call__(self, inputs):
        outputs = super().__call__(inputs)
        lengths = (inputs["context_words"] != 0).sum(axis=1)[:, None]
        none = -lengths.astype("float32")
        return {
            name: np.concatenate([none, logits], axis=1)
            for name, logits in outputs.items()
        }


def reader_with(model, **data):
    config = load_preset("qanet-tiny")
    data = config.data.model_copy(update=data)
    return Reader(model, VOCABULARY, config.model_copy(update={"data": data}))


@pytest.fixture(scope="module")
def word_reader():
    return reader_with(WordModel(), context_limit=32, buckets=(32,), question_limit=8)


def check_answers(context, answers):
    for answer in answers:
        assert 0 <= answer.start < answer.end <= len(context)
        assert context[answer.start : answer.end] == answer.text
        assert answer.text == answer.text.strip()
        assert 0 <= answer.score <= 1 + 1e-9
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) <= 1 + 1e-6


@settings(max_examples=200)
@given(context=TEXTS, top_k=st.integers(1, 5))
@example("Zoe\u0308 – “naïve” 東京タワー\u3000𝔘𝕟\u200dicode £5/€7", 3)
@example("\u200e\ufeffa\r\n\tb\u0000c\u2028d", 5)
def test_offsets_point_into_the_original_context(word_reader, context, top_k):
    assume(tokenize(context))
    (answers,) = word_reader.answer_many([(QUESTION, context)], top_k)
    assert 1 <= len(answers) <= top_k
    check_answers(context, answers)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(context=TEXTS)
@example("Zoe\u0308 – “naïve” 東京\u3000𝔘𝕟\u200dicode £5")
def test_trained_model_answers_with_a_piece_of_the_context(trained_reader, context):
    assume(tokenize(context))
    (answers,) = trained_reader.answer_many([(QUESTION, context)], 3)
    check_answers(context, answers)


@pytest.mark.parametrize("context", ["\u200b", "\u200b\ufeff", "\u0007"])
def test_context_without_a_token_has_the_empty_answer(word_reader, context):
    answer = word_reader.answer(QUESTION, context)
    assert (answer.text, answer.start, answer.end) == ("", 0, 0)


def test_context_without_a_token_among_others(word_reader):
    answers = word_reader.answer_many(
        [(QUESTION, "a b c"), (QUESTION, "\u200b"), (QUESTION, "d e f")]
    )
    assert [len(found) for found in answers] == [1, 1, 1]
    assert answers[1][0].text == ""
    check_answers("a b c", answers[0])
    check_answers("d e f", answers[2])


def test_question_without_a_token_asks_nothing(word_reader):
    with pytest.raises(UserError, match=r"question of pair 0 is blank"):
        word_reader.answer("\u200b\x85", "a b c")


def test_one_answer_by_default_and_a_list_with_top_k(word_reader):
    context = "Zoë lives in Rome, Bo in Oslo."
    one = word_reader.answer(QUESTION, context)
    many = word_reader.answer(QUESTION, context, top_k=4)
    assert isinstance(one, qanet.Answer)
    assert len(many) == 4
    assert many[0] == one
    assert len({(answer.start, answer.end) for answer in many}) == 4
    check_answers(context, many)


def test_batches_of_any_shape_give_the_same_answers(word_reader):
    contexts = ["a", "\u200b", "Zoë lives in Rome.", "b c " * 30, "Oslo " * 90, "d e"]
    pairs = [(QUESTION * (1 + i % 2), context) for i, context in enumerate(contexts)]
    model = WordModel()
    free = Reader(model, VOCABULARY, word_reader.config, any_shape=True)
    assert free.answer_many(pairs, 3) == word_reader.answer_many(pairs, 3)
    # Each as long as its longest: tokens of contexts and questions.
    assert {shape[1] for shape in model.shapes} == {1, 2, 5, 60, 90}


def test_several_passages_compete(word_reader):
    passages = ["Bo in Oslo.", "\u200b", "Zoë lives in Rome."]
    answers = word_reader.answer(QUESTION, passages, top_k=1000)
    for answer in answers:
        assert passages[answer.passage][answer.start : answer.end] == answer.text
    assert sum(answer.score for answer in answers) == pytest.approx(1)
    assert {answer.passage for answer in answers} == {0, 2}
    # Within a passage they keep their order and the ratios of their scores.
    for number in (0, 2):
        mine = [answer for answer in answers if answer.passage == number]
        alone = word_reader.answer(QUESTION, passages[number], top_k=1000)
        assert [answer.text for answer in mine] == [answer.text for answer in alone]
        ratios = [a.score / b.score for a, b in zip(mine, alone, strict=True)]
        assert ratios == pytest.approx([ratios[0]] * len(ratios))


def test_no_passage_is_a_users_mistake(word_reader):
    with pytest.raises(UserError, match="pair 1 has no context"):
        word_reader.answer_many([(QUESTION, "text"), (QUESTION, [])])


def test_the_caller_may_limit_the_answers(word_reader):
    (answers,) = word_reader.answer_many([(QUESTION, "a b c d e f")], 99, 2)
    assert len(answers) == 6 + 5


def test_top_k_of_a_short_context_gives_what_there_is(word_reader):
    answers = word_reader.answer(QUESTION, "a b", top_k=9)
    assert {answer.text for answer in answers} == {"a", "b", "a b"}
    assert sum(answer.score for answer in answers) == pytest.approx(1)


def test_answers_keep_to_the_limit():
    reader = reader_with(WordModel(), answer_limit=2)
    answers = reader.answer(QUESTION, "a b c d e f", top_k=99)
    assert len(answers) == 6 + 5


@pytest.mark.parametrize("blank", ["", " ", "\n\t \u3000"])
def test_blank_question_or_context_is_a_users_mistake(word_reader, blank):
    with pytest.raises(UserError, match=r"question.*blank"):
        word_reader.answer(blank, "some text")
    with pytest.raises(UserError, match=r"context.*blank"):
        word_reader.answer("what?", blank)
    with pytest.raises(UserError, match=r"question of pair 1"):
        word_reader.answer_many([("what?", "text"), (blank, "text")])


@pytest.mark.parametrize("any_shape", [False, True])
def test_a_question_that_is_too_long_is_a_users_mistake(any_shape):
    model = WordModel()
    reader = Reader(model, VOCABULARY, reader_with(model).config, any_shape=any_shape)
    long = "q " * 1000
    check_answers("some text", reader.answer_many([(long, "some text")])[0])
    model.shapes.clear()
    with pytest.raises(UserError, match=r"question 1 has 1001 .* at most 1000"):
        reader.answer_many([("what?", "text"), (long + "?", ["text", "more"])])
    assert not model.shapes


def test_inputs_are_those_of_one_window():
    inputs = inputs_of("what?", "a " * 1000, VOCABULARY)
    assert inputs["context_words"].shape[1] == 1000
    with pytest.raises(UserError, match="longer than a window of 1,000 tokens"):
        inputs_of("what?", "a " * 1001, VOCABULARY)


def test_no_pairs_no_answers(word_reader):
    assert word_reader.answer_many([]) == []


@settings(max_examples=30)
@given(
    pairs=st.lists(
        st.tuples(
            st.text("ab c?", min_size=1, max_size=40).filter(str.strip),
            st.text("ab c.", min_size=1, max_size=120).filter(str.strip),
        ),
        min_size=1,
        max_size=9,
    )
)
def test_many_pairs_equal_single_calls(word_reader, pairs):
    together = word_reader.answer_many(pairs, 3)
    apart = [word_reader.answer_many([pair], 3)[0] for pair in pairs]
    assert together == apart


def test_many_pairs_equal_single_calls_with_a_trained_model(trained_reader):
    context = "Zoë3 lives in Rome, but Bo’3 lives in Oslo."
    other = "In São Paulo lives Bo’4."
    pairs = [("Where does Bo’3 live?", context), ("Who?", other)]
    pairs += [("Where does Zoë3 live?", context), (QUESTION, "word")]
    together = trained_reader.answer_many(pairs, 2)
    for pair, answers in zip(pairs, together, strict=True):
        (alone,) = trained_reader.answer_many([pair], 2)
        assert [a.text for a in answers] == [a.text for a in alone]
        np.testing.assert_allclose(
            [a.score for a in answers], [a.score for a in alone], rtol=1e-4
        )


def windows_of(size):
    """Windows of so many tokens that overlap by half."""
    return ReadingLimits(window=size, stride=size // 2)


WORDS = st.sampled_from(["Rome", "Oslo", "in", "lives", "word", "x1", "y2", "."])


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    words=st.lists(WORDS, min_size=1, max_size=60), size=st.sampled_from([2, 4, 8, 10])
)
def test_long_context_has_the_answers_of_one_that_stands_in_one_window(
    word_reader, monkeypatch, words, size
):
    context = " ".join(words)
    (whole,) = word_reader.answer_many([(QUESTION, context)], 5)
    with monkeypatch.context() as patch:
        patch.setattr(word_reader, "limits", windows_of(size))
        (windowed,) = word_reader.answer_many([(QUESTION, context)], 5)
    assert windowed == whole


def test_many_long_contexts_do_not_mix(word_reader, monkeypatch):
    contexts = [
        " ".join(f"{name}{i}" for i in range(n))
        for name, n in (("a", 50), ("b", 3), ("c", 21), ("a", 50), ("d", 9))
    ]
    pairs = [(QUESTION, context) for context in contexts]
    whole = word_reader.answer_many(pairs, 4)
    monkeypatch.setattr(word_reader, "limits", windows_of(8))
    assert word_reader.answer_many(pairs, 4) == whole


def test_each_token_is_read_where_it_is_most_central():
    reader = reader_with(CentralityModel(), answer_limit=1)
    reader.limits = windows_of(8)
    # Windows of tokens 0-7, 4-11 and 8-13.
    answers = reader.answer(QUESTION, " ".join("abcdefghijklmn"), top_k=14)
    logits = {answer.start // 2: np.log(answer.score) / 2 for answer in answers}
    expected = [0, 1, 2, 3, 3, 2, 2, 3, 3, 2, 2, 2, 1, 0]
    actual = np.array([logits[i] for i in range(14)])
    np.testing.assert_allclose(actual - actual[0], expected, atol=1e-6)


def test_no_batch_is_larger_than_configured_nor_any_window():
    model = WordModel()
    reader = reader_with(model, context_limit=16, buckets=(8, 16), question_limit=8)
    reader.limits = windows_of(32)
    reader.answer(QUESTION, " ".join(f"w{i}" for i in range(5000)))
    size = reader.config.training.evaluation_batch_size
    assert set(model.shapes) == {(size, 32, 8)}


@pytest.mark.parametrize(("preset", "at_once"), [("aoa-cloze", True), ("aoa", False)])
def test_a_cloze_reader_adds_up_places_that_are_far_apart(preset, at_once):
    model = WordModel()
    reader = Reader(model, VOCABULARY, load_preset(preset))
    reader.answer(QUESTION, " ".join(f"w{i}" for i in range(1500)))
    assert all((length >= 1500) == at_once for _, length, _ in model.shapes)


def test_a_cloze_reader_tells_the_probability_of_a_word():
    """Also where longer answers are asked for: there are none."""

    def predict(inputs):
        shape = inputs["context_words"].shape
        logits = np.full(shape, -1e9, "float32")
        logits[:, :3] = np.log([0.5, 0.3, 0.2])
        return {"start_logits": logits, "end_logits": logits}

    reader = Reader(predict, VOCABULARY, load_preset("aoa-cloze"))
    for most in (None, 5):
        (found,) = reader.answer_many([(QUESTION, "Rome Oslo Bo")], 3, most)
        assert [answer.text for answer in found] == ["Rome", "Oslo", "Bo"]
        scores = [answer.score for answer in found]
        np.testing.assert_allclose(scores, [0.5, 0.3, 0.2], rtol=1e-5)


def test_few_shapes_whatever_the_number_of_pairs():
    model = WordModel()
    reader = reader_with(model)
    for count in range(1, 10):
        assert len(reader.answer_many([(QUESTION, "Rome and Oslo")] * count)) == count
    assert sorted({batch for batch, *_ in model.shapes}) == [1, 2, 4, 8, 16]


def test_a_book_is_answered_in_bounded_memory():
    sentence = "Zoë lives in Rome, Bo in Oslo; {} more words stand here."
    context = "\n".join(sentence.format(i) for i in range(18_000))
    assert len(context) > 1_000_000
    reader = reader_with(WordModel())
    tracemalloc.start()
    try:
        answers = reader.answer(QUESTION, context, top_k=3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    check_answers(context, answers)
    assert peak < 100 * 2**20


def test_progress_bar_counts_the_questions(word_reader, capsys):
    examples = [Example(str(i), QUESTION, "a b", ()) for i in range(3)]
    features = build_features(examples)
    word_reader.read(examples, features, progress="evaluating")
    shown = capsys.readouterr().err
    assert "evaluating" in shown
    assert "/3" in shown
    word_reader.read(examples, features)
    assert capsys.readouterr().err == ""


def test_chosen_examples_alone_are_read(word_reader):
    examples = [Example(str(i), QUESTION, f"a{i} b{i}", ()) for i in range(6)]
    features = build_features(examples)
    everything = word_reader.read(examples, features, top_k=2)
    chosen = word_reader.read(examples, features, np.array([1, 4, 5]), top_k=2)
    assert chosen == [everything[i] for i in (1, 4, 5)]
    assert word_reader.read(examples, features, np.array([], dtype=np.int64)) == []


def doubting_reader(threshold=0.5, **settings):
    reader = reader_with(
        DoubtingModel(),
        context_limit=32,
        buckets=(32,),
        question_limit=8,
        no_answer=True,
    )
    return Reader(
        reader.predict, VOCABULARY, reader.config, threshold=threshold, **settings
    )


def test_no_answer_has_its_share_of_the_probability(word_reader):
    context = "Zoë lives in Rome."
    answers = doubting_reader().answer(QUESTION, context, top_k=1000)
    (none,) = [answer for answer in answers if not answer.text]
    spans = [answer for answer in answers if answer.text]
    assert sum(answer.score for answer in answers) == pytest.approx(1)
    # The spans are those of the model without doubts, in their ratios.
    sure = word_reader.answer(QUESTION, context, top_k=1000)
    assert [answer.text for answer in spans] == [answer.text for answer in sure]
    ratios = [a.score / b.score for a, b in zip(spans, sure, strict=True)]
    assert ratios == pytest.approx([1 - none.score] * len(spans))
    # Five tokens, so a logit of -5 for start and end each.
    sums = np.log([answer.score for answer in sure])
    shift = np.log(sums_of_exponentials(context))
    assert np.log(none.score / spans[0].score) == pytest.approx(-10 - sums[0] - shift)


def test_a_logit_of_no_answer_that_is_no_number():
    reader = doubting_reader()
    predict = reader.predict

    def broken(inputs):
        outputs = {name: np.array(value) for name, value in predict(inputs).items()}
        outputs["end_logits"][:, 0] = np.nan
        return outputs

    reader.predict = broken
    with pytest.raises(UserError, match="no finite number"):
        reader.answer(QUESTION, "Zoë lives in Rome.")


def sums_of_exponentials(context):
    """The sum of exp(start + end) over all spans of a short context."""
    features = build_features([Example("q", QUESTION, context, ())])
    seen = reading_windows(features, np.arange(1), ReadingLimits())
    maker = BatchMaker(features, VOCABULARY.table(features.words), seen)
    batch = PlannedBatch(np.array([0]), seen.lengths[0], 8)
    outputs = WordModel()(maker.inputs(batch))
    starts, ends = np.exp(outputs["start_logits"][0]), np.exp(outputs["end_logits"][0])
    return sum(starts[i] * ends[i:].sum() for i in range(len(starts)))


@pytest.mark.parametrize("any_shape", [False, True])
def test_the_threshold_decides(any_shape):
    context = "Zoë lives."
    (ranked,) = doubting_reader().answer_many([(QUESTION, context)], 99)
    share = next(answer.score for answer in ranked if not answer.text)
    for threshold, empty in ((share - 1e-6, True), (share + 1e-6, False)):
        reader = doubting_reader(threshold, any_shape=any_shape)
        assert (not reader.answer(QUESTION, context).text) == empty
        two = reader.answer(QUESTION, context, top_k=2)
        assert len(two) == 2
        assert (not two[0].text) == empty


def test_there_is_no_answer_where_no_window_has_one():
    # Windows of tokens 0-7 and 4-8: eight and five of them.
    reader = doubting_reader()
    reader.limits = windows_of(8)
    answers = reader.answer(QUESTION, "a b c d e f g h i", top_k=1000)
    alone = doubting_reader().answer(QUESTION, "a b c d e f g h", top_k=1000)

    def odds(answers):
        scores = {answer.text: answer.score for answer in answers}
        return scores[""] / scores["a"]

    assert odds(answers) == pytest.approx(odds(alone))


def test_nothing_is_decided_for_the_evaluation():
    examples = [Example("q", QUESTION, "Zoë lives.", ())]
    (answers,) = doubting_reader(0.0).read(examples, build_features(examples), top_k=1)
    assert sorted(answers, key=lambda answer: -answer.score) == answers
    assert {bool(answer.text) for answer in answers} == {True, False}


def test_logits_of_windows_lie_in_one_piece(trained_reader, monkeypatch):
    """Small arrays between the large ones of the batches would make memory grow."""
    seen = []
    monkeypatch.setattr(
        "qanet.reader.join_windows", lambda logits, *others: seen.extend(logits)
    )
    monkeypatch.setattr("qanet.reader.spans_of_context", lambda *arguments: None)
    monkeypatch.setattr("qanet.reader.rank_answers", lambda *arguments: [])
    monkeypatch.setattr("qanet.reader.decide", lambda answers, threshold: answers)

    # Texts of other lengths are read in other batches.
    monkeypatch.setattr(trained_reader, "any_shape", True)

    trained_reader.answer_many([("Who?", "Anna did."), ("Where?", "In Kolan . " * 5)])

    assert [part.shape for part in seen] == [(2, 3), (2, 15)]
    assert {id(part.base) for part in seen} == {id(seen[0].base)}
    assert seen[0].base is not None


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("ab", "pair 0 is none"),
        (("Who?",), "pair 0 is none"),
        (("Who?", None), "pair 0 is none"),
        (("Who?", b"Bo did."), "pair 0 holds no text but int"),
        (("Who?", [b"Bo did."]), "pair 0 holds no text but bytes"),
        ((None, "Bo did."), "pair 0 holds no text but NoneType"),
        (("Who?", np.array([])), "pair 0 has no context"),
    ],
)
def test_what_is_no_pair_of_texts_is_named(word_reader, pair, message):
    with pytest.raises(UserError, match=message):
        word_reader.answer_many([pair])


def test_an_array_of_passages_is_a_list_of_them(word_reader):
    passages = ["Zoe lives in Rome.", "Bo lives here."]
    expected = word_reader.answer(QUESTION, passages)
    assert word_reader.answer(QUESTION, np.array(passages)) == expected


@pytest.mark.parametrize("name", ["top_k", "max_answer_tokens"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2"])
def test_a_number_that_is_none_is_told_before_anything_is_read(
    word_reader, monkeypatch, name, value
):
    monkeypatch.setattr(word_reader, "predict", None)
    with pytest.raises(UserError, match=f"{name}=.*: must be a whole number from 1 on"):
        word_reader.answer_many([(QUESTION, "Bo did.")], **{name: value})
