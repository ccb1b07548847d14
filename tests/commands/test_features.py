"""Tests of qanet.commands.features."""

from qanet import cli
from qanet.datasets.training_data import load_compact


def test_features_keep_the_words_of_the_data_unless_told_otherwise(
    tiny_files, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("elsewhere 1 2\nlives 3 4\n", encoding="utf-8")
    arguments = ["features", "--train", tiny_files.train, "--dev", tiny_files.dev]
    arguments += ["--vectors", vectors, "--output", "data.npz"]
    for options, words in (
        ([], ["lives"]),
        (["--set", "vocabulary.extra_vectors=1"], ["elsewhere", "lives"]),
    ):
        cli.main([str(argument) for argument in [*arguments, *options]])
        assert load_compact("data.npz").vocabulary.words[2:] == words
        assert f"{2 + len(words)} words" in capsys.readouterr().out


def test_features_of_a_missing_file(refused, tmp_path):
    path, output = tmp_path / "train.json", tmp_path / "data.npz"
    line = refused(cli.main, "features", "--train", path, "--output", output)
    assert str(path) in line
    assert not output.exists()
