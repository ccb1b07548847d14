"""Tests of qanet.export.paths."""

from qanet.config import Config, load_preset
from qanet.export.paths import without_paths


def test_files_keep_their_names_alone():
    config = load_preset(
        "qanet",
        [
            "data.train=/home/zoe/train.json",
            "data.augmented={es: ../es/train.es.json}",
            "data.mix={original: 2, es: 1}",
            "vocabulary.vectors=[/a/b.txt.gz, c.txt]",
            "training.teacher=/t/teacher.npz",
            "training.start_from=/home/zoe/runs/first",
            "model.contextual=../runs/bilm",
        ],
    )
    found = without_paths(config)
    assert found.data.train == "train.json"
    assert found.data.augmented == {"es": "train.es.json"}
    assert found.vocabulary.vectors == ("b.txt.gz", "c.txt")
    assert found.training.teacher == "teacher.npz"
    assert found.training.start_from == "first"
    assert found.model.contextual == "bilm"
    assert found.model.model_copy(update={"contextual": "../runs/bilm"}) == config.model


def test_a_run_may_have_been_trained_on_another_system():
    config = load_preset("qanet", [r"data.train=C:\Users\zoe\train.json"])
    assert without_paths(config).data.train == "train.json"


def test_packed_data_keep_their_name_alone():
    config = Config.model_validate({"data": {"packed": "/home/zoe/squad.npz"}})
    assert without_paths(config).data.packed == "squad.npz"


def test_public_weights_keep_their_name_alone():
    config = load_preset("bert", ["model.pretrained=/home/zoe/minilm/"])
    assert without_paths(config).model.pretrained == "minilm"


def test_what_names_no_file_stays():
    assert without_paths(Config()) == Config()
    root = load_preset("qanet", ["data.train=/"])
    assert without_paths(root) == root
