"""Tests of qanet.export.text_graph: in the graph as in Python."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qanet.export.text_graph import Tokenizer, WordTable
from qanet.layers.input_embedding import InputEmbedding
from qanet.layers.spelling import Spelling
from qanet.layers.unfold import Unfold
from qanet.text.tokenizer import token_spans, tokenize
from qanet.text.vocabulary import PADDING, RESERVED, UNKNOWN, Vocabulary

# UTF-8 has no half surrogate pairs.
TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4
)
VOCABULARY = Vocabulary(
    words=[*RESERVED, "Rome", "oslo", "straße", "a\0", "a", "\udc80", "i̇zmir"],
    characters=[*RESERVED, *"abelmorstß"],
    characters_per_word=5,
)


@pytest.fixture(scope="module")
def tokenizer():
    graph = Tokenizer()
    return tf.function(graph, input_signature=[tf.TensorSpec([None], tf.string)])


@pytest.fixture(scope="module")
def embedding():
    return made_embedding(VOCABULARY)


def made_embedding(vocabulary):
    keras.utils.set_random_seed(7)
    characters = {"characters": len(vocabulary.characters), "width": 4}
    layer = InputEmbedding(
        6,
        words={"rows": len(vocabulary.words), "width": 3},
        characters=characters,
        highway_layers=1,
    )
    layer.build((None, None), (None, None, 5))
    rng = np.random.default_rng(7)
    for weight in layer.weights:
        weight.assign(rng.uniform(-0.8, 0.8, weight.shape))
    return layer


def word_table(embedding, vocabulary=VOCABULARY):
    folded = keras.Input((None, embedding.folded_width), name="folded")
    words = keras.Input((None,), dtype="int32", name="words")
    characters = keras.Input((None, 5), dtype="int32", name="characters")
    outputs = {
        "vectors": Unfold(embedding)(folded, characters),
        "spellings": Spelling(vocabulary.lowercase)(words, characters),
    }
    inputs = {"folded": folded, "words": words, "characters": characters}
    return WordTable(vocabulary, embedding.fold(), keras.Model(inputs, outputs))


@settings(max_examples=150)
@given(TEXTS)
@example(["", "a", "\x00", "", "a b", "b"])
@example(["Zoe\u0308 – “naïve” 東京タワー\u3000𝔘𝕟\u200dicode £5/€7", "\ufeffx\r\ny"])
def test_tokens_are_those_of_python(tokenizer, texts):
    tokens = tokenizer(tf.constant(texts, tf.string))

    spans = [span for text in texts for span in token_spans(text)]
    words = [word for text in texts for word in tokenize(text)]
    counts = [len(tokenize(text)) for text in texts]
    assert [word.decode() for word in tokens.words.numpy()] == words
    assert tokens.counts.numpy().tolist() == counts
    found = zip(tokens.starts.numpy(), tokens.ends.numpy(), strict=True)
    assert list(found) == spans
    encoded = [text.encode() for text in texts for _ in token_spans(text)]
    pieces = [
        text[first:last].decode()
        for text, first, last in zip(
            encoded, tokens.first_bytes.numpy(), tokens.last_bytes.numpy(), strict=True
        )
    ]
    assert pieces == words


def test_what_is_no_utf8_is_one_character_for_each_broken_sequence(tokenizer):
    tokens = tokenizer(tf.constant([b"\xffab \xe6\x9d", b"\xe6\x9d\xffc"]))

    words = [word.decode() for word in tokens.words.numpy()]
    assert words == ["\ufffd", "ab", "\ufffd", "\ufffd", "\ufffd", "c"]
    assert tokens.counts.numpy().tolist() == [3, 3]
    assert tokens.starts.numpy().tolist() == [0, 1, 4, 0, 1, 2]
    assert tokens.first_bytes.numpy().tolist() == [0, 1, 4, 0, 2, 3]
    assert tokens.last_bytes.numpy().tolist() == [1, 3, 6, 2, 3, 4]


@pytest.mark.parametrize(
    "words",
    [
        ["Rome", "oslo", "straße"],
        # By their lower case, but with their own spelling.
        ["Oslo", "OSLO", "STRAßE", "oslo"],
        # Not by it: no such lower case.
        ["rome", "ROME"],
        # Unknown, cut at five characters, of unknown characters, each several times.
        ["lamb", "lambs", "lambsome", "lambsome", "東京", "lamb", "Rome"],
        ["İzmir", "<unknown>", "\u0130"],
        # Without soft hyphens.
        [
            "Ro\u00adme",
            "OS\u00adlo",
            "\u00adlam\u00adb\u00ad\u00adsome\u00ad",
            "\u00ad\u00ad",
        ],
    ],
    ids=str,
)
def test_words_are_those_of_python(embedding, words):
    columns = word_table(embedding)(tf.constant(words, tf.string))

    table = VOCABULARY.table(["", *words])
    rows, characters = table["words"][None, 1:], table["characters"][None, 1:]
    np.testing.assert_array_equal(columns["words"], rows[0])
    np.testing.assert_array_equal(columns["characters"], characters[0])
    np.testing.assert_array_equal(
        columns["spellings"], Spelling(VOCABULARY.lowercase)(rows, characters)[0]
    )
    assert columns["vectors"].shape == (len(words), 6)
    np.testing.assert_allclose(
        columns["vectors"], embedding(rows, characters)[0], atol=1e-6
    )


def test_no_words_have_no_vectors(embedding):
    columns = word_table(embedding)(tf.constant([], tf.string))

    shapes = {name: tuple(column.shape) for name, column in columns.items()}
    assert shapes == {
        "words": (0,),
        "characters": (0, 5),
        "vectors": (0, 6),
        "spellings": (0, 3),
    }


def test_a_vocabulary_without_words_knows_none():
    vocabulary = Vocabulary([*RESERVED], [*RESERVED], characters_per_word=5)
    columns = word_table(made_embedding(vocabulary), vocabulary)(tf.constant(["Rome"]))

    np.testing.assert_array_equal(columns["words"], [UNKNOWN])
    np.testing.assert_array_equal(columns["characters"], [[UNKNOWN] * 4 + [PADDING]])


def test_only_unknown_words_pay_for_their_spelling_and_each_once(embedding):
    graph = word_table(embedding)
    asked, word_side = [], graph.word_side
    graph.word_side = lambda inputs: asked.append(inputs["words"]) or word_side(inputs)

    graph(tf.constant(["Rome", "lamb", "oslo", "Oslo", "lamb", "Rome"]))

    (rows,) = asked
    # The empty word, "lamb", and "Oslo" with the row of "oslo".
    assert rows.numpy().tolist() == [[1, 1, 3]]
