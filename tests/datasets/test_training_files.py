"""Tests of qanet.datasets.training_files: the vocabulary, and what files hold."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from made_training_data import COUNTS, odd_training_data

from qanet.config import Config, load_preset
from qanet.datasets.features import build_features
from qanet.datasets.soft_targets import TeacherTargets, made_targets, save_targets
from qanet.datasets.squad import Example, Span, write_squad
from qanet.datasets.training_data import save_packed
from qanet.datasets.training_files import (
    build_vocabulary,
    check_files,
    read_training_data,
)
from qanet.decoding import ContextLogits
from qanet.errors import UserError
from qanet.text.pieces import SPECIAL, WordPieces
from qanet.text.vocabulary import RESERVED, Vocabulary


@pytest.fixture
def data():
    return odd_training_data()


def features_of(*texts):
    """Features of (question, context) pairs."""
    return build_features([Example(str(i), *pair, ()) for i, pair in enumerate(texts)])


TRAIN = features_of(("Who saw red red?", "red green red"), ("Who?", "green blue"))
DEV = features_of(("Whose violet?", "red violet"))


def config(**vocabulary):
    return Config.model_validate({"vocabulary": vocabulary})


def test_words_of_train_earn_a_vector_by_their_count(tmp_path):
    vocabulary = build_vocabulary(
        config(word_min_count=2, character_min_count=1), TRAIN, DEV, tmp_path
    )
    # red: twice in a context and twice in a question.
    assert vocabulary.words[2:] == ["red", "?", "Who", "green"]
    assert vocabulary.vectors is None


def test_word_pieces_are_not_taken_for_the_words_of_the_same_texts(tmp_path):
    """Both are kept in one cache."""
    example = Example("1", "Who sings?", "unhappiness sings", (Span("sings", 12),))
    write_squad(tmp_path / "a.json", [example])
    data = {name: str(tmp_path / "a.json") for name in ("train", "dev")}
    found = []
    for model in ({}, {"name": "bert"}, {}):
        config = Config.model_validate(
            {"data": data, "model": model, "vocabulary": {"pieces": 100}}
        )
        read = read_training_data(config, tmp_path / "cache")
        found.append(set(read.train.words))
    words, pieces, again = found
    assert words == again
    # Pieces are in lower case.
    assert "Who" in words
    assert "Who" not in pieces
    assert "who" in pieces


def test_word_pieces_of_another_run_are_kept(tmp_path):
    """Others, even as many, would not be those that its weights belong to."""
    example = Example("1", "Who sings?", "unhappiness sings", (Span("sings", 12),))
    write_squad(tmp_path / "a.json", [example])
    data = {name: str(tmp_path / "a.json") for name in ("train", "dev")}
    given = WordPieces.train(["Nobody sleeps where everybody dances."] * 9, 60)
    bert = Config.model_validate({"data": data, "model": {"name": "bert"}})
    found = read_training_data(bert, tmp_path / "cache", given)
    assert found.vocabulary.pieces == given.pieces
    expected = build_features([example], given.tokens)
    np.testing.assert_array_equal(found.train.words, expected.words)


def test_nothing_is_learned_from_dev(tmp_path):
    vocabulary = build_vocabulary(
        config(word_min_count=1, character_min_count=1), TRAIN, DEV, tmp_path
    )
    assert "violet" not in vocabulary.words
    assert "v" not in vocabulary.characters
    letters = Counter("whosawredred?" + "redgreenred" + "who?" + "greenblue")
    assert {c.lower() for c in vocabulary.characters[2:]} == set(letters)


def test_given_vectors_are_kept_for_the_words_of_train_and_dev(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 9 9\nred 1 2\nviolet 3 4\nunused 5 6\n", encoding="utf-8")
    vocabulary = build_vocabulary(
        config(vectors=str(path), extra_vectors=1), TRAIN, DEV, tmp_path / "cache"
    )
    assert vocabulary.words[2:] == ["the", "red", "violet"]
    np.testing.assert_array_equal(
        vocabulary.vectors, [[0, 0], [0, 0], [9, 9], [1, 2], [3, 4]]
    )


def test_vectors_of_several_files_are_joined(tmp_path):
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("red 1 2\nWho 3 4\n", encoding="utf-8")
    other.write_text("violet 5\nwho 6\n", encoding="utf-8")
    vocabulary = build_vocabulary(
        config(vectors=[str(one), str(other)], extra_vectors=0), TRAIN, DEV, tmp_path
    )
    assert vocabulary.words[2:] == ["red", "Who", "violet", "who"]
    np.testing.assert_array_equal(
        vocabulary.vectors[2:], [[1, 2, 0], [3, 4, 6], [0, 0, 5], [0, 0, 6]]
    )


def test_vectors_that_know_none_of_the_words_are_refused(tmp_path):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("red 1 2\n", encoding="utf-8")
    bad.write_text("rouge 1 2\nvert 3 4\n", encoding="utf-8")
    settings = config(vectors=[str(good), str(bad)], extra_vectors=9)
    with pytest.raises(UserError, match=r"bad\.txt: has none of the data's 8 words"):
        build_vocabulary(settings, TRAIN, DEV, tmp_path)


@pytest.mark.parametrize("content", [None, "{}\n", "red 1 two\n"])
def test_one_bad_file_among_several_is_named(tmp_path, content):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("red 1 2\n", encoding="utf-8")
    if content is not None:
        bad.write_text(content, encoding="utf-8")
    settings = config(vectors=[str(good), str(bad)], extra_vectors=9)
    with pytest.raises(UserError, match=r"bad\.txt"):
        build_vocabulary(settings, TRAIN, DEV, tmp_path)


def test_the_configuration_names_the_packed_data_set(data, tmp_path):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    config = Config.model_validate({"data": {"packed": str(path)}})
    assert read_training_data(config, tmp_path / "cache").counts == COUNTS
    assert not (tmp_path / "cache").exists()
    own = Vocabulary(RESERVED, RESERVED, 5)
    assert read_training_data(config, tmp_path, own).vocabulary is own


def test_a_packed_data_set_of_other_pieces_is_refused(data, tmp_path):
    path = tmp_path / "data.npz"
    own, other = (WordPieces([*SPECIAL, piece]) for piece in ("river", "rivers"))
    data.vocabulary = own
    save_packed(path, data)
    settings = {"data": {"packed": str(path)}, "model": {"name": "bert"}}
    config = Config.model_validate(settings)
    assert read_training_data(config, tmp_path, own).vocabulary is own
    with pytest.raises(UserError, match="split into other word pieces"):
        read_training_data(config, tmp_path, other)
    # Also where as many pieces, so that the weights would fit.
    public = tmp_path / "public"
    settings["model"]["pretrained"] = str(public)
    config = Config.model_validate(settings)
    own.save(public)
    assert read_training_data(config, tmp_path).vocabulary.key == own.key
    other.save(public)
    with pytest.raises(UserError, match=f"model.pretrained={public}; pack it anew"):
        read_training_data(config, tmp_path)


def test_missing_files_are_found_before_anything_is_read(tmp_path):
    there, absent = tmp_path / "there", str(tmp_path / "absent")
    there.touch()
    data = {"train": str(there), "dev": str(there), "augmented": {"fr": str(there)}}
    data["mix"] = {"original": 1, "fr": 1}
    check_files(Config.model_validate({"data": data}))
    check_files(Config.model_validate({"data": {"train": "sample", "dev": "squad"}}))
    for settings in (
        {"data": data | {"train": absent}},
        {"data": data | {"dev": absent}},
        {"data": data | {"augmented": {"fr": absent}}},
        {"data": data, "vocabulary": {"vectors": [str(there), absent]}},
        {"data": {"packed": absent}},
    ):
        with pytest.raises(UserError, match=f"{absent}: cannot be read: No such file"):
            check_files(Config.model_validate(settings))
    # Nobody reads the vectors and the encoder that a run has begun with.
    vectors = {"data": data, "vocabulary": {"vectors": [absent]}}
    check_files(Config.model_validate(vectors), resume=True)
    check_files(Config.model_validate(vectors | {"training": {"start_from": "run"}}))
    bert = {"data": data, "model": {"name": "bert", "pretrained": absent}}
    check_files(Config.model_validate(bert), resume=True)
    with pytest.raises(UserError, match=absent):
        check_files(Config.model_validate(bert))
    # It takes the place of all others.
    settings = {"data": data | {"train": absent, "packed": str(there)}}
    check_files(Config.model_validate(settings))


@pytest.mark.parametrize("key", ["teacher_share", "temperature"])
def test_how_to_learn_from_a_teacher_that_is_not_there(data, tmp_path, key):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    settings = {"data": {"packed": str(path)}, "training": {key: 0.6}}
    config = Config.model_validate(settings)
    with pytest.raises(UserError, match=rf"^training\.{key}=0\.6: there is no teacher"):
        read_training_data(config, tmp_path)
    said = TeacherTargets(np.zeros((2, 14), "float16"), np.array([0, 7, 14]), False)
    save_packed(path, replace(data, teacher=said))
    assert read_training_data(config, tmp_path).teacher


def test_what_chooses_among_words_learns_from_no_teacher(tmp_path):
    path = tmp_path / "teacher.npz"
    path.touch()
    data = [f"data.{name}={path}" for name in ("train", "dev")]
    cloze = load_preset("aoa-cloze", [*data, f"training.teacher={path}"])
    with pytest.raises(UserError, match="aoa-cloze chooses among words"):
        check_files(cloze)
    # A run of a former version goes on.
    check_files(cloze, resume=True)


def test_nor_from_a_packed_one(data, tmp_path):
    path = tmp_path / "data.npz"
    said = TeacherTargets(np.zeros((2, 14), "float16"), np.array([0, 7, 14]), False)
    save_packed(path, replace(data, teacher=said))
    given = [f"data.packed={path}"]
    with pytest.raises(UserError, match=r"set training\.teacher_share=0"):
        read_training_data(load_preset("aoa-cloze", given), tmp_path)
    given.append("training.teacher_share=0")
    assert read_training_data(load_preset("aoa-cloze", given), tmp_path).teacher


def test_a_packed_teacher_may_have_no_share(data, tmp_path):
    path = tmp_path / "data.npz"
    settings = {"data": {"packed": str(path)}, "training": {"teacher_share": 0}}
    config = Config.model_validate(settings)
    said = TeacherTargets(np.zeros((2, 14), "float16"), np.array([0, 7, 14]), False)
    # Nor need there be one for it.
    for teacher in (said, None):
        save_packed(path, replace(data, teacher=teacher))
        read = read_training_data(config, tmp_path)
        assert (read.teacher is None) == (teacher is None)


def test_a_packed_data_set_has_a_teacher_of_its_own_or_none(data, tmp_path):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    settings = {"data": {"packed": str(path)}, "training": {"teacher": "t.npz"}}
    config = Config.model_validate(settings)
    with pytest.raises(
        UserError, match=r"^training\.teacher: .*data\.npz brings its own soft"
    ):
        read_training_data(config, tmp_path / "cache")


def test_a_packed_set_without_weight_is_told(data, tmp_path, caplog):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    config = Config.model_validate({"data": {"packed": str(path)}})
    read_training_data(config, tmp_path / "cache")
    assert "its training set 'fr' takes no part" in caplog.text


def test_the_mix_names_sets_of_the_packed_data_set(data, tmp_path, caplog):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    settings = {"packed": str(path), "mix": {"original": 3, "fr": 1}}
    config = Config.model_validate({"data": settings})
    assert read_training_data(config, tmp_path / "cache").sources == data.sources
    assert not caplog.text
    settings["mix"]["de"] = 1
    config = Config.model_validate({"data": settings})
    with pytest.raises(UserError, match=r"data\.npz: has no training set 'de'"):
        read_training_data(config, tmp_path / "cache")


def test_training_sets_stand_one_after_the_other(tmp_path):
    files = {}
    for number, name in enumerate(("train", "de", "fr", "dev")):
        context = f"{name} {name} und Rome"
        examples = [
            Example(f"{name}-{i}", f"{name} {i}?", context, (Span("Rome", 4),))
            for i in range(number + 1)
        ]
        files[name] = str(tmp_path / f"{name}.json")
        write_squad(files[name], examples)
    train, dev = files.pop("train"), files.pop("dev")
    config = Config.model_validate(
        {
            "data": {
                "train": train,
                "dev": dev,
                "augmented": files,
                "mix": {"original": 3, "fr": 1, "de": 1},
            },
            "vocabulary": {"word_min_count": 1, "character_min_count": 1},
        }
    )
    data = read_training_data(config, tmp_path / "cache")
    assert data.sources == {"original": 1, "de": 2, "fr": 3}
    words = np.array(data.train.words)
    splits = data.train.question_splits
    questions = [
        " ".join(words[data.train.question_words[begin:end]])
        for begin, end in pairwise(splits)
    ]
    assert questions == [
        "train 0 ?",
        *("de 0 ?", "de 1 ?"),
        *("fr 0 ?", "fr 1 ?", "fr 2 ?"),
    ]
    assert {name: c["questions"] for name, c in data.counts.items()} == {
        "train": 1,
        "de": 2,
        "fr": 3,
        "dev": 4,
    }
    assert {"train", "de", "fr"} <= set(data.vocabulary.words)
    assert "dev" not in data.vocabulary.words


def test_a_teacher_speaks_of_augmented_sets_too(tmp_path):
    texts = {"train": "A Rome", "de": "B Rome", "fr": "C Rome", "dev": "D Rome"}
    examples, files = {}, {}
    for name, context in texts.items():
        examples[name] = [Example(name, "Where?", context, (Span("Rome", 2),))]
        files[name] = str(tmp_path / f"{name}.json")
        write_squad(files[name], examples[name])
    seen = [*examples["train"], *examples["fr"]]
    logits = [ContextLogits(np.zeros((2, 2)), -np.inf)] * 2
    teacher = tmp_path / "teacher.npz"
    save_targets(teacher, made_targets(seen, build_features(seen), logits, "two sets"))
    settings = {
        "train": files["train"],
        "dev": files["dev"],
        "augmented": {name: files[name] for name in ("de", "fr")},
        "mix": {"original": 1, "de": 1, "fr": 1},
    }
    config = Config.model_validate(
        {"data": settings, "training": {"teacher": str(teacher)}}
    )
    data = read_training_data(config, tmp_path / "cache")
    assert np.diff(data.teacher.splits).tolist() == [2, 0, 2]
