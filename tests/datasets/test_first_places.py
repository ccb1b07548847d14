"""Tests of qanet.datasets.first_places."""

import numpy as np

from qanet.config import load_preset
from qanet.datasets.features import build_features
from qanet.datasets.first_places import at_first_places
from qanet.datasets.squad import Example, Span, write_squad
from qanet.datasets.training_files import read_training_data
from qanet.datasets.windows import Windows
from qanet.run import Run
from qanet.text.vocabulary import RESERVED, Vocabulary
from qanet.training.distribution import make_distribution
from qanet.training.trainer import Trainer

#           0  1     2    3     4   5    6    7  8    9
CONTEXT = "so Rome and abcd or abce and Rome is Rome"


def moved(answers, offsets, characters="Romeandabc"):
    """Where the answers stand, given as (text, offset), in windows from `offsets`."""
    examples = [
        Example(str(i), "Where?", CONTEXT, (Span(*answer),))
        for i, answer in enumerate(answers)
    ]
    features = build_features(examples)
    vocabulary = Vocabulary([*RESERVED, "Rome"], [*RESERVED, *characters], 3)
    count = len(examples)
    windows = Windows(np.arange(count), np.array(offsets), np.full(count, 10))
    table = vocabulary.table(features.words)
    found = at_first_places(features, table, windows)
    np.testing.assert_array_equal(found.starts, found.ends)
    return found.starts.tolist()


def test_an_answer_moves_to_the_first_place_of_its_word_in_the_window():
    last, middle = ("Rome", CONTEXT.rindex("Rome")), ("Rome", CONTEXT.index("Rome is"))
    assert moved([last] * 4, [0, 1, 2, 8]) == [1, 1, 7, 9]
    again = ("and", CONTEXT.rindex("and"))
    assert moved([middle, again, ("so", 0)], [0, 3, 0]) == [1, 6, 0]


def test_a_cloze_reader_is_trained_on_first_places(tmp_path):
    last = Span("Rome", CONTEXT.rindex("Rome"))
    path = tmp_path / "train.json"
    write_squad(path, [Example("1", "Where?", CONTEXT, (last,))])
    files = [f"data.{split}={path}" for split in ("train", "dev")]
    sizes = ["model.units=2", "model.width=4", "training.batch_size=1"]
    sizes += ["vocabulary.word_min_count=1", "vocabulary.character_min_count=1"]
    for name, limit, place in (("aoa-cloze", 1, 1), ("aoa", 1, 9)):
        config = load_preset(name, [*files, *sizes, f"data.answer_limit={limit}"])
        data = read_training_data(config, tmp_path / "cache")
        distribution = make_distribution(config.distribution)
        task = Trainer(config, data, Run(tmp_path / name), distribution).loop.task
        targets = task.maker.targets(task.plan[0])
        assert targets["start_logits"].argmax() == place, name


def test_words_are_told_apart_as_far_as_the_layer_tells_them():
    # Of three characters, "abcd" and "abce" are one word.
    assert moved([("abce", CONTEXT.index("abce"))], [0]) == [3]
    # With an unknown character and no row, a word is like no other, not even itself.
    and_again = ("and", CONTEXT.rindex("and"))
    assert moved([and_again], [0]) == [2]
    assert moved([and_again], [0], "Romeanabc") == [6]
    # With a row it is.
    assert moved([("Rome", CONTEXT.index("Rome is"))], [0], "and") == [1]
